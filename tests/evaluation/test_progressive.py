"""Progressive validation: each row is scored before it is learnt, however rows are cut into chunks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from bayou import OnlineClassifier, OnlineCounter, OnlineRegressor
from bayou.errors import InvalidSpec, ShapeMismatch
from bayou.evaluation import Report, progressive


def rows_of(kind: str) -> tuple[Any, NDArray[Any], NDArray[Any]]:
    """A new model and shuffled rows to learn."""
    random = np.random.default_rng(0)
    if kind == "counts":
        X = random.normal(size=(60, 2))
        return OnlineCounter(), X, random.poisson(np.exp(0.5 + 0.4 * X[:, 0]))
    loader, model = {
        "two classes": (load_breast_cancer, OnlineClassifier()),
        "three classes": (load_iris, OnlineClassifier()),
        "numbers": (load_diabetes, OnlineRegressor()),
    }[kind]
    X, y = loader(return_X_y=True)
    order = random.permutation(len(y))[:150]
    return model, X[order], y[order]


KINDS = ["two classes", "three classes", "numbers", "counts"]


def values(report: Report[Any]) -> list[float]:
    parts = (report.total.metrics(), report.window.metrics())
    return [value for part in parts for metric in part.values() for value in (metric.value, metric.standard_error)]


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_of_any_size_give_the_same_reports(kind: str) -> None:
    model, X, y = rows_of(kind)
    whole = list(progressive(model, X, y, every=40, warm_up=15))
    for chunk in (1, 7):
        cut = list(progressive(rows_of(kind)[0], X, y, chunk=chunk, every=40, warm_up=15))
        assert [report.rows for report in cut] == [report.rows for report in whole]
        for one, other in zip(cut, whole, strict=True):
            assert values(one) == pytest.approx(values(other), rel=1e-9, abs=1e-12, nan_ok=True)


def test_classes_are_predicted_before_they_are_learnt() -> None:
    _, X, y = rows_of("two classes")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    *_, last = progressive(OnlineClassifier(standardize=False), X, y, warm_up=1)
    slow = OnlineClassifier(standardize=False).partial_fit(X[:1], y[:1], classes=[0, 1])
    given = []
    for row, label in zip(X[1:], y[1:], strict=True):
        given.append(slow.predict_proba(row[None])[0])
        slow.partial_fit(row[None], [label])
    truth = np.array(given)[np.arange(len(given)), y[1:]]
    assert last.total.log_loss.value == pytest.approx(-np.log(truth).mean(), rel=1e-9)
    assert last.total.accuracy.value == pytest.approx(np.mean(truth > 0.5), rel=1e-9)


def test_a_target_has_no_part_in_its_own_prediction() -> None:
    for kind in ("two classes", "numbers"):
        model, X, y = rows_of(kind)
        other = y.copy()
        other[-1] = 1 - y[-1]
        given = [type(model)().learn_many(X, targets) for targets in (y, other)]
        last = [part[-1] if isinstance(part, np.ndarray) else part.mean[-1] for part in given]
        # p of one class is one less that of the other
        np.testing.assert_allclose(last[0], last[1], rtol=1e-12, atol=1e-13)


def test_baselines_of_classes_by_hand() -> None:
    y = np.array(["b", "a", "a", "b", "b", "b"])
    X = np.arange(6.0)[:, None]
    *_, last = progressive(OnlineClassifier(), X, y)
    majority = ["a", "b", "a", "a", "a", "b"]  # of counts that start at one each; of equal ones the first
    assert last.total.majority_accuracy.value == np.mean(y == majority)
    assert last.total.majority_log_loss.value == pytest.approx(
        -np.log([1 / 2, 1 / 3, 2 / 4, 2 / 5, 3 / 6, 4 / 7]).mean()
    )
    assert last.total.no_change_accuracy.value == 3 / 6


def test_baselines_of_numbers_by_hand() -> None:
    y = np.array([4.0, 6.0, 8.0])
    *_, last = progressive(OnlineRegressor(), np.eye(3), y)
    assert last.total.mean_mae.value == pytest.approx((4.0 + 2.0 + 3.0) / 3)
    *_, last = progressive(OnlineCounter(), np.eye(3), y.astype(int))
    assert last.total.mean_mae.value == pytest.approx((3.0 + 3.5 + 13 / 3) / 3)


def test_features_help() -> None:
    *_, classes = progressive(*rows_of("two classes"))
    assert classes.total.log_loss.value < 0.5 * classes.total.majority_log_loss.value
    assert classes.total.kappa_temporal.value > 0.5
    *_, numbers = progressive(*rows_of("numbers"), warm_up=50)
    assert numbers.total.rmse.value < numbers.total.mean_rmse.value
    *_, counts = progressive(*rows_of("counts"), warm_up=10)
    assert counts.total.deviance.value < counts.total.mean_deviance.value


def test_scores_that_need_two_classes_or_a_density() -> None:
    model, X, y = rows_of("two classes")
    *_, last = progressive(model, X, y)
    given = rows_of("two classes")[0].learn_many(X, y, np.unique(y))
    assert last.total.auc.value == pytest.approx(roc_auc_score(y, given[:, 1]), abs=1e-3)
    assert last.total.kappa.value == pytest.approx(cohen_kappa_score(y, given.argmax(axis=1)))
    assert "auc" in str(last)
    *_, last = progressive(*rows_of("three classes"))
    assert last.total.auc is None
    assert "auc" not in last.total.metrics()
    assert last.total.balanced_accuracy.n_classes == 3
    *_, last = progressive(*rows_of("numbers"), warm_up=50)
    # The score of a true normal distribution is 1 / sqrt(2) of its mean absolute error.
    assert last.total.crps.value == pytest.approx(last.total.mae.value / np.sqrt(2.0), rel=0.05)
    again = type(last.total).from_state(last.total.to_state())
    assert str(Report(last.rows, last.seconds, again, last.window)) == str(last)


def test_reports_and_progress_come_in_time() -> None:
    seen: list[int] = []
    reports = list(progressive(*rows_of("numbers"), chunk=40, every=60, warm_up=10, progress=seen.append))
    assert [report.rows for report in reports] == [60, 120, 150]
    assert seen == [10, 50, 60, 100, 120, 150]
    assert [report.total.rmse.rows for report in reports] == [50, 110, 140]
    assert [report.window.rmse.rows for report in reports] == [50, 60, 30]
    assert 0.0 < reports[0].seconds < reports[-1].seconds
    assert "after 150 rows" in str(reports[-1])
    assert "nan" not in str(reports[-1])


def test_the_level_of_the_intervals_is_chosen() -> None:
    *_, half = progressive(*rows_of("numbers"), coverage=0.5, warm_up=30)
    assert half.total.coverage.level == 0.5
    assert half.total.coverage.value == pytest.approx(0.5, abs=4 * half.total.coverage.standard_error)


def test_a_taught_model_may_know_more_classes() -> None:
    model, X, y = rows_of("three classes")
    model.fit(X, y)
    *_, last = progressive(model, X[y > 0], y[y > 0])
    assert last.total.accuracy.value > 0.8
    assert last.total.calibration_error.rows.sum() == 100


def test_what_does_not_fit_is_refused_at_once() -> None:
    model, X, y = rows_of("numbers")
    with pytest.raises(ShapeMismatch, match=r"one value per row, 150, at least 1; got shape \(149,\)"):
        progressive(model, X, y[1:])
    with pytest.raises(InvalidSpec, match="`chunk` must be at least 1; got 0"):
        progressive(model, X, y, chunk=0)
    with pytest.raises(InvalidSpec, match="`level` must lie between 0 and 1; got 2"):
        progressive(model, X, y, coverage=2)
