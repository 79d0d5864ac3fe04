"""Filtering of functions: against the linear learner, against quadrature, and against itself in other chunks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

import bayou
from bayou import (
    DiagonalGaussian,
    FlipProbit,
    FullGaussian,
    FunctionLearner,
    Gaussian,
    Learner,
    Linearized,
    Logistic,
    LowRankGaussian,
    MomentMatching,
    Network,
    NormalInverseGamma,
    Probit,
    Softmax,
    SphericalGaussian,
    Variational,
)
from bayou.contracts import Function, Likelihood, Matrix, Posterior, Rule, Vector
from bayou.errors import BayouError, ImproperBelief, InvalidSpec

N = 4
FAMILIES = [FullGaussian(), DiagonalGaussian(), LowRankGaussian(rank=2)]


@dataclass(frozen=True)
class Linear(Function):
    """f = w . x: what the tangent of a linear function is, a linear learner does."""

    n_outputs: int = 1

    def n_weights(self, n_features: int) -> int:
        return n_features * self.n_outputs

    def start(self, n_features: int) -> tuple[Vector, Vector]:
        return np.zeros(self.n_weights(n_features)), np.ones(self.n_weights(n_features))

    def linearized(self, weights: Vector, rows: Matrix) -> tuple[Matrix, NDArray[np.float64]]:
        k, n = self.n_outputs, len(rows)
        gradients = np.zeros((n, k, k, rows.shape[1]))
        gradients[:, np.arange(k), np.arange(k)] = rows[:, None]
        return rows @ weights.reshape(k, -1).T, gradients.reshape(n, k, -1)


@dataclass(frozen=True)
class Square(Function):
    """f = w^2 x, one weight."""

    def n_weights(self, n_features: int) -> int:
        return 1

    def start(self, n_features: int) -> tuple[Vector, Vector]:
        return np.ones(1), np.full(1, 0.1)

    def linearized(self, weights: Vector, rows: Matrix) -> tuple[Matrix, NDArray[np.float64]]:
        return weights[0] ** 2 * rows, 2.0 * weights[0] * rows[:, :, None]


def stream(n: int = 60) -> tuple[Matrix, Vector]:
    random = np.random.default_rng(0)
    rows = random.normal(size=(n, N))
    return rows, rows @ [1.0, -2.0, 0.5, 0.0] + 0.5 * random.normal(size=n)


def signs(targets: Vector) -> Vector:
    return np.where(targets > 0.0, 1.0, -1.0)


@pytest.mark.parametrize("posterior", FAMILIES, ids=repr)
@pytest.mark.parametrize("likelihood", [Gaussian(0.3), Probit(), FlipProbit(0.1), Logistic()], ids=repr)
@pytest.mark.parametrize("rule", [MomentMatching(), Linearized(), Variational()], ids=repr)
def test_a_linear_function_is_a_linear_learner(likelihood: Likelihood, posterior: Posterior[Any], rule: Rule) -> None:
    rows, targets = stream()
    targets = targets if isinstance(likelihood, Gaussian) else signs(targets)
    weights = np.resize([1.0, 2.5, 0.5], len(rows))
    ours = FunctionLearner(Linear(), likelihood, posterior, rule, N)
    linear = Learner(likelihood, posterior, rule, N)
    said, expected = ours.learn_many(rows, targets, weights), linear.learn_many(rows, targets, weights)
    np.testing.assert_allclose(said.latent.mean, expected.latent.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(said.latent.variance, expected.latent.variance, rtol=1e-9)
    np.testing.assert_allclose(ours.belief.mean, linear.belief.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        posterior.covariance(ours.belief), posterior.covariance(linear.belief), rtol=1e-8, atol=1e-12
    )
    assert ours.log_evidence == pytest.approx(linear.log_evidence, rel=1e-10)
    assert ours.predict_one(rows[0]).mean == pytest.approx(linear.predict_one(rows[0]).mean, rel=1e-9)


def test_several_latents_have_the_precision_of_a_choice() -> None:
    """One example, linearised: the belief is the prior's with the Hessian of log softmax added to its precision."""
    k = 3
    learner = FunctionLearner(Linear(k), Softmax(k), FullGaussian(), Linearized(), N)
    row = np.array([[0.3, -1.0, 0.5, 2.0]])
    learner.belief.mean[:] = np.random.default_rng(0).normal(size=k * N)
    before = learner.belief.mean.copy()
    chances = np.exp(before.reshape(k, N) @ row[0])
    chances /= chances.sum()
    hessian = np.kron(np.diag(chances) - np.outer(chances, chances), np.outer(row[0], row[0]))
    covariance = np.linalg.inv(np.eye(k * N) + hessian)
    slope = np.kron((np.arange(k) == 1) - chances, row[0])
    learner.learn_many(row, [1.0])
    np.testing.assert_allclose(FullGaussian().covariance(learner.belief), covariance, atol=1e-12)
    np.testing.assert_allclose(learner.belief.mean, before + covariance @ slope, atol=1e-12)


