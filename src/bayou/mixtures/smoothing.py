"""Two priors that ask the data alone: how far each point is blurred, and what finite samples add to a likelihood.

Smoothing (Xu 2007): each point x_t stands for N(x_t, h^2 I). On average over these, and with a prior of h that tells
how dense the blurred points are,

    log q(x_t, l) - (h^2 / 2) tr C_l^-1,        q(h) ~ 1 / sum_t p_h(x_t),  p_h(x) = mean_s N(x; x_s, h^2 I)

so that the covariances C_l are those of the points plus h^2 I. The prior may count once, as it is written, or once for
each point. Where a point is the only one within its own blur, its h^2 = c d / sum_t sum_l w tr C_l^-1, with c = 1 or
n: about a variance divided by n, or a variance. It is never more. Counted once, it does not outweigh a cluster that is
flat (of no more points than columns): there h falls to `LEAST`.

Cancelling induced bias: q(parameters) ~ 1 / sum_t q(x_t), whose slope takes r_t = q(x_t) / sum_s q(x_s) of each point
away. Of a sharp cluster about a single point it takes all.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.spatial.distance import cdist, pdist
from scipy.special import logsumexp

from bayou.contracts import Matrix, Vector
from bayou.mixtures.evidence import Statistics
from bayou.mixtures.gaussians import Gaussians, collect, log_joint, with_covariance
from bayou.mixtures.labels import yang

Reading: TypeAlias = Literal["once", "each"]
RATE = 0.3  # of a step, if weights are clipped
MOST_STEPS, TOLERANCE = 2000, 1e-9  # relative, of the objective
LEAST = 1e-4  # h, in units of the root mean variance of a column
MOST_PAIRS = 2**15  # whose distances are kept one by one; more go into bins
BINS, WIDEST, ROWS_AT_ONCE = 2**15, 1e14, 256  # a bin is 0.1 % wide, and knows the mean of what is in it
SPACING, FARTHEST = 0.15, 12.0  # of the values of log h that are looked at, below the largest
ALONE = 9.0  # so many h away, a neighbour adds nothing: exp(-9^2 / 2) = 3e-18
HALVINGS = 40


class Distances(NamedTuple):
    """Squared distances of all ordered pairs of rows, with how many have each, zero of a row to itself among them."""

    squared: Vector
    counts: Vector
    n: int
    d: int


class Smoothed(NamedTuple):
    """The clusters, and the deviation of the blur."""

    clusters: Gaussians
    h: float


def distances_of(rows: Matrix) -> Distances:
    """One by one if they are few; else in bins, a chunk of rows at a time."""
    n, d = rows.shape
    if n * (n - 1) // 2 <= MOST_PAIRS:
        pairs = pdist(rows, "sqeuclidean")
        return Distances(np.append(0.0, pairs), np.append(float(n), np.full(pairs.size, 2.0)), n, d)
    largest = 4.0 * float(np.max(np.sum((rows - rows.mean(axis=0)) ** 2, axis=1)))
    least = max(largest, 1e-300) / WIDEST
    count, total = np.zeros(BINS), np.zeros(BINS)
    for begin in range(0, n, ROWS_AT_ONCE):
        squared = cdist(rows[begin : begin + ROWS_AT_ONCE], rows, "sqeuclidean").ravel()
        places = (np.log(np.maximum(squared / least, 1.0)) * (BINS / math.log(WIDEST))).astype(np.intp)
        np.minimum(places, BINS - 1, out=places)
        count += np.bincount(places, minlength=BINS)
        total += np.bincount(places, weights=squared, minlength=BINS)
    seen = count > 0.0
    return Distances(total[seen] / count[seen], count[seen], n, d)


def log_density_sum(distances: Distances, h: float) -> tuple[float, float, float]:
    """log sum_t p_h(x_t), with its first and second derivatives in log h."""
    squared, counts, n, d = distances
    scaled = squared / h**2
    near = counts * np.exp(-0.5 * scaled)  # each row is near itself: the sum is at least n, whatever h
    total = float(near.sum())
    mean = float(near @ scaled) / total
    variance = float(near @ (scaled - mean) ** 2) / total
    value = math.log(total) - math.log(n) - 0.5 * d * math.log(2.0 * math.pi) - d * math.log(h)
    return value, mean - d, variance - 2.0 * mean


def width_of(distances: Distances, roughness: float, counted: float) -> float:
    """The h of the largest -(h^2 / 2) roughness - counted log sum_t p_h(x_t): scanned, then by Newton's steps."""
    top = math.sqrt(counted * distances.d / roughness)  # the objective falls from here on
    apart = distances.squared[distances.squared > 0.0]
    alone = math.sqrt(float(apart.min())) / ALONE if apart.size else math.inf  # below, it rises
    if alone >= top:
        return top
    span = min(math.log(top / alone), FARTHEST)
    grid = math.log(top) - np.linspace(span, 0.0, math.ceil(span / SPACING) + 1)

    def look(u: float) -> tuple[float, float, float]:
        value, slope, curvature = log_density_sum(distances, math.exp(u))
        pull = roughness * math.exp(2.0 * u)
        return -0.5 * pull - counted * value, -pull - counted * slope, -2.0 * pull - counted * curvature

    seen = [look(u) for u in grid]
    best = max(range(len(grid)), key=lambda place: seen[place][0])
    u, (_, slope, curvature) = float(grid[best]), seen[best]
    low, high = (u, grid[min(best + 1, len(grid) - 1)]) if slope > 0.0 else (grid[max(best - 1, 0)], u)
    while high - low > 1e-12 * max(abs(u), 1.0):
        stepped = u - slope / curvature if curvature < 0.0 else math.inf
        moved = stepped if low < stepped < high else 0.5 * (low + high)
        if abs(moved - u) < 1e-13:
            break
        u = moved
        _, slope, curvature = look(u)
        low, high = (u, high) if slope > 0.0 else (low, u)
    return math.exp(u)


