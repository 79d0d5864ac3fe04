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
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import scipy.linalg

from bayou.contracts import Basis, Matrix, Vector
from bayou.errors import InvalidFeatures, InvalidSpec, ShapeMismatch

Interval: TypeAlias = tuple[float, float]
Box: TypeAlias = tuple[Interval, ...]
G = TypeVar("G", bound="GramBasis")

# Eigenvalues of a Gram matrix below this fraction of the largest are rounding.
RANK_TOLERANCE = 1e-11
# Functions are told by others at so many points per function, and by combinations that this much of them is seen of.
N_MATCHED, MATCH_TOLERANCE = 8, 1e-12
# Roughnesses that differ by less are the same; entries above this fraction of the largest, no round number, are large.
AS_ROUGH, LARGE = 1e-8, 0.37
MOST_DENSE = 3000
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
    if not values[-1] > 0.0:
        raise InvalidSpec("the functions of a basis must not all be zero in its box; they are.")
    kept = values > RANK_TOLERANCE * values[-1]
    whitening = (vectors[:, kept] / np.sqrt(values[kept])).T * scale
    roughness, turn = scipy.linalg.eigh(whitening @ slopes @ whitening.T)
    return Orthonormal(settled(turn.T @ whitening, roughness), np.maximum(roughness, 0.0))


def check_dense(n_functions: int) -> None:
    """Raise if there are more functions than whole matrices are made of."""
    if n_functions > MOST_DENSE:
        raise InvalidSpec(
            f"at most {MOST_DENSE} functions along an input are made orthonormal; got {n_functions}. "
            "Learn the functions as they are."
        )


def settled(transform: Matrix, roughness: Vector) -> Matrix:
    """The same functions in a form that does not hang on rounding: on another machine they must be the same ones.

    Functions as rough as each other could be turned into each other: they are turned such that the first entry that is
    large in any of them is zero in all but the first, and so on. Then the first large entry of each is made positive.
    """
    rows = np.array(transform)
    apart = np.diff(roughness) > AS_ROUGH * (1.0 + np.abs(roughness[1:]))
    for cluster in np.split(np.arange(len(rows)), np.flatnonzero(apart) + 1):
        for first in cluster[:-1]:
            rest = rows[first : cluster[-1] + 1]
            column = rest[:, _first_large(np.linalg.norm(rest, axis=0))]
            frame = np.linalg.qr(column[:, None], mode="complete")[0]
            rows[first : cluster[-1] + 1] = frame.T @ rest
    signs = np.array([math.copysign(1.0, row[_first_large(np.abs(row))]) for row in rows])
    return np.ascontiguousarray(rows * signs[:, None])


def _first_large(sizes: Vector) -> int:
    return int(np.argmax(sizes >= LARGE * sizes.max()))


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


def whole_numbers(name: str, values: Any, least: int, most: int, n_inputs: int) -> tuple[int, ...]:
    """A plain whole number for each input."""
    if not isinstance(values, (tuple, list)) or len(values) != n_inputs:
        raise InvalidSpec(f"`{name}` must have an entry for each input, {n_inputs}, as a tuple; got {values!r}.")
    return tuple(whole_number(name, value, least, most) for value in values)


def positive_numbers(name: str, values: Any, n_inputs: int) -> float | tuple[float, ...]:
    """A plain positive number, or one for each input."""
    given = (
        np.asarray(values, dtype=np.float64)
        if isinstance(values, (int, float, np.generic, tuple, list))
        else np.zeros(0)
    )
    if given.shape not in {(), (n_inputs,)} or not np.all((given > 0.0) & (given < np.inf)):
        raise InvalidSpec(f"`{name}` must be positive: one number, or one for each of {n_inputs}; got {values!r}.")
    return tuple(given.tolist()) if given.ndim else float(given)


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


def checked_factors(factors: Any) -> tuple[Basis, ...]:
    """Bases over different inputs, at least one."""
    given = tuple(factors) if isinstance(factors, (tuple, list)) else (None,)
    if not given or not all(isinstance(factor, Basis) for factor in given):
        raise InvalidSpec(f"`factors` must be bases, at least one, as a tuple; got {factors!r}.")
    return given


def parts(whole: Any, factors: tuple[Basis, ...]) -> list[Any]:
    """Each factor's own columns of rows, or its own intervals of a box."""
    ends = np.cumsum([len(factor.box) for factor in factors]).tolist()
    cuts = [slice(end - len(factor.box), end) for end, factor in zip(ends, factors, strict=True)]
    return [whole[:, cut] if isinstance(whole, np.ndarray) else whole[cut] for cut in cuts]


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


def scattered(box: Box, n_points: int) -> Matrix:
    """Points that fill a box, more densely towards its edges, where smooth functions are the hardest to tell apart.

    Multiples of the inverse powers of the root of g^(d + 1) = g + 1, modulo one, fill a cube of d sides evenly.
    """
    g = 2.0
    for _ in range(60):
        g = (1.0 + g) ** (1.0 / (len(box) + 1.0))
    places = (0.5 + np.outer(np.arange(1, n_points + 1), g ** -np.arange(1.0, len(box) + 1.0))) % 1.0
    lows, highs = np.array(box).T
    points: Matrix = lows + (highs - lows) * (0.5 - 0.5 * np.cos(np.pi * places))
    return points


def matched(old: Matrix, new: Matrix) -> Matrix:
    """The matrix by which new functions give old ones, from the values of both at many points.

    For functions of which combinations were left out, this tells more than products of matrices would: among the
    combinations that are there, it finds those that agree in the old box, whatever they do elsewhere.
    """
    matrix: Matrix = scipy.linalg.lstsq(new, old, cond=MATCH_TOLERANCE)[0]
    return np.ascontiguousarray(matrix.T)


class RememberingBasis(Basis):
    """A basis that keeps what it has computed, but not in copies: a spec is its fields alone."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]  # a dataclass

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


class GramBasis(RememberingBasis):
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
        check_dense(self.averages().size)
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
        return self._grown(*self.extended(hull(self.box, box)))

    def _grown(self, wider: G, matrix: Matrix) -> tuple[G, Matrix]:
        transform = wider.orthonormal.transform
        if len(transform) == transform.shape[1]:
            return wider, self.orthonormal.transform @ matrix @ wider.gram() @ transform.T
        points = scattered(self.box, N_MATCHED * wider.size)
        return wider, matched(self.encode(points), wider.encode(points))
