"""Scores along a stream that need nothing but what was said of each row: classes may appear at any time.

Numbers are judged by the place of each target in what was predicted, which costs less than intervals: a target lies in
the central 90 % where 5 to 95 % of the distribution is below it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, State, Vector
from bayou.errors import ModelFileError
from bayou.evaluation.metrics import (
    AUC,
    MAE,
    RMSE,
    SMALLEST_PROBABILITY,
    Accuracy,
    Brier,
    CalibrationError,
    Coverage,
    KappaTemporal,
    LogLoss,
    Metric,
    NegativeLogDensity,
)
from bayou.evaluation.two_class_scores import two_class_scores

LEVEL = 0.9
PARTS = ("metrics", "window")  # of all rows, and of those since the last point of a curve
PLACES = 20  # bins of the places of targets
RESIDUALS = np.linspace(-5.0, 5.0, 41)  # edges, in deviations


class StreamScores(ABC):
    """Metrics of a model beside those of what can be said without looking at the inputs."""

    def __init__(self) -> None:
        self.metrics: dict[str, Any] = self._fresh()  # metrics differ in what they are updated with
        self.window: dict[str, Any] = self._fresh()
        self.rows = 0

    @abstractmethod
    def _fresh(self) -> dict[str, Any]:
        """The metrics, of no rows yet."""

    @abstractmethod
    def update(self, said: Any, targets: NDArray[Any], classes: list[Any]) -> None:
        """Count rows: what was said of each, and what came."""

    @property
    def is_constant(self) -> bool:
        """Whether all targets were one number."""
        return False

    def values(self) -> dict[str, float]:
        """Each score of all rows."""
        return {name: metric.value for name, metric in self.metrics.items()}

    def errors(self) -> dict[str, float]:
        """The standard error of each."""
        return {name: metric.standard_error for name, metric in self.metrics.items()}

    def close_window(self) -> dict[str, float]:
        """The scores of the rows since this was last asked."""
        found = {name: metric.value for name, metric in self.window.items()}
        self.window = self._fresh()
        return found

    def to_state(self) -> State:
        """All of it, as data."""
        config: dict[str, Any] = {"rows": self.rows}
        arrays: dict[str, NDArray[Any]] = {}
        for part in PARTS:
            states = {name: metric.to_state() for name, metric in getattr(self, part).items()}
            config[part] = {name: state.config for name, state in states.items()}
            for name, state in states.items():
                arrays |= {f"{part}.{name}.{key}": array for key, array in state.arrays.items()}
        return State(config | self._baselines(), arrays | self._arrays())

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The scores that this data describes."""
        scores = cls()
        scores.rows = int(state.config["rows"])
        for part in PARTS:
            metrics = getattr(scores, part)
            if state.config[part].keys() != metrics.keys():
                raise ModelFileError(f"scores must be {list(metrics)}; got {list(state.config[part])}.")
            for name, config in state.config[part].items():
                of_it = f"{part}.{name}."
                arrays = {k.removeprefix(of_it): a for k, a in state.arrays.items() if k.startswith(of_it)}
                metrics[name] = Metric.from_state(State(config, arrays))
        scores._load(state)
        return scores

    @abstractmethod
    def _baselines(self) -> dict[str, Any]:
        """What the baselines know."""

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """What else is counted."""
        return {}

    @abstractmethod
    def _load(self, state: State) -> None:
        """Take up what the baselines knew."""


