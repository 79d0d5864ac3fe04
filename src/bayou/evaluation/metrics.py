"""Scores of predictions, kept in constant memory: ``update`` counts more rows, ``value`` is the score so far.

    classes     Accuracy, LogLoss, Brier, CalibrationError, KappaTemporal    probabilities: a row per example, a column
                                                                             per class; codes: the true columns
    numbers     RMSE, MAE, NegativeLogDensity, Coverage, Width, PITHistogram, Deviance (of counts)

Rows may come in portions of any size: the scores are the same.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidSpec

SMALLEST_PROBABILITY = 2.0**-52  # a class that was thought impossible costs 36 nats, not infinity
NUMBER_OF_BINS = 20


class Metric(ABC):
    """One score of all the rows counted so far; NaN where there are too few of them."""

    @property
    @abstractmethod
    def value(self) -> float:
        """The score."""

    @property
    def standard_error(self) -> float:
        """How far the score may be from that of endlessly many such rows; NaN if that is not known."""
        return math.nan

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value:.4g} ± {self.standard_error:.2g})"


class Mean(Metric):
    """The mean of one number per row."""

    def __init__(self) -> None:
        self.rows = 0
        self._mean = self._squares = 0.0

    def count(self, values: NDArray[Any]) -> None:
        """Count more rows: each portion adds its own moments, so that large values do not cancel."""
        if values.size:
            mean, before = float(np.mean(values)), self.rows
            self.rows += values.size
            shift = (mean - self._mean) * values.size / self.rows
            self._squares += float(np.sum((values - mean) ** 2)) + shift * (mean - self._mean) * before
            self._mean += shift

    @property
    def value(self) -> float:
        return self._mean if self.rows else math.nan

    @property
    def standard_error(self) -> float:
        return math.sqrt(self._squares / (self.rows - 1) / self.rows) if self.rows > 1 else math.nan


class Accuracy(Mean):
    """Fraction of rows whose most probable class was the true one.

    >>> import numpy as np
    >>> accuracy = Accuracy()
    >>> accuracy.update(np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0, 0]))
    >>> accuracy.value
    0.5
    """

    def update(self, probabilities: Matrix, codes: NDArray[np.intp]) -> None:
        """Count more rows."""
        self.count(np.argmax(probabilities, axis=1) == codes)


class LogLoss(Mean):
    """Mean of -log of the probability that was given to the true class, in nats."""

    def update(self, probabilities: Matrix, codes: NDArray[np.intp]) -> None:
        """Count more rows."""
        self.count(-np.log(np.maximum(probabilities[np.arange(len(codes)), codes], SMALLEST_PROBABILITY)))


class Brier(Mean):
    """Mean squared distance of the probabilities from the truth: of the second class if there are two, else of all."""

    def update(self, probabilities: Matrix, codes: NDArray[np.intp]) -> None:
        """Count more rows."""
        truth = np.arange(probabilities.shape[1]) == codes[:, None]
        distances = (probabilities - truth) ** 2
        self.count(distances[:, 1] if probabilities.shape[1] == 2 else distances.sum(axis=1))


class CalibrationError(Metric):
    """Expected calibration error: distance between probability and frequency, in bins of equal width.

    The probability is that of the second class if there are two, else that of the most probable one. Even true
    probabilities show some error on few rows: see ``noise``.

    >>> import numpy as np
    >>> error = CalibrationError()
    >>> error.update(np.array([[0.2, 0.8]] * 10), np.array([1] * 7 + [0] * 3))
    >>> round(error.value, 3), round(error.noise, 3)
    (0.1, 0.101)
    """

    def __init__(self, bins: int = NUMBER_OF_BINS) -> None:
        if bins < 1:
            raise InvalidSpec(f"`bins` must be at least 1; got {bins!r}.")
        self.rows, self.predicted, self.observed = np.zeros(bins), np.zeros(bins), np.zeros(bins)  # sums per bin
        self._squares, self._variance = np.zeros(bins), np.zeros(bins)

    def update(self, probabilities: Matrix, codes: NDArray[np.intp]) -> None:
        """Count more rows."""
        if probabilities.shape[1] == 2:
            given, happened = probabilities[:, 1], codes == 1
        else:
            given, happened = probabilities.max(axis=1), np.argmax(probabilities, axis=1) == codes
        bins = self.rows.size
        which = np.minimum((given * bins).astype(np.intp), bins - 1)
        parts = (np.ones(len(codes)), given, happened, (given - happened) ** 2, given * (1.0 - given))
        sums = (self.rows, self.predicted, self.observed, self._squares, self._variance)
        for total, part in zip(sums, parts, strict=True):
            total += np.bincount(which, weights=part, minlength=bins)

    @property
    def value(self) -> float:
        rows = self.rows.sum()
        return float(np.abs(self.predicted - self.observed).sum() / rows) if rows else math.nan

    @property
    def standard_error(self) -> float:
        """For the signs of the gaps as they are: the error is then a mean over rows."""
        rows = self.rows.sum()
        scatter = self._squares - (self.predicted - self.observed) ** 2 / np.maximum(self.rows, 1.0)
        return float(np.sqrt(np.maximum(scatter, 0.0).sum()) / rows) if rows else math.nan

    @property
    def noise(self) -> float:
        """The error to expect by chance on so many rows if every probability were true."""
        rows = self.rows.sum()
        return float(math.sqrt(2.0 / math.pi) * np.sqrt(self._variance).sum() / rows) if rows else math.nan


class KappaTemporal(Metric):
    """Fraction of the errors of "the same class as last time" that the model avoids; below 0 it makes more of them."""

    def __init__(self) -> None:
        self.rows = self._model = self._last = self._both = 0

    def update(self, probabilities: Matrix, codes: NDArray[np.intp], last: NDArray[np.intp]) -> None:
        """Count more rows; ``last`` are the codes of the rows before each, -1 if there was none."""
        model, no_change = np.argmax(probabilities, axis=1) != codes, last != codes
        self.rows += len(codes)
        self._model += int(model.sum())
        self._last += int(no_change.sum())
        self._both += int((model & no_change).sum())

    @property
    def value(self) -> float:
        return 1.0 - self._model / self._last if self._last else math.nan

    @property
    def standard_error(self) -> float:
        """Of a ratio of two means over the same rows, to first order."""
        if not self._last:
            return math.nan
        ratio = self._model / self._last
        return math.sqrt(max(self._model - 2.0 * ratio * self._both + ratio**2 * self._last, 0.0)) / self._last


class RMSE(Mean):
    """Root of the mean squared error, in units of the target."""

    def update(self, predictions: Vector, targets: Vector) -> None:
        """Count more rows."""
        self.count((predictions - targets) ** 2)

    @property
    def value(self) -> float:
        return math.sqrt(super().value) if self.rows else math.nan

    @property
    def standard_error(self) -> float:
        return super().standard_error / (2.0 * self.value) if self._mean > 0.0 else math.nan


class MAE(Mean):
    """Mean absolute error, in units of the target."""

    def update(self, predictions: Vector, targets: Vector) -> None:
        """Count more rows."""
        self.count(np.abs(predictions - targets))


class NegativeLogDensity(Mean):
    """Mean of -log of the density (of counts: the probability) that was given to the target, in nats."""

    def update(self, log_probabilities: Vector) -> None:
        """Count more rows."""
        self.count(-log_probabilities)


class Deviance(Mean):
    """Mean deviance of counts from predicted rates, as Poisson's likelihood measures it."""

    def update(self, predictions: Vector, targets: Vector) -> None:
        """Count more rows."""
        rates = np.maximum(predictions, SMALLEST_PROBABILITY)
        logs = np.log(np.where(targets > 0.0, targets, rates) / rates)
        self.count(2.0 * (targets * logs - targets + rates))


