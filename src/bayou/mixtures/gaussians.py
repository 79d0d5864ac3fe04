"""Clusters as Gaussians, whatever their shape: densities of many points, and sums over them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.mixtures.evidence import Prior, Statistics
from bayou.mixtures.shapes import FULL, give_shape


class Gaussians(NamedTuple):
    """Shares, means, covariances; the inverse Cholesky factors and half log determinants of the covariances."""

    share: Vector
    mean: Matrix
    covariance: NDArray[np.float64]
    whitening: NDArray[np.float64]
    half_log_determinant: Vector


def gaussians_of(statistics: Statistics, prior: Prior) -> Gaussians:
    """The clusters that the sums tell: covariances are those of the points, and of the prior as so many more."""
    n, s1, s2 = statistics
    d = s1.shape[1]
    mean = s1 / n[:, None]
    covariance = s2 - n[:, None, None] * np.einsum("ki,kj->kij", mean, mean)
    covariance[:, np.arange(d), np.arange(d)] += prior.strength * prior.scale
    covariance /= (n + prior.strength)[:, None, None]
    if prior.shape != FULL:
        for matrix in covariance:
            give_shape(matrix, np.array(prior))
    return with_covariance(n / n.sum(), mean, covariance)


def with_covariance(share: Vector, mean: Matrix, covariance: NDArray[np.float64]) -> Gaussians:
    """Clusters, with what their densities need."""
    lower = np.linalg.cholesky(covariance)
    identity = np.eye(mean.shape[1])
    whitening = np.stack([scipy.linalg.solve_triangular(factor, identity, lower=True) for factor in lower])
    half = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    return Gaussians(share, mean, covariance, whitening, half)


def log_joint(clusters: Gaussians, rows: Matrix) -> Matrix:
    """log share + log density of each row in each cluster: (row, cluster)."""
    n, d = rows.shape
    values = np.empty((n, clusters.share.size))
    for k, (mean, whitening) in enumerate(zip(clusters.mean, clusters.whitening, strict=True)):
        whitened = rows @ whitening.T - whitening @ mean
        values[:, k] = -0.5 * np.einsum("ni,ni->n", whitened, whitened)
    with np.errstate(divide="ignore"):
        values += np.log(clusters.share) - clusters.half_log_determinant - 0.5 * d * math.log(2.0 * math.pi)
    return values


def collect(rows: Matrix, weights: Matrix) -> Statistics:
    """The sums over rows, each with its weight in each cluster."""
    k, d = weights.shape[1], rows.shape[1]
    s2 = np.empty((k, d, d))
    for j in range(k):
        s2[j] = (rows * weights[:, j : j + 1]).T @ rows
    return Statistics(weights.sum(axis=0), weights.T @ rows, s2)
