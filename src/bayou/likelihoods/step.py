"""p(y | f) = 1 if y f > 0 else 0,  y in {-1, +1}.

E p = Phi(z),   z = y mean / sqrt(variance)
"""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from bayou.contracts import Latent, Mask, Matrix, ScalarLikelihood, Vector
from bayou.numerics.jit import kernel
from bayou.numerics.normal import TINY, normal_ratios
from bayou.numerics.predictive import binary_cumulative, binary_moments, binary_quantiles, log_evidences

LEAST_VARIANCE = 1e-200  # beneath, a belief on the wrong side would have to move by more than a number can say


@kernel
def log_density(y: float, f: float, params: Vector) -> tuple[float, float, float]:
    if y * f == 0.0:
        return math.log(0.5), 0.0, 0.0
    return 0.0 if y * f > 0.0 else -math.inf, 0.0, 0.0


@kernel
def log_evidence(
    kernels: Vector, y: float, mean: float, variance: float, params: Vector
) -> tuple[float, float, float, float]:
    if variance < LEAST_VARIANCE:
        certain, slope, curvature = log_density(y, mean, params)
        return certain, slope, curvature, 1.0
    scale = math.sqrt(variance)
    log_mass, ratio, k, kept = normal_ratios(y * mean / scale)
    return log_mass, y * ratio / scale, k / variance, max(kept, TINY)


@kernel
def expected_log_density(
    kernels: Vector, y: float, mean: float, variance: float, params: Vector
) -> tuple[float, float, float]:
    """-inf: under any belief of some width the impossible has a chance."""
    if variance < LEAST_VARIANCE:
        return log_density(y, mean, params)
    return -math.inf, 0.0, 0.0


@final
@dataclass(frozen=True)
class Step(ScalarLikelihood):
    """A sign without noise: one contradiction is impossible, so only moment matching can learn from it.

    >>> import numpy as np
    >>> from bayou.contracts import Latent
    >>> Step().log_probability(np.array([1.0, -1.0]), Latent(np.array([0.0, 4.0]), np.array([1.0, 1.0]))).round(3)
    array([ -0.693, -10.36 ])
    """

    target_range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    targets_are: ClassVar[str] = "that are -1 or +1"
    smooth: ClassVar[bool] = False
    log_density = staticmethod(log_density)
    log_evidence = staticmethod(log_evidence)
    expected_log_density = staticmethod(expected_log_density)

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
