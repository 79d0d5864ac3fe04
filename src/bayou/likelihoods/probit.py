"""p(y | f) = Phi(y f / noise_scale),  y in {-1, +1}.

E p = Phi(z),   z = y mean / s,   s^2 = noise_scale^2 + variance
"""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from bayou.contracts import Latent, Mask, Matrix, ScalarLikelihood, Vector
from bayou.numerics.jit import kernel
from bayou.numerics.normal import TINY, normal_ratios
from bayou.numerics.predictive import binary_cumulative, binary_moments, binary_quantiles, log_evidences
from bayou.numerics.quadrature import expected_log_density_by_quadrature
from bayou.numerics.validation import require_positive


@kernel
def log_evidence(
    kernels: Vector, y: float, mean: float, variance: float, params: Vector
) -> tuple[float, float, float, float]:
    noise = params[0] * params[0]
    total = max(noise + variance, TINY)
    per_total = 1.0 / total
    per_scale = math.sqrt(total) * per_total
    log_mass, ratio, k, kept = normal_ratios(y * mean * per_scale)
    return log_mass, y * ratio * per_scale, k * per_total, max((noise + kept * variance) * per_total, TINY)


@kernel
def log_density(y: float, f: float, params: Vector) -> tuple[float, float, float]:
    log_mass, ratio, k, _ = normal_ratios(y * f / params[0])
    return log_mass, y * ratio / params[0], k / (params[0] * params[0])


@final
@dataclass(frozen=True)
class Probit(ScalarLikelihood):
    """A sign that noise of the given scale can turn.

    >>> import numpy as np
    >>> from bayou.contracts import Latent
    >>> mean, variance = Probit().moments(Latent(mean=np.array([0.0, 2.0]), variance=np.array([1.0, 3.0])))
    >>> mean.round(3), variance.round(3)
    (array([0.   , 0.683]), array([1.   , 0.534]))
    """

    noise_scale: float = 1.0

    target_range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    targets_are: ClassVar[str] = "that are -1 or +1"
    log_density = staticmethod(log_density)
    log_evidence = staticmethod(log_evidence)
    expected_log_density = staticmethod(expected_log_density_by_quadrature)

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
