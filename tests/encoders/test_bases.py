"""Every basis against numbers found another way: means over boxes by composite quadrature, slopes by differences."""

from __future__ import annotations

import copy
import json
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import BSpline
from scipy.special import gamma, kv

import bayou
from bayou import encoders, modelfile
from bayou.contracts import Basis, Matrix, Vector
from bayou.encoders import (
    Additive,
    CubicSplines,
    Fourier,
    PiecewiseLinear,
    Polynomials,
    RadialFunctions,
    RandomFourier,
    TensorProduct,
    UserFunctions,
)
from bayou.errors import InvalidFeatures, InvalidSpec, ModelFileError, ShapeMismatch
from bayou.numerics.grams import RANK_TOLERANCE


def saturations(rows: Matrix) -> Matrix:
    x, y = rows.T
    return np.stack([np.tanh(x), x / (1.0 + x**2), np.exp(-y), np.cos(x * y)], axis=1)


def logarithm(rows: Matrix) -> Matrix:
    return np.hstack([np.ones_like(rows), np.log(rows), rows])


EXAMPLES: dict[str, list[Basis]] = {
    "Polynomials": [Polynomials(), Polynomials(0), Polynomials(3, (-2.0, 7.0)), Polynomials(25, (1.0, 2.0))],
    "Fourier": [
        Fourier(),
        Fourier(0),
        Fourier(5, (-1.0, 2.5)),
        Fourier(4, (1.0, 3.0), period=2.5),
        Fourier(9, (1.0, 3.0), period=4.0),
    ],
    "CubicSplines": [CubicSplines(), CubicSplines(1, (3.0, 3.5)), CubicSplines(7, (-10.0, 4.0))],
    "PiecewiseLinear": [
        PiecewiseLinear(),
        PiecewiseLinear((1,), ((2.0, 2.5),)),
        PiecewiseLinear((3, 2), ((-1.0, 1.0), (5.0, 25.0))),
        PiecewiseLinear((2, 1, 2), ((-1.0, 1.0), (5.0, 25.0), (0.0, 0.1))),
    ],
    "RadialFunctions": [
        RadialFunctions(),
        RadialFunctions((2,), 0.1),
        RadialFunctions((4, 3), None, ((-1.0, 1.0), (5.0, 25.0))),
        RadialFunctions((4, 3), (0.7, 6.0), ((-1.0, 1.0), (5.0, 25.0))),
        RadialFunctions((15,), 0.3),
    ],
    "RandomFourier": [
        RandomFourier(),
        RandomFourier(6, 0.05, ((3.0, 4.0),), "matern12", seed=3),
        RandomFourier(20, (0.3, 2.0), ((-1.0, 1.0), (5.0, 15.0)), "matern52", seed=1),
    ],
    "TensorProduct": [
        TensorProduct((Polynomials(2, (-1.0, 2.0)),)),
        TensorProduct((Fourier(2), CubicSplines(2, (0.0, 3.0)))),
        TensorProduct((PiecewiseLinear((1, 2), ((0.0, 1.0), (2.0, 3.0))), Fourier(1, period=1.5))),
    ],
    "Additive": [
        Additive((Polynomials(2, (-1.0, 2.0)),)),
        Additive((Fourier(2), CubicSplines(3, (0.0, 3.0)))),
        Additive((RadialFunctions((4,), None, ((0.0, 2.0),)), Fourier(2, period=1.3))),
        Additive((Polynomials(0), TensorProduct((CubicSplines(1), Fourier(1, (2.0, 3.0)))))),
    ],
    "UserFunctions": [
        UserFunctions(logarithm, 3, ((3.0, 8.0),)),
        UserFunctions(saturations, 4, ((-1.0, 2.0), (0.0, 0.5)), n_points=24),
    ],
}
BASES = [basis for examples in EXAMPLES.values() for basis in examples]
# Of these, combinations are left out that differ from the others by rounding alone: what is left has fewer digits.
DEGENERATE = {Fourier(9, (1.0, 3.0), period=4.0), RadialFunctions((15,), 0.3), RandomFourier()}
UNIT = [
    Polynomials(8),
    Fourier(4),
    Fourier(4, period=1.25),
    CubicSplines(8),
    PiecewiseLinear((4, 4), ((0.0, 1.0),) * 2),
]
UNIT += [RadialFunctions((5,)), RadialFunctions((5,), 0.25)]
UNIT += [TensorProduct((Fourier(2), CubicSplines(2))), Additive((Polynomials(3), PiecewiseLinear((4,))))]


