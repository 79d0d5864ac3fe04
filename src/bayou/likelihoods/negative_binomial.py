"""y ~ NegativeBinomial with mean m = exp(f) and variance m + dispersion m^2.

    p(y | f) = Gamma(y + r) / (Gamma(r) y!) s^y (1 - s)^r,   r = 1 / dispersion,   s = dispersion m / (1 + dispersion m)

A Poisson count whose rate varies by a gamma factor of variance `dispersion`. The log density is taken around its
largest value, at m = y, because its terms cancel for large counts and for small dispersions.
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
from bayou.numerics.quadrature import expected_log_density_by_quadrature, log_evidence_by_quadrature
from bayou.numerics.rates import counts_within_sight
from bayou.numerics.validation import require_positive

MANY = 1e50  # counts: so many are in proportion to their mean, and scipy knows no more than 1e300


@kernel
def log_density(y: float, f: float, params: Vector) -> tuple[float, float, float]:
    r = 1.0 / params[0]
    log_odds = f + math.log(params[0])
    small = math.exp(-abs(log_odds))
    inverse = 1.0 / (1.0 + small)
    share = inverse if log_odds > 0.0 else small * inverse  # s
    rest = small * inverse if log_odds > 0.0 else inverse  # 1 - s
    log_rest = -max(log_odds, 0.0) - math.log1p(small)
    total = y + r
    slope = y * rest - r * share
    curvature = total * small * inverse * inverse
    if y <= 0.0:
        return r * log_rest, slope, curvature
    largest = stirling_error(total) - stirling_error(y) - stirling_error(r)
    largest += 0.5 * (math.log(r / total) - math.log(y)) - LOG_SQRT_TWO_PI
    of_count = deviance(math.log(total / y) + min(log_odds, 0.0) - math.log1p(small))
    of_rest = deviance(math.log1p(y / r) + log_rest)
    return largest - y * of_count - r * of_rest, slope, curvature


@kernel
def log_evidence(
    kernels: Vector, y: float, mean: float, variance: float, params: Vector
) -> tuple[float, float, float, float]:
    r = 1.0 / params[0]
    if not in_reach(y, mean, variance, r):
        anywhere: tuple[float, float, float, float] = log_evidence_by_quadrature(kernels, y, mean, variance, params)
        return anywhere
    beyond, slope, precision, kept, centre = count_normal(y, mean, variance, r)
    return log_density(y, mean + centre, params)[0] + beyond, slope, precision, kept


@final
@dataclass(frozen=True)
class NegativeBinomial(ScalarLikelihood):
    """A count that scatters more than a Poisson count of the same mean; the log of the mean is the latent.

    >>> import numpy as np
    >>> from bayou.contracts import Latent
    >>> mean, variance = NegativeBinomial(dispersion=0.5).moments(Latent(np.array([np.log(4.0)]), np.array([0.0])))
    >>> mean, variance
    (array([4.]), array([12.]))
    """

    dispersion: float = 1.0

    target_range: ClassVar[tuple[float, float]] = (0.0, np.inf)
    targets_are: ClassVar[str] = "that are whole numbers"
    log_link: ClassVar[bool] = True
    log_density = staticmethod(log_density)
    log_evidence = staticmethod(log_evidence)
    expected_log_density = staticmethod(expected_log_density_by_quadrature)

    def __post_init__(self) -> None:
        require_positive(self, "dispersion")

    def accepts(self, targets: Vector) -> Mask:
        whole: Mask = np.isfinite(targets) & (targets >= 0.0) & (targets == np.floor(targets))
        return whole

    def moments(self, latent: Latent) -> tuple[Vector, Vector]:
        variance = np.asarray(latent.variance)
        log_rate = np.asarray(latent.mean) + 0.5 * variance
        with np.errstate(over="ignore", divide="ignore"):
            rate = np.exp(log_rate)
            of_rate = np.exp(2.0 * log_rate + variance + np.log(-np.expm1(-variance)))
            return rate, rate + of_rate + self.dispersion * np.exp(2.0 * log_rate + variance)

    def moments_within_sight(self, latent: Latent, largest: Vector) -> tuple[Vector, Vector]:
        return counts_within_sight(latent, self.dispersion, largest, self.moments(latent))

    def quantiles(self, latent: Latent, probabilities: Vector) -> Matrix:
        return count_quantiles(CountLaw(self._not_exceeding, self._log_rate_width), latent, probabilities)

    def cumulative(self, values: Vector, latent: Latent) -> Vector:
        return count_cumulative(CountLaw(self._not_exceeding, self._log_rate_width), values, latent)

    def log_probability(self, targets: Vector, latent: Latent) -> Vector:
        return log_evidences(self, targets, latent)

    def _not_exceeding(self, count: Vector, log_rate: Vector) -> Vector:
        some = np.minimum(count, MANY)
        log_odds = log_rate + math.log(self.dispersion) - np.log((count + 1.0) / (some + 1.0))
        return np.asarray(special.betainc(1.0 / self.dispersion, some + 1.0, special.expit(-log_odds)))

    def _log_rate_width(self, count: Vector) -> Vector:
        return np.sqrt(1.0 / (count + 1.0) + self.dispersion)
