"""Four beliefs of the same features side by side, one in each lane of a vector.

What one belief asks of a row and has done to it, four then do in the same instructions, whatever the number of
features: there are no rows that end within a vector, and no sums over lanes. The number (i, j) of a covariance of
``size`` features is one vector, the (i * size + j)th; the number j of a mean is the jth.

Of each of the four something else may be wanted. What that is stands in arrays of seats, from ``seat`` on: by how much
weights walk, whether a belief is asked at all, and how it is to move.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayou.contracts import Vector
from bayou.numerics.instructions import Writer, written

FOUR = Writer.BYTES // 8
VALUES, MOVES, SPREADS, KEPT, SAID_BY_FOUR = (i * FOUR for i in range(5))  # what a likelihood says of four latents
LARGEST_OF_FOUR = 32  # features: four beliefs of so many are what the nearest memory holds


def _write_ask(
    to: Writer,
    C: Any,
    square: Any,
    mean: Any,
    ceiling: Any,
    direction: Any,
    at: Any,
    x: Any,
    size: Any,
    walks: Any,
    asked: Any,
    stays: Any,
    variance: Any,
    latent: Any,
    seat: Any,
) -> None:
    C, mean, ceiling, direction = (
        to.beyond(C, square),
        to.beyond(mean, at),
        to.beyond(ceiling, at),
        to.beyond(direction, at),
    )
    walks, is_asked, stays = to.load(walks, seat), to.load(asked, seat), to.everywhere(stays)
    row, (pairs, odd) = to.times(size, to.lanes), to.halved(size, 1)

    def columns(begin: Any, places: list[Any], totals: list[Any]) -> Sequence[Any]:
        width, rows = len(places), to.beyond(C, begin)

        def add(i: Any, sums: Sequence[Any]) -> list[Any]:
            factor, start = to.spread(x, i), to.times(i, row)
            return [
                to.multiply_add(factor, to.load(rows, to.plus(start, v * to.lanes)), old) for v, old in enumerate(sums)
            ]

        def two_rows(i: Any, sums: list[Any]) -> Sequence[Any]:
            one = to.times(i, 2)
            other = to.plus(one, 1)
            both = [to.number(x, one), to.number(x, other)]
            return to.unless_zero(both, sums, lambda: add(one, sums[:width]) + add(other, sums[width:]))

        sums = to.loop(pairs, [to.zeros] * (2 * width), two_rows)
        sums[:width] = to.loop(odd, sums[:width], lambda _, some: add(to.plus(size, -1), some))
        for v, place in enumerate(places):
            j, _ = to.halved(place, to.lanes.bit_length() - 1)
            feature, diagonal, most = to.spread(x, j), to.plus(to.times(j, row), place), to.load(ceiling, place)
            known = to.load(C, diagonal)
            gained = to.greater(to.lesser(to.product(walks, most), to.sum(most, to.minus(known))), to.zeros)
            to.store(to.multiply_add(stays, gained, known), C, diagonal)
            along = to.multiply_add(gained, feature, to.sum(sums[v], sums[width + v]))
            along = to.where(is_asked, along)
            to.store(along, direction, place)
            factors = along, to.load(mean, place)
            totals = [to.multiply_add(factor, feature, total) for factor, total in zip(factors, totals, strict=True)]
        return totals

    totals = to.columns(row, [to.zeros] * 2, columns, whole=True)
    to.store(to.greater(to.zeros, totals[0]), variance, seat)
    to.store(totals[1], latent, seat)


def _plain_ask(
    C: Vector,
    square: int,
    mean: Vector,
    ceiling: Vector,
    direction: Vector,
    at: int,
    x: Vector,
    size: int,
    walks: Vector,
    asked: Vector,
    stays: float,
    variance: Vector,
    latent: Vector,
    seat: int,
) -> None:
    own, place, features = slice(seat, seat + FOUR), slice(at, at + size * FOUR), x[:size, None]
    known = C[square : square + size * size * FOUR].reshape(size, size, FOUR)
    diagonal = known[np.arange(size), np.arange(size)]
    most = ceiling[place].reshape(size, FOUR)
    gained = np.maximum(np.minimum(walks[own] * most, most - diagonal), 0.0)
    along = np.where(asked[own] != 0.0, np.einsum("ijm,i->jm", known, x[:size]) + gained * features, 0.0)
    known[np.arange(size), np.arange(size)] = diagonal + stays * gained
    direction[place] = along.ravel()
    variance[own] = np.maximum(np.sum(along * features, axis=0), 0.0)
    latent[own] = np.sum(mean[place].reshape(size, FOUR) * features, axis=0)


def _write_move(
    to: Writer, C: Any, square: Any, mean: Any, direction: Any, at: Any, size: Any, step: Any, spread: Any, seat: Any
) -> None:
    C, mean, direction = to.beyond(C, square), to.beyond(mean, at), to.beyond(direction, at)
    step, taken, row = to.load(step, seat), to.minus(to.load(spread, seat)), to.times(size, to.lanes)

    def columns(begin: Any, places: list[Any], nothing: list[Any]) -> Sequence[Any]:
        rows, along = to.beyond(C, begin), [to.load(direction, place) for place in places]
        for part, place in zip(along, places, strict=True):
            to.store(to.multiply_add(step, part, to.load(mean, place)), mean, place)

        def one_row(i: Any, _: list[Any]) -> Sequence[Any]:
            factor, start = to.load(direction, to.times(i, to.lanes)), to.times(i, row)
            for v, part in enumerate(along):
                here = to.plus(start, v * to.lanes)
                to.store(to.multiply_add(taken, to.product(factor, part), to.load(rows, here)), rows, here)
            return []

        to.loop(size, [], one_row)
        return nothing

    to.columns(row, [], columns, whole=True)


def _plain_move(
    C: Vector, square: int, mean: Vector, direction: Vector, at: int, size: int, step: Vector, spread: Vector, seat: int
) -> None:
    own, place = slice(seat, seat + FOUR), slice(at, at + size * FOUR)
    along = direction[place].reshape(size, FOUR)
    mean[place] += (step[own] * along).ravel()
    C[square : square + size * size * FOUR] -= (spread[own] * (along[:, None] * along[None])).ravel()


def _write_take(to: Writer, said: Any, step: Any, spread: Any, seat: Any) -> None:
    to.store(to.load(said, to.plus(to.first, MOVES)), step, seat)
    to.store(to.load(said, to.plus(to.first, SPREADS)), spread, seat)


def _plain_take(said: Vector, step: Vector, spread: Vector, seat: int) -> None:
    step[seat : seat + FOUR] = said[MOVES : MOVES + FOUR]
    spread[seat : seat + FOUR] = said[SPREADS : SPREADS + FOUR]


# What a likelihood has said of four is how they move.
take_moves = written(_write_take, _plain_take)
# C x, which is left in the direction, x' C x and E w . x, after weights have walked: each gains ``walks`` times its
# ceiling, and not beyond that. It ``stays`` so, or is only asked. Of those that are not asked the direction is zero.
ask_four = written(_write_ask, _plain_ask)
# mean += step * direction, C -= spread * direction direction', and C stays symmetric to the last bit
move_four = written(_write_move, _plain_move)
