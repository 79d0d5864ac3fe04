"""What every scalar likelihood must do: against finite differences, a graded quadrature, sampling, and at extremes."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.integrate
from hypothesis import given, settings
from hypothesis import strategies as st

from bayou import likelihoods
from bayou.contracts import Latent, Matrix, ScalarLikelihood, Vector
from bayou.errors import InvalidTarget
from bayou.likelihoods import BoltzmannStep, Step, StudentT
from bayou.numerics.jit import COMPILED, kernel
from bayou.numerics.pointers import call_log_density, likelihood_kernels
from tests.contracts.specs import CASES, EXAMPLES, SAMPLERS, SCALAR_NAMES, SPECS, TARGETS

CASE = pytest.mark.parametrize(("spec", "y"), CASES, ids=repr)
EXAMPLE = pytest.mark.parametrize("spec", EXAMPLES, ids=repr)

MARGINALS = [(0.3, 1.0), (-2.0, 0.04), (1.5, 30.0), (0.7, 1e-10), (-4.0, 1e4), (3.0, 1e14)]
if not COMPILED:
    MARGINALS = [(0.3, 1.0), (-4.0, 1e4)]

DRAWS = 200_000
ERRORS = 5.0  # standard errors; a right answer fails one comparison in a million
RARE = 20.0 / DRAWS  # what is rarer may well not be among the draws, nor in their standard error


class Integrals(NamedTuple):
    """Of p(y | f) N(f), and of N(f) alone."""

    log_evidence: float
    offset: float
    variance: float
    expected: float
    expected_slope: float
    expected_curvature: float
    size_of_slope: float


def log_density(spec: ScalarLikelihood, y: float, f: float) -> tuple[float, float, float]:
    values: tuple[float, float, float] = spec.log_density(float(y), float(f), spec.params)
    return values


@kernel
def _fill(kernels: Vector, y: float, f: Vector, params: Vector, result: Matrix) -> None:
    for i in range(f.size):
        result[i, 0], result[i, 1], result[i, 2] = call_log_density(kernels, y, f[i], params)


def log_densities(spec: ScalarLikelihood, y: float, f: Vector) -> Matrix:
    """The same at many latents, a row for each."""
    result = np.empty((f.size, 3))
    _fill(likelihood_kernels(spec), float(y), f, spec.params, result)
    return result


def log_evidence(spec: ScalarLikelihood, y: float, mean: float, variance: float) -> tuple[float, float, float, float]:
    values: tuple[float, float, float, float] = spec.log_evidence(
        likelihood_kernels(spec), float(y), float(mean), float(variance), spec.params
    )
    return values


def expected(spec: ScalarLikelihood, y: float, mean: float, variance: float) -> tuple[float, float, float]:
    values: tuple[float, float, float] = spec.expected_log_density(
        likelihood_kernels(spec), float(y), float(mean), float(variance), spec.params
    )
    return values


def graded(centre: float, scale: float, reach: float, panels: int) -> Vector:
    """Ends of panels that are the smaller the nearer they are to the centre."""
    end = math.asinh(reach / scale)
    return centre + scale * np.sinh(np.linspace(-end, end, 2 * panels + 1))


def integrals(spec: ScalarLikelihood, y: float, mean: float, variance: float) -> Integrals:
    """Gauss-Legendre on panels graded towards where a likelihood may have a kink, towards the mean and the mode."""
    spread = math.sqrt(variance)
    reach = 14.0 * spread + 40.0
    panels = 120 if COMPILED else 60
    starts = [graded(mean, 0.3 * spread, 14.0 * spread, 12), graded(0.0, 0.05, reach + abs(mean), panels)]
    scanned = np.unique(np.concatenate(starts))
    scanned = scanned[np.abs(scanned - mean) <= reach]
    joint = log_densities(spec, y, scanned)[:, 0] - 0.5 * ((scanned - mean) / spread) ** 2
    top = int(np.argmax(joint))
    gap = scanned[min(top + 1, scanned.size - 1)] - scanned[max(top - 1, 0)]
    ends = np.unique(np.concatenate([scanned, graded(scanned[top], 0.01 * gap, reach, panels)]))
    ends = ends[np.abs(ends - mean) <= reach]

    nodes, weights = np.polynomial.legendre.leggauss(12)
    # Offsets from the mean: f itself has too few digits for a narrow belief.
    low, high = ends[:-1, None] - mean, ends[1:, None] - mean
    if variance < 1e-6:
        low, high = (spread * np.linspace(-12.0, 12.0, 25)[side][:, None] for side in (slice(-1), slice(1, None)))
    offsets = (0.5 * (low + high) + 0.5 * (high - low) * nodes).ravel()
    measure = (0.5 * (high - low) * weights).ravel()
    values = log_densities(spec, y, mean + offsets)
    normal = measure * np.exp(-0.5 * (offsets / spread) ** 2) / (spread * math.sqrt(2.0 * math.pi))
    peak = np.max(values[:, 0] - 0.5 * (offsets / spread) ** 2)
    if peak == -math.inf:  # a step, farther away than the panels reach
        return Integrals(-math.inf, *[math.nan] * 6)
    tilted = measure * np.exp(values[:, 0] - 0.5 * (offsets / spread) ** 2 - peak)
    offset = float(tilted @ offsets / tilted.sum())
    with np.errstate(invalid="ignore"):  # 0 times the -inf of a step
        return Integrals(
            float(peak + np.log(tilted.sum() / (spread * math.sqrt(2.0 * math.pi)))),
            offset,
            float(tilted @ (offsets - offset) ** 2 / tilted.sum()),
            float(normal @ values[:, 0]),
            float(normal @ values[:, 1]),
            float(-(normal * offsets) @ values[:, 1] / variance),
            float(normal @ np.abs(values[:, 1])),
        )


def derivatives(values: list[float], step: float) -> tuple[float, float]:
    """Slope and minus curvature, from five values one step apart."""
    a, b, c, d, e = values
    slope = (a - 8.0 * b + 8.0 * d - e) / (12.0 * step)
    return slope, (a - 16.0 * b + 30.0 * c - 16.0 * d + e) / (12.0 * step**2)


def test_every_likelihood_has_examples() -> None:
    assert set(SCALAR_NAMES) == set(SPECS) == set(TARGETS) == set(SAMPLERS)
    assert all(SPECS.values())
    assert all(type(spec).__name__ == name for name, specs in SPECS.items() for spec in specs)


@EXAMPLE
def test_a_spec_is_a_value(spec: ScalarLikelihood) -> None:
    again = eval(repr(spec), {name: getattr(likelihoods, name) for name in likelihoods.__all__})
    assert again == spec
    assert hash(again) == hash(spec)
    assert spec.params.dtype == np.float64


@CASE
@given(f=st.floats(-4.0, 4.0))
@settings(max_examples=30)
def test_slope_and_curvature_are_derivatives(spec: ScalarLikelihood, y: float, f: float) -> None:
    if isinstance(spec, Step):
        assert log_density(spec, y, f)[1:] == (0.0, 0.0)
        return
    step = 2e-3
    if isinstance(spec, BoltzmannStep) and abs(f) < 3.0 * step:
        return  # the kink
    values = [log_density(spec, y, f + i * step)[0] for i in range(-2, 3)]
    slope, curvature = derivatives(values, step)
    scale = 1.0 + max(map(abs, values))
    _, got_slope, got_curvature = log_density(spec, y, f)
    assert got_slope == pytest.approx(slope, rel=1e-6, abs=1e-8 * scale)
    assert got_curvature == pytest.approx(curvature, rel=1e-5, abs=1e-7 * scale)


@CASE
@pytest.mark.parametrize(("mean", "variance"), MARGINALS)
def test_evidence_is_the_integral(spec: ScalarLikelihood, y: float, mean: float, variance: float) -> None:
    want = integrals(spec, y, mean, variance)
    log_mass, slope, curvature, kept = log_evidence(spec, y, mean, variance)
    accuracy = 1e-9 if COMPILED else 1e-7
    if math.isfinite(want.log_evidence):
        spread = math.sqrt(variance)
        assert log_mass == pytest.approx(want.log_evidence, rel=accuracy, abs=accuracy)
        assert slope * spread == pytest.approx(want.offset / spread, rel=accuracy, abs=accuracy)
        assert kept == pytest.approx(want.variance / variance, rel=100.0 * accuracy)
    assert curvature * variance == pytest.approx(1.0 - kept, rel=1e-9, abs=1e-12 * max(1.0, kept))


@CASE
@pytest.mark.parametrize(("mean", "variance"), [(0.3, 1.0), (-2.0, 0.04), (1.5, 30.0), (0.5, 1e4)])
def test_evidence_has_those_derivatives(spec: ScalarLikelihood, y: float, mean: float, variance: float) -> None:
    step = 0.02 * math.sqrt(variance + 0.01)
    values = [log_evidence(spec, y, mean + i * step, variance)[0] for i in range(-2, 3)]
    _, slope, curvature, _ = log_evidence(spec, y, mean, variance)
    want_slope, want_curvature = derivatives(values, step)
    scale = max(1.0, *map(abs, values))
    assert slope == pytest.approx(want_slope, rel=1e-4, abs=1e-6 * scale / math.sqrt(variance))
    assert curvature == pytest.approx(want_curvature, rel=1e-3, abs=1e-4 * scale / variance)


@CASE
@pytest.mark.parametrize(("mean", "variance"), MARGINALS)
def test_expected_log_density_is_the_integral(spec: ScalarLikelihood, y: float, mean: float, variance: float) -> None:
    if isinstance(spec, Step):
        assert expected(spec, y, mean, variance) == (-math.inf, 0.0, 0.0)
        return
    if type(spec).__name__ == "Poisson" and variance > 20.0:
        pytest.skip("the mean of exp(f) comes from beyond the reach of the panels; the closed form is exact")
    want = integrals(spec, y, mean, variance)
    value, slope, curvature = expected(spec, y, mean, variance)
    accuracy = 1e-8 if COMPILED else 1e-6
    assert value == pytest.approx(want.expected, rel=accuracy, abs=accuracy)
    assert slope == pytest.approx(want.expected_slope, rel=accuracy, abs=accuracy * want.size_of_slope)
    if variance > 1e-6:  # by parts, the panels have the curvature to that precision only
        assert curvature == pytest.approx(want.expected_curvature, rel=1e-6, abs=accuracy / variance)
    else:
        assert curvature == pytest.approx(log_density(spec, y, mean)[2], rel=1e-4, abs=1e-4)


@CASE
@pytest.mark.parametrize("mean", [0.3, -3.0])
def test_without_variance_it_is_the_density(spec: ScalarLikelihood, y: float, mean: float) -> None:
    certain = log_density(spec, y, mean)
    assert log_evidence(spec, y, mean, 0.0) == pytest.approx((*certain, 1.0), rel=1e-12)
    assert expected(spec, y, mean, 0.0) == pytest.approx(certain, rel=1e-12)
    if spec.smooth:
        assert log_evidence(spec, y, mean, 1e-20) == pytest.approx((*certain, 1.0), rel=1e-8)
        assert expected(spec, y, mean, 1e-20) == pytest.approx(certain, rel=1e-8)


@CASE
@pytest.mark.parametrize("mean", [0.0, 1e-8, 37.0, -37.0, 1e3, -1e3, 1e8, -1e8])
def test_extremes_are_finite(spec: ScalarLikelihood, y: float, mean: float) -> None:
    assert np.isfinite(log_density(spec, y, mean)[1:]).all()
    assert not math.isnan(log_density(spec, y, mean)[0])
    for variance in (0.0, 1e-20, 1e-8, 1e8, 1e20) if COMPILED else (1e-20, 1e20):
        log_mass, slope, curvature, kept = log_evidence(spec, y, mean, variance)
        assert np.isfinite([slope, curvature, kept]).all()
        assert not math.isnan(log_mass)
        assert kept > 0.0
        if not isinstance(spec, StudentT) and type(spec).__name__ != "FlipProbit":  # all others are log-concave
            assert kept <= 1.0
            assert curvature >= 0.0
        if spec.smooth and (COMPILED or abs(mean) < 1e8):
            assert np.isfinite(expected(spec, y, mean, variance)).all()


@EXAMPLE
@pytest.mark.parametrize("f", [-1.5, 0.2, 2.5])
def test_densities_sum_to_one(spec: ScalarLikelihood, f: float) -> None:
    low, high = spec.target_range
    if low == -math.inf:
        total = sum(
            scipy.integrate.quad(lambda y: math.exp(log_density(spec, y, f)[0]), *ends, limit=200)[0]
            for ends in ((-np.inf, f), (f, np.inf))
        )
    else:
        values = np.arange(low, min(high, 3000.0) + 1.0)
        total = sum(math.exp(log_density(spec, y, f)[0]) for y in values[spec.accepts(values)])
    assert total == pytest.approx(1.0, rel=1e-7) if spec.normalised else total > 1.0


@CASE
def test_log_probability_is_the_evidence_of_each_row(spec: ScalarLikelihood, y: float) -> None:
    rows = MARGINALS[:3]
    latent = Latent(*(np.array(column) for column in zip(*rows, strict=True)))
    got = spec.log_probability(np.full(len(rows), y), latent)
    want = np.array([integrals(spec, y, mean, variance).log_evidence for mean, variance in rows])
    if not spec.normalised:  # the share in the evidence of all targets
        want -= np.logaddexp(want, [integrals(spec, -y, mean, variance).log_evidence for mean, variance in rows])
    assert got == pytest.approx(want, rel=1e-8 if COMPILED else 1e-6, abs=1e-8 if COMPILED else 1e-6)


def draw(spec: ScalarLikelihood, latent: Latent, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    f = latent.mean[0] + np.sqrt(latent.variance[0]) * rng.normal(size=DRAWS)
    return SAMPLERS[type(spec).__name__](spec, f, rng)


@EXAMPLE
@pytest.mark.parametrize(("mean", "variance"), [(0.4, 0.5), (-1.0, 0.0), (2.0, 0.1)])
def test_moments_are_those_of_draws(spec: ScalarLikelihood, mean: float, variance: float) -> None:
    latent = Latent(np.array([mean]), np.array([variance]))
    (want_mean,), (want_variance,) = spec.moments(latent)
    targets = draw(spec, latent, seed=1)
    assert spec.accepts(targets).all()
    if not spec.normalised and variance > 0.0:
        return  # the latent is not known apart from the target: there is no drawing one, then the other
    if not math.isfinite(want_variance):
        assert isinstance(spec, StudentT)
        assert spec.degrees <= 2.0
        return
    assert abs(targets.mean() - want_mean) <= ERRORS * math.sqrt(want_variance / DRAWS) + 1e-9
    if isinstance(spec, StudentT) and spec.degrees <= 8.0:
        return  # the variance of draws has no standard error
    squares = (targets - want_mean) ** 2
    assert abs(squares.mean() - want_variance) <= ERRORS * squares.std() / math.sqrt(DRAWS) + RARE


@EXAMPLE
@pytest.mark.parametrize(("mean", "variance"), [(0.4, 0.5), (-1.0, 0.0), (2.0, 4.0)])
def test_quantiles_cut_off_so_many_draws(spec: ScalarLikelihood, mean: float, variance: float) -> None:
    latent = Latent(np.array([mean, mean]), np.array([variance, variance]))
    probabilities = np.array([0.001, 0.05, 0.3, 0.5, 0.9, 0.999])
    got = spec.quantiles(latent, probabilities)
    assert got.shape == (2, probabilities.size)
    assert (np.diff(got, axis=1) >= 0.0).all()
    if not spec.normalised and variance > 0.0:
        return
    targets = draw(spec, latent, seed=2)
    for quantile, probability in zip(got[0], probabilities, strict=True):
        error = ERRORS * math.sqrt(probability * (1.0 - probability) / DRAWS)
        assert np.mean(targets <= quantile + 1e-9) >= probability - error
        assert np.mean(targets < quantile - 1e-9) <= probability + error


@EXAMPLE
def test_quantiles_reach_the_ends(spec: ScalarLikelihood) -> None:
    low, high = spec.target_range
    got = spec.quantiles(Latent(np.zeros(1), np.ones(1)), np.array([0.0, 1.0]))
    assert got.tolist() == [[low, high]]
    assert spec.quantiles(Latent(np.zeros(0), np.ones(0)), np.array([0.5])).shape == (0, 1)


@EXAMPLE
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.5, -1.5, 1e3 + 0.5])
def test_what_cannot_be_a_target_is_named(spec: ScalarLikelihood, value: float) -> None:
    good = TARGETS[type(spec).__name__][0]
    targets = np.array([good, value, good])
    spec.check_targets(targets[::2])
    if spec.target_range == (-math.inf, math.inf) and math.isfinite(value):
        spec.check_targets(targets)
        return
    with pytest.raises(InvalidTarget, match=rf"got {value} in row 1\.".replace("+", r"\+")):
        spec.check_targets(targets)
