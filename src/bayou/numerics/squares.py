"""What a row of features asks of a belief and does to it: C x, x' C x, and C less a rank of one; C is kept whole."""

from __future__ import annotations

import math

from bayou.contracts import Vector
from bayou.numerics.jit import borrowing_kernel
from bayou.numerics.short_squares import LEAST, MOST, along, take


@borrowing_kernel
def direct(covariance: Vector, x: Vector, direction: Vector) -> float:
    """C x, and x' C x, which rounding cannot make negative.

    By rows of C, four at a time, for C is symmetric; those of features that are zero are not looked at, which is most
    of them where features tell categories apart.
    """
    if LEAST <= x.size <= MOST:
        return max(along(covariance, x, x.size, direction), 0.0)
    size, waiting, a, b, c = x.size, 0, 0, 0, 0
    for j in range(size):
        direction[j] = 0.0
    for i in range(size):
        if x[i] != 0.0:
            if waiting == 3:
                add_rows(covariance, x, a, b, c, i, direction)
                waiting = 0
            else:
                a, b, c, waiting = b, c, i, waiting + 1
    if waiting > 0:
        add_row(covariance, x, c, direction)
    if waiting > 1:
        add_row(covariance, x, b, direction)
    if waiting > 2:
        add_row(covariance, x, a, direction)
    variance = 0.0
    for j in range(size):
        variance += direction[j] * x[j]
    return max(variance, 0.0)


@borrowing_kernel
def add_rows(covariance: Vector, x: Vector, a: int, b: int, c: int, d: int, direction: Vector) -> None:
    """Add four rows of C, each times its feature."""
    size = x.size
    sums, first, second = (
        direction[:size],
        covariance[a * size : (a + 1) * size],
        covariance[b * size : (b + 1) * size],
    )
    third, fourth = covariance[c * size : (c + 1) * size], covariance[d * size : (d + 1) * size]
    of_a, of_b, of_c, of_d = x[a], x[b], x[c], x[d]
    for j in range(sums.size):
        sums[j] += of_a * first[j] + of_b * second[j] + of_c * third[j] + of_d * fourth[j]


@borrowing_kernel
def add_row(covariance: Vector, x: Vector, a: int, direction: Vector) -> None:
    """Add one row of C, times its feature."""
    size, of_a = x.size, x[a]
    sums, row = direction[:size], covariance[a * size : (a + 1) * size]
    for j in range(sums.size):
        sums[j] += of_a * row[j]


@borrowing_kernel
def expected(mean: Vector, x: Vector) -> float:
    """E w . x."""
    total = 0.0
    for j in range(x.size):
        total += mean[j] * x[j]
    return total


@borrowing_kernel
def absorb(mean: Vector, covariance: Vector, direction: Vector, step: float, spread: float) -> None:
    """Move the belief: mean + step C x, C - spread C x x' C. The direction is used up.

    By a root of the spread, so that what is taken from C is symmetric to the last bit.
    """
    if LEAST <= mean.size <= MOST:
        take(covariance, mean, direction, mean.size, step, spread)
        return
    root, sign = math.sqrt(abs(spread)), math.copysign(1.0, spread)
    for i in range(mean.size):
        mean[i] += step * direction[i]
        direction[i] *= root
    for i in range(mean.size):
        row, factor = covariance[i * mean.size : (i + 1) * mean.size], sign * direction[i]
        for j in range(row.size):
            row[j] -= factor * direction[j]
