"""A mixture from shards: every step's sums over the rows are taken shard by shard and added up in the tree.

So it is the batch fit, step by step, of rows that no process holds together: the same to rounding. Each step reads all
shards once more.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bayou.contracts import Matrix, Vector
from bayou.distributed.engines import Engine, engine_of
from bayou.distributed.progress import Show, Stage, bar
from bayou.distributed.shards import one_thread
from bayou.distributed.sources import Reading, Shard, shards_of
from bayou.encoders.standardizer import check_magnitude
from bayou.errors import InvalidFeatures, InvalidSpec, StreamError
from bayou.estimators import HarmonyMixture
from bayou.estimators.complete_rows import scaled
from bayou.mixtures import all_rows
from bayou.mixtures.all_rows import Cut, Gains, HeldRows
from bayou.mixtures.gaussians import Gaussians
from bayou.mixtures.sums import Sums
from bayou.numerics.column_moments import Moments, moments_and_missing
from bayou.numerics.files import polars
from bayou.numerics.table_kinds import as_table, listed


@dataclass(frozen=True, eq=False)
class FittedMixture:
    """A mixture that was learnt in shards, and what it took: ``looks`` is how often all rows were read."""

    model: HarmonyMixture
    rows: int
    n_shards: int
    looks: int
    seconds: float
    bytes_moved: int

    def __str__(self) -> str:
        found = f"{self.model.n_clusters_} clusters in {self.rows:,} rows, in {self.n_shards} shards"
        took = f"{self.looks:,} looks at all rows, {self.seconds:.3g} s, {self.bytes_moved / 1e6:,.1f} MB moved"
        return f"{found}: {took}\nexact: the same as of `fit` with all rows in one place"


@dataclass(frozen=True)
class Columns:
    """What of a shard's chunks is rows of numbers; all columns of tables, if none are named."""

    names: tuple[str, ...] | None = None

    def named(self, chunk: Any) -> Columns:
        """With the names of the first rows, where these are a table."""
        if isinstance(chunk, tuple) or self.names is not None:
            return self
        return Columns(tuple(as_table(chunk).columns))

    def rows(self, chunk: Any) -> Matrix:
        """The rows, all of whose values must be there."""
        if isinstance(chunk, tuple):
            rows = np.asarray(chunk[0], dtype=np.float64)
        else:
            table, library = as_table(chunk), polars()
            for name in self.names or ():
                if name not in table.columns:
                    raise StreamError(f"the table must have a column {name!r}; got {listed(table.columns, name)}.")
            try:
                told = table.select(library.col(list(self.names or ())).cast(library.Float64))
                rows = np.array(told.to_numpy(), dtype=np.float64, order="C")
            except Exception as error:
                raise InvalidFeatures(f"columns of a mixture must be numbers: name those that are; {error}.") from error
        if rows.ndim != 2:
            raise InvalidFeatures(f"rows must be a matrix; got shape {rows.shape}.")
        if not np.isfinite(rows).all():
            raise InvalidFeatures("a mixture takes no missing values; got NaN or infinity.")
        check_magnitude(rows)
        return rows


@dataclass(frozen=True, eq=False)
class Told:
    """How all shards tell their rows."""

    columns: Columns
    location: Vector
    scale: Vector

    def chunks(self, shard: Shard) -> Iterator[Matrix]:
        """Standardised rows."""
        for chunk in shard.chunks():
            rows = self.columns.rows(chunk)
            yield np.ascontiguousarray(scaled(rows, self.location, self.scale))


# --- what runs where a shard is


class Looked(NamedTuple):
    """Columns, their moments, and how many rows each shard has."""

    columns: Columns
    moments: Moments
    rows: tuple[int, ...]


def look(columns: Columns, shard: Shard) -> Looked:
    """The moments of a shard."""
    moments: Moments | None = None
    n_rows = 0
    for chunk in shard.chunks():
        columns = columns.named(chunk)
        rows = columns.rows(chunk)
        part, _ = moments_and_missing(rows)
        moments = part if moments is None else moments.joined(part)
        n_rows += len(rows)
    if moments is None:
        raise StreamError("a shard must have rows; got none.")
    return Looked(columns, moments, (n_rows,))


def join(one: Looked, other: Looked) -> Looked:
    """What was seen of the rows of both."""
    had = [looked.columns.names or looked.moments.mean.size for looked in (one, other)]
    if had[0] != had[1]:
        raise StreamError(f"shards must have the same columns, {had[0]}; got {had[1]}.")
    return Looked(one.columns, one.moments.joined(other.moments), one.rows + other.rows)


def sums_of(
    told: Told, shard: Shard, clusters: Gaussians, matching: float, nearest: int, chosen: Gaussians | None
) -> Sums:
    """The sums over a shard."""
    found: Sums | None = None
    with one_thread():
        for rows in told.chunks(shard):
            part = HeldRows(rows).sums(clusters, matching, nearest, chosen)
            found = part if found is None else all_rows.joined(found, part)
    assert found is not None  # a shard without rows was refused when all were looked at
    return found


def gains_of(told: Told, shard: Shard, clusters: Gaussians, cuts: Sequence[Cut], matching: float) -> Gains:
    """What cuts are worth to the points of a shard."""
    found: Gains | None = None
    with one_thread():
        for rows in told.chunks(shard):
            part = HeldRows(rows).gains(clusters, cuts, matching)
            found = part if found is None else join_gains(found, part)
    assert found is not None
    return found


def join_gains(one: Gains, other: Gains) -> Gains:
    """To the points of both."""
    return Gains(one.gains + other.gains, one.owned + other.owned)


