"""Blocks of libsvm's text as sparse rows: at once where all is well, line by line where something is not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bayou.contracts import SparseRows, Vector
from bayou.errors import StreamError
from bayou.numerics.broken_rows import BrokenRow, shown
from bayou.numerics.byte_blocks import count_byte

MOST_COLUMNS = 2**31 - 1
NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
INDEX = re.compile(rb"[0-9]{1,10}")
COMMENT = re.compile(rb"#[^\n]*")


class LabelledRows(NamedTuple):
    """Sparse rows and their labels. Compares as a pair: ``rows, labels = chunk``."""

    rows: SparseRows
    labels: Vector


def read_block(block: bytes, first: int, n_columns: int) -> LabelledRows | None:
    """All rows of a block, whose columns count from ``first``; None where one is broken."""
    from bayou.numerics.libsvm_text import read_lines  # noqa: PLC0415  # brings numba, which other sources do not need

    block += b"\n"
    text = np.frombuffer(block, np.uint8)
    most_rows, most_entries = count_byte(block, b"\n"), count_byte(block, b":")
    labels, values = np.empty(most_rows), np.empty(most_entries)
    starts, columns = np.zeros(most_rows + 1, np.int64), np.empty(most_entries, np.int32)
    inexact = np.empty((most_rows + most_entries, 3), np.int64)
    n_rows, n_inexact, width = read_lines(text, first, n_columns, labels, starts, columns, values, inexact)
    if width < 0:
        return None
    for begin, end, place in inexact[:n_inexact].tolist():
        number = float(block[begin:end])
        if not np.isfinite(number):
            return None
        if place < 0:
            labels[-1 - place] = number
        else:
            values[place] = number
    n_entries = int(starts[n_rows])
    rows = SparseRows(starts[: n_rows + 1], columns[:n_entries], values[:n_entries], width)
    return LabelledRows(rows, labels[:n_rows])


def gone_through(block: bytes, first: int, n_columns: int) -> tuple[LabelledRows, list[BrokenRow]]:
    """The rows of a block that can be read, and those that cannot. Empty lines and comments are no rows."""
    good, broken, place = [], [], 0
    for line, text in enumerate(block.split(b"\n")):
        tokens = COMMENT.sub(b"", text).split()
        if not tokens:
            continue
        reason = _what_is_wrong(tokens, first, n_columns)
        if reason:
            broken.append(BrokenRow(place, line, reason))
        else:
            good.append(b" ".join(tokens))
        place += 1
    rows = read_block(b"\n".join(good), first, n_columns)
    if rows is None:
        raise StreamError("lines of libsvm that are whole one by one must be so together.")  # never, by the tests
    return rows, broken


def _what_is_wrong(tokens: Sequence[bytes], first: int, n_columns: int) -> str:
    label, entries = tokens[0], tokens[1:]
    if not _is_finite(label):
        what = "one label, not several" if b"," in label else "a number as label"
        return f"must begin with {what}; got {_said(label)}"
    for entry in entries:
        index, colon, value = entry.partition(b":")
        if index == b"qid":
            return f"must have no query: qid is not supported; got {_said(entry)}"
        if not colon or not index or not _is_finite(value):
            return f"must have entries as index:value, of finite numbers; got {_said(entry)}"
        if not INDEX.fullmatch(index) or int(index) < first:
            hint = ": say zero_based=True, if they count from 0" if index == b"0" else ""
            return f"must have whole indices of few digits, from {first} on{hint}; got {_said(index)}"
        if int(index) - first >= n_columns:
            return f"must have indices of {n_columns:,} columns, up to {n_columns - 1 + first:,}; got {_said(index)}"
    return ""


def _is_finite(text: bytes) -> bool:
    return bool(NUMBER.fullmatch(text)) and np.isfinite(float(text))


def _said(text: Any) -> str:
    return shown(text.decode("utf-8", "replace"))
