"""Any source of rows as a stream: the reader is found by what the source is, how it is called, or its first bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from bayou.errors import InvalidSpec
from bayou.numerics.broken_rows import Skipped
from bayou.numerics.byte_blocks import unpacked, with_packed
from bayou.numerics.files import Piped, Source, check_chunk_rows, files, is_piped, told_plainly
from bayou.numerics.sniffing import named, sniffed
from bayou.numerics.sparse_table import SparseTable
from bayou.streams import arrow, csv, ipc, json_lines, libsvm, parquet, vowpal

READERS: dict[str, Callable[..., Iterator[Any]]] = {
    "csv": csv.read_csv,
    "tsv": partial(csv.read_csv, separator="\t"),
    "parquet": parquet.read_parquet,
    "ipc": ipc.read_ipc,
    "json": json_lines.read_json_lines,
    "libsvm": libsvm.read_libsvm,
    "vw": vowpal.read_vw,
}
ENDINGS: dict[str, Sequence[str]] = {
    "csv": with_packed([".csv"]),
    "tsv": with_packed([".tsv"]),
    "parquet": parquet.ENDINGS,
    "ipc": ipc.ENDINGS,
    "json": json_lines.ENDINGS,
    "libsvm": libsvm.ENDINGS,
    "vw": vowpal.ENDINGS,
}
WITHOUT_COLUMNS = ("libsvm", "vw")


class Tables(NamedTuple):
    """A source that was opened: its format, and its rows as tables."""

    format: str
    rows: Iterator[Any]


def open_tables(
    source: Any,
    format: str | None = None,
    chunk_rows: int = 65_536,
    on_error: str = "stop",
    skipped: Skipped | None = None,
    names: Sequence[str] | None = None,
) -> Tables:
    """The rows of a source as a `bayou.TableModel` learns them, and what they are.

    As `open_source` gives them, but those of libsvm and Vowpal Wabbit's text as `SparseTable`: a column of labels, and
    entries by index or by name. Indices of libsvm are what the text has, from 0 or 1 on.
    """
    if format is None and not arrow.is_table(source):
        format, source = _found(source)
    care: dict[str, Any] = {"chunk_rows": chunk_rows, "on_error": on_error, "skipped": skipped}
    if format not in WITHOUT_COLUMNS:
        return Tables(format or "table", open_source(source, format, names=names, **care))
    _check_names(format, names)
    if format == "vw":
        return Tables(format, vowpal.read_vw_rows(source, **care))
    return Tables(format, map(SparseTable.of_libsvm, libsvm.read_libsvm(source, zero_based=True, **care)))


def _check_names(format: str, names: Sequence[str] | None) -> None:
    if names is not None and format not in ("csv", "tsv"):
        raise InvalidSpec(f"`names` must be None for {format}, which has its own; got {list(names)!r}.")


def open_source(
    source: Any,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    types: Mapping[str, Any] | None = None,
    chunk_rows: int = 65_536,
    on_error: str = "stop",
    skipped: Skipped | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[Any]:
    """The rows of a source, as its reader gives them: `read_csv`, `read_parquet`, `read_ipc`, `read_json_lines`,
    `read_libsvm`, `read_vw` or `read_arrow`.

    ``source`` is a file, a folder, a pattern or a list of these, told by their endings; "-" for standard input, or an
    open stream of bytes, told by their first bytes; or a table of polars, pandas or Arrow. ``format`` says it where
    nothing else does: csv, tsv, parquet, ipc, json, libsvm or vw. The rest goes to the reader; libsvm and vw have no
    ``columns`` or ``types``, and ``names`` are for csv and tsv without a line of them. Raises `StreamError` for files
    of several formats, or of one that is not known.
    """
    check_chunk_rows(chunk_rows)
    if format is not None and format not in READERS:
        raise InvalidSpec(f"`format` must be one of {', '.join(READERS)}; got {format!r}.")
    care: dict[str, Any] = {"chunk_rows": chunk_rows, "on_error": on_error, "skipped": skipped}
    if arrow.is_table(source):
        for name, value in (("format", format), ("names", names)):
            if value is not None:
                raise InvalidSpec(f"`{name}` must be None for a table; got {value!r}.")
        return arrow.read_arrow(source, columns=columns, types=types, **care)
    if format is None:
        format, source = _found(source)
    _check_names(format, names)
    if names is not None:
        care["names"] = names
    if format not in WITHOUT_COLUMNS:
        return READERS[format](source, columns=columns, types=types, **care)
    for word, told in (("columns", columns), ("types", types)):
        if told:
            raise InvalidSpec(f"`{word}` must be None for {format}, which has no columns to name; got {told!r}.")
    return READERS[format](source, **care)


def _found(source: Source) -> tuple[str, Any]:
    """The format of a source, and what to read it from."""
    if source == "-" or hasattr(source, "read") or is_piped(source):
        [stream] = files(source, [])
        with told_plainly(stream, "a stream that can be read"):
            inside = unpacked(stream)
        if inside is not stream:
            stream = Piped(inside, stream.name)
        return sniffed(stream), stream
    return named(source, ENDINGS), source
