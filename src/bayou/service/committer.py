"""Group commit: what waits to be written is written in one transaction, and only then answered."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import NamedTuple

from bayou.service.errors import NOT_STORED, NotStored, Refused
from bayou.service.store import Batch, Store

MOST_TOGETHER = 512
SHRINK_EVERY = 64  # versions

Answers = list[Callable[[], None]]


class Entry(NamedTuple):
    """What is to be written, and who is told when it is, or why it could not be. ``is_valid`` says no where what it
    was applied to has been given up meanwhile.
    """

    batch: Batch
    done: Callable[[Refused | None], None]
    is_valid: Callable[[], bool]


class Committer:
    """One thread that writes. ``failed`` is called, before anyone is told, with the models of a group that was lost."""

    def __init__(
        self, store: Store, failed: Callable[[set[int]], None], told: Callable[[list[Callable[[], None]]], None]
    ):
        self._store, self._failed, self._told = store, failed, told
        self._queue: queue.SimpleQueue[Entry | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="bayou-committer", daemon=True)
        self.commits = 0
        self._thread.start()

    def put(self, entry: Entry) -> None:
        """Have something written."""
        self._queue.put(entry)

    def close(self) -> None:
        """Write what waits, and end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        versions = 0
        while True:
            group, ends = self._group()
            valid = [entry for entry in group if entry.is_valid()]
            error: Refused | None = None
            try:
                if valid:
                    self._store.write(entry.batch for entry in valid)
                    self.commits += 1
            except Refused as refused:
                error = refused
                self._failed({entry.batch.model for entry in valid})
            given_up = NotStored(NOT_STORED)
            keep = set(map(id, valid))
            self._told([_tell(entry, error if id(entry) in keep else given_up) for entry in group])
            versions += sum(entry.batch.version is not None for entry in valid)
            if versions >= SHRINK_EVERY:
                self._store.shrink()
                versions = 0
            if ends:
                return

    def _group(self) -> tuple[list[Entry], bool]:
        """All that waits, at least one; and whether that is the end."""
        first = self._queue.get()
        if first is None:
            return [], True
        group = [first]
        while len(group) < MOST_TOGETHER:
            try:
                entry = self._queue.get_nowait()
            except queue.Empty:
                break
            if entry is None:
                return group, True
            group.append(entry)
        return group, False


def _tell(entry: Entry, error: Refused | None) -> Callable[[], None]:
    return lambda: entry.done(error)
