"""Least squares that forget: against the matrices of the recursion, weighted batch solutions, and at extremes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayou.errors import ImproperBelief, InvalidSpec
from bayou.learner import Learner
from bayou.likelihoods import Gaussian, Logistic
from bayou.posteriors import FullGaussian, RecursiveLeastSquares
from bayou.rules import Linearized, MomentMatching

D = 4


def numbers(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, D)) @ rng.normal(size=(D, D))
    return features, features @ np.array([1.0, -2.0, 0.5, 0.0]) + 0.3 * rng.normal(size=n)


def learnt(posterior: RecursiveLeastSquares, *examples: Any, noise_variance: float = 1.0) -> Learner:
    learner = Learner(Gaussian(noise_variance), posterior, MomentMatching(), D)
    learner.learn_many(*examples)
    return learner


def information_of(learner: Learner) -> np.ndarray:
    return learner.belief.information + learner.belief.tally[1] * np.eye(D)


@pytest.mark.parametrize("noise_variance", [1.0, 1e-4])
def test_the_recursion_written_out(noise_variance: float) -> None:
    features, targets = numbers(60)
    start = np.array([0.1, 0.0, -0.2, 1.0])
    R, r = 0.7 * np.eye(D), 0.7 * start
    for x, y in zip(features, targets, strict=True):
        R = 0.9 * R + np.outer(x, x) + 0.1 * 0.05 * np.eye(D)
        r = 0.9 * r + x * y + 0.1 * 0.05 * start
    posterior = RecursiveLeastSquares(0.9, 0.05, 0.7, tuple(start))
    learner = learnt(posterior, features, targets, noise_variance=noise_variance)
    np.testing.assert_allclose(learner.belief.mean, np.linalg.solve(R, r), rtol=1e-11)
    np.testing.assert_allclose(information_of(learner), R, rtol=1e-12)


@pytest.mark.parametrize("forgetting", [0.8, 0.99, 1.0])
def test_it_is_the_batch_solution_with_the_weights_of_memory(forgetting: float) -> None:
    """With as much at first as the ridge keeps, it is weighted ridge regression, in closed form."""
    features, targets = numbers(80)
    kept = forgetting ** np.arange(79, -1, -1.0)
    gram = features.T @ (kept[:, None] * features) + 0.3 * np.eye(D)
    expected = np.linalg.solve(gram, features.T @ (kept * targets))
    learner = learnt(RecursiveLeastSquares(forgetting, ridge=0.3, initial_precision=0.3), features, targets)
    np.testing.assert_allclose(learner.belief.mean, expected, rtol=1e-10)


def test_without_forgetting_it_is_the_mean_of_a_gaussian() -> None:
    point = learnt(RecursiveLeastSquares(1.0, initial_precision=0.5), *numbers(50), noise_variance=0.3)
    belief = Learner(Gaussian(1.0), FullGaussian(prior_variance=2.0), MomentMatching(), D)
    belief.learn_many(*numbers(50))
    np.testing.assert_allclose(point.belief.mean, belief.belief.mean, rtol=1e-10)


def test_weights_of_rows_are_exact_without_forgetting() -> None:
    features, targets = numbers(30)
    counts = np.random.default_rng(1).uniform(0.0, 3.0, 30)
    learner = learnt(RecursiveLeastSquares(1.0, initial_precision=0.5), features, targets, counts)
    gram = features.T @ (counts[:, None] * features) + 0.5 * np.eye(D)
    np.testing.assert_allclose(learner.belief.mean, np.linalg.solve(gram, features.T @ (counts * targets)), rtol=1e-10)


def test_half_an_example_forgets_by_half() -> None:
    """In the scale on which memory falls, two halves forget as much as a whole."""
    learner = learnt(RecursiveLeastSquares(0.8), *numbers(20))
    before = learner.belief.information.copy()
    for _ in range(2):
        learner.learn_one(np.zeros(D), 0.0, weight=0.5)
    np.testing.assert_allclose(learner.belief.information, 0.8 * before, rtol=1e-12)


def test_the_ridge_is_not_forgotten() -> None:
    """A direction without examples keeps it, and what was known of it fades to the prior mean."""
    posterior = RecursiveLeastSquares(0.5, ridge=0.2, initial_precision=3.0, prior_mean=0.7)
    learner = learnt(posterior, *numbers(5))
    x = np.array([1.0, 0.0, 0.0, 0.0])
    for _ in range(200):
        learner.learn_one(x, 5.0)
    assert learner.belief.tally[1] == pytest.approx(0.2)
    np.testing.assert_allclose(information_of(learner), np.diag([2.2, 0.2, 0.2, 0.2]), atol=1e-12)
    np.testing.assert_allclose(learner.belief.mean[1:], 0.7, rtol=1e-12)


def test_it_follows_weights_that_change_where_one_without_forgetting_does_not() -> None:
    (features, targets), (others, opposite) = numbers(200), numbers(50, seed=1)
    forgetting, remembering = (learnt(RecursiveLeastSquares(f), features, targets) for f in (0.9, 1.0))
    for learner in (forgetting, remembering):
        learner.learn_many(others, -opposite)
    wanted = -np.array([1.0, -2.0, 0.5, 0.0])
    distance = [float(np.linalg.norm(learner.belief.mean - wanted)) for learner in (forgetting, remembering)]
    assert distance[0] < 1.0
    assert distance[1] > 2.0


def test_an_example_with_missing_features_is_trusted_less() -> None:
    """Its latent has the variance of what is missing beside the noise, and counts as that much less of an example."""
    posterior = RecursiveLeastSquares(1.0)
    one, other = (learnt(posterior, *numbers(30), noise_variance=0.5) for _ in range(2))
    x, y = np.array([1.0, 0.5, 0.0, 0.0]), 3.0
    one.learn_many([x], [y], missing=np.array([[False, False, True, True]]))
    blur = other.belief.mean[2] ** 2 + other.belief.mean[3] ** 2
    other.learn_one(x, y, weight=float(0.5 / (0.5 + blur)))
    np.testing.assert_allclose(one.belief.mean, other.belief.mean, rtol=1e-12)
    np.testing.assert_allclose(one.belief.information, other.belief.information, rtol=1e-12)


def test_shards_merge_to_the_sequence_and_come_apart() -> None:
    posterior = RecursiveLeastSquares(1.0, initial_precision=0.5, prior_mean=0.3)
    features, targets = numbers(90)
    whole = learnt(posterior, features, targets)
    shards = [learnt(posterior, features[part], targets[part]).belief for part in np.array_split(np.arange(90), 3)]
    merged = posterior.merge(shards)
    np.testing.assert_allclose(merged.mean, whole.belief.mean, rtol=1e-10)
    assert merged.tally[0] == 90.0
    left = posterior.subtract(merged, shards[2])
    np.testing.assert_allclose(left.mean, learnt(posterior, features[:60], targets[:60]).belief.mean, rtol=1e-9)


def test_shards_that_forget_weigh_by_what_they_remember() -> None:
    """One shard is itself; two are a compromise in the metric of their information, and come apart again."""
    posterior = RecursiveLeastSquares()
    one, other = (learnt(posterior, *numbers(n, seed=n)).belief for n in (30, 10))
    np.testing.assert_allclose(posterior.merge([one]).mean, one.mean, rtol=1e-10)
    merged = posterior.merge([one, other])
    R, S = (belief.information + belief.tally[1] * np.eye(D) for belief in (one, other))
    ridge = (30 * one.tally[1] + 10 * other.tally[1]) / 40
    total = one.information + other.information + ridge * np.eye(D)
    np.testing.assert_allclose(merged.mean, np.linalg.solve(total, R @ one.mean + S @ other.mean), rtol=1e-10)
    np.testing.assert_allclose(posterior.subtract(merged, other).mean, one.mean, rtol=1e-9)


def test_what_was_never_learnt_is_not_taken_out() -> None:
    posterior = RecursiveLeastSquares()
    little, much = (learnt(posterior, *numbers(n, seed=n)).belief for n in (3, 30))
    with pytest.raises(ImproperBelief, match="never learnt"):
        posterior.subtract(little, much)
    features, targets = numbers(20)
    larger = learnt(posterior, 100.0 * features, targets).belief
    with pytest.raises(ImproperBelief, match=r"positive in every direction.*never learnt"):
        posterior.subtract(much, larger)
    nothing = posterior.merge([posterior.prior(D), posterior.prior(D)])
    np.testing.assert_array_equal(nothing.mean, np.zeros(D))


def test_retold_it_goes_on_as_if_features_had_always_been_told_so() -> None:
    """Up to the ridge, which is that of the new weights and next to nothing here."""
    rng = np.random.default_rng(0)
    raw, targets = rng.normal(size=(60, D - 1)) + 2.0, rng.normal(size=60)
    ratio, moved = np.array([3.0, 0.5, 2.0]), np.array([0.3, -0.2, 0.1])
    old = np.column_stack([np.ones(60), raw])
    new = np.column_stack([np.ones(60), (raw - moved) / ratio])
    posterior = RecursiveLeastSquares(0.95, ridge=1e-9, initial_precision=1e-9)
    one, other = learnt(posterior, old[:40], targets[:40]), learnt(posterior, new, targets)
    one.retell(np.concatenate([[1.0], ratio]), np.concatenate([[0.0], moved]))
    one.learn_many(new[40:], targets[40:])
    np.testing.assert_allclose(one.belief.mean, other.belief.mean, rtol=1e-6)


def test_forgetting_at_will_keeps_the_point_and_its_share_of_the_information() -> None:
    posterior = RecursiveLeastSquares(1.0, initial_precision=0.5)
    learner = learnt(posterior, *numbers(20))
    before = information_of(learner)
    learner.forget(discount=0.25)
    np.testing.assert_allclose(information_of(learner), 0.25 * before + 0.75 * 0.5 * np.eye(D), rtol=1e-12)


def test_new_features_begin_with_the_ridge() -> None:
    features, targets = numbers(30)
    learner = Learner(Gaussian(), RecursiveLeastSquares(1.0, initial_precision=0.5), MomentMatching(), 2)
    learner.learn_many(features[:10, :2], targets[:10])
    learner.extend(D)
    learner.learn_many(features[10:], targets[10:])
    features[:10, 2:] = 0.0
    expected = np.linalg.solve(features.T @ features + 0.5 * np.eye(D), features.T @ targets)
    np.testing.assert_allclose(learner.belief.mean, expected, rtol=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("target", [0.0, 1e30, -1.7e308])
@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e100, 1e150, 1e200, 1e308])
def test_extremes_are_learnt_or_refused_and_leave_finite_weights(scale: float, target: float, dtype: str) -> None:
    if dtype == "float32":
        scale = float(np.clip(scale, 1e-30, 1e38))
    learner = learnt(RecursiveLeastSquares(ridge=1e-12, dtype=dtype), *numbers(10))
    for _ in range(3):
        before = [array.copy() for array in learner.belief]
        try:
            learner.learn_one(np.array([1.0, -1.0, 0.5, 1e-3]) * scale, target)
        except ImproperBelief:
            for array, wanted in zip(learner.belief, before, strict=True):
                np.testing.assert_array_equal(array, wanted)
        for array in learner.belief:
            assert np.all(np.isfinite(array))


def test_a_large_row_is_refused_with_all_its_batch() -> None:
    learner = Learner(Gaussian(), RecursiveLeastSquares(), MomentMatching(), 2)
    with pytest.raises(ImproperBelief, match="row 1 has a latent that is not finite"):
        learner.learn_many([[1.0, 1.0], [1e200, 1e200]], [1.0, 1.0])
    np.testing.assert_array_equal(learner.belief.mean, [0.0, 0.0])
    assert learner.n_examples == 0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_features_that_are_nearly_the_same_do_no_harm(dtype: str) -> None:
    """Of two columns that differ by less than the digits, with next to no ridge, the sum is known."""
    rng = np.random.default_rng(0)
    first = 1e6 * rng.normal(size=200)
    features = np.column_stack([first, first, first * (1.0 + 1e-15 * rng.normal(size=200)), first])
    learner = learnt(RecursiveLeastSquares(0.95, ridge=1e-12, dtype=dtype), features, 2.0 * first)
    assert np.all(np.isfinite(learner.belief.mean))
    assert learner.belief.mean.sum() == pytest.approx(2.0, rel=1e-3)


def test_a_site_holds_the_error() -> None:
    posterior = RecursiveLeastSquares()
    learner = learnt(posterior, *numbers(10), noise_variance=0.4)
    other, x, y = learner.copy(), np.array([1.0, 0.5, -0.5, 2.0]), 3.0
    error = y - float(learner.belief.mean @ x)
    learner.learn_one(x, y)
    posterior.absorb(other.belief, x, error / 0.4, 1.0 / 0.4)
    np.testing.assert_allclose(other.belief.mean, learner.belief.mean, rtol=1e-12)
    posterior.absorb(other.belief, x, 0.0, 0.0)  # nothing was seen
    np.testing.assert_allclose(other.belief.mean, learner.belief.mean, rtol=1e-12)


def test_only_errors_of_a_gaussian_are_learnt() -> None:
    with pytest.raises(InvalidSpec, match=r"RecursiveLeastSquares.* learns from errors, those of a Gaussian.*; got"):
        Learner(Logistic(), RecursiveLeastSquares(), Linearized(), D)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("forgetting", 0.0, "`forgetting` must be positive and at most 1; got 0.0"),
        ("forgetting", 1.1, "`forgetting` must be positive and at most 1; got 1.1"),
        ("ridge", 0.0, "`ridge` must be positive; got 0.0"),
        ("initial_precision", np.nan, "`initial_precision` must be positive; got nan"),
    ],
)
def test_a_bad_spec_is_named(field: str, value: float, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        RecursiveLeastSquares(**{field: value})
