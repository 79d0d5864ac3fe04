"""Sums of products over tiles, compared with numpy's products of matrices."""

from __future__ import annotations

import numpy as np
import pytest

from bayou.contracts import Array
from bayou.numerics.jit import kernel
from bayou.numerics.tiles import ROWS, exchange, product, spread, tile_width


@kernel
def call_product(C: Array, c: int, add: int, A: Array, a: int, row: int, step: int, B: Array, b: int, n: int) -> None:
    product(C, c, C.shape[1], add, A, a, row, step, B, b, B.shape[1], n)


@kernel
def call_spread(C: Array, c: int, n: int, A: Array, a: int, B: Array, b: int) -> None:
    spread(C, c, C.shape[1], n, A, a, A.shape[1], B, b, B.shape[1])


@kernel
def call_exchange(C: Array, c: int, own: Array, taken: Array, given: Array, K: Array, k: int) -> None:
    exchange(C, c, C.shape[1], own, 0, taken, given, 0, taken.shape[1], K, k, K.shape[1])


def numbers(dtype: str, *shapes: tuple[int, int]) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


DTYPES = pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-13), ("float32", 1e-4)])


@DTYPES
@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.parametrize("add", [0, 1])
@pytest.mark.parametrize("turned", [False, True])
def test_product(dtype: str, rtol: float, count: int, add: int, turned: bool) -> None:
    """Of four rows that begin in the third row and the second column; nothing else is touched."""
    C, A, B = numbers(dtype, (9, 40), (9, 12), (9, 50))
    before = C.copy()
    w = tile_width(C)
    call_product(C, 2 * 40 + 1, add, A, 12 + 3, 1 if turned else 12, 12 if turned else 1, B, 50 + 2, count)
    factors = A[1 : 1 + count, 3 : 3 + ROWS].T if turned else A[1 : 1 + ROWS, 3 : 3 + count]
    wanted = before.copy()
    wanted[2:6, 1 : 1 + w] = add * before[2:6, 1 : 1 + w] + factors @ B[1 : 1 + count, 2 : 2 + w]
    np.testing.assert_allclose(C, wanted, rtol=rtol, atol=rtol)
    wanted[2:6, 1 : 1 + w] = C[2:6, 1 : 1 + w]
    np.testing.assert_array_equal(C, wanted)


@DTYPES
def test_spread(dtype: str, rtol: float) -> None:
    C, A, B = numbers(dtype, (9, 40), (ROWS, 12), (9, 50))
    w, wanted = tile_width(C), C.copy()
    wanted[1:7, 3 : 3 + w] += A[:, 2:8].T @ B[4 : 4 + ROWS, 5 : 5 + w]
    call_spread(C, 40 + 3, 6, A, 2, B, 4 * 50 + 5)
    np.testing.assert_allclose(C, wanted, rtol=rtol, atol=rtol)


@DTYPES
def test_exchange(dtype: str, rtol: float) -> None:
    C, own, taken, given = numbers(dtype, (9, 40), (ROWS, ROWS), (ROWS, 11), (ROWS, 11))
    w = tile_width(C)
    (K,) = numbers(dtype, (11, w))
    wanted, kept = C.copy(), K.copy()
    old = C[3:7, 2 : 2 + w].copy()
    wanted[3:7, 2 : 2 + w] += np.tril(own, -1) @ old + taken @ K
    kept += given.T @ old
    call_exchange(C, 3 * 40 + 2, own, taken, given, K, 0)
    np.testing.assert_allclose(C, wanted, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(K, kept, rtol=rtol, atol=rtol)
