"""Words of text to keys, how often each comes in its row: runs of word characters, in lower case.

Text in ASCII is read as it lies. What else there is goes through Python first, which knows the letters of all scripts:
of such a row its words in lower case are read, with a separator between any two; every byte from 128 on is a letter.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Vector
from bayou.numerics.hashing import BETWEEN, Bytes, Keys, hash_run, is_missing, wrapping
from bayou.numerics.jit import kernel
from bayou.numerics.table_columns import NO_BYTES, Offsets, frozen

WORD = re.compile(r"\w+")
PLACES = 4096  # words of a row are looked for by so many of their bits
NO_OFFSETS = frozen(np.zeros(1, np.int64))


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, as they come."""
    return WORD.findall(text.lower())


def tokens_of(text: str) -> Counter[str]:
    """The words of a text in lower case, and how often each comes."""
    return Counter(words_of(text))


@kernel
def foreign_rows(offsets: Any, data: Bytes, valid: Bytes, first: int, foreign: Any) -> int:
    """Mark the rows that are not all ASCII; returns how many there are."""
    count = 0
    for n in range(foreign.size):
        i = first + n
        foreign[n] = False
        if is_missing(valid, i):
            continue
        bits = np.uint8(0)
        for at in range(offsets[i], offsets[i + 1]):
            bits |= data[at]
        if bits >= np.uint8(128):
            foreign[n] = True
            count += 1
    return count


@kernel
def lowered(data: Bytes, begin: int, end: int, scratch: Any) -> None:
    """Copy bytes, letters in lower case, and 0 for what belongs to no word."""
    for at in range(begin, end):
        byte = data[at]
        if np.uint8(65) <= byte <= np.uint8(90):
            byte += np.uint8(32)
        letter = np.uint8(97) <= byte <= np.uint8(122)
        digit = np.uint8(48) <= byte <= np.uint8(57)
        scratch[at - begin] = byte if letter or digit or byte == np.uint8(95) or byte >= np.uint8(128) else np.uint8(0)


@kernel
def count_words(scratch: Any, size: int, seed: Any, begin: int, places: Any, keys: Keys, values: Vector) -> int:
    """Keys of the words between zeros, from ``begin`` on, and how often each comes; returns where they end."""
    end, at = begin, 0
    while at < size:
        if scratch[at] == 0:
            at += 1
            continue
        start = at
        while at < size and scratch[at] != 0:
            at += 1
        key = hash_run(scratch, start, at - start, seed)
        place = np.int64(key & np.uint64(PLACES - 1))
        seen = places[place]
        if seen < begin:
            places[place] = end
            seen = end
        elif keys[seen] != key:
            seen = begin
            while seen < end and keys[seen] != key:
                seen += 1
        if seen == end:
            keys[end], values[end] = key, 0.0
            end += 1
        values[seen] += 1.0
    return end


@kernel
def hash_words(
    offsets: Any,
    data: Bytes,
    valid: Bytes,
    first: int,
    foreign: Any,
    other_offsets: Any,
    other_data: Bytes,
    seed: Any,
    missing: Any,
    scratch: Any,
    places: Any,
    starts: Any,
    keys: Keys,
    values: Vector,
) -> None:
    """The words of so many rows, from where the first of ``starts`` says on; foreign rows are read elsewhere."""
    others, at = 0, int(starts[0])
    for place in range(PLACES):
        places[place] = -1
    for n in range(foreign.size):
        i = first + n
        if is_missing(valid, i):
            keys[at], values[at] = missing, 1.0
            at += 1
        elif foreign[n]:
            begin, end = other_offsets[others], other_offsets[others + 1]
            lowered(other_data, begin, end, scratch)
            at = count_words(scratch, end - begin, seed, at, places, keys, values)
            others += 1
        else:
            begin, end = int(offsets[i]), int(offsets[i + 1])
            lowered(data, begin, end, scratch)
            at = count_words(scratch, end - begin, seed, at, places, keys, values)
        starts[n + 1] = at


def token_keys(
    piece: Offsets, first: int, count: int, seed: Any, missing: Any, starts: NDArray[np.int64]
) -> tuple[Keys, Vector]:
    """Keys and counts of the words of some items; where each item's begin is added to ``starts``, of which the first is
    where the first one's do.
    """
    begin = piece.offset + first
    foreign = np.empty(count, np.bool_)
    offsets, data, valid = piece.offsets, piece.data, piece.valid
    other_offsets, other_data = NO_OFFSETS, NO_BYTES
    if foreign_rows(offsets, data, valid, begin, foreign):
        texts = (piece.items(first + n, 1)[0] for n in np.flatnonzero(foreign).tolist())
        words = [BETWEEN.join(words_of(text)).encode() for text in texts]
        other_offsets = frozen(np.cumsum([0, *map(len, words)]))
        other_data = np.frombuffer(b"".join(words), np.uint8) if other_offsets[-1] else NO_BYTES
    sizes = np.diff(offsets[begin : begin + count + 1])
    most = int(max(np.max(sizes, initial=0), np.max(np.diff(other_offsets), initial=0)))
    room = int(sizes.sum()) // 2 + int(other_offsets[-1]) // 2 + 2 * count  # a word and what ends it, two bytes
    keys, values = np.empty(room, np.uint64), np.empty(room)
    shift, starts[0] = int(starts[0]), 0
    with wrapping():
        hash_words(
            offsets, data, valid, begin, foreign, other_offsets, other_data, seed, missing,
            np.empty(most, np.uint8), np.empty(PLACES, np.int64), starts, keys, values,
        )  # fmt: skip
    n = int(starts[count])
    starts += shift
    return keys[:n], values[:n]
