"""Joint clusters of inputs and targets, as of a normalised network of radial functions.

Inputs make a ball, and targets are constant about its centre: E(z | x) is the mean of the targets' centres, weighted by
how near x is to those of the inputs (J. Moody and C. J. Darken, "Fast learning in networks of locally-tuned processing
units", Neural Computation 1, 1989).
"""

from __future__ import annotations

from bayou.contracts import Matrix, Vector
from bayou.mixtures.diagonal import diagonal_evidence, make_diagonal
from bayou.mixtures.spherical import make_spherical, spherical_evidence
from bayou.numerics.jit import kernel


@kernel
def normalised_radial_evidence(n: float, s1: Vector, s2: Matrix, prior: Vector, n_inputs: int) -> float:
    """log m(S) of one cluster: of its inputs, and of its targets."""
    inputs = spherical_evidence(n, s1, s2, prior, 0, n_inputs)
    return inputs + diagonal_evidence(n, s1, s2, prior, n_inputs, s1.size)


@kernel
def make_normalised_radial(covariance: Matrix, n_inputs: int) -> None:
    """Inputs a ball, targets independent of them and of each other."""
    make_diagonal(covariance)
    make_spherical(covariance, n_inputs)
