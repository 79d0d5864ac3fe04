"""Laws of one weight behind a threshold: by the equations they solve, and by the chain they are of."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

from bayou.errors import InvalidSpec
from bayou.theory import best_kappa, decaying_density, decaying_error, stationary_density, stationary_error, tail_rate


def two_humps(x: np.ndarray) -> np.ndarray:
    return 1.0 + 0.9 * np.cos(2.0 * math.pi * x)


@pytest.mark.parametrize("phase", [None, two_humps])
def test_stationary_laws_are_annihilated(phase: object) -> None:
    """(24): what comes to x from x + 1 and from x - 1 is what leaves it, and F is a density."""
    x = np.linspace(-2.95, 2.95, 237)

    def law(places: np.ndarray) -> np.ndarray:
        return stationary_density(places, phase)  # type: ignore[arg-type]

    came = np.where(x + 1.0 > 0.0, np.abs(x + 1.0) * law(x + 1.0), 0.0)
    came += np.where(x - 1.0 < 0.0, np.abs(x - 1.0) * law(x - 1.0), 0.0)
    assert came == pytest.approx(np.abs(x) * law(x), abs=1e-12)
    mass = sum(integrate.quad(law, *ends)[0] for ends in ((-1.0, 0.0), (0.0, 1.0)))
    first = sum(integrate.quad(lambda y: abs(y) * law(y), *ends)[0] for ends in ((-1.0, 0.0), (0.0, 1.0)))
    assert mass == pytest.approx(1.0)
    assert stationary_error(0.7, phase) == pytest.approx(0.7 * first)  # type: ignore[arg-type]


def chain(dw: np.ndarray, rates: np.ndarray, seed: int) -> np.ndarray:
    """w itself, r = c = 1: a mistake has the chance |dw| and moves dw towards 0 by the rate."""
    rng = np.random.default_rng(seed)
    for eta in rates:
        wrong = rng.random(dw.size) < np.abs(dw)
        dw = dw - eta * np.sign(dw) * wrong
    return dw


def test_a_smooth_start_ends_in_the_triangle_and_a_fixed_one_in_two_points() -> None:
    eta, runs, steps = 0.01, 40_000, 1500
    start = np.random.default_rng(0).normal(size=runs) * 0.05
    x = chain(start, np.full(steps, eta), seed=1) / eta
    assert np.abs(x).mean() == pytest.approx(1.0 / 3.0, abs=4.0 * 0.236 / math.sqrt(runs))
    ranks = (np.arange(runs) + 0.5) / runs
    ordered = np.sort(x)
    expected = 0.5 + ordered - 0.5 * ordered * np.abs(ordered)
    assert np.max(np.abs(expected - ranks)) < 1.36 / math.sqrt(runs)  # Kolmogorov and Smirnov, 5 %
    fixed = chain(np.full(runs, 0.053), np.full(steps, eta), seed=2) / eta
    places = np.unique(fixed.round(6))
    assert places == pytest.approx([-0.7, 0.3])
    assert (fixed > 0.0).mean() == pytest.approx(0.7, abs=4.0 * 0.46 / math.sqrt(runs))
    assert np.abs(fixed).mean() == pytest.approx(2.0 * 0.3 * 0.7, abs=0.01)  # not a third


@pytest.mark.parametrize("kappa", [1.05, 1.5, 2.0, 4.0, 30.0])
def test_decaying_laws_solve_the_delay_equation(kappa: float) -> None:
    def G(x: np.ndarray) -> np.ndarray:
        return x * decaying_density(x, kappa)

    x = np.linspace(0.013, 3.97, 61)
    h = 1e-5 / kappa
    slope = (G(x + h) - G(x - h)) / (2.0 * h)
    wanted = kappa * (G(x + 1.0) + np.where(x < 1.0, G(np.maximum(1.0 - x, 0.0)), 0.0) - G(x))
    assert slope == pytest.approx(wanted, abs=1e-6 * kappa * G(x).max())
    assert decaying_density(0.0, kappa) == pytest.approx(decaying_density(1e-9, kappa), rel=1e-6)
    ends = [0.0, 0.1 / kappa, 1.0 / kappa, 1.0, 2.0, 10.0, 40.0, 400.0]
    pairs = list(pairwise(ends))
    mass = 2.0 * sum(integrate.quad(lambda y: decaying_density(y, kappa), *pair)[0] for pair in pairs)
    first = 2.0 * sum(integrate.quad(lambda y: y * decaying_density(y, kappa), *pair)[0] for pair in pairs)
    assert mass == pytest.approx(1.0, rel=1e-7)
    assert decaying_error(kappa) == pytest.approx(kappa * first, rel=1e-7)
    assert tail_rate(kappa) == pytest.approx(-kappa * math.expm1(-tail_rate(kappa)))


@pytest.mark.parametrize(("kappa", "wanted"), [(1.5, 1.1231), (1.7, 1.0956), (2.0, 1.1194), (4.0, 1.6092)])
def test_the_delay_equation_on_a_grid(kappa: float, wanted: float) -> None:
    """The tail is exponential; from 1 to 0 trapezoids, whose unknowns are tied by the reflection: no closed form."""
    m = 500
    h = 1.0 / m
    rate = tail_rate(kappa)
    size = int(1.0 + 40.0 / rate) * m + 1
    grid = np.arange(size) * h
    G = np.exp(-rate * (grid - 1.0))
    inner = m + 1  # unknowns G(0..1): trapezoid, G(1) given by the tail
    matrix, right = np.zeros((inner, inner)), np.zeros(inner)
    for i in range(m):  # G[i+1] - G[i] = h kappa mean of the right-hand sides
        matrix[i, i + 1] += 1.0
        matrix[i, i] -= 1.0
        for j in (i, i + 1):
            matrix[i, m - j] -= 0.5 * h * kappa
            matrix[i, j] += 0.5 * h * kappa
            right[i] += 0.5 * h * kappa * G[j + m]
    matrix[m, m], right[m] = 1.0, 1.0
    G[:inner] = np.linalg.solve(matrix, right)
    assert G[0] == pytest.approx(0.0, abs=1e-5)
    F = np.append(G[1] / h, G[1:] / grid[1:])
    found = kappa * integrate.trapezoid(G, grid) / integrate.trapezoid(F, grid)
    assert found == pytest.approx(wanted, rel=2e-4)
    assert found == pytest.approx(decaying_error(kappa), rel=2e-4)


def decayed(kappa: float, width: float) -> tuple[float, float]:
    """n e of 20,000 chains at n = 4000, and its standard error; at n = 100 they start as wide as given, in x."""
    runs, first, last = 20_000, 100, 4000
    start = np.random.default_rng(3).normal(size=runs) * width * kappa / first
    sizes = last * np.abs(chain(start, kappa / np.arange(first, last), seed=4))
    return float(sizes.mean()), float(sizes.std() / math.sqrt(runs))


@pytest.mark.parametrize("kappa", [2.0, 4.0])
def test_the_chain_ends_in_the_decaying_law(kappa: float) -> None:
    mean, standard_error = decayed(kappa, width=0.5)
    assert standard_error < 0.01
    assert mean == pytest.approx(decaying_error(kappa), abs=3.0 * standard_error + 0.003)


def test_near_the_critical_rate_chains_come_from_either_side() -> None:
    """What is left of the start decays as n^(1 - kappa): by 6 here."""
    narrow, wide = (decayed(1.5, width) for width in (0.5, 2.0))
    assert narrow[0] - 3.0 * narrow[1] < decaying_error(1.5) < wide[0] + 3.0 * wide[1]
    assert wide[0] - narrow[0] < 0.2


def test_the_best_kappa() -> None:
    """The minimum is flat: 1.096 at 1.70, as on the grid above."""
    best = best_kappa()
    errors = {kappa: decaying_error(kappa) for kappa in (1.6, 1.7, best, 1.73, 1.8)}
    assert min(errors, key=lambda kappa: errors[kappa]) == best
    assert (best, errors[best]) == pytest.approx((1.7174, 1.09543), abs=5e-5)
    assert errors[1.7] == pytest.approx(1.096, abs=5e-4)


def test_the_ends_of_the_range() -> None:
    for kappa in (1.0 + 1e-9, 1.0 + 1e-5, 1.001, 90.0, 150.0, 1e4):
        value = decaying_error(kappa)
        assert math.isfinite(value)
        assert value > 0.0
    assert decaying_error(99.999) == pytest.approx(decaying_error(100.001), rel=1e-4)
    assert tail_rate(1.0 + 1.01e-6) == pytest.approx(2.02e-6, rel=1e-4)
    for kappa in (1.0, 0.5, math.inf, math.nan):
        with pytest.raises(InvalidSpec, match="`kappa`"):
            decaying_error(kappa)
    with pytest.raises(InvalidSpec, match="`scale`"):
        stationary_error(-1.0)
