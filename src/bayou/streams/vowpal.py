"""Rows in the text of Vowpal Wabbit, in order, some at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bayou.contracts import Vector
from bayou.numerics.broken_rows import BrokenRow, Skipped, told_rows
from bayou.numerics.byte_blocks import count_byte, line_blocks, with_packed
from bayou.numerics.files import Source, check_chunk_rows, evenly, files, no_rows
from bayou.numerics.sparse_table import SparseTable
from bayou.numerics.vowpal_lines import Example
from bayou.numerics.vowpal_rows import examples_of, gone_through, read_block

ENDINGS = with_packed([".vw"])
BLOCK = 2**20  # bytes, of which dicts take twenty times as many
LARGE_BLOCK = 2**22  # of which keys and values take some eight times as many


class VowpalRows(NamedTuple):
    """Rows as Vowpal Wabbit's text tells them."""

    labels: Vector  # nan where there is none
    weights: Vector  # importances, 1 where there is none
    tags: list[str | None]
    features: list[dict[str, float | str]]  # by "namespace^feature"; of the namespace without name by "feature"


def read_vw(
    path: Source, chunk_rows: int = 65_536, on_error: str = "stop", skipped: Skipped | None = None
) -> Iterator[VowpalRows]:
    """`VowpalRows` of at most ``chunk_rows`` rows: of a file, a folder, a pattern or a list.

    A line is ``[label] [importance] ['tag]|namespace[:scale] feature[:value] ... |namespace ...``; the namespace may
    have no name. Values that are no numbers are text. A feature that comes again adds up. Empty lines are no rows. Not
    supported: examples of several lines, a base after the importance, labels with costs or several classes, features
    without a name, text in a namespace with a scale. Files may be packed by gzip or zstd; "-" is standard input. Raises
    `StreamError` where a file is missing or damaged, or where there are no rows at all. A line that is not such text,
    or has what is not supported, stops the stream after the rows before it; with ``on_error="skip"`` it is left out and
    told to ``skipped``.
    """
    for part, examples in _parts(path, chunk_rows, on_error, skipped, BLOCK, examples_of):
        yield _rows(examples[part])


def read_vw_rows(
    path: Source, chunk_rows: int = 65_536, on_error: str = "stop", skipped: Skipped | None = None
) -> Iterator[SparseTable]:
    """The same rows as `SparseTable`, whose entries have keys for names: it takes a hundredth of the time."""
    for part, rows in _parts(path, chunk_rows, on_error, skipped, LARGE_BLOCK, _read):
        yield rows.slice(part.start, part.stop - part.start)


def _parts(
    path: Source,
    chunk_rows: int,
    on_error: str,
    skipped: Skipped | None,
    size: int,
    read: Callable[[bytes], tuple[Any, list[BrokenRow]]],
) -> Iterator[tuple[slice, Any]]:
    """Which of the rows of a block are given next, and the block as it was read."""
    check_chunk_rows(chunk_rows)
    some = False
    with told_rows(on_error, skipped) as teller:
        for file in files(path, ENDINGS):
            row, line = 1, 1
            for block in line_blocks(file, size):
                found, broken = read(block)
                given = teller.given(len(found), broken)
                some = some or given > 0
                for part in evenly(given, chunk_rows):
                    yield part, found
                teller.tell(file, row, line, broken)
                row, line = row + len(found) + len(broken), line + count_byte(block, b"\n")
        if not some:
            raise no_rows(path, teller.skipped.count)


def _read(block: bytes) -> tuple[SparseTable, list[BrokenRow]]:
    rows = read_block(block)
    return gone_through(block) if rows is None else (rows, [])


def _rows(examples: list[Example]) -> VowpalRows:
    return VowpalRows(
        np.array([example.label for example in examples]),
        np.array([example.weight for example in examples]),
        [example.tag for example in examples],
        [example.features for example in examples],
    )
