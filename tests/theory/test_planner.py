"""Plans: consistent with the curves, honest about what they assume, and kept by real runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bayou import DiagonalGaussian, FullGaussian, Learner, MomentMatching, Probit, Step
from bayou.contracts import Posterior
from bayou.errors import InvalidSpec
from bayou.numerics.jit import COMPILED
from bayou.papers.ensembles import Signs, Student, run_replicas
from bayou.theory import ASSUMPTIONS, assumptions, labels_needed, noise_of_flips, perceptron_curve, predicted_curve


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("family", ["full", "diagonal", "spherical"])
@pytest.mark.parametrize("error", [0.4999, 0.3, 0.05, 1e-3])
def test_a_plan_is_the_first_number_of_labels_that_is_enough(error: float, family: str, noise: float) -> None:
    n_features = 1000
    needed = labels_needed(error, n_features, noise, family)
    curve = predicted_curve(n_features, [needed - 1, needed], noise, family)
    assert curve.error[1] <= error < curve.error[0]


def test_smaller_errors_noisier_labels_and_smaller_families_need_more() -> None:
    assert labels_needed(0.05, 100) < labels_needed(0.01, 100) < labels_needed(0.01, 100, 0.2)
    assert labels_needed(0.01, 100) < labels_needed(0.01, 100, family="diagonal")
    assert labels_needed(1e-5, 100) == pytest.approx(100 * 0.441700 / 1e-5, rel=1e-4)


def test_flips_are_what_labels_show_of_the_noise() -> None:
    curve = predicted_curve(20, [1e9], noise=noise_of_flips(0.1))
    assert curve.label_error[0] == pytest.approx(0.1, abs=1e-3)
    assert noise_of_flips(0.0) == 0.0
    assert predicted_curve(20, [0]).label_error.tolist() == [0.5]


def test_a_curve_is_in_labels_and_says_what_it_assumes() -> None:
    curve = predicted_curve(50, [500.0, 50.0], 0.1, "diagonal")
    assert curve.error.tolist() == perceptron_curve("spherical", [10.0, 1.0], 0.1).error.tolist()
    assert curve.assumptions == ASSUMPTIONS
    assert all(line in str(curve) for line in ASSUMPTIONS)
    assert len(assumptions("full")) > len(ASSUMPTIONS)


@pytest.mark.skipif(not COMPILED, reason="thousands of rows need compiled kernels")
@pytest.mark.parametrize(("family", "posterior"), [("full", FullGaussian()), ("diagonal", DiagonalGaussian())])
def test_a_real_run_keeps_the_plan(family: str, posterior: Posterior[object]) -> None:
    """60 features, 10 % wrong labels, 30 runs: errors on unseen labels within four standard errors."""
    rng = np.random.default_rng(5)
    d, runs, noise = 60, 30, noise_of_flips(0.1)
    needed = labels_needed(0.1, d, noise, family)
    expected = predicted_curve(d, [needed], noise, family).label_error[0]
    errors = []
    for _ in range(runs):
        w = rng.standard_normal(d)
        x = rng.standard_normal((needed + 2000, d))
        y = np.sign(x @ w + math.sqrt(noise * d) * rng.standard_normal(len(x)))
        learner = Learner(Probit(math.sqrt(noise * d)), posterior, MomentMatching(), d)
        learner.learn_many(x[:needed], y[:needed])
        errors.append(np.mean(np.sign(x[needed:] @ learner.belief.mean) != y[needed:]))
    assert np.mean(errors) == pytest.approx(expected, abs=4.0 * np.std(errors) / math.sqrt(runs))


@pytest.mark.skipif(not COMPILED, reason="thousands of rows need compiled kernels")
@pytest.mark.parametrize(("flips", "more"), [(0.0, 1.3), (0.01, 1.2), (0.05, 1.1), (0.1, 1.03)])
def test_one_pass_of_the_full_family_needs_as_many_more_labels_as_is_said(flips: float, more: float) -> None:
    """100 features, error 0.03, 100 runs: errors within 4 %, their standard errors below 1.2 %."""
    d, error, noise = 100, 0.03, noise_of_flips(flips)
    scale = math.sqrt(noise * d)
    planned = labels_needed(error, d, noise)
    student = Student(Probit(scale) if flips else Step(), FullGaussian())
    found = run_replicas([student], Signs(d, scale), (planned, round(more * planned)), 100)
    short, enough = found.at(planned), found.at(round(more * planned))
    assert enough.standard_error < 0.012 * error
    assert enough.mean == pytest.approx(error, rel=0.04)
    assert short.mean == pytest.approx(more * error, rel=0.06)  # late errors fall as labels grow, or slower


@pytest.mark.skipif(not COMPILED, reason="thousands of rows need compiled kernels")
def test_with_few_features_the_smaller_families_are_better_than_planned() -> None:
    """10 features, 400 runs: standard errors of 1.5 %."""
    planned = labels_needed(0.1, 10, family="diagonal")
    found = run_replicas([Student(Step(), DiagonalGaussian())], Signs(10), (planned,), 400).at(planned)
    assert 0.1 * (1.0 - 1.0 / 6.0) - 3.0 * found.standard_error < found.mean < 0.1 - 3.0 * found.standard_error


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: labels_needed(0.0, 10), "`error` must lie between 1e-100 and 0.5; got 0.0"),
        (lambda: labels_needed(1e-160, 10), "`error` must lie between 1e-100 and 0.5; got 1e-160"),
        (lambda: labels_needed(0.5, 10), "`error` must lie between 1e-100 and 0.5; got 0.5"),
        (lambda: labels_needed(math.nan, 10), "`error` must lie .*; got nan"),
        (lambda: labels_needed(0.1, 0), "`n_features` must be a whole number, at least 1; got 0"),
        (lambda: labels_needed(0.1, 10, -1.0), "`noise` must be finite and not negative; got -1.0"),
        (lambda: labels_needed(0.1, 10, 0.0, "ising"), "`family` must be one of 'full', .*; got 'ising'"),
        (lambda: predicted_curve(10, [-1]), "`n_examples` must be .*; got \\[-1\\]"),
        (lambda: noise_of_flips(0.5), "`flip_rate` must be in \\[0, 0.5\\); got 0.5"),
        (lambda: assumptions("half"), "`family` must be one of .*; got 'half'"),
    ],
)
def test_what_cannot_be_planned_says_why(make: object, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        make()  # type: ignore[operator]
