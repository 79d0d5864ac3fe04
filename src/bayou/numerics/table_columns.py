"""The columns of a table as the buffers they lie in: polars, pyarrow, pandas, dicts of arrays or lists.

A column is one or more pieces, each of which writes hashes of its items to a block of keys, and tells its items as
Python values. Nothing is copied that Arrow or numpy holds already, but for the rare kinds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from struct import unpack
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayou.errors import InvalidFeatures, ShapeMismatch
from bayou.numerics.hashing import (
    Bytes,
    Keys,
    gather_keys,
    hash_integers,
    hash_offsets,
    hash_views,
)

NO_BYTES = np.zeros(0, np.uint8)
NO_BYTES.flags.writeable = False  # as the buffers of Arrow, so that kernels meet one type
WHOLE = 2.0**53  # floats below have every whole number
TRUTH = ("False", "True")
DECODED = 4  # a dictionary so many times as long as the column is not worth hashing whole
KINDS = "text, whole numbers, booleans or a dictionary of these"


class Piece(ABC):
    """So many items of a column."""

    size: int

    @abstractmethod
    def hash_into(self, first: int, count: int, seed: Any, missing: Any, keys: Keys, row: int, slot: int) -> None:
        """Hashes of items to ``keys[row:row + count, slot]``."""

    @abstractmethod
    def items(self, first: int, count: int) -> Sequence[Any]:
        """Items as Python values, None where missing."""


Column: TypeAlias = tuple[Piece, ...]


@dataclass(frozen=True, eq=False)
class Views(Piece):
    """Arrow's string views: 16 bytes each, in which short strings lie whole."""

    array: Any
    views: Keys
    buffers: tuple[Bytes, ...]
    valid: Bytes
    offset: int
    size: int

    def hash_into(self, first: int, count: int, seed: Any, missing: Any, keys: Keys, row: int, slot: int) -> None:
        buffer = 0
        while buffer >= 0:
            data = self.buffers[buffer] if self.buffers else NO_BYTES
            start = self.offset + first
            buffer = hash_views(self.views, data, buffer, self.valid, start, count, seed, missing, keys, row, slot)

    def items(self, first: int, count: int) -> Sequence[Any]:
        if count == 1:  # names are asked for one by one
            return [self._item(self.offset + first)]
        items: list[Any] = self.array.slice(first, count).to_pylist()
        return items

    def _item(self, i: int) -> str | None:
        if not told(self.valid, i):
            return None
        view = self.views[2 * i : 2 * i + 2].tobytes()  # the length, then the bytes or where they are
        length, _, buffer, begin = unpack("<4I", view)
        if length <= 12:
            return view[4 : 4 + length].decode(errors="replace")
        data: bytes = self.buffers[buffer][begin : begin + length].tobytes()
        return data.decode(errors="replace")


@dataclass(frozen=True, eq=False)
class Offsets(Piece):
    """Strings one after the other, with where each begins."""

    array: Any  # whose slices tell the items; a list will do
    offsets: NDArray[Any]
    data: Bytes
    valid: Bytes
    offset: int
    size: int

    def hash_into(self, first: int, count: int, seed: Any, missing: Any, keys: Keys, row: int, slot: int) -> None:
        start = self.offset + first
        hash_offsets(self.offsets, self.data, self.valid, start, count, seed, missing, keys, row, slot)

    def items(self, first: int, count: int) -> Sequence[Any]:
        if isinstance(self.array, list):
            return self.array[first : first + count]
        items: list[Any] = self.array.slice(first, count).to_pylist()
        return items


@dataclass(frozen=True, eq=False)
class Integers(Piece):
    """Whole numbers of 64 bits."""

    values: NDArray[Any]
    valid: Bytes
    offset: int
    size: int

    def hash_into(self, first: int, count: int, seed: Any, missing: Any, keys: Keys, row: int, slot: int) -> None:
        hash_integers(self.values, self.valid, self.offset + first, count, seed, missing, keys, row, slot)

    def items(self, first: int, count: int) -> Sequence[Any]:
        start = self.offset + first
        values = self.values[start : start + count].tolist()
        return [value if told(self.valid, start + n) else None for n, value in enumerate(values)]


