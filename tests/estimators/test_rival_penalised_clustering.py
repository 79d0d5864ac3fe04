"""Clusters by rival penalised learning as a scikit-learn estimator: rows, dicts, streams, extremes and files."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import bayou
from bayou.contracts import State
from bayou.errors import InvalidFeatures, InvalidSpec, ModelFileError
from bayou.estimators import RivalPenalisedClustering
from bayou.numerics.jit import COMPILED

CENTRES = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0], [8.0, 8.0]])


def draw(n: int, seed: int = 0, centres: np.ndarray = CENTRES) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    which = random.integers(len(centres), size=n)
    return centres[which] + random.normal(size=(n, centres.shape[1])), which


def as_dicts(rows: np.ndarray) -> list[dict[str, float]]:
    return [{"a": float(row[0]), "b": float(row[1])} for row in rows]


@parametrize_with_checks([RivalPenalisedClustering(), RivalPenalisedClustering(3, gamma=0.1, epochs=5, seed=1)])
def test_scikit_learn_checks_pass(estimator: Any, check: Any) -> None:
    """A check of scikit-learn\'s raises where it is not met."""
    check(estimator)


@pytest.mark.skipif(not COMPILED, reason="sixteen thousand presentations need compiled kernels")
def test_it_finds_how_many_clusters_there_are() -> None:
    rows, which = draw(600)
    model = RivalPenalisedClustering()
    labels = model.fit_predict(rows)
    assert model.n_clusters_ == 4
    assert adjusted_rand_score(which, labels) > 0.98
    np.testing.assert_array_equal(labels, model.predict(rows))
    assert model.n_examples_ == 600
    nearest = np.linalg.norm(CENTRES[:, None] - model.cluster_centers_, axis=2)
    assert nearest.min(axis=1).max() < 3.0  # rivals push even the clusters that stay
    distances = model.transform(rows)
    wanted = np.linalg.norm(rows[:, None] - model.cluster_centers_, axis=2)
    np.testing.assert_allclose(distances, wanted, rtol=1e-9)
    np.testing.assert_array_equal(np.argmin(distances, axis=1), labels)
    assert model.get_feature_names_out().tolist() == [f"rivalpenalisedclustering{j}" for j in range(4)]


@pytest.mark.parametrize("factor", [1e-120, 1e-3, 1e120])
def test_clusters_are_the_same_in_any_unit_and_anywhere(factor: float) -> None:
    rows, _ = draw(200)
    one = RivalPenalisedClustering(epochs=5).fit(rows)
    two = RivalPenalisedClustering(epochs=5).fit(factor * (rows + 1000.0))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_allclose(two.cluster_centers_ / factor - 1000.0, one.cluster_centers_, atol=1e-8)
    streams = [RivalPenalisedClustering().partial_fit(x) for x in (rows, factor * (rows + 1000.0))]
    np.testing.assert_array_equal(streams[0].labels_, streams[1].labels_)


def test_chunks_of_any_size_are_learnt_alike_and_dicts_as_rows() -> None:
    rows, _ = draw(300)
    rows[5:40] = rows[4]  # the first rows may repeat
    at_once = RivalPenalisedClustering().partial_fit(rows)
    for sizes in ([1] * 300, [3, 37, 100, 160]):
        model, start = RivalPenalisedClustering(), 0
        for size in sizes:
            model.partial_fit(rows[start : start + size])
            start += size
        np.testing.assert_array_equal(model.cluster_centers_, at_once.cluster_centers_)
    by_dict = RivalPenalisedClustering()
    assert by_dict.predict_one({"a": 1.0, "b": 2.0}) == 0
    for x in as_dicts(rows):
        by_dict.learn_one(x)
    np.testing.assert_array_equal(by_dict.cluster_centers_, at_once.cluster_centers_)
    assert [by_dict.predict_one(x) for x in as_dicts(rows[:20])] == at_once.predict(rows[:20]).tolist()
    assert by_dict.n_examples_ == 300


