"""One SQLite file: models, the journal of what happened to them, versions, answers to keys, offsets of sources.

What is said to be stored is in a committed transaction. With ``full``, it survives the loss of power, as far as the
disk keeps its word; with ``normal``, the death of the process by any means, while a loss of power may take the last
commits, of which each is whole or not there. The file is locked: one server has it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import orjson

from bayou.errors import BayouError
from bayou.service.errors import NotStored
from bayou.service.limits import MOST_ANSWERED, MOST_KEYS, MOST_VERSIONS

SCHEMA = 2
SYNC = ("normal", "full")
FREED = 2000  # pages that are given back at a time
PAGE, PAGES_OF_COMMIT = 4096, 4  # bytes; and how many pages a small commit adds to the log, roughly
CHECKPOINT_EVERY = 4000  # pages of the log: many are written again and again, and laid where they belong but once
ASKED, BACK = "", "back to "  # labels of versions that were asked for without one, and of those that went back
KINDS = ("label IS NULL", f"label GLOB '{BACK}*'", f"label NOT GLOB '{BACK}*'")  # of versions: as many of each are kept
INSERT = "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?)"
TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE models (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE NOT NULL, at REAL NOT NULL,
    settings BLOB NOT NULL);
CREATE TABLE journal (seq INTEGER PRIMARY KEY, model INTEGER NOT NULL, kind TEXT NOT NULL, at REAL NOT NULL,
    rows INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX journal_of_model ON journal (model, seq);
CREATE TABLE versions (model INTEGER NOT NULL, number INTEGER NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL,
    label TEXT, rows INTEGER NOT NULL, size INTEGER NOT NULL, state BLOB NOT NULL, PRIMARY KEY (model, number));
CREATE TABLE answers (model INTEGER NOT NULL, key TEXT NOT NULL, seq INTEGER NOT NULL, digest BLOB NOT NULL,
    answer BLOB NOT NULL, PRIMARY KEY (model, key)) WITHOUT ROWID;
CREATE TABLE offsets (model INTEGER NOT NULL, source TEXT NOT NULL, next INTEGER NOT NULL,
    place TEXT, PRIMARY KEY (model, source)) WITHOUT ROWID;
"""


class Known(NamedTuple):
    """A model of the store."""

    id: int
    name: str
    at: float
    settings: dict[str, Any]


class Version(NamedTuple):
    """A state that was kept: after which row of the journal, when, under which label, how much was learnt by then."""

    number: int
    seq: int
    at: float
    label: str | None
    rows: int
    size: int


class Journalled(NamedTuple):
    """A row of the journal."""

    seq: int
    model: int
    kind: str
    at: float
    rows: int
    body: bytes


class Answered(NamedTuple):
    """What was answered to a key, and a digest of what was asked."""

    key: str
    digest: bytes
    answer: bytes


class Position(NamedTuple):
    """How far a source was read: how many rows were learnt, and the place after them in the source's own words."""

    next: int = 0
    place: str | None = None


class Batch(NamedTuple):
    """What is written together: a row of the journal, with the answer to its key, the offset of its source, and the
    version that it makes. Or the model is forgotten, when numbers up to ``forgotten_at`` have been given.
    """

    row: Journalled | None = None
    answer: Answered | None = None
    offset: tuple[str, Position] | None = None
    version: tuple[Version, bytes] | None = None
    model: int = 0
    forgotten_at: int | None = None


