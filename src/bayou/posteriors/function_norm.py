"""q(w) = N(mean, A^-1 / stiffness): what is known of a function is the same everywhere; O(d) for orthonormal functions.

With A the Gram matrix of the functions, w' A w is the mean square of the function w . phi over its domain. So an
example moves the mean to where the target is better met and the function, over all of its domain, changes least:

    mean' minimises   stiffness * mean over the domain of (change of the function)^2 - log p(y | f)

which for squared errors is IRMA, (8) of Buschermoehle, Schoenke, Rosemann and Brockmann 2013, in the form of rank one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.optimize
from scipy.special import gammaln, stdtr, stdtrit

from bayou.contracts import Basis, Growth, Matrix, Posterior, Stiffness, Vector
from bayou.errors import ImproperBelief, InvalidSpec, ShapeMismatch
from bayou.numerics.bands import band_factor, from_band, inverse_diagonal
from bayou.numerics.function_norms import (
    FunctionBelief,
    absorb,
    count_noise,
    latent_belief,
    learn,
    marginal,
    predict,
    scatter,
)
from bayou.numerics.passes import passes
from bayou.numerics.priors import Scales, check_forgetting, check_prior, per_weight
from bayou.stiffness import LearntStiffness

FEATURES = ("orthonormal", "functions")


_passes = passes(__name__, marginal, scatter, absorb, latent_belief)


@dataclass(frozen=True)
class FunctionNorm(Posterior[FunctionBelief]):
    """A function that changes as little as possible, over all of its domain, with every example: IRMA.

    The features are those of a ``basis``: its orthonormal functions (``basis.encode``), or, with
    ``features="functions"``, the functions as they are, whose Gram matrix is then factorised once: O(d) per example if
    they are local, O(d^2) otherwise. Without a basis, features count as orthonormal.

    The stiffness is the precision of what is known. With ``learn_noise`` it is in units of the noise, which is learnt.

    >>> from bayou import FunctionNorm, Gaussian, GeometricStiffness, Learner, MomentMatching
    >>> learner = Learner(Gaussian(), FunctionNorm(GeometricStiffness(0.5)), MomentMatching(), n_features=2)
    >>> _ = learner.learn_one([1.0, 1.0], 5.0)
    >>> learner.belief.mean
    array([2., 2.])
    """

    stiffness: Stiffness = LearntStiffness()  # noqa: RUF009  # a spec is a value
    basis: Basis | None = None
    features: str = "orthonormal"
    learn_noise: bool = False
    prior_mean: Scales = 0.0
    noise_shape: float = 0.5
    noise_rate: float = 0.5
    dtype: str = "float64"

    predict = staticmethod(predict)
    learn = staticmethod(learn)
    learn_vector = staticmethod(_passes.learn_vector)

    def __post_init__(self) -> None:
        check_prior(self.prior_mean, 1.0, self.dtype)
        if not isinstance(self.stiffness, Stiffness):
            raise InvalidSpec(f"`stiffness` must be a Stiffness; got {self.stiffness!r}.")
        if not (self.basis is None or isinstance(self.basis, Basis)):
            raise InvalidSpec(f"`basis` must be a Basis or None; got {self.basis!r}.")
        if self.features not in FEATURES:
            raise InvalidSpec(f"`features` must be one of {', '.join(FEATURES)}; got {self.features!r}.")
        if self.features == "functions" and self.basis is None:
            raise InvalidSpec("`basis` must say whose functions the features are; got None.")
        for name in ("noise_shape", "noise_rate"):
            value = getattr(self, name)
            if not 0.0 < value < math.inf:
                raise InvalidSpec(f"`{name}` must be positive and finite; got {value!r}.")

    @property
    def n_records(self) -> int:  # type: ignore[override]  # by spec, not by class
        """Mean, variance and evidence; with the noise, its scale and its degrees of freedom too."""
        return 5 if self.learn_noise else 3

    @property
    def learns_noise(self) -> bool:  # type: ignore[override]  # by spec, not by class
        """Whether the scale of the noise is learnt."""
        return self.learn_noise

    def prior(self, n_features: int) -> FunctionBelief:
        """The belief before any example."""
        factor, roughness = np.zeros((0, 1)), np.zeros(n_features)
        spread = np.ones(n_features)
        numbers = self.stiffness.numbers(n_features)
        if self.basis is not None and self.features == "functions":
            factor = band_factor(self.basis.gram_band(), n_features)
            spread = inverse_diagonal(factor)
            numbers[1] = 0.0  # roughness is known of orthonormal functions
        elif self.basis is not None:
            if self.basis.size != n_features:
                raise ShapeMismatch(f"`basis` has {self.basis.size} functions; got {n_features} features.")
            roughness = self.basis.roughness.copy()
        return FunctionBelief(
            per_weight("prior_mean", self.prior_mean, n_features).astype(self.dtype),
            roughness,
            factor,
            spread,
            numbers,
            np.array([self.noise_shape, self.noise_rate, 0.0]) if self.learn_noise else np.zeros(0),
        )

    def check(self, belief: FunctionBelief) -> None:
        """Raise unless a belief from elsewhere is that of this norm, with numbers that kernels may trust."""
        prior = self.prior(belief.mean.size)
        for name in ("roughness", "factor", "spread"):
            if not np.allclose(getattr(belief, name), getattr(prior, name), rtol=1e-6, atol=1e-12):
                raise ImproperBelief(f"`{name}` must be that of the norm of {self!r}; it is not.")
        positive = belief.stiffness[2] >= 0.0 and np.all(belief.noise[:2] > 0.0)
        kept = [0, 1, 3, 4]
        if not (np.all(np.isfinite(belief.stiffness)) and positive and np.isfinite(belief.noise).all()):
            raise ImproperBelief("the stiffness and the noise must be finite and not negative; they are not.")
        if not np.array_equal(belief.stiffness[kept], prior.stiffness[kept]):
            raise ImproperBelief(f"the stiffness must be that of {self.stiffness!r}; it is not.")

    def absorb(self, belief: FunctionBelief, features: Vector, slope: float, precision: float) -> None:
        """Move the belief by one site, in place; a site of a Gaussian likelihood, if the noise is learnt."""
        x = np.ascontiguousarray(features, dtype=self.dtype)
        variance = marginal(belief, x)[1]
        absorb(belief, x, slope, precision, variance)
        if self.learn_noise:
            count_noise(belief.noise, slope, precision, variance, 1.0)

    def covariance(self, belief: FunctionBelief) -> Matrix:
        """Covariance of the weights; infinite with no more than two degrees of freedom of the noise."""
        if not len(belief.factor):
            return np.diag(self.variances(belief))
        lower = from_band(belief.factor)
        covariance: Matrix = scipy.linalg.cho_solve((lower, True), np.eye(len(lower)))
        covariance *= self._unit(belief) / self._precisions(belief)[0]
        return covariance

    def variances(self, belief: FunctionBelief) -> Vector:
        """Variance of each weight; infinite with no more than two degrees of freedom of the noise."""
        return self._unit(belief) * belief.spread / self._precisions(belief)

    def sample(self, belief: FunctionBelief, n: int, seed: int | np.random.Generator) -> Matrix:
        """So many draws of the weights, one per row."""
        generator = np.random.default_rng(seed)
        unit = belief.noise[1] / generator.gamma(belief.noise[0], size=(n, 1)) if self.learn_noise else np.ones((n, 1))
        normal = generator.standard_normal((n, belief.mean.size)) / np.sqrt(self._precisions(belief))
        if len(belief.factor):
            normal = scipy.linalg.solve_triangular(from_band(belief.factor).T, normal.T).T
        draws: Matrix = belief.mean + np.sqrt(unit) * normal
        return draws

    def log_density(self, belief: FunctionBelief, weights: Vector) -> float:
        """Log density of the belief at some weights: normal, or a Student t in several dimensions."""
        d, offset = belief.mean.size, np.asarray(weights, dtype=np.float64) - belief.mean
        log_scale = -0.5 * float(np.sum(np.log(self._precisions(belief))))
        if len(belief.factor):
            offset = from_band(belief.factor).T @ offset
            log_scale -= float(np.sum(np.log(belief.factor[:, 0])))
        square = float(np.sum(self._precisions(belief) * offset**2))
        if not self.learn_noise:
            return -0.5 * (square + d * math.log(2.0 * math.pi)) - log_scale
        shape, rate, _ = belief.noise
        kernel = -(shape + 0.5 * d) * math.log1p(square / (2.0 * rate))
        constant = gammaln(shape + 0.5 * d) - gammaln(shape) - 0.5 * d * math.log(2.0 * math.pi * rate)
        return float(constant + kernel) - log_scale

    def intervals(self, belief: FunctionBelief, coverage: float) -> Matrix:
        """Central interval of each weight: a row (low, high) per weight."""
        if not self.learn_noise:
            return super().intervals(belief, coverage)
        reach = stdtrit(2.0 * belief.noise[0], 0.5 + 0.5 * coverage) * self._t_scales(belief)
        return np.column_stack([belief.mean - reach, belief.mean + reach])

    def sign_probability(self, belief: FunctionBelief) -> Vector:
        """Probability that each weight has the sign of its mean."""
        if not self.learn_noise:
            return super().sign_probability(belief)
        probability: Vector = stdtr(2.0 * belief.noise[0], np.abs(belief.mean) / self._t_scales(belief))
        return probability

    def forget(self, belief: FunctionBelief, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let go of the past, in place; see `Posterior.forget`. The stiffness falls, and with it what holds the mean.

        Diffusion is added to the variance of the smoothest function, in units of the noise if it is learnt.
        """
        check_forgetting(discount, diffusion)
        if discount < 1.0:
            self._write(belief, self._combine([(discount, belief)]))
        if diffusion > 0.0:
            start, grown = float(belief.stiffness[0]), float(belief.stiffness[2])
            belief.stiffness[2] = max(1.0 / (1.0 / (start + grown) + diffusion) - start, 0.0)

    def transform(self, belief: FunctionBelief, scale: Vector, shift: Vector) -> None:
        """Make ``scale * w``, with ``shift . w`` added to the first weight, the mean, in place; the norm stays."""
        moved = float(shift @ belief.mean)
        belief.mean[...] *= scale
        belief.mean[0] += moved

    def retell(self, belief: FunctionBelief, scale: Vector, shift: Vector) -> None:
        """Tell the mean in new coordinates; the norm is that of the functions, whatever they are called."""
        self.transform(belief, scale, shift)

    def recast(self, belief: FunctionBelief, before: Posterior[FunctionBelief], growth: Growth) -> FunctionBelief:
        """The function that what was learnt beyond the old prior and the prior of the new functions tell together.

        In the old box it is what it was, as firmly as it was known; beyond, it is not taken as far as it would go. The
        stiffness keeps the trace of the covariance, of which new ground has the most: it falls, and rises as it would
        have risen there. O(d^3).
        """
        if self.features != "orthonormal":
            raise InvalidSpec(f"{self!r} can grow with orthonormal features only.")
        wider, old = self.prior(len(growth.back)), before.prior(belief.mean.size)
        prior_precisions, grown = self._precisions(wider), float(belief.stiffness[2])
        shift = self._precisions(belief) * belief.mean - self._precisions(old) * old.mean
        precision = np.diag(prior_precisions) + grown * growth.back @ growth.back.T
        covariance = scipy.linalg.inv(precision)
        wider.mean[...] = covariance @ (prior_precisions * wider.mean + growth.back @ shift)
        wider.stiffness[2] = _grown_to(prior_precisions, float(np.trace(covariance)))
        wider.noise[...] = belief.noise
        return wider

    def merge(self, shards: Sequence[FunctionBelief]) -> FunctionBelief:
        """The prior, times what each shard learnt beyond it."""
        return self._combine([(1.0, shard) for shard in shards])

    def subtract(self, belief: FunctionBelief, part: FunctionBelief) -> FunctionBelief:
        """The belief without what the part learnt beyond the prior."""
        return self._combine([(1.0, belief), (-1.0, part)])

    def _combine(self, parts: Sequence[tuple[float, FunctionBelief]]) -> FunctionBelief:
        """Prior + sum of share * (part - prior), in natural parameters: A need not be told, being the same in all."""
        merged = self.prior(parts[0][1].mean.size)
        prior_shift = self._precisions(merged) * merged.mean
        shift, count = prior_shift.copy(), 0.0
        for share, part in parts:
            merged.stiffness[2] += share * part.stiffness[2]
            shift += share * (self._precisions(part) * part.mean - prior_shift)
            count += share * float(part.noise[2]) if self.learn_noise else 0.0
        if not (merged.stiffness[2] >= -1e-9 * merged.stiffness[0] and count >= 0.0):
            raise ImproperBelief(
                f"a stiffness must not be less than at the start; it would have grown by {merged.stiffness[2]:.3g}. "
                "Was something taken out that was never learnt?"
            )
        merged.stiffness[2] = max(merged.stiffness[2], 0.0)
        merged.mean[...] = shift / self._precisions(merged)
        if count > 0.0:  # what is known of the noise is of the latest examples: an average, each part by its examples
            noises = [(share * part.noise[2] / count, part.noise) for share, part in parts]
            merged.noise[0] = sum(weight * noise[0] for weight, noise in noises)
            merged.noise[1] = merged.noise[0] * sum(weight * noise[1] / noise[0] for weight, noise in noises)
            merged.noise[2] = count
        return merged

    @staticmethod
    def _precisions(belief: FunctionBelief) -> Vector:
        """Per function, in units of A."""
        start, smoothness, grown = belief.stiffness[:3]
        precisions: Vector = start * (1.0 + smoothness * belief.roughness) + grown
        return precisions

    def _t_scales(self, belief: FunctionBelief) -> Vector:
        shape, rate, _ = belief.noise
        scales: Vector = np.sqrt(rate / shape * belief.spread / self._precisions(belief))
        return scales

    def _unit(self, belief: FunctionBelief) -> float:
        if not self.learn_noise:
            return 1.0
        shape, rate, _ = belief.noise
        return float(rate / (shape - 1.0)) if shape > 1.0 else math.inf

    @staticmethod
    def _write(belief: FunctionBelief, values: FunctionBelief) -> None:
        for array, value in zip(belief, values, strict=True):
            array[...] = value


def _grown_to(precisions: Vector, trace: float) -> float:
    """What to add to each precision for the inverses to have this sum; 0 if they have no more."""
    surplus = float(np.sum(1.0 / precisions)) - trace
    if surplus <= 0.0:
        return 0.0
    most = precisions.size / trace  # the sum of n inverses of no less is no more
    return float(scipy.optimize.brentq(lambda grown: np.sum(1.0 / (precisions + grown)) - trace, 0.0, most))
