"""q(w) = N(mean, L' diag(scale) L): every correlation between weights; O(d^2) per example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayou.contracts import Array, Growth, Mask, Matrix, Posterior, Vector
from bayou.numerics import factor as factors
from bayou.numerics import factor_pairs as pairs
from bayou.numerics.block_passes import block_pass
from bayou.numerics.block_sites import bearable, condition, sites_of
from bayou.numerics.jit import vectorized_kernel
from bayou.numerics.passes import passes
from bayou.numerics.priors import Scales, check_forgetting, check_prior, per_weight
from bayou.numerics.sites import observe, pieces
from bayou.numerics.tangents import tangents

# With fewer features the factor lies in the nearest cache, and there is nothing to gain.
PAIRS_FROM = 64


class FullBelief(NamedTuple):
    """Mean, and the factors of the covariance (`bayou.numerics.factor`)."""

    mean: Array
    factor: Array
    scale: Array

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, tuple(self)


@vectorized_kernel
def marginal(belief: FullBelief, x: Array) -> tuple[float, float]:
    """Mean and variance of w . x."""
    projection = np.empty_like(belief.mean)
    factors.project(belief.factor, x, projection)
    return factors.marginal(belief.mean, belief.scale, x, projection)


@vectorized_kernel
def scatter(belief: FullBelief, missing: Mask) -> float:
    """Sum of E w_j^2 over the missing features."""
    return factors.scatter(belief.mean, belief.factor, belief.scale, missing)


@vectorized_kernel
def absorb(belief: FullBelief, x: Array, slope: float, precision: float, variance: float) -> None:
    """Move the belief by one site."""
    projection, direction = np.empty_like(belief.mean), np.empty_like(belief.mean)
    factors.project(belief.factor, x, projection)
    gain = factors.downdate(belief.factor, belief.scale, projection, precision, direction, x, projection, 0)
    factors.move(belief.mean, slope * gain, direction)


@vectorized_kernel
def latent_belief(belief: FullBelief, c: int) -> FullBelief:
    """The belief about the weights of one latent."""
    return FullBelief(belief.mean[c], belief.factor[c], belief.scale[c])


_passes = passes(__name__, marginal, scatter, absorb, latent_belief)


@vectorized_kernel
def look(belief: FullBelief, x: Array, seen: Array) -> float:
    """Variance of w . x; leaves the projection of x."""
    factors.project(belief.factor, x, seen)
    return factors.marginal(belief.mean, belief.scale, x, seen)[1]


@vectorized_kernel
def absorb_seen(belief: FullBelief, x: Array, seen: Array, slope: float, precision: float, variance: float) -> None:
    """Move the belief by one site, with the projection that `look` has left."""
    direction = np.empty_like(belief.mean)
    gain = factors.downdate(belief.factor, belief.scale, seen, precision, direction, x, seen, 0)
    factors.move(belief.mean, slope * gain, direction)


_tangents = tangents(__name__, look, absorb_seen)


@vectorized_kernel
def _learn_one_by_one(
    belief: FullBelief,
    kernels: Any,
    params: Vector,
    features: Array,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    record: Matrix,
) -> int:
    """The pass of `bayou.numerics.passes`, with the next row projected while the factor is being updated."""
    rows = targets.size
    here, ahead, direction = factors.scratch(belief.mean)
    if rows:
        factors.project(belief.factor, features[0], here)
    for n in range(rows):
        x = features[n]
        weight = float(weights[n]) if n < weights.size else 1.0
        count = pieces(weight)
        for piece in range(count):
            mean, variance = factors.marginal(belief.mean, belief.scale, x, here)
            blur = scatter(belief, missing[n]) if n < missing.shape[0] else 0.0
            if not abs(mean + variance + blur) < np.inf:
                return n
            value, slope, precision = observe(kernels, params, targets[n], mean, variance, blur, weight / count)
            if piece == 0:
                record[n, 0], record[n, 1], record[n, 2] = mean, variance + blur, value
            last = piece == count - 1
            following = features[min(n + 1, rows - 1)] if last else x
            more = 0 if last and n == rows - 1 else 1
            gain = factors.downdate(belief.factor, belief.scale, here, precision, direction, following, ahead, more)
            factors.move(belief.mean, slope * gain, direction)
            here, ahead = ahead, here
    return rows


@vectorized_kernel
def _learn_in_pairs(
    belief: FullBelief, kernels: Any, params: Vector, features: Array, targets: Vector, weights: Vector, record: Matrix
) -> int:
    """The same for at least two rows without missing features, of which none counts more than one."""
    rows, last = targets.size, targets.size - 1
    here, here_too, direction = factors.scratch(belief.mean)
    ahead, ahead_too, direction_too = factors.scratch(belief.mean)
    move, keep, move_too = factors.scratch(np.empty(belief.mean.size))
    keep_too = np.empty(belief.mean.size)
    pairs.project_pair(belief.factor, features[0], features[1], here, here_too)
    for n in range(0, rows, 2):
        x, x_too = features[n], features[min(n + 1, last)]
        mean, variance = factors.marginal(belief.mean, belief.scale, x, here)
        if not abs(mean + variance) < np.inf:
            return n
        weight = float(weights[n]) if n < weights.size else 1.0
        value, slope, precision = observe(kernels, params, targets[n], mean, variance, 0.0, weight)
        record[n, 0], record[n, 1], record[n, 2] = mean, variance, value
        gain, shared = pairs.coefficients(belief.scale, here, precision, move, keep, here_too)
        step, step_too = slope * gain, 0.0
        slope, precision = 0.0, 0.0  # of the second, if there is one
        refused = False
        if n < last:
            mean, variance = factors.marginal(belief.mean, belief.scale, x_too, here_too)
            mean += step * shared  # the weights' mean has not moved yet
            refused = not abs(mean + variance) < np.inf
            if not refused:
                weight = float(weights[n + 1]) if n + 1 < weights.size else 1.0
                value, slope, precision = observe(kernels, params, targets[n + 1], mean, variance, 0.0, weight)
                record[n + 1, 0], record[n + 1, 1], record[n + 1, 2] = mean, variance, value
        if n < last and not refused:
            gain, _ = pairs.coefficients(belief.scale, here_too, precision, move_too, keep_too, here)
            step_too = slope * gain
        else:
            move_too[:], keep_too[:] = 0.0, 0.0
        left = 0 if refused else min(max(rows - n - 2, 0), 2)
        next_x, next_too = features[min(n + 2, last)], features[min(n + 3, last)]
        first, second = (move, keep, direction), (move_too, keep_too, direction_too)
        pairs.downdate_pair(belief.factor, first, second, next_x, next_too, ahead, ahead_too, left)
        factors.move(belief.mean, step, direction)
        factors.move(belief.mean, step_too, direction_too)
        if refused:
            return n + 1
        here, ahead = ahead, here
        here_too, ahead_too = ahead_too, here_too
    return rows


@vectorized_kernel
def _learn_rows(
    belief: FullBelief,
    kernels: Any,
    params: Vector,
    features: Array,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    record: Matrix,
) -> int:
    """By the loop that makes the most of each look at the factor."""
    heaviest = 0.0
    for weight in weights:
        heaviest = max(heaviest, weight)
    if belief.mean.size < PAIRS_FROM or targets.size < 2 or missing.shape[0] > 0 or heaviest > 1.0:
        return int(_learn_one_by_one(belief, kernels, params, features, missing, targets, weights, record))
    return int(_learn_in_pairs(belief, kernels, params, features, targets, weights, record))


@vectorized_kernel
def _find_sites(
    belief: FullBelief,
    numbers: Vector,
    q: int,
    kernels: Any,
    params: Vector,
    targets: Vector,
    weights: Vector,
    record: Matrix,
) -> bool:
    """The sites of a block."""
    sites = sites_of(numbers, q)
    for t in range(targets.size):
        mean, variance = sites.means[t], sites.covariances[t * q + t]
        if not abs(mean + variance) < np.inf:
            return False
        weight = float(weights[t]) if t < weights.size else 1.0
        value, slope, precision = observe(kernels, params, targets[t], mean, variance, 0.0, weight)
        if not bearable(t, precision, q, sites):
            return False
        record[t, 0], record[t, 1], record[t, 2] = mean, variance, value
        condition(t, slope, precision, q, sites)
    return True


_block_pass = block_pass(__name__, _find_sites, _learn_rows, FullBelief)


def _restored(*arrays: Any) -> FullBelief:
    """A belief from a pickle: the process that reads it may not have made any."""
    _block_pass.prepare(arrays[0].shape[-1], arrays[0].dtype.name)
    return FullBelief(*arrays)


@dataclass(frozen=True)
class FullGaussian(Posterior[FullBelief]):
    """Gaussian weights with all their correlations.

    >>> from bayou import FullGaussian
    >>> posterior = FullGaussian(prior_variance=2.0)
    >>> posterior.variances(posterior.prior(3))
    array([2., 2., 2.])
    """

    prior_variance: Scales = 1.0
    prior_mean: Scales = 0.0
    dtype: str = "float64"

    predict = staticmethod(_passes.predict)
    learn = staticmethod(_block_pass.learn)
    learn_vector = staticmethod(_passes.learn_vector)
    tangents = _tangents

    def __post_init__(self) -> None:
        check_prior(self.prior_mean, self.prior_variance, self.dtype)

    def prepare(self, n_features: int) -> None:
        """Compile the pass in blocks, for features that are many enough."""
        _block_pass.prepare(n_features, self.dtype)

    def prior(self, n_features: int) -> FullBelief:
        """The belief before any example."""
        return self._belief(
            per_weight("prior_mean", self.prior_mean, n_features),
            np.eye(n_features),
            per_weight("prior_variance", self.prior_variance, n_features),
        )

    def absorb(self, belief: FullBelief, features: Vector, slope: float, precision: float) -> None:
        """Move the belief by one site, in place."""
        absorb(belief, np.ascontiguousarray(features, dtype=self.dtype), slope, precision, np.nan)

    def covariance(self, belief: FullBelief) -> Matrix:
        """Covariance of the weights."""
        return factors.covariance_of(belief.factor, belief.scale)

    def variances(self, belief: FullBelief) -> Vector:
        """Variance of each weight."""
        return factors.variances_of(belief.factor, belief.scale)

    def sample(self, belief: FullBelief, n: int, seed: int | np.random.Generator) -> Matrix:
        """So many draws of the weights, one per row."""
        normal = np.random.default_rng(seed).standard_normal((n, belief.mean.size))
        draws: Matrix = belief.mean + normal * np.sqrt(belief.scale, dtype=np.float64) @ belief.factor
        return draws

    def log_density(self, belief: FullBelief, weights: Vector) -> float:
        """Log density of the belief at some weights."""
        whitened = factors.whiten(belief.factor, belief.scale, weights - belief.mean)
        return float(-0.5 * np.sum(whitened**2 + np.log(2.0 * np.pi * belief.scale.astype(np.float64))))

    def forget(self, belief: FullBelief, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let go of the past, in place; see `Posterior.forget`. O(d^3)."""
        check_forgetting(discount, diffusion)
        prior = self.prior(belief.mean.size)
        if discount < 1.0:
            self._write(belief, self._combine(prior, [(discount, belief)]))
        if diffusion > 0.0:
            factor, scale = factors.diffused(belief.factor, belief.scale, prior.scale, diffusion)
            self._write(belief, FullBelief(belief.mean, factor, scale))

    def transform(self, belief: FullBelief, scale: Vector, shift: Vector) -> None:
        """Make it the belief about ``scale * w``, with ``shift . w`` added to the first weight, in place."""
        factors.transform(belief.mean, belief.factor, belief.scale, scale, shift)

    def recast(self, belief: FullBelief, before: Posterior[FullBelief], growth: Growth) -> FullBelief:
        """What was learnt beyond the old prior, of the new functions, beside their own prior."""
        prior, old = self.prior(len(growth.back)), before.prior(belief.mean.size)
        precision = factors.precision_of(prior.factor, prior.scale)
        shift = precision @ prior.mean
        was, is_now = (factors.precision_of(known.factor, known.scale) for known in (old, belief))
        precision += growth.back @ (is_now - was) @ growth.back.T
        shift += growth.back @ (is_now @ belief.mean - was @ old.mean)
        factor, scale = factors.factors_of_precision(precision)
        return self._belief(factor.T @ (scale * (factor @ shift)), factor, scale)

    def merge(self, shards: Sequence[FullBelief]) -> FullBelief:
        """The prior, times what each shard learnt beyond it."""
        return self._combine(self.prior(shards[0].mean.size), [(1.0, shard) for shard in shards])

    def subtract(self, belief: FullBelief, part: FullBelief) -> FullBelief:
        """The belief without what the part learnt beyond the prior."""
        return self._combine(self.prior(belief.mean.size), [(1.0, belief), (-1.0, part)])

    def _combine(self, prior: FullBelief, parts: Sequence[tuple[float, FullBelief]]) -> FullBelief:
        """Prior + sum of share * (part - prior), in natural parameters."""
        prior_precision = factors.precision_of(prior.factor, prior.scale)
        precision, shift = prior_precision.copy(), prior_precision @ prior.mean
        for share, part in parts:
            part_precision = factors.precision_of(part.factor, part.scale)
            precision += share * (part_precision - prior_precision)
            shift += share * (part_precision @ part.mean - prior_precision @ prior.mean)
        factor, scale = factors.factors_of_precision(precision)
        mean = factor.T @ (scale * (factor @ shift))
        return self._belief(mean, factor, scale)

    def _belief(self, mean: Array, factor: Array, scale: Array) -> FullBelief:
        belief = FullBelief(*(factors.aligned(array.shape, self.dtype) for array in (mean, factor, scale)))
        self._write(belief, FullBelief(mean, factor, scale))
        return belief

    @staticmethod
    def _write(belief: FullBelief, values: FullBelief) -> None:
        for array, value in zip(belief, values, strict=True):
            array[...] = value
