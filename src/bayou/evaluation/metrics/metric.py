"""What all metrics share: a value, its standard error, and counts that are added, faded and told as data."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayou.contracts import Matrix, State, Vector
from bayou.errors import InvalidPrediction, InvalidSpec, InvalidTarget, ModelFileError, ShapeMismatch

SMALLEST_PROBABILITY = 2.0**-52  # a class that was thought impossible costs 36 nats, not infinity
NUMBER_OF_BINS = 20
TOLERANCE = 1e-6  # by which probabilities may be above 1

Codes = NDArray[np.intp]


class Metric(ABC):
    """One score of all the rows counted so far; NaN where there are too few of them."""

    settings: ClassVar[tuple[str, ...]] = ()  # what it is made with
    counted: ClassVar[tuple[str, ...]] = ()  # numbers and arrays that rows change; of none, it cannot be merged
    fades: ClassVar[bool] = False  # whether rows may count less than one

    @property
    @abstractmethod
    def value(self) -> float:
        """The score."""

    @property
    def standard_error(self) -> float:
        """How far the score may be from that of endlessly many such rows; NaN if that is not known."""
        return math.nan

    def fresh(self) -> Self:
        """One of the same settings that has counted nothing yet."""
        return type(self)(**{name: getattr(self, name) for name in self.settings})

    def merge(self, other: Metric) -> None:
        """Count all that the other has counted, too."""
        self.check_alike(other)
        for name in self.counted:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def check_alike(self, other: Metric) -> None:
        """Raise unless the other counts the same things."""
        if not self.counted:
            raise InvalidSpec(f"{type(self).__name__} cannot be merged: it looks at rows in their order.")
        if type(other) is not type(self):
            raise InvalidSpec(f"{type(self).__name__} must be merged with one of its kind; got {other!r}.")
        for name in self.settings:
            own, given = getattr(self, name), getattr(other, name)
            if own != given:
                raise InvalidSpec(f"metrics that are merged must have the same `{name}`, {own!r}; got {given!r}.")

    def fade(self, kept: float) -> None:
        """Let every row so far count ``kept`` times as much."""
        raise InvalidSpec(f"{type(self).__name__} cannot fade: its rows are there or not.")

    def to_state(self) -> State:
        """All of it, as data."""
        if not self.counted:
            raise InvalidSpec(f"{type(self).__name__} cannot be told as data.")
        config: dict[str, Any] = {"metric": type(self).__name__}
        arrays: dict[str, NDArray[Any]] = {}
        for name in (*self.settings, *self.counted):
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                arrays[name] = value.copy()
            else:
                config[name] = value.item() if isinstance(value, np.generic) else value
        return State(config, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The metric that this data describes; it continues to the last bit. `Metric.from_state` takes any kind."""
        name = state.config.get("metric")
        kind = _kinds(cls).get(name) if isinstance(name, str) else None
        if kind is None:
            raise ModelFileError(f"the data must be of a {cls.__name__}; got {name!r}.")
        try:
            metric: Self = kind.made_of(state)
        except (KeyError, TypeError) as error:
            raise ModelFileError(f"the data of {name} must be complete; got {error!r}.") from error
        return metric

    @classmethod
    def made_of(cls, state: State) -> Self:
        """One of just this kind, of its data."""
        metric = cls(**{name: state.config[name] for name in cls.settings})
        for name in cls.counted:
            own = getattr(metric, name)
            if isinstance(own, np.ndarray):
                saved = state.arrays[name]
                if saved.dtype != own.dtype or not metric.has_room(name, saved.shape):
                    raise ModelFileError(
                        f"`{name}` must be {own.dtype} of shape {own.shape}; got {saved.dtype} of {saved.shape}."
                    )
                setattr(metric, name, saved.copy())
            else:
                saved = state.config[name]
                if isinstance(saved, bool) or not isinstance(saved, (int, float)):
                    raise ModelFileError(f"`{name}` must be a number; got {saved!r}.")
                setattr(metric, name, saved)
        return metric

    def has_room(self, name: str, shape: tuple[int, ...]) -> bool:
        """Whether counts may have this shape."""
        own: tuple[int, ...] = getattr(self, name).shape
        return shape == own

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value:.4g} ± {self.standard_error:.2g})"


def _kinds(kind: type[Metric]) -> dict[str, type[Any]]:
    """A metric and those derived from it, by name."""
    found = {kind.__name__: kind}
    for part in kind.__subclasses__():
        found |= _kinds(part)
    return found


class Weighed(Metric):
    """A metric whose rows may have weights: ``rows`` is the sum of them.

    Its standard error is that of as many rows of equal weight as tell as much, ``effective_rows``.
    """

    fades: ClassVar[bool] = True
    keeps: ClassVar[tuple[str, ...]] = ()  # what is counted and does not fade

    rows: Any
    squared_weights: float

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return float(np.sum(self.rows))

    @property
    def effective_rows(self) -> float:
        """How many rows of equal weight would tell as much."""
        return self.total**2 / self.squared_weights if self.squared_weights else 0.0

    @property
    def inflation(self) -> float:
        """By what unequal weights multiply a standard error: the root of the weight by the effective rows."""
        return math.sqrt(self.squared_weights / self.total) if self.total else math.nan

    def fade(self, kept: float) -> None:
        if not 0.0 <= kept <= 1.0:
            raise InvalidSpec(f"`kept` must lie between 0 and 1; got {kept!r}.")
        for name in self.counted:
            if name not in self.keeps:
                setattr(self, name, getattr(self, name) * (kept**2 if name == "squared_weights" else kept))


