"""The two perceptrons as scikit-learn classifiers: two classes, honest probabilities, rows, dicts and files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss

import bayou
from bayou.errors import InvalidSpec, InvalidTarget
from bayou.estimators import NormalisedPerceptron, ShiftedPerceptron
from bayou.numerics.jit import COMPILED
from bayou.schedules import ConstantRate, OptimalRate

EVERYONE = [
    NormalisedPerceptron(),
    NormalisedPerceptron(OptimalRate(), standardize=False),
    NormalisedPerceptron(ConstantRate(), normalise=False, fit_intercept=False, standardize=False),
    ShiftedPerceptron(),
    ShiftedPerceptron("mean", standardize=False),
]
everyone = pytest.mark.parametrize("model", EVERYONE, ids=repr)
NAMES = ("a", "b", "c")


def stream(n: int, flips: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(loc=[0.5, 0.0, 1.0], size=(n, 3))
    answers = rows @ [1.0, -1.0, 0.5] > 0.0
    return rows, np.array(["no", "yes"])[(answers ^ (rng.random(n) < flips)).astype(int)]


def as_dicts(rows: np.ndarray) -> list[dict[str, float]]:
    return [dict(zip(NAMES, row.tolist(), strict=True)) for row in rows]


@everyone
def test_it_learns_what_a_hyperplane_divides(model: Any) -> None:
    rows, labels = stream(3000)
    fitted = clone(model).fit(rows[:2000], labels[:2000])
    assert fitted.score(rows[2000:], labels[2000:]) > 0.94
    direction = fitted.coef_[0] / np.linalg.norm(fitted.coef_)
    assert direction @ [1.0, -1.0, 0.5] / 1.5 > 0.98
    assert abs(float(fitted.intercept_[0])) < 0.2 * np.linalg.norm(fitted.coef_)


@everyone
@pytest.mark.parametrize("weighted", [False, True])
def test_chunks_of_any_size_are_learnt_and_believed_alike(model: Any, weighted: bool) -> None:
    rows, labels = stream(120, flips=0.1)
    rows[::7, 1] = np.nan
    weights = np.random.default_rng(1).uniform(0.0, 3.0, 120) if weighted else None
    results = []
    for sizes in ([120], [1] * 120, [5, 70, 45]):
        fresh, start, given = clone(model), 0, []
        for size in sizes:
            part = slice(start, start + size)
            counts = None if weights is None else weights[part]
            given.append(fresh.learn_many(rows[part], labels[part], ["no", "yes"], counts))
            start += size
        results.append((np.concatenate(given), fresh.coef_, fresh.error_rate_, fresh.log_evidence_))
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-10)


@everyone
def test_dicts_are_learnt_as_rows_are(model: Any) -> None:
    rows, labels = stream(150, flips=0.1)
    by_row, by_dict = clone(model).partial_fit(rows, labels), clone(model)
    assert by_dict.predict_proba_one({"a": 1.0}) == {}
    for x, y in zip(as_dicts(rows), labels.tolist(), strict=True):
        by_dict.learn_one(x, y)
    np.testing.assert_array_equal(by_dict.coef_, by_row.coef_)
    assert by_dict.log_evidence_ == pytest.approx(by_row.log_evidence_, rel=1e-12)
    for row, x in zip(rows[:20], as_dicts(rows), strict=False):
        probabilities = by_dict.predict_proba_one(x)
        wanted = by_row.predict_proba([row])[0]
        np.testing.assert_allclose([probabilities[label] for label in by_row.classes_], wanted, rtol=1e-12)
        assert by_dict.predict_one(x) == by_row.predict([row])[0]


@everyone
def test_answers_probabilities_and_decisions_agree(model: Any) -> None:
    rows, labels = stream(500, flips=0.2)
    fitted = clone(model).fit(rows, labels)
    answers, probabilities = fitted.predict(rows), fitted.predict_proba(rows)
    np.testing.assert_array_equal(fitted.classes_[(fitted.decision_function(rows) > 0.0).astype(int)], answers)
    np.testing.assert_allclose(probabilities.max(axis=1), 1.0 - fitted.error_rate_)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(rows)), probabilities)
    raw = rows @ fitted.coef_[0] + fitted.intercept_[0]
    np.testing.assert_allclose(fitted.decision_function(rows), raw, rtol=1e-9, atol=1e-12)


@pytest.mark.skipif(not COMPILED, reason="ten thousand rows need compiled kernels")
@everyone
def test_probabilities_are_as_frequent_as_they_say(model: Any) -> None:
    """The share of right answers is the probability they were given, each before its target was seen."""
    rows, labels = stream(10_000, flips=0.2)
    given = clone(model).learn_many(rows, labels, ["no", "yes"])
    answers = np.array(["no", "yes"])[np.argmax(given, axis=1)]
    late = slice(1000, None)
    # the standard error of 9,000 answers is 0.005, and the account's own memory of a thousand adds as much
    assert np.mean(answers[late] == labels[late]) == pytest.approx(given[late].max(axis=1).mean(), abs=0.015)


@everyone
def test_the_evidence_is_that_of_the_probabilities_given_before(model: Any) -> None:
    rows, labels = stream(300, flips=0.1)
    fresh = clone(model)
    given = fresh.learn_many(rows, labels, ["no", "yes"])
    wanted = -300.0 * log_loss(labels, given, labels=["no", "yes"])
    assert fresh.log_evidence_ == pytest.approx(wanted, rel=1e-9)
    assert math.isfinite(wanted)


@everyone
def test_a_missing_value_makes_an_answer_less_sure(model: Any) -> None:
    rows, labels = stream(1000)
    fitted = clone(model).fit(rows, labels)
    whole, part = fitted.predict_proba([[1.0, -1.0, 2.0], [1.0, np.nan, 2.0]]).max(axis=1)
    assert 0.5 < part < whole


@everyone
def test_a_third_class_is_refused_and_nothing_changes(model: Any) -> None:
    rows, labels = stream(60)
    with pytest.raises(InvalidTarget, match=r"Only binary classification is supported\..*got"):
        clone(model).fit(rows, np.arange(60) % 3)
    fresh = clone(model)
    with pytest.raises(InvalidTarget, match="Only binary"):
        fresh.partial_fit(rows, np.arange(60) % 3)
    assert not hasattr(fresh, "classes_")
    fitted = clone(model).fit(rows, labels)
    before = fitted.coef_.copy()
    for attempt in (
        lambda: fitted.partial_fit(rows, ["perhaps"] * 60),
        lambda: fitted.partial_fit(rows, labels, classes=["no", "perhaps", "yes"]),
        lambda: fitted.learn_one({"a": 1.0}, "perhaps"),
    ):
        with pytest.raises(InvalidTarget, match="Only binary"):
            attempt()
    np.testing.assert_array_equal(fitted.coef_, before)
    assert fitted.n_examples_ == 60
    alone = clone(model).partial_fit(rows[:5], ["no"] * 5)
    with pytest.raises(InvalidTarget, match="Only binary"):
        alone.partial_fit(rows[:2], ["yes", "perhaps"])
    assert alone.classes_.tolist() == ["no"]
    assert alone.predict(rows[:2]).tolist() == ["no", "no"]


@everyone
def test_a_weight_of_two_is_the_row_twice(model: Any) -> None:
    rows, labels = stream(60, flips=0.1)
    weighted = clone(model).fit(rows, labels, sample_weight=np.full(60, 2.0))
    twice = clone(model).fit(np.repeat(rows, 2, axis=0), np.repeat(labels, 2))
    np.testing.assert_allclose(weighted.coef_, twice.coef_, rtol=1e-6, atol=1e-9)
    assert weighted.error_rate_ == pytest.approx(twice.error_rate_)


@everyone
def test_a_file_continues_to_the_last_bit(model: Any, tmp_path: Path) -> None:
    rows, labels = stream(200, flips=0.1)
    fitted = clone(model).fit(rows[:100], labels[:100])
    bayou.save(fitted, tmp_path / "model.bayou")
    loaded = bayou.load(tmp_path / "model.bayou")
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict_proba(rows), fitted.predict_proba(rows))
    for each in (fitted, loaded):
        each.partial_fit(rows[100:], labels[100:])
    np.testing.assert_array_equal(loaded.coef_, fitted.coef_)
    assert loaded.error_rate_ == fitted.error_rate_
    assert loaded.log_evidence_ == fitted.log_evidence_


def test_the_shifted_perceptron_says_which_shift_it_uses() -> None:
    rows, labels = stream(2000, flips=0.2)
    model = ShiftedPerceptron().partial_fit(rows[:5], labels[:5])
    assert model.shift_ == "none"
    assert str(model.summary()).endswith("\nshift: none")
    assert model.partial_fit(rows, labels).shift_ == "projection"
    assert str(model.summary()).endswith("\nshift: projection")
    assert str(model.summary().most_certain(2)).endswith("\nshift: projection")
    assert ShiftedPerceptron("mean").fit(rows, labels).shift_ == "mean"
    assert model.flip_rate_ == pytest.approx(0.2, abs=0.05)
    with pytest.raises(InvalidSpec, match="`shift` must be one of"):
        ShiftedPerceptron("median").fit(rows, labels)


def test_the_shifted_perceptron_scales_but_does_not_centre() -> None:
    rows, labels = stream(2000, flips=0.2)
    units = np.array([1.0, 100.0, 0.01])
    one, other = ShiftedPerceptron().fit(rows, labels), ShiftedPerceptron().fit(rows * units, labels)
    np.testing.assert_allclose(other.coef_ * units, one.coef_, rtol=1e-9)
    assert one.intercept_ == [0.0]
    with pytest.raises(TypeError, match="fit_intercept"):
        ShiftedPerceptron(fit_intercept=True)  # type: ignore[call-arg]


@pytest.mark.skipif(not COMPILED, reason="ten thousand rows need compiled kernels")
def test_flipped_labels_cost_the_shifted_one_less() -> None:
    """Twenty inputs off centre, a fifth of the labels flipped: one perceptron stalls, the other does not."""
    rng = np.random.default_rng(0)
    teacher = rng.normal(size=20)
    teacher /= np.linalg.norm(teacher)
    aside = rng.normal(size=20)
    aside -= (aside @ teacher) * teacher
    centre = 0.8 * teacher + 3.0 * aside / np.linalg.norm(aside)
    rows = rng.normal(size=(30_000, 20)) + centre
    truth = rows @ teacher > 0.0
    labels = truth ^ (rng.random(30_000) < 0.2)
    plain = NormalisedPerceptron(bayou.PowerLawRate(2.0, 0.5), fit_intercept=False).fit(rows, labels)
    shifted = ShiftedPerceptron().fit(rows, labels)
    assert plain.score(rows, truth) < 0.945
    assert shifted.score(rows, truth) > 0.97
