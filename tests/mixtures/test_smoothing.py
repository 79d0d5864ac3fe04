"""Blurred points and cancelled bias: by jittered points, scipy's optima and densities, and finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from scipy.optimize import minimize_scalar

from bayou.mixtures import smoothing
from bayou.mixtures.evidence import Prior, Statistics
from bayou.mixtures.gaussians import Gaussians, collect, gaussians_of, log_joint, with_covariance
from bayou.mixtures.labels import yang
from bayou.mixtures.smoothing import (
    LEAST,
    Reading,
    cancelled_objective,
    cancelled_weights,
    distances_of,
    inverse_traces,
    learn_at_width,
    learn_cancelled,
    learn_smoothed,
    log_density_sum,
    smoothed_log_joint,
    widened,
    width_of,
)
from tests.mixtures.made import clusters

PRIOR = Prior(certainty=0.3, strength=2.0, scale=0.3)


def standardised_clusters(d: int, k: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rows, labels = clusters(d, k, n, 5.0, seed)
    return (rows - rows.mean(axis=0)) / rows.std(axis=0), labels


def from_labels(rows: np.ndarray, labels: np.ndarray, k: int) -> Gaussians:
    return gaussians_of(collect(rows, np.eye(k)[labels]), PRIOR)


def log_sum_of_densities(rows: np.ndarray, h: float) -> float:
    """log sum_t p_h(x_t), by the normal densities of the columns."""
    densities = np.prod(scipy.stats.norm.pdf(rows[:, None, :] - rows, scale=h), axis=2)
    return float(np.log(densities.mean(axis=1).sum()))


@pytest.mark.parametrize("h", [0.1, 0.5, 3.0])
def test_the_sum_of_densities_is_scipys(h: float) -> None:
    rows = np.random.default_rng(0).normal(size=(30, 3))
    assert log_density_sum(distances_of(rows), h)[0] == pytest.approx(log_sum_of_densities(rows, h), rel=1e-12)


def test_its_derivatives_are_differences() -> None:
    distances, u, step = distances_of(np.random.default_rng(0).normal(size=(30, 3))), math.log(0.6), 1e-4
    below, here, above = (log_density_sum(distances, math.exp(u + shift)) for shift in (-step, 0.0, step))
    assert here[1] == pytest.approx((above[0] - below[0]) / (2.0 * step), rel=1e-6)
    assert here[2] == pytest.approx((above[1] - below[1]) / (2.0 * step), rel=1e-6)


@pytest.mark.parametrize("h", [1e-3, 0.03, 0.3, 2.0, 50.0])
def test_distances_in_bins_tell_the_same(h: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).normal(size=(300, 2))
    rows[7] = rows[8]  # at no distance
    exact = distances_of(rows)
    monkeypatch.setattr(smoothing, "MOST_PAIRS", 100)
    binned = distances_of(rows)
    assert binned.squared.size <= smoothing.BINS
    assert binned.counts.sum() == exact.counts.sum() == 300**2
    assert log_density_sum(binned, h) == pytest.approx(log_density_sum(exact, h), rel=1e-5, abs=1e-5)


def test_the_farthest_distance_has_its_bin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoothing, "MOST_PAIRS", 1)
    binned = distances_of(np.array([[-1.0], [0.0], [1.0]]))
    np.testing.assert_allclose(binned.squared, [0.0, 1.0, 4.0])
    np.testing.assert_array_equal(binned.counts, [3.0, 4.0, 2.0])


def test_many_rows_take_little_memory() -> None:
    """8,000 rows: 512 MB of distances, if they were all kept; 2,000 of them tell the same per row, within 4 %."""
    rows = np.random.default_rng(0).normal(size=(8000, 2))
    distances = distances_of(rows)
    assert distances.squared.nbytes <= 8 * smoothing.BINS
    fewer = distances_of(rows[:2000])
    per_row = [math.exp(log_density_sum(one, 0.5)[0]) / one.n for one in (distances, fewer)]
    assert per_row[0] == pytest.approx(per_row[1], rel=0.04)


@pytest.mark.parametrize("reading", ["once", "each"])
@pytest.mark.parametrize(("n", "d"), [(12, 2), (60, 5), (200, 1), (300, 2)])
def test_h_is_the_largest_of_scipys_optima(n: int, d: int, reading: Reading) -> None:
    """The objective as it is printed, on 300 intervals."""
    rows = standardised_clusters(d, 2, n, 3)[0]
    roughness, counted = 5.0 * n * d, 1.0 if reading == "once" else float(n)

    def loss(u: float) -> float:
        h = math.exp(u)
        return 0.5 * h**2 * roughness + counted * log_sum_of_densities(rows, h)

    coarse = np.linspace(math.log(1e-3), math.log(10.0), 301)
    best = int(np.argmin([loss(u) for u in coarse]))
    theirs = minimize_scalar(
        loss, bounds=(coarse[best - 1], coarse[best + 1]), method="bounded", options={"xatol": 1e-9}
    )
    ours = width_of(distances_of(rows), roughness, counted)
    assert loss(math.log(ours)) <= theirs.fun + 1e-9 * abs(theirs.fun)
    assert ours == pytest.approx(math.exp(theirs.x), rel=1e-5)


def test_h_where_each_row_is_alone_within_its_blur() -> None:
    """h^2 = d / sum_t sum_l p tr C^-1 beside 30 neighbours at more than 15 h; and never more, wherever they are."""
    rows = np.stack(np.meshgrid(np.arange(6.0), np.arange(5.0)), axis=-1).reshape(-1, 2)
    roughness = 2.0 / (1.0 / 15.0) ** 2
    assert width_of(distances_of(rows), roughness, 1.0) ** 2 == pytest.approx(2.0 / roughness, rel=1e-12)
    for closer in (3.0, 10.0, 1e3):
        assert width_of(distances_of(rows / closer), roughness, 1.0) ** 2 <= 2.0 / roughness


def test_the_smoothed_log_joint_is_that_of_jittered_points() -> None:
    """200,000 points about each of three: standard errors below 0.03."""
    rng = np.random.default_rng(0)
    rows, labels = standardised_clusters(3, 2, 40, 1)
    found, h = from_labels(rows, labels, 2), 0.4
    for row in rows[:3]:
        jittered = log_joint(found, row + h * rng.normal(size=(200_000, 3)))
        errors = jittered.std(axis=0) / math.sqrt(len(jittered))
        gap = jittered.mean(axis=0) - smoothed_log_joint(found, row[None], h)[0]
        assert np.all(errors < 0.03)
        assert np.all(np.abs(gap) < 4.0 * errors)


def test_traces_are_those_of_inverses() -> None:
    found = from_labels(*standardised_clusters(3, 2, 40, 1), 2)
    np.testing.assert_allclose(inverse_traces(found), [np.trace(np.linalg.inv(c)) for c in found.covariance])


def test_sums_of_blurred_points_are_those_of_jittered_ones() -> None:
    """Means and covariances of 400,000 points: standard errors below 0.01."""
    rng, h = np.random.default_rng(0), 0.7
    rows, labels = standardised_clusters(2, 2, 40, 1)
    weight = np.eye(2)[labels]
    blurred = widened(collect(rows, weight), h, from_labels(rows, labels, 2))
    copies = np.repeat(rows, 10_000, axis=0) + h * rng.normal(size=(400_000, 2))
    for k in range(2):
        own = copies[np.repeat(labels, 10_000) == k]
        np.testing.assert_allclose(blurred.mean[k], own.mean(axis=0), atol=0.01)
        np.testing.assert_allclose(blurred.covariance[k], np.cov(own.T), atol=0.03)


def packed(found: Gaussians, h: float) -> np.ndarray:
    below = np.tril_indices(found.mean.shape[1])
    lower = np.linalg.cholesky(found.covariance)
    return np.concatenate(
        [np.log(found.share), found.mean.ravel(), lower[:, below[0], below[1]].ravel(), [math.log(h)]]
    )


def unpacked(numbers: np.ndarray, k: int, d: int) -> tuple[Gaussians, float]:
    share = np.exp(numbers[:k]) / np.exp(numbers[:k]).sum()
    mean = numbers[k : k + k * d].reshape(k, d)
    below = np.tril_indices(d)
    lower = np.zeros((k, d, d))
    lower[:, below[0], below[1]] = numbers[k + k * d : -1].reshape(k, -1)
    return with_covariance(share, mean, lower @ lower.transpose(0, 2, 1)), math.exp(numbers[-1])


def slopes(objective: object, numbers: np.ndarray) -> np.ndarray:
    """Central differences, of fourth order."""
    found, step = np.empty(numbers.size), 1e-3
    for j in range(numbers.size):
        values = []
        for shift in (-2.0, -1.0, 1.0, 2.0):
            moved = numbers.copy()
            moved[j] += shift * step
            values.append(objective(moved))  # type: ignore[operator]
        found[j] = (values[0] - 8.0 * values[1] + 8.0 * values[2] - values[3]) / (12.0 * step)
    return found


@pytest.mark.parametrize("reading", ["once", "each"])
def test_clusters_and_h_are_where_the_objective_is_level(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    """By differences of the objective in all numbers, with densities of scipy; it is far from level at the start."""
    monkeypatch.setattr(smoothing, "TOLERANCE", 1e-15)
    rows, labels = standardised_clusters(2, 2, 40, 1)
    start = from_labels(rows, labels, 2)
    found = learn_smoothed(rows, start, 1.0, reading)

    def objective(numbers: np.ndarray) -> float:
        given, h = unpacked(numbers, 2, 2)
        log_likelihood = yang(smoothed_log_joint(given, rows, h), 1.0).log_likelihood
        return log_likelihood - (1.0 if reading == "once" else 40.0) * log_sum_of_densities(rows, h)

    assert np.max(np.abs(slopes(objective, packed(found.clusters, found.h)))) < 1e-3
    assert np.max(np.abs(slopes(objective, packed(start, 2.0 * found.h)))) > 1.0


@pytest.mark.parametrize("reading", ["once", "each"])
def test_matching_raises_the_objective_at_every_step(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, labels = standardised_clusters(3, 2, 30, 2)
    start = from_labels(rows, np.roll(labels, 4), 2)
    distances, counted = distances_of(rows), 1.0 if reading == "once" else 30.0
    values = []
    for steps in range(1, 25):
        monkeypatch.setattr(smoothing, "MOST_STEPS", steps)
        found, h = learn_smoothed(rows, start, 1.0, reading)
        told = yang(smoothed_log_joint(found, rows, h), 1.0).log_likelihood
        values.append(told - counted * log_density_sum(distances, h)[0])
    assert np.all(np.diff(values) > -1e-9 * np.abs(values[0]))
    assert values[-1] > values[0] + 1.0


@pytest.mark.parametrize("matching", [0.0, 0.5])
def test_the_weights_are_the_slope_in_h_too(matching: float) -> None:
    """dF / dh = -h sum_t sum_l w tr C^-1, where no weight is clipped."""
    rows, labels = standardised_clusters(2, 2, 50, 4)
    found, h, step = from_labels(rows, labels, 2), 0.3, 1e-5
    values = []
    for there in (h - step, h + step):
        told = yang(smoothed_log_joint(found, rows, there), 1.0)
        values.append(matching * told.log_likelihood + (1.0 - matching) * told.harmony)
    joint = smoothed_log_joint(found, rows, h)
    p = yang(joint, 1.0).probability
    delta = joint - np.sum(p * joint, axis=1, keepdims=True)
    weight = p * (1.0 + (1.0 - matching) * delta)
    slope = -h * float(weight.sum(axis=0) @ inverse_traces(found))
    assert (values[1] - values[0]) / (2.0 * step) == pytest.approx(slope, rel=1e-6)


def test_an_h_that_is_given_is_a_ridge() -> None:
    """One cluster: the sample's mean, and its covariance plus h^2 I."""
    rows = np.random.default_rng(0).normal(size=(25, 3)) + 50.0
    start = with_covariance(np.ones(1), np.zeros((1, 3)), np.eye(3)[None])
    found = learn_at_width(rows, start, 1.0, 0.7)
    np.testing.assert_allclose(found.mean[0], rows.mean(axis=0))
    np.testing.assert_allclose(found.covariance[0], np.cov(rows.T, bias=True) + 0.49 * np.eye(3), atol=1e-12)


