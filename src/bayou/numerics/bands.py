"""Gram matrices of local functions, as bands: products of a function with itself and with its next neighbours.

A band of a symmetric matrix has a row (A[i, i], A[i, i + 1], ...) per row i, that of a Cholesky factor L the rows
(L[i, i], L[i + 1, i], ...). A band as wide as the matrix is the whole of it: nothing is lost, and nothing gained.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from bayou.contracts import Array, Matrix, Vector
from bayou.errors import InvalidSpec, ShapeMismatch
from bayou.numerics.jit import kernel, vectorized_kernel


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
    inverse = np.zeros(factor.shape)
    _invert_within(factor, inverse)
    return inverse[:, 0].copy()


@kernel
def _invert_within(factor: Matrix, inverse: Matrix) -> None:
    """The band of A^-1: inverse[i, k] is its entry (i, i + k)."""
    n, width = factor.shape
    for i in range(n - 1, -1, -1):
        size = min(width, n - i)
        diagonal = 1.0 / (factor[i, 0] * factor[i, 0])
        for k in range(size - 1, 0, -1):
            total = 0.0
            for q in range(1, size):
                total += factor[i, q] * inverse[i + min(k, q), abs(k - q)]
            inverse[i, k] = -total / factor[i, 0]
            diagonal -= factor[i, k] / factor[i, 0] * inverse[i, k]
        inverse[i, 0] = diagonal


def to_band(symmetric: Matrix) -> Matrix:
    """All of a symmetric matrix, as a band."""
    n = len(symmetric)
    band = np.zeros((n, n))
    for j in range(n):
        band[j, : n - j] = symmetric[j, j:]
    return band


def from_band(factor: Matrix) -> Matrix:
    """The Cholesky factor, whole."""
    n, width = factor.shape
    lower = np.zeros((n, n))
    for k in range(width):
        lower[np.arange(k, n), np.arange(n - k)] = factor[: n - k, k]
    return lower
