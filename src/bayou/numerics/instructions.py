"""What machines can do and compilers do not find by themselves.

Two numbers that lie side by side are read as one, in an array of rows of two numbers, which must begin where
`bayou.numerics.factor.aligned` lets it:

    pair_at(rows, place) -> one, two        read a row
    put_pair(rows, place, one, two)         write it
    prefetch_pair(rows, place)              have memory send it
    prefetch(array, place)                  the same for an item of any array

What lies at an address can be read, so that one call of a kernel reads buffers of many columns, however many there are:

    byte_at(address, place)                 ``place`` counts bytes,
    word_at_address(address, place)         words of 64 bits,
    real_at(address, place)                 numbers of double precision
    prefetch_at(address)                    have memory send it

All places are trusted. Nothing is kept alive: whoever tells an address holds what lies there. And short vectors stay in
registers through a loop: a `Writer` writes the code of a function, made known to kernels by `written`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from bayou.contracts import Kernel
from bayou.numerics.jit import COMPILED, intrinsic_like

F = TypeVar("F", bound=Callable[..., Any])


def _place(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> tuple[Any, Any, int]:
    """Where a row lies, as one vector; the vector's type; and its size in bytes."""
    vector = ir.VectorType(context.get_data_type(kind.dtype), 2)
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(builder.bitcast(data, vector.as_pointer()), [place]), vector, kind.dtype.bitwidth // 4


