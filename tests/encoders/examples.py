"""Examples of every basis, by name of its class, and points for means over their boxes."""

from __future__ import annotations

import numpy as np

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
