"""exp(-|x - c|^2 / (2 l^2)) on a lattice of centres c: products of bumps of one input each.

With m = (c + d) / 2 and r = (c - d) / 2, the product of two bumps is exp(-r^2 / l^2) exp(-(x - m)^2 / l^2), whose mean
over an interval is a difference of erf; that of their slopes has the factor ((x - m)^2 - r^2) / l^4 inside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import erf

from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidSpec
from bayou.numerics.grams import SLOPE_UNIT, Box, checked_intervals, positive_numbers, whole_numbers
from bayou.numerics.lattices import MOST_CELLS, lengthened
from bayou.numerics.tensors import LatticeBasis, check_number


@final
@dataclass(frozen=True)
class RadialFunctions(LatticeBasis):
    """Gaussian bumps of width ``length_scale``, in units of the inputs: one for all, or one each; None is the spacing.

    ``n_centres`` and ``domain`` have an entry for each input; the first and the last centre are at the ends of the
    domain. Bumps much wider than the spacing are nearly combinations of each other: there are then fewer orthonormal
    functions than bumps. To grow, bumps are added at the same spacing.

    >>> import numpy as np
    >>> from bayou import RadialFunctions
    >>> basis = RadialFunctions(n_centres=(3,), domain=((0.0, 2.0),))
    >>> basis.functions(np.array([[0.0], [1.0]]))
    array([[1.  , 0.61, 0.14],
           [0.61, 1.  , 0.61]])
    >>> basis.grown(((-0.5, 2.0),))[0]
    RadialFunctions(n_centres=(4,), length_scale=None, domain=((-1.0, 2.0),))
    """

    n_centres: tuple[int, ...] = (10,)
    length_scale: float | tuple[float, ...] | None = None
    domain: Box = ((0.0, 1.0),)

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", checked_intervals(self.domain))
        n_inputs = len(self.domain)
        object.__setattr__(self, "n_centres", whole_numbers("n_centres", self.n_centres, 2, MOST_CELLS, n_inputs))
        check_number(self.n_centres, "n_centres")
        if self.length_scale is not None:
            object.__setattr__(self, "length_scale", positive_numbers("length_scale", self.length_scale, n_inputs))
            if any(not 1e-8 < self._length(axis) < 1e8 for axis in range(n_inputs)):
                raise InvalidSpec(
                    f"`length_scale` must be from 1e-8 to 1e8 sides of the domain; got {self.length_scale!r}."
                )

    @property
    def counts(self) -> tuple[int, ...]:
        return self.n_centres

    def _length(self, axis: int) -> float:
        """The width of the bumps along one input, in units of the side of the box."""
        if self.length_scale is None:
            return 1.0 / (self.n_centres[axis] - 1)
        low, high = self.domain[axis]
        given = self.length_scale if isinstance(self.length_scale, float) else self.length_scale[axis]
        return given / (high - low)

    def _centres(self, axis: int) -> Vector:
        return np.linspace(0.0, 1.0, self.n_centres[axis])

    def along(self, axis: int, x: Vector, table: Matrix | None) -> Matrix:
        low, high = self.domain[axis]
        distances = np.subtract.outer((x - low) / (high - low), self._centres(axis)) / self._length(axis)
        bumps = np.exp(-0.5 * distances * distances)
        return bumps if table is None else bumps @ table

    def _pairs(self, axis: int) -> tuple[Matrix, Matrix, Matrix]:
        """Per pair of bumps, in units of their width: where they meet, to either end of the box, and half their
        distance.
        """
        centres, length = self._centres(axis), self._length(axis)
        middles = 0.5 * np.add.outer(centres, centres)
        return middles / length, (1.0 - middles) / length, 0.5 * np.subtract.outer(centres, centres) / length

    def gram_along(self, axis: int) -> Matrix:
        below, above, apart = self._pairs(axis)
        gram: Matrix = np.exp(-(apart**2)) * (erf(above) + erf(below))
        return 0.5 * math.sqrt(math.pi) * self._length(axis) * gram

    def slopes_along(self, axis: int) -> Matrix:
        below, above, apart = self._pairs(axis)
        inside = 0.5 * math.sqrt(math.pi) * (erf(above) + erf(below)) * (0.5 - apart**2)
        ends = 0.5 * (above * np.exp(-(above**2)) + below * np.exp(-(below**2)))
        slopes: Matrix = np.exp(-(apart**2)) * (inside - ends) / (SLOPE_UNIT * self._length(axis))
        return slopes

    def averages_along(self, axis: int) -> Vector:
        reach = math.sqrt(2.0) * self._length(axis)
        centres = self._centres(axis)
        averages: Vector = 0.5 * math.sqrt(math.pi) * reach * (erf((1.0 - centres) / reach) + erf(centres / reach))
        return averages

    def extended(self, box: Box) -> tuple[RadialFunctions, tuple[int, ...]]:
        spaces = [n - 1 for n in self.n_centres]
        longer = [lengthened(*sides) for sides in zip(self.domain, spaces, box, strict=True)]
        n_centres, domain = tuple(n + 1 for _, _, n in longer), tuple(interval for interval, _, _ in longer)
        return RadialFunctions(n_centres, self.length_scale, domain), tuple(before for _, before, _ in longer)
