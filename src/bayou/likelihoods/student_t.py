"""y ~ f + noise_scale t,  t of Student's distribution with so many degrees of freedom n.

A normal whose precision is itself random, t | g ~ N(0, 1/g) with g ~ Gamma(n/2, n/2), so that with e = y - mean and
T = 1/g + variance, in units of noise_scale,

    E p = E_g N(e; 0, T)
    slope = E[e/T]      -curvature = E[1/T] - Var(e/T)      kept = E[1/(g T)] + variance Var(e/T)

under the weights g | y. The mean over log g is exact at any variance. p is not log-concave: a target far away may
leave the latent less certain than it was.
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import special

from bayou.contracts import Latent, Mask, Matrix, ScalarLikelihood, Vector
from bayou.numerics.jit import kernel
from bayou.numerics.normal import TINY
from bayou.numerics.predictive import by_pairs, by_rows, crossing, log_evidences, smoothed
from bayou.numerics.quadrature import expected_log_density_by_quadrature
from bayou.numerics.student_t import mixture_evidence, student_t_log_density
from bayou.numerics.validation import require_positive

# So that products of their squares are still numbers.
FARTHEST = 1e70
WIDEST = 1e60


@kernel
def log_density(y: float, f: float, params: Vector) -> tuple[float, float, float]:
    degrees, scale = params[0], params[1]
    error = min(max((y - f) / scale, -FARTHEST), FARTHEST)
    square = error * error
    slope = (degrees + 1.0) * (error / (degrees + square))
    curvature = (degrees + 1.0) / (degrees + square) * ((degrees - square) / (degrees + square))
    return student_t_log_density(error, degrees) - math.log(scale), slope / scale, curvature / (scale * scale)


@kernel
def log_evidence(
    kernels: Vector, y: float, mean: float, variance: float, params: Vector
) -> tuple[float, float, float, float]:
    degrees, scale = params[0], params[1]
    relative = min(variance / scale / scale, WIDEST)
    if relative < TINY:
        log_mass, slope, curvature = log_density(y, mean, params)
        return log_mass, slope, curvature, 1.0
    error = min(max((y - mean) / scale, -FARTHEST), FARTHEST)
    log_mass, slope, curvature, kept = mixture_evidence(error, relative, degrees)
    return log_mass - math.log(scale), slope / scale, curvature / (scale * scale), kept


@final
@dataclass(frozen=True)
class StudentT(ScalarLikelihood):
    """The latent plus noise with heavy tails, so that a target far away is taken for an outlier.

    >>> import numpy as np
    >>> from bayou.contracts import Latent
    >>> latent = Latent(mean=np.array([0.0]), variance=np.array([1.0]))
    >>> StudentT(degrees=4.0).quantiles(latent, np.array([0.005, 0.5, 0.995])).round(3)
    array([[-5.08,  0.  ,  5.08]])
    """

    degrees: float = 4.0
    noise_scale: float = 1.0

    log_density = staticmethod(log_density)
    log_evidence = staticmethod(log_evidence)
    expected_log_density = staticmethod(expected_log_density_by_quadrature)

    def __post_init__(self) -> None:
        require_positive(self, "degrees", "noise_scale")

    def accepts(self, targets: Vector) -> Mask:
        return np.isfinite(targets)

    def accepts_one(self, y: float) -> bool:
        return math.isfinite(y)

    def moments(self, latent: Latent) -> tuple[Vector, Vector]:
        """The centre (also where ``degrees <= 1`` and no mean exists), and a variance that may be infinite."""
        of_noise = self.noise_scale**2 / (1.0 - 2.0 / self.degrees) if self.degrees > 2.0 else np.inf
        return np.array(latent.mean, dtype=np.float64), np.asarray(latent.variance) + of_noise

    def quantiles(self, latent: Latent, probabilities: Vector) -> Matrix:
        return by_pairs(self._solve, latent, probabilities)

    def cumulative(self, values: Vector, latent: Latent) -> Vector:
        with np.errstate(over="ignore"):
            errors = np.asarray(values) - np.asarray(latent.mean)
        return by_rows(lambda _, spread, error: self._below(error, spread), latent, errors)

    def log_probability(self, targets: Vector, latent: Latent) -> Vector:
        return log_evidences(self, targets, latent)

    def _solve(self, mean: Vector, spread: Vector, wanted: Vector) -> Vector:
        """The lower quantile of the error, to which the upper one is symmetric."""
        tail = np.minimum(wanted, 1.0 - wanted)
        inside = tail > 0.0
        chance = np.where(inside, tail, 0.25)
        # An error beyond the sum of two is due to one of them beyond its part.
        lowest: Vector = self.noise_scale * special.stdtrit(self.degrees, 0.5 * chance) + spread * special.ndtri(
            0.5 * chance
        )

        def excess(error: Vector) -> Vector:
            return np.log(self._below(error, spread) / chance)

        error = crossing(
            excess, lowest, np.zeros_like(mean), lambda high: 1e-12 * (spread + self.noise_scale + np.abs(high))
        )
        solved: Vector = mean + np.where(wanted < 0.5, 1.0, -1.0) * np.where(inside, error, -np.inf)
        return solved

    def _below(self, error: Vector, spread: Vector) -> Vector:
        """P(y - mean <= error)."""

        def below(f: Vector) -> Vector:
            return np.asarray(special.stdtr(self.degrees, (place[:, None] - f) / self.noise_scale))

        place = np.where(np.isinf(error), 0.0, error)
        width = np.full_like(place, self.noise_scale * math.sqrt(1.0 + 1.0 / self.degrees))
        chances = smoothed(below, place, width, np.zeros_like(place), spread)
        return np.where(np.isinf(error), error > 0.0, chances)
