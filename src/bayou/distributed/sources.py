"""Where rows come from, cut into shards: each can be read anywhere, as often as it takes, some rows at a time.

    a file, a folder, a pattern, a list of files    a shard per file, or as many as were asked for, of neighbours; of
                                                    one Parquet file as many as were asked for
    a DataFrame or an Array of Dask                 a shard per partition, computed where it is learnt
    a list of tables or streams of Arrow            a shard each
    (X, y) or (X, y, weights)                       as many shards of rows as were asked for
    (X, y), where X is a sparse matrix of scipy     the same
    a list of shards of your own                    what has `chunks`, as `Shard` says

How rows are cut depends on the source alone, never on how many workers there are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bayou.errors import InvalidSpec, StreamError
from bayou.numerics.files import evenly, files, polars, told_plainly
from bayou.numerics.sniffing import named
from bayou.streams import arrow, open_source, open_tables, parquet
from bayou.streams.sources import ENDINGS, WITHOUT_COLUMNS

CHUNK_ROWS = 16_384
TEXT = ("csv", "tsv", "json")  # formats that do not tell their types
USUAL_SHARDS = 16  # of what has no partitions of its own
FEWEST_ROWS = 4096  # of such a shard


class Shard(Protocol):
    """Rows that can be read again and again, in the same order, wherever this is sent."""

    def chunks(self) -> Iterator[Any]:
        """Tables, or (X, y, weights), of at most `CHUNK_ROWS` rows."""


@dataclass(frozen=True)
class FileShard:
    """Files, one after another, or some rows of one."""

    paths: tuple[str, ...]
    format: str | None = None
    types: Mapping[str, Any] | None = None
    names: tuple[str, ...] | None = None
    rows: tuple[int, int] | None = None  # first, and how many

    def chunks(self) -> Iterator[Any]:
        """Tables."""
        if all(path.endswith(tuple(parquet.ENDINGS)) for path in self.paths) and self.format in (None, "parquet"):
            for path in self.paths:
                yield from parquet_chunks(path, self.rows)
        elif self.format in WITHOUT_COLUMNS or named(self.paths[0], ENDINGS) in WITHOUT_COLUMNS:
            for path in self.paths:
                yield from open_tables(path, self.format, CHUNK_ROWS, names=self.names).rows
        else:
            for path in self.paths:
                yield from open_source(
                    path, format=self.format, types=self.types, names=self.names, chunk_rows=CHUNK_ROWS
                )


def parquet_chunks(path: str, rows: tuple[int, int] | None = None) -> Iterator[Any]:
    """Tables of a Parquet file, or of some of its rows: first, and how many.

    Pages are decoded as rows are asked for, so that what is held does not grow with row groups that are large.
    """
    library, arrow_parquet = polars(), parquet._pyarrow_parquet()
    with told_plainly(path, parquet.WHOLE), arrow_parquet.ParquetFile(path, pre_buffer=False) as file:
        sizes = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
        starts = np.cumsum([0, *sizes])
        first, last = (0, int(starts[-1])) if rows is None else (rows[0], rows[0] + rows[1])
        groups = [g for g, size in enumerate(sizes) if starts[g] < last and starts[g] + size > first]
        at = int(starts[groups[0]]) if groups else 0
        for batch in file.iter_batches(batch_size=CHUNK_ROWS, row_groups=groups, use_threads=False):
            wanted = batch.slice(max(first - at, 0), last - max(first, at)) if at < last else None
            at += batch.num_rows
            if wanted is not None and wanted.num_rows:
                yield library.from_arrow(wanted)


@dataclass(frozen=True, eq=False)
class TableShard:
    """A table that is sent along."""

    table: Any

    def chunks(self) -> Iterator[Any]:
        """Tables."""
        yield from arrow.read_arrow(self.table, chunk_rows=CHUNK_ROWS)


@dataclass(frozen=True, eq=False)
class ArrayShard:
    """Rows, targets and weights, or parts of arrays of Dask that are computed when they are read."""

    parts: tuple[Any, ...]

    def chunks(self) -> Iterator[Any]:
        """(X, y, weights), the last of which may be None."""
        X, y, *weights = (_as_array(_computed(part)) for part in self.parts)
        if X.shape[0] != len(y):
            raise StreamError(f"`y` must have one value per row, {X.shape[0]}; got {len(y)}.")
        for part in evenly(X.shape[0], CHUNK_ROWS):
            yield X[part], y[part], weights[0][part] if weights else None


@dataclass(frozen=True, eq=False)
class PartitionShard:
    """A partition of a DataFrame of Dask, computed when it is read."""

    partition: Any

    def chunks(self) -> Iterator[Any]:
        """Tables of pandas."""
        table = _computed(self.partition)
        yield from (table.iloc[part] for part in evenly(len(table), CHUNK_ROWS))


@dataclass(frozen=True)
class Reading:
    """How files are to be read."""

    format: str | None = None
    names: tuple[str, ...] | None = None
    types: Mapping[str, Any] = field(default_factory=dict)


def shards_of(source: Any, n_shards: int | None = None, reading: Reading | None = None) -> list[Shard]:
    """The shards of a source."""
    if n_shards is not None and not (isinstance(n_shards, int) and n_shards >= 1):
        raise InvalidSpec(f"`shards` must be a whole number, at least 1; got {n_shards!r}.")
    home = type(source).__module__.partition(".")[0]
    if home == "dask":
        return _dask_shards(source)
    if isinstance(source, tuple):
        return _array_shards(source, n_shards)
    if isinstance(source, (str, os.PathLike)):
        return _file_shards(source, n_shards, reading or Reading())
    if arrow.is_table(source):
        return _table_shards([source], n_shards)
    if isinstance(source, Sequence) and source:
        if all(isinstance(part, (str, os.PathLike)) for part in source):
            return _file_shards(source, n_shards, reading or Reading())
        if all(hasattr(part, "chunks") for part in source):
            return list(source)
        if all(arrow.is_table(part) for part in source):
            return _table_shards(list(source), n_shards)
    raise InvalidSpec(
        "`source` must be files, a DataFrame or Array of Dask, a list of tables of Arrow, or (X, y); "
        f"got {type(source).__name__}."
    )


def _computed(part: Any) -> Any:
    return part.compute(scheduler="synchronous") if hasattr(part, "compute") else part


def _as_array(given: Any) -> Any:
    return given.tocsr() if hasattr(given, "tocsr") else np.asarray(given)


def _file_shards(source: Any, n_shards: int | None, reading: Reading) -> list[Shard]:
    endings = [ending for some in ENDINGS.values() for ending in some]
    found = files(source, endings)
    for file in found:
        if not isinstance(file, Path):
            raise InvalidSpec(f"shards must be files, which can be read again; got {file}.")
    if len(found) == 1 and found[0].name.endswith(tuple(parquet.ENDINGS)) and n_shards != 1:
        return _row_shards(found[0], n_shards)
    types = _types_of(found[0], reading)
    groups = _parts(len(found), min(n_shards or len(found), len(found)))
    return [FileShard(tuple(map(str, found[g])), reading.format, types, reading.names) for g in groups]


def _types_of(first: Path, reading: Reading) -> Mapping[str, Any] | None:
    """The types of columns that a format does not tell: those of the first file hold for all."""
    if first.name.endswith(tuple(parquet.ENDINGS)) or reading.format in ("parquet", "ipc"):
        return None
    if (reading.format or named(str(first), ENDINGS)) in WITHOUT_COLUMNS:
        return None
    head = next(open_source(first, format=reading.format, names=reading.names, types=reading.types))
    return dict(head.schema)


def _row_shards(file: Path, n_shards: int | None) -> list[Shard]:
    """Parts of one Parquet file."""
    total = int(polars().scan_parquet(file, glob=False).select(polars().len()).collect().item())
    return [FileShard((str(file),), rows=(p.start, p.stop - p.start)) for p in _parts(total, n_shards)]


def _parts(total: int, n_shards: int | None) -> list[slice]:
    """As many parts as were asked for; else the usual number, of some thousand rows each at least."""
    count = n_shards or max(1, min(USUAL_SHARDS, total // FEWEST_ROWS))
    ends = [total * k // count for k in range(count + 1)]
    return [slice(start, stop) for start, stop in pairwise(ends) if stop > start]


def _table_shards(tables: list[Any], n_shards: int | None) -> list[Shard]:
    library = polars()
    read = [library.concat(arrow.read_arrow(table)) for table in tables]  # a stream is read once, a shard more often
    if len(read) == 1:
        return [TableShard(read[0][part]) for part in _parts(len(read[0]), n_shards)]
    return [TableShard(table) for table in read]


def _array_shards(arrays: tuple[Any, ...], n_shards: int | None) -> list[Shard]:
    if len(arrays) not in (2, 3):
        raise InvalidSpec(f"`source` must be (X, y) or (X, y, weights); got {len(arrays)} arrays.")
    X, *others = arrays
    n_rows = X.shape[0] if hasattr(X, "tocsr") else len(X)
    for other in others:
        if len(other) != n_rows:
            raise InvalidSpec(f"`source` must have one target and weight per row, {n_rows}; got {len(other)}.")
    if type(X).__module__.startswith("dask"):
        together = [X.rechunk({1: -1}), *(_aligned(other, X.chunks[0]) for other in others)]
        return [ArrayShard(tuple(part.blocks[k] for part in together)) for k in range(X.numblocks[0])]
    given = [_as_array(array) for array in arrays]
    return [ArrayShard(tuple(array[part] for array in given)) for part in _parts(n_rows, n_shards)]


def _aligned(array: Any, chunks: Sequence[int]) -> Any:
    """Targets in parts that are those of the rows."""
    if hasattr(array, "rechunk"):
        return array.rechunk((tuple(chunks),))
    from dask.array import from_array  # noqa: PLC0415  # an extra, which rows of Dask have brought

    return from_array(np.asarray(array), chunks=(tuple(chunks),))


def _dask_shards(source: Any) -> list[Shard]:
    if not hasattr(source, "partitions") or not hasattr(source, "columns"):
        raise InvalidSpec("an Array of Dask has no targets: give (X, y), or a DataFrame with a target.")
    return [PartitionShard(source.partitions[k]) for k in range(source.npartitions)]
