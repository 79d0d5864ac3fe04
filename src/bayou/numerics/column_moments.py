"""Weight, mean and summed squared deviations of columns, which add up and can be taken away again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.numerics.jit import vectorized_kernel


@vectorized_kernel
def sum_up(rows: Matrix, weights: Vector, weight: Vector, mean: Vector, squares: Vector) -> int:
    """Write the moments of rows; returns how many values were missing (NaN). Without weights each row counts one."""
    missing = 0
    for n in range(rows.shape[0]):
        row, count = rows[n], weights[n] if weights.size else 1.0
        for j in range(row.size):
            told = 1 if row[j] == row[j] else 0
            missing += 1 - told
            weight[j] += told * count
            mean[j] += count * row[j] if told else 0.0
    for j in range(mean.size):
        mean[j] /= weight[j] if weight[j] > 0.0 else 1.0
    for n in range(rows.shape[0]):
        row, count = rows[n], weights[n] if weights.size else 1.0
        for j in range(row.size):
            apart = row[j] - mean[j] if row[j] == row[j] else 0.0
            squares[j] += count * apart * apart
    return missing


class Moments(NamedTuple):
    """Per column: weight, mean and summed squared deviations of the values that are there."""

    weight: Vector
    mean: Vector
    squares: Vector

    @classmethod
    def none(cls, n_columns: int) -> Moments:
        """Of no rows."""
        return cls(*(np.zeros(n_columns) for _ in cls._fields))

    def joined(self, other: Moments) -> Moments:
        """Of the rows of both."""
        weight = self.weight + other.weight
        share = other.weight / np.where(weight > 0.0, weight, 1.0)
        step = other.mean - self.mean
        mean = np.where(self.weight > 0.0, self.mean + share * step, other.mean)
        return Moments(weight, mean, self.squares + other.squares + self.weight * share * step**2)

    def without(self, part: Moments) -> Moments:
        """Of the other rows, where a part is of some of them."""
        weight = np.maximum(self.weight - part.weight, 0.0)
        safe = np.where(weight > 0.0, weight, 1.0)
        mean = np.where(weight > 0.0, (self.weight * self.mean - part.weight * part.mean) / safe, 0.0)
        apart = weight * part.weight / np.where(self.weight > 0.0, self.weight, 1.0) * (part.mean - mean) ** 2
        return Moments(weight, mean, np.where(weight > 0.0, np.maximum(self.squares - part.squares - apart, 0.0), 0.0))


def moments_and_missing(rows: Matrix, weights: Vector | None = None) -> tuple[Moments, int]:
    """Of rows, in which NaN is a value that is missing; and how many are."""
    moments = Moments.none(rows.shape[1])
    counts = np.zeros(0) if weights is None else np.require(weights, np.float64, ["C", "W"])
    missing = sum_up(np.require(rows, np.float64, ["C", "W"]), counts, *moments)
    return moments, int(missing)
