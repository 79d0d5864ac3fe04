"""One shard: what its rows tell, beyond what others have told already.

    cavity = total - what this shard told before                 in natural parameters
    told   = what a learner that began with the cavity believes after the rows - cavity

This is a step of expectation propagation whose factors are whole shards; with a Gaussian likelihood what a shard tells
does not depend on the cavity, and one step is all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from threadpoolctl import threadpool_limits

from bayou.contracts import Likelihood, Posterior, Rule
from bayou.distributed.naturals import FULL, Natural, added, log_partition, n_bytes, natural_of, prior_of, taken, write
from bayou.distributed.readers import Reader
from bayou.distributed.scores import Scores, count, joined, no_scores
from bayou.distributed.sources import Shard
from bayou.estimators.common_frame import Encoding, Seen
from bayou.learner import Learner
from bayou.likelihoods import Gaussian


@dataclass(frozen=True, eq=False)
class Plan:
    """All that it takes to learn a shard."""

    reader: Reader
    encoding: Encoding
    likelihood: Likelihood
    posterior: Posterior[Any]
    rule: Rule
    n_features: int

    def learner(self) -> Learner:
        """One that has learnt nothing."""
        return Learner(self.likelihood, self.posterior, self.rule, self.n_features)

    may_diverge: ClassVar[bool] = False

    def is_exact(self, seen: Seen) -> bool:
        """Whether what a shard tells does not depend on what others have told."""
        return isinstance(self.likelihood, Gaussian) and isinstance(self.posterior, FULL) and not seen.missing

    def first_bytes(self) -> int:
        """What a shard tells takes."""
        return n_bytes(prior_of(self.learner()))

    def total(self, told: Told) -> Natural:
        """The prior and what all have told, for those who learn again."""
        return added(prior_of(self.learner()), told.natural)

    def after(self, told: Told) -> Learner:
        """A learner that believes what all have told; raises where that is no belief."""
        learner = self.learner()
        with one_thread():
            write(learner, self.total(told))
        return learner

    @staticmethod
    def learn(plan: Plan, shard: Shard, total: Natural | None = None, before: Told | None = None) -> Told:
        """See `learn_shard`."""
        return learn_shard(plan, shard, total, before)

    @staticmethod
    def join(one: Told, other: Told) -> Told:
        """What both have told."""
        return join_told(one, other)


class Told(NamedTuple):
    """What shards have told, which adds up.

    ``log_scale`` is the log of what their rows' likelihood is at its quadratic's best, as far as evidence needs it;
    ``log_score`` the log probability of each row given the cavity and the rows before it in its shard, and ``scores``
    what else was said of it then.
    """

    natural: Any  # as the plan adds it up
    rows: int
    log_scale: float
    log_score: float
    seconds: float
    scores: Scores
    bytes_told: int


def learn_shard(plan: Plan, shard: Shard, total: Natural | None = None, before: Told | None = None) -> Told:
    """Learn all rows of a shard, given what all shards have told before."""
    started = time.process_time()
    with one_thread():
        learner = plan.learner()
        cavity = prior_of(learner)
        if total is not None and before is not None:
            cavity = taken(total, before.natural)
            write(learner, cavity)
        at_first, scores = log_partition(learner), no_scores(plan.encoding)
        for chunk in shard.chunks():
            learn_chunk(plan, learner, chunk, scores)
        told = taken(natural_of(learner), cavity)
        log_scale = learner.log_evidence - log_partition(learner) + at_first
    seconds = time.process_time() - started
    return Told(told, learner.n_examples, log_scale, learner.log_evidence, seconds, scores, n_bytes(told))


def learn_chunk(plan: Plan, learner: Learner, chunk: Any, scores: Scores) -> None:
    """Learn some rows in the frame that all shards share; what was said of them before is scored."""
    rows, targets, weights = plan.reader.examples(chunk)
    if len(rows):
        features, missing = plan.encoding.features(rows)
        told = plan.encoding.targets(targets)
        count(scores, plan.encoding, learner.learn_many(features, told, weights, missing), told, weights)


def join_told(one: Told, other: Told, add: Callable[[Any, Any], Any] = added) -> Told:
    """What both have told."""
    return Told(
        add(one.natural, other.natural),
        one.rows + other.rows,
        one.log_scale + other.log_scale,
        one.log_score + other.log_score,
        one.seconds + other.seconds,
        joined(one.scores, other.scores),
        one.bytes_told + other.bytes_told,
    )


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums of matrices in the order of one thread: the same to the bit wherever a shard is learnt."""
    with threadpool_limits(limits=1):
        yield