@pytest.mark.parametrize("matching", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("n", "d", "k"), [(4, 10, 1), (6, 10, 2), (12, 5, 3), (2, 3, 1)])
def test_covariances_stay_positive_with_fewer_rows_than_columns(n: int, d: int, k: int, matching: float) -> None:
    rng = np.random.default_rng(n)
    rows = rng.normal(size=(n, d))
    start = from_labels(rows, np.arange(n) % k, k)
    found = [learn_smoothed(rows, start, matching, "once"), learn_smoothed(rows, start, matching, "each")]
    for given, h in (*found, (learn_cancelled(rows, start, matching), LEAST)):
        assert h > 0.0
        assert np.all(np.isfinite(log_joint(given, rows)))
        assert np.all(np.linalg.eigvalsh(given.covariance) > 0.0)
    assert found[1].h > 0.1  # counted for each row, the prior alone holds it


def test_flat_clusters_let_h_fall_if_the_prior_counts_once() -> None:
    """d = 10 columns, 5 rows of rank 4: log |C| falls faster than the prior, d log h, with 5 (10 - 4) log h."""
    rows = np.random.default_rng(0).normal(size=(5, 10))
    start = from_labels(rows, np.zeros(5, dtype=int), 1)
    least = LEAST * math.sqrt(np.mean(np.var(rows, axis=0)))
    assert learn_smoothed(rows, start, 1.0, "once").h == pytest.approx(least)


