"""From any functions to orthonormal ones: W phi, with W G W' = I and W S W' = diag(roughness).

G is the Gram matrix of the functions, S that of their slopes. Functions that are nearly combinations of each other give
G eigenvalues that are nothing but rounding: these combinations are left out, so that there may be fewer orthonormal
functions than were named.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.linalg

from bayou.contracts import Basis, Matrix, Vector
from bayou.errors import InvalidFeatures, InvalidSpec, ShapeMismatch

Interval: TypeAlias = tuple[float, float]
Box: TypeAlias = tuple[Interval, ...]

# Eigenvalues of a Gram matrix below this fraction of the largest are rounding.
RANK_TOLERANCE = 1e-11
SLOPE_UNIT = 6.0  # the roughness of a straight line is 2, that of the k-th Legendre polynomial k (k + 1)
AT_THE_EDGE = 1e-9  # an input so little outside the box, in units of its side, is at the edge


class Orthonormal(NamedTuple):
    """W, whose rows are the orthonormal functions in terms of those named; and how rough each is."""

    transform: Matrix
    roughness: Vector


def orthonormalised(gram: Matrix, slopes: Matrix) -> Orthonormal:
    """The combinations of functions that are orthonormal, with orthogonal slopes, the smoothest first."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(gram), 1e-300))  # so that rank does not depend on how functions are scaled
    values, vectors = scipy.linalg.eigh(gram * np.outer(scale, scale))
    kept = values > RANK_TOLERANCE * values[-1]
    whitening = (vectors[:, kept] / np.sqrt(values[kept])).T * scale
    roughness, turn = scipy.linalg.eigh(whitening @ slopes @ whitening.T)
    transform = turn.T @ whitening
    signs = np.sign(transform[np.arange(len(transform)), np.argmax(np.abs(transform), axis=1)])
    return Orthonormal(np.ascontiguousarray(transform * signs[:, None]), np.maximum(roughness, 0.0))


def check_box(box: Box) -> None:
    """Raise unless every input has an interval that is finite and not empty."""
    if not box:
        raise InvalidSpec("`domain` must have an interval for each input; got none.")
    for interval in box:
        try:
            low, high = interval
            proper = math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)
        except (TypeError, ValueError):
            proper = False
        if not proper:
            raise InvalidSpec(f"`domain` must be finite intervals (low, high) with low < high; got {interval!r}.")


def checked_interval(interval: Any) -> Interval:
    """One interval, as plain floats."""
    check_box((interval,))
    low, high = interval
    return float(low), float(high)


def checked_intervals(box: Any) -> Box:
    """An interval for each input, as plain floats."""
    try:
        given = tuple(box)
    except TypeError:
        raise InvalidSpec(f"`domain` must be intervals (low, high), one for each input; got {box!r}.") from None
    check_box(given)
    return tuple((float(low), float(high)) for low, high in given)


def whole_number(name: str, value: Any, least: int, most: int) -> int:
    """A plain whole number within limits."""
    try:
        whole = int(value) == value and not isinstance(value, bool)
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole or not least <= value <= most:
        raise InvalidSpec(f"`{name}` must be a whole number from {least} to {most}; got {value!r}.")
    return int(value)


def checked_rows(rows: Any, box: Box) -> Matrix:
    """Rows of as many inputs as the box has, all of them inside it."""
    given = np.asarray(rows, dtype=np.float64)
    if given.ndim != 2 or given.shape[1] != len(box):
        raise ShapeMismatch(f"`rows` must have a column for each input, {len(box)}; got shape {given.shape}.")
    for column, (low, high) in enumerate(box):
        slack = AT_THE_EDGE * (high - low)
        outside = ~((given[:, column] >= low - slack) & (given[:, column] <= high + slack))  # NaN is outside
        if outside.any():
            row = int(np.argmax(outside))
            raise InvalidFeatures(
                f"input {column} must lie in [{low:g}, {high:g}]; got {given[row, column]} in row {row}. "
                "Give a wider domain, or let the basis grow."
            )
    lows, highs = np.array(box).T
    return np.clip(given, lows, highs)


def hull(one: Box, other: Box) -> Box:
    """The smallest box that holds both."""
    if len(one) != len(other):
        raise ShapeMismatch(f"`box` must have an interval for each input, {len(one)}; got {len(other)}.")
    check_box(other)
    return tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))


def gauss_legendre(interval: Interval, n_points: int, n_pieces: int = 1) -> tuple[Vector, Vector]:
    """Points, and weights that sum to one, for a mean over an interval that is cut in equal pieces."""
    points, weights = np.polynomial.legendre.leggauss(n_points)
    edges = np.linspace(*interval, n_pieces + 1)
    middles, halves = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    return (middles[:, None] + halves[:, None] * points).ravel(), np.tile(0.5 * weights / n_pieces, n_pieces)


def tensor_quadrature(box: Box, n_points: Sequence[int]) -> tuple[Matrix, Vector]:
    """Points, and weights that sum to one, for a mean over a box: Gauss-Legendre along each input."""
    per_input = [gauss_legendre(interval, n) for interval, n in zip(box, n_points, strict=True)]
    points = np.stack([axis.ravel() for axis in np.meshgrid(*(p for p, _ in per_input), indexing="ij")], axis=1)
    weights = np.ones(1)
    for _, along in per_input:
        weights = np.outer(weights, along).ravel()
    return points, weights


class GramBasis(Basis):
    """A basis that is made orthonormal by its Gram matrices: it says what its functions are, and how they grow."""

    @abstractmethod
    def slopes(self) -> Matrix:
        """The mean of the products of slopes / 6, each input in units of its side of the box; see `roughness`."""

    @abstractmethod
    def averages(self) -> Vector:
        """The mean of each function as it is over the box."""

    @abstractmethod
    def extended(self, box: Box) -> tuple[GramBasis, Matrix]:
        """As `grown`, but for the functions as they are."""

    @cached_property
    def orthonormal(self) -> Orthonormal:
        """The orthonormal functions in terms of those named, and their roughness."""
        return orthonormalised(self.gram(), self.slopes())

    @property
    def size(self) -> int:
        return len(self.orthonormal.transform)

    @property
    def roughness(self) -> Vector:
        return self.orthonormal.roughness

    @property
    def means(self) -> Vector:
        return self.orthonormal.transform @ self.averages()

    def encode(self, rows: Matrix) -> Matrix:
        return np.ascontiguousarray(self.functions(checked_rows(rows, self.box)) @ self.orthonormal.transform.T)

    def coefficients(self, weights: Vector) -> Vector:
        coefficients: Vector = weights @ self.orthonormal.transform
        return coefficients

    def grown(self, box: Box) -> tuple[Basis, Matrix]:
        wider, matrix = self.extended(hull(self.box, box))
        return wider, self.orthonormal.transform @ matrix @ wider.gram() @ wider.orthonormal.transform.T

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]  # a dataclass

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
