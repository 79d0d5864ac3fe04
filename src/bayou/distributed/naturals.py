"""Beliefs in natural parameters, where what was learnt of different rows adds up.

    full covariance         the upper half of the precision matrix, and precision times mean
    noise learnt, too       the same, and (shape, rate + mean . precision . mean / 2)
    independent weights     their precisions, and these times their means

Of several latents there is one after another, stacked. `log_partition` is the logarithm of what a belief of these
parameters must be divided by to be a distribution: by it evidence adds up as well, where every correlation is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

from bayou.contracts import Matrix, Posterior, Vector
from bayou.errors import ImproperBelief, InvalidSpec
from bayou.learner import Learner
from bayou.numerics import factor as factors
from bayou.posteriors import DiagonalGaussian, FullGaussian, NormalInverseGamma, SphericalGaussian
from bayou.posteriors.diagonal_gaussian import DiagonalBelief
from bayou.posteriors.full_gaussian import FullBelief
from bayou.posteriors.normal_inverse_gamma import NormalInverseGammaBelief
from bayou.posteriors.spherical_gaussian import SphericalBelief

Natural = tuple[Vector, ...]
FAMILIES = (FullGaussian, NormalInverseGamma, DiagonalGaussian, SphericalGaussian)
FULL = (FullGaussian, NormalInverseGamma)


def check_family(posterior: Posterior[Any]) -> None:
    """Raise unless beliefs of a family add up in natural parameters."""
    if not isinstance(posterior, FAMILIES):
        known = ", ".join(family.__name__ for family in FAMILIES)
        raise InvalidSpec(f"`posterior` must be one that adds up exactly: {known}; got {posterior!r}.")


def natural_of(learner: Learner) -> Natural:
    """What a learner believes."""
    parts = [_natural(learner.posterior, belief) for belief in learner.beliefs()]
    return tuple(np.stack(arrays) for arrays in zip(*parts, strict=True))


def prior_of(learner: Learner) -> Natural:
    """What it believed at first."""
    one = _natural(learner.posterior, learner.posterior.prior(learner.n_features))
    return tuple(np.stack([array] * len(learner.beliefs())) for array in one)


def write(learner: Learner, natural: Natural) -> None:
    """Let a learner believe this; it is untouched where that would be no belief."""
    values = [_belief(learner.posterior, learner.n_features, part) for part in zip(*natural, strict=True)]
    for belief, value in zip(learner.beliefs(), values, strict=True):
        for array, new in zip(belief, value, strict=True):
            array[...] = new


def log_partition(learner: Learner) -> float:
    """Of what a learner believes."""
    return sum(_log_partition(learner.posterior, belief) for belief in learner.beliefs())


def added(one: Natural, other: Natural) -> Natural:
    """What both tell."""
    return tuple(a + b for a, b in zip(one, other, strict=True))


def taken(one: Natural, other: Natural) -> Natural:
    """What one tells without the other."""
    return tuple(a - b for a, b in zip(one, other, strict=True))


def n_bytes(natural: tuple[Any, ...]) -> int:
    """That it takes to send it."""
    return sum(array.nbytes for array in natural)


# --- one latent


def _natural(posterior: Posterior[Any], belief: Any) -> Natural:
    check_family(posterior)
    mean = belief.mean.astype(np.float64)
    if isinstance(posterior, FULL):
        precision = factors.precision_of(belief.factor, belief.scale)
        shift: Vector = precision @ mean
        natural: Natural = packed(precision), shift
        if isinstance(posterior, NormalInverseGamma):
            natural = (*natural, belief.noise + np.array([0.0, 0.5 * (shift @ mean)]))
        return natural
    per_weight = 1.0 / belief.variance.astype(np.float64)
    return per_weight, per_weight * mean


def _belief(posterior: Posterior[Any], n_features: int, natural: Natural) -> Any:
    if isinstance(posterior, FULL):
        factor, scale = factors.factors_of_precision(unpacked(natural[0], n_features))
        mean = factor.T @ (scale * (factor @ natural[1]))
        if isinstance(posterior, FullGaussian):
            return FullBelief(mean, factor, scale)
        shape, rate = float(natural[2][0]), float(natural[2][1] - 0.5 * (mean @ natural[1]))
        if not (shape > 0.0 and rate > 0.0):
            raise ImproperBelief(
                f"the noise must have positive shape and rate; they would be {shape:.3g} and {rate:.3g}. "
                "Was something taken out that was never learnt?"
            )
        return NormalInverseGammaBelief(mean, factor, scale, np.array([shape, rate]))
    precision, shift = natural
    if not np.all(precision > 0.0):
        raise ImproperBelief(
            f"a belief must have positive precisions; the least would be {precision.min():.3g}. "
            "Was something taken out that was never learnt?"
        )
    if isinstance(posterior, SphericalGaussian):
        return SphericalBelief(shift / precision, 1.0 / precision)
    prior = posterior.prior(n_features)
    return DiagonalBelief(shift / precision, 1.0 / precision, prior.precisions_add)


def _log_partition(posterior: Posterior[Any], belief: Any) -> float:
    if isinstance(posterior, NormalInverseGamma):
        shape, rate = belief.noise
        half_log_determinant = 0.5 * np.sum(np.log(belief.scale, dtype=np.float64))
        return float(gammaln(shape) - shape * np.log(rate) + half_log_determinant)
    if isinstance(posterior, FullGaussian):
        whitened = factors.whiten(belief.factor, belief.scale, belief.mean.astype(np.float64))
        return float(0.5 * np.sum(whitened**2 + np.log(belief.scale, dtype=np.float64)))
    return 0.0  # what a row tells is no factor of a belief without correlations: evidence is what rows were given


def packed(matrix: Matrix) -> Vector:
    """The upper half of a symmetric matrix: half the bytes to send."""
    upper: Vector = matrix[np.triu_indices(len(matrix))]
    return upper


def unpacked(upper: Vector, size: int) -> Matrix:
    """The symmetric matrix of an upper half."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = upper
    return matrix + np.triu(matrix, 1).T