class Mean(Weighed):
    """The mean of one number per row."""

    counted: ClassVar[tuple[str, ...]] = ("rows", "squared_weights", "mean", "squares")
    keeps: ClassVar[tuple[str, ...]] = ("mean",)

    def __init__(self) -> None:
        self.rows: float = 0
        self.squared_weights: float = 0
        self.mean = self.squares = 0.0

    def count(self, values: NDArray[Any], weights: ArrayLike | None = None) -> None:
        """Count more rows: each portion adds its own moments, so that large values do not cancel."""
        if values.ndim != 1:
            raise ShapeMismatch(f"`values` must be one number per row; got shape {values.shape}.")
        given = checked_weights(weights, len(values))
        if not values.size:
            return
        total, squared = summed_weights(given, values.size)
        if not total:
            return
        mean = float(np.mean(values)) if given is None else float(given @ values) / total
        if math.isnan(mean) and np.isnan(values).any():
            row = int(np.argmax(np.isnan(values)))
            raise InvalidPrediction(f"{type(self).__name__} must be of numbers; got nan in row {row}.")
        if math.isfinite(mean):
            squares = (values - mean) ** 2
            self._add(total, squared, mean, float(squares.sum() if given is None else given @ squares))
        else:
            self._add(total, squared, mean, math.inf)

    def add_moments(self, rows: int, mean: float, squares: float) -> None:
        """Count so many rows more, of this mean and sum of squared distances from it."""
        self._add(rows, rows, mean, squares)

    def _add(self, total: float, squared: float, mean: float, squares: float) -> None:
        before, self.rows = self.rows, self.rows + total
        self.squared_weights += squared
        if not before:
            self.mean, self.squares = mean, squares
        elif math.isfinite(mean) and math.isfinite(self.mean):
            shift = (mean - self.mean) * total / self.rows
            self.squares += squares + shift * (mean - self.mean) * before
            self.mean += shift
        else:  # once infinite, always so
            self.mean, self.squares = self.mean + mean, math.inf

    def merge(self, other: Metric) -> None:
        self.check_alike(other)
        if isinstance(other, Mean) and other.rows:
            self._add(other.rows, other.squared_weights, other.mean, other.squares)

    @property
    def value(self) -> float:
        return self.mean if self.rows else math.nan

    @property
    def standard_error(self) -> float:
        effective = self.effective_rows
        return math.sqrt(self.squares / self.rows / (effective - 1.0)) if effective > 1.0 else math.nan


def checked_weights(weights: ArrayLike | None, rows: int) -> Vector | None:
    """How much each row counts; None if all count one."""
    if weights is None:
        return None
    given = np.asarray(weights, dtype=np.float64)
    if given.shape != (rows,):
        raise ShapeMismatch(f"`weights` must be one number for each of {rows} rows; got shape {given.shape}.")
    if not np.all((given >= 0.0) & (given < math.inf)):
        bad = given[~((given >= 0.0) & (given < math.inf))][0]
        raise InvalidSpec(f"`weights` must be finite, 0 or more; got {bad}.")
    return given


def summed_weights(weights: Vector | None, rows: int) -> tuple[float, float]:
    """The sum of the weights, and that of their squares: whole numbers if all count one."""
    return (rows, rows) if weights is None else (float(weights.sum()), float(weights @ weights))


def check_classes(probabilities: Matrix, codes: Codes) -> None:
    """Raise unless there is a row of probabilities for each code, with a column for it."""
    if probabilities.ndim != 2 or codes.ndim != 1 or len(probabilities) != len(codes):
        wanted = f"a row for each of {codes.shape} codes and a column per class"
        raise ShapeMismatch(f"`probabilities` must have {wanted}; got shape {probabilities.shape}.")
    if not codes.size:
        return
    if not (probabilities.min() >= 0.0 and probabilities.max() <= 1.0 + TOLERANCE):  # of NaN neither is true
        bad = probabilities[~((probabilities >= 0.0) & (probabilities <= 1.0 + TOLERANCE))][0]
        raise InvalidPrediction(f"`probabilities` must lie between 0 and 1; got {bad}.")
    last = probabilities.shape[1] - 1
    if codes.dtype.kind not in "iu" or not (codes.min() >= 0 and codes.max() <= last):
        bad = codes[~np.isin(codes, np.arange(last + 1))] if codes.dtype.kind in "iu" else codes
        raise InvalidTarget(f"`codes` must be whole numbers from 0 to {last}; got {bad[0]!r}.")


def check_pairs(one: NDArray[Any], other: NDArray[Any], names: tuple[str, str]) -> None:
    """Raise unless both have one number per row."""
    if one.ndim != 1 or one.shape != other.shape:
        raise ShapeMismatch(f"`{names[0]}` must be one number per row of `{names[1]}`; got {one.shape}, {other.shape}.")


def check_columns(given: Matrix, targets: Vector | None, columns: int, name: str) -> None:
    """Raise unless there is a row of so many columns for each target."""
    rows = len(given) if targets is None else targets.shape[0] if targets.ndim == 1 else -1
    if given.ndim != 2 or given.shape != (rows, columns):
        raise ShapeMismatch(f"`{name}` must have a row per target and {columns} columns; got shape {given.shape}.")
