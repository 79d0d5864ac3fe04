"""Products with a few long rows: four of them at a time, in columns that stay in the nearest cache."""

from __future__ import annotations

import numpy as np

from bayou.contracts import Array, Matrix
from bayou.numerics.jit import vectorized_kernel

ROWS, COLUMNS = 4, 128


@vectorized_kernel
def project(rows: Array, count: int, first: int, vector: Array, along: Array) -> None:
    """along += the products of each of the first `count` rows, from column `first` on, with a vector."""
    last, fours = first + vector.size, count - count % ROWS
    for m in range(0, fours, ROWS):
        row0, row1 = rows[m, first:last], rows[m + 1, first:last]
        row2, row3 = rows[m + 2, first:last], rows[m + 3, first:last]
        sum0 = sum1 = sum2 = sum3 = 0.0
        for j in range(vector.size):
            value = vector[j]
            sum0 += row0[j] * value
            sum1 += row1[j] * value
            sum2 += row2[j] * value
            sum3 += row3[j] * value
        along[m] += sum0
        along[m + 1] += sum1
        along[m + 2] += sum2
        along[m + 3] += sum3
    for m in range(fours, count):
        row = rows[m, first:last]
        total = 0.0
        for j in range(vector.size):
            total += row[j] * vector[j]
        along[m] += total


@vectorized_kernel
def add_rows(rows: Array, count: int, first: int, shares: Array, vector: Array) -> None:
    """vector += the sum of share times row, over the first `count` rows, from column `first` on."""
    last, fours = first + vector.size, count - count % ROWS
    for m in range(0, fours, ROWS):
        row0, row1 = rows[m, first:last], rows[m + 1, first:last]
        row2, row3 = rows[m + 2, first:last], rows[m + 3, first:last]
        share0, share1, share2, share3 = shares[m], shares[m + 1], shares[m + 2], shares[m + 3]
        for j in range(vector.size):
            vector[j] += share0 * row0[j] + share1 * row1[j] + share2 * row2[j] + share3 * row3[j]
    for m in range(fours, count):
        row, share = rows[m, first:last], shares[m]
        for j in range(vector.size):
            vector[j] += share * row[j]


@vectorized_kernel
def remove_rows(rows: Array, count: int, vector: Array, along: Array) -> float:
    """Take from a vector what it has along the first `count` rows, which are orthonormal; its squared length then.

    Twice, as Gram and Schmidt must to stay orthogonal: the second time with what the first has left of each part.
    """
    once, again = np.zeros_like(along), np.zeros_like(along)
    for first in range(0, vector.size, COLUMNS):
        project(rows, count, first, vector[first : first + COLUMNS], once)
    for m in range(count):
        along[m] = once[m]
        once[m] = -once[m]
    for first in range(0, vector.size, COLUMNS):
        part = vector[first : first + COLUMNS]
        add_rows(rows, count, first, once, part)
        project(rows, count, first, part, again)
    for m in range(count):
        along[m] += again[m]
        again[m] = -again[m]
    left = 0.0
    for first in range(0, vector.size, COLUMNS):
        part = vector[first : first + COLUMNS]
        add_rows(rows, count, first, again, part)
        for j in range(part.size):
            left += np.float64(part[j]) * part[j]
    return left


@vectorized_kernel
def orthonormalize(rows: Matrix, corner: Matrix) -> None:
    """Gram and Schmidt, in place: rows = corner @ (the rows as they become), corner lower triangular."""
    for i in range(rows.shape[0]):
        row = rows[i]
        corner[i, i] = np.sqrt(remove_rows(rows, i, row, corner[i]))
        for j in range(row.size):
            row[j] /= max(corner[i, i], 1e-300)
