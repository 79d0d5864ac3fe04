"""Where the beliefs of a bank's members lie, and what they are before anything is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bayou.contracts import Array, Matrix, ScalarLikelihood
from bayou.errors import InvalidSpec
from bayou.members import Member, Waves
from bayou.numerics.bank_belief import (
    MOST_CHANGES,
    N_PULSES,
    N_RECORDS,
    BankBelief,
    BankPlan,
    BankRoom,
    ClassRoom,
    Integers,
    blocks_of,
    slice_of,
)
from bayou.numerics.bank_jumps import FIRST_JUMPS
from bayou.numerics.bank_past import REACH
from bayou.numerics.bank_weights import FIRST, FIRST_JITTER, FIRST_NOISE, TARGETS_PER_WAVE
from bayou.numerics.fours import FOUR, LARGEST_OF_FOUR, SAID_BY_FOUR
from bayou.numerics.priors import per_weight
from bayou.numerics.quick_race import race_room

MOST = {"cosine": 2.0, "step": 1.0}  # the square of a wave at its largest, by its average; a step is as large far out

# Microseconds of a member, roughly: per row, per pair of features, per wave, and per class instead of per row.
PER_ROW, PER_SQUARE, PER_WAVE, PER_CLASS = 0.3, 4.5e-4, 0.012, 1.3


def cost(member: Member, n_inputs: int) -> float:
    """Microseconds that a member takes per row, roughly, on a machine of 2025."""
    per_latent = PER_ROW if member.n_latents == 1 else PER_CLASS
    return member.n_latents * (per_latent + PER_SQUARE * member.n_features(n_inputs) ** 2) + PER_WAVE * n_waves(member)


def n_waves(member: Member) -> int:
    """How many waves a member has."""
    return 0 if member.waves is None else member.waves.n_waves


def n_bytes(member: Member, n_inputs: int) -> int:
    """Bytes that a member takes."""
    size = member.n_features(n_inputs)
    return 8 * (member.n_latents * (size * size + 2 * size) + 16)


def groups_of(members: Sequence[Member]) -> list[Waves]:
    """The waves that members share, each once, in the order in which they come."""
    groups = list(dict.fromkeys(member.waves for member in members if member.waves is not None))
    if len({waves.n_waves for waves in groups}) > 1:
        raise InvalidSpec(f"all waves of a bank must have the same `n_waves`; got {[w.n_waves for w in groups]}.")
    return groups


def kin_of(members: Sequence[Member]) -> list[int]:
    """A number for each member: the same for those whose weights mean the same, so that one may go on with another's.

    They may differ in how fast these walk, in how many labels are wrong, and in how long noise is remembered. Those
    that restart are kin to each other alone: what they know is of the time since a change.
    """
    kinds = [
        (
            type(m.likelihood),
            m.prior_variance,
            m.past_variance,
            m.past_mean,
            m.waves,
            m.past,
            m.noise_memory is None,
            m.tails,
            m.restarts,
            m.jumps,
        )
        for m in members
    ]
    return [kinds.index(kind) for kind in kinds]


def plan_of(members: Sequence[Member], n_inputs: int, switching: Sequence[float], budget: float | None) -> BankPlan:
    """How a bank of these members is laid out."""
    sizes = np.array([member.n_features(n_inputs) for member in members])
    latents = np.array([member.n_latents for member in members])
    groups = groups_of(members)
    seen = seen_by(members)
    fours, alone = fours_of(members, sizes, seen)
    at, square, seat = seats_of(sizes, latents, fours, alone)
    jumps = _jumps_of(members)
    kept, jitters = np.array([member.noise_kept for member in members]), np.array([m.jitters for m in members])
    plan = BankPlan(
        size=sizes,
        latents=latents,
        at=at,
        square=square,
        past=np.array([member.past for member in members]),
        reach=np.array([_reach(member) for member in members]),
        group=np.array([-1 if member.waves is None else groups.index(member.waves) for member in members]),
        restarts=np.array([int(member.restarts) for member in members]),
        kin=np.array(kin_of(members)),
        origin=np.zeros(int(np.sum(latents * sizes))),
        ceiling=np.zeros(int(np.sum(latents * sizes))),
        drift=np.array([float(member.drift) for member in members]),
        keeps=np.where(jitters, -1.0, kept),
        jitter=np.where(jitters, kept, -1.0),
        tails=np.array([float(member.tails) for member in members]),
        jump=np.array(jumps),
        jumpers=np.flatnonzero(np.array(jumps) == np.arange(len(members))),
        cost=np.array([cost(member, n_inputs) for member in members]),
        limits=np.array([math.inf, 0.0]) if budget is None else np.array([float(budget), 1.0]),
        patience=np.array([max(float(FIRST), TARGETS_PER_WAVE * n_waves(member)) for member in members]),
        switching=np.array(switching, dtype=np.float64),
        amplitude=np.array([math.sqrt(MOST[waves.shape] * waves.amplitude / waves.n_waves) for waves in groups]),
        steps=np.array([waves.shape == "step" for waves in groups], dtype=np.bool_),
        log_past=np.array([all(member.likelihood.log_link for member in members)]),
        seen=seen,
        beside=np.where(seat < fours.size, FOUR, 1),
        fours=fours,
        alone=alone,
        seat=seat,
        together=np.array([_are_told_together([members[m] for m in four]) for four in fours.tolist()], dtype=np.bool_),
    )
    for m, member in enumerate(members):
        for latent in range(member.n_latents):
            own, _, _ = slice_of(plan, m, latent)
            plan.origin[own], plan.ceiling[own] = _origin(member, n_inputs), _ceiling(member, n_inputs)
    return plan


def seen_by(members: Sequence[Member]) -> Integers:
    """A number for each member: the same for those that see the same features."""
    features = [(member.past, _reach(member) if member.past else 0.0, member.waves) for member in members]
    return np.array([features.index(own) for own in features])


def fours_of(members: Sequence[Member], sizes: Integers, seen: Integers) -> tuple[Integers, Integers]:
    """Who lies side by side: as many members that see the same as make up fours; and all others.

    Those that are told together come first, likelihood by likelihood, then who is left, all in their order.
    """
    fours: list[list[int]] = []
    for view in dict.fromkeys(seen.tolist()) if members[0].n_latents == 1 else ():
        alike = np.flatnonzero((seen == view) & (sizes <= LARGEST_OF_FOUR)).tolist()
        left = []
        for likelihood in dict.fromkeys(members[m].likelihood for m in alike):
            own = [m for m in alike if members[m].likelihood == likelihood]
            whole = len(own) // FOUR * FOUR if _are_told_together([members[m] for m in own]) else 0
            fours += _in_fours(own[:whole])
            left += own[whole:]
        fours += _in_fours(sorted(left))
    in_fours = np.array(fours, dtype=np.int64).reshape(-1, FOUR)
    return in_fours, np.setdiff1d(np.arange(len(members)), in_fours)


def _in_fours(some: list[int]) -> list[list[int]]:
    return [some[first : first + FOUR] for first in range(0, len(some) - FOUR + 1, FOUR)]


def _are_told_together(members: Sequence[Member]) -> bool:
    """Whether what a target says of the latents of these can be told at once: they have one likelihood, which does."""
    first = members[0].likelihood
    tells = isinstance(first, ScalarLikelihood) and first.log_evidence_four is not None
    return tells and all(member.likelihood == first and member.noise_memory is None for member in members)


def seats_of(
    sizes: Integers, latents: Integers, fours: Integers, alone: Integers
) -> tuple[Integers, Integers, Integers]:
    """Where the mean and the covariance of each member begin, and its seat."""
    order = np.concatenate([fours.ravel(), alone])
    at, square, seat = np.zeros_like(sizes), np.zeros_like(sizes), np.argsort(order)
    in_order, in_order_latents = sizes[order], latents[order]
    at[order] = np.cumsum(in_order_latents * in_order) - in_order_latents * in_order
    square[order] = np.cumsum(in_order_latents * in_order**2) - in_order_latents * in_order**2
    at[fours], square[fours] = at[fours[:, :1]] + np.arange(FOUR), square[fours[:, :1]] + np.arange(FOUR)
    return at, square, seat


def _jumps_of(members: Sequence[Member]) -> list[int]:
    """Of each member, which one stands for its jumps: the first that differs in nothing but its noise; or -1."""
    alike = [replace(m, jumps=False, tails=math.inf, noise_memory=None) for m in members]
    standing = {alike[m]: m for m in reversed(range(len(members))) if members[m].jumps}
    shared = [
        standing.get(kind, -1) if member.learns_noise else -1 for member, kind in zip(members, alike, strict=True)
    ]
    return [m if member.jumps else own for m, (member, own) in enumerate(zip(members, shared, strict=True))]


def _reach(member: Member) -> float:
    """How far out past targets are let in: the less their weights may differ from what is expected, the farther."""
    variance = member.prior_variance if member.past_variance is None else member.past_variance
    return REACH / math.sqrt(min(float(np.max(variance)), 1.0))


def _origin(member: Member, n_inputs: int) -> Array:
    """Prior means: zero but for the weight of the latest target."""
    origin = np.zeros(member.n_features(n_inputs))
    origin[n_inputs : n_inputs + min(member.past, 1)] = member.past_mean
    return origin


def _ceiling(member: Member, n_inputs: int) -> Array:
    """Prior variances: of what is not an input, that of all inputs if there is one for all."""
    of_inputs = per_weight("prior_variance", member.prior_variance, n_inputs)
    others = member.prior_variance if isinstance(member.prior_variance, (int, float)) else 1.0
    ceiling = np.concatenate([of_inputs, np.full(member.n_features(n_inputs) - n_inputs, float(others))])
    if member.past_variance is not None:
        ceiling[n_inputs : n_inputs + member.past] = member.past_variance
    return ceiling


def prior_of(members: Sequence[Member], plan: BankPlan, n_inputs: int) -> BankBelief:
    """What is believed before anything is known."""
    count, chains, groups = len(members), plan.switching.size, groups_of(members)
    covariance, blocks = np.zeros(int(np.sum(plan.latents * plan.size**2))), blocks_of(plan)
    for m in range(blocks.size.size):
        at, square, _ = slice_of(blocks, m)
        covariance[square] = np.diag(plan.ceiling[at]).ravel()
    width = groups[0].n_waves if groups else 0
    frequency, phase = np.zeros((len(groups), width, n_inputs)), np.zeros((len(groups), width))
    draw_waves(members, frequency, phase)
    zeros = np.zeros
    none_yet = -1.0 if plan.log_past[0] or members[0].n_latents > 1 else 0.0
    return BankBelief(
        mean=plan.origin.copy(),
        covariance=covariance,
        noise=np.where(plan.jitter[:, None] < 0.0, FIRST_NOISE, FIRST_JITTER),
        chains=np.full((chains, count), 1.0 / (chains * count)),
        usual=np.full(count, 1.0 / count),
        merit=zeros(count),
        rest=zeros(count),
        naps=zeros(count),
        idle=zeros(count),
        born=zeros(count),
        past=np.full(max((member.past for member in members), default=0), none_yet),
        pulse=zeros(N_PULSES),
        changes=zeros((MOST_CHANGES, 2)),
        frequency=frequency,
        phase=phase,
        jumps=np.tile(FIRST_JUMPS, (count, 1)),
    )


def draw_waves(members: Sequence[Member], frequency: Array, phase: Matrix) -> None:
    """Write the frequencies and phases of the waves that members share: the same for the same members, always."""
    for g, waves in enumerate(groups_of(members)):
        random = np.random.default_rng([waves.seed, g])
        phase[g] = random.uniform(0.0, 2.0 * math.pi, phase.shape[1])
        frequency[g] = _frequencies(waves, random, frequency.shape[2])
        if waves.shape == "step":  # each at a place like those where inputs are
            places = random.normal(size=(frequency.shape[2], frequency.shape[1])).T
            phase[g] = -np.sum(frequency[g] * places, axis=1)


def _frequencies(waves: Waves, random: np.random.Generator, n_inputs: int) -> Matrix:
    """Of each wave, over the inputs that it looks at; the first input is a constant where there is one."""
    drawn: Matrix = random.normal(size=(n_inputs, waves.n_waves)).T  # more inputs leave the first as they were
    if waves.inputs is None or waves.inputs >= n_inputs - 1:
        return drawn / (waves.scale * math.sqrt(n_inputs))
    order = random.uniform(size=drawn.shape)
    order[:, 0] = math.inf
    others = np.argsort(order, axis=1)[:, waves.inputs :]
    np.put_along_axis(drawn, others, 0.0, axis=1)
    return drawn / (waves.scale * math.sqrt(waves.inputs))


def room_for(members: Sequence[Member], plan: BankPlan) -> BankRoom | ClassRoom:
    """Room for one row."""
    groups = groups_of(members)
    waves = np.zeros((len(groups), groups[0].n_waves if groups else 0))
    widest, count = int(plan.size.max()), len(members)
    needed = np.zeros(len(groups), dtype=np.int64)
    latents = members[0].n_latents
    if latents == 1:
        x, direction, record = np.zeros(widest), np.zeros(plan.origin.size), np.zeros((count, N_RECORDS))
        asked, walks, latent, variance, blur, step, spread, values, shares = np.zeros((9, count))
        by_seat = asked, walks, latent, variance, blur, step, spread
        return BankRoom(x, direction, *by_seat, values, waves, needed, record, shares, np.zeros(SAID_BY_FOUR))
    said = np.zeros(count), waves, needed, np.zeros((count, latents)), np.zeros(count)
    each: Any = [*np.zeros((6, latents)), race_room(latents)]
    return ClassRoom(np.zeros(widest), np.zeros((latents, widest)), *said, *each)


def extended(
    members: Sequence[Member], known: BankBelief, plan: BankPlan, wider: BankPlan, n_inputs: int
) -> BankBelief:
    """The same belief with room for more inputs, of which nothing is known yet; ``n_inputs`` are those there were."""
    total = wider.size[0] - plan.size[0] + n_inputs
    belief = prior_of(members, wider, total)
    plan, wider = blocks_of(plan), blocks_of(wider)
    for m in range(plan.size.size):
        (own, square, size), (into, into_square, more) = slice_of(plan, m), slice_of(wider, m)
        places = np.concatenate([np.arange(n_inputs), np.arange(total, more)])
        covariance = belief.covariance[into_square].reshape(more, more)
        covariance[np.ix_(places, places)] = known.covariance[square].reshape(size, size)
        mean = belief.mean[into]
        mean[places] = known.mean[own]
    belief.frequency[:, :, :n_inputs] = known.frequency
    for g, waves in enumerate(groups_of(members)):
        if waves.inputs is not None:  # they look at as many as they did
            belief.frequency[g, :, n_inputs:] = 0.0
    alike = ("noise", "jumps", "chains", "usual", "merit", "rest", "naps", "idle", "born")
    for name in (*alike, "past", "pulse", "changes", "phase"):
        getattr(belief, name)[...] = getattr(known, name)
    return belief
