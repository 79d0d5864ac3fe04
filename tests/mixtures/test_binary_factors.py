"""Sums over bits against brute force, steps against EM by hand and differences, pruning, starts and streams."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from bayou.mixtures.binary_factors import (
    ENUMERATED,
    LEAST_NOISE,
    Factors,
    Sums,
    expect,
    explain,
    learn,
    maximise,
    no_sums,
)
from bayou.mixtures.binary_harmony import fit, oriented, pruned, worth_keeping
from bayou.numerics.jit import COMPILED

needs_speed = pytest.mark.skipif(not COMPILED, reason="many fits need compiled kernels")


def made(seed: int, m: int = 3, n_columns: int = 8, n: int = 500, deviation: float = 0.3) -> np.ndarray:
    """Rows of so many bits, with loadings of unit variance; centred, with a mean variance of one."""
    random = np.random.default_rng(seed)
    bits = random.random((n, m)) < random.uniform(0.3, 0.7, m)
    rows = bits @ random.normal(size=(m, n_columns)) + deviation * random.normal(size=(n, n_columns))
    rows -= rows.mean(axis=0)
    return rows / math.sqrt(np.mean(rows**2))


def some_factors(m: int, n_columns: int, noise: float, seed: int = 0) -> Factors:
    random = np.random.default_rng(seed)
    loadings, location = random.normal(size=(n_columns, m)), random.normal(size=n_columns)
    return Factors(loadings, location, random.uniform(0.1, 0.9, m), np.array([noise]))


def joint(factors: Factors, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All bits, and ln p(x, y) of each row and each of them, one density at a time."""
    m = factors.probabilities.size
    states = np.array(list(itertools.product((0.0, 1.0), repeat=m))).reshape(2**m, m)
    logs = np.empty((len(rows), len(states)))
    for s, y in enumerate(states):
        mean = factors.loadings @ y + factors.location
        prior = np.where(y == 1.0, factors.probabilities, 1.0 - factors.probabilities)
        logs[:, s] = norm.logpdf(rows, mean, math.sqrt(factors.noise[0])).sum(axis=1) + np.log(prior).sum()
    return states, logs


def harmony_weights(logs: np.ndarray, temperature: float) -> np.ndarray:
    p = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    return p * (1.0 + (1.0 - temperature) * (logs - np.sum(p * logs, axis=1, keepdims=True)))


def sums_of(factors: Factors, rows: np.ndarray, temperature: float) -> tuple[Sums, float, float]:
    sums = no_sums(factors.probabilities.size, rows.shape[1])
    density, harmony = expect(factors, rows, temperature, sums)
    return sums, density, harmony


def whole(pairs: np.ndarray) -> np.ndarray:
    return np.tril(pairs) + np.tril(pairs, -1).T


@pytest.mark.parametrize("temperature", [1.0, 0.4, 0.0])
@pytest.mark.parametrize("m", [0, 1, 4])
def test_sums_over_all_bits_are_those_of_brute_force(m: int, temperature: float) -> None:
    factors, rows = some_factors(m, 3, 0.7), np.random.default_rng(1).normal(size=(40, 3))
    states, logs = joint(factors, rows)
    sums, density, harmony = sums_of(factors, rows, temperature)
    p = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    assert density == pytest.approx(logsumexp(logs, axis=1).sum(), rel=1e-12)
    assert harmony == pytest.approx(np.sum(p * logs), rel=1e-12)
    weights = np.maximum(harmony_weights(logs, temperature), 0.0)
    assert temperature == 1.0 or m < 4 or np.any(harmony_weights(logs, temperature) < 0.0)  # some were left out
    weights /= weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(sums.bits, (weights @ states).sum(axis=0), atol=1e-11)
    np.testing.assert_allclose(whole(sums.pairs), states.T @ (weights.sum(axis=0)[:, None] * states), atol=1e-11)
    np.testing.assert_allclose(sums.cross, (weights @ states).T @ rows, atol=1e-11)
    np.testing.assert_allclose(sums.rows, rows.sum(axis=0), rtol=1e-12)
    assert sums.squares[0] == pytest.approx(np.sum(rows**2), rel=1e-12)
    assert sums.weight[0] == 40.0


