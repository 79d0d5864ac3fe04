"""Which columns of numbers the columns of a table become, and how: see `bayou.TableEncoder`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, State, Vector
from bayou.errors import InvalidFeatures, ModelFileError, StreamError
from bayou.numerics.files import polars
from bayou.numerics.hashing import hash_bytes
from bayou.numerics.number_bases import NumberBasis, basis_for
from bayou.numerics.table_kinds import as_times, listed

MOST_INDEXED = 128  # values of a category with a column each
BUCKETS = 32  # columns that further values share
MANY_AT_MOST = 1  # columns of many values, of tables that are not hashed
DENSE_COLUMNS = 300
MISSING = " is missing"
LARGEST = 1e140
# Names, and turns of a clock each: a day, a week, a year.
CLOCKS = (("hour", 86_400.0, 2), ("weekday", 7 * 86_400.0, 3), ("season", 365.2425 * 86_400.0, 2))
DAY = 86_400.0
MONDAY = 3 * DAY  # the epoch was a Thursday


def is_many(table: Any, name: str) -> bool:
    """Whether a category has too many values for a column each."""
    return int(table[name].n_unique()) > MOST_INDEXED


class TableLayout:
    """The kinds of the columns of a table, and which features they have become so far."""

    def __init__(
        self, kinds: dict[str, str], many: Sequence[str], pairs: Sequence[tuple[str, str]], hashed: bool
    ) -> None:
        self.kinds, self.many, self.hashed = dict(kinds), list(many), hashed
        self.pairs = [tuple(pair) for pair in pairs]
        self.names: list[str] = []
        self.categories: dict[str, dict[str, int]] = {}  # of a column: the feature of each value
        self.buckets: dict[str, int] = {}  # of a column: the first of its buckets
        self.clocks: dict[str, list[str]] = {}  # of a date: which turn within it
        self.basis: NumberBasis | None = None

    # --- making it

    def lay_out(self, table: Any, basis: str | None = None, count: int = 0) -> None:
        """Begin the features of the first rows."""
        for name, kind in self.kinds.items():
            if kind == "date":
                times = self._times(table, name)
                has_hours = bool((times.dt.truncate("1d") != times).any())
                self.clocks[name] = [clock for clock, _, _ in CLOCKS if clock != "hour" or has_hours]
        if self.hashed:
            return
        for name in self.numbers:
            self.names.append(name)
        for name, clocks in self.clocks.items():
            self.names += _clock_names(name, clocks)
        for a, b in self._number_pairs():
            self.names.append(self._pair_name(a, b))
        if basis in ("spline", "polynomial") and self.numbers:
            self.basis = basis_for(basis, count, self.numbers, [self._number(table, name) for name in self.numbers])
            self.names += self.basis.names
        self.admit(table)

    @property
    def numbers(self) -> list[str]:
        """Columns that are numbers."""
        return [name for name, kind in self.kinds.items() if kind == "number"]

    def _of_kind(self, a: str, b: str) -> tuple[str, str]:
        return self.kinds[a], self.kinds[b]

    def _number_pairs(self) -> list[tuple[str, str]]:
        return [(a, b) for a, b in self.pairs if self._of_kind(a, b) == ("number", "number")]

    def _categories(self) -> list[tuple[str, tuple[str, ...], str | None]]:
        """What is told as categories: a name, the columns that it is made of, and the number that it multiplies."""
        found: list[tuple[str, tuple[str, ...], str | None]] = [
            (name, (name,), None) for name, kind in self.kinds.items() if kind == "category"
        ]
        for a, b in self.pairs:
            kinds = self._of_kind(a, b)
            if kinds == ("category", "category"):
                found.append((self._pair_name(a, b), (a, b), None))
            elif kinds == ("category", "number"):
                found.append((self._pair_name(a, b), (a,), b))
            elif kinds == ("number", "category"):
                found.append((self._pair_name(b, a), (b,), a))
        return found

    def _pair_name(self, a: str, b: str) -> str:
        """What a pair is called: as no column is."""
        name = f"{a} x {b}"
        while name in self.kinds:
            name += " (product)"
        return name

    def admitted(self, table: Any) -> TableLayout:
        """This layout with columns for the values of more rows; itself it stays as it is."""
        other = copy(self)
        other.names, other.buckets = list(self.names), dict(self.buckets)
        other.categories = {name: dict(known) for name, known in self.categories.items()}
        other.admit(table)
        return other

    def admit(self, table: Any) -> None:
        """Begin columns for values that were never seen, in the order in which they come."""
        if self.hashed:
            return
        self._check_names(table)
        for name, source, number in self._categories():
            known = self.categories.setdefault(name, {})
            if name in self.buckets:
                continue
            if any(part in self.many for part in source):
                self._begin_buckets(name)
                continue
            for value in self._values(table, source).unique(maintain_order=True).to_list():
                if value in known:
                    continue
                if len(known) >= MOST_INDEXED:
                    self._begin_buckets(name)
                    break
                known[value] = len(self.names)
                self.names.append(_told(source, value, number))

    def joined(self, other: TableLayout) -> tuple[TableLayout, NDArray[np.intp]]:
        """This layout with the values that another, begun by the same rows, has seen; and where the features of the
        other lie in it. What is beyond the values that have columns of their own falls to buckets.
        """
        if self.kinds != other.kinds or self.clocks != other.clocks or self.pairs != other.pairs:
            raise StreamError(f"tables must be laid out alike, {self.kinds}; got {other.kinds}.")
        both = copy(self)
        both.names, both.buckets = list(self.names), dict(self.buckets)
        both.categories = {name: dict(known) for name, known in self.categories.items()}
        places = np.arange(len(other.names))
        if self.hashed:
            return both, places
        for name, source, number in self._categories():
            known = both.categories.setdefault(name, {})
            for value, place in other.categories.get(name, {}).items():
                if value not in known and name not in both.buckets and len(known) >= MOST_INDEXED:
                    both._begin_buckets(name)
                if value not in known and name not in both.buckets:
                    known[value] = len(both.names)
                    both.names.append(_told(source, value, number))
                places[place] = known.get(value, -1)
                if places[place] < 0:
                    places[place] = both.buckets[name] + hash_bytes(value.encode()) % BUCKETS
            if name in other.buckets:
                if name not in both.buckets:
                    both._begin_buckets(name)
                buckets = np.arange(BUCKETS)
                places[other.buckets[name] + buckets] = both.buckets[name] + buckets
        return both, places

    def _begin_buckets(self, name: str) -> None:
        self.buckets[name] = len(self.names)
        self.names += [f"{name} #{bucket}" for bucket in range(BUCKETS)]

    # --- using it

    def encode(self, table: Any) -> Matrix:
        """A row of features per row."""
        self.check(table)
        rows, at = np.zeros((len(table), len(self.names))), 0
        values = [self._number(table, name) for name in self.numbers]
        for column in values:
            rows[:, at] = column
            at += 1
        for name, clocks in self.clocks.items():
            turns = self._turns(table, name, clocks)
            rows[:, at : at + len(turns)] = np.column_stack(turns)
            at += len(turns)
        of_name = dict(zip(self.numbers, values, strict=True))
        for a, b in self._number_pairs():
            rows[:, at] = of_name[a] * of_name[b]
            at += 1
        if self.basis is not None:
            rows[:, at : at + len(self.basis.names)] = self.basis.features(np.column_stack(values))
        for name, source, number in self._categories():
            places = self._places(table, name, source)
            known = np.flatnonzero(places >= 0)
            rows[known, places[known]] = 1.0 if number is None else of_name[number][known]
        return rows

    def prepared(self, table: Any) -> Any:
        """Numbers as numbers, categories and text as text, dates as categories; as `bayou.Hashing` takes them.

        Sines of slow clocks move together for days, which weights that are learnt each by itself cannot bear.
        """
        library = polars()
        self.check(table)
        columns = []
        for name, kind in self.kinds.items():
            if kind == "number":
                columns.append(library.Series(name, self._number(table, name), nan_to_null=True))
            elif kind == "date":
                columns += self._hands(table, name, self.clocks[name])
            else:
                columns.append(table[name].cast(library.String))
        return library.DataFrame(columns)

    def check(self, table: Any) -> None:
        """Raise unless every column is there and of its kind."""
        self._check_names(table)
        for name in self.numbers:
            self._number(table, name)

    def _check_names(self, table: Any) -> None:
        for name in self.kinds:
            if name not in table.columns:
                raise StreamError(f"the table must have a column {name!r}; got {listed(table.columns, name)}.")

    def bad_rows(self, table: Any) -> dict[int, str]:
        """Rows that cannot be learnt, and why: a number too large to count with, or none where one must be."""
        self._check_names(table)
        values, bad = {}, {}
        for name in self.numbers:
            values[name], wrong = self._raw(table, name)
            for row in np.flatnonzero(wrong | _is_large(values[name])).tolist():
                bad[row] = self._refused(name, table[name][row])
        for a, b in self._number_pairs():
            with np.errstate(invalid="ignore", over="ignore"):
                large = _is_large(values[a] * values[b])
            for row in np.flatnonzero(large).tolist():
                bad.setdefault(row, f"the product of {a!r} and {b!r} must be below {LARGEST:g} in size")
        return bad

    @staticmethod
    def _refused(name: str, value: Any) -> str:
        if isinstance(value, str):
            return f"column {name!r} must hold numbers below {LARGEST:g} in size; got {value!r}"
        return f"column {name!r} must hold numbers below {LARGEST:g} in size; got {value}"

    def _raw(self, table: Any, name: str) -> tuple[Vector, NDArray[np.bool_]]:
        """The numbers of a column, NaN where one is missing, and in which rows there is something else."""
        library, column = polars(), table[name]
        wrong = np.zeros(len(column), dtype=np.bool_)
        if column.dtype == library.Duration:
            column = column.dt.total_microseconds() / 1e6
        if column.dtype == library.Null:
            return np.full(len(column), np.nan), wrong
        if column.dtype == library.String:  # a number by what was told, or numbers that came as text
            plain = column.str.strip_chars()
            numbers = plain.cast(library.Float64, strict=False)
            wrong = (numbers.is_null() & column.is_not_null() & (plain != "")).fill_null(False).to_numpy()
            column = numbers
        elif not (column.dtype.is_numeric() or column.dtype == library.Boolean):
            raise InvalidFeatures(f"column {name!r} must hold numbers; got {column.dtype}.")
        values: Vector = column.cast(library.Float64).to_numpy().astype(np.float64, copy=True)
        if column.null_count():
            values[column.is_null().to_numpy()] = np.nan
        return values, wrong

    def _number(self, table: Any, name: str) -> Vector:
        values, wrong = self._raw(table, name)
        bad = wrong | _is_large(values)
        if bad.any():
            raise InvalidFeatures(f"{self._refused(name, table[name][int(np.argmax(bad))])}.")
        return values

    def _values(self, table: Any, source: tuple[str, ...]) -> Any:
        """The values of a category, or pairs of two, as text; "" where one is missing."""
        library = polars()
        texts = [table[name].cast(library.String).str.strip_chars().fill_null("") for name in source]
        first, *others = texts
        for other in others:
            first = first + "\x1f" + other
        return first

    def _places(self, table: Any, name: str, source: tuple[str, ...]) -> NDArray[np.int64]:
        """The feature of each row's value; -1 where it is none."""
        values = self._values(table, source)
        distinct = values.unique().to_list()
        known, bucket = self.categories.get(name, {}), self.buckets.get(name)
        places = [known.get(value, -1) for value in distinct]
        if bucket is not None:
            places = [
                place if place >= 0 else bucket + hash_bytes(value.encode()) % BUCKETS
                for place, value in zip(places, distinct, strict=True)
            ]
        if not distinct:
            return np.zeros(0, dtype=np.int64)
        return np.asarray(values.replace_strict(distinct, places, return_dtype=polars().Int64).to_numpy())

    def _times(self, table: Any, name: str) -> Any:
        return as_times(polars(), table[name])

    def _turns(self, table: Any, name: str, clocks: Sequence[str]) -> list[Vector]:
        """Sines and cosines of each clock; NaN where the time is missing.

        Time itself would always be beyond what was seen.
        """
        times = self._times(table, name)
        seconds = times.to_physical().cast(polars().Float64).to_numpy().astype(np.float64, copy=True) / 1e6
        if times.null_count():
            seconds[times.is_null().to_numpy()] = np.nan
        found: list[Vector] = []
        for clock, period, harmonics in CLOCKS:
            if clock in clocks:
                angle = 2.0 * math.pi * (((seconds + MONDAY) % period) / period)
                for k in range(1, harmonics + 1):
                    found += [np.sin(k * angle), np.cos(k * angle)]
        return found

    def _hands(self, table: Any, name: str, clocks: Sequence[str]) -> list[Any]:
        """Where the hands of each clock stand, as categories."""
        times, text = self._times(table, name).dt, polars().String
        hands = {"hour": times.hour, "weekday": times.weekday, "season": times.month}
        return [
            hands[clock]().cast(text).alias(f"{name}: {'month' if clock == 'season' else clock}") for clock in clocks
        ]

    # --- as data

    def to_state(self) -> State:
        """All of it, as data."""
        config = {
            "kinds": [[name, kind] for name, kind in self.kinds.items()],
            "many": list(self.many),
            "pairs": [list(pair) for pair in self.pairs],
            "hashed": self.hashed,
            "names": list(self.names),
            "categories": [
                [name, list(known), [int(place) for place in known.values()]] for name, known in self.categories.items()
            ],
            "buckets": [[name, place] for name, place in self.buckets.items()],
            "clocks": [[name, list(clocks)] for name, clocks in self.clocks.items()],
            "basis": None if self.basis is None else self.basis.to_state().config,
        }
        return State(config, {} if self.basis is None else dict(self.basis.to_state().arrays))

    @classmethod
    def from_state(cls, state: State) -> TableLayout:
        """The layout that this data describes."""
        config = state.config
        pairs = [(str(a), str(b)) for a, b in config["pairs"]]
        layout = cls({str(name): str(kind) for name, kind in config["kinds"]}, config["many"], pairs, config["hashed"])
        layout.names = [str(name) for name in config["names"]]
        layout.categories = {
            name: dict(zip(values, places, strict=True)) for name, values, places in config["categories"]
        }
        layout.buckets = {name: int(place) for name, place in config["buckets"]}
        layout.clocks = {name: list(clocks) for name, clocks in config["clocks"]}
        if config["basis"] is not None:
            layout.basis = NumberBasis.from_state(State(config["basis"], state.arrays))
        places = [place for known in layout.categories.values() for place in known.values()]
        places += [place + BUCKETS - 1 for place in layout.buckets.values()]
        if any(not 0 <= place < len(layout.names) for place in places):
            raise ModelFileError(f"places of categories must lie within {len(layout.names)} features.")
        return layout


def _clock_names(name: str, clocks: Sequence[str]) -> list[str]:
    found = []
    for clock, _, harmonics in CLOCKS:
        if clock in clocks:
            for k in range(1, harmonics + 1):
                times = "" if k == 1 else f" x{k}"
                found += [f"{name}: {clock}{times} sine", f"{name}: {clock}{times} cosine"]
    return found


def _told(source: tuple[str, ...], value: str, number: str | None) -> str:
    """What the feature of a value is called."""
    values = value.split("\x1f") if len(source) > 1 else [value]
    parts = [f"{column}={part}" if part else column + MISSING for column, part in zip(source, values, strict=False)]
    return " x ".join(parts if number is None else [*parts, number])


def _is_large(values: Vector) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        large: NDArray[np.bool_] = np.abs(values) > LARGEST
    return large
