"""Calibration: what is wrong is mended, what is right is left alone, and late targets count for what was said."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from bayou import Calibration, OnlineClassifier, load, save
from bayou.calibration import CURVES, KNOTS, N_TRAIL
from bayou.contracts import Vector
from bayou.errors import BayouError, InvalidTarget, ModelFileError, ShapeMismatch


def outcomes(chance: Vector, seed: int = 0) -> Vector:
    return np.where(np.random.default_rng(seed).uniform(size=chance.size) < chance, 1.0, -1.0)


def chances(n: int, seed: int = 1) -> Vector:
    return expit(2.0 * np.random.default_rng(seed).normal(size=n))


def log_loss(said: Vector, came: Vector) -> float:
    return float(-np.mean(np.log(np.where(came > 0.0, said, 1.0 - said))))


# --- what is learnt


@pytest.mark.parametrize("bend", [lambda f: 2.5 * f, lambda f: 0.4 * f, lambda f: f + 1.5, lambda f: np.clip(f, -1, 9)])
def test_what_is_bent_is_mended(bend: Any) -> None:
    """Nearly as good as the chances that made the outcomes; 5,000 rows, a standard error of the loss of 0.006."""
    chance = chances(5000)
    came = outcomes(chance)
    given = expit(bend(logit(chance)))
    calibration = Calibration()
    said = calibration.learn_many(given, came)
    assert log_loss(said[500:], came[500:]) < log_loss(given[500:], came[500:]) - 0.005
    assert calibration.share_unchanged < 0.05
    assert calibration.gain == pytest.approx(5000 * (log_loss(given, came) - log_loss(said, came)))
    if bend(-3.0) != bend(-2.0):  # nothing brings back what was cut off
        assert log_loss(said[500:], came[500:]) < log_loss(chance[500:], came[500:]) + 0.006


def test_against_a_batch_fit_of_slope_and_shift() -> None:
    """Where log odds are all stretched and shifted, two numbers say all there is to learn: Platt's, from all rows."""
    chance = chances(20_000)
    came = outcomes(chance)
    given = expit(1.8 * logit(chance) - 0.7)
    calibration = Calibration()
    calibration.learn_many(given, came)
    batch = LogisticRegression(C=1e6).fit(logit(given)[:, None], came)
    asked = np.array([0.03, 0.1, 0.3, 0.5, 0.8, 0.95])
    wanted = batch.predict_proba(logit(asked)[:, None])[:, 1]
    np.testing.assert_allclose(calibration.predict_many(asked), wanted, atol=0.03)


def test_what_is_right_is_left_alone() -> None:
    """The price is at most the logarithm of how many members and chains there are, once: here 9 and 4."""
    for seed in range(5):
        chance = chances(4000, seed)
        calibration = Calibration()
        said = calibration.learn_many(chance, outcomes(chance, seed + 10))
        assert calibration.gain > -np.log(9 * 4) - 3.0
        assert np.abs(said[1000:] - chance[1000:]).mean() < 0.02
    assert calibration.share_unchanged > 0.05


def test_a_level_that_moves_is_followed() -> None:
    chance = chances(8000)
    moving = expit(logit(chance) + 1.5 * np.sin(np.arange(8000) / 400.0))
    came = outcomes(moving)
    said = Calibration().learn_many(chance, came)
    best = log_loss(moving, came)
    assert log_loss(said, came) - best < 0.5 * (log_loss(chance, came) - best)


def test_targets_that_repeat_themselves_are_seen() -> None:
    """Given nothing but one half, of outcomes that repeat the last with probability 0.9: the least loss is 0.325."""
    random = np.random.default_rng(3)
    came = np.cumprod(np.where(random.uniform(size=4000) < 0.1, -1.0, 1.0))
    said = Calibration().learn_many(np.full(4000, 0.5), came)
    assert log_loss(said[200:], came[200:]) < 0.38


# --- promises


