"""Monitors: how often they cry wolf, how soon they see what is wrong, and what they say then."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from bayou import ConformalRegressor, NormalInverseGamma, OnlineClassifier, OnlineRegressor
from bayou.errors import CalibrationWarning, InvalidPrediction, InvalidSpec, InvalidTarget, ShapeMismatch
from bayou.evaluation import CalibrationMonitor, CoverageMonitor, metrics, progressive

ROWS = 20_000


def watched(monitor: Any, *arrays: NDArray[Any], portion: int = ROWS) -> list[str]:
    """Let it watch these rows; what it said."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for start in range(0, len(arrays[0]), portion):
            monitor.update(*(array[start : start + portion] for array in arrays))
    assert all(warning.category is CalibrationWarning for warning in caught)
    return [str(warning.message) for warning in caught]


def intervals(inside: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Intervals of which these hold their target."""
    return np.tile([-1.0, 1.0], (len(inside), 1)), np.where(inside, 0.5, 3.0)


def two_classes(said: NDArray[Any], chances: NDArray[Any], seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    happened = np.random.default_rng([seed, 1]).random(len(said)) < chances
    return np.column_stack([1.0 - said, said]), happened.astype(int)


def logistic(z: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(1.0 / (1.0 + np.exp(-z)))


# --- false alarms: of true promises, over 20 windows of rows, after each of which there is a look


@pytest.mark.parametrize("level", [0.9, 0.99])
def test_true_intervals_are_seldom_called_wrong(level: float) -> None:
    """Measured on 400 streams: 2 % at 0.9, none at 0.99, where counts are coarse."""
    monitors = [CoverageMonitor(level) for _ in range(100)]
    for seed, monitor in enumerate(monitors):
        watched(monitor, *intervals(np.random.default_rng(seed).random(ROWS) < level))
    assert sum(monitor.breaks > 0 for monitor in monitors) <= 4


CHANCES = {
    "uniform": lambda random: random.uniform(size=ROWS),
    "nearly sure": lambda random: logistic(6.0 * random.normal(size=ROWS)),
    "near a half": lambda random: np.clip(0.5 + 0.05 * random.normal(size=ROWS), 0.0, 1.0),
    "rare": lambda random: 2e-3 * random.uniform(size=ROWS),
    "very rare": lambda random: np.full(ROWS, 2e-5),
}


@pytest.mark.parametrize("kind", CHANCES)
def test_true_probabilities_are_seldom_called_wrong(kind: str) -> None:
    """Measured on 400 streams: at most 1 %, of five classes 1.5 %, and none of 400 where events are rare."""
    monitors = [CalibrationMonitor() for _ in range(60)]
    for seed, monitor in enumerate(monitors):
        chances = CHANCES[kind](np.random.default_rng(seed))
        watched(monitor, *two_classes(chances, chances, seed))
    assert sum(monitor.breaks > 0 for monitor in monitors) <= 3


def test_true_probabilities_of_many_classes_too() -> None:
    monitors = [CalibrationMonitor() for _ in range(40)]
    for seed, monitor in enumerate(monitors):
        random = np.random.default_rng(seed)
        given = random.dirichlet(np.full(5, 0.6), size=ROWS)
        watched(monitor, given, (given.cumsum(axis=1)[:, :-1] < random.random((ROWS, 1))).sum(axis=1))
    assert sum(monitor.breaks > 0 for monitor in monitors) <= 3


# --- how soon what is wrong is seen


def delay(monitor: Any, *arrays: NDArray[Any], change: int = 2000, portion: int = 10) -> int:
    """Rows from the change to the first warning."""
    told = watched(monitor, *(array[:change] for array in arrays))
    assert not told
    for start in range(change, len(arrays[0]), portion):
        if watched(monitor, *(array[start : start + portion] for array in arrays)):
            return int(monitor.broken_since - change)
    return len(arrays[0])


@pytest.mark.parametrize(("level", "soon"), [(0.8, 600), (0.7, 300), (0.5, 150)])
def test_intervals_that_become_too_narrow_are_noticed(level: float, soon: int) -> None:
    """Measured medians: 390 rows, 190 and 95."""
    delays = []
    for seed in range(10):
        random, monitor = np.random.default_rng(seed).random(6000), CoverageMonitor(0.9, at_least=True)
        delays.append(delay(monitor, *intervals(random < np.where(np.arange(6000) < 2000, 0.9, level))))
    assert 0.3 * soon < np.median(delays) < soon
    assert max(delays) < 2 * soon


@pytest.mark.parametrize(
    ("slope", "shift", "what"),
    [(3.0, 0.0, "too bold"), (0.3, 0.0, "too timid"), (1.0, 1.0, "too high"), (1.0, -1.0, "too low")],
)
def test_what_becomes_of_probabilities_is_noticed_and_named(slope: float, shift: float, what: str) -> None:
    """Log odds that are three times too large: measured median 230 rows; an excess of one: 320."""
    delays = []
    for seed in range(10):
        z = 1.5 * np.random.default_rng(seed).normal(size=5000)
        said = logistic(np.where(np.arange(5000) < 2000, z, slope * z + shift))
        monitor, rows = CalibrationMonitor(), two_classes(said, logistic(z), seed)
        delays.append(delay(monitor, *rows))
        with pytest.warns(CalibrationWarning, match=f"at row {monitor.broken_since} probabilities are {what}: they"):
            CalibrationMonitor().update(*(array[: monitor.broken_since] for array in rows))
    assert 50 < np.median(delays) < 600


# --- values, against metrics over the same rows


def test_values_are_those_of_the_metrics_over_the_window() -> None:
    random = np.random.default_rng(0)
    monitor, coverage = CoverageMonitor(window=300), metrics.Coverage()
    rows = intervals(random.random(1234) < 0.9)
    watched(monitor, *rows, portion=77)
    coverage.update(*(array[-300:] for array in rows))
    assert (monitor.value, monitor.standard_error) == pytest.approx((coverage.value, coverage.standard_error))
    for n_classes in (2, 4):
        given = random.dirichlet(np.ones(n_classes), size=1234)
        codes = random.integers(n_classes, size=1234)
        calibration, error = CalibrationMonitor(window=300), metrics.CalibrationError()
        watched(calibration, given, codes, portion=77)
        error.update(given[-300:], codes[-300:])
        for name in ("value", "standard_error", "noise"):
            assert getattr(calibration, name) == pytest.approx(getattr(error, name), rel=1e-9)


def test_the_test_of_coverage_is_that_of_the_binomial_distribution() -> None:
    limit = stats.norm.sf(4.0)
    for rows in (1, 4, 5, 30, 100):
        for missed in range(rows + 1):
            monitor = CoverageMonitor(0.9)
            watched(monitor, *intervals(np.arange(rows) >= missed), portion=rows)
            law = stats.binom(rows, 0.1)
            rare = min(law.sf(missed - 1), law.cdf(missed)) < limit
            started = any(stats.binom(n, 0.1).sf(min(n, missed) - 1) < limit for n in range(1, rows + 1))
            assert (monitor.breaks > 0) == (rare or started)


def test_nothing_is_known_of_no_rows() -> None:
    for monitor in (CoverageMonitor(), CalibrationMonitor()):
        assert math.isnan(monitor.value)
        assert math.isnan(monitor.standard_error)
        assert not monitor.broken


# --- rows in any portion, in constant memory


@pytest.mark.parametrize("portion", [1, 13, 250, 1000])
def test_portions_of_any_size_say_the_same(portion: int) -> None:
    random = np.random.default_rng(1)
    chances = random.uniform(size=1500)
    said = np.where(np.arange(1500) < 700, chances, chances**3)
    for make, rows in (
        (CoverageMonitor, intervals(random.random(1500) < np.where(np.arange(1500) < 700, 0.9, 0.6))),
        (CalibrationMonitor, two_classes(said, chances, 0)),
    ):
        whole, parts = make(window=250), make(window=250)
        told = watched(whole, *rows)
        assert told
        assert watched(parts, *rows, portion=portion) == told
        for name in ("value", "standard_error", "rows", "breaks", "broken", "broken_since"):
            assert getattr(parts, name) == getattr(whole, name)
        assert sum(array.nbytes for array in vars(whole).values() if isinstance(array, np.ndarray)) < 10_000


def test_one_row_is_a_row() -> None:
    one, many = CoverageMonitor(), CoverageMonitor()
    one.update([0.0, 1.0], 0.5)
    one.update((0.0, 1.0), 2)
    many.update([[0.0, 1.0]] * 2, [0.5, 2.0])
    assert (one.value, one.rows) == (many.value, many.rows) == (0.5, 2)
    calibration = CalibrationMonitor()
    calibration.update([0.25, 0.75], 1)
    calibration.update([0.1, 0.2, 0.7], np.int64(2))
    assert calibration.rows == 2
    assert calibration.value == pytest.approx(0.275)


# --- warnings


def test_each_break_is_told_once_and_again_after_it_was_mended() -> None:
    monitor = CoverageMonitor(0.9, window=200)
    good, bad = np.arange(600) % 10 > 0, np.arange(600) % 2 > 0
    assert watched(monitor, *intervals(good)) == []
    first = watched(monitor, *intervals(bad), portion=50)
    assert len(first) == 1
    assert first[0].startswith(f"at row {monitor.broken_since} intervals are too narrow: they promised to cover 0.9, ")
    assert "of the last 200 targets were inside" in first[0]
    assert monitor.broken
    assert watched(monitor, *intervals(good)) == []
    assert not monitor.broken
    assert len(watched(monitor, *intervals(bad))) == 1
    assert monitor.breaks == 2
    assert watched(CoverageMonitor(0.5), *intervals(good))[0].count("too wide") == 1
    assert watched(CoverageMonitor(0.5, at_least=True), *intervals(good)) == []


def test_where_warnings_are_errors_nothing_is_left_half_done() -> None:
    monitor, other = CoverageMonitor(), CoverageMonitor()
    rows = intervals(np.arange(100) % 2 > 0)
    with pytest.raises(CalibrationWarning, match="too narrow"):
        monitor.update(*rows)
    watched(other, *rows)
    assert (monitor.rows, monitor.value, monitor.broken) == (other.rows, other.value, other.broken) == (100, 0.5, True)


def test_what_was_held_impossible_is_noticed() -> None:
    monitor = CalibrationMonitor()
    told = watched(monitor, np.tile([1.0, 0.0], (20, 1)), np.ones(20, dtype=int))
    assert len(told) == 1
    assert "too low: they promised 0, and 1 ± 0 happened" in told[0]
    assert monitor.value == 1.0


# --- what does not fit


@pytest.mark.parametrize(
    ("given", "target", "error", "said"),
    [
        ([[0.0, 1.0, 2.0]], [0.5], ShapeMismatch, r"shape \(1, 2\), as targets do; got \(1, 3\)"),
        ([[0.0, 1.0]], [0.5, 0.5], ShapeMismatch, r"shape \(2, 2\), as targets do; got \(1, 2\)"),
        ([[1.0, 0.0]], [0.5], InvalidPrediction, "a low end and a high end; got 1.0 and 0.0"),
        ([[math.nan, 0.0]], [0.5], InvalidPrediction, "a low end and a high end; got nan and 0.0"),
        ([[0.0, 1.0]] * 2, [0.5, math.nan], InvalidTarget, "`targets` must be finite numbers; got nan"),
    ],
)
def test_what_are_no_intervals_is_refused(given: Any, target: Any, error: type[Exception], said: str) -> None:
    monitor = CoverageMonitor()
    monitor.update([0.0, 1.0], 2.0)
    with pytest.raises(error, match=said):
        monitor.update(given, target)
    assert (monitor.rows, monitor.value) == (1, 0.0)


@pytest.mark.parametrize(
    ("given", "code", "error", "said"),
    [
        ([[0.5, math.nan]], [0], InvalidPrediction, "between 0 and 1; got nan"),
        ([[0.5, 0.5], [1.5, -0.5]], [0, 0], InvalidPrediction, "between 0 and 1; got 1.5"),
        ([[0.5, 0.4]], [0], InvalidPrediction, "must sum to 1; got 0.9"),
        ([[0.5, 0.5]], [2], InvalidTarget, r"from 0 to 1; got \[2\]"),
        ([[0.5, 0.5]], [-1], InvalidTarget, r"from 0 to 1; got \[-1\]"),
        ([[0.5, 0.5]], [0.5], InvalidTarget, r"whole numbers from 0 to 1; got \[0.5\]"),
        ([0.5, 0.5], [0, 1], ShapeMismatch, r"a column per class, as codes do; got \(2,\)"),
    ],
)
def test_what_are_no_probabilities_is_refused(given: Any, code: Any, error: type[Exception], said: str) -> None:
    monitor = CalibrationMonitor()
    monitor.update([0.25, 0.75], 1)
    with pytest.raises(error, match=said):
        monitor.update(given, code)
    assert (monitor.rows, monitor.value) == (1, 0.25)


def test_settings_out_of_range_are_refused() -> None:
    for make, said in (
        (lambda: CoverageMonitor(90.0), "`level` must lie between 0 and 1; got 90"),
        (lambda: CoverageMonitor(window=0), "`window` must be a whole number from 1"),
        (lambda: CalibrationMonitor(window=10.5), "`window` must be a whole number from 1"),
        (lambda: CalibrationMonitor(deviations=-1.0), "`deviations` must be positive and finite; got -1"),
    ):
        with pytest.raises(InvalidSpec, match=said):
            make()
    with pytest.raises(ShapeMismatch, match=r"`inside` must be True or False for each row; got 0.5"):
        CoverageMonitor().count(0.5)


def test_rows_at_the_ends_of_what_numbers_can_be() -> None:
    monitor = CoverageMonitor(window=1, deviations=30.0)
    monitor.update([[-math.inf, math.inf], [0.0, 0.0]], [1e308, 1e-308])
    assert monitor.value == 0.0
    monitor.update(np.zeros((0, 2)), [])
    calibration = CalibrationMonitor(window=1)
    calibration.update([[1.0], [1.0]], [0, 0])
    assert calibration.value == 0.0
    assert calibration.rows_in_window == 1


# --- along with progressive validation


def one_noise() -> OnlineRegressor:
    """A model that holds its noise to stay as it is."""
    return OnlineRegressor(posterior=NormalInverseGamma(10.0))


def test_progressive_validation_takes_a_monitor() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(3000, 2))
    y = x[:, 0] + random.normal(size=3000) * np.where(np.arange(3000) < 1500, 0.1, 1.0)
    monitor, adapted, by_hand = CoverageMonitor(0.9), CoverageMonitor(0.9, window=500), CoverageMonitor(0.9)
    with pytest.warns(CalibrationWarning, match="too narrow"):
        *_, last = progressive(one_noise(), x, y, monitor=monitor, warm_up=300)
    watched(by_hand, one_noise().learn_many(x, y).interval(0.9)[300:], y[300:])
    assert (monitor.rows, monitor.value, monitor.broken_since) == (2700, by_hand.value, by_hand.broken_since)
    assert last.total.coverage.value < 0.85
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        *_, mended = progressive(ConformalRegressor(one_noise()), x, y, monitor=adapted, warm_up=300)
    assert not adapted.broken
    assert mended.total.coverage.value == pytest.approx(0.9, abs=0.02)


def test_progressive_validation_takes_the_monitor_of_its_task() -> None:
    x, y = np.arange(40.0)[:, None], np.arange(40) % 2
    monitor = CalibrationMonitor()
    list(progressive(OnlineClassifier(), x, y, monitor=monitor))
    assert monitor.rows == 40
    with pytest.raises(InvalidSpec, match="`monitor` must watch intervals, for numbers are learnt"):
        progressive(OnlineRegressor(), x, y, monitor=monitor)
    with pytest.raises(InvalidSpec, match="`monitor` must watch probabilities, for classes are learnt"):
        progressive(OnlineClassifier(), x, y, monitor=CoverageMonitor())
    with pytest.raises(InvalidSpec, match=r"intervals of the coverage 0.5; got one of 0.9"):
        progressive(OnlineRegressor(), x, y, coverage=0.5, monitor=CoverageMonitor(0.9))
