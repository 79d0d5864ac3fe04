"""What `n_waves` promises: functions that bend more, few members that have them, and nothing else changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from bayou import (
    Bank,
    Budget,
    Gaussian,
    Member,
    OnlineClassifier,
    OnlineCounter,
    OnlineRegressor,
    Waves,
    load,
    save,
)
from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidSpec
from bayou.estimators.standard_members import of_classes, of_counts, of_numbers, of_two_classes
from bayou.numerics.jit import COMPILED

compiled = pytest.mark.skipif(not COMPILED, reason="too many rows for plain Python")
ESTIMATORS = [OnlineClassifier, OnlineCounter, OnlineRegressor]


def bending(n: int, seed: int = 0) -> tuple[Matrix, Vector]:
    """A function of four inputs that is no sum of functions of two, with little noise."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1.7, 1.7, size=(n, 4))
    return X, np.cos(X[:, 0] + X[:, 1] * X[:, 2] - X[:, 3]) + 0.03 * random.normal(size=n)


def error_of(model: Any, X: Matrix, y: Vector) -> float:
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


@compiled
def test_more_waves_learn_what_bends_more() -> None:
    """Half the error of the usual number, and intervals that cover."""
    X, y = bending(3500)
    few, many = (OnlineRegressor(n_waves=n).fit(X[:2500], y[:2500]) for n in (60, 300))
    assert error_of(many, X[2500:], y[2500:]) < 0.5 * error_of(few, X[2500:], y[2500:])
    low, high = many.predict_interval(X[2500:], 0.9).T
    assert np.mean((low <= y[2500:]) & (y[2500:] <= high)) > 0.86


@pytest.mark.parametrize("standard", [of_two_classes, lambda *n: of_classes(3, *n), lambda *n: of_numbers(10.0, *n)])
def test_the_usual_number_is_the_default(standard: Any) -> None:
    assert standard() == standard(60)
    fewer = {member.waves.n_waves for member in standard(20) if member.waves is not None}
    assert fewer == {20}
    assert len(standard(20)) == len(standard())


@pytest.mark.parametrize(
    "members", [of_two_classes(240), of_classes(3, 240), of_numbers(10.0, 240), of_counts(0.25, 240)]
)
def test_each_weight_may_be_as_large_as_among_few(members: list[Member]) -> None:
    """Some members have a function of the usual size, others weights of it: amplitudes grow with the waves."""
    waves = [member.waves for member in members if member.waves is not None]
    assert {one.n_waves for one in waves} == {240}
    assert {one.amplitude for one in waves} == {Waves().amplitude, 4.0 * Waves().amplitude}
    assert len(waves) <= 6


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("bad", [0, -1, 2.5, "many", None, True])
def test_bad_numbers_are_refused(estimator: type[Any], bad: object) -> None:
    with pytest.raises(InvalidSpec, match="`n_waves` must be a whole number, at least 1; got"):
        estimator(n_waves=bad).fit([[0.0], [1.0], [2.0]], [0, 1, 0])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_it_is_a_parameter_as_any_other(estimator: type[Any], tmp_path: Path) -> None:
    """Cloned, saved and loaded, the model has it, and goes on to the last bit."""
    random = np.random.default_rng(1)
    X, y = random.normal(size=(40, 2)), random.integers(0, 2, size=40)
    assert clone(estimator(n_waves=70)).get_params()["n_waves"] == 70
    model = estimator(n_waves=70).partial_fit(X[:30], y[:30])
    assert {member.waves.n_waves for member in model.bank_.members if member.waves is not None} == {70}
    save(model, tmp_path / "model.bayou")
    again = load(tmp_path / "model.bayou")
    assert again.n_waves == 70
    for one in (model, again):
        one.partial_fit(X[30:], y[30:])
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    assert model.log_evidence_ == again.log_evidence_


def test_inputs_that_come_later_and_values_that_are_missing() -> None:
    random = np.random.default_rng(2)
    model = OnlineRegressor(n_waves=70)
    for n in range(60):
        a, b = random.normal(size=2)
        model.learn_one({"a": a} if n < 20 else {"a": None if n % 7 == 0 else a, "b": b}, np.sin(a) + b * (n >= 20))
    assert np.isfinite(model.predict_one({"a": None, "b": 1.0}))
    assert model.predict_one({"a": 0.5, "b": 1.0}) > model.predict_one({"a": 0.5, "b": -1.0})


@compiled
def test_who_has_many_waves_sleeps_only_where_it_cannot_be_afforded() -> None:
    """Targets that are a line: waves are of no use. All are awake within the budget; beyond it, after four per wave."""
    random = np.random.default_rng(3)
    X = random.normal(size=(700, 2))
    y = X @ [1.0, -2.0] + 0.1 * random.normal(size=700)
    free, poor = OnlineRegressor(n_waves=100), OnlineRegressor(n_waves=100, budget=Budget(microseconds=20.0))
    for model in (free, poor):
        model.partial_fit(X[:390], y[:390])
        assert awake_with_waves(model) == 6
        model.partial_fit(X[390:], y[390:])
    assert awake_with_waves(free) == 6
    assert awake_with_waves(poor) < 4


def awake_with_waves(model: OnlineRegressor) -> int:
    bank = model.bank_
    return sum(awake and member.waves is not None for member, awake in zip(bank.members, bank.awake, strict=True))


def test_waves_in_other_units_are_those_of_all_natural_parameters() -> None:
    """Brute force: the precision of all weights in the new coordinates, with the new prior in place of the old."""
    random = np.random.default_rng(4)
    X = np.column_stack([np.ones(60), random.normal(size=(60, 2))])
    bank = Bank([Member(Gaussian(), prior_variance=3.0, waves=Waves(0.5, 12), past=1)], n_features=3)
    bank.learn_many(X, X[:, 1] + random.normal(size=60))
    mean, covariance = bank.mean_of(0).copy(), bank.covariance_of(0).copy()
    scale, shift = np.array([1.0, 2.0, 0.4]), np.array([0.0, 0.3, -1.0])
    bank.retell(scale, shift)
    change = np.eye(len(mean))
    change[:3, :3] = np.diag(scale)
    change[0, :3] += shift
    back = np.linalg.inv(change)
    known = back.T @ np.linalg.inv(covariance) @ back
    precision = known - back.T @ back / 3.0 + np.eye(len(mean)) / 3.0
    np.testing.assert_allclose(bank.covariance_of(0), np.linalg.inv(precision), atol=1e-10)
    np.testing.assert_allclose(bank.mean_of(0), np.linalg.solve(precision, known @ change @ mean), atol=1e-10)
