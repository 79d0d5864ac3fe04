"""q(w) = N(mean, diag(variance)): independent weights, O(d) per example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayou.contracts import Array, Mask, Matrix, Posterior, Vector
from bayou.errors import InvalidSpec
from bayou.numerics.factor import aligned
from bayou.numerics.independent import combined
from bayou.numerics.jit import vectorized_kernel
from bayou.numerics.passes import passes
from bayou.numerics.priors import Scales, check_forgetting, check_prior, per_weight
from bayou.numerics.sites import observe, pieces, smallest_variance
from bayou.numerics.tangents import tangents

PROJECTIONS = ("moments", "precision")


class DiagonalBelief(NamedTuple):
    """Mean and variance of each weight; ``precisions_add`` is 1.0 or, if moments are kept instead, 0.0."""

    mean: Array
    variance: Array
    precisions_add: Array


@vectorized_kernel
def marginal(belief: DiagonalBelief, x: Array) -> tuple[float, float]:
    """Mean and variance of w . x, summed in double precision."""
    mean = 0.0
    variance = 0.0
    for j in range(x.size):
        mean += np.float64(belief.mean[j]) * x[j]
        variance += np.float64(belief.variance[j]) * x[j] * x[j]
    return mean, variance


@vectorized_kernel
def scatter(belief: DiagonalBelief, missing: Mask) -> float:
    """Sum of E w_j^2 over the missing features."""
    total = 0.0
    for j in range(missing.size):
        if missing[j]:
            total += np.float64(belief.mean[j]) * belief.mean[j] + belief.variance[j]
    return total


@vectorized_kernel
def absorb(belief: DiagonalBelief, x: Array, slope: float, precision: float, variance: float) -> None:
    """Move the belief by one site."""
    gain = 1.0 / (1.0 + precision * variance)
    step = slope * gain
    weight_mean, weight_variance = belief.mean, belief.variance
    floor = smallest_variance(weight_variance)
    if belief.precisions_add[0] == 1.0:
        for j in range(x.size):
            direction = weight_variance[j] * x[j]
            weight_mean[j] += step * direction
            weight_variance[j] = max(weight_variance[j] / (1.0 + precision * direction * x[j]), floor)
    else:
        # 1 - gain * p * c x^2, written with what the other weights have, so that rounding cannot make it negative
        for j in range(x.size):
            direction = weight_variance[j] * x[j]
            others = max(variance - direction * x[j], 0.0)
            weight_mean[j] += step * direction
            weight_variance[j] = max(weight_variance[j] * (gain + gain * precision * others), floor)


@vectorized_kernel
def advance(
    belief: DiagonalBelief, x: Array, slope: float, precision: float, variance: float, ahead: Array
) -> tuple[float, float]:
    """`absorb` a site of x, then `marginal` of the row ahead, in one pass over the weights."""
    gain = 1.0 / (1.0 + precision * variance)
    step = slope * gain
    spread = gain * precision
    weight_mean, weight_variance = belief.mean, belief.variance
    floor = smallest_variance(weight_variance)
    mean_ahead, variance_ahead = 0.0, 0.0
    for j in range(x.size):
        direction = weight_variance[j] * x[j]
        others = max(variance - direction * x[j], 0.0)
        moved = weight_mean[j] + step * direction
        left = max(weight_variance[j] * (gain + spread * others), floor)
        weight_mean[j] = moved
        weight_variance[j] = left
        mean_ahead += np.float64(moved) * ahead[j]
        variance_ahead += np.float64(left) * ahead[j] * ahead[j]
    return mean_ahead, variance_ahead


@vectorized_kernel
def latent_belief(belief: DiagonalBelief, c: int) -> DiagonalBelief:
    """The belief about the weights of one latent."""
    return DiagonalBelief(belief.mean[c], belief.variance[c], belief.precisions_add[c])


_passes = passes(__name__, marginal, scatter, absorb, latent_belief)


@vectorized_kernel
def look(belief: DiagonalBelief, x: Array, seen: Array) -> float:
    """Variance of w . x."""
    return marginal(belief, x)[1]


@vectorized_kernel
def absorb_seen(belief: DiagonalBelief, x: Array, seen: Array, slope: float, precision: float, variance: float) -> None:
    """Move the belief by one site."""
    absorb(belief, x, slope, precision, variance)


_tangents = tangents(__name__, look, absorb_seen)
_learn_by_two_passes = _passes.learn


@vectorized_kernel
def learn(
    belief: DiagonalBelief,
    kernels: Any,
    params: Vector,
    features: Array,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    record: Matrix,
) -> int:
    """The pass of `bayou.numerics.passes`, with each site absorbed while the next row is looked at."""
    rows = targets.size
    if belief.precisions_add[0] == 1.0 or rows == 0:
        return int(_learn_by_two_passes(belief, kernels, params, features, missing, targets, weights, record))
    x = features[0]
    slope = precision = variance = 0.0  # at first there is no site: the pass only looks at the first row
    n = piece = 0
    while True:
        ahead = features[min(n, rows - 1)]
        mean, variance = advance(belief, x, slope, precision, variance, ahead)
        if n == rows:
            return rows
        blur = scatter(belief, missing[n]) if n < missing.shape[0] else 0.0
        if not abs(mean + variance + blur) < np.inf:
            return n
        weight = float(weights[n]) if n < weights.size else 1.0
        count = pieces(weight)
        value, slope, precision = observe(kernels, params, targets[n], mean, variance, blur, weight / count)
        if piece == 0:
            record[n, 0], record[n, 1], record[n, 2] = mean, variance + blur, value
        x = ahead
        piece += 1
        if piece == count:
            n, piece = n + 1, 0


@dataclass(frozen=True)
class DiagonalGaussian(Posterior[DiagonalBelief]):
    """Independent Gaussian weights.

    A site couples the weights; ``projection="moments"`` keeps the variances that they then have (the nearest product
    distribution in Kullback-Leibler's sense), ``"precision"`` keeps the diagonal of the precision matrix, which is
    narrower.

    >>> from bayou import DiagonalGaussian
    >>> posterior = DiagonalGaussian(prior_variance=(1.0, 4.0))
    >>> posterior.intervals(posterior.prior(2), 0.9).round(2)
    array([[-1.64,  1.64],
           [-3.29,  3.29]])
    """

    prior_variance: Scales = 1.0
    prior_mean: Scales = 0.0
    projection: str = "moments"
    dtype: str = "float64"

    predict = staticmethod(_passes.predict)
    learn = staticmethod(learn)
    learn_vector = staticmethod(_passes.learn_vector)
    tangents = _tangents

    def __post_init__(self) -> None:
        check_prior(self.prior_mean, self.prior_variance, self.dtype)
        if self.projection not in PROJECTIONS:
            raise InvalidSpec(f"`projection` must be one of {', '.join(PROJECTIONS)}; got {self.projection!r}.")

    def prior(self, n_features: int) -> DiagonalBelief:
        """The belief before any example."""
        mean, variance = aligned((n_features,), self.dtype), aligned((n_features,), self.dtype)
        mean[...] = per_weight("prior_mean", self.prior_mean, n_features)
        variance[...] = per_weight("prior_variance", self.prior_variance, n_features)
        return DiagonalBelief(mean, variance, np.full(1, float(self.projection == "precision"), dtype=self.dtype))

    def absorb(self, belief: DiagonalBelief, features: Vector, slope: float, precision: float) -> None:
        """Move the belief by one site, in place."""
        x = np.ascontiguousarray(features, dtype=self.dtype)
        absorb(belief, x, slope, precision, marginal(belief, x)[1])

    def covariance(self, belief: DiagonalBelief) -> Matrix:
        """Covariance of the weights."""
        return np.diag(self.variances(belief))

    def variances(self, belief: DiagonalBelief) -> Vector:
        """Variance of each weight."""
        return belief.variance.astype(np.float64)

    def sample(self, belief: DiagonalBelief, n: int, seed: int | np.random.Generator) -> Matrix:
        """So many draws of the weights, one per row."""
        normal = np.random.default_rng(seed).standard_normal((n, belief.mean.size))
        draws: Matrix = belief.mean + normal * np.sqrt(self.variances(belief))
        return draws

    def log_density(self, belief: DiagonalBelief, weights: Vector) -> float:
        """Log density of the belief at some weights."""
        variance = self.variances(belief)
        return float(-0.5 * np.sum((weights - belief.mean) ** 2 / variance + np.log(2.0 * np.pi * variance)))

    def forget(self, belief: DiagonalBelief, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let go of the past, in place; see `Posterior.forget`."""
        check_forgetting(discount, diffusion)
        prior = self.prior(belief.mean.size)
        if discount < 1.0:
            for array, value in zip(belief, self._combine(prior, [(discount, belief)]), strict=True):
                array[...] = value
        belief.variance[...] += np.clip(prior.variance - belief.variance, 0.0, diffusion)

    def transform(self, belief: DiagonalBelief, scale: Vector, shift: Vector) -> None:
        """Make it the belief about ``scale * w``, with ``shift . w`` added to the first weight, in place."""
        gained = float(np.sum(shift**2 * belief.variance))
        moved = float(shift @ belief.mean)
        belief.mean[...] *= scale
        belief.variance[...] *= scale**2
        belief.mean[0] += moved
        belief.variance[0] += gained

    def merge(self, shards: Sequence[DiagonalBelief]) -> DiagonalBelief:
        """The prior, times what each shard learnt beyond it."""
        return self._combine(self.prior(shards[0].mean.size), [(1.0, shard) for shard in shards])

    def subtract(self, belief: DiagonalBelief, part: DiagonalBelief) -> DiagonalBelief:
        """The belief without what the part learnt beyond the prior."""
        return self._combine(self.prior(belief.mean.size), [(1.0, belief), (-1.0, part)])

    def _combine(self, prior: DiagonalBelief, parts: Sequence[tuple[float, DiagonalBelief]]) -> DiagonalBelief:
        """Prior + sum of share * (part - prior), in natural parameters."""
        mean, variance = (values.astype(prior.mean.dtype) for values in combined(prior, parts))
        return DiagonalBelief(mean, variance, prior.precisions_add)
