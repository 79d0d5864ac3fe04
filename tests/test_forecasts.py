"""Forecasts of many examples at once: the same to the bit as one after the other, and all or none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bayou import Bank, Gaussian, Member, OnlineClassifier, OnlineCounter, OnlineRegressor, Probit, Softmax
from bayou.errors import BayouError, InvalidSpec
from bayou.estimators import forecasts
from bayou.numerics.jit import COMPILED

MANY = 60 if COMPILED else 12
BANKS: dict[str, Callable[[], Bank]] = {
    "labels": lambda: Bank([Member(Probit(), drift) for drift in (0.0, 1e-3, 1e-2, 0.1, 0.2)], 3),
    "numbers": lambda: Bank([Member(Gaussian(), 1e-2, noise_memory=100.0, past=past) for past in (0, 2)], 3),
    "classes": lambda: Bank([Member(Softmax(3), drift, past=past) for drift in (0.0, 0.1) for past in (0, 1)], 3),
}


def rows_of(n: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(n, 3))


def targets_of(kind: str, rows: Any) -> Any:
    latent = rows @ [1.0, -2.0, 0.5]
    if kind == "numbers":
        return latent
    return np.digitize(latent, [-1.0, 1.0]).astype(float) if kind == "classes" else np.where(latent > 0.0, 1.0, -1.0)


def assert_same(one: Any, two: Any) -> None:
    """Every array of two banks, or of two forecasts."""
    for own, other in zip(one, two, strict=True):
        if isinstance(own, np.ndarray):
            np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("kind", BANKS)
def test_banks_forecast_many_as_they_forecast_one(kind: str) -> None:
    rows = rows_of(MANY)
    targets, missing = targets_of(kind, rows), np.random.default_rng(1).random(rows.shape) < 0.1
    rows[missing] = 0.0
    singly, together = BANKS[kind](), BANKS[kind]()
    half = MANY // 2
    for bank in (singly, together):
        bank.learn_many(rows[:half], targets[:half])
    one_by_one = [singly.forecast(x, mask) for x, mask in zip(rows[half:], missing[half:], strict=True)]
    said, each = together.forecast_many(rows[half:], missing[half:])
    for one, other in zip(one_by_one, each, strict=True):
        assert_same(one, other)
        assert one.step == other.step
    assert_same(singly.belief, together.belief)
    alone = [one.prediction.log_probability(y) for one, y in zip(one_by_one, targets[half:], strict=True)]
    np.testing.assert_allclose(said.log_probability(targets[half:]), alone, rtol=1e-12)
    for n in np.random.default_rng(2).permutation(len(each)):
        singly.learn_late(one_by_one[n], targets[half + n])
        together.learn_late(each[n], targets[half + n])
    assert_same(singly.belief, together.belief)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (OnlineClassifier, "labels"),
        (OnlineClassifier, "classes"),
        (OnlineRegressor, "numbers"),
        (OnlineCounter, "counts"),
    ],
)
@pytest.mark.parametrize("as_dicts", [False, True], ids=["rows", "dicts"])
def test_estimators_forecast_many_as_they_forecast_one(make: Any, kind: str, as_dicts: bool) -> None:
    rows = rows_of(MANY, seed=3)
    targets = np.round(np.exp(rows[:, 0])) if kind == "counts" else targets_of(kind, rows)
    rows[::7, 1] = np.nan
    half, waiting = MANY // 2, []
    for alone in (True, False):
        model = make()
        examples: Any = rows
        if as_dicts:
            examples = [{"a": a, "b": None if np.isnan(b) else b, "c": c} for a, b, c in rows.tolist()]
            for x, y in zip(examples[:half], targets[:half], strict=True):
                model.learn_one(x, y)
        else:
            model.partial_fit(
                rows[:half],
                targets[:half],
                **({"classes": np.unique(targets)} if kind in ("labels", "classes") else {}),
            )
        late = examples[half:]
        issued = [model.forecast_one(x) for x in late] if alone else model.forecast_many(late)
        waiting.append((model, issued))
    (one, issued_alone), (other, issued_together) = waiting
    for own, its in zip(issued_alone, issued_together, strict=True):
        assert own.id == its.id
        assert own.said == its.said if isinstance(own.said, dict) else own.said.mean == its.said.mean
    for own, target in zip(issued_alone, targets[half:], strict=True):
        one.learn_late(own.id, target)
        other.learn_late(own.id, target)
    assert_same(one._learner_.belief, other._learner_.belief)


def test_before_anything_was_learnt_many_wait_as_well() -> None:
    model = OnlineRegressor()
    issued = model.forecast_many(rows_of(3))
    assert [one.said for one in issued] == [None] * 3
    for one in issued:
        model.learn_late(one.id, 1.0)
    assert model.forecast_many([]) == []


@pytest.mark.parametrize("bad", [np.zeros((1, 4)), np.full((1, 3), np.inf)], ids=["wide", "infinite"])
def test_where_one_is_wrong_none_waits(bad: Any) -> None:
    rows = rows_of(20, seed=4)
    model = OnlineClassifier().partial_fit(rows, rows[:, 0] > 0.0, classes=[False, True])
    steps = model._learner_.n_steps
    with pytest.raises((BayouError, ValueError)):
        model.forecast_many([rows[0], bad, rows[1]])
    assert (model.forecasts.waiting, model._learner_.n_steps) == ({}, steps)


def test_no_more_wait_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecasts, "MOST_PENDING", 5)
    model = OnlineRegressor().partial_fit(rows_of(20), np.arange(20.0))
    model.forecast_many(rows_of(3))
    with pytest.raises(InvalidSpec, match="at most 5 forecasts"):
        model.forecast_many(rows_of(3))
    assert len(model.forecasts.waiting) == 3
