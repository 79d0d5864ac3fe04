"""y ~ N(f, noise_variance).

    E p = N(y; mean, noise_variance + variance)
    E log p = log N(y; mean, noise_variance) - variance / (2 noise_variance)

Where the noise is learnt, y is predicted as Student's t, of scale^2 = noise (noise_variance + variance).
"""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy import special

from bayou.contracts import Latent, Mask, Matrix, ScalarLikelihood, Vector
from bayou.numerics.gaussian_fours import gaussian_four
from bayou.numerics.jit import kernel
from bayou.numerics.normal import LOG_SQRT_TWO_PI, TINY
from bayou.numerics.student_t import student_t_log_densities
from bayou.numerics.validation import require_positive


@kernel
def log_normal(error: float, variance: float) -> tuple[float, float, float]:
    """log N(error; 0, variance), its slope in the mean, and minus its curvature."""
    return -0.5 * (error * (error / variance) + math.log(variance)) - LOG_SQRT_TWO_PI, error / variance, 1.0 / variance


@kernel
def log_density(y: float, f: float, params: Vector) -> tuple[float, float, float]:
    return log_normal(y - f, params[0])


@kernel
def log_evidence(
    kernels: Vector, y: float, mean: float, variance: float, params: Vector
) -> tuple[float, float, float, float]:
    log_mass, slope, curvature = log_normal(y - mean, params[0] + variance)
    return log_mass, slope, curvature, max(params[0] * curvature, TINY)


@kernel
def expected_log_density(
    kernels: Vector, y: float, mean: float, variance: float, params: Vector
) -> tuple[float, float, float]:
    at_mean, slope, curvature = log_normal(y - mean, params[0])
    return at_mean - 0.5 * variance / params[0], slope, curvature


@kernel
def log_evidence_four(y: float, params: Vector, means: Vector, variances: Vector, blurs: Vector, said: Vector) -> float:
    return 1.0 if gaussian_four(y, params[0], means, variances, blurs, said) else 0.0


@final
@dataclass(frozen=True)
class Gaussian(ScalarLikelihood):
    """The latent plus normal noise. Where a posterior learns the noise, ``noise_variance`` is in units of it.

    >>> import numpy as np
    >>> from bayou.contracts import Latent
    >>> latent = Latent(mean=np.array([1.0]), variance=np.array([3.0]))
    >>> Gaussian(noise_variance=1.0).moments(latent)
    (array([1.]), array([4.]))
    >>> Gaussian().quantiles(latent._replace(noise=2.0, degrees=5.0), np.array([0.05, 0.5])).round(3)
    array([[-4.699,  1.   ]])
    """

    noise_variance: float = 1.0

    scales_with_noise: ClassVar[bool] = True
    log_density = staticmethod(log_density)
    log_evidence = staticmethod(log_evidence)
    expected_log_density = staticmethod(expected_log_density)
    log_evidence_four = staticmethod(log_evidence_four)

    def __post_init__(self) -> None:
        require_positive(self, "noise_variance")

    def accepts(self, targets: Vector) -> Mask:
        return np.isfinite(targets)

    def accepts_one(self, y: float) -> bool:
        return math.isfinite(y)

    def moments(self, latent: Latent) -> tuple[Vector, Vector]:
        mean, scale, degrees = self._predictive(latent)
        with np.errstate(divide="ignore"):
            inflation = np.where(degrees > 2.0, 1.0 / (1.0 - 2.0 / np.maximum(degrees, 2.0)), np.inf)
        return mean, scale**2 * inflation

    def quantiles(self, latent: Latent, probabilities: Vector) -> Matrix:
        mean, scale, degrees = self._predictive(latent)
        wanted = np.asarray(probabilities)
        standard = np.where(wanted > 0.0, special.stdtrit(degrees[:, None], wanted), -np.inf)
        return mean[:, None] + scale[:, None] * standard

    def cumulative(self, values: Vector, latent: Latent) -> Vector:
        mean, scale, degrees = self._predictive(latent)
        with np.errstate(over="ignore"):
            chances: Vector = special.stdtr(degrees, (np.asarray(values) - mean) / scale)
        return chances

    def log_probability(self, targets: Vector, latent: Latent) -> Vector:
        mean, scale, degrees = self._predictive(latent)
        return student_t_log_densities((np.asarray(targets) - mean) / scale, degrees) - np.log(scale)

    def _predictive(self, latent: Latent) -> tuple[Vector, Vector, Vector]:
        """Location, scale and degrees of freedom of y, per example."""
        scale = np.sqrt(latent.noise * (self.noise_variance + np.asarray(latent.variance)))
        mean = np.array(latent.mean, dtype=np.float64)
        return mean, scale, np.array(np.broadcast_to(np.asarray(latent.degrees, dtype=np.float64), mean.shape))
