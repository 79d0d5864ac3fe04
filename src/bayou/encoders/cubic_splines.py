"""Uniform cubic B-splines: on each cell four cubic pieces that sum to one, with two derivatives across the cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.numerics.grams import (
    SLOPE_UNIT,
    Box,
    GramBasis,
    Interval,
    checked_interval,
    checked_rows,
    gauss_legendre,
    whole_number,
)
from bayou.numerics.lattices import (
    MOST_CELLS,
    averages_of,
    band_of,
    combined,
    dense,
    lengthened,
    located,
    shift,
    spread,
)

# Products of two cubic pieces are of degree six, which four points integrate exactly.
POINTS, WEIGHTS = gauss_legendre((0.0, 1.0), 4)


def pieces(s: Vector) -> Matrix:
    """The four splines that are not zero on a cell, at places from 0 to 1 in it."""
    r = 1.0 - s
    return np.stack([r * r * r, 4.0 - 3.0 * s * s * (1.0 + r), 4.0 - 3.0 * r * r * (1.0 + s), s * s * s], axis=1) / 6.0


def piece_slopes(s: Vector) -> Matrix:
    """Their slopes."""
    r = 1.0 - s
    return np.stack([-r * r, s * (3.0 * s - 4.0), r * (4.0 - 3.0 * r), s * s], axis=1) / 2.0


def products(values: Matrix) -> Matrix:
    """The mean over a cell of each product."""
    return values.T * WEIGHTS @ values


@final
@dataclass(frozen=True)
class CubicSplines(GramBasis):
    """Splines on so many equal cells of one input: ``n_cells + 3`` functions, each of them zero but on four cells.

    To grow, whole cells of the same width are added on either side.

    >>> import numpy as np
    >>> from bayou import CubicSplines
    >>> basis = CubicSplines(n_cells=2, domain=(0.0, 10.0))
    >>> basis.functions(np.array([[0.0], [5.0]]))
    array([[0.17, 0.67, 0.17, 0.  , 0.  ],
           [0.  , 0.17, 0.67, 0.17, 0.  ]])
    >>> basis.encode(np.array([[0.0]])).shape
    (1, 5)
    >>> basis.grown(((0.0, 12.0),))[0]
    CubicSplines(n_cells=3, domain=(0.0, 15.0))
    """

    n_cells: int = 20
    domain: Interval = (0.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_cells", whole_number("n_cells", self.n_cells, 1, MOST_CELLS))
        object.__setattr__(self, "domain", checked_interval(self.domain))

    @property
    def box(self) -> Box:
        return (self.domain,)

    def encode(self, rows: Matrix) -> Matrix:
        return combined(*self._local(rows), self._table)

    @cached_property
    def _table(self) -> Matrix:
        return np.ascontiguousarray(self.orthonormal.transform.T)

    def functions(self, rows: Matrix) -> Matrix:
        return spread(*self._local(rows), self.n_cells + 3)

    def _local(self, rows: Matrix) -> tuple[NDArray[np.int64], Matrix]:
        cells, s = located(checked_rows(rows, self.box)[:, 0], self.domain, self.n_cells)
        return cells, pieces(s)

    def gram(self) -> Matrix:
        return dense(self.gram_band())

    def gram_band(self) -> Matrix:
        return band_of(products(pieces(POINTS)), self.n_cells)

    def slopes(self) -> Matrix:
        return dense(band_of(products(piece_slopes(POINTS)) * (self.n_cells**2 / SLOPE_UNIT), self.n_cells))

    def averages(self) -> Vector:
        return averages_of(np.array([1.0, 11.0, 11.0, 1.0]) / 24.0, self.n_cells)

    def extended(self, box: Box) -> tuple[CubicSplines, Matrix]:
        domain, before, n_cells = lengthened(self.domain, self.n_cells, box[0])
        return CubicSplines(n_cells, domain), shift(self.n_cells + 3, before, n_cells + 3)
