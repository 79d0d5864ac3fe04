"""Subspace based functions: targets are linear in the factors of their cluster, and in nothing else (Xu 2009).

Inputs lie along a subspace of few directions, of which each cluster has its own; targets depend on where in it they
are. How many directions is decided by what they tell of both, in Schwarz's approximation: of the inputs as in
`bayou.mixtures.factors`, and of the targets

    log m = -(n / 2) [log 2 pi noise + 1] - (m + 2) / 2 log n      for each, with m slopes, a constant and a noise

All directions is a possible answer: then the inputs have a covariance without structure. (L. Xu, "Learning algorithms
for RBF functions and subspace based functions", in Handbook of Research on Machine Learning, IGI Global, 2009.)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.mixtures.evidence import Prior, Statistics
from bayou.mixtures.factors import SMALLEST, Factors, covariance_of
from bayou.mixtures.gaussians import Gaussians
from bayou.mixtures.joint import LITTLE, Blocks, blocks_of, joint_gaussians, little, predictive_noise, unexplained

ROUNDS = 6  # until units of noise and subspaces agree
LEAST_UNIT = 1e-3  # of the noise of an input, squared
AGREED = 1e-4  # relative
LEAST_WITHIN = 1e-9  # of the variance of an input that is within clusters: of less, that between them is its unit


class SubspaceFunctions(NamedTuple):
    """The clusters as Gaussians of inputs and targets; the subspace of each, in the unit of noise of each input."""

    clusters: Gaussians
    factors: list[Factors]
    unit: Vector


def subspace_functions_of(statistics: Statistics, prior: Prior, most: int) -> SubspaceFunctions:
    """The clusters that the sums tell, each with as many factors as the evidence says, and at most so many."""
    blocks = blocks_of(statistics, prior.n_inputs)
    sized = blocks._replace(inputs=blocks.inputs + _sizes(blocks))
    unit = _first_units(sized)
    for _ in range(ROUNDS):
        factors, slopes = _in_units(sized, unit, most)
        before, unit = unit, _noise_units(sized, factors, unit)
        if np.all(np.abs(unit - before) <= AGREED * before):
            break
    inputs = np.stack([covariance_of(one) * np.outer(before, before) for one in factors])
    slope = slopes / before[:, None]
    n_slopes = np.array([[one.loadings.size] for one in factors])
    noise = predictive_noise(unexplained(blocks, slope), blocks.n[:, None], n_slopes)
    return SubspaceFunctions(joint_gaussians(blocks, inputs, slope, noise), factors, before)


def _sizes(blocks: Blocks) -> NDArray[np.float64]:
    """What is added to the covariances of inputs, in units of each: clusters of a single row have a size, too.

    It is also the ridge of the slopes.
    """
    share = blocks.n / blocks.n.sum()
    d = blocks.inputs.shape[1]
    within = share @ np.diagonal(blocks.inputs, axis1=1, axis2=2)
    apart = blocks.mean[:, :d] - share @ blocks.mean[:, :d]
    total = within + share @ apart**2
    size = np.where(within > LEAST_WITHIN * total, within, total)
    sizes: NDArray[np.float64] = np.diag(np.where(size > 0.0, size, 1.0)) / blocks.n[:, None, None]
    return LITTLE * LITTLE * sizes


def _in_units(blocks: Blocks, unit: Vector, most: int) -> tuple[list[Factors], NDArray[np.float64]]:
    """Subspaces and slopes, if the noise is the same for all inputs in these units."""
    whitened, cross = blocks.inputs / np.outer(unit, unit), blocks.cross / unit[:, None]
    found, slopes = [], np.empty_like(cross)
    for c, n in enumerate(blocks.n.tolist()):
        factors, slopes[c] = _function_of(n, whitened[c], cross[c], np.diagonal(blocks.targets[c]), most)
        found.append(factors)
    return found, slopes


def _noise_units(blocks: Blocks, found: list[Factors], unit: Vector) -> Vector:
    """The deviation of each input that factors do not tell, over all clusters, each in units of its own noise."""
    total, weight = np.zeros_like(unit), 0.0
    for n, inputs, factors in zip(blocks.n, blocks.inputs, found, strict=True):
        if 2 * factors.loadings.size < unit.size:  # of more, too little is left to tell
            told = np.sum((factors.directions * np.sqrt(factors.loadings)) ** 2, axis=1)
            rest = np.diagonal(inputs) / unit**2 - told
            total += n * np.maximum(rest / factors.noise, LEAST_UNIT)
            weight += n
    return unit if weight == 0.0 else unit * np.sqrt(total / weight)


def _first_units(blocks: Blocks) -> Vector:
    """The deviation of each input that the others do not tell, within clusters, each of which may have its own noise.

    A noise that is the same for all in some unit of each may have any ratio between inputs, so nothing depends on the
    units of the rows. Clusters of too few rows tell nothing of it alone: if all are such, they do together.
    """
    d = blocks.inputs.shape[1]
    free = np.maximum(blocks.n - d - 1.0, 0.0)
    if free.sum() < d:
        return _alone(np.einsum("k,kij->ij", blocks.n / blocks.n.sum(), blocks.inputs))
    told = np.stack([np.log(_alone(inputs)) for inputs in blocks.inputs[free > 0.0]])
    weight = free[free > 0.0] / free.sum()
    level = told.mean(axis=1, keepdims=True)
    unit: Vector = np.exp(weight @ (told - level) + weight @ level)
    return unit


def _alone(covariance: Matrix) -> Vector:
    """The deviation of each column that the others do not tell."""
    deviation = np.sqrt(np.maximum(np.diagonal(covariance), 1e-300))
    correlation = covariance / np.outer(deviation, deviation)
    correlation[np.diag_indices_from(correlation)] = 1.0 + 1e-6  # inputs may be copies of each other
    alone: Vector = deviation / np.sqrt(np.diagonal(np.linalg.inv(correlation)))
    return alone


def _function_of(n: float, inputs: Matrix, cross: Matrix, variances: Vector, most: int) -> tuple[Factors, Matrix]:
    """Subspace and slopes of one cluster."""
    d, n_targets = cross.shape
    values, vectors = np.linalg.eigh(inputs)
    values, vectors = np.maximum(values[::-1], SMALLEST * max(values[-1], 1e-300)), vectors[:, ::-1]
    along = vectors.T @ cross
    # Directions are uncorrelated: each explains its own part of the targets, whatever the others do.
    explained = np.vstack([np.zeros(n_targets), np.cumsum(along**2 / values[:, None], axis=0)])
    left = np.maximum(variances - explained, 0.0)
    count = np.arange(d + 1)
    rest = np.append(np.cumsum(values[::-1])[::-1] / (d - count[:-1]), 1.0)  # means of those from a place on
    told = np.concatenate([[0.0], np.cumsum(np.log(values))])
    believed = little(np.maximum(n - 1.0 - count, 0.0))[:, None]
    log_left = np.log((n * left + believed) / (n + believed)).sum(axis=1)
    fit = told + (d - count) * np.log(rest) + log_left
    numbers = d + d * count - count * (count - 1) / 2 + (count < d) + (count + 2.0) * n_targets
    score = -0.5 * n * fit - 0.5 * numbers * math.log(max(n, 2.0))
    m = int(np.argmax(score[: min(most, d) + 1]))
    noise = float(rest[m]) if m < d else SMALLEST * float(values[0])
    factors = Factors(vectors[:, :m].copy(), np.maximum(values[:m] - noise, 0.0), noise)
    return factors, vectors[:, :m] @ (along[:m] / values[:m, None])
