"""What chains (k, m) believe of the members of a bank, before a row and after it, by the lanes of a vector.

All of them are looked at for every row. There are a few members in each, and loops over so few would go one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.numerics.instructions import Writer, written
from bayou.numerics.lane_functions import LEAST, exp


def _write_switch(
    to: Writer, chains: Any, switching: Any, usual: Any, held: Any, count: Any, size: Any, anybody: Any, known: Any
) -> None:
    def clear(one: Writer, place: Any, nothing: list[Any]) -> Sequence[Any]:
        one.store(one.zeros, held, place)
        return nothing

    def one_chain(k: Any, nothing: list[Any]) -> Sequence[Any]:
        chain, rate = to.beyond(chains, to.times(k, size)), to.number(switching, k)
        total = to.each(size, 1, lambda one, place, sums: [one.sum(sums[0], one.load(chain, place))])[0]
        anew, kept = to.product(rate, total), to.sum(to.one, to.minus(rate))
        by_anybody, by_known = to.product(anew, anybody), to.product(anew, known)

        def mix(one: Writer, place: Any, nothing: list[Any]) -> Sequence[Any]:
            drawn = one.multiply_add(one.everywhere(by_known), one.load(usual, place), one.everywhere(by_anybody))
            mixed = one.multiply_add(one.everywhere(kept), one.load(chain, place), drawn)
            one.store(mixed, chain, place)
            one.store(one.sum(one.load(held, place), mixed), held, place)
            return nothing

        to.each(size, 0, mix)
        return nothing

    to.each(size, 0, clear)
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
    def hold(one: Writer, place: Any, sums: list[Any]) -> Sequence[Any]:
        def add(k: Any, held: list[Any]) -> Sequence[Any]:
            return [one.sum(held[0], one.load(chains, one.plus(place, one.times(k, size))))]

        return [one.multiply_add(to.loop(count, [one.zeros], add)[0], one.load(given, place), sums[0])]

    per_total = to.ratio(to.one, to.each(size, 1, hold)[0])

    def multiply(one: Writer, place: Any, nothing: list[Any]) -> Sequence[Any]:
        factor, floor = one.product(one.load(given, place), one.everywhere(per_total)), one.everywhere(least)

        def one_chain(k: Any, held: list[Any]) -> Sequence[Any]:
            here = one.plus(place, one.times(k, size))
            moved = one.greater(one.product(one.load(chains, here), factor), floor)
            one.store(moved, chains, here)
            return [one.sum(held[0], moved)]

        held, before = to.loop(count, [one.zeros], one_chain)[0], one.load(usual, place)
        one.store(one.multiply_add(one.everywhere(rate), one.sum(held, one.minus(before)), before), usual, place)
        return nothing

    to.each(size, 0, multiply)


def _plain_multiply(
    chains: Matrix, given: Vector, usual: Vector, count: int, size: int, rate: float, least: float
) -> None:
    chains[...] = np.maximum(chains * (given / float(chains.sum(axis=0) @ given)), least)
    usual += rate * (chains.sum(axis=0) - usual)


def _write_weigh(to: Writer, values: Any, shares: Any, merit: Any, size: Any, best: Any, kept: Any) -> Any:
    def each(one: Writer, place: Any, sums: list[Any]) -> Sequence[Any]:
        share = one.load(shares, place)
        beyond = one.where(share, one.sum(one.load(values, place), one.minus(one.everywhere(best))))
        gave = exp(one, beyond)
        one.store(gave, values, place)
        one.store(one.multiply_add(one.everywhere(kept), one.load(merit, place), beyond), merit, place)
        return [one.multiply_add(share, gave, sums[0])]

    return to.each(size, 1, each)[0]


def _plain_weigh(values: Vector, shares: Vector, merit: Vector, size: int, best: float, kept: float) -> float:
    beyond = np.where(shares != 0.0, values - best, 0.0)
    merit[:], values[:] = kept * merit + beyond, np.exp(np.maximum(beyond, LEAST))
    return float(shares @ values)


# Before a row: in each chain some change places. Who is drawn anew is ``anybody`` with this probability, each, and else
# who was ``usual``; what all chains believe of each member is ``held`` then.
switch_chains = written(_write_switch, _plain_switch)
# After it: each member is multiplied by what it has ``given``, and all sum to one again. Of what is believed now, a
# share goes into what is usual.
multiply_chains = written(_write_multiply, _plain_multiply)
# Between them: logs of what each member gave, of which the best is told, become what they gave in units of that, and
# what all gave is returned. By how much less than the best each gave is added to what is ``kept`` of its merit; nothing
# to that of who has no share.
weigh_members = written(_write_weigh, _plain_weigh, returns=1)
