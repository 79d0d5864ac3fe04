"""Four beliefs side by side: against numpy, belief by belief, for every size at which blocks of columns differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayou.numerics.fours import FOUR, LARGEST_OF_FOUR, ask_four, move_four
from bayou.numerics.jit import borrowing_kernel

SIZES = (*range(1, 14), LARGEST_OF_FOUR - 1, LARGEST_OF_FOUR)
BEFORE, SEAT = 6, 4  # numbers that belong to others, before each of the arrays; and the first seat
WALKS = np.array([0.0, 1e-3, 0.2, 5.0])


@borrowing_kernel
def ask(covariance: Any, weights: Any, x: Any, by_seat: Any, stays: float) -> None:
    mean, ceiling, direction = weights
    walks, asked, variance, latent = by_seat
    where = mean, ceiling, direction, 6, x, x.size
    ask_four(covariance, 6, *where, walks, asked, stays, variance, latent, 4)


@borrowing_kernel
def move(covariance: Any, weights: Any, size: int, step: Any, spread: Any) -> None:
    mean, _, direction = weights
    move_four(covariance, 6, mean, direction, 6, size, step, spread, 4)


def beliefs_of(size: int) -> tuple[Any, Any, Any, Any]:
    """Covariances (4, d, d), means (4, d), ceilings (4, d) and features."""
    rng = np.random.default_rng(size)
    root = rng.normal(size=(FOUR, size, size + 2))
    covariance = root @ root.transpose(0, 2, 1) / size
    covariance = np.tril(covariance) + np.tril(covariance, -1).transpose(0, 2, 1)
    return covariance, rng.normal(size=(FOUR, size)), rng.uniform(0.5, 3.0, size=(FOUR, size)), rng.normal(size=size)


def laid_out(values: Any) -> Any:
    """Beliefs side by side, behind and before numbers of others."""
    own = np.moveaxis(values, 0, -1).ravel()
    return np.concatenate([np.full(BEFORE, 7.25), own, np.full(BEFORE, 7.25)])


def read(array: Any, *shape: int) -> Any:
    assert np.all(array[:BEFORE] == 7.25)
    assert np.all(array[-BEFORE:] == 7.25)
    return np.moveaxis(array[BEFORE:-BEFORE].reshape(*shape, FOUR), -1, 0)


def by_seat(values: Any) -> Any:
    return np.concatenate([np.full(SEAT, 7.25), values, np.full(SEAT, 7.25)])


@pytest.mark.parametrize("stays", [0.0, 1.0])
@pytest.mark.parametrize("zeros", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("size", SIZES)
def test_what_four_know_along_features(size: int, zeros: float, stays: float) -> None:
    covariance, mean, ceiling, x = beliefs_of(size)
    x[np.random.default_rng(1).random(size) < zeros] = 0.0
    squares, weights = laid_out(covariance), (laid_out(mean), laid_out(ceiling), laid_out(np.full_like(mean, np.nan)))
    seats = tuple(by_seat(values) for values in (WALKS, np.array([1.0, 1.0, 0.0, 1.0]), np.ones(FOUR), np.ones(FOUR)))
    ask(squares, weights, x, seats, stays)
    direction, after = read(weights[2], size), read(squares, size, size)
    for m in range(FOUR):
        own = np.diagonal(covariance[m])
        gained = np.maximum(np.minimum(WALKS[m] * ceiling[m], ceiling[m] - own), 0.0)
        walked = covariance[m] + np.diag(gained)
        np.testing.assert_allclose(after[m], walked if stays else covariance[m], rtol=1e-15)
        if m == 2:
            assert not direction[m].any(), "who is not asked has no direction"
            continue
        np.testing.assert_allclose(direction[m], walked @ x, rtol=1e-12, atol=1e-13)
        assert seats[2][SEAT + m] == pytest.approx(float(x @ walked @ x), rel=1e-12, abs=1e-13)
        assert seats[3][SEAT + m] == pytest.approx(float(mean[m] @ x), rel=1e-12, abs=1e-12)
    np.testing.assert_array_equal(read(weights[0], size), mean)
    assert all(np.all(values[:SEAT] == 7.25) and np.all(values[-SEAT:] == 7.25) for values in seats)


@pytest.mark.parametrize("size", SIZES)
def test_what_targets_take_from_four(size: int) -> None:
    covariance, mean, _, _ = beliefs_of(size)
    direction = np.random.default_rng(size + 1).normal(size=(FOUR, size))
    step, spread = np.array([0.3, 0.0, -0.7, 2.0]), np.array([0.2, 0.0, -0.1, 1e-3])
    squares, weights = laid_out(covariance), (laid_out(mean), np.zeros(0), laid_out(direction))
    move(squares, weights, size, by_seat(step), by_seat(spread))
    after, means = read(squares, size, size), read(weights[0], size)
    for m in range(FOUR):
        taken = spread[m] * np.outer(direction[m], direction[m])
        np.testing.assert_allclose(after[m], covariance[m] - taken, rtol=1e-12, atol=1e-13)
        np.testing.assert_array_equal(after[m], after[m].T)
        np.testing.assert_allclose(means[m], mean[m] + step[m] * direction[m], rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(after[1], covariance[1])  # it was not to move


def test_one_that_is_not_asked_spoils_nothing_and_is_not_spoilt() -> None:
    covariance, mean, ceiling, x = beliefs_of(5)
    covariance[2, 1, 3] = covariance[2, 3, 1] = np.inf
    squares, weights = laid_out(covariance), (laid_out(mean), laid_out(ceiling), laid_out(mean))
    seats = tuple(
        by_seat(values) for values in (np.zeros(FOUR), np.array([1.0, 1.0, 0.0, 1.0]), mean[:, 0], mean[:, 0])
    )
    ask(squares, weights, x, seats, 1.0)
    move(squares, weights, 5, by_seat(np.array([1.0, 1.0, 0.0, 1.0])), by_seat(np.array([0.1, 0.1, 0.0, 0.1])))
    np.testing.assert_array_equal(read(squares, 5, 5)[2], covariance[2])
    assert np.isfinite(read(squares, 5, 5)[[0, 1, 3]]).all()


def test_a_variance_that_is_no_number_is_not_hidden() -> None:
    covariance, mean, ceiling, x = beliefs_of(3)
    covariance[1, 0, 0], covariance[1, 0, 1] = np.inf, -np.inf
    seats = tuple(by_seat(values) for values in (np.zeros(FOUR), np.ones(FOUR), np.zeros(FOUR), np.zeros(FOUR)))
    ask(laid_out(covariance), (laid_out(mean), laid_out(ceiling), laid_out(mean)), np.abs(x), seats, 1.0)
    assert not np.isfinite(seats[2][SEAT + 1])
    assert np.isfinite(seats[2][[SEAT, SEAT + 2, SEAT + 3]]).all()
