"""``bayou predict``: what a model says of each row, to a file or the standard output."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from bayou.cli.errors import Failed
from bayou.cli.places import require_folder
from bayou.cli.shown import warn
from bayou.numerics.broken_rows import SkippedRow
from bayou.numerics.files import polars
from bayou.streams import Skipped, open_tables

ENDINGS = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson")
ROWS = 16_384


class Writer:
    """Tables to one file, part by part; the file appears when it is whole. "-" is the standard output, as CSV.

    A class that a part has and the first had not is left out of CSV and Parquet, whose columns are set by the first.
    Where a run may be taken up (``goes_on``), rows are first written to the name with ".part" behind it, which stays
    if the run ends before its time; ``known`` is the `mark` up to which it is to be taken up, ``late`` that there must
    be one.
    """

    def __init__(
        self, name: str, goes_on: bool = False, known: dict[str, Any] | None = None, late: bool = False
    ) -> None:
        self._path = None if name == "-" else Path(name)
        self._kind = ".csv" if self._path is None else self._path.suffix
        if self._kind not in ENDINGS:
            raise Failed(f"predictions are written to {', '.join(ENDINGS)} or -; got {name}.")
        self._goes_on = goes_on and self._path is not None and self._kind != ".parquet"
        if late and not self._goes_on:
            raise Failed(f"predictions of a run that is taken up go on in .csv, .tsv or .jsonl; got {name}.")
        if late and known is None:
            raise Failed("the run was begun without --predictions; those of its first rows are not known any more.")
        self.is_whole = True
        self._mark: dict[str, Any] = {"bytes": 0, "columns": None} if known is None else dict(known)
        self._columns: list[str] | None = self._mark["columns"]
        self._stream: IO[bytes] | None = None
        self._arrow: Any = None

    def __enter__(self) -> Self:
        if self._path is None:
            return self
        if self._goes_on:
            self._beside = self._path.with_name(f"{self._path.name}.part")
            self._stream = self._taken_up() if self._mark["bytes"] else self._beside.open("wb")
        else:
            self._beside = self._path.parent / f".bayou-{secrets.token_hex(8)}.tmp"
            self._stream = self._beside.open("xb")
        return self

    def _taken_up(self) -> IO[bytes]:
        """What was written up to the mark; what came after it is written anew."""
        wanted = self._mark["bytes"]
        size = self._beside.stat().st_size if self._beside.exists() else 0
        if size < wanted:
            raise Failed(f"{self._beside} must have the {wanted:,} bytes that the run has written; got {size:,}.")
        stream = self._beside.open("r+b")
        stream.truncate(wanted)
        stream.seek(wanted)
        return stream

    def mark(self) -> dict[str, Any]:
        """How far it has come, safe on disk."""
        if self._goes_on and self._stream is not None and not self._stream.closed:
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._mark = {"bytes": self._stream.tell(), "columns": self._columns}
        return self._mark

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is None or self._path is None:
            return
        stays = False
        try:
            if self._arrow is not None:
                self._arrow.close()
            stays = self._goes_on and (self._mark["bytes"] > 0 if kind else not self.is_whole)
            if kind is None:
                self.mark()
            self._stream.close()
            if kind is None and not stays:
                self._beside.replace(self._path)
        finally:
            if not stays:
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
    require_folder(output)
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
