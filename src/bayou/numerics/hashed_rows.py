"""From keys of 64 bits to sparse rows: the top bits are the column, the lowest bit the sign, equal columns are summed.

A row has entries in *slots*: one in each of the first, so many tokens in each of the others. An interaction of two
slots has an entry for each pair of theirs: the combined key, and the product of the values.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Array, Kernel, Matrix, Vector
from bayou.numerics.hashed_columns import Sources, fill_keys
from bayou.numerics.hashing import ONE, SIXTY_FOUR, ZERO, Bytes, Keys, combine, hash_joined
from bayou.numerics.jit import COMPILED, borrowing_kernel, entry_point, kernel

PLACES = 4096  # entries of a row are looked for by so many of their bits
STAMPS = 4096  # the same for rows that are made together, of which there are fewer than 255
FULL_ROWS = 4096  # so many rows are looked at whole; then one of
EVERY = 64
# A cell: how often its column was met (16 bits), whether by several keys (1 bit), a mark of the first key (15 bits).
MARKS = np.uint64(15)
MARK = np.uint64(0x7FFF)
SHARED = np.uint32(0x8000)
COUNT = np.uint32(16)
FULL = np.uint32(0xFFFF)
REPORT = 6  # numbers
# What the counts are of.
ROWS, ENTRIES, COLUMNS, SHARED_ENTRIES, SHARED_COLUMNS, N_COUNTS = range(6)

Integers = NDArray[np.int64]


def no_places() -> NDArray[np.int32]:
    """Where no entries of a row are yet, and how many rows before have used up: none."""
    places = np.full(PLACES + 1, -1, np.int32)
    places[PLACES] = 0
    return places


class Noticed(NamedTuple):
    """What was met so far: a cell for each column, counts, and entries whose names are to be asked for."""

    cells: NDArray[np.uint32]
    counts: Integers
    reports: Integers


class Tokens(NamedTuple):
    """Slots of several entries: those of row n are from ``starts[slot, n]`` to ``starts[slot, n + 1]``."""

    starts: Integers
    keys: Keys
    values: Vector

    def since(self, row: int) -> Tokens:
        """Those from a row on."""
        return self._replace(starts=np.ascontiguousarray(self.starts[:, row:]))


class Room(NamedTuple):
    """Room for some rows that are made together, fewer than 255, near enough to be written column by column: their keys
    and numbers, or the keys of one column and the rows themselves; and places by which entries of a row are looked for.
    """

    keys: Keys
    numbers: Matrix
    column: Keys
    columns: NDArray[np.int32]
    values: Array
    places: NDArray[np.int32]
    stamps: NDArray[np.uint8]


def room_for(n_rows: int, n_slots: int, n_numbers: int, dtype: np.dtype[Any]) -> Room:
    """Room for so many rows of so many slots, the first of them numbers."""
    keys, numbers = np.empty((n_rows, n_slots), np.uint64), np.empty((n_rows, n_numbers))
    rows = np.empty(keys.size, np.int32), np.ones(keys.size, dtype)
    return Room(keys, numbers, np.empty(n_rows, np.uint64), *rows, no_places(), np.zeros(STAMPS, np.uint8))


class Layout(NamedTuple):
    """What rows with the same names have in common: the keys of names of categories, those of names of numbers and of
    their absence, which entries are paired; and room for keys and values.
    """

    seeds: Keys
    names: Keys
    missing: Keys
    pairs: Integers
    keys: Keys
    given: Vector


@borrowing_kernel
def notice(cells: Any, counts: Integers, key: Any, bits: int) -> bool:
    """Count a key; returns whether its name is worth asking for: at first, and when it was met 4, 16, ... times."""
    width = np.uint64(bits)
    column = key >> (SIXTY_FOUR - width)
    mark = np.uint32((key >> (SIXTY_FOUR - width - MARKS)) & MARK)
    if mark == np.uint32(0):  # an empty cell has no mark
        mark = np.uint32(1)
    cell = cells[column]
    if cell == np.uint32(0):
        cells[column] = np.uint32(1) << COUNT | mark
        counts[COLUMNS] += 1
        return True
    asked = False
    if cell & np.uint32(MARK) != mark:
        counts[SHARED_ENTRIES] += 1
        if cell & SHARED == np.uint32(0):
            counts[SHARED_COLUMNS] += 1
            cell |= SHARED
            asked = True
    times = cell >> COUNT
    if times < FULL:
        times += np.uint32(1)
        cells[column] = times << COUNT | (cell & FULL)
        asked = asked or (
            (times & (times - np.uint32(1))) == np.uint32(0) and (times & np.uint32(0x5555)) != np.uint32(0)
        )
    else:
        cells[column] = cell
    return asked


@borrowing_kernel
def put(
    key: Any,
    value: float,
    bits: int,
    signed: bool,
    begin: int,
    at: int,
    base: int,
    places: Any,
    columns: Any,
    values: Any,
) -> int:
    """Add an entry to the row that began at ``begin`` and has come to ``at``; returns where it ends now."""
    column = np.int32(key >> (SIXTY_FOUR - np.uint64(bits)))
    if signed and key & ONE == ZERO:
        value = -value
    place = column & (PLACES - 1)
    seen = places[place] - base
    if seen < begin:
        places[place] = base + at
    elif columns[seen] == column:
        values[seen] += value
        return at
    else:
        for i in range(begin, at):
            if columns[i] == column:
                values[i] += value
                return at
    columns[at] = column
    values[at] = value
    return at + 1


@borrowing_kernel
def is_looked_at(counts: Integers) -> bool:
    """Whether the next row is one of those whose names are counted."""
    return bool(counts[ROWS] < FULL_ROWS or counts[ROWS] % EVERY == 0)


@borrowing_kernel
def rows_of_keys(
    sources: Sources,
    first: int,
    room: Room,
    tokens: Tokens,
    pairs: Integers,
    n_rows: int,
    bits: int,
    signed: bool,
    learn: bool,
    noticed: Noticed,
    starts: Integers,
    columns: Any,
    values: Any,
) -> tuple[int, int]:
    """Rows from ``first`` on of a table with tokens or interactions; how many entries, how many reports.

    Slots with numbers come first, and other slots have the value 1. A report is row, column, slot, place, slot, place:
    the second slot is -1 unless the entry is that of an interaction.
    """
    at, n_reports = 0, 0
    keys, numbers, places, shift = room.keys, room.numbers, room.places, SIXTY_FOUR - np.uint64(bits)
    together, n_slots, n_numbers = keys.shape[0], keys.shape[1], numbers.shape[1]
    counts, reports = noticed.counts, noticed.reports
    for place in range(PLACES):
        places[place] = -1
    for row in range(n_rows):
        begin, n = at, row % together
        if n == 0:
            fill_keys(sources, first + row, min(together, n_rows - row), keys, numbers)
        looked = learn and is_looked_at(counts)
        counts[ROWS] += learn
        for slot in range(n_slots):
            value = numbers[n, slot] if slot < n_numbers else 1.0
            at = put(keys[n, slot], value, bits, signed, begin, at, 0, places, columns, values)
        for t in range(tokens.starts.shape[0]):
            for i in range(tokens.starts[t, row], tokens.starts[t, row + 1]):
                at = put(tokens.keys[i], tokens.values[i], bits, signed, begin, at, 0, places, columns, values)
        if looked:
            for slot in range(n_slots + tokens.starts.shape[0]):
                begins, ends = entries(slot, row, n_slots, tokens)
                counts[ENTRIES] += ends - begins
                for i in range(begins, ends):
                    key = keys[n, slot] if slot < n_slots else tokens.keys[i]
                    if notice(noticed.cells, counts, key, bits) and n_reports < reports.shape[0]:
                        report(reports, n_reports, row, key >> shift, slot, i - begins, -1, 0)
                        n_reports += 1
        for p in range(pairs.shape[0]):
            a, b = pairs[p, 0], pairs[p, 1]
            a_first, a_last = entries(a, row, n_slots, tokens)
            b_first, b_last = entries(b, row, n_slots, tokens)
            for i in range(a_first, a_last):
                a_key = keys[n, a] if a < n_slots else tokens.keys[i]
                a_value = number(numbers, tokens, n, a, i, n_slots)
                for j in range(i if a == b else b_first, b_last):
                    b_key = keys[n, b] if b < n_slots else tokens.keys[j]
                    value = a_value * number(numbers, tokens, n, b, j, n_slots)
                    key = combine(a_key, b_key)
                    at = put(key, value, bits, signed, begin, at, 0, places, columns, values)
                    counts[ENTRIES] += looked
                    if looked and notice(noticed.cells, counts, key, bits) and n_reports < reports.shape[0]:
                        report(reports, n_reports, row, key >> shift, a, i - a_first, b, j - b_first)
                        n_reports += 1
        starts[row + 1] = starts[0] + at
    return at, n_reports


@borrowing_kernel
def entries(slot: int, row: int, n_slots: int, tokens: Tokens) -> tuple[int, int]:
    """From where to where the entries of a slot go: one, or those of its tokens."""
    if slot < n_slots:
        return 0, 1
    return tokens.starts[slot - n_slots, row], tokens.starts[slot - n_slots, row + 1]


@borrowing_kernel
def number(numbers: Matrix, tokens: Tokens, n: int, slot: int, i: int, n_slots: int) -> float:
    """The value of an entry."""
    value: float = 1.0
    if slot < numbers.shape[1]:
        value = numbers[n, slot]
    elif slot >= n_slots:
        value = tokens.values[i]
    return value


@borrowing_kernel
def report(reports: Integers, at: int, row: int, column: Any, a: int, i: int, b: int, j: int) -> None:
    """Ask for the name of an entry."""
    reports[at, 0] = row
    reports[at, 1] = np.int64(column)
    reports[at, 2] = a
    reports[at, 3] = i
    reports[at, 4] = b
    reports[at, 5] = j


@kernel
def pair_keys(keys: Keys, values: Vector, pairs: Integers, first: int) -> None:
    """Append the interactions of some entries to them, from ``first`` on."""
    for p in range(pairs.shape[0]):
        i, j = pairs[p, 0], pairs[p, 1]
        keys[first + p] = combine(keys[i], keys[j])
        values[first + p] = values[i] * values[j]


@kernel
def row_of_keys(
    keys: Keys,
    given: Vector,
    columns: Any,
    values: Vector,
    cells: Any,
    counts: Integers,
    reports: Integers,
    places: Any,
    bits: int,
    signed: bool,
    learn: bool,
) -> int:
    """One row of the entries given: how many columns, plus 2^32 times how many reports, which are of places in keys.

    There are as many keys as columns to write to. The last of the places is how many were used before: so they need no
    clearing.
    """
    n, at, n_reports, base = columns.size, 0, 0, int(places[PLACES])
    if base > 2**30:
        for place in range(PLACES):
            places[place] = -1
        base = 0
    for i in range(n):
        at = put(keys[i], given[i], bits, signed, 0, at, base, places, columns, values)
    places[PLACES] = base + n
    if learn:
        counts[ROWS] += 1
        counts[ENTRIES] += n
        for i in range(n):
            if notice(cells, counts, keys[i], bits) and n_reports < reports.shape[0]:
                reports[n_reports, 0] = i
                n_reports += 1
    return at + (n_reports << 32)


@kernel
def row_of_joined(
    data: Bytes,
    layout: Layout,
    numbers: Vector,
    columns: Any,
    values: Vector,
    cells: Any,
    counts: Integers,
    reports: Integers,
    places: Any,
    bits: int,
    signed: bool,
    learn: bool,
) -> int:
    """The same from joined strings (`hash_joined`) and numbers; -1 if a string has the separator in it, or a number is
    not finite but for NaN, which is missing.
    """
    n, keys, given = layout.seeds.size, layout.keys, layout.given
    if not hash_joined(data, layout.seeds, keys):
        return -1
    for i in range(n):
        given[i] = 1.0
    for i in range(numbers.size):
        if np.isinf(numbers[i]):
            return -1
        absent = numbers[i] != numbers[i]
        keys[n + i] = layout.missing[i] if absent else layout.names[i]
        given[n + i] = 1.0 if absent else numbers[i]
    pair_keys(keys, given, layout.pairs, n + numbers.size)
    return row_of_keys(keys, given, columns, values, cells, counts, reports, places, bits, signed, learn)


@cache
def row_entries() -> tuple[Kernel, Kernel]:
    """`row_of_keys` and `row_of_joined`, without the look at each argument at every call."""
    if not COMPILED:
        quiet = np.errstate(over="ignore")
        return quiet(row_of_keys), quiet(row_of_joined)
    keys, reals, noticed = np.zeros(1, np.uint64), np.zeros(1), (np.zeros(1, np.uint32), np.zeros(1, np.int64))
    rest = *noticed, np.zeros((1, REPORT), np.int64), np.zeros(1, np.int32), 18, False, True
    row = np.zeros(1, np.int32), reals
    layout = Layout(keys, keys, keys, np.zeros((0, 2), np.int64), keys, reals)
    data = np.frombuffer(b" ", np.uint8)
    return (
        entry_point(row_of_keys, keys, reals, *row, *rest, nogil=False),
        entry_point(row_of_joined, data, layout, reals, *row, *rest, nogil=False),
    )
