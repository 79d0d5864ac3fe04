"""The logistic function of a normal variable: against integrals over its whole range."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from bayou.numerics.logistic_normal import in_reach, logistic_normal

VARIANCES = (1e-6, 0.003, 0.02, 0.3, 2.0, 8.9, 11.9, 12.1, 15.9, 16.1, 40.0, 400.0, 1e4, 1e6)


def expected(mean: float, variance: float, power: int) -> float:
    """E of p, p' or p'' by adaptive quadrature; the density's exponent is that of the peak, so that none underflows."""
    deviation = math.sqrt(variance)

    def integrand(f: float) -> float:
        right, wrong = float(expit(f)), float(expit(-f))
        value = (right, right * wrong, right * wrong * (wrong - right))[power]
        return value * math.exp(-0.5 * ((f - mean) / deviation) ** 2) / (deviation * math.sqrt(2.0 * math.pi))

    # The integrand is narrow around zero, as the derivatives are, and wide around the mean, as the density is.
    ends = {mean + k * deviation for k in (-12.0, -6.0, -3.0, 0.0, 3.0, 6.0, 12.0)}
    ends |= {end for end in (-60.0, -20.0, -5.0, 0.0, 5.0, 20.0, 60.0) if min(ends) < end < max(ends)}
    knots = sorted(ends)
    return math.fsum(quad(integrand, a, b, epsabs=0.0, epsrel=1e-12, limit=200)[0] for a, b in pairwise(knots))


@pytest.mark.parametrize("variance", VARIANCES)
def test_against_adaptive_quadrature(variance: float) -> None:
    deviation = math.sqrt(variance)
    for away in (-3.0, -1.0, -0.1, 0.0, 0.5, 2.0, 4.0):
        mean = away * deviation + (2.0 if variance < 1.0 else 0.0)
        if not in_reach(mean, variance):
            continue
        log_mass, first, second = logistic_normal(mean, variance)
        mass, slope, bend = (expected(mean, variance, power) for power in range(3))
        assert log_mass == pytest.approx(math.log(mass), rel=1e-9, abs=1e-10)
        assert first == pytest.approx(slope / mass, rel=1e-8)
        assert second == pytest.approx(bend / mass, rel=1e-7, abs=1e-7 * slope / mass)


def test_wide_latents_are_in_reach_as_far_as_targets_are_likely() -> None:
    """To six deviations from zero, if the latent is wide; what is farther is left to general quadrature."""
    for variance in (200.0, 1e3, 1e6, 1e12):
        assert in_reach(-6.0 * math.sqrt(variance), variance)


def test_the_widest_latent_is_a_coin() -> None:
    log_mass, first, second = logistic_normal(0.0, 1e12)
    assert log_mass == pytest.approx(math.log(0.5))
    assert first == pytest.approx(2.0 / math.sqrt(2.0 * math.pi * 1e12), rel=1e-6)  # as of a step
    assert abs(second) < 1e-15


def test_ways_meet_where_one_takes_over() -> None:
    for mean in np.linspace(-5.0, 5.0, 11):
        below, above = logistic_normal(mean, 12.0), logistic_normal(mean, 12.0 + 1e-9)
        np.testing.assert_allclose(below, above, rtol=1e-8, atol=1e-10)
