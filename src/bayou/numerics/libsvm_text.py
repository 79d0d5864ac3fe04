"""Kernels that read lines ``label index:value index:value ...`` from bytes.

A decimal number of up to 2^53 times a power of ten up to 22 is exact in one multiplication or division, since both are
exact in double precision. Others are rare; where they are is told, and Python reads them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayou.numerics.jit import kernel

MOST_DIGITS, MOST_EXACT, MOST_POWER = 18, 2**53, 22
POWERS = 10.0 ** np.arange(MOST_POWER + 1)
MOST_INDEX_DIGITS = 10
LARGE = 10_000  # an exponent beyond any number's
NO_NUMBER = -1
TAB, NEW_LINE, RETURN, SPACE, HASH, PLUS, MINUS, POINT, ZERO, NINE, COLON = (ord(c) for c in "\t\n\r #+-.09:")
SMALL_E, LARGE_E = ord("e"), ord("E")


@kernel
def read_number(text: Any, at: int) -> tuple[float, int, bool]:
    """The number that begins there, where it ends, and whether it is exact; no end where there is none.

    The text ends with a byte that is no part of a number.
    """
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += 1
    mantissa, n_digits, exponent, some, after_point = 0, 0, 0, False, False
    while True:
        letter = int(text[at])
        if ZERO <= letter <= NINE:
            some = True
            if n_digits < MOST_DIGITS:
                mantissa = 10 * mantissa + letter - ZERO
                exponent -= after_point
            n_digits += mantissa > 0
        elif letter == POINT and not after_point:
            after_point = True
        else:
            break
        at += 1
    if not some:
        return 0.0, NO_NUMBER, False
    if text[at] == SMALL_E or text[at] == LARGE_E:
        at += 1
        down = text[at] == MINUS
        if down or text[at] == PLUS:
            at += 1
        if not ZERO <= text[at] <= NINE:
            return 0.0, NO_NUMBER, False
        power = 0
        while ZERO <= text[at] <= NINE:
            power = min(10 * power + int(text[at]) - ZERO, LARGE)
            at += 1
        exponent += -power if down else power
    exact = n_digits <= MOST_DIGITS and mantissa <= MOST_EXACT and abs(exponent) <= MOST_POWER
    value = float(mantissa)
    if exact:
        value = value * POWERS[exponent] if exponent >= 0 else value / POWERS[-exponent]
    return -value if negative else value, at, exact


@kernel
def read_index(text: Any, at: int) -> tuple[int, int]:
    """The whole number that begins there, and where it ends; -1 where there is none."""
    index, begin = 0, at
    while ZERO <= text[at] <= NINE and at - begin < MOST_INDEX_DIGITS:
        index, at = 10 * index + int(text[at]) - ZERO, at + 1
    return index if at > begin else -1, at


@kernel
def is_blank(letter: int) -> bool:
    return letter in (SPACE, TAB, RETURN)


@kernel
def read_lines(
    text: Any, first: int, n_columns: int, labels: Any, starts: Any, columns: Any, values: Any, inexact: Any
) -> tuple[int, int, int]:
    """Write the rows of a text that ends with a new line; return how many rows, and numbers to be read otherwise.

    Of each of these, ``inexact`` has where it begins and ends, and its place: that of a value, or of a label from -1
    down. The third number is one more than the largest column; -1 where a line is broken, of which no more is told.
    """
    at, n_rows, n_entries, n_inexact, width, end = 0, 0, 0, 0, 0, text.size
    while at < end:
        while at < end and (is_blank(text[at]) or text[at] == NEW_LINE):
            at += 1
        if at == end:
            break
        if text[at] != HASH:
            value, after, exact = read_number(text, at)
            if after < 0:
                return 0, 0, -1
            if not exact:
                inexact[n_inexact, 0], inexact[n_inexact, 1], inexact[n_inexact, 2] = at, after, -1 - n_rows
                n_inexact += 1
            labels[n_rows] = value
            at, n_rows = after, n_rows + 1
        while text[at] != NEW_LINE:
            if is_blank(text[at]):
                at += 1
                continue
            if text[at] == HASH:
                while text[at] != NEW_LINE:
                    at += 1
                break
            index, after = read_index(text, at)
            column = index - first
            if not is_blank(text[at - 1]) or text[after] != COLON or column < 0 or column >= n_columns:
                return 0, 0, -1
            at = after + 1
            value, after, exact = read_number(text, at)
            if after < 0:
                return 0, 0, -1
            if not exact:
                inexact[n_inexact, 0], inexact[n_inexact, 1], inexact[n_inexact, 2] = at, after, n_entries
                n_inexact += 1
            columns[n_entries], values[n_entries] = column, value
            width = max(width, column + 1)
            at, n_entries = after, n_entries + 1
        starts[n_rows] = n_entries
    return n_rows, n_inexact, width
