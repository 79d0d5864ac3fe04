"""What every learner must do: the same in one call, one by one or in chunks, for every point of the grid."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from bayou.contracts import Likelihood, Posterior, Rule, VectorLikelihood
from bayou.errors import ImproperBelief, InvalidFeatures, InvalidSpec, InvalidTarget, ShapeMismatch
from bayou.learner import Learner
from bayou.likelihoods import Gaussian, Logistic, Probit, Step
from bayou.posteriors import DiagonalGaussian, FullGaussian, LowRankGaussian, NormalInverseGamma
from bayou.rules import Linearized, MomentMatching
from tests.contracts.grid import LIKELIHOODS, POSTERIORS, draw_targets, fits, points, rows_for

D = 3
OF_NUMBERS = [posterior for posterior in POSTERIORS if fits(Gaussian(), posterior, MomentMatching())]


def stream(likelihood: Likelihood, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)), draw_targets(likelihood, n, rng)


def assert_same(one: Any, other: Any) -> None:
    for array, wanted in zip(one, other, strict=True):
        np.testing.assert_array_equal(array, wanted)


@pytest.mark.parametrize(("likelihood", "posterior", "rule"), points())
def test_many_is_one_by_one_is_chunks_to_the_last_bit(
    likelihood: Likelihood, posterior: Posterior[Any], rule: Rule
) -> None:
    n = rows_for(likelihood, 40)
    features, targets = stream(likelihood, n)
    whole, single, chunked = (Learner(likelihood, posterior, rule, D) for _ in range(3))
    predictions = whole.learn_many(features, targets)
    for row, (x, y) in enumerate(zip(features, targets, strict=True)):
        before = single.predict_one(x)
        given = single.learn_one(x, y)
        np.testing.assert_allclose(given.latent.mean, before.latent.mean, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(given.latent.variance[0], predictions.latent.variance[row])
    for rows in np.array_split(np.arange(n), 3):
        chunked.learn_many(features[rows], targets[rows])
    assert_same(single.belief, whole.belief)
    assert_same(chunked.belief, whole.belief)
    assert whole.n_examples == single.n_examples == chunked.n_examples == n
    assert whole.log_evidence == pytest.approx(single.log_evidence, rel=1e-12)
    # the evidence is that of the likelihood, whatever the rule
    weights = likelihood.log_weight(targets, predictions.latent)
    assert whole.log_evidence == pytest.approx(float(np.sum(weights)), rel=1e-9)
    if likelihood.normalised:
        np.testing.assert_array_equal(weights, predictions.log_probability(targets))
    for belief in whole.beliefs():
        assert np.all(np.isfinite(belief.mean))
        variances = posterior.variances(belief)
        assert np.all(variances == 0.0) if posterior.is_point else np.all(variances > 0.0)


@pytest.mark.parametrize(("likelihood", "posterior", "rule"), points())
def test_a_weight_of_two_is_the_row_twice(likelihood: Likelihood, posterior: Posterior[Any], rule: Rule) -> None:
    n = rows_for(likelihood, 6)
    features, targets = stream(likelihood, n)
    weighted, twice = Learner(likelihood, posterior, rule, D), Learner(likelihood, posterior, rule, D)
    weighted.learn_many(features, targets, weights=np.full(n, 2.0))
    twice.learn_many(np.repeat(features, 2, axis=0), np.repeat(targets, 2))
    accuracy = 1e-5 if weighted.belief.mean.dtype == np.float32 else 1e-12
    for array, wanted in zip(weighted.belief, twice.belief, strict=True):
        np.testing.assert_allclose(array, wanted, rtol=accuracy, atol=accuracy)


@pytest.mark.parametrize(
    ("likelihood", "posterior", "rule"), points([Gaussian(0.4)], [FullGaussian(), NormalInverseGamma()])
)
def test_a_fractional_weight_is_exact_for_a_gaussian(
    likelihood: Likelihood, posterior: Posterior[Any], rule: Rule
) -> None:
    features, targets = stream(likelihood, 20)
    weights = np.random.default_rng(1).uniform(0.1, 5.0, 20)
    learner = Learner(likelihood, posterior, rule, D)
    learner.learn_many(features, targets, weights)
    precision = np.eye(D) + features.T @ (features * weights[:, None]) / 0.4
    mean = np.linalg.solve(precision, features.T @ (weights * targets) / 0.4)
    np.testing.assert_allclose(learner.belief.mean, mean, rtol=1e-9, atol=1e-10)
    if posterior.learns_noise:
        assert learner.belief.noise[0] == pytest.approx(0.5 + weights.sum() / 2)
        error = np.sum(weights * (targets - features @ mean) ** 2) / 0.4 + mean @ mean
        assert learner.belief.noise[1] == pytest.approx(0.5 + error / 2, rel=1e-9)


def test_a_weight_of_zero_teaches_nothing() -> None:
    learner = Learner(Probit(), FullGaussian(), MomentMatching(), D)
    before = learner.copy()
    learner.learn_one(np.ones(D), 1.0, weight=0.0)
    assert_same(learner.belief, before.belief)


@pytest.mark.parametrize("posterior", OF_NUMBERS, ids=repr)
def test_a_missing_feature_is_an_unknown_of_mean_zero_and_variance_one(posterior: Posterior[Any]) -> None:
    learner = Learner(Gaussian(), posterior, MomentMatching(), D)
    learner.learn_many(*stream(Gaussian(), 30))
    x, missing = np.array([[0.7, 0.0, 0.0]]), np.array([[False, True, True]])
    latent = learner.predict_many(x, missing).latent
    n = 200_000
    rng = np.random.default_rng(3)
    weights = posterior.sample(learner.belief, n, rng)
    filled = np.column_stack([np.full(n, 0.7), rng.normal(size=(n, 2))])
    sampled = np.sum(weights * filled, axis=1)
    noise = np.mean(latent.noise) * (
        1.0 if np.all(np.isinf(latent.degrees)) else float(latent.degrees[0] / (latent.degrees[0] - 2))
    )
    assert float(latent.mean[0]) == pytest.approx(sampled.mean(), abs=5 * sampled.std() / np.sqrt(n))
    assert float(latent.variance[0]) * noise == pytest.approx(sampled.var(), rel=0.05)


@pytest.mark.parametrize("posterior", OF_NUMBERS, ids=repr)
def test_rows_with_missing_features_are_learnt_alike_in_any_chunks(posterior: Posterior[Any]) -> None:
    features, targets = stream(Gaussian(), 30)
    missing = np.random.default_rng(2).uniform(size=features.shape) < 0.3
    features[missing] = 0.0
    whole, chunked = (
        Learner(Gaussian(), posterior, MomentMatching(), D),
        Learner(Gaussian(), posterior, MomentMatching(), D),
    )
    whole.learn_many(features, targets, missing=missing)
    for row in range(30):
        chunked.learn_many(features[row : row + 1], targets[row : row + 1], missing=missing[row : row + 1])
    assert_same(whole.belief, chunked.belief)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_copies_and_pickles_continue_to_the_last_bit(likelihood: Likelihood) -> None:
    features, targets = stream(likelihood, rows_for(likelihood, 10))
    learner = Learner(likelihood, FullGaussian(), MomentMatching(), D)
    learner.learn_many(features, targets)
    others = [
        learner.copy(),
        copy.deepcopy(learner),
        pickle.loads(pickle.dumps(learner)),
        Learner.from_state(learner.to_state()),
    ]
    learner.learn_many(features, targets)
    for other in others:
        other.learn_many(features, targets)
        assert_same(other.belief, learner.belief)
        assert other.log_evidence == learner.log_evidence


def test_new_features_begin_with_the_prior() -> None:
    features, targets = stream(Gaussian(), 20)
    narrow, wide = (
        Learner(Gaussian(), FullGaussian(2.0), MomentMatching(), 2),
        Learner(Gaussian(), FullGaussian(2.0), MomentMatching(), D),
    )
    narrow.learn_many(features[:10, :2], targets[:10])
    narrow.extend(D)
    wide.learn_many(features[:10] * [1, 1, 0], targets[:10])
    for learner in (narrow, wide):
        learner.learn_many(features[10:], targets[10:])
    np.testing.assert_allclose(narrow.belief.mean, wide.belief.mean, rtol=1e-12)


BAD_FEATURES = [
    ([1.0, np.nan, 0.0], InvalidFeatures, "finite; got nan"),
    ([1.0, np.inf, 0.0], InvalidFeatures, "finite; got inf"),
    ([1.0, 2.0], ShapeMismatch, r"3 numbers; got shape \(2,\)"),
]


@pytest.mark.parametrize(("x", "error", "message"), BAD_FEATURES)
def test_bad_features_are_named_and_leave_the_belief(x: Any, error: type[Exception], message: str) -> None:
    learner = Learner(Probit(), FullGaussian(), MomentMatching(), D)
    learner.learn_many(*stream(Probit(), 10))
    before = learner.copy()
    with pytest.raises(error, match=message):
        learner.learn_one(x, 1.0)
    with pytest.raises(error):
        learner.learn_many([[0.0] * D, [*x]] if len(x) == D else [x], [1.0, 1.0][: 2 if len(x) == D else 1])
    with pytest.raises(error):
        learner.predict_one(x)
    assert_same(learner.belief, before.belief)
    assert learner.n_examples == 10


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([[0.0] * D], [0.5]), InvalidTarget, r"-1 or \+1.*got 0.5 in row 0"),
        (([[0.0] * D], [np.nan]), InvalidTarget, "got nan"),
        (([[0.0] * D], [1.0, 1.0]), ShapeMismatch, "one value per row, 1"),
        (([[0.0] * D], [1.0], [1.0, 2.0]), ShapeMismatch, "`weights` must have one value per row"),
        (([[0.0] * D], [1.0], [-1.0]), InvalidSpec, "`weights` must be finite and not negative; got -1.0"),
        (([[0.0] * D], [1.0], None, np.zeros((1, 2))), ShapeMismatch, "`missing` must have the shape"),
        (([0.0] * D, [1.0]), ShapeMismatch, "3 columns; got shape"),
    ],
)
def test_bad_rows_are_named_and_leave_the_belief(arguments: Any, error: type[Exception], message: str) -> None:
    learner = Learner(Probit(), FullGaussian(), MomentMatching(), D)
    before = learner.copy()
    with pytest.raises(error, match=message):
        learner.learn_many(*arguments)
    assert_same(learner.belief, before.belief)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((Step(), FullGaussian(), Linearized(), 3), "has no slope"),
        ((Probit(), NormalInverseGamma(), MomentMatching(), 3), "learns the noise of a Gaussian"),
        ((Probit(), FullGaussian(), MomentMatching(), 0), "`n_features` must be a whole number"),
        (("probit", FullGaussian(), MomentMatching(), 3), "`likelihood` must be a Likelihood; got 'probit'"),
        ((Probit(), FullGaussian, MomentMatching(), 3), "`posterior` must be a Posterior"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts: Any, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        Learner(*parts)


def test_features_beyond_what_doubles_hold_are_refused_with_all_their_batch() -> None:
    learner = Learner(Gaussian(), FullGaussian(), MomentMatching(), 2)
    before = learner.copy()
    with pytest.raises(ImproperBelief, match="row 1 has a latent that is not finite"):
        learner.learn_many([[1.0, 1.0], [1e200, 1e200]], [0.0, 0.0])
    assert_same(learner.belief, before.belief)
    assert learner.n_examples == 0


@pytest.mark.parametrize("read_only", [np.float64, np.float32, np.int64])
def test_any_array_will_do(read_only: Any) -> None:
    features = np.asfortranarray(np.arange(12).reshape(4, 3)).astype(read_only)
    features.flags.writeable = False
    learner = Learner(Gaussian(), FullGaussian(), MomentMatching(), D)
    learner.learn_many(features, [1, 2, 3, 4])
    wanted = Learner(Gaussian(), FullGaussian(), MomentMatching(), D)
    wanted.learn_many(np.ascontiguousarray(features, dtype=np.float64), np.array([1.0, 2.0, 3.0, 4.0]))
    assert_same(learner.belief, wanted.belief)


def test_prediction_speaks_for_one_and_for_many() -> None:
    learner = Learner(Gaussian(), FullGaussian(), MomentMatching(), 2)
    one, many = learner.predict_one([1.0, 1.0]), learner.predict_many([[1.0, 1.0]] * 3)
    assert isinstance(one.mean, float)
    assert one.variance == pytest.approx(3.0)
    low, high = one.interval(0.9)
    assert high == pytest.approx(-low) == pytest.approx(1.6448536 * np.sqrt(3.0))
    assert many.interval(0.5).shape == (3, 2)
    assert learner.predict_interval([[1.0, 1.0]], 0.9).shape == (1, 2)
    assert one.log_probability(0.0) == pytest.approx(-0.5 * np.log(2 * np.pi * 3.0))
    with pytest.raises(InvalidSpec, match=r"`coverage` must lie between 0 and 1; got 1\.5"):
        one.interval(1.5)
    with pytest.raises(InvalidSpec, match="`probabilities` must lie between"):
        many.quantiles([0.0])


@pytest.mark.parametrize(
    "posterior", [FullGaussian(prior_variance=4.0), DiagonalGaussian(0.1), LowRankGaussian(2, 4.0)], ids=repr
)
def test_another_prior_is_meant_alike_by_one_and_by_many(posterior: Posterior[Any]) -> None:
    # a defect measured in a peer: learn_one and learn_many took the prior as precision and as variance
    features, targets = stream(Logistic(), 20)
    one, many = Learner(Logistic(), posterior, MomentMatching(), D), Learner(Logistic(), posterior, MomentMatching(), D)
    for x, y in zip(features, targets, strict=True):
        one.learn_one(x, y)
    many.learn_many(features, targets)
    assert_same(one.belief, many.belief)


def test_vector_likelihoods_have_one_belief_per_latent() -> None:
    for likelihood in LIKELIHOODS:
        if isinstance(likelihood, VectorLikelihood):
            learner = Learner(likelihood, FullGaussian(), MomentMatching(), D)
            assert learner.belief.mean.shape == (likelihood.n_latents, D)
            assert len(learner.beliefs()) == likelihood.n_latents
