"""What chains (k, m) believe of the members of a bank, by the lanes of a vector: for every row all of them are looked
at three times, and the loops are short.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.numerics.instructions import Writer, written


def _write_switch(
    to: Writer, chains: Any, switching: Any, usual: Any, held: Any, count: Any, size: Any, anybody: Any, known: Any
) -> None:
    for one, begin, rounds in to.split(size):

        def clear(i: Any, _: list[Any], one: Writer = one, begin: Any = begin) -> Sequence[Any]:
            one.store(one.zeros, held, one.plus(begin, one.times(i, one.lanes)))
            return []

        to.loop(rounds, [], clear)

    def one_chain(k: Any, _: list[Any]) -> Sequence[Any]:
        chain, rate = to.beyond(chains, to.times(k, size)), to.number(switching, k)
        total = to.nothing
        for one, begin, rounds in to.split(size):

            def add(i: Any, sums: list[Any], one: Writer = one, begin: Any = begin) -> Sequence[Any]:
                return [one.sum(sums[0], one.load(chain, one.plus(begin, one.times(i, one.lanes))))]

            total = to.sum(total, one.total(to.loop(rounds, [one.zeros], add)[0]))
        anew = to.product(rate, total)
        for one, begin, rounds in to.split(size):
            kept = one.everywhere(to.sum(to.one, to.minus(rate)))
            least, of_usual = one.everywhere(to.product(anew, anybody)), one.everywhere(to.product(anew, known))

            def mix(
                i: Any,
                _: list[Any],
                one: Writer = one,
                begin: Any = begin,
                factors: tuple[Any, ...] = (kept, least, of_usual),
            ) -> Sequence[Any]:
                kept, least, of_usual = factors
                place = one.plus(begin, one.times(i, one.lanes))
                drawn = one.multiply_add(of_usual, one.load(usual, place), least)
                mixed = one.multiply_add(kept, one.load(chain, place), drawn)
                one.store(mixed, chain, place)
                one.store(one.sum(one.load(held, place), mixed), held, place)
                return []

            to.loop(rounds, [], mix)
        return []

    to.loop(count, [], one_chain)


def _plain_switch(
    chains: Matrix,
    switching: Vector,
    usual: Vector,
    held: Vector,
    count: int,
    size: int,
    anybody: float,
    known: float,
) -> None:
    anew = switching[:, None] * chains.sum(axis=1, keepdims=True)
    chains[...] = (1.0 - switching[:, None]) * chains + anew * (anybody + known * usual)
    held[:] = chains.sum(axis=0)


def _write_multiply(
    to: Writer, chains: Any, given: Any, usual: Any, count: Any, size: Any, rate: Any, least: Any
) -> None:
    total = to.nothing
    for one, begin, rounds in to.split(size):

        def hold(i: Any, sums: list[Any], one: Writer = one, begin: Any = begin) -> Sequence[Any]:
            place = one.plus(begin, one.times(i, one.lanes))
            held = to.loop(
                count,
                [one.zeros],
                lambda k, so_far: [one.sum(so_far[0], one.load(chains, one.plus(place, one.times(k, size))))],
            )[0]
            return [one.multiply_add(held, one.load(given, place), sums[0])]

        total = to.sum(total, one.total(to.loop(rounds, [one.zeros], hold)[0]))
    per_total = to.ratio(to.one, total)
    for one, begin, rounds in to.split(size):

        def move(i: Any, _: list[Any], one: Writer = one, begin: Any = begin) -> Sequence[Any]:
            place = one.plus(begin, one.times(i, one.lanes))
            factor, floor = one.product(one.load(given, place), one.everywhere(per_total)), one.everywhere(least)

            def one_chain(k: Any, so_far: list[Any]) -> Sequence[Any]:
                here = one.plus(place, one.times(k, size))
                moved = one.greater(one.product(one.load(chains, here), factor), floor)
                one.store(moved, chains, here)
                return [one.sum(so_far[0], moved)]

            held = to.loop(count, [one.zeros], one_chain)[0]
            before = one.load(usual, place)
            one.store(one.multiply_add(one.everywhere(rate), one.sum(held, one.minus(before)), before), usual, place)
            return []

        to.loop(rounds, [], move)


def _plain_multiply(
    chains: Matrix, given: Vector, usual: Vector, count: int, size: int, rate: float, least: float
) -> None:
    chains[...] = np.maximum(chains * (given / float(chains.sum(axis=0) @ given)), least)
    usual += rate * (chains.sum(axis=0) - usual)


# Before a row: of each chain some change places. Who is drawn anew is anybody with this probability, each, and else who
# was believed of late; what all chains believe of each member is ``held`` then.
switch_chains = written(_write_switch, _plain_switch)
# After it: each member by what it gave, so that all sum to one again; and what is believed now into what is of late.
multiply_chains = written(_write_multiply, _plain_multiply)
