"""Mixtures as estimators: scikit-learn's checks, streams in any order and any chunks, what can be asked of them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import bayou
from bayou import HarmonyMixture
from bayou.errors import InvalidFeatures, InvalidSpec
from bayou.numerics.jit import COMPILED
from tests.mixtures.made import clusters


@parametrize_with_checks([HarmonyMixture(n_clusters=4)])
def test_scikit_learn(estimator: Any, check: Any) -> None:
    """A check of scikit-learn\'s raises where it is not met."""
    check(estimator)


def test_clusters_shares_and_shapes() -> None:
    X, labels = clusters(2, 4, 800, 5.0, 0)
    model = HarmonyMixture().fit(X * [1.0, 1e4])
    assert model.n_clusters_ == 4
    assert adjusted_rand_score(labels, model.labels_) > 0.95
    for label in range(4):
        own = X[labels == label] * [1.0, 1e4]
        nearest = int(np.argmin(np.abs((model.means_ - own.mean(axis=0)) / own.std(axis=0)).max(axis=1)))
        assert np.abs((model.means_[nearest] - own.mean(axis=0)) / own.std(axis=0)).max() < 0.2
        np.testing.assert_allclose(np.diag(model.covariances_[nearest]), own.var(axis=0), rtol=0.25)
        assert model.weights_[nearest] == pytest.approx(len(own) / len(X), abs=0.02)


@pytest.mark.skipif(not COMPILED, reason="thousands of points need compiled kernels")
@pytest.mark.parametrize("order", ["as drawn", "sorted by cluster"])
@pytest.mark.parametrize(("d", "k"), [(2, 4), (5, 4), (3, 1)])
def test_streams_in_one_pass(d: int, k: int, order: str) -> None:
    for seed in range(3):
        X, labels = clusters(d, k, 2000, 5.0, seed)
        rows = np.arange(2000) if order == "as drawn" else np.argsort(labels, kind="stable")
        model = HarmonyMixture(seed=seed).partial_fit(X[rows])
        assert model.n_clusters_ == k
        assert k == 1 or adjusted_rand_score(labels, model.predict(X)) > 0.9


def test_any_chunks_and_what_was_saved_give_the_same(tmp_path: Path) -> None:
    X = clusters(2, 3, 700, 5.0, 0)[0]
    whole = HarmonyMixture().partial_fit(X)
    chunked = HarmonyMixture()
    for part in np.array_split(X, 37):
        chunked.partial_fit(part)
    np.testing.assert_array_equal(chunked.means_, whole.means_)
    early, late = HarmonyMixture().partial_fit(X[:40]), HarmonyMixture().partial_fit(X[:333])
    for n, model in ((40, early), (333, late)):
        bayou.save(model, tmp_path / "model.bayou")
        for other in (bayou.load(tmp_path / "model.bayou"), pickle.loads(pickle.dumps(model))):
            other.partial_fit(X[n:])
            np.testing.assert_array_equal(other.means_, whole.means_)
            np.testing.assert_array_equal(other.predict(X), whole.predict(X))
            assert other.n_examples_ == 700
    fitted = HarmonyMixture().fit(X)
    bayou.save(fitted, tmp_path / "model.bayou")
    np.testing.assert_array_equal(bayou.load(tmp_path / "model.bayou").labels_, fitted.labels_)


def test_dicts_are_rows() -> None:
    X = clusters(2, 2, 150, 6.0, 0)[0]
    by_rows, by_dicts = HarmonyMixture(), HarmonyMixture()
    assert by_dicts.predict_one({"a": 0.0, "b": 0.0}) is None
    by_rows.partial_fit(X)
    for a, b in X.tolist():
        by_dicts.learn_one({"a": a, "b": b})
    np.testing.assert_allclose(by_dicts.means_, by_rows.means_)
    assert by_dicts.predict_one({"b": X[0, 1], "a": X[0, 0]}) == by_rows.predict(X[:1])[0]
    with pytest.raises(InvalidFeatures, match="the values must be 'a', 'b'; got 'a'"):
        by_dicts.learn_one({"a": 1.0})
    with pytest.raises(InvalidFeatures, match="every value must be a number"):
        by_dicts.learn_one({"a": 1.0, "b": "high"})
    with pytest.raises(InvalidFeatures, match="must be finite"):
        by_dicts.learn_one({"a": 1.0, "b": np.inf})
    with pytest.raises(InvalidFeatures, match="rows without names"):
        by_rows.predict_one({"a": 1.0, "b": 2.0})
    assert by_dicts.n_examples_ == 150