def test_a_stream_of_few_different_rows_has_so_many_clusters() -> None:
    rows = np.tile([[0.0, 0.0], [1.0, -0.0], [0.0, 1e130]], (20, 1))
    model = RivalPenalisedClustering().partial_fit(rows)
    assert model.n_clusters_ == 3
    np.testing.assert_array_equal(model.predict(rows), np.tile([0, 1, 2], 20))
    np.testing.assert_array_equal(model.cluster_centers_, rows[:3])


@pytest.mark.skipif(not COMPILED, reason="many thousands of rows need compiled kernels")
@pytest.mark.slow
def test_a_stream_is_left_with_its_clusters() -> None:
    """Ten units, 10,000 rows in one pass, 20 draws of four clusters: the standard error of the share is below 0.11."""
    found = []
    for seed in range(20):
        rows, _ = draw(10_000, seed)
        found.append(RivalPenalisedClustering(gamma=0.3).partial_fit(rows).n_clusters_)
    assert np.mean(np.array(found) == 4) >= 0.7


@pytest.mark.skipif(not COMPILED, reason="many thousands of rows need compiled kernels")
def test_centres_follow_clusters_that_move() -> None:
    rows, which = draw(6000)
    moved = rows + np.linspace(0.0, 30.0, 6000)[:, None]
    model = RivalPenalisedClustering(4, gamma=0.05).partial_fit(moved)
    assert adjusted_rand_score(which[-500:], model.predict(moved[-500:])) > 0.95


def test_a_fit_goes_on_as_a_stream() -> None:
    rows, _ = draw(300)
    model = RivalPenalisedClustering(epochs=10).fit(rows)
    before = model.cluster_centers_
    winner = int(np.argmin(model.transform(before[:1])))
    model.partial_fit(before[:1] + 0.2)  # nearest to the first: one that was driven out does not take it
    assert model.n_examples_ == 301
    assert model.n_clusters_ == len(before)
    np.testing.assert_allclose(model.cluster_centers_[winner], before[0] + 0.05 * 0.2, atol=1e-9)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_clusters": 0}, "`n_clusters` must be a whole number, at least 1; got 0"),
        ({"n_clusters": 2.5}, "`n_clusters` must be a whole number"),
        ({"gamma": 1.0}, "`gamma` must be at least 0 and below 1; got 1.0"),
        ({"gamma": math.nan}, "`gamma` must be"),
        ({"rate": 0.0}, "`rate` must be above 0 and at most 1; got 0.0"),
        ({"epochs": 0}, "`epochs` must be a whole number, at least 1; got 0"),
        ({"seed": -1}, "`seed` must be a whole number, at least 0; got -1"),
    ],
)
def test_what_cannot_be_is_named(params: dict[str, Any], message: str) -> None:
    for learn in ("fit", "partial_fit"):
        with pytest.raises(InvalidSpec, match=message):
            getattr(RivalPenalisedClustering(**params), learn)([[0.0, 1.0], [1.0, 0.0]])


def test_rows_that_cannot_be_learnt_change_nothing() -> None:
    rows, _ = draw(50)
    with pytest.raises(InvalidFeatures, match="below 1e\\+140"):
        RivalPenalisedClustering().fit([[1e200, 0.0], [0.0, 0.0]])
    fresh = RivalPenalisedClustering()
    with pytest.raises(InvalidFeatures, match="takes no missing values"):
        fresh.learn_one({"a": 1.0, "b": None})
    with pytest.raises(InvalidFeatures, match=r"times the spread of the first rows.* got 1e\+120 in row 20"):
        fresh.partial_fit(np.concatenate([rows[:20], [[1e120, 0.0]]]))
    assert not fresh._begun()
    model = RivalPenalisedClustering().partial_fit(rows)
    before = model.cluster_centers_
    for bad in ([[1e120, 0.0]], [[np.nan, 0.0]], [[1.0, 2.0, 3.0]]):
        with pytest.raises(ValueError, match=r"spread|NaN|3 features"):
            model.partial_fit(bad)
    with pytest.raises(InvalidFeatures, match="has learnt rows without names; got a dict"):
        model.learn_one({"a": 1.0, "b": 2.0})
    np.testing.assert_array_equal(model.cluster_centers_, before)
    named = RivalPenalisedClustering()
    named.learn_one({"a": 1.0, "b": 2.0})
    for x, message in (
        ({"a": 1.0}, "must have the names that came first"),
        ({"a": 1.0, "b": "x"}, "feature 'b' must be a number"),
    ):
        with pytest.raises(InvalidFeatures, match=message):
            named.learn_one(x)
    with pytest.raises(InvalidFeatures, match="has learnt dicts"):
        named.partial_fit(rows)


