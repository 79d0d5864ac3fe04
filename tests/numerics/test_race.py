"""The race against integrals that know nothing of it: over each latent in turn, or by sampling."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, special

from bayou.numerics import race
from bayou.numerics.jit import COMPILED

FEW = 1 if COMPILED else 5  # plain Python gets every so manieth case


def evidence(winner, mean, variance):
    mean, variance = np.array(mean, dtype=np.float64), np.array(variance, dtype=np.float64)
    slope, curvature = np.empty(mean.size), np.empty(mean.size)
    return race.race_evidence(winner, mean, variance, slope, curvature), slope, curvature


def shares(mean, variance):
    mean, variance = np.array(mean, dtype=np.float64), np.array(variance, dtype=np.float64)
    probability, curvature = np.empty(mean.size), np.empty(mean.size)
    return race.race_shares(mean, variance, probability, curvature), probability, curvature


def by_difference(mean, variance):
    """log E sigmoid(d) for d ~ N(mean, variance), slope and minus curvature, by scipy's quad around the mode."""

    def log_integrand(d):
        return special.log_expit(d) - 0.5 * (d - mean) ** 2 / variance

    mode = optimize.brentq(lambda d: special.expit(-d) - (d - mean) / variance, mean, mean + variance, xtol=1e-12)
    deviation = math.sqrt(variance)

    def moment(order):
        pieces = np.unique(np.clip([mode - 12, mode - 3, mode, mode + 3, mode + 12], *span))
        edges = np.unique([span[0], *pieces, *(mode + deviation * np.arange(-9, 10)), span[1]])
        return sum(
            integrate.quad(
                lambda d: (d - mode) ** order * math.exp(log_integrand(d) - log_integrand(mode)),
                low,
                high,
                epsabs=0.0,
                epsrel=1e-11,
            )[0]
            for low, high in itertools.pairwise(edges)
        )

    span = mode - 10 * deviation, mode + 10 * deviation
    total, first, second = (moment(order) for order in range(3))
    first, second = first / total, second / total
    value = math.log(total) + log_integrand(mode) - 0.5 * math.log(2.0 * math.pi * variance)
    return value, (mode + first - mean) / variance, (1.0 - (second - first * first) / variance) / variance


def by_product(winner, mean, variance):
    """All that a race says, by the trapezoid rule over every latent at once."""
    axes, weights = [], []
    for m, v in zip(mean, variance, strict=True):
        s = math.sqrt(v)
        step = min(0.5, 0.5 * s)  # a softmax is analytic within pi of the real line: 1e-17
        steps = np.arange(-int(9 * s / step) if s else 0, int(9 * s / step) + 1 if s else 1) * step
        weight = np.exp(-0.5 * (steps / s) ** 2) if s else np.ones(1)
        axes.append(m + steps)
        weights.append(weight / weight.sum())
    latents = np.meshgrid(*axes, indexing="ij", sparse=True)
    weight = np.array(1.0)
    for part in np.meshgrid(*weights, indexing="ij", sparse=True):
        weight = weight * part
    total = np.logaddexp.reduce(np.broadcast_arrays(*latents), axis=0)
    p = [np.exp(f - total) for f in latents]
    tilted = weight * p[winner]
    mass = tilted.sum()
    means = np.array([(tilted * f).sum() / mass for f in latents])
    spreads = np.array([(tilted * (f - m) ** 2).sum() / mass for f, m in zip(latents, means, strict=True)])
    return {
        "log_evidence": math.log(mass),
        "moved": means - np.array(mean),  # variance * slope
        "kept": spreads,  # variance * (1 - variance * curvature)
        "log_sum": (weight * total).sum(),
        "probability": np.array([(weight * q).sum() for q in p]),
        "spread": np.array([(weight * q * (1.0 - q)).sum() for q in p]),
    }


DIFFERENCES = list(itertools.product((-30.0, -4.0, 0.0, 1.0, 25.0), (1e-3, 0.3, 2.0, 30.0, 100.0), (0.0, 0.1, 0.9)))


@pytest.mark.parametrize(("mean", "variance", "part"), DIFFERENCES[::FEW])
def test_two_classes_are_a_logistic_of_their_difference(mean, variance, part):
    expected = by_difference(mean, variance)
    value, slope, curvature = evidence(1, [1.0, 1.0 + mean], [part * variance, (1.0 - part) * variance])
    assert value == pytest.approx(expected[0], abs=2e-9)
    np.testing.assert_allclose(slope, [-expected[1], expected[1]], rtol=0, atol=2e-9)
    np.testing.assert_allclose(curvature, expected[2], rtol=0, atol=4e-9)


