"""The members of the banks that estimators have by default: what a user would otherwise have to tune.

Settings are an order of magnitude apart, so as to span what streams may be like. Where not all members can be afforded,
the first come first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from bayou.bank_layout import cost, n_bytes
from bayou.likelihoods import FlipProbit, Gaussian, Logistic, NegativeBinomial, Poisson, Softmax
from bayou.members import Budget, Member, Waves

__all__ = ["Budget", "affordable", "of_classes", "of_counts", "of_numbers", "of_two_classes"]

DRIFTS = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
FLIP_RATES = (0.05, 0.1, 0.2)
SCALES = (0.25, 0.5, 1.0)
CURVES = tuple(Waves(scale, inputs=1) for scale in (0.5, 1.5))  # a sum of them, one per input
SURFACES = tuple(Waves(scale, inputs=2) for scale in (0.5, 1.5))  # a sum of them, each of two inputs
N_RESTARTS = 4
N_PAST = 2
WIDE, NARROW, NONE = 10.0, 0.1, 1e-3  # prior variances, over that of most members
FEWEST = 3  # members that must be affordable at once for a bank to be worth it


def of_two_classes() -> list[Member]:
    """Drift, label noise, size of weights, what bends, what repeats itself, and what begins anew."""
    kind = Logistic()
    return [
        *(Member(kind, drift) for drift in DRIFTS),
        *(Member(kind, restarts=True) for _ in range(N_RESTARTS)),
        *(Member(kind, drift, WIDE) for drift in (0.0, 1e-3, 1e-2, 1e-1)),
        *(Member(FlipProbit(rate), drift) for rate, drift in product(FLIP_RATES, (0.0, 1e-4, 1e-3))),
        *(Member(kind, drift, past=N_PAST) for drift in (0.0, 1e-3, 1e-1)),
        *(Member(kind, drift, NARROW) for drift in (0.0, 1e-4, 1e-3)),
        *(Member(kind, drift, waves=Waves(scale)) for scale, drift in product(SCALES, (0.0, 1e-3, 1e-2))),
        *(Member(kind, waves=waves) for waves in CURVES),
        *(Member(kind, drift, waves=waves) for waves, drift in product(SURFACES, (0.0, 1e-3))),
    ]


def of_classes(n_classes: int) -> list[Member]:
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
        *(Member(kind, drift, waves=Waves(scale)) for scale, drift in product(SCALES, (0.0, 1e-3))),
        *(Member(kind, waves=waves) for waves in (*CURVES, *SURFACES)),
    ]


def of_numbers(prior_variance: float) -> list[Member]:
    """The same with noise that is learnt, for ever or for some time, instead of label noise."""
    kind, ever, short = Gaussian(), math.inf, 200.0

    def member(drift: float, memory: float, **given: object) -> Member:
        return Member(kind, drift, prior_variance, noise_memory=memory, **given)  # type: ignore[arg-type]  # fields

    return [
        *(member(drift, ever) for drift in DRIFTS),
        *(member(drift, short) for drift in DRIFTS),
        *(member(0.0, memory, restarts=True) for memory in (ever, short) for _ in range(N_RESTARTS // 2)),
        *(member(drift, memory, past=N_PAST) for drift, memory in ((0.0, ever), (1e-4, short), (1e-2, short))),
        *(
            member(drift, memory, waves=Waves(scale))
            for scale, (drift, memory) in product(SCALES, ((0.0, ever), (1e-4, short), (1e-2, short)))
        ),
        *(member(0.0, ever, waves=waves) for waves in CURVES),
        *(
            member(drift, memory, waves=waves)
            for waves, (drift, memory) in product(SURFACES, ((0.0, ever), (1e-4, short)))
        ),
    ]


def of_counts(prior_variance: float) -> list[Member]:
    """Drift, counts that vary more than their mean, what bends, and what begins anew."""
    kind = Poisson()
    return [
        *(Member(kind, drift, prior_variance) for drift in DRIFTS),
        *(Member(NegativeBinomial(r), d, prior_variance) for r, d in product((0.1, 1.0), (0.0, 1e-4, 1e-2))),
        *(Member(kind, 0.0, prior_variance, restarts=True) for _ in range(N_RESTARTS // 2)),
        *(Member(NegativeBinomial(0.1), 0.0, prior_variance, restarts=True) for _ in range(N_RESTARTS // 2)),
        *(
            Member(NegativeBinomial(0.1), drift, prior_variance, waves=Waves(scale))
            for scale, drift in product(SCALES, (0.0, 1e-3))
        ),
        *(Member(NegativeBinomial(0.1), 0.0, prior_variance, waves=waves) for waves in (*CURVES, *SURFACES)),
    ]


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
