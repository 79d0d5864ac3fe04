"""Which columns the entries of rows by index or by name become, and how: see `bayou.SparseEncoder`."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, SparseRows, State
from bayou.errors import InvalidFeatures, ModelFileError, StreamError
from bayou.numerics.hashing import FIRST, SECOND, SHIFT
from bayou.numerics.sparse_rows import in_full
from bayou.numerics.sparse_table import BY_INDEX, BY_NAME, SparseTable
from bayou.numerics.table_layout import BUCKETS, DENSE_COLUMNS
from bayou.numerics.vowpal_rows import names_by_key
from bayou.numerics.vowpal_text import add_pairs, mark_members

MOST_DENSE = 500  # columns of rows that are told in full, before those that further names share
LARGEST = 1e140
LARGEST_SINGLE = 1e15  # of rows that are not: their squares fit in single precision
MOST_NAMED = 16_384  # columns whose names are remembered
LINES_AT_ONCE = 16  # that are gone through for names, of rows that are learnt at a time


class SparseLayout:
    """Columns of the keys of entries. ``hashed`` rows have 2**bits, of which each key has one from the start; others
    begin a column for each key that comes, up to 500, and for further keys there are 32 that they share.
    """

    def __init__(self, by: str, pairs: Sequence[tuple[str, str]], bits: int, hashed: bool) -> None:
        self.by, self.bits, self.hashed = by, bits, hashed
        self.pairs = [(str(a), str(b)) for a, b in pairs]
        self.kinds: dict[str, str] = {}  # there are no columns of a table
        self.names: list[str] = []
        self.keys: NDArray[np.uint64] = np.zeros(0, np.uint64)  # of the columns, where rows are told in full
        self.known_names: dict[int, str] = {}  # of columns of hashed rows
        self.has_buckets = False
        self._index()

    def _index(self) -> None:
        self._order = np.argsort(self.keys)
        self._sorted = self.keys[self._order]

    # --- making it

    def lay_out(self, table: SparseTable) -> None:
        """Begin the columns of the first rows."""
        if not self.hashed:
            self._admit(self.expanded(table), table)

    def admitted(self, table: SparseTable) -> SparseLayout:
        """This layout with columns for the keys of more rows; itself it stays as it is, but for names it learns of."""
        self.check(table)
        rows = self.expanded(table)
        if self.hashed:
            if self.by == BY_NAME and len(self.known_names) < MOST_NAMED:
                self._notice(rows, table)
            return self
        if (self._places(rows.keys) >= 0).all() or self.has_buckets:
            return self
        other = copy(self)
        other.names = list(self.names)
        other._admit(rows, table)
        return other

    def joined(self, other: SparseLayout) -> tuple[SparseLayout, NDArray[np.intp]]:
        """This layout with the columns that another has, too; and where those of the other lie in it."""
        if (self.by, self.pairs, self.hashed) != (other.by, other.pairs, other.hashed):
            raise StreamError("rows must be laid out alike: of one format, with the same pairs of namespaces.")
        both = copy(self)
        both.names, both.known_names = list(self.names), other.known_names | self.known_names
        if self.hashed:
            return both, np.zeros(0, dtype=np.intp)
        if not self.has_buckets:
            fresh = np.flatnonzero(self._places(other.keys) < 0)
            kept = fresh[: MOST_DENSE - len(self.keys)]
            both.keys = np.concatenate([self.keys, other.keys[kept]])
            both.names += [other.names[place] for place in kept.tolist()]
            both.has_buckets = other.has_buckets or kept.size < fresh.size
            if both.has_buckets:
                both.names += [f"others #{bucket}" for bucket in range(BUCKETS)]
            both._index()
        places = both._places(other.keys)
        places = np.where(places >= 0, places, both._bucket(other.keys))
        if other.has_buckets:
            places = np.concatenate([places, len(both.keys) + np.arange(BUCKETS)])
        return both, places.astype(np.intp)

    def _bucket(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The column that a key shares with others."""
        return len(self.keys) + (_mixed(keys) % np.uint64(BUCKETS)).astype(np.int64)

    def _admit(self, rows: SparseTable, table: SparseTable) -> None:
        fresh = rows.keys[self._places(rows.keys) < 0]
        keys, first = np.unique(fresh, return_index=True)
        if self.by == BY_NAME:  # by index they are in order; names are as they come
            keys = fresh[np.sort(first)]
        room = MOST_DENSE - len(self.keys)
        self.has_buckets = len(keys) > room
        keys = keys[:room]
        self.names += self._told(keys, rows, table)
        self.keys = np.concatenate([self.keys, keys])
        if self.has_buckets:
            self.names += [f"others #{bucket}" for bucket in range(BUCKETS)]
        self._index()

    def _told(self, keys: NDArray[np.uint64], rows: SparseTable, table: SparseTable) -> list[str]:
        """What columns are called that begin with these rows."""
        if self.by == BY_INDEX:
            return [str(key) for key in keys.tolist()]
        wanted, found = set(keys.tolist()), dict[int, str]()
        entries = np.flatnonzero(np.isin(rows.keys, keys))
        for row in np.unique(np.searchsorted(rows.starts, entries, side="right") - 1).tolist():
            if wanted - found.keys():
                found |= self._names_in(table, row, wanted)
        return [found.get(key, f"#{key:x}") for key in keys.tolist()]

    def _notice(self, rows: SparseTable, table: SparseTable) -> None:
        """Look up some names of columns that have none yet."""
        columns = self._columns(rows.keys)
        named = np.zeros(1 << self.bits, np.bool_)
        named[list(self.known_names)] = True
        entries = np.flatnonzero(~named[columns])
        for row in np.unique(np.searchsorted(rows.starts, entries, side="right") - 1)[:LINES_AT_ONCE].tolist():
            own = slice(int(rows.starts[row]), int(rows.starts[row + 1]))
            wanted = dict(zip(rows.keys[own].tolist(), columns[own].tolist(), strict=True))
            for key, name in self._names_in(table, row, set(wanted)).items():
                if len(self.known_names) < MOST_NAMED:
                    self.known_names.setdefault(wanted[key], name)

    def _names_in(self, table: SparseTable, row: int, wanted: set[int]) -> dict[int, str]:
        """The names in the line of a row, by their keys, of pairs too; those that are wanted."""
        begin, end = table.lines[row].tolist()
        found = names_by_key(table.text[begin:end])
        if self.pairs:
            keys, names = np.array(list(found), np.uint64), list(found.values())
            both = _mixed(keys[:, None] + keys)
            for i, j in np.argwhere(np.isin(both, np.array(list(wanted), np.uint64))).tolist():
                found.setdefault(int(both[i, j]), f"{names[i]} x {names[j]}")
        return {key: name for key, name in found.items() if key in wanted}

    # --- using it

    def check(self, table: Any) -> None:
        """Raise unless these are rows of the kind that was learnt."""
        if not (isinstance(table, SparseTable) and table.by == self.by):
            wanted = "libsvm" if self.by == BY_INDEX else "Vowpal Wabbit's text"
            raise InvalidFeatures(f"the model has learnt rows of {wanted}; got others.")

    def encode(self, table: SparseTable) -> Matrix:
        """A row of features per row; what has no column is left out."""
        self.check(table)
        rows = self.expanded(table)
        places = self._places(rows.keys)
        if self.has_buckets:
            places = np.where(places >= 0, places, self._bucket(rows.keys))
        columns, values = np.maximum(places, 0).astype(np.int32), np.where(places >= 0, rows.values, 0.0)
        full = in_full(SparseRows(rows.starts, columns, values, max(len(self.names), 1)))
        return full[:, : len(self.names)]

    def prepared(self, table: SparseTable) -> SparseRows:
        """Sparse rows of 2**bits columns."""
        self.check(table)
        rows = self.expanded(table)
        return SparseRows(rows.starts, self._columns(rows.keys), rows.values, 1 << self.bits)

    def _columns(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The top bits of a hash; an index itself, and the hash of one that is too large."""
        top = np.uint64(64 - self.bits)
        if self.by == BY_NAME:
            return (keys >> top).astype(np.int32)
        if not keys.size or keys.max() < 1 << self.bits:
            return keys.astype(np.int32)
        return np.where(keys < 1 << self.bits, keys, _mixed(keys) >> top).astype(np.int32)

    def _places(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The column of each key; -1 where there is none."""
        if not self.keys.size:
            return np.full(len(keys), -1)
        at = np.minimum(np.searchsorted(self._sorted, keys), len(self.keys) - 1)
        return np.where(self._sorted[at] == keys, self._order[at], -1)

    def expanded(self, table: SparseTable) -> SparseTable:
        """The rows with the products that are asked for as entries."""
        if not self.pairs:
            return table
        text, marks = np.frombuffer(table.text, np.uint8), []
        for side in (0, 1):
            marks.append(np.zeros((len(self.pairs), len(table.keys)), np.bool_))
            for place, pair in enumerate(self.pairs):
                prefix = np.frombuffer(pair[side].encode(), np.uint8)
                mark_members(text, table.spaces, prefix, marks[side][place])
        first, second = marks
        given = table.starts, table.keys, table.values, first, second
        starts = np.zeros_like(table.starts)
        count = add_pairs(*given, starts, np.zeros(0, np.uint64), np.zeros(0))
        keys, values = np.empty(count, np.uint64), np.empty(count)
        if count:
            with np.errstate(over="ignore"):
                add_pairs(*given, starts, keys, values)
        return SparseTable(table.by, table.labels, table.weights, starts, keys, values)

    def bad_rows(self, table: SparseTable) -> dict[int, str]:
        """Rows that cannot be learnt, and why: a number too large to count with."""
        self.check(table)
        rows, most = self.expanded(table), LARGEST_SINGLE if self.hashed else LARGEST
        bad: dict[int, str] = {}
        for entry in np.flatnonzero(~(np.abs(rows.values) <= most)).tolist():
            row = int(np.searchsorted(rows.starts, entry, side="right")) - 1
            bad.setdefault(row, f"values must be below {most:g} in size; got {rows.values[entry]:g}")
        return bad

    def check_values(self, table: SparseTable) -> None:
        """Raise if a value is too large."""
        for row, reason in self.bad_rows(table).items():
            raise InvalidFeatures(f"{reason}, in row {row} of those given.")

    # --- as data

    def to_state(self) -> State:
        """All of it, as data."""
        config = {
            "by": self.by,
            "pairs": [list(pair) for pair in self.pairs],
            "bits": self.bits,
            "hashed": self.hashed,
            "names": list(self.names),
            "known_names": list(self.known_names.values()),
            "has_buckets": self.has_buckets,
        }
        named = np.array(list(self.known_names), np.int64)
        return State(config, {"keys": self.keys.view(np.int64), "named": named})

    @classmethod
    def from_state(cls, state: State) -> SparseLayout:
        """The layout that this data describes."""
        config = state.config
        pairs = [(str(a), str(b)) for a, b in config["pairs"]]
        layout = cls(str(config["by"]), pairs, int(config["bits"]), bool(config["hashed"]))
        layout.names, layout.has_buckets = [str(name) for name in config["names"]], bool(config["has_buckets"])
        layout.keys = state.arrays["keys"].view(np.uint64)
        columns = state.arrays["named"].tolist()
        if len(columns) != len(config["known_names"]):
            raise ModelFileError(f"there must be {len(columns)} names; got {len(config['known_names'])}.")
        layout.known_names = {int(at): str(name) for at, name in zip(columns, config["known_names"], strict=True)}
        if len(layout.names) != len(layout.keys) + BUCKETS * layout.has_buckets:
            raise ModelFileError(f"there must be {len(layout.keys)} names of columns; got {len(layout.names)}.")
        layout._index()
        return layout


def is_wide(keys: NDArray[np.uint64]) -> bool:
    """Whether there are too many different keys to tell rows in full."""
    return len(np.unique(keys)) > DENSE_COLUMNS


def _mixed(h: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """As `bayou.numerics.hashing.mix`, of many."""
    with np.errstate(over="ignore"):
        h = (h ^ (h >> SHIFT)) * FIRST
        h = (h ^ (h >> SHIFT)) * SECOND
    return h ^ (h >> SHIFT)
