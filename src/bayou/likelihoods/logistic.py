"""p(y | f) = 1 / (1 + exp(-y f / noise_scale)),  y in {-1, +1}."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from bayou.contracts import Latent, Mask, Matrix, ScalarLikelihood, Vector
from bayou.numerics.jit import kernel
from bayou.numerics.logistic_fours import logistic_four
from bayou.numerics.logistic_normal import in_reach, logistic_normal
from bayou.numerics.normal import TINY
from bayou.numerics.predictive import binary_cumulative, binary_moments, binary_quantiles, log_evidences
from bayou.numerics.quadrature import expected_log_density_by_quadrature, log_evidence_by_quadrature
from bayou.numerics.validation import require_positive


@kernel
def log_density(y: float, f: float, params: Vector) -> tuple[float, float, float]:
    per_scale = 1.0 / params[0]
    t = y * f * per_scale
    small = math.exp(-abs(t))
    inverse = 1.0 / (1.0 + small)
    wrong = small * inverse if t > 0.0 else inverse
    return (
        min(t, 0.0) - math.log1p(small),
        y * wrong * per_scale,
        small * inverse * inverse * per_scale * per_scale,
    )


@kernel
def log_evidence(
    kernels: Vector, y: float, mean: float, variance: float, params: Vector
) -> tuple[float, float, float, float]:
    per_scale = 1.0 / params[0]
    mean_in_scales, variance_in_scales = mean * per_scale, variance * per_scale * per_scale
    if not in_reach(mean_in_scales, variance_in_scales):
        anywhere: tuple[float, float, float, float] = log_evidence_by_quadrature(kernels, y, mean, variance, params)
        return anywhere
    log_mass, first, second = logistic_normal(y * mean_in_scales, variance_in_scales)
    curvature = max(first * first - second, 0.0)
    kept = max(1.0 - variance_in_scales * curvature, TINY)
    return log_mass, y * first * per_scale, curvature * per_scale * per_scale, kept


@kernel
def log_evidence_four(y: float, params: Vector, means: Vector, variances: Vector, blurs: Vector, said: Vector) -> float:
    return 1.0 if logistic_four(y, 1.0 / params[0], means, variances, blurs, said) else 0.0


@final
@dataclass(frozen=True)
class Logistic(ScalarLikelihood):
    """A sign whose log odds are the latent, in units of the noise: at noise_scale = 1 / beta a perceptron at that beta.

    >>> import numpy as np
    >>> from bayou.contracts import Latent
    >>> latent = Latent(mean=np.array([0.0, 2.0]), variance=np.array([1.0, 4.0]))
    >>> np.exp(Logistic().log_probability(np.array([1.0, 1.0]), latent)).round(3)
    array([0.5  , 0.775])
    """

    noise_scale: float = 1.0

    target_range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    targets_are: ClassVar[str] = "that are -1 or +1"
    log_density = staticmethod(log_density)
    log_evidence = staticmethod(log_evidence)
    expected_log_density = staticmethod(expected_log_density_by_quadrature)
    log_evidence_four = staticmethod(log_evidence_four)

    def __post_init__(self) -> None:
        require_positive(self, "noise_scale")

    def accepts(self, targets: Vector) -> Mask:
        return np.isin(targets, (-1.0, 1.0))

    def moments(self, latent: Latent) -> tuple[Vector, Vector]:
        return binary_moments(self, latent)

    def quantiles(self, latent: Latent, probabilities: Vector) -> Matrix:
        return binary_quantiles(self, latent, probabilities)

    def cumulative(self, values: Vector, latent: Latent) -> Vector:
        return binary_cumulative(self, values, latent)

    def log_probability(self, targets: Vector, latent: Latent) -> Vector:
        return log_evidences(self, targets, latent)
