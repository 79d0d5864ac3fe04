"""One look at all points: the sums that Ying learns from, with the weights of harmony.

Compiled point by point, which is the quickest for clusters of up to some dozen columns; beyond, by matrix products.
With many clusters, of which each point is of the ``nearest`` alone, a list of candidates per point saves looking at all
of them every time; it is made anew now and then (`bayou.mixtures.all_rows`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.mixtures.evidence import Statistics
from bayou.mixtures.gaussians import Gaussians, collect, log_constants, log_joint
from bayou.mixtures.labels import keep_nearest, weigh, yang
from bayou.numerics.jit import COMPILED, kernel, vectorized_kernel

MOST_COLUMNS = 48  # up to which point by point is quicker
BLOCK = 64  # points side by side
CANDIDATES, STEPS_PER_CHOICE = 6, 5  # clusters that a point may be of, until all are looked at again


class Sums(NamedTuple):
    """Over all points, each with its weights; their log likelihood and harmony."""

    statistics: Statistics
    log_likelihood: float
    harmony: float


def weighed_sums(rows: Matrix, clusters: Gaussians, matching: float, nearest: int = 0) -> Sums:
    """The sums of points, of which each is of all clusters, or of the nearest alone."""
    k, d = clusters.mean.shape
    if d > MOST_COLUMNS or not COMPILED:
        labels = yang(log_joint(clusters, rows), matching, nearest)
        return Sums(collect(rows, labels.weight), labels.log_likelihood, labels.harmony)
    statistics = _nothing(k, d)
    told = clusters.mean, clusters.whitening, log_constants(clusters)
    log_likelihood, harmony = _sum_up_all(np.ascontiguousarray(rows), *told, matching, nearest, *statistics)
    return Sums(statistics, log_likelihood, harmony)


class Candidates(NamedTuple):
    """The nearest clusters of each point, the nearest first, in a table; and its places in the order of clusters, those
    of cluster c from ``starts[c]`` on.
    """

    table: NDArray[np.int64]
    places: NDArray[np.int64]
    starts: NDArray[np.int64]


def candidates_of(rows: Matrix, clusters: Gaussians) -> Candidates:
    """Those that each point is likely to be of, while clusters move a little."""
    k = clusters.share.size
    table = np.empty((len(rows), min(CANDIDATES, k)), dtype=np.int64)
    told = clusters.mean, clusters.whitening, log_constants(clusters)
    _choose(np.ascontiguousarray(rows), *told, table)
    places = np.argsort(table, axis=None, kind="stable")
    return Candidates(table, places, np.searchsorted(table.ravel()[places], np.arange(k + 1)))


def sums_of_candidates(
    rows: Matrix, clusters: Gaussians, candidates: Candidates, matching: float, nearest: int
) -> Sums:
    """The same sums, from a look at each point's candidates alone."""
    n, s1, s2 = _nothing(*clusters.mean.shape)
    n_rows, few = candidates.table.shape
    joints = np.empty((n_rows, few))
    log_likelihood, harmony = _sum_up_candidates(
        np.ascontiguousarray(rows),
        clusters.mean,
        clusters.whitening,
        log_constants(clusters),
        candidates.places,
        candidates.starts,
        matching,
        min(nearest, few),
        joints,
        n,
        s1,
        s2,
    )
    return Sums(Statistics(n, s1, s2), log_likelihood, harmony)


def _nothing(k: int, d: int) -> Statistics:
    return Statistics(np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d)))


@kernel
def squared_distance(x: Vector, mean: Vector, whitening: Matrix) -> float:
    """Of a point from a cluster, in deviations of it."""
    distance = 0.0
    for i in range(x.size):
        value = 0.0
        for j in range(i + 1):
            value += whitening[i, j] * (x[j] - mean[j])
        distance += value * value
    return distance


@kernel
def add_point(w: float, x: Vector, s1: Vector, s2: Matrix) -> None:
    """Let a point into the sums of a cluster; of products, into those below the diagonal."""
    for i in range(x.size):
        wx = w * x[i]
        s1[i] += wx
        for j in range(i + 1):
            s2[i, j] += wx * x[j]


@kernel
def complete_symmetric(s2: NDArray[np.float64]) -> None:
    """Above the diagonals what is below them."""
    for c in range(s2.shape[0]):
        for i in range(s2.shape[1]):
            for j in range(i):
                s2[c, j, i] = s2[c, i, j]


@kernel
def _sum_up_all(
    rows: Matrix,
    mean: Matrix,
    whitening: NDArray[np.float64],
    constant: Vector,
    matching: float,
    nearest: int,
    n: Vector,
    s1: Matrix,
    s2: NDArray[np.float64],
) -> tuple[float, float]:
    """A block of points at a time, side by side: so their sums use the whole width of the machine."""
    k, d = mean.shape
    points, centred, whitened = np.zeros((d, BLOCK)), np.empty((d, BLOCK)), np.empty(BLOCK)
    joints, weights = np.empty((k, BLOCK)), np.zeros((k, BLOCK))
    joint, weight = np.empty(k), np.empty(k)
    log_likelihood, harmony = 0.0, 0.0
    for start in range(0, rows.shape[0], BLOCK):
        size = min(BLOCK, rows.shape[0] - start)
        for p in range(size):
            for i in range(d):
                points[i, p] = rows[start + p, i]
        for c in range(k):
            _squared_distances(points, mean[c], whitening[c], centred, whitened, joints[c])
        for p in range(BLOCK):
            if p >= size:  # what is left of the block before
                weights[:, p] = 0.0
                continue
            for c in range(k):
                joint[c] = constant[c] - 0.5 * joints[c, p]
            if 0 < nearest < k:
                keep_nearest(joint, nearest)
            likelihood, harmonious = weigh(joint, matching, weight)
            log_likelihood += likelihood
            harmony += harmonious
            for c in range(k):
                weights[c, p] = weight[c]
        for c in range(k):
            n[c] += _add_points(weights[c], points, centred, s1[c], s2[c])
    complete_symmetric(s2)
    return log_likelihood, harmony


