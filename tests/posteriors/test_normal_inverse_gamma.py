"""Learnt noise against the batch posterior, and against scipy's Student t."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from bayou.learner import Learner
from bayou.likelihoods import Gaussian
from bayou.posteriors import FullGaussian, NormalInverseGamma
from bayou.rules import MomentMatching

POSTERIOR = NormalInverseGamma(prior_variance=5.0, prior_mean=0.5, noise_shape=1.5, noise_rate=2.0)


def stream(n: int, noise: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, 3))
    return features, features @ [1.0, -1.0, 3.0] + noise * rng.normal(size=n)


def test_it_is_the_batch_posterior() -> None:
    features, targets = stream(40)
    learner = Learner(Gaussian(), POSTERIOR, MomentMatching(), 3)
    learner.learn_many(features, targets)
    precision = np.eye(3) / 5.0 + features.T @ features
    mean = np.linalg.solve(precision, features.T @ targets + 0.5 / 5.0)
    errors = targets - features @ mean
    rate = 2.0 + 0.5 * (errors @ errors + np.sum((mean - 0.5) ** 2) / 5.0)
    np.testing.assert_allclose(learner.belief.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(learner.belief.noise, [1.5 + 20.0, rate], rtol=1e-11)
    np.testing.assert_allclose(
        learner.posterior.covariance(learner.belief), np.linalg.inv(precision) * rate / 20.5, rtol=1e-10
    )


def test_the_evidence_is_the_product_of_student_ts_and_the_batch_evidence() -> None:
    features, targets = stream(25)
    learner = Learner(Gaussian(), POSTERIOR, MomentMatching(), 3)
    learner.learn_many(features, targets)
    # marginally, all targets together are one multivariate t
    scatter = 2.0 / 1.5 * (np.eye(25) + 5.0 * features @ features.T)
    joint = scipy.stats.multivariate_t(features @ np.full(3, 0.5), scatter, df=3.0).logpdf(targets)
    assert learner.log_evidence == pytest.approx(joint, rel=1e-11)


def test_the_prediction_is_a_student_t() -> None:
    learner = Learner(Gaussian(), POSTERIOR, MomentMatching(), 3)
    learner.learn_many(*stream(10))
    x = np.array([1.0, 2.0, -1.0])
    prediction = learner.predict_one(x)
    shape, rate = learner.belief.noise
    spread = rate / shape * (1.0 + x @ learner.posterior.covariance(learner.belief) @ x * (shape - 1.0) / rate)
    student = scipy.stats.t(2 * shape, loc=x @ learner.belief.mean, scale=np.sqrt(spread))
    np.testing.assert_allclose(prediction.quantiles([0.05, 0.5, 0.99]), student.ppf([0.05, 0.5, 0.99]), rtol=1e-9)
    assert prediction.variance == pytest.approx(student.var(), rel=1e-9)
    assert prediction.log_probability(1.3) == pytest.approx(student.logpdf(1.3), rel=1e-9)


def test_the_noise_is_found_whatever_its_unit() -> None:
    for noise in (1e-3, 1.0, 1e3):
        learner = Learner(Gaussian(), NormalInverseGamma(prior_variance=1e8), MomentMatching(), 3)
        features, targets = stream(4000, noise)
        learner.learn_many(features, targets)
        found = np.sqrt(learner.belief.noise[1] / learner.belief.noise[0])
        assert found == pytest.approx(np.sqrt(noise**2 + 1.0 / 4000), rel=0.05)  # standard error 1.1 %


def test_with_much_data_it_is_the_belief_that_knows_the_noise() -> None:
    features, targets = stream(5000)
    learnt = Learner(Gaussian(), NormalInverseGamma(prior_variance=10.0), MomentMatching(), 3)
    known = Learner(Gaussian(4.0), FullGaussian(prior_variance=40.0), MomentMatching(), 3)
    learnt.learn_many(features, targets)
    known.learn_many(features, targets)
    np.testing.assert_allclose(learnt.belief.mean, known.belief.mean, rtol=1e-9)
    np.testing.assert_allclose(
        learnt.posterior.intervals(learnt.belief, 0.9), known.posterior.intervals(known.belief, 0.9), rtol=0.01
    )
