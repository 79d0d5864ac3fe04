"""Clusters that lie along subspaces, each of its own dimension: A diag(loading) A' + noise I, columns of A orthonormal.

Of a cluster's covariance with the eigenvalues s_1 >= s_2 >= ..., m factors keep the first m as they are, and give the
others their mean. The number of factors is that of the largest evidence, in Schwarz's approximation:

    log m = -(n / 2) [d log 2 pi + sum_{j <= m} log s_j + (d - m) log noise + d] - (numbers / 2) log n,
    numbers = d + d m - m (m - 1) / 2 + 1

It is the rule of harmony, start with many and drop those that vanish (Xu 2007), with a threshold that knows how many
points there are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.mixtures.evidence import Statistics
from bayou.mixtures.gaussians import Gaussians, with_covariance
from bayou.mixtures.harmony import Mixture, settled

SMALLEST = 1e-10  # noise, relative to the largest eigenvalue: a cluster that is flat to the last digits


class Factors(NamedTuple):
    """The subspace of a cluster: directions, a column per factor; variances along them beyond the noise; the noise."""

    directions: Matrix
    loadings: Vector
    noise: float


def factors_of(n: float, covariance: Matrix, most: int) -> Factors:
    """As many as the evidence says, and at most so many."""
    d = len(covariance)
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = np.maximum(values[::-1], SMALLEST * max(values[-1], 1e-300)), vectors[:, ::-1]
    best, best_m = -math.inf, 0
    for m in range(min(most, d - 1) + 1):
        noise = float(values[m:].mean())
        fit = d * math.log(2.0 * math.pi) + float(np.log(values[:m]).sum()) + (d - m) * math.log(noise) + d
        numbers = d + d * m - m * (m - 1) / 2 + 1
        score = -0.5 * n * fit - 0.5 * numbers * math.log(max(n, 2.0))
        if score > best:
            best, best_m = score, m
    noise = float(values[best_m:].mean())
    return Factors(vectors[:, :best_m].copy(), values[:best_m] - noise, noise)


def clusters_along_factors(statistics: Statistics, most: int) -> tuple[Gaussians, list[Factors]]:
    """The clusters that the sums tell, each on a subspace of its own."""
    n, s1, s2 = statistics
    mean = s1 / n[:, None]
    covariance = s2 / n[:, None, None] - np.einsum("ki,kj->kij", mean, mean)
    found = [factors_of(float(count), matrix, most) for count, matrix in zip(n, covariance, strict=True)]
    return with_covariance(n / n.sum(), mean, np.stack([covariance_of(factors) for factors in found])), found


def covariance_of(factors: Factors) -> NDArray[np.float64]:
    """The covariance that the factors stand for."""
    d = len(factors.directions)
    made: NDArray[np.float64] = (factors.directions * factors.loadings) @ factors.directions.T + factors.noise * np.eye(
        d
    )
    return made


def settle_factors(rows: Matrix, mixture: Mixture, most: int, matching: float) -> Mixture:
    """Let clusters whose number is found move on, along their subspaces."""
    return settled(rows, mixture, lambda statistics: clusters_along_factors(statistics, most)[0], matching)
