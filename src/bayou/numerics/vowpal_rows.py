"""Blocks of Vowpal Wabbit's text as sparse rows: at once where all is well, line by line where something is not."""

from __future__ import annotations

import numpy as np

from bayou.errors import StreamError
from bayou.numerics.broken_rows import BrokenRow, shown
from bayou.numerics.byte_blocks import count_byte
from bayou.numerics.sparse_table import BY_NAME, SparseTable
from bayou.numerics.vowpal_lines import BLANKS, BrokenLine, Example, read_line

SHORTEST_ENTRY = 2  # bytes, with what is before it


def examples_of(block: bytes) -> tuple[list[Example], list[BrokenRow]]:
    """The lines of a block that can be read, and those that cannot. Empty lines are no rows."""
    examples: list[Example] = []
    broken: list[BrokenRow] = []
    for line, text in enumerate(block.split(b"\n")):
        if not text.strip():
            continue
        place = len(examples) + len(broken)
        try:
            examples.append(read_line(text.decode().rstrip(BLANKS)))
        except UnicodeDecodeError:
            broken.append(BrokenRow(place, line, f"must be UTF-8; got {shown(text)}"))
        except BrokenLine as error:
            broken.append(BrokenRow(place, line, str(error)))
    return examples, broken


def read_block(block: bytes) -> SparseTable | None:
    """All rows of a block, with names as keys; None where one is broken."""
    from bayou.numerics import vowpal_text  # noqa: PLC0415  # brings numba, which other sources do not need
    from bayou.numerics.hashing import wrapping  # noqa: PLC0415

    try:
        block.decode()
    except UnicodeDecodeError:
        return None
    block = block if block.endswith(b"\n") else block + b"\n"
    most_rows, most_entries = count_byte(block, b"\n"), len(block) // SHORTEST_ENTRY + 1
    labels, weights, starts = np.empty(most_rows), np.empty(most_rows), np.zeros(most_rows + 1, np.int64)
    lines, values = np.empty((most_rows, 2), np.int64), np.empty(most_entries)
    keys, names = np.empty(most_entries, np.uint64), np.empty(most_entries, np.uint64)
    spaces, inexact = np.empty(most_entries, np.int64), np.empty((most_entries + 2 * most_rows, 5), np.int64)
    text, room = np.frombuffer(block, np.uint8), np.empty(len(block) + 1, np.uint8)
    with wrapping():
        n_rows, n_inexact = vowpal_text.read_rows(
            text, labels, weights, lines, starts, keys, values, spaces, names, inexact, room
        )
    if n_rows < 0:
        return None
    n_entries = int(starts[n_rows])
    labels, weights, values = labels[:n_rows], weights[:n_rows], values[:n_entries].copy()
    of_kind = {vowpal_text.LABEL: labels, vowpal_text.WEIGHT: weights}
    for begin, end, kind, first, last in inexact[:n_inexact].tolist():
        number = float(block[begin:end])
        if kind in of_kind:
            of_kind[kind][first] = number
            continue
        if number != 1.0 and (keys[first:last] != names[first:last]).any():  # a scale, of text
            return None
        values[first:last] *= number  # a value, or the scale of several; what it multiplies is there
    sound = np.isfinite(values).all() and not np.isinf(labels).any()
    if not (sound and np.isfinite(weights).all() and (weights >= 0.0).all()):
        return None
    arrays = starts[: n_rows + 1], keys[:n_entries].copy(), values, spaces[:n_entries].copy(), lines[:n_rows]
    return SparseTable(BY_NAME, labels, weights, *arrays, block)


def gone_through(block: bytes) -> tuple[SparseTable, list[BrokenRow]]:
    """The rows of a block that can be read, and those that cannot."""
    _, broken = examples_of(block)
    left_out = {one.lines_before for one in broken}
    good = [text for line, text in enumerate(block.split(b"\n")) if line not in left_out]
    rows = read_block(b"\n".join(good))
    if rows is None:
        raise StreamError("lines of Vowpal Wabbit that are whole one by one must be so together.")  # never
    return rows, broken


def names_by_key(line: bytes) -> dict[int, str]:
    """What the entries of a line are called, by their keys."""
    from bayou.numerics.hashing import hash_bytes  # noqa: PLC0415

    found: dict[int, str] = {}
    for name, value in read_line(line.decode().rstrip(BLANKS)).features.items():
        key = hash_bytes(name.encode())
        if isinstance(value, str):
            found[hash_bytes(value.encode(), key)] = f"{name}={value}"
        else:
            found[key] = name
    return found
