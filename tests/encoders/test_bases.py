"""Every basis against numbers found another way: means over boxes by composite quadrature, slopes by differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bayou import encoders
from bayou.contracts import Basis, Matrix
from bayou.encoders import (
    Additive,
    CubicSplines,
    PiecewiseLinear,
    Polynomials,
    RadialFunctions,
    TensorProduct,
    UserFunctions,
)
from bayou.numerics.grams import orthonormalised, settled
from tests.encoders.examples import BASES, EXAMPLES, digits, grid


def turns(rows: Matrix) -> Matrix:
    """Over the whole period: each sine is as rough as its cosine."""
    angles = 2.0 * np.pi * rows
    return np.hstack([np.ones_like(rows), np.cos(angles), np.sin(angles), np.cos(2.0 * angles), np.sin(2.0 * angles)])


def has_polynomials(basis: Basis) -> bool:
    """Among its factors: their slopes are orthogonal in a weight of their own, see `test_roughness_adds_up`."""
    return any(isinstance(factor, Polynomials) for factor in getattr(basis, "factors", ()))


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


# Powers of x cancel: the coefficients of a polynomial of order 25 over (1, 2) are about 1e30.
@pytest.mark.parametrize("basis", [basis for basis in BASES if basis != Polynomials(25, (1.0, 2.0))], ids=repr)
def test_coefficients_tell_the_same_function(basis: Basis) -> None:
    points, _ = grid(basis)
    weights = np.random.default_rng(0).normal(size=basis.size)
    wanted = basis.encode(points) @ weights
    found = basis.functions(points) @ basis.coefficients(weights)
    np.testing.assert_allclose(found, wanted, atol=1e-7 * np.abs(wanted).max())


@pytest.mark.parametrize(
    "basis", [CubicSplines(11), RadialFunctions((9,)), UserFunctions(turns, 5, ((0.0, 1.0),))], ids=repr
)
def test_rounding_does_not_turn_functions_into_others(basis: Any) -> None:
    """On another machine Gram matrices differ in the last bits, but what a model file has learnt must mean the same."""
    if isinstance(basis, RadialFunctions):
        gram, slopes = basis.gram_along(0), basis.slopes_along(0)
    else:
        gram, slopes = basis.gram(), basis.slopes()
    wanted = orthonormalised(gram, slopes).transform
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(size=gram.shape)
        noise = 1e-16 * (noise + noise.T)
        found = orthonormalised(gram * (1.0 + noise), slopes * (1.0 - noise)).transform
        np.testing.assert_allclose(found, wanted, atol=1e-7 * np.abs(wanted).max())


def test_functions_of_equal_roughness_are_turned_alike() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4, 6))
    rows[1:, 0] = 1e-17
    roughness = np.array([0.0, 2.0, 2.0, 2.0 + 1e-12])
    wanted = settled(rows, roughness)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    rows[1:] = turn @ rows[1:]
    np.testing.assert_allclose(settled(rows, roughness), wanted, atol=1e-12)
    np.testing.assert_allclose(wanted[1:].T @ wanted[1:], rows[1:].T @ rows[1:], atol=1e-12)  # the same functions
