"""Joint clusters of inputs and targets, as of an extended normalised network of radial functions.

Inputs make a ball, within which targets are linear in them (L. Xu, "RBF nets, mixture experts, and Bayesian Ying-Yang
learning", Neurocomputing 19, 1998).
"""

from __future__ import annotations

import math

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.mixtures.full import full_evidence
from bayou.mixtures.spherical import make_spherical, spherical_evidence
from bayou.numerics.jit import kernel


@kernel
def extended_radial_evidence(n: float, s1: Vector, s2: Matrix, prior: Vector, n_inputs: int) -> float:
    """log m(S) of one cluster: of its inputs, and of its targets given these, which is that of both over theirs."""
    given = full_evidence(n, s1, s2, prior, 0, s1.size) - full_evidence(n, s1, s2, prior, 0, n_inputs)
    return spherical_evidence(n, s1, s2, prior, 0, n_inputs) + given


@kernel
def make_extended_radial(covariance: Matrix, n_inputs: int) -> None:
    """Inputs a ball; targets linear in them by the same slope as before, with independent noise."""
    d = covariance.shape[0]
    # Row by row, the Cholesky factor: what inputs do not tell of a target is left on its diagonal.
    lower = np.zeros((d, d))
    for i in range(d):
        for j in range(min(i, n_inputs) + 1):
            value = covariance[i, j]
            for q in range(j):
                value -= lower[i, q] * lower[j, q]
            if j == i:
                lower[i, i] = math.sqrt(max(value, 1e-12 * covariance[i, i]))
            elif j < n_inputs:
                lower[i, j] = value / lower[j, j]
        if i >= n_inputs:
            value = covariance[i, i]
            for q in range(n_inputs):
                value -= lower[i, q] * lower[i, q]
            lower[i, i] = max(value, 1e-12)  # of targets the variance of the noise
    make_spherical(covariance, n_inputs)
    variance = covariance[0, 0]
    slope = np.empty((d, n_inputs))
    for i in range(n_inputs, d):
        for j in range(n_inputs - 1, -1, -1):
            value = lower[i, j]
            for q in range(j + 1, n_inputs):
                value -= slope[i, q] * lower[q, j]
            slope[i, j] = value / lower[j, j]
            covariance[i, j] = variance * slope[i, j]
            covariance[j, i] = covariance[i, j]
        for j in range(n_inputs, i + 1):
            value = lower[i, i] if j == i else 0.0
            for q in range(n_inputs):
                value += variance * slope[i, q] * slope[j, q]
            covariance[i, j] = value
            covariance[j, i] = value
