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
LEAST_PART = 1e-11  # of the variance of a target that is noise: less would be lost in rounding
LITTLE = 0.1  # rows that noises are believed to have the variance of all targets from, if there are no others
ROUNDING = 1e-14  # of squares, in which means far from zero are subtracted
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
    squares = s2 / n[:, None, None]
    covariance = squares - np.einsum("ki,kj->kij", mean, mean)
    own = np.arange(mean.shape[1])
    covariance[:, own, own] = np.maximum(covariance[:, own, own], 0.0) + ROUNDING * own.size * squares[:, own, own]
    x, z = slice(None, n_inputs), slice(n_inputs, None)
    return Blocks(n, mean, covariance[:, x, x], covariance[:, x, z], covariance[:, z, z])


def joint_gaussians(
    blocks: Blocks, inputs: NDArray[np.float64], slope: NDArray[np.float64], noise: Matrix
) -> Gaussians:
    """The Gaussians of inputs with these covariances, slopes (cluster, input, target) and noise (cluster, target)."""
    d, n_targets = slope.shape[1:]
    cross = inputs @ slope
    targets = np.swapaxes(slope, 1, 2) @ cross
    own = np.arange(n_targets)
    targets[:, own, own] += np.maximum(noise, LEAST_NOISE + LEAST_PART * targets[:, own, own])
    covariance = np.empty((len(noise), d + n_targets, d + n_targets))
    covariance[:, :d, :d], covariance[:, :d, d:] = inputs, cross
    covariance[:, d:, :d], covariance[:, d:, d:] = np.swapaxes(cross, 1, 2), targets
    return with_covariance(blocks.n / blocks.n.sum(), blocks.mean, covariance)


def unexplained(blocks: Blocks, slope: NDArray[np.float64]) -> Matrix:
    """The variance of each target that slopes leave, whether or not they are those that leave the least."""
    told = 2.0 * np.einsum("kit,kit->kt", slope, blocks.cross)
    told -= np.einsum("kit,kij,kjt->kt", slope, blocks.inputs, slope)
    left: Matrix = np.maximum(np.diagonal(blocks.targets, axis1=1, axis2=2) - told, 0.0)
    return left


def predictive_noise(left: Matrix, n: Matrix, n_slopes: NDArray[np.integer]) -> Matrix:
    """The variance that a row lies off by which was not learnt, from that of the residuals of those that were.

    They are less than the noise by the numbers that were fitted to them; and those numbers are uncertain, which adds as
    much again, and more if rows are few (the mean over normal inputs). That the noise is uncertain, too, makes it a
    Student t of as many degrees of freedom as rows are left.
    Of no more rows than numbers nothing is known but the variance of all targets, which is 1.
    """
    numbers = 1.0 + n_slopes
    free = np.maximum(n - numbers, 0.0)
    believed = little(free)
    spread = (n * left + believed) / (np.maximum(free - 2.0, 0.0) + believed)
    leverage = numbers / np.maximum(n - numbers - 1.0, np.minimum(n, numbers))
    noise: Matrix = np.minimum(spread, np.maximum(left, 1.0)) * (1.0 + leverage)
    return noise


def little(free: Matrix) -> Matrix:
    """As how many rows the belief in noises counts beside so many: it must not stand in the way of a tiny noise."""
    rows: Matrix = LITTLE / (1.0 + free) ** 2
    return rows


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
    left = unexplained(blocks, slope)
    return joint_gaussians(blocks, inputs, slope, predictive_noise(left, blocks.n[:, None], np.array(n_slopes)))


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