@dataclass(frozen=True, eq=False)
class Coded(Piece):
    """Codes of the words in a dictionary, which is hashed once for all of them."""

    codes: NDArray[Any]
    dictionary: Piece
    valid: Bytes
    offset: int
    size: int

    def hash_into(self, first: int, count: int, seed: Any, missing: Any, keys: Keys, row: int, slot: int) -> None:
        words = self._words(seed, missing)
        gather_keys(self.codes, words, self.valid, self.offset + first, count, missing, keys, row, slot)

    def _words(self, seed: Any, missing: Any) -> Keys:
        known: dict[Any, Keys] = self.__dict__.setdefault("_known", {})
        if (seed, missing) not in known:
            words = np.empty((self.dictionary.size, 1), np.uint64)
            self.dictionary.hash_into(0, self.dictionary.size, seed, missing, words, 0, 0)
            known[seed, missing] = words[:, 0]
        return known[seed, missing]

    def items(self, first: int, count: int) -> Sequence[Any]:
        start = self.offset + first
        return [
            self.dictionary.items(code, 1)[0] if code >= 0 and told(self.valid, start + n) else None
            for n, code in enumerate(self.codes[start : start + count].tolist())
        ]


def told(valid: Bytes, i: int) -> bool:
    """Whether an item is there, by Arrow's bitmap."""
    return valid.size == 0 or bool(valid[i >> 3] >> (i & 7) & 1)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to, as those of Arrow's buffers: kernels meet one type."""
    view = array.view()
    view.flags.writeable = False
    return view


def bitmap(present: NDArray[np.bool_]) -> Bytes:
    """Arrow's bitmap of what is there; empty if all is."""
    return NO_BYTES if present.all() else frozen(np.packbits(present, bitorder="little"))


# Tables


def arrow_table(table: Any) -> Any:
    """The same table, by pyarrow where that can be had without a copy."""
    home = type(table).__module__.partition(".")[0]
    if home == "polars" and hasattr(table, "to_arrow"):
        import polars as pl  # noqa: PLC0415  # an optional extra; whoever brings such a table has it

        return table.to_arrow(compat_level=pl.CompatLevel.newest())
    if isinstance(table, Mapping) or (home in ("pandas", "pyarrow") and hasattr(table, "columns")):
        return table
    if hasattr(table, "__arrow_c_stream__") and home not in ("pandas", "polars", "pyarrow"):
        import pyarrow as pa  # noqa: PLC0415  # an optional extra, which such a table needs

        return pa.table(table)
    raise InvalidFeatures(
        f"a table must be a DataFrame of polars or pandas, a Table of pyarrow, or a dict of columns; "
        f"got {home}'s {type(table).__name__}."
    )


def taken(table: Any, rows: NDArray[np.int64]) -> Any:
    """The rows of a table in another order."""
    if isinstance(table, Mapping):
        return {name: np.asarray(column)[rows] for name, column in table.items()}
    return table.iloc[rows] if hasattr(table, "iloc") else table.take(rows)


def column_names(table: Any) -> list[str]:
    """What the columns are called, in order."""
    names = list(table) if isinstance(table, Mapping) or hasattr(table, "iloc") else list(table.schema.names)
    seen: set[Any] = set()
    for name in names:
        if not isinstance(name, str) or name in seen:
            raise InvalidFeatures(f"the columns of a table must have different names, as text; got {name!r}.")
        seen.add(name)
    return names


def row_count(table: Any) -> int:
    """How many rows there are: as many in every column."""
    if not isinstance(table, Mapping):
        return len(table) if hasattr(table, "iloc") else int(table.num_rows)
    sizes = {name: len(column) for name, column in table.items()}
    if len(set(sizes.values())) > 1:
        raise ShapeMismatch(f"the columns of a table must be of one length; got {sizes}.")
    return next(iter(sizes.values()), 0)


def column_of(table: Any, name: str, text: bool = False) -> Column:
    """A column of such a table; with ``text``, as strings one after the other, whatever it holds."""
    column = table[name]
    home = type(column).__module__.partition(".")[0]
    try:
        if home == "pyarrow":
            pieces: Column = tuple(arrow_piece(chunk) for chunk in getattr(column, "chunks", [column]))
        elif home == "pandas":
            pieces = pandas_column(column)
        else:
            pieces = (array_piece(column),)
        return tuple(as_offsets(piece) for piece in pieces) if text else pieces
    except InvalidFeatures as error:
        raise InvalidFeatures(f"column {name!r} {error}") from error


def as_offsets(piece: Piece) -> Offsets:
    """The same items as strings one after the other."""
    if isinstance(piece, Offsets):
        return piece
    if isinstance(piece, Views):
        with suppress(NotImplementedError):  # by older versions of pyarrow
            offsets = arrow_piece(piece.array.cast("large_string"))
            assert isinstance(offsets, Offsets)
            return offsets
    return list_piece(piece.items(0, piece.size))


# Arrow


