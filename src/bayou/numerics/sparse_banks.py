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
from bayou.numerics.chains import FAINTEST, given_beside, multiply, share_out
from bayou.numerics.instructions import prefetch
from bayou.numerics.jit import borrowing_kernel
from bayou.numerics.pointers import call_log_evidence
from bayou.numerics.sites import observe_move, pieces, smallest_variance

SMALLEST = -1e6  # log probability that a member gives to a target
AHEAD = 4  # rows for which memory is asked before they come


class SparseBankBelief(NamedTuple):
    """All that is learnt: ``weights`` (d, 2, m), means and variances; the row that had a weight last, ``seen`` (d,), of
    how many, ``steps`` (1,); and ``chains`` (k, m), which sum to one.
    """

    weights: Array
    seen: NDArray[np.int64]
    steps: NDArray[np.int64]
    chains: Matrix


class SparseBankPlan(NamedTuple):
    """What members differ in: prior variances, what is gained of them per row, and the rates at which they switch. A
    ``constant`` that is not 0 is the last feature of every row.
    """

    ceiling: Array
    walk: Array
    switching: Vector
    constant: float


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
def note(room: SparseBankRoom, m: int, record: Vector) -> None:
    """Write down what a member says of a row."""
    record[MEAN], record[VARIANCE], record[NOISE], record[DEGREES] = room.mean[m], room.variance[m], 1.0, math.inf


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
        for m in range(room.values.size):
            note(room, m, record[n, m])
            given = record[n, m, MEAN], record[n, m, VARIANCE], params[m]
            record[n, m, VALUE] = call_log_evidence(kernels[m], kernels[m], 1.0, *given)[0]
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
        best = SMALLEST
        for piece in range(count):
            sum_row(belief, plan, columns, values, starts[n], starts[n + 1], now, learns, room)
            for m in range(members):
                mean, variance = float(room.mean[m]), float(room.variance[m])
                if not abs(mean) + variance < math.inf:
                    return n
                value, step, spread, kept = observe_move(
                    kernels[m], params[m], targets[n], mean, variance, 0.0, max(weight, 1e-9) / count
                )
                room.step[m], room.spread[m], room.kept[m] = step, spread, kept
                if piece == 0:
                    room.values[m] = value if value > SMALLEST else SMALLEST
                    best = max(best, room.values[m])
                    if n < record.shape[0]:
                        note(room, m, record[n, m])
                        record[n, m, VALUE], shares[n, m] = room.values[m], room.shares[m]
            if learns:
                move_row(belief, plan, columns, values, starts[n], starts[n + 1], room)
        evidence[n] = best + math.log(max(given_beside(room.values, room.shares, best, weight), FAINTEST))
        if learns:
            multiply(belief.chains, plan.switching, room.values)
            belief.steps[0] = now
    return targets.size
