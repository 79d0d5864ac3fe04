"""Low rank against the full belief, and what compression keeps."""

from __future__ import annotations

import numpy as np
import pytest

from bayou.errors import InvalidSpec
from bayou.learner import Learner
from bayou.likelihoods import Gaussian, Probit
from bayou.posteriors import DiagonalGaussian, FullGaussian, LowRankGaussian
from bayou.rules import MomentMatching


def stream(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + 0.3 * rng.normal(size=(n, d))
    return features, np.sign(features @ rng.normal(size=d) + rng.normal(size=n))


@pytest.mark.parametrize("rank", [6, 20])
def test_with_rank_of_the_features_it_is_the_full_belief(rank: int) -> None:
    features, targets = stream(200, 6)
    low = Learner(Probit(), LowRankGaussian(rank=rank, prior_variance=(1, 2, 3, 4, 5, 6)), MomentMatching(), 6)
    full = Learner(Probit(), FullGaussian(prior_variance=(1, 2, 3, 4, 5, 6)), MomentMatching(), 6)
    low.learn_many(features, targets)
    full.learn_many(features, targets)
    np.testing.assert_allclose(low.belief.mean, full.belief.mean, rtol=1e-8)
    np.testing.assert_allclose(low.posterior.covariance(low.belief), full.posterior.covariance(full.belief), atol=1e-10)


def test_fewer_examples_than_rank_are_exact_in_any_width() -> None:
    features, targets = stream(15, 300)
    low = Learner(Probit(), LowRankGaussian(rank=8), MomentMatching(), 300)
    full = Learner(Probit(), FullGaussian(), MomentMatching(), 300)
    low.learn_many(features, targets)
    full.learn_many(features, targets)
    np.testing.assert_allclose(low.belief.mean, full.belief.mean, atol=1e-10)
    np.testing.assert_allclose(low.posterior.variances(low.belief), full.posterior.variances(full.belief), rtol=1e-9)


def test_compression_keeps_the_diagonal_of_the_precision() -> None:
    features, _ = stream(200, 12)
    low = Learner(Gaussian(), LowRankGaussian(rank=3), MomentMatching(), 12)
    low.learn_many(features, np.zeros(200))
    # with a Gaussian likelihood each row adds x x' to the precision, whatever was seen before
    precision = np.linalg.inv(low.posterior.covariance(low.belief))
    np.testing.assert_allclose(np.diag(precision), 1.0 + np.sum(features**2, axis=0), rtol=1e-8)


def test_a_few_directions_are_better_than_none() -> None:
    features, targets = stream(1000, 30)
    scores = {}
    for posterior in (DiagonalGaussian(), LowRankGaussian(rank=3), LowRankGaussian(rank=10), FullGaussian()):
        learner = Learner(Probit(), posterior, MomentMatching(), 30)
        learner.learn_many(features, targets)
        scores[repr(posterior)] = learner.log_evidence / 1000
    diagonal, three, ten, full = scores.values()
    assert diagonal < three < full + 0.002
    assert ten == pytest.approx(full, abs=0.01)


def test_the_basis_stays_orthonormal_over_a_long_stream() -> None:
    rng = np.random.default_rng(0)
    learner = Learner(Gaussian(1e-4), LowRankGaussian(rank=4, prior_variance=1e4), MomentMatching(), 40)
    for _ in range(20):
        features = rng.normal(size=(1000, 40)) * np.geomspace(1e-3, 1e3, 40)
        learner.learn_many(features, features.sum(axis=1))
    basis = learner.belief.basis[: int(learner.belief.used[0])]
    np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-12)
    assert np.all(np.linalg.eigvalsh(learner.posterior.covariance(learner.belief)) > -1e-12)
    assert np.all(learner.posterior.variances(learner.belief) > 0.0)


@pytest.mark.parametrize("rank", [0, -1, 2.5])
def test_a_bad_rank_is_named(rank: float) -> None:
    with pytest.raises(InvalidSpec, match=f"`rank` must be a whole number, at least 1; got {rank}"):
        LowRankGaussian(rank=rank)