class Store:
    """The file. One thread writes; any may read."""

    def __init__(self, path: str, sync: str = "normal") -> None:
        if sync not in SYNC:
            raise BayouError(f"`sync` must be one of {', '.join(SYNC)}; got {sync!r}.")
        self.path, self._lock = path, threading.RLock()
        self.waits_for_disk, self._logged = sync == "full", 0
        try:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1.0)
            self._open(sync)
        except sqlite3.Error as error:
            raise BayouError(f"the store {path} must be a file of bayou that no other server has; {error}.") from error

    def _open(self, sync: str) -> None:
        """Take the file, and make its tables where there are none."""
        db = self._db
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {sync.upper()}")
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute(f"PRAGMA journal_size_limit = {64 * 2**20}")
        db.execute("PRAGMA wal_autocheckpoint = 0")  # `checkpoint` does it, when asked
        found = int(db.execute("PRAGMA user_version").fetchone()[0])
        is_new = not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if is_new:
            db.executescript(f"BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {SCHEMA}; COMMIT;")
        elif found != SCHEMA:
            raise BayouError(f"the store {self.path} must be of schema {SCHEMA}; got {found}.")
        db.execute("BEGIN IMMEDIATE")  # takes the lock for good
        db.execute("COMMIT")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
            except BaseException as error:
                with suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise _not_stored(error) from error
                raise

    # --- writing

    def write(self, batches: Sequence[Batch]) -> None:
        """All of them, in one transaction."""
        if len(batches) == 1 and batches[0] == Batch(batches[0].row, model=batches[0].model):
            self._write_row(batches[0].row)
            return
        with self._transaction() as db:
            self._logged += PAGES_OF_COMMIT
            for batch in batches:
                if batch.row is not None:
                    self._logged += len(batch.row.body) // PAGE
                    db.execute(INSERT, batch.row)
                    if batch.answer is not None:
                        key, digest, answer = batch.answer
                        self._logged += len(answer) // PAGE
                        told = (batch.row.model, key, batch.row.seq, digest, answer)
                        db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)", told)
                    if batch.offset is not None:
                        source, position = batch.offset
                        place = (batch.row.model, source, *position)
                        db.execute("INSERT OR REPLACE INTO offsets VALUES (?, ?, ?, ?)", place)
                if batch.version is not None:
                    self._logged += len(batch.version[1]) // PAGE
                    self._write_version(db, batch.model, *batch.version)
                if batch.forgotten_at is not None:
                    self._forget(db, batch.model, batch.forgotten_at)

    def _write_row(self, row: Journalled | None) -> None:
        """A row alone: a statement is a transaction, and others get at the interpreter once, not three times."""
        if row is None:
            return
        with self._lock:
            self._logged += PAGES_OF_COMMIT + len(row.body) // PAGE
            try:
                self._db.execute(INSERT, row)
            except sqlite3.Error as error:
                raise _not_stored(error) from error

    def _write_version(self, db: sqlite3.Connection, model: int, version: Version, state: bytes) -> None:
        """Keep a state; what only older ones need goes: states, rows of the journal, answers."""
        db.execute("INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (model, *version, state))
        for kind in KINDS:
            db.execute(
                f"DELETE FROM versions WHERE model = ?1 AND {kind} AND number NOT IN (SELECT number FROM "
                f"versions WHERE model = ?1 AND {kind} ORDER BY number DESC LIMIT {MOST_VERSIONS})",
                (model,),
            )
        db.execute(
            "DELETE FROM journal WHERE model = ?1 AND seq <= (SELECT max(seq) FROM versions WHERE model = ?1)", (model,)
        )
        db.execute(
            "DELETE FROM answers WHERE model = ?1 AND seq <= (SELECT seq FROM answers WHERE model = ?1 "
            f"ORDER BY seq DESC LIMIT 1 OFFSET {MOST_KEYS})",
            (model,),
        )
        db.execute(
            "UPDATE answers SET answer = x'' WHERE model = ?1 AND length(answer) > 0 AND seq <= (SELECT seq FROM "
            "(SELECT seq, sum(length(answer)) OVER (ORDER BY seq DESC) AS size FROM answers WHERE model = ?1) "
            f"WHERE size > {MOST_ANSWERED} ORDER BY seq DESC LIMIT 1)",
            (model,),
        )
        self._keep_seq(db, version.seq)

    def _forget(self, db: sqlite3.Connection, model: int, last_seq: int) -> None:
        """Delete a model, and all that was its own."""
        self._keep_seq(db, last_seq)
        freed = "SELECT coalesce(sum(size), 0) FROM versions WHERE model = ?"  # each page that is free is noted
        self._logged += int(db.execute(freed, (model,)).fetchone()[0]) // PAGE
        for table in ("journal", "versions", "answers", "offsets"):
            db.execute(f"DELETE FROM {table} WHERE model = ?", (model,))
        db.execute("DELETE FROM models WHERE id = ?", (model,))

    @staticmethod
    def _keep_seq(db: sqlite3.Connection, seq: int) -> None:
        """Numbers of rows that are gone are not given again."""
        db.execute(
            "INSERT INTO about VALUES ('seq', ?) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)",
            (seq,),
        )

    @property
    def wants_checkpoint(self) -> bool:
        """Whether the log has become longer than is good."""
        return self._logged >= CHECKPOINT_EVERY

    def checkpoint(self) -> None:
        """Lay what is in the log where it belongs; everyone else waits meanwhile."""
        with self._lock, suppress(sqlite3.Error):  # where that fails, all stays in the log, which is read as well
            self._logged = 0
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def shrink(self) -> None:
        """Give free pages back to the disk, some at a time."""
        with self._lock, suppress(sqlite3.Error):
            self._db.execute(f"PRAGMA incremental_vacuum({FREED})").fetchall()

    def create(self, name: str, at: float, settings: dict[str, Any], version: Version, state: bytes) -> int:
        """Begin a model with its first version; returns its number."""
        with self._transaction() as db:
            told = (name, at, orjson.dumps(settings))
            model = db.execute("INSERT INTO models (name, at, settings) VALUES (?, ?, ?)", told).lastrowid
            assert model is not None
            self._write_version(db, model, version, state)
            self._logged += PAGES_OF_COMMIT + len(state) // PAGE
        return model

    # --- reading

    def _all(self, query: str, *values: Any) -> list[Any]:
        with self._lock:
            try:
                return self._db.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise NotStored(f"the store could not be read: {error}.") from error

    def models(self) -> list[Known]:
        """All of them."""
        rows = self._all("SELECT id, name, at, settings FROM models ORDER BY name")
        return [Known(id, name, at, orjson.loads(settings)) for id, name, at, settings in rows]

    def last_seq(self) -> int:
        """The highest number that a row of the journal had."""
        found = self._all(
            "SELECT max((SELECT coalesce(max(seq), 0) FROM journal), "
            "coalesce((SELECT value FROM about WHERE name = 'seq'), 0))"
        )
        return int(found[0][0])

    def versions(self, model: int) -> list[Version]:
        """Those that are kept, the latest first."""
        rows = self._all(
            "SELECT number, seq, at, label, rows, size FROM versions WHERE model = ? ORDER BY number DESC", model
        )
        found = [Version(*row) for row in rows]
        return [one._replace(label=one.label or None) for one in found]  # some were asked for without one

    def state(self, model: int, number: int) -> bytes | None:
        """The model file of a version."""
        rows = self._all("SELECT state FROM versions WHERE model = ? AND number = ?", model, number)
        return bytes(rows[0][0]) if rows else None

    def journal(self, model: int, after: int = 0, count: int = 1000) -> list[Journalled]:
        """So many rows after one."""
        rows = self._all(
            "SELECT seq, model, kind, at, rows, body FROM journal WHERE model = ? AND seq > ? ORDER BY seq LIMIT ?",
            model,
            after,
            count,
        )
        return [Journalled(*row) for row in rows]

    def journal_size(self, model: int) -> tuple[int, int, int]:
        """Rows of the journal, the examples in them, and bytes."""
        found = self._all(
            "SELECT count(*), coalesce(sum(rows), 0), coalesce(sum(length(body)), 0) FROM journal WHERE model = ?",
            model,
        )
        count, rows, size = found[0]
        return int(count), int(rows), int(size)

    def keys(self, model: int) -> list[tuple[str, bytes]]:
        """Keys that were answered, the oldest first, each with the digest of what was asked."""
        rows = self._all("SELECT key, digest FROM answers WHERE model = ? ORDER BY seq", model)
        return [(str(key), bytes(digest)) for key, digest in rows]

    def answer(self, model: int, key: str) -> bytes | None:
        """What was answered to a key; nothing where the answer is no longer kept."""
        rows = self._all("SELECT answer FROM answers WHERE model = ? AND key = ?", model, key)
        return bytes(rows[0][0]) if rows else None

    def offsets(self, model: int) -> dict[str, Position]:
        """How far sources were read."""
        rows = self._all("SELECT source, next, place FROM offsets WHERE model = ?", model)
        return {str(name): Position(int(at), place) for name, at, place in rows}

    def size(self) -> int:
        """Bytes of the file, without those that are free."""
        pages, free, each = (
            int(self._all(f"PRAGMA {name}")[0][0]) for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * each

    def close(self) -> None:
        """Let the file go."""
        with self._lock:
            self._db.close()


def _not_stored(error: sqlite3.Error) -> NotStored:
    return NotStored(f"the store could not be written, so nothing was learnt: {error}.")
