"""The normal distribution in its tails: against scipy, the continued fraction, and quadrature."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from bayou.numerics.normal import interval_ratios, log_ndtr, normal_ratios


def mills(x: float) -> tuple[float, float]:
    """lambda - x and 1 - k at -x, by the continued fraction."""
    e = 0.0
    for numerator in range(400, 1, -1):
        e = numerator / (x + e)
    w = 1.0 / (x + e)
    return w, (e - w) / (x + e)


@given(z=st.floats(-1e6, 30.0))
def test_log_ndtr_is_scipys(z: float) -> None:
    assert log_ndtr(z) == pytest.approx(special.log_ndtr(z), rel=1e-12)


@given(z=st.floats(-8.0, 30.0))
def test_ratio_is_density_over_distribution(z: float) -> None:
    ratio = stats.norm.pdf(z) / stats.norm.cdf(z)
    _, got, k, _ = normal_ratios(z)
    assert got == pytest.approx(ratio, rel=1e-12)
    assert k == pytest.approx(ratio * (ratio + z), rel=1e-9)


@given(x=st.floats(1.5, 1e9))
def test_the_lower_tail_is_the_continued_fraction(x: float) -> None:
    w, kept = mills(x)
    _, ratio, k, got_kept = normal_ratios(-x)
    assert ratio == pytest.approx(x + w, rel=1e-14)
    assert k == pytest.approx((x + w) * w, rel=1e-13)
    assert got_kept == pytest.approx(kept, rel=2e-13)


@given(z=st.floats(-30.0, 30.0))
def test_k_and_its_complement_add_up(z: float) -> None:
    _, _, k, kept = normal_ratios(z)
    assert k + kept == pytest.approx(1.0, rel=1e-13)


@pytest.mark.parametrize("z", [-1e300, -1e160, -1e20, 0.0, 40.0, 1e160, 1e300])
def test_the_ends_of_the_line_are_finite(z: float) -> None:
    assert np.isfinite(normal_ratios(z)).all()


def test_panels_meet() -> None:
    for edge in np.arange(-6.5, 6.5, 0.125):
        below, above = (np.array(normal_ratios(-z)) for z in (np.nextafter(edge, 0.0), np.nextafter(edge, 9.0)))
        assert below == pytest.approx(above, rel=1e-13)


@pytest.mark.parametrize("end", [-6.0, 6.0])
def test_numbers_next_to_the_end_of_the_panels_have_one(end: float) -> None:
    for z in (end, np.nextafter(end, 0.0), np.nextafter(end, 9.0 * end), end - 1e-9, end + 1e-9):
        assert normal_ratios(z)[0] == pytest.approx(special.log_ndtr(z), rel=1e-12)


def truncated(start: float, width: float) -> tuple[float, float, float]:
    """log chance, mean less its start, and variance of a normal in an interval that is mostly positive."""
    peak = max(start, 0.0) - start  # where the density is largest, from the start
    reach = min(width, peak + min(12.0, 60.0 / max(start, 1e-9)))
    ends = sorted({max(0.0, peak - 12.0), peak, reach})

    def weight(t: float) -> float:
        return math.exp(-(t - peak) * (start + peak) - 0.5 * (t - peak) ** 2)

    def integral(power: int, centre: float) -> float:
        return sum(
            integrate.quad(lambda t: weight(t) * (t - centre) ** power, a, b, epsabs=0.0, epsrel=1e-13, limit=200)[0]
            for a, b in itertools.pairwise(ends)
        )

    mass = integral(0, 0.0)
    centre = integral(1, 0.0) / mass
    log_mass = math.log(mass) - 0.5 * (start + peak) ** 2 - 0.5 * math.log(2.0 * math.pi)
    return log_mass, centre, integral(2, centre) / mass


@pytest.mark.filterwarnings("ignore:The occurrence of roundoff")
@pytest.mark.filterwarnings("ignore:The maximum number of subdivisions")
@given(
    start=st.one_of(st.floats(0.0, 8.0), st.floats(8.0, 1e6)),
    width=st.floats(-7.0, 2.5).map(lambda power: 10.0**power),
    straddles=st.one_of(st.none(), st.floats(0.0, 0.5)),
    mirrored=st.booleans(),
)
def test_intervals_are_truncated_normals(start: float, width: float, straddles: float | None, mirrored: bool) -> None:
    if straddles is not None:
        start = -straddles * min(width, 60.0)
    log_mass, centre, variance = truncated(start, width)
    if mirrored:
        got_log_mass, got_mean, k, kept = interval_ratios(-start - width, width)
        got_mean = -got_mean
    else:
        got_log_mass, got_mean, k, kept = interval_ratios(start, width)
    rounding = 1e-15 * abs(start) * max(1.0, abs(start))  # the mirrored start is not the start to the last digit
    assert got_log_mass == pytest.approx(log_mass, rel=1e-11, abs=1e-11 + (10.0 * rounding if mirrored else 0.0))
    assert got_mean == pytest.approx(start + centre, rel=1e-10, abs=1e-11)
    assert kept == pytest.approx(variance, rel=1e-8)
    assert k + kept == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("start", [-1e200, -1e8, 0.0, 1e8, 1e200])
@pytest.mark.parametrize("width", [1e-300, 1e-9, 1.0, 1e9, 1e300])
def test_extreme_intervals_are_finite(start: float, width: float) -> None:
    values = interval_ratios(start, width)
    assert np.isfinite(values).all()
    assert values[3] >= 0.0


def test_a_wide_interval_keeps_its_small_curvature() -> None:
    """k = 1 - variance is known to all digits also where the variance is 1 to all digits."""
    _, mean, k, kept = interval_ratios(-10.0, 21.0)
    below, above = stats.norm.pdf(-10.0), stats.norm.pdf(11.0)
    assert mean == pytest.approx(below - above, rel=1e-12)
    assert k == pytest.approx(10.0 * below + 11.0 * above, rel=1e-12)
    assert kept == 1.0
