"""The shapes that clusters may have: which of them a prior names decides how probable points are, and how they lie.

The number of a shape is part of model files: it never changes its meaning.
"""

from __future__ import annotations

import math

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.mixtures.diagonal import diagonal_evidence, make_diagonal
from bayou.mixtures.extended_radial import extended_radial_evidence, make_extended_radial
from bayou.mixtures.full import full_evidence
from bayou.mixtures.normalised_radial import make_normalised_radial, normalised_radial_evidence
from bayou.mixtures.spherical import make_spherical, spherical_evidence
from bayou.numerics.jit import kernel

FULL, DIAGONAL, SPHERICAL, NORMALISED_RADIAL, EXTENDED_RADIAL = range(5)
SHAPE, N_INPUTS = 3, 4  # places in a prior


@kernel
def evidence_of(n: float, s1: Vector, s2: Matrix, prior: Vector) -> float:
    """log m(S) of one cluster, of whose products those below the diagonal are read; 0 of no point."""
    shape, n_inputs = int(prior[SHAPE]), int(prior[N_INPUTS])
    if shape == DIAGONAL:
        return diagonal_evidence(n, s1, s2, prior, 0, s1.size)
    if shape == SPHERICAL:
        return spherical_evidence(n, s1, s2, prior, 0, s1.size)
    if shape == NORMALISED_RADIAL:
        return normalised_radial_evidence(n, s1, s2, prior, n_inputs)
    if shape == EXTENDED_RADIAL:
        return extended_radial_evidence(n, s1, s2, prior, n_inputs)
    return full_evidence(n, s1, s2, prior, 0, s1.size)


@kernel
def give_shape(covariance: Matrix, prior: Vector) -> None:
    """Make a covariance of any shape one of this."""
    shape, n_inputs = int(prior[SHAPE]), int(prior[N_INPUTS])
    if shape == DIAGONAL:
        make_diagonal(covariance)
    elif shape == SPHERICAL:
        make_spherical(covariance, covariance.shape[0])
    elif shape == NORMALISED_RADIAL:
        make_normalised_radial(covariance, n_inputs)
    elif shape == EXTENDED_RADIAL:
        make_extended_radial(covariance, n_inputs)


@kernel
def tell_cluster(
    n: float, s1: Vector, s2: Matrix, prior: Vector, mean: Vector, covariance: Matrix, whitening: Matrix
) -> float:
    """What the sums of one cluster tell: its mean, its covariance, which is that of the points and of the prior as so
    many more, and the inverse Cholesky factor of this; returns half of its log determinant.
    """
    d = s1.size
    strength, scale = prior[1], prior[2]
    for i in range(d):
        mean[i] = s1[i] / n
    for i in range(d):
        for j in range(i + 1):
            value = s2[i, j] - n * mean[i] * mean[j]
            if i == j:
                value = max(value, 0.0) + strength * scale  # far from zero, rounding may leave less than nothing
            covariance[i, j] = value / (n + strength)
            covariance[j, i] = covariance[i, j]
    give_shape(covariance, prior)
    lower = np.empty((d, d))
    half_log_determinant = 0.0
    for i in range(d):
        for j in range(i + 1):
            value = covariance[i, j]
            for q in range(j):
                value -= lower[i, q] * lower[j, q]
            if i == j:
                lower[i, i] = math.sqrt(max(value, 1e-12 * scale))
                half_log_determinant += math.log(lower[i, i])
            else:
                lower[i, j] = value / lower[j, j]
    for j in range(d):
        for i in range(j, d):
            value = 1.0 if i == j else 0.0
            for q in range(j, i):
                value -= lower[i, q] * whitening[q, j]
            whitening[i, j] = value / lower[i, i]
    return half_log_determinant
