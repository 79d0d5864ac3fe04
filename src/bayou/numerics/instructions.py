"""What machines can do and compilers do not find by themselves: two numbers that lie side by side, as one.

In an array of rows of two numbers, which must begin where `bayou.numerics.factor.aligned` lets it:

    pair_at(rows, place) -> one, two        read a row
    put_pair(rows, place, one, two)         write it
    prefetch_pair(rows, place)              have memory send it

``place`` is trusted: it is not checked against the number of rows.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from bayou.contracts import Kernel
from bayou.numerics.jit import COMPILED


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


def _ask(typing: Any, rows: Any, place: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        where, _, _ = _place(context, builder, signature.args[0], *arguments)
        address, number = builder.bitcast(where, ir.IntType(8).as_pointer()), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [address, number(1), number(3), number(1)])  # to be written, and soon
        return context.get_dummy_value()

    return types.void(rows, types.uint64), codegen


def _plain_write(rows: Any, place: int, one: float, two: float) -> None:
    rows[place, 0], rows[place, 1] = one, two


pair_at: Kernel = intrinsic(_read) if COMPILED else lambda rows, place: (rows[place, 0], rows[place, 1])
put_pair: Kernel = intrinsic(_write) if COMPILED else _plain_write
prefetch_pair: Kernel = intrinsic(_ask) if COMPILED else lambda rows, place: None
