"""q(w) = N(mean, variance * I): one variance for all weights, O(d) per example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayou.contracts import Array, Mask, Matrix, Posterior, Vector
from bayou.errors import ImproperBelief, InvalidSpec
from bayou.numerics.jit import vectorized_kernel
from bayou.numerics.passes import passes
from bayou.numerics.priors import Scales, check_forgetting, check_prior, per_weight
from bayou.numerics.sites import smallest_variance


class SphericalBelief(NamedTuple):
    """Mean of each weight, and the variance that they share."""

    mean: Array
    variance: Array


@vectorized_kernel
def marginal(belief: SphericalBelief, x: Array) -> tuple[float, float]:
    """Mean and variance of w . x, summed in double precision."""
    mean = 0.0
    length = 0.0
    for j in range(x.size):
        mean += np.float64(belief.mean[j]) * x[j]
        length += np.float64(x[j]) * x[j]
    return mean, belief.variance[0] * length


@vectorized_kernel
def scatter(belief: SphericalBelief, missing: Mask) -> float:
    """Sum of E w_j^2 over the missing features."""
    total = 0.0
    for j in range(missing.size):
        if missing[j]:
            total += np.float64(belief.mean[j]) * belief.mean[j] + belief.variance[0]
    return total


@vectorized_kernel
def absorb(belief: SphericalBelief, x: Array, slope: float, precision: float, variance: float) -> None:
    """Move the belief by one site."""
    gain = 1.0 / (1.0 + precision * variance)
    step = slope * gain * belief.variance[0]
    weight_mean = belief.mean
    for j in range(x.size):
        weight_mean[j] += step * x[j]
    # the trace is kept: one direction shrinks by the gain, the others stay
    kept = (x.size - 1 + gain) / x.size
    belief.variance[0] = max(belief.variance[0] * kept, smallest_variance(belief.variance))


@vectorized_kernel
def latent_belief(belief: SphericalBelief, c: int) -> SphericalBelief:
    """The belief about the weights of one latent."""
    return SphericalBelief(belief.mean[c], belief.variance[c])


_passes = passes(__name__, marginal, scatter, absorb, latent_belief)


@dataclass(frozen=True)
class SphericalGaussian(Posterior[SphericalBelief]):
    """Gaussian weights of one common variance: the cheapest belief that knows how sure it is.

    >>> from bayou import SphericalGaussian
    >>> SphericalGaussian(prior_variance=0.5).prior(3).variance
    array([0.5])
    """

    prior_variance: float = 1.0
    prior_mean: Scales = 0.0
    dtype: str = "float64"

    predict = staticmethod(_passes.predict)
    learn = staticmethod(_passes.learn)
    learn_vector = staticmethod(_passes.learn_vector)

    def __post_init__(self) -> None:
        check_prior(self.prior_mean, self.prior_variance, self.dtype)
        if np.ndim(self.prior_variance):
            raise InvalidSpec(
                f"`prior_variance` of a spherical belief must be one number; got {self.prior_variance!r}."
            )

    def prior(self, n_features: int) -> SphericalBelief:
        """The belief before any example."""
        return SphericalBelief(
            per_weight("prior_mean", self.prior_mean, n_features).astype(self.dtype),
            np.full(1, self.prior_variance, dtype=self.dtype),
        )

    def absorb(self, belief: SphericalBelief, features: Vector, slope: float, precision: float) -> None:
        """Move the belief by one site, in place."""
        x = np.ascontiguousarray(features, dtype=self.dtype)
        absorb(belief, x, slope, precision, marginal(belief, x)[1])

    def covariance(self, belief: SphericalBelief) -> Matrix:
        """Covariance of the weights."""
        return np.diag(self.variances(belief))

    def variances(self, belief: SphericalBelief) -> Vector:
        """Variance of each weight."""
        return np.full(belief.mean.size, float(belief.variance[0]))

    def sample(self, belief: SphericalBelief, n: int, seed: int | np.random.Generator) -> Matrix:
        """So many draws of the weights, one per row."""
        normal = np.random.default_rng(seed).standard_normal((n, belief.mean.size))
        draws: Matrix = belief.mean + normal * np.sqrt(float(belief.variance[0]))
        return draws

    def log_density(self, belief: SphericalBelief, weights: Vector) -> float:
        """Log density of the belief at some weights."""
        variance = float(belief.variance[0])
        return float(-0.5 * np.sum((weights - belief.mean) ** 2 / variance + np.log(2.0 * np.pi * variance)))

    def forget(self, belief: SphericalBelief, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let go of the past, in place; see `Posterior.forget`."""
        check_forgetting(discount, diffusion)
        if discount < 1.0:
            kept = self._combine(belief.mean.size, [(discount, belief)])
            belief.mean[...], belief.variance[...] = kept
        belief.variance[...] += np.clip(self.prior_variance - belief.variance, 0.0, diffusion)

    def transform(self, belief: SphericalBelief, scale: Vector, shift: Vector) -> None:
        """Make it the belief about ``scale * w``, with ``shift . w`` added to the first weight, in place."""
        moved = float(shift @ belief.mean)
        belief.mean[...] *= scale
        belief.mean[0] += moved
        belief.variance[...] *= np.exp(2.0 * np.mean(np.log(scale)))  # the volume is kept

    def retell(self, belief: SphericalBelief, scale: Vector, shift: Vector) -> None:
        """Tell the means in new coordinates; one variance for all is no less true of the new ones than of the old."""
        variance = belief.variance.copy()
        self.transform(belief, scale, shift)
        belief.variance[...] = variance

    def merge(self, shards: Sequence[SphericalBelief]) -> SphericalBelief:
        """The prior, times what each shard learnt beyond it."""
        return self._combine(shards[0].mean.size, [(1.0, shard) for shard in shards])

    def subtract(self, belief: SphericalBelief, part: SphericalBelief) -> SphericalBelief:
        """The belief without what the part learnt beyond the prior."""
        return self._combine(belief.mean.size, [(1.0, belief), (-1.0, part)])

    def _combine(self, n_features: int, parts: Sequence[tuple[float, SphericalBelief]]) -> SphericalBelief:
        """Prior + sum of share * (part - prior), in natural parameters."""
        prior_precision = 1.0 / self.prior_variance
        prior_shift = per_weight("prior_mean", self.prior_mean, n_features) * prior_precision
        precision, shift = prior_precision, prior_shift.copy()
        for share, part in parts:
            part_precision = 1.0 / float(part.variance[0])
            precision += share * (part_precision - prior_precision)
            shift += share * (part.mean * part_precision - prior_shift)
        if not precision > 0.0:
            raise ImproperBelief(
                f"a belief must have a positive precision; it would be {precision:.3g}. "
                "Was something taken out that was never learnt?"
            )
        return SphericalBelief((shift / precision).astype(self.dtype), np.full(1, 1.0 / precision, dtype=self.dtype))
