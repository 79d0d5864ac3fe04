"""Targets on the line: learnt noise, heavy tails, outliers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from bayou.contracts import Latent
from bayou.errors import InvalidSpec
from bayou.likelihoods import Gaussian, StudentT
from bayou.numerics.jit import COMPILED
from bayou.numerics.pointers import likelihood_kernels

PROBABILITIES = np.array([1e-8, 0.01, 0.3, 0.5, 0.9, 1.0 - 1e-8])


def test_learnt_noise_is_honoured() -> None:
    latent = Latent(
        np.array([1.0, -2.0, 0.0]), np.array([0.5, 3.0, 0.0]), np.array([2.0, 0.1, 4.0]), np.array([5.0, 1.5, np.inf])
    )
    spec = Gaussian(0.7)
    scale = np.sqrt(latent.noise * (0.7 + latent.variance))
    frozen = [stats.t(5.0, 1.0, scale[0]), stats.t(1.5, -2.0, scale[1]), stats.norm(0.0, scale[2])]
    mean, variance = spec.moments(latent)
    assert mean.tolist() == [1.0, -2.0, 0.0]
    assert variance == pytest.approx([frozen[0].var(), math.inf, frozen[2].var()], rel=1e-12)
    targets = np.array([0.3, 7.0, -1.0])
    want = [law.logpdf(target) for law, target in zip(frozen, targets, strict=True)]
    assert spec.log_probability(targets, latent) == pytest.approx(want, rel=1e-12)
    quantiles = spec.quantiles(latent, PROBABILITIES)
    for row, law in zip(quantiles, frozen, strict=True):
        assert row == pytest.approx(law.ppf(PROBABILITIES), rel=1e-9, abs=1e-12)


def test_many_degrees_are_infinitely_many() -> None:
    rows = [Latent(np.zeros(1), np.ones(1), 1.0, degrees) for degrees in (1e13, np.inf)]
    spec = Gaussian()
    assert np.ptp([spec.log_probability(np.array([2.0]), row)[0] for row in rows]) < 1e-12
    assert np.ptp([spec.quantiles(row, np.array([0.9]))[0, 0] for row in rows]) < 1e-9
    assert np.ptp([spec.moments(row)[1][0] for row in rows]) < 1e-9


def predictive_below(quantile: float, spec: StudentT, mean: float, variance: float) -> float:
    """P(y <= quantile), integrating over the noise instead of over the latent."""
    spread = math.sqrt(variance)

    def integrand(u: float) -> float:  # the noise, on a scale on which its tails are short
        noise = spec.noise_scale * math.sinh(u)
        density = stats.t.pdf(math.sinh(u), spec.degrees) * math.cosh(u)
        return float(density * stats.norm.cdf(quantile - noise, mean, spread))

    edge = math.asinh((quantile - mean) / spec.noise_scale)
    ends = sorted({-60.0, -5.0, 0.0, 5.0, 60.0, edge, edge - 1.0, edge + 1.0})
    return sum(
        integrate.quad(integrand, a, b, epsabs=1e-14, epsrel=1e-10, limit=200)[0] for a, b in itertools.pairwise(ends)
    )


@pytest.mark.parametrize("spec", [StudentT(), StudentT(1.0, 0.2), StudentT(30.0, 2.0)], ids=repr)
@pytest.mark.parametrize(("mean", "variance"), [(0.3, 1.0), (-5.0, 1e-4), (2.0, 400.0)])
def test_quantiles_invert_the_predictive(spec: StudentT, mean: float, variance: float) -> None:
    wanted = np.array([0.001, 0.2, 0.5, 0.95])
    got = spec.quantiles(Latent(np.array([mean]), np.array([variance])), wanted)[0]
    below = [predictive_below(quantile, spec, mean, variance) for quantile in got]
    assert below == pytest.approx(wanted, rel=1e-6)


def test_a_certain_latent_leaves_the_noise() -> None:
    got = StudentT(3.0, 2.0).quantiles(Latent(np.array([1.0]), np.zeros(1)), PROBABILITIES)[0]
    assert got == pytest.approx(stats.t.ppf(PROBABILITIES, 3.0, 1.0, 2.0), rel=1e-7)


@given(
    error=st.floats(-1e4, 1e4),
    power=st.floats(-8.0, 8.0),
    degrees=st.floats(0.3, 300.0),
)
def test_evidence_is_the_convolution(error: float, power: float, degrees: float) -> None:
    """Over the latent itself, on panels graded towards the target and the mean."""
    variance = 10.0**power
    spec = StudentT(degrees)
    spread = math.sqrt(variance)
    panels = 160 if COMPILED else 60
    grades = np.sinh(np.linspace(-28.0, 28.0, 2 * panels + 1)) * 1e-3
    ends = np.unique(np.concatenate([error + grades, spread * np.linspace(-13.0, 13.0, 53)]))
    ends = ends[np.abs(ends) <= 13.0 * spread + abs(error)]
    nodes, weights = np.polynomial.legendre.leggauss(10)
    f = (0.5 * (ends[1:] + ends[:-1])[:, None] + 0.5 * np.diff(ends)[:, None] * nodes).ravel()
    logs = stats.t.logpdf(error - f, degrees) + stats.norm.logpdf(f, 0.0, spread)
    top = logs.max()
    mass = (0.5 * np.diff(ends)[:, None] * weights).ravel() * np.exp(logs - top)
    offset = mass @ f / mass.sum()
    left = mass @ (f - offset) ** 2 / mass.sum() / variance
    log_mass, slope, curvature, kept = spec.log_evidence(likelihood_kernels(spec), error, 0.0, variance, spec.params)
    assert log_mass == pytest.approx(top + math.log(mass.sum()), rel=1e-8, abs=1e-8)
    assert slope * spread == pytest.approx(offset / spread, rel=1e-6, abs=1e-7)
    assert kept == pytest.approx(left, rel=1e-5)
    assert curvature * variance == pytest.approx(1.0 - kept, rel=1e-8, abs=1e-11 * max(1.0, kept))


def test_an_outlier_is_let_go() -> None:
    """The slope of a t falls again as the target goes away, where that of a Gaussian grows."""
    spec = StudentT()
    slopes = [spec.log_evidence(likelihood_kernels(spec), y, 0.0, 1.0, spec.params)[1] for y in (3.0, 30.0, 300.0)]
    assert slopes[0] > slopes[1] > slopes[2] > 0.0
    assert slopes[2] == pytest.approx(5.0 / 300.0, rel=1e-2)


def test_many_degrees_are_a_gaussian() -> None:
    spec, gaussian = StudentT(1e9, 0.8), Gaussian(0.64)
    got = spec.log_evidence(likelihood_kernels(spec), 1.7, 0.4, 0.5, spec.params)
    want = gaussian.log_evidence(likelihood_kernels(gaussian), 1.7, 0.4, 0.5, gaussian.params)
    assert got == pytest.approx(want, rel=1e-7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(-0.5), r"`noise_variance` must be positive; got -0\.5\."),
        (lambda: StudentT(degrees=0.0), r"`degrees` must be positive; got 0\.0\."),
        (lambda: StudentT(noise_scale=math.inf), r"`noise_scale` must be positive; got inf\."),
    ],
)
def test_what_is_no_spec_says_why(make: object, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        make()  # type: ignore[operator]