def inverse_traces(clusters: Gaussians) -> Vector:
    """tr C_l^-1 of each cluster."""
    return np.asarray(np.sum(clusters.whitening**2, axis=(1, 2)))


def smoothed_log_joint(clusters: Gaussians, rows: Matrix, h: float) -> Matrix:
    """log q(x, l) on average over the blur of each row: (row, cluster)."""
    return np.asarray(log_joint(clusters, rows) - 0.5 * h**2 * inverse_traces(clusters))


def widened(statistics: Statistics, h: float, before: Gaussians) -> Gaussians:
    """The clusters that the sums of blurred points tell; one that has lost all its points stays where it was."""
    n, s1, s2 = statistics
    alive = n > 1e-12 * n.sum()
    n = np.where(alive, n, 1.0)
    mean = np.where(alive[:, None], s1 / n[:, None], before.mean)
    covariance = s2 / n[:, None, None] - np.einsum("ki,kj->kij", mean, mean) + h**2 * np.eye(s1.shape[1])
    covariance = np.where(alive[:, None, None], covariance, before.covariance)
    return with_covariance(statistics.n / statistics.n.sum(), mean, covariance)


def learn_smoothed(rows: Matrix, start: Gaussians, matching: float, reading: Reading) -> Smoothed:
    """As many clusters as at the start, and h, in turn; with matching 1 each step raises the objective.

    h follows the weights of the clusters, which are Yang's probabilities if matching is 1.
    """
    return _settled(rows, start, matching, 1.0 if reading == "once" else float(len(rows)))


def learn_at_width(rows: Matrix, start: Gaussians, matching: float, h: float) -> Gaussians:
    """The same with an h that is given."""
    return _settled(rows, start, matching, 0.0, h).clusters