@pytest.mark.parametrize("temperature", [1.0, 0.5, 0.0])
def test_the_weights_are_the_slope_of_the_objective(temperature: float) -> None:
    """F = lambda L + (1 - lambda) H by brute force and central differences; where the noise is large, no weight is
    below zero, and the sums are the whole slope.
    """
    factors, rows = some_factors(3, 4, 25.0), np.random.default_rng(2).normal(size=(30, 4))
    factors.probabilities[:] = [0.4, 0.5, 0.55]
    assert harmony_weights(joint(factors, rows)[1], temperature).min() > 0.0

    def objective(given: Factors) -> float:
        logs = joint(given, rows)[1]
        p = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        both = temperature * logsumexp(logs, axis=1) + (1.0 - temperature) * np.sum(p * logs, axis=1)
        return float(both.sum())

    sums, _, _ = sums_of(factors, rows, temperature)
    A, location, p, noise = factors.loadings, factors.location, factors.probabilities, factors.noise[0]
    rest = sums.squares[0] - 2.0 * np.sum(A.T * sums.cross) - 2.0 * location @ sums.rows
    rest += np.sum(whole(sums.pairs) * (A.T @ A)) + 2.0 * location @ A @ sums.bits + 30.0 * location @ location
    slopes = {
        "loadings": (sums.cross - whole(sums.pairs) @ A.T - np.outer(sums.bits, location)).T / noise,
        "location": (sums.rows - A @ sums.bits - 30.0 * location) / noise,
        "probabilities": (sums.bits - 30.0 * p) / (p * (1.0 - p)),
        "noise": np.array([0.5 * rest / noise**2 - 0.5 * 30.0 * 4.0 / noise]),
    }
    for name, slope in slopes.items():
        for place in np.ndindex(slope.shape):
            step = np.zeros(slope.shape)
            step[place] = 1e-5
            above = objective(factors._replace(**{name: getattr(factors, name) + step}))
            below = objective(factors._replace(**{name: getattr(factors, name) - step}))
            assert (above - below) / 2e-5 == pytest.approx(slope[place], abs=2e-6), name


def test_without_harmony_a_step_is_em_by_hand() -> None:
    """E step by brute force; M step as least squares over every row with every combination of bits."""
    rows, factors = made(3), some_factors(3, 8, 1.0)
    states, _ = joint(factors, rows[:1])
    before = -math.inf
    for _ in range(5):
        logs = joint(factors, rows)[1]
        p = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        design = np.column_stack([np.tile(states, (len(rows), 1)), np.ones(p.size)])
        root = np.sqrt(p.ravel())[:, None]
        targets = np.repeat(rows, len(states), axis=0)
        solution = np.linalg.lstsq(root * design, root * targets, rcond=None)[0]
        noise = float(np.sum(np.square(root * (targets - design @ solution)))) / rows.size
        sums, density, _ = sums_of(factors, rows, 1.0)
        assert density > before
        before = density
        maximise(sums, factors)
        np.testing.assert_allclose(factors.loadings, solution[:3].T, atol=1e-6)
        np.testing.assert_allclose(factors.location, solution[3], atol=1e-6)
        np.testing.assert_allclose(factors.probabilities, (p @ states).mean(axis=0), rtol=1e-9)
        assert factors.noise[0] == pytest.approx(noise, rel=1e-6)


