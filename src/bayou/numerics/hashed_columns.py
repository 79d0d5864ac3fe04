"""Keys of all columns of a table, or the rows that they make, some rows at a time: read where the columns lie.

A column is short strings in Arrow's views, numbers, or keys that were made before of whatever else there is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix
from bayou.numerics.hashing import (
    EIGHT,
    HALF,
    LOW_HALF,
    ONE,
    SIXTY_FOUR,
    ZERO,
    Keys,
    hash_inline,
    mix,
    opened,
    with_word,
)
from bayou.numerics.instructions import byte_at, prefetch_at, real_at, word_at_address
from bayou.numerics.jit import borrowing_kernel

VIEWS, NUMBERS, KEYS = range(3)
NOWHERE = np.uint64(0)
VIEW = np.uint64(16)  # bytes
VIEWS_PER_LINE = 4
BEYOND_EIGHT = LOW_HALF - EIGHT  # what carries a longer length beyond 32 bits


class Sources(NamedTuple):
    """Where columns lie: of which kind, the address of the first item, that of Arrow's bitmap of what is there or 0,
    which bit of it is the first item's; and the keys of a name and of its absence.
    """

    kinds: NDArray[np.int64]
    items: Keys
    valid: Keys
    bits: NDArray[np.int64]
    names: Keys
    missing: Keys


def no_sources(n: int) -> Sources:
    """Room for so many."""
    whole, words = (np.zeros(n, np.int64) for _ in range(2)), (np.zeros(n, np.uint64) for _ in range(4))
    return Sources(next(whole), next(words), next(words), next(whole), next(words), next(words))


@borrowing_kernel
def is_there(valid: Any, bit: Any) -> bool:
    """Whether an item is there, by Arrow's bitmap."""
    return bool((byte_at(valid, bit >> 3) >> np.uint8(bit & 7)) & np.uint8(1))


@borrowing_kernel
def fill_keys(sources: Sources, first: int, count: int, keys: Keys, numbers: Matrix) -> None:
    """Items from ``first`` on of each column to a column of keys; numbers, which come first, also to one of numbers."""
    for slot in range(keys.shape[1]):
        kind, items, missing = sources.kinds[slot], sources.items[slot], sources.missing[slot]
        valid, bit, name = sources.valid[slot], sources.bits[slot] + first, sources.names[slot]
        if kind == NUMBERS:
            for n in range(count):
                number = real_at(items, first + n)
                absent = number != number
                keys[n, slot] = missing if absent else name  # without a branch that could be mispredicted
                numbers[n, slot] = 1.0 if absent else number
        elif kind == KEYS:
            for n in range(count):
                keys[n, slot] = word_at_address(items, first + n)
        else:
            for n in range(count, 2 * count, VIEWS_PER_LINE):  # memory may send the next ones meanwhile
                prefetch_at(items + VIEW * np.uint64(first + n))
            for n in range(count):
                low, high = word_at_address(items, 2 * (first + n)), word_at_address(items, 2 * (first + n) + 1)
                key = hash_inline(low, high, name)
                keys[n, slot] = key if valid == NOWHERE or is_there(valid, bit + n) else missing


@borrowing_kernel
def hash_eight(items: Any, first: int, count: int, name: Any, keys: Keys) -> bool:
    """Keys of views of at most eight bytes; returns whether none is longer: else they mean nothing.

    Without branches, so that the loop uses the whole width of the machine.
    """
    lengths = ZERO
    for n in range(count):
        low, high = word_at_address(items, 2 * (first + n)), word_at_address(items, 2 * (first + n) + 1)
        length = low & LOW_HALF
        lengths |= length + BEYOND_EIGHT
        h = opened(name, length)
        worded = with_word(h, (low >> HALF) | (high << HALF))  # before it is known whether there is a word
        keys[n] = mix(h if length == ZERO else worded)
    return bool(lengths >> HALF == ZERO)


@borrowing_kernel
def hash_column(sources: Sources, slot: int, first: int, count: int, keys: Keys) -> None:
    """Keys of items from ``first`` on of a column of views, or of one of keys."""
    items, missing, name = sources.items[slot], sources.missing[slot], sources.names[slot]
    if sources.kinds[slot] == KEYS:
        for n in range(count):
            keys[n] = word_at_address(items, first + n)
        return
    for n in range(count, 2 * count, VIEWS_PER_LINE):  # memory may send the next ones meanwhile
        prefetch_at(items + VIEW * np.uint64(first + n))
    short = word_at_address(items, 2 * first) & LOW_HALF <= EIGHT  # as the others, most often
    if not (short and hash_eight(items, first, count, name, keys)):
        for n in range(count):
            low, high = word_at_address(items, 2 * (first + n)), word_at_address(items, 2 * (first + n) + 1)
            keys[n] = hash_inline(low, high, name)
    valid, bit = sources.valid[slot], sources.bits[slot] + first
    if valid != NOWHERE:
        for n in range(count):
            keys[n] = keys[n] if is_there(valid, bit + n) else missing


@borrowing_kernel
def fill_rows(
    sources: Sources, first: int, count: int, bits: int, signed: bool, keys: Keys, columns: Any, values: Any
) -> None:
    """Rows of one entry per slot, one after the other, as they are if no column comes twice in any.

    ``keys`` is room for those of one column. Values of slots without numbers are 1 already, unless they have signs.
    """
    n_slots, shift = np.uint64(sources.kinds.size), SIXTY_FOUR - np.uint64(bits)  # unsigned: no place is negative
    for slot in range(sources.kinds.size):
        own, is_number = np.uint64(slot), sources.kinds[slot] == NUMBERS
        if is_number:
            for n in range(count):
                number = real_at(sources.items[slot], first + n)
                absent = number != number
                keys[n] = sources.missing[slot] if absent else sources.names[slot]
                values[np.uint64(n) * n_slots + own] = 1.0 if absent else number
        else:
            hash_column(sources, slot, first, count, keys)
        for n in range(count):
            columns[np.uint64(n) * n_slots + own] = np.int32(keys[n] >> shift)
        if signed:
            for n in range(count):
                place = np.uint64(n) * n_slots + own
                value = values[place] if is_number else 1.0
                values[place] = value if keys[n] & ONE else -value
