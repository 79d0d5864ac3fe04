"""Every metric: portions of any size, parts that are merged, and parts that are saved count as all rows at once."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bayou import json_values
from bayou.contracts import State
from bayou.errors import InvalidSpec, ModelFileError
from bayou.evaluation import CoverageMonitor, metrics
from bayou.evaluation.metrics import Metric
from bayou.evaluation.scores import ClassScores, CountScores, RegressionScores

Arrays = tuple[NDArray[Any], ...]
MOST_ROWS = 150


def of_classes(random: np.random.Generator, rows: int, n_classes: int) -> Arrays:
    probabilities = random.dirichlet(np.full(n_classes, 0.7), size=rows)
    return probabilities, random.integers(0, n_classes, size=rows)


def of_numbers(random: np.random.Generator, rows: int) -> Arrays:
    return random.normal(1e3, 2.0, size=rows), random.normal(1e3, 3.0, size=rows)


def of_quantiles(random: np.random.Generator, rows: int, edges: int) -> Arrays:
    return np.sort(random.normal(size=(rows, edges)), axis=1), random.normal(size=rows)


# What makes each metric, and rows for it.
KINDS: dict[str, tuple[Callable[[], Any], Callable[[np.random.Generator, int], Arrays]]] = {
    "Accuracy": (metrics.Accuracy, lambda r, n: of_classes(r, n, 3)),
    "BalancedAccuracy": (metrics.BalancedAccuracy, lambda r, n: of_classes(r, n, 3)),
    "LogLoss": (metrics.LogLoss, lambda r, n: of_classes(r, n, 3)),
    "Brier": (metrics.Brier, lambda r, n: of_classes(r, n, 2)),
    "CalibrationError": (metrics.CalibrationError, lambda r, n: of_classes(r, n, 2)),
    "Kappa": (metrics.Kappa, lambda r, n: of_classes(r, n, 4)),
    "KappaTemporal": (metrics.KappaTemporal, lambda r, n: (*of_classes(r, n, 3), r.integers(-1, 3, size=n))),
    "AUC": (metrics.AUC, lambda r, n: of_classes(r, n, 2)),
    "RMSE": (metrics.RMSE, of_numbers),
    "MAE": (metrics.MAE, of_numbers),
    "NegativeLogDensity": (metrics.NegativeLogDensity, lambda r, n: of_numbers(r, n)[:1]),
    "Deviance": (metrics.Deviance, lambda r, n: (r.exponential(size=n), r.poisson(1.0, size=n).astype(float))),
    "Coverage": (lambda: metrics.Coverage(0.8), lambda r, n: of_quantiles(r, n, 2)),
    "Width": (metrics.Width, lambda r, n: of_quantiles(r, n, 2)[:1]),
    "PITHistogram": (lambda: metrics.PITHistogram(10), lambda r, n: of_quantiles(r, n, 9)),
    "CRPS": (lambda: metrics.CRPS(10), lambda r, n: of_quantiles(r, n, 9)),
    "McNemar": (metrics.McNemar, lambda r, n: (r.random(n) < 0.3, r.random(n) < 0.2)),
    "PairedDifference": (metrics.PairedDifference, of_numbers),
}
FADING = [name for name, (make, _) in KINDS.items() if make().fades]


def test_every_metric_is_here() -> None:
    named = {name for name in metrics.__all__ if isinstance(getattr(metrics, name), type)}
    assert named - {"Metric", "Mean", "Windowed", "Fading"} == set(KINDS)
    assert set(KINDS) - set(FADING) == {"McNemar", "PairedDifference"}


def counted(metric: Any, arrays: Arrays, cuts: list[int]) -> Any:
    for start, stop in zip([0, *cuts], [*cuts, len(arrays[0])], strict=True):
        metric.update(*(array[start:stop] for array in arrays))
    return metric


def told(metric: Metric) -> list[float]:
    return [metric.value, metric.standard_error]


@st.composite
def streams(draw: Any) -> tuple[np.random.Generator, int, list[int]]:
    """Whatever draws rows, how many of them, and where the stream is cut, perhaps into portions of no rows."""
    rows = draw(st.integers(1, MOST_ROWS))
    cuts = sorted(draw(st.lists(st.integers(0, rows), max_size=6)))
    return np.random.default_rng(draw(st.integers(0, 2**32))), rows, cuts


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=40, deadline=None)
@given(stream=streams())
def test_portions_count_as_the_whole(name: str, stream: Any) -> None:
    (make, rows_of), (random, rows, cuts) = KINDS[name], stream
    arrays = rows_of(random, rows)
    assert told(counted(make(), arrays, cuts)) == pytest.approx(
        told(counted(make(), arrays, [])), rel=1e-9, abs=1e-12, nan_ok=True
    )


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=40, deadline=None)
@given(stream=streams())
def test_merged_parts_count_as_the_whole(name: str, stream: Any) -> None:
    (make, rows_of), (random, rows, cuts) = KINDS[name], stream
    arrays = rows_of(random, rows)
    merged = make()
    for start, stop in zip([0, *cuts], [*cuts, rows], strict=True):
        part = counted(make(), tuple(array[start:stop] for array in arrays), [])
        before = told(part)
        merged.merge(part)
        assert told(part) == pytest.approx(before, rel=0.0, abs=0.0, nan_ok=True)
    whole = counted(make(), arrays, [])
    assert merged.value == pytest.approx(whole.value, rel=1e-9, abs=1e-12, nan_ok=True)
    assert merged.rows == pytest.approx(whole.rows)
    if name != "PairedDifference":  # whose batches are those of the parts
        assert merged.standard_error == pytest.approx(whole.standard_error, rel=1e-9, abs=1e-12, nan_ok=True)
    more = rows_of(random, 10)  # what was merged goes on
    merged.update(*more)
    whole.update(*more)
    assert merged.value == pytest.approx(whole.value, rel=1e-9, abs=1e-12, nan_ok=True)


def same(one: State, other: State) -> bool:
    arrays = [{key: (a.dtype, a.shape, a.tobytes()) for key, a in state.arrays.items()} for state in (one, other)]
    return repr(one.config) == repr(other.config) and arrays[0] == arrays[1]


WRAPPERS: dict[str, Callable[[Callable[[], Any]], Any]] = {
    "alone": lambda make: make(),
    "windowed": lambda make: metrics.Windowed(make, 60, blocks=7),
    "fading": lambda make: metrics.Fading(make, 12.5),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", KINDS)
def test_what_was_saved_goes_on_to_the_last_bit(name: str, wrapper: str) -> None:
    if wrapper == "fading" and name not in FADING:
        pytest.skip("rows of it do not fade")
    make, rows_of = KINDS[name]
    random = np.random.default_rng(3)
    metric, more = counted(WRAPPERS[wrapper](make), rows_of(random, 90), [33]), rows_of(random, 40)
    state = metric.to_state()
    text = json.dumps(json_values.encode(state.config))
    again: Any = Metric.from_state(State(json_values.decode(json.loads(text)), state.arrays))
    assert type(again) is type(metric)
    assert same(again.to_state(), state)
    counted(metric, more, [7])
    assert same(again.to_state(), state)  # they share nothing
    counted(again, more, [7])
    assert same(again.to_state(), metric.to_state())
    assert told(again) == pytest.approx(told(metric), rel=0.0, abs=0.0, nan_ok=True)
    empty = metric.fresh()
    assert math.isnan(empty.value)
    assert same(Metric.from_state(empty.to_state()).to_state(), empty.to_state())


@pytest.mark.parametrize("name", KINDS)
def test_damaged_data_is_refused(name: str) -> None:
    make, rows_of = KINDS[name]
    state = counted(make(), rows_of(np.random.default_rng(0), 30), []).to_state()
    with pytest.raises(ModelFileError, match="must be of a Metric; got 'Unheard'"):
        Metric.from_state(State({**state.config, "metric": "Unheard"}, state.arrays))
    for key in set(state.config) - {"metric"}:
        with pytest.raises(ModelFileError, match=f"must be complete; got .*{key}"):
            Metric.from_state(State({k: v for k, v in state.config.items() if k != key}, state.arrays))
    for key, array in state.arrays.items():
        with pytest.raises(ModelFileError, match=f"`{key}` must be"):
            Metric.from_state(State(state.config, {**state.arrays, key: array[None]}))
        with pytest.raises(ModelFileError, match=f"`{key}` must be"):
            Metric.from_state(State(state.config, {**state.arrays, key: array.astype(np.float32)}))
    with pytest.raises(ModelFileError, match="must be of a McNemar" if name != "McNemar" else "must be of a RMSE"):
        (metrics.McNemar if name != "McNemar" else metrics.RMSE).from_state(state)


def test_what_counts_other_things_is_not_merged() -> None:
    with pytest.raises(InvalidSpec, match="same `bins`, 20; got 10"):
        metrics.CalibrationError().merge(metrics.CalibrationError(10))
    with pytest.raises(InvalidSpec, match="same `bins`, 20; got 10"):
        metrics.PITHistogram().merge(metrics.PITHistogram(10))
    with pytest.raises(InvalidSpec, match=r"same `level`, 0\.9; got 0\.5"):
        metrics.Coverage().merge(metrics.Coverage(0.5))
    with pytest.raises(InvalidSpec, match="RMSE must be merged with one of its kind; got MAE"):
        metrics.RMSE().merge(metrics.MAE())
    with pytest.raises(InvalidSpec, match="CoverageMonitor cannot be merged"):
        CoverageMonitor().merge(CoverageMonitor())


def test_the_area_does_not_depend_on_the_order_of_merging() -> None:
    random = np.random.default_rng(0)
    parts = []
    for spread in (0.001, 20.0, 1.0):  # bins of very different widths
        chances = 1.0 / (1.0 + np.exp(-spread * random.normal(size=400)))
        parts.append((np.column_stack([1.0 - chances, chances]), random.integers(0, 2, size=400)))
    states = []
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        area = metrics.AUC()
        for part in order:
            area.merge(counted(metrics.AUC(), parts[part], [50]))
        states.append(area.to_state())
    assert same(states[0], states[1])
    assert same(states[0], states[2])


def scores_of(kind: Any, random: np.random.Generator, rows: int) -> tuple[Any, Arrays]:
    if kind is ClassScores:
        given, codes = of_classes(random, rows, 2)
        return ClassScores(auc=metrics.AUC()), (given, codes, given[::-1], random.integers(-1, 2, size=rows))
    quantiles, targets = of_quantiles(random, rows, 21)
    counts, rates = random.poisson(2.0, size=rows).astype(float), random.exponential(size=rows)
    of_targets = counts if kind is CountScores else targets
    return kind(metrics.Coverage(0.9)), (rates, -rates, quantiles, of_targets, rates[::-1])


@pytest.mark.parametrize("kind", [ClassScores, RegressionScores, CountScores])
def test_sets_of_scores_are_merged_and_saved(kind: Any) -> None:
    random = np.random.default_rng(0)
    whole, arrays = scores_of(kind, random, 60)
    one, other = scores_of(kind, random, 1)[0], scores_of(kind, random, 1)[0]
    for scores, rows in ((whole, slice(None)), (one, slice(20)), (other, slice(20, None))):
        scores.update(*(array[rows] for array in arrays))
    saved = one.to_state()
    one.merge(other)
    for name, metric in whole.metrics().items():
        assert told(one.metrics()[name]) == pytest.approx(told(metric), rel=1e-9, nan_ok=True), name
    again = kind.from_state(saved)
    assert same(again.to_state(), saved)
    again.merge(other)
    assert same(again.to_state(), one.to_state())
    with pytest.raises(InvalidSpec, match="scores that are merged must be of one kind"):
        one.merge(scores_of(CountScores if kind is ClassScores else ClassScores, random, 3)[0])
    with pytest.raises(ModelFileError, match="must be of"):
        kind.from_state(State({"nothing": {}}, {}))
