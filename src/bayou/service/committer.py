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
        self._turn, self._begun = threading.Lock(), 0  # what the thread has yet to bring to its end
        self._writing = threading.Lock()  # from asking who is valid until that is written
        self._thread = threading.Thread(target=self._run, name="bayou-committer", daemon=True)
        self.commits, self._versions = 0, 0
        self._thread.start()

    def put(self, entry: Entry) -> None:
        """Have something written."""
        with self._turn:
            self._begun += 1
            self._queue.put(entry)

    def put_small(self, entry: Entry) -> None:
        """Have something small written by the loop, who asks: at once, unless others wait, or the disk would keep it.

        Two threads that hand it to each other would take longer than the writing does.
        """
        with self._turn:
            if self._begun or self._store.waits_for_disk:
                self._begun += 1
                self._queue.put(entry)
                return
            tell = self._written([entry])
        for each in tell:
            each()
        self.look_at_log()

    def settle(self) -> None:
        """Return once nobody is being written who was found valid before this was asked."""
        with self._writing:
            pass

    def look_at_log(self) -> None:
        """Have the thread lay the log where it belongs, if it has become long."""
        if self._store.wants_checkpoint:
            self.put(_NOTHING)

    def close(self) -> None:
        """Write what waits, and end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            group, ends = self._group()
            self._told(self._written(group))
            if self._versions >= SHRINK_EVERY:
                self._store.shrink()
                self._versions = 0
            if self._store.wants_checkpoint:
                self._store.checkpoint()
            with self._turn:
                self._begun -= len(group)
            if ends:
                return

    def _written(self, group: list[Entry]) -> Answers:
        """Write all of them that still count; returns what tells everyone how it went."""
        with self._writing:
            return self._written_alone(group)

    def _written_alone(self, group: list[Entry]) -> Answers:
        valid = [entry for entry in group if entry.is_valid()]
        error: Refused | None = None
        try:
            if valid:
                self._store.write([entry.batch for entry in valid])
                self.commits += 1
        except Exception as failed:  # of the disk, or a defect: everyone waits for this thread, so it goes on
            error = failed if isinstance(failed, Refused) else NotStored(f"{NOT_STORED} ({failed!r:.200})")
            self._failed({entry.batch.model for entry in valid})
        given_up, keep = NotStored(NOT_STORED), set(map(id, valid))
        self._versions += sum(entry.batch.version is not None for entry in valid)
        return [_tell(entry, error if id(entry) in keep else given_up) for entry in group]

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


_NOTHING = Entry(Batch(), lambda error: None, lambda: False)