class Coverage(Mean):
    """Fraction of targets inside their intervals, to be compared with the ``level`` that was asked for.

    >>> import numpy as np
    >>> coverage = Coverage(0.9)
    >>> coverage.update(np.array([[0.0, 1.0]] * 100), np.linspace(0.0, 1.25, 100))
    >>> coverage
    Coverage(0.8 ± 0.04)
    """

    def __init__(self, level: float = 0.9) -> None:
        if not 0.0 < level < 1.0:
            raise InvalidSpec(f"`level` must lie between 0 and 1; got {level!r}.")
        super().__init__()
        self.level = level

    def update(self, intervals: Matrix, targets: Vector) -> None:
        """Count more rows."""
        self.count((intervals[:, 0] <= targets) & (targets <= intervals[:, 1]))

    @property
    def standard_error(self) -> float:
        return math.sqrt(self.value * (1.0 - self.value) / self.rows) if self.rows else math.nan


class Width(Mean):
    """Mean width of the intervals, in units of the target: of two models that cover, the narrower is the better."""

    def update(self, intervals: Matrix) -> None:
        """Count more rows."""
        self.count(intervals[:, 1] - intervals[:, 0])


class PITHistogram(Metric):
    """In which part of its predictive distribution each target fell: flat if the distributions are true.

    High ends say that the distributions are too narrow, a high middle that they are too wide. ``value`` is the largest
    distance between the two distribution functions at the edges of the bins (that of Kolmogorov and Smirnov).
    """

    def __init__(self, bins: int = NUMBER_OF_BINS) -> None:
        if bins < 2 or bins % 2:
            raise InvalidSpec(f"`bins` must be an even number, at least 2; got {bins!r}.")
        self.counts = np.zeros(bins)
        self.edges = np.arange(1, bins) / bins  # the probabilities whose quantiles `update` takes

    def update(self, quantiles: Matrix, targets: Vector) -> None:
        """Count more rows, given the quantiles of each at ``edges``."""
        which = (quantiles < targets[:, None]).sum(axis=1)
        self.counts += np.bincount(which, minlength=self.counts.size)

    @property
    def value(self) -> float:
        total = self.counts.sum()
        return float(np.abs(np.cumsum(self.counts)[:-1] / total - self.edges).max()) if total else math.nan

    def coverage(self) -> tuple[Vector, Vector]:
        """Central intervals between edges of the bins: their nominal levels and what they covered."""
        half = self.counts.size // 2
        inside = np.cumsum(self.counts[half:] + self.counts[:half][::-1])[:-1]
        return np.arange(1, half) / half, inside / self.counts.sum()
