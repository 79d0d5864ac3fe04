"""Dicts whose features come, go, arrive in any order or are missing."""

from __future__ import annotations

import copy
import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from bayou.errors import InvalidFeatures, InvalidTarget
from bayou.estimators import OnlineClassifier, OnlineCounter, OnlineRegressor
from bayou.numerics.jit import COMPILED
from bayou.posteriors import DiagonalGaussian, FullGaussian

NAMES = ("a", "b", "c")


def stream(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 1.0]
    return rows, rows @ [1.0, 0.2, -5.0] + rng.normal(size=n)


def as_dicts(rows: np.ndarray) -> list[dict[str, float]]:
    return [dict(zip(NAMES, row.tolist(), strict=True)) for row in rows]


def test_dicts_are_learnt_as_rows_are() -> None:
    rows, targets = stream(100)
    by_row, by_dict = OnlineRegressor().partial_fit(rows, targets), OnlineRegressor()
    for x, y in zip(as_dicts(rows), targets, strict=True):
        by_dict.learn_one(x, y)
    assert by_dict.predict_one(as_dicts(rows)[0]) == by_row.predict(rows[:1])[0]
    np.testing.assert_array_equal(by_dict.coef_, by_row.coef_)
    assert by_dict.log_evidence_ == pytest.approx(by_row.log_evidence_, rel=1e-12)


def test_classes_are_learnt_as_rows_are() -> None:
    rows, targets = stream(100)
    labels = np.array(["low", "middle", "high"])[np.digitize(targets, [-5.0, -3.0])]
    by_row, by_dict = OnlineClassifier().partial_fit(rows, labels), OnlineClassifier()
    for x, y in zip(as_dicts(rows), labels, strict=True):
        by_dict.learn_one(x, y)
    for row, x in zip(rows[:10], as_dicts(rows), strict=False):
        proba = by_dict.predict_proba_one(x)
        np.testing.assert_allclose(
            [proba[label] for label in by_row.classes_], by_row.predict_proba([row])[0], rtol=1e-9
        )
        assert by_dict.predict_one(x) == by_row.predict([row])[0]


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("posterior", [DiagonalGaussian(), DiagonalGaussian(dtype="float32"), FullGaussian()], ids=repr)
def test_as_they_are_or_standardised_dicts_are_learnt_as_rows_are(posterior: Any, standardize: bool) -> None:
    rows, targets = stream(200)
    labels = np.digitize(targets, [-4.0])
    labels[150:] += rows[150:, 0] > 1.5  # a third class, when the first two have long been known
    by_row, by_dict = (OnlineClassifier(posterior=posterior, standardize=standardize) for _ in range(2))
    by_row.partial_fit(rows, labels)
    for n, (x, y) in enumerate(zip(as_dicts(rows), labels.tolist(), strict=True)):
        by_dict.learn_one(dict(reversed(x.items())) if n % 3 == 1 else x, y)
    assert by_dict.n_examples_ == by_row.n_examples_ == 200
    assert by_dict.log_evidence_ == pytest.approx(by_row.log_evidence_, rel=1e-6)
    np.testing.assert_allclose(by_dict.coef_, by_row.coef_, rtol=1e-4 if posterior.dtype == "float32" else 1e-9)


def test_the_short_way_is_left_where_a_dict_is_not_plain() -> None:
    """Each of these dicts has as many keys as the model knows names, or makes up a value for a name that it lacks."""
    rows, targets = stream(40)
    odd = [
        {"a": 1.0, "b": 2.0, "new": 3.0},
        {"a": 1.0, "b": None, "c": 3.0},
        {"a": 1.0, "b": math.nan, "c": 3.0},
        defaultdict(float, {"a": 1.0, "b": 2.0}),
        Counter({"a": 1, "b": 2, "other": 3}),
        {},
    ]
    plain = [{name: value for name, value in x.items() if value == value and value is not None} for x in odd]
    by_way, by_row = (OnlineClassifier(posterior=DiagonalGaussian(), standardize=False) for _ in range(2))
    for x, y in zip(as_dicts(rows), targets > -4.0, strict=True):
        by_way.learn_one(x, y)
        by_row.learn_one(x, y)
    for x, same in zip(odd, plain, strict=True):
        before = dict(x)
        by_way.learn_one(x, True)
        assert x == before or before["b"] != before["b"]  # nothing was put into the caller's dict
        by_row._short_way = None  # the long way, each time
        by_row.learn_one(same, True)
    assert list(by_way._names) == ["a", "b", "c", "new", "other"]
    assert by_way.n_examples_ == 46
    np.testing.assert_array_equal(by_way.coef_, by_row.coef_)