def test_rows_that_are_all_the_same() -> None:
    rows = np.ones((6, 2))
    start = with_covariance(np.full(2, 0.5), np.array([[0.0, 0.0], [1.0, 1.0]]), np.stack([np.eye(2)] * 2))
    for given in (learn_smoothed(rows, start, 1.0, "each").clusters, learn_cancelled(rows, start, 1.0)):
        assert np.all(np.isfinite(given.covariance))
        np.testing.assert_allclose(given.share @ given.mean, 1.0)


@pytest.mark.parametrize("matching", [0.0, 0.3, 1.0])
def test_cancelled_weights_are_slopes(matching: float) -> None:
    """In each log q(x, l), by differences; and each row counts 1 - r."""
    rows, labels = standardised_clusters(2, 3, 15, 1)
    joint = log_joint(from_labels(rows, labels, 3), rows)
    weight, step = cancelled_weights(joint, matching), 1e-5
    for t in range(15):
        for k in range(3):
            shift = np.zeros_like(joint)
            shift[t, k] = step
            slope = cancelled_objective(joint + shift, matching) - cancelled_objective(joint - shift, matching)
            assert slope / (2.0 * step) == pytest.approx(weight[t, k], abs=1e-8)
    density = np.exp(joint).sum(axis=1)
    np.testing.assert_allclose(weight.sum(axis=1), 1.0 - density / density.sum())
    assert weight.sum() == pytest.approx(14.0)