def test_beyond_ten_bits_the_neighbourhood_of_the_best_is_summed() -> None:
    m, n_columns = ENUMERATED + 2, 15
    factors = some_factors(m, n_columns, 1.0)
    random = np.random.default_rng(4)
    bits = (random.random((200, m)) < factors.probabilities).astype(float)
    rows = bits @ factors.loadings.T + factors.location + random.normal(size=(200, n_columns))
    states, logs = joint(factors, rows)
    chances, found, densities = np.empty((200, m)), np.empty((200, m), dtype=np.int64), np.empty(200)
    explain(factors, rows, chances, found, densities)
    best = states[np.argmax(logs, axis=1)]
    assert np.mean(np.all(found == best, axis=1)) > 0.95  # a search can miss
    exact = logsumexp(logs, axis=1)
    assert np.all(densities <= exact + 1e-9)
    assert np.mean(exact - densities) < 1.0
    near = np.array([[np.sum(y != s) <= 1 for s in states] for y in found])
    kept = np.where(near, logs, -np.inf)
    np.testing.assert_allclose(densities, logsumexp(kept, axis=1), rtol=1e-10)
    p = np.exp(kept - logsumexp(kept, axis=1, keepdims=True))
    np.testing.assert_allclose(chances, p @ states, atol=1e-10)
    sums, _, _ = sums_of(factors, rows, 0.3)
    means = np.sum(p * np.where(near, logs, 0.0), axis=1, keepdims=True)
    weights = np.maximum(p * (1.0 + 0.7 * np.where(near, logs - means, 0.0)), 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(sums.bits, (weights @ states).sum(axis=0), atol=1e-9)
    np.testing.assert_allclose(whole(sums.pairs), states.T @ (weights.sum(axis=0)[:, None] * states), atol=1e-9)


def test_the_most_probable_bits_are_those_of_brute_force() -> None:
    factors, rows = some_factors(4, 3, 0.5), np.random.default_rng(5).normal(size=(100, 3))
    states, logs = joint(factors, rows)
    chances, bits, densities = np.empty((100, 4)), np.empty((100, 4), dtype=np.int64), np.empty(100)
    explain(factors, rows, chances, bits, densities)
    np.testing.assert_array_equal(bits, states[np.argmax(logs, axis=1)])
    p = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    np.testing.assert_allclose(chances, p @ states, atol=1e-12)
    np.testing.assert_allclose(densities, logsumexp(logs, axis=1), rtol=1e-12)


def test_another_name_for_a_bit_is_the_same_model() -> None:
    factors, rows = some_factors(4, 5, 0.5, seed=3), np.random.default_rng(6).normal(size=(50, 5))
    turned = oriented(factors)
    assert not np.array_equal(turned.probabilities, factors.probabilities)
    assert np.all(turned.loadings.max(axis=0) >= -turned.loadings.min(axis=0))
    effects = turned.probabilities * (1.0 - turned.probabilities) * np.sum(turned.loadings**2, axis=0)
    assert np.all(np.diff(effects) <= 0.0)
    assert sums_of(turned, rows, 1.0)[1:] == pytest.approx(sums_of(factors, rows, 1.0)[1:], rel=1e-12)


def test_a_factor_without_effect_or_variation_is_pruned() -> None:
    factors = some_factors(4, 5, 1.0)
    factors.probabilities[:] = [0.5, 0.01, 0.5, 0.5]
    factors.loadings[:, 2] = 0.1
    rows = np.random.default_rng(7).normal(size=(60, 5))
    sums, _, _ = sums_of(factors, rows, 1.0)
    assert worth_keeping(factors).sum() == 3  # one at a time: what it did is left to the others
    less, kept = pruned(factors, sums, np.array([True, False, False, True]))
    assert less.loadings.shape == (5, 2)
    wanted = Factors(np.zeros((5, 2)), np.zeros(5), np.zeros(2), np.ones(1))
    maximise(kept, wanted)
    for one, two in zip(less, wanted, strict=True):
        np.testing.assert_array_equal(one, two)


def test_rows_without_noise_and_rows_without_variation() -> None:
    bits = np.array(list(itertools.product((0.0, 1.0), repeat=2)) * 25)
    rows = bits @ np.array([[2.0, 0.0, 1.0], [0.0, 1.0, -1.0]])
    rows = (rows - rows.mean(axis=0)) / math.sqrt(np.mean(rows.var(axis=0)))
    exact = fit(rows, 4, 3, 0.0, np.random.default_rng(0))
    assert exact.factors.probabilities.size == 2
    assert exact.factors.noise[0] == pytest.approx(LEAST_NOISE, rel=0.1)
    flat = fit(np.zeros((20, 3)), 4, 3, 0.0, np.random.default_rng(0))
    assert flat.factors.probabilities.size == 0
    assert all(np.isfinite(array).all() for array in (*exact.factors, *exact.sums, *flat.factors, *flat.sums))


def found(seed: int, temperature: float, **data: Any) -> int:
    rows = made(seed, **data)
    return int(fit(rows, 5, 3, temperature, np.random.default_rng(seed)).factors.probabilities.size)


@needs_speed
@pytest.mark.slow
def test_harmony_finds_three_factors_and_maximum_likelihood_does_not() -> None:
    """Three factors, five to start with, 20 draws."""
    assert [found(seed, 0.0) for seed in range(20)] == [3] * 20
    by_likelihood = [found(seed, 1.0) for seed in range(20)]
    assert 3 not in by_likelihood
    assert np.mean(by_likelihood) > 4.0


@needs_speed
def test_a_stream_arrives_where_a_fit_to_all_of_it_does() -> None:
    rows = made(8, n=4000, deviation=0.4)
    whole_fit = fit(rows, 5, 3, 0.0, np.random.default_rng(0))
    start = fit(rows[:200], 3, 3, 0.0, np.random.default_rng(0))
    learn(start.factors, start.sums, rows[200:], 0.0)
    assert start.sums.weight[0] == 4000.0
    order = np.argmin(
        np.sum((start.factors.loadings[:, :, None] - whole_fit.factors.loadings[:, None, :]) ** 2, axis=0), axis=0
    )
    np.testing.assert_allclose(start.factors.loadings[:, order], whole_fit.factors.loadings, atol=0.03)
    np.testing.assert_allclose(start.factors.probabilities[order], whole_fit.factors.probabilities, atol=0.01)
    assert start.factors.noise[0] == pytest.approx(whole_fit.factors.noise[0], rel=0.03)


def test_a_row_learnt_is_one_sum_and_one_maximisation() -> None:
    rows = made(9, n=60)
    factors = some_factors(3, 8, 1.0)
    sums, _, _ = sums_of(factors, rows[:50], 0.2)
    maximise(sums, factors)
    one = Factors(*map(np.copy, factors)), Sums(*map(np.copy, sums))
    learn(factors, sums, rows[50:], 0.2)
    for row in rows[50:]:
        expect(one[0], row[None], 0.2, one[1])
        maximise(one[1], one[0])
    for array, wanted in zip((*factors, *sums), (*one[0], *one[1]), strict=True):
        np.testing.assert_allclose(array, wanted, rtol=1e-10, atol=1e-12)
