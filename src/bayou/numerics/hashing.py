"""The 64-bit hash of a run of bytes, which model files depend on: it never changes.

All arithmetic is modulo 2^64; >> shifts zeros in. With n bytes and a seed of 64 bits:

    h = seed xor (n * 0x9E3779B97F4A7C15)
    for each word of 8 bytes, little-endian, the last one filled up with zero bytes:
        h = (h xor word) * 0xD6E8FEB86659FD93
        h = h xor (h >> 32)
    return mix(h)

    mix(h):   h = h xor (h >> 33);  h = h * 0xFF51AFD7ED558CCD
              h = h xor (h >> 33);  h = h * 0xC4CEB9FE1A85EC53
              return h xor (h >> 33)

No bytes are no word. Text is hashed as UTF-8. Two hashes become one by ``combine(a, b) = mix(a + b)``, in any order.
``mix`` is the finaliser of MurmurHash3 (Appleby 2011, public domain).

    hash("", seed=0)        0x0000000000000000
    hash("bayou", seed=0)   0xA5289604B4631A3A
    hash("bayou", seed=1)   0x3151955E198E55A8

It spreads what people name and count evenly; it is no defence against those who look for collisions.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayou.numerics.jit import COMPILED, borrowing_kernel, kernel

Bytes: TypeAlias = NDArray[np.uint8]
Keys: TypeAlias = NDArray[np.uint64]

# Constants have their type, because a kernel makes a float of an unsigned and a signed number.
LENGTHS = np.uint64(0x9E3779B97F4A7C15)
WORDS = np.uint64(0xD6E8FEB86659FD93)
FIRST = np.uint64(0xFF51AFD7ED558CCD)
SECOND = np.uint64(0xC4CEB9FE1A85EC53)
LOW_HALF = np.uint64(0xFFFFFFFF)
ZERO, ONE, TWO, THREE, FOUR, FIVE, SIX, SEVEN, EIGHT = (np.uint64(i) for i in range(9))
TEN, TWELVE, SIXTEEN, SIXTY_FOUR = np.uint64(10), np.uint64(12), np.uint64(16), np.uint64(64)
HALF, DIGIT, MINUS = np.uint64(32), np.uint64(ord("0")), np.uint64(ord("-"))
SHIFT = np.uint64(33)
TOP_BYTE = np.uint64(56)
# Strings that are hashed one after the other: what is between them, and what is after the last.
SEPARATOR = np.uint8(0x1F)
BETWEEN, END = "\x1f", "\x1f" * 8
EACH_BYTE, HIGH_BITS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
SEPARATORS = np.uint64(0x1F1F1F1F1F1F1F1F)
COUNT_BYTES = np.uint64(0x0001020304050607)  # times 256^n has n in its highest byte


def wrapping() -> AbstractContextManager[Any]:
    """Where unsigned numbers overflow in plain Python, without a word about it."""
    return nullcontext() if COMPILED else np.errstate(over="ignore")


@borrowing_kernel
def mix(h: Any) -> Any:
    """Let every bit act on every bit."""
    h ^= h >> SHIFT
    h *= FIRST
    h ^= h >> SHIFT
    h *= SECOND
    return h ^ (h >> SHIFT)


@kernel
def combine(a: Any, b: Any) -> Any:
    """One hash of two, in any order."""
    return mix(a + b)


@borrowing_kernel
def opened(seed: Any, length: Any) -> Any:
    """The hash before any word."""
    return seed ^ (length * LENGTHS)


@borrowing_kernel
def with_word(h: Any, word: Any) -> Any:
    """The hash after one more word."""
    h = (h ^ word) * WORDS
    return h ^ (h >> HALF)


@borrowing_kernel
def word_at(data: Bytes, at: Any) -> Any:
    """Eight bytes as a number; compiled to one load."""
    return (
        np.uint64(data[at])
        | np.uint64(data[at + ONE]) << EIGHT
        | np.uint64(data[at + TWO]) << np.uint64(16)
        | np.uint64(data[at + THREE]) << np.uint64(24)
        | np.uint64(data[at + FOUR]) << np.uint64(32)
        | np.uint64(data[at + FIVE]) << np.uint64(40)
        | np.uint64(data[at + SIX]) << np.uint64(48)
        | np.uint64(data[at + SEVEN]) << np.uint64(56)
    )


@kernel
def hash_run(data: Bytes, begin: Any, length: Any, seed: Any) -> Any:
    """The hash of ``length`` bytes from ``begin`` on."""
    at, left = np.uint64(begin), np.uint64(length)
    h = opened(seed, left)
    while left >= EIGHT:
        h = with_word(h, word_at(data, at))
        at += EIGHT
        left -= EIGHT
    if left > ZERO:
        if at + EIGHT <= np.uint64(data.size):
            word = word_at(data, at) & ((ONE << (left * EIGHT)) - ONE)
        else:
            word = ZERO
            for i in range(left):
                word |= np.uint64(data[at + np.uint64(i)]) << (np.uint64(i) * EIGHT)
        h = with_word(h, word)
    return mix(h)


@borrowing_kernel
def hash_inline(low: Any, high: Any, seed: Any) -> Any:
    """The hash of a string of at most 12 bytes, as Arrow has it in a view: length and bytes in two words."""
    length = low & LOW_HALF
    h = opened(seed, length)
    if length > ZERO:
        h = with_word(h, (low >> HALF) | (high << HALF))
        if length > EIGHT:
            h = with_word(h, high >> HALF)
    return mix(h)


@borrowing_kernel
def hash_integer(magnitude: Any, negative: Any, seed: Any) -> Any:
    """The hash of a whole number's decimal text."""
    a, b, c, length = ZERO, ZERO, ZERO, ZERO
    digits = True
    while digits:
        c = (c << EIGHT) | (b >> TOP_BYTE)
        b = (b << EIGHT) | (a >> TOP_BYTE)
        a = (a << EIGHT) | (DIGIT + magnitude % TEN)
        magnitude = magnitude // TEN
        length += ONE
        digits = magnitude > ZERO
    if negative:
        c = (c << EIGHT) | (b >> TOP_BYTE)
        b = (b << EIGHT) | (a >> TOP_BYTE)
        a = (a << EIGHT) | MINUS
        length += ONE
    h = with_word(opened(seed, length), a)
    if length > EIGHT:
        h = with_word(h, b)
        if length > SIXTEEN:
            h = with_word(h, c)
    return mix(h)


