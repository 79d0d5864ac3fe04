"""A row of weights that lie as pairs, mean and variance side by side: what they sum up to, and how they move.

    sum_pairs(weights, columns, values, begin, end) -> mean, variance
        Sums of mean * x and of variance * x^2 over the entries from begin to end.
    move_pairs(weights, columns, values, begin, end, step, gain, spread, variance, floor)
        mean += step c x and c = c (gain + spread (variance - c x^2)), c the variance of each: none is ever below the
        floor. ``1 - spread c x^2`` is written with what the others have, so that rounding cannot make it negative.

Where there are no ``values``, every x is 1. Columns are trusted to be there, none twice; the weights must begin where
`bayou.numerics.factor.aligned` lets them. Several pairs at a time fill the width of the machine: compilers do not see
that the columns of a row are different, and take them one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from bayou.contracts import Array, Kernel
from bayou.numerics.jit import COMPILED

WIDTH = 256  # bits
FLAGS = ("contract", "reassoc", "nsz")


class PairWriter:
    """Machine code for some pairs of a row at once."""

    def __init__(self, context: Any, builder: Any, kinds: Sequence[Any], arguments: Sequence[Any]) -> None:
        self.builder = builder
        weights, columns, values = (
            context.make_array(kind)(context, builder, argument)
            for kind, argument in zip(kinds[:3], arguments[:3], strict=True)
        )
        self.number = context.get_data_type(kinds[0].dtype)
        self.size = kinds[0].dtype.bitwidth // 8
        self.weights, self.columns, self.values = weights.data, columns.data, values.data
        self.has_values = builder.icmp_signed("!=", values.nitems, ir.Constant(ir.IntType(64), 0))
        self.begin, self.end = arguments[3], arguments[4]

    def vector(self, n: int) -> Any:
        return ir.VectorType(self.number, n)

    def many(self, value: Any, n: int) -> Any:
        """One number, in all places of a vector."""
        empty = ir.Constant(self.vector(n), ir.Undefined)
        first = self.builder.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
        return self.arranged(first, empty, [0] * n)

    def arranged(self, one: Any, two: Any, places: Sequence[int]) -> Any:
        order = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), list(places))
        return self.builder.shuffle_vector(one, two, order)

    def add(self, a: Any, b: Any) -> Any:
        return self.builder.fadd(a, b, flags=FLAGS)

    def times(self, a: Any, b: Any) -> Any:
        return self.builder.fmul(a, b, flags=FLAGS)

    def less(self, a: Any, b: Any) -> Any:
        return self.builder.fsub(a, b, flags=FLAGS)

    def most(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def places(self, k: Any, pairs: int) -> list[Any]:
        """Where the pairs of some entries lie, each as a vector of two."""
        base = self.builder.bitcast(self.weights, self.vector(2).as_pointer())
        found = []
        for i in range(pairs):
            at = self.builder.add(k, ir.Constant(ir.IntType(64), i))
            column = self.builder.load(self.builder.gep(self.columns, [at]))
            found.append(self.builder.gep(base, [self.builder.zext(column, ir.IntType(64))]))
        return found

    def read(self, places: Sequence[Any]) -> Any:
        """The pairs that lie there, one after the other."""
        parts = [self.builder.load(place, align=2 * self.size) for place in places]
        while len(parts) > 1:
            width = parts[0].type.count
            parts = [self.arranged(parts[i], parts[i + 1], range(2 * width)) for i in range(0, len(parts), 2)]
        return parts[0]

    def write(self, both: Any, places: Sequence[Any]) -> None:
        for i, place in enumerate(places):
            part = self.arranged(both, both, [2 * i, 2 * i + 1])
            self.builder.store(part, place, align=2 * self.size)

    def entries(self, k: Any, pairs: int, ones: bool) -> Any:
        """The value of each entry, twice; a value of 1 where there are none."""
        if ones:
            return ir.Constant(self.vector(2 * pairs), [1.0] * (2 * pairs))
        place = self.builder.gep(self.values, [k])
        if pairs == 1:
            return self.many(self.builder.load(place), 2)
        values = self.builder.load(self.builder.bitcast(place, self.vector(pairs).as_pointer()), align=self.size)
        return self.arranged(values, values, [i // 2 for i in range(2 * pairs)])

    def each(self, body: Any) -> None:
        """Have all entries done: ``body(k, pairs, ones)``, several at a time, then those that are left."""
        builder, whole = self.builder, ir.IntType(64)
        several = WIDTH // (16 * self.size)
        count = builder.sub(self.end, self.begin)
        middle = builder.sub(self.end, builder.srem(count, ir.Constant(whole, several)))
        with builder.if_else(self.has_values) as (valued, unvalued):
            for branch, ones in ((valued, False), (unvalued, True)):
                with branch:
                    for start, stop, pairs in ((self.begin, middle, several), (middle, self.end, 1)):
                        step = ir.Constant(whole, pairs)
                        with cgutils.for_range_slice(builder, start, stop, step, whole) as (k, _):
                            body(k, pairs, ones)


def _sum(typing: Any, weights: Any, columns: Any, values: Any, begin: Any, end: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to = PairWriter(context, builder, signature.args, arguments)
        several = 2 * WIDTH // (16 * to.size)
        sums = {n: cgutils.alloca_once_value(builder, ir.Constant(to.vector(n), [0.0] * n)) for n in (several, 2)}

        def body(k: Any, pairs: int, ones: bool) -> None:
            known, total = to.read(to.places(k, pairs)), sums[2 * pairs]
            if not ones:
                x = to.entries(k, pairs, ones)
                one = ir.Constant(x.type, [1.0] * (2 * pairs))
                odd = [i + 2 * pairs * (i % 2) for i in range(2 * pairs)]
                known = to.times(known, to.times(x, to.arranged(one, x, odd)))
            builder.store(to.add(builder.load(total), known), total)

        to.each(body)
        lanes, n = builder.load(sums[several]), several
        while n > 2:
            n //= 2
            lanes = to.add(to.arranged(lanes, lanes, range(n)), to.arranged(lanes, lanes, range(n, 2 * n)))
        lanes = to.add(lanes, builder.load(sums[2]))
        results = [builder.extract_element(lanes, ir.Constant(ir.IntType(32), i)) for i in (0, 1)]
        if to.size == 4:
            results = [builder.fpext(result, ir.DoubleType()) for result in results]
        return context.make_tuple(builder, signature.return_type, results)

    result = types.UniTuple(types.float64, 2)
    return result(weights, columns, values, types.int64, types.int64), codegen


def _move(
    typing: Any,
    weights: Any,
    columns: Any,
    values: Any,
    begin: Any,
    end: Any,
    step: Any,
    gain: Any,
    spread: Any,
    variance: Any,
    floor: Any,
) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to = PairWriter(context, builder, signature.args, arguments)

        def body(k: Any, pairs: int, ones: bool) -> None:
            n = 2 * pairs
            step, gain, spread, variance, floor = (to.many(argument, n) for argument in arguments[5:])
            places = to.places(k, pairs)
            known = to.read(places)
            x = to.entries(k, pairs, ones)
            direction = to.times(to.arranged(known, known, [i | 1 for i in range(n)]), x)
            others = to.most(to.less(variance, to.times(direction, x)), floor)
            left = to.most(to.times(known, to.add(gain, to.times(spread, others))), floor)
            moved = to.add(known, to.times(step, direction))
            to.write(to.arranged(moved, left, [i + n * (i % 2) for i in range(n)]), places)

        to.each(body)
        return context.get_dummy_value()

    numbers = [weights.dtype] * 5
    return types.void(weights, columns, values, types.int64, types.int64, *numbers), codegen


def _plain_sum(weights: Array, columns: Any, values: Array, begin: int, end: int) -> tuple[float, float]:
    x = values[begin:end] if values.size else np.ones(end - begin, weights.dtype)
    own = weights[columns[begin:end]]
    return float(own[:, 0] @ x), float(own[:, 1] @ (x * x))


def _plain_move(
    weights: Array,
    columns: Any,
    values: Array,
    begin: int,
    end: int,
    step: Any,
    gain: Any,
    spread: Any,
    variance: Any,
    floor: Any,
) -> None:
    x = values[begin:end] if values.size else np.ones(end - begin, weights.dtype)
    places = columns[begin:end]
    known = weights[places, 1]
    direction = known * x
    weights[places, 0] += step * direction
    weights[places, 1] = np.maximum(known * (gain + spread * np.maximum(variance - direction * x, floor)), floor)


sum_pairs: Kernel = intrinsic(_sum) if COMPILED else _plain_sum
move_pairs: Kernel = intrinsic(_move) if COMPILED else _plain_move