def test_a_copy_learns_on_its_own_after_the_short_way() -> None:
    rows, targets = stream(20)
    model = OnlineClassifier(posterior=DiagonalGaussian(), standardize=False)
    for x, y in zip(as_dicts(rows), targets > -4.0, strict=True):
        model.learn_one(x, y)
    before = model.coef_.copy()
    twin = copy.deepcopy(model)
    twin.learn_one(as_dicts(rows)[0], True)
    np.testing.assert_array_equal(model.coef_, before)
    model.learn_one(as_dicts(rows)[0], True)
    np.testing.assert_array_equal(model.coef_, twin.coef_)
    assert not np.array_equal(model.coef_, before)


def test_order_does_not_matter() -> None:
    rows, targets = stream(60)
    plain, shuffled = OnlineRegressor(), OnlineRegressor()
    for n, (x, y) in enumerate(zip(as_dicts(rows), targets, strict=True)):
        plain.learn_one(x, y)
        shuffled.learn_one(dict(sorted(x.items(), reverse=bool(n % 2 and n))), y)
    assert plain.predict_one({"c": 1.0, "a": 0.5, "b": 2.0}) == shuffled.predict_one({"a": 0.5, "b": 2.0, "c": 1.0})


def test_features_may_come_and_go() -> None:
    rows, targets = stream(400)
    model = OnlineRegressor()
    for n, (x, y) in enumerate(zip(as_dicts(rows), targets, strict=True)):
        present = {"a": x["a"]} if n < 50 else {"b": x["b"], "a": x["a"]} if n < 100 else x
        model.learn_one(present, y)
    assert set(model._names) == set(NAMES)
    np.testing.assert_allclose(dict(zip(model._names, model.coef_, strict=True))["c"], -5.0, atol=2.0)
    assert math.isfinite(model.predict_one({}))
    assert math.isfinite(model.predict_one({"never seen": 3.0}))


def test_before_anything_was_learnt() -> None:
    assert OnlineRegressor().predict_one({"a": 1.0}) == 0.0
    assert OnlineClassifier().predict_one({"a": 1.0}) is None
    assert OnlineClassifier().predict_proba_one({"a": 1.0}) == {}
    assert OnlineCounter().predict_one({"a": 1.0}) == 0.0


def test_predicting_changes_nothing() -> None:
    rows, targets = stream(30)
    model = OnlineClassifier()
    for x, y in zip(as_dicts(rows), targets > 0.0, strict=True):
        model.learn_one(x, y)
    before = {name: array.copy() for name, array in model.to_state().arrays.items()}
    x = {"new": 1.0, "b": None, "a": math.nan}
    model.predict_proba_one(x)
    assert x == {"new": 1.0, "b": None, "a": x["a"]}
    for name, array in model.to_state().arrays.items():
        np.testing.assert_array_equal(array, before[name])


def test_absent_none_and_nan_are_the_same() -> None:
    rows, targets = stream(200)
    models = [OnlineRegressor() for _ in range(3)]
    rng = np.random.default_rng(4)
    for x, y in zip(as_dicts(rows), targets, strict=True):
        hidden = "b" if rng.uniform() < 0.3 and len(models[0].__dict__) > 5 else None
        for model, absent in zip(models, ("drop", None, math.nan), strict=True):
            given = dict(x)
            if hidden and absent == "drop":
                del given[hidden]
            elif hidden:
                given[hidden] = absent
            model.learn_one(given, y)
    question = {"a": 1.0, "c": 1.0}
    assert models[0].predict_one(question) == models[1].predict_one(question) == models[2].predict_one(question)


