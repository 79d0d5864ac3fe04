"""p(y = j | f) = Phi((c[j] - f) / noise_scale) - Phi((c[j-1] - f) / noise_scale),  y in {0, ..., K-1}.

The cutpoints c[0] < ... < c[K-2] part the line into K classes; c[-1] = -inf and c[K-1] = inf. Under a belief about f
the same holds with noise_scale^2 + variance in the place of noise_scale^2.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from scipy import special

from bayou.contracts import Latent, Mask, Matrix, ScalarLikelihood, Vector
from bayou.errors import InvalidSpec
from bayou.numerics.jit import kernel
from bayou.numerics.normal import TINY, interval_ratios, normal_ratios
from bayou.numerics.predictive import class_cumulative, log_evidences
from bayou.numerics.quadrature import expected_log_density_by_quadrature
from bayou.numerics.validation import require_positive


@kernel
def blurred(y: float, mean: float, variance: float, params: Vector) -> tuple[float, float, float, float]:
    """log p(y | mean) with noise_scale^2 + variance of noise, slope, minus curvature, and kept."""
    last = int(params[0])  # the cutpoints are params[1] to params[last]; noise_scale follows
    noise = params[last + 1] * params[last + 1]
    total = max(noise + variance, TINY)
    scale = math.sqrt(total)
    category = int(y)
    if category <= 0:
        log_mass, ratio, k, kept = normal_ratios((params[1] - mean) / scale)
        slope = -ratio
    elif category >= last:
        log_mass, slope, k, kept = normal_ratios((mean - params[last]) / scale)
    else:
        low, high = params[category], params[category + 1]
        log_mass, slope, k, kept = interval_ratios((low - mean) / scale, (high - low) / scale)
    return log_mass, slope / scale, k / total, max((noise + kept * variance) / total, TINY)


@kernel
def log_density(y: float, f: float, params: Vector) -> tuple[float, float, float]:
    log_mass, slope, curvature, _ = blurred(y, f, 0.0, params)
    return log_mass, slope, curvature


@kernel
def log_evidence(
    kernels: Vector, y: float, mean: float, variance: float, params: Vector
) -> tuple[float, float, float, float]:
    return blurred(y, mean, variance, params)


@final
@dataclass(frozen=True)
class Ordinal(ScalarLikelihood):
    """A grade 0, 1, ..., that says between which cutpoints the noisy latent fell.

    >>> import numpy as np
    >>> from bayou.contracts import Latent
    >>> grades = Ordinal(cutpoints=(-1.0, 0.0, 2.0))
    >>> latent = Latent(mean=np.array([0.0, 3.0]), variance=np.array([1.0, 1.0]))
    >>> grades.quantiles(latent, np.array([0.1, 0.5, 0.9]))
    array([[0., 1., 3.],
           [2., 3., 3.]])
    """

    cutpoints: tuple[float, ...] = (-1.0, 1.0)
    noise_scale: float = 1.0

    targets_are: ClassVar[str] = "that are whole numbers"
    log_density = staticmethod(log_density)
    log_evidence = staticmethod(log_evidence)
    expected_log_density = staticmethod(expected_log_density_by_quadrature)

    def __post_init__(self) -> None:
        cutpoints = tuple(float(cutpoint) for cutpoint in self.cutpoints)
        if not cutpoints or not np.isfinite(cutpoints).all() or not (np.diff(cutpoints) > 0.0).all():
            raise InvalidSpec(f"`cutpoints` must be finite and increasing, and at least one; got {self.cutpoints!r}.")
        object.__setattr__(self, "cutpoints", cutpoints)
        require_positive(self, "noise_scale")

    @property
    def target_range(self) -> tuple[float, float]:  # type: ignore[override]  # here it depends on the spec
        return 0.0, float(len(self.cutpoints))

    @property
    def params(self) -> Vector:
        """How many cutpoints there are, the cutpoints, noise_scale."""
        return np.array([len(self.cutpoints), *self.cutpoints, self.noise_scale])

    def accepts(self, targets: Vector) -> Mask:
        return np.isin(targets, np.arange(len(self.cutpoints) + 1.0))

    def moments(self, latent: Latent) -> tuple[Vector, Vector]:
        below, above = self._chances(latent)
        chances = np.where(below[:, 1:] < 0.5, np.diff(below, axis=1), -np.diff(above, axis=1))
        grades = np.arange(len(self.cutpoints) + 1.0)
        mean = chances @ grades
        return mean, (chances * (grades - mean[:, None]) ** 2).sum(axis=1)

    def quantiles(self, latent: Latent, probabilities: Vector) -> Matrix:
        below, _ = self._chances(latent)
        enough = below[:, 1:, None] >= np.asarray(probabilities)
        grades: Matrix = np.argmax(enough, axis=1).astype(np.float64)
        return grades

    def cumulative(self, values: Vector, latent: Latent) -> Vector:
        below, _ = self._chances(latent)
        return class_cumulative(below[:, 1:], values)

    def log_probability(self, targets: Vector, latent: Latent) -> Vector:
        return log_evidences(self, targets, latent)

    def _chances(self, latent: Latent) -> tuple[Matrix, Matrix]:
        """P(y < j) and P(y >= j) for j = 0, ..., K; both, since their differences cancel in opposite tails."""
        edges = np.array([-np.inf, *self.cutpoints, np.inf])
        z = (edges - np.asarray(latent.mean)[:, None]) / np.sqrt(self.noise_scale**2 + np.asarray(latent.variance))[
            :, None
        ]
        return special.ndtr(z), special.ndtr(-z)
