"""Networks as estimators: scikit-learn's checks, streams in any chunks, classes that come late, real data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris, make_moons
from sklearn.utils import shuffle
from sklearn.utils.estimator_checks import parametrize_with_checks

import bayou
from bayou import (
    DiagonalGaussian,
    Gaussian,
    LowRankGaussian,
    NetworkClassifier,
    NetworkRegressor,
    NormalInverseGamma,
    OnlineNetwork,
    OnlineRegressor,
)
from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidFeatures, InvalidSpec, InvalidTarget

SMALL = 5
ONE_PASS = (
    "The check shuffles weighted and repeated rows differently. One pass learns in the order of the rows, and what a "
    "row teaches depends on what came before."
)


@parametrize_with_checks(
    [
        NetworkClassifier(hidden=SMALL),
        NetworkRegressor(hidden=SMALL),
        OnlineNetwork(hidden=SMALL, task="classification"),
        OnlineNetwork(hidden=SMALL, task="regression"),
    ],
    expected_failed_checks=lambda _: {"check_sample_weight_equivalence_on_dense_data": ONE_PASS},
)
def test_scikit_learn(estimator: Any, check: Any) -> None:
    """A check of scikit-learn\'s raises where it is not met."""
    check(estimator)


def moons(seed: int, n: int = 2000) -> tuple[Matrix, Vector]:
    return make_moons(n, noise=0.1, random_state=seed)


def wave(n: int = 400) -> tuple[Matrix, Vector]:
    random = np.random.default_rng(0)
    x = random.uniform(-3.0, 3.0, size=(n, 2)) * [1.0, 50.0] + [0.0, 1000.0]
    return x, 7.0 + 100.0 * np.sin(1.5 * x[:, 0]) + 5.0 * random.normal(size=n)


def test_two_moons_in_one_pass() -> None:
    for seed in range(3):
        model = OnlineNetwork().fit(*moons(seed))
        X, y = moons(100 + seed)
        assert model.score(X, y) > 0.97
        chances = model.predict_proba(X)[np.arange(len(y)), y]
        assert -np.mean(np.log(chances)) < 0.1


def test_a_curve_that_no_line_follows() -> None:
    X, y = wave(1500)
    network, line = NetworkRegressor(), OnlineRegressor(posterior=NormalInverseGamma(10.0))
    for model in (network, line):
        model.fit(X[:1000], y[:1000])
    errors = [np.sqrt(np.mean((model.predict(X[1000:]) - y[1000:]) ** 2)) for model in (network, line)]
    assert errors[0] < 7.0  # the noise is 5
    assert errors[1] > 40.0
    low, high = network.predict_interval(X[1000:], 0.9).T
    # 500 rows: standard error 1.3 %
    assert abs(np.mean((y[1000:] > low) & (y[1000:] < high)) - 0.9) < 0.04
    mean, deviation = network.predict(X[1000:1010], return_std=True)
    assert np.all(deviation > 0.0)
    np.testing.assert_allclose(mean, network.predict_quantiles(X[1000:1010], [0.5])[:, 0])


@pytest.mark.parametrize("posterior", [None, DiagonalGaussian(), LowRankGaussian(rank=5)], ids=repr)
def test_chunks_do_not_matter(posterior: Any) -> None:
    """Also where the first rows are learnt again, and where the frame is kept from then on."""
    X, y = wave()
    whole = NetworkRegressor(SMALL, posterior=posterior).fit(X, y)
    parts = NetworkRegressor(SMALL, posterior=posterior)
    for start, stop in ((0, 1), (1, 3), (3, 50), (50, 260), (260, 400)):
        parts.partial_fit(X[start:stop], y[start:stop])
    np.testing.assert_allclose(parts.predict(X[:20]), whole.predict(X[:20]), rtol=1e-6)
    assert parts.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-8)
    assert parts.n_examples_ == 400


