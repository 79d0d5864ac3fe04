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
from bayou.mixtures.joint import LITTLE, Blocks, blocks_of, joint_gaussians, predictive_noise

ROUNDS = 6  # until units of noise and subspaces agree
LEAST_UNIT = 1e-3  # of the noise of an input, squared
RIDGE = 1e-2  # as if so much of a row had no slope, in units of the variance along the factors


class SubspaceFunctions(NamedTuple):
    """The clusters as Gaussians of inputs and targets; the subspace of each, in the unit of noise of each input."""

    clusters: Gaussians
    factors: list[Factors]
    unit: Vector


def subspace_functions_of(statistics: Statistics, prior: Prior, most: int) -> SubspaceFunctions:
    """The clusters that the sums tell, each with as many factors as the evidence says, and at most so many."""
    blocks = blocks_of(statistics, prior.n_inputs)
    around = LITTLE * LITTLE * prior.scale / blocks.n[:, None, None] * np.eye(prior.n_inputs)
    blocks = blocks._replace(inputs=blocks.inputs + around)  # clusters of a single row have a size, too
    unit = _first_units(blocks)
    for _ in range(ROUNDS):
        made, found = _in_units(blocks, unit, most)
        unit = _noise_units(blocks, found, unit)
    return SubspaceFunctions(made, found, unit)


def _in_units(blocks: Blocks, unit: Vector, most: int) -> tuple[Gaussians, list[Factors]]:
    """The clusters, if the noise is the same for all inputs in these units."""
    whitened, cross = blocks.inputs / np.outer(unit, unit), blocks.cross / unit[:, None]
    inputs, slopes, noises, found = np.empty_like(blocks.inputs), np.empty_like(blocks.cross), [], []
    for c, n in enumerate(blocks.n.tolist()):
        factors, slope, noise = _function_of(n, whitened[c], cross[c], np.diagonal(blocks.targets[c]), most)
        inputs[c], slopes[c] = covariance_of(factors) * np.outer(unit, unit), slope / unit[:, None]
        noises.append(predictive_noise(noise, np.array(n), factors.loadings.size))
        found.append(factors)
    return joint_gaussians(blocks, inputs, slopes, np.stack(noises)), found


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
    """The deviation of each input that the others do not tell, within clusters.

    A noise that is the same for all in some unit of each may have any ratio between inputs, so nothing depends on the
    units of the rows.
    """
    pooled = np.einsum("k,kij->ij", blocks.n / blocks.n.sum(), blocks.inputs)
    deviation = np.sqrt(np.maximum(np.diagonal(pooled), 1e-300))
    correlation = pooled / np.outer(deviation, deviation)
    correlation[np.diag_indices_from(correlation)] = 1.0 + 1e-6  # inputs may be copies of each other
    alone: Vector = deviation / np.sqrt(np.diagonal(np.linalg.inv(correlation)))
    return alone


def _function_of(
    n: float, inputs: Matrix, cross: Matrix, variances: Vector, most: int
) -> tuple[Factors, Matrix, NDArray[np.float64]]:
    """Subspace, slopes and noises of one cluster."""
    d, n_targets = cross.shape
    values, vectors = np.linalg.eigh(inputs)
    values, vectors = np.maximum(values[::-1], SMALLEST * max(values[-1], 1e-300)), vectors[:, ::-1]
    along = vectors.T @ cross
    # Directions are uncorrelated: each explains its own part of the targets, whatever the others do.
    explained = np.vstack([np.zeros(n_targets), np.cumsum(along**2 / values[:, None], axis=0)])
    left = np.maximum(variances - explained, 0.0)
    log_n = math.log(max(n, 2.0))
    best, m = -math.inf, 0
    for count in range(min(most, d) + 1):
        fit = float(np.log(values[:count]).sum())
        numbers = d + d * count - count * (count - 1) / 2
        if count < d:
            fit += (d - count) * math.log(float(values[count:].mean()))
            numbers += 1.0
        fit += float(np.log((n * left[count] + LITTLE) / (n + LITTLE)).sum())
        numbers += (count + 2.0) * n_targets
        score = -0.5 * n * fit - 0.5 * numbers * log_n
        if score > best:
            best, m = score, count
    rest = float(values[m:].mean()) if m < d else SMALLEST * float(values[0])
    factors = Factors(vectors[:, :m].copy(), np.maximum(values[:m] - rest, 0.0), rest)
    ridge = RIDGE * float(values[:m].mean()) / n if m else 0.0
    slope = vectors[:, :m] @ (along[:m] / (values[:m, None] + ridge))
    return factors, slope, left[m]
