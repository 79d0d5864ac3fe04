"""C x and C less a rank of one: against numpy, for every size at which vectors end differently."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayou.numerics.jit import borrowing_kernel
from bayou.numerics.short_squares import LEAST, MOST, take_back
from bayou.numerics.squares import absorb, direct, expected

SIZES = (*range(1, 4 * LEAST + 6), 31, 32, 33, MOST - 1, MOST, MOST + 1, MOST + 6)
GUARD = 8  # numbers on either side that are nobody's


@borrowing_kernel
def along_of(covariance: Any, x: Any, direction: Any) -> float:
    return direct(covariance, x, direction)


@borrowing_kernel
def moved(mean: Any, covariance: Any, direction: Any, step: float, spread: float) -> None:
    absorb(mean, covariance, direction, step, spread)


@borrowing_kernel
def moved_back(
    mean: Any, covariance: Any, direction: Any, step: float, spread: float, prior: Any, share: float
) -> None:
    take_back(covariance, mean, direction, mean.size, step, spread, prior, share)


def guarded(values: Any) -> tuple[Any, Any]:
    """A copy of them among other numbers: all, and the copy alone."""
    whole = np.full(values.size + 2 * GUARD, 7.25)
    inside = whole[GUARD : GUARD + values.size]
    inside[:] = values.ravel()
    return whole, inside


def is_untouched(whole: Any) -> bool:
    return bool(np.all(whole[:GUARD] == 7.25) and np.all(whole[-GUARD:] == 7.25))


def belief_of(size: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size, size + 2))
    covariance = root @ root.T / size
    return rng.normal(size=size), np.tril(covariance) + np.tril(covariance, -1).T, rng.normal(size=size)


@pytest.mark.parametrize("zeros", [0.0, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("size", SIZES)
def test_what_is_known_along_features(size: int, zeros: float) -> None:
    mean, covariance, x = belief_of(size)
    x[np.random.default_rng(1).random(size) < zeros] = 0.0
    whole, direction = guarded(np.full(size, np.nan))
    variance = along_of(covariance.ravel().copy(), x, direction)
    np.testing.assert_allclose(direction, covariance @ x, rtol=1e-12, atol=1e-13)
    assert variance == pytest.approx(float(x @ covariance @ x), rel=1e-12, abs=1e-13)
    assert expected(mean, x) == pytest.approx(float(mean @ x), rel=1e-12, abs=1e-12)
    assert is_untouched(whole)


@pytest.mark.parametrize("spread", [0.2, -0.2, 0.0])
@pytest.mark.parametrize("size", SIZES)
def test_what_a_target_takes_from_a_belief(size: int, spread: float) -> None:
    mean, covariance, direction = belief_of(size)
    (all_means, moved_mean), (all_squares, square) = guarded(mean), guarded(covariance)
    moved(moved_mean, square, direction.copy(), 0.3, spread)
    after = square.reshape(size, size)
    np.testing.assert_allclose(moved_mean, mean + 0.3 * direction, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(after, covariance - spread * np.outer(direction, direction), rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(after, after.T)
    assert is_untouched(all_means)
    assert is_untouched(all_squares)


def test_numbers_that_are_none_are_handed_on() -> None:
    _, covariance, x = belief_of(LEAST + 2)
    x[0] = np.nan
    direction = np.zeros(x.size)
    along_of(covariance.ravel(), x, direction)
    assert np.all(np.isnan(direction))


@pytest.mark.parametrize("size", [size for size in SIZES if LEAST <= size <= MOST])
def test_what_a_rank_of_one_takes_and_a_share_of_another_gives_back(size: int) -> None:
    mean, covariance, direction = belief_of(size)
    prior = belief_of(size + 100)[1][:size, :size].copy()
    whole_mean, own_mean = guarded(mean)
    whole, own = guarded(covariance)
    moved_back(own_mean, own, direction.copy(), 0.3, 0.1, prior.ravel(), 0.25)
    after = covariance - 0.1 * np.outer(direction, direction)
    np.testing.assert_allclose(own.reshape(size, size), 0.75 * after + 0.25 * prior, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(own_mean, mean + 0.3 * direction, rtol=1e-13, atol=1e-14)
    assert np.array_equal(own.reshape(size, size), own.reshape(size, size).T)
    assert is_untouched(whole)
    assert is_untouched(whole_mean)