def _settled(rows: Matrix, start: Gaussians, matching: float, counted: float, h: float = 0.0) -> Smoothed:
    centre = rows.mean(axis=0)  # sums of products lose the fewest digits about it
    rows = rows - centre
    clusters = start._replace(mean=start.mean - centre)
    distances = distances_of(rows) if counted else None
    least = least_width(rows)
    h = max(h, least)
    weight = yang(log_joint(clusters, rows), matching).weight
    if distances is not None:
        h = max(width_of(distances, float(weight.sum(axis=0) @ inverse_traces(clusters)), counted), least)
    statistics, before = collect(rows, weight), -math.inf
    for _ in range(MOST_STEPS):
        labels = yang(smoothed_log_joint(clusters, rows, h), matching)
        value = matching * labels.log_likelihood + (1.0 - matching) * labels.harmony
        if distances is not None:
            value -= counted * log_density_sum(distances, h)[0]
        if abs(value - before) <= TOLERANCE * abs(value):
            break
        before = value
        rate = 1.0 if matching == 1.0 else RATE
        fresh = collect(rows, labels.weight)
        statistics = Statistics(*((1.0 - rate) * old + rate * new for old, new in zip(statistics, fresh, strict=True)))
        clusters = widened(statistics, h, clusters)
        if distances is not None:
            h = max(width_of(distances, float(fresh.n @ inverse_traces(clusters)), counted), least)
    return Smoothed(clusters._replace(mean=clusters.mean + centre), h)


def least_width(rows: Matrix) -> float:
    """The least h: what keeps covariances positive in spite of rounding."""
    return LEAST * math.sqrt(max(float(np.mean(np.var(rows, axis=0))), 1e-20))


def cancelled_objective(joint: Matrix, matching: float) -> float:
    """matching L + (1 - matching) H - log sum_t q(x_t), from log q(x, l)."""
    labels = yang(joint, 1.0)
    value = matching * labels.log_likelihood + (1.0 - matching) * labels.harmony
    return float(value - logsumexp(joint))


def cancelled_weights(joint: Matrix, matching: float) -> Matrix:
    """Its slope in log q(x, l): p (1 + (1 - matching) delta - r). All rows together weigh one row less."""
    p = yang(joint, 1.0).probability
    finite = np.maximum(joint, -1e300)
    delta = finite - np.sum(p * finite, axis=1, keepdims=True)
    density = logsumexp(joint, axis=1, keepdims=True)
    return np.asarray(p * (1.0 + (1.0 - matching) * delta - np.exp(density - logsumexp(joint))))


def learn_cancelled(rows: Matrix, start: Gaussians, matching: float) -> Gaussians:
    """The clusters of the largest objective near the start: steps along its natural gradient, halved until it rises.

    There are two rows at least. A cluster may still become flat, as by maximum likelihood, if it
    has several points and no more than columns; `LEAST` keeps its covariance positive.
    """
    centre = rows.mean(axis=0)
    rows = rows - centre
    floor = least_width(rows)
    clusters = start._replace(mean=start.mean - centre)
    joint = log_joint(clusters, rows)
    statistics = collect(rows, yang(joint, 1.0).probability)
    clusters = widened(statistics, floor, clusters)
    joint = log_joint(clusters, rows)
    value = cancelled_objective(joint, matching)
    for _ in range(MOST_STEPS):
        fresh = collect(rows, cancelled_weights(joint, matching))
        rate, before = 1.0, value
        for _ in range(HALVINGS):
            tried = Statistics(*((1.0 - rate) * old + rate * new for old, new in zip(statistics, fresh, strict=True)))
            rate *= 0.5
            if np.any(tried.n <= 0.0):
                continue
            try:
                candidate = widened(tried, floor, clusters)
            except np.linalg.LinAlgError:  # weights below zero may leave no covariance
                continue
            joint_there = log_joint(candidate, rows)
            value_there = cancelled_objective(joint_there, matching)
            if value_there >= before:
                statistics, clusters, joint, value = tried, candidate, joint_there, value_there
                break
        if value - before <= TOLERANCE * abs(value):
            break
    return clusters._replace(mean=clusters.mean + centre)
