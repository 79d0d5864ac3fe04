"""What a basis refuses, and how it says so; that it is a value, in copies and in files."""

from __future__ import annotations

import copy
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bayou
from bayou import encoders, json_values
from bayou.contracts import Basis, Matrix
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
from tests.encoders.examples import BASES, EXAMPLES, grid, logarithm, saturations

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


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_copies_and_files_keep_a_basis(basis: Basis) -> None:
    points = grid(basis)[0][:5]
    wanted = basis.encode(points)
    codes = {"logarithm": logarithm, "saturations": saturations}
    text = json.dumps(json_values.encode(basis), allow_nan=False)
    copies = (pickle.loads(pickle.dumps(basis)), copy.deepcopy(basis), json_values.decode(json.loads(text), codes))
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
    encoded = json.loads(json.dumps(json_values.encode(basis)))
    with pytest.raises(ModelFileError, match="'log of size'"):
        json_values.decode(encoded)
    assert json_values.decode(encoded, {"log of size": logarithm}) == basis
    assert basis != UserFunctions(logarithm, 3, ((1.0, 5.0),))
    assert repr(basis) == "UserFunctions(log of size, 3 functions, domain=((1.0, 5.0),), n_points=64)"


def test_numbers_become_plain() -> None:
    assert Polynomials(np.int64(3), (np.float32(0), 1)) == Polynomials(3, (0.0, 1.0))
    assert repr(Polynomials(np.int64(3), (np.float32(0), 1))) == "Polynomials(order=3, domain=(0.0, 1.0))"
    assert repr(PiecewiseLinear([2.0], [[0, 1]])) == "PiecewiseLinear(n_cells=(2,), domain=((0.0, 1.0),))"
    assert bayou.RandomFourier(3, 2).length_scale == 2.0


def test_functions_that_are_all_zero_are_refused() -> None:
    with pytest.raises(InvalidSpec, match="must not all be zero"):
        UserFunctions(np.zeros_like, 1, ((0.0, 1.0),)).encode(np.zeros((1, 1)))


CASES = [(basis, "orthonormal") for basis in BASES]
CASES += [
    (basis, "functions") for name in ("CubicSplines", "PiecewiseLinear", "UserFunctions") for basis in EXAMPLES[name]
]


@pytest.mark.parametrize(("basis", "features"), CASES, ids=repr)
def test_a_saved_learner_keeps_its_basis(basis: Basis, features: str, tmp_path: Path) -> None:
    points = grid(basis)[0]
    rows = points[:: len(points) // 7]
    encoded = basis.encode(rows) if features == "orthonormal" else basis.functions(rows)
    posterior = bayou.FunctionNorm(basis=basis, features=features)
    learner = bayou.Learner(bayou.Gaussian(0.1), posterior, bayou.MomentMatching(), n_features=encoded.shape[1])
    learner.learn_many(encoded, np.sin(np.arange(len(rows))))
    bayou.save(learner, tmp_path / "model.bayou")
    loaded = bayou.load(tmp_path / "model.bayou", functions={"logarithm": logarithm, "saturations": saturations})
    assert loaded.posterior.basis == basis
    np.testing.assert_array_equal(loaded.predict_many(encoded).mean, learner.predict_many(encoded).mean)
