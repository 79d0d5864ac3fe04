"""Mixtures as estimators: scikit-learn's checks, streams in any order and any chunks, what can be asked of them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import bayou
from bayou import HarmonyMixture
from bayou.contracts import State
from bayou.errors import InvalidFeatures, InvalidSpec, ModelFileError
from bayou.estimators.mixture_plots import COLOURS
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
    listed = [{"b": b, "a": a} for a, b in X[:5].tolist()]
    np.testing.assert_array_equal(by_dicts.predict(listed), by_rows.predict(X[:5]))
    np.testing.assert_allclose(by_dicts.score_samples(listed), by_rows.score_samples(X[:5]))
    with_gaps = by_dicts.complete([{"a": X[0, 0]}, {"a": None, "b": X[1, 1]}])
    np.testing.assert_allclose(with_gaps.mean, by_rows.complete([[X[0, 0], np.nan], [np.nan, X[1, 1]]]).mean)


@pytest.mark.parametrize("n", [0, 30, 150, 400])
def test_what_cannot_be_learnt_changes_nothing(n: int) -> None:
    """Neither before the first row, nor among those that are learnt as a batch, nor of a stream."""
    X = clusters(2, 2, 400, 6.0, 0)[0]
    model, named = HarmonyMixture(), HarmonyMixture()
    if n:
        model.partial_fit(X[:n])
    for a, b in X[:n].tolist():
        named.learn_one({"a": a, "b": b})
    before = [pickle.dumps(one.to_state()) for one in (model, named)]
    columns = dict(vars(model))
    for rows, message in (
        (np.concatenate([X[n:], [[np.nan, 0.0]]]), "NaN"),
        (np.concatenate([X, X, [[1e120, 0.0]]]), "times the spread of the first rows"),
        ([[1e200, 0.0]], "must be finite and below 1e\\+140"),
        ([["high", 1.0]], "could not convert"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(rows)
        if "spread" not in message:
            with pytest.raises(ValueError, match=message):
                model.fit(rows)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(pd.DataFrame(np.full((3, 3), np.nan), columns=["u", "v", "w"]))
    for x, message in (
        ({"a": 1.0, "b": "high"}, "feature 'b' must be a number.* got 'high'"),
        ({"a": 1.0, "b": np.inf}, "feature 'b' must be finite"),
        ({"a": 1.0, "b": None}, "feature 'b' must be there: HarmonyMixture takes no missing values"),
        ({"a": 1.0, "b": np.nan}, "feature 'b' must be there"),
    ):
        with pytest.raises(InvalidFeatures, match=message):
            named.learn_one(x)
    if n:
        for x in ({"a": 1.0}, {"a": 1.0, "b": 2.0, "c": 3.0}):
            with pytest.raises(InvalidFeatures, match=r"must have the names that came first, \['a', 'b'\]; got \['a'"):
                named.learn_one(x)
        with pytest.raises(ValueError, match="3 features"):
            model.partial_fit(np.zeros((2, 3)))
        with pytest.raises(InvalidFeatures, match="has learnt rows without names; got a dict"):
            model.predict_one({"a": 1.0, "b": 2.0})
        with pytest.raises(
            InvalidFeatures, match="has learnt dicts with named values, and takes a list of such; got rows"
        ):
            named.predict(X)
    for setting in ({"n_clusters": 0}, {"matching": 2.0}):
        model.set_params(**setting)
        with pytest.raises(InvalidSpec):
            model.partial_fit(X)
        model.set_params(n_clusters=10, matching=0.0)
    assert [pickle.dumps(one.to_state()) for one in (model, named)] == before
    assert vars(model).keys() == columns.keys()
    assert hasattr(model, "_width") == bool(n)


def test_names_of_columns_are_kept(tmp_path: Path) -> None:
    frame = pd.DataFrame(clusters(2, 2, 150, 6.0, 0)[0], columns=["u", "v"])
    model = HarmonyMixture().fit(frame)
    bayou.save(model, tmp_path / "model.bayou")
    loaded = bayou.load(tmp_path / "model.bayou")
    assert loaded.feature_names_in_.tolist() == ["u", "v"]
    np.testing.assert_array_equal(loaded.predict(frame), model.labels_)


def test_few_rows_are_learnt_once_for_all_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a stream that has just begun, until more rows come."""
    X = clusters(2, 2, 60, 6.0, 0)[0]
    model, times = HarmonyMixture().partial_fit(X[:50]), []
    learn = model._learn_batch
    monkeypatch.setattr(model, "_learn_batch", lambda rows: times.append(len(rows)) or learn(rows))
    model.score(X), model.predict(X), model.means_
    model.partial_fit(X[50:])
    model.score(X), model.n_clusters_
    assert times == [50, 60]


def test_the_history_of_how_many_clusters_there_were(tmp_path: Path) -> None:
    """The same from any chunks, from a file, and after a batch; a stream that is sorted finds one after the other."""
    X, labels = clusters(2, 3, 1500, 6.0, 0)
    X = X[np.argsort(labels, kind="stable")]
    whole, chunked = HarmonyMixture().partial_fit(X), HarmonyMixture()
    for part in np.array_split(X, 41):
        chunked.partial_fit(part)
        bayou.save(chunked, tmp_path / "model.bayou")
        chunked = bayou.load(tmp_path / "model.bayou")
    history = whole.order_history_
    np.testing.assert_array_equal(chunked.order_history_, history)
    assert history[0].tolist() == [100, 1]
    assert history[-1, 1] == whole.n_clusters_ == 3
    assert np.all(np.diff(history[:, 0]) > 0)
    assert np.all(np.diff(history[:, 1]) != 0)
    assert np.all(history[1:, 0] % 500 == 0)
    for n, k in history[1:].tolist():
        assert HarmonyMixture().partial_fit(X[:n]).n_clusters_ == k
    assert HarmonyMixture().partial_fit(X[:99]).order_history_.shape == (0, 2)
    fitted = HarmonyMixture().fit(X)
    assert fitted.order_history_.tolist() == [[1500, 3]]
    assert fitted.partial_fit(X[:500]).order_history_[0].tolist() == [1500, 3]


