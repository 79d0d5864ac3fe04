"""Targets that come late in evaluation: against immediate ones, against the rows told by hand, and by times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayou import OnlineClassifier, OnlineRegressor
from bayou.errors import BayouError
from bayou.evaluation import progressive
from bayou.evaluation.baselines import NoChange, RunningMean
from bayou.evaluation.delays import LateBaseline, arrivals


def classes(n: int = 300) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, 2))
    return rows, (rows[:, 0] + 0.5 * rng.normal(size=n) > 0.0).astype(int)


def last(*given: Any, **options: Any) -> Any:
    *_, report = progressive(*given, **options)
    return report.total


def test_no_delay_is_nearly_what_chunks_say() -> None:
    """But for the first rows, of which nothing is said before each class has come."""
    rows, labels = classes()
    late, usual = (last(OnlineClassifier(), rows, labels, **given) for given in ({"delay": 0}, {}))
    assert late.log_loss.value == pytest.approx(usual.log_loss.value, abs=0.02)
    assert late.no_change_accuracy.value == pytest.approx(usual.no_change_accuracy.value)


def test_what_is_said_knows_no_target_that_has_not_come() -> None:
    """Changing the targets of the last rows changes nothing that is said of rows before they are due."""
    rows, labels = classes(120)
    changed = labels.copy()
    changed[80:] = 1 - changed[80:]
    said = []
    for targets in (labels, changed):
        model, given = OnlineClassifier(), []
        for n in range(120):
            if n >= 20:
                model.learn_late(n - 19, int(targets[n - 20]))  # ids begin at 1
            given.append(model.forecast_one(rows[n]).said)
        said.append(given)
    assert said[0][:100] == said[1][:100]
    assert said[0][100:] != said[1][100:]


def test_a_delay_in_rows_is_one_by_times() -> None:
    rows, labels = classes(150)
    by_rows = last(OnlineClassifier(), rows, labels, delay=10)
    by_times = last(OnlineClassifier(), rows, labels, delay=10.5, times=np.arange(150.0))
    assert by_times.log_loss.value == by_rows.log_loss.value
    days = np.datetime64("2026-01-01") + np.arange(150)
    by_days = last(OnlineClassifier(), rows, labels, delay=np.timedelta64(11, "D"), times=days)
    assert by_days.log_loss.value == by_rows.log_loss.value


def test_numbers_are_scored_from_the_first_target_on() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 2))
    targets = 5.0 + rows @ [1.0, -2.0] + 0.3 * rng.normal(size=200)
    total = last(OnlineRegressor(), rows, targets, delay=7)
    assert total.mae.value < 2.0
    assert total.coverage.value == pytest.approx(0.9, abs=0.065)  # three standard errors of 192 rows


def test_baselines_wait_as_well() -> None:
    due = arrivals(5, 2, None)
    assert LateBaseline(NoChange(), due).learn(np.array([3, 4, 5, 6, 7])).tolist() == [-1, -1, -1, 3, 4]
    assert LateBaseline(RunningMean(), due).learn(np.array([2.0, 4.0, 0.0, 0.0, 0.0])).tolist() == [0, 0, 0, 2, 3]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delay": -1}, "at least 0"),
        ({"delay": 1.5}, "whole number of rows"),
        ({"delay": 1.0, "times": [0.0]}, "one value per row, 300"),
        ({"delay": 1.0, "times": np.arange(300.0)[::-1]}, "must not go back; they do in row 1"),
        ({"delay": -1.0, "times": np.arange(300.0)}, "must not be negative"),
        ({"delay": "day", "times": np.arange(300.0)}, "distance between `times`"),
        ({"times": np.arange(300.0)}, "together with a `delay`"),
    ],
)
def test_what_does_not_fit_is_refused(given: Any, message: str) -> None:
    rows, labels = classes()
    with pytest.raises(BayouError, match=message):
        progressive(OnlineClassifier(), rows, labels, **given)
