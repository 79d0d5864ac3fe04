"""The area under the ROC curve, in constant memory: by a histogram of the log odds, whose bins double as it widens."""

from __future__ import annotations

import math
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayou.contracts import Matrix, State, Vector
from bayou.errors import ModelFileError, ShapeMismatch
from bayou.evaluation.metrics.metric import Codes, Metric, Weighed, check_classes, checked_weights, summed_weights

MOST_BINS = 2048
FINEST = 20  # the narrowest bins are 2^-20 wide
LEAST_PROBABILITY = 2.0**-53  # log odds reach from -36.7 to 36.7


class AUC(Weighed):
    """How often a row of the second class was given more probability than one of the first; ties count half.

    The rows are kept as counts in at most 2,048 bins over the log odds. All bins are of one width, a power of two, the
    least with which all rows so far have room: about a thousandth of the range, and bins of any two widths nest. So
    the order of rows and portions changes nothing, and merging is exact. Two rows in one bin count as a tie: the area
    is wrong by no more than ``rounding``, half the share of such pairs, and by far less where the log odds are spread
    smoothly. Probabilities below 2^-53 are told as that.

    >>> import numpy as np
    >>> area = AUC()
    >>> area.update(np.array([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]]), np.array([0, 0, 1, 1]))
    >>> area.value, area.rounding
    (0.75, 0.0)
    """

    counted: ClassVar[tuple[str, ...]] = ("rows", "squared_weights", "level", "first", "counts")
    keeps: ClassVar[tuple[str, ...]] = ("level", "first")

    def __init__(self) -> None:
        self.rows: float = 0
        self.squared_weights: float = 0
        self.level = FINEST  # bins are 2^-level wide
        self.first = 0  # the first bin starts at so many widths
        self.counts = np.zeros((2, 0))  # of either class

    def update(self, probabilities: Matrix, codes: Codes, weights: ArrayLike | None = None) -> None:
        """Count more rows, of two classes."""
        check_classes(probabilities, codes)
        if probabilities.shape[1] != 2:
            raise ShapeMismatch(f"`probabilities` must be of two classes; got {probabilities.shape[1]} columns.")
        each = checked_weights(weights, len(codes))
        if not codes.size:
            return
        given = np.clip(probabilities[:, 1], LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
        places = np.floor(np.log(given / (1.0 - given)) * 2.0**FINEST).astype(np.int64)
        self.count_places(places, codes, each)

    def count_places(self, places: NDArray[np.int64], codes: Codes, each: Vector | None = None) -> None:
        """Count rows by their log odds, in whole numbers of the narrowest bins."""
        self._make_room(int(places.min()), int(places.max()), FINEST)
        bins = self.counts.shape[1]
        which = (places >> (FINEST - self.level)) - self.first + bins * codes
        self.counts += np.bincount(which, each, 2 * bins).reshape(2, bins)
        total, squared = summed_weights(each, len(codes))
        self.rows += total
        self.squared_weights += squared

    def _make_room(self, first: int, last: int, level: int) -> None:
        """Let the bins reach these, too, which are of some level."""
        finest = min(level, self.level)
        first, last = first >> (level - finest), last >> (level - finest)
        if self.counts.size:
            own = self.level - finest
            first, last = min(first, self.first >> own), max(last, (self.first + self.counts.shape[1] - 1) >> own)
        while last - first >= MOST_BINS:
            first, last, finest = first >> 1, last >> 1, finest - 1
        if (finest, first, last - first + 1) != (self.level, self.first, self.counts.shape[1]):
            self.counts = self._retold(finest, first, last)
            self.level, self.first = finest, first

    def _retold(self, level: int, first: int, last: int) -> Matrix:
        """The counts in bins that are as wide or wider, from first to last."""
        counts = np.zeros((2, last - first + 1))
        places = ((self.first + np.arange(self.counts.shape[1])) >> (self.level - level)) - first
        for own, told in zip(self.counts, counts, strict=True):
            told += np.bincount(places, own, told.size)
        return counts

    def merge(self, other: Metric) -> None:
        self.check_alike(other)
        if not isinstance(other, AUC) or not other.counts.size:
            return
        last = other.first + other.counts.shape[1] - 1
        self._make_room(other.first, last, other.level)
        self.counts = self.counts + other._retold(self.level, self.first, self.first + self.counts.shape[1] - 1)
        self.rows += other.rows
        self.squared_weights += other.squared_weights

    def has_room(self, name: str, shape: tuple[int, ...]) -> bool:
        return len(shape) == 2 and shape[0] == 2 and shape[1] <= MOST_BINS

    @classmethod
    def made_of(cls, state: State) -> Self:
        area = super().made_of(state)
        if not isinstance(area.level, int) or not isinstance(area.first, int) or area.level > FINEST:
            raise ModelFileError(f"bins must be 2^-{FINEST} wide or more; got 2^-{area.level!r}, from {area.first!r}.")
        return area

    @property
    def value(self) -> float:
        negatives, positives = self.counts
        pairs = negatives.sum() * positives.sum()
        return float(positives @ _below(negatives) / pairs) if pairs else math.nan

    @property
    def rounding(self) -> float:
        """The area is at most so far from that of all rows kept apart."""
        negatives, positives = self.counts
        pairs = negatives.sum() * positives.sum()
        return float(0.5 * (positives @ negatives) / pairs) if pairs else math.nan

    @property
    def standard_error(self) -> float:
        """After DeLong: from how the share of the other class that a row is told from differs between rows."""
        area, variance = self.value, 0.0
        if math.isnan(area):
            return math.nan
        negatives, positives = self.counts
        sides = ((positives, _below(negatives) / negatives.sum()), (negatives, _above(positives) / positives.sum()))
        for counts, shares in sides:
            total = float(counts.sum())
            effective = total / self.inflation**2
            if effective <= 1.0:
                return math.nan
            variance += float(counts @ (shares - area) ** 2) / total / (effective - 1.0)
        return math.sqrt(variance)


def _below(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many are in the bins below each, and half of those in it."""
    below: NDArray[np.float64] = np.cumsum(counts) - 0.5 * counts
    return below


def _above(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    above: NDArray[np.float64] = counts.sum() - _below(counts)
    return above
