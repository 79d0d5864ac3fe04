"""Rows of text files of separated values, in order, some at a time.

A file is read in blocks of bytes that end where a row ends: polars alone would read up to half a gigabyte ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from bayou.errors import InvalidSpec, StreamError
from bayou.numerics.broken_rows import BrokenRow, Skipped, told_rows
from bayou.numerics.byte_blocks import BYTE_ORDER_MARK, WHOLE, count_byte, count_outside_quotes, opened, with_packed
from bayou.numerics.column_types import polars_types
from bayou.numerics.csv_rows import gone_through, parsed
from bayou.numerics.files import (
    File,
    Source,
    check_chunk_rows,
    check_schema,
    checked_columns,
    evenly,
    files,
    no_rows,
    polars,
    told_plainly,
)

if TYPE_CHECKING:
    import polars as pl

FIRST = 10_000  # rows that types are guessed from, as far as they are in the first block
BLOCK = 2**23  # bytes
LONGEST = 2**26  # bytes of a row in quotes; beyond that, a quote is taken to be left open
ENDINGS = with_packed([".csv", ".tsv"])


def read_csv(
    path: Source,
    separator: str = ",",
    columns: Sequence[str] | None = None,
    types: Mapping[str, Any] | None = None,
    chunk_rows: int = 65_536,
    on_error: str = "stop",
    skipped: Skipped | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[pl.DataFrame]:
    """Tables of at most ``chunk_rows`` rows, in the order of the rows: of a file, a folder, a pattern or a list.

    The first line names the columns; where ``names`` does, it is a row. ``types`` says the polars type of some columns,
    as ``{"zip": polars.String}``, or a word for it, as ``{"zip": "category"}``; those of the others are guessed from
    the first 10,000 rows of the first file, and the schema of the first table says how. Empty fields are missing; empty
    lines are no rows, but of a single column. Files may be packed by gzip or zstd; "-" is standard input. Raises
    `StreamError` where a file is missing, damaged, without the ``columns`` that are wanted, or where there are no rows
    at all. A row that is not of the types, has too many or too few fields, is not UTF-8 or leaves a quote open stops
    the stream after the rows before it; with ``on_error="skip"`` it is left out and told to ``skipped``.
    """
    library = polars()
    check_chunk_rows(chunk_rows)
    if len(separator.encode()) != 1 or separator in '"\r\n':
        raise InvalidSpec(f"`separator` must be one character of ASCII; got {separator!r}.")
    some, schema, wanted, line_of_names = False, polars_types(types), columns, _line_of(names, separator)
    with told_rows(on_error, skipped) as teller:
        for number, file in enumerate(files(path, ENDINGS)):
            left: list[bytes] = []
            blocks = _blocks(file, left)
            head, is_all = next(blocks, (b"", True))
            begin = _header(head)
            present = _guessed(library, file, line_of_names + head[begin:], separator, schema)
            checked_columns(file, list(present), list(schema) if number == 0 else wanted)
            wanted = checked_columns(file, list(present), wanted)
            schema = schema if number else dict(present)
            check_schema(file, present, {name: schema[name] for name in wanted})
            end = begin if line_of_names else begin + _first_line(head[begin:])
            row, line = 1, 1 + head.count(b"\n", 0, end)
            for block, is_last in chain([(head[end:], is_all)], blocks):
                table, broken, rest = _rows(library, block, separator, present, wanted, is_last)
                left.append(rest)
                given = table[: teller.given(len(table), broken)]
                some = some or len(given) > 0
                yield from (given[part].rechunk() for part in evenly(len(given), chunk_rows))
                teller.tell(file, row, line, broken)
                row, line = row + len(table) + len(broken), line + count_byte(block, b"\n") - rest.count(b"\n")
        if not some:
            raise no_rows(path, teller.skipped.count)


def _line_of(names: Sequence[str] | None, separator: str) -> bytes:
    """Names as the line that a file would begin with; none if there are none."""
    if names is None:
        return b""
    if isinstance(names, str) or not names or len(set(names)) < len(names) or not all(map(_is_name, names)):
        raise InvalidSpec(f"`names` must be different names of columns, of one line and without quotes; got {names!r}.")
    return (separator.join(f'"{name}"' for name in names) + "\n").encode()


def _is_name(name: object) -> bool:
    return isinstance(name, str) and '"' not in name and len(name.splitlines()) == 1


def _blocks(file: File, left: list[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The bytes of a file, cut where rows end, and whether they are the last; what is ``left`` comes again."""
    text = b""
    with opened(file) as source:
        while True:
            with told_plainly(file, WHOLE):
                more = source.read(BLOCK)
            text += more
            cut = _last_end(text) if more else len(text)
            if cut:
                yield text[:cut], not more
                text = b"".join(left) + text[cut:]
                left.clear()
            if not more:
                return


def _last_end(text: bytes) -> int:
    """Just after the last end of line that is not in quotes; 0 where there is none yet."""
    if b'"' not in text:
        return text.rfind(b"\n") + 1
    quotes, end = count_byte(text, b'"'), len(text)
    while (before := text.rfind(b"\n", 0, end)) >= 0:
        quotes -= text.count(b'"', before, end)
        if quotes % 2 == 0:
            return before + 1
        end = before
    return text.rfind(b"\n") + 1 if len(text) > LONGEST else 0


def _header(text: bytes) -> int:
    """Where the line of names begins: after a mark of the order of bytes, and after lines that are empty."""
    text_begins = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    return len(text) - len(text[text_begins:].lstrip(b"\r\n"))


def _first_line(text: bytes) -> int:
    """Just after the first end of line that is not in quotes."""
    end = text.find(b"\n") + 1
    while end and text.count(b'"', 0, end) % 2:
        end = text.find(b"\n", end) + 1
    return end or len(text)


def _guessed(library: Any, file: File, head: bytes, separator: str, known: Mapping[str, Any]) -> Mapping[str, Any]:
    """The type of each column."""
    with told_plainly(file, "a text file with a line of names and rows of values"):
        names = library.scan_csv(head, separator=separator, infer_schema_length=0).collect_schema().names()
        of_these = {name: known[name] for name in names if name in known}  # polars may take others by their place
        scan = library.scan_csv(head, separator=separator, schema_overrides=of_these, infer_schema_length=FIRST)
        found: Mapping[str, Any] = scan.collect_schema()
    return found


def _rows(
    library: Any, block: bytes, separator: str, schema: Mapping[str, Any], columns: Sequence[str], is_last: bool
) -> tuple[Any, list[BrokenRow], bytes]:
    """The rows of a block, and those that cannot be read, which are looked for only where there are any.

    Quotes that are left open mislead where a block is cut: a row that goes on after it is what is left of the block.
    """
    try:
        with told_plainly("a block", "readable"):
            table = parsed(library, block, separator, schema, columns)
    except StreamError:
        table = None
    if table is not None and _are_whole(block, separator, table, list(schema)):
        return table, [], b""
    may_go_on = not is_last and len(block) <= LONGEST
    return gone_through(library, block, separator, schema, columns, may_go_on)


def _are_whole(block: bytes, separator: str, table: Any, names: Sequence[str]) -> bool:
    """Whether no row has too few fields, whose last polars would take as missing."""
    if len(names) == 1 or (names[-1] in table.columns and not table[names[-1]].null_count()):
        return True
    return count_outside_quotes(block, separator.encode()) == len(table) * (len(names) - 1)
