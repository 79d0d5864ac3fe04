"""``bayou predict``: what a model says of each row, to a file or the standard output."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from bayou.cli.errors import Failed
from bayou.cli.shown import warn
from bayou.numerics.broken_rows import SkippedRow
from bayou.numerics.files import polars
from bayou.streams import Skipped, open_tables

ENDINGS = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson")
ROWS = 16_384


class Writer:
    """Tables to one file, part by part; the file appears when it is whole. "-" is the standard output, as CSV.

    A class that a part has and the first had not is left out of CSV and Parquet, whose columns are set by the first.
    """

    def __init__(self, name: str) -> None:
        self._path = None if name == "-" else Path(name)
        self._kind = ".csv" if self._path is None else self._path.suffix
        if self._kind not in ENDINGS:
            raise Failed(f"predictions are written to {', '.join(ENDINGS)} or -; got {name}.")
        self._columns: list[str] | None = None
        self._stream: IO[bytes] | None = None
        self._arrow: Any = None

    def __enter__(self) -> Self:
        if self._path is not None:
            self._beside = self._path.parent / f".bayou-{secrets.token_hex(8)}.tmp"
            self._stream = self._beside.open("xb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is None or self._path is None:
            return
        try:
            if self._arrow is not None:
                self._arrow.close()
            self._stream.close()
            if kind is None:
                self._beside.replace(self._path)
        finally:
            self._beside.unlink(missing_ok=True)

    def write(self, table: Any) -> None:
        """Write one part."""
        if table is None or not len(table):
            return
        first = self._columns is None
        if self._columns is None:
            self._columns = list(table.columns)
        if self._kind in (".csv", ".tsv", ".parquet"):
            table = table.select([name for name in self._columns if name in table.columns])
        if self._kind == ".parquet":
            self._write_arrow(table)
            return
        if self._kind in (".csv", ".tsv"):
            text = table.write_csv(include_header=first, separator="\t" if self._kind == ".tsv" else ",")
        else:
            text = table.write_ndjson()
        if self._stream is None:
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            self._stream.write(text.encode())

    def _write_arrow(self, table: Any) -> None:
        from pyarrow import parquet  # noqa: PLC0415  # an extra

        arrow = table.to_arrow()
        if self._arrow is None:
            self._arrow = parquet.ParquetWriter(self._stream, arrow.schema)
        self._arrow.write_table(arrow.cast(self._arrow.schema))


def run(
    model: str,
    source: str,
    output: str,
    coverage: float,
    format: str | None,
    header: tuple[str, ...] | None,
    on_error: str,
) -> None:
    """Predict every row of a source."""
    from bayou.cli.learn import loaded  # noqa: PLC0415  # it writes predictions, too

    if not 0.0 < coverage < 1.0:
        raise Failed(f"--coverage must lie between 0 and 1; got {coverage}.")
    known, skipped = loaded(model), Skipped()
    with Writer(output) as writer:
        tables = open_tables(source, format, chunk_rows=ROWS, on_error=on_error, skipped=skipped, names=header)
        given = 0
        for table in tables.rows:
            bad = known.bad_inputs(table) if on_error == "skip" else {}
            for row in sorted(bad):
                skipped.add(SkippedRow(source, given + row + 1, None, bad[row]))
            given += len(table)
            good = [row not in bad for row in range(len(table))] if bad else []
            writer.write(known.predict_table(table.filter(polars().Series(good)) if bad else table, coverage))
    if skipped.count:
        warn(str(skipped))
