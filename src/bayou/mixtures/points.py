"""Clusters and points one at a time, compiled: densities, weights, sums, and a few steps of harmony on a few points."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.mixtures.labels import keep_nearest, weigh
from bayou.mixtures.shapes import evidence_of, tell_cluster
from bayou.mixtures.sums import add_point, complete_symmetric, squared_distance
from bayou.numerics.jit import kernel

REFRESH = 5  # points after which covariances follow the sums
WENT_ON, HELD_BACK = 0, 1
NOT_NEARLY = 100.0  # by so much less evidence a split is out of the question, also with a few points more or less
N_SEEN, N_HELD, N_RING, N_STALE = range(4)


class StreamBelief(NamedTuple):
    """Sums and clusters, and how many points each had when it was last looked at for a split; points held back and the
    latest points; how many were seen, are held back, have passed through the ring, and have come since covariances
    were made.
    """

    n: Vector
    s1: Matrix
    s2: NDArray[np.float64]
    mean: Matrix
    whitening: NDArray[np.float64]
    constant: Vector
    tested: Vector
    held: Matrix
    ring: Matrix
    tally: Vector


@kernel
def refresh(belief: StreamBelief, prior: Vector) -> None:
    """Means, inverse Cholesky factors and constants from the sums."""
    k, d = belief.s1.shape
    total = 0.0
    for c in range(k):
        total += belief.n[c]
    covariance = np.empty((d, d))
    for c in range(k):
        n = belief.n[c]
        log_determinant = tell_cluster(
            n, belief.s1[c], belief.s2[c], prior, belief.mean[c], covariance, belief.whitening[c]
        )
        belief.constant[c] = math.log(n / total) - log_determinant - 0.5 * d * math.log(2.0 * math.pi)
    belief.tally[N_STALE] = 0.0


@kernel
def look(belief: StreamBelief, x: Vector, joint: Vector) -> float:
    """log share + log density of a point in each cluster; returns the least squared distance from any."""
    nearest = np.inf
    for c in range(belief.n.size):
        distance = squared_distance(x, belief.mean[c], belief.whitening[c])
        joint[c] = belief.constant[c] - 0.5 * distance
        nearest = min(nearest, distance)
    return nearest


@kernel
def add(belief: StreamBelief, x: Vector, weight: Vector, kept: float) -> None:
    """Let a point into the sums, which keep so much of what they were."""
    k, d = belief.s1.shape
    for c in range(k):
        w = weight[c]
        if kept < 1.0:
            belief.n[c] *= kept
            for i in range(d):
                belief.s1[c, i] *= kept
                for j in range(d):
                    belief.s2[c, i, j] *= kept
        if w > 0.0:
            belief.n[c] += w
            for i in range(d):
                belief.s1[c, i] += w * x[i]
                for j in range(d):
                    belief.s2[c, i, j] += w * x[i] * x[j]
    size = belief.ring.shape[0]
    place = int(belief.tally[N_RING]) % size
    for i in range(d):
        belief.ring[place, i] = x[i]
    belief.tally[N_RING] += 1.0


@kernel
def learn_points(
    belief: StreamBelief,
    rows: Matrix,
    start: int,
    matching: float,
    farthest: float,
    forgetting: float,
    prior: Vector,
    nearest: int,
    every: int,
) -> tuple[int, int]:
    """Learn from a row on, up to one that is held back or after which to look at the structure.

    Returns the next row, and whether the last one was held back.
    """
    k = belief.n.size
    joint, weight = np.empty(k), np.empty(k)
    for row in range(start, rows.shape[0]):
        x = rows[row]
        distance = look(belief, x, joint)
        belief.tally[N_SEEN] += 1.0
        if distance > farthest:
            place = int(belief.tally[N_HELD])
            for i in range(x.size):
                belief.held[place, i] = x[i]
            belief.tally[N_HELD] += 1.0
            return row + 1, HELD_BACK
        if 0 < nearest < k:
            keep_nearest(joint, nearest)
        weigh(joint, matching, weight)
        total = 0.0
        for c in range(k):
            total += belief.n[c]
        kept = 1.0 - forgetting if forgetting > 0.0 and total > 1.0 / forgetting else 1.0
        add(belief, x, weight, kept)
        belief.tally[N_STALE] += 1.0
        if belief.tally[N_STALE] >= REFRESH:
            refresh(belief, prior)
        if int(belief.tally[N_SEEN]) % every == 0:
            return row + 1, WENT_ON
    return rows.shape[0], WENT_ON


@kernel
def flow_points(belief: StreamBelief, points: Matrix, steps: int, rate: float, matching: float, prior: Vector) -> None:
    """Let the clusters move on some points, by so many steps."""
    k, d = belief.s1.shape
    joint, weight = np.empty(k), np.empty(k)
    n, s1, s2 = np.empty(k), np.empty((k, d)), np.empty((k, d, d))
    for _ in range(steps):
        n[:], s1[:], s2[:] = 0.0, 0.0, 0.0
        for p in range(points.shape[0]):
            look(belief, points[p], joint)
            weigh(joint, matching, weight)
            for c in range(k):
                n[c] += weight[c]
                add_point(weight[c], points[p], s1[c], s2[c])
        for c in range(k):
            belief.n[c] = max((1.0 - rate) * belief.n[c] + rate * n[c], 1e-6)
            for i in range(d):
                belief.s1[c, i] = (1.0 - rate) * belief.s1[c, i] + rate * s1[c, i]
                for j in range(i + 1):
                    belief.s2[c, i, j] = (1.0 - rate) * belief.s2[c, i, j] + rate * s2[c, i, j]
        complete_symmetric(belief.s2)
        refresh(belief, prior)


@kernel
def objective_of_points(belief: StreamBelief, points: Matrix, matching: float, prior: Vector) -> float:
    """The evidence of the clusters in some points; see `bayou.mixtures.harmony.objective`."""
    k, d = belief.s1.shape
    joint, weight = np.empty(k), np.empty(k)
    n, s1, s2 = np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d))
    entropy = 0.0
    for p in range(points.shape[0]):
        look(belief, points[p], joint)
        log_likelihood, harmony = weigh(joint, 1.0, weight)
        entropy += log_likelihood - harmony
        for c in range(k):
            n[c] += weight[c]
            add_point(weight[c], points[p], s1[c], s2[c])
    value, total = matching * entropy, 0.0
    for c in range(k):
        value += evidence_of(n[c], s1[c], s2[c], prior)
        value += math.lgamma(1.0 + n[c])
        total += n[c]
    return value + math.lgamma(k) - math.lgamma(k + total)


@kernel
def owner_of(belief: StreamBelief, x: Vector, joint: Vector) -> int:
    """The most probable cluster of a point."""
    look(belief, x, joint)
    best = 0
    for c in range(1, joint.size):
        if joint[c] > joint[best]:
            best = c
    return best


@kernel
def owners_of(belief: StreamBelief, points: Matrix, owners: NDArray[np.int64]) -> None:
    """The most probable cluster of each point."""
    joint = np.empty(belief.n.size)
    for p in range(points.shape[0]):
        owners[p] = owner_of(belief, points[p], joint)


@kernel
def best_merge(n: Vector, s1: Matrix, s2: NDArray[np.float64], prior: Vector) -> tuple[int, int, float]:
    """The two clusters by which, as one, the evidence rises the most, or falls the least; and by how much."""
    k, d = s1.shape
    alone = np.empty(k)
    total = 0.0
    for c in range(k):
        alone[c] = evidence_of(n[c], s1[c], s2[c], prior) + math.lgamma(1.0 + n[c])
        total += n[c]
    sum1, sum2 = np.empty(d), np.empty((d, d))
    first, second, best = 0, 1, -np.inf
    for a in range(k):
        for b in range(a + 1, k):
            for i in range(d):
                sum1[i] = s1[a, i] + s1[b, i]
                for j in range(i + 1):
                    sum2[i, j] = s2[a, i, j] + s2[b, i, j]
            together = evidence_of(n[a] + n[b], sum1, sum2, prior) + math.lgamma(1.0 + n[a] + n[b])
            if together - alone[a] - alone[b] > best:
                first, second, best = a, b, together - alone[a] - alone[b]
    shares = math.lgamma(k - 1.0) - math.lgamma(k - 1.0 + total) - math.lgamma(k) + math.lgamma(k + total)
    return first, second, best + shares


@kernel
def has_spread(n: float, s1: Vector, s2: Matrix) -> bool:
    """Whether sums are those of some points: their covariance is positive."""
    d = s1.size
    lower = np.empty((d, d))
    for i in range(d):
        for j in range(i + 1):
            value = s2[i, j] - s1[i] * s1[j] / n
            for q in range(j):
                value -= lower[i, q] * lower[j, q]
            if i == j:
                if not value > 1e-9 * s2[i, i]:
                    return False
                lower[i, i] = math.sqrt(value)
            else:
                lower[i, j] = value / lower[j, j]
    return True


@kernel
def newcomers(belief: StreamBelief, lags: NDArray[np.int64], prior: Vector) -> tuple[int, int]:
    """The cluster whose latest points, and how many of them, are the most clearly another's; -1 if there is none.

    By the evidence of those before and of those since, against that of all. Some numbers of points are tried, then
    those about the best: a few points of the wrong side cost much.
    """
    k, size = belief.n.size, belief.ring.shape[0]
    seen = int(belief.tally[N_RING])
    joint, own, counts = np.empty(k), np.empty((k, size), dtype=np.int64), np.zeros(k, dtype=np.int64)
    for back in range(1, min(seen, size) + 1):
        place = (seen - back) % size
        c = owner_of(belief, belief.ring[place], joint)
        own[c, counts[c]] = place
        counts[c] += 1
    best, found, found_lag = 0.0, -1, 0
    for c in range(k):
        whole = evidence_of(belief.n[c], belief.s1[c], belief.s2[c], prior)
        nearly, nearly_lag, gap = -NOT_NEARLY, 0, 0
        for which in range(lags.size):
            gain = gain_of_newcomers(belief, c, own[c], counts[c], lags[which], prior) - whole
            if gain > nearly:
                nearly, nearly_lag = gain, lags[which]
                gap = lags[min(which + 1, lags.size - 1)] - lags[max(which - 1, 0)]
        for part in range(-4, 5):
            if nearly_lag == 0:
                break
            lag = nearly_lag + part * gap // 10
            gain = gain_of_newcomers(belief, c, own[c], counts[c], lag, prior) - whole
            if gain > best:
                best, found, found_lag = gain, c, lag
    return found, found_lag


@kernel
def gain_of_newcomers(
    belief: StreamBelief, c: int, own: NDArray[np.int64], count: int, lag: int, prior: Vector
) -> float:
    """The evidence of a cluster if so many of its latest points are another's, less what labels cost then;
    -infinity if too few are there, or would be left.
    """
    k, d = belief.s1.shape
    n, some = belief.n[c], float(lag)
    if lag > count or n - some < max(0.25 * n, 4.0 * min(d + 1, 8)):
        return -np.inf
    s1, s2 = np.zeros(d), np.zeros((d, d))
    for place in range(lag):
        add_point(1.0, belief.ring[own[place]], s1, s2)
    rest1, rest2 = np.empty(d), np.empty((d, d))
    for i in range(d):
        rest1[i] = belief.s1[c, i] - s1[i]
        for j in range(i + 1):
            rest2[i, j] = belief.s2[c, i, j] - s2[i, j]
    if not has_spread(n - some, rest1, rest2):  # some of these points are the sums' only in part
        return -np.inf
    total = 0.0
    for other in range(k):
        total += belief.n[other]
    gain = evidence_of(some, s1, s2, prior) + evidence_of(n - some, rest1, rest2, prior)
    gain += math.lgamma(1.0 + some) + math.lgamma(1.0 + n - some) - math.lgamma(1.0 + n)
    gain += math.lgamma(k + 1.0) - math.lgamma(k + 1.0 + total) - math.lgamma(k) + math.lgamma(k + total)
    return float(gain)
