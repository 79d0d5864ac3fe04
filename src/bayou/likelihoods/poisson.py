"""y ~ Poisson(rate),  rate = exposure exp(f).

    E log p = y (log exposure + mean) - exposure exp(mean + variance / 2) - log y!

The log density is taken around its largest value, at rate = y, because its terms cancel for large counts.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy import special

from bayou.contracts import Latent, Mask, Matrix, ScalarLikelihood, Vector
from bayou.numerics.count_normal import count_normal, in_reach
from bayou.numerics.gamma import deviance, stirling_error
from bayou.numerics.jit import kernel
from bayou.numerics.normal import LOG_SQRT_TWO_PI
from bayou.numerics.predictive import CountLaw, count_cumulative, count_quantiles, log_evidences
from bayou.numerics.quadrature import log_evidence_by_quadrature
from bayou.numerics.rates import counts_within_sight
from bayou.numerics.validation import require_positive

LARGEST_LOG_RATE = 600.0  # the rate, times any variance, is still a number
FEW = 1e4  # counts


@kernel
def log_density(y: float, f: float, params: Vector) -> tuple[float, float, float]:
    log_rate = f + math.log(params[0])
    rate = math.exp(min(log_rate, LARGEST_LOG_RATE))
    if y <= 0.0:
        return -rate, -rate, rate
    log_y = math.log(y)
    largest = -0.5 * log_y - LOG_SQRT_TWO_PI - stirling_error(y)
    return largest - y * deviance(log_rate - log_y), y - rate, rate


@kernel
def log_evidence(
    kernels: Vector, y: float, mean: float, variance: float, params: Vector
) -> tuple[float, float, float, float]:
    log_rate = mean + math.log(params[0])
    if not in_reach(y, log_rate, variance, math.inf):
        anywhere: tuple[float, float, float, float] = log_evidence_by_quadrature(kernels, y, mean, variance, params)
        return anywhere
    beyond, slope, precision, kept, centre = count_normal(y, log_rate, variance, math.inf)
    return log_density(y, mean + centre, params)[0] + beyond, slope, precision, kept


@kernel
def expected_log_density(
    kernels: Vector, y: float, mean: float, variance: float, params: Vector
) -> tuple[float, float, float]:
    log_rate = mean + math.log(params[0])
    rate = math.exp(min(log_rate + 0.5 * variance, LARGEST_LOG_RATE))
    return y * log_rate - rate - math.lgamma(y + 1.0), y - rate, rate


@final
@dataclass(frozen=True)
class Poisson(ScalarLikelihood):
    """A count whose log rate, per unit of exposure, is the latent.

    >>> import numpy as np
    >>> from bayou.contracts import Latent
    >>> latent = Latent(mean=np.array([0.0, 5.0]), variance=np.array([0.0, 0.01]))
    >>> Poisson(exposure=2.0).quantiles(latent, np.array([0.05, 0.5, 0.95]))
    array([[  0.,   2.,   5.],
           [244., 297., 358.]])
    """

    exposure: float = 1.0

    target_range: ClassVar[tuple[float, float]] = (0.0, np.inf)
    targets_are: ClassVar[str] = "that are whole numbers"
    log_link: ClassVar[bool] = True
    log_density = staticmethod(log_density)
    log_evidence = staticmethod(log_evidence)
    expected_log_density = staticmethod(expected_log_density)

    def __post_init__(self) -> None:
        require_positive(self, "exposure")

    def accepts(self, targets: Vector) -> Mask:
        whole: Mask = np.isfinite(targets) & (targets >= 0.0) & (targets == np.floor(targets))
        return whole

    def moments(self, latent: Latent) -> tuple[Vector, Vector]:
        log_rate = np.asarray(latent.mean) + math.log(self.exposure) + 0.5 * np.asarray(latent.variance)
        with np.errstate(over="ignore", divide="ignore"):
            rate = np.exp(log_rate)
            log_relative = latent.variance + np.log(-np.expm1(-np.asarray(latent.variance)))  # log(exp(variance) - 1)
            return rate, rate + np.exp(2.0 * log_rate + log_relative)

    def moments_within_sight(self, latent: Latent, largest: Vector) -> tuple[Vector, Vector]:
        return counts_within_sight(self._log_rate(latent), 0.0, largest, self.moments(latent))

    def quantiles(self, latent: Latent, probabilities: Vector) -> Matrix:
        return count_quantiles(CountLaw(_not_exceeding, _log_rate_width), self._log_rate(latent), probabilities)

    def cumulative(self, values: Vector, latent: Latent) -> Vector:
        return count_cumulative(CountLaw(_not_exceeding, _log_rate_width), values, self._log_rate(latent))

    def log_probability(self, targets: Vector, latent: Latent) -> Vector:
        return log_evidences(self, targets, latent)

    def _log_rate(self, latent: Latent) -> Latent:
        return Latent(np.asarray(latent.mean) + math.log(self.exposure), latent.variance)


def _not_exceeding(count: Vector, log_rate: Vector) -> Vector:
    """P(y <= count)."""
    rate = np.exp(np.clip(log_rate, -LARGEST_LOG_RATE, LARGEST_LOG_RATE))
    exact = special.gammaincc(np.minimum(count, FEW) + 1.0, rate)
    return np.asarray(np.where(count < FEW, exact, _not_exceeding_many(np.maximum(count, FEW) + 1.0, log_rate)))


def _not_exceeding_many(n: Vector, log_rate: Vector) -> Vector:
    """P(y < n) to order 1/n (Temme 1979), because scipy loses its digits in the tails of large counts."""
    t = np.clip(log_rate - np.log(n), -1.0, 1.0)  # beyond, it is 1 or 0 for so many
    excess = np.expm1(t)
    eta = np.sign(t) * np.sqrt(2.0 * np.maximum(excess - t, 0.0))
    near = np.abs(t) < 1e-4
    skew = np.where(near, excess / 12.0 - 1.0 / 3.0, 1.0 / np.where(near, 1.0, excess) - 1.0 / np.where(near, 1.0, eta))
    density = np.exp(-0.5 * n * eta**2) / np.sqrt(2.0 * math.pi * n)
    return np.asarray(special.ndtr(-eta * np.sqrt(n)) + density * skew)


def _log_rate_width(count: Vector) -> Vector:
    return 1.0 / np.sqrt(count + 1.0)