def test_dicts_are_rows() -> None:
    X, y = wave(300)
    rows, dicts = NetworkRegressor(SMALL).fit(X, y), NetworkRegressor(SMALL)
    for x, target in zip(X, y, strict=True):
        dicts.learn_one({"a": x[0], "b": x[1]}, target)
    assert dicts.predict_one({"b": X[0, 1], "a": X[0, 0]}) == pytest.approx(rows.predict(X[:1])[0], rel=1e-6)


def test_dicts_whose_values_come_and_go() -> None:
    random = np.random.default_rng(0)
    model = NetworkRegressor(SMALL)
    for n in range(600):
        x = {name: float(value) for name, value in zip("abc", random.normal(size=3), strict=True)}
        y = np.tanh(2 * x["a"]) + (x["c"] if n > 100 else 0.0)
        if n <= 100:
            del x["c"]
        if n % 7 == 0:
            x["b"] = None  # type: ignore[assignment]
        model.learn_one(x, y)
    assert model.predict_one({"a": 1.0, "b": 0.0, "c": 0.5}) == pytest.approx(np.tanh(2.0) + 0.5, abs=0.25)


def test_classes_that_come_late() -> None:
    X, y = shuffle(*load_iris(return_X_y=True), random_state=1)
    order = np.argsort(y == 2, kind="stable")  # the third class comes when the others are known
    late = NetworkClassifier(SMALL)
    late.partial_fit(X[order][:110], y[order][:110])
    late.partial_fit(X[order][110:], y[order][110:])
    late.partial_fit(X, y)
    assert late.classes_.tolist() == [0, 1, 2]
    assert late.score(X, y) > 0.93
    whole = NetworkClassifier(SMALL).fit(X, y)
    assert whole.score(X, y) > 0.93
    np.testing.assert_allclose(whole.predict_proba(X).sum(axis=1), 1.0)


def test_a_new_class_keeps_what_is_known_of_two() -> None:
    X, y = moons(0, 600)
    model = NetworkClassifier(SMALL).fit(X, np.where(y == 1, "yes", "no"))
    before = model.predict_proba(X)
    model.partial_fit([[9.0, 9.0]], ["other"])
    after = model.predict_proba(X)
    pair = [model.classes_.tolist().index(label) for label in ("no", "yes")]
    same = (after[:, pair[1]] > after[:, pair[0]]) == (before[:, 1] > before[:, 0])
    assert np.mean(same) > 0.99  # all but what one more example changes
    assert after[:, model.classes_.tolist().index("other")].mean() < 0.2


def test_missing_values_cost_less_than_zeros() -> None:
    X, y = wave(1200)
    holes = np.random.default_rng(1).random(X.shape) < 0.2
    blank, zeros = X.copy(), X.copy()
    blank[holes], zeros[holes] = np.nan, 0.0
    ours, imputed = NetworkRegressor(20).fit(blank[:800], y[:800]), NetworkRegressor(20).fit(zeros[:800], y[:800])
    assert ours.log_evidence_ > imputed.log_evidence_
    assert np.isfinite(ours.predict(blank[800:])).all()


def test_what_it_learns_is_chosen_by_the_type_of_the_targets() -> None:
    X, y = moons(0, 200)
    assert OnlineNetwork(SMALL).fit(X, y).predict(X).dtype.kind == "i"
    assert OnlineNetwork(SMALL).fit(X, y.astype(float)).predict(X).dtype.kind == "f"
    assert OnlineNetwork(SMALL, task="classification").fit(X, y.astype(float)).classes_.tolist() == [0.0, 1.0]
    assert set(OnlineNetwork(SMALL).fit(X, np.where(y, "a", "b")).predict(X)) <= {"a", "b"}
    streamed = OnlineNetwork(SMALL)
    assert streamed.predict_one({"x": 1.0}) is None
    streamed.learn_one({"x": 1.0}, True)
    assert streamed.predict_one({"x": 1.0}) is True
    with pytest.raises(InvalidSpec, match="task"):
        OnlineNetwork(task="both").fit(X, y)


