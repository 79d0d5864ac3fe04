"""How far the work is: shards done, rows per second and bytes moved, as a line that moves or as you like it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

WIDTH = 24


class Progress(NamedTuple):
    """How far a stage of the work is."""

    stage: str
    done: int
    shards: int
    rows: int
    seconds: float
    bytes_moved: int

    def __str__(self) -> str:
        full = WIDTH * self.done // max(self.shards, 1)
        rate = self.rows / max(self.seconds, 1e-9)
        bar = "█" * full + "░" * (WIDTH - full)
        moved = f"{self.bytes_moved / 1e6:,.1f} MB moved"
        return f"{self.stage} {bar} {self.done}/{self.shards} shards, {rate:,.0f} rows/s, {moved}"


Show = Callable[[Progress], None]


class Stage:
    """Counts what is done, and tells of it."""

    def __init__(self, name: str, rows: list[int], n_bytes: int, show: Show | None) -> None:
        self._name, self._rows, self._bytes, self._show = name, rows, n_bytes, show
        self._started, self._done, self._learnt = time.perf_counter(), 0, 0

    def __call__(self, shard: int) -> None:
        self._done += 1
        self._learnt += self._rows[shard]
        if self._show is not None:
            moved = self._bytes * self._done
            self._show(Progress(self._name, self._done, len(self._rows), self._learnt, self.seconds, moved))

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.perf_counter() - self._started


def bar(progress: Progress, to: Any = None) -> None:
    """A line that moves; it stays when the stage is done."""
    stream = sys.stderr if to is None else to
    end = "\n" if progress.done == progress.shards else ""
    stream.write(f"\r{progress}{end}")
    stream.flush()
