"""Rows of a table without text or interactions: each column has one entry, most often in a place of its own.

Some rows are made at a time, column by column, where the nearest cache holds them; then those in which no column comes
twice are copied as they are.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from bayou.contracts import Kernel
from bayou.numerics.hashed_columns import Sources, fill_keys, fill_rows, no_sources
from bayou.numerics.hashed_rows import (
    ENTRIES,
    PLACES,
    REPORT,
    ROWS,
    STAMPS,
    Integers,
    Noticed,
    Room,
    is_looked_at,
    notice,
    put,
    report,
    room_for,
)
from bayou.numerics.hashing import SIXTY_FOUR
from bayou.numerics.instructions import prefetch
from bayou.numerics.jit import borrowing_kernel, entry_point

TAKEN = np.uint8(255)  # as if by a row after all others


@borrowing_kernel
def are_apart(sources: Sources, n_numbers: int, shift: Any) -> bool:
    """Whether no two numbers can meet in a column, be they there or missing."""
    for slot in range(n_numbers):
        name, missing = sources.names[slot] >> shift, sources.missing[slot] >> shift
        for before in range(slot):
            other, nothing = sources.names[before] >> shift, sources.missing[before] >> shift
            if name in (other, nothing) or missing in (other, nothing):
                return False
    return True


@borrowing_kernel
def clear(sources: Sources, stamps: Any, n_taken: int, shift: Any) -> None:
    """Let no row have a stamp, but the columns of the first slots, which are numbers, always."""
    stamps[:] = 0
    mask = np.uint64(STAMPS - 1)
    for slot in range(n_taken):
        stamps[(sources.names[slot] >> shift) & mask] = TAKEN
        stamps[(sources.missing[slot] >> shift) & mask] = TAKEN


@borrowing_kernel
def repeats(columns: Any, n_taken: int, stamp: Any, stamps: Any) -> bool:
    """Whether a column comes twice in a row; ``stamp`` is the row's own, and larger than those of the rows before."""
    for slot in range(n_taken, columns.size):
        place = columns[slot] & (STAMPS - 1)
        if stamps[place] >= stamp:
            same = 0
            for before in range(slot):
                same += columns[before] == columns[slot]
            if same > 0:
                return True
        else:
            stamps[place] = stamp
    return False


@borrowing_kernel
def whole_until(room: Room, n: int, count: int, n_taken: int) -> int:
    """The first row, from n on, in which a column comes twice; the number of rows if there is none."""
    n_slots, whole = room.keys.shape[1], True
    while n < count and whole:
        row = room.columns[n * n_slots : (n + 1) * n_slots]
        whole = not repeats(row, n_taken, np.uint8(n + 1), room.stamps)
        n += whole
    return n


@borrowing_kernel
def copy(given: Any, to: Any) -> None:
    """Some numbers to where they go."""
    for k in range(given.size):
        to[k] = given[k]


@borrowing_kernel
def summed_row(room: Room, bits: int, signed: bool, at: int, columns: Any, values: Any) -> int:
    """A row whose keys are the first in the room, equal columns summed; returns where it ends."""
    begin, n_numbers = at, room.numbers.shape[1]
    for slot in range(room.keys.shape[1]):
        value = room.numbers[0, slot] if slot < n_numbers else 1.0
        at = put(room.keys[0, slot], value, bits, signed, begin, at, 0, room.places, columns, values)
    return at


@borrowing_kernel
def look(room: Room, noticed: Noticed, row: int, bits: int, n_reports: int) -> int:
    """Count the names of a row whose keys are the first in the room; returns how many reports there are now."""
    shift, n_slots = SIXTY_FOUR - np.uint64(bits), room.keys.shape[1]
    noticed.counts[ENTRIES] += n_slots
    for slot in range(n_slots):  # cells lie anywhere: memory sends all of them at once
        prefetch(noticed.cells, np.int64(room.keys[0, slot] >> shift))
    for slot in range(n_slots):
        key = room.keys[0, slot]
        if notice(noticed.cells, noticed.counts, key, bits) and n_reports < noticed.reports.shape[0]:
            report(noticed.reports, n_reports, row, key >> shift, slot, 0, -1, 0)
            n_reports += 1
    return n_reports


@borrowing_kernel
def rows_of_slots(
    sources: Sources,
    first: int,
    room: Room,
    n_rows: int,
    bits: int,
    signed: bool,
    learn: bool,
    noticed: Noticed,
    starts: Integers,
    columns: Any,
    values: Any,
) -> tuple[int, int]:
    """What `rows_of_keys` does, where there are neither tokens nor interactions."""
    at, n_reports, together, n_slots = 0, 0, room.keys.shape[0], room.keys.shape[1]
    n_numbers, shift = room.numbers.shape[1], SIXTY_FOUR - np.uint64(bits)
    n_taken = n_numbers if are_apart(sources, n_numbers, shift) else 0
    for place in range(PLACES):
        room.places[place] = -1
    for row in range(0, n_rows, together):
        count, n = min(together, n_rows - row), 0
        fill_rows(sources, first + row, count, bits, signed, room.column, room.columns, room.values)
        clear(sources, room.stamps, n_taken, shift)
        while n < count:
            until = whole_until(room, n, count, n_taken)
            begin, end = n * n_slots, until * n_slots
            copy(room.columns[begin:end], columns[at:])
            copy(room.values[begin:end], values[at:])
            for whole in range(n, until):
                at += n_slots
                starts[row + whole + 1] = starts[0] + at
            if until < count:
                fill_keys(sources, first + row + until, 1, room.keys, room.numbers)
                at = summed_row(room, bits, signed, at, columns, values)
                starts[row + until + 1] = starts[0] + at
            n = until + 1
        for looked in range(row, row + count if learn else row):
            if is_looked_at(noticed.counts):
                fill_keys(sources, first + looked, 1, room.keys, room.numbers)
                n_reports = look(room, noticed, looked, bits, n_reports)
            noticed.counts[ROWS] += 1
    return at, n_reports


@cache
def slots_entry(dtype: np.dtype[Any]) -> Kernel:
    """`rows_of_slots` for values of a type, without the look at each argument at every call."""
    noticed = Noticed(np.zeros(1, np.uint32), np.zeros(1, np.int64), np.zeros((1, REPORT), np.int64))
    row = np.zeros(2, np.int64), np.zeros(1, np.int32), np.zeros(1, dtype)
    return entry_point(rows_of_slots, no_sources(1), 0, room_for(1, 1, 0, dtype), 1, 18, False, True, noticed, *row)