def test_a_stream_may_follow_a_batch() -> None:
    X = clusters(2, 3, 900, 6.0, 2)[0]
    model = HarmonyMixture().fit(X[:300]).partial_fit(X[300:])
    assert model.n_clusters_ == 3
    assert model.n_examples_ == 900


def test_the_density_sums_to_one_and_is_that_of_its_samples() -> None:
    X = clusters(2, 3, 600, 5.0, 0)[0]
    model = HarmonyMixture().fit(X)
    low, high = X.min(axis=0) - 5.0, X.max(axis=0) + 5.0
    grid = np.stack(np.meshgrid(*(np.linspace(a, b, 300) for a, b in zip(low, high, strict=True))), axis=-1)
    area = np.prod((high - low) / 299.0)
    assert np.exp(model.score_samples(grid.reshape(-1, 2))).sum() * area == pytest.approx(1.0, abs=0.01)
    drawn, labels = model.sample(5000, seed=1)
    assert model.score(drawn) == pytest.approx(model.score(X), abs=0.15)  # standard error 0.02
    assert np.mean(model.predict(drawn) == labels) > 0.95
    assert model.score_samples([[1e3, 1e3]])[0] < model.score_samples(X).min() - 100.0


def test_missing_values_are_completed() -> None:
    """Against sampling: among many draws whose first column is near, what the second is."""
    X = clusters(2, 3, 1500, 4.0, 0)[0]
    model = HarmonyMixture().fit(X)
    drawn = model.sample(400_000, seed=1)[0]
    for value in np.quantile(X[:, 0], [0.2, 0.7]):
        near = drawn[np.abs(drawn[:, 0] - value) < 0.02, 1]
        found = model.complete([[value, np.nan]])
        error = near.std() / np.sqrt(near.size)
        assert found.mean[0, 1] == pytest.approx(near.mean(), abs=6.0 * error + 0.02)
        assert found.variance[0, 1] == pytest.approx(near.var(), rel=0.1)
    whole = model.complete([[1.0, 2.0], [np.nan, np.nan]])
    np.testing.assert_array_equal(whole.mean[0], [1.0, 2.0])
    np.testing.assert_array_equal(whole.variance[0], [0.0, 0.0])
    np.testing.assert_allclose(whole.mean[1], model.weights_ @ model.means_)


def test_old_rows_are_forgotten() -> None:
    rng = np.random.default_rng(0)
    stream = np.concatenate([rng.normal(0.0, 1.0, (1500, 2)), rng.normal(8.0, 1.0, (1500, 2))])
    model = HarmonyMixture(half_life=100).partial_fit(stream)
    assert model.n_clusters_ == 1
    np.testing.assert_allclose(model.means_[0], [8.0, 8.0], atol=0.3)
    assert HarmonyMixture().partial_fit(stream).n_clusters_ == 2


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"n_clusters": 0}, "`n_clusters` must be a whole number, at least 1; got 0"),
        ({"matching": 1.5}, "`matching` must be between 0 and 1; got 1.5"),
        ({"half_life": 0.5}, "`half_life` must be None or at least 1 row; got 0.5"),
    ],
)
def test_bad_settings_are_named(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        HarmonyMixture(**bad).fit(np.zeros((3, 2)))


def test_awkward_rows() -> None:
    rng = np.random.default_rng(0)
    constant = np.column_stack([rng.normal(size=200), np.full(200, 7.0)])
    model = HarmonyMixture().fit(constant)
    assert model.n_clusters_ == 1
    assert np.isfinite(model.score(constant))
    same = HarmonyMixture().fit(np.ones((50, 2)))
    assert same.n_clusters_ == 1
    with pytest.raises(InvalidFeatures, match="below 1e\\+140"):
        HarmonyMixture().fit([[1e200, 0.0], [0.0, 1.0]])
    far = clusters(2, 2, 300, 6.0, 0)[0] * 1e-9 + 1e3
    assert HarmonyMixture().fit(far).n_clusters_ == 2


def test_a_picture() -> None:
    X = clusters(2, 3, 300, 6.0, 0)[0]
    model = HarmonyMixture().fit(X)
    (axes,) = model.plot(X).axes
    assert len(axes.patches) == 3
    with pytest.raises(InvalidSpec, match="drawn of two columns; there are 3"):
        HarmonyMixture().fit(np.random.default_rng(0).normal(size=(50, 3))).plot()
