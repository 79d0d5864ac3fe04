"""p(y = c | f) = exp(f_c) / sum_j exp(f_j),  y in {0, ..., k-1}: one latent per class.

    log p:      slope_c = [c = y] - p_c                minus curvature_c = p_c (1 - p_c)
    E log p:    slope_c = [c = y] - E p_c              minus curvature_c = E p_c (1 - p_c) = d E p_c / d mean_c
    log E p:    slope_c = [c = y] - E(p_c | y)

Expectations are over independent normal latents, by the Gumbel race (`bayou.numerics.race`). The slopes sum to zero,
which gives that of y without cancellation where y is all but certain.
"""

import math
import operator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from bayou.contracts import Latent, Mask, Matrix, Vector, VectorLikelihood
from bayou.errors import InvalidSpec, ShapeMismatch
from bayou.numerics.jit import kernel
from bayou.numerics.predictive import class_cumulative
from bayou.numerics.race import race_evidence, race_shares

LEAST_KEPT = 1e-9  # far below what is left of any variance where a double can hold E p, yet positive


@kernel
def _widest(y: float, mean: Vector, variance: Vector) -> float:
    """The largest variance; NaN if there is no such class, or anything that is not a number."""
    if not 0.0 <= y < mean.size:
        return math.nan
    widest = 0.0
    for c in range(mean.size):
        if not (math.isfinite(mean[c]) and 0.0 <= variance[c] < math.inf):
            return math.nan
        widest = max(widest, variance[c])
    return widest


@kernel
def log_density(y: float, f: Vector, params: Vector, slope: Vector, curvature: Vector) -> float:
    if not 0.0 <= y < f.size:
        slope[:] = math.nan
        curvature[:] = math.nan
        return math.nan
    winner, top, total = int(y), float(np.max(f)), 0.0
    for c in range(f.size):
        slope[c] = -math.exp(f[c] - top)
        total -= slope[c]
    others = 0.0
    for c in range(f.size):
        slope[c] /= total
        curvature[c] = -slope[c] * (1.0 + slope[c])
        if c != winner:
            others -= slope[c]
    curvature[winner] = -slope[winner] * others
    slope[winner] = others
    return min(float(f[winner]) - top - math.log(total), 0.0)


@kernel
def log_evidence(
    y: float, mean: Vector, variance: Vector, params: Vector, slope: Vector, curvature: Vector, kept: Vector
) -> float:
    widest = _widest(y, mean, variance)
    if widest > 0.0:
        value = race_evidence(int(y), mean, variance, slope, curvature)
    else:
        value = log_density(y if widest == 0.0 else math.nan, mean, params, slope, curvature)
    for c in range(mean.size):
        kept[c] = max(1.0 - variance[c] * curvature[c], LEAST_KEPT)
    return value


@kernel
def expected_log_density(
    y: float, mean: Vector, variance: Vector, params: Vector, slope: Vector, curvature: Vector
) -> float:
    widest = _widest(y, mean, variance)
    if not widest > 0.0:
        return log_density(y if widest == 0.0 else math.nan, mean, params, slope, curvature)
    winner = int(y)
    value = float(mean[winner]) - race_shares(mean, variance, slope, curvature)
    slope[winner] = 0.0
    for c in range(mean.size):
        slope[c] = -slope[c]
    slope[winner] = -np.sum(slope)
    return min(value, 0.0)


@kernel
def _probabilities(mean: Matrix, variance: Matrix, params: Vector, result: Matrix) -> None:
    """E p_c = [c = 0] - slope_c of E log p_0; the classes but the first give the first, and are positive."""
    curvature = np.empty(mean.shape[1])
    for row in range(mean.shape[0]):
        widest = _widest(0.0, mean[row], variance[row])
        if widest > 0.0:
            race_shares(mean[row], variance[row], result[row], curvature)
        else:
            log_density(0.0 if widest == 0.0 else math.nan, mean[row], params, result[row], curvature)
            result[row, 0] -= 1.0
            for c in range(mean.shape[1]):
                result[row, c] = -result[row, c]


@kernel
def _log_evidences(targets: Vector, mean: Matrix, variance: Matrix, params: Vector, result: Vector) -> None:
    slope, curvature, kept = np.empty(mean.shape[1]), np.empty(mean.shape[1]), np.empty(mean.shape[1])
    for row in range(mean.shape[0]):
        result[row] = log_evidence(targets[row], mean[row], variance[row], params, slope, curvature, kept)


