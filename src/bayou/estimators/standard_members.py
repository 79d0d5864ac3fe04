"""The members of the banks that estimators have by default: what a user would otherwise have to tune.

Settings are an order of magnitude apart, so as to span what streams may be like. Where not all members can be afforded,
the first come first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import TypeVar

import numpy as np

from bayou.bank_layout import cost, n_bytes
from bayou.contracts import Likelihood, ScalarLikelihood
from bayou.likelihoods import FlipProbit, Gaussian, Logistic, NegativeBinomial, Poisson, Probit, Softmax
from bayou.members import Budget, Member, Waves

__all__ = [
    "N_WAVES",
    "Budget",
    "affordable",
    "affordable_sparse",
    "of_classes",
    "of_counts",
    "of_numbers",
    "of_sparse_classes",
    "of_sparse_counts",
    "of_sparse_numbers",
    "of_sparse_several",
    "of_two_classes",
    "usual_budget",
]

DRIFTS = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
FLIP_RATES = (0.05, 0.1, 0.2)
SCALES = (0.25, 0.5, 1.0)
SIDE_SCALES = (0.5, 1.5)  # of sums of curves, one per input, and of surfaces, each of two inputs
N_WAVES = 60  # of members of which a bank can have many; of those with more, few
MANY_SCALES = (0.5, 1.0)
AMPLITUDE = Waves().amplitude
N_RESTARTS = 4
N_PAST = 2
WIDE, NARROW, NONE = 10.0, 0.1, 1e-3  # prior variances, over that of most members
SPARSE_DRIFTS = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
QUICK, PER_ENTRY = 0.06, 0.005  # microseconds of a member of a bank of sparse rows
PER_SPARSE_MEMBER: dict[type, float] = {Poisson: 0.55, NegativeBinomial: 1.0, Softmax: 0.6}  # of those that take longer
BEHIND = 0.7  # microseconds of the calibration behind them
PINNED = 1e-12  # prior variance of weights that are known beforehand
HEAVY, HEAVIEST = 3.0, 1.5  # degrees of freedom of noise with heavy tails
ABOUT_ONE = 0.05  # prior variance of the weight of the last target where the next is as that, by and large
FEWEST = 3  # members that must be affordable at once for a bank to be worth it
Setting = TypeVar("Setting")


def many_waves(n_waves: int) -> list[Waves]:
    """Waves of members that have more of them than is usual: few members, as the cost grows with the square of it.

    What more waves are for are functions that stand out of their noise by far. One amplitude is the usual one; by the
    other each weight may be as large as that of one among the usual number of waves, so that it grows with how many
    there are.
    """
    return [
        *(
            Waves(scale, n_waves, amplitude)
            for scale, amplitude in product(MANY_SCALES, (AMPLITUDE, AMPLITUDE * n_waves / N_WAVES))
        ),
        *(Waves(SIDE_SCALES[0], n_waves, inputs=inputs) for inputs in (1, 2)),
    ]


def bent(
    n_waves: int, of_all: Sequence[Setting], of_two: Sequence[Setting], of_many: Setting
) -> Iterable[tuple[Waves, Setting]]:
    """Waves with what else their members differ in, as drift: those of all inputs, those of two each, those of many."""
    if n_waves > N_WAVES:
        return [(waves, of_many) for waves in many_waves(n_waves)]
    curves, surfaces = ([Waves(scale, n_waves, inputs=inputs) for scale in SIDE_SCALES] for inputs in (1, 2))
    return [
        *product((Waves(scale, n_waves) for scale in SCALES), of_all),
        *product(curves, of_all[:1]),
        *product(surfaces, of_two),
    ]


def of_two_classes(n_waves: int = N_WAVES) -> list[Member]:
    """Drift, label noise, size of weights, what bends, what repeats itself, and what begins anew."""
    kind = Logistic()
    return [
        *(Member(kind, drift) for drift in DRIFTS),
        *(Member(kind, restarts=True) for _ in range(N_RESTARTS)),
        *(Member(kind, drift, WIDE) for drift in (0.0, 1e-3, 1e-2, 1e-1)),
        *(Member(FlipProbit(rate), drift) for rate, drift in product(FLIP_RATES, (0.0, 1e-4, 1e-3))),
        *(Member(kind, drift, past=N_PAST) for drift in (0.0, 1e-3, 1e-1)),
        *(Member(kind, drift, NARROW) for drift in (0.0, 1e-4, 1e-3)),
        *(Member(kind, drift, waves=waves) for waves, drift in bent(n_waves, (0.0, 1e-3, 1e-2), (0.0, 1e-3), 0.0)),
    ]


def of_classes(n_classes: int, n_waves: int = N_WAVES) -> list[Member]:
    """The same for three classes or more, without label noise; as each costs a latent per class, fewer of them.

    Most differ from one of two classes in nothing but their likelihood, and go on with what that one has learnt. Two
    see nothing but the latest label: where inputs tell nothing, what these cost is not paid.
    """
    kind = Softmax(n_classes)
    return [
        *(Member(kind, drift) for drift in (0.0, 1e-4, 1e-3, 1e-2)),
        *(Member(kind, drift, past=N_PAST) for drift in (0.0, 1e-3, 1e-1)),
        *(Member(kind, drift, NONE, past=1, past_variance=WIDE) for drift in (0.0, 1e-3)),
        *(Member(kind, drift, WIDE) for drift in (0.0, 1e-3)),
        *(Member(kind, restarts=True) for _ in range(N_RESTARTS // 2)),
        Member(kind, 0.0, NARROW),
        *(Member(kind, drift, waves=waves) for waves, drift in bent(n_waves, (0.0, 1e-3), (0.0,), 0.0)),
    ]


def of_numbers(prior_variance: float, n_waves: int = N_WAVES) -> list[Member]:
    """The same with noise that is learnt, for ever or for some time, instead of label noise.

    Some see nothing but the last number, and expect that the next is as that, by and large or exactly; with noise of
    any tails, and one that stands for jumps, so that these do not make others right. Two take what is far off for an
    outlier. What many waves, curves and surfaces leave over becomes less for long: they learn it for some time, or it
    would be told as it was.
    """
    kind, ever, short, shorter, shortest = Gaussian(), math.inf, 200.0, 60.0, 20.0

    def member(drift: float, memory: float, **given: object) -> Member:
        return Member(kind, drift, prior_variance, noise_memory=memory, **given)  # type: ignore[arg-type]  # fields

    def unchanged(memory: float, tails: float, jumps: bool = False) -> Member:
        same = {"past_variance": PINNED, "past_mean": 1.0, "noise_memory": memory, "tails": tails, "jumps": jumps}
        return Member(kind, 0.0, PINNED, past=1, **same)  # type: ignore[arg-type]  # fields

    return [
        *(member(drift, ever) for drift in DRIFTS),
        *(member(drift, short) for drift in DRIFTS),
        *(member(drift, ever, tails=HEAVY) for drift in (0.0, 1e-3)),
        *(member(0.0, memory, restarts=True) for memory in (ever, short) for _ in range(N_RESTARTS // 2)),
        *(member(drift, memory, past=N_PAST) for drift, memory in ((0.0, ever), (1e-4, short), (1e-2, short))),
        *(
            Member(kind, 0.0, NONE, past=1, noise_memory=memory, past_variance=ABOUT_ONE, past_mean=1.0)
            for memory in (ever, short)
        ),
        *(unchanged(memory, math.inf) for memory in (ever, short)),
        *(unchanged(memory, tails) for memory, tails in product((ever, shortest), (HEAVY, HEAVIEST))),
        unchanged(ever, math.inf, jumps=True),
        *(
            member(drift, memory if waves.inputs is None or n_waves > N_WAVES else short, waves=waves)
            for waves, (drift, memory) in bent(
                n_waves, ((0.0, ever), (1e-4, short), (1e-2, short)), ((0.0, ever), (1e-4, short)), (0.0, shorter)
            )
        ),
    ]


def of_counts(prior_variance: float, n_waves: int = N_WAVES) -> list[Member]:
    """Drift, counts that vary more than their mean, what bends, what goes on from the last counts, what begins anew.

    Those who see past counts expect that the next is as the last, by and large. Some see nothing but the last one:
    where inputs tell nothing, what these cost is not paid. Two of them find how much counts vary. Of members with many
    waves, none does.
    """
    kind, few = Poisson(), NegativeBinomial(0.1)

    def going_on(likelihood: Likelihood, drift: float = 0.0, **given: object) -> Member:
        settings = {"prior_variance": prior_variance, "past": N_PAST, **given}
        return Member(likelihood, drift, past_variance=ABOUT_ONE, past_mean=1.0, **settings)  # type: ignore[arg-type]  # fields

    return [
        *(Member(kind, drift, prior_variance) for drift in DRIFTS),
        *(Member(NegativeBinomial(r), d, prior_variance) for r, d in product((0.1, 1.0), (0.0, 1e-4, 1e-2))),
        *(going_on(likelihood, drift) for likelihood, drift in product((kind, few), (1e-3, 1e-2))),
        *(going_on(NegativeBinomial(r), d) for r, d in ((0.02, 0.0), (0.02, 1e-3), (0.1, 0.0))),
        *(going_on(k, prior_variance=NONE, past=1) for k in (kind, *map(NegativeBinomial, (0.02, 0.1, 1.0)))),
        *(going_on(kind, prior_variance=NONE, past=1, noise_memory=memory) for memory in (math.inf, 200.0)),
        *(Member(NegativeBinomial(r), 0.0, prior_variance) for r in (0.3, 8.0)),
        *(Member(k, 0.0, prior_variance, restarts=True) for k in (kind, few) for _ in range(N_RESTARTS // 2)),
        *(Member(few, drift, prior_variance, waves=waves) for waves, drift in bent(n_waves, (0.0, 1e-3), (0.0,), 0.0)),
        *(
            going_on(NegativeBinomial(r), waves=Waves(SIDE_SCALES[0], n_waves, inputs=inputs))
            for r, inputs in product((0.02, 0.1), (1, 2))
            if n_waves <= N_WAVES
        ),
    ]


def of_sparse_classes(prior_variance: float) -> list[Member]:
    """Two classes of sparse rows: how fast weights walk, and how large they are. As many as memory sends at once."""
    kind = Probit()
    return [
        *(Member(kind, drift, prior_variance) for drift in SPARSE_DRIFTS),
        *(Member(kind, 0.0, scale * prior_variance) for scale in (NARROW, WIDE)),
    ]


def of_sparse_several(n_classes: int, prior_variance: float) -> list[Member]:
    """Three classes or more of sparse rows: the same as of two; as each costs a latent per class, fewer of them."""
    kind = Softmax(n_classes)
    settings = ((0.0, 1.0), (1e-3, 1.0), (1e-4, WIDE), (0.0, WIDE), (1e-2, 1.0), (1e-4, 1.0), (0.0, NARROW))
    return [Member(kind, drift, size * prior_variance) for drift, size in settings]


def of_sparse_numbers(prior_variance: float) -> list[Member]:
    """Numbers of sparse rows: drift and size of weights, and noise of any tails, learnt for ever or for some time.

    Most values of a category differ by less than the noise, so that most weights are small, in units of it.
    """
    kind, ever, short, shorter, normal = Gaussian(), math.inf, 200.0, 50.0, math.inf
    large, usual, small, smaller = WIDE, 1.0, NARROW, NARROW**2
    settings = [
        (0.0, small, short, normal),
        (1e-4, small, short, HEAVY),
        (1e-3, smaller, shorter, HEAVY),
        (1e-4, usual, short, normal),
        (0.0, usual, ever, normal),
        (1e-5, usual, ever, normal),
        (0.0, small, short, HEAVY),
        (1e-4, small, short, normal),
        (1e-3, small, shorter, normal),
        (1e-2, smaller, shorter, normal),
        (0.0, usual, ever, HEAVY),
        (1e-2, small, shorter, HEAVY),
        (1e-3, smaller, ever, HEAVY),
        (0.0, large, ever, normal),
        (0.0, small, ever, normal),
        (1e-3, smaller, short, normal),
    ]
    return [
        Member(kind, drift, size * prior_variance, noise_memory=memory, tails=tails)
        for drift, size, memory, tails in settings
    ]


def of_sparse_counts(prior_variance: float) -> list[Member]:
    """Counts of sparse rows: drift and size of weights, and how much more counts vary than their mean."""
    usual, large, small = 1.0, WIDE, NARROW
    settings: list[tuple[ScalarLikelihood, float, float]] = [
        (NegativeBinomial(0.3), 0.0, usual),
        (Poisson(), 1e-4, usual),
        (Poisson(), 1e-4, large),
        (NegativeBinomial(1.0), 0.0, usual),
        (Poisson(), 0.0, usual),
        (NegativeBinomial(0.02), 1e-4, large),
        (Poisson(), 1e-1, small),
        (NegativeBinomial(0.1), 1e-3, usual),
        (NegativeBinomial(0.02), 1e-2, small),
        (NegativeBinomial(0.3), 0.0, large),
        (NegativeBinomial(1.0), 1e-3, small),
        (NegativeBinomial(8.0), 0.0, usual),
    ]
    return [Member(kind, drift, size * prior_variance) for kind, drift, size in settings]


def affordable_sparse(members: Sequence[Member], n_features: int, entries: float, budget: Budget) -> tuple[Member, ...]:
    """Those that a budget allows, the first first; none if they would be too few to choose from."""
    each = [m.n_latents * (PER_SPARSE_MEMBER.get(type(m.likelihood), QUICK) + PER_ENTRY * entries) for m in members]
    spent = np.cumsum(each)
    by_time = int(np.searchsorted(spent, budget.microseconds - BEHIND, side="right"))
    by_size = (budget.n_bytes / n_features - 8.0) / (8.0 * members[0].n_latents) if members else 0.0
    count = int(max(min(by_time, by_size), 0.0))
    return tuple(members[:count]) if count >= FEWEST else ()


def usual_budget(members: Sequence[Member], n_inputs: int) -> Budget:
    """What may be spent if nothing is said: beside the usual, what all members with many waves take."""
    many = (member for member in members if member.waves is not None and member.waves.n_waves > N_WAVES)
    return Budget(microseconds=Budget().microseconds + sum(cost(member, n_inputs) for member in many))


def affordable(members: Sequence[Member], n_inputs: int, budget: Budget) -> tuple[Member, ...]:
    """Those that a budget allows, the first first; none if they would be too few to choose from.

    Of classes one at a time is enough: a learner instead of the bank would take more than that.
    """
    at_once = FEWEST if members and members[0].n_latents == 1 else 1
    if not members or at_once * cost(members[0], n_inputs) > budget.microseconds:
        return ()
    kept, total = [], 0
    for member in members:
        total += n_bytes(member, n_inputs)
        if total > budget.n_bytes:
            break
        if cost(member, n_inputs) <= budget.microseconds:
            kept.append(member)
    return tuple(kept) if len(kept) >= FEWEST else ()