@pytest.mark.parametrize("model", [NetworkRegressor(SMALL), OnlineNetwork(SMALL), NetworkClassifier(SMALL)], ids=repr)
@pytest.mark.parametrize("n", [0, 30, 300])
def test_files_continue_to_the_last_bit(model: Any, n: int, tmp_path: Path) -> None:
    """Also where first rows still wait to be learnt again."""
    X, y = wave()
    targets = (y > 7.0).astype(int) if isinstance(model, NetworkClassifier) else y
    from sklearn.base import clone

    model = clone(model)
    if n:
        model.partial_fit(X[:n], targets[:n])
    bayou.save(model, tmp_path / "model.bayou")
    loaded = bayou.load(tmp_path / "model.bayou")
    for each in (model, loaded):
        each.partial_fit(X[n:], targets[n:])
    np.testing.assert_array_equal(model.predict(X), loaded.predict(X))
    assert model.log_evidence_ == loaded.log_evidence_
    assert loaded.get_params() == model.get_params()


def test_bad_input_leaves_a_network_untouched() -> None:
    X, y = wave(50)
    model = NetworkRegressor(SMALL).fit(X, y)
    before = model.predict(X)
    for bad_X, bad_y, error in (
        ([[np.inf, 0.0]], [1.0], ValueError),
        ([[1.0]], [1.0], ValueError),
        ([[1.0, 2.0]], [np.nan], ValueError),
        ([[1.0, 2.0]], [1e200], InvalidTarget),
        ([[1e150, 2.0]], [1.0], InvalidFeatures),
    ):
        with pytest.raises(error):
            model.partial_fit(bad_X, bad_y)
    np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(InvalidSpec, match="hidden"):
        NetworkRegressor(hidden=0).fit(X, y)
    assert not hasattr(model, "coef_")


def test_a_given_likelihood_takes_targets_as_they_are() -> None:
    X, y = wave(400)
    scaled = (y - y.mean()) / y.std()
    model = NetworkRegressor(20, likelihood=Gaussian(0.01)).fit(X, scaled)
    assert np.sqrt(np.mean((model.predict(X) - scaled) ** 2)) < 0.2


def test_wide_networks_are_of_low_rank() -> None:
    X = np.random.default_rng(0).normal(size=(5, 100))
    assert isinstance(NetworkRegressor(50).fit(X, X[:, 0]).posterior_, LowRankGaussian)


def test_columns_that_become_something_else() -> None:
    """A column that is constant for long, and one that drifts away for ever, do not break the network."""
    random = np.random.default_rng(0)
    n = 4000
    X = np.column_stack([random.normal(size=n), np.where(np.arange(n) < 500, 3.0, 3.0 + 1e4 * random.normal(size=n))])
    X = np.column_stack([X, np.arange(n)])
    y = X[:, 0] + np.where(np.arange(n) < 500, 0.0, (X[:, 1] - 3.0) / 1e4)
    given = NetworkRegressor(10).learn_many(X, y)
    assert np.sqrt(np.mean((given.mean[2500:] - y[2500:]) ** 2)) < 0.3
    assert np.isfinite(given.mean).all()


def test_outliers_do_little_harm() -> None:
    """One target in a hundred is off by 250 times the noise; a Gaussian would believe them all."""
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 3))
    truth = np.sin(2.0 * X[:, 0]) + X[:, 1]
    wild = random.random(3000) < 0.01
    y = truth + 0.2 * random.normal(size=3000) + 50.0 * wild * random.choice([-1.0, 1.0], size=3000)
    said = NetworkRegressor(20).learn_many(X, y)
    assert np.sqrt(np.mean((said.mean - truth)[2000:] ** 2)) < 0.3
    low, high = said.interval(0.9)[2000:].T
    assert 0.87 < np.mean((y[2000:] > low) & (y[2000:] < high)) < 0.96


def test_diabetes_is_no_worse_than_a_line() -> None:
    """442 noisy rows with ten inputs: nothing to bend, and little to lose."""
    X, y = shuffle(*load_diabetes(return_X_y=True), random_state=0)
    network, line = NetworkRegressor().learn_many(X, y), OnlineRegressor().learn_many(X, y)
    errors = [np.sqrt(np.mean((said.mean[100:] - y[100:]) ** 2)) for said in (network, line)]
    assert errors[0] < 1.05 * errors[1]