@pytest.mark.parametrize(
    ("mean", "variance"),
    [(-700.0, 1.0), (-760.0, 100.0), (-650.0, 600.0), (-400.0, 90.0), (-3e3, 1e4), (-3e4, 1e6), (2e3, 1e6), (0.0, 1e6)],
)
def test_unlikely_and_uncertain_classes_keep_their_digits(mean, variance):
    expected = by_difference(mean, variance)
    value, slope, curvature = evidence(0, [mean, 0.0], [0.7 * variance, 0.3 * variance])
    assert value == pytest.approx(expected[0], rel=1e-10, abs=1e-9)
    assert slope[0] == pytest.approx(expected[1], rel=1e-8)
    kept, expected_kept = (1.0 - np.array([0.7, 0.3]) * variance * c for c in (curvature, expected[2]))
    np.testing.assert_allclose(kept, expected_kept, rtol=0, atol=1e-6)


THREE = [
    ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
    ([0.3, -1.0, 2.0], [1e-4, 1e-6, 5e-4]),
    ([0.3, -1.0, 2.0], [0.008, 0.02, 0.039]),
    ([0.3, -1.0, 2.0], [0.041, 0.15, 0.17]),
    ([0.3, -1.0, 2.0], [0.3, 0.5, 0.9]),
    ([0.3, -1.0, 2.0], [3.9, 4.1, 0.2]),
    ([5.0, -6.0, 2.0], [9.0, 16.0, 1.0]),
    ([0.0, -12.0, 3.0], [25.0, 0.0, 0.3]),
    ([0.0, -22.0, -60.0], [140.0, 12.0, 0.0]),
    ([0.0, -22.0, -60.0], [149.0, 12.0, 0.01]),
    ([-18.0, -19.0, 16.0], [0.14, 9.4, 23.7]),
    ([0.0, 10.0, -300.0], [4e3, 0.5, 0.0]),
]