@pytest.mark.skipif(not COMPILED, reason="thousands of rows need compiled kernels")
@pytest.mark.parametrize("posterior", [None, DiagonalGaussian(prior_variance=10.0)], ids=repr)
def test_missing_values_treated_beat_zeros_imputed(posterior: Any) -> None:
    rng = np.random.default_rng(0)
    n = 4000
    rows = rng.normal(size=(n, 4)) * [1.0, 3.0, 0.5, 2.0] + [4.0, -6.0, 1.0, 0.0]
    latent = (rows - [4.0, -6.0, 1.0, 0.0]) @ [1.0, 0.6, -2.0, 0.3]
    labels = rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-1.5 * latent))
    missing = rng.uniform(size=rows.shape) < 0.3
    scores = []
    for filled in (np.where(missing, np.nan, rows), np.where(missing, 0.0, rows)):
        model = OnlineClassifier(posterior=posterior)
        given = model.learn_many(filled, labels, classes=[False, True])
        scores.append(np.log(given[np.arange(n), labels.astype(int)]))
    gain = scores[0] - scores[1]
    assert gain.mean() > 3.0 * gain.std() / math.sqrt(n)  # in log loss, by more than three standard errors
    assert gain.mean() > 0.02


def test_a_prediction_is_less_sure_where_a_value_is_missing() -> None:
    rows, targets = stream(500)
    model = OnlineRegressor().fit(rows, targets)
    _, (known, unknown) = model.predict([[0.0, 5.0, 1.0], [np.nan, 5.0, 1.0]], return_std=True)
    assert unknown**2 - known**2 == pytest.approx(1.0, rel=0.3)  # the weight is 1, the feature's variance 1


@pytest.mark.parametrize("model", [OnlineClassifier(), OnlineRegressor(), OnlineCounter()], ids=repr)
@pytest.mark.parametrize(
    ("x", "message"),
    [
        ({"a": "tall"}, "feature 'a' must be a number.*got 'tall'"),
        ({"a": 1.0, "b": [1.0]}, "feature 'b' must be a number"),
        ({"a": 1e200}, r"below 1e\+140"),
        ({"a": math.inf}, r"below 1e\+140"),
        ({"new": "tall"}, "feature 'new' must be a number"),
    ],
)
def test_bad_values_are_named_and_leave_the_model(model: Any, x: dict[str, Any], message: str) -> None:
    fresh = type(model)()
    for n in range(5):
        fresh.learn_one({"a": float(n), "b": 1.0 - n}, n % 2)
    before = copy.deepcopy(fresh)
    for learn in (True, False):
        with pytest.raises(InvalidFeatures, match=message):
            fresh.learn_one(x, 1) if learn or "new" in x else fresh.predict_one(x)
    for name, array in fresh.to_state().arrays.items():
        np.testing.assert_array_equal(array, before.to_state().arrays[name])
    assert fresh._names == before._names


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (OnlineRegressor(), math.nan, "finite number.*got nan"),
        (OnlineRegressor(), "high", "finite number.*got 'high'"),
        (OnlineCounter(), -1, "got -1"),
        (OnlineClassifier(), None, "got None"),
        (OnlineClassifier(), math.nan, "got nan"),
        (OnlineClassifier(), "text", "labels must be of one type; got 'text' after 0"),
    ],
)
def test_bad_targets_are_named_and_leave_the_model(model: Any, y: Any, message: str) -> None:
    fresh = type(model)()
    for n in range(4):
        fresh.learn_one({"a": float(n)}, n % 2)
    before = copy.deepcopy(fresh)
    with pytest.raises(InvalidTarget, match=message):
        fresh.learn_one({"a": 1.0, "b": 2.0}, y)
    for name, array in fresh.to_state().arrays.items():
        np.testing.assert_array_equal(array, before.to_state().arrays[name])
