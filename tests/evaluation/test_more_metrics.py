"""Balanced accuracy, kappa, AUC and CRPS, against scikit-learn, scipy, quadrature and repetition; weights of rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn import metrics as reference

from bayou import Gaussian, Poisson, Prediction
from bayou.contracts import Latent
from bayou.errors import InvalidPrediction, InvalidSpec, InvalidTarget, ShapeMismatch
from bayou.evaluation import metrics

ROWS = 500


def classes(seed: int, n_classes: int, rows: int = ROWS) -> tuple[NDArray[Any], NDArray[Any]]:
    """Probabilities, and classes that come as often as they say, the first more often than others."""
    random = np.random.default_rng(seed)
    shares = np.r_[2.0, np.full(n_classes - 1, 0.6)]
    probabilities = random.dirichlet(shares, size=rows)
    codes = (probabilities.cumsum(axis=1)[:, :-1] < random.random((rows, 1))).sum(axis=1)
    return probabilities, codes


def counted(metric: Any, *arrays: NDArray[Any], portion: int = 7) -> Any:
    for start in range(0, len(arrays[0]), portion):
        metric.update(*(array[start : start + portion] for array in arrays))
    return metric


# --- labels


@pytest.mark.parametrize("n_classes", [2, 5])
def test_balanced_accuracy_and_kappa_are_those_of_scikit_learn(n_classes: int) -> None:
    probabilities, codes = classes(0, n_classes)
    told = probabilities.argmax(axis=1)
    balanced = counted(metrics.BalancedAccuracy(), probabilities, codes)
    assert balanced.value == pytest.approx(reference.balanced_accuracy_score(codes, told), rel=1e-12)
    assert balanced.n_classes == n_classes
    kappa = counted(metrics.Kappa(), probabilities, codes)
    assert kappa.value == pytest.approx(reference.cohen_kappa_score(codes, told), rel=1e-12)


def test_balance_is_over_the_classes_that_came() -> None:
    balanced = counted(metrics.BalancedAccuracy(), np.eye(3)[[0, 0, 1, 1]], np.array([0, 0, 0, 1]))
    assert balanced.value == pytest.approx((2 / 3 + 1) / 2)


def test_kappa_of_one_class_is_not_known() -> None:
    kappa = counted(metrics.Kappa(), np.tile([0.9, 0.1], (5, 1)), np.zeros(5, dtype=int))
    assert math.isnan(kappa.value)
    assert math.isnan(kappa.standard_error)


@pytest.mark.parametrize("kind", [metrics.BalancedAccuracy, metrics.Kappa])
def test_standard_errors_of_labels_are_those_of_repetition(kind: type[metrics.Metric]) -> None:
    repeated = [counted(kind(), *classes(seed, 3), portion=ROWS) for seed in range(300)]
    scatter = np.std([metric.value for metric in repeated])
    assert scatter / np.mean([metric.standard_error for metric in repeated]) == pytest.approx(1.0, abs=0.13)


def test_another_number_of_classes_is_refused() -> None:
    for kind in (metrics.BalancedAccuracy, metrics.Kappa):
        two, three = counted(kind(), *classes(0, 2)), counted(kind(), *classes(0, 3))
        before = two.counts.copy()
        with pytest.raises(ShapeMismatch, match="each of 2 classes, as before; got 3"):
            two.update(*classes(0, 3))
        with pytest.raises(InvalidSpec, match="must have as many classes, 2; got"):
            two.merge(three)
        np.testing.assert_array_equal(two.counts, before)


# --- area under the curve


def delong(scores: NDArray[Any], codes: NDArray[Any]) -> float:
    """DeLong's standard error over all pairs."""
    negatives, positives = scores[codes == 0], scores[codes == 1]
    wins = (positives[:, None] > negatives) + 0.5 * (positives[:, None] == negatives)
    parts = (np.var(wins.mean(axis=side), ddof=1) / wins.shape[1 - side] for side in (0, 1))
    return math.sqrt(sum(parts))


