"""q(w, s) = N(w; mean, s C) InverseGamma(s; shape, rate): weights and the scale s of the noise, learnt together.

Exact for the Gaussian likelihood: y = w . x + noise of variance s * noise_variance. Latent variances are in units of s;
y is predicted by a Student t with 2 * shape degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, stdtr, stdtrit

from bayou.contracts import Array, Growth, Mask, Matrix, Posterior, Vector
from bayou.errors import ImproperBelief, InvalidSpec
from bayou.numerics import factor as factors
from bayou.numerics.block_passes import block_pass
from bayou.numerics.block_sites import bearable, condition, sites_of
from bayou.numerics.jit import vectorized_kernel
from bayou.numerics.pointers import call_site
from bayou.numerics.priors import Scales, check_forgetting, check_prior, per_weight
from bayou.numerics.sites import pieces
from bayou.numerics.student_t import log_student


class NormalInverseGammaBelief(NamedTuple):
    """Mean and factors of C (`bayou.numerics.factor`); noise is (shape, rate)."""

    mean: Array
    factor: Array
    scale: Array
    noise: Vector

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, tuple(self)


@vectorized_kernel
def scatter(belief: NormalInverseGammaBelief, missing: Mask) -> float:
    """Sum of E w_j^2 over the missing features, in units of the noise."""
    ratio = belief.noise[0] / belief.noise[1]
    total = 0.0
    for j in range(missing.size):
        if missing[j]:
            total += (ratio - 1.0) * belief.mean[j] * belief.mean[j]
    return total + factors.scatter(belief.mean, belief.factor, belief.scale, missing)


@vectorized_kernel
def predict(belief: NormalInverseGammaBelief, features: Array, missing: Mask, record: Matrix) -> None:
    """Record mean and variance of the latent of each row, then scale and degrees of freedom of the noise."""
    projection = np.empty_like(belief.mean)
    for n in range(features.shape[0]):
        factors.project(belief.factor, features[n], projection)
        record[n, 0], record[n, 1] = factors.marginal(belief.mean, belief.scale, features[n], projection)
        if n < missing.shape[0]:
            record[n, 1] += scatter(belief, missing[n])
        record[n, 2], record[n, 3] = belief.noise[1] / belief.noise[0], 2.0 * belief.noise[0]


@vectorized_kernel
def absorb(
    belief: NormalInverseGammaBelief,
    x: Array,
    here: Array,
    direction: Array,
    slope: float,
    precision: float,
    weight: float,
) -> None:
    """Move the belief by one site, which for a Gaussian holds the error: slope / precision."""
    gain = factors.downdate(belief.factor, belief.scale, here, precision, direction, x, here, 0)
    factors.move(belief.mean, slope * gain, direction)
    if precision > 0.0:
        belief.noise[0] += 0.5 * weight
        belief.noise[1] += 0.5 * slope * slope * gain / precision


@vectorized_kernel
def _learn_rows(
    belief: NormalInverseGammaBelief,
    kernels: Any,
    params: Vector,
    features: Array,
    missing: Mask,
    targets: Vector,
    weights: Vector,
    record: Matrix,
) -> int:
    """Absorb the rows in order; record what `predict` would have said before each, and log E p."""
    here, direction = np.empty_like(belief.mean), np.empty_like(belief.mean)
    shape, rate = belief.noise[:1], belief.noise[1:]
    for n in range(targets.size):
        x = features[n]
        weight = float(weights[n]) if n < weights.size else 1.0
        count = pieces(weight)
        for piece in range(count):
            factors.project(belief.factor, x, here)
            mean, variance = factors.marginal(belief.mean, belief.scale, x, here)
            blur = scatter(belief, missing[n]) if n < missing.shape[0] else 0.0
            if not abs(mean + variance + blur) < np.inf:
                return n
            _, slope, precision = call_site(kernels, kernels, targets[n], mean, variance + blur, params)
            noise = rate[0] / shape[0]
            if piece == 0:
                record[n, 0], record[n, 1], record[n, 2], record[n, 3] = mean, variance + blur, noise, 2.0 * shape[0]
                spread = noise * (1.0 / precision + variance + blur)
                record[n, 4] = log_student(slope / precision, spread, shape[0])
            share = weight / count / (1.0 + precision * blur)
            absorb(belief, x, here, direction, slope * share, precision * share, weight / count)
    return targets.size


@vectorized_kernel
def _find_sites(
    belief: NormalInverseGammaBelief,
    numbers: Vector,
    q: int,
    kernels: Any,
    params: Vector,
    targets: Vector,
    weights: Vector,
    record: Matrix,
) -> bool:
    """The sites of a block, and what they tell of the noise."""
    sites = sites_of(numbers, q)
    shape, rate = belief.noise[0], belief.noise[1]
    for t in range(targets.size):
        mean, variance = sites.means[t], sites.covariances[t * q + t]
        if not abs(mean + variance) < np.inf:
            return False
        _, slope, precision = call_site(kernels, kernels, targets[t], mean, variance, params)
        noise = rate / shape
        record[t, 0], record[t, 1], record[t, 2], record[t, 3] = mean, variance, noise, 2.0 * shape
        record[t, 4] = log_student(slope / precision, noise * (1.0 / precision + variance), shape)
        weight = float(weights[t]) if t < weights.size else 1.0
        slope, precision = slope * weight, precision * weight
        if not bearable(t, precision, q, sites):
            return False
        gain = condition(t, slope, precision, q, sites)
        if precision > 0.0:
            shape += 0.5 * weight
            rate += 0.5 * slope * slope * gain / precision
    belief.noise[0], belief.noise[1] = shape, rate
    return True


_block_pass = block_pass(__name__, _find_sites, _learn_rows, NormalInverseGammaBelief, (np.zeros(2),))


def _restored(*arrays: Any) -> NormalInverseGammaBelief:
    """A belief from a pickle: the process that reads it may not have made any."""
    _block_pass.prepare(arrays[0].shape[-1], arrays[0].dtype.name)
    return NormalInverseGammaBelief(*arrays)


@dataclass(frozen=True)
class NormalInverseGamma(Posterior[NormalInverseGammaBelief]):
    """Gaussian weights with all their correlations, and noise of unknown scale: regression with nothing to set.

    ``prior_variance`` is in units of the noise. The scale of the noise, which multiplies the ``noise_variance`` of the
    likelihood, starts as an inverse gamma: about ``2 * noise_shape`` observations of mean ``noise_rate / noise_shape``.

    >>> from bayou import NormalInverseGamma
    >>> posterior = NormalInverseGamma(noise_shape=2.0, noise_rate=6.0)
    >>> posterior.covariance(posterior.prior(2))
    array([[6., 0.],
           [0., 6.]])
    """

    prior_variance: Scales = 1.0
    prior_mean: Scales = 0.0
    noise_shape: float = 0.5
    noise_rate: float = 0.5
    dtype: str = "float64"

    n_records = 5
    learns_noise = True
    predict = staticmethod(predict)
    learn = staticmethod(_block_pass.learn)

    def __post_init__(self) -> None:
        check_prior(self.prior_mean, self.prior_variance, self.dtype)
        for name in ("noise_shape", "noise_rate"):
            value = getattr(self, name)
            if not (value > 0.0 and math.isfinite(value)):
                raise InvalidSpec(f"`{name}` must be positive and finite; got {value!r}.")

    def prepare(self, n_features: int) -> None:
        """Compile the pass in blocks, for features that are many enough."""
        _block_pass.prepare(n_features, self.dtype)

    def prior(self, n_features: int) -> NormalInverseGammaBelief:
        """The belief before any example."""
        return self._belief(
            per_weight("prior_mean", self.prior_mean, n_features),
            np.eye(n_features),
            per_weight("prior_variance", self.prior_variance, n_features),
            np.array([self.noise_shape, self.noise_rate]),
        )

    def absorb(self, belief: NormalInverseGammaBelief, features: Vector, slope: float, precision: float) -> None:
        """Move the belief by one site, in place; a site of a Gaussian likelihood, counted as one observation."""
        x = np.ascontiguousarray(features, dtype=self.dtype)
        here, direction = np.empty_like(belief.mean), np.empty_like(belief.mean)
        factors.project(belief.factor, x, here)
        absorb(belief, x, here, direction, slope, precision, 1.0)

    def covariance(self, belief: NormalInverseGammaBelief) -> Matrix:
        """Covariance of the weights; infinite with no more than two degrees of freedom."""
        return self._noise_variance(belief) * factors.covariance_of(belief.factor, belief.scale)

    def variances(self, belief: NormalInverseGammaBelief) -> Vector:
        """Variance of each weight; infinite with no more than two degrees of freedom."""
        return self._noise_variance(belief) * factors.variances_of(belief.factor, belief.scale)

    def sample(self, belief: NormalInverseGammaBelief, n: int, seed: int | np.random.Generator) -> Matrix:
        """So many draws of the weights, one per row."""
        generator = np.random.default_rng(seed)
        noise = belief.noise[1] / generator.gamma(belief.noise[0], size=(n, 1))
        normal = generator.standard_normal((n, belief.mean.size))
        draws: Matrix = belief.mean + np.sqrt(noise) * normal * np.sqrt(belief.scale) @ belief.factor
        return draws

    def log_density(self, belief: NormalInverseGammaBelief, weights: Vector) -> float:
        """Log density of the belief at some weights: a Student t in several dimensions."""
        d, (shape, rate) = belief.mean.size, belief.noise
        whitened = factors.whiten(belief.factor, belief.scale, weights - belief.mean)
        return float(
            gammaln(shape + 0.5 * d)
            - gammaln(shape)
            - 0.5 * np.sum(np.log(2.0 * np.pi * rate * belief.scale.astype(np.float64)))
            - (shape + 0.5 * d) * np.log1p(np.sum(whitened**2) / (2.0 * rate))
        )

    def intervals(self, belief: NormalInverseGammaBelief, coverage: float) -> Matrix:
        """Central interval of each weight, of its Student t: a row (low, high) per weight."""
        shape, rate = belief.noise
        spread = np.sqrt(rate / shape * factors.variances_of(belief.factor, belief.scale))
        reach = stdtrit(2.0 * shape, 0.5 + 0.5 * coverage) * spread
        return np.column_stack([belief.mean - reach, belief.mean + reach])

    def sign_probability(self, belief: NormalInverseGammaBelief) -> Vector:
        """Probability that each weight has the sign of its mean."""
        shape, rate = belief.noise
        spread = np.sqrt(rate / shape * factors.variances_of(belief.factor, belief.scale))
        probability: Vector = stdtr(2.0 * shape, np.abs(belief.mean) / spread)
        return probability

    def forget(self, belief: NormalInverseGammaBelief, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let go of the past, in place; ``diffusion`` is in units of the noise. See `Posterior.forget`. O(d^3)."""
        check_forgetting(discount, diffusion)
        prior = self.prior(belief.mean.size)
        if discount < 1.0:
            self._write(belief, self._combine(prior, [(discount, belief)]))
        if diffusion > 0.0:
            factor, scale = factors.diffused(belief.factor, belief.scale, prior.scale, diffusion)
            self._write(belief, NormalInverseGammaBelief(belief.mean, factor, scale, belief.noise))

    def transform(self, belief: NormalInverseGammaBelief, scale: Vector, shift: Vector) -> None:
        """Make it the belief about ``scale * w``, with ``shift . w`` added to the first weight, in place."""
        factors.transform(belief.mean, belief.factor, belief.scale, scale, shift)

    def recast(
        self, belief: NormalInverseGammaBelief, before: Posterior[NormalInverseGammaBelief], growth: Growth
    ) -> NormalInverseGammaBelief:
        """What was learnt beyond the old prior, of the new functions, beside their own prior."""
        total = _natural(self.prior(len(growth.back)))
        is_now, was = _natural(belief), _natural(before.prior(belief.mean.size))
        total[0][...] += growth.back @ (is_now[0] - was[0]) @ growth.back.T
        total[1][...] += growth.back @ (is_now[1] - was[1])
        total[2][...] += is_now[2] - was[2]
        return self._from_natural(*total)

    def merge(self, shards: Sequence[NormalInverseGammaBelief]) -> NormalInverseGammaBelief:
        """The prior, times what each shard learnt beyond it."""
        return self._combine(self.prior(shards[0].mean.size), [(1.0, shard) for shard in shards])

    def subtract(self, belief: NormalInverseGammaBelief, part: NormalInverseGammaBelief) -> NormalInverseGammaBelief:
        """The belief without what the part learnt beyond the prior."""
        return self._combine(self.prior(belief.mean.size), [(1.0, belief), (-1.0, part)])

    @staticmethod
    def _noise_variance(belief: NormalInverseGammaBelief) -> float:
        shape, rate = belief.noise
        return float(rate / (shape - 1.0)) if shape > 1.0 else math.inf

    def _combine(
        self, prior: NormalInverseGammaBelief, parts: Sequence[tuple[float, NormalInverseGammaBelief]]
    ) -> NormalInverseGammaBelief:
        """Prior + sum of share * (part - prior), in natural parameters."""
        base = _natural(prior)
        total = [value.copy() for value in base]
        for share, part in parts:
            for value, of_part, of_prior in zip(total, _natural(part), base, strict=True):
                value += share * (of_part - of_prior)
        return self._from_natural(*total)

    def _from_natural(self, precision: Matrix, shift: Vector, noise: Vector) -> NormalInverseGammaBelief:
        factor, scale = factors.factors_of_precision(precision)
        mean = factor.T @ (scale * (factor @ shift))
        noise[1] -= 0.5 * mean @ shift
        if not (noise[0] > 0.0 and noise[1] > 0.0):
            raise ImproperBelief(
                f"the noise must have positive shape and rate; they would be {noise[0]:.3g} and {noise[1]:.3g}. "
                "Was something taken out that was never learnt?"
            )
        return self._belief(mean, factor, scale, noise)

    def _belief(self, mean: Array, factor: Array, scale: Array, noise: Vector) -> NormalInverseGammaBelief:
        kept = [factors.aligned(array.shape, self.dtype) for array in (mean, factor, scale)]
        belief = NormalInverseGammaBelief(kept[0], kept[1], kept[2], noise.copy())
        self._write(belief, NormalInverseGammaBelief(mean, factor, scale, noise))
        return belief

    @staticmethod
    def _write(belief: NormalInverseGammaBelief, values: NormalInverseGammaBelief) -> None:
        for array, value in zip(belief, values, strict=True):
            array[...] = value


def _natural(belief: NormalInverseGammaBelief) -> tuple[Matrix, Vector, Vector]:
    """Precision, precision times mean, and (shape, rate + mean . precision . mean / 2): these add over examples."""
    precision = factors.precision_of(belief.factor, belief.scale)
    shift = precision @ belief.mean
    return precision, shift, belief.noise + np.array([0.0, 0.5 * (shift @ belief.mean)])
