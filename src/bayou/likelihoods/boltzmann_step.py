"""exp(-beta V), V = max(0, -y f), y in {-1, +1}: the step at a finite inverse temperature beta, not normalised over y.

De Oliveira and Alamino's (8), read as a weight. (Normalised over y it is `Logistic` with noise_scale = 1 / beta.) Under
f ~ N(mean, variance), with s^2 = variance, z = y mean / s and u = z + beta s,

    E exp(-beta V) = Phi(z) + exp(beta y mean + beta^2 s^2 / 2) Phi(-u) = right + wrong

Given y, f is on either side of zero a normal cut off there: so its moments are sums of positive terms.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from bayou.contracts import Latent, Mask, Matrix, ScalarLikelihood, Vector
from bayou.numerics.jit import kernel
from bayou.numerics.normal import INVERSE_SQRT_TWO_PI, LOG_SQRT_TWO_PI, TINY, normal_ratios
from bayou.numerics.predictive import binary_cumulative, binary_moments, binary_quantiles, log_evidences
from bayou.numerics.validation import require_positive

# Below this the latent is known: its spread would divide by zero.
LEAST_VARIANCE = 1e-280


@kernel
def log_density(y: float, f: float, params: Vector) -> tuple[float, float, float]:
    t = y * f
    return params[0] * min(t, 0.0), params[0] * y if t < 0.0 else 0.0, 0.0


@kernel
def log_evidence(
    kernels: Vector, y: float, mean: float, variance: float, params: Vector
) -> tuple[float, float, float, float]:
    if variance < LEAST_VARIANCE:
        certain, slope, curvature = log_density(y, mean, params)
        return certain, slope, curvature, 1.0
    beta, s = params[0], math.sqrt(variance)
    z = y * mean / s
    u = z + beta * s
    log_right, ratio_right, k_right, kept_right = normal_ratios(z)
    log_wrong, ratio_wrong, k_wrong, kept_wrong = normal_ratios(-u)
    if u > 0.0:  # the exponents cancel
        log_wrong = -0.5 * z * z - LOG_SQRT_TWO_PI - math.log(ratio_wrong)
    else:
        log_wrong += beta * s * (z + 0.5 * beta * s)
    largest = max(log_right, log_wrong)
    right, wrong = math.exp(log_right - largest), math.exp(log_wrong - largest)
    log_mass = largest + math.log(right + wrong)
    right, wrong = right / (right + wrong), wrong / (right + wrong)
    # means of both sides, in units of s: how far each is from zero
    mean_right = ratio_right + z if z > 0.0 else k_right / ratio_right
    mean_wrong = ratio_wrong - u if u < 0.0 else k_wrong / ratio_wrong
    apart = mean_right + mean_wrong
    kept = right * kept_right + wrong * kept_wrong + right * wrong * apart * apart
    slope = beta * wrong
    if kept < 0.5:
        curvature = (1.0 - kept) / variance
    elif z >= 0.0:
        curvature = slope / s * (z + mean_wrong + beta * s * wrong)
    else:
        curvature = slope / s * (ratio_wrong - beta * s * right)
    curvature = min(max(curvature, 0.0), 1.0 / variance)
    return log_mass, y * slope, curvature, min(max(kept, TINY), 1.0)


@kernel
def expected_log_density(
    kernels: Vector, y: float, mean: float, variance: float, params: Vector
) -> tuple[float, float, float]:
    if variance < LEAST_VARIANCE:
        return log_density(y, mean, params)
    s = math.sqrt(variance)
    z = y * mean / s
    log_wrong, ratio, k, _ = normal_ratios(-z)
    wrong = math.exp(log_wrong)
    bend = INVERSE_SQRT_TWO_PI * math.exp(-0.5 * min(abs(z), 1e100) ** 2)
    # phi(z) - z Phi(-z), how far on the wrong side f is to be expected; a multiple of Phi(-z) does not cancel
    distance = wrong * (k / ratio) if z > 0.0 else bend - z * wrong
    return -params[0] * s * distance, params[0] * y * wrong, params[0] * bend / s


@final
@dataclass(frozen=True)
class BoltzmannStep(ScalarLikelihood):
    """A sign that costs as much as it contradicts the latent: a weight of beliefs, not a probability of signs.

    The chance that it gives a sign is the share of its evidence in that of both.

    >>> import numpy as np
    >>> from bayou import BoltzmannStep
    >>> from bayou.contracts import Latent
    >>> latent = Latent(mean=np.array([0.0, 2.0]), variance=np.array([1.0, 3.0]))
    >>> np.exp(BoltzmannStep(inverse_temperature=2.0).log_probability(np.array([1.0, 1.0]), latent)).round(3)
    array([0.5 , 0.82])
    """

    inverse_temperature: float = 1.0

    normalised: ClassVar[bool] = False
    smooth: ClassVar[bool] = False  # it has a kink, at which the mode of a belief may well lie
    target_range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    targets_are: ClassVar[str] = "that are -1 or +1"
    log_density = staticmethod(log_density)
    log_evidence = staticmethod(log_evidence)
    expected_log_density = staticmethod(expected_log_density)

    def __post_init__(self) -> None:
        require_positive(self, "inverse_temperature")

    def accepts(self, targets: Vector) -> Mask:
        return np.isin(targets, (-1.0, 1.0))

    def moments(self, latent: Latent) -> tuple[Vector, Vector]:
        return binary_moments(self, latent)

    def quantiles(self, latent: Latent, probabilities: Vector) -> Matrix:
        return binary_quantiles(self, latent, probabilities)

    def cumulative(self, values: Vector, latent: Latent) -> Vector:
        return binary_cumulative(self, values, latent)

    def log_probability(self, targets: Vector, latent: Latent) -> Vector:
        this, other = self.log_weight(targets, latent), self.log_weight(-targets, latent)
        return this - np.logaddexp(this, other)

    def log_weight(self, targets: Vector, latent: Latent) -> Vector:
        """Log of E exp(-beta V)."""
        return log_evidences(self, targets, latent)
