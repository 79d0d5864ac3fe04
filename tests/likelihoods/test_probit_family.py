"""Signs and grades: what noise, flips and cutpoints mean, and the far tail."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayou.contracts import Latent, ScalarLikelihood
from bayou.errors import InvalidSpec
from bayou.likelihoods import FlipProbit, Ordinal, Probit, Step
from bayou.numerics.pointers import likelihood_kernels


def log_evidence(spec: ScalarLikelihood, y: float, mean: float, variance: float) -> tuple[float, ...]:
    values: tuple[float, ...] = spec.log_evidence(likelihood_kernels(spec), y, mean, variance, spec.params)
    return values


@pytest.mark.parametrize("z", [-10.0, -1e3, -1e6, -1e12])
def test_a_contradiction_far_away_tells_the_asymptotics(z: float) -> None:
    """lambda = |z| + 1/|z| - ..., and of the variance is left 1/z^2 - 6/z^4 + 50/z^6, up to the next term."""
    log_mass, slope, _, kept = log_evidence(Step(), 1.0, z, 1.0)
    assert log_mass == pytest.approx(-0.5 * z**2 - math.log(-z) - 0.5 * math.log(2.0 * math.pi), rel=2.0 / z**4)
    assert slope == pytest.approx(-z - 1.0 / z + 2.0 / z**3, rel=20.0 / z**6 + 1e-15)
    assert kept == pytest.approx(1.0 / z**2 - 6.0 / z**4 + 50.0 / z**6, rel=600.0 / z**6 + 1e-13)


@given(mean=st.floats(-30.0, 30.0), variance=st.floats(1e-3, 1e3), y=st.sampled_from([-1.0, 1.0]))
def test_the_family_meets_at_its_ends(mean: float, variance: float, y: float) -> None:
    of_probit = log_evidence(Probit(0.5), y, mean, variance)
    assert log_evidence(FlipProbit(0.0, 0.5), y, mean, variance) == of_probit
    assert log_evidence(Ordinal((0.0,), 0.5), 0.5 * (y + 1.0), mean, variance) == pytest.approx(of_probit, rel=1e-14)
    noiseless = log_evidence(Probit(1e-9), y, mean, variance)
    assert log_evidence(Step(), y, mean, variance) == pytest.approx(noiseless, rel=1e-9)


@given(mean=st.floats(-300.0, 300.0), noise=st.floats(0.1, 3.0), variance=st.floats(0.0, 100.0))
def test_grades_are_exclusive(mean: float, noise: float, variance: float) -> None:
    spec = Ordinal((-2.0, -1.999, 0.0, 5.0), noise)
    latent = Latent(np.full(5, mean), np.full(5, variance))
    assert np.exp(spec.log_probability(np.arange(5.0), latent)).sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("mean", [-1e4, -60.0, 60.0, 1e4])
def test_a_grade_far_away_is_as_its_nearest_cutpoint(mean: float) -> None:
    """Beyond all cutpoints a grade differs from the tail at its nearer cutpoint by what lies beyond the other one."""
    spec = Ordinal((-1.0, 1.0), 1.0)
    grade = log_evidence(spec, 1.0, mean, 3.0)
    tail = log_evidence(Probit(1.0), -math.copysign(1.0, mean), mean - math.copysign(1.0, mean), 3.0)
    assert grade == pytest.approx(tail, rel=1e-12)


def test_a_flip_explains_a_contradiction() -> None:
    log_mass, slope, curvature, kept = log_evidence(FlipProbit(0.1), -1.0, 50.0, 1.0)
    assert log_mass == pytest.approx(math.log(0.1))
    assert (slope, curvature, kept) == pytest.approx((0.0, 0.0, 1.0), abs=1e-200)


def test_a_flip_can_make_the_latent_less_certain() -> None:
    assert log_evidence(FlipProbit(0.1), -1.0, 4.0, 2.0)[3] > 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Probit(0.0), r"`noise_scale` must be positive; got 0\.0\."),
        (lambda: Probit(math.nan), r"`noise_scale` must be positive; got nan\."),
        (lambda: FlipProbit(0.5), r"`flip_rate` must be in \[0, 0\.5\); got 0\.5\."),
        (lambda: FlipProbit(-0.1), r"`flip_rate` must be in \[0, 0\.5\); got -0\.1\."),
        (lambda: FlipProbit(0.1, -1.0), r"`noise_scale` must be positive; got -1\.0\."),
        (lambda: Ordinal(()), r"`cutpoints` must be finite and increasing, and at least one; got \(\)\."),
        (lambda: Ordinal((1.0, 1.0)), r"`cutpoints` must be .*; got \(1\.0, 1\.0\)\."),
        (lambda: Ordinal((0.0, math.inf)), r"`cutpoints` must be .*; got \(0\.0, inf\)\."),
        (lambda: Ordinal((0.0,), 0.0), r"`noise_scale` must be positive; got 0\.0\."),
    ],
)
def test_what_is_no_spec_says_why(make: object, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        make()  # type: ignore[operator]


def test_a_list_of_cutpoints_becomes_a_value() -> None:
    spec = Ordinal(np.array([0.0, 1.0]), np.float64(2.0))  # type: ignore[arg-type]
    assert repr(spec) == "Ordinal(cutpoints=(0.0, 1.0), noise_scale=2.0)"
    assert spec.target_range == (0.0, 2.0)
