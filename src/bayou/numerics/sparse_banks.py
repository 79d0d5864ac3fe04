"""The pass over rows and members of a bank whose weights are each by themselves: O(entries) per row and member.

What all members believe of a weight lies side by side, so that an entry costs one look at memory, and members fill the
width of the machine. Weights walk: the variance of one grows with every row, which is made up for when a row has it
again.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Array, Matrix, Vector
from bayou.numerics.bank_belief import DEGREES, MEAN, NOISE, VALUE, VARIANCE
from bayou.numerics.bank_weights import FIRST_NOISE
from bayou.numerics.banks import fade, observe_noise
from bayou.numerics.chains import FAINTEST, given_beside, multiply, share_out
from bayou.numerics.instructions import prefetch
from bayou.numerics.jit import borrowing_kernel
from bayou.numerics.pointers import call_log_evidence
from bayou.numerics.sites import observe_move, pieces, smallest_variance
from bayou.numerics.student_t import log_student

SMALLEST = -1e6  # log probability that a member gives to a target
FARTHEST = 1e15  # in units of targets: what is further from what a member expects moves it as if it were so far
LEAST_NOISE = 1e-12  # squared units: about what single precision leaves of a latent
AHEAD = 4  # rows for which memory is asked before they come


class SparseBankBelief(NamedTuple):
    """All that is learnt: ``weights`` (d, 2, m), means and variances; the row that had a weight last, ``seen`` (d,), of
    how many, ``steps`` (1,); ``chains`` (k, m), which sum to one; and ``noise`` (m, 2), shape and rate of those who
    learn it, whose variances are in units of it.
    """

    weights: Array
    seen: NDArray[np.int64]
    steps: NDArray[np.int64]
    chains: Matrix
    noise: Matrix


class SparseBankPlan(NamedTuple):
    """What members differ in: prior variances, what is gained of them per row, and the rates at which they switch. A
    ``constant`` that is not 0 is the last feature of every row; ``keeps`` and ``tails`` (m,) are those of
    `bayou.numerics.bank_belief.BankPlan`.
    """

    ceiling: Array
    walk: Array
    switching: Vector
    constant: float
    keeps: Vector
    tails: Vector


class SparseBankRoom(NamedTuple):
    """Room for one row, by member: sums of the row, what the site does to it, what each gave, and their shares."""

    mean: Array
    variance: Array
    step: Array
    spread: Array
    kept: Array
    values: Vector
    shares: Vector


@borrowing_kernel
def walked(variance: float, ceiling: float, by: float) -> float:
    """What a variance has become: never more than before anything was known, unless it was more."""
    return max(min(variance + by, ceiling), variance)


@borrowing_kernel
def sum_weight(
    belief: SparseBankBelief, plan: SparseBankPlan, j: int, value: float, now: int, learns: int, room: SparseBankRoom
) -> None:
    """Add one weight to the latents of all members; if it is to be learnt, it walks up to now."""
    kind = belief.weights.dtype.type
    x, rows = kind(value), kind(now - belief.seen[j])
    means, variances = belief.weights[j, 0], belief.weights[j, 1]
    for m in range(means.size):
        variance = walked(variances[m], plan.ceiling[m], rows * plan.walk[m])
        if learns:
            variances[m] = variance
        room.mean[m] += means[m] * x
        room.variance[m] += variance * x * x
    if learns:
        belief.seen[j] = now


@borrowing_kernel
def sum_row(
    belief: SparseBankBelief,
    plan: SparseBankPlan,
    columns: Any,
    values: Array,
    begin: int,
    end: int,
    now: int,
    learns: int,
    room: SparseBankRoom,
) -> None:
    """Mean and variance of the latent of one row, by each member."""
    for m in range(room.mean.size):
        room.mean[m], room.variance[m] = 0.0, 0.0
    for k in range(begin, end):
        sum_weight(belief, plan, columns[k], float(values[k]) if values.size else 1.0, now, learns, room)
    if plan.constant != 0.0:
        sum_weight(belief, plan, belief.seen.size - 1, plan.constant, now, learns, room)


@borrowing_kernel
def move_weight(belief: SparseBankBelief, j: int, value: float, room: SparseBankRoom) -> None:
    """Move what all members believe of one weight by their sites: see `bayou.numerics.pair_rows`."""
    kind = belief.weights.dtype.type
    x, floor = kind(value), kind(smallest_variance(belief.weights))
    means, variances = belief.weights[j, 0], belief.weights[j, 1]
    for m in range(means.size):
        known = variances[m]
        direction = known * x
        others = max(room.variance[m] - direction * x, floor)
        means[m] += room.step[m] * direction
        variances[m] = max(known * (room.kept[m] + room.spread[m] * others), floor)


@borrowing_kernel
def move_row(
    belief: SparseBankBelief,
    plan: SparseBankPlan,
    columns: Any,
    values: Array,
    begin: int,
    end: int,
    room: SparseBankRoom,
) -> None:
    """The same of all weights of a row."""
    for k in range(begin, end):
        move_weight(belief, columns[k], float(values[k]) if values.size else 1.0, room)
    if plan.constant != 0.0:
        move_weight(belief, belief.seen.size - 1, plan.constant, room)


@borrowing_kernel
def noise_now(belief: SparseBankBelief, plan: SparseBankPlan, m: int, steps: int) -> tuple[float, float]:
    """What a member believes of the noise, a row later if there are ``steps``, and its degrees of freedom."""
    if plan.keeps[m] < 0.0:
        return 1.0, math.inf
    shape = belief.noise[m, 0]
    known = shape - FIRST_NOISE[0]
    if steps > 0:
        known *= plan.keeps[m]
    return belief.noise[m, 1] / shape, 1.0 / (0.5 / (FIRST_NOISE[0] + known) + 1.0 / plan.tails[m])


@borrowing_kernel
def note_row(belief: SparseBankBelief, plan: SparseBankPlan, room: SparseBankRoom, record: Matrix) -> None:
    """Write down what all members say of the next row."""
    for m in range(room.values.size):
        record[m, MEAN], record[m, VARIANCE] = room.mean[m], room.variance[m]
        record[m, NOISE], record[m, DEGREES] = noise_now(belief, plan, m, 1)


@borrowing_kernel
def observe_number(
    belief: SparseBankBelief,
    plan: SparseBankPlan,
    m: int,
    y: float,
    weight: float,
    learns: int,
    first: int,
    room: SparseBankRoom,
) -> tuple[float, float, float, float]:
    """What `observe_move` gives, of a member that learns the noise, which is learnt; it fades once per row."""
    noise, mean, variance = belief.noise[m], float(room.mean[m]), float(room.variance[m])
    shape, rate = noise[0], noise[1]
    _, degrees = noise_now(belief, plan, m, first)
    if first > 0 and plan.keeps[m] < 1.0:
        fade(noise, plan.keeps[m])
    near = min(max(y, mean - FARTHEST), mean + FARTHEST)
    value, step, spread, kept = observe_noise(noise, near, mean, degrees, variance, 0.0, weight, plan.tails[m])
    noise[1] = max(noise[1], LEAST_NOISE * noise[0])
    if not learns:
        noise[0], noise[1] = shape, rate
    return value, step, spread, kept


@borrowing_kernel
def observe_numbers(
    belief: SparseBankBelief,
    plan: SparseBankPlan,
    y: float,
    weight: float,
    learns: int,
    first: int,
    room: SparseBankRoom,
) -> bool:
    """The same as `observe_row`, of members that learn the noise."""
    for m in range(room.values.size):
        if not abs(float(room.mean[m])) + float(room.variance[m]) < math.inf:
            return False
    for m in range(room.values.size):
        value, step, spread, kept = observe_number(belief, plan, m, y, weight, learns, first, room)
        room.step[m], room.spread[m], room.kept[m] = step, spread, kept
        if first > 0:
            room.values[m] = value if value > SMALLEST else SMALLEST
    return True


@borrowing_kernel
def observe_row(kernels: Any, params: Matrix, y: float, weight: float, first: int, room: SparseBankRoom) -> bool:
    """What the sites of all members do; what each gave to the target, the first time. Whether latents are finite."""
    for m in range(room.values.size):
        mean, variance = float(room.mean[m]), float(room.variance[m])
        if not abs(mean) + variance < math.inf:
            return False
        value, step, spread, kept = observe_move(kernels[m], params[m], y, mean, variance, 0.0, weight)
        room.step[m], room.spread[m], room.kept[m] = step, spread, kept
        if first > 0:
            room.values[m] = value if value > SMALLEST else SMALLEST
    return True


@borrowing_kernel
def predict_sparse_bank(
    belief: SparseBankBelief,
    plan: SparseBankPlan,
    kernels: Any,
    params: Matrix,
    starts: Any,
    columns: Any,
    values: Array,
    record: Array,
    room: SparseBankRoom,
) -> None:
    """Record what each member says of each row, if it is the next, and log E p of a 1. Shares are left in the room."""
    now = belief.steps[0] + 1
    for n in range(starts.size - 1):
        sum_row(belief, plan, columns, values, starts[n], starts[n + 1], now, 0, room)
        note_row(belief, plan, room, record[n])
        for m in range(room.values.size):
            said = record[n, m]
            if plan.keeps[m] >= 0.0:
                spread = said[NOISE] * (1.0 + said[VARIANCE])
                said[VALUE] = log_student(1.0 - said[MEAN], spread, 0.5 * said[DEGREES])
            else:
                given = said[MEAN], said[VARIANCE], params[m]
                said[VALUE] = call_log_evidence(kernels[m], kernels[m], 1.0, *given)[0]
    share_out(belief.chains, plan.switching, room.shares)


@borrowing_kernel
def learn_sparse_bank(
    belief: SparseBankBelief,
    plan: SparseBankPlan,
    kernels: Any,
    params: Matrix,
    starts: Any,
    columns: Any,
    values: Array,
    targets: Vector,
    weights: Vector,
    record: Array,
    shares: Matrix,
    evidence: Vector,
    room: SparseBankRoom,
) -> int:
    """Absorb the rows in order; stops at one that makes a latent not finite, and returns how many were absorbed.

    Notes log E p of the bank before the target was used; and what each member said, and their shares, of as many rows
    as there is room for. A row that counts k times is absorbed k times at one time, as in
    `bayou.numerics.banks.learn_bank`.
    """
    members = room.values.size
    for n in range(targets.size):
        weight = float(weights[n]) if n < weights.size else 1.0
        count = pieces(weight) if weight > 0.0 else 1
        if n + AHEAD < targets.size:
            for k in range(starts[n + AHEAD], starts[n + AHEAD + 1]):
                prefetch(belief.weights, columns[k] * 2 * room.values.size)
        share_out(belief.chains, plan.switching, room.shares)
        now, learns = belief.steps[0] + 1, int(weight > 0.0)
        told = n < record.shape[0]
        part = max(weight, 1e-9) / count
        for piece in range(count):
            sum_row(belief, plan, columns, values, starts[n], starts[n + 1], now, learns, room)
            if told and piece == 0:
                note_row(belief, plan, room, record[n])
            first = int(piece == 0)
            if plan.keeps[0] >= 0.0:
                finite = observe_numbers(belief, plan, targets[n], part, learns, first, room)
            else:
                finite = observe_row(kernels, params, targets[n], part, first, room)
            if not finite:
                return n
            if learns:
                move_row(belief, plan, columns, values, starts[n], starts[n + 1], room)
        best = SMALLEST
        for m in range(members):
            best = max(best, room.values[m])
            if told:
                record[n, m, VALUE], shares[n, m] = room.values[m], room.shares[m]
        evidence[n] = best + math.log(max(given_beside(room.values, room.shares, best, weight), FAINTEST))
        if learns:
            multiply(belief.chains, plan.switching, room.values)
            belief.steps[0] = now
    return targets.size
