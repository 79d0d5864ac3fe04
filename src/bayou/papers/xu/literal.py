"""The algorithms to the letter of (9): weights p (1 + delta) as they are, also where they are negative.

Of a Gaussian mixture, with L_l = log(share_l N(x; mean_l, covariance_l)) and p = q(l | x),

    w_l = p_l (1 + delta_l),  delta_l = L_l - sum_j p_j L_j

is the weight with which a row enters the gradient of the harmony. `fixed_point` takes it for that of EM; `follow` goes
along the gradient row by row, each part of it times a positive matrix; `without_moves` clips the weights at zero, as
bayou does, but merges and splits nothing. `literal_factors` is the harmony of a factor analyser, maximised.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.mixtures.evidence import Prior, Statistics
from bayou.mixtures.gaussians import Gaussians, collect, gaussians_of, log_joint, with_covariance
from bayou.mixtures.labels import yang
from bayou.numerics.jit import kernel

RATE, EPOCHS = 0.05, 20  # of the flow, row by row
FLOW_RATE, FLOW_STEPS = 0.3, 150  # of the clipped flow
STEPS = 100
CUT = 0.02  # a smaller share is no cluster
THRESHOLD = 4.0  # times the noise: a smaller eigenvalue has no factor


class Found(NamedTuple):
    """How many clusters were left; after how many steps (rows, in the flow) a covariance was not positive, if ever."""

    k: int
    broke_at: int | None


def raw_weights(joint: Matrix, matching: float = 0.0) -> Matrix:
    """p (1 + (1 - matching) delta), which may be negative, from log q(x, l); (9) with ``matching=0``."""
    top = joint.max(axis=1, keepdims=True)
    p = np.exp(joint - top)
    p /= p.sum(axis=1, keepdims=True)
    mean = np.sum(p * np.where(p > 0.0, joint, 0.0), axis=1, keepdims=True)
    weights: Matrix = np.where(p > 0.0, p * (1.0 + (1.0 - matching) * (joint - mean)), 0.0)
    return weights


def broad(rows: Matrix, k: int, rng: Generator) -> Gaussians:
    """As many clusters as there may be, about rows, each as wide as all of them."""
    covariance = np.cov(rows.T, bias=True).reshape(rows.shape[1], -1)
    return with_covariance(np.full(k, 1.0 / k), rows[rng.choice(len(rows), k, False)], np.tile(covariance, (k, 1, 1)))


def fixed_point(rows: Matrix, start: Gaussians) -> Found:
    """Shares, means and covariances as by EM, with the raw weights; what has no density is dropped, and so on."""
    clusters, broke_at = start, None
    for step in range(STEPS):
        n, s1, s2 = collect(rows, raw_weights(log_joint(clusters, rows)))
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = s1 / n[:, None]
            covariance = s2 / n[:, None, None] - np.einsum("ki,kj->kij", mean, mean)
        fine = np.array([count > 0.0 and _positive(matrix) for count, matrix in zip(n, covariance, strict=True)])
        if not fine.all() and broke_at is None:
            broke_at = step + 1
        if not fine.any():
            return Found(0, broke_at)
        before = clusters.share
        clusters = with_covariance(n[fine] / n[fine].sum(), mean[fine], covariance[fine])
        if fine.all() and np.max(np.abs(clusters.share - before)) < 1e-6:
            break
    return Found(int(np.sum(clusters.share > CUT)), broke_at)


def _positive(matrix: Matrix) -> bool:
    return bool(np.linalg.eigvalsh(matrix)[0] > 1e-10 * np.trace(matrix))


def online(rows: Matrix, start: Gaussians, rng: Generator) -> Found:
    """Along the gradient, row by row, each row shown so many times in random order."""
    log_share, mean, covariance = np.log(start.share), start.mean.copy(), start.covariance.copy()
    order = np.concatenate([rng.permutation(len(rows)) for _ in range(EPOCHS)])
    learnt = int(follow(rows, order, RATE, log_share, mean, covariance))
    if learnt < order.size:
        return Found(0, learnt)
    share = np.exp(log_share - log_share.max())
    return Found(int(np.sum(share > CUT * share.sum())), None)


@kernel
def follow(
    rows: Matrix,
    order: NDArray[np.int64],
    rate: float,
    log_share: Vector,
    mean: Matrix,
    covariance: NDArray[np.float64],
) -> int:
    """c_l += rate (w_l - share_l), mean_l += rate w_l (x - mean_l), covariance_l += rate w_l (e e' - covariance_l).

    In place; shares are exp(c) / sum exp(c). Returns how many rows were learnt: it ends where a covariance is not
    positive.
    """
    k, d = mean.shape
    joint, weight, share = np.empty(k), np.empty(k), np.empty(k)
    lower, error, white = np.empty((d, d)), np.empty((k, d)), np.empty(d)
    for step in range(order.size):
        top = log_share.max()
        total = 0.0
        for c in range(k):
            share[c] = math.exp(log_share[c] - top)
            total += share[c]
        for c in range(k):
            share[c] /= total
            joint[c] = log_share[c] - top - math.log(total) - 0.5 * d * math.log(2.0 * math.pi)
            for i in range(d):
                error[c, i] = rows[order[step], i] - mean[c, i]
                for j in range(i + 1):
                    value = covariance[c, i, j]
                    for q in range(j):
                        value -= lower[i, q] * lower[j, q]
                    if i > j:
                        lower[i, j] = value / lower[j, j]
                    elif value > 0.0:
                        lower[i, i] = math.sqrt(value)
                    else:
                        return step
                value = error[c, i]
                for q in range(i):
                    value -= lower[i, q] * white[q]
                white[i] = value / lower[i, i]
                joint[c] -= 0.5 * white[i] ** 2 + math.log(lower[i, i])
        best = joint.max()
        total = 0.0
        for c in range(k):
            weight[c] = math.exp(joint[c] - best)
            total += weight[c]
        harmony = 0.0
        for c in range(k):
            weight[c] /= total
            harmony += weight[c] * joint[c]
        for c in range(k):
            w = weight[c] * (1.0 + joint[c] - harmony)
            log_share[c] += rate * (w - share[c])
            for i in range(d):
                mean[c, i] += rate * w * error[c, i]
                for j in range(d):
                    covariance[c, i, j] += rate * w * (error[c, i] * error[c, j] - covariance[c, i, j])
    return int(order.size)


def without_moves(rows: Matrix, start: Gaussians) -> Found:
    """The clipped flow of sums, from a broad start: clusters vanish on the way, but none merges, and none is split."""
    n, d = rows.shape
    k = start.share.size
    certainty = k ** (-2.0 / d)
    prior, least = Prior(certainty, 1.0, certainty), max(min(d + 1, 8) / n, 0.5 * CUT)
    products = start.covariance + np.einsum("ki,kj->kij", start.mean, start.mean)
    sums, clusters = Statistics(n / k * np.ones(k), n / k * start.mean, n / k * products), start
    for _ in range(FLOW_STEPS):
        fresh = collect(rows, yang(log_joint(clusters, rows), 0.0).weight)
        sums = Statistics(*((1.0 - FLOW_RATE) * old + FLOW_RATE * new for old, new in zip(sums, fresh, strict=True)))
        kept = sums.n >= least * n
        sums = Statistics(*(part[kept] for part in sums))
        clusters = gaussians_of(sums, prior)
    return Found(int(sums.n.size), None)


def literal_loading(s: float, noise: float) -> float:
    """The variance along a factor at which the harmony of an eigenvalue s is stationary, 0 where there is none."""
    if s < THRESHOLD * noise:
        return 0.0
    return 0.5 * (s - 2.0 * noise + math.sqrt(s * s - THRESHOLD * s * noise))


def literal_factors(eigenvalues: Vector, most: int) -> tuple[int, float]:
    """How many factors harmony keeps, and the noise: many at first, those below the threshold are dropped in turn.

    Loadings and noise are where the harmony of a factor analyser, A' A = I, is stationary in both.
    """
    s, d = np.sort(eigenvalues)[::-1], eigenvalues.size
    m, noise = min(most, d - 1), float(np.mean(np.sort(eigenvalues)[: max(d - most, 1)]))
    for _ in range(10 * d + 200):
        kept = int(np.sum(s[:m] > THRESHOLD * noise))
        loadings = np.array([literal_loading(float(value), noise) for value in s[:kept]])
        fresh = (float(s[kept:].sum()) + noise**2 * float(np.sum(1.0 / loadings))) / d
        if kept == m and abs(fresh - noise) < 1e-12 * noise:
            break
        m, noise = kept, fresh
    return m, noise
