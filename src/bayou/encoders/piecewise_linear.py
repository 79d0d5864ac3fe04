"""Multilinear interpolation on a lattice: along each input hats 1 - |x - node| / cell, over several their products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.numerics.grams import SLOPE_UNIT, Box, checked_intervals, whole_numbers
from bayou.numerics.lattices import MOST_CELLS, averages_of, band_of, combined, dense, lengthened, located, spread
from bayou.numerics.tensors import LatticeBasis, check_number

# The means over a cell of products of the two hats that meet there, and of their slopes.
PRODUCTS = np.array([[2.0, 1.0], [1.0, 2.0]]) / 6.0
SLOPES = np.array([[1.0, -1.0], [-1.0, 1.0]])


@final
@dataclass(frozen=True)
class PiecewiseLinear(LatticeBasis):
    """Functions that are linear along each input between the nodes of a lattice: their weights are its values there.

    ``n_cells`` and ``domain`` have an entry for each input. To grow, whole cells of the same width are added.

    >>> import numpy as np
    >>> from bayou import PiecewiseLinear
    >>> basis = PiecewiseLinear(n_cells=(4,), domain=((0.0, 8.0),))
    >>> basis.functions(np.array([[2.0], [7.5]]))
    array([[0.  , 1.  , 0.  , 0.  , 0.  ],
           [0.  , 0.  , 0.  , 0.25, 0.75]])
    >>> basis.gram_band()[:2]
    array([[0.08, 0.04],
           [0.17, 0.04]])
    >>> PiecewiseLinear(n_cells=(4, 3), domain=((0.0, 8.0), (-1.0, 1.0))).size
    20
    """

    n_cells: tuple[int, ...] = (10,)
    domain: Box = ((0.0, 1.0),)

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", checked_intervals(self.domain))
        object.__setattr__(self, "n_cells", whole_numbers("n_cells", self.n_cells, 1, MOST_CELLS, len(self.domain)))
        check_number(self.counts, "n_cells")

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(n + 1 for n in self.n_cells)

    def along(self, axis: int, x: Vector, table: Matrix | None) -> Matrix:
        cells, s = located(x, self.domain[axis], self.n_cells[axis])
        hats = np.stack([1.0 - s, s], axis=1)
        return spread(cells, hats, self.counts[axis]) if table is None else combined(cells, hats, table)

    def gram_along(self, axis: int) -> Matrix:
        return dense(band_of(PRODUCTS, self.n_cells[axis]))

    def slopes_along(self, axis: int) -> Matrix:
        n = self.n_cells[axis]
        return dense(band_of(SLOPES * (n**2 / SLOPE_UNIT), n))

    def averages_along(self, axis: int) -> Vector:
        return averages_of(np.array([0.5, 0.5]), self.n_cells[axis])

    def gram_band(self) -> Matrix:
        return band_of(PRODUCTS, self.n_cells[0]) if len(self.n_cells) == 1 else super().gram_band()

    def extended(self, box: Box) -> tuple[PiecewiseLinear, tuple[int, ...]]:
        longer = [lengthened(*sides) for sides in zip(self.domain, self.n_cells, box, strict=True)]
        wider = PiecewiseLinear(tuple(n for _, _, n in longer), tuple(interval for interval, _, _ in longer))
        return wider, tuple(before for _, before, _ in longer)
