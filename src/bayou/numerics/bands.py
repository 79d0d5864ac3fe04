"""Gram matrices of local functions, as bands: products of a function with itself and with its next neighbours.

A band of a symmetric matrix has a row (A[i, i], A[i, i + 1], ...) per row i, that of a Cholesky factor L the rows
(L[i, i], L[i + 1, i], ...). A band as wide as the matrix is the whole of it: nothing is lost, and nothing gained.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from bayou.contracts import Array, Matrix, Vector
from bayou.errors import InvalidSpec, ShapeMismatch
from bayou.numerics.jit import vectorized_kernel


@vectorized_kernel
def solve(factor: Matrix, x: Array, solution: Vector) -> None:
    """A^-1 x, by the band of the Cholesky factor."""
    n, width = factor.shape
    for i in range(n):
        solution[i] = x[i]
    for i in range(n):  # L z = x, column by column
        solution[i] /= factor[i, 0]
        for k in range(1, min(width, n - i)):
            solution[i + k] -= factor[i, k] * solution[i]
    for i in range(n - 1, -1, -1):  # L' s = z
        total = solution[i]
        for k in range(1, min(width, n - i)):
            total -= factor[i, k] * solution[i + k]
        solution[i] = total / factor[i, 0]


def band_factor(band: Matrix, n_features: int) -> Matrix:
    """The Cholesky factor of a Gram matrix, as a band: row i holds L[i, i], L[i + 1, i], ..."""
    if len(band) != n_features:
        raise ShapeMismatch(f"`basis` has {len(band)} functions; got {n_features} features.")
    try:
        lower: Matrix = scipy.linalg.cholesky_banded(np.ascontiguousarray(band.T), lower=True)
    except np.linalg.LinAlgError:
        raise InvalidSpec(
            "the functions of `basis` are combinations of each other, to the last digits; learn orthonormal ones."
        ) from None
    return np.ascontiguousarray(lower.T)


def inverse_diagonal(factor: Matrix) -> Vector:
    """Diagonal of A^-1, by the recursion of Takahashi, which needs the inverse within the band alone."""
    n, width = factor.shape
    inverse = np.zeros((n, width))  # inverse[i, k] is A^-1[i, i + k]
    for i in range(n - 1, -1, -1):
        m = min(width, n - i)
        ratio = factor[i, 1:m] / factor[i, 0]
        for k in range(m - 1, 0, -1):
            total = sum(ratio[q - 1] * inverse[i + min(k, q), abs(k - q)] for q in range(1, m))
            inverse[i, k] = -total
        inverse[i, 0] = 1.0 / factor[i, 0] ** 2 - float(ratio @ inverse[i, 1:m])
    return inverse[:, 0].copy()


def from_band(factor: Matrix) -> Matrix:
    """The Cholesky factor, whole."""
    n, width = factor.shape
    lower = np.zeros((n, n))
    for k in range(width):
        lower[np.arange(k, n), np.arange(n - k)] = factor[: n - k, k]
    return lower
