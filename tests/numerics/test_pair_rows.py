"""Pairs of a row at once, against numpy one by one."""

from __future__ import annotations

import numpy as np
import pytest

from bayou.numerics.factor import aligned
from bayou.numerics.jit import borrowing_kernel
from bayou.numerics.pair_rows import move_pairs, sum_pairs


@borrowing_kernel
def both(weights, columns, values, begin, end, site, result):  # type: ignore[no-untyped-def]  # compiled
    result[0], result[1] = sum_pairs(weights, columns, values, begin, end)
    move_pairs(weights, columns, values, begin, end, site[0], site[1], site[2], site[3], site[4])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize("count", [*range(11), 37])
def test_sums_and_moves_of_any_number_of_entries(dtype: str, ones: bool, count: int) -> None:
    rng = np.random.default_rng(count)
    weights = aligned((50, 2), dtype)
    weights[:, 0], weights[:, 1] = rng.normal(size=50), rng.random(50) + 0.1
    columns = rng.permutation(50)[: count + 5].astype(np.int32)
    values = np.zeros(0, dtype) if ones else rng.normal(size=count + 5).astype(dtype)
    place = columns[3 : 3 + count]
    x = np.ones(count) if ones else values[3 : 3 + count].astype(np.float64)
    before = weights.astype(np.float64)
    mean, variance = before[place, 0] @ x, before[place, 1] @ x**2
    gain = 1.0 / (1.0 + 0.7 * (variance + 0.3))
    site = np.array([0.2, gain, 0.7 * gain, variance + 0.3, 1e-30], dtype)
    result = np.zeros(2)
    both(weights, columns, values, 3, 3 + count, site, result)
    expected = before.copy()
    direction = before[place, 1] * x
    expected[place, 0] += 0.2 * direction
    expected[place, 1] -= 0.7 * gain * direction**2
    accuracy = 1e-12 if dtype == "float64" else 2e-6
    np.testing.assert_allclose(result, [mean, variance], rtol=accuracy, atol=accuracy)
    np.testing.assert_allclose(weights, expected, rtol=accuracy, atol=accuracy)
    np.testing.assert_array_equal(np.delete(weights, place, axis=0), np.delete(before.astype(dtype), place, axis=0))


def test_variances_stay_above_the_floor() -> None:
    weights = aligned((6, 2), "float32")
    weights[:, 1] = 1e-30
    columns, values = np.arange(6, dtype=np.int32), np.full(6, 1e10, np.float32)
    site = np.array([0.0, 0.0, 1e20, 1e-20, 1e-36], np.float32)
    both(weights, columns, values, 0, 6, site, np.zeros(2))
    assert np.all(weights[:, 1] >= np.float32(1e-36))
