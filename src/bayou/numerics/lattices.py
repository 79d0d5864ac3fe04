"""Functions on a lattice of equal cells: local ones, their Gram matrices, and how a lattice grows by whole cells."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidSpec
from bayou.numerics.grams import AT_THE_EDGE, Interval
from bayou.numerics.jit import vectorized_kernel

MOST_CELLS = 100_000


def located(x: Vector, interval: Interval, n_cells: int) -> tuple[NDArray[np.int64], Vector]:
    """The cell that each x lies in, and where in it, from 0 to 1."""
    low, high = interval
    place = (x - low) / (high - low) * n_cells
    cells = np.minimum(place.astype(np.int64), n_cells - 1)
    return cells, place - cells


@vectorized_kernel
def _combine(cells: NDArray[np.int64], values: Matrix, table: Matrix, combined: Matrix) -> None:
    for n in range(cells.size):
        for j in range(table.shape[1]):
            combined[n, j] = values[n, 0] * table[cells[n], j]
        for k in range(1, values.shape[1]):
            for j in range(table.shape[1]):
                combined[n, j] += values[n, k] * table[cells[n] + k, j]


def combined(cells: NDArray[np.int64], values: Matrix, table: Matrix) -> Matrix:
    """Functions that are not zero from their cell on, times a table with a row per function."""
    result = np.empty((len(cells), table.shape[1]))
    _combine(cells, values, table, result)
    return result


def spread(cells: NDArray[np.int64], values: Matrix, n_functions: int) -> Matrix:
    """The same functions in full, with their zeros."""
    result = np.zeros((len(cells), n_functions))
    np.put_along_axis(result, cells[:, None] + np.arange(values.shape[1]), values, axis=1)
    return result


def band_of(block: Matrix, n_cells: int) -> Matrix:
    """The mean over all cells of products of local functions, from that over one cell, as in `Basis.gram_band`."""
    width = len(block)
    band = np.zeros((n_cells + width - 1, width))
    for i in range(width):
        for distance in range(width - i):
            band[i : i + n_cells, distance] += block[i, i + distance] / n_cells
    return band


def dense(band: Matrix) -> Matrix:
    """A symmetric matrix from its band."""
    n, width = band.shape
    matrix = np.zeros((n, n))
    for distance in range(min(n, width)):
        here = np.arange(n - distance)
        matrix[here, here + distance] = matrix[here + distance, here] = band[: n - distance, distance]
    return matrix


def averages_of(shares: Vector, n_cells: int) -> Vector:
    """The mean over all cells of local functions, from that over one cell."""
    averages = np.zeros(n_cells + len(shares) - 1)
    for i, share in enumerate(shares):
        averages[i : i + n_cells] += share / n_cells
    return averages


def lengthened(interval: Interval, n_cells: int, wider: Interval) -> tuple[Interval, int, int]:
    """The interval with whole cells added until it holds a wider one: also how many before, and how many in all."""
    low, high = interval
    cell = (high - low) / n_cells
    needed = [(low - wider[0]) / cell, (wider[1] - high) / cell]
    if not n_cells + sum(needed) < MOST_CELLS:
        raise InvalidSpec(
            f"`box` must be reached by at most {MOST_CELLS} cells of width {cell:g}; got {wider!r} beyond {interval!r}."
        )
    before, after = (math.ceil(n - AT_THE_EDGE) for n in needed)
    longer = (low - before * cell if before else low, high + after * cell if after else high)
    return longer, before, before + n_cells + after


def shift(n_functions: int, before: int, n_longer: int) -> Matrix:
    """Each of some functions among those of a longer lattice, which has so many more before the first."""
    return np.eye(n_functions, n_longer, before)