def network_learner(likelihood: Likelihood, posterior: Posterior[Any] | None = None, **options: Any) -> FunctionLearner:
    network = Network((6,), n_outputs=likelihood.n_latents)
    rule = MomentMatching() if likelihood.n_latents == 1 else Variational()
    return FunctionLearner(network, likelihood, posterior or FullGaussian(), rule, N, **options)


@pytest.mark.parametrize("posterior", FAMILIES, ids=repr)
@pytest.mark.parametrize("likelihood", [Gaussian(0.3), Logistic(), Softmax(3)], ids=repr)
def test_chunks_do_not_matter(likelihood: Likelihood, posterior: Posterior[Any]) -> None:
    rows, targets = stream(40)
    if not isinstance(likelihood, Gaussian):
        targets = np.digitize(targets, [-1.0, 1.0]).astype(float) if likelihood.n_latents == 3 else signs(targets)
    noise = {"learn_noise": isinstance(likelihood, Gaussian)}
    whole, parts, single = (network_learner(likelihood, posterior, **noise) for _ in range(3))
    whole.learn_many(rows, targets)
    parts.learn_many(rows[:7], targets[:7])
    parts.learn_many(rows[7:], targets[7:])
    for row, target in zip(rows, targets, strict=True):
        single.learn_one(row, target)
    for other in (parts, single):
        for ours, theirs in zip(whole.belief, other.belief, strict=True):
            np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(other.noise, whole.noise, rtol=1e-9)
        assert other.log_evidence == pytest.approx(whole.log_evidence, rel=1e-9)


def exact_moments(likelihood: Any, target: float, x: float) -> tuple[float, float]:
    """Log evidence of a target under `Square`, and the mean of its weight once it is known, by quadrature."""
    prior = stats.norm(1.0, np.sqrt(0.1))

    def moment(power: int) -> float:
        value, _ = integrate.quad(
            lambda w: w**power * prior.pdf(w) * np.exp(likelihood.log_density(target, w * w * x, likelihood.params)[0]),
            -2.0,
            4.0,
            epsabs=1e-12,
        )
        return float(value)

    return float(np.log(moment(0))), moment(1) / moment(0)


@pytest.mark.parametrize("likelihood", [Gaussian(0.5), Probit(), FlipProbit(0.1)], ids=repr)
@pytest.mark.parametrize("target", [1.0, -1.0])
def test_samples_find_the_line_that_is_nearest(likelihood: Likelihood, target: float) -> None:
    """f = w^2 x under w ~ N(m, v) has mean (m^2 + v) x, nearest line of slope 2 m x, and 2 (v x)^2 of variance left.

    With 4,000 draws the mean is off by about 2 % of its deviation. The evidence of signs is ten times nearer to the
    exact one than that of the tangent; the weight, learnt along a line in either case, is near the exact mean.
    """
    x = np.array([[0.7]])
    sampled = FunctionLearner(Square(), likelihood, FullGaussian(), MomentMatching(), 1, n_samples=4000)
    tangent = FunctionLearner(Square(), likelihood, FullGaussian(), MomentMatching(), 1)
    latent = sampled.predict_many(x).latent
    assert latent.mean[0] == pytest.approx(1.1 * 0.7, abs=0.03)
    assert latent.variance[0] == pytest.approx((4.0 * 0.1 + 2.0 * 0.01) * 0.49, rel=0.1)
    for learner in (sampled, tangent):
        learner.learn_many(x, [target])
    evidence, mean = exact_moments(likelihood, target, 0.7)
    if not isinstance(likelihood, Gaussian):
        assert abs(sampled.log_evidence - evidence) < 0.2 * abs(tangent.log_evidence - evidence)
    assert abs(sampled.belief.mean[0] - mean) < 0.1


