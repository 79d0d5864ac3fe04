"""From what a shard gives to rows of numbers and targets; and what there is to see of them before they are learnt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.distributed.sources import Shard
from bayou.errors import InvalidFeatures, InvalidSpec, StreamError
from bayou.estimators.common_frame import Seen
from bayou.estimators.table_model import CLASSES, TableModel
from bayou.estimators.table_weights import weights_of
from bayou.numerics.column_moments import Moments
from bayou.numerics.files import polars
from bayou.numerics.table_kinds import as_table, listed


class Examples(NamedTuple):
    """Rows of numbers, in which NaN is missing, with targets as they came and weights, if there are any."""

    rows: Matrix
    targets: NDArray[Any]
    weights: Vector | None


class Reader(Protocol):
    """Knows what the columns are."""

    @property
    def are_numbers(self) -> bool:
        """Whether targets are numbers, not classes."""

    def admitted(self, chunk: Any) -> Reader:
        """The same, with columns for values that were never seen."""

    def examples(self, chunk: Any) -> Examples:
        """The rows of a chunk that have a target."""

    def joined(self, other: Any, seen: Seen) -> tuple[Reader, Seen]:
        """One that knows what both do; and what the other has seen, in columns of that one."""


@dataclass(frozen=True)
class ArrayReader:
    """Rows that are numbers already: arrays, or tables of which one column is the target."""

    are_numbers: bool
    target: str | None = None
    columns: tuple[str, ...] | None = None
    sparse: bool = False  # whether rows are those of sparse matrices, which are not standardised

    def admitted(self, chunk: Any) -> ArrayReader:
        """Names of columns are those of the first rows."""
        if isinstance(chunk, tuple) or self.columns is not None:
            return self
        table = as_table(chunk)
        if self.target is None:
            raise InvalidSpec(f"`target` must name a column of the tables; got None of {listed(table.columns)}.")
        if self.target not in table.columns:
            raise StreamError(
                f"the target must be a column; got {self.target!r} of {listed(table.columns, self.target)}."
            )
        return replace(self, columns=tuple(name for name in table.columns if name != self.target))

    def examples(self, chunk: Any) -> Examples:
        """Rows of an array, or the columns of a table that are not the target."""
        if isinstance(chunk, tuple):
            X, y, weights = chunk
            given = None if weights is None else np.asarray(weights, dtype=np.float64)
            rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
            if rows.ndim != 2:
                raise InvalidFeatures(f"rows must be a matrix; got shape {rows.shape}.")
            return Examples(rows, np.asarray(y), given)
        table, library = as_table(chunk), polars()
        assert self.columns is not None
        for name in (*self.columns, str(self.target)):
            if name not in table.columns:
                raise StreamError(f"the table must have a column {name!r}; got {listed(table.columns, name)}.")
        told = table.filter(table[str(self.target)].is_not_null())
        try:
            rows = told.select(library.col(list(self.columns)).cast(library.Float64)).to_numpy()
        except Exception as error:
            raise InvalidFeatures(f"columns must be numbers, or be learnt by a TableModel; got {error}.") from error
        return Examples(np.array(rows, dtype=np.float64, order="C"), told[str(self.target)].to_numpy(), None)

    def joined(self, other: ArrayReader, seen: Seen) -> tuple[ArrayReader, Seen]:
        """Columns must be the same."""
        if self.columns != other.columns:
            raise StreamError(f"shards must have the same columns, {self.columns}; got {other.columns}.")
        return self, seen


@dataclass(frozen=True, eq=False)
class TableReader:
    """Rows of tables, as a `TableModel` has laid them out."""

    model: TableModel

    @property
    def are_numbers(self) -> bool:
        """Whether targets are numbers, not classes."""
        return self.model.task not in CLASSES

    def admitted(self, chunk: Any) -> TableReader:
        """With columns for values that were never seen."""
        layout = self.model.layout
        assert layout is not None
        return TableReader(_laid_out(self.model, layout.admitted(self.model._as_table(chunk))))

    def examples(self, chunk: Any) -> Examples:
        """The rows that have a target."""
        model, table = self.model, self.model._as_table(chunk)
        assert model.layout is not None
        targets, known = model.target.of(table, model.task)
        told = table if known.all() else table.filter(polars().Series(known))
        return Examples(model._inputs_of(model.layout, told), targets, weights_of(told, model.weight))

    def joined(self, other: TableReader, seen: Seen) -> tuple[TableReader, Seen]:
        """With the values of both."""
        mine, theirs = self.model.layout, other.model.layout
        assert mine is not None
        assert theirs is not None
        layout, places = mine.joined(theirs)
        return TableReader(_laid_out(self.model, layout)), placed(seen, places, len(layout.names))


def _laid_out(model: TableModel, layout: Any) -> TableModel:
    other = TableModel(model.target.text, model.task, model.encoder, model.weight, model.bits, model.budget)
    other.target, other.layout = model.target, layout
    return other


class Looked(NamedTuple):
    """A reader that knows all values of some shards, what was seen of them, and how many rows each has."""

    reader: Any
    seen: Seen
    rows: tuple[int, ...]


def look(reader: Reader, shard: Shard) -> Looked:
    """All rows of a shard, before anything is learnt."""
    seen: Seen | None = None
    for chunk in shard.chunks():
        reader = reader.admitted(chunk)
        examples = reader.examples(chunk)
        part = Seen.of(*examples, reader.are_numbers)
        seen = part if seen is None else widened(seen, part.columns.mean.size).joined(part)
    if seen is None:
        raise StreamError("a shard must have rows; got none.")
    return Looked(reader, seen, (seen.rows,))


def join(one: Looked, other: Looked) -> Looked:
    """What was seen of the rows of both."""
    reader, seen = one.reader.joined(other.reader, other.seen)
    n_columns = seen.columns.mean.size
    if n_columns < one.seen.columns.mean.size:
        raise StreamError(f"shards must have the same columns, {one.seen.columns.mean.size}; got {n_columns}.")
    return Looked(reader, widened(one.seen, n_columns).joined(seen), one.rows + other.rows)


def widened(seen: Seen, n_columns: int) -> Seen:
    """The same rows with columns that were 0 in all of them."""
    known = seen.columns.mean.size
    if known == n_columns:
        return seen
    return placed(seen, np.arange(known), n_columns)


def placed(seen: Seen, places: NDArray[np.intp], n_columns: int) -> Seen:
    """The same rows, their columns in other places. Where several come to one, at most one is not 0 in a row."""
    columns = seen.columns
    sums, squares = np.zeros(n_columns), np.zeros(n_columns)
    np.add.at(sums, places, columns.weight * columns.mean)
    np.add.at(squares, places, columns.squares + columns.weight * columns.mean**2)
    weight = np.full(n_columns, seen.weight)
    weight[places] = columns.weight
    safe = np.where(weight > 0.0, weight, 1.0)
    moments = Moments(weight, sums / safe, np.maximum(squares - sums**2 / safe, 0.0))
    alone = np.bincount(places, minlength=n_columns)[places] == 1  # of these nothing is rounded
    for array, value in zip(moments, columns, strict=True):
        array[places[alone]] = value[alone]
    return seen._replace(columns=moments)
