"""Scores of predicted numbers and counts, of their intervals and of their distributions."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidSpec
from bayou.evaluation.metrics.metric import (
    NUMBER_OF_BINS,
    SMALLEST_PROBABILITY,
    Mean,
    Weighed,
    check_columns,
    check_pairs,
    checked_weights,
    summed_weights,
)

PAIR = ("predictions", "targets")


class RMSE(Mean):
    """Root of the mean squared error, in units of the target."""

    def update(self, predictions: Vector, targets: Vector, weights: ArrayLike | None = None) -> None:
        """Count more rows."""
        check_pairs(predictions, targets, PAIR)
        self.count((predictions - targets) ** 2, weights)

    @property
    def value(self) -> float:
        return math.sqrt(super().value) if self.rows else math.nan

    @property
    def standard_error(self) -> float:
        return super().standard_error / (2.0 * self.value) if self.mean > 0.0 else math.nan


class MAE(Mean):
    """Mean absolute error, in units of the target."""

    def update(self, predictions: Vector, targets: Vector, weights: ArrayLike | None = None) -> None:
        """Count more rows."""
        check_pairs(predictions, targets, PAIR)
        self.count(np.abs(predictions - targets), weights)


class NegativeLogDensity(Mean):
    """Mean of -log of the density (of counts: the probability) that was given to the target, in nats."""

    def update(self, log_probabilities: Vector, weights: ArrayLike | None = None) -> None:
        """Count more rows."""
        self.count(-log_probabilities, weights)


class Deviance(Mean):
    """Mean deviance of counts from predicted rates, as Poisson's likelihood measures it."""

    def update(self, predictions: Vector, targets: Vector, weights: ArrayLike | None = None) -> None:
        """Count more rows."""
        check_pairs(predictions, targets, PAIR)
        rates = np.maximum(predictions, SMALLEST_PROBABILITY)
        logs = np.log(np.where(targets > 0.0, targets, rates) / rates)
        self.count(2.0 * (targets * logs - targets + rates), weights)


class Coverage(Mean):
    """Fraction of targets inside their intervals, to be compared with the ``level`` that was asked for.

    >>> import numpy as np
    >>> coverage = Coverage(0.9)
    >>> coverage.update(np.array([[0.0, 1.0]] * 100), np.linspace(0.0, 1.25, 100))
    >>> coverage
    Coverage(0.8 ± 0.04)
    """

    settings: ClassVar[tuple[str, ...]] = ("level",)

    def __init__(self, level: float = 0.9) -> None:
        if not 0.0 < level < 1.0:
            raise InvalidSpec(f"`level` must lie between 0 and 1; got {level!r}.")
        super().__init__()
        self.level = level

    def update(self, intervals: Matrix, targets: Vector, weights: ArrayLike | None = None) -> None:
        """Count more rows."""
        check_columns(intervals, targets, 2, "intervals")
        self.count((intervals[:, 0] <= targets) & (targets <= intervals[:, 1]), weights)

    @property
    def standard_error(self) -> float:
        return math.sqrt(self.value * max(1.0 - self.value, 0.0) / self.effective_rows) if self.rows else math.nan


class Width(Mean):
    """Mean width of the intervals, in units of the target: of two models that cover, the narrower is the better."""

    def update(self, intervals: Matrix, weights: ArrayLike | None = None) -> None:
        """Count more rows."""
        check_columns(intervals, None, 2, "intervals")
        self.count(intervals[:, 1] - intervals[:, 0], weights)


class PITHistogram(Weighed):
    """In which part of its predictive distribution each target fell: flat if the distributions are true.

    High ends say that the distributions are too narrow, a high middle that they are too wide. ``value`` is the largest
    distance between the two distribution functions at the edges of the bins (that of Kolmogorov and Smirnov).
    """

    settings: ClassVar[tuple[str, ...]] = ("bins",)
    counted: ClassVar[tuple[str, ...]] = ("counts", "squared_weights")

    def __init__(self, bins: int = NUMBER_OF_BINS) -> None:
        if bins < 2 or bins % 2:
            raise InvalidSpec(f"`bins` must be an even number, at least 2; got {bins!r}.")
        self.bins = bins
        self.counts = np.zeros(bins)
        self.squared_weights: float = 0
        self.edges = np.arange(1, bins) / bins  # the probabilities whose quantiles `update` takes

    @property
    def rows(self) -> float:
        """The sum of the weights."""
        return float(self.counts.sum())

    def update(self, quantiles: Matrix, targets: Vector, weights: ArrayLike | None = None) -> None:
        """Count more rows, given the quantiles of each at ``edges``."""
        check_columns(quantiles, targets, self.edges.size, "quantiles")
        each = checked_weights(weights, len(targets))
        which = (quantiles < targets[:, None]).sum(axis=1)
        self.counts += np.bincount(which, each, self.bins)
        self.squared_weights += summed_weights(each, len(targets))[1]

    @property
    def value(self) -> float:
        total = self.counts.sum()
        return float(np.abs(np.cumsum(self.counts)[:-1] / total - self.edges).max()) if total else math.nan

    def coverage(self) -> tuple[Vector, Vector]:
        """Central intervals between edges of the bins: their nominal levels and what they covered."""
        half = self.counts.size // 2
        inside = np.cumsum(self.counts[half:] + self.counts[:half][::-1])[:-1]
        return np.arange(1, half) / half, inside / self.counts.sum()
