"""Functions that the user wrote in NumPy: their Gram matrix by Gauss-Legendre points, slopes by central differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from bayou.contracts import Code, Matrix, Vector
from bayou.errors import InvalidFeatures, InvalidSpec, ShapeMismatch
from bayou.numerics.grams import (
    SLOPE_UNIT,
    Box,
    GramBasis,
    checked_intervals,
    checked_rows,
    tensor_quadrature,
    whole_number,
)

MOST = 100_000
MOST_POINTS = 1_000_000
STEP = 6e-6  # in units of the side of the box: the cube root of the rounding of a number


class Integrals(NamedTuple):
    """Means over the box: of products, of products of slopes / 6, of each function."""

    gram: Matrix
    slopes: Matrix
    averages: Vector


def products(values: Matrix, weights: Vector) -> Matrix:
    """Sums of products by weight, symmetric to the last bit."""
    scaled = values * np.sqrt(weights)[:, None]
    return scaled.T @ scaled


@final
@dataclass(frozen=True, repr=False)
class UserFunctions(GramBasis):
    """``function(rows)`` gives the values (row, function) of ``n_functions`` functions at some rows of inputs.

    They should be smooth: means over the box are taken at ``n_points`` per input, the more the more they turn. A model
    file keeps all but the code, which it knows by ``name``: ``load(path, functions={name: function})``.

    >>> import numpy as np
    >>> from bayou import UserFunctions
    >>> def growth(rows):
    ...     return np.hstack([np.ones_like(rows), rows, np.log(rows)])
    >>> basis = UserFunctions(growth, n_functions=3, domain=((1.0, 100.0),))
    >>> basis
    UserFunctions(growth, 3 functions, domain=((1.0, 100.0),), n_points=64)
    >>> basis.encode(np.array([[1.0], [50.0]])).shape
    (2, 3)
    """

    function: Callable[[Matrix], Any]
    n_functions: int
    domain: Box
    n_points: int = 64
    name: str | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidSpec(f"`function` must be a function of rows of inputs; got {self.function!r}.")
        if self.name is None:
            said = getattr(self.function, "__name__", type(self.function).__name__)
            object.__setattr__(self, "name", str(said))
        object.__setattr__(self, "domain", checked_intervals(self.domain))
        object.__setattr__(self, "n_functions", whole_number("n_functions", self.n_functions, 1, MOST))
        object.__setattr__(self, "n_points", whole_number("n_points", self.n_points, 2, MOST_POINTS))
        if float(self.n_points) ** len(self.domain) > MOST_POINTS:
            raise InvalidSpec(
                f"`n_points` must make at most {MOST_POINTS} points; got {self.n_points} to the power of "
                f"{len(self.domain)} inputs."
            )

    def arguments(self) -> dict[str, Any]:
        """What it was made with, as data but for the code."""
        return {
            "function": Code(str(self.name)),
            "n_functions": self.n_functions,
            "domain": self.domain,
            "n_points": self.n_points,
            "name": self.name,
        }

    @property
    def box(self) -> Box:
        return self.domain

    def functions(self, rows: Matrix) -> Matrix:
        return self._called(checked_rows(rows, self.domain))

    def _called(self, rows: Matrix) -> Matrix:
        try:
            values = np.asarray(self.function(rows), dtype=np.float64)
        except Exception as error:  # whatever the user's code does
            raise InvalidSpec(
                f"{self.name!r} must be a function of rows of {len(self.domain)} inputs, which returns numbers; "
                f"{type(error).__name__}: {str(error)[:400]}"
            ) from error
        if values.shape != (len(rows), self.n_functions):
            raise ShapeMismatch(
                f"{self.name!r} must return an array of shape {(len(rows), self.n_functions)}; got {values.shape}."
            )
        finite = np.isfinite(values)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            raise InvalidFeatures(
                f"{self.name!r} must be finite everywhere in the box; function {column} is {values[row, column]} "
                f"at {rows[row].tolist()}."
            )
        return values

    @cached_property
    def _integrals(self) -> Integrals:
        points, weights = tensor_quadrature(self.domain, [self.n_points] * len(self.domain))
        values = self._called(points)
        slopes = np.zeros((self.n_functions, self.n_functions))
        for axis, (low, high) in enumerate(self.domain):
            x = points[:, axis]
            step = np.minimum(STEP * (high - low), 0.5 * np.minimum(x - low, high - x))
            above, below = points.copy(), points.copy()
            above[:, axis] += step
            below[:, axis] -= step
            apart = (above[:, axis] - below[:, axis]) / (high - low)
            slope = (self._called(above) - self._called(below)) / apart[:, None]
            slopes += products(slope, weights) / SLOPE_UNIT
        return Integrals(products(values, weights), slopes, weights @ values)

    def gram(self) -> Matrix:
        return self._integrals.gram.copy()

    def slopes(self) -> Matrix:
        return self._integrals.slopes.copy()

    def averages(self) -> Vector:
        return self._integrals.averages.copy()

    def extended(self, box: Box) -> tuple[UserFunctions, Matrix]:
        wider = UserFunctions(self.function, self.n_functions, box, self.n_points, self.name)
        return wider, np.eye(self.n_functions)

    def __repr__(self) -> str:
        told = f"{self.n_functions} functions, domain={self.domain}, n_points={self.n_points}"
        return f"UserFunctions({self.name}, {told})"
