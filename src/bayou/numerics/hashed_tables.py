"""A table to sparse rows, a block of rows after the other: keys column by column, then rows of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Array, SparseRows, Vector
from bayou.errors import InvalidFeatures, ShapeMismatch
from bayou.numerics.finite import count_larger
from bayou.numerics.hashed_columns import KEYS, NUMBERS, VIEWS, Sources, no_sources
from bayou.numerics.hashed_names import EARNED, FREE, MOST_REPORTS, HashedNames
from bayou.numerics.hashed_names import feature_of as feature_of  # noqa: PLC0414  # for estimators too
from bayou.numerics.hashed_rows import Tokens, room_for, rows_of_keys
from bayou.numerics.hashed_slots import slots_entry
from bayou.numerics.hashed_tokens import token_keys, tokens_of
from bayou.numerics.hashing import wrapping
from bayou.numerics.table_columns import (
    Column,
    Offsets,
    Piece,
    Views,
    arrow_table,
    column_names,
    column_of,
    row_count,
    text_of,
)

BLOCK = 4096  # rows that are made at once, so that they are near when they are learnt
LARGEST_FLOAT = float(np.finfo(np.float64).max)
NEAR = 64  # rows that are made at once, so that the nearest cache holds them
NO_TOKENS = Tokens(np.zeros((0, 1), np.int64), np.zeros(0, np.uint64), np.zeros(0))


class Settings(NamedTuple):
    """What `bayou.Hashing` is made of."""

    bits: int
    signed: bool
    interactions: tuple[tuple[str, str], ...]
    text: tuple[str, ...]
    seed: int


class HashedTable:
    """A table that is being encoded, block by block."""

    def __init__(
        self, settings: Settings, names: HashedNames, table: Any, numbers: Mapping[str, Vector], dtype: np.dtype[Any]
    ) -> None:
        table = arrow_table(table)
        self.settings, self.names, self.dtype = settings, names, dtype
        self.n_rows = row_count(table) if column_names(table) or not numbers else len(next(iter(numbers.values())))
        self.numbers = {name: _as_long(name, values, self.n_rows) for name, values in numbers.items()}
        others = [name for name in column_names(table) if name not in numbers]
        self.slots = [*numbers, *(name for name in others if name not in settings.text)]
        self.texts = [name for name in others if name in settings.text]
        self.columns: dict[str, Column] = {name: column_of(table, name, name in settings.text) for name in others}
        self.features = {name: names.feature(name) for name in (*self.slots, *self.texts)}
        self.order = [*self.slots, *self.texts]
        self.pairs = np.array([self._slots_of(pair) for pair in settings.interactions], np.int64).reshape(-1, 2)
        for name in settings.text:
            if name not in self.texts:
                raise InvalidFeatures(f"`text` must name columns that are text; {name!r} is not among {others}.")
        self.room = room_for(NEAR, len(self.slots), len(numbers), dtype)
        self.rows_of_slots = slots_entry(dtype)
        self.sources, self.made = self._sources()

    def _sources(self) -> tuple[Sources, dict[int, NDArray[np.uint64]]]:
        """Where the columns lie, and room for the keys of those that no kernel reads: `_make` makes them."""
        sources, made = no_sources(len(self.slots)), {}
        for slot, name in enumerate(self.slots):
            sources.names[slot], sources.missing[slot] = self.features[name]
            pieces = self.columns.get(name, ())
            if name in self.numbers:
                sources.kinds[slot], sources.items[slot] = NUMBERS, address_of(self.numbers[name])
            elif len(pieces) == 1 and isinstance(pieces[0], Views) and not pieces[0].buffers:
                views = pieces[0]
                sources.kinds[slot], sources.items[slot] = VIEWS, address_of(views.views[2 * views.offset :])
                if views.valid.size:
                    sources.valid[slot], sources.bits[slot] = address_of(views.valid), views.offset
            else:
                made[slot] = np.empty((min(BLOCK, max(self.n_rows, 1)), 1), np.uint64)
                sources.kinds[slot] = KEYS
        return sources, made

    def _make(self, first: int, count: int) -> None:
        """Keys of some rows of the columns that no kernel reads."""
        for slot, keys in self.made.items():
            name, missing = self.features[self.slots[slot]]
            for piece, low, size, row in self._pieces(self.slots[slot], first, count):
                piece.hash_into(low, size, name, missing, keys, row, 0)
            # Items are counted from the first row of the table on.
            self.sources.items[slot] = np.uint64((keys.ctypes.data - keys.itemsize * first) % 2**64)

    def _slots_of(self, pair: tuple[str, str]) -> list[int]:
        for name in pair:
            if name not in self.order:
                raise InvalidFeatures(f"`interactions` must name columns; {name!r} is not among {self.order}.")
        return [self.order.index(name) for name in pair]

    def chunks(self, rows: slice, learn: bool, chunk_rows: int = BLOCK) -> Iterator[tuple[slice, SparseRows]]:
        """Some rows, so many at a time: which of them, and these."""
        for first in range(rows.start, rows.stop, chunk_rows):
            count = min(chunk_rows, rows.stop - first)
            yield slice(first - rows.start, first - rows.start + count), self.encode(first, count, learn)

    def encode(self, first: int, n_rows: int, learn: bool) -> SparseRows:
        """Rows from ``first`` on."""
        tokens = self._tokens(first, n_rows)
        size = self._size(tokens, n_rows)
        starts = np.zeros(n_rows + 1, np.int64)
        columns, values = np.empty(size, np.int32), np.empty(size, self.dtype)
        at = 0
        for row in range(0, n_rows, BLOCK):
            count = min(BLOCK, n_rows - row)
            reports = self._reports(count) if learn else self.names.noticed.reports[:0]
            place = first + row, count, starts[row:], columns[at:], values[at:]
            n, n_reports = self._rows(*place, tokens.since(row), reports, learn)
            if n_reports:
                self._remember(first + row, reports[:n_reports])
            at += n
        if not self.settings.signed and not self.numbers and np.all(values[:at] == 1.0):
            values = values[:0]
            at_values = 0
        else:
            at_values = at
        return SparseRows(starts, columns[:at], values[:at_values], 2**self.settings.bits)

    def _rows(
        self,
        first: int,
        count: int,
        starts: NDArray[np.int64],
        columns: NDArray[np.int32],
        values: Array,
        tokens: Tokens,
        reports: NDArray[np.int64],
        learn: bool,
    ) -> tuple[int, int]:
        """Some rows to where they go; how many entries they have, and how many names are asked for."""
        noticed, settings = self.names.noticed._replace(reports=reports), self.settings
        rest = count, settings.bits, settings.signed, learn, noticed, starts, columns, values
        with wrapping():
            self._make(first, count)
            if self.texts or self.pairs.size:
                made = rows_of_keys(self.sources, first, self.room, tokens, self.pairs, *rest)
            else:
                made = self.rows_of_slots(self.sources, first, self.room, *rest)
        return int(made[0]), int(made[1])

    def _reports(self, count: int) -> NDArray[np.int64]:
        """Room for as many names as so many rows that are learnt may ask for."""
        self.names.credit = min(self.names.credit + EARNED * count, FREE)
        return self.names.noticed.reports[: min(int(self.names.credit), MOST_REPORTS)]

    def _size(self, tokens: Tokens, n_rows: int) -> int:
        """How many entries there are at most."""
        fixed = len(self.slots)
        if not (self.texts or self.pairs.size):
            return fixed * n_rows
        lengths = np.diff(tokens.starts)
        total = fixed * n_rows + int(lengths.sum())
        for a, b in self.pairs.tolist():
            of_a, of_b = (1 if slot < fixed else lengths[slot - fixed] for slot in (a, b))
            total += int(np.sum(np.broadcast_to(of_a * (of_a + 1) // 2 if a == b else of_a * of_b, n_rows)))
        return total

    def _tokens(self, first: int, n_rows: int) -> Tokens:
        if not self.texts:
            return NO_TOKENS
        starts = np.zeros((len(self.texts), n_rows + 1), np.int64)
        found = [(np.zeros(0, np.uint64), np.zeros(0))]
        size = 0
        for t, name in enumerate(self.texts):
            seed, missing = self.features[name]
            starts[t, 0] = size
            for piece, low, count, row in self._pieces(name, first, n_rows):
                assert isinstance(piece, Offsets)
                found.append(token_keys(piece, low, count, seed, missing, starts[t, row : row + count + 1]))
                size += found[-1][0].size
        return Tokens(starts, np.concatenate([keys for keys, _ in found]), np.concatenate([n for _, n in found]))

    def _pieces(self, name: str, first: int, count: int) -> Iterator[tuple[Piece, int, int, int]]:
        """The pieces of a column that have some of these rows: from which item on, how many, from which row on."""
        begin = 0
        for piece in self.columns[name]:
            low, high = max(first, begin), min(first + count, begin + piece.size)
            if low < high:
                yield piece, low - begin, high - low, low - first
            begin += piece.size

    def _remember(self, first: int, reports: NDArray[np.int64]) -> None:
        self.names.credit -= len(reports)
        for n, column, a, i, b, j in reports.tolist():
            if not self.names.is_named(column):
                label = self._label(first + n, a, i)
                self.names.remember(column, label if b < 0 else f"{label} x {self._label(first + n, b, j)}")

    def _label(self, row: int, slot: int, i: int) -> str:
        name = self.order[slot]
        if name in self.numbers:
            return f"{name} is missing" if np.isnan(self.numbers[name][row]) else name
        [(piece, low, _, _)] = self._pieces(name, row, 1)
        text = text_of(piece.items(low, 1)[0])
        if text is None:
            return f"{name} is missing"
        return f"{name}:{list(tokens_of(text))[i]}" if name in self.texts else f"{name}={text}"


def address_of(array: NDArray[Any]) -> np.uint64:
    """Where an array begins, which must be kept by whoever is told."""
    return np.uint64(array.ctypes.data)


def _as_long(name: str, values: Vector, n_rows: int) -> Vector:
    if values.shape != (n_rows,):
        raise ShapeMismatch(f"the numbers {name!r} must have one value per row, {n_rows}; got shape {values.shape}.")
    return values


def checked_numbers(numbers: Mapping[str, Any]) -> dict[str, Vector]:
    """Columns of numbers as kernels take them; raises if any is infinite."""
    arrays = {name: np.require(values, np.float64, ["C", "A", "W"]) for name, values in numbers.items()}
    for name, array in arrays.items():
        if array.ndim == 1 and count_larger(array, LARGEST_FLOAT) > 0.0:
            row = int(np.argmax(np.isinf(array)))
            raise InvalidFeatures(f"the numbers {name!r} must be finite; got inf in row {row}.")
    return arrays
