"""What the rows of one shard tell a bank: each member what it tells a learner, and how much each gave to them.

Members do not change places within shards, and none sleeps: who is the best for a while, and how often that changes, is
a question to the order of rows, which shards do not have. So members are weighed by their evidence of all rows, and
what is believed of each rate of switching is what it was at first.

A Gaussian row that counts k times is given what k such rows are given. A bank in one pass gives it k times what was
said before the first of them, and so does a shard of other likelihoods, or with values that are missing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp

from bayou.bank import Bank
from bayou.contracts import Mask, Matrix, Vector
from bayou.distributed.naturals import added, n_bytes, taken
from bayou.distributed.readers import ArrayReader
from bayou.distributed.scores import count, no_scores
from bayou.distributed.shards import Told, join_told, one_thread
from bayou.distributed.sources import Shard
from bayou.encoders.standardizer import Frame
from bayou.errors import ShapeMismatch
from bayou.estimators.common_frame import Encoding, Seen, check_members
from bayou.likelihoods import Gaussian, Softmax
from bayou.members import Member
from bayou.mixed_classes import MixedClasses
from bayou.numerics.bank_belief import LATEST, LEARNT, STEPS, VALUE
from bayou.numerics.bank_naturals import BankNatural, believed, log_partitions, natural_of, prior_of, write

INSTEAD = "let all members be as Member(likelihood), which knows nothing of time, and shards add up"
ALONE = (0.0,)  # the one rate of switching within shards: never
SWITCHES = "members are weighed as if they never changed places; rates of switching are believed as they were at first"


def reader_of(bank: Bank, target: str | None) -> ArrayReader:
    """How the rows of a bank are read; raises unless its members know nothing of time."""
    check_members(bank.members, INSTEAD)
    return ArrayReader(not labels_of(bank), target)


def note_of(bank: Bank) -> str:
    """What is not as one pass would have it."""
    return "" if set(bank.switching) == {0.0} else SWITCHES


def labels_of(bank: Bank) -> tuple[float, ...]:
    """The classes that targets are, as a bank takes them; none of numbers."""
    if isinstance(bank.likelihood, Softmax):
        return tuple(float(c) for c in range(bank.n_latents))
    return (-1.0, 1.0) if bank.likelihood.target_range == (-1.0, 1.0) else ()


def planned(bank: Bank, reader: ArrayReader, seen: Seen) -> BankedPlan:
    """All that it takes to learn a shard: rows are told as they are."""
    width = seen.columns.mean.size
    if width != bank.n_features:
        raise ShapeMismatch(f"rows must have {bank.n_features} columns, as the bank has features; got {width}.")
    none = np.zeros(width)
    frame = Frame(none, none, none, none, np.ones(width))
    of_numbers = bank.likelihood.target_range == (-np.inf, np.inf)
    encoding = Encoding(frame, 0, 1.0, False, labels_of(bank), counts=not of_numbers)
    return BankedPlan(reader, encoding, bank.members, bank.n_features)


@dataclass(frozen=True, eq=False)
class BankedPlan:
    """All that it takes to learn a shard."""

    reader: ArrayReader
    encoding: Encoding
    members: tuple[Member, ...]
    n_features: int

    may_diverge: ClassVar[bool] = False

    def learner(self) -> Bank:
        """One that has learnt nothing."""
        return Bank(self.members, self.n_features, ALONE)

    def is_exact(self, seen: Seen) -> bool:
        """Whether what a shard tells does not depend on what others have told."""
        return bool(self.adds_up().all()) and not seen.missing

    def adds_up(self) -> Mask:
        """Of which members that is so where nothing is missing."""
        return np.array([isinstance(m.likelihood, Gaussian) and m.tails == np.inf for m in self.members])

    def first_bytes(self) -> int:
        """What a shard tells takes."""
        return n_bytes(prior_of(self.learner().plan))

    def total(self, told: Told) -> BankNatural:
        """The prior and what all have told, for those who learn again."""
        return BankNatural(*added(prior_of(self.learner().plan), told.natural))

    def after(self, told: Told) -> Bank:
        """A bank that believes what all have told; raises where that is no belief."""
        bank = self.learner()
        with one_thread():
            take(bank, self.total(told))
        return bank

    @staticmethod
    def learn(plan: BankedPlan, shard: Shard, total: BankNatural | None = None, before: Told | None = None) -> Told:
        """See `learn_banked`."""
        return learn_banked(plan, shard, total, before)

    @staticmethod
    def join(one: Told, other: Told) -> Told:
        """What both have told."""
        return join_told(one, other)


def learn_banked(plan: BankedPlan, shard: Shard, total: BankNatural | None = None, before: Told | None = None) -> Told:
    """Learn all rows of a shard, given what all shards have told before, each member as `learn_shard` has it."""
    started = time.process_time()
    with one_thread():
        bank = plan.learner()
        cavity = prior_of(bank.plan)
        if total is not None and before is not None:
            cavity = BankNatural(*taken(tuple(total), before.natural))
            take(bank, cavity)
        known = bank.log_evidence
        given, at_first = np.zeros(len(plan.members)), log_partitions(bank.belief, bank.plan)
        scores = no_scores(plan.encoding)
        for chunk in shard.chunks():
            rows, targets, weights = plan.reader.examples(chunk)
            if len(rows):
                features, missing = plan.encoding.features(rows)
                told = plan.encoding.targets(targets)
                before_chunk = log_partitions(bank.belief, bank.plan)
                said = bank.learn_many(features, told, weights, missing)
                gave = given_by_members(said, told, weights)
                if weights is not None and missing is None:
                    more = log_partitions(bank.belief, bank.plan) - before_chunk
                    gave = np.where(plan.adds_up(), log_scales(plan.members, told, weights) + more, gave)
                given += gave
                count(scores, plan.encoding, said, told, weights)
        log_scale = given - log_partitions(bank.belief, bank.plan) + at_first
        learnt = BankNatural(*taken(natural_of(bank.belief, bank.plan), cavity))._replace(log_scale=log_scale)
    seconds = time.process_time() - started
    score = bank.log_evidence - known
    return Told(learnt, bank.n_examples, 0.0, score, seconds, scores, n_bytes(learnt))


def given_by_members(said: Any, targets: Vector, weights: Vector | None) -> Vector:
    """The log probability that each member gave to all of the targets, each before it was learnt."""
    if isinstance(said, MixedClasses):
        values: Matrix = np.log(said.of_members[np.arange(len(targets)), :, targets.astype(np.intp)])
    else:
        values = said._record[:, :, VALUE]
    total: Vector = values.sum(axis=0) if weights is None else weights @ values
    return total


def log_scales(members: Sequence[Member], targets: Vector, weights: Vector) -> Vector:
    """What of the evidence of rows depends on nothing but their targets, of members that are Gaussian."""
    count, squares = float(weights.sum()), float(weights @ targets**2)
    noises = [m.likelihood.noise_variance if isinstance(m.likelihood, Gaussian) else 1.0 for m in members]
    apart = [0.0 if m.learns_noise else squares / noise for m, noise in zip(members, noises, strict=True)]
    found: Vector = -0.5 * (count * np.log(2.0 * np.pi * np.array(noises)) + apart)
    return found


def take(bank: Bank, natural: BankNatural) -> None:
    """Let a new bank believe this, and weigh its members by their evidence; raises where that would be no belief."""
    at_first = log_partitions(bank.belief, bank.plan)
    write(bank.belief, bank.plan, natural)
    evidence = natural.log_scale + log_partitions(bank.belief, bank.plan) - at_first
    weights = believed(evidence)
    bank.belief.chains[...] = weights / len(bank.switching)
    bank.belief.usual[...] = weights
    bank.log_evidence = float(logsumexp(evidence)) - float(np.log(evidence.size))


def finished(given: Bank, plan: BankedPlan, told: Told) -> Bank:
    """The bank, once all shards have told what they did: with the switching and the budget of that which was given."""
    bank = Bank(plan.members, plan.n_features, given.switching, given.budget)
    with one_thread():
        take(bank, plan.total(told))
    bank.n_examples = told.rows
    bank.belief.pulse[[STEPS, LEARNT, LATEST]] = told.rows
    return bank


def variances(bank: Bank) -> Vector:
    """Of all weights of all members, in the order of their means."""
    each = []
    for m, member in enumerate(bank.members):
        shape, rate = bank.belief.noise[m]
        noise = rate / shape if member.learns_noise else 1.0
        each += [noise * np.diagonal(bank.covariance_of(m, latent)) for latent in range(bank.n_latents)]
    return np.concatenate(each)