@pytest.mark.parametrize(("spread", "centre"), [(2.0, 0.0), (0.02, -4.0), (12.0, 3.0), (1e-4, 0.0)])
def test_the_area_is_that_of_scikit_learn(spread: float, centre: float) -> None:
    random = np.random.default_rng(1)
    codes = (random.random(6000) < 0.3).astype(int)
    odds = centre + spread * (random.normal(size=codes.size) + 0.8 * codes)
    given = 1.0 / (1.0 + np.exp(-odds))
    area = counted(metrics.AUC(), np.column_stack([1.0 - given, given]), codes, portion=999)
    wanted = reference.roc_auc_score(codes, given)
    assert area.counts.shape[1] <= 2048
    assert area.value == pytest.approx(wanted, abs=1e-4)
    assert abs(area.value - wanted) <= area.rounding < 2e-3
    assert area.standard_error == pytest.approx(delong(given, codes), rel=1e-3)


def test_the_area_of_ties_and_certainties_is_exact() -> None:
    random = np.random.default_rng(2)
    codes = random.integers(0, 2, size=300)
    given = random.choice([0.0, 0.25, 0.5, 0.75, 1.0], p=[0.1, 0.2, 0.4, 0.2, 0.1], size=300)
    area = counted(metrics.AUC(), np.column_stack([1.0 - given, given]), codes)
    assert area.value == pytest.approx(reference.roc_auc_score(codes, given), rel=1e-12)
    assert area.standard_error == pytest.approx(delong(given, codes), rel=1e-12)


def test_the_area_is_known_to_its_standard_error() -> None:
    repeated = [counted(metrics.AUC(), *classes(seed, 2), portion=ROWS) for seed in range(300)]
    scatter = np.std([area.value for area in repeated])
    assert scatter / np.mean([area.standard_error for area in repeated]) == pytest.approx(1.0, abs=0.13)


def test_the_area_of_one_class_or_of_three() -> None:
    area = counted(metrics.AUC(), np.tile([0.3, 0.7], (5, 1)), np.ones(5, dtype=int))
    assert math.isnan(area.value)
    assert math.isnan(area.standard_error)
    with pytest.raises(ShapeMismatch, match="must be of two classes; got 3 columns"):
        area.update(*classes(0, 3))


# --- continuous ranked probability score


def by_quadrature(cumulative: Any, targets: NDArray[Any], low: float, high: float) -> NDArray[Any]:
    """int (F - step)^2, by a trapezoid on either side of each target."""
    scores = []
    for target in targets:
        below, above = np.linspace(low, target, 20_001), np.linspace(target, high, 20_001)
        scores.append(np.trapezoid(cumulative(below) ** 2, below) + np.trapezoid((1 - cumulative(above)) ** 2, above))
    return np.array(scores)


def test_crps_of_normals_is_exact_from_quantiles() -> None:
    random = np.random.default_rng(0)
    mean, deviation = random.normal(1e3, 30.0, size=50), random.lognormal(size=50)
    targets = mean + deviation * random.normal(0.0, 3.0, size=50)
    score = metrics.CRPS()
    quantiles = stats.norm.ppf(score.edges[None, :], mean[:, None], deviation[:, None])
    closed = metrics.crps_of_normal(mean, deviation, targets)
    np.testing.assert_allclose(metrics.crps_of_quantiles(quantiles, score.edges, targets), closed, rtol=1e-9)
    for row in range(5):
        law = stats.norm(mean[row], deviation[row])
        brute = by_quadrature(law.cdf, targets[row : row + 1], mean[row] - 20 * law.std(), mean[row] + 20 * law.std())
        assert closed[row] == pytest.approx(brute[0], rel=1e-5)
    assert counted(score, quantiles, targets).value == pytest.approx(closed.mean(), rel=1e-9)


def test_crps_of_what_the_library_predicts() -> None:
    latent = Latent(np.array([1.0, -2.0]), np.array([0.5, 3.0]))
    targets, score = np.array([0.3, 4.0]), metrics.CRPS()
    said = Prediction(Gaussian(), latent)
    score.update(said.quantiles(score.edges), targets)
    assert score.value == pytest.approx(metrics.crps_of_normal(said.mean, np.sqrt(said.variance), targets).mean())


