"""Some columns of a mixture given the others, p(missing | known) = sum_l p(l | known) p(missing | known, l).

A mixture of linear regressions: within a cluster the mean is linear in the known columns, and the variance is the same
for all rows. How probable each cluster is depends on the row, by the density of the known columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bayou.contracts import Mask, Matrix
from bayou.mixtures.gaussians import Gaussians, log_joint, with_covariance


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
