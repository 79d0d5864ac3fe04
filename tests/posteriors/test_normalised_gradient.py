"""The point that meets each target: against the recursion in numpy, and at extremes."""

from __future__ import annotations

import numpy as np
import pytest

from bayou.errors import ImproperBelief, InvalidSpec
from bayou.learner import Learner
from bayou.likelihoods import Gaussian, Probit, StudentT
from bayou.posteriors import NormalisedGradient
from bayou.rules import Linearized, MomentMatching

D = 4


def numbers(n: int, seed: int = 0, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, D))
    return features, features @ np.array([1.0, -2.0, 0.5, 0.0]) + noise * rng.normal(size=n)


def learnt(posterior: NormalisedGradient, *examples: np.ndarray, noise_variance: float = 1.0) -> Learner:
    learner = Learner(Gaussian(noise_variance), posterior, MomentMatching(), D)
    learner.learn_many(*examples)
    return learner


@pytest.mark.parametrize("noise_variance", [1.0, 1e-4, 1e4])
@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_the_step_written_out(decay: float, noise_variance: float) -> None:
    """Whatever the noise is said to be: of an error it takes all."""
    features, targets = numbers(50)
    start = np.array([0.1, 0.0, -0.2, 1.0])
    weights = start
    for x, y in zip(features, targets, strict=True):
        weights = weights + (x * (y - weights @ x) - decay * (weights - start)) / (x @ x)
    learner = learnt(NormalisedGradient(decay, tuple(start)), features, targets, noise_variance=noise_variance)
    np.testing.assert_allclose(learner.belief.mean, weights, rtol=1e-11)


def test_it_is_the_nearest_point_that_meets_the_target() -> None:
    features, targets = numbers(20)
    learner = learnt(NormalisedGradient(), features[:-1], targets[:-1])
    before, (x, y) = learner.belief.mean.copy(), (features[-1], targets[-1])
    # the projection on a plane, by least squares on an underdetermined system
    change = np.linalg.lstsq(x[None, :], np.array([y - before @ x]), rcond=None)[0]
    learner.learn_one(x, y)
    np.testing.assert_allclose(learner.belief.mean, before + change, rtol=1e-12)
    assert learner.predict_one(x).mean == pytest.approx(y, rel=1e-12)


def test_without_noise_it_finds_the_weights() -> None:
    learner = learnt(NormalisedGradient(), *numbers(400, noise=0.0))
    np.testing.assert_allclose(learner.belief.mean, [1.0, -2.0, 0.5, 0.0], atol=1e-9)


def test_a_fraction_of_an_example_goes_that_far() -> None:
    features, targets = numbers(10)
    learner = learnt(NormalisedGradient(), features, targets)
    x, y = np.array([1.0, 0.5, -0.5, 2.0]), 3.0
    error = y - learner.predict_one(x).mean
    learner.learn_one(x, y, weight=0.3)
    assert y - learner.predict_one(x).mean == pytest.approx(0.7 * error)
    assert learner.belief.tally[0] == pytest.approx(10.3)


def test_an_example_with_missing_features_is_trusted_less() -> None:
    """Its latent has the variance of what is missing beside the noise, and counts as that much less of an example."""
    learner = learnt(NormalisedGradient(), *numbers(30), noise_variance=0.5)
    x, y = np.array([1.0, 0.5, 0.0, 0.0]), 3.0
    before = learner.belief.mean.copy()
    learner.learn_many([x], [y], missing=np.array([[False, False, True, True]]))
    blur = before[2] ** 2 + before[3] ** 2
    expected = before + 0.5 / (0.5 + blur) * (y - before @ x) * x / (x @ x)
    np.testing.assert_allclose(learner.belief.mean, expected, rtol=1e-12)


@pytest.mark.parametrize("row", [0.0, 1e-170, 5e-324])
def test_a_row_of_nothing_teaches_nothing(row: float) -> None:
    learner = learnt(NormalisedGradient(decay=0.1), *numbers(10))
    before = learner.belief.mean.copy()
    learner.learn_one(np.full(D, row), 1e300)
    np.testing.assert_array_equal(learner.belief.mean, before)


def test_a_short_row_lets_no_more_decay_than_there_is() -> None:
    learner = learnt(NormalisedGradient(decay=0.1, prior_mean=0.5), *numbers(10))
    x = np.array([1e-3, 0.0, 0.0, 0.0])
    error = 1.0 - learner.belief.mean @ x
    learner.learn_one(x, 1.0)
    np.testing.assert_allclose(learner.belief.mean, [0.5 + error / 1e-3, 0.5, 0.5, 0.5], rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("target", [0.0, 1e30, -1.7e308])
@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e30, 1e150, 1e200, 1e308])
def test_extremes_are_learnt_or_refused_and_leave_finite_weights(scale: float, target: float, dtype: str) -> None:
    if dtype == "float32":
        scale = float(np.clip(scale, 1e-30, 1e38))
    learner = learnt(NormalisedGradient(decay=0.1, dtype=dtype), *numbers(10))
    before = learner.belief.mean.copy()
    try:
        learner.learn_one(np.array([1.0, -1.0, 0.5, 0.0]) * scale, target)
    except ImproperBelief:
        np.testing.assert_array_equal(learner.belief.mean, before)
    assert np.all(np.isfinite(learner.belief.mean))


def test_a_large_row_is_refused_with_all_its_batch() -> None:
    learner = Learner(Gaussian(), NormalisedGradient(), MomentMatching(), 2)
    with pytest.raises(ImproperBelief, match="row 1 has a latent that is not finite"):
        learner.learn_many([[1.0, 1.0], [1e200, 1e200]], [1.0, 1.0])
    np.testing.assert_array_equal(learner.belief.mean, [0.0, 0.0])
    assert learner.n_examples == 0


def test_a_site_holds_the_error() -> None:
    posterior = NormalisedGradient()
    learner = learnt(posterior, *numbers(10), noise_variance=0.4)
    other, x, y = learner.copy(), np.array([1.0, 0.5, -0.5, 2.0]), 3.0
    error = y - float(learner.belief.mean @ x)
    learner.learn_one(x, y)
    posterior.absorb(other.belief, x, error / 0.4, 1.0 / 0.4)
    np.testing.assert_allclose(other.belief.mean, learner.belief.mean, rtol=1e-12)
    posterior.absorb(other.belief, x, 0.0, 0.0)  # nothing was seen
    np.testing.assert_allclose(other.belief.mean, learner.belief.mean, rtol=1e-12)


@pytest.mark.parametrize("likelihood", [Probit(), StudentT()], ids=repr)
def test_only_errors_of_a_gaussian_are_learnt(likelihood: Probit | StudentT) -> None:
    with pytest.raises(InvalidSpec, match=r"NormalisedGradient.* learns from errors, those of a Gaussian.*; got"):
        Learner(likelihood, NormalisedGradient(), Linearized(), D)


@pytest.mark.parametrize("decay", [-0.1, np.inf, np.nan])
def test_a_bad_spec_is_named(decay: float) -> None:
    with pytest.raises(InvalidSpec, match="`decay` must be finite and not negative; got"):
        NormalisedGradient(decay)
