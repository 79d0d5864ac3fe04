"""Sparse rows as kernels take them: from scipy and Arrow, checked once, with no column twice in a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Array, Matrix, SparseRows
from bayou.errors import InvalidFeatures, ShapeMismatch
from bayou.numerics.finite import LARGE
from bayou.numerics.jit import kernel
from bayou.numerics.sparse_checks import LARGE_SINGLE, all_ascend, beyond, decrease, outside

ALL_ONE: NDArray[np.float32] = np.zeros(0, dtype=np.float32)
MOST_COLUMNS = 2**31 - 1
STAMPS = 4096


@kernel
def first_repeat(starts: Any, columns: Any, stamps: Any) -> int:
    """The first row in which a column comes twice; -1 if there is none. A stamp tells the last row of its columns."""
    for n in range(starts.size - 1):
        suspect = False
        for k in range(starts[n], starts[n + 1]):
            place = columns[k] & (STAMPS - 1)
            suspect |= stamps[place] == n
            stamps[place] = n
        if suspect:
            for k in range(starts[n], starts[n + 1]):
                for i in range(starts[n], k):
                    if columns[i] == columns[k]:
                        return n
    return -1


@kernel
def sum_repeats(starts: Any, columns: Any, values: Array, new_starts: Any, new_columns: Any, new_values: Array) -> None:
    """Write the rows with columns in ascending order, each once, and what it has in all."""
    end = 0
    for n in range(starts.size - 1):
        begin = end
        for k in range(starts[n], starts[n + 1]):
            new_columns[end] = columns[k]
            new_values[end] = values[k] if values.size else 1.0
            end += 1
        gap = end - begin
        while gap > 1:  # Shell's sort, by Ciura's ratio
            gap = max(int(gap / 2.25), 1)
            for k in range(begin + gap, end):
                column, value = new_columns[k], new_values[k]
                i = k
                while i >= begin + gap and new_columns[i - gap] > column:
                    new_columns[i], new_values[i] = new_columns[i - gap], new_values[i - gap]
                    i -= gap
                new_columns[i], new_values[i] = column, value
        kept = begin
        for k in range(begin, end):
            if kept > begin and new_columns[kept - 1] == new_columns[k]:
                new_values[kept - 1] += new_values[k]
            else:
                new_columns[kept], new_values[kept] = new_columns[k], new_values[k]
                kept += 1
        end = kept
        new_starts[n + 1] = end


@kernel
def write_out(starts: Any, columns: Any, values: Array, full: Array) -> None:
    """Add the entries to rows of zeros."""
    for n in range(starts.size - 1):
        for k in range(starts[n], starts[n + 1]):
            full[n, columns[k]] += values[k] if values.size else 1.0


def in_full(rows: SparseRows) -> Matrix:
    """All entries of all rows."""
    full = np.zeros(rows.shape)
    write_out(rows.starts, rows.columns, rows.values, full)
    return full


def in_order(rows: SparseRows, order: NDArray[np.int64]) -> SparseRows:
    """The same rows, these first."""
    counts = np.diff(rows.starts)[order]
    starts = np.concatenate([np.zeros(1, counts.dtype), np.cumsum(counts)]).astype(rows.starts.dtype)
    entries = np.repeat(rows.starts[:-1][order] - starts[:-1], counts) + np.arange(starts[-1])
    values = rows.values[entries] if rows.values.size else rows.values
    return SparseRows(starts, rows.columns[entries], values, rows.n_columns)


def is_sparse(given: Any) -> bool:
    """Whether `sparse_rows` reads these as sparse."""
    if isinstance(given, SparseRows) or hasattr(given, "tocsr"):
        return True
    kind = str(getattr(given, "type", ""))
    return type(given).__module__.split(".")[0] == "pyarrow" and (
        hasattr(given, "non_zero_length") or kind.startswith(("list", "large_list", "map"))
    )


def sparse_rows(given: Any, n_columns: int | None = None) -> SparseRows:
    """Rows of a sparse matrix or array of scipy, of Arrow's `SparseCSRMatrix`, of an Arrow array of lists, or in full.

    The lists hold columns (all values 1), or pairs of a column and a value. Nothing is copied that need not be, and
    nothing checked; ``n_columns`` is needed by lists, which do not know it.
    """
    if isinstance(given, SparseRows):
        return given
    if hasattr(given, "tocsr"):
        matrix = given.tocsr()
        return SparseRows(matrix.indptr, matrix.indices, matrix.data, int(matrix.shape[1]))
    if type(given).__module__.split(".")[0] == "pyarrow":
        if hasattr(given, "to_numpy") and hasattr(given, "non_zero_length"):
            data, starts, columns = given.to_numpy()
            return SparseRows(starts.ravel(), columns.ravel(), data.ravel(), int(given.shape[1]))
        return _of_lists(given, n_columns)
    return _of_full(np.asarray(given))


def _of_full(matrix: NDArray[Any]) -> SparseRows:
    """Of rows told in full: what is not zero."""
    if matrix.ndim == 1:
        matrix = matrix[None, :]
    if matrix.ndim != 2:
        raise ShapeMismatch(f"`features` must be rows, sparse or told in full; got shape {matrix.shape}.")
    rows, columns = np.nonzero(matrix)
    starts = np.searchsorted(rows, np.arange(len(matrix) + 1))
    return SparseRows(starts, columns.astype(np.int32), matrix[rows, columns], matrix.shape[1])


def _of_lists(given: Any, n_columns: int | None) -> SparseRows:
    lists = given.combine_chunks() if hasattr(given, "combine_chunks") else given
    if n_columns is None:
        raise InvalidFeatures("an Arrow array of lists does not know its width: `n_columns` must be given.")
    if not hasattr(lists, "offsets"):
        raise InvalidFeatures(f"rows must be an Arrow array of lists; got {lists.type}.")
    if lists.null_count:
        raise InvalidFeatures(f"a row must be a list, if only an empty one; got {lists.null_count} that are null.")
    starts, entries = lists.offsets.to_numpy(), lists.values
    parts = [entries.field(i) for i in range(entries.type.num_fields)] if entries.type.num_fields else [entries]
    if len(parts) > 2 or any(part.null_count for part in parts):
        raise InvalidFeatures(f"an entry must be a column, or a column and a value, without nulls; got {entries.type}.")
    values = parts[1].to_numpy(zero_copy_only=False) if len(parts) == 2 else ALL_ONE
    return SparseRows(starts, parts[0].to_numpy(zero_copy_only=False), values, n_columns)


def checked(rows: SparseRows, n_columns: int, dtype: Any, first_row: int = 0) -> tuple[SparseRows, bool]:
    """The rows in the types of the kernels, no column twice, and whether any value could make a latent overflow.

    Raises unless all of them can be learnt; rows are counted from ``first_row`` on.
    """
    if rows.n_columns != n_columns:
        raise ShapeMismatch(f"`features` must have {n_columns} columns; got {rows.n_columns}.")
    if rows.starts.ndim != 1 or rows.starts.size == 0 or rows.columns.ndim != 1 or rows.values.ndim != 1:
        raise ShapeMismatch("the starts, columns and values of sparse rows must be arrays of one axis.")
    if not (np.issubdtype(rows.starts.dtype, np.integer) and np.issubdtype(rows.columns.dtype, np.integer)):
        raise InvalidFeatures(f"columns must be whole numbers; got {rows.columns.dtype}.")
    if np.issubdtype(rows.values.dtype, np.complexfloating) or rows.values.dtype == object:
        raise InvalidFeatures(f"values must be real numbers; got {rows.values.dtype}.")
    starts = np.require(rows.starts, np.int64, ["C", "W"])
    if rows.values.size and rows.values.size != rows.columns.size:
        raise ShapeMismatch(f"there must be a value per column, {rows.columns.size}; got {rows.values.size}.")
    row = decrease(starts, rows.columns.size)
    if row >= 0:
        raise InvalidFeatures(
            f"the entries of row {first_row + row} must begin and end among the {rows.columns.size} there are, in this "
            f"order; got {starts[row]} to {starts[row + 1]}."
        )
    first, last = int(starts[0]), int(starts[-1])
    columns = rows.columns
    if columns.dtype != np.int32:
        _check_columns(starts, columns, n_columns, first_row)
        columns = columns.astype(np.int32)
    columns = np.require(columns, requirements=["C", "W"])
    if outside(columns, first, last, n_columns):
        _check_columns(starts, columns, n_columns, first_row)
    with np.errstate(over="ignore"):
        values = np.require(rows.values, dtype, ["C", "W"])
    large = bool(values.size) and beyond(values, first, last, LARGE if values.itemsize == 8 else LARGE_SINGLE) > 0
    if large and not np.isfinite(values[first:last]).all():
        place = first + int(np.argmin(np.isfinite(values[first:last])))
        row = first_row + int(np.searchsorted(starts, place, side="right")) - 1
        raise InvalidFeatures(
            f"`features` must be finite; got {rows.values[place]} in row {row}, column {columns[place]}."
        )
    tidy = SparseRows(starts, columns, values, n_columns)
    if not all_ascend(starts, columns) and first_repeat(starts, columns, np.full(STAMPS, -1)) >= 0:
        tidy = _without_repeats(tidy, dtype)
    return tidy, large


def _check_columns(starts: NDArray[np.int64], columns: NDArray[Any], n_columns: int, first_row: int) -> None:
    """Raise unless there is every column."""
    told = columns[starts[0] : starts[-1]]
    wrong = (told < 0) | (told >= n_columns)
    if wrong.any():
        place = int(np.argmax(wrong))
        row = first_row + int(np.searchsorted(starts, starts[0] + place, side="right")) - 1
        raise InvalidFeatures(f"columns must be from 0 to {n_columns - 1}; got {told[place]} in row {row}.")


def _without_repeats(rows: SparseRows, dtype: Any) -> SparseRows:
    count = int(rows.starts[-1] - rows.starts[0])
    starts, columns = np.zeros(len(rows) + 1, dtype=np.int64), np.empty(count, dtype=np.int32)
    values = np.empty(count, dtype=dtype)
    sum_repeats(rows.starts, rows.columns, rows.values, starts, columns, values)
    return SparseRows(starts, columns[: starts[-1]], values[: starts[-1]], rows.n_columns)
