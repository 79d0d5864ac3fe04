"""The algorithms as the paper writes them, in NumPy, for all sequences at once: what the production learners must do.

IRMA is (8), a system of equations for every example. In exact arithmetic it does not depend on the basis. So it is
solved in Chebyshev polynomials, which are neither the paper's powers (whose equations lose up to all digits) nor
bayou's orthonormal polynomials (which leave nothing to solve).
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.papers.buschermoehle2013.sequences import DOMAIN, GROWTH, START, Sequences


def chebyshev_at(x: Vector, order: int, domain: tuple[float, float] = DOMAIN) -> Matrix:
    """T_0 ... T_order over the domain."""
    low, high = domain
    return np.asarray(chebyshev.chebvander(2.0 * (x - low) / (high - low) - 1.0, order))


def integrals(order: int, domain: tuple[float, float] = DOMAIN) -> Matrix:
    """A of (9): the integral of T_i T_j over the domain, by quadrature, which is exact."""
    nodes, weights = np.polynomial.legendre.leggauss(order + 1)
    low, high = domain
    values = chebyshev_at(low + 0.5 * (high - low) * (nodes + 1.0), order, domain)
    return np.asarray(0.5 * (high - low) * (values.T * weights) @ values)


def incremental_risk(
    sequences: Sequences, order: int, domain: tuple[float, float] = DOMAIN
) -> tuple[Matrix, NDArray[np.float64]]:
    """(8), for every example: predictions before it, and in the end the weights of each sequence."""
    A = integrals(order, domain)
    theta, said = np.zeros((len(sequences.x), order + 1)), np.empty(sequences.x.shape)
    sigma = START
    for t, (x, y) in enumerate(zip(sequences.x.T, sequences.y.T, strict=True)):
        phi = chebyshev_at(x, order, domain)
        said[:, t] = np.einsum("ij,ij->i", theta, phi)
        right = theta @ A + phi * y[:, None] / sigma
        theta = np.linalg.solve(A + phi[:, :, None] * phi[:, None, :] / sigma, right[:, :, None])[:, :, 0]
        sigma *= GROWTH
    return said, theta


def normalised_gradient(sequences: Sequences, order: int, decay: float) -> Matrix:
    """GD on the coefficients, with the rate that meets each target; predictions before each."""
    theta, said = np.zeros((len(sequences.x), order + 1)), np.empty(sequences.x.shape)
    for t, (x, y) in enumerate(zip(sequences.x.T, sequences.y.T, strict=True)):
        phi = np.vander(x, order + 1, increasing=True)
        said[:, t] = np.einsum("ij,ij->i", theta, phi)
        theta += (phi * (y - said[:, t])[:, None] - decay * theta) / np.sum(phi**2, axis=1)[:, None]
    return said


def recursive_least_squares(sequences: Sequences, order: int, forgetting: float, ridge: float) -> Matrix:
    """RLS on the coefficients, by R theta = r; predictions before each."""
    n, identity = len(sequences.x), np.eye(order + 1)
    R, r, said = np.tile(identity, (n, 1, 1)), np.zeros((n, order + 1)), np.empty(sequences.x.shape)
    theta = np.zeros((n, order + 1))
    for t, (x, y) in enumerate(zip(sequences.x.T, sequences.y.T, strict=True)):
        phi = np.vander(x, order + 1, increasing=True)
        said[:, t] = np.einsum("ij,ij->i", theta, phi)
        R = forgetting * R + phi[:, :, None] * phi[:, None, :] + (1.0 - forgetting) * ridge * identity
        r = forgetting * r + phi * y[:, None]
        theta = np.linalg.solve(R, r[:, :, None])[:, :, 0]
    return said
