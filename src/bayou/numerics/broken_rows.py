"""Rows that cannot be read: the first stops a stream, or all are left out, counted, and told by file and line."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bayou.errors import InvalidSpec, SkippedRows, StreamError
from bayou.numerics.files import File

KEPT = 1000  # rows whose reasons are kept; all are counted
SHOWN = 60  # characters of a value in a message


class BrokenRow(NamedTuple):
    """A row that cannot be read: which of its block it is, how many lines are before it there, and why not."""

    place: int
    lines_before: int | None
    reason: str


class SkippedRow(NamedTuple):
    """A row that was left out. Rows and lines are counted from 1; what has no lines has none."""

    file: str
    row: int
    line: int | None
    reason: str

    def __str__(self) -> str:
        where = f"row {self.row:,}" if self.line is None else f"line {self.line:,} (row {self.row:,})"
        return f"{self.file}, {where}, {self.reason}."


@dataclass
class Skipped:
    """The rows that a stream left out: how many in all, how many of each file, and the first 1,000 with reasons.

    >>> skipped = Skipped()
    >>> skipped.add(SkippedRow("rows.csv", 7, 8, "must have 3 fields; got 2"))
    >>> print(skipped)
    1 row was skipped:
    rows.csv, line 8 (row 7), must have 3 fields; got 2.
    """

    count: int = 0
    rows: list[SkippedRow] = field(default_factory=list)
    by_file: dict[str, int] = field(default_factory=dict)

    def add(self, row: SkippedRow) -> None:
        self.count += 1
        self.by_file[row.file] = self.by_file.get(row.file, 0) + 1
        if len(self.rows) < KEPT:
            self.rows.append(row)

    def __str__(self) -> str:
        if not self.count:
            return "no row was skipped"
        said = "1 row was skipped:" if self.count == 1 else f"{self.count:,} rows were skipped:"
        more = [f"and {self.count - len(self.rows):,} more"] if self.count > len(self.rows) else []
        return "\n".join([said, *map(str, self.rows), *more])


@dataclass(frozen=True)
class Teller:
    """What happens to rows that cannot be read."""

    stops: bool
    skipped: Skipped

    def tell(self, file: File | str, row: int, line: int | None, broken: Iterable[BrokenRow]) -> None:
        """Of a block that begins with such a row and line, counted from 1: raise the first, or write all down."""
        for one in broken:
            at = None if line is None or one.lines_before is None else line + one.lines_before
            told = SkippedRow(str(file), row + one.place, at, one.reason)
            if self.stops:
                raise StreamError(str(told))
            self.skipped.add(told)

    def given(self, n_whole: int, broken: Sequence[BrokenRow]) -> int:
        """How many of the whole rows of a block are given: those before the first that stops the stream."""
        return broken[0].place if broken and self.stops else n_whole


@contextmanager
def told_rows(on_error: str, skipped: Skipped | None) -> Iterator[Teller]:
    """What is skipped is told to the list that was given, or as a warning in the end."""
    if on_error not in ("stop", "skip"):
        raise InvalidSpec(f"`on_error` must be 'stop' or 'skip'; got {on_error!r}.")
    if not (skipped is None or isinstance(skipped, Skipped)):
        raise InvalidSpec(f"`skipped` must be a Skipped(), to be filled; got {skipped!r}.")
    teller = Teller(on_error == "stop", Skipped() if skipped is None else skipped)
    try:
        yield teller
    finally:
        if skipped is None and teller.skipped.count:
            first = teller.skipped.rows[0]
            text = f"{teller.skipped.count:,} rows were skipped, the first: {first} `skipped` would list them."
            warnings.warn(text, SkippedRows, stacklevel=4)


def shown(value: Any) -> str:
    """A value as a message has it."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
