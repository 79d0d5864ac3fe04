"""C x, and C less what a rank of one takes from it, for symmetric C of few features: whole in registers.

A compiler that does not know the size writes such loops for long rows, and short ones fall through to their last few
numbers, one at a time. Here columns go by vectors, up to four side by side, each for all rows. The last vector ends
where the row ends, so that it may begin among columns that another has: these are the same numbers there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayou.contracts import Vector
from bayou.numerics.instructions import Writer, written

LEAST, MOST = Writer.BYTES // 8, 64  # features: those of one vector, and those beyond which long rows are as fast


def _write_along(to: Writer, C: Any, x: Any, size: Any, direction: Any) -> Any:
    pairs, odd = to.halved(size, 1)

    def columns(begin: Any, places: list[Any], variance: list[Any]) -> Sequence[Any]:
        width = len(places)

        def add(row: Any, sums: Sequence[Any]) -> list[Any]:
            factor, start = to.spread(x, row), to.times(row, size)
            return [
                to.multiply_add(factor, to.load(C, to.plus(start, place)), old)
                for place, old in zip(places, sums, strict=True)
            ]

        def two_rows(i: Any, sums: list[Any]) -> Sequence[Any]:
            row = to.times(i, 2)
            after = to.plus(row, 1)
            both = [to.number(x, row), to.number(x, after)]
            return to.unless_zero(both, sums, lambda: add(row, sums[:width]) + add(after, sums[width:]))

        sums = to.loop(pairs, [to.zeros] * (2 * width), two_rows)
        sums[:width] = to.loop(odd, sums[:width], lambda _, some: add(to.plus(size, -1), some))
        for v, place in enumerate(places):
            along = to.sum(sums[v], sums[width + v])
            to.store(along, direction, place)
            once = to.from_lane(to.less(to.plus(begin, v * to.lanes), place), to.load(x, place))
            variance = [to.multiply_add(along, once, variance[0])]
        return variance

    return to.total(to.columns(size, [to.zeros], columns)[0])


def _plain_along(C: Vector, x: Vector, size: int, direction: Vector) -> float:
    direction[:size] = x[:size] @ C[: size * size].reshape(size, size)
    return float(direction[:size] @ x[:size])


def _write_take(to: Writer, C: Any, mean: Any, direction: Any, size: Any, step: Any, spread: Any, *back: Any) -> None:
    """``back`` is nothing, or another matrix and the share of it that C takes on."""
    step, taken = to.everywhere(step), to.minus(to.everywhere(spread))

    def columns(begin: Any, places: list[Any], nothing: list[Any]) -> Sequence[Any]:
        # zero where columns before these have been
        along = [to.from_lane(to.less(begin, place), to.load(direction, place)) for place in places]
        moved = [to.multiply_add(step, part, to.load(mean, place)) for part, place in zip(along, places, strict=True)]
        for value, place in zip(moved, places, strict=True):
            to.store(value, mean, place)
        firsts = [to.less(begin, place) for place in places] if back else []
        shares = [to.from_lane(first, to.everywhere(back[1])) for first in firsts]

        def row(i: Any, _: list[Any]) -> Sequence[Any]:
            factor, start = to.spread(direction, i), to.times(i, size)
            here = [to.plus(start, place) for place in places]
            old = [to.load(C, place) for place in here]
            new = [
                to.multiply_add(taken, to.product(factor, part), value) for part, value in zip(along, old, strict=True)
            ]
            for v, share in enumerate(shares):
                new[v] = to.multiply_add(share, to.sum(to.load(back[0], here[v]), to.minus(new[v])), new[v])
            for value, place in zip(new, here, strict=True):
                to.store(value, C, place)
            return []

        to.loop(size, [], row)
        return nothing

    to.columns(size, [], columns)


def _plain_take(C: Vector, mean: Vector, direction: Vector, size: int, step: float, spread: float) -> None:
    along = direction[:size]
    mean[:size] += step * along
    C[: size * size] -= spread * np.multiply.outer(along, along).ravel()


def _plain_take_back(
    C: Vector, mean: Vector, direction: Vector, size: int, step: float, spread: float, prior: Vector, share: float
) -> None:
    _plain_take(C, mean, direction, size, step, spread)
    C[: size * size] += share * (prior[: size * size] - C[: size * size])


# From LEAST features on:
# direction = C x; returns x' C x. Of two features next to each other that are both zero, rows of C are not looked at.
along = written(_write_along, _plain_along, returns=1)
# mean += step * direction, C -= spread * direction direction', and C stays symmetric to the last bit
take = written(_write_take, _plain_take)
# the same, then C += share * (prior - C), while it is in registers
take_back = written(_write_take, _plain_take_back)
