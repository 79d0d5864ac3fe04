"""What every encoder must do; the running moments against numpy's, in awkward columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bayou import encoders
from bayou.encoders import Standardizer
from bayou.errors import InvalidFeatures, ShapeMismatch

# What cannot be made of defaults alone.
EXAMPLES = {
    "Additive": encoders.Additive((encoders.Polynomials(2), encoders.CubicSplines(4))),
    "TensorProduct": encoders.TensorProduct((encoders.Polynomials(2), encoders.Fourier(3))),
}
WITH_CODE = {"UserFunctions"}  # code has no repr that could be evaluated


@pytest.mark.parametrize("name", [name for name in encoders.__all__ if name not in WITH_CODE])
def test_a_spec_is_a_value(name: str) -> None:
    spec = EXAMPLES[name] if name in EXAMPLES else getattr(encoders, name)()
    assert eval(repr(spec), vars(encoders)) == spec
    assert hash(eval(repr(spec), vars(encoders))) == hash(spec)


def test_moments_are_numpys() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 3)) * [1e-8, 1.0, 1e8] + [1.0, 0.0, -1e9]
    encoder = Standardizer()
    moments = encoder.begin(3)
    encoder.learn(moments, rows[:200])
    encoder.learn(moments, rows[200:])
    np.testing.assert_allclose(moments.mean, rows.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(np.sqrt(moments.squares / moments.weight), rows.std(axis=0), rtol=1e-8)
    encoder.retake(moments)
    features, missing = encoder.encode(moments, rows)
    np.testing.assert_allclose(features.mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(features.std(axis=0), 1.0, rtol=1e-6)
    assert not missing.any()


@pytest.mark.parametrize("value", [0.1, 0.003467, 0.424915, 1e-300, 1e8 + 0.1, -7.3])
def test_a_constant_column_has_no_variance_and_never_a_negative_one(value: float) -> None:
    # a defect measured in a peer: mini-batches of a constant column gave a variance of -1e-16
    encoder = Standardizer()
    moments = encoder.begin(1)
    for size in (1, 3, 100, 1000):
        encoder.learn(moments, np.full((size, 1), value))
        assert moments.squares[0] == 0.0
    features, missing = encoder.encode(moments, np.array([[value], [value + 1.0], [np.nan]]))
    np.testing.assert_array_equal(features, 0.0)
    assert not missing.any()


@given(arrays(np.float64, (30, 2), elements=st.floats(-1e100, 1e100)), st.floats(0.01, 100.0))
def test_squares_are_never_negative(rows: np.ndarray, weight: float) -> None:
    encoder = Standardizer()
    moments = encoder.begin(2)
    encoder.learn(moments, rows, np.full(30, weight))
    assert np.all(moments.squares >= 0.0)
    assert np.all(np.isfinite(encoder.encode(moments, rows)[0]))


def test_the_frame_stays_until_it_is_retaken_and_the_change_is_linear() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 2)) * [3.0, 0.1] + [7.0, -1.0]
    encoder = Standardizer()
    frame = encoder.begin(2)
    encoder.learn(frame, rows[:2])
    before, _ = encoder.encode(frame, rows)
    encoder.learn(frame, rows[2:])
    np.testing.assert_array_equal(encoder.encode(frame, rows)[0], before)
    ratio, shift = encoder.retake(frame)
    after, _ = encoder.encode(frame, rows)
    np.testing.assert_allclose(before, ratio * after + shift, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(after, (rows - rows.mean(axis=0)) / rows.std(axis=0), rtol=1e-9)
    assert encoder.retake(frame) is None  # nothing has moved since


def test_without_a_centre_zero_stays_zero() -> None:
    encoder = Standardizer(centred=False)
    frame = encoder.begin(1)
    encoder.learn(frame, np.array([[5.0], [7.0]]))
    np.testing.assert_array_equal(encoder.encode(frame, np.array([[0.0], [2.0]]))[0], [[0.0], [2.0]])


def test_missing_values_do_not_count() -> None:
    rows = np.array([[1.0, np.nan], [3.0, 5.0], [np.nan, 7.0]])
    encoder = Standardizer()
    moments = encoder.begin(2)
    encoder.learn(moments, rows)
    np.testing.assert_array_equal(moments.weight, [2.0, 2.0])
    np.testing.assert_array_equal(moments.mean, [2.0, 6.0])
    features, missing = encoder.encode(moments, rows)
    np.testing.assert_array_equal(missing, np.isnan(rows))
    np.testing.assert_array_equal(features[missing], 0.0)


def test_a_weight_is_a_repetition() -> None:
    rows = np.random.default_rng(0).normal(size=(20, 2))
    weights = np.arange(20) % 3
    encoder = Standardizer()
    weighted, repeated = encoder.begin(2), encoder.begin(2)
    encoder.learn(weighted, rows, weights.astype(float))
    encoder.learn(repeated, np.repeat(rows, weights, axis=0))
    for array, wanted in zip(weighted[:3], repeated[:3], strict=True):
        np.testing.assert_allclose(array, wanted, rtol=1e-12)


def test_bad_rows_are_named() -> None:
    encoder = Standardizer()
    moments = encoder.begin(2)
    with pytest.raises(ShapeMismatch, match="2 columns"):
        encoder.learn(moments, np.zeros((3, 3)))
    with pytest.raises(InvalidFeatures, match="got inf in row 1, column 0"):
        encoder.learn(moments, np.array([[0.0, 0.0], [np.inf, 0.0]]))
    assert moments.weight[0] == 0.0
