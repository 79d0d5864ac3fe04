"""One value that is wrong by any power of ten: it is learnt, and then it is hardly seen any more."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from bayou import OnlineClassifier, OnlineCounter, OnlineRegressor, TableEncoder, TableModel
from bayou.encoders.standardizer import NEAR, Standardizer
from bayou.errors import InvalidFeatures
from bayou.modelfile import from_bytes, to_bytes

KINDS = {
    "binary": OnlineClassifier,
    "classes": OnlineClassifier,
    "regression": OnlineRegressor,
    "count": OnlineCounter,
}
ASKED = np.column_stack([np.linspace(0.05, 0.95, 7), np.zeros(7)])


def made(task: str, n_rows: int = 600) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    x, other = rng.random(n_rows), rng.normal(size=n_rows)
    targets = {
        "binary": x > 0.5,
        "classes": np.where(x > 0.66, "a", np.where(x > 0.33, "b", "c")),
        "regression": 3.0 * x + 1.0 + 0.1 * rng.normal(size=n_rows),
        "count": rng.poisson(np.exp(2.0 * x)),
    }
    return np.column_stack([x, other]), targets[task]


def learnt(task: str, wild: dict[int, float], size: int = 10) -> OnlineClassifier | OnlineRegressor | OnlineCounter:
    rows, targets = made(task)
    for row, value in wild.items():
        rows[row, 0] = value
    model = KINDS[task]()
    for start in range(0, len(rows), size):
        options = {"classes": np.unique(targets)} if KINDS[task] is OnlineClassifier and start == 0 else {}
        model.partial_fit(rows[start : start + size], targets[start : start + size], **options)
    return model


def said(model: OnlineClassifier | OnlineRegressor | OnlineCounter) -> np.ndarray:
    return model.predict_proba(ASKED) if isinstance(model, OnlineClassifier) else model.predict(ASKED)


@pytest.mark.parametrize("value", [1e5, 1.7e9, -1e30, 1e139])
@pytest.mark.parametrize("task", KINDS)
def test_one_wild_value_is_forgotten(task: str, value: float) -> None:
    """Of 600 rows the 150th is wild: in the end, what is said is nearly what would have been said without it."""
    model, tame = learnt(task, {150: value}), learnt(task, {})
    room = 0.08 if KINDS[task] is OnlineClassifier else 0.04 * np.max(said(tame))
    np.testing.assert_allclose(said(model), said(tame), atol=room)
    np.testing.assert_array_equal(said(from_bytes(to_bytes(model))), said(model))


@pytest.mark.parametrize("task", KINDS)
@pytest.mark.parametrize("places", [(0,), (1,), (2,), (7,), (100, 200, 300), (150, 151, 152, 153)])
def test_wild_values_anywhere_leave_a_model_that_can_be_kept(task: str, places: tuple[int, ...]) -> None:
    model = learnt(task, dict.fromkeys(places, 1.7e18))
    assert np.isfinite(said(model)).all()
    np.testing.assert_array_equal(said(from_bytes(to_bytes(model))), said(model))


@pytest.mark.parametrize("task", KINDS)
def test_rows_one_at_a_time_are_rows_together(task: str) -> None:
    """Also where values are cut: how far depends on the rows before, not on how they came."""
    wild = {100: 1e9, 101: -1e4, 350: 1e100}
    alone, together = learnt(task, wild, 1), learnt(task, wild, 600)
    np.testing.assert_allclose(said(alone), said(together), rtol=1e-9)


def test_who_comes_with_another_unit_is_followed() -> None:
    """From metres to micrometres: what was learnt before is of no use, and soon that of now is learnt."""
    rows, targets = made("binary", 6000)
    rows[1000:, 0] *= 1e6
    model = OnlineClassifier().partial_fit(rows, targets)
    probabilities = model.predict_proba(np.column_stack([[0.2e6, 0.8e6], [0.0, 0.0]]))[:, 1]
    assert probabilities[0] < 0.05
    assert probabilities[1] > 0.95


@pytest.mark.parametrize("value", [1e5, 1.2345678901234568e29, 1e139])
def test_hashed_numbers_are_cut_too(value: float) -> None:
    rows, targets = made("binary")
    rows[150, 0] = value
    table = pl.DataFrame({"x": rows[:, 0], "word": ["a", "b", "c"] * 200, "y": targets})
    asked = pl.DataFrame({"x": [0.1, 0.4, 0.6, 0.9], "word": ["a"] * 4})
    found = []
    for size in (1, 50, 600):
        model = TableModel("y", "binary", TableEncoder(hashed=True))
        for start in range(0, 600, size):
            model.learn_many(table[start : start + size])
        found.append(model.predict(asked)[:, 1])
    assert found[1][0] < 0.01
    assert found[1][1] < 0.15
    assert found[1][2] > 0.85
    assert found[1][3] > 0.99
    np.testing.assert_allclose(found[1], found[2], atol=0.05)  # tables are standardised as they come
    np.testing.assert_allclose(found[0], found[1], atol=0.05)


def test_what_is_usual_is_not_cut() -> None:
    """Nor what is rare: the moments are NumPy's; of heavy tails, where one of 5,000 values is cut, nearly."""
    rows = np.random.default_rng(0).lognormal(0.0, 1.5, size=(5000, 3))
    rows[:, 2] = np.where(np.arange(5000) % 500 == 499, 100.0, 0.0)  # one row in 500
    encoder = Standardizer()
    frame = encoder.begin(3)
    for start in range(0, 5000, 100):
        encoder.learn(frame, rows[start : start + 100])
        encoder.retake(frame)
    np.testing.assert_allclose(frame.mean[1:], rows.mean(axis=0)[1:], rtol=1e-9)
    np.testing.assert_allclose(np.sqrt(frame.squares / frame.weight)[1:], rows.std(axis=0)[1:], rtol=1e-9)
    np.testing.assert_allclose(frame.mean[0], rows.mean(axis=0)[0], rtol=0.005)
    features, _ = encoder.encode(frame, rows)
    np.testing.assert_allclose(features, (rows - frame.centre) / frame.deviation, rtol=1e-9)
    assert np.abs(features).max() > NEAR


def test_a_whole_number_that_is_no_float_is_told() -> None:
    with pytest.raises(InvalidFeatures, match="feature 'x' must be below"):
        OnlineClassifier().learn_one({"x": 10**400}, True)
