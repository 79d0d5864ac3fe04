"""The perceptron rule under schedules: its equation by sampling, by simulation, and the ends that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate

from bayou.errors import InvalidSpec
from bayou.theory import asymptotic_law, dichotomy_curve, perceptron_curve, residual_error
from bayou.theory.dichotomies import UNIT


@pytest.mark.parametrize("theta", [0.3, 1.2, 2.5])
@pytest.mark.parametrize("eta", [0.7, 4.0])
def test_the_drift_is_that_of_sampled_steps(theta: float, eta: float) -> None:
    """The mean step of R over inputs of 400 weights, normalisation and all: (4) to first order in 1 / N."""
    N, M = 400, 40_000
    S = np.random.default_rng(3).standard_normal((M, N))
    W = np.zeros(N)
    W[:2] = math.cos(theta), math.sin(theta)
    wrong = (S @ W) * S[:, 0] <= 0.0
    moved = W + eta / N * (wrong * np.sign(S[:, 0]))[:, None] * S
    steps = N * (moved[:, 0] / np.linalg.norm(moved, axis=1) - math.cos(theta))
    slope = (dichotomy_curve(eta, [1e-5], start=theta / math.pi).overlap[0] - math.cos(theta)) / 1e-5
    standard_error = steps.std() / math.sqrt(M)
    assert abs(steps.mean() - slope) < 4.0 * standard_error + 3.0 * eta**2 / N
    assert 4.0 * standard_error < 0.1 * eta


def simulated_errors(rates: np.ndarray, N: int, runs: int, normalised: bool, seed: int) -> np.ndarray:
    """The rule itself, example by example: the error of each run at the end."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((runs, N))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    for eta in rates:
        S = rng.standard_normal((runs, N))
        label = np.sign(S[:, 0])
        wrong = np.einsum("ij,ij->i", W, S) * label <= 0.0
        W += (eta / N * wrong * label)[:, None] * S
        if normalised:
            W /= np.linalg.norm(W, axis=1, keepdims=True)
    return np.arccos(W[:, 0] / np.linalg.norm(W, axis=1)) / math.pi


@pytest.mark.parametrize(
    ("rate", "normalised"), [((2.0, 1.0, 2.0), True), ((1.0, 0.5, 1.0), True), (1.3, True), (1.3, False)]
)
def test_simulation_follows_the_curve(rate: float | tuple[float, ...], normalised: bool) -> None:
    N, runs, alpha = 200, 100, 12.0
    alphas = np.arange(1, int(alpha * N) + 1) / N
    rates = np.full_like(alphas, rate) if isinstance(rate, float) else UNIT * rate[0] * (alphas + rate[2]) ** -rate[1]
    errors = simulated_errors(rates, N, runs, normalised, seed=5)
    wanted = dichotomy_curve(rate, [alpha], normalised=normalised).error[0]
    standard_error = errors.std() / math.sqrt(runs)
    assert standard_error < 0.01 * wanted
    assert abs(errors.mean() - wanted) < 3.0 * standard_error + wanted / N


def chain(rate: float, power: float, N: int, runs: int, steps: int) -> np.ndarray:
    """The angle alone is a Markov chain: a mistake, of chance theta / pi, shows an input of the wedge and a chi^2."""
    rng = np.random.default_rng(11)
    theta = np.full(runs, 0.5 * math.pi)
    for n in range(1, steps + 1):
        h = rate * (n / N) ** -power / N
        wrong = np.flatnonzero(rng.random(runs) < theta / math.pi)
        angle, size = theta[wrong], rng.rayleigh(size=wrong.size)
        direction = rng.random(wrong.size) * angle - 0.5 * math.pi
        along = np.cos(angle) + h * size * np.cos(direction)
        across = np.sin(angle) + h * size * np.sin(direction)
        theta[wrong] = np.arctan2(np.sqrt(across**2 + h * h * rng.chisquare(N - 2, wrong.size)), along)
    return theta / math.pi


@pytest.mark.parametrize(("eta0", "power"), [(2.0, 1.0), (1.0, 1.0), (0.5, 1.0), (1.0, 0.5)])
def test_the_chain_of_angles_follows_the_curve(eta0: float, power: float) -> None:
    """Of 500 weights, whose relative distance to the limit is 1 / N or so."""
    N, alpha, runs = 500, 40, 400
    errors = chain(eta0 * UNIT, power, N, runs, alpha * N)
    wanted = dichotomy_curve((eta0, power), [alpha]).error[0]
    standard_error = errors.std() / math.sqrt(runs)
    assert standard_error < 0.005 * wanted
    assert abs(errors.mean() - wanted) < 3.0 * standard_error + 2.0 * wanted / N