class ClassStream(StreamScores):
    """Of probabilities of classes. One that comes for the first time had as much as each of the known."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[Any, float] = {}
        self._last: Any = None

    def _fresh(self) -> dict[str, Any]:
        return {
            "log_loss": LogLoss(),
            "accuracy": Accuracy(),
            "ece": CalibrationError(),
            "brier": Brier(),
            "auc": AUC(),
            "majority_log_loss": LogLoss(),
            "majority_accuracy": Accuracy(),
            "no_change_accuracy": Accuracy(),
            "kappa_temporal": KappaTemporal(),
        }

    def update(self, said: Any, targets: NDArray[Any], classes: list[Any]) -> None:
        if not len(targets):
            return
        codes = codes_of(targets, classes)
        given = with_new_ones(np.asarray(said), codes)
        first = classes.index(self._last) if self._last in classes else -1
        if given.shape[1] <= 2:
            portion = self._of_two(given, codes, first, classes)
        else:
            portion = self._of_several(given, codes, first, classes)
        self._last = classes[codes[-1]]
        for part in (self.metrics, self.window):
            for name, metric in portion.items():
                part[name].merge(metric)
            if given.shape[1] > 2:  # of several classes there is none, also where two came first
                part["auc"] = AUC()
        self.rows += len(codes)

    def _of_two(self, given: Matrix, codes: NDArray[np.intp], last: int, classes: list[Any]) -> dict[str, Metric]:
        """The scores of these rows alone; where there is nothing to tell apart yet, as if another class were never."""
        counts = self._counted(classes)
        if len(classes) == 1:
            given, counts = np.column_stack([given, 0.0 * given]), np.array([counts[0], 0.0])
        portion = two_class_scores(given, codes, last, counts)
        self._counts = {label: float(count - 1.0) for label, count in zip(classes, counts, strict=False)}
        return portion

    def _of_several(self, given: Matrix, codes: NDArray[np.intp], last: int, classes: list[Any]) -> dict[str, Metric]:
        portion, majority = self._fresh(), self._frequencies(codes, classes)
        del portion["auc"]
        before = np.concatenate([[last], codes[:-1]])
        for name in ("log_loss", "accuracy", "ece", "brier"):
            portion[name].update(given, codes)
        for name in ("majority_log_loss", "majority_accuracy"):
            portion[name].update(majority, codes)
        portion["no_change_accuracy"].count(before == codes)
        portion["kappa_temporal"].update(given, codes, before)
        return portion

    def _counted(self, classes: list[Any]) -> Vector:
        """How often each class came, and once more."""
        return np.array([1.0 + self._counts.get(label, 0.0) for label in classes])

    def _frequencies(self, codes: NDArray[np.intp], classes: list[Any]) -> Matrix:
        """The classes as often as they came before each row, each counted once more."""
        counts = self._counted(classes)
        came = np.arange(counts.size) == codes[:, None]
        after = counts + np.cumsum(came, axis=0)
        self._counts = {label: float(count - 1.0) for label, count in zip(classes, after[-1], strict=True)}
        before = after - came
        shares: Matrix = before / before.sum(axis=1, keepdims=True)
        return shares

    def _baselines(self) -> dict[str, Any]:
        return {"counts": [[label, count] for label, count in self._counts.items()], "last": self._last}

    def _load(self, state: State) -> None:
        self._counts = {label: float(count) for label, count in state.config["counts"]}
        self._last = state.config["last"]


def codes_of(targets: NDArray[Any], classes: list[Any]) -> NDArray[np.intp]:
    """The place of each target among the classes, which are sorted."""
    if targets.dtype == object:
        place = {label: code for code, label in enumerate(classes)}
        return np.array([place[label] for label in targets.tolist()], dtype=np.intp)
    return np.searchsorted(np.array(classes), targets).astype(np.intp)


def with_new_ones(given: Matrix, codes: NDArray[np.intp]) -> Matrix:
    """Rows of a class that nobody knew of: it had as much as each of the known, which share the rest."""
    rows = np.arange(len(codes))
    new = given[rows, codes] <= 0.0
    if new.any():
        given = given.copy()
        known = np.maximum((given[new] > 0.0).sum(axis=1), 1)
        given[new] *= (known / (known + 1.0))[:, None]
        given[rows[new], codes[new]] = 1.0 / (known + 1.0)
    return given


class Places(NamedTuple):
    """Of each target: what of the predicted distribution lies below it, and whether it is in the central part.

    A count is a step, from what is below it to what is up to it: ``above`` and ``below`` are its ends.
    """

    below: Vector
    above: Vector
    inside: NDArray[np.bool_]


def places_of(said: Any, targets: Vector, are_counts: bool) -> Places:
    """Where targets lie in what was predicted."""
    below = np.atleast_1d(said.cumulative(targets))
    above = np.atleast_1d(said.cumulative(targets - 1.0)) if are_counts else below
    return Places(below, above, (below >= 0.5 - 0.5 * LEVEL) & (above <= 0.5 + 0.5 * LEVEL))


class NumberStream(StreamScores):
    """Of predictive distributions of numbers."""

    counts_only = False

    def __init__(self) -> None:
        super().__init__()
        self._sum, self._last = 0.0, 0.0
        self._low, self._high = math.inf, -math.inf
        self.places = np.zeros(PLACES)
        self.residuals = np.zeros(RESIDUALS.size - 1)

    def _fresh(self) -> dict[str, Any]:
        return {
            "rmse": RMSE(),
            "mae": MAE(),
            "nlpd": NegativeLogDensity(),
            "coverage": Coverage(LEVEL),
            "mean_rmse": RMSE(),
            "no_change_rmse": RMSE(),
        }

    def update(self, said: Any, targets: NDArray[Any], classes: list[Any]) -> None:
        if not len(targets):
            return
        came = np.asarray(targets, dtype=np.float64)
        means, logs = np.atleast_1d(said.mean), np.atleast_1d(said.log_probability(came))
        below, above, inside = places_of(said, came, self.counts_only)
        running = (self._sum + np.concatenate([[0.0], np.cumsum(came)[:-1]])) / np.maximum(
            self.rows + np.arange(len(came)), 1.0
        )
        last = np.concatenate([[self._last], came[:-1]])
        for part in (self.metrics, self.window):
            part["rmse"].update(means, came)
            part["mae"].update(means, came)
            part["nlpd"].update(logs)
            part["coverage"].count(inside)
            part["mean_rmse"].update(running, came)
            part["no_change_rmse"].update(last, came)
        middle = 0.5 * (below + above)  # of counts, the middle of the step
        self.places += np.bincount(np.minimum((middle * PLACES).astype(np.intp), PLACES - 1), minlength=PLACES)
        deviations = (came - means) / np.sqrt(np.maximum(np.atleast_1d(said.variance), 1e-300))
        self.residuals += np.histogram(np.clip(deviations, -4.999, 4.999), RESIDUALS)[0]
        self._low, self._high = min(self._low, float(came.min())), max(self._high, float(came.max()))
        self._sum, self._last, self.rows = self._sum + float(came.sum()), float(came[-1]), self.rows + len(came)

    @property
    def is_constant(self) -> bool:
        return self._low == self._high

    def _baselines(self) -> dict[str, Any]:
        return {"sum": self._sum, "last": self._last, "low": self._low, "high": self._high}

    def _arrays(self) -> dict[str, Vector]:
        return {"places": self.places, "residuals": self.residuals}

    def _load(self, state: State) -> None:
        self._sum, self._last, self._low, self._high = (float(state.config[n]) for n in ("sum", "last", "low", "high"))
        self.places[...], self.residuals[...] = state.arrays["places"], state.arrays["residuals"]


class CountStream(NumberStream):
    """Of predictive distributions of counts: an interval covers a whole step."""

    counts_only = True


KINDS: dict[str, type[StreamScores]] = {
    "binary": ClassStream,
    "multiclass": ClassStream,
    "regression": NumberStream,
    "count": CountStream,
}


def losses(learnt: Any, of_classes: bool) -> tuple[NDArray[np.bool_], Vector]:
    """Of each row: whether the most probable class was wrong, and -log of what was given to what came."""
    if not of_classes:
        came = np.asarray(learnt.targets, np.float64)
        return np.zeros(len(came), np.bool_), -np.atleast_1d(learnt.said.log_probability(came))
    codes = codes_of(learnt.targets, learnt.classes)
    given = with_new_ones(np.asarray(learnt.said), codes)
    wrong = np.argmax(given, axis=1) != codes
    return wrong, -np.log(np.maximum(given[np.arange(len(codes)), codes], SMALLEST_PROBABILITY))
