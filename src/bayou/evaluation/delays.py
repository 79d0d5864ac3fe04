"""Targets that come late, in evaluation: each row is forecast when it comes, and learnt when its target is known."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayou.contracts import Mask
from bayou.errors import InvalidSpec, ShapeMismatch
from bayou.mixed_prediction import MixedPrediction
from bayou.prediction import joined


def arrivals(n_rows: int, delay: Any, times: ArrayLike | None) -> NDArray[np.int64]:
    """Before which row the target of each row is known: so many rows later, or so much later by a column of times."""
    if times is None:
        if not (isinstance(delay, (int, np.integer)) and delay >= 0):
            raise InvalidSpec(
                f"`delay` must be a whole number of rows, at least 0, or come with `times`; got {delay!r}."
            )
        return np.arange(n_rows) + int(delay) + 1
    when = np.asarray(times)
    if when.shape != (n_rows,):
        raise ShapeMismatch(f"`times` must have one value per row, {n_rows}; got shape {when.shape}.")
    if np.any(when[1:] < when[:-1]):
        raise InvalidSpec(f"`times` must not go back; they do in row {int(np.argmax(when[1:] < when[:-1])) + 1}.")
    try:
        known = np.searchsorted(when, when + delay, side="left")
        backwards = bool(np.any(when + delay < when))
    except (TypeError, np.exceptions.DTypePromotionError):
        raise InvalidSpec(f"`delay` must be a distance between `times`, of {when.dtype}; got {delay!r}.") from None
    if backwards:
        raise InvalidSpec(f"`delay` must not be negative; got {delay!r}.")
    due: NDArray[np.int64] = np.maximum(known, np.arange(n_rows) + 1)
    return due


class Queue:
    """Rows whose targets are on their way."""

    def __init__(self, due: NDArray[np.int64]) -> None:
        self._due, self._order = due, np.argsort(due, kind="stable")
        self.row = self._next = 0

    def come(self) -> list[int]:
        """The rows whose targets are known before the next row, which then passes."""
        found = []
        while self._next < len(self._order) and self._due[self._order[self._next]] <= self.row:
            found.append(int(self._order[self._next]))
            self._next += 1
        self.row += 1
        return found


class LateModel:
    """A model that is told targets when they are due; ``known`` says of which of the latest rows it said anything."""

    def __init__(self, model: Any, due: NDArray[np.int64]) -> None:
        self._model, self._queue = model, Queue(due)
        self._waiting: dict[int, tuple[int, Any]] = {}
        self.known: Mask = np.zeros(0, dtype=np.bool_)
        self.classes_: NDArray[Any] = np.zeros(0)

    def learn_many(self, X: Any, y: NDArray[Any], classes: NDArray[Any] | None = None) -> Any:
        """What is said of the rows; those learnt meanwhile are others."""
        said = [self._forecast(row, target) for row, target in zip(_each(X), y.tolist(), strict=True)]
        if classes is not None:
            self.classes_, self.known = classes, np.ones(len(said), dtype=np.bool_)
            return np.array([self._probabilities(one) for one in said])
        self.known = np.array([one is not None for one in said])
        parts = [one for one in said if one is not None]
        if not parts:
            return None
        if isinstance(parts[0], MixedPrediction):
            return MixedPrediction.joined(parts)
        return joined(self._model._learner_.likelihood, parts)

    def _forecast(self, example: Any, target: Any) -> Any:
        for row in self._queue.come():
            self._model.learn_late(*self._waiting.pop(row))
        issued = self._model.forecast_one(example)
        self._waiting[self._queue.row - 1] = issued.id, target
        return issued.said

    def _probabilities(self, said: dict[Any, float] | None) -> list[float]:
        """Of all classes alike until each has come."""
        if said is None or any(label not in said for label in self.classes_.tolist()):
            return [1.0 / len(self.classes_)] * len(self.classes_)
        return [said[label] for label in self.classes_.tolist()]


class LateBaseline:
    """A baseline that is told targets when they are due."""

    def __init__(self, baseline: Any, due: NDArray[np.int64]) -> None:
        self._baseline, self._queue, self._targets = baseline, Queue(due), np.zeros(0)

    def learn(self, targets: NDArray[Any]) -> NDArray[Any]:
        """What it says before each row."""
        self._targets = np.concatenate([self._targets.astype(targets.dtype), targets])
        said = []
        for target in targets:
            come = self._queue.come()
            if come:
                self._baseline.learn(self._targets[come])
            said.append(copy.copy(self._baseline).learn(np.array([target]))[0])
        return np.array(said)


def _each(X: Any) -> Any:
    """The rows, one by one: of a table as dicts, of anything else as they are."""
    if hasattr(X, "columns"):
        names = list(X.columns)
        return (dict(zip(names, row, strict=True)) for row in np.asarray(X, dtype=object).tolist())
    return iter(X)