@pytest.mark.parametrize(
    ("law", "error"),
    [(stats.t(3), 1e-3), (stats.t(5), 1e-3), (stats.laplace, 1e-3), (stats.expon, 1e-3), (stats.logistic, 1e-3)],
)
def test_crps_from_quantiles_is_as_close_as_stated(law: Any, error: float) -> None:
    targets, score = law.ppf((np.arange(200) + 0.5) / 200), metrics.CRPS()
    score.update(np.tile(law.ppf(score.edges), (200, 1)), targets)
    wanted = by_quadrature(law.cdf, targets, *law.ppf([1e-7, 1.0 - 1e-7])).mean()
    assert score.value == pytest.approx(wanted, rel=error)


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_crps_of_mixtures(share: float) -> None:
    def cumulative(x: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(share * stats.norm.cdf(x) + (1 - share) * stats.norm.cdf(x - 6.0))

    grid = np.linspace(-9.0, 15.0, 200_001)
    targets, score = np.interp((np.arange(100) + 0.5) / 100, cumulative(grid), grid), metrics.CRPS()
    parts = np.tile([[share, 1 - share], [0.0, 6.0], [1.0, 1.0]], (100, 1, 1)).transpose(1, 0, 2)
    exact = metrics.crps_of_normals(*parts, targets)
    np.testing.assert_allclose(exact, by_quadrature(cumulative, targets, -9.0, 15.0), rtol=1e-5)
    score.update(np.tile(np.interp(score.edges, cumulative(grid), grid), (100, 1)), targets)
    assert score.value == pytest.approx(exact.mean(), rel=5e-3)


def test_crps_of_certainty_is_the_absolute_error() -> None:
    targets = np.array([2.0, 5.0, -1e300])
    sure = np.tile(np.full(4, 2.0), (3, 1))
    np.testing.assert_array_equal(
        metrics.crps_of_quantiles(sure, np.array([0.2, 0.4, 0.6, 0.8]), targets), [0.0, 3.0, 1e300]
    )
    nearly = sure[:2] + 1e-14 * np.arange(4)
    scores = metrics.crps_of_quantiles(nearly, np.array([0.2, 0.4, 0.6, 0.8]), targets[:2])
    np.testing.assert_allclose(scores, [0.0, 3.0], atol=1e-12)


def test_crps_of_counts_is_that_of_pairs_drawn() -> None:
    random, rates, targets = np.random.default_rng(0), np.array([0.3, 4.0, 30.0]), np.array([2.0, 4.0, 20.0])
    said = Prediction(Poisson(), Latent(np.log(rates), np.full(3, 1e-14)))
    one, other = random.poisson(rates, size=(2, 400_000, 3))
    wanted = np.abs(one - targets).mean(axis=0) - 0.5 * np.abs(one - other).mean(axis=0)
    np.testing.assert_allclose(metrics.crps_of_counts(said, targets), wanted, rtol=0.01, atol=2e-3)
    with pytest.raises(InvalidTarget, match="whole numbers from 0 to 99999"):
        metrics.crps_of_counts(said, np.array([0.5, 1.0, 1.0]))


def test_quantiles_that_cannot_be_are_refused() -> None:
    score = metrics.CRPS(bins=4)
    with pytest.raises(InvalidPrediction, match=r"must not fall; got a step of -1\.0"):
        score.update(np.array([[1.0, 0.0, 2.0]]), np.zeros(1))
    with pytest.raises(InvalidPrediction, match="must be numbers; got nan"):
        score.update(np.array([[1.0, np.nan, 2.0]]), np.zeros(1))
    with pytest.raises(ShapeMismatch, match=r"3 columns; got shape \(1, 2\)"):
        score.update(np.array([[1.0, 2.0]]), np.zeros(1))
    with pytest.raises(InvalidSpec, match="at least 3; got 2"):
        metrics.CRPS(2)
    assert score.rows == 0
    score.update(np.array([[0.0, 1.0, np.inf], [0.0, 1.0, 2.0]]), np.zeros(2))
    assert score.value == math.inf


# --- weights, and what cannot be counted


def test_weights_are_those_of_scikit_learn() -> None:
    probabilities, codes = classes(4, 2)
    told, weights = probabilities.argmax(axis=1), np.random.default_rng(5).exponential(size=ROWS)
    given = {"sample_weight": weights}
    wanted = {
        metrics.Accuracy: reference.accuracy_score(codes, told, **given),
        metrics.LogLoss: reference.log_loss(codes, probabilities, **given),
        metrics.Brier: reference.brier_score_loss(codes, probabilities[:, 1], **given),
        metrics.BalancedAccuracy: reference.balanced_accuracy_score(codes, told, **given),
        metrics.Kappa: reference.cohen_kappa_score(codes, told, **given),
    }
    for kind, value in wanted.items():
        assert counted(kind(), probabilities, codes, weights).value == pytest.approx(value, rel=1e-10)
    area = counted(metrics.AUC(), probabilities, codes, weights)
    assert area.value == pytest.approx(reference.roc_auc_score(codes, probabilities[:, 1], **given), abs=area.rounding)
    assert area.value == pytest.approx(reference.roc_auc_score(codes, probabilities[:, 1], **given), abs=1e-4)
    predictions, targets = probabilities[:, 0], codes.astype(float)
    wanted_error = reference.root_mean_squared_error(targets, predictions, **given)
    assert counted(metrics.RMSE(), predictions, targets, weights).value == pytest.approx(wanted_error, rel=1e-12)


@pytest.mark.parametrize(
    "kind", [metrics.LogLoss, metrics.CalibrationError, metrics.BalancedAccuracy, metrics.Kappa, metrics.AUC]
)
def test_standard_errors_under_weights_are_those_of_repetition(kind: Any) -> None:
    repeated = []
    for seed in range(300):
        probabilities, codes = classes(seed, 2)
        bolder = probabilities**2 / (probabilities**2).sum(axis=1, keepdims=True)  # so that no gap folds at zero
        weights = np.random.default_rng(seed).exponential(size=ROWS)
        repeated.append(counted(kind(), bolder, codes, weights, portion=ROWS))
    scatter = np.std([metric.value for metric in repeated])
    lowest = 0.7 if kind is metrics.CalibrationError else 0.87
    assert lowest < scatter / np.mean([metric.standard_error for metric in repeated]) < 1.15


def test_what_cannot_be_counted_is_refused_and_changes_nothing() -> None:
    probabilities, codes = classes(0, 2, rows=4)
    bad = probabilities.copy()
    bad[2, 1] = np.nan
    for kind in (metrics.Accuracy, metrics.LogLoss, metrics.CalibrationError, metrics.Kappa, metrics.AUC):
        metric: Any = kind()
        with pytest.raises(InvalidPrediction, match="between 0 and 1; got nan"):
            metric.update(bad, codes)
        with pytest.raises(InvalidTarget, match="whole numbers from 0 to 1; got"):
            metric.update(probabilities, codes + 2)
        with pytest.raises(ShapeMismatch, match=r"got shape \(3, 2\)"):
            metric.update(probabilities[:3], codes)
        with pytest.raises(InvalidSpec, match=r"`weights` must be finite, 0 or more; got -1\.0"):
            metric.update(probabilities, codes, [1.0, 1.0, -1.0, 1.0])
        with pytest.raises(ShapeMismatch, match=r"for each of 4 rows; got shape \(2,\)"):
            metric.update(probabilities, codes, [1.0, 1.0])
        assert math.isnan(metric.value)
    error = metrics.MAE()
    with pytest.raises(InvalidPrediction, match="MAE must be of numbers; got nan in row 1"):
        error.update(np.array([1.0, np.nan]), np.zeros(2))
    with pytest.raises(ShapeMismatch, match=r"got \(2,\), \(3,\)"):
        error.update(np.zeros(2), np.zeros(3))
    assert error.rows == 0


def test_an_infinite_loss_stays() -> None:
    loss = metrics.NegativeLogDensity()
    for value in (-1.0, -np.inf, -2.0):
        loss.update(np.array([value]))
    assert loss.value == math.inf
