"""Sums of products over tiles of a matrix that stay in registers: 4 rows of 3 vectors, twelve sums at once.

That many are under way at any time that the machine need not wait for any of them: a matrix product at almost the rate
of the best libraries, but for matrices as small as 4 rows, and with no copies made of them. Arrays are given as they
are, with the index at which a tile begins and the distance from one of its rows to the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from bayou.contracts import Array
from bayou.numerics.instructions import Writer, written
from bayou.numerics.jit import kernel

ROWS, VECTORS = 4, 3
DOUBLES = VECTORS * Writer.BYTES // 8


@kernel
def tile_width(array: Array) -> int:
    """How many columns a tile has."""
    return DOUBLES * 8 // array.itemsize


def _write_product(
    to: Writer, C: Any, c: Any, next_c: Any, add: Any, A: Any, a: Any, row: Any, step: Any, B: Any, b: Any, next_b: Any,
    count: Any,
) -> None:  # fmt: skip
    tile = [to.zero_unless(add, value) for value in _load(to, C, c, next_c)]
    _store(to, _summed(to, tile, A, a, row, step, B, b, next_b, count), C, c, next_c)


def _plain_product(
    C: Array, c: int, next_c: int, add: int, A: Array, a: int, row: int, step: int, B: Array, b: int, next_b: int,
    count: int,
) -> None:  # fmt: skip
    tile = _view(C, c, ROWS, next_c, tile_width(C), 1)
    if not add:
        tile[...] = 0.0
    tile += _view(A, a, ROWS, row, count, step) @ _view(B, b, count, next_b, tile_width(B), 1)


def _write_spread(
    to: Writer, C: Any, c: Any, next_c: Any, count: Any, A: Any, a: Any, row: Any, B: Any, b: Any, next_b: Any
) -> None:
    _spread(to, _load(to, B, b, next_b), A, a, row, C, c, next_c, count)


def _plain_spread(
    C: Array, c: int, next_c: int, count: int, A: Array, a: int, row: int, B: Array, b: int, next_b: int
) -> None:
    sums = _view(C, c, count, next_c, tile_width(C), 1)
    sums += _view(A, a, count, 1, ROWS, row) @ _view(B, b, ROWS, next_b, tile_width(B), 1)


def _write_exchange(
    to: Writer, C: Any, c: Any, next_c: Any, own: Any, o: Any, taken: Any, given: Any, a: Any, count: Any, K: Any,
    k: Any, next_k: Any,
) -> None:  # fmt: skip
    old = _load(to, C, c, next_c)
    new = list(old)
    for r in range(1, ROWS):
        for s in range(r):
            share = to.spread(own, to.plus(o, ROWS * r + s))
            for v in range(VECTORS):
                new[r * VECTORS + v] = to.multiply_add(share, old[s * VECTORS + v], new[r * VECTORS + v])
    one = to.plus(to.times(count, 0), 1)
    _store(to, _summed(to, new, taken, a, count, one, K, k, next_k, count), C, c, next_c)
    _spread(to, old, given, a, count, K, k, next_k, count)


def _plain_exchange(
    C: Array, c: int, next_c: int, own: Array, o: int, taken: Array, given: Array, a: int, count: int, K: Array, k: int,
    next_k: int,
) -> None:  # fmt: skip
    tile = _view(C, c, ROWS, next_c, tile_width(C), 1)
    sums = _view(K, k, count, next_k, tile_width(K), 1)
    old = tile.copy()
    tile += np.tril(_view(own, o, ROWS, ROWS, ROWS, 1), -1) @ old + _view(taken, a, ROWS, count, count, 1) @ sums
    sums += _view(given, a, ROWS, count, count, 1).T @ old


def _load(to: Writer, array: Any, start: Any, stride: Any) -> list[Any]:
    starts = [to.plus(start, to.times(stride, r)) for r in range(ROWS)]
    return [to.load(array, to.plus(begin, v * to.lanes)) for begin in starts for v in range(VECTORS)]


def _store(to: Writer, tile: list[Any], array: Any, start: Any, stride: Any) -> None:
    for i, value in enumerate(tile):
        begin = to.plus(start, to.times(stride, i // VECTORS))
        to.store(value, array, to.plus(begin, i % VECTORS * to.lanes))


def _summed(
    to: Writer, tile: list[Any], A: Any, a: Any, row: Any, step: Any, B: Any, b: Any, next_b: Any, count: Any
) -> list[Any]:
    starts = [to.plus(a, to.times(row, r)) for r in range(ROWS)]

    def body(i: Any, sums: list[Any]) -> list[Any]:
        begin, along = to.plus(b, to.times(i, next_b)), to.times(i, step)
        line = [to.load(B, to.plus(begin, v * to.lanes)) for v in range(VECTORS)]
        factors = [to.spread(A, to.plus(start, along)) for start in starts]
        return [to.multiply_add(factors[j // VECTORS], line[j % VECTORS], sums[j]) for j in range(len(sums))]

    return to.loop(count, tile, body)


def _spread(to: Writer, tile: list[Any], A: Any, a: Any, row: Any, C: Any, c: Any, next_c: Any, count: Any) -> None:
    starts = [to.plus(a, to.times(row, r)) for r in range(ROWS)]

    def body(i: Any, _: list[Any]) -> list[Any]:
        begin = to.plus(c, to.times(i, next_c))
        places = [to.plus(begin, v * to.lanes) for v in range(VECTORS)]
        line = [to.load(C, place) for place in places]
        for r in range(ROWS):
            factor = to.spread(A, to.plus(starts[r], i))
            line = [to.multiply_add(factor, tile[r * VECTORS + v], line[v]) for v in range(VECTORS)]
        for value, place in zip(line, places, strict=True):
            to.store(value, C, place)
        return []

    to.loop(count, [], body)


def _view(array: Array, start: int, rows: int, next_row: int, columns: int, next_column: int) -> Array:
    part = array.reshape(-1)[start:]
    size = array.itemsize
    return as_strided(part, (rows, columns), (next_row * size, next_column * size))


# C[r, :] = (C[r, :] if add else 0) + sum over i < count of A[a + r row + i step] B[i, :], for the 4 rows of a tile
product = written(_write_product, _plain_product)
# C[i, :] += sum over the 4 rows of a tile of A[a + r row + i] B[r, :], for i < count
spread = written(_write_spread, _plain_spread)
# tile C += lower(own) C + taken K, and K += given' C with C as it was: 4 rows of `taken` and `given`, each of `count`
exchange = written(_write_exchange, _plain_exchange)