def test_a_constant_rate_ends_at_its_fixed_point() -> None:
    for eta in (1e-3, 0.5, 5.0, 1e3):
        assert dichotomy_curve(eta, [1e8]).error[0] == pytest.approx(residual_error(eta), rel=1e-9)
        theta = math.pi * residual_error(eta)
        assert math.sin(theta) ** 2 / (theta * math.cos(theta)) == pytest.approx(eta / UNIT, rel=1e-9)
    assert residual_error(1e-4) == pytest.approx(1e-4 / math.sqrt(2.0 * math.pi**3), rel=1e-8)
    assert residual_error(1e-300) == pytest.approx(1e-300 / math.sqrt(2.0 * math.pi**3), rel=1e-12)
    assert residual_error(2e-9) / 2.0 == pytest.approx(residual_error(1e-9), rel=1e-12)
    assert residual_error(0.0) == 0.0
    assert 0.5 - residual_error(1e200) == pytest.approx(0.0, abs=1e-16)


def test_a_constant_rate_is_approached_exponentially() -> None:
    eta, alphas = 0.02, np.array([1200.0, 1600.0])
    gaps = np.abs(dichotomy_curve(eta, alphas).error - residual_error(eta))
    assert math.log(gaps[0] / gaps[1]) / 400.0 == pytest.approx(eta / UNIT, rel=1e-2)


@pytest.mark.parametrize(
    ("eta0", "power", "alpha", "accuracy"),
    [(2.0, 1.0, 1e6, 2e-6), (3.0, 1.0, 1e6, 1e-9), (1.5, 1.0, 1e8, 1e-3), (2.0, 0.5, 1e8, 1e-4), (0.3, 0.0, 1e6, 1e-9)],
)
def test_the_laws_are_where_the_curves_end(eta0: float, power: float, alpha: float, accuracy: float) -> None:
    law = asymptotic_law(eta0, power)
    assert law.log_exponent == 0.0
    assert dichotomy_curve((eta0, power), [alpha]).error[0] == pytest.approx(float(law(alpha)), rel=accuracy)


def test_the_constant_of_fig_1_and_its_optimum() -> None:
    assert asymptotic_law(2.0, 1.0).prefactor == pytest.approx(4.0 / math.pi)
    assert dichotomy_curve((2.0, 1.0), [1e9]).error[0] * 1e9 == pytest.approx(1.2732395, abs=2e-7)
    assert min(np.arange(1.1, 4.0, 0.1), key=lambda eta0: asymptotic_law(eta0, 1.0).prefactor) == pytest.approx(2.0)


def test_a_plain_logarithm_at_the_critical_rate() -> None:
    """(6): pi alpha e grows by 1 for each unit of log alpha, where the root of a logarithm would grow by 0.13."""
    law, alphas = asymptotic_law(1.0, 1.0), np.array([1e5, 1e8])
    grown = math.pi * alphas * dichotomy_curve((1.0, 1.0), alphas).error
    assert (grown[1] - grown[0]) / math.log(1e3) == pytest.approx(1.0, abs=1e-3)
    assert (law.exponent, law.prefactor, law.log_exponent) == (-1.0, 1.0 / math.pi, 1.0)


def test_slow_schedules_remember_their_start() -> None:
    law, alphas = asymptotic_law(0.5, 1.0), np.array([1e6, 1e8])
    curves = [dichotomy_curve((0.5, 1.0, 1.0), alphas, start=start).error for start in (0.5, 0.1)]
    for errors in curves:
        assert math.log(errors[1] / errors[0]) / math.log(100.0) == pytest.approx(law.exponent, abs=1e-3)
    assert curves[1][1] < 0.7 * curves[0][1]
    assert math.isnan(law.prefactor)
    frozen = [dichotomy_curve((1.0, 2.0, 1.0), [1e5, 1e9], start=start).error for start in (0.5, 0.01)]
    for errors in frozen:
        assert errors[1] == pytest.approx(errors[0], rel=1e-3)
    assert frozen[0][1] > 3.0 * frozen[1][1]
    assert asymptotic_law(1.0, 2.0).exponent == 0.0


@pytest.mark.parametrize("power", [0.0, 0.2, 0.3])
def test_without_normalisation_all_slow_schedules_end_alike(power: float) -> None:
    law = asymptotic_law(1.0, power, normalised=False)
    for eta0 in (0.5, 2.0):
        curve = dichotomy_curve((eta0, power, 1.0), [1e7, 1e8], normalised=False)
        assert math.log(curve.error[1] / curve.error[0]) / math.log(10.0) == pytest.approx(-1.0 / 3.0, abs=0.04)
        assert curve.error[1] == pytest.approx(float(law(1e8)), rel=0.1 if power == 0.3 else 1e-3)
    if power == 0.0:
        assert law.prefactor == pytest.approx(0.278069, abs=1e-6)
        length = eta0 * (1.5 * 1e8) ** (1.0 / 3.0)
        assert curve.norm[1] == pytest.approx(length**2, rel=1e-3)