def rows_at(told: Told, shard: Shard, places: NDArray[np.int64]) -> Matrix:
    """The rows at some places of a shard, in the order of the shard."""
    found, start = [], 0
    for rows in told.chunks(shard):
        own = places[(places >= start) & (places < start + len(rows))] - start
        found.append(rows[own])
        start += len(rows)
    return np.concatenate(found)


def join_rows(one: Matrix, other: Matrix) -> Matrix:
    """One after the other."""
    return np.concatenate([one, other])


# --- what asks


class RowsInShards:
    """Standardised rows in shards, of which harmony learning asks for sums."""

    def __init__(self, engine: Engine, shards: Sequence[Shard], counts: Sequence[int], show: Show | None) -> None:
        self._engine, self._shards, self._counts, self._show = engine, shards, list(counts), show
        self._told: Any = None
        self._width = 0
        self.looks, self.bytes_moved = 0, 0

    def told_in(self, columns: Columns, location: Vector, scale: Vector) -> RowsInShards:
        """The same, in units."""
        self._told, self._width = self._engine.share(Told(columns, location, scale)), location.size
        return self

    @property
    def shape(self) -> tuple[int, int]:
        """How many there are, and how many columns they have."""
        return sum(self._counts), self._width

    def drawn(self, places: NDArray[np.int64] | None) -> Matrix:
        """The rows at some places, in that order; None is for all of them."""
        wanted = np.arange(self.shape[0]) if places is None else np.asarray(places, dtype=np.int64)
        ends = np.cumsum([0, *self._counts])
        order = np.argsort(wanted, kind="stable")
        inside = np.split(wanted[order], np.searchsorted(wanted[order], ends[1:-1]))
        tasks = [(own - start,) for own, start in zip(inside, ends, strict=False)]
        size = 8 * self._width * len(wanted)
        told: Matrix = self._asked(rows_at, join_rows, tasks, size // len(tasks))
        found = np.empty_like(told)
        found[order] = told
        return found

    def sums(self, clusters: Gaussians, matching: float, nearest: int, chosen: Gaussians | None = None) -> Sums:
        """The sums over all shards."""
        task = self._engine.share(clusters), matching, nearest, None if chosen is None else self._engine.share(chosen)
        found: Sums = self._asked(sums_of, all_rows.joined, [task] * len(self._shards), 2 * _size(clusters))
        return found

    def gains(self, clusters: Gaussians, cuts: Sequence[Cut], matching: float) -> Gains:
        """What each cut is worth to the points of its cluster."""
        task = self._engine.share(clusters), self._engine.share(list(cuts)), matching
        size = (1 + len(cuts)) * _size(clusters)
        found: Gains = self._asked(gains_of, join_gains, [task] * len(self._shards), size)
        return found

    def _asked(self, function: Any, combine: Any, tasks: Sequence[tuple[Any, ...]], n_bytes: int) -> Any:
        """What all shards answer, as one."""
        self.looks += 1
        self.bytes_moved += n_bytes * len(tasks)
        stage = Stage(f"look {self.looks}", self._counts, n_bytes, self._show)
        asked = [(self._told, shard, *task) for shard, task in zip(self._shards, tasks, strict=True)]
        return self._engine.reduce(combine, self._engine.map(function, asked, stage))


def _size(clusters: Gaussians) -> int:
    return sum(np.asarray(part).nbytes for part in clusters)


def fit_mixture(
    estimator: HarmonyMixture,
    source: Any,
    columns: Sequence[str] | None = None,
    engine: Any = None,
    shards: int | None = None,
    reading: Reading | None = None,
    progress: Show | bool = False,
) -> FittedMixture:
    """Learn a `HarmonyMixture` of rows in shards: the batch fit, whose sums over rows are added up from the shards.

    ``source`` is what `fit` takes, or a matrix of NumPy or Dask; ``columns`` are those of tables that count, all of
    them by default. What is learnt is that of `HarmonyMixture.fit` to rounding; labels of the rows are not kept.

    >>> import numpy as np
    >>> from bayou import HarmonyMixture
    >>> from bayou.distributed import InProcess, fit_mixture
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(6000, 2)) + np.repeat([[0.0, 0.0], [8.0, 0.0]], 3000, axis=0)
    >>> fit_mixture(HarmonyMixture(), rows, engine=InProcess(), shards=3).model.n_clusters_
    2
    """
    if type(estimator) is not HarmonyMixture:
        raise InvalidSpec(f"the estimator must be a HarmonyMixture; got {type(estimator).__name__}.")
    show = bar if progress is True else (progress or None)
    if hasattr(source, "ndim") and hasattr(source, "dtype") and source.ndim == 2:  # a matrix has no targets
        source = source, np.zeros(len(source))
    parts = shards_of(source, shards, reading)
    model: HarmonyMixture = clone(estimator)
    started = time.perf_counter()
    with engine_of(engine) as runs:
        first = runs.share(Columns(None if columns is None else tuple(columns)))
        stage = Stage("looking ", [0] * len(parts), 0, show)
        looked: Looked = runs.reduce(join, runs.map(look, [(first, shard) for shard in parts], stage))
        rows = RowsInShards(runs, parts, looked.rows, show)
        deviation = np.sqrt(looked.moments.squares / looked.moments.weight)
        model.learn_apart(looked.moments.mean, deviation, lambda *units: rows.told_in(looked.columns, *units))
    if looked.columns.names is not None:
        model.feature_names_in_ = np.asarray(looked.columns.names, dtype=object)
    seconds = time.perf_counter() - started
    return FittedMixture(model, rows.shape[0], len(parts), rows.looks + 1, seconds, rows.bytes_moved)
