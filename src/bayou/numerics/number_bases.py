"""Bases over the numbers of a table: cubic splines of each, or powers and products of all.

Knots and units are those of the first rows, and stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from scipy.interpolate import BSpline

from bayou.contracts import Matrix, State, Vector
from bayou.errors import InvalidSpec

MOST_PRODUCTS = 2000
DEGREE = 3
FARTHEST = 6.0  # deviations, beyond which a power is told as at this one


class NumberBasis:
    """What numbers become beside themselves: ``"spline"`` with ``count`` inner knots each, or ``"polynomial"`` up to a
    degree of ``count``.
    """

    def __init__(self, kind: str, count: int, columns: Sequence[str], frame: Matrix, knots: Matrix) -> None:
        self.kind, self.count, self.columns = kind, count, list(columns)
        self._frame, self._knots = frame, knots  # centre and deviation; knots of each column
        self._products = _products(len(self.columns), count) if kind == "polynomial" else []
        self.names = self._names()

    def _names(self) -> list[str]:
        if self.kind == "spline":
            return [f"{name} spline {k}" for name in self.columns for k in range(1, self._per_column + 1)]
        return [
            " ".join(_power(self.columns[j], product.count(j)) for j in sorted(set(product)))
            for product in self._products
        ]

    @property
    def _per_column(self) -> int:
        return int(self._knots.shape[1]) - DEGREE - 1

    def features(self, values: Matrix) -> Matrix:
        """Of each row; NaN where a number that counts is missing."""
        if self.kind == "polynomial":
            scaled = np.clip((values - self._frame[0]) / self._frame[1], -FARTHEST, FARTHEST)
            return np.column_stack([scaled[:, list(product)].prod(axis=1) for product in self._products])
        rows = np.full((len(values), len(self.names)), np.nan)
        for j, knots in enumerate(self._knots):
            told = np.flatnonzero(~np.isnan(values[:, j]))
            if told.size:
                inside = np.clip(values[told, j], knots[DEGREE], knots[-DEGREE - 1])
                part = slice(j * self._per_column, (j + 1) * self._per_column)
                rows[told, part] = BSpline.design_matrix(inside, knots, DEGREE).toarray()
        return rows

    def to_state(self) -> State:
        """All of it, as data."""
        config = {"kind": self.kind, "count": self.count, "columns": list(self.columns)}
        return State(config, {"basis.frame": self._frame, "basis.knots": self._knots})

    @classmethod
    def from_state(cls, state: State) -> NumberBasis:
        """The basis that this data describes."""
        config: dict[str, Any] = state.config
        arrays = state.arrays["basis.frame"], state.arrays["basis.knots"]
        return cls(config["kind"], int(config["count"]), config["columns"], *arrays)


def basis_for(kind: str, count: int, columns: Sequence[str], values: Sequence[Vector]) -> NumberBasis:
    """A basis for numbers of which these are the first."""
    if kind == "polynomial" and len(_products(len(columns), count)) > MOST_PRODUCTS:
        raise InvalidSpec(
            f"`basis` must have at most {MOST_PRODUCTS} products; polynomial:{count} of {len(columns)} numbers is more."
        )
    told = [column[~np.isnan(column)] for column in values]
    told = [column if column.size else np.zeros(1) for column in told]
    deviations = [float(column.std()) or 1.0 for column in told]
    frame = np.array([[float(column.mean()) for column in told], deviations])
    knots = np.stack([_knots(column, count) for column in told]) if kind == "spline" else np.zeros((0, 0))
    return NumberBasis(kind, count, columns, frame, knots)


def _knots(values: Vector, count: int) -> Vector:
    """As many inner knots at quantiles of the values, distinct; the ends as often as a cubic needs."""
    low, high = float(values.min()), float(values.max())
    if high <= low:
        low, high = low - 0.5, high + 0.5
    inner = np.unique(np.quantile(values, np.arange(1, count + 1) / (count + 1)))
    inner = inner[(inner > low) & (inner < high)]
    even = low + (high - low) * np.arange(1, count + 1) / (count + 1)
    knots = inner if inner.size == count else even  # few distinct values: evenly
    return np.concatenate([np.full(DEGREE + 1, low), knots, np.full(DEGREE + 1, high)])


def _products(n_columns: int, degree: int) -> list[tuple[int, ...]]:
    return [p for k in range(2, degree + 1) for p in combinations_with_replacement(range(n_columns), k)]


def _power(name: str, power: int) -> str:
    return name if power == 1 else f"{name}^{power}"