def test_chunks_of_any_size_are_learnt_alike() -> None:
    chance = chances(700)
    given, came, weights = chance**2, outcomes(chance), np.tile([1.0, 2.0, 0.0, 0.5], 175)
    whole, parts = Calibration(), Calibration()
    said = whole.learn_many(given, came, weights)
    bits = [parts.learn_many(given[n : n + 9], came[n : n + 9], weights[n : n + 9]) for n in range(0, 700, 9)]
    np.testing.assert_array_equal(said, np.concatenate(bits))
    for one, two in zip(whole.belief, parts.belief, strict=True):
        np.testing.assert_array_equal(one, two)


def test_what_is_said_is_what_would_be_predicted() -> None:
    chance, calibration = chances(300), Calibration()
    came = outcomes(chance)
    for n in range(300):
        before = calibration.predict_many(chance[n : n + 1] ** 2)
        np.testing.assert_allclose(calibration.learn_many(chance[n : n + 1] ** 2, came[n : n + 1]), before, rtol=1e-9)


def test_a_weight_of_two_is_the_row_twice() -> None:
    chance, once, twice = chances(50), Calibration(), Calibration()
    came = outcomes(chance)
    once.learn_many(chance, came, np.full(50, 2.0))
    twice.learn_many(np.repeat(chance, 2), np.repeat(came, 2))
    np.testing.assert_allclose(once.belief.mean, twice.belief.mean, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("given", [0.0, 1.0, 1e-300, 1.0 - 1e-16])
def test_certainty_is_survived(given: float) -> None:
    calibration = Calibration()
    for came in outcomes(np.full(400, 0.5)).tolist():
        said = calibration.learn_many(np.array([given]), np.array([came]))
        assert 0.0 <= said[0] <= 1.0
    assert 0.2 < said[0] < 0.8  # it was wrong every second time
    for array in calibration.belief:
        assert np.isfinite(array).all()
    for row, curve in zip(calibration.belief.covariance, calibration._plan.size, strict=True):
        assert np.linalg.eigvalsh(row[: curve**2].reshape(curve, curve)).min() > 0.0


# --- late targets


def test_late_by_nothing_is_as_good_as_at_once() -> None:
    chance = chances(2000)
    given, came = chance**2, outcomes(chance)
    now, late, said = Calibration(), Calibration(), []
    for p, y in zip(given, came, strict=True):
        foreseen = late.forecast(float(p))
        said.append(foreseen.said)
        late.learn_late(foreseen, float(y))
    np.testing.assert_allclose(said, now.learn_many(given, came), rtol=1e-7)
    assert late.gain == pytest.approx(now.gain, rel=1e-7)


def test_what_is_stale_when_it_comes_is_not_believed() -> None:
    """Outcomes repeat the last, but are told a hundred rows late: to follow the latest would be worse than nothing."""
    random = np.random.default_rng(5)
    came = np.cumprod(np.where(random.uniform(size=6000) < 0.1, -1.0, 1.0))
    calibration, waiting, said = Calibration(), [], []
    for n in range(6000):
        if n >= 100:
            calibration.learn_late(waiting[n - 100], came[n - 100])
        waiting.append(calibration.forecast(0.5))
        said.append(waiting[-1].said)
    assert log_loss(np.array(said), came) < np.log(2.0) + 0.01


# --- as data, and bad input


def test_a_label_that_comes_late_weighs_members_by_less() -> None:
    """By one in fifty where 49 more were forecast since; what members learn of it is the same."""
    late, once = Calibration(), Calibration()
    first, *_ = [late.forecast(0.9) for _ in range(50)]
    before = late.belief.chains[0].copy()
    late.learn_late(first, -1.0)
    once.learn_many(np.array([0.9]), np.array([-1.0]))
    steps = [np.log(one.belief.chains[0] / before) for one in (late, once)]
    told_late, told_once = (step - step[-1] for step in steps)
    np.testing.assert_allclose(told_late[:-1], told_once[:-1] / 50.0, rtol=1e-6)
    np.testing.assert_allclose(late.belief.mean, once.belief.mean)


def test_curves_without_a_trail_have_room_for_all_features() -> None:
    """The layout of features writes the trail whether members see it or not."""
    few = Calibration(CURVES[:6])
    assert few._room.x.size == len(KNOTS) + N_TRAIL
    chance = chances(2000)
    came = outcomes(chance)
    said = few.learn_many(expit(2.5 * logit(chance)), came)
    assert log_loss(said[500:], came[500:]) < log_loss(expit(2.5 * logit(chance))[500:], came[500:])


def test_it_continues_to_the_last_bit() -> None:
    chance = chances(400)
    given, came = chance**2, outcomes(chance)
    calibration = Calibration()
    calibration.learn_many(given[:300], came[:300])
    for again in (Calibration.from_state(calibration.to_state()), pickle.loads(pickle.dumps(calibration))):
        assert again.gain == calibration.gain
        assert repr(again) == repr(calibration)
        further = Calibration.from_state(calibration.to_state())
        np.testing.assert_array_equal(
            again.learn_many(given[300:], came[300:]), further.learn_many(given[300:], came[300:])
        )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda c: c.learn_many([0.5, 1.2], [1, 1]), InvalidTarget, "from 0 to 1; got 1.2"),
        (lambda c: c.learn_many([np.nan], [1]), InvalidTarget, "from 0 to 1; got nan"),
        (lambda c: c.learn_many([0.5], [0]), InvalidTarget, "-1 or \\+1; got 0"),
        (lambda c: c.learn_many([0.5], [1, 1]), ShapeMismatch, "one value per probability, 1"),
        (lambda c: c.predict_many([[0.5]]), ShapeMismatch, "must be a vector"),
        (lambda c: c.learn_late(c.forecast(0.5)._replace(issued=np.zeros(2)), 1.0), ShapeMismatch, "`foreseen`"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(call: Any, error: type[BayouError], message: str) -> None:
    calibration = Calibration()
    before = [array.copy() for array in calibration.belief]
    with pytest.raises(error, match=message):
        call(calibration)
    for array, own in zip(before, calibration.belief, strict=True):
        np.testing.assert_array_equal(array, own)


def test_a_state_of_another_shape_is_refused() -> None:
    state = Calibration().to_state()
    state.arrays["mean"] = np.zeros((2, 2))
    with pytest.raises(ModelFileError, match="`mean` must be finite"):
        Calibration.from_state(state)


# --- in the classifier


def test_a_classifier_says_what_its_calibration_says(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 2))
    y = random.uniform(size=600) < expit(X @ [1.0, -1.0])
    model = OnlineClassifier()
    said = model.learn_many(X, y, classes=[False, True])
    of_label = np.where(y, said[:, 1], said[:, 0])
    assert model.log_evidence_ == pytest.approx(np.log(of_label).sum())
    assert model.calibration_ is not None
    assert model.log_evidence_ == pytest.approx(model.bank_.log_evidence + model.calibration_.gain)
    asked = model._predictions(X[:5]).probability_of_one()
    np.testing.assert_array_equal(model.predict_proba(X[:5])[:, 1], model.calibration_.predict_many(asked))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X[:5])), model.predict_proba(X[:5]))
    issued = model.forecast_one(X[0])
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    for one in (model, again):
        one.learn_late(issued.id, True)
    np.testing.assert_array_equal(model.predict_proba(X[:5]), again.predict_proba(X[:5]))
    assert model.log_evidence_ == again.log_evidence_


def test_a_third_class_needs_no_calibration_of_two() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 2))
    model = OnlineClassifier().partial_fit(X, np.digitize(X[:, 0], [0.0]))
    evidence = model.log_evidence_
    model.partial_fit(X[:1], [2])
    assert model.calibration_ is None
    assert model.log_evidence_ < evidence