@pytest.mark.parametrize("rule", [MomentMatching(), Variational(), Linearized()], ids=repr)
@pytest.mark.parametrize("likelihood", [Probit(), FlipProbit(0.1), Gaussian(0.5)], ids=repr)
def test_samples_of_a_line_find_the_line(likelihood: Likelihood, rule: Rule) -> None:
    rows, targets = stream(30)
    targets = targets if isinstance(likelihood, Gaussian) else signs(targets)
    sampled = FunctionLearner(Linear(), likelihood, FullGaussian(), rule, N, n_samples=4)
    exact = Learner(likelihood, FullGaussian(), rule, N)
    sampled.learn_many(rows, targets)
    exact.learn_many(rows, targets)
    np.testing.assert_allclose(sampled.belief.mean, exact.belief.mean, rtol=1e-8, atol=1e-10)
    ours, theirs = (FullGaussian().covariance(learner.belief) for learner in (sampled, exact))
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("posterior", FAMILIES, ids=repr)
@pytest.mark.parametrize("likelihood", [Gaussian(0.3), Probit(), FlipProbit(0.05), Softmax(3)], ids=repr)
def test_a_few_samples_learn(likelihood: Likelihood, posterior: Posterior[Any]) -> None:
    rows, targets = stream(150)
    if not isinstance(likelihood, Gaussian):
        targets = np.digitize(targets, [-1.0, 1.0]).astype(float) if likelihood.n_latents == 3 else signs(targets)
    learner = network_learner(likelihood, posterior, n_samples=8)
    knew_nothing = float(np.sum(learner.predict_many(rows).log_probability(targets)))
    said = learner.predict_one(rows[0]).latent
    first = learner.learn_one(rows[0], targets[0])
    np.testing.assert_allclose(first.latent.mean, said.mean)
    np.testing.assert_allclose(first.latent.variance, said.variance)
    learner.learn_many(rows[1:], targets[1:])
    assert learner.log_evidence > knew_nothing + 20.0
    assert np.all(posterior.variances(learner.belief) > 0.0)


def test_samples_continue_whatever_the_chunks() -> None:
    rows, targets = stream(20)
    whole = network_learner(Probit(), n_samples=4, seed=5)
    parts = network_learner(Probit(), n_samples=4, seed=5)
    whole.learn_many(rows, signs(targets))
    parts.learn_many(rows[:9], signs(targets)[:9])
    parts.learn_many(rows[9:], signs(targets)[9:])
    np.testing.assert_array_equal(whole.belief.mean, parts.belief.mean)


def test_noise_is_learnt_and_intervals_cover() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(3000, 2))
    y = np.sin(x[:, 0]) + 0.2 * random.standard_t(4, size=3000)
    learner = FunctionLearner(Network((20,)), Gaussian(), FullGaussian(), MomentMatching(), 2, learn_noise=True)
    learner.learn_many(x[:2000], y[:2000])
    low, high = learner.predict_interval(x[2000:], 0.9).T
    # 1,000 rows: standard error of the coverage 1 %
    assert abs(np.mean((y[2000:] > low) & (y[2000:] < high)) - 0.9) < 0.03
    assert learner.noise[2] / learner.noise[1] == pytest.approx(0.2**2 * 2.0, rel=0.3)
    assert learner.predict_many(x[:1]).latent.degrees[0] < 20.0


