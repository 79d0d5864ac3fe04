"""p(y | f) = e + (1 - 2e) Phi(y f / noise_scale),  e = flip_rate,  y in {-1, +1}.

    E p = Z = e + (1 - 2e) Phi(z),   z = y mean / s,   s^2 = noise_scale^2 + variance

With q = (1 - 2e) Phi / Z, the chance that y was not flipped, p = 1 - q, and lambda, k of the normal, in z:

    (log Z)' = q lambda      -(log Z)'' = q (k - p lambda^2)      1 + (log Z)'' = p + q (1 - k) + p q lambda^2
"""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from bayou.contracts import Latent, Mask, Matrix, ScalarLikelihood, Vector
from bayou.errors import InvalidSpec
from bayou.numerics.jit import kernel
from bayou.numerics.normal import TINY, normal_ratios
from bayou.numerics.predictive import binary_cumulative, binary_moments, binary_quantiles, log_evidences
from bayou.numerics.quadrature import expected_log_density_by_quadrature
from bayou.numerics.validation import require_positive


@kernel
def flipped_ratios(z: float, flip_rate: float) -> tuple[float, float, float, float]:
    """log Z, its slope, minus its curvature, and 1 - that, in z."""
    log_mass, ratio, k, kept = normal_ratios(z)
    if flip_rate == 0.0:
        return log_mass, ratio, k, kept
    unflipped = (1.0 - 2.0 * flip_rate) * math.exp(log_mass)
    total = flip_rate + unflipped
    flipped = flip_rate / total
    unflipped /= total
    lost = -(flip_rate - (1.0 - 2.0 * flip_rate) * math.expm1(log_mass))  # Z - 1
    log_total = math.log1p(lost) if z > 0.0 else math.log(total)
    slope = unflipped * ratio
    curvature = unflipped * k - slope * (flipped * ratio)
    return log_total, slope, curvature, flipped + unflipped * kept + slope * (flipped * ratio)


@kernel
def log_evidence(
    kernels: Vector, y: float, mean: float, variance: float, params: Vector
) -> tuple[float, float, float, float]:
    noise = params[1] * params[1]
    total = max(noise + variance, TINY)
    per_total = 1.0 / total
    per_scale = math.sqrt(total) * per_total
    log_mass, slope, curvature, kept = flipped_ratios(y * mean * per_scale, params[0])
    return log_mass, y * slope * per_scale, curvature * per_total, max((noise + kept * variance) * per_total, TINY)


@kernel
def log_density(y: float, f: float, params: Vector) -> tuple[float, float, float]:
    log_mass, slope, curvature, _ = flipped_ratios(y * f / params[1], params[0])
    return log_mass, y * slope / params[1], curvature / (params[1] * params[1])


@final
@dataclass(frozen=True)
class FlipProbit(ScalarLikelihood):
    """A noisy sign that is turned by accident at a known rate, whatever the latent: no target is beyond belief.

    >>> import numpy as np
    >>> from bayou.contracts import Latent
    >>> sure = Latent(mean=np.array([100.0]), variance=np.array([1.0]))
    >>> np.exp(FlipProbit(flip_rate=0.05).log_probability(np.array([-1.0]), sure)).round(3)
    array([0.05])
    """

    flip_rate: float = 0.1
    noise_scale: float = 1.0

    target_range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    targets_are: ClassVar[str] = "that are -1 or +1"
    log_density = staticmethod(log_density)
    log_evidence = staticmethod(log_evidence)
    expected_log_density = staticmethod(expected_log_density_by_quadrature)

    def __post_init__(self) -> None:
        if not 0.0 <= self.flip_rate < 0.5:
            raise InvalidSpec(f"`flip_rate` must be in [0, 0.5); got {self.flip_rate!r}.")
        object.__setattr__(self, "flip_rate", float(self.flip_rate))
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
