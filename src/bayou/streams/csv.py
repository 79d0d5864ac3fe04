"""Rows of text files of separated values, in order, some at a time.

A file is read in blocks of bytes that end where a row ends: polars alone would read up to half a gigabyte ahead.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bayou.errors import InvalidSpec, StreamError
from bayou.numerics.files import (
    Source,
    check_chunk_rows,
    check_schema,
    checked_columns,
    evenly,
    files,
    polars,
    told_plainly,
)

if TYPE_CHECKING:
    import polars as pl

FIRST = 10_000  # rows that types are guessed from, as far as they are in the first block
BLOCK = 2**23  # bytes
LONGEST = 2**26  # bytes of a row in quotes; beyond that, a quote is taken to be left open
ENDINGS = [f"{kind}{packed}" for kind in (".csv", ".tsv") for packed in ("", ".gz", ".zst")]


def read_csv(
    path: Source,
    separator: str = ",",
    columns: Sequence[str] | None = None,
    types: Mapping[str, Any] | None = None,
    chunk_rows: int = 65_536,
) -> Iterator[pl.DataFrame]:
    """Tables of at most ``chunk_rows`` rows, in the order of the rows: of a file, a folder, a pattern or a list.

    The first line names the columns. ``types`` says the polars type of some columns, as ``{"zip": polars.String}``;
    those of the others are guessed from the first 10,000 rows of the first file, and the schema of the first table says
    how. Empty fields are missing, and so are fields that a row has too few. Files may be packed by gzip or zstd. Raises
    `StreamError` where a file is missing, damaged, without the ``columns`` that are wanted, where a later row is not of
    the types, or where there are no rows at all.
    """
    library = polars()
    check_chunk_rows(chunk_rows)
    if len(separator.encode()) != 1:
        raise InvalidSpec(f"`separator` must be one character of ASCII; got {separator!r}.")
    some, schema, wanted = False, dict(types or {}), columns
    for number, file in enumerate(files(path, ENDINGS)):
        blocks, row = _blocks(file), 0
        head = next(blocks, b"")
        present = _guessed(library, file, head, separator, schema)
        checked_columns(file, list(present), list(schema) if number == 0 else wanted)
        wanted = checked_columns(file, list(present), wanted)
        schema = schema if number else dict(present)
        check_schema(file, present, {name: schema[name] for name in wanted})
        for block in chain([head[_first_line(head) :]], blocks):
            _check_end(file, block, separator, len(present))
            with told_plainly(file, f"of rows of the same types, from row {row:,} on"):
                table = _table(library, block, separator, present, wanted)
            some, row = some or len(table) > 0, row + len(table)
            yield from (table[part].rechunk() for part in evenly(len(table), chunk_rows))
    if not some:
        raise StreamError(f"`path` must name files of at least one row; got {str(path)!r}, which has none.")


def _blocks(file: Path) -> Iterator[bytes]:
    """The bytes of a file, cut where rows end."""
    text = b""
    with _opened(file) as opened:
        while True:
            with told_plainly(file, "a whole text file"):
                more = opened.read(BLOCK)
            text += more
            cut = _last_end(text) if more else len(text)
            if cut:
                yield text[:cut]
                text = text[cut:]
            if not more:
                return


@contextmanager
def _opened(file: Path) -> Iterator[IO[bytes] | Any]:
    if file.name.endswith(".gz"):
        with gzip.open(file) as unpacked:
            yield unpacked
    elif file.name.endswith(".zst"):
        try:
            import pyarrow as pa  # noqa: PLC0415  # an extra
        except ImportError as error:
            raise ImportError('.zst is read with pyarrow, which is missing: pip install "bayou[tables]"') from error
        with pa.CompressedInputStream(str(file), "zstd") as unpacked:
            yield unpacked
    else:
        with file.open("rb") as plain:
            yield plain


def _last_end(text: bytes) -> int:
    """Just after the last end of line that is not in quotes; 0 where there is none yet."""
    quotes, end = text.count(b'"'), len(text)
    while (before := text.rfind(b"\n", 0, end)) >= 0:
        quotes -= text.count(b'"', before, end)
        if quotes % 2 == 0:
            return before + 1
        end = before
    return text.rfind(b"\n") + 1 if len(text) > LONGEST else 0


def _first_line(text: bytes) -> int:
    """Just after the first end of line that is not in quotes."""
    end = text.find(b"\n") + 1
    while end and text.count(b'"', 0, end) % 2:
        end = text.find(b"\n", end) + 1
    return end or len(text)


def _guessed(library: Any, file: Path, head: bytes, separator: str, known: Mapping[str, Any]) -> Mapping[str, Any]:
    """The type of each column."""
    with told_plainly(file, "a text file with a line of names and rows of values"):
        names = library.scan_csv(head, separator=separator, infer_schema_length=0).collect_schema().names()
        of_these = {name: known[name] for name in names if name in known}  # polars may take others by their place
        scan = library.scan_csv(head, separator=separator, schema_overrides=of_these, infer_schema_length=FIRST)
        found: Mapping[str, Any] = scan.collect_schema()
    return found


def _table(library: Any, block: bytes, separator: str, schema: Mapping[str, Any], columns: Sequence[str]) -> Any:
    if not block:
        return library.DataFrame(schema=schema)
    return library.scan_csv(block, separator=separator, has_header=False, schema=schema).select(columns).collect()


def _check_end(file: Path, block: bytes, separator: str, n_columns: int) -> None:
    """A file that was cut off ends within a row, whose last fields polars would take as missing."""
    line = block.rpartition(b"\n")[2]
    if not line or b'"' in line:
        return
    n_fields = len(next(csv.reader([line.decode("utf-8", "replace")], delimiter=separator)))
    if n_fields < n_columns:
        raise StreamError(f"{file} must end with a whole row of {n_columns} fields; got {n_fields}: was it cut off?")
