"""Few labels, many rows: probabilities by hand, classes that outlast what clusters do, and what cannot be a label."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import bayou
from bayou import HarmonyMixture, LocalFactorAnalysis
from bayou.errors import InvalidFeatures, InvalidTarget, ShapeMismatch
from bayou.estimators.labelled_clusters import MOST_LABELLED
from bayou.numerics.jit import COMPILED
from tests.mixtures.made import clusters


def few(labels: np.ndarray, n: int, seed: int) -> np.ndarray:
    """So many rows of each cluster."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.choice(np.flatnonzero(labels == k), n, replace=False) for k in np.unique(labels)])


def test_against_a_computation_by_hand() -> None:
    """Two clusters far apart, three labels: 2 of a and 1 of b in the one, 1 of b in the other; shares 1/2 and 1/2."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0.0, 1.0, (100, 2)), rng.normal(50.0, 1.0, (100, 2))])
    model = HarmonyMixture().fit(X)
    model.label([X[0], X[1]], ["a", "a"])
    model.label([X[2], X[150]], ["b", "b"])
    assert model.label_classes_.tolist() == ["a", "b"]
    found = model.predict_label_proba([[0.0, 0.0], [50.0, 50.0]])
    np.testing.assert_allclose(found, [[2.5 / 4.0, 1.5 / 4.0], [0.5 / 2.0, 1.5 / 2.0]], atol=1e-12)
    assert model.predict_label([[0.0, 0.0], [50.0, 50.0]]).tolist() == ["a", "b"]
    model.label([X[151]], ["c"])  # shares of 2/5, 2/5 and 1/5 now
    found = model.predict_label_proba([[0.0, 0.0], [50.0, 50.0]])
    np.testing.assert_allclose(found, [[2.4 / 4, 1.4 / 4, 0.2 / 4], [0.4 / 3, 1.4 / 3, 1.2 / 3]], atol=1e-12)


def test_rows_between_clusters_count_for_both() -> None:
    """Written out, from the clusters' probabilities alone."""
    X = clusters(2, 3, 600, 4.0, 0)[0]
    model = HarmonyMixture(matching=1.0).fit(X)
    rows, y = X[:40], np.arange(40) % 3 + 5
    model.label(rows, y)
    owned = model.predict_proba(rows)
    expected = np.zeros((len(X), 3))
    for cluster in range(model.n_clusters_):
        for place, label in enumerate((5, 6, 7)):
            count = sum(owned[row, cluster] for row in range(40) if y[row] == label)
            mean = (count + np.mean(y == label)) / (owned[:, cluster].sum() + 1.0)
            expected[:, place] += model.predict_proba(X)[:, cluster] * mean
    np.testing.assert_allclose(model.predict_label_proba(X), expected, rtol=1e-12)
    assert model.label_classes_.dtype == np.int64


def test_two_labels_per_cluster_are_almost_as_good_as_all() -> None:
    """On fresh rows, against the mixture of the true labels' Gaussians, which no classifier can beat by much."""
    for seed in range(3):
        X, labels = clusters(2, 3, 3000, 5.0, seed)
        names, model = np.array(["red", "green", "blue"])[labels], HarmonyMixture(seed=seed).fit(X[:1000])
        chosen = few(labels[:1000], 2, seed)
        model.label(X[chosen], names[chosen])
        told = np.mean(model.predict_label(X[1000:]) == names[1000:])
        log_density = np.stack(
            [
                np.log(np.mean(labels[:1000] == k))
                - 0.5 * np.linalg.slogdet(np.cov(own.T))[1]
                - 0.5
                * np.einsum("ni,ij,nj->n", X[1000:] - own.mean(0), np.linalg.inv(np.cov(own.T)), X[1000:] - own.mean(0))
                for k, own in ((k, X[:1000][labels[:1000] == k]) for k in range(3))
            ]
        )
        best = np.mean(np.argmax(log_density, axis=0) == labels[1000:])
        assert told > best - 0.01  # standard error of the difference: below 0.002


@pytest.mark.skipif(not COMPILED, reason="thousands of points need compiled kernels")
def test_labels_outlast_a_cluster_that_splits() -> None:
    """At first there is one cluster; what it was labelled by tells its two parts apart, without a further label."""
    rng = np.random.default_rng(0)
    near = np.concatenate([rng.normal([-1.2, 0.0], 1.0, (150, 2)), rng.normal([1.2, 0.0], 1.0, (150, 2))])
    model = HarmonyMixture().partial_fit(near[rng.permutation(300)])
    assert model.n_clusters_ == 1
    spots = np.array([[-6.0, 0.0], [-5.0, 0.5], [6.0, 0.0], [5.0, -0.5]])
    model.label(spots, ["left", "left", "right", "right"])
    np.testing.assert_allclose(model.predict_label_proba(spots), 0.5)
    far = np.concatenate([rng.normal([-6.0, 0.0], 1.0, (2000, 2)), rng.normal([6.0, 0.0], 1.0, (2000, 2))])
    model.partial_fit(far[rng.permutation(4000)])
    assert model.n_clusters_ > 1
    assert np.mean(model.predict_label(far) == np.repeat(["left", "right"], 2000)) > 0.98


