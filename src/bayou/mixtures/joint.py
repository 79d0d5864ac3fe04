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
from bayou.mixtures.full import full_evidence
from bayou.mixtures.gaussians import Gaussians, with_covariance
from bayou.mixtures.shapes import FULL, NORMALISED_RADIAL

LEAST_NOISE = 1e-9  # variance, of standardised targets
LITTLE = 0.1  # rows that noises are believed to have the variance of all targets from
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


def predictive_noise(left: NDArray[np.float64], n: NDArray[np.float64], n_slopes: int) -> NDArray[np.float64]:
    """The variance that a row lies off by which was not learnt, from that of the residuals of those that were.

    They are less than the noise by the numbers that were fitted to them; and those numbers are uncertain, which adds as
    much again. Of no more rows than numbers nothing is known but the variance of all targets, which is 1.
    """
    numbers = 1.0 + n_slopes
    spread = (n * left + LITTLE) / (np.maximum(n - numbers, 0.0) + LITTLE)
    return np.asarray(spread * (1.0 + numbers / n))


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
    around = (strength * ridge + LITTLE * LITTLE * prior.scale) / n * np.eye(d)
    inputs = (blocks.inputs if prior.shape == FULL else ball) + around
    if prior.shape == NORMALISED_RADIAL:
        slope, n_slopes = np.zeros_like(blocks.cross), 0
    else:
        slope, n_slopes = np.asarray(np.linalg.solve(blocks.inputs + around, blocks.cross), dtype=np.float64), d
    left = np.diagonal(blocks.targets - np.swapaxes(blocks.cross, 1, 2) @ slope, axis1=1, axis2=2)
    return joint_gaussians(blocks, inputs, slope, predictive_noise(np.maximum(left, 0.0), blocks.n[:, None], n_slopes))


def _most_probable(statistics: Statistics, prior: Prior) -> tuple[float, float]:
    """Strength and scale under which the targets, given the inputs, are the most probable."""
    n, s1, s2 = statistics
    n_inputs, width = prior.n_inputs, s1.shape[1]
    best, found = -np.inf, (1.0, 1e-3)
    for strength in STRENGTHS:
        for ridge in RIDGES:
            numbers = np.array(prior._replace(strength=strength, scale=ridge))
            given = sum(
                full_evidence(n[c], s1[c], s2[c], numbers, 0, width)
                - full_evidence(n[c], s1[c], s2[c], numbers, 0, n_inputs)
                for c in range(n.size)
            )
            if given > best:
                best, found = given, (strength, ridge)
    return found