# Columns of a table, some rows at a time: item ``first + n`` of a column to ``keys[row + n, slot]``. A clear bit of
# ``valid``, if it has any, is a missing item.


@borrowing_kernel
def is_missing(valid: Bytes, i: Any) -> bool:
    """Whether an item is missing, by Arrow's bitmap."""
    return valid.size > 0 and (valid[i >> 3] >> np.uint8(i & 7)) & np.uint8(1) == 0


@kernel
def hash_offsets(
    offsets: Any,
    data: Bytes,
    valid: Bytes,
    first: int,
    count: int,
    seed: Any,
    missing: Any,
    keys: Keys,
    row: int,
    slot: int,
) -> None:
    """Strings one after the other, with where each begins."""
    for n in range(count):
        i = first + n
        if is_missing(valid, i):
            keys[row + n, slot] = missing
        else:
            keys[row + n, slot] = hash_run(data, offsets[i], offsets[i + 1] - offsets[i], seed)


@kernel
def hash_views(
    views: Keys,
    data: Bytes,
    buffer: int,
    valid: Bytes,
    first: int,
    count: int,
    seed: Any,
    missing: Any,
    keys: Keys,
    row: int,
    slot: int,
) -> int:
    """Views of 16 bytes. Of long strings, only those in the buffer given; returns the next other buffer, or -1."""
    other = np.int64(-1)
    for n in range(count):
        i = first + n
        low, high = views[2 * i], views[2 * i + 1]
        length = low & LOW_HALF
        if is_missing(valid, i):
            keys[row + n, slot] = missing
        elif length <= TWELVE:
            keys[row + n, slot] = hash_inline(low, high, seed)
        else:
            index = np.int64(high & LOW_HALF)
            if index == buffer:
                keys[row + n, slot] = hash_run(data, high >> HALF, length, seed)
            elif index > buffer and (other < 0 or index < other):
                other = index
    return int(other)


@kernel
def hash_integers(
    values: Any, valid: Bytes, first: int, count: int, seed: Any, missing: Any, keys: Keys, row: int, slot: int
) -> None:
    """Whole numbers, signed or not, as their decimal text."""
    for n in range(count):
        i = first + n
        if is_missing(valid, i):
            keys[row + n, slot] = missing
        elif values[i] < 0:
            keys[row + n, slot] = hash_integer(~np.uint64(values[i]) + ONE, True, seed)
        else:
            keys[row + n, slot] = hash_integer(np.uint64(values[i]), False, seed)


@kernel
def gather_keys(
    codes: Any,
    dictionary: Keys,
    valid: Bytes,
    first: int,
    count: int,
    missing: Any,
    keys: Keys,
    row: int,
    slot: int,
) -> None:
    """The hashes of a dictionary's words, by their codes; a negative code is missing."""
    for n in range(count):
        i = first + n
        if is_missing(valid, i) or codes[i] < 0:
            keys[row + n, slot] = missing
        else:
            keys[row + n, slot] = dictionary[codes[i]]


@borrowing_kernel
def ends_in(word: Any) -> Any:
    """Where a word has separators: the highest bit of their bytes, right at least for the first of them."""
    x = word ^ SEPARATORS
    return (x - EACH_BYTE) & ~x & HIGH_BITS


@kernel
def hash_joined(data: Bytes, seeds: Keys, keys: Keys) -> bool:
    """Strings, each with a seed of its own, with a separator between any two and `END` after the last.

    Returns False if one has the separator in it: then the keys mean nothing.
    """
    at = ZERO
    for i in range(seeds.size):
        word = word_at(data, at)
        found = ends_in(word)
        if found != ZERO:  # less than eight bytes: the number of bytes before the first end, and a mask of them
            below = ((found & (~found + ONE)) >> SEVEN) - ONE
            length = ((below + ONE) * COUNT_BYTES) >> TOP_BYTE
            h = opened(seeds[i], length)
            keys[i] = mix(with_word(h, word & below) if length > ZERO else h)
        else:
            length = EIGHT
            while ends_in(word_at(data, at + length)) == ZERO:
                length += EIGHT
            while data[at + length] != SEPARATOR:
                length += ONE
            keys[i] = hash_run(data, at, length, seeds[i])
        at += length + ONE
    return bool(at + SEVEN == np.uint64(data.size))


def hash_bytes(data: bytes, seed: int = 0) -> int:
    """The hash of some bytes.

    >>> hex(hash_bytes(b"bayou"))
    '0xa5289604b4631a3a'
    """
    with wrapping():
        return int(hash_run(np.frombuffer(data, np.uint8), 0, len(data), np.uint64(seed)))
