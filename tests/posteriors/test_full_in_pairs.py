"""From 64 features on, `learn_many` absorbs two rows per look at the factor: the same answers, to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayou.errors import ImproperBelief
from bayou.learner import Learner
from bayou.likelihoods import Gaussian, Logistic, Probit, StudentT
from bayou.numerics.jit import COMPILED
from bayou.posteriors import FullGaussian
from bayou.posteriors.full_gaussian import PAIRS_FROM
from bayou.rules import Linearized, MomentMatching

pytestmark = pytest.mark.skipif(not COMPILED, reason="thousands of numbers per row need compiled kernels")


def stream(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, d))
    return features, features[:, :3].sum(axis=1) + rng.normal(size=n)


def assert_alike(one: Learner, other: Learner, rtol: float = 1e-11) -> None:
    assert one.n_examples == other.n_examples
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=rtol)
    np.testing.assert_allclose(one.belief.mean, other.belief.mean, rtol=rtol, atol=rtol)
    covariances = [learner.posterior.covariance(learner.belief) for learner in (one, other)]
    np.testing.assert_allclose(*covariances, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("d", range(PAIRS_FROM - 1, PAIRS_FROM + 4))
@pytest.mark.parametrize("n", [1, 2, 3, 4, 97])
def test_the_batch_solution(n: int, d: int) -> None:
    """Ridge regression, by solving its equations."""
    features, targets = stream(n, d)
    learner = Learner(Gaussian(noise_variance=0.5), FullGaussian(prior_variance=2.0), MomentMatching(), d)
    learner.learn_many(features, targets)
    precision = np.eye(d) / 2.0 + features.T @ features / 0.5
    np.testing.assert_allclose(learner.belief.mean, np.linalg.solve(precision, features.T @ targets / 0.5), atol=1e-11)
    np.testing.assert_allclose(learner.posterior.covariance(learner.belief), np.linalg.inv(precision), atol=1e-11)


@pytest.mark.parametrize(
    ("likelihood", "rule"),
    [
        (Probit(), MomentMatching()),
        (Logistic(), MomentMatching()),
        (StudentT(), MomentMatching()),
        (Probit(), Linearized()),
    ],
    ids=repr,
)
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-11), ("float32", 1e-4)])
def test_many_is_one_by_one(likelihood: Any, rule: Any, dtype: str, rtol: float) -> None:
    features, targets = stream(151, 66)
    if not isinstance(likelihood, StudentT):
        targets = np.sign(targets)
    in_pairs, in_chunks, one_by_one = (
        Learner(likelihood, FullGaussian(dtype=dtype), rule, features.shape[1]) for _ in range(3)
    )
    given = in_pairs.learn_many(features, targets)
    for rows in np.split(np.arange(151), [1, 4, 50, 51]):
        in_chunks.learn_many(features[rows], targets[rows])
    means = [one_by_one.learn_one(x, y).mean for x, y in zip(features, targets, strict=True)]
    np.testing.assert_allclose(given.mean, means, rtol=rtol, atol=rtol)
    assert_alike(in_pairs, one_by_one, rtol)
    assert_alike(in_chunks, one_by_one, rtol)


@pytest.mark.parametrize("heaviest", [1.0, 2.5])
def test_weights(heaviest: float) -> None:
    features, targets = stream(40, 65)
    weights = np.random.default_rng(3).uniform(0.0, heaviest, size=40)
    many, one_by_one = (Learner(Probit(), FullGaussian(), MomentMatching(), 65) for _ in range(2))
    many.learn_many(features, np.sign(targets), weights)
    for x, y, weight in zip(features, np.sign(targets), weights, strict=True):
        one_by_one.learn_one(x, y, weight)
    assert_alike(many, one_by_one)


@pytest.mark.parametrize("bad", range(5))
def test_a_row_that_is_refused_leaves_no_trace(bad: int) -> None:
    """As the first or the second of a pair, or as the last row of an odd number."""
    features, targets = stream(5, 64)
    learner = Learner(Gaussian(), FullGaussian(), MomentMatching(), 64)
    learner.learn_many(*stream(10, 64, seed=1))
    before = [array.copy() for array in learner.belief]
    features[bad] = 1e200  # finite, but its latent's variance is not
    with pytest.raises(ImproperBelief, match=f"row {bad} has a latent that is not finite"):
        learner.learn_many(features, targets)
    for array, old in zip(learner.belief, before, strict=True):
        np.testing.assert_array_equal(array, old)
    assert learner.n_examples == 10


@pytest.mark.parametrize(("ratio", "dtype"), [(1e20, "float64"), (1e10, "float32")])
@pytest.mark.parametrize("repeated", [False, True])
def test_covariances_stay_positive(ratio: float, dtype: str, repeated: bool) -> None:
    features, targets = stream(2000, 66)
    if repeated:  # the second of a pair tells nothing that the first has not
        features, targets = np.repeat(features[:1000], 2, axis=0), np.repeat(targets[:1000], 2)
    features[:, 10] = features[:, 11]
    features[:, 12] = 1.0
    learner = Learner(Gaussian(), FullGaussian(prior_variance=ratio, dtype=dtype), MomentMatching(), 66)
    learner.learn_many(features, targets)
    assert all(np.all(np.isfinite(array)) for array in learner.belief)
    assert np.all(learner.belief.scale > 0.0)
    assert np.all(learner.predict_many(features[:50]).latent.variance > 0.0)


def test_a_wide_prior_gives_the_least_squares_answer() -> None:
    features, targets = stream(500, 70)
    learner = Learner(Gaussian(), FullGaussian(prior_variance=1e20), MomentMatching(), 70)
    learner.learn_many(features, targets)
    np.testing.assert_allclose(learner.belief.mean, np.linalg.lstsq(features, targets, rcond=None)[0], atol=1e-8)