def test_without_normalisation_at_and_above_a_third() -> None:
    law, alphas = asymptotic_law(1.0, 1.0 / 3.0, normalised=False), np.array([1e12, 1e24])
    curve = dichotomy_curve((1.0, 1.0 / 3.0, 1.0), alphas, normalised=False)
    inverse = 1.0 / (curve.error**3 * alphas)  # = 3/2 pi^3 log(alpha) + a constant
    assert (inverse[1] - inverse[0]) / math.log(1e12) == pytest.approx(law.prefactor**-3, rel=1e-3)
    assert law.log_exponent == -1.0 / 3.0
    fast = dichotomy_curve((1.0, 0.5, 1.0), [1e8, 1e10], normalised=False)
    assert fast.norm[1] == pytest.approx(fast.norm[0], rel=1e-3)
    assert fast.error[1] == pytest.approx(1e-5 / (math.pi * math.sqrt(fast.norm[1])), rel=1e-3)
    assert asymptotic_law(1.0, 0.5, normalised=False).exponent == -0.5
    assert math.isnan(asymptotic_law(1.0, 1.0, normalised=False).exponent)


def test_from_no_length_it_is_rosenblatts_rule() -> None:
    alphas = [1.0, 100.0, 1e6]
    wanted = perceptron_curve("rosenblatt", alphas)
    curve = dichotomy_curve(1.0, alphas, normalised=False, length=1e-4)
    assert curve.error == pytest.approx(wanted.error, rel=1e-6)
    assert curve.norm == pytest.approx(wanted.norm, rel=1e-6)


def test_any_function_of_alpha_is_a_schedule() -> None:
    alphas = [3.0, 0.0, 40.0, 1e4]
    numbers = dichotomy_curve((2.0, 1.0, 3.0), alphas)
    function = dichotomy_curve(lambda alpha: 2.0 * UNIT / (alpha + 3.0), alphas)
    assert function.error == pytest.approx(numbers.error, rel=1e-9)
    assert numbers.error[1] == pytest.approx(0.5)
    capped = dichotomy_curve(lambda alpha: min(1.0, 2.0 * UNIT / alpha) if alpha else 1.0, [1e4])
    assert capped.error[0] * 1e4 == pytest.approx(4.0 / math.pi, rel=2e-2)


def test_the_equation_in_the_overlap_itself() -> None:
    """(4) as printed by its left-hand side, by another method: the same while 1 - R has digits."""
    eta, alphas = 0.8, np.array([0.5, 5.0, 30.0])

    def slope(_: float, state: np.ndarray) -> list[float]:
        R = state[0]
        return [eta * (1.0 - R * R) / UNIT - eta**2 * R * math.acos(R) / (2.0 * math.pi)]

    wanted = integrate.solve_ivp(slope, (0.0, 30.0), [0.2], "RK45", alphas, rtol=1e-9, atol=1e-11).y[0]
    curve = dichotomy_curve(eta, alphas, start=math.acos(0.2) / math.pi)
    assert curve.overlap == pytest.approx(wanted, rel=1e-7)


def test_infinite_rates_forget_the_start() -> None:
    for rate in ((2.0, 1.0), (1.0, 2.0), (0.01, 1.0)):
        curves = [dichotomy_curve(rate, [0.0, 1e-3, 1.0, 1e5], start=start) for start in (0.01, 0.5, 0.99)]
        assert [curve.error[0] for curve in curves] == pytest.approx([0.01, 0.5, 0.99])
        for curve in curves:
            assert curve.error[1:] == pytest.approx(curves[1].error[1:], rel=1e-8)


def test_what_makes_no_sense_is_refused() -> None:
    for start in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidSpec, match="`start`"):
            dichotomy_curve(1.0, [1.0], start=start)
    for rate in (-1.0, (1.0,), (1.0, -1.0), (1.0, 1.0, -1.0), math.inf):
        with pytest.raises(InvalidSpec, match="`rate`"):
            dichotomy_curve(rate, [1.0])
    with pytest.raises(InvalidSpec, match="offset"):
        dichotomy_curve((1.0, 1.0), [1.0], normalised=False)
    with pytest.raises(InvalidSpec, match="`length`"):
        dichotomy_curve(1.0, [1.0], length=2.0)
    with pytest.raises(InvalidSpec, match="`alphas`"):
        dichotomy_curve(1.0, [-1.0])
    with pytest.raises(InvalidSpec, match="`eta0`"):
        asymptotic_law(0.0, 1.0)
    with pytest.raises(InvalidSpec, match="`eta`"):
        residual_error(-1.0)
