"""Metrics of the latest rows: against the same metric of just those rows, and of all rows under weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import log_loss, roc_auc_score

from bayou.errors import InvalidPrediction, InvalidSpec, ShapeMismatch
from bayou.evaluation import CalibrationMonitor, metrics
from bayou.evaluation.metrics import Fading, Windowed


def two_classes(rows: int, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    random = np.random.default_rng(seed)
    probabilities = random.dirichlet([0.8, 0.8], size=rows)
    return probabilities, (random.random(rows) < probabilities[:, 1]).astype(int)


def counted(metric: Any, *arrays: NDArray[Any], cuts: list[int]) -> Any:
    for start, stop in zip([0, *cuts], [*cuts, len(arrays[0])], strict=True):
        metric.update(*(array[start:stop] for array in arrays))
    return metric


# --- windows


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(1, 25), st.integers(1, 200), st.lists(st.integers(0, 200), max_size=5))
def test_a_window_is_of_the_rows_that_it_says(window: int, blocks: int, rows: int, cuts: list[int]) -> None:
    probabilities, codes = two_classes(rows, seed=window)
    latest = counted(
        Windowed(metrics.LogLoss, window, blocks), probabilities, codes, cuts=sorted(min(c, rows) for c in cuts)
    )
    kept = latest.rows_in_window
    assert window - 2 * latest.block_rows + 1 < kept <= window or kept == rows < window
    wanted = metrics.LogLoss()
    wanted.update(probabilities[-kept:], codes[-kept:])
    assert latest.metric.rows == kept
    assert latest.value == pytest.approx(wanted.value, rel=1e-9)
    assert latest.standard_error == pytest.approx(wanted.standard_error, rel=1e-9, nan_ok=True)


def test_as_many_blocks_as_rows_make_a_window_exact() -> None:
    probabilities, codes = two_classes(500)
    latest = Windowed(metrics.AUC, 100, blocks=100)
    for row in range(500):
        latest.update(probabilities[row : row + 1], codes[row : row + 1])
        start = max(row - 99, 0)
        assert latest.rows_in_window == row + 1 - start
        if row % 97 == 96:
            wanted = roc_auc_score(codes[start : row + 1], probabilities[start : row + 1, 1])
            assert latest.value == pytest.approx(wanted, abs=1e-3)


def test_blocks_are_dropped_whole() -> None:
    latest = Windowed(metrics.MAE, 100, blocks=10)
    seen = []
    for _ in range(300):
        latest.update(np.zeros(1), np.ones(1))
        seen.append(latest.rows_in_window)
    assert seen[:100] == list(range(1, 101))
    assert min(seen[100:]) == 91
    assert max(seen[100:]) == 100
    assert len(latest.to_state().config["parts"]) == 10  # constant memory


def test_weights_go_with_their_rows() -> None:
    probabilities, codes = two_classes(100)
    weights = np.random.default_rng(1).exponential(size=100)
    latest = Windowed(metrics.LogLoss, 40, blocks=8)
    latest.update(probabilities, codes, weights=weights)
    wanted = log_loss(codes[-40:], probabilities[-40:], sample_weight=weights[-40:])
    assert latest.value == pytest.approx(wanted, rel=1e-10)


def test_rows_that_are_refused_are_not_counted_in_part() -> None:
    probabilities, codes = two_classes(50)
    bad = probabilities.copy()
    bad[45] = np.nan
    for latest in (Windowed(metrics.LogLoss, 20, blocks=5), Fading(metrics.LogLoss, 5.0)):
        latest.update(probabilities, codes)
        before = repr(latest), latest.metric.rows
        with pytest.raises(InvalidPrediction):
            latest.update(bad, codes)
        with pytest.raises(ShapeMismatch, match="as many rows"):
            latest.update(probabilities, codes[:-1])
        assert (repr(latest), latest.metric.rows) == before


# --- fading


@pytest.mark.parametrize("half_life", [0.5, 30, 1e4])
def test_older_rows_count_less_as_weights_say(half_life: float) -> None:
    probabilities, codes = two_classes(400)
    weights = 0.5 ** (np.arange(400)[::-1] / half_life)
    for cuts in ([], [1, 2, 150, 399], list(range(1, 400))):
        faded = counted(Fading(metrics.LogLoss, half_life), probabilities, codes, cuts=cuts)
        assert faded.value == pytest.approx(log_loss(codes, probabilities, sample_weight=weights), rel=1e-9)
        assert faded.metric.rows == pytest.approx(weights.sum())
        assert faded.metric.effective_rows == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    area = counted(Fading(metrics.AUC, 30.0), probabilities, codes, cuts=[77])
    wanted = roc_auc_score(codes, probabilities[:, 1], sample_weight=0.5 ** (np.arange(400)[::-1] / 30.0))
    assert area.value == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize("kind", [metrics.LogLoss, metrics.Accuracy, metrics.Kappa, metrics.AUC])
def test_a_faded_score_is_known_to_its_standard_error(kind: Any) -> None:
    repeated = [counted(Fading(kind, 70.0), *two_classes(1000, seed), cuts=[]) for seed in range(300)]
    scatter = np.std([metric.value for metric in repeated])
    assert scatter / np.mean([metric.standard_error for metric in repeated]) == pytest.approx(1.0, abs=0.13)


def test_a_change_is_seen_and_what_was_before_fades() -> None:
    faded, all_rows = Fading(metrics.MAE, 10.0), metrics.MAE()
    for target in (1.0, 3.0):
        faded.update(np.zeros(200), np.full(200, target))
        all_rows.update(np.zeros(200), np.full(200, target))
    assert faded.value == pytest.approx(3.0, abs=1e-5)
    assert all_rows.value == pytest.approx(2.0)


def test_streams_that_fade_alike_are_merged() -> None:
    probabilities, codes = two_classes(100)
    one, other = Fading(metrics.LogLoss, 9.0), Fading(metrics.LogLoss, 9.0)
    one.update(probabilities[:40], codes[:40])
    other.update(probabilities[40:], codes[40:])
    one.merge(other)
    weights = 0.5 ** (np.r_[np.arange(40)[::-1], np.arange(60)[::-1]] / 9.0)
    assert one.value == pytest.approx(log_loss(codes, probabilities, sample_weight=weights))


# --- what cannot be


def test_what_cannot_be_windowed_or_faded_is_said() -> None:
    with pytest.raises(InvalidSpec, match="whose parts can be merged; got CalibrationMonitor"):
        Windowed(CalibrationMonitor, 100)
    with pytest.raises(InvalidSpec, match="whose parts can be merged; got Windowed"):
        Windowed(lambda: Windowed(metrics.MAE, 10), 100)
    with pytest.raises(InvalidSpec, match="may count less than one; got McNemar"):
        Fading(metrics.McNemar, 10)
    with pytest.raises(InvalidSpec, match="may count less than one; got PairedDifference"):
        Fading(metrics.PairedDifference, 10)
    with pytest.raises(InvalidSpec, match="McNemar cannot fade"):
        metrics.McNemar().fade(0.5)
    with pytest.raises(InvalidSpec, match="whose rows are later is not known: merge `metric`"):
        Windowed(metrics.MAE, 10).merge(Windowed(metrics.MAE, 10))
    with pytest.raises(InvalidSpec, match=r"one of half-life 3\.0; got"):
        Fading(metrics.MAE, 3.0).merge(Fading(metrics.MAE, 4.0))


@pytest.mark.parametrize("value", [0, -1, 2.5, True, math.nan])
def test_sizes_out_of_range_are_refused(value: Any) -> None:
    with pytest.raises(InvalidSpec, match="`rows` must be a whole number, at least 1; got"):
        Windowed(metrics.MAE, value)
    with pytest.raises(InvalidSpec, match="`blocks` must be a whole number, at least 1; got"):
        Windowed(metrics.MAE, 10, blocks=value)
    if value != 2.5:
        with pytest.raises(InvalidSpec, match="`half_life` must be a positive number of rows; got"):
            Fading(metrics.MAE, value)
