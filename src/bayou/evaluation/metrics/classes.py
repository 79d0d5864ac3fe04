"""Scores of probabilities of classes: a row per example, a column per class; ``codes`` are the true columns."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidSpec, ShapeMismatch
from bayou.evaluation.metrics.metric import (
    NUMBER_OF_BINS,
    SMALLEST_PROBABILITY,
    Codes,
    Mean,
    Metric,
    Weighed,
    check_classes,
    checked_weights,
    summed_weights,
)


class Accuracy(Mean):
    """Fraction of rows whose most probable class was the true one.

    >>> import numpy as np
    >>> accuracy = Accuracy()
    >>> accuracy.update(np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0, 0]))
    >>> accuracy.value
    0.5
    """

    def update(self, probabilities: Matrix, codes: Codes, weights: ArrayLike | None = None) -> None:
        """Count more rows."""
        check_classes(probabilities, codes)
        self.count(np.argmax(probabilities, axis=1) == codes, weights)


class LogLoss(Mean):
    """Mean of -log of the probability that was given to the true class, in nats."""

    def update(self, probabilities: Matrix, codes: Codes, weights: ArrayLike | None = None) -> None:
        """Count more rows."""
        check_classes(probabilities, codes)
        given = probabilities[np.arange(len(codes)), codes]
        self.count(-np.log(np.maximum(given, SMALLEST_PROBABILITY)), weights)


class Brier(Mean):
    """Mean squared distance of the probabilities from the truth: of the second class if there are two, else of all."""

    def update(self, probabilities: Matrix, codes: Codes, weights: ArrayLike | None = None) -> None:
        """Count more rows."""
        check_classes(probabilities, codes)
        truth = np.arange(probabilities.shape[1]) == codes[:, None]
        distances = (probabilities - truth) ** 2
        self.count(distances[:, 1] if probabilities.shape[1] == 2 else distances.sum(axis=1), weights)


class CalibrationError(Weighed):
    """Expected calibration error: distance between probability and frequency, in bins of equal width.

    The probability is that of the second class if there are two, else that of the most probable one. Even true
    probabilities show some error on few rows: see ``noise``.

    >>> import numpy as np
    >>> error = CalibrationError()
    >>> error.update(np.array([[0.2, 0.8]] * 10), np.array([1] * 7 + [0] * 3))
    >>> round(error.value, 3), round(error.noise, 3)
    (0.1, 0.101)
    """

    settings: ClassVar[tuple[str, ...]] = ("bins",)
    counted: ClassVar[tuple[str, ...]] = ("rows", "squared_weights", "predicted", "observed", "squares", "variance")

    def __init__(self, bins: int = NUMBER_OF_BINS) -> None:
        if bins < 1:
            raise InvalidSpec(f"`bins` must be at least 1; got {bins!r}.")
        self.bins = bins
        self.rows, self.predicted, self.observed = np.zeros(bins), np.zeros(bins), np.zeros(bins)  # sums per bin
        self.squares, self.variance = np.zeros(bins), np.zeros(bins)
        self.squared_weights: float = 0

    def update(self, probabilities: Matrix, codes: Codes, weights: ArrayLike | None = None) -> None:
        """Count more rows."""
        check_classes(probabilities, codes)
        each = checked_weights(weights, len(codes))
        if probabilities.shape[1] == 2:
            given, happened = probabilities[:, 1], codes == 1
        else:
            given, happened = probabilities.max(axis=1), np.argmax(probabilities, axis=1) == codes
        which = np.minimum((given * self.bins).astype(np.intp), self.bins - 1)
        parts = (np.ones(len(codes)), given, happened, (given - happened) ** 2, given * (1.0 - given))
        sums = (self.rows, self.predicted, self.observed, self.squares, self.variance)
        for total, part in zip(sums, parts, strict=True):
            total += np.bincount(which, weights=part if each is None else each * part, minlength=self.bins)
        self.squared_weights += summed_weights(each, len(codes))[1]

    @property
    def value(self) -> float:
        rows = self.total
        return float(np.abs(self.predicted - self.observed).sum() / rows) if rows else math.nan

    @property
    def standard_error(self) -> float:
        """For the signs of the gaps as they are: the error is then a mean over rows."""
        scatter = self.squares - (self.predicted - self.observed) ** 2 / np.where(self.rows > 0.0, self.rows, 1.0)
        rows = self.total
        return float(self.inflation * np.sqrt(np.maximum(scatter, 0.0).sum()) / rows) if rows else math.nan

    @property
    def noise(self) -> float:
        """The error to expect by chance on so many rows if every probability were true."""
        rows = self.total
        deviations = math.sqrt(2.0 / math.pi) * np.sqrt(self.variance).sum()
        return float(self.inflation * deviations / rows) if rows else math.nan


class KappaTemporal(Weighed):
    """Fraction of the errors of "the same class as last time" that the model avoids; below 0 it makes more of them."""

    counted: ClassVar[tuple[str, ...]] = ("rows", "squared_weights", "of_model", "of_last", "of_both")

    def __init__(self) -> None:
        self.rows: float = 0
        self.squared_weights: float = 0
        self.of_model: float = 0  # errors
        self.of_last: float = 0
        self.of_both: float = 0

    def update(self, probabilities: Matrix, codes: Codes, last: Codes, weights: ArrayLike | None = None) -> None:
        """Count more rows; ``last`` are the codes of the rows before each, -1 if there was none."""
        check_classes(probabilities, codes)
        if last.shape != codes.shape:
            raise ShapeMismatch(f"`last` must be one code for each of {codes.shape}; got shape {last.shape}.")
        each = checked_weights(weights, len(codes))
        model, no_change = np.argmax(probabilities, axis=1) != codes, last != codes
        parts = (np.ones(len(codes), dtype=np.bool_), model, no_change, model & no_change)
        sums = [int(part.sum()) if each is None else float(each @ part) for part in parts]
        self.rows += sums[0]
        self.squared_weights += summed_weights(each, len(codes))[1]
        self.of_model += sums[1]
        self.of_last += sums[2]
        self.of_both += sums[3]

    @property
    def value(self) -> float:
        return 1.0 - self.of_model / self.of_last if self.of_last else math.nan

    @property
    def standard_error(self) -> float:
        """Of a ratio of two means over the same rows, to first order."""
        if not self.of_last:
            return math.nan
        ratio = self.of_model / self.of_last
        scatter = max(self.of_model - 2.0 * ratio * self.of_both + ratio**2 * self.of_last, 0.0)
        return self.inflation * math.sqrt(scatter) / self.of_last


class _PerClass(Weighed):
    """Counts that have as many columns as there are classes: how many that is, the first rows tell."""

    counts: Matrix

    @property
    def n_classes(self) -> int:
        """How many classes there are; 0 before the first rows."""
        return int(self.counts.shape[-1])

    def _prepare(self, probabilities: Matrix, codes: Codes) -> None:
        check_classes(probabilities, codes)
        if self.n_classes not in (0, probabilities.shape[1]):
            wanted = f"a column for each of {self.n_classes} classes, as before"
            raise ShapeMismatch(f"`probabilities` must have {wanted}; got {probabilities.shape[1]}.")

    def _add(self, counts: NDArray[Any], weights: Vector | None, rows: int) -> None:
        self.counts = counts.astype(np.float64) + (self.counts if self.n_classes else 0.0)
        total, squared = summed_weights(weights, rows)
        self.rows += total
        self.squared_weights += squared

    def merge(self, other: Metric) -> None:
        self.check_alike(other)
        if not isinstance(other, _PerClass) or not other.n_classes:
            return
        if self.n_classes not in (0, other.n_classes):
            raise InvalidSpec(f"metrics that are merged must have as many classes, {self.n_classes}; got {other!r}.")
        if not self.n_classes:
            self.counts = np.zeros_like(other.counts)
        super().merge(other)

    def has_room(self, name: str, shape: tuple[int, ...]) -> bool:
        return len(shape) == 2 and shape[0] in (2, shape[1])


class BalancedAccuracy(_PerClass):
    """Mean over the classes that came of the fraction of their rows that were told right: chance is 1 / classes.

    >>> import numpy as np
    >>> balanced = BalancedAccuracy()
    >>> balanced.update(np.array([[0.9, 0.1]] * 10), np.array([0] * 9 + [1]))
    >>> balanced.value
    0.5
    """

    counted: ClassVar[tuple[str, ...]] = ("rows", "squared_weights", "counts")

    def __init__(self) -> None:
        self.rows: float = 0
        self.squared_weights: float = 0
        self.counts = np.zeros((2, 0))  # rows of each class, and of these the ones told right

    def update(self, probabilities: Matrix, codes: Codes, weights: ArrayLike | None = None) -> None:
        """Count more rows."""
        self._prepare(probabilities, codes)
        each, classes = checked_weights(weights, len(codes)), probabilities.shape[1]
        right = np.argmax(probabilities, axis=1) == codes
        came = np.bincount(codes, each, classes)
        told = np.bincount(codes, right if each is None else each * right, classes)
        self._add(np.stack([came, told]), each, len(codes))

    @property
    def value(self) -> float:
        came, told = self.counts[:, self.counts[0] > 0.0]
        return float(np.mean(told / came)) if came.size else math.nan

    @property
    def standard_error(self) -> float:
        """For as many rows of each class as there were."""
        came, told = self.counts[:, self.counts[0] > 0.0]
        recall = told / came
        variance = np.sum(recall * np.maximum(1.0 - recall, 0.0) / came)
        return float(self.inflation * math.sqrt(variance) / came.size) if came.size else math.nan


class Kappa(_PerClass):
    """Cohen's: the accuracy beyond that of chance, by what is beyond chance at most. Chance says each class as often
    as the model does, of any row. Its memory grows with the square of the number of classes.

    >>> import numpy as np
    >>> kappa = Kappa()
    >>> kappa.update(np.array([[0.9, 0.1]] * 6 + [[0.2, 0.8]] * 4), np.array([0] * 5 + [1] * 3 + [0, 1]))
    >>> kappa
    Kappa(0.5833 ± 0.26)
    """

    counted: ClassVar[tuple[str, ...]] = ("rows", "squared_weights", "counts")

    def __init__(self) -> None:
        self.rows: float = 0
        self.squared_weights: float = 0
        self.counts = np.zeros((0, 0))  # a row per true class, a column per class told

    def update(self, probabilities: Matrix, codes: Codes, weights: ArrayLike | None = None) -> None:
        """Count more rows."""
        self._prepare(probabilities, codes)
        told, classes = np.argmax(probabilities, axis=1), probabilities.shape[1]
        each = checked_weights(weights, len(codes))
        pairs = np.bincount(codes * classes + told, each, classes**2).reshape(classes, classes)
        self._add(pairs, each, len(codes))

    @property
    def value(self) -> float:
        if not self.rows:
            return math.nan
        shares = self.counts / self.counts.sum()
        chance = float(shares.sum(axis=0) @ shares.sum(axis=1))
        return (float(np.trace(shares)) - chance) / (1.0 - chance) if chance < 1.0 else math.nan

    @property
    def standard_error(self) -> float:
        """To first order in all counts, after Fleiss, Cohen and Everitt."""
        kappa = self.value
        if math.isnan(kappa):
            return math.nan
        shares = self.counts / self.counts.sum()
        came, told = shares.sum(axis=1), shares.sum(axis=0)
        chance = float(came @ told)
        # By how much kappa changes with a little more of each pair of classes, times 1 - chance.
        slopes = np.eye(self.n_classes) - (1.0 - kappa) * (told[:, None] + came[None, :])
        variance = float(np.sum(shares * slopes**2) - np.sum(shares * slopes) ** 2)
        return math.sqrt(max(variance, 0.0) / self.effective_rows) / (1.0 - chance)
