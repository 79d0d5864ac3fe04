"""P(y <= value) of every likelihood: against integrals and sums over targets, quantiles, draws, and at extremes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.integrate

from bayou.contracts import Latent, Likelihood, ScalarLikelihood
from bayou.likelihoods import Gaussian, Softmax, StudentT
from bayou.numerics.jit import COMPILED
from tests.contracts.test_likelihoods import DRAWS, ERRORS, EXAMPLE, integrals


def integral(spec: Likelihood, latent: Latent, low: float, high: float) -> float:
    """Of the predictive density of one row."""
    return float(
        scipy.integrate.quad(
            lambda y: math.exp(spec.log_probability(np.array([y]), latent)[0]), low, high, epsabs=1e-12, limit=200
        )[0]
    )


def summed(spec: ScalarLikelihood, value: float, mean: float, variance: float) -> float:
    """P(y <= value) by integrating the predictive density, or by summing up the chances of targets."""
    low, high = spec.target_range
    latent = Latent(np.array([mean]), np.array([variance]))
    if low == -math.inf:
        ends = np.unique(np.minimum([-np.inf, mean - 5.0, mean, mean + 5.0, value], value))
        return sum(integral(spec, latent, *pair) for pair in itertools.pairwise(ends))
    targets = np.arange(low, min(high, 100.0) + 1.0)
    targets = targets[spec.accepts(targets)]
    if high == math.inf:
        latent = Latent(np.full(targets.size, mean), np.full(targets.size, variance))
        return float(np.exp(spec.log_probability(targets, latent))[targets <= value].sum())
    chances = np.exp([integrals(spec, y, mean, variance).log_evidence for y in targets])
    return float(chances[targets <= value].sum() / (1.0 if spec.normalised else chances.sum()))


@EXAMPLE
@pytest.mark.parametrize(("mean", "variance"), [(0.4, 0.5), (-1.0, 1e-8), (2.0, 4.0)] if COMPILED else [(0.4, 0.5)])
def test_it_is_the_sum_over_targets(spec: ScalarLikelihood, mean: float, variance: float) -> None:
    values = np.array([-7.0, -1.5, -1.0, -0.2, 0.0, 0.9, 1.0, 2.5, 3.0, 60.3] if COMPILED else [-1.0, 0.5, 4.0])
    got = spec.cumulative(values, Latent(np.full(values.size, mean), np.full(values.size, variance)))
    assert got == pytest.approx([summed(spec, value, mean, variance) for value in values], rel=1e-6, abs=1e-8)


def test_learnt_noise_is_honoured() -> None:
    rows = [Latent(np.array([1.0]), np.array([0.5]), 2.0, 5.0), Latent(np.array([-2.0]), np.array([3.0]), 0.1, 1.5)]
    want = [integral(Gaussian(0.7), row, -math.inf, 0.3) for row in rows]
    latent = Latent(*(np.concatenate([np.atleast_1d(part) for part in column]) for column in zip(*rows, strict=True)))
    assert Gaussian(0.7).cumulative(np.full(2, 0.3), latent) == pytest.approx(want, rel=1e-7)


@EXAMPLE
@pytest.mark.parametrize(("mean", "variance"), [(0.4, 0.5), (-1.0, 0.0), (2.0, 4.0), (-3.0, 1e4), (9.0, 1e-10)])
def test_it_inverts_quantiles(spec: ScalarLikelihood, mean: float, variance: float) -> None:
    probabilities = np.array([1e-5, 0.05, 0.3, 0.5, 0.9, 0.999])
    latent = Latent(np.full(probabilities.size, mean), np.full(probabilities.size, variance))
    quantiles = spec.quantiles(latent, probabilities)[0]
    got = spec.cumulative(quantiles, latent)
    if spec.target_range[0] == -math.inf:
        assert got == pytest.approx(probabilities, rel=1e-6)
        return
    assert (got >= probabilities).all()
    exact = quantiles < 1e12  # beyond, a number does not tell a count from the next
    below = spec.cumulative(np.nextafter(quantiles, -np.inf), latent)
    assert (below < probabilities)[exact].all()


@EXAMPLE
def test_extremes_are_chances(spec: ScalarLikelihood) -> None:
    means = [0.0, 1e-8, 37.0, -37.0, 1e8, -1e8, 1e100, -1e100] if COMPILED else [0.0, 37.0, -1e8]
    variances = [0.0, 1e-20, 1e-8, 1.0, 1e8, 1e20, 1e100] if COMPILED else [0.0, 1e-20, 1e20]
    values = [-np.inf, -1e300, -1e8, -1.5, -1.0, 0.0, 0.5, 1.0, 9999.0, 1e4, 1e15, 1e300, 1.7e308, np.inf]
    mean, variance, value = (part.ravel() for part in np.meshgrid(means, variances, values, indexing="ij"))
    got = spec.cumulative(value, Latent(mean, variance)).reshape(-1, len(values))
    assert ((got >= 0.0) & (got <= 1.0)).all()
    assert (np.diff(got, axis=1) >= -1e-14).all()
    low, high = spec.target_range
    assert (got[:, np.array(values) < low] == 0.0).all()
    assert (got[:, np.array(values) >= high] == 1.0).all()
    assert (got[:, [0, -1]] == [0.0, 1.0]).all()
    assert spec.cumulative(np.zeros(0), Latent(np.zeros(0), np.ones(0))).shape == (0,)


@pytest.mark.parametrize("spec", [Gaussian(), StudentT(), StudentT(1.5, 0.5)], ids=repr)
def test_far_from_zero_it_is_that_at_zero(spec: ScalarLikelihood) -> None:
    errors = np.array([-3.0, -0.5, 0.0, 1.25])
    near, far = (spec.cumulative(mean + errors, Latent(np.full(4, mean), np.full(4, 1e-6))) for mean in (0.0, 2.0**44))
    assert far == pytest.approx(near, rel=1e-9)


def test_that_of_classes_is_that_of_draws() -> None:
    spec, latent = Softmax(4), Latent(np.array([[0.0, 1.0, -0.5, 2.0]] * 7), np.array([[1.0, 2.0, 0.0, 0.5]] * 7))
    got = spec.cumulative(np.array([-np.inf, -0.5, 0.0, 1.7, 2.0, 3.0, np.inf]), latent)
    assert got[[0, 1, 5, 6]].tolist() == [0.0, 0.0, 1.0, 1.0]
    f = latent.mean[0] + np.sqrt(latent.variance[0]) * np.random.default_rng(3).normal(size=(DRAWS, 4))
    draws = np.cumsum(np.exp(f) / np.exp(f).sum(axis=1, keepdims=True), axis=1)[:, :3]
    assert (np.abs(got[2:5] - draws.mean(axis=0)) <= ERRORS * draws.std(axis=0) / math.sqrt(DRAWS)).all()

    probabilities = np.array([0.0, 0.01, 0.2, 0.5, 0.7, 0.99, 1.0])
    quantiles = spec.quantiles(latent, probabilities)[0]
    assert (spec.cumulative(quantiles, latent) >= probabilities).all()
    assert (spec.cumulative(quantiles - 0.5, latent)[1:] < probabilities[1:]).all()
    sure = Latent(np.array([[1e8, -1e8, 0.0, 0.0], [0.0, 0.0, 0.0, 1e8]]), np.array([[1e-20] * 4, [1e8] * 4]))
    assert spec.cumulative(np.array([0.0, 2.0]), sure) == pytest.approx([1.0, 0.0], abs=1e-12)
