"""Joint clusters of inputs and targets, as of an extended normalised network of radial functions.

Inputs make a ball, within which targets are linear in them (L. Xu, "RBF nets, mixture experts, and Bayesian Ying-Yang
learning", Neurocomputing 19, 1998).
"""

from __future__ import annotations

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.mixtures.full import full_evidence
from bayou.mixtures.spherical import make_spherical, spherical_evidence
from bayou.numerics.jit import kernel


@kernel
def extended_radial_evidence(n: float, s1: Vector, s2: Matrix, prior: Vector, n_inputs: int) -> float:
    """log m(S) of one cluster: of its inputs, and of its targets given these, which is that of both over theirs."""
    x1, x2 = s1[:n_inputs], s2[:n_inputs, :n_inputs]
    given = full_evidence(n, s1, s2, prior) - full_evidence(n, x1, x2, prior)
    return spherical_evidence(n, x1, x2, prior) + given


@kernel
def make_extended_radial(covariance: Matrix, n_inputs: int) -> None:
    """Inputs a ball; targets linear in them by the same slope as before, with independent noise."""
    inputs, cross = covariance[:n_inputs, :n_inputs].copy(), covariance[:n_inputs, n_inputs:].copy()
    slope = np.linalg.solve(inputs, cross)
    noise = np.diag(covariance[n_inputs:, n_inputs:] - cross.T @ slope).copy()
    make_spherical(covariance[:n_inputs, :n_inputs])
    variance = covariance[0, 0]
    for i in range(n_inputs):
        for j in range(noise.size):
            covariance[i, n_inputs + j] = variance * slope[i, j]
            covariance[n_inputs + j, i] = variance * slope[i, j]
    explained = variance * (slope.T @ slope)
    for j in range(noise.size):
        for q in range(noise.size):
            covariance[n_inputs + j, n_inputs + q] = explained[j, q]
        covariance[n_inputs + j, n_inputs + j] += max(noise[j], 1e-12)