def _read(typing: Any, rows: Any, place: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        where, _, size = _place(context, builder, signature.args[0], *arguments)
        both = builder.load(where, align=size)
        parts = [builder.extract_element(both, ir.IntType(32)(i)) for i in (0, 1)]
        return context.make_tuple(builder, signature.return_type, parts)

    return types.UniTuple(rows.dtype, 2)(rows, types.uint64), codegen


def _write(typing: Any, rows: Any, place: Any, one: Any, two: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        where, vector, size = _place(context, builder, signature.args[0], *arguments[:2])
        both = ir.Constant(vector, ir.Undefined)
        for i in (0, 1):
            both = builder.insert_element(both, arguments[2 + i], ir.IntType(32)(i))
        builder.store(both, where, align=size)
        return context.get_dummy_value()

    return types.void(rows, types.uint64, rows.dtype, rows.dtype), codegen


def ask_memory(builder: Any, address: Any, to_write: bool) -> None:
    """Write the instruction that has memory send what lies at an address, soon."""
    place, number = builder.bitcast(address, ir.IntType(8).as_pointer()), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [place, number(int(to_write)), number(3), number(1)])


def _ask(typing: Any, rows: Any, place: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        where, _, _ = _place(context, builder, signature.args[0], *arguments)
        ask_memory(builder, where, to_write=True)
        return context.get_dummy_value()

    return types.void(rows, types.uint64), codegen


def _ask_item(typing: Any, array: Any, place: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        ask_memory(builder, builder.gep(data, [arguments[1]]), to_write=False)
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


def _reader(kind: Any, plain: Any, like: Any) -> Kernel:
    """A function for kernels that reads an item of one kind."""

    def typed(typing: Any, address: Any, place: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            begin = builder.inttoptr(arguments[0], context.get_data_type(kind).as_pointer())
            return builder.load(builder.gep(begin, [arguments[1]]))

        return kind(types.uint64, types.int64), codegen

    def read(address: Any, place: Any) -> Any:
        return like(plain.from_address(int(address) + int(place) * ctypes.sizeof(plain)).value)

    reader: Kernel = intrinsic(typed) if COMPILED else read
    return reader


def _ask_at(typing: Any, address: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        ask_memory(builder, builder.inttoptr(arguments[0], ir.IntType(8).as_pointer()), to_write=False)
        return context.get_dummy_value()

    return types.void(types.uint64), codegen


def _plain_write(rows: Any, place: int, one: float, two: float) -> None:
    rows[place, 0], rows[place, 1] = one, two


pair_at: Kernel = intrinsic(_read) if COMPILED else lambda rows, place: (rows[place, 0], rows[place, 1])
put_pair: Kernel = intrinsic(_write) if COMPILED else _plain_write
prefetch: Kernel = intrinsic(_ask_item) if COMPILED else lambda array, place: None
prefetch_pair: Kernel = intrinsic(_ask) if COMPILED else lambda rows, place: None
prefetch_at: Kernel = intrinsic(_ask_at) if COMPILED else lambda address: None
byte_at = _reader(types.uint8, ctypes.c_uint8, np.uint8)
word_at_address = _reader(types.uint64, ctypes.c_uint64, np.uint64)
real_at = _reader(types.float64, ctypes.c_double, float)


class Writer:
    """Machine code for short vectors of one type of number, written out where a compiler would not find the registers.

    Arrays are the places where they begin, indices count numbers, and all are values of the machine but for the whole
    numbers that `plus` and `times` also take. A product and a sum become one operation on machines that have it.
    """

    BYTES, SIDE_BY_SIDE = 32, 4

    def __init__(self, builder: Any, kind: Any, size: int) -> None:
        self.builder, self.kind, self.size, self.lanes = builder, kind, size, self.BYTES // size
        self.vector = ir.VectorType(kind, self.lanes)
        self.nothing, self.one, self.first = ir.Constant(kind, 0.0), ir.Constant(kind, 1.0), _index(0)
        self.zeros, self.ones = self.same(0.0), self.same(1.0)

    def same(self, value: float) -> Any:
        """One number in all places of a vector, known when the code is written."""
        return ir.Constant(self.vector, [value] * self.lanes)

    def one_of(self, value: float) -> Any:
        """A number that is known when the code is written."""
        return ir.Constant(self.kind, value)

    def plus(self, a: Any, b: Any) -> Any:
        return self.builder.add(a, _index(b) if isinstance(b, int) else b)

    def less(self, a: Any, b: Any) -> Any:
        return self.builder.sub(a, b)

    def times(self, a: Any, b: Any) -> Any:
        return self.builder.mul(a, _index(b) if isinstance(b, int) else b)

    def beyond(self, array: Any, index: Any) -> Any:
        """The part of an array that begins there."""
        return self.builder.gep(array, [index])

    def load(self, array: Any, index: Any) -> Any:
        value = self.builder.load(self._place(array, index))
        value.align = self.size
        return value

    def store(self, value: Any, array: Any, index: Any) -> None:
        self.builder.store(value, self._place(array, index)).align = self.size

    def spread(self, array: Any, index: Any) -> Any:
        """One number, in all places of a vector."""
        return self.everywhere(self.number(array, index))

    def number(self, array: Any, index: Any) -> Any:
        return self.builder.load(self.builder.gep(array, [index]))

    def everywhere(self, number: Any) -> Any:
        """The same of a number that is known."""
        return self._repeated(self.vector, number)

    def product(self, a: Any, b: Any) -> Any:
        """a * b, which no sum takes in."""
        return self.builder.fmul(a, b, flags=("nsz",))

    def sum(self, a: Any, b: Any) -> Any:
        return self.builder.fadd(a, b, flags=("nsz",))

    def greater(self, a: Any, b: Any) -> Any:
        """Of each lane the greater number."""
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def lesser(self, a: Any, b: Any) -> Any:
        """Of each lane the lesser number."""
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), a, b)

    def where(self, flags: Any, value: Any) -> Any:
        """A vector with zeros in the lanes where a flag is zero."""
        return self.builder.select(self.builder.fcmp_unordered("!=", flags, self.zeros), value, self.zeros)

    def ratio(self, a: Any, b: Any) -> Any:
        return self.builder.fdiv(a, b)

    def minus(self, a: Any) -> Any:
        return self.builder.fneg(a)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """a * b + c."""
        product = self.builder.fmul(a, b, flags=("contract",))
        return self.builder.fadd(product, c, flags=("contract",))

    def zero_unless(self, flag: Any, value: Any) -> Any:
        return self.builder.select(self.builder.icmp_signed("!=", flag, _index(0)), value, self.zeros)

    def from_lane(self, first: Any, value: Any) -> Any:
        """A vector with zeros in the lanes before the first of these."""
        whole = ir.VectorType(ir.IntType(64), self.lanes)
        lanes = ir.Constant(whole, list(range(self.lanes)))
        return self.builder.select(
            self.builder.icmp_signed(">=", lanes, self._repeated(whole, first)), value, self.zeros
        )

    def least(self, a: Any, b: Any) -> Any:
        """The lesser of two whole numbers."""
        return self.builder.select(self.builder.icmp_signed("<", a, b), a, b)

    def is_same(self, a: Any, b: int) -> Any:
        """One if a whole number is b, else zero."""
        return self.builder.zext(self.builder.icmp_signed("==", a, _index(b)), ir.IntType(64))

    def halved(self, a: Any, times: int) -> tuple[Any, Any]:
        """A whole number, halved so many times, and what is left of it."""
        return self.builder.ashr(a, _index(times)), self.builder.and_(a, _index((1 << times) - 1))

    def packed(self, numbers: Sequence[Any]) -> Any:
        """A vector of these."""
        value = ir.Constant(self.vector, ir.Undefined)
        for i, number in enumerate(numbers):
            value = self.builder.insert_element(value, number, ir.IntType(32)(i))
        return value

    def parts(self, value: Any) -> list[Any]:
        """The number in each lane."""
        return [self.builder.extract_element(value, ir.IntType(32)(i)) for i in range(self.lanes)]

    def total(self, value: Any) -> Any:
        """The sum of all lanes."""
        parts = self.parts(value)
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [self.sum(a, b) for a, b in zip(parts[:half], parts[half:], strict=True)]
        return parts[0]

    def unless_zero(
        self, numbers: Sequence[Any], values: Sequence[Any], body: Callable[[], Sequence[Any]]
    ) -> list[Any]:
        """What the body makes of values, unless all these numbers are zero."""
        before, builder = self.builder.block, self.builder
        work, after = (builder.function.append_basic_block(name) for name in ("work", "after"))
        any_flag = ir.Constant(ir.IntType(1), 0)
        for number in numbers:
            flag = builder.fcmp_unordered("!=", number, ir.Constant(number.type, 0.0), flags=("nsz",))
            any_flag = builder.or_(any_flag, flag)
        builder.cbranch(any_flag, work, after)
        builder.position_at_end(work)
        changed = body()
        end = builder.block
        builder.branch(after)
        builder.position_at_end(after)
        merged = [builder.phi(value.type) for value in values]
        for phi, old, new in zip(merged, values, changed, strict=True):
            phi.add_incoming(old, before)
            phi.add_incoming(new, end)
        return merged

    def loop(self, count: Any, values: Sequence[Any], body: Callable[[Any, list[Any]], Sequence[Any]]) -> list[Any]:
        """So many rounds of ``values = body(round, values)``; what they are in the end."""
        before, builder = self.builder.block, self.builder
        head, inside, after = (builder.function.append_basic_block(name) for name in ("head", "inside", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        index, carried = builder.phi(_index(0).type), [builder.phi(value.type) for value in values]
        builder.cbranch(builder.icmp_signed("<", index, count), inside, after)
        builder.position_at_end(inside)
        changed = [self.plus(index, 1), *body(index, carried)]
        for phi, first, later in zip([index, *carried], [_index(0), *values], changed, strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(later, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        return carried

    def each(self, size: Any, sums: int, body: Callable[[Writer, Any, list[Any]], Sequence[Any]]) -> list[Any]:
        """Go through so many numbers: ``body(writer, place, sums)`` of each vector, then of each number that is left.

        The body is written twice, by a writer of vectors and by one of single numbers. Returns sums over all.
        """
        vectors, left = self.halved(size, self.lanes.bit_length() - 1)
        begin, totals = self.times(vectors, self.lanes), [self.nothing] * sums
        for one, count, first in ((self, vectors, _index(0)), (_Single(self), left, begin)):

            def some(i: Any, values: list[Any], one: Writer = one, first: Any = first) -> Sequence[Any]:
                return body(one, one.plus(first, one.times(i, one.lanes)), values)

            parts = one.loop(count, [one.zeros] * sums, some)
            totals = [self.sum(total, one.total(part)) for total, part in zip(totals, parts, strict=True)]
        return totals

    def columns(
        self,
        size: Any,
        values: Sequence[Any],
        body: Callable[[Any, list[Any], list[Any]], Sequence[Any]],
        whole: bool = False,
    ) -> list[Any]:
        """``values = body(begin, places, values)`` of a row, by some vectors side by side: where each of them lies.

        ``begin`` is the first number that none of those before has. The last vector ends where the row ends; of a row
        that is known to be of ``whole`` vectors it is none that others overlap.
        """
        last = self.plus(size, -self.lanes)
        vectors, _ = self.halved(self.plus(size, self.lanes - 1), self.lanes.bit_length() - 1)
        rounds, left = self.halved(vectors, self.SIDE_BY_SIDE.bit_length() - 1)
        done = self.times(rounds, self.SIDE_BY_SIDE * self.lanes)
        for width in range(self.SIDE_BY_SIDE, 0, -1):
            full = width == self.SIDE_BY_SIDE

            def some(i: Any, before: list[Any], width: int = width, full: bool = full) -> Sequence[Any]:
                begin = self.times(i, self.SIDE_BY_SIDE * self.lanes) if full else done
                places = [self.plus(begin, v * self.lanes) for v in range(width)]
                return body(begin, places if whole else [self.least(place, last) for place in places], before)

            values = self.loop(rounds if full else self.is_same(left, width), values, some)
        return list(values)

    # Numbers as the bits that they are made of

    def whole(self, value: int) -> Any:
        """One whole number of 64 bits in all lanes, known when the code is written."""
        return ir.Constant(self._wholes, value if self.lanes == 1 else [value] * self.lanes)

    def bits(self, a: Any) -> Any:
        return self.builder.bitcast(a, self._wholes)

    def of_bits(self, a: Any) -> Any:
        return self.builder.bitcast(a, self.vector)

    def higher(self, a: Any, places: int) -> Any:
        """Bits so many places higher."""
        return self.builder.shl(a, self.whole(places))

    def lower(self, a: Any, places: int) -> Any:
        """Bits so many places lower, the highest of which is kept where it was."""
        return self.builder.ashr(a, self.whole(places))

    def of_whole(self, a: Any) -> Any:
        """Whole numbers as numbers."""
        return self.builder.sitofp(a, self.vector)

    @property
    def _wholes(self) -> Any:
        return ir.IntType(64) if self.lanes == 1 else ir.VectorType(ir.IntType(64), self.lanes)

    def _repeated(self, kind: Any, number: Any) -> Any:
        nothing, first = ir.Constant(kind, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        once = self.builder.insert_element(nothing, number, first)
        places = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(once, nothing, places)

    def _place(self, array: Any, index: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(array, [index]), self.vector.as_pointer())


class _Single(Writer):
    """The same for vectors of one number."""

    def __init__(self, other: Writer) -> None:
        self.builder, self.kind, self.size, self.lanes = other.builder, other.kind, other.size, 1
        self.vector, self.nothing, self.one = other.kind, other.nothing, other.one
        self.zeros, self.ones = self.nothing, self.one

    def same(self, value: float) -> Any:
        return ir.Constant(self.kind, value)

    def everywhere(self, number: Any) -> Any:
        return number

    def parts(self, value: Any) -> list[Any]:
        return [value]


def _index(value: int) -> Any:
    return ir.Constant(ir.IntType(64), value)


def written(write: Callable[..., Any], plain: F, returns: int = 0) -> F:
    """A function for kernels with code of its own: ``write(writer, *arguments)``, and in plain Python, ``plain``.

    It takes arrays of one type of number, in C order, numbers of double precision and whole numbers. It returns so many
    numbers of double precision: none, one, or a tuple of them. In a kernel it must be a module-level name.
    """
    if not COMPILED:
        return plain

    def codegen(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
        number = next(kind.dtype for kind in given.args if isinstance(kind, types.Array))
        writer = Writer(builder, context.get_data_type(number), number.bitwidth // 8)
        passed = [
            context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
            for kind, value in zip(given.args, arguments, strict=True)
        ]
        result = write(writer, *passed)
        if returns > 1:
            return context.make_tuple(builder, given.return_type, result)
        return result if returns else context.get_dummy_value()

    def typed(_: Any, *given: Any) -> Any:
        kinds = [kind if isinstance(kind, (types.Array, types.Float)) else types.intp for kind in given]
        result = (types.void, types.float64)[returns] if returns < 2 else types.UniTuple(types.float64, returns)
        return result(*kinds), codegen

    emitted: F = intrinsic_like(plain, typed)
    return emitted
