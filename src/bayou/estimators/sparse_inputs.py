"""Inputs of estimators as sparse rows: those of sparse matrices, and those that `Hashing` makes of dicts and tables.

Numbers in dicts and tables are standardised by what was seen of their name, as in dense rows; everything else is
hashed as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Array, Likelihood, SparseRows, State, Vector
from bayou.encoders import Hashing, Standardizer
from bayou.encoders.standardizer import LARGEST, Frame, count_and_scale_column, deviation_of
from bayou.errors import InvalidFeatures
from bayou.estimators.dicts import number_of, text_way
from bayou.mixed_classes import MixedClasses
from bayou.mixed_prediction import MixedPrediction
from bayou.numerics.finite import count_larger
from bayou.numerics.hashed_names import HashedNames, feature_of
from bayou.numerics.hashed_tables import HashedTable
from bayou.numerics.table_columns import arrow_table, column_names, row_count
from bayou.numerics.table_numbers import number_names, numbers_of
from bayou.prediction import Prediction, joined
from bayou.sparse_bank import SparseBank
from bayou.sparse_learner import SparseLearner

Entries = tuple[NDArray[np.int32], Array]
ALL_TEXT = {str}
# Numbers count as no more than so many deviations: single precision holds their squares.
FARTHEST = 1e6
Learns = SparseLearner | SparseBank
Said = Prediction | MixedPrediction


def all_of(likelihood: Likelihood, parts: list[Any]) -> Any:
    """What was said of parts of the rows, as of one."""
    if parts and isinstance(parts[0], (MixedPrediction, MixedClasses)):
        return type(parts[0]).joined(parts)
    return joined(likelihood, parts)


class SparseInputs:
    """The columns of a sparse matrix, as they are."""

    def __init__(self, n_columns: int) -> None:
        self.n_columns = n_columns
        self.known_names: Mapping[int, str] = {}  # of some columns, where somebody knows them

    def learn(self, learner: Learns, rows: Any, targets: Vector, weights: Vector, tell: bool = True) -> Said:
        """Have the rows learnt; returns the predictions made before each target was used.

        A bank that is not to ``tell`` all says what it gave to the targets, and nothing else.
        """
        counts = weights if weights.size else None
        if isinstance(learner, SparseBank):
            return learner.learn_many(rows, targets, counts, tell)
        return learner.learn_many(rows, targets, counts)

    def predict(self, learner: Learns, rows: Any) -> Said:
        """What is known of the target of each row."""
        return learner.predict_many(rows)

    def encoded_one(self, x: Mapping[Hashable, Any], learn: bool) -> Entries:
        """Columns and values of a dict as one row."""
        raise InvalidFeatures(
            "a model that has learnt sparse rows knows columns, not names; got a dict. Use encoder=Hashing()."
        )

    def settle(self, learner: Learns) -> None:
        """Look again at how inputs are told."""

    def names_of(self, columns: NDArray[Any]) -> list[str]:
        """What each column is called."""
        return [self.known_names.get(column, f"x{column}") for column in columns.tolist()]

    def note(self) -> str:
        """What else there is to say of the inputs."""
        return ""

    def to_state(self) -> State:
        """All of it, as data."""
        return State({"n_columns": self.n_columns}, {})

    def load(self, state: State) -> None:
        """Be what this data describes."""


class Table:
    """A table whose rows can be counted and cut; what was found out about all of it is kept for its parts."""

    def __init__(self, columns: Any, rows: slice | None = None, known: dict[bool, Opened] | None = None) -> None:
        self.columns = arrow_table(columns) if rows is None else columns
        self.rows = slice(0, row_count(self.columns)) if rows is None else rows
        self.known: dict[bool, Opened] = {} if known is None else known

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(column_names(self.columns))

    def __len__(self) -> int:
        return int(self.rows.stop - self.rows.start)

    def __getitem__(self, rows: slice) -> Table:
        first, last, _ = rows.indices(len(self))
        part = slice(self.rows.start + first, self.rows.start + max(first, last))
        return Table(self.columns, part, self.known)


class Opened(NamedTuple):
    """All rows of a table: the numbers as they are, room for them as features, and where both are made rows of."""

    numbers: dict[str, Vector]
    scaled: dict[str, Vector]
    rows: HashedTable


class HashedInputs(SparseInputs):
    """Dicts and tables of any values: numbers standardised, everything else hashed."""

    def __init__(self, encoder: Hashing, standardize: bool, centred: bool, dtype: str) -> None:
        super().__init__(encoder.n_columns)
        self._dtype = np.dtype(dtype)
        self.encoder, self.standardize = encoder, standardize
        self.names = encoder.begin()
        self._standardizer = Standardizer(centred=centred)
        self._numbers: dict[str, int] = {}
        self._others: set[str] = set()
        self._frame = self._frame_of(0)

    def _frame_of(self, n: int) -> Frame:
        frame = self._standardizer.begin(n)
        if not self.standardize:
            frame.deviation[:] = 1.0
        return frame

    def _admit(self, names: list[str]) -> None:
        """Make room for numbers that were never seen."""
        for name in names:
            self._numbers[name] = len(self._numbers)
        frame = self._frame_of(len(self._numbers))
        for array, known in zip(frame, self._frame, strict=True):
            array[: known.size] = known
        self._frame = frame

    def _scale(self, name: str, values: Vector, weights: Vector, learn: bool, scaled: Vector) -> None:
        """The values of a number, as features: NaN where they are missing."""
        learns, centred = int(learn and self.standardize), int(self._standardizer.centred)
        count_and_scale_column(self._frame, self._numbers[name], values, weights, learns, centred, FARTHEST, scaled)

    def learn(self, learner: Learns, rows: Table, targets: Vector, weights: Vector, tell: bool = True) -> Said:
        """Have the rows learnt; returns the predictions made before each target was used."""
        how = {"tell": tell} if isinstance(learner, SparseBank) else {}
        parts = self._encoded(rows, weights, learn=True)
        said: Said = all_of(
            learner.likelihood, [learner.learn_unchecked(r, targets[p], weights[p], **how) for p, r in parts]
        )
        return said

    def predict(self, learner: Learns, rows: Table) -> Said:
        """What is known of the target of each row."""
        parts = [learner.predict_unchecked(part) for _, part in self._encoded(rows, np.zeros(0), learn=False)]
        said: Said = all_of(learner.likelihood, parts)
        return said

    def _encoded(self, rows: Table, weights: Vector, learn: bool) -> Iterator[tuple[slice, SparseRows]]:
        """The rows, in parts, as a learner takes them."""
        opened = rows.known.get(learn)
        if opened is None:
            opened = rows.known[learn] = self._open(rows.columns, learn)
        for name, scaled in opened.scaled.items():
            if name in self._numbers:  # one that was never learnt says nothing
                self._scale(name, opened.numbers[name][rows.rows], weights, learn, scaled[rows.rows])
        yield from opened.rows.chunks(rows.rows, learn)

    def _open(self, table: Any, learn: bool) -> Opened:
        numbers = self._table_numbers(table, learn)
        # What was never learnt says nothing, and stays 0; all others are written before they are read.
        scaled = {n: (np.empty if n in self._numbers else np.zeros)(len(values)) for n, values in numbers.items()}
        return Opened(numbers, scaled, self.encoder.open_table(self.names, table, scaled, self._dtype))

    def _table_numbers(self, table: Any, learn: bool) -> dict[str, Vector]:
        """The columns of numbers, by name; a column stays what it was when it first came."""
        found = number_names(table)
        others = [name for name in column_names(table) if name not in found]
        for name in found:
            if name in self._others:
                raise InvalidFeatures(f"column {name!r} held categories before; got numbers.")
        for name in others:
            if name in self._numbers:
                raise InvalidFeatures(f"column {name!r} held numbers before; got values of another kind.")
        numbers = {name: numbers_of(table, name) for name in found}
        for name, values in numbers.items():  # all of them, before any is counted
            check_number(name, values)
        fresh = [name for name in found if name not in self._numbers and name not in self.encoder.text]
        if learn and fresh:
            self._admit(fresh)
        if learn:
            self._others.update(others)
        return numbers

    def encoded_one(self, x: Mapping[Hashable, Any], learn: bool) -> Entries:
        """A dict as one row; text is a category, a number a number, None and NaN are missing."""
        if set(map(type, x.values())) <= ALL_TEXT:
            columns, values = self.encoder.encode_one(self.names, x, None, learn)  # type: ignore[arg-type]  # checked there
        else:
            columns, values = self.encoder.encode_one(self.names, *self._sorted(x, learn), learn)
        return columns, values.astype(self._dtype)

    def text_way(
        self, learner: Learns, targets: Mapping[Hashable, float], count: Callable[[float], None]
    ) -> Callable[[Any, Hashable], bool] | None:
        """The short way for a dict of texts: see `text_way`. None where there is none."""
        if self.encoder.text or not isinstance(learner, SparseLearner) or not learner.rule.matches_moments:
            return None
        return text_way(self.encoder, self.names, learner, targets, count)

    def _sorted(self, x: Mapping[Hashable, Any], learn: bool) -> tuple[dict[Any, Any], dict[Any, float]]:
        """Categories, and scaled numbers."""
        categories: dict[Any, Any] = {}
        numbers: dict[Any, float] = {}
        for name, value in x.items():
            if type(value) is str or self._is_category(name, value):
                categories[name] = value
            else:
                numbers[name] = number_of(name, value, "text, a number or None")
        for name in [name for name, value in categories.items() if value is None and name in self._numbers]:
            numbers[name] = math.nan
            del categories[name]
        return categories, self._scaled_one(numbers, learn) if numbers else numbers

    def _is_category(self, name: Hashable, value: Any) -> bool:
        """What is no text is a number, but for truth values, nothing at all, and where categories are expected."""
        known = name in self._others or name in self.encoder.text
        return known or value is None or isinstance(value, (str, bool, np.bool_))

    def _scaled_one(self, numbers: dict[str, float], learn: bool) -> dict[str, float]:
        fresh = [name for name in numbers if name not in self._numbers]
        if learn and fresh:
            self._admit(fresh)
        scaled = {name: np.empty(1) for name in numbers if name in self._numbers}
        for name, value in scaled.items():
            self._scale(name, np.array([numbers[name]]), np.zeros(0), learn, value)
        return {name: float(value[0]) for name, value in scaled.items()}

    def take_frame(self) -> None:
        """Let the frame of the numbers be that of what was seen; what was learnt is not told anew."""
        frame = self._frame
        if self.standardize:
            frame.deviation[...] = [deviation_of(frame, j) for j in range(frame.mean.size)]
            centred = (frame.deviation > 0.0) & self._standardizer.centred
            frame.centre[...] = np.where(centred, frame.mean, 0.0)

    def settle(self, learner: Learns) -> None:
        """Let the frame of the numbers follow what was seen; what was learnt in the old one is told in the new."""
        change = self._standardizer.retake(self._frame) if self.standardize else None
        if change is not None:
            self.retell(learner, *change)

    def retell(self, learner: Learns, change: Vector, move: Vector) -> None:
        """Let a learner go on with numbers that are told otherwise: what they were is change * new + move."""
        keys = [int(feature_of(name, self.encoder.seed).key) for name in self._numbers]
        columns = np.array([key >> (64 - self.encoder.bits) for key in keys])
        signs = np.array([-1.0 if self.encoder.signed and not key & 1 else 1.0 for key in keys])
        _, first = np.unique(columns, return_index=True)  # of two in one column, one cannot be told apart
        ratio, shift = change[first], move[first]
        if learner.constant:
            places = np.concatenate([[learner.n_features - 1], columns[first]])
            ratio = np.concatenate([[1.0], ratio])
            shift = np.concatenate([[0.0], signs[first] * shift / learner.constant])
        else:
            places, shift = columns[first], np.zeros(first.size)
        learner.retell_some(places, ratio, shift)

    def names_of(self, columns: NDArray[Any]) -> list[str]:
        """What each column is called, as far as is remembered."""
        return self.names.names_of(columns.tolist())

    def note(self) -> str:
        """How often names met in a column."""
        met = self.names.collisions
        share = met.shared_entries / met.entries if met.entries else 0.0
        return (
            f"hashing: {met.columns:,} columns met; {share:.2%} of the entries looked at share theirs with another name"
        )

    def to_state(self) -> State:
        """All of it, as data."""
        names = self.names.to_state()
        config = {"names": names.config, "numbers": list(self._numbers), "others": sorted(self._others)}
        arrays = {f"names.{name}": array for name, array in names.arrays.items()}
        return State(config, arrays | {f"frame.{name}": array for name, array in self._frame._asdict().items()})

    def load(self, state: State) -> None:
        """Be what this data describes."""
        arrays = {
            name.removeprefix("names."): array for name, array in state.arrays.items() if name.startswith("names.")
        }
        self.names = HashedNames.from_state(State(state.config["names"], arrays))
        self._admit([str(name) for name in state.config["numbers"]])
        self._others = {str(name) for name in state.config["others"]}
        for name, array in self._frame._asdict().items():
            array[...] = state.arrays[f"frame.{name}"]


def check_number(name: str, values: Vector) -> None:
    """Raise unless the numbers of a column can be learnt."""
    if count_larger(values, LARGEST) > 0.0:
        worst = values[np.abs(values) > LARGEST][0]
        raise InvalidFeatures(f"the numbers of {name!r} must be finite and below {LARGEST:g} in size; got {worst}.")
