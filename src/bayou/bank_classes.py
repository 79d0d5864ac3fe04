"""One class more: what a bank knows of the others is carried over to a bank that has members like its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from bayou.contracts import Array, Vector
from bayou.likelihoods import Logistic, Softmax
from bayou.members import Member
from bayou.numerics.bank_belief import BankBelief, BankPlan
from bayou.numerics.bank_weights import FAINTEST

PER_MEMBER = ("merit", "rest", "naps", "idle", "born")
NO_TARGET = -1.0


class Known(Protocol):
    """What is asked of a bank."""

    members: tuple[Member, ...]
    n_features: int
    belief: BankBelief
    plan: BankPlan

    def mean_of(self, m: int, latent: int = 0) -> Vector: ...

    def covariance_of(self, m: int, latent: int = 0) -> Array: ...


def carried(known: Known, wider: Known, rarity: float) -> None:
    """Write to a bank of one class more, which knows nothing, what another knows."""
    pairs = partners(known.members, wider.members)
    last = wider.members[0].n_latents - 1
    for old, new in pairs:
        _carry_weights(known, old, wider, new)
    for new in range(len(wider.members)):
        usual = sum(float(wider.mean_of(new, latent)[0]) for latent in range(last)) / last
        wider.mean_of(new, last)[0] = usual - rarity if rarity else 0.0
    _carry_standing(known.belief, wider.belief, pairs)
    _carry_waves(known, wider)
    past, scalar = wider.belief.past, known.members[0].n_latents == 1
    kept = known.belief.past[: past.size]
    past[: kept.size] = np.select([kept > 0.0, kept < 0.0], [1.0, 0.0], NO_TARGET) if scalar else kept


def partners(members: Sequence[Member], others: Sequence[Member]) -> list[tuple[int, int]]:
    """Pairs of members that differ in nothing but how many classes there are; each has one partner at most."""
    free = [_settings(member) for member in members]
    pairs = []
    for new, member in enumerate(others):
        settings = _settings(member)
        if settings is not None and settings in free:
            old = free.index(settings)
            free[old] = None
            pairs.append((old, new))
    return pairs


def _settings(member: Member) -> Member | None:
    """A member with the likelihood of three classes in place of its own; None if its latent is no difference of two."""
    return replace(member, likelihood=Softmax(3)) if isinstance(member.likelihood, (Logistic, Softmax)) else None


def _carry_weights(known: Known, old: int, wider: Known, new: int) -> None:
    """Of two classes each has half of their one latent; what past targets weighed, both have."""
    was = known.members[old]
    if was.n_latents == 1:
        past = slice(known.n_features, known.n_features + was.past)
        for latent, sign in enumerate((-1.0, 1.0)):
            size = np.full(known.plan.size[old], math.sqrt(0.5))
            size[past] *= math.sqrt(2.0) * sign
            wider.mean_of(new, latent)[...] = sign * size * known.mean_of(old)
            wider.mean_of(new, latent)[: past.start] *= math.sqrt(0.5)
            wider.mean_of(new, latent)[past.stop :] *= math.sqrt(0.5)
            wider.covariance_of(new, latent)[...] = np.outer(size, size) * known.covariance_of(old)
        return
    for latent in range(was.n_latents):
        wider.mean_of(new, latent)[...] = known.mean_of(old, latent)
        wider.covariance_of(new, latent)[...] = known.covariance_of(old, latent)


def _carry_standing(known: BankBelief, wider: BankBelief, pairs: list[tuple[int, int]]) -> None:
    """What is believed of members, and who sleeps; those without a partner are believed as any other."""
    old, new = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    wider.chains[...] = known.chains.sum(axis=1, keepdims=True) / wider.chains.shape[1]
    wider.chains[:, new] = known.chains[:, old]
    wider.chains[...] = np.maximum(wider.chains / wider.chains.sum(), FAINTEST)
    wider.usual[...] = 1.0 / wider.usual.size
    wider.usual[new] = known.usual[old]
    wider.usual[...] /= wider.usual.sum()
    for name in PER_MEMBER:
        getattr(wider, name)[new] = getattr(known, name)[old]
    if np.all(wider.rest > 0.0):
        wider.rest[...] = 0.0
    wider.pulse[...] = known.pulse
    wider.changes[...] = known.changes


def _carry_waves(known: Known, wider: Known) -> None:
    for m, member in enumerate(wider.members):
        for was, own in zip(known.plan.group.tolist(), known.members, strict=True):
            if member.waves is not None and own.waves == member.waves:
                group: Any = wider.plan.group[m]
                wider.belief.frequency[group] = known.belief.frequency[was]
                wider.belief.phase[group] = known.belief.phase[was]
