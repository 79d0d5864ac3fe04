"""Keys of all columns of a table, some rows at a time, in one call: read where the columns lie.

A column is short strings in Arrow's views, numbers, or keys that were made before of whatever else there is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix
from bayou.numerics.hashing import Keys, hash_inline
from bayou.numerics.instructions import byte_at, prefetch_at, real_at, word_at_address
from bayou.numerics.jit import borrowing_kernel

VIEWS, NUMBERS, KEYS = range(3)
NOWHERE = np.uint64(0)
VIEW = np.uint64(16)  # bytes
VIEWS_PER_LINE = 4


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
