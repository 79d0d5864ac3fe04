"""A file that others append to while it is read."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from bayou.service.sources.source import Item, SourceAway, SourceError
from bayou.service.sources.text_rows import COMMAS, JSON, TABS, TextRows

BLOCK = 2**20  # bytes read at a time
KEPT = 256  # bytes before a place, by which the file is known again
FORMATS = {".csv": COMMAS, ".tsv": TABS, ".jsonl": JSON, ".ndjson": JSON, ".json": JSON}
PACKED = {".gz", ".zst", ".bz2", ".xz", ".zip", ".parquet", ".arrow", ".ipc"}


class GrowingFile:
    """Lines of a file, each once it is whole. The file may grow, and nothing else.

    The bytes before what is read next are compared with those that were read: whoever cuts the file short, writes it
    anew or puts another in its place is found out, by the next read or after a start.
    """

    alone = ""

    def __init__(self, path: str) -> None:
        self.path = Path(path).resolve()
        self.name = f"file:{self.path}"
        if self.path.suffix in PACKED:
            raise SourceError(f"a file to follow must be JSON lines or CSV, not packed; got {path}.")
        self._check_kind()
        self._file: BinaryIO | None = None
        self._rows = TextRows(None)
        self._items: list[Item] = []
        self._window, self._start = b"", 0  # what was read last and what stood before it; where that begins

    async def open(self, place: dict[str, Any] | None) -> None:
        await asyncio.to_thread(self._open, place or {})

    def _open(self, place: dict[str, Any]) -> None:
        self._close()
        at = int(place.get("bytes", 0))
        self._check_kind()
        try:
            self._file = self.path.open("rb")
        except OSError as error:
            if at:
                raise SourceError(f"{self.path} must be there, as {at:,} bytes of it were learnt; {error}.") from error
            raise SourceAway(self._why_away(error)) from error
        self._start = max(at - KEPT, 0)
        self._file.seek(self._start)
        self._window = self._file.read(at - self._start)
        if at and (len(self._window) < at - self._start or _digest(self._window) != place["digest"]):
            raise SourceError(
                f"{self.path} must be the file that was followed; the bytes before {at:,}, where it goes on, are not "
                "those that were learnt: it was cut short or replaced."
            )
        format = place.get("format") or FORMATS.get(self.path.suffix)
        self._rows = TextRows(format, at, int(place.get("lines", 0)), place.get("names"))
        self._items = []

    def _check_kind(self) -> None:
        """Raise unless it is a file, or may become one: to open a pipe would wait for whoever writes."""
        try:
            mode = self.path.stat().st_mode
        except OSError:  # which is told when it is opened
            return
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "something else"
            raise SourceError(f"what is followed must be a file; {self.path} is {kind}.")

    def _why_away(self, error: OSError) -> str:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            return f"{self.path} cannot be read yet; {error}."
        folder = self.path.parent
        more = "" if folder.is_dir() else f"; the folder {folder} is missing, too"
        return f"{self.path} is not there yet{more}."

    async def read(self, most: int) -> list[Item] | None:
        if not self._items:
            await asyncio.to_thread(self._read)
        items, self._items = self._items[:most], self._items[most:]
        return items

    def _read(self) -> None:
        """The next block, if the file is what it was."""
        assert self._file is not None
        now = self._start + len(self._window)
        kept = self._window[-KEPT:]
        self._check_same(now)
        self._file.seek(now - len(kept))
        found = self._file.read(len(kept) + BLOCK)
        if not found.startswith(kept):
            raise SourceError(f"{self.path} must only grow; what was read of it is no longer there.")
        data = found[len(kept) :]
        if not data:
            return
        keep = min(len(self._rows.rest) + KEPT, len(self._window))
        self._window, self._start = self._window[len(self._window) - keep :] + data, now - keep
        self._items = self._rows.feed(data)

    def _check_same(self, now: int) -> None:
        assert self._file is not None
        mine = os.fstat(self._file.fileno())
        try:
            there = self.path.stat()
        except OSError as error:
            raise SourceError(f"{self.path} must stay where it is; {error}.") from error
        if (mine.st_dev, mine.st_ino) != (there.st_dev, there.st_ino):
            raise SourceError(f"{self.path} must stay the same file; another is in its place.")
        if mine.st_size < now:
            raise SourceError(f"{self.path} must only grow; it was cut short to {mine.st_size:,} of {now:,} bytes.")

    def place(self, end: Any) -> dict[str, Any]:
        at, lines = end
        before = self._window[max(at - KEPT, 0) - self._start : at - self._start]
        told = {"bytes": at, "lines": lines, "digest": _digest(before), "format": self._rows.format}
        return told | ({} if self._rows.names is None else {"names": self._rows.names})

    async def learnt(self, end: Any) -> None:
        """The place is all that there is to keep."""

    async def close(self) -> None:
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:32]