def test_missing_features_widen_a_prediction() -> None:
    rows, targets = stream(200)
    learner = network_learner(Gaussian(0.3))
    learner.learn_many(rows, targets)
    mask = np.zeros((1, N), dtype=np.bool_)
    mask[0, 1] = True
    blank = rows[:1].copy()
    blank[0, 1] = 0.0
    known, unknown = learner.predict_many(blank).variance[0], learner.predict_many(blank, mask).variance[0]
    slope = (learner.predict_one(blank[0] + [0, 1e-5, 0, 0]).mean - learner.predict_one(blank[0]).mean) / 1e-5
    assert unknown - known == pytest.approx(slope**2, rel=1e-3)
    learner.learn_many(blank, targets[:1], missing=mask)


@pytest.mark.parametrize("likelihood", [Gaussian(0.3), Softmax(3)], ids=repr)
@pytest.mark.parametrize("posterior", FAMILIES, ids=repr)
def test_a_file_continues_to_the_last_bit(likelihood: Likelihood, posterior: Posterior[Any], tmp_path: Path) -> None:
    rows, targets = stream(30)
    if likelihood.n_latents == 3:
        targets = np.digitize(targets, [-1.0, 1.0]).astype(float)
    learner = network_learner(likelihood, posterior, learn_noise=likelihood.n_latents == 1)
    learner.learn_many(rows[:20], targets[:20])
    bayou.save(learner, tmp_path / "network.bayou")
    loaded = bayou.load(tmp_path / "network.bayou")
    for model in (learner, loaded):
        model.learn_many(rows[20:], targets[20:])
    for ours, theirs in zip(learner.belief, loaded.belief, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(learner.noise, loaded.noise)
    assert (learner.log_evidence, learner.n_examples) == (loaded.log_evidence, loaded.n_examples)
    assert repr(loaded) == repr(learner)


def test_more_features_and_outputs_keep_what_is_known() -> None:
    rows, targets = stream(50)
    learner = network_learner(Logistic())
    learner.learn_many(rows, signs(targets))
    said = learner.predict_many(rows).latent
    learner.extend(N + 2)
    wider = np.column_stack([rows, np.zeros((len(rows), 2))])
    np.testing.assert_allclose(learner.predict_many(wider).latent.mean, said.mean, rtol=1e-12)
    np.testing.assert_allclose(learner.predict_many(wider).latent.variance, said.variance, rtol=1e-9)
    learner.extend(N + 2, Softmax(3), Variational())
    np.testing.assert_allclose(learner.predict_many(wider).latent.mean[:, 0], said.mean, rtol=1e-12)
    learner.learn_many(wider, np.zeros(len(rows)))


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((Network(), Gaussian(), SphericalGaussian(), MomentMatching(), 2), {}),
        ((Network(), Gaussian(), NormalInverseGamma(), MomentMatching(), 2), {}),
        ((Network(), Gaussian(), FullGaussian(dtype="float32"), MomentMatching(), 2), {}),
        ((Network(), Softmax(3), FullGaussian(), Variational(), 2), {}),
        ((Network(n_outputs=3), Softmax(3), FullGaussian(), MomentMatching(), 2), {}),
        ((Network(), Probit(), FullGaussian(), MomentMatching(), 2), {"learn_noise": True}),
        ((Network(), Probit(), FullGaussian(), MomentMatching(), 2), {"n_samples": 3}),
        (("tanh", Gaussian(), FullGaussian(), MomentMatching(), 2), {}),
        ((Network(), Gaussian(), FullGaussian(), MomentMatching(), 0), {}),
    ],
)
def test_what_does_not_fit_is_refused(arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpec):
        FunctionLearner(*arguments, **options)


def test_bad_rows_leave_the_learner_untouched() -> None:
    rows, targets = stream(10)
    learner = network_learner(Gaussian(0.3), learn_noise=True)
    learner.learn_many(rows, targets)
    before = [array.copy() for array in (*learner.belief, learner.noise)]
    bad = rows.copy()
    bad[7, 2] = np.nan
    huge = rows.copy()
    huge[7] = 1e200
    for features in (bad, huge, rows[:, :3]):
        with pytest.raises((BayouError, ImproperBelief)):
            learner.learn_many(features, targets)
        with pytest.raises((BayouError, ImproperBelief)):
            learner.learn_one(features[7], targets[7])
    for array, saved in zip((*learner.belief, learner.noise), before, strict=True):
        np.testing.assert_array_equal(array, saved)
    assert learner.n_examples == 10
