"""The continuous ranked probability score: int (P(y <= x) - [target <= x])^2 dx, in units of the target.

Of a prediction that is one number it is the absolute error. With H(z) = int_-inf^z ndtr^2 and y = a + b z,

    int_-inf^y F^2 = b H(z)        int_y^inf (1 - F)^2 = b H(-z)        for F = ndtr((x - a) / b)

which is also what each stretch between two quantiles adds, if in it the quantiles are linear in those of a normal.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidPrediction, InvalidSpec, InvalidTarget
from bayou.evaluation.metrics.metric import NUMBER_OF_BINS, Mean, check_columns, check_pairs

FARTHEST = 40.0  # standard deviations: beyond, nothing is left of a normal
ROUNDING = 1e-9  # of a quantile, the largest, by which one may be less than that before
MOST_COUNTS = 100_000
NEGLIGIBLE = 1e-8  # probability beyond which counts are not looked at


class CRPS(Mean):
    """Mean continuous ranked probability score of predictive distributions, given by their quantiles at ``edges``.

    Between quantiles, and beyond the outermost, these are taken to be linear in those of a normal distribution. So it
    is exact for normal predictions. With 20 bins and on average over targets it is within 0.1 % for Student's t of 3
    degrees of freedom or more, Laplace and exponential distributions, and within 0.5 % for two normals that are six
    deviations apart. Of counts, which jump, give ``count(crps_of_counts(prediction, targets))``.

    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> score = CRPS()
    >>> score.update(norm(3.0, 2.0).ppf(np.tile(score.edges, (2, 1))), np.array([3.0, 4.0]))
    >>> score.value
    0.5651
    >>> crps_of_normal(np.full(2, 3.0), np.full(2, 2.0), np.array([3.0, 4.0]))
    array([0.4674, 0.6628])
    """

    settings: ClassVar[tuple[str, ...]] = ("bins",)

    def __init__(self, bins: int = NUMBER_OF_BINS) -> None:
        if bins < 3:
            raise InvalidSpec(f"`bins` must be at least 3; got {bins!r}.")
        super().__init__()
        self.bins = bins
        self.edges = np.arange(1, bins) / bins  # the probabilities whose quantiles `update` takes

    def update(self, quantiles: Matrix, targets: Vector, weights: ArrayLike | None = None) -> None:
        """Count more rows, given the quantiles of each at ``edges``."""
        check_columns(quantiles, targets, self.edges.size, "quantiles")
        self.count(crps_of_quantiles(quantiles, self.edges, targets), weights)


def crps_of_normal(mean: Vector, deviation: Vector, targets: Vector) -> Vector:
    """Of normal predictions, exactly: per row."""
    check_pairs(mean, targets, ("mean", "targets"))
    check_pairs(deviation, targets, ("deviation", "targets"))
    if not np.all(deviation > 0.0):
        raise InvalidPrediction(f"`deviation` must be positive; got {deviation[~(deviation > 0.0)][0]}.")
    scores: Vector = _distance(targets - mean, deviation) - deviation / math.sqrt(math.pi)
    return scores


def crps_of_normals(shares: Matrix, means: Matrix, deviations: Matrix, targets: Vector) -> Vector:
    """Of mixtures of normals, exactly: per row, with a column per part.

    >>> import numpy as np
    >>> half, zero, one = np.full((1, 2), 0.5), np.zeros((1, 2)), np.ones((1, 2))
    >>> crps_of_normals(half, zero, one, np.array([0.7])) - crps_of_normal(zero[0, :1], one[0, :1], np.array([0.7]))
    array([0.])
    """
    for name, part in (("shares", shares), ("means", means), ("deviations", deviations)):
        check_columns(part, targets, shares.shape[-1], name)
    if not np.all(deviations > 0.0):
        raise InvalidPrediction(f"`deviations` must be positive; got {deviations[~(deviations > 0.0)][0]}.")
    near = np.sum(shares * _distance(targets[:, None] - means, deviations), axis=1)
    apart = _distance(means[:, :, None] - means[:, None, :], np.hypot(deviations[:, :, None], deviations[:, None, :]))
    scores: Vector = near - 0.5 * np.einsum("ri,rj,rij->r", shares, shares, apart)
    return scores


def _distance(shift: Any, deviation: Any) -> Any:
    """E |shift + deviation Z|."""
    z = shift / deviation
    return shift * (2.0 * ndtr(z) - 1.0) + deviation * math.sqrt(2.0 / math.pi) * np.exp(-0.5 * z**2)


def crps_of_quantiles(quantiles: Matrix, probabilities: Vector, targets: Vector) -> Vector:
    """Of predictions of which quantiles are known, at least two: per row; see `CRPS` for how exactly.

    It is infinite where a quantile is.
    """
    check_columns(quantiles, targets, probabilities.size, "quantiles")
    places = ndtri(probabilities)
    if places.size < 2 or not np.all(np.diff(places) > 0.0) or not np.all(np.isfinite(places)):
        raise InvalidSpec(f"`probabilities` must increase between 0 and 1, at least two; got {probabilities!r}.")
    if not len(targets):
        return np.zeros(0)
    with np.errstate(invalid="ignore"):
        steps = np.diff(quantiles, axis=1)
    if not (steps.min() >= 0.0 and steps.max() < math.inf and np.isfinite(quantiles[:, 0]).all()):
        finite = np.isfinite(quantiles).all(axis=1)
        _check_order(quantiles, steps[finite])
        if not finite.all():
            scores = np.full(len(targets), math.inf)
            scores[finite] = crps_of_quantiles(quantiles[finite], probabilities, targets[finite])
            return scores
        steps = np.maximum(steps, 0.0)
    inner = steps / np.diff(places)
    slopes = np.concatenate([inner[:, :1], inner, inner[:, -1:]], axis=1)  # the tails go on as they begin
    low, high = _area(places), _area(-places)
    below = np.diff(low, prepend=0.0)  # what each stretch adds to int F^2 if it is all below the target,
    above = -np.diff(high, append=0.0)  # and to int (1 - F)^2 if it is all above
    passed = quantiles < targets[:, None]
    whole = np.where(passed, slopes[:, :-1] * below, slopes[:, 1:] * above).sum(axis=1)
    rows, stretch = np.arange(len(targets)), passed.sum(axis=1)
    slope = slopes[rows, stretch]
    anchor = np.clip(stretch - 1, 0, places.size - 1)
    zero = quantiles[rows, anchor] - slope * places[anchor]  # where z would be 0 in this stretch
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = np.minimum(np.where(slope > 0.0, np.abs(targets - zero) / slope, 0.0), FARTHEST)
    # slope (H(z) + H(-z)) = slope (H(z) + H(-z) - |z|) + |y - zero|: finite, however narrow the stretch.
    excess = (math.sqrt(2.0) * np.exp(-0.5 * z**2) - 1.0) / math.sqrt(math.pi) - 2.0 * z * ndtr(-z)
    left = np.concatenate([[0.0], low])[stretch]
    right = np.concatenate([high, [0.0]])[stretch]
    near: Vector = whole + slope * (excess - left - right) + np.abs(targets - zero)
    return near


def _check_order(quantiles: Matrix, steps: Matrix) -> None:
    if np.isnan(quantiles).any():
        raise InvalidPrediction("`quantiles` must be numbers; got nan.")
    if steps.min(initial=0.0) < -ROUNDING * np.abs(quantiles[np.isfinite(quantiles)]).max(initial=0.0):
        raise InvalidPrediction(f"`quantiles` must not fall; got a step of {steps.min()}.")


def _area(z: Vector) -> Vector:
    """H(z), the integral of ndtr^2 up to z."""
    below = ndtr(z)
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    area: Vector = z * below**2 + 2.0 * below * density - ndtr(math.sqrt(2.0) * z) / math.sqrt(math.pi)
    return area


def crps_of_counts(prediction: Any, targets: Vector) -> Vector:
    """Of predicted counts, by their cumulative probabilities, one count after another: per row.

    What is left out beyond the last count looked at has less than 1e-8 of the probability in each row.

    >>> import numpy as np
    >>> from bayou import Poisson, Prediction
    >>> from bayou.contracts import Latent
    >>> rate_one = Prediction(Poisson(), Latent(np.zeros(2), np.full(2, 1e-12)))
    >>> crps_of_counts(rate_one, np.array([0.0, 1.0]))
    array([0.4762, 0.2119])
    """
    if targets.ndim != 1 or not np.all((targets >= 0.0) & (targets == np.floor(targets)) & (targets < MOST_COUNTS)):
        raise InvalidTarget(f"`targets` must be whole numbers from 0 to {MOST_COUNTS - 1}; got {targets!r}.")
    scores, last = np.zeros(len(targets)), targets.max(initial=0.0)
    for count in range(MOST_COUNTS):
        below = np.asarray(prediction.cumulative(float(count)))
        scores += (below - (targets <= count)) ** 2
        if count >= last and np.all(below > 1.0 - NEGLIGIBLE):
            return scores
    raise InvalidPrediction(f"counts must be below {MOST_COUNTS} with a probability of nearly 1; got {below.min()}.")