def arrow_piece(array: Any) -> Piece:
    """A piece of an array of pyarrow."""
    kind, buffers = str(array.type), array.buffers()
    valid = NO_BYTES if not buffers or buffers[0] is None or array.null_count == 0 else raw(buffers[0], np.uint8)
    if kind == "string_view":
        return Views(
            array,
            raw(buffers[1], np.uint64),
            tuple(raw(buffer, np.uint8) for buffer in buffers[2:]),
            valid,
            array.offset,
            len(array),
        )
    if kind in ("string", "large_string"):
        offsets = raw(buffers[1], np.int64 if kind == "large_string" else np.int32)
        return Offsets(array, offsets, raw(buffers[2], np.uint8), valid, array.offset, len(array))
    if kind.startswith("dictionary<"):
        if len(array.dictionary) > DECODED * len(array) and "string_view" not in kind:
            return arrow_piece(array.dictionary_decode())
        codes = arrow_piece(array.indices)
        if not isinstance(codes, Integers):
            raise InvalidFeatures(f"must have codes that are whole numbers; got {kind}.")
        return Coded(codes.values, arrow_piece(array.dictionary), codes.valid, codes.offset, len(array))
    if kind == "bool":
        bits = np.unpackbits(raw(buffers[1], np.uint8), bitorder="little")
        return Coded(frozen(bits.astype(np.int64)), list_piece(TRUTH), valid, array.offset, len(array))
    if kind.startswith(("int", "uint")):
        values = raw(buffers[1], np.dtype(kind))
        return Integers(wide(values), valid, array.offset, len(array))
    if kind in ("float", "double", "halffloat", "null"):
        return list_piece(array.to_pylist())
    if hasattr(array, "storage"):
        return arrow_piece(array.storage)
    raise InvalidFeatures(f"must hold {KINDS}; got {kind}.")


def raw(buffer: Any, dtype: Any) -> NDArray[Any]:
    """A buffer of Arrow as an array; none is an empty one."""
    if buffer is None or buffer.size == 0:
        return frozen(np.zeros(0 if dtype is np.uint8 else 1, dtype))  # of no strings there may be no first offset
    size = np.dtype(dtype).itemsize
    return frozen(np.frombuffer(buffer, dtype, count=buffer.size // size))


def wide(values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in 64 bits."""
    return frozen(np.ascontiguousarray(values, np.uint64 if values.dtype == np.uint64 else np.int64))


# pandas, numpy and lists


def pandas_column(series: Any) -> Column:
    """A column of a DataFrame of pandas."""
    if hasattr(series, "cat") and len(series.cat.categories) <= DECODED * len(series):
        codes = wide(series.cat.codes.to_numpy())
        return (Coded(codes, array_piece(series.cat.categories.to_numpy()), NO_BYTES, 0, len(codes)),)
    values = series.array
    if hasattr(values, "__arrow_array__") and type(values).__name__.startswith("Arrow"):
        array = values.__arrow_array__()
        return tuple(arrow_piece(chunk) for chunk in getattr(array, "chunks", [array]))
    if hasattr(series, "cat") or series.isna().any():  # of the nullable kinds too
        return (list_piece(series.astype(object).tolist()),)
    return (array_piece(series.to_numpy()),)


def array_piece(values: Any) -> Piece:
    """A piece of an array of numpy, or of a list."""
    if not isinstance(values, np.ndarray):
        return list_piece(values)
    if values.ndim != 1:
        raise InvalidFeatures(f"must have one axis; got shape {values.shape}.")
    if values.dtype.kind == "b":
        return Coded(wide(values), list_piece(TRUTH), NO_BYTES, 0, len(values))
    if values.dtype.kind in "iu":
        return Integers(wide(values), NO_BYTES, 0, len(values))
    if values.dtype.kind in "fOU":
        return list_piece(values.tolist())
    raise InvalidFeatures(f"must hold {KINDS}; got {values.dtype}.")


def list_piece(values: Sequence[Any]) -> Offsets:
    """A piece of Python values."""
    texts = [text_of(value) for value in values]
    encoded = [b"" if text is None else text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.fromiter(accumulate(map(len, encoded), initial=0), np.int64, len(encoded) + 1)
    present = np.fromiter((text is not None for text in texts), np.bool_, len(texts))
    data = np.frombuffer(b"".join(encoded), np.uint8) if offsets[-1] else NO_BYTES
    return Offsets(texts, frozen(offsets), data, bitmap(present), 0, len(texts))


def text_of(value: Any) -> str | None:
    """The text that a category is hashed as; None if it is missing."""
    if isinstance(value, str):
        return str.__str__(value)  # of a kind of its own, as an Enum's, too
    if value is None or type(value).__name__ == "NAType" or value != value:  # pandas' NA says nothing of itself
        return None
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)) and float(value).is_integer() and abs(float(value)) < WHOLE:
        return str(int(value))
    raise InvalidFeatures(f"must hold {KINDS}; got {value!r}.")
