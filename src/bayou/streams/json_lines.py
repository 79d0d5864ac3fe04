"""Rows of JSON lines, an object in each line, in order, some at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from bayou.errors import StreamError
from bayou.numerics.broken_rows import BrokenRow, Skipped, told_rows
from bayou.numerics.byte_blocks import BYTE_ORDER_MARK, count_byte, line_blocks, with_packed
from bayou.numerics.column_types import polars_types, retyped
from bayou.numerics.files import (
    File,
    Source,
    check_chunk_rows,
    checked_columns,
    evenly,
    files,
    no_rows,
    polars,
    told_plainly,
)
from bayou.numerics.json_rows import flattened, gone_through, guessed, nested, parsed, read_as

if TYPE_CHECKING:
    import polars as pl

ENDINGS = with_packed([".jsonl", ".ndjson", ".json"])


def read_json_lines(
    path: Source,
    columns: Sequence[str] | None = None,
    types: Mapping[str, Any] | None = None,
    chunk_rows: int = 65_536,
    on_error: str = "stop",
    skipped: Skipped | None = None,
) -> Iterator[pl.DataFrame]:
    """Tables of at most ``chunk_rows`` rows, in the order of the rows: of a file, a folder, a pattern or a list.

    Each line is one JSON object; a key within an object is a column "a.b". Columns and types are those of the first
    8 MB of the first file, and ``types`` adds to them; keys that come later only are left out, unless ``types`` names
    them. Keys that are absent, and null, are missing. Lists are not supported, but as text, where ``types`` says so. A
    column of text takes whatever comes, as JSON writes it. Files may be packed by gzip or zstd; "-" is standard input.
    Raises `StreamError` where a file is missing, damaged, or where there are no rows at all. A line that is no JSON
    object, or has a value that is not of its type, stops the stream after the rows before it; with
    ``on_error="skip"`` it is left out and told to ``skipped``.
    """
    library, kinds = polars(), polars_types(types)
    check_chunk_rows(chunk_rows)
    some = False
    schema: dict[str, Any] = {}
    flat: dict[str, Any] = {}
    with told_rows(on_error, skipped) as teller:
        for file in files(path, ENDINGS):
            blocks = line_blocks(file)
            head = next(blocks, b"").removeprefix(BYTE_ORDER_MARK)
            row, line = 1, 1
            for block in chain([head], blocks):
                if not schema and block.strip() and (found := guessed(library, file, block)):
                    flat = _chosen(library, file, found, kinds, columns)
                    schema = nested(library, flat, found)
                table, broken = _rows(library, block, schema, flat, kinds)
                given = table[: teller.given(len(table), broken)]
                some = some or len(given) > 0
                yield from (given[part].rechunk() for part in evenly(len(given), chunk_rows))
                teller.tell(file, row, line, broken)
                row, line = row + len(table) + len(broken), line + count_byte(block, b"\n")
        if not some:
            raise no_rows(path, teller.skipped.count)


def _chosen(
    library: Any, file: File, found: Mapping[str, Any], kinds: Mapping[str, Any], columns: Sequence[str] | None
) -> dict[str, Any]:
    """The types that the wanted columns are read as."""
    known = flattened(library, file, {name: kind for name, kind in found.items() if name not in kinds}) | dict(kinds)
    order = [*(name for name in flattened(library, file, found) if name in known)]
    order += [name for name in known if name not in order]
    chosen = {name: known[name] for name in checked_columns(file, order, columns)}
    for name, kind in chosen.items():
        if isinstance(kind, library.List):
            raise StreamError(
                f"column {name!r} of {file} must hold single values; got {kind}: choose others by `columns`, or have "
                f"it as text by `types`."
            )
    return {name: read_as(library, kind) for name, kind in chosen.items()}


def _rows(
    library: Any, block: bytes, schema: Mapping[str, Any], flat: Mapping[str, Any], kinds: Mapping[str, Any]
) -> tuple[Any, list[BrokenRow]]:
    """The rows of a block, and those that cannot be read, which are looked for only where there are any."""
    types = {name: kind for name, kind in kinds.items() if name in flat}
    if not schema:  # no line so far has been an object that has a key
        return gone_through(library, block, schema, flat, types)
    try:
        with told_plainly("a block", "readable"):
            table, lost = retyped(parsed(library, block, schema, flat), types)
    except StreamError:
        return gone_through(library, block, schema, flat, types)
    return gone_through(library, block, schema, flat, types) if lost else (table, [])
