"""log odds of y = log odds given + w . features,  y in {-1, +1}: how often what a model says comes true.

Features are hats over the log odds given, of which no more than two are not zero, so that w is a curve; and, of members
that see it, the trail: how far the latest targets were from what was said of them, over a short, a longer and a long
time, and the last target. Each member believes N(mean, covariance) of w, and forgets: after each row a share of the
covariance is that of the prior again. Some begin with even odds instead of those given. The last member has no w: it
says what was given. Members are weighed by chains, as those of a bank are (see `bayou.numerics.bank_weights`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bayou.contracts import Array, Matrix, Vector
from bayou.numerics.chains import FAINTEST, share_out, weigh, weigh_by
from bayou.numerics.jit import borrowing_kernel
from bayou.numerics.pointers import call_log_evidence
from bayou.numerics.short_squares import take_back
from bayou.numerics.sites import observe_move, pieces
from bayou.numerics.squares import absorb, direct, expected

UTMOST = 1e-9  # nearer to 0 and 1 no probability is believed
MEMORIES = np.array([1.0 / 8.0, 1.0 / 64.0, 1.0 / 512.0])  # of the trail, per target


class CalibrationBelief(NamedTuple):
    """All that is learnt: ``mean`` (m, d) and ``covariance`` (m, d d) of members, ``chains`` (k, m + 1), ``trail``."""

    mean: Matrix
    covariance: Matrix
    chains: Matrix
    trail: Vector


class CalibrationPlan(NamedTuple):
    """What members are: ``begins`` is 1 where they begin with the log odds given and 0 where they do not look at them;
    how many features each has (``size``), prior covariances, and what is forgotten per row.
    """

    knots: Vector
    begins: Vector
    size: Array
    prior: Matrix
    forgets: Vector
    switching: Vector


class CalibrationRoom(NamedTuple):
    """Room for one row: features, C x, what each member gave, and their shares; and for what is had of each chain."""

    x: Vector
    direction: Vector
    values: Vector
    shares: Vector
    chain_before: Vector
    chain_factor: Vector


@borrowing_kernel
def bounded(probability: float) -> float:
    """No nearer to 0 and 1 than is believed."""
    return min(max(probability, UTMOST), 1.0 - UTMOST)


@borrowing_kernel
def log_odds(probability: float) -> float:
    """Of what was given, within bounds."""
    within = bounded(probability)
    return math.log(within / (1.0 - within))


@borrowing_kernel
def lay_out(knots: Vector, odds: float, trail: Vector, x: Vector) -> None:
    """Hats over the log odds, flat beyond the outer knots; then the trail."""
    for j in range(knots.size):
        x[j] = 0.0
    at = 0
    while at < knots.size - 2 and odds > knots[at + 1]:
        at += 1
    along = min(max((odds - knots[at]) / (knots[at + 1] - knots[at]), 0.0), 1.0)
    x[at], x[at + 1] = 1.0 - along, along
    for j in range(trail.size):
        x[knots.size + j] = trail[j]


@borrowing_kernel
def say(
    belief: CalibrationBelief,
    plan: CalibrationPlan,
    kernels: Any,
    params: Vector,
    probability: float,
    trail: Vector,
    room: CalibrationRoom,
) -> float:
    """Probability of a target of 1, all members together, by what is believed now; and each, left in the values."""
    odds, last = log_odds(probability), plan.size.size
    lay_out(plan.knots, odds, trail, room.x)
    share_out(belief.chains, plan.switching, room.shares)
    room.values[last] = probability
    total: float = room.shares[last] * probability
    for m in range(last):
        size = plan.size[m]
        x = room.x[:size]
        variance = direct(belief.covariance[m, : size * size], x, room.direction)
        mean = plan.begins[m] * odds + expected(belief.mean[m, :size], x)
        room.values[m] = math.exp(call_log_evidence(kernels, kernels, 1.0, mean, variance, params)[0])
        total += room.shares[m] * room.values[m]
    return total


@borrowing_kernel
def learn(
    belief: CalibrationBelief,
    plan: CalibrationPlan,
    kernels: Any,
    params: Vector,
    probability: float,
    y: float,
    weight: float,
    trail: Vector,
    room: CalibrationRoom,
) -> float:
    """Absorb one target, of which this was said, and forget a little; returns what was said of 1 before."""
    last = plan.size.size
    total: float = 0.0
    share_out(belief.chains, plan.switching, room.shares)
    absorb_all(belief, plan, kernels, params, probability, y, weight, trail, room)
    for m in range(last):
        total += room.shares[m] * room.values[m]
    total += room.shares[last] * (probability if y > 0.0 else 1.0 - probability)
    weigh_by(belief.chains, plan.switching, room.values, weight)
    leave_trail(belief.trail, probability, y)
    return total if y > 0.0 else 1.0 - total


@borrowing_kernel
def absorb_all(
    belief: CalibrationBelief,
    plan: CalibrationPlan,
    kernels: Any,
    params: Vector,
    probability: float,
    y: float,
    weight: float,
    trail: Vector,
    room: CalibrationRoom,
) -> None:
    """Let every member absorb a target and forget a little; what each gave to it is left in the values.

    To forget is to let a share of the covariance be that of the prior again; both are positive definite, and so is
    their sum.
    """
    odds, last = log_odds(probability), plan.size.size
    lay_out(plan.knots, odds, trail, room.x)
    for m in range(last):
        size = plan.size[m]
        x, covariance = room.x[:size], belief.covariance[m, : size * size]
        variance = direct(covariance, x, room.direction)
        mean = plan.begins[m] * odds + expected(belief.mean[m, :size], x)
        value, step, spread, _ = observe_move(kernels, params, y, mean, variance, 0.0, weight)
        room.values[m] = math.exp(value)
        if plan.forgets[m] > 0.0:  # members have more features than `LEAST`
            prior, share = plan.prior[m, : size * size], plan.forgets[m]
            take_back(covariance, belief.mean[m, :size], room.direction, size, step, spread, prior, share)
        else:
            absorb(belief.mean[m, :size], covariance, room.direction, step, spread)
    room.values[last] = bounded(probability) if y > 0.0 else 1.0 - bounded(probability)


@borrowing_kernel
def leave_trail(trail: Vector, probability: float, y: float) -> None:
    """How far the target was from what was said of it, beside those before; and the target."""
    far = 0.5 * (1.0 + y) - probability
    for j in range(MEMORIES.size):
        trail[j] += MEMORIES[j] * (2.0 * far - trail[j])
    trail[MEMORIES.size] = y


@borrowing_kernel
def predict_calibrated(
    belief: CalibrationBelief,
    plan: CalibrationPlan,
    kernels: Any,
    params: Vector,
    probabilities: Vector,
    calibrated: Vector,
    room: CalibrationRoom,
) -> None:
    """What is said of each row, if it is the next."""
    for n in range(probabilities.size):
        calibrated[n] = say(belief, plan, kernels, params, probabilities[n], belief.trail, room)


@borrowing_kernel
def learn_calibrated(
    belief: CalibrationBelief,
    plan: CalibrationPlan,
    kernels: Any,
    params: Vector,
    probabilities: Vector,
    targets: Vector,
    weights: Vector,
    calibrated: Vector,
    room: CalibrationRoom,
) -> None:
    """The same, each before its target is absorbed; a row that counts k times is the row k times."""
    for n in range(targets.size):
        weight = float(weights[n]) if n < weights.size else 1.0
        if weight == 0.0:
            calibrated[n] = say(belief, plan, kernels, params, probabilities[n], belief.trail, room)
            continue
        count = pieces(weight)
        for piece in range(count):
            given = probabilities[n], targets[n], weight / count, belief.trail, room
            said = learn(belief, plan, kernels, params, *given)
            if piece == 0:
                calibrated[n] = said


# Targets that come late


@borrowing_kernel
def forecast_calibrated(
    belief: CalibrationBelief,
    plan: CalibrationPlan,
    kernels: Any,
    params: Vector,
    probability: float,
    issued: Vector,
    foreseen: Matrix,
    room: CalibrationRoom,
) -> float:
    """What is said of a row whose target comes late; what each member says, and what each chain believes of it."""
    said = say(belief, plan, kernels, params, probability, belief.trail, room)
    for m in range(issued.size):
        issued[m] = room.values[m]
    for k in range(foreseen.shape[0]):
        total = 0.0
        for m in range(foreseen.shape[1]):
            total += belief.chains[k, m]
        for m in range(foreseen.shape[1]):
            foreseen[k, m] = belief.chains[k, m] + plan.switching[k] * (total / foreseen.shape[1] - belief.chains[k, m])
    return said


@borrowing_kernel
def learn_late_calibrated(
    belief: CalibrationBelief,
    plan: CalibrationPlan,
    kernels: Any,
    params: Vector,
    probability: float,
    y: float,
    trail: Vector,
    issued: Vector,
    foreseen: Matrix,
    lag: float,
    room: CalibrationRoom,
) -> None:
    """Absorb a target so many rows after it was forecast.

    Members are weighed by what they said then, chains by what they foresaw. As many rows as wait were said with the
    same knowledge, and their errors are much the same: together they count as one, as if each of so many calibrations
    had learnt every so manieth row (Joulani, Gyorgy and Szepesvari 2013, "Online learning under delayed feedback").
    """
    chains, counts = belief.chains, 1.0 / (1.0 + lag)
    absorb_all(belief, plan, kernels, params, probability, y, 1.0, trail, room)
    for m in range(issued.size):
        given = issued[m] if y > 0.0 else 1.0 - issued[m]
        room.values[m] = math.log(max(given, UTMOST))
    for k in range(chains.shape[0]):
        room.chain_before[k], room.chain_factor[k], total = 0.0, 0.0, 0.0
        for m in range(chains.shape[1]):
            room.chain_before[k] += chains[k, m]
            room.chain_factor[k] += foreseen[k, m] * math.exp(counts * room.values[m])
            total += foreseen[k, m]
        room.chain_before[k] *= room.chain_factor[k] / total
    weigh(belief.chains, plan.switching, room.values, counts)
    level(chains, room.chain_before)
    leave_trail(belief.trail, probability, y)


@borrowing_kernel
def level(chains: Matrix, wanted: Vector) -> None:
    """Let each chain have the weight that is wanted, up to what all have."""
    total = 0.0
    for k in range(chains.shape[0]):
        total += wanted[k]
    for k in range(chains.shape[0]):
        has = 0.0
        for m in range(chains.shape[1]):
            has += chains[k, m]
        for m in range(chains.shape[1]):
            chains[k, m] = max(chains[k, m] * (wanted[k] / (total * has)), FAINTEST)
