"""What a hashing encoder remembers of the names it has met, in bounded memory, and how often names share a column."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from bayou.contracts import State
from bayou.errors import InvalidFeatures, InvalidSpec, ModelFileError
from bayou.numerics.hashed_rows import (
    COLUMNS,
    COUNT,
    ENTRIES,
    FULL,
    MARK,
    N_COUNTS,
    REPORT,
    ROWS,
    SHARED,
    SHARED_COLUMNS,
    SHARED_ENTRIES,
    Noticed,
    no_places,
    row_entries,
)
from bayou.numerics.hashing import hash_bytes

CAPACITY = 65_536
KEPT = 0.75  # the share of the names that stay when there are too many
LONGEST = 64  # characters of a name
MOST_SHARED = 4  # names of one column
MOST_REPORTS = 4096
FREE = 2048.0  # names that a stream of tables may ask for at once, and how many more per row: asking takes time
EARNED = 1.0 / 1024.0
EARNED_BY_DICT = 1.0 / 16.0  # of those that have something to ask
MOST_LAYOUTS = 256
ALL = 2**64 - 1
FIELDS = ("bits", "signed", "seed", "capacity", "credit")
MOST_FEATURES = 65_536


def encoded(text: str) -> bytes:
    """A text as bytes; halves of pairs of UTF-16, which are no text, as they are."""
    return text.encode("utf-8", "surrogatepass")


class Feature(NamedTuple):
    """The key of a name, and that of its absence."""

    key: np.uint64
    missing: np.uint64


def feature_of(name: str, seed: int) -> Feature:
    """The keys of a name."""
    if not isinstance(name, str):
        raise InvalidFeatures(f"the names of features must be text; got {name!r}.")
    key = hash_bytes(encoded(name), seed)
    return Feature(np.uint64(key), np.uint64(hash_bytes(b"", key ^ ALL)))


class Collisions(NamedTuple):
    """How often different names met in one column, in the rows that were looked at.

    ``entries`` were looked at, in ``columns`` different columns. Of these ``shared_columns`` were met by more than one
    name; ``shared_entries`` were in a column that another name had first.
    """

    entries: int
    columns: int
    shared_entries: int
    shared_columns: int


class HashedNames:
    """Names by column: of all that comes as dicts, of a sample of what comes as tables, of the most frequent if full.

    Every dict is looked at; so are the first 4,096 rows of tables, and then one in 64.
    """

    def __init__(self, bits: int, signed: bool = False, seed: int = 0, capacity: int = CAPACITY) -> None:
        self.bits, self.signed, self.seed = bits, signed, seed
        self.capacity = capacity
        self.noticed = Noticed(
            np.zeros(2**bits, np.uint32), np.zeros(N_COUNTS, np.int64), np.zeros((MOST_REPORTS, REPORT), np.int64)
        )
        self.places = no_places()
        self.credit = FREE
        self.features: dict[
            str, Any
        ] = {}  # keys of names, one by one and as rows have them: to be had anew at any time
        self.layouts: dict[Any, Any] = {}
        self.last: tuple[Any, Any, Any] = (None, None, None)  # names of categories, of numbers, and their layout
        self.of_keys, self.of_joined = row_entries()
        self.kept = (*self.noticed, self.places, bits, signed)  # what each of the two takes at every call
        self.owner: Any = None  # the spec that all of these are for
        self._names: dict[int, list[str]] = {}

    def __len__(self) -> int:
        return len(self._names)

    def names_of(self, columns: Iterable[int]) -> list[str]:
        """What is known of each column: its name, several joined by " | ", or its number after a "#"."""
        return [" | ".join(self._names.get(int(column), [f"#{column}"])) for column in columns]

    @property
    def n_rows(self) -> int:
        """How many rows have come."""
        return int(self.noticed.counts[ROWS])

    @property
    def collisions(self) -> Collisions:
        """How often names met in a column."""
        counts = self.noticed.counts
        return Collisions(*(int(counts[i]) for i in (ENTRIES, COLUMNS, SHARED_ENTRIES, SHARED_COLUMNS)))

    def feature(self, name: str) -> Feature:
        """The keys of a name."""
        found = self.features.get(name)
        if found is None:
            if len(self.features) >= MOST_FEATURES:
                self.features.clear()
            found = self.features[name] = feature_of(name, self.seed)
        return found

    def is_named(self, column: int) -> bool:
        """Whether the name of a column is known and, if another has met it, that one too."""
        known = self._names.get(column)
        return known is not None and (len(known) > 1 or not self.noticed.cells[column] & SHARED)

    def remember(self, column: int, name: str) -> None:
        """Let a name be known; if there are too many, the rarest go."""
        if len(name) > LONGEST:
            name = name[: LONGEST - 1] + "…"
        known = self._names.setdefault(column, [])
        if name not in known and len(known) < MOST_SHARED:
            known.append(name)
        if len(self._names) > self.capacity:
            columns = np.fromiter(self._names, np.int64, len(self._names))
            times = self.noticed.cells[columns] >> COUNT
            kept = np.sort(np.argsort(times, kind="stable")[-max(int(KEPT * self.capacity), 1) :])
            self._names = {int(column): self._names[int(column)] for column in columns[kept]}

    def joined(self, other: HashedNames) -> HashedNames:
        """What is known of the names of both, of whom each has met rows of its own."""
        both = HashedNames.from_state(self.to_state())
        mine, theirs = self.noticed.cells, other.noticed.cells
        differ = (mine != 0) & (theirs != 0) & ((mine ^ theirs) & np.uint32(MARK) != 0)
        marks = np.where(mine != 0, mine & np.uint32(MARK), theirs & np.uint32(MARK))
        shared = (mine | theirs) & SHARED | np.where(differ, SHARED, np.uint32(0))
        times = np.minimum((mine >> COUNT) + (theirs >> COUNT), FULL)
        both.noticed.cells[...] = times << COUNT | shared | marks
        counts = both.noticed.counts
        counts[...] += other.noticed.counts
        counts[COLUMNS], counts[SHARED_COLUMNS] = np.count_nonzero(times), np.count_nonzero(shared)
        counts[SHARED_ENTRIES] += int((theirs >> COUNT)[differ & (theirs & SHARED == 0)].sum())
        for column, names in other._names.items():
            for name in names:
                both.remember(column, name)
        return both

    def belong_to(self, spec: Any) -> None:
        """Serve a spec; raises if its keys are others than those that were met so far."""
        wanted, made = (spec.bits, spec.signed, spec.seed), (self.bits, self.signed, self.seed)
        if wanted != made:
            raise InvalidSpec(f"names must be for the bits, signs and seed of the encoder, {wanted}; got {made}.")
        self.features, self.layouts, self.last, self.owner = {}, {}, (None, None, None), spec

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_state, (self.to_state(),)  # kernels cannot be copied

    def to_state(self) -> State:
        """All of it as data."""
        config = {field: getattr(self, field) for field in FIELDS} | {"names": list(self._names.values())}
        arrays = {
            "cells": self.noticed.cells.view(np.int64).copy(),
            "columns": np.fromiter(self._names, np.int64, len(self._names)),
            "counts": self.noticed.counts.copy(),
        }
        return State(config, arrays)

    @classmethod
    def from_state(cls, state: State) -> HashedNames:
        """The same again, from data that may come from anywhere."""
        config, arrays = state
        try:
            bits, signed, seed, capacity, credit = (config[field] for field in FIELDS)
            cells, columns, counts = (arrays[name] for name in ("cells", "columns", "counts"))
            texts = [[str(name) for name in known] for known in config["names"]]
            fit = bits in range(10, 27) and int(capacity) > 0 and seed in range(2**53 + 1)
            fit = fit and abs(float(credit)) <= CAPACITY
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"hashed names must have {', '.join(FIELDS)}, names and arrays; {error!r}.") from error
        shapes = [array.shape for array in (cells, columns, counts)]
        if not fit or shapes != [(2 ** (bits - 1),), (len(texts),), (N_COUNTS,)] or len(texts) > capacity:
            raise ModelFileError(
                f"hashed names of {bits} bits must have arrays for so many columns, {len(texts)} names and {N_COUNTS} "
                f"counts; got {shapes}, room for {capacity} names, and a seed of {seed}."
            )
        names = cls(bits, bool(signed), int(seed), int(capacity))
        names.credit = float(credit)
        names.noticed.cells[...] = np.ascontiguousarray(cells, np.int64).view(np.uint32)
        names.noticed.counts[...] = counts
        names._names = dict(zip(columns.tolist(), texts, strict=True))
        return names
