"""The pass over rows and members of a bank of sparse rows whose targets are classes: a latent per class and member.

What all members believe of a weight of all classes lies side by side. For the rest see `bayou.numerics.sparse_banks`;
how a member's latents race is that of `bayou.numerics.class_banks`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bayou.contracts import Array, Matrix, Vector
from bayou.numerics.chains import FAINTEST, given_beside, multiply, share_out
from bayou.numerics.class_banks import LEAST_KEPT, silent
from bayou.numerics.instructions import prefetch
from bayou.numerics.jit import borrowing_kernel
from bayou.numerics.quick_race import RaceRoom, race, race_room, race_slopes
from bayou.numerics.sites import bounded, moved, pieces, smallest_variance
from bayou.numerics.sparse_banks import AHEAD, SMALLEST, SparseBankBelief, SparseBankPlan, walked


class SparseClassRoom(NamedTuple):
    """Room for one row: sums of the row and what sites do to them, by class and member (k, m); what each member gave,
    and their shares; probabilities (m, k) that nobody asks for; and for one member (k,) at a time.
    """

    mean: Array
    variance: Array
    step: Array
    spread: Array
    kept: Array
    values: Vector
    shares: Vector
    record: Matrix
    own_mean: Vector
    own_variance: Vector
    slope: Vector
    curvature: Vector
    race: RaceRoom


def class_room(n_classes: int, n_members: int, dtype: Any) -> SparseClassRoom:
    """Room for so many."""
    by_both = [np.zeros((n_classes, n_members), dtype) for _ in range(5)]
    by_member: list[Array] = [np.zeros(n_members), np.zeros(n_members)]
    by_member.append(np.zeros((n_members, n_classes)))
    rooms = *by_both, *by_member, *np.zeros((4, n_classes)), race_room(n_classes)
    return SparseClassRoom(*rooms)


@borrowing_kernel
def sum_weight(
    belief: SparseBankBelief, plan: SparseBankPlan, j: int, value: float, now: int, learns: int, room: SparseClassRoom
) -> None:
    """Add one weight to all latents of all members; if it is to be learnt, it walks up to now."""
    kind = belief.weights.dtype.type
    x, rows, classes = kind(value), kind(now - belief.seen[j]), room.mean.shape[0]
    for c in range(classes):
        means, variances = belief.weights[j * classes + c, 0], belief.weights[j * classes + c, 1]
        sums, squares = room.mean[c], room.variance[c]
        for m in range(means.size):
            variance = walked(variances[m], plan.ceiling[m], rows * plan.walk[m])
            if learns:
                variances[m] = variance
            sums[m] += means[m] * x
            squares[m] += variance * x * x
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
    room: SparseClassRoom,
) -> bool:
    """Mean and variance of all latents of one row, by each member; whether they are finite."""
    for c in range(room.mean.shape[0]):
        for m in range(room.values.size):
            room.mean[c, m], room.variance[c, m] = 0.0, 0.0
    for k in range(begin, end):
        sum_weight(belief, plan, columns[k], float(values[k]) if values.size else 1.0, now, learns, room)
    if plan.constant != 0.0:
        sum_weight(belief, plan, belief.seen.size - 1, plan.constant, now, learns, room)
    total = 0.0
    for c in range(room.mean.shape[0]):
        for m in range(room.values.size):
            total += abs(float(room.mean[c, m])) + float(room.variance[c, m])
    return total < math.inf


@borrowing_kernel
def move_weight(belief: SparseBankBelief, j: int, value: float, room: SparseClassRoom) -> None:
    """Move what all members believe of one weight by their sites."""
    kind, classes = belief.weights.dtype.type, room.mean.shape[0]
    x, floor = kind(value), kind(smallest_variance(belief.weights))
    for c in range(classes):
        means, variances = belief.weights[j * classes + c, 0], belief.weights[j * classes + c, 1]
        total, step, spread, kept = room.variance[c], room.step[c], room.spread[c], room.kept[c]
        for m in range(means.size):
            known = variances[m]
            direction = known * x
            others = max(total[m] - direction * x, floor)
            means[m] += step[m] * direction
            variances[m] = max(known * (kept[m] + spread[m] * others), floor)


@borrowing_kernel
def move_row(
    belief: SparseBankBelief,
    plan: SparseBankPlan,
    columns: Any,
    values: Array,
    begin: int,
    end: int,
    room: SparseClassRoom,
) -> None:
    """The same of all weights of a row."""
    for k in range(begin, end):
        move_weight(belief, columns[k], float(values[k]) if values.size else 1.0, room)
    if plan.constant != 0.0:
        move_weight(belief, belief.seen.size - 1, plan.constant, room)


@borrowing_kernel
def race_of(m: int, probability: Vector, room: SparseClassRoom) -> int:
    """How probable each class is to one member; leaves what `site_of` needs on so many points."""
    for c in range(room.own_mean.size):
        room.own_mean[c], room.own_variance[c] = float(room.mean[c, m]), float(room.variance[c, m])
    points: int = race(room.own_mean, room.own_variance, probability, room.race)
    return points


@borrowing_kernel
def site_of(m: int, y: int, points: int, weight: float, room: SparseClassRoom) -> None:
    """What a target does to the latents of one member, after a race."""
    race_slopes(y, points, room.slope, room.curvature, room.race)
    for c in range(room.own_mean.size):
        variance = room.own_variance[c]
        per_kept = 1.0 / max(1.0 - variance * room.curvature[c], LEAST_KEPT)
        slope, precision = bounded(room.slope[c] * per_kept, room.curvature[c] * per_kept, variance)
        slope, precision = bounded(slope * weight, precision * weight, variance)
        step, spread, kept = moved(slope, precision, variance)
        room.step[c, m], room.spread[c, m], room.kept[c, m] = step, spread, kept


@borrowing_kernel
def predict_sparse_classes(
    belief: SparseBankBelief,
    plan: SparseBankPlan,
    kernels: Any,
    params: Matrix,
    starts: Any,
    columns: Any,
    values: Array,
    record: Array,
    room: SparseClassRoom,
) -> None:
    """Record how probable each class is to each member, of each row, if it is the next. Shares are left in the room."""
    now = belief.steps[0] + 1
    for n in range(starts.size - 1):
        finite = sum_row(belief, plan, columns, values, starts[n], starts[n + 1], now, 0, room)
        for m in range(room.values.size):
            if finite:
                race_of(m, record[n, m], room)
            else:
                silent(record[n, m])
    share_out(belief.chains, plan.switching, room.shares)


@borrowing_kernel
def learn_sparse_classes(
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
    room: SparseClassRoom,
) -> int:
    """Absorb the rows in order: see `bayou.numerics.sparse_banks.learn_sparse_bank`."""
    members, width = room.values.size, 2 * room.mean.size
    for n in range(targets.size):
        weight, y = float(weights[n]) if n < weights.size else 1.0, int(targets[n])
        count = pieces(weight) if weight > 0.0 else 1
        if n + AHEAD < targets.size:
            for k in range(starts[n + AHEAD], starts[n + AHEAD + 1]):
                prefetch(belief.weights, columns[k] * width)
        share_out(belief.chains, plan.switching, room.shares)
        now, learns = belief.steps[0] + 1, int(weight > 0.0)
        told, best = n < record.shape[0], SMALLEST
        for piece in range(count):
            if not sum_row(belief, plan, columns, values, starts[n], starts[n + 1], now, learns, room):
                return n
            for m in range(members):
                said = record[n, m] if told and piece == 0 else room.record[m]
                points = race_of(m, said, room)
                if piece == 0:
                    room.values[m] = max(math.log(said[y]), SMALLEST)
                    best = max(best, room.values[m])
                if learns:
                    site_of(m, y, points, weight / count, room)
            if learns:
                move_row(belief, plan, columns, values, starts[n], starts[n + 1], room)
        if told:
            for m in range(members):
                shares[n, m] = room.shares[m]
        evidence[n] = best + math.log(max(given_beside(room.values, room.shares, best, weight), FAINTEST))
        if learns:
            multiply(belief.chains, plan.switching, room.values)
            belief.steps[0] = now
    return targets.size
