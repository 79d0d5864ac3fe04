"""Rows too wide for a bank: one learner, with a calibration behind it that sees the latest labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bayou import Budget, DiagonalGaussian, Hashing, Logistic, OnlineClassifier, load, save
from bayou.calibration import LEAN

WIDE = 260
SEED = 5


def wide_rows(n: int, chance: float = 0.5) -> tuple[Any, Any]:
    """Few columns count, none of them much."""
    random = np.random.default_rng(SEED)
    rows = random.normal(size=(n, WIDE))
    latent = 0.6 * rows[:, :4].sum(axis=1) + np.log(chance / (1.0 - chance))
    return rows, random.uniform(size=n) < 1.0 / (1.0 + np.exp(-latent))


def log_loss(probabilities: Any, labels: Any) -> float:
    return float(-np.log(np.where(labels, probabilities, 1.0 - probabilities)).mean())


def learnt(n: int = 80) -> tuple[OnlineClassifier, Any, Any]:
    rows, labels = wide_rows(n)
    model = OnlineClassifier()
    model.learn_many(rows, labels, classes=[False, True])
    return model, rows, labels


def test_one_learner_of_wide_rows_is_calibrated() -> None:
    model, _, _ = learnt()
    assert model.calibration_ is not None
    assert model.calibration_.n_examples == 80
    assert "calibrated" in model.summary().note
    assert "no bank" not in model.summary().note


@pytest.mark.parametrize(
    "given", [{"likelihood": Logistic()}, {"budget": Budget(microseconds=1.0)}, {"posterior": DiagonalGaussian()}]
)
def test_what_was_set_is_left_as_it_is(given: dict[str, Any]) -> None:
    rows, labels = wide_rows(10)
    model = OnlineClassifier(**given)
    model.learn_many(rows, labels)
    assert model.calibration_ is None


def test_labels_in_long_runs_are_not_won_by_no_change() -> None:
    """Rows sorted by class, a few runs long: to repeat the last label is wrong twice in 600 rows.

    To find that out among ten ways to mend what is said costs the logarithm of ten, and a little more.
    """
    rows, _ = wide_rows(600)
    labels = np.zeros(600, dtype=bool)
    labels[150:350] = True
    given = OnlineClassifier().learn_many(rows, labels, classes=[False, True])[:, 1]
    repeated = np.concatenate([[False], labels[:-1]])
    mistakes = np.concatenate([[0.0], np.cumsum(repeated != labels)[:-1]])
    wrong = (mistakes + 1.0) / (np.arange(600) + 2.0)  # as sure as it has been right so far
    no_change = np.where(repeated, 1.0 - wrong, wrong)
    assert len(labels) * (log_loss(given, labels) - log_loss(no_change, labels)) < np.log(10.0) + 1.0


def test_chunks_and_single_rows_are_the_same() -> None:
    whole, rows, labels = learnt()
    chunks, singles = OnlineClassifier(), OnlineClassifier()
    for part in (slice(0, 7), slice(7, 50), slice(50, 80)):
        chunks.partial_fit(rows[part], labels[part], classes=[False, True])
    for row, label in zip(rows, labels, strict=True):
        singles.learn_one(dict(enumerate(row)), bool(label))
    asked = wide_rows(90)[0][80:]
    assert_allclose(chunks.predict_proba(asked), whole.predict_proba(asked), rtol=1e-9)
    of_dicts = [singles.predict_proba_one(dict(enumerate(row)))[True] for row in asked]
    assert_allclose(of_dicts, whole.predict_proba(asked)[:, 1], rtol=2e-2)  # classes were not named beforehand
    assert_allclose(chunks.log_evidence_, whole.log_evidence_, rtol=1e-9)


def test_evidence_is_that_of_what_was_said() -> None:
    rows, labels = wide_rows(80)
    model = OnlineClassifier()
    given = model.learn_many(rows, labels, classes=[False, True])[:, 1]
    assert_allclose(model.log_evidence_, -80 * log_loss(given, labels), rtol=1e-9)


def test_a_target_that_comes_at_once_is_as_one_that_was_learnt() -> None:
    model, _, _ = learnt()
    other, _, _ = learnt()
    row, asked = wide_rows(82)[0][80:81], wide_rows(82)[0][81:]
    issued = model.forecast_one(row)
    assert_allclose(issued.said[True], model.predict_proba(row)[0, 1], rtol=1e-12)
    model.learn_late(issued.id, True)
    other.partial_fit(row, [True])
    assert_allclose(model.predict_proba(asked), other.predict_proba(asked), rtol=1e-9)
    assert_allclose(model.log_evidence_, other.log_evidence_, rtol=1e-9)


def test_a_late_target_is_weighed_by_what_was_said_then() -> None:
    """Labels that came in between have moved the trail; what was said of the row before is what counts."""
    model, _, _ = learnt()
    later, more = wide_rows(140)
    issued = model.forecast_one(later[80:81])
    model.learn_many(later[81:], np.ones_like(more[81:]))
    before = model.log_evidence_
    assert model.predict_proba(later[80:81])[0, 1] > issued.said[True] + 0.1
    model.learn_late(issued.id, False)
    gained = model.calibration_.gain if model.calibration_ is not None else 0.0
    assert gained != 0.0
    assert model.log_evidence_ < before


def test_saved_and_resumed_to_the_bit(tmp_path: Any) -> None:
    model, _, _ = learnt()
    rows, labels = wide_rows(120)
    issued = model.forecast_one(rows[80:81])
    save(model, tmp_path / "wide.bayou")
    again = load(tmp_path / "wide.bayou")
    for one in (model, again):
        one.partial_fit(rows[81:], labels[81:])
        one.learn_late(issued.id, bool(labels[80]))
    assert_array_equal(model.predict_proba(rows), again.predict_proba(rows))
    assert model.log_evidence_ == again.log_evidence_


def test_a_third_class_goes_on_without() -> None:
    rows, labels = wide_rows(80)
    model = OnlineClassifier()
    model.learn_many(rows, labels.astype(int))
    issued = model.forecast_one(rows[:1])
    model.learn_late(issued.id, 2)
    assert model.calibration_ is None
    assert model.predict_proba(rows[:3]).shape == (3, 3)


def test_a_batch_sorted_by_class_is_learnt_in_an_order_of_its_own() -> None:
    rows, labels = wide_rows(1500)
    order = np.argsort(labels[:1000], kind="stable")
    model = OnlineClassifier().fit(rows[:1000][order], labels[:1000][order])
    asked = model.predict_proba(rows[1000:])[:, 1]
    assert abs(asked.mean() - labels[1000:].mean()) < 0.08  # three standard errors of 500 rows
    assert log_loss(asked, labels[1000:]) < 0.69


# Sparse rows


def hashed_rows(n: int) -> tuple[Any, Any]:
    """Cities that say something, in a stream whose base rate changes every 500 rows."""
    random = np.random.default_rng(SEED)
    cities = random.integers(0, 30, size=n)
    rate = np.where((np.arange(n) // 500) % 2 == 0, -2.0, 1.0)
    labels = random.uniform(size=n) < 1.0 / (1.0 + np.exp(-(rate + 0.05 * (cities - 15))))
    return {"city": np.array([f"city {city}" for city in cities])}, labels


def test_hashed_rows_are_calibrated_where_a_budget_allows_it() -> None:
    rows, labels = hashed_rows(4000)
    plain, lean = (
        OnlineClassifier(encoder=Hashing(bits=12)),
        OnlineClassifier(encoder=Hashing(bits=12), budget=Budget(n_bytes=100_000.0)),  # too few for a bank
    )
    without, given = (model.learn_many(rows, labels)[:, 1] for model in (plain, lean))
    assert plain.calibration_ is None
    assert lean.calibration_ is not None
    assert lean.calibration_.curves == LEAN
    assert (
        log_loss(given[1:], labels[1:]) < log_loss(without[1:], labels[1:]) - 0.02
    )  # the rates are told late, if at all
    assert_allclose(lean.log_evidence_ - plain.log_evidence_, lean.calibration_.gain, rtol=1e-6)


def test_hashed_dicts_and_tables_are_calibrated_alike(tmp_path: Any) -> None:
    rows, labels = hashed_rows(300)
    table, dicts = (OnlineClassifier(encoder=Hashing(bits=12), budget=Budget()) for _ in range(2))
    table.learn_many(rows, labels)
    for city, label in zip(rows["city"].tolist(), labels.tolist(), strict=True):
        dicts.learn_one({"city": city}, label)
    asked = {"city": rows["city"][:5]}
    of_dicts = [dicts.predict_proba_one({"city": city})[True] for city in rows["city"][:5].tolist()]
    assert_allclose(table.predict_proba(asked)[:, 1], of_dicts, rtol=1e-3)
    save(table, tmp_path / "hashed.bayou")
    again = load(tmp_path / "hashed.bayou")
    assert_array_equal(again.predict_proba(asked), table.predict_proba(asked))


def test_a_hashed_batch_sorted_by_class_is_learnt_in_an_order_of_its_own() -> None:
    rows, labels = hashed_rows(2000)
    order = np.argsort(labels, kind="stable")
    model = OnlineClassifier(encoder=Hashing(bits=12), budget=Budget()).fit(
        {"city": rows["city"][order]}, labels[order]
    )
    assert abs(model.predict_proba(rows)[:, 1].mean() - labels.mean()) < 0.05
