"""Each metric against a second route: scikit-learn, numpy over all rows at once, or simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import metrics as reference

from bayou.errors import InvalidSpec
from bayou.evaluation import metrics
from bayou.evaluation.metrics import Metric

ROWS = 400


def classes(seed: int, n_classes: int, rows: int = ROWS) -> tuple[NDArray[Any], NDArray[Any]]:
    """Probabilities, and classes that come as often as they say."""
    random = np.random.default_rng(seed)
    probabilities = random.dirichlet(np.full(n_classes, 0.6), size=rows)
    codes = (probabilities.cumsum(axis=1)[:, :-1] < random.random((rows, 1))).sum(axis=1)
    return probabilities, codes


def numbers(seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    random = np.random.default_rng(seed)
    predictions = random.normal(1e6, 3.0, size=ROWS)
    return predictions, predictions + random.normal(size=ROWS)


def counted(metric: Any, *arrays: NDArray[Any], portion: int = ROWS) -> Any:
    for start in range(0, len(arrays[0]), portion):
        metric.update(*(array[start : start + portion] for array in arrays))
    return metric


CLASS_REFERENCES: dict[type[Metric], Callable[[Any, Any], float]] = {
    metrics.Accuracy: lambda p, y: float(reference.accuracy_score(y, p.argmax(axis=1))),
    metrics.LogLoss: lambda p, y: float(reference.log_loss(y, p)),
    metrics.Brier: lambda p, y: float(reference.brier_score_loss(y, p[:, 1] if p.shape[1] == 2 else p)),
}


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", CLASS_REFERENCES)
def test_scores_of_classes_are_those_of_scikit_learn(kind: type[Metric], n_classes: int) -> None:
    probabilities, codes = classes(0, n_classes)
    metric = counted(kind(), probabilities, codes, portion=7)
    assert metric.value == pytest.approx(CLASS_REFERENCES[kind](probabilities, codes), rel=1e-12)


def test_scores_of_numbers_are_those_of_scikit_learn() -> None:
    predictions, targets = numbers()
    for kind, wanted in (
        (metrics.RMSE, reference.root_mean_squared_error),
        (metrics.MAE, reference.mean_absolute_error),
    ):
        assert counted(kind(), predictions, targets, portion=7).value == pytest.approx(wanted(targets, predictions))
    rates = np.exp(numbers()[0] - 1e6)
    counts = np.random.default_rng(1).poisson(rates).astype(float)
    wanted = reference.mean_poisson_deviance(counts, rates)
    assert counted(metrics.Deviance(), rates, counts, portion=7).value == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("kind", [*CLASS_REFERENCES, metrics.CalibrationError])
def test_standard_errors_of_classes_are_those_of_repetition(kind: type[Metric]) -> None:
    repeated = [counted(kind(), *classes(seed, 3, rows=2000)) for seed in range(200)]
    scatter = np.std([metric.value for metric in repeated])
    # The calibration error of true probabilities folds at zero, which makes it scatter less than its bins do.
    lowest = 0.5 if kind is metrics.CalibrationError else 0.85
    assert lowest < scatter / np.mean([metric.standard_error for metric in repeated]) < 1.15


@pytest.mark.parametrize("kind", [metrics.RMSE, metrics.MAE])
def test_standard_errors_of_numbers_are_those_of_repetition(kind: type[Metric]) -> None:
    repeated = [counted(kind(), *numbers(seed)) for seed in range(300)]
    scatter = np.std([metric.value for metric in repeated])
    assert 0.85 < scatter / np.mean([metric.standard_error for metric in repeated]) < 1.15


def test_calibration_error_by_hand() -> None:
    probabilities, codes = classes(3, 2)
    metric = counted(metrics.CalibrationError(), probabilities, codes, portion=7)
    gaps = [
        np.abs(np.sum(given - (codes[inside] == 1)))
        for low in np.arange(20) / 20
        if (given := probabilities[inside := (probabilities[:, 1] >= low) & (probabilities[:, 1] < low + 0.05), 1]).size
    ]
    assert metric.value == pytest.approx(sum(gaps) / ROWS)
    assert metric.rows.sum() == ROWS
    assert metric.observed.sum() == codes.sum()


@pytest.mark.parametrize("n_classes", [2, 5])
def test_true_probabilities_show_the_calibration_error_of_chance(n_classes: int) -> None:
    repeated = [counted(metrics.CalibrationError(), *classes(seed, n_classes)) for seed in range(200)]
    mean, expected = (np.mean([getattr(metric, name) for metric in repeated]) for name in ("value", "noise"))
    assert mean == pytest.approx(expected, rel=0.06)


def test_wrong_probabilities_show_how_wrong_they_are() -> None:
    probabilities, codes = classes(0, 2, rows=50_000)
    bolder = probabilities**2 / (probabilities**2).sum(axis=1, keepdims=True)
    metric = counted(metrics.CalibrationError(), bolder, codes)
    assert metric.value == pytest.approx(
        np.abs(bolder[:, 1] - probabilities[:, 1]).mean(), abs=4 * metric.standard_error
    )
    assert metric.value > 10 * metric.noise


def test_kappa_temporal_and_its_error() -> None:
    probabilities, codes = classes(0, 3)
    last = np.concatenate([[-1], codes[:-1]])
    metric = counted(metrics.KappaTemporal(), probabilities, codes, last, portion=7)
    model, no_change = np.mean(probabilities.argmax(axis=1) == codes), np.mean(last == codes)
    assert metric.value == pytest.approx((model - no_change) / (1.0 - no_change))
    repeated = [metrics.KappaTemporal() for _ in range(200)]
    for seed, other in enumerate(repeated):
        given, truth = classes(seed, 3)
        other.update(given, truth, np.concatenate([[-1], truth[:-1]]))
    assert metric.standard_error == pytest.approx(np.std([other.value for other in repeated]), rel=0.15)


def test_coverage_width_and_place_of_normal_targets() -> None:
    random = np.random.default_rng(0)
    targets, pit = random.normal(size=20_000), metrics.PITHistogram()
    quantiles = np.quantile(random.normal(size=2_000_000), [0.05, 0.95, *pit.edges])
    rows = np.broadcast_to(quantiles, (len(targets), len(quantiles)))
    coverage = counted(metrics.Coverage(0.9), rows[:, :2], targets, portion=777)
    assert coverage.value == pytest.approx(0.9, abs=3 * coverage.standard_error)
    assert coverage.standard_error == pytest.approx(math.sqrt(0.09 / 20_000), rel=0.05)
    assert counted(metrics.Width(), rows[:, :2]).value == pytest.approx(2 * 1.6449, rel=0.005)
    counted(pit, rows[:, 2:], targets, portion=777)
    assert pit.counts == pytest.approx(np.full(20, 1000.0), abs=130)
    assert pit.value < 0.015
    levels, covered = pit.coverage()
    assert levels == pytest.approx(np.arange(1, 10) / 10)
    assert covered == pytest.approx(levels, abs=0.015)
    assert covered[-1] == coverage.value


def test_intervals_that_are_too_narrow_show_in_the_ends() -> None:
    targets, pit = np.random.default_rng(0).normal(size=5000), metrics.PITHistogram(bins=4)
    counted(pit, np.tile([-0.3, 0.0, 0.3], (5000, 1)), targets)
    assert min(pit.counts[[0, 3]]) > 2 * max(pit.counts[[1, 2]])
    assert pit.value > 0.1


def test_portions_of_any_size_count_the_same() -> None:
    probabilities, codes = classes(0, 3)
    for kind in (*CLASS_REFERENCES, metrics.CalibrationError):
        whole = counted(kind(), probabilities, codes)
        for portion in (1, 13):
            parts = counted(kind(), probabilities, codes, portion=portion)
            assert (parts.value, parts.standard_error) == pytest.approx((whole.value, whole.standard_error), rel=1e-11)


def test_an_impossible_class_costs_much_but_not_everything() -> None:
    metric = counted(metrics.LogLoss(), np.array([[1.0, 0.0]]), np.array([1]))
    assert metric.value == pytest.approx(36.04, abs=0.01)


@pytest.mark.parametrize("name", ["Accuracy", "CalibrationError", "KappaTemporal", "RMSE", "Coverage", "PITHistogram"])
def test_nothing_is_known_of_no_rows(name: str) -> None:
    metric: Metric = getattr(metrics, name)()
    assert math.isnan(metric.value)
    assert math.isnan(metric.standard_error)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidSpec, match="`level` must lie between 0 and 1; got 90"):
        metrics.Coverage(90)
    with pytest.raises(InvalidSpec, match="even number, at least 2; got 7"):
        metrics.PITHistogram(7)
    with pytest.raises(InvalidSpec, match="at least 1; got 0"):
        metrics.CalibrationError(0)
