"""Intervals around what a model says: from quantile to quantile and, where its tails end, stretched around its median.

    reach r    from quantile Phi(-r) to quantile Phi(r) while r <= 4; beyond, those of r = 4, r / 4 times as far

For a Gaussian prediction an interval of reach r goes r standard deviations to either side, however large r is. A model
that is hopeless is helped too: every target that a number can be lies within some reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from bayou.contracts import Matrix, Vector

FARTHEST = 4.0  # a model's own tails are believed up to here
NARROWEST = 1e-150  # half of an interval that is to be stretched: what it is divided into stays a number
SMALLEST = 1e-300
ROUNDING = 1e-12


def reaches(said: Any, targets: Vector) -> Vector:
    """The least reach that covers each target."""
    below = said.cumulative(targets)
    strictly_below = said.cumulative(np.nextafter(targets, -np.inf))  # which differs where targets are whole numbers
    least: Vector = np.maximum(-ndtri(below), ndtri(strictly_below))
    far = ~(least < FARTHEST)
    if far.any():
        middle, down, up = _halves(said[far])
        half = np.where(targets[far] < middle, down, up)
        with np.errstate(over="ignore"):
            least[far] = FARTHEST * np.maximum(np.abs(targets[far] - middle) / half, 1.0)
    return np.maximum(least, SMALLEST)


def intervals(said: Any, reach: float) -> Matrix:
    """Low and high of each row, at one reach."""
    if reach >= FARTHEST:
        return _stretched(said, np.full(1, reach))
    ends: Matrix = said.quantiles([float(ndtr(-reach)), float(ndtr(reach))])
    return ends


def intervals_of_rows(said: Any, reach: Vector) -> Matrix:
    """Low and high of each row, at a reach of its own."""
    inner = np.minimum(reach, FARTHEST)
    middle, down, up = _halves(said)
    low = _quantiles(said.cumulative, ndtr(-inner), middle - down, middle)
    high = _quantiles(said.cumulative, ndtr(inner), middle, middle + up)
    return np.where((reach < FARTHEST)[:, None], np.column_stack([low, high]), _stretched(said, reach))


def _stretched(said: Any, reach: Vector) -> Matrix:
    middle, down, up = _halves(said)
    factor = np.maximum(reach / FARTHEST, 1.0)
    with np.errstate(over="ignore"):
        return np.column_stack([middle - factor * down, middle + factor * up])


def _halves(said: Any) -> tuple[Vector, Vector, Vector]:
    """The median, and how far it is from there to the farthest quantiles that are believed."""
    low, middle, high = said.quantiles([float(ndtr(-FARTHEST)), 0.5, float(ndtr(FARTHEST))]).T
    least = np.maximum(np.spacing(np.abs(middle)), NARROWEST)  # a stretch of nothing would reach nowhere
    return middle, np.maximum(middle - low, least), np.maximum(high - middle, least)


def _quantiles(cumulative: Callable[[Vector], Vector], chances: Vector, low: Vector, high: Vector) -> Vector:
    """The least value from low to high whose cumulative probability is the row's chance or more, by halving."""
    close = ROUNDING * np.maximum(high - low, np.maximum(np.abs(low), np.abs(high)))
    high = np.where(cumulative(low) >= chances, low, high)
    while np.any(high - low > close):
        middle = 0.5 * (low + high)
        enough = cumulative(middle) >= chances
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    whole = np.round(high)  # where targets are such, and halving comes to them from above
    return np.where((np.abs(high - whole) <= close) & (cumulative(whole) >= chances), whole, high)


class ConformalPrediction:
    """What a model said of targets before it saw them, with intervals that were adapted to keep a promise.

    ``interval()`` is of the coverage that was promised; all else is what the model itself says.
    """

    def __init__(self, said: Any, reach: Vector, coverage: float) -> None:
        self.said, self.reach, self.coverage = said, reach, coverage

    def interval(self, coverage: float | None = None) -> Matrix:
        """Low and high of each row; of a coverage other than that promised, those of the model itself."""
        if coverage is None or coverage == self.coverage:
            return intervals_of_rows(self.said, self.reach)
        own: Matrix = self.said.interval(coverage)
        return own

    @property
    def mean(self) -> Vector:
        """Expected target of each row."""
        mean: Vector = self.said.mean
        return mean

    @property
    def variance(self) -> Vector:
        """Variance of the target of each row."""
        variance: Vector = self.said.variance
        return variance

    def quantiles(self, probabilities: ArrayLike) -> Matrix:
        """Quantiles of each row's target: a column per probability."""
        quantiles: Matrix = self.said.quantiles(probabilities)
        return quantiles

    def cumulative(self, y: ArrayLike) -> Vector:
        """Probability that each target is y or less."""
        chances: Vector = self.said.cumulative(y)
        return chances

    def log_probability(self, y: ArrayLike) -> Vector:
        """Log probability, or log density, that was given to y."""
        logs: Vector = self.said.log_probability(y)
        return logs

    def __repr__(self) -> str:
        return f"ConformalPrediction(coverage={self.coverage!r}, interval={self.interval()!r})"
