"""Some columns of a mixture given the others, p(missing | known) = sum_l p(l | known) p(missing | known, l).

A mixture of linear regressions: within a cluster the mean is linear in the known columns, and the variance is the same
for all rows. How probable each cluster is depends on the row, by the density of the known columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr, ndtri

from bayou.contracts import Mask, Matrix, Vector
from bayou.mixtures.gaussians import Gaussians, log_joint, with_covariance

HALVINGS = 60


class Conditional(NamedTuple):
    """Per row and cluster its probability and the means of the missing columns; per cluster their variances."""

    chance: Matrix  # (row, cluster)
    mean: NDArray[np.float64]  # (row, cluster, missing column)
    variance: Matrix  # (cluster, missing column)


def conditional(clusters: Gaussians, known: Matrix, missing: Mask) -> Conditional:
    """What the known columns of each row tell of the missing ones; ``missing`` marks these among all columns."""
    here, n = ~missing, len(known)
    own = np.diagonal(clusters.covariance, axis1=1, axis2=2)[:, missing]
    if not here.any():
        chance = np.tile(clusters.share / clusters.share.sum(), (n, 1))
        return Conditional(chance, np.tile(clusters.mean[:, missing], (n, 1, 1)), own.copy())
    seen = with_covariance(clusters.share, clusters.mean[:, here], clusters.covariance[:, here][:, :, here])
    joint = log_joint(seen, known)
    chance = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    # Of the cross covariance C and whitening W of the known columns: mean C W'W (x - mean), variance lost |C W'|^2.
    towards = np.einsum("kmh,kgh->kmg", clusters.covariance[:, missing][:, :, here], seen.whitening)
    slope = np.einsum("kmg,kgh->khm", towards, seen.whitening)
    mean = np.empty((n, clusters.share.size, int(missing.sum())))
    for k in range(clusters.share.size):
        mean[:, k] = clusters.mean[k, missing] + (known - seen.mean[k]) @ slope[k]
    return Conditional(chance, mean, np.maximum(own - np.sum(towards**2, axis=2), 0.0))


def mixed(found: Conditional) -> tuple[Matrix, Matrix]:
    """Mean and variance over all clusters: (row, missing column) each."""
    mean: Matrix = np.einsum("nk,nkm->nm", found.chance, found.mean)
    apart = found.mean - mean[:, None]
    variance: Matrix = np.einsum("nk,nkm->nm", found.chance, found.variance + apart**2)
    return mean, variance


def log_density(found: Conditional, values: Matrix) -> Vector:
    """Log density of the missing columns of each row, if they are these."""
    apart = (values[:, None] - found.mean) ** 2 / found.variance
    each = -0.5 * np.sum(apart + np.log(2.0 * np.pi * found.variance), axis=2)
    with np.errstate(divide="ignore"):  # a cluster may be out of the question
        density: Vector = logsumexp(each + np.log(found.chance), axis=1)
    return density


def quantiles(found: Conditional, probabilities: Vector) -> NDArray[np.float64]:
    """Quantiles of each missing column: (row, missing column, probability).

    Between the least and the greatest of those of its clusters, where the distribution crosses the probability.
    """
    n, _, m = found.mean.shape
    made = np.empty((n, m, probabilities.size))
    deviation = np.sqrt(found.variance)
    for place, probability in enumerate(probabilities):
        own = found.mean + deviation * ndtri(probability)
        low, high = own.min(axis=1), own.max(axis=1)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            with np.errstate(divide="ignore", invalid="ignore"):  # without noise: 0 / 0 where it is the value itself
                z = np.nan_to_num((middle[:, None] - found.mean) / deviation, nan=0.0)
            below = np.einsum("nk,nkm->nm", found.chance, ndtr(z)) < probability
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        made[:, :, place] = 0.5 * (low + high)
    return made
