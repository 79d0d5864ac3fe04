"""Which metrics belong to which task: each set scores a model and, beside it, what can be said without the features."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Mask, Matrix, State, Vector
from bayou.errors import InvalidSpec, ModelFileError
from bayou.evaluation.baselines import Frequencies, NoChange, RunningMean
from bayou.evaluation.delays import LateBaseline
from bayou.evaluation.metrics import (
    AUC,
    CRPS,
    MAE,
    RMSE,
    Accuracy,
    BalancedAccuracy,
    Brier,
    CalibrationError,
    Coverage,
    Deviance,
    Kappa,
    KappaTemporal,
    LogLoss,
    Metric,
    NegativeLogDensity,
    PITHistogram,
    Width,
)


@dataclass
class Scores:
    """The metrics of one kind of task."""

    def metrics(self) -> dict[str, Metric]:
        """All of them, by name; without those that do not fit the stream."""
        found = {part.name: getattr(self, part.name) for part in fields(self)}
        return {name: metric for name, metric in found.items() if metric is not None}

    def merge(self, other: Scores) -> None:
        """Count all that the other has counted, too."""
        own, given = self.metrics(), other.metrics()
        if type(other) is not type(self) or own.keys() != given.keys():
            raise InvalidSpec(f"scores that are merged must be of one kind, {sorted(own)}; got {sorted(given)}.")
        merged = copy.deepcopy(own)  # where one cannot be merged, none is
        for name, metric in merged.items():
            metric.merge(given[name])
        self.__dict__.update(merged)

    def to_state(self) -> State:
        """All of the metrics, as data."""
        states = {name: metric.to_state() for name, metric in self.metrics().items()}
        arrays = {f"{name}.{key}": array for name, state in states.items() for key, array in state.arrays.items()}
        return State({name: state.config for name, state in states.items()}, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The scores that this data describes; they continue to the last bit."""
        names = {part.name for part in fields(cls)}
        if not set(state.config) <= names:
            raise ModelFileError(f"{cls.__name__} must be of {sorted(names)}; got {sorted(state.config)}.")
        found = {}
        for name, config in state.config.items():
            arrays = {key.partition(".")[2]: a for key, a in state.arrays.items() if key.partition(".")[0] == name}
            found[name] = Metric.from_state(State(config, arrays))
        return cls(**found)


@dataclass
class ClassScores(Scores):
    """Of probabilities of classes."""

    accuracy: Accuracy = field(default_factory=Accuracy)
    log_loss: LogLoss = field(default_factory=LogLoss)
    brier: Brier = field(default_factory=Brier)
    calibration_error: CalibrationError = field(default_factory=CalibrationError)
    balanced_accuracy: BalancedAccuracy = field(default_factory=BalancedAccuracy)
    kappa: Kappa = field(default_factory=Kappa)
    auc: AUC | None = None  # where there are two
    majority_accuracy: Accuracy = field(default_factory=Accuracy)
    majority_log_loss: LogLoss = field(default_factory=LogLoss)
    no_change_accuracy: Accuracy = field(default_factory=Accuracy)
    kappa_temporal: KappaTemporal = field(default_factory=KappaTemporal)

    def update(self, given: Matrix, codes: NDArray[np.intp], frequencies: Matrix, last: NDArray[np.intp]) -> None:
        """Count more rows."""
        own = (self.accuracy, self.log_loss, self.brier, self.calibration_error, self.balanced_accuracy, self.kappa)
        for metric in own:
            metric.update(given, codes)
        if self.auc is not None and given.shape[1] == 2:  # a model that was taught before may know more
            self.auc.update(given, codes)
        self.majority_accuracy.update(frequencies, codes)
        self.majority_log_loss.update(frequencies, codes)
        self.no_change_accuracy.count(last == codes)
        self.kappa_temporal.update(given, codes, last)


@dataclass
class NumberScores(Scores):
    """Of predictive distributions of numbers. The interval is that between the two outermost quantiles."""

    coverage: Coverage
    rmse: RMSE = field(default_factory=RMSE)
    mae: MAE = field(default_factory=MAE)
    negative_log_density: NegativeLogDensity = field(default_factory=NegativeLogDensity)
    width: Width = field(default_factory=Width)
    mean_rmse: RMSE = field(default_factory=RMSE)
    mean_mae: MAE = field(default_factory=MAE)

    def update(self, means: Vector, logs: Vector, quantiles: Matrix, targets: Vector, running: Vector) -> None:
        """Count more rows."""
        intervals = quantiles[:, :2]
        self.coverage.update(intervals, targets)
        self.width.update(intervals)
        self.negative_log_density.update(logs)
        for model, baseline in ((self.rmse, self.mean_rmse), (self.mae, self.mean_mae)):
            model.update(means, targets)
            baseline.update(running, targets)