@final
@dataclass(frozen=True)
class Softmax(VectorLikelihood):
    """One of several classes, 0, 1, ..., each with a latent of its own. Only differences of latents matter.

    Means, variances and quantiles are those of the number of the class, and mean little unless classes are ordered;
    `probabilities` says how probable each class is.

    >>> import numpy as np
    >>> from bayou.contracts import Latent
    >>> likelihood = Softmax(n_classes=3)
    >>> latent = Latent(mean=np.array([[0.0, 1.0, 2.0]]), variance=np.array([[0.0, 1.0, 4.0]]))
    >>> likelihood.probabilities(latent).round(4)
    array([[0.1082, 0.3051, 0.5867]])
    >>> np.exp(likelihood.log_probability(np.array([2.0]), latent)).round(4)
    array([0.5867])
    """

    n_classes: int = 3

    targets_are: ClassVar[str] = "that are whole numbers"
    log_density = staticmethod(log_density)
    log_evidence = staticmethod(log_evidence)
    expected_log_density = staticmethod(expected_log_density)

    def __post_init__(self) -> None:
        try:
            n_classes = operator.index(self.n_classes)
        except TypeError:
            raise InvalidSpec(f"`n_classes` must be a whole number; got {self.n_classes!r}.") from None
        if n_classes < 2:
            raise InvalidSpec(f"`n_classes` must be at least 2; got {self.n_classes!r}.")
        object.__setattr__(self, "n_classes", n_classes)

    @property
    def n_latents(self) -> int:  # type: ignore[override]  # a frozen spec is read-only anyway
        """One per class."""
        return self.n_classes

    @property
    def target_range(self) -> tuple[float, float]:  # type: ignore[override]  # here it depends on the spec
        """The first class and the last."""
        return 0.0, self.n_classes - 1.0

    def accepts(self, targets: Vector) -> Mask:
        return np.isin(targets, np.arange(float(self.n_classes)))

    def probabilities(self, latent: Latent) -> Matrix:
        """How probable each class is: a row per example, summing to one, a column per class."""
        mean, variance = self._rows(latent)
        result = np.empty(mean.shape)
        _probabilities(mean, variance, self.params, result)
        return result

    def moments(self, latent: Latent) -> tuple[Vector, Vector]:
        """Mean and variance of the number of the class."""
        probabilities = self.probabilities(latent)
        numbers = np.arange(float(self.n_classes))
        mean = probabilities @ numbers
        return mean, (probabilities * (numbers - mean[:, None]) ** 2).sum(axis=1)

    def quantiles(self, latent: Latent, probabilities: Vector) -> Matrix:
        """The first class that, with those before it, is probable enough."""
        wanted = np.asarray(probabilities, dtype=np.float64)
        numbers: Matrix = np.argmax(self._below(latent)[:, :, None] >= wanted, axis=1).astype(np.float64)
        return numbers

    def cumulative(self, values: Vector, latent: Latent) -> Vector:
        return class_cumulative(self._below(latent), values)

    def log_probability(self, targets: Vector, latent: Latent) -> Vector:
        mean, variance = self._rows(latent)
        result = np.empty(len(mean))
        given = np.array(np.broadcast_to(np.asarray(targets, dtype=np.float64), result.shape))
        _log_evidences(given, mean, variance, self.params, result)
        return result

    def _below(self, latent: Latent) -> Matrix:
        """P(y <= c), a column per class."""
        below = np.minimum(np.cumsum(self.probabilities(latent), axis=1), 1.0)
        below[:, -1] = 1.0  # which rounding might miss
        return below

    def _rows(self, latent: Latent) -> tuple[Matrix, Matrix]:
        mean, variance = (np.require(part, np.float64, ["C", "W"]) for part in (latent.mean, latent.variance))
        if mean.ndim != 2 or mean.shape[1] != self.n_classes or variance.shape != mean.shape:
            raise ShapeMismatch(
                f"{self!r} takes a mean and a variance per row and class, (rows, {self.n_classes}); "
                f"got {mean.shape} and {variance.shape}."
            )
        return mean, variance
