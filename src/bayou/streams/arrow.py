"""Tables that are in memory already, or come from elsewhere in this process, in order, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bayou.errors import InvalidSpec
from bayou.numerics.broken_rows import Skipped, told_rows
from bayou.numerics.column_types import polars_types, retyped_rows
from bayou.numerics.files import check_chunk_rows, checked_columns, evenly, no_rows, polars, told_plainly

if TYPE_CHECKING:
    import polars as pl


def read_arrow(
    data: Any,
    columns: Sequence[str] | None = None,
    chunk_rows: int = 65_536,
    types: Mapping[str, Any] | None = None,
    on_error: str = "stop",
    skipped: Skipped | None = None,
) -> Iterator[pl.DataFrame]:
    """Tables of at most ``chunk_rows`` rows of polars, pandas, pyarrow, or anything with ``__arrow_c_stream__``.

    Nothing is copied that Arrow holds already. A DataFrame of pandas is turned into Arrow some rows at a time, and its
    columns keep the types of the first of them; its index is left out. A reader, as a `pyarrow.RecordBatchReader`, is
    read once, a batch at a time. ``types`` says what columns are cast to; a row that cannot be stops the stream, or is
    left out and told to ``skipped`` with ``on_error="skip"``. Raises `StreamError` where a column is missing or of a
    kind that polars does not have, where the stream breaks, or where there are no rows at all.
    """
    library, kinds = polars(), polars_types(types)
    check_chunk_rows(chunk_rows)
    name, row, some = f"the {type(data).__name__}", 1, False
    first: dict[str, Any] = {}
    with told_rows(on_error, skipped) as teller:
        for table in _tables(library, name, data, chunk_rows):
            wanted = checked_columns(name, table.columns, columns)
            checked_columns(name, table.columns, list(kinds))
            first = first or {
                name: kind if kind != library.Null else library.String for name, kind in table.schema.items()
            }
            typed = {name: kinds.get(name, first[name]) for name in wanted}
            given, tell = retyped_rows(name, row, table, typed, teller)
            some = some or len(given) > 0
            yield from (given[part].select(wanted).rechunk() for part in evenly(len(given), chunk_rows))
            tell()
            row += len(table)
        if not some:
            raise no_rows(name, teller.skipped.count)


def is_table(data: Any) -> bool:
    """Whether it can be read as a stream of Arrow's."""
    home = type(data).__module__.partition(".")[0]
    return (home == "pandas" and hasattr(data, "iloc") and hasattr(data, "columns")) or any(
        hasattr(data, method) for method in ("__arrow_c_stream__", "__arrow_c_array__")
    )


def _tables(library: Any, name: str, data: Any, chunk_rows: int) -> Iterator[Any]:
    """Tables of polars."""
    if isinstance(data, library.DataFrame):
        yield data
    elif hasattr(data, "iloc") and is_table(data):
        for start in range(0, len(data), chunk_rows):
            with told_plainly(name, f"a table of columns that Arrow can hold, from row {start + 1:,} on"):
                table = library.from_pandas(data.iloc[start : start + chunk_rows])
            yield table
    elif is_table(data):
        batches = _batches(name, data)
        while True:
            with told_plainly(name, "a stream of tables of Arrow"):
                batch = next(batches, None)
            if batch is None:
                return
            for start in range(0, batch.num_rows, chunk_rows):  # a slice costs nothing, but polars indexes strings
                with told_plainly(name, "a table of columns that polars can hold"):
                    table = library.from_arrow(batch.slice(start, chunk_rows))
                yield table
    else:
        raise InvalidSpec(
            f"`data` must be a table of polars, pandas or pyarrow, or have __arrow_c_stream__; got {type(data)}."
        )


def _batches(name: str, data: Any) -> Iterator[Any]:
    try:
        import pyarrow as pa  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise ImportError('Arrow is read with pyarrow, which is missing: pip install "bayou[tables]"') from error
    if isinstance(data, pa.RecordBatchReader):
        yield from data
    elif isinstance(data, pa.Table):
        yield from data.to_batches()
    elif hasattr(data, "__arrow_c_stream__"):
        with told_plainly(name, "a stream of tables of Arrow"):
            reader = pa.RecordBatchReader.from_stream(data)
        yield from reader
    else:
        with told_plainly(name, "a table of Arrow"):
            batch = pa.record_batch(data)
        yield batch
