"""Sparse rows in the text of libsvm and svmlight, ``label index:value index:value ...``, in order, some at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bayou.errors import InvalidSpec
from bayou.numerics.broken_rows import Skipped, told_rows
from bayou.numerics.byte_blocks import count_byte, line_blocks, with_packed
from bayou.numerics.files import Source, check_chunk_rows, evenly, files, no_rows
from bayou.numerics.libsvm_rows import MOST_COLUMNS, LabelledRows, gone_through, read_block

ENDINGS = with_packed([".libsvm", ".svmlight", ".svm"])


def read_libsvm(
    path: Source,
    n_columns: int | None = None,
    zero_based: bool = False,
    chunk_rows: int = 65_536,
    on_error: str = "stop",
    skipped: Skipped | None = None,
) -> Iterator[LabelledRows]:
    """Pairs of `SparseRows` and their labels, of at most ``chunk_rows`` rows: of a file, a folder, a pattern, a list.

    Indices count from 1, as libsvm has them, or from 0 where ``zero_based`` says so; the columns of the rows count from
    0 either way. Rows have ``n_columns``, or as many as the largest index up to their block of 8 MB needs. What follows
    a "#" is a comment. Several labels and queries (``qid:3``) are not supported. Files may be packed by gzip or zstd;
    "-" is standard input. Raises `StreamError` where a file is missing or damaged, or where there are no rows at all. A
    line that is none of these stops the stream after the rows before it; with ``on_error="skip"`` it is left out and
    told to ``skipped``.
    """
    check_chunk_rows(chunk_rows)
    if not (n_columns is None or (isinstance(n_columns, int) and 1 <= n_columns <= MOST_COLUMNS)):
        raise InvalidSpec(f"`n_columns` must be a whole number from 1 to {MOST_COLUMNS:,}, or None; got {n_columns!r}.")
    first, most, width, some = 0 if zero_based else 1, n_columns or MOST_COLUMNS, n_columns or 0, False
    with told_rows(on_error, skipped) as teller:
        for file in files(path, ENDINGS):
            row, line = 1, 1
            for block in line_blocks(file):
                found = read_block(block, first, most)
                (rows, labels), broken = (found, []) if found else gone_through(block, first, most)
                width = max(width, rows.n_columns)
                rows = replace(rows, n_columns=width)
                given = teller.given(len(labels), broken)
                some = some or given > 0
                for part in evenly(given, chunk_rows):
                    yield LabelledRows(rows[part], labels[part])
                teller.tell(file, row, line, broken)
                row, line = row + len(labels) + len(broken), line + count_byte(block, b"\n")
        if not some:
            raise no_rows(path, teller.skipped.count)