@pytest.mark.parametrize("winner", [0, 1, 2])
@pytest.mark.parametrize(("mean", "variance"), THREE[::FEW])
def test_three_classes_against_an_integral_over_each_latent(mean, variance, winner):
    expected = by_product(winner, mean, variance)
    wide = np.maximum(variance, 1.0)
    if expected["log_evidence"] > -25.0:  # beyond, the product does not reach the tilted mode
        value, slope, curvature = evidence(winner, mean, variance)
        assert value == pytest.approx(expected["log_evidence"], abs=2e-9)
        np.testing.assert_allclose(slope * variance / wide, expected["moved"] / wide, rtol=0, atol=2e-9)
        kept = 1.0 - variance * curvature
        np.testing.assert_allclose(variance * kept / wide, expected["kept"] / wide, rtol=0, atol=1e-8 * wide.max())
    log_sum, probability, spread = shares(mean, variance)
    assert log_sum == pytest.approx(expected["log_sum"], abs=5e-9)
    np.testing.assert_allclose(probability, expected["probability"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(spread, expected["spread"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("variance", [1.0, 20.0, 500.0, 1e5])
def test_ten_classes_against_sampling(variance):
    """Within five standard errors of 200,000 draws."""
    random = np.random.default_rng(20)
    mean, variances = random.normal(size=10), variance * random.uniform(0.2, 1.0, size=10)
    draws = mean + np.sqrt(variances) * random.normal(size=(200_000, 10))
    log_sums = special.logsumexp(draws, axis=1)
    softmax = np.exp(draws - log_sums[:, None])
    log_sum, probability, spread = shares(mean, variances)
    for found, sampled in ((log_sum, log_sums), (probability, softmax), (spread, softmax * (1.0 - softmax))):
        error = sampled.std(axis=0) / math.sqrt(len(draws))
        assert np.all(np.abs(found - sampled.mean(axis=0)) < 5.0 * error)

    value, slope, curvature = evidence(4, mean, variances)
    tilt = softmax[:, 4]
    assert abs(math.exp(value) - tilt.mean()) < 5.0 * tilt.std() / math.sqrt(len(draws))
    moved = draws - mean
    tilted = (tilt[:, None] * moved).sum(axis=0) / tilt.sum()
    error = np.sqrt((tilt[:, None] ** 2 * (moved - tilted) ** 2).sum(axis=0)) / tilt.sum()
    assert np.all(np.abs(variances * slope - tilted) < 5.0 * error)
    squares = (tilt[:, None] * (moved - tilted) ** 2).sum(axis=0) / tilt.sum()
    error = np.sqrt((tilt[:, None] ** 2 * ((moved - tilted) ** 2 - squares) ** 2).sum(axis=0)) / tilt.sum()
    assert np.all(np.abs(variances * (1.0 - variances * curvature) - squares) < 5.0 * error)


@pytest.mark.parametrize("variance", [1e-3, 0.05, 1.0, 50.0, 1e4])
def test_derivatives_are_finite_differences(variance):
    mean, variances = np.array([0.0, 1.5, -2.0, 0.5]), variance * np.array([1.0, 0.5, 2.0, 0.1])
    step = 1e-3 * math.sqrt(1.0 + variance)
    _, slope, curvature = evidence(2, mean, variances)
    _, probability, spread = shares(mean, variances)
    for c in range(4):
        up, down = mean.copy(), mean.copy()
        up[c] += step
        down[c] -= step
        high, low = evidence(2, up, variances), evidence(2, down, variances)
        scale = 1.0 / math.sqrt(1.0 + variance)
        assert (high[0] - low[0]) / (2.0 * step) == pytest.approx(slope[c], abs=1e-6 * scale)
        assert (low[1][c] - high[1][c]) / (2.0 * step) == pytest.approx(curvature[c], abs=1e-6 * scale**2)
        high, low = shares(up, variances), shares(down, variances)
        assert (high[0] - low[0]) / (2.0 * step) == pytest.approx(probability[c], abs=1e-6)
        assert (high[1][c] - low[1][c]) / (2.0 * step) == pytest.approx(spread[c], abs=1e-6 * scale)


legal_means = st.floats(-1e4, 1e4)
legal_variances = st.one_of(st.just(0.0), st.floats(0.0, 1e6), st.floats(-30, 6).map(lambda power: 10.0**power))


@settings(max_examples=400 if COMPILED else 30)
@given(st.lists(st.tuples(legal_means, legal_variances), min_size=2, max_size=6), st.integers(0, 5))
def test_every_legal_belief_gives_numbers(classes, which):
    mean, variance = (np.array(part) for part in zip(*classes, strict=True))
    winner = which % mean.size
    value, slope, curvature = evidence(winner, mean, variance)
    assert -1e6 < value <= 0.0
    assert np.all(np.abs(slope) <= 1.0 + 1e-9)
    assert slope[winner] >= 0.0
    assert np.all((curvature >= 0.0) & (curvature <= 0.25 + 1e-9))
    assert np.all(variance * curvature < 1.0)
    log_sum, probability, spread = shares(mean, variance)
    assert log_sum >= mean.max() - 1e-6 - 1e-8 * math.sqrt(variance.max())
    assert probability.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all((probability >= 0.0) & (spread >= 0.0) & (spread <= 0.25 + 1e-9))
    if probability[winner] > 1e-6:
        assert math.exp(value) == pytest.approx(probability[winner], abs=1e-8)


def test_the_rule_for_the_gumbel_has_its_moments():
    nodes, weights = race.GUMBEL_NODES, race.GUMBEL_WEIGHTS
    assert weights.sum() == pytest.approx(1.0, abs=1e-13)
    assert weights @ nodes == pytest.approx(np.euler_gamma, abs=1e-13)
    assert weights @ (nodes - np.euler_gamma) ** 2 == pytest.approx(math.pi**2 / 6.0, abs=1e-12)
    assert weights @ (nodes - np.euler_gamma) ** 3 == pytest.approx(2.0 * special.zeta(3.0), abs=1e-11)
    for rate in (-0.3, 0.5, 1.0):
        assert weights @ np.exp(-rate * nodes) == pytest.approx(special.gamma(1.0 + rate), rel=1e-11)


def test_what_is_missing_from_one():
    for x in [0.0, 1e-300, 1e-12, 1e-3, 0.1, 1.0, 7.0, 40.0]:
        assert race._missing(x) == pytest.approx(-math.expm1(-x), rel=1e-14)


@given(st.floats(-1e3, 1e4), st.floats(-12, 6))
def test_shares_solve_their_equation(excess, power):
    variance = 10.0**power
    p = race._share(excess, variance)
    if p > 1e-300:
        assert variance * p + math.log(p) == pytest.approx(excess, rel=1e-4, abs=1e-4)