def test_only_what_changed_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    X, labels = clusters(2, 2, 400, 6.0, 0)
    model, sizes = HarmonyMixture().partial_fit(X[:300]), []
    model.label(X[:7], labels[:7])
    chances = model._chances
    monkeypatch.setattr(model, "_chances", lambda rows: sizes.append(len(rows)) or chances(rows))
    model.predict_label(X[:3])
    model.predict_label(X[:3])
    assert sizes == [7, 3, 3]
    model.partial_fit(X[300:])
    model.predict_label(X[:3])
    assert sizes == [7, 3, 3, 7, 3]


def test_the_latest_are_kept() -> None:
    X, _ = clusters(2, 2, 1300, 6.0, 0)
    model = HarmonyMixture().fit(X[:200])
    model.label(X[:200], ["old"] * 200)
    model.label(X[200:], ["new"] * 1100)
    assert model.label_classes_.tolist() == ["new"]
    assert len(model._labelled.rows) == MOST_LABELLED
    np.testing.assert_array_equal(model._labelled.rows, X[-MOST_LABELLED:])
    np.testing.assert_allclose(model.predict_label_proba(X), 1.0, rtol=1e-12)


@pytest.mark.parametrize("kind", [HarmonyMixture, LocalFactorAnalysis])
@pytest.mark.parametrize(
    "names",
    [("a", "b"), (True, False), (3, 1), (0.5, 1.5), (("x", 1), ("x", 2))],
    ids=lambda names: str(type(names[0])),
)
def test_files_and_pickles(kind: Any, names: tuple[Any, Any], tmp_path: Path) -> None:
    X, labels = clusters(3, 2, 500, 6.0, 0)
    model = kind().partial_fit(X[:300])
    chosen = few(labels, 3, 0)
    model.label(X[chosen], [names[k] for k in labels[chosen]])
    bayou.save(model, tmp_path / "model.bayou")
    for other in (bayou.load(tmp_path / "model.bayou"), pickle.loads(pickle.dumps(model))):
        assert other.label_classes_.tolist() == sorted(names)
        assert other.label_classes_.dtype == model.label_classes_.dtype
        np.testing.assert_array_equal(other.predict_label_proba(X), model.predict_label_proba(X))
        other.partial_fit(X[300:])
        other.label(X[:1], [names[labels[0]]])
        right = [found == names[k] for found, k in zip(other.predict_label(X).tolist(), labels, strict=True)]
        assert np.mean(right) > 0.97


def test_labels_of_dicts_and_of_series() -> None:
    X, labels = clusters(2, 2, 150, 6.0, 0)
    model = HarmonyMixture()
    for a, b in X.tolist():
        model.learn_one({"a": a, "b": b})
    listed = [{"a": a, "b": b} for a, b in X.tolist()]
    model.label(listed[:10], pd.Series(labels[:10]).map({0: "no", 1: "yes"}))
    assert np.mean(model.predict_label(listed) == np.array(["no", "yes"])[labels]) > 0.97


def test_a_fit_forgets_labels_but_a_stream_that_has_just_begun_takes_them() -> None:
    X, labels = clusters(2, 2, 400, 6.0, 0)
    model = HarmonyMixture().partial_fit(X[:40])
    model.label(X[:10], labels[:10])
    assert np.mean(model.predict_label(X) == labels) > 0.97
    assert np.mean(model.partial_fit(X[40:]).predict_label(X) == labels) > 0.97
    with pytest.raises(NotFittedError, match="knows no labels yet; call `label`"):
        model.fit(X).predict_label(X)


def test_what_cannot_be_a_label() -> None:
    X, _ = clusters(2, 2, 200, 6.0, 0)
    with pytest.raises(NotFittedError, match="has learnt nothing yet"):
        HarmonyMixture().label(X[:1], ["a"])
    with pytest.raises(NotFittedError, match="has learnt nothing yet"):
        HarmonyMixture().predict_label(X)
    model = HarmonyMixture().fit(X)
    for ask in (model.predict_label, model.predict_label_proba, lambda _: model.label_classes_):
        with pytest.raises(
            NotFittedError, match="This HarmonyMixture knows no labels yet; call `label` with some rows"
        ):
            ask(X)
    model.label(X[:2], ["a", "b"])
    before = model.predict_label_proba(X)
    for y, wrong, message in (
        (["a"], ShapeMismatch, "`y` must have one label per row, 2; got 1"),
        (["a", np.nan], InvalidTarget, "got nan in row 1. Leave out the rows that have no label"),
        (np.array([1.0, np.nan]), InvalidTarget, "got nan in row 1"),
        (["a", None], InvalidTarget, "got None in row 1"),
        (["a", pd.NA], InvalidTarget, "got <NA> in row 1"),
        (["a", ["b"]], InvalidTarget, r"got \['b'\] in row 1"),
        (["a", 1], InvalidTarget, "labels must be of one type; got 1 beside 'a'"),
        ([1, 2], InvalidTarget, "labels must be of one type; got 1 beside 'a'"),
        ("ab", InvalidTarget, "`y` must be the labels of the rows, one each; got 'ab'"),
        (None, InvalidTarget, "got None"),
    ):
        with pytest.raises(wrong, match=message):
            model.label(X[:2], y)
    with pytest.raises(InvalidFeatures, match="times the spread of the first rows"):
        model.label([[1e120, 0.0]], ["a"])
    with pytest.raises(ValueError, match="NaN"):
        model.label([[np.nan, 0.0]], ["a"])
    np.testing.assert_array_equal(model.predict_label_proba(X), before)
