"""Classifiers of three classes or more learn by a bank: whatever comes, and as well as one learner or better."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bayou
from bayou import Budget, FullGaussian, OnlineClassifier
from bayou.errors import InvalidFeatures, InvalidTarget
from bayou.numerics.jit import COMPILED

pytestmark = pytest.mark.skipif(not COMPILED, reason="takes long in plain Python")
GOLDEN = Path(__file__).parent.parent / "golden"


def stream(n: int = 400, d: int = 3, k: int = 4, seed: int = 0, turns: float = 0.0) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    rows, first, last = random.normal(size=(n, d)), random.normal(size=(d, k)), random.normal(size=(d, k))
    angle = turns * np.pi / 2.0 * np.arange(n)[:, None] / n
    latent = 2.0 * (np.cos(angle) * (rows @ first) + np.sin(angle) * (rows @ last))
    return 3.0 * rows + 5.0, np.argmax(latent + random.gumbel(size=(n, k)), axis=1)


def same(one: OnlineClassifier, other: OnlineClassifier) -> None:
    for mine, theirs in zip(one.bank_.belief, other.bank_.belief, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert one.log_evidence_ == pytest.approx(other.log_evidence_, rel=1e-12)


def losses(model: OnlineClassifier, rows: Any, labels: Any, k: int) -> Any:
    given = model.learn_many(rows, labels, classes=range(k))
    np.testing.assert_allclose(given.sum(axis=1), 1.0)
    return -np.log(given[np.arange(len(labels)), labels])


def no_change(labels: Any, k: int) -> Any:
    """Losses of who repeats the last label, as surely as that was right so far."""
    same = labels[1:] == labels[:-1]
    right = (1.0 + np.concatenate([[0], np.cumsum(same)[:-1]])) / (2.0 + np.arange(len(same)))
    return -np.log(np.concatenate([[1.0 / k], np.where(same, right, (1.0 - right) / (k - 1.0))]))


def test_drift_is_followed() -> None:
    rows, labels = stream(3000, turns=2.0)
    bank, alone = (losses(model, rows, labels, 4).mean() for model in models())
    assert bank < alone - 0.1


def test_where_nothing_drifts_little_is_lost() -> None:
    rows, labels = stream(1500)
    bank, alone = (losses(model, rows, labels, 4).mean() for model in models())
    assert bank < alone + 0.01


def models() -> tuple[OnlineClassifier, OnlineClassifier]:
    return OnlineClassifier(), OnlineClassifier(posterior=FullGaussian())


def repeated(n: int, k: int, seed: int) -> Any:
    random = np.random.default_rng(seed)
    labels = random.integers(k, size=n)
    for t in np.flatnonzero(random.random(n) < 0.9).tolist():
        labels[t] = labels[max(t - 1, 0)]
    return labels


@pytest.mark.parametrize("k", [3, 5])
def test_the_last_label_again_is_not_better(k: int) -> None:
    """Inputs that tell a little of the label, as inputs do."""
    labels = repeated(3000, k, k)
    random = np.random.default_rng(1)
    rows = random.normal(size=(3000, 4)) + 0.7 * random.normal(size=(k, 4))[labels]
    assert losses(OnlineClassifier(), rows, labels, k).mean() < no_change(labels, k).mean() - 0.02


def test_the_last_label_again_is_hardly_better_where_inputs_are_noise() -> None:
    """What it costs not to know that, once: some twenty nats."""
    labels = repeated(5000, 4, 2)
    rows = np.random.default_rng(3).normal(size=(5000, 3))
    assert losses(OnlineClassifier(), rows, labels, 4).sum() < no_change(labels, 4).sum() + 20.0


def test_chunks_of_any_size_files_and_pickles_give_the_same_bits(tmp_path: Path) -> None:
    rows, labels = stream()
    rows[::7, 1] = np.nan
    whole, parts = OnlineClassifier().partial_fit(rows, labels), OnlineClassifier()
    for start in range(0, len(rows), 61):
        parts.partial_fit(rows[start : start + 61], labels[start : start + 61])
        parts = pickle.loads(pickle.dumps(parts))
        bayou.save(parts, tmp_path / "model.bayou")
        parts = bayou.load(tmp_path / "model.bayou")
    same(whole, parts)
    np.testing.assert_array_equal(whole.predict_proba(rows), parts.predict_proba(rows))
    assert whole.summary().note == parts.summary().note


def test_a_model_with_a_budget_is_saved(tmp_path: Path) -> None:
    rows, labels = stream(100)
    model = OnlineClassifier(budget=Budget(microseconds=9.0)).fit(rows, labels)
    bayou.save(model, tmp_path / "model.bayou")
    again = bayou.load(tmp_path / "model.bayou")
    same(model, again)
    assert again.budget == model.budget
    assert again.summary().note == model.summary().note


def test_classes_may_appear_at_any_time() -> None:
    rows, labels = stream(900)
    labels = np.where((labels == 3) & (np.arange(900) < 300), 0, labels)  # the last comes late
    labels = np.where((labels == 2) & (np.arange(900) < 100), 1, labels)
    model = OnlineClassifier()
    given = model.learn_many(rows, np.array(["d", "a", "c", "b"])[labels])
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    assert model.bank_.n_latents == 4
    assert model.n_examples_ == 900
    np.testing.assert_allclose(given.sum(axis=1), 1.0)
    assert np.all(given[:100, [1, 2]] == 0.0)
    named = OnlineClassifier().partial_fit(rows, labels, classes=range(4))
    accuracy = np.mean(model.predict(rows[600:]) == np.array(["d", "a", "c", "b"])[labels[600:]])
    assert accuracy > np.mean(named.predict(rows[600:]) == labels[600:]) - 0.03
    assert model.bank_.n_examples == 900


def test_dicts_of_any_names_are_learnt_as_rows_are() -> None:
    rows, labels = stream(200)
    of_rows = OnlineClassifier()
    of_rows.partial_fit(rows[:1], labels[:1])
    of_dicts = OnlineClassifier()
    of_dicts.learn_one({"a": rows[0, 0], "b": rows[0, 1], "c": rows[0, 2]}, int(labels[0]))
    for row, label in zip(rows[1:], labels[1:].tolist(), strict=True):
        of_rows.partial_fit(row[None], [label])
        of_dicts.learn_one(dict(zip("abc", row.tolist(), strict=True)), label)
    same(of_rows, of_dicts)
    told = of_dicts.predict_proba_one({"a": 1.0, "b": None, "z": 3.0})
    assert sum(told.values()) == pytest.approx(1.0)
    assert set(told) == set(labels.tolist())
    of_dicts.learn_one({"a": 1.0, "new": 3.0}, 2)
    of_dicts.learn_one({"new": 2.0}, 9)  # a new input, then a new class
    assert of_dicts.bank_.n_latents == 5
    assert of_dicts.bank_.n_features == 5
    assert len(of_dicts.inspect(100).names) == 4 * 5


def test_forecasts_are_learnt_late_by_the_bank() -> None:
    rows, labels = stream(300)
    model, at_once = (OnlineClassifier().partial_fit(rows[:100], labels[:100], classes=range(4)) for _ in range(2))
    for row, label in zip(rows[100:], labels[100:].tolist(), strict=True):
        issued = model.forecast_one(row)
        assert sum(issued.said.values()) == pytest.approx(1.0)
        model.learn_late(issued.id, label)
        at_once.partial_fit(row[None], [label])
    np.testing.assert_allclose(model.predict_proba(rows), at_once.predict_proba(rows), rtol=1e-6)


def test_forecasts_outlast_files_and_new_classes(tmp_path: Path) -> None:
    rows, labels = stream(200)
    model = OnlineClassifier().partial_fit(rows[:100], labels[:100])
    ids = [model.forecast_one(row).id for row in rows[100:110]]
    bayou.save(model, tmp_path / "model.bayou")
    again = bayou.load(tmp_path / "model.bayou")
    for one in (model, again):
        for place, id in enumerate(ids[:5]):
            one.learn_late(id, int(labels[100 + place]))
    same(model, again)
    model.learn_late(ids[5], 7)
    assert model.bank_.n_latents == 5
    model.learn_late(ids[6], int(labels[106]))
    assert model.n_examples_ == 107


def test_weights_and_intervals_are_told_of_each_class() -> None:
    rows, labels = stream(1500)
    bank, alone = (model.fit(rows, labels) for model in models())
    assert bank.coef_.shape == alone.coef_.shape == (4, 3)
    assert np.corrcoef(bank.coef_.ravel(), alone.coef_.ravel())[0, 1] > 0.99
    assert np.corrcoef(bank.intercept_, alone.intercept_)[0, 1] > 0.99
    low, high = np.moveaxis(bank.coef_interval(0.9), -1, 0)
    assert np.all((low < bank.coef_) & (bank.coef_ < high))
    assert bank.summary().names == alone.summary().names
    assert "members" in bank.summary().note
    assert "4 classes" in bank.summary().note
    logs = bank.predict_log_proba(rows[:5])
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0)


def test_what_cannot_be_afforded_is_left_out_and_said() -> None:
    rows, labels = stream(60, d=10)
    some = OnlineClassifier(budget=Budget(microseconds=8.0)).fit(rows, labels)
    every = OnlineClassifier().fit(rows, labels)
    assert 0 < len(some.bank_.members) < len(every.bank_.members)
    assert all(member.waves is None for member in some.bank_.members)
    none = OnlineClassifier(budget=Budget(microseconds=4.0)).fit(rows, labels)
    assert isinstance(none._learner_, bayou.Learner)
    assert "no bank" in none.summary().note
    assert "4 classes, 10 columns" in none.summary().note


def test_a_class_too_many_for_the_budget_leaves_one_learner_that_knows_the_same() -> None:
    rows, labels = stream(600, k=3)
    model = OnlineClassifier(budget=Budget(microseconds=5.0)).fit(rows, labels)
    before = model.predict_proba(rows[:50])
    assert model.bank_.n_latents == 3
    model.partial_fit(rows[:1], [3])
    assert isinstance(model._learner_, bayou.Learner)
    assert model.n_examples_ == 601
    after = model.predict_proba(rows[:50])[:, :3]
    np.testing.assert_allclose(after / after.sum(axis=1, keepdims=True), before, atol=0.15)


def test_files_of_one_learner_go_on_with_it() -> None:
    model = bayou.load(GOLDEN / "classifier-of-three.bayou")
    assert isinstance(model._learner_, bayou.Learner)
    count = model.n_examples_
    model.partial_fit(np.ones((1, 3)), [5])  # a class more
    assert isinstance(model._learner_, bayou.Learner)
    assert model.n_examples_ == count + 1


def test_mistakes_leave_all_as_it_was() -> None:
    rows, labels = stream(100)
    model, twin = (OnlineClassifier().fit(rows, labels) for _ in range(2))
    with pytest.raises(InvalidTarget):
        model.partial_fit(rows, np.array(["no number"] * len(rows)))
    with pytest.raises(InvalidFeatures):
        model.partial_fit(np.full((1, 3), 1e301), [1])
    with pytest.raises(InvalidTarget):
        model.learn_one({"x": 1.0}, None)
    same(model, twin)
    assert model.classes_.tolist() == twin.classes_.tolist()
