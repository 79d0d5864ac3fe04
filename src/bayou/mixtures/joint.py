"""Clusters of inputs and targets, as local linear regressions: parts of their sums, and the Gaussians they make.

Within a cluster targets are z = mean_z + B' (x - mean_x) + noise, independent between targets. With the covariance C of
the inputs this is a Gaussian of (x, z) whose blocks are C, C B and B' C B + diag noise. It tells all that is asked:
whose a point is by both, whose by its inputs alone, and what targets to expect.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.mixtures.evidence import Prior, Statistics
from bayou.mixtures.gaussians import Gaussians, with_covariance
from bayou.mixtures.shapes import FULL, NORMALISED_RADIAL, full_evidences

LEAST_NOISE = 1e-9  # variance, of standardised targets
RIDGES = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)  # variances that are tried for the prior of a regression
STRENGTHS = (0.01, 1.0, 4.0, 16.0)


class Blocks(NamedTuple):
    """Per cluster: points, means of all columns, covariances of inputs, of inputs with targets, and of targets."""

    n: Vector
    mean: Matrix
    inputs: NDArray[np.float64]
    cross: NDArray[np.float64]
    targets: NDArray[np.float64]


def blocks_of(statistics: Statistics, n_inputs: int) -> Blocks:
    """The parts of the sums, of which the first columns are inputs."""
    n, s1, s2 = statistics
    mean = s1 / n[:, None]
    covariance = s2 / n[:, None, None] - np.einsum("ki,kj->kij", mean, mean)
    x, z = slice(None, n_inputs), slice(n_inputs, None)
    return Blocks(n, mean, covariance[:, x, x], covariance[:, x, z], covariance[:, z, z])


def joint_gaussians(
    blocks: Blocks, inputs: NDArray[np.float64], slope: NDArray[np.float64], noise: Matrix
) -> Gaussians:
    """The Gaussians of inputs with these covariances, slopes (cluster, input, target) and noise (cluster, target)."""
    d, n_targets = slope.shape[1:]
    cross = inputs @ slope
    targets = np.swapaxes(slope, 1, 2) @ cross
    targets[:, np.arange(n_targets), np.arange(n_targets)] += np.maximum(noise, LEAST_NOISE)
    covariance = np.empty((len(noise), d + n_targets, d + n_targets))
    covariance[:, :d, :d], covariance[:, :d, d:] = inputs, cross
    covariance[:, d:, :d], covariance[:, d:, d:] = np.swapaxes(cross, 1, 2), targets
    return with_covariance(blocks.n / blocks.n.sum(), blocks.mean, covariance)


def unseen(n: Vector, n_slopes: Vector | int) -> Vector:
    """How much wider a row that was not learnt lies than those that were: their residuals are less than the noise by
    the numbers that were fitted to them, and those numbers are uncertain, which adds as much again.
    """
    numbers = 1.0 + np.asarray(n_slopes)
    return np.asarray((n + numbers) / np.maximum(n - numbers, 1.0))


def local_regressions(statistics: Statistics, prior: Prior) -> Gaussians:
    """The clusters that the sums tell, of the shape that the prior says, for prediction.

    Inputs make a ball or have any covariance: then it is the alternative mixture of experts (L. Xu, M. I. Jordan and
    G. E. Hinton, "An alternative model for mixtures of experts", 1995). The prior of structures is too strong for a
    regression, whose noise may be tiny: slopes and noises have one of their own, the most probable of some.
    """
    d = prior.n_inputs
    blocks = blocks_of(statistics, d)
    n = blocks.n[:, None, None]
    ball = np.trace(blocks.inputs, axis1=1, axis2=2)[:, None, None] / d * np.eye(d)
    strength, ridge = _most_probable(statistics, prior)
    around = strength * ridge / n * np.eye(d)
    inputs = (blocks.inputs if prior.shape == FULL else ball) + around
    if prior.shape == NORMALISED_RADIAL:
        slope, n_slopes = np.zeros_like(blocks.cross), 0
    else:
        slope, n_slopes = np.asarray(np.linalg.solve(blocks.inputs + around, blocks.cross), dtype=np.float64), d
    left = np.diagonal(blocks.targets - np.swapaxes(blocks.cross, 1, 2) @ slope, axis1=1, axis2=2)
    noise = (blocks.n[:, None] * left + strength * ridge) / (blocks.n[:, None] + strength)
    return joint_gaussians(blocks, inputs, slope, noise * unseen(blocks.n, n_slopes)[:, None])


def _most_probable(statistics: Statistics, prior: Prior) -> tuple[float, float]:
    """Strength and scale under which the targets, given the inputs, are the most probable."""
    d = prior.n_inputs
    inputs = Statistics(statistics.n, statistics.s1[:, :d].copy(), statistics.s2[:, :d, :d].copy())
    best, found = -np.inf, (1.0, 1e-3)
    for strength in STRENGTHS:
        for ridge in RIDGES:
            numbers = np.array(prior._replace(strength=strength, scale=ridge))
            given = full_evidences(*statistics, numbers) - full_evidences(*inputs, numbers)
            if float(given.sum()) > best:
                best, found = float(given.sum()), (strength, ridge)
    return found
