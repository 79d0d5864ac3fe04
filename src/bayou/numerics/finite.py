"""One look at a matrix before it is learnt."""

import numpy as np

from bayou.contracts import Array
from bayou.errors import InvalidFeatures
from bayou.numerics.jit import vectorized_kernel

LARGE = 1e60


@vectorized_kernel
def count_beyond(rows: Array, bound: float) -> float:
    """How many values are not within the bound; NaN never is. (A maximum would not use the machine's width.)"""
    count = 0.0
    for n in range(rows.shape[0]):
        row = rows[n]
        for j in range(row.size):
            count += 0.0 if abs(row[j]) <= bound else 1.0
    return count


@vectorized_kernel
def count_larger(values: Array, bound: float) -> float:
    """How many values are beyond the bound; NaN never is."""
    count = 0.0
    for n in range(values.size):
        count += 1.0 if abs(values[n]) > bound else 0.0
    return count


def any_large(rows: Array) -> bool:
    """Whether any value could make a latent overflow; raises if one is not even finite."""
    large = count_beyond(rows, LARGE) > 0.0
    if large and not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise InvalidFeatures(f"`features` must be finite; got {rows[row, column]} in row {row}, column {column}.")
    return large