def test_the_history_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayou.estimators.harmony_rows.MOST_ORDERS", 2)
    X, labels = clusters(2, 3, 1500, 6.0, 0)
    X = X[np.argsort(labels, kind="stable")]
    whole = HarmonyMixture().partial_fit(X)
    assert whole.order_history_.shape == (2, 2)
    assert whole.order_history_[-1, 1] == 3


def test_a_state_that_does_not_fit_is_refused() -> None:
    X = clusters(2, 2, 300, 6.0, 0)[0]
    model = HarmonyMixture().partial_fit(X)
    model.label(X[:4], ["a", "b", "a", "b"])
    config, arrays = model.to_state()
    for change in (
        State({**config, "width": 3}, arrays),
        State({**config, "names": ["a"]}, arrays),
        State({**config, "prior": [1.0, -1.0, 1.0]}, arrays),
        State({**config, "label_classes": ["a"]}, arrays),
        State({**config, "label_classes": ["b", "a"]}, arrays),
        State(config, {**arrays, "scale": np.zeros(2)}),
        State(config, {**arrays, "early": np.zeros((0, 3))}),
        State(config, {**arrays, "orders": np.zeros((2, 3), dtype=np.int64)}),
        State(config, {**arrays, "orders": np.zeros((2, 2))}),
        State(config, {**arrays, "sums.n": np.full(arrays["sums.n"].size, -1.0)}),
        State(config, {**arrays, "labelled.rows": np.zeros((3, 2))}),
        State(config, {**arrays, "labelled.codes": np.array([0, 1, 2, 0])}),
    ):
        with pytest.raises(ModelFileError):
            HarmonyMixture.from_state(change)


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
    assert drawn(axes) == [to_rgba(colour) for colour in COLOURS[:3]]
    assert len(axes.texts) == 3
    assert len(axes.collections) == 3
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x0", "x1")
    assert not model.plot().axes[0].collections


def drawn(axes: Axes) -> list[Any]:
    """The colours of the ellipses, without the white beneath."""
    return [patch.get_edgecolor() for patch in axes.patches if patch.get_edgecolor() != to_rgba("white")]


def test_an_ellipse_is_that_of_its_two_columns() -> None:
    """Points on it are two deviations off, by the covariance of these columns alone."""
    frame = pd.DataFrame(clusters(4, 2, 400, 6.0, 0)[0], columns=["a", "b", "c", "d"])
    model = HarmonyMixture().fit(frame)
    for columns, places in ((("d", "b"), [3, 1]), ((-1, 0), [3, 0])):
        (axes,) = model.plot(frame, columns).axes
        assert (axes.get_xlabel(), axes.get_ylabel()) == tuple(frame.columns[places])
        assert len(axes.patches) == 2 * model.n_clusters_
        for k, patch in enumerate(axes.patches[1::2]):
            edge = patch.get_patch_transform().transform(patch.get_path().vertices)[:-1:3]  # ends of its curves
            apart = edge - model.means_[k, places]
            inverse = np.linalg.inv(model.covariances_[k][np.ix_(places, places)])
            np.testing.assert_allclose(np.einsum("ni,ij,nj->n", apart, inverse, apart), 4.0, rtol=1e-6)
    for columns in ((0, 4), ("a", "e"), (1, 1), (0, 1, 2)):
        with pytest.raises(InvalidSpec, match="`columns` must be two of the 4 columns, by place or by name; got"):
            model.plot(columns=columns)


def test_a_picture_of_one_column() -> None:
    """The heights of the curves are densities."""
    X = np.random.default_rng(0).normal(size=(300, 1)) + np.where(np.arange(300) < 200, 0.0, 8.0)[:, None]
    model = HarmonyMixture().fit(X)
    (axes,) = model.plot(X).axes
    x, y = axes.lines[-1].get_data()
    np.testing.assert_allclose(y, np.exp(model.score_samples(x[:, None])), rtol=1e-9)
    assert len(axes.lines) == model.n_clusters_ + 1


def test_shares_that_would_lie_upon_each_other_are_moved() -> None:
    """Two clusters that only the third column tells apart."""
    X = np.random.default_rng(0).normal(size=(300, 3)) + np.where(np.arange(300) < 150, 0.0, 20.0)[:, None] * [0, 0, 1]
    model = HarmonyMixture().fit(X)
    assert model.n_clusters_ == 2
    figure = model.plot(X)
    figure.canvas.draw()
    first, second = (text.get_window_extent() for text in figure.axes[0].texts)
    assert not first.overlaps(second)


def test_a_picture_of_the_order() -> None:
    X, labels = clusters(2, 3, 1510, 6.0, 0)
    model = HarmonyMixture().partial_fit(X[np.argsort(labels, kind="stable")])
    (axes,) = model.plot_order().axes
    steps = np.column_stack(axes.lines[0].get_data())
    np.testing.assert_array_equal(steps, [*model.order_history_.tolist(), [1510, 3]])
    assert HarmonyMixture().partial_fit(X[:20]).plot_order().axes
    with pytest.raises(NotFittedError):
        HarmonyMixture().plot_order()
