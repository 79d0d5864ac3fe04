"""Rows of Arrow IPC files and streams (Feather too), in order, a batch at a time.

A stream is read front to back. A file is read from its end, where the places of its batches are: what comes packed or
through a pipe is written to a temporary file first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayou.numerics.broken_rows import Skipped, told_rows
from bayou.numerics.byte_blocks import on_disk, opened, with_packed
from bayou.numerics.column_types import polars_types, retyped_rows
from bayou.numerics.files import (
    File,
    Piped,
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

WHOLE = "a whole Arrow IPC file or stream"
ENDINGS = with_packed([".arrow", ".arrows", ".feather", ".ipc"])
MARK = b"ARROW1"  # that files begin with


def read_ipc(
    path: Source,
    columns: Sequence[str] | None = None,
    chunk_rows: int = 65_536,
    types: Mapping[str, Any] | None = None,
    on_error: str = "stop",
    skipped: Skipped | None = None,
) -> Iterator[pl.DataFrame]:
    """Tables of at most ``chunk_rows`` rows, in the order of the rows: of a file, a folder, a pattern or a list.

    Files and streams of Arrow IPC are told apart by their first bytes; "-" is standard input, from which a file is
    written to a temporary one. One batch is held at a time, as large as it was written. ``types`` says what columns are
    cast to; a row that cannot be stops the stream, or is left out and told to ``skipped`` with ``on_error="skip"``.
    Raises `StreamError` where a file is missing, damaged, without the ``columns`` that are wanted, or where there are
    no rows at all. A stream, other than a file, that was cut off between two batches cannot be told from a whole one.
    """
    library, kinds = polars(), polars_types(types)
    check_chunk_rows(chunk_rows)
    some, schema = False, None
    with told_rows(on_error, skipped) as teller:
        for file in files(path, ENDINGS):
            row = 1
            for batch in _batches(file, columns, list(kinds)):
                with told_plainly(file, f"{WHOLE}, from row {row:,} on"):
                    table = library.from_arrow(batch)
                schema = schema or dict(table.schema)
                checked_columns(file, table.columns, list(schema))
                check_schema(file, table.schema, schema)
                table, tell = retyped_rows(file, row, table.select(list(schema)), kinds, teller)
                some = some or len(table) > 0
                yield from (table[part].rechunk() for part in evenly(len(table), chunk_rows))
                tell()
                row += batch.num_rows
        if not some:
            raise no_rows(path, teller.skipped.count)


def _batches(file: File, columns: Sequence[str] | None, typed: Sequence[str]) -> Iterator[Any]:
    """The batches that have rows, with the wanted columns; nothing in them points beyond their bytes."""
    with _reader(file) as (schema, batches):
        wanted = checked_columns(file, schema.names, columns)
        checked_columns(file, schema.names, typed)
        while True:
            with told_plainly(file, WHOLE):
                batch = next(batches, None)
                if batch is None:
                    return
                batch.validate(full=True)
                chosen = batch.select(wanted)
            if chosen.num_rows:
                yield chosen


@contextmanager
def _reader(file: File) -> Iterator[tuple[Any, Iterator[Any]]]:
    """The schema, and what gives the batches."""
    arrow = _pyarrow()
    with opened(file) as source:
        stream = source if isinstance(source, Piped) else Piped(source, str(file))
        with told_plainly(file, WHOLE):
            is_file = stream.peek(len(MARK)).startswith(MARK)
        if not is_file:
            with told_plainly(file, WHOLE):
                reader = arrow.ipc.open_stream(arrow.PythonFile(stream, mode="r"))
            yield reader.schema, iter(reader)
            return
        is_plain = isinstance(file, Path) and not file.name.endswith((".gz", ".zst"))
        with on_disk(file if is_plain else stream) as place, arrow.OSFile(str(place)) as opened_file:
            with told_plainly(file, WHOLE):
                reader = arrow.ipc.open_file(opened_file)
            yield reader.schema, (reader.get_batch(k) for k in range(reader.num_record_batches))


def _pyarrow() -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415  # an extra
        import pyarrow.ipc  # noqa: PLC0415
    except ImportError as error:
        raise ImportError('Arrow IPC is read with pyarrow, which is missing: pip install "bayou[tables]"') from error
    return pa