@pytest.mark.parametrize("how", ["fit", "partial_fit", "few rows", "dicts", "nothing"])
def test_a_file_and_a_pickle_go_on_to_the_last_bit(how: str, tmp_path: Path) -> None:
    rows, _ = draw(120)
    model = RivalPenalisedClustering(gamma=0.2, epochs=3)
    if how == "dicts":
        for x in as_dicts(rows):
            model.learn_one(x)
    elif how != "nothing":
        getattr(model, "fit" if how == "fit" else "partial_fit")(rows[: 4 if how == "few rows" else 120])
    bayou.save(model, tmp_path / "model.bayou")
    for other in (bayou.load(tmp_path / "model.bayou"), pickle.loads(pickle.dumps(model))):
        again, further = clone(model) if how == "nothing" else pickle.loads(pickle.dumps(model)), other
        assert further.get_params() == model.get_params()
        for one in (again, further):
            for x, row in zip(as_dicts(rows[:30]), rows, strict=False):
                one.learn_one(x if how == "dicts" else row)
        np.testing.assert_array_equal(further.cluster_centers_, again.cluster_centers_)
        assert further.n_examples_ == again.n_examples_
        assert getattr(further, "labels_", None) is None or further.labels_.tolist() == model.labels_.tolist()


def test_a_state_that_does_not_fit_is_refused() -> None:
    config, arrays = RivalPenalisedClustering(epochs=2).fit(draw(60)[0]).to_state()
    for change in (
        State({**config, "n_units": 11}, arrays),
        State({**config, "spread": 0.0}, arrays),
        State({**config, "gathering": True}, arrays),
        State(config, {**arrays, "units.counts": np.full(10, np.nan)}),
        State(config, {**arrays, "units.counts": -np.ones(10)}),
        State(config, {**arrays, "units.centres": np.zeros((10, 3))}),
        State({**config, "names": ["a"]}, arrays),
    ):
        with pytest.raises(ModelFileError):
            RivalPenalisedClustering.from_state(change)


def test_a_picture_of_clusters() -> None:
    rows, _ = draw(100)
    model = RivalPenalisedClustering(epochs=3).fit(rows)
    (axes,) = model.plot(rows).axes
    assert len(axes.collections) == len(np.unique(model.labels_))
    marks = np.array([np.ravel(line.get_data()) for line in axes.lines])
    np.testing.assert_array_equal(marks, model.cluster_centers_)
    model = RivalPenalisedClustering(epochs=1).fit(np.eye(3))
    assert model.plot(np.eye(3), (2, 0)).axes[0].get_xlabel() == "x2"
    with pytest.raises(
        InvalidSpec, match="`columns` must be two of the 3 columns, by place or by name; got \\(0, 3\\)"
    ):
        model.plot(np.eye(3), (0, 3))
    (axes,) = RivalPenalisedClustering(epochs=3).fit(rows[:, :1]).plot(rows[:, :1]).axes
    area = sum(patch.get_height() * patch.get_width() for patch in axes.patches)
    assert area == pytest.approx(1.0)
