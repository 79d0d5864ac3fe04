"""z = (x - mean) / deviation, with the moments of what has come so far.

A row that is learnt counts in the moments before it is scaled, so the first row gives zeros and nothing is thrown away.
A value that is missing (NaN) gives 0, marked as missing; a column that has not varied gives 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayou.contracts import Array, Mask, Matrix, Spec, Vector
from bayou.errors import InvalidFeatures, ShapeMismatch
from bayou.numerics.jit import kernel

# Squares of larger values would overflow.
LARGEST = 1e140


class Moments(NamedTuple):
    """Per column: the weight of the rows seen, their mean, and their sum of squared deviations."""

    weight: Vector
    mean: Vector
    squares: Vector


@kernel
def count(moments: Moments, row: Vector, weight: float) -> None:
    """Let a row into the moments (West's update: every term of the sum of squares is a product of equal signs)."""
    if weight <= 0.0:
        return
    for j in range(row.size):
        if math.isnan(row[j]):
            continue
        if moments.weight[j] == 0.0:
            moments.weight[j], moments.mean[j] = weight, row[j]
            continue
        total = moments.weight[j] + weight
        before = row[j] - moments.mean[j]
        moments.mean[j] += before * (weight / total)
        moments.squares[j] += max(weight * before * (row[j] - moments.mean[j]), 0.0)
        moments.weight[j] = total


@kernel
def scale(moments: Moments, row: Vector, first: int, features: Array, missing: Mask) -> int:
    """Write the scaled row to features[first:]; returns how many values were missing."""
    absent = 0
    for j in range(row.size):
        features[first + j] = 0.0
        missing[first + j] = False
        if moments.squares[j] > 0.0:
            if math.isnan(row[j]):
                missing[first + j] = True
                absent += 1
            else:
                deviation = math.sqrt(moments.squares[j] / moments.weight[j])
                features[first + j] = (row[j] - moments.mean[j]) / deviation
    return absent


@kernel
def count_and_scale(
    moments: Moments, rows: Matrix, weights: Vector, learn: int, first: int, features: Array, missing: Mask
) -> int:
    """Each row in turn: counted, if ``learn``, then scaled; returns how many values were missing.

    A value too large to square stops it at that row, before the row is counted; then it returns -1.
    """
    absent = 0
    for n in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            if abs(rows[n, j]) > LARGEST:
                return -1
        if learn:
            count(moments, rows[n], weights[n] if n < weights.size else 1.0)
        absent += scale(moments, rows[n], first, features[n], missing[n])
    return absent


@dataclass(frozen=True)
class Standardizer(Spec):
    """Running standardisation of numbers.

    >>> import numpy as np
    >>> from bayou import Standardizer
    >>> encoder = Standardizer()
    >>> moments = encoder.begin(2)
    >>> encoder.learn(moments, np.array([[1.0, 7.0], [3.0, 7.0]]))
    >>> features, missing = encoder.encode(moments, np.array([[3.0, np.nan]]))
    >>> features, missing
    (array([[1., 0.]]), array([[False, False]]))
    """

    def begin(self, n_columns: int) -> Moments:
        """Moments of no rows."""
        return Moments(np.zeros(n_columns), np.zeros(n_columns), np.zeros(n_columns))

    def learn(self, moments: Moments, rows: Matrix, weights: Vector | None = None) -> None:
        """Let rows into the moments, in place."""
        checked = _checked(moments, rows)
        features, missing = np.empty_like(checked), np.empty(checked.shape, dtype=np.bool_)
        count_and_scale(moments, checked, np.zeros(0) if weights is None else weights, 1, 0, features, missing)

    def encode(self, moments: Moments, rows: Matrix) -> tuple[Matrix, Mask]:
        """Scaled rows, and which of their values are missing."""
        checked = _checked(moments, rows)
        features, missing = np.empty_like(checked), np.empty(checked.shape, dtype=np.bool_)
        count_and_scale(moments, checked, np.zeros(0), 0, 0, features, missing)
        return features, missing

    def deviations(self, moments: Moments) -> Vector:
        """Standard deviation per column; 1 where a column has not varied."""
        varied = moments.squares > 0.0
        return np.where(varied, np.sqrt(moments.squares / np.where(varied, moments.weight, 1.0)), 1.0)


def _checked(moments: Moments, rows: Matrix) -> Matrix:
    rows = np.require(rows, dtype=np.float64, requirements=["C", "W"])
    if rows.ndim != 2 or rows.shape[1] != moments.mean.size:
        raise ShapeMismatch(f"`rows` must have {moments.mean.size} columns; got shape {rows.shape}.")
    check_magnitude(rows)
    return rows


def check_magnitude(rows: Matrix) -> None:
    """Raise if a value is too large to square; NaN passes, as missing."""
    with np.errstate(invalid="ignore"):
        large = np.abs(rows) > LARGEST
    if large.any():
        row, column = np.argwhere(large)[0]
        raise InvalidFeatures(
            f"features must be finite and below {LARGEST:g} in size; "
            f"got {rows[row, column]} in row {row}, column {column}."
        )