@dataclass
class RegressionScores(NumberScores):
    """Of predictive distributions with a density, which have a place for every target."""

    crps: CRPS = field(default_factory=CRPS)
    pit: PITHistogram = field(default_factory=PITHistogram)

    def update(self, means: Vector, logs: Vector, quantiles: Matrix, targets: Vector, running: Vector) -> None:
        """Count more rows."""
        super().update(means, logs, quantiles, targets, running)
        self.crps.update(quantiles[:, 2:], targets)
        self.pit.update(quantiles[:, 2:], targets)


@dataclass
class CountScores(NumberScores):
    """Of predictive distributions of counts."""

    deviance: Deviance = field(default_factory=Deviance)
    mean_deviance: Deviance = field(default_factory=Deviance)

    def update(self, means: Vector, logs: Vector, quantiles: Matrix, targets: Vector, running: Vector) -> None:
        """Count more rows."""
        super().update(means, logs, quantiles, targets, running)
        self.deviance.update(means, targets)
        self.mean_deviance.update(running, targets)


class Task(ABC):
    """How a model learns rows, and how what it predicted is scored; keeps the baselines."""

    @abstractmethod
    def scores(self) -> Any:
        """Scores of no rows yet."""

    @abstractmethod
    def learn(self, model: Any, X: Any, y: NDArray[Any]) -> Any:
        """Learn rows; what the model had predicted of each."""

    @abstractmethod
    def judge(self, model: Any, predicted: Any, y: NDArray[Any], known: Mask | None = None) -> tuple[Any, ...]:
        """What `update` of the scores takes: of the rows of which something was predicted, if that is not all."""

    @abstractmethod
    def delay(self, due: NDArray[np.int64]) -> None:
        """Let baselines know the target of each row only before the row that is due."""

    @abstractmethod
    def promised(self, judged: tuple[Any, ...]) -> tuple[Any, Any]:
        """What `update` of a monitor takes, out of that."""


class Classification(Task):
    """The classes are named beforehand, so that a class is not impossible just because it has not come yet."""

    def __init__(self, y: NDArray[Any]) -> None:
        self._classes = np.unique(y)
        self._frequencies: Any = None
        self._no_change: Any = NoChange()
        self._due: NDArray[np.int64] | None = None

    def scores(self) -> ClassScores:
        return ClassScores(auc=AUC() if self._classes.size <= 2 else None)

    def learn(self, model: Any, X: Any, y: NDArray[Any]) -> Matrix:
        probabilities: Matrix = model.learn_many(X, y, self._classes)
        return probabilities

    def judge(self, model: Any, predicted: Matrix, y: NDArray[Any], known: Mask | None = None) -> tuple[Any, ...]:
        codes = np.searchsorted(model.classes_, y)
        if self._frequencies is None:  # the model may know classes that do not come here
            self._frequencies = Frequencies(predicted.shape[1])
            if self._due is not None:
                self._frequencies = LateBaseline(self._frequencies, self._due)
        return predicted, codes, self._frequencies.learn(codes), self._no_change.learn(codes)

    def delay(self, due: NDArray[np.int64]) -> None:
        self._due, self._no_change = due, LateBaseline(self._no_change, due)

    def promised(self, judged: tuple[Any, ...]) -> tuple[Any, Any]:
        return judged[0], judged[1]


class Regression(Task):
    """Numbers: intervals of one level, and the place of each target in its predictive distribution."""

    def __init__(self, level: float) -> None:
        self._level = level
        self._running: Any = RunningMean()

    def scores(self) -> NumberScores:
        return RegressionScores(Coverage(self._level))

    def quantiles(self, predicted: Any) -> Matrix:
        """The ends of the interval come first."""
        return np.column_stack([predicted.interval(self._level), predicted.quantiles(PITHistogram().edges)])

    def learn(self, model: Any, X: Any, y: NDArray[Any]) -> Any:
        return model.learn_many(X, y)

    def judge(self, model: Any, predicted: Any, y: NDArray[Any], known: Mask | None = None) -> tuple[Any, ...]:
        running = self._running.learn(y)
        if predicted is None:
            return ()
        if known is not None:
            y, running = y[known], running[known]
        quantiles = self.quantiles(predicted)
        return predicted.mean, predicted.log_probability(y), quantiles, y, running

    def delay(self, due: NDArray[np.int64]) -> None:
        self._running = LateBaseline(self._running, due)

    def promised(self, judged: tuple[Any, ...]) -> tuple[Any, Any]:
        return judged[2][:, :2], judged[3]


class Counting(Regression):
    """Counts: they have no density, and the mean so far starts at one, for no rate is zero."""

    def __init__(self, level: float) -> None:
        super().__init__(level)
        self._running = RunningMean(start=1.0, weight=1.0)

    def scores(self) -> NumberScores:
        return CountScores(Coverage(self._level))

    def quantiles(self, predicted: Any) -> Matrix:
        ends: Matrix = predicted.interval(self._level)
        return ends