def has_polynomials(basis: Basis) -> bool:
    """Among its factors: their slopes are orthogonal in a weight of their own, see `test_roughness_adds_up`."""
    return any(isinstance(factor, Polynomials) for factor in getattr(basis, "factors", ()))


def grid(basis: Basis) -> tuple[Matrix, Vector]:
    """Points and weights for means over the box, inside cells of every basis here (1, 2, 3, 7, 10 or 20 of them)."""
    n_pieces, n_points = {1: (420, 6), 2: (12, 6), 3: (4, 5)}[len(basis.box)]
    nodes, shares = np.polynomial.legendre.leggauss(n_points)
    points, weights = [], np.ones(1)
    for low, high in basis.box:
        edges = low + (high - low) * np.arange(n_pieces + 1) / n_pieces
        half = 0.5 * np.diff(edges)
        points.append((edges[:-1, None] + half[:, None] * (nodes + 1.0)).ravel())
        weights = np.outer(weights, np.tile(0.5 * shares / n_pieces, n_pieces)).ravel()
    return np.stack([axis.ravel() for axis in np.meshgrid(*points, indexing="ij")], axis=1), weights


def digits(basis: Basis, fine: float, coarse: float) -> float:
    return coarse if basis in DEGENERATE else fine


def test_every_basis_has_examples() -> None:
    assert set(EXAMPLES) == {name for name in encoders.__all__ if issubclass(getattr(encoders, name), Basis)}
    assert all(type(basis).__name__ == name for name, examples in EXAMPLES.items() for basis in examples)


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_functions_are_orthonormal(basis: Basis) -> None:
    points, weights = grid(basis)
    values = basis.encode(points)
    assert values.shape == (len(points), basis.size)
    assert values.flags.c_contiguous
    np.testing.assert_allclose(values.T * weights @ values, np.eye(basis.size), atol=digits(basis, 1e-8, 1e-4))
    np.testing.assert_allclose(weights @ values, basis.means, atol=digits(basis, 1e-8, 1e-6))


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_gram_matrices_are_means_of_products(basis: Basis) -> None:
    points, weights = grid(basis)
    values = basis.functions(points)
    gram = basis.gram()
    size = np.sqrt(np.outer(np.diag(gram), np.diag(gram)))
    np.testing.assert_allclose((values.T * weights @ values) / size, gram / size, atol=1e-9)


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_bands_are_gram_matrices(basis: Basis) -> None:
    gram, band = basis.gram(), basis.gram_band()
    found = np.zeros_like(gram)
    for j in range(len(gram)):
        row = band[j, : len(gram) - j]
        assert not band[j, len(gram) - j :].any()
        found[j, j : j + row.size] = found[j : j + row.size, j] = row
    np.testing.assert_array_equal(found, gram)
    wanted = {CubicSplines: 4, PiecewiseLinear: 2 if len(basis.box) == 1 else len(gram)}.get(type(basis), len(gram))
    assert band.shape == (len(gram), wanted)


