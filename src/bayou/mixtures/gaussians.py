"""Clusters as Gaussians, whatever their shape: densities of many points, and sums over them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.mixtures.evidence import Prior, Statistics
from bayou.mixtures.shapes import tell_cluster
from bayou.numerics.jit import kernel


class Gaussians(NamedTuple):
    """Shares, means, covariances; the inverse Cholesky factors and half log determinants of the covariances."""

    share: Vector
    mean: Matrix
    covariance: NDArray[np.float64]
    whitening: NDArray[np.float64]
    half_log_determinant: Vector


def gaussians_of(statistics: Statistics, prior: Prior) -> Gaussians:
    """The clusters that the sums tell, of the shape that the prior says."""
    n, s1, s2 = statistics
    k, d = s1.shape
    found = Gaussians(n / n.sum(), np.empty((k, d)), np.empty((k, d, d)), np.zeros((k, d, d)), np.empty(k))
    _tell(n, np.ascontiguousarray(s1), np.ascontiguousarray(s2), np.array(prior), *found[1:])
    return found


@kernel
def _tell(
    n: Vector,
    s1: Matrix,
    s2: NDArray[np.float64],
    prior: Vector,
    mean: Matrix,
    covariance: NDArray[np.float64],
    whitening: NDArray[np.float64],
    half_log_determinant: Vector,
) -> None:
    for c in range(n.size):
        half_log_determinant[c] = tell_cluster(n[c], s1[c], s2[c], prior, mean[c], covariance[c], whitening[c])


def with_covariance(share: Vector, mean: Matrix, covariance: NDArray[np.float64]) -> Gaussians:
    """Clusters, with what their densities need."""
    lower = np.linalg.cholesky(covariance)
    identity = np.eye(mean.shape[1])
    whitening = np.stack([scipy.linalg.solve_triangular(factor, identity, lower=True) for factor in lower])
    whitening = np.ascontiguousarray(whitening)  # kernels, and the bits of later products, ask for one layout
    half = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    return Gaussians(share, mean, covariance, whitening, half)


def log_joint(clusters: Gaussians, rows: Matrix) -> Matrix:
    """log share + log density of each row in each cluster: (row, cluster)."""
    values = np.empty((len(rows), clusters.share.size))
    for k, (mean, whitening) in enumerate(zip(clusters.mean, clusters.whitening, strict=True)):
        whitened = rows @ whitening.T - whitening @ mean
        values[:, k] = -0.5 * np.einsum("ni,ni->n", whitened, whitened)
    values += log_constants(clusters)
    return values


def log_constants(clusters: Gaussians) -> Vector:
    """log share + log density at the centre of each cluster."""
    d = clusters.mean.shape[1]
    with np.errstate(divide="ignore"):
        constants: Vector = np.log(clusters.share) - clusters.half_log_determinant - 0.5 * d * math.log(2.0 * math.pi)
    return constants


def collect(rows: Matrix, weights: Matrix) -> Statistics:
    """The sums over rows, each with its weight in each cluster."""
    k, d = weights.shape[1], rows.shape[1]
    s2 = np.empty((k, d, d))
    for j in range(k):
        s2[j] = (rows * weights[:, j : j + 1]).T @ rows
    return Statistics(weights.sum(axis=0), weights.T @ rows, s2)
