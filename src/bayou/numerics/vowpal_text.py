"""Kernels that read lines of Vowpal Wabbit's text from bytes: names become keys, as `bayou.Hashing` has them.

They take the same lines as `bayou.numerics.vowpal_lines`, which says why one is broken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayou.numerics.hashing import Bytes, combine, hash_run
from bayou.numerics.jit import kernel
from bayou.numerics.libsvm_text import COLON, MINUS, NEW_LINE, PLUS, SPACE, read_number

BAR, QUOTE, CARET = ord("|"), ord("'"), ord("^")
SEED = np.uint64(0)
# What an inexact number is of, from which place on, and up to which.
LABEL, WEIGHT, VALUE, SCALE = range(4)
NO_WORD = -2
NAN, INF, INFINITY = (np.frombuffer(word, np.uint8).copy() for word in (b"nan", b"inf", b"infinity"))
SMALL = 32  # what makes a letter a small one


@kernel
def is_blank(letter: int) -> bool:
    """As Python has it among the letters of ASCII."""
    return letter == SPACE or 9 <= letter <= 13 or 28 <= letter <= 31  # tab to return, separators


@kernel
def word_end(text: Bytes, at: int, last: int) -> int:
    """Where a word ends: at a blank, a bar or the end of the line."""
    while at < last and text[at] != BAR and not is_blank(text[at]):
        at += 1
    return at


@kernel
def is_word(text: Bytes, begin: int, end: int, word: Bytes) -> bool:
    """Whether it is this one, in small letters or large."""
    same = end - begin == word.size
    for k in range(word.size):
        same = same and (text[begin + k] | SMALL) == word[k]
    return same


@kernel
def is_not_finite(text: Bytes, begin: int, end: int) -> bool:
    """Whether a value says that it is no finite number."""
    if begin < end and (text[begin] == PLUS or text[begin] == MINUS):
        begin += 1
    return is_word(text, begin, end, NAN) or is_word(text, begin, end, INF) or is_word(text, begin, end, INFINITY)


@kernel
def note(inexact: Any, n: int, begin: int, end: int, kind: int, place: int) -> int:
    inexact[n, 0], inexact[n, 1], inexact[n, 2], inexact[n, 3], inexact[n, 4] = begin, end, kind, place, place + 1
    return n + 1


@kernel
def read_head(text: Bytes, at: int, bar: int, row: int, labels: Any, weights: Any, inexact: Any, n: int) -> int:
    """Label and importance of a row; how many numbers are inexact by now, or -1 where the line is broken.

    What touches the bar is a tag, and so is what begins with a quote, if it is the last word.
    """
    labels[row], weights[row], n_words = np.nan, 1.0, 0
    while True:
        while at < bar and is_blank(text[at]):
            at += 1
        if at == bar:
            return n
        end, after = word_end(text, at, bar), 0
        after = end
        while after < bar and is_blank(text[after]):
            after += 1
        if after == bar and (text[at] == QUOTE or end == bar):
            return n
        value, stop, exact = read_number(text, at)
        if stop != end or n_words > 1:
            return -1
        if n_words == 0:
            labels[row] = value
        else:
            weights[row] = value
        if not exact:
            n = note(inexact, n, at, end, LABEL if n_words == 0 else WEIGHT, row)
        n_words += 1
        at = end


@kernel
def read_rows(
    text: Bytes,
    labels: Any,
    weights: Any,
    lines: Any,
    starts: Any,
    keys: Any,
    values: Any,
    spaces: Any,
    names: Any,
    inexact: Any,
    room: Bytes,
) -> tuple[int, int]:
    """Write the rows of a text that ends with a new line; how many there are, and how many numbers are to be read
    otherwise; no rows but -1 where a line is broken, of which no more is told.

    ``spaces`` is where the name of an entry's namespace begins; ``names`` has room for the key of each name, ``room``
    for a name.
    """
    at, n_rows, n_entries, n_inexact = 0, 0, 0, 0
    while at < text.size:
        begin, bar = at, -1
        some = False
        while text[at] != NEW_LINE:
            if bar < 0 and text[at] == BAR:
                bar = at
            some |= not (text[at] == SPACE or 9 <= text[at] <= 13)  # blanks as bytes have them
            at += 1
        last = at
        at += 1
        if not some:
            continue
        if bar < 0:
            return -1, 0
        n_inexact = read_head(text, begin, bar, n_rows, labels, weights, inexact, n_inexact)
        if n_inexact < 0:
            return -1, 0
        lines[n_rows, 0], lines[n_rows, 1] = begin, last
        first, n_texts, here = n_entries, 0, bar
        while here < last:  # at the bar of a namespace
            here += 1
            space, size, scale, scale_noted = here, 0, 1.0, -1
            if here < last and text[here] != BAR and not is_blank(text[here]):
                end = word_end(text, here, last)
                while here < end and text[here] != COLON:
                    here += 1
                size = here - space
                if here < end:
                    scale, stop, exact = read_number(text, here + 1)
                    if stop != end:
                        return -1, 0
                    if not exact:
                        scale, scale_noted = 1.0, n_inexact
                        n_inexact = note(inexact, n_inexact, here + 1, end, SCALE, n_entries)
                here = end
            for k in range(size):
                room[k] = text[space + k]
            if size:
                room[size] = CARET
                size += 1
            while here < last and text[here] != BAR:
                if is_blank(text[here]):
                    here += 1
                    continue
                end, name = word_end(text, here, last), here
                while here < end and text[here] != COLON:
                    room[size + here - name] = text[here]
                    here += 1
                if here == name:
                    return -1, 0
                key = hash_run(room, 0, size + here - name, SEED)
                names[n_entries], values[n_entries] = key, scale
                if here < end:
                    here += 1
                    number, stop, exact = read_number(text, here)
                    if stop != end:  # text
                        if here == end or scale != 1.0 or is_not_finite(text, here, end):
                            return -1, 0
                        for k in range(here, end):
                            if text[k] == COLON:
                                return -1, 0
                        key = hash_run(text, here, end - here, key)
                        n_texts += 1
                    elif exact:
                        values[n_entries] = scale * number
                    else:
                        n_inexact = note(inexact, n_inexact, here, end, VALUE, n_entries)
                keys[n_entries], spaces[n_entries] = key, space
                n_entries += 1
                here = end
            if scale_noted >= 0:
                inexact[scale_noted, 4] = n_entries
        if n_texts:  # of a name that has text there is nothing else in a row
            for k in range(first, n_entries):
                if keys[k] != names[k]:
                    for i in range(first, n_entries):
                        if i != k and names[i] == names[k]:
                            return -1, 0
        n_rows += 1
        starts[n_rows] = n_entries
    return n_rows, n_inexact


@kernel
def mark_members(text: Bytes, spaces: Any, prefix: Bytes, marks: Any) -> None:
    """Which entries are in a namespace that begins so; no letters are the beginning of all."""
    for n in range(spaces.size):
        at, same = spaces[n], True
        for k in range(prefix.size):
            if at + k >= text.size or text[at + k] != prefix[k]:
                same = False
                break
        marks[n] = same


@kernel
def add_pairs(
    starts: Any, keys: Any, values: Any, first: Any, second: Any, new_starts: Any, new_keys: Any, new_values: Any
) -> int:
    """Rows with the products of entries that are marked as first and second of a pair, a row of marks for each pair.

    Without room for keys they are counted. Of two entries that are both, there is one product.
    """
    end, writes = 0, new_keys.size > 0
    for n in range(starts.size - 1):
        for k in range(starts[n], starts[n + 1]):
            if writes:
                new_keys[end], new_values[end] = keys[k], values[k]
            end += 1
        for pair in range(first.shape[0]):
            for i in range(starts[n], starts[n + 1]):
                if not first[pair, i]:
                    continue
                for j in range(starts[n], starts[n + 1]):
                    if not second[pair, j] or (j < i and first[pair, j] and second[pair, i]):
                        continue
                    if writes:
                        new_keys[end], new_values[end] = combine(keys[i], keys[j]), values[i] * values[j]
                    end += 1
        new_starts[n + 1] = end
    return end
