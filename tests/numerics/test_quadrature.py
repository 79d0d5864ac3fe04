"""Quadrature where it is hard: against closed forms of probit and Gaussian, and limits that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from bayou.contracts import Latent, ScalarLikelihood
from bayou.likelihoods import Gaussian, Logistic, Poisson, Probit
from bayou.numerics.gamma import deviance, log_gamma_half_step, stirling_error
from bayou.numerics.jit import COMPILED
from bayou.numerics.pointers import likelihood_kernels
from bayou.numerics.predictive import crossing, log_evidences, smoothed
from bayou.numerics.quadrature import expected_log_density_by_quadrature, log_evidence_by_quadrature
from bayou.numerics.student_t import student_t_log_densities

EXPONENTS = st.floats(-18.0, 18.0) if COMPILED else st.floats(-6.0, 2.0)


def quadrature(likelihood: ScalarLikelihood, y: float, mean: float, variance: float) -> tuple[float, ...]:
    kernels = likelihood_kernels(likelihood)
    values: tuple[float, ...] = log_evidence_by_quadrature(kernels, y, mean, variance, likelihood.params)
    return values


@given(z=st.floats(-30.0, 8.0), power=EXPONENTS)
def test_evidence_of_a_probit_has_its_closed_form(z: float, power: float) -> None:
    """From a belief that sees a line to one that sees a step; z is what the closed form depends on."""
    variance = 10.0**power
    likelihood = Probit()
    mean = z * math.sqrt(1.0 + variance)
    log_mass, slope, curvature, kept = quadrature(likelihood, 1.0, mean, variance)
    want = likelihood.log_evidence(likelihood_kernels(likelihood), 1.0, mean, variance, likelihood.params)
    spread = math.sqrt(variance)
    assert log_mass == pytest.approx(want[0], rel=1e-11, abs=1e-11)
    assert slope * spread == pytest.approx(want[1] * spread, rel=1e-10, abs=1e-10)
    assert curvature * variance == pytest.approx(want[2] * variance, rel=1e-9, abs=1e-9)
    assert kept == pytest.approx(want[3], rel=1e-8)


@given(error=st.floats(-50.0, 50.0), power=EXPONENTS)
def test_evidence_of_a_gaussian_has_its_closed_form(error: float, power: float) -> None:
    variance = 10.0**power
    total = 0.5 + variance
    log_mass, slope, curvature, kept = quadrature(Gaussian(0.5), error, 0.0, variance)
    assert log_mass == pytest.approx(stats.norm.logpdf(error, 0.0, math.sqrt(total)), rel=1e-11, abs=1e-11)
    assert slope == pytest.approx(error / total, rel=1e-9, abs=1e-11)
    assert curvature == pytest.approx(1.0 / total, rel=1e-9)
    assert kept == pytest.approx(0.5 / total, rel=1e-9)


@given(mean=st.floats(-20.0, 20.0), power=EXPONENTS)
def test_expectation_of_a_gaussian_has_its_closed_form(mean: float, power: float) -> None:
    likelihood, variance = Gaussian(0.5), 10.0**power
    kernels = likelihood_kernels(likelihood)
    value, slope, curvature = expected_log_density_by_quadrature(kernels, 1.0, mean, variance, likelihood.params)
    want = stats.norm.logpdf(1.0, mean, math.sqrt(0.5)) - variance
    assert value == pytest.approx(want, rel=1e-11)
    assert slope == pytest.approx((1.0 - mean) / 0.5, rel=1e-10, abs=1e-10 * math.sqrt(1.0 + variance))
    assert curvature == pytest.approx(2.0, rel=1e-9)


@pytest.mark.parametrize("spread", [1e4, 1e7, 1e10])
@pytest.mark.parametrize("offset", [0.0, 1e-3, 0.4, -2.0])
def test_a_wide_belief_sees_a_step(spread: float, offset: float) -> None:
    """A logistic is then a step, but for a correction of the order of (pi / spread)^2."""
    if not COMPILED and spread > 1e4:
        pytest.skip("many panels")
    likelihood = Logistic()
    mean = offset * spread
    got = quadrature(likelihood, -1.0, mean, spread**2)
    z = -offset
    ratio = stats.norm.pdf(z) / stats.norm.cdf(z)
    near = 20.0 / spread**2 + 1e-9
    assert got[0] == pytest.approx(special.log_ndtr(z), rel=near)
    assert got[1] * spread == pytest.approx(-ratio, rel=near)
    assert got[3] == pytest.approx(1.0 - ratio * (ratio + z), rel=near)
    slope = expected_log_density_by_quadrature(likelihood_kernels(likelihood), -1.0, mean, spread**2, likelihood.params)
    assert slope[1] == pytest.approx(-stats.norm.cdf(offset), rel=near)
    assert slope[2] * spread == pytest.approx(stats.norm.pdf(offset), rel=near)


def test_symmetry_hides_no_kink() -> None:
    """A kink next to the mean, where nodes of symmetric rules lie."""
    likelihood = Logistic()
    for mean in (0.0, 1e-6, 0.5, -30.0):
        got = quadrature(likelihood, 1.0, mean, 1e8)[0]
        # E sigmoid under N(mean, v) to first order in mean / sqrt(v); the next order is (mean / sqrt v)^3
        assert math.exp(got) == pytest.approx(0.5 + mean * stats.norm.pdf(0.0) / 1e4, abs=1e-8)


@pytest.mark.parametrize("y", [0.0, 7.0, 1e3, 1e6, 1e12])
def test_large_counts_keep_their_digits(y: float) -> None:
    """Where the belief is flat across the likelihood, E p is N(f) at the mode times the integral of p, 1 / y."""
    likelihood = Poisson()
    mean = math.log(max(y, 1.0))
    if y < 1e6:
        want = stats.poisson.logpmf(y, math.exp(mean))
        assert likelihood.log_density(y, mean, likelihood.params)[0] == pytest.approx(want, rel=1e-9)
    else:
        variance = 1e-3
        want = stats.norm.logpdf(mean, mean, math.sqrt(variance)) - math.log(y)
        # p N = gamma density in f of scale 1/y: the correction is of order 1 / (y variance)
        assert quadrature(likelihood, y, mean, variance)[0] == pytest.approx(want, abs=5.0 / (y * variance) + 1e-9)


@given(x=st.floats(1e-3, 1e12))
def test_gamma_without_cancellation(x: float) -> None:
    leading = (x - 0.5) * math.log(x) - x + 0.5 * math.log(2.0 * math.pi)
    size = 1e-14 * (1.0 + abs(leading))
    assert stirling_error(x) == pytest.approx(special.gammaln(x) - leading, rel=1e-9, abs=size)
    assert log_gamma_half_step(x) == pytest.approx(np.log(special.poch(x, 0.5)), rel=1e-9, abs=1e-9)


@given(t=st.floats(-30.0, 30.0))
def test_deviance_is_convex_and_touches_zero(t: float) -> None:
    assert deviance(t) >= 0.0
    assert deviance(t) == pytest.approx(math.exp(t) - 1.0 - t, rel=1e-12, abs=1e-15)


def test_t_densities_are_scipys_and_end_in_the_normal() -> None:
    z = np.array([0.0, 0.7, -3.0, 40.0])
    for degrees in (0.5, 1.0, 4.0, 31.0, 200.0):
        got = student_t_log_densities(z, np.full(4, degrees))
        assert got == pytest.approx(stats.t.logpdf(z, degrees), rel=1e-12)
    for degrees in (1e12, 1e20, np.inf):
        assert student_t_log_densities(z, np.full(4, degrees)) == pytest.approx(stats.norm.logpdf(z), rel=1e-8)


def test_one_target_serves_all_rows() -> None:
    latent = Latent(np.array([0.1, -0.4]), np.array([1.0, 2.0]))
    assert log_evidences(Probit(), 1.0, latent).tolist() == log_evidences(Probit(), np.ones(2), latent).tolist()


@pytest.mark.parametrize("width", [1e-9, 0.1, 1.0, 30.0, 1e6])
@pytest.mark.parametrize("place", [-3.0, 0.0, 0.5, 8.0])
def test_smoothing_a_step_adds_the_variances(width: float, place: float) -> None:
    """A step that is itself a normal distribution function, across a normal belief."""
    got = smoothed(
        lambda f: special.ndtr((place - f) / width), *(np.array([value]) for value in (place, width, 0.2, 1.5))
    )
    assert got == pytest.approx(special.ndtr((place - 0.2) / math.hypot(width, 1.5)), rel=1e-9, abs=1e-12)


def test_crossings_are_found_whatever_the_shape() -> None:
    powers = np.array([1.0, 3.0, 9.0, 0.2])
    roots = np.array([0.3, 0.9, 0.5, 1e-4])
    low, high = np.zeros(4), np.ones(4)
    got = crossing(lambda x: x**powers - roots**powers, low, high, lambda x: 1e-14 + 1e-12 * x)
    assert got == pytest.approx(roots, rel=1e-9)
    outside = crossing(lambda x: x + np.array([1.0, -2.0]), np.zeros(2), np.ones(2), lambda x: 1e-12 + 0.0 * x)
    assert outside.tolist() == [0.0, 1.0]
