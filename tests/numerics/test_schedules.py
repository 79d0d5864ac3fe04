"""The schedules of perceptrons, and what they reach: against the laws of Barkai, Seung and Sompolinsky 1995."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bayou import schedules
from bayou.contracts import Schedule
from bayou.errors import InvalidSpec
from bayou.learner import Learner
from bayou.likelihoods import Step
from bayou.numerics.jit import COMPILED
from bayou.numerics.schedules import by_mistakes, no_memory, rate, remember
from bayou.posteriors import ScheduledPoint
from bayou.rules import MomentMatching
from bayou.schedules import AdaptiveRate, ConstantRate, OptimalRate, PowerLawRate

EXAMPLES: list[Schedule] = [AdaptiveRate(), ConstantRate(0.3), OptimalRate(), PowerLawRate(2.0, 0.5, 1.0, 0.7)]
needs_kernels = pytest.mark.skipif(not COMPILED, reason="a million examples need compiled kernels")


def unit(rng: np.random.Generator, d: int) -> np.ndarray:
    weights = rng.normal(size=d)
    return weights / np.linalg.norm(weights)


def errors(posterior: ScheduledPoint, alphas: list[float], seed: int, d: int = 50, switch: float = np.inf) -> list[Any]:
    """The generalisation error after so many examples per weight, from a random start; the teacher may change."""
    rng = np.random.default_rng(seed)
    teacher = unit(rng, d)
    start = ScheduledPoint(posterior.schedule, posterior.normalised, tuple(unit(rng, d).tolist()))
    learner, found, alpha = Learner(Step(), start, MomentMatching(), d), [], 0.0
    for wanted in alphas:
        if alpha >= switch:
            teacher, switch = unit(rng, d), np.inf
        features = rng.normal(size=(round((wanted - alpha) * d), d))
        learner.learn_many(features, np.sign(features @ teacher))
        alpha = wanted
        weights = learner.belief.mean
        found.append(math.acos(weights @ teacher / np.linalg.norm(weights)) / math.pi)
    return found


def average(posterior: ScheduledPoint, alphas: list[float], runs: int, **more: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean error and its standard error."""
    found = np.array([errors(posterior, alphas, seed, **more) for seed in range(runs)])
    return found.mean(axis=0), found.std(axis=0) / math.sqrt(runs)


def test_every_schedule_has_an_example() -> None:
    assert {type(schedule).__name__ for schedule in EXAMPLES} == set(schedules.__all__)


@pytest.mark.parametrize("schedule", EXAMPLES, ids=repr)
def test_a_schedule_is_a_value_and_a_few_numbers(schedule: Schedule) -> None:
    assert eval(repr(schedule), vars(schedules)) == schedule
    assert hash(schedule) == hash(eval(repr(schedule), vars(schedules)))
    assert schedule.numbers.shape == (5,)
    assert schedule.numbers.dtype == np.float64


def test_the_rates_written_out() -> None:
    def of(schedule: Schedule, alpha: float) -> float:
        return rate(schedule.numbers, no_memory(), alpha)

    assert of(ConstantRate(0.3), 17.0) == 0.3
    assert of(OptimalRate(), 4.0) == pytest.approx(5.013256549262 / 4.0)
    assert of(PowerLawRate(2.0, 0.5, offset=1.0), 8.0) == pytest.approx(2.0 / 3.0)
    assert of(PowerLawRate(2.0, 0.5, offset=1.0, largest=0.25), 8.0) == 0.25
    # every second answer wrong, and the correction for the lag, which is for errors that fall
    assert of(AdaptiveRate(), 8.0) == pytest.approx(math.pi * math.sqrt(2 * math.pi) / 4 / (1 + math.pi / 8))


def test_mistakes_at_the_best_pace_are_read_without_lag() -> None:
    """Gaps of alpha d / C at alpha = exp(k / (d C)), C = 4 / pi, as the best schedule has them: eps comes out right."""
    d, constant = 200, 4 / math.pi
    memory, alpha = no_memory(), 1.0
    for _ in range(3000):
        gap = alpha / constant
        alpha *= 1.0 + 1.0 / (d * constant)
        remember(memory, False, 0.5 * gap, d)
        remember(memory, True, 0.5 * gap, d)
    best = math.pi * math.sqrt(2 * math.pi) / 2 * constant / alpha
    assert rate(by_mistakes(), memory, alpha) == pytest.approx(best, rel=0.01)