@pytest.mark.parametrize("basis", [basis for basis in BASES if not has_polynomials(basis)], ids=repr)
def test_roughness_is_the_mean_of_squared_slopes(basis: Basis) -> None:
    points, weights = grid(basis)
    total = np.zeros((basis.size, basis.size))
    for axis, (low, high) in enumerate(basis.box):
        # nearer than the points are to the edges of their pieces, at which hats have kinks
        step = np.zeros(len(basis.box))
        step[axis] = 1e-5 * (high - low)
        slopes = (basis.encode(points + step) - basis.encode(points - step)) / 2e-5
        weight = np.ones(len(points))
        if isinstance(basis, Polynomials):
            weight = 1.5 * (1.0 - ((2.0 * points[:, 0] - low - high) / (high - low)) ** 2)
        total += slopes.T * (weights * weight) @ slopes / 6.0
    scale = 1.0 + basis.roughness.max()
    np.testing.assert_allclose(total / scale, np.diag(basis.roughness) / scale, atol=2e-6)


def test_roughness_adds_up() -> None:
    line = TensorProduct((Polynomials(1), Polynomials(1, (0.0, 9.0))))
    np.testing.assert_array_equal(line.roughness, [0.0, 2.0, 2.0, 4.0])
    np.testing.assert_array_equal(Additive((Polynomials(2), Polynomials(1))).roughness, [0.0, 2.0, 6.0, 2.0])


@pytest.mark.parametrize("basis", BASES, ids=repr)
@pytest.mark.parametrize("reach", [(0.0, 0.3), (0.4, 0.0), (0.25, 0.6)], ids=["up", "down", "both"])
def test_growth_is_exact_in_the_old_box(basis: Basis, reach: tuple[float, float]) -> None:
    points, _ = grid(basis)
    box = tuple((low - reach[0] * (high - low), high + reach[1] * (high - low)) for low, high in basis.box)
    wider, matrix = basis.grown(box)
    assert type(wider) is type(basis)
    assert all(a <= c and d <= b for (a, b), (c, d) in zip(wider.box, box, strict=True))
    assert matrix.shape == (basis.size, wider.size)
    wanted = basis.encode(points)
    error = np.abs(wider.encode(points) @ matrix.T - wanted)
    limit = digits(basis, 1e-8, 2e-2)
    if isinstance(basis, Polynomials):  # they become so many times as large, and as many digits go
        far = 1.0 + 2.0 * max(reach)
        limit = max(limit, 1e-15 * (far + math.sqrt(far**2 - 1.0)) ** basis.order)
    assert error.max() < limit * np.abs(wanted).max()
    again, same = basis.grown(basis.box)
    assert again == basis
    np.testing.assert_allclose(basis.encode(points) @ same.T, wanted, atol=digits(basis, 1e-8, 1e-4))


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_coefficients_tell_the_same_function(basis: Basis) -> None:
    points, _ = grid(basis)
    weights = np.random.default_rng(0).normal(size=basis.size)
    wanted = basis.encode(points) @ weights
    found = basis.functions(points) @ basis.coefficients(weights)
    # Powers of x cancel: coefficients of a polynomial of order 25 over (1, 2) are about 1e33.
    if basis != Polynomials(25, (1.0, 2.0)):
        np.testing.assert_allclose(found, wanted, atol=1e-7 * np.abs(wanted).max())


# --- known functions


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
    from statistics import NormalDist

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


# --- extremes


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


def test_powers_that_overflow_are_refused() -> None:
    basis = Polynomials(100, (-1e6, 1e6))
    assert np.isfinite(basis.encode(np.array([[1e6], [-3.0]]))).all()
    for call in (basis.gram, lambda: basis.functions(np.zeros((1, 1)))):
        with pytest.raises(InvalidSpec, match="must be finite"):
            call()
    with pytest.raises(InvalidSpec, match="finite coefficients"):
        Polynomials(30, (1e6, 1e6 + 1e-8)).coefficients(np.ones(31))


# --- what is refused, and how it is said

