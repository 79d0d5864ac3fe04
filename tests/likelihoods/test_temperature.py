"""A perceptron at inverse temperature beta: both readings of its weight, and their limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from bayou.contracts import Latent, ScalarLikelihood
from bayou.learner import Learner
from bayou.likelihoods import BoltzmannStep, Logistic, Step
from bayou.numerics.jit import COMPILED
from bayou.numerics.pointers import likelihood_kernels
from bayou.posteriors import SphericalGaussian
from bayou.rules import MomentMatching


def log_evidence(spec: ScalarLikelihood, y: float, mean: float, variance: float) -> tuple[float, ...]:
    values: tuple[float, ...] = spec.log_evidence(likelihood_kernels(spec), y, mean, variance, spec.params)
    return values


@given(
    y=st.sampled_from([-1.0, 1.0]),
    mean=st.floats(-3.0, 3.0),
    variance=st.floats(0.01, 4.0),
    beta=st.floats(0.1, 3.0),
)
def test_the_weight_in_closed_form(y: float, mean: float, variance: float, beta: float) -> None:
    """As printed, which overflows elsewhere."""
    s, t = math.sqrt(variance), y * mean
    wrong = math.exp(beta * t + beta**2 * variance / 2.0) * special.ndtr(-(t + beta * variance) / s)
    total = special.ndtr(t / s) + wrong
    log_mass, slope, _, _ = log_evidence(BoltzmannStep(beta), y, mean, variance)
    assert log_mass == pytest.approx(math.log(total), rel=1e-9, abs=1e-12)
    assert slope == pytest.approx(y * beta * wrong / total, rel=1e-9)


@pytest.mark.parametrize("y", [-1.0, 1.0])
@pytest.mark.parametrize(("mean", "variance"), [(0.5, 1.0), (-3.0, 0.2), (2.0, 30.0), (-20.0, 1.0)])
def test_at_zero_temperature_it_is_the_step(y: float, mean: float, variance: float) -> None:
    cold = log_evidence(BoltzmannStep(1e9), y, mean, variance)
    step = log_evidence(Step(), y, mean, variance)
    assert cold == pytest.approx(step, rel=1e-6)


@pytest.mark.parametrize("y", [-1.0, 1.0])
@pytest.mark.parametrize(("mean", "variance"), [(0.5, 1.0), (-3.0, 0.2), (2.0, 30.0)])
def test_at_infinite_temperature_nothing_is_learnt(y: float, mean: float, variance: float) -> None:
    log_mass, slope, curvature, kept = log_evidence(BoltzmannStep(1e-9), y, mean, variance)
    assert (log_mass, slope, curvature) == pytest.approx((0.0, 0.0, 0.0), abs=1e-8)
    assert kept == pytest.approx(1.0, abs=1e-8)


@given(f=st.floats(-50.0, 50.0), beta=st.floats(0.05, 10.0))
def test_normalised_over_the_signs_it_is_the_logistic(f: float, beta: float) -> None:
    known = Latent(np.array([f]), np.array([0.0]))
    one = BoltzmannStep(beta).log_probability(np.array([1.0]), known)
    assert one == pytest.approx(Logistic(1.0 / beta).log_probability(np.array([1.0]), known), rel=1e-9, abs=1e-12)


@given(y=st.sampled_from([-1.0, 1.0]), mean=st.floats(-30.0, 30.0), variance=st.floats(1e-6, 1e3))
def test_a_logistic_scale_is_a_change_of_units(y: float, mean: float, variance: float) -> None:
    log_mass, slope, curvature, kept = log_evidence(Logistic(0.25), y, mean, variance)
    unit = log_evidence(Logistic(), y, 4.0 * mean, 16.0 * variance)
    assert (log_mass, slope / 4.0, curvature / 16.0, kept) == pytest.approx(unit, rel=1e-9, abs=1e-12)


@pytest.mark.skipif(not COMPILED, reason="thousands of examples need compiled kernels")
@pytest.mark.parametrize("likelihood", [BoltzmannStep(5.0), Logistic(0.2)], ids=repr)
def test_both_readings_learn_a_rule(likelihood: ScalarLikelihood) -> None:
    rng = np.random.default_rng(0)
    d = 50
    teacher, features = rng.normal(size=d), rng.normal(size=(1000, d))
    learner = Learner(likelihood, SphericalGaussian(), MomentMatching(), d)
    learner.learn_many(features, np.sign(features @ teacher))
    overlap = learner.belief.mean @ teacher / np.linalg.norm(learner.belief.mean) / np.linalg.norm(teacher)
    assert math.acos(overlap) / math.pi < 0.07
