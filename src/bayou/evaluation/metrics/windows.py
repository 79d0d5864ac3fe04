"""Any metric of the latest rows alone, in constant memory: of a window of them, or of all, older ones counting less."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import State
from bayou.errors import InvalidSpec, ModelFileError, ShapeMismatch
from bayou.evaluation.metrics.metric import Metric

BLOCKS = 20
M = TypeVar("M", bound=Metric)


class _Wrapper(Metric, Generic[M]):
    """A metric that is counted by others of one kind."""

    _template: M  # has counted nothing, and never will

    @property
    def metric(self) -> M:
        """What was counted, as a metric of its own: with all that its kind can tell."""
        raise NotImplementedError

    @property
    def value(self) -> float:
        return self.metric.value

    @property
    def standard_error(self) -> float:
        return self.metric.standard_error

    def _size(self, arrays: tuple[NDArray[Any], ...]) -> int:
        sizes = {np.shape(part)[:1] for part in arrays}
        if len(sizes) != 1 or () in sizes:
            raise ShapeMismatch(f"all arrays must have as many rows; got shapes {[np.shape(a) for a in arrays]}.")
        return int(np.shape(arrays[0])[0])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.metric!r})"


class Windowed(_Wrapper[M]):
    """A metric of the last ``rows`` rows.

    They are kept as counts of ``blocks`` blocks, of which the oldest is dropped whole when a new one begins. So once
    ``rows`` rows have come, the window has ``rows_in_window`` of them: at most all, and less than a block fewer, or two
    where ``rows`` is no multiple of ``block_rows``. With as many blocks as rows it is exact. Whether rows come one by
    one or in portions changes nothing.

    >>> import numpy as np
    >>> from bayou.evaluation.metrics import MAE
    >>> latest = Windowed(MAE, rows=100)
    >>> latest.update(np.zeros(1000), np.repeat([5.0, 1.0], [900, 100]))
    >>> latest.value, latest.rows_in_window, latest.block_rows
    (1.0, 100, 5)
    """

    def __init__(self, make: Callable[[], M], rows: int, blocks: int = BLOCKS) -> None:
        for name, number in (("rows", rows), ("blocks", blocks)):
            if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
                raise InvalidSpec(f"`{name}` must be a whole number, at least 1; got {number!r}.")
        template = make()
        if not isinstance(template, Metric) or not template.counted:
            raise InvalidSpec(f"`make` must make a metric whose parts can be merged; got {template!r}.")
        self._template = template.fresh()
        self.rows, self.blocks, self.rows_seen = int(rows), int(blocks), 0
        self._parts: dict[int, M] = {}  # by the number of the block, of which the first is 0
        self._merged: M | None = None

    @property
    def block_rows(self) -> int:
        """How many rows are dropped at once."""
        return max(self.rows // self.blocks, 1)

    @property
    def rows_in_window(self) -> int:
        """How many rows are looked at now."""
        first = min(self._parts, default=0)
        return self.rows_seen - first * self.block_rows if self._parts else 0

    def update(self, *arrays: NDArray[Any], **options: Any) -> None:
        """Count more rows, as the metric does that is wrapped."""
        n_rows, size, start = self._size(arrays), self.block_rows, 0
        if not n_rows:
            return
        kept = self.rows // size
        oldest = (self.rows_seen + n_rows - 1) // size - kept + 1  # the first block that will be looked at
        parts = {number: part for number, part in self._parts.items() if number >= oldest}
        start = max(oldest * size - self.rows_seen, 0)
        while start < n_rows:
            number, within = divmod(self.rows_seen + start, size)
            stop = min(start + size - within, n_rows)
            # A copy: should the rows be refused, nothing of them is counted.
            part: Any = copy.deepcopy(parts[number]) if number in parts else self._template.fresh()
            part.update(*(array[start:stop] for array in arrays), **_cut(options, start, stop))
            parts[number], start = part, stop
        self._parts, self._merged, self.rows_seen = parts, None, self.rows_seen + n_rows

    @property
    def metric(self) -> M:
        if self._merged is None:
            self._merged = self._template.fresh()
            for number in sorted(self._parts):
                self._merged.merge(self._parts[number])
        return self._merged

    def fresh(self) -> Self:
        return type(self)(self._template.fresh, self.rows, self.blocks)

    def merge(self, other: Metric) -> None:
        raise InvalidSpec(
            f"windows must not be merged, for whose rows are later is not known: merge `metric`; got {other!r}."
        )

    def to_state(self) -> State:
        own = {"rows": self.rows, "blocks": self.blocks, "rows_seen": self.rows_seen}
        return _joined(type(self).__name__, own, self._template, self._parts)

    @classmethod
    def made_of(cls, state: State) -> Self:
        template, parts = _taken_apart(state)
        window = cls(template.fresh, state.config["rows"], state.config["blocks"])
        window._parts, window.rows_seen = parts, int(state.config["rows_seen"])
        if len(parts) > window.rows // window.block_rows:
            raise ModelFileError(f"a window of {window.rows} rows must not have {len(parts)} blocks.")
        return window


class Fading(_Wrapper[M]):
    """A metric of all rows, of which a row counts half as much as one that came ``half_life`` rows later.

    The standard error is that of as many equal rows as tell as much, about 2.9 half-lives of them in the long run.
    Whether rows come one by one or in portions changes nothing but rounding. Merging adds the rows of both, each faded
    by the rows after it in its own stream.

    >>> import numpy as np
    >>> from bayou.evaluation.metrics import MAE
    >>> faded = Fading(MAE, half_life=50)
    >>> faded.update(np.zeros(1000), np.repeat([5.0, 1.0], [900, 100]))
    >>> round(faded.value, 6), round(faded.metric.effective_rows)
    (2.0, 144)
    """

    def __init__(self, make: Callable[[], M], half_life: float) -> None:
        if isinstance(half_life, bool) or not isinstance(half_life, (int, float)) or not 0.0 < half_life < math.inf:
            raise InvalidSpec(f"`half_life` must be a positive number of rows; got {half_life!r}.")
        template = make()
        if not isinstance(template, Metric) or not template.fades:
            raise InvalidSpec(f"`make` must make a metric whose rows may count less than one; got {template!r}.")
        self._template = template.fresh()
        self.half_life, self._counted = half_life, self._template.fresh()

    def update(self, *arrays: NDArray[Any]) -> None:
        """Count more rows, as the metric does that is wrapped."""
        n_rows = self._size(arrays)
        if not n_rows:
            return
        weights = np.exp2(np.arange(1 - n_rows, 1) / self.half_life)
        counted: Any = copy.deepcopy(self._counted)
        counted.fade(2.0 ** (-n_rows / self.half_life))
        counted.update(*arrays, weights=weights)
        self._counted = counted

    @property
    def metric(self) -> M:
        return self._counted

    def fresh(self) -> Self:
        return type(self)(self._template.fresh, self.half_life)

    def merge(self, other: Metric) -> None:
        if not isinstance(other, Fading) or other.half_life != self.half_life:
            raise InvalidSpec(f"Fading must be merged with one of half-life {self.half_life!r}; got {other!r}.")
        self._counted.merge(other._counted)

    def to_state(self) -> State:
        return _joined(type(self).__name__, {"half_life": self.half_life}, self._template, {0: self._counted})

    @classmethod
    def made_of(cls, state: State) -> Self:
        template, parts = _taken_apart(state)
        faded = cls(template.fresh, state.config["half_life"])
        faded._counted = parts[0]
        return faded


def _cut(options: dict[str, Any], start: int, stop: int) -> dict[str, Any]:
    return {name: None if value is None else np.asarray(value)[start:stop] for name, value in options.items()}


def _joined(name: str, own: dict[str, Any], template: Metric, parts: dict[int, Any]) -> State:
    """A wrapper and its parts, as data."""
    states = {str(number): part.to_state() for number, part in parts.items()}
    config = {"metric": name, **own, "template": template.to_state().config}
    config["parts"] = {number: state.config for number, state in states.items()}
    arrays = {f"template.{key}": array for key, array in template.to_state().arrays.items()}
    for number, state in states.items():
        arrays |= {f"parts.{number}.{key}": array for key, array in state.arrays.items()}
    return State(config, arrays)


def _taken_apart(state: State) -> tuple[Any, dict[int, Any]]:
    """The template and the parts of a wrapper."""

    def made(config: dict[str, Any], place: str) -> Metric:
        arrays = {key[len(place) :]: array for key, array in state.arrays.items() if key.startswith(place)}
        return Metric.from_state(State(config, arrays))

    template = made(state.config["template"], "template.")
    parts = {int(number): made(part, f"parts.{number}.") for number, part in state.config["parts"].items()}
    if any(type(part) is not type(template) for part in parts.values()):
        raise ModelFileError(f"all parts must be of one kind, {type(template).__name__}.")
    return template, parts