BAD: list[tuple[Any, str]] = [
    (lambda: Polynomials(-1), "`order` must be a whole number from 0 to 10000; got -1"),
    (lambda: Polynomials(2.5), "`order` must be a whole number"),
    (lambda: Polynomials(True), "`order` must be a whole number"),
    (lambda: Polynomials(3, (1.0, 1.0)), r"`domain` must be finite intervals .* got \(1.0, 1.0\)"),
    (lambda: Polynomials(3, (0.0, math.inf)), "`domain` must be finite"),
    (lambda: Polynomials(3, 5.0), "`domain` must be finite intervals"),
    (lambda: Fourier(10**9), "`order` must be a whole number from 0 to 100000"),
    (lambda: Fourier(3, (0.0, 2.0), period=1.0), r"`period` must be finite, and hold the domain .* got 1.0"),
    (lambda: Fourier(3, (0.0, 2.0), period=math.nan), "`period` must be finite"),
    (lambda: Fourier(3, (0.0, 2.0), period="day"), "`period` must be finite"),
    (lambda: CubicSplines(0), "`n_cells` must be a whole number from 1 to 100000; got 0"),
    (lambda: CubicSplines("many"), "`n_cells` must be a whole number"),
    (lambda: PiecewiseLinear((3, 3)), r"`n_cells` must have an entry for each input, 1, as a tuple; got \(3, 3\)"),
    (lambda: PiecewiseLinear(3), "`n_cells` must have an entry"),
    (lambda: PiecewiseLinear((3,), (0.0, 1.0)), "`domain` must be finite intervals"),
    (lambda: PiecewiseLinear((3,), 7.0), "`domain` must be intervals"),
    (lambda: PiecewiseLinear((), ()), "`domain` must have an interval for each input; got none"),
    (lambda: PiecewiseLinear((2000, 2000), ((0.0, 1.0),) * 2), "`n_cells` must make at most 1000000 functions"),
    (lambda: RadialFunctions((1,)), "`n_centres` must be a whole number from 2"),
    (
        lambda: RadialFunctions((3,), -1.0),
        "`length_scale` must be positive: one number, or one for each of 1; got -1.0",
    ),
    (lambda: RadialFunctions((3,), (1.0, 2.0)), "`length_scale` must be positive"),
    (lambda: RadialFunctions((3,), 1e-20), "`length_scale` must be from 1e-8 to 1e8 sides"),
    (lambda: RandomFourier(0), "`n_functions` must be a whole number from 1"),
    (lambda: RandomFourier(3, math.nan), "`length_scale` must be positive"),
    (lambda: RandomFourier(3, kernel="cosine"), "`kernel` must be one of gaussian, matern12, .* got 'cosine'"),
    (lambda: RandomFourier(3, seed=-1), "`seed` must be a whole number from 0"),
    (lambda: TensorProduct(()), r"`factors` must be bases, at least one, as a tuple; got \(\)"),
    (lambda: TensorProduct(Polynomials()), "`factors` must be bases"),
    (lambda: Additive((Polynomials(), 3)), "`factors` must be bases"),
    (lambda: UserFunctions(3, 1, ((0.0, 1.0),)), "`function` must be a function of rows of inputs; got 3"),
    (lambda: UserFunctions(logarithm, 0, ((0.0, 1.0),)), "`n_functions` must be a whole number"),
    (lambda: UserFunctions(logarithm, 3, ((0.0, 1.0),) * 4), "`n_points` must make at most 1000000 points; got 64"),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_specs_are_named(make: Any, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        make()


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_bad_rows_are_named(basis: Basis) -> None:
    middle = np.array([[0.5 * (low + high) for low, high in basis.box]])
    low, high = basis.box[-1]
    column = len(basis.box) - 1
    for bad in (high + 0.1 * (high - low), low - 1e-6 * (high - low), math.nan, math.inf, -math.inf):
        rows = np.repeat(middle, 3, axis=0)
        rows[1, column] = bad
        for call in (basis.encode, basis.functions):
            with pytest.raises(InvalidFeatures, match=f"input {column} must lie in .* in row 1"):
                call(rows)
    with pytest.raises(ShapeMismatch, match="a column for each input"):
        basis.encode(np.zeros((2, len(basis.box) + 1)))
    assert basis.encode(middle[:0]).shape == (0, basis.size)
    edges = np.array(basis.box).T  # the ends themselves are inside, and what is beyond by rounding is at the end
    just_beyond = edges + 1e-12 * np.array([[-1.0], [1.0]]) * np.ptp(edges, axis=0)
    np.testing.assert_allclose(basis.encode(just_beyond), basis.encode(edges), rtol=1e-6, atol=1e-6)


def test_what_the_users_function_returns_is_checked() -> None:
    box = ((0.0, 1.0),)
    with pytest.raises(ShapeMismatch, match=r"'too_few' must return an array of shape \(1, 3\); got \(1, 2\)"):
        UserFunctions(lambda rows: np.hstack([rows, rows]), 3, box, name="too_few").functions(np.zeros((1, 1)))
    with (
        np.errstate(divide="ignore"),
        pytest.raises(InvalidFeatures, match=r"'logarithm' must be finite .* function 1 is -inf at \[0.0\]"),
    ):
        UserFunctions(logarithm, 3, box).functions(np.zeros((1, 1)))
    with pytest.raises(InvalidSpec, match=r"'saturations' must be a function of rows of 1 inputs.*ValueError"):
        UserFunctions(saturations, 4, box).gram()


def test_one_function_that_repeats_another_is_left_out() -> None:
    def twice(rows: Matrix) -> Matrix:
        return np.hstack([rows, 1e6 * rows, np.ones_like(rows), 0.0 * rows])

    basis = UserFunctions(twice, 4, ((0.0, 1.0),))
    assert basis.size == 2
    np.testing.assert_allclose(basis.roughness, [0.0, 2.0], atol=1e-8)


# --- specs are values


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_copies_and_files_keep_a_basis(basis: Basis) -> None:
    points = grid(basis)[0][:5]
    wanted = basis.encode(points)
    codes = {"logarithm": logarithm, "saturations": saturations}
    text = json.dumps(modelfile._encode(basis), allow_nan=False)
    copies = (pickle.loads(pickle.dumps(basis)), copy.deepcopy(basis), modelfile._decode(json.loads(text), codes))
    for same in copies:
        assert same == basis
        assert hash(same) == hash(basis)
        assert repr(same) == repr(basis)
        np.testing.assert_array_equal(same.encode(points), wanted)
    assert len(pickle.dumps(basis)) < 2000  # nothing but the fields
    if not isinstance(basis, UserFunctions):
        assert eval(repr(basis), vars(encoders)) == basis


def test_a_file_does_not_have_the_code() -> None:
    basis = UserFunctions(logarithm, 3, ((1.0, 5.0),), name="log of size")
    encoded = json.loads(json.dumps(modelfile._encode(basis)))
    with pytest.raises(ModelFileError, match="'log of size'"):
        modelfile._decode(encoded)
    assert modelfile._decode(encoded, {"log of size": logarithm}) == basis
    assert basis != UserFunctions(logarithm, 3, ((1.0, 5.0),))
    assert repr(basis) == "UserFunctions(log of size, 3 functions, domain=((1.0, 5.0),), n_points=64)"


def test_numbers_become_plain() -> None:
    assert Polynomials(np.int64(3), (np.float32(0), 1)) == Polynomials(3, (0.0, 1.0))
    assert repr(Polynomials(np.int64(3), (np.float32(0), 1))) == "Polynomials(order=3, domain=(0.0, 1.0))"
    assert repr(PiecewiseLinear([2.0], [[0, 1]])) == "PiecewiseLinear(n_cells=(2,), domain=((0.0, 1.0),))"
    assert bayou.RandomFourier(3, 2).length_scale == 2.0


def test_the_cut_is_where_it_is_said_to_be() -> None:
    """Waves over part of a period: as many are kept as the Gram matrix, by itself, has eigenvalues above the cut."""
    basis = Fourier(9, (1.0, 3.0), period=4.0)
    gram = basis.gram()
    values = np.linalg.eigvalsh(gram / np.sqrt(np.outer(np.diag(gram), np.diag(gram))))
    assert basis.size == np.sum(values > RANK_TOLERANCE * values[-1]) < 19
