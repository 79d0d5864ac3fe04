"""Rows of Parquet files, in order, some at a time.

A file is read in blocks of whole row groups, or of parts of one where it is large: that is both as fast as polars reads
all of it and flat in memory, whoever wrote the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayou.errors import StreamError
from bayou.numerics.broken_rows import Skipped, told_rows
from bayou.numerics.byte_blocks import on_disk
from bayou.numerics.column_types import polars_types, retyped_rows
from bayou.numerics.files import (
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

BLOCK = 2**17  # rows that are read at a time, at least where there are as many
WHOLE = "a whole Parquet file"
ENDINGS = [".parquet", ".pq"]


def read_parquet(
    path: Source,
    columns: Sequence[str] | None = None,
    chunk_rows: int = 65_536,
    types: Mapping[str, Any] | None = None,
    on_error: str = "stop",
    skipped: Skipped | None = None,
) -> Iterator[pl.DataFrame]:
    """Tables of at most ``chunk_rows`` rows, in the order of the rows: of a file, a folder, a pattern or a list.

    The files of a folder or a pattern are read by name, and must have the columns and types of the first. Nothing is
    read ahead of the block of rows that the next table is of. Standard input, "-", is written to a temporary file:
    Parquet is read from its end. ``types`` says what columns are cast to; a row that cannot be stops the stream, or is
    left out and told to ``skipped`` with ``on_error="skip"``. Raises `StreamError` where a file is missing, damaged,
    without the ``columns`` that are wanted, or where there are no rows at all.
    """
    library, arrow, kinds = polars(), _pyarrow_parquet(), polars_types(types)
    check_chunk_rows(chunk_rows)
    some, schema = False, None
    with told_rows(on_error, skipped) as teller:
        for file in files(path, ENDINGS):
            with on_disk(file) as place:
                with told_plainly(file, WHOLE):
                    scan = library.scan_parquet(place, glob=False)
                    present = scan.collect_schema()
                    wanted = checked_columns(file, present.names(), columns)
                    blocks = _blocks(_row_groups(arrow, place), max(BLOCK, chunk_rows))
                if not blocks:
                    continue  # a table without rows may not know its types
                schema = schema or {name: present[name] for name in wanted}
                checked_columns(file, present.names(), [*schema, *kinds])
                check_schema(file, present, schema)
                for start, count in blocks:
                    with told_plainly(file, f"{WHOLE}, from row {start:,} to {start + count:,}"):
                        table = scan.select(list(schema)).slice(start, count).collect()
                    if len(table) != count:
                        raise StreamError(f"{file} must have {count:,} rows from row {start:,} on; got {len(table):,}.")
                    table, tell = retyped_rows(file, start + 1, table, kinds, teller)
                    some = some or len(table) > 0
                    # Nothing is copied, but where a part is of several pieces.
                    yield from (table[part].rechunk() for part in evenly(len(table), chunk_rows))
                    tell()
        if not some:
            raise no_rows(path, teller.skipped.count)


def _pyarrow_parquet() -> Any:
    """What tells where row groups begin, which polars does not."""
    try:
        from pyarrow import parquet  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise ImportError('Parquet is read with pyarrow, which is missing: pip install "bayou[tables]"') from error
    return parquet


def _row_groups(arrow: Any, file: Path) -> list[int]:
    """How many rows each has."""
    metadata = arrow.read_metadata(file)
    return [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)]


def _blocks(row_groups: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Where to read how many rows: some small groups together, parts of a large one."""
    blocks, start, count = [], 0, 0
    for size in row_groups:
        if count and count + size > most:
            blocks.append((start, count))
            start, count = start + count, 0
        count += size
        for parts in range(-(-count // most), 1, -1):
            part = -(-count // parts)
            blocks.append((start, part))
            start, count = start + part, count - part
    return [*blocks, (start, count)] if count else blocks