@vectorized_kernel
def _squared_distances(
    points: Matrix, mean: Vector, whitening: Matrix, centred: Matrix, whitened: Vector, distances: Vector
) -> None:
    d, size = points.shape
    distances[:] = 0.0
    for i in range(d):
        for p in range(size):
            centred[i, p] = points[i, p] - mean[i]
        whitened[:] = 0.0
        for j in range(i + 1):
            factor = whitening[i, j]
            for p in range(size):
                whitened[p] += factor * centred[j, p]
        for p in range(size):
            distances[p] += whitened[p] * whitened[p]


@vectorized_kernel
def _add_points(weight: Vector, points: Matrix, weighed: Matrix, s1: Vector, s2: Matrix) -> float:
    d, size = points.shape
    total = 0.0
    for p in range(size):
        total += weight[p]
    for i in range(d):
        value = 0.0
        for p in range(size):
            weighed[i, p] = weight[p] * points[i, p]
            value += weighed[i, p]
        s1[i] += value
        for j in range(i + 1):
            value = 0.0
            for p in range(size):
                value += weighed[i, p] * points[j, p]
            s2[i, j] += value
    return total


@kernel
def _choose(
    rows: Matrix, mean: Matrix, whitening: NDArray[np.float64], constant: Vector, candidates: NDArray[np.int64]
) -> None:
    k, d = mean.shape
    points, centred, whitened = np.zeros((d, BLOCK)), np.empty((d, BLOCK)), np.empty(BLOCK)
    joints, joint = np.empty((k, BLOCK)), np.empty(k)
    for start in range(0, rows.shape[0], BLOCK):
        size = min(BLOCK, rows.shape[0] - start)
        for p in range(size):
            for i in range(d):
                points[i, p] = rows[start + p, i]
        for c in range(k):
            _squared_distances(points, mean[c], whitening[c], centred, whitened, joints[c])
        for p in range(size):
            for c in range(k):
                joint[c] = constant[c] - 0.5 * joints[c, p]
            for place in range(candidates.shape[1]):
                best = 0
                for c in range(1, k):
                    if joint[c] > joint[best]:
                        best = c
                candidates[start + p, place] = best
                joint[best] = -np.inf


@kernel
def _sum_up_candidates(
    rows: Matrix,
    mean: Matrix,
    whitening: NDArray[np.float64],
    constant: Vector,
    members: NDArray[np.int64],
    starts: NDArray[np.int64],
    matching: float,
    nearest: int,
    joints: Matrix,
    n: Vector,
    s1: Matrix,
    s2: NDArray[np.float64],
) -> tuple[float, float]:
    """Cluster by cluster, a block of those points at a time of which it is a candidate.

    ``members`` are places in the table of points and candidates, in the order of clusters; ``joints`` is that table.
    """
    k, d = mean.shape
    few = joints.shape[1]
    points, centred, whitened = np.zeros((d, BLOCK)), np.empty((d, BLOCK)), np.empty(BLOCK)
    distances, weights, weight = np.empty(BLOCK), np.empty(BLOCK), np.empty(few)
    for c in range(k):
        for start in range(starts[c], starts[c + 1], BLOCK):
            size = min(BLOCK, starts[c + 1] - start)
            for p in range(size):
                for i in range(d):
                    points[i, p] = rows[members[start + p] // few, i]
            _squared_distances(points, mean[c], whitening[c], centred, whitened, distances)
            for p in range(size):
                member = members[start + p]
                joints[member // few, member % few] = constant[c] - 0.5 * distances[p]
    log_likelihood, harmony = 0.0, 0.0
    for p in range(rows.shape[0]):
        keep_nearest(joints[p], nearest)
        likelihood, harmonious = weigh(joints[p], matching, weight)
        log_likelihood += likelihood
        harmony += harmonious
        joints[p, :] = weight
    for c in range(k):
        size = 0
        for place in range(starts[c], starts[c + 1] + 1):
            if size == BLOCK or (place == starts[c + 1] and size > 0):
                weights[size:] = 0.0
                n[c] += _add_points(weights, points, centred, s1[c], s2[c])
                size = 0
            if place < starts[c + 1]:
                member = members[place]
                w = joints[member // few, member % few]
                if w > 0.0:
                    weights[size] = w
                    for i in range(d):
                        points[i, size] = rows[member // few, i]
                    size += 1
    complete_symmetric(s2)
    return log_likelihood, harmony