def test_a_long_run_without_a_mistake_counts_at_once() -> None:
    memory = no_memory()
    remember(memory, False, 1e6, 10_000)
    before = rate(by_mistakes(), memory, 1.0)
    remember(memory, True, 1.0, 10_000)
    assert rate(by_mistakes(), memory, 1.0) < 1e-4 * before


@needs_kernels
@pytest.mark.parametrize("schedule", [OptimalRate(), AdaptiveRate()], ids=repr)
def test_the_error_falls_as_four_over_pi_alpha(schedule: Schedule) -> None:
    """1.254 at d = 50, where the limit 4 / pi is approached from below; with 40 runs the standard error is 2 %."""
    mean, error = average(ScheduledPoint(schedule), [300.0], runs=40)
    assert 300.0 * mean[0] == pytest.approx(1.254, abs=3.5 * 300.0 * error[0])
    assert 300.0 * error[0] < 0.03


@needs_kernels
def test_without_a_clock_it_comes_back_after_a_change() -> None:
    """After as many examples again the error is as if the first teacher had never been; by the clock it is not."""
    alphas = [100.0, 200.0]
    adaptive, _ = average(ScheduledPoint(AdaptiveRate()), alphas, runs=10, switch=100.0)
    clock, _ = average(ScheduledPoint(OptimalRate()), alphas, runs=10, switch=100.0)
    assert adaptive[0] == pytest.approx(1.25 / 100.0, rel=0.15)  # standard error 4 %
    assert adaptive[1] == pytest.approx(1.25 / 100.0, rel=0.15)
    assert clock[0] == pytest.approx(1.25 / 100.0, rel=0.15)
    assert clock[1] > 10.0 * adaptive[1]


@needs_kernels
def test_noise_keeps_the_adaptive_rate_up() -> None:
    """As its docstring warns: with one label in ten flipped the error stalls, where a power law goes on."""
    rng = np.random.default_rng(0)
    d, teacher, n = 50, unit(rng, 50), 50_000
    features = rng.normal(size=(n, d))
    targets = np.sign(features @ teacher) * np.where(rng.random(n) < 0.1, -1.0, 1.0)
    angles = []
    for schedule in (AdaptiveRate(), PowerLawRate(4.0, largest=1.0)):
        learner = Learner(Step(), ScheduledPoint(schedule), MomentMatching(), d)
        learner.learn_many(features, targets)
        angles.append(math.acos(learner.belief.mean @ teacher))
    assert angles[0] > 3.0 * angles[1]


@needs_kernels
def test_a_constant_rate_stops_at_its_error() -> None:
    """(5): rate / sqrt(2 pi^3) = 0.0254 for a rate of 0.2, after 100 examples per weight and over the next 100."""
    alphas = np.linspace(100.0, 200.0, 21).tolist()
    mean, _ = average(ScheduledPoint(ConstantRate(0.2)), alphas, runs=10)
    assert np.mean(mean) == pytest.approx(0.2 / math.sqrt(2 * math.pi**3), rel=0.06)  # standard error 2 %


@needs_kernels
def test_without_unit_length_the_error_falls_as_the_third_root() -> None:
    """eps = (1 / pi) (2 / 3)^(1/3) alpha^(-1/3), whatever the rate, once the start is forgotten."""
    for value in (1.0, 10.0):
        mean, error = average(ScheduledPoint(ConstantRate(value), normalised=False), [300.0], runs=20)
        wanted = (2.0 / 3.0) ** (1.0 / 3.0) / math.pi
        assert 300.0 ** (1.0 / 3.0) * mean[0] == pytest.approx(wanted, abs=3.5 * 300.0 ** (1.0 / 3.0) * error[0])
        assert error[0] < 0.03 * mean[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConstantRate(0.0), "`rate` must be positive; got 0.0"),
        (lambda: PowerLawRate(scale=-1.0), "`scale` must be positive; got -1.0"),
        (lambda: PowerLawRate(power=0.0), "`power` must be positive"),
        (lambda: PowerLawRate(offset=-0.1), "`offset` must be finite and not negative; got -0.1"),
        (lambda: PowerLawRate(largest=np.nan), "`largest` must be positive; got nan"),
        (lambda: ScheduledPoint(schedule=0.1), "`schedule` must be a Schedule; got 0.1"),  # type: ignore[arg-type]
    ],
)
def test_a_bad_spec_is_named(make: Any, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        make()
