"""Bases against functions that are known otherwise: those of NumPy and SciPy, kernels, rational numbers far away."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from scipy.interpolate import BSpline
from scipy.special import gamma, kv

from bayou.contracts import Basis, Vector
from bayou.encoders import (
    Additive,
    CubicSplines,
    Fourier,
    PiecewiseLinear,
    Polynomials,
    RadialFunctions,
    RandomFourier,
    TensorProduct,
)
from bayou.errors import InvalidSpec, ShapeMismatch

UNIT = [
    Polynomials(8),
    Fourier(4),
    Fourier(4, period=1.25),
    CubicSplines(8),
    PiecewiseLinear((4, 4), ((0.0, 1.0),) * 2),
]
UNIT += [RadialFunctions((5,)), RadialFunctions((5,), 0.25)]
UNIT += [TensorProduct((Fourier(2), CubicSplines(2))), Additive((Polynomials(3), PiecewiseLinear((4,))))]


@pytest.mark.parametrize("order", [10, 150])
def test_polynomials_are_legendre(order: int) -> None:
    u = np.linspace(-1.0, 1.0, 301)
    wanted = np.polynomial.legendre.legvander(u, order) * np.sqrt(2.0 * np.arange(order + 1) + 1.0)
    basis = Polynomials(order, (3.0, 5.0))
    np.testing.assert_allclose(basis.encode(u[:, None] + 4.0), wanted, atol=1e-10)
    wanted = np.polynomial.legendre.leg2poly(np.eye(11)[10]) * math.sqrt(21.0)
    np.testing.assert_allclose(Polynomials(10, (-1.0, 1.0)).coefficients(np.eye(11)[10]), wanted, rtol=1e-12, atol=1e-9)


def test_splines_are_scipys() -> None:
    basis = CubicSplines(6, (-1.0, 2.0))
    x = np.linspace(-1.0, 2.0, 200)
    knots = -1.0 + 0.5 * np.arange(-3, 10)
    wanted = BSpline.design_matrix(x, knots, 3).toarray()
    np.testing.assert_allclose(basis.functions(x[:, None]), wanted, atol=1e-14)
    np.testing.assert_allclose(wanted.sum(axis=1), 1.0)


def test_hats_interpolate() -> None:
    basis = PiecewiseLinear((4,), ((0.0, 8.0),))
    heights = np.array([1.0, -2.0, 0.5, 3.0, 3.0])
    x = np.linspace(0.0, 8.0, 77)
    np.testing.assert_allclose(basis.functions(x[:, None]) @ heights, np.interp(x, np.arange(0.0, 9.0, 2.0), heights))


def test_waves_are_sines_and_cosines() -> None:
    x = np.linspace(-1.0, 2.5, 99)
    values = Fourier(70, (-1.0, 2.5)).encode(x[:, None])
    k = np.arange(1, 71)
    np.testing.assert_allclose(values[:, 1::2], math.sqrt(2.0) * np.cos(2.0 * np.pi * np.outer(x, k) / 3.5), atol=1e-12)
    np.testing.assert_allclose(values[:, 2::2], math.sqrt(2.0) * np.sin(2.0 * np.pi * np.outer(x, k) / 3.5), atol=1e-12)


def test_many_waves_form_no_matrix() -> None:
    basis = Fourier(50_000, (0.0, 24.0))
    assert basis.size == 100_001
    values = basis.encode(np.array([[7.3], [0.0]]))
    assert values[0, -2] == pytest.approx(
        math.sqrt(2.0) * math.cos(2.0 * math.pi * (50_000 * 7.3 / 24.0 % 1.0)), abs=1e-9
    )
    assert basis.roughness[-1] == pytest.approx((2.0 * math.pi * 50_000) ** 2 / 6.0)
    assert basis.coefficients(np.ones(100_001)).shape == basis.means.shape == (100_001,)
    sums = Additive((basis, Polynomials(1)))
    assert sums.encode(np.array([[7.3, 0.2]])).shape == (1, 100_002)


def matern(smoothness: float, distance: Vector) -> Vector:
    scaled = np.sqrt(2.0 * smoothness) * distance
    return 2.0 ** (1.0 - smoothness) / gamma(smoothness) * scaled**smoothness * kv(smoothness, scaled)


@pytest.mark.parametrize("kernel", ["gaussian", "matern12", "matern32", "matern52"])
@pytest.mark.parametrize("seed", [0, 7])
def test_random_waves_approximate_a_kernel(kernel: str, seed: int) -> None:
    n = 20_000
    basis = RandomFourier(n, (0.5, 4.0), ((0.0, 2.0), (10.0, 20.0)), kernel, seed)
    rows = np.array([[0.3, 11.0], [0.5, 12.0], [1.0, 15.0], [1.9, 19.0]])
    waves = basis.functions(rows)[:, 1:]
    distance = np.linalg.norm((rows[1:] - rows[0]) / [0.5, 4.0], axis=1)
    if kernel == "gaussian":
        wanted = np.exp(-0.5 * distance**2)
    else:
        wanted = matern({"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}[kernel], distance)
    products = waves[1:] * waves[0]
    error = products.std(axis=1) / math.sqrt(n)  # about 0.007
    assert np.all(np.abs(products.mean(axis=1) - wanted) < 4.0 * error)
    assert np.all(error < 0.01)


def test_random_waves_are_the_same_for_ever() -> None:
    # from the bits of the generator, which NumPy promises to keep
    values = RandomFourier(2, seed=5).functions(np.array([[0.25]]))[0]
    raw = [int(value) for value in np.random.PCG64(5).random_raw(6)]
    places = [((value >> 11) + 0.5) / 2.0**53 for value in raw]
    wanted = [
        math.sqrt(2.0) * math.cos(2.0 * math.pi * phase + NormalDist().inv_cdf(place) * 0.25)
        for phase, place in ((places[0], places[2]), (places[3], places[5]))
    ]
    np.testing.assert_allclose(values, [1.0, *wanted], rtol=1e-9)


def test_sums_span_what_their_factors_span() -> None:
    factors = (RadialFunctions((4,)), Polynomials(3), CubicSplines(2))
    basis = Additive(factors)
    points = np.random.default_rng(0).random((400, 3))
    values = basis.encode(points)
    assert basis.size == 1 + 4 + 3 + 4
    for column, factor in enumerate(factors):
        wanted = factor.encode(points[:, [column]])
        fitted = values @ np.linalg.lstsq(values, wanted, rcond=None)[0]
        np.testing.assert_allclose(fitted, wanted, atol=1e-8)


@pytest.mark.parametrize("basis", UNIT, ids=repr)
@pytest.mark.parametrize(("low", "side"), [(2.0**20, 2.0**-27), (-(2.0**20), 2.0**-27), (-5e7, 1e8), (0.0, 1e-300)])
def test_boxes_of_any_place_and_size(basis: Basis, low: float, side: float) -> None:
    """Far from 0, phases about 0 differ, but not what the functions span: means of products stay those of the box."""
    moved = stretched(basis, low, side)
    places = np.arange(0, 257) / 256.0 if side < 1.0 else np.linspace(0.0, 1.0, 257)
    x = low + side * places
    exact = np.array([float((Fraction(float(value)) - Fraction(low)) / Fraction(side)) for value in x])
    rows = np.tile(x[:, None], len(basis.box))
    values = moved.encode(rows)
    assert np.isfinite(values).all()
    wanted = basis.encode(np.tile(exact[:, None], len(basis.box)))
    if phases_matter(basis):  # the same functions, turned
        fitted = wanted @ np.linalg.lstsq(wanted, values, rcond=None)[0]
        np.testing.assert_allclose(fitted, values, atol=1e-7)
    else:
        np.testing.assert_allclose(values, wanted, atol=1e-7)
    np.testing.assert_allclose(moved.roughness, basis.roughness, rtol=1e-6, atol=1e-6)
    wider, matrix = moved.grown(tuple((a - 0.25 * side, b + 0.5 * side) for a, b in moved.box))
    np.testing.assert_allclose(wider.encode(rows) @ matrix.T, values, atol=1e-6)


def phases_matter(basis: Basis) -> bool:
    return isinstance(basis, Fourier) or any(map(phases_matter, getattr(basis, "factors", ())))


def stretched(basis: Basis, low: float, side: float) -> Basis:
    """A basis over the unit box, moved and stretched."""
    fields = {name: getattr(basis, name) for name in basis.__dataclass_fields__}
    if "factors" in fields:
        return type(basis)(tuple(stretched(factor, low, side) for factor in fields["factors"]))
    inside = isinstance(fields["domain"][0], tuple)
    fields["domain"] = ((low, low + side),) * len(basis.box) if inside else (low, low + side)
    for name in ("period", "length_scale"):
        if fields.get(name) is not None:
            fields[name] *= side
    return type(basis)(**fields)


def test_a_box_at_a_million_of_width_1e_minus_8() -> None:
    for basis in (Polynomials(4), Fourier(3), CubicSplines(5), PiecewiseLinear((3,)), RadialFunctions((4,))):
        moved = stretched(basis, 1e6, 1e-8)
        (low, high) = moved.box[0]
        x = np.unique(np.linspace(low, high, 200))
        values = moved.encode(x[:, None])
        exact = np.array([float((Fraction(float(v)) - Fraction(low)) / (Fraction(high) - Fraction(low))) for v in x])
        wanted = basis.encode(exact[:, None])
        fitted = wanted @ np.linalg.lstsq(wanted, values, rcond=None)[0]
        np.testing.assert_allclose(fitted, values, atol=1e-9)


@pytest.mark.parametrize(("low", "side"), [(1e6, 1e-8), (-1e6, 1e-8), (-5e7, 1e8), (1e15, 2.0)])
def test_random_waves_keep_their_phase_far_away(low: float, side: float) -> None:
    """Against rational numbers: there are up to 1e17 turns between 0 and the box."""
    box = ((low, low + side),)
    basis = RandomFourier(7, 0.1 * side, box)
    waves = RandomFourier(7, 0.1 * side, ((0.0, side),))._waves  # whose phases at 0 are as they were drawn
    x = np.unique(np.linspace(low, low + side, 50))
    values = basis.functions(x[:, None])
    for n, f in enumerate(waves.frequencies[:, 0]):
        turns = [float(Fraction(float(f)) * Fraction(float(value)) % 1) for value in x]
        wanted = math.sqrt(2.0) * np.cos(2.0 * np.pi * (waves.phases[n] + np.array(turns)))
        np.testing.assert_allclose(values[:, n + 1], wanted, atol=1e-12)
    wider, matrix = basis.grown(((low - 0.25 * side, low + 1.5 * side),))
    np.testing.assert_allclose(wider.encode(x[:, None]) @ matrix.T, basis.encode(x[:, None]), atol=1e-8)


def test_growth_that_would_be_too_large_is_refused() -> None:
    far = ((0.0, 1e9),)
    with pytest.raises(InvalidSpec, match=r"at most 100000 cells of width 0\.05"):
        CubicSplines().grown(far)
    with pytest.raises(InvalidSpec, match="at most 100000 cells"):
        PiecewiseLinear().grown(far)
    with pytest.raises(InvalidSpec, match="at most 100000 cells"):
        RadialFunctions().grown(far)
    with pytest.raises(InvalidSpec, match="would need 10737418240 waves; at most 100000"):
        Fourier().grown(far)
    with pytest.raises(InvalidSpec, match="too wide for polynomials of order 40"):
        Polynomials(40).grown(((0.0, 1e9),))
    with pytest.raises(InvalidSpec, match="at most 1000000 functions in all; got 20001 x 101"):
        PiecewiseLinear((100, 100), ((0.0, 1.0), (0.0, 1.0))).grown(((0.0, 200.0), (0.0, 1.0)))
    with pytest.raises(ShapeMismatch, match="an interval for each input, 1; got 2"):
        CubicSplines().grown(((0.0, 1.0), (0.0, 1.0)))


def test_many_cells_have_a_band() -> None:
    band = CubicSplines(100_000).gram_band()
    assert band.shape == (100_003, 4)
    # a spline in the middle: its mean square is 151/315 of a cell
    assert band[50_000, 0] == pytest.approx(151.0 / 315.0 / 100_000)


@pytest.mark.parametrize("basis", [CubicSplines(5000), PiecewiseLinear((2, 5000), ((0.0, 1.0),) * 2)], ids=repr)
def test_whole_matrices_have_a_limit(basis: Basis) -> None:
    with pytest.raises(InvalidSpec, match=r"at most 3000 functions along an input are made orthonormal; got 500\d"):
        basis.encode(np.full((1, len(basis.box)), 0.5))
    assert basis.functions(np.full((1, len(basis.box)), 0.5)).sum() == pytest.approx(1.0)


def test_powers_that_overflow_are_refused() -> None:
    basis = Polynomials(100, (-1e6, 1e6))
    assert np.isfinite(basis.encode(np.array([[1e6], [-3.0]]))).all()
    for call in (basis.gram, lambda: basis.functions(np.zeros((1, 1)))):
        with pytest.raises(InvalidSpec, match="must be finite"):
            call()
    with pytest.raises(InvalidSpec, match="finite coefficients"):
        Polynomials(30, (1e6, 1e6 + 1e-8)).coefficients(np.ones(31))
