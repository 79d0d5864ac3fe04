"""Incremental risk for functions that are not linear in their weights: against linear ones, and by minimisers."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import bayou
from bayou import (
    FullGaussian,
    FunctionLearner,
    FunctionNorm,
    Gaussian,
    GeometricStiffness,
    IncrementalRiskLearner,
    JaxFunction,
    Learner,
    LearntStiffness,
    Linearized,
    LinearStiffness,
    Logistic,
    MomentMatching,
    Network,
    Polynomials,
    Softmax,
)
from bayou.errors import ImproperBelief, InvalidSpec, ModelFileError
from bayou.numerics.grams import tensor_quadrature
from bayou.numerics.jit import COMPILED

DOMAIN = ((-2.0, 2.0),)


def stream(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, (n, 1))
    return x, np.sin(2.0 * x[:, 0]) + 0.1 * rng.normal(size=n)


def learner_of(posterior: FunctionNorm | None = None, hidden: int = 5, **options: Any) -> IncrementalRiskLearner:
    family = FunctionNorm(learn_noise=True) if posterior is None else posterior
    return IncrementalRiskLearner(Network((hidden,)), Gaussian(), family, Linearized(), DOMAIN, **options)


@pytest.mark.parametrize("stiffness", [GeometricStiffness(0.3), LinearStiffness(0.5), LearntStiffness()], ids=repr)
def test_a_function_that_is_linear_after_all_is_learnt_as_such(stiffness: Any) -> None:
    """A cubic in JAX against the same powers of x as features, with their Gram matrix in closed form."""

    def cubic(w: Any, x: Any) -> Any:
        return w[0] + w[1] * x[0] + w[2] * x[0] ** 2 + w[3] * x[0] ** 3

    basis, norm = Polynomials(3, DOMAIN[0]), FunctionNorm(stiffness, learn_noise=True)
    curved = IncrementalRiskLearner(
        JaxFunction(cubic, np.zeros(4)), Gaussian(), norm, Linearized(), DOMAIN, damping=0.0
    )
    straight = Learner(
        Gaussian(), FunctionNorm(stiffness, basis, "functions", learn_noise=True), Linearized(), n_features=4
    )
    x, y = stream(40)
    said, wanted = curved.learn_many(x, y), straight.learn_many(basis.functions(x), y)
    np.testing.assert_allclose(said.mean, wanted.mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(said.variance, wanted.variance, rtol=1e-6)
    np.testing.assert_allclose(curved.belief.mean, straight.belief.mean, rtol=1e-6, atol=1e-8)
    assert curved.log_evidence == pytest.approx(straight.log_evidence, rel=1e-7)


@pytest.mark.parametrize("stiffer", [0.0, 2000.0])
def test_a_step_gains_nearly_all_that_can_be_gained(stiffer: float) -> None:
    """Of the true risk, by a minimiser that goes on to the end; the function bends, so it is not all."""
    learner = learner_of(FunctionNorm(LinearStiffness(5.0)), hidden=2, damping=1e-4)
    x, y = stream(101)
    learner.learn_many(x[:100], y[:100])
    learner.belief.stiffness[2] += stiffer
    before, held = learner.belief.mean.copy(), float(learner.belief.stiffness[0] + learner.belief.stiffness[2])
    points, shares = tensor_quadrature(DOMAIN, [64])
    was, row, answer = learner.function.linearized(before, points)[0][:, 0], x[100:], y[100] + 1.0

    def risk(weights: np.ndarray) -> float:
        now = learner.function.linearized(weights, points)[0][:, 0]
        f = learner.function.linearized(weights, row)[0][0, 0]
        return float(0.5 * held * shares @ (now - was) ** 2 + 0.5 * (answer - f) ** 2)

    learner._renew(100)
    learner.learn_many(row, [answer])
    possible = risk(before) - scipy.optimize.minimize(risk, before, tol=1e-14).fun
    gained = risk(before) - risk(learner.belief.mean)
    assert 0.9 * possible < gained < 1.001 * possible


def test_no_step_raises_the_risk() -> None:
    learner = learner_of(FunctionNorm(GeometricStiffness(0.01)), damping=1e-4)
    points, shares = tensor_quadrature(DOMAIN, [64])
    for row, answer in zip(*stream(60), strict=True):
        before, held = learner.belief.mean.copy(), float(learner.belief.stiffness[0] + learner.belief.stiffness[2])
        was, f = learner.function.linearized(before, points)[0][:, 0], learner.predict_one(row).mean
        learner.learn_one(row, answer)
        now = learner.function.linearized(learner.belief.mean, points)[0][:, 0]
        after = learner.predict_one(row).mean
        risk = 0.5 * held * shares @ (now - was) ** 2 + 0.5 * (answer - after) ** 2
        assert risk <= 0.5 * (answer - f) ** 2 + 1e-12


@pytest.mark.skipif(not COMPILED, reason="hundreds of gradients need compiled kernels")
def test_it_learns_a_curve_and_says_how_surely() -> None:
    x, y = stream(600)
    learner = learner_of(hidden=10)
    said = learner.learn_many(x, y)
    grid = np.linspace(-2.0, 2.0, 100)
    assert np.sqrt(np.mean((learner.predict_many(grid[:, None]).mean - np.sin(2.0 * grid)) ** 2)) < 0.05
    low, high = said.interval(0.9)[20:].T
    assert abs(np.mean((y[20:] > low) & (y[20:] < high)) - 0.9) < 0.04  # standard error 1.2 %
    kalman = FunctionLearner(Network((10,)), Gaussian(), FullGaussian(), MomentMatching(), 1, learn_noise=True)
    assert np.sum((said.mean - y) ** 2) < np.sum((kalman.learn_many(x, y).mean - y) ** 2)


def test_classes() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, (200, 2))
    y = np.where(x[:, 0] * x[:, 1] > 0.0, 1.0, -1.0)
    learner = IncrementalRiskLearner(Network((8,)), Logistic(), FunctionNorm(), Linearized(), DOMAIN * 2)
    learner.learn_many(x, y)
    assert np.mean(np.sign(learner.predict_many(x).mean) == y) > 0.9


def test_three_inputs_take_their_mean_over_sobols_points() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (100, 3))
    learner = IncrementalRiskLearner(
        Network((4,)), Gaussian(), FunctionNorm(learn_noise=True), Linearized(), ((-1.0, 1.0),) * 3
    )
    said = learner.learn_many(x, x @ [1.0, -2.0, 0.5])
    assert np.mean((said.mean[50:] - x[50:] @ [1.0, -2.0, 0.5]) ** 2) < 0.05


def test_many_is_one_by_one_is_what_was_saved(tmp_path: Path) -> None:
    x, y = stream(30)
    whole, single = learner_of(), learner_of()
    whole.learn_many(x, y, weights=np.full(30, 2.0))
    for row, answer in zip(x[:15], y[:15], strict=True):
        single.learn_one(row, answer, weight=2.0)
    bayou.save(single, tmp_path / "model.bayou")
    others = [bayou.load(tmp_path / "model.bayou"), pickle.loads(pickle.dumps(single)), single.copy(), single]
    for other in others:
        other.learn_many(x[15:], y[15:], weights=np.full(15, 2.0))
        for array, wanted in zip(other.belief, whole.belief, strict=True):
            np.testing.assert_allclose(array, wanted, rtol=1e-9, atol=1e-12)
        assert repr(other) == repr(whole)
        assert other.n_examples == 30
    twice = learner_of()
    for row, answer in zip(x[:3], y[:3], strict=True):
        twice.learn_row(row, np.zeros((0, 0), dtype=np.bool_), answer)
    assert twice.n_examples == 3


def test_user_code_is_known_by_name(tmp_path: Path) -> None:

    def bump(w: Any, x: Any) -> Any:
        return w[0] / (1.0 + (x[0] - w[1]) ** 2)

    function = JaxFunction(bump, np.array([1.0, 0.1]))
    learner = IncrementalRiskLearner(function, Gaussian(), FunctionNorm(learn_noise=True), Linearized(), DOMAIN)
    x, _ = stream(100)
    learner.learn_many(x, 2.0 / (1.0 + (x[:, 0] - 0.7) ** 2))
    np.testing.assert_allclose(learner.belief.mean, [2.0, 0.7], atol=0.02)
    bayou.save(learner, tmp_path / "model.bayou")
    loaded = bayou.load(tmp_path / "model.bayou", functions={"bump": bump})
    np.testing.assert_array_equal(loaded.belief.mean, learner.belief.mean)
    with pytest.raises(ModelFileError, match="bump"):
        bayou.load(tmp_path / "model.bayou")


def test_forgetting_softens_and_keeps_the_function() -> None:
    learner = learner_of()
    learner.learn_many(*stream(20))
    mean, grown = learner.belief.mean.copy(), float(learner.belief.stiffness[2])
    learner.forget(0.5)
    assert learner.belief.stiffness[2] == 0.5 * grown
    np.testing.assert_array_equal(learner.belief.mean, mean)
    with pytest.raises(InvalidSpec, match="`diffusion` must be 0"):
        learner.forget(diffusion=0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"function": "network"}, "`function` must be a Function; got 'network'"),
        ({"posterior": FullGaussian()}, "`posterior` must be a FunctionNorm without a basis"),
        ({"posterior": FunctionNorm(basis=Polynomials())}, "`posterior` must be a FunctionNorm without a basis"),
        ({"likelihood": Softmax(3)}, "must have one latent"),
        ({"function": Network((2,), n_outputs=2)}, "must have one latent"),
        ({"domain": ((1.0, 0.0),)}, "low < high"),
        ({"damping": -1.0}, "`damping` must be finite and not negative"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, Any], message: str) -> None:
    parts = {
        "function": Network((2,)),
        "likelihood": Gaussian(),
        "posterior": FunctionNorm(),
        "rule": Linearized(),
        "domain": DOMAIN,
    }
    with pytest.raises(InvalidSpec, match=message):
        IncrementalRiskLearner(**(parts | change))


def test_what_cannot_be_done_is_said_and_leaves_the_learner() -> None:
    learner = learner_of()
    learner.learn_many(*stream(20))
    before = [array.copy() for array in learner.belief]
    for attempt in (lambda: learner.extend(2), lambda: learner.retell(np.ones(1), np.zeros(1))):
        with pytest.raises(InvalidSpec, match=r"fixed number of features|cannot be told"):
            attempt()
    with pytest.raises(InvalidSpec, match="all features must be known"):
        learner.learn_many([[0.0]], [1.0], missing=np.array([[True]]))
    with pytest.raises(ImproperBelief, match="row 1 has a latent that is not finite"):
        learner.learn_many([[0.5], [1e308]], [1.0, 1.0])
    for array, wanted in zip(learner.belief, before, strict=True):
        np.testing.assert_array_equal(array, wanted)
    assert learner.n_examples == 20
