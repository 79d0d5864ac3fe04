"""Rows of two views, as moments; and each view as white variables: uncorrelated, of unit variance.

The moments of rows are all that canonical correlations depend on, and those of parts add up to those of the whole.
Each view is whitened through the correlation matrix of its columns, so scales do not matter. Columns that never varied,
and directions without variance (columns that are sums of others), have no white variable. Where rows are too few for
the columns, a view is described by as many principal directions as the rows can tell from noise, and noise around them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayou.contracts import Matrix, Vector

ROUNDING = 1e-12  # a deviation this small beside the mean is rounding
SMALLEST = 1e-140  # the square of a deviation below is no number
ROWS_PER_SIGNAL = 4.0  # at least, where a view is reduced: with fewer, chance makes correlations
FLAT = 1e-10  # a share of the largest principal variance below which a direction has none


class Moments(NamedTuple):
    """How much was seen, its mean, and the sums of products of deviations from it."""

    weight: float
    mean: Vector
    scatter: Matrix


class View(NamedTuple):
    """White variables of a view: ``(x - mean) @ weights``, and back: ``mean + white @ patterns``.

    Of these, the first ``n_signals`` may be correlated with the other view; those that follow are the noise that a
    reduction left. ``log_volume`` is the log density of x less that of the white variables.
    """

    mean: Vector
    weights: Matrix
    patterns: Matrix
    n_signals: int
    log_volume: float

    def white(self, rows: Matrix) -> Matrix:
        """The white variables of rows."""
        white: Matrix = (rows - self.mean) @ self.weights
        return white

    def turned(self, rotation: Matrix) -> View:
        """The same, with the signals turned by an orthogonal matrix."""
        weights, patterns, n = self.weights.copy(), self.patterns.copy(), self.n_signals
        weights[:, :n] = weights[:, :n] @ rotation
        patterns[:n] = rotation.T @ patterns[:n]
        return self._replace(weights=weights, patterns=patterns)


def no_moments(n_columns: int) -> Moments:
    """Before any row."""
    return Moments(0.0, np.zeros(n_columns), np.zeros((n_columns, n_columns)))


def moments_of(rows: Matrix, weights: Vector | None = None) -> Moments:
    """Of rows, which may count for more or less than one each."""
    if weights is None:
        weights = np.ones(len(rows))
    weight = float(weights.sum())
    if weight <= 0.0:
        return no_moments(rows.shape[1])
    start = rows[0]  # far from zero, differences are exact where sums are not
    mean = start + weights @ (rows - start) / weight
    deviations = rows - mean
    return Moments(weight, mean, (deviations.T * weights) @ deviations)


def merged(one: Moments, other: Moments) -> Moments:
    """Of the rows of both."""
    weight = one.weight + other.weight
    if weight <= 0.0 or one.weight <= 0.0:
        return other
    step = other.mean - one.mean
    share = other.weight / weight
    scatter = one.scatter + other.scatter + (one.weight * share) * np.outer(step, step)
    return Moments(weight, one.mean + share * step, scatter)


def discounted(moments: Moments, factor: float) -> Moments:
    """The same rows, each counting for so much less."""
    return Moments(factor * moments.weight, moments.mean, factor * moments.scatter)


def whitened(moments: Moments, n_x: int) -> tuple[View, View, Matrix]:
    """Both views, and the correlations between their signals; the first view has the first ``n_x`` columns."""
    x, y = np.arange(n_x), np.arange(n_x, moments.mean.size)
    one, other = _Spectrum.of(moments, x), _Spectrum.of(moments, y)
    n_one, n_other = _signals(one, other, moments.weight)
    first, second = one.view(n_one), other.view(n_other)
    cross = first.weights[:, :n_one].T @ (moments.scatter[np.ix_(x, y)] / moments.weight) @ second.weights[:, :n_other]
    return first, second, cross


class _Spectrum(NamedTuple):
    """A view by its principal directions: of the correlations of those columns that vary."""

    mean: Vector
    deviation: Vector  # of each column, 0 if it does not vary
    variances: Vector  # of the directions, the largest first
    directions: Matrix

    @staticmethod
    def of(moments: Moments, columns: np.ndarray) -> _Spectrum:
        mean = moments.mean[columns]
        covariance = moments.scatter[np.ix_(columns, columns)] / moments.weight
        deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        deviation[(deviation <= ROUNDING * np.abs(mean)) | (deviation < SMALLEST)] = 0.0
        varies = deviation > 0.0
        scale = deviation[varies]
        correlation = covariance[np.ix_(varies, varies)] / scale[:, None] / scale
        variances, directions = np.linalg.eigh(0.5 * (correlation + correlation.T))
        return _Spectrum(mean, deviation, np.maximum(variances[::-1], 0.0), directions[:, ::-1])

    @property
    def rank(self) -> int:
        """How many directions have a variance."""
        return int(np.sum(self.variances > FLAT * self.variances[:1].sum()))

    def view(self, n_signals: int) -> View:
        """With so many of the directions as signals; the others, if they have a variance, share it."""
        rest = self._noise(n_signals)
        n_white = self.variances.size if rest > 0.0 else n_signals
        variances = np.concatenate([self.variances[:n_signals], np.full(n_white - n_signals, rest)])
        spread, directions = np.sqrt(variances), self.directions[:, :n_white]
        varies = self.deviation > 0.0
        scale = self.deviation[varies]
        weights, patterns = np.zeros((self.mean.size, n_white)), np.zeros((n_white, self.mean.size))
        weights[varies] = directions / scale[:, None] / spread
        patterns[:, varies] = (directions * spread).T * scale
        log_volume = -float(np.sum(np.log(spread)) + np.sum(np.log(scale)))
        return View(self.mean, weights, patterns, n_signals, log_volume)

    def _noise(self, n_signals: int) -> float:
        """The variance of each direction that is no signal; 0 if these are flat."""
        rest = self.variances[n_signals:]
        level = float(rest.mean()) if rest.size else 0.0
        return level if level > FLAT * self.variances[:1].sum() else 0.0

    def told(self, weight: float, most: int) -> int:
        """As how many signals, up to so many, plus noise the rows are most probable.

        By the evidence of probabilistic principal components, to the order of its logarithm (BIC).
        """
        d, best, chosen = self.variances.size, -math.inf, 0
        for n in range(min(most, d) + 1):
            noise = self._noise(n)
            if noise == 0.0 and n < d:
                return n
            spread = np.sum(np.log(self.variances[:n])) + (d - n) * math.log(noise or 1.0)
            free = d + d * n - n * (n - 1) / 2 + 1
            evidence = -0.5 * (weight * float(spread) + free * math.log(weight))
            if evidence > best:
                best, chosen = evidence, n
        return chosen


def _signals(one: _Spectrum, other: _Spectrum, weight: float) -> tuple[int, int]:
    """How many variables of each view to relate: all, if rows are more than these, or few beside the rows."""
    ranks = one.rank, other.rank
    if sum(ranks) < weight:
        return ranks
    room = int(weight / ROWS_PER_SIGNAL)
    half = room // 2
    if ranks[0] <= half:
        return ranks[0], other.told(weight, room - ranks[0])
    if ranks[1] <= half:
        return one.told(weight, room - ranks[1]), ranks[1]
    return one.told(weight, half), other.told(weight, half)