@pytest.mark.parametrize("matching", [0.0, 0.5, 1.0])
def test_cancelled_clusters_are_where_the_objective_is_level(matching: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoothing, "TOLERANCE", 0.0)
    monkeypatch.setattr(smoothing, "LEAST", 1e-9)
    rows, labels = standardised_clusters(2, 2, 40, 1)
    start = from_labels(rows, labels, 2)
    found = learn_cancelled(rows, start, matching)

    def objective(numbers: np.ndarray) -> float:
        return cancelled_objective(log_joint(unpacked(numbers, 2, 2)[0], rows), matching)

    assert np.max(np.abs(slopes(objective, packed(found, 1.0)))) < 1e-3
    assert np.max(np.abs(slopes(objective, packed(start, 1.0)))) > 0.5


@pytest.mark.parametrize("matching", [0.0, 0.5, 1.0])
def test_cancelling_raises_the_objective_at_every_step(matching: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """From labels that are wrong, where whole steps would lower it."""
    rows, labels = standardised_clusters(2, 3, 40, 1)
    start = from_labels(rows, np.random.default_rng(0).permutation(labels), 3)
    values = []
    for steps in range(1, 30):
        monkeypatch.setattr(smoothing, "MOST_STEPS", steps)
        values.append(cancelled_objective(log_joint(learn_cancelled(rows, start, matching), rows), matching))
    assert np.all(np.diff(values) > -1e-9 * np.abs(values[0]))
    assert values[-1] > values[0] + 5.0


def test_cancelling_widens_one_gaussian_by_half_a_row() -> None:
    """The density's square is a normal of half the variance: n - 1 in place of n - 1/2 rows, for many rows."""
    n = 2000
    rows = scipy.stats.norm.ppf((np.arange(n) + 0.5) / n)[:, None]
    found = learn_cancelled(rows, with_covariance(np.ones(1), np.zeros((1, 1)), np.ones((1, 1, 1))), 1.0)
    ratio = float(found.covariance[0, 0, 0] / np.var(rows))
    assert n * (ratio - 1.0) == pytest.approx(0.5, abs=0.02)


def test_cancelling_takes_the_gain_of_a_cluster_about_a_single_point() -> None:
    """By maximum likelihood it is d log(1 / deviation) without end; here nothing is gained."""
    rows, labels = standardised_clusters(2, 1, 30, 5)
    body = from_labels(rows[1:], labels[1:], 1)
    values, likelihoods = [], []
    for deviation in (1e-3, 1e-5, 1e-7):
        covariance = np.stack([body.covariance[0], deviation**2 * np.eye(2)])
        spiked = with_covariance(np.array([29.0, 1.0]) / 30.0, np.stack([body.mean[0], rows[0]]), covariance)
        joint = log_joint(spiked, rows)
        values.append(cancelled_objective(joint, 1.0))
        likelihoods.append(yang(joint, 1.0).log_likelihood)
    np.testing.assert_allclose(np.diff(likelihoods), 2.0 * math.log(100.0), rtol=1e-3)
    np.testing.assert_allclose(np.diff(values), 0.0, atol=1e-2)


def test_a_cluster_without_points_stays() -> None:
    before = from_labels(*standardised_clusters(2, 2, 30, 1), 2)
    sums = Statistics(np.array([30.0, 0.0]), np.zeros((2, 2)), np.stack([30.0 * np.eye(2), np.zeros((2, 2))]))
    found = widened(sums, 0.5, before)
    np.testing.assert_array_equal(found.mean[1], before.mean[1])
    np.testing.assert_array_equal(found.covariance[1], before.covariance[1])
    np.testing.assert_allclose(found.covariance[0], 1.25 * np.eye(2))
