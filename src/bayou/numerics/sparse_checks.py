"""Whether sparse rows are such that kernels may trust them."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayou.contracts import Array
from bayou.numerics.finite import LARGE
from bayou.numerics.jit import borrowing_kernel, kernel

# Squares of larger values, times a variance, might not be held in single precision.
LARGE_SINGLE = 1e18


@borrowing_kernel
def outside(columns: Any, begin: int, end: int, n_columns: int) -> float:
    """About how many columns there are not, at least one if any: negative ones are large as unsigned ones."""
    part = columns[begin:end]
    wide = np.uint32(n_columns)
    count = np.float32(0.0)  # sums of short floats use the machine's width
    for k in range(part.size):
        count += np.float32(1.0) if np.uint32(part[k]) >= wide else np.float32(0.0)
    return float(count)


@borrowing_kernel
def beyond(values: Array, begin: int, end: int, bound: float) -> float:
    """About how many values are not within the bound, at least one if any; NaN never is."""
    part = values[begin:end]
    limit = values.dtype.type(bound)
    count = np.float32(0.0)
    for k in range(part.size):
        count += np.float32(0.0) if abs(part[k]) <= limit else np.float32(1.0)
    return float(count)


@borrowing_kernel
def descents(columns: Any, begin: int, end: int) -> float:
    """How many columns are not beyond the one before them."""
    before, after = columns[begin : end - 1], columns[begin + 1 : end]
    count = 0.0
    for k in range(before.size):
        count += 1.0 if after[k] <= before[k] else 0.0
    return count


@kernel
def decrease(starts: Any, n_entries: int) -> int:
    """The first row that does not begin and end among the entries, in this order; -1 if there is none."""
    for n in range(starts.size - 1):
        if not 0 <= starts[n] <= starts[n + 1] <= n_entries:
            return n
    return -1


@kernel
def all_ascend(starts: Any, columns: Any) -> bool:
    """Whether columns ascend in every row: then none comes twice."""
    first, last = starts[0], starts[-1]
    if last - first < 2:
        return True
    count = descents(columns, first, last)
    end = first
    for n in range(starts.size - 1):  # what is no descent within a row is one from row to row
        if first < starts[n] < last and starts[n] != end:
            end = starts[n]
            count -= 1.0 if columns[end] <= columns[end - 1] else 0.0
    return bool(count == 0.0)


@borrowing_kernel
def are_sound(starts: Any, columns: Any, values: Array, first: int, last: int, n_columns: int) -> bool:
    """Whether rows from first to last have columns that there are, in ascending order, and no large values.

    Where they begin and end is trusted: see `decrease`.
    """
    begin, end = starts[first], starts[last]
    if values.size and beyond(values, begin, end, LARGE if values.itemsize == 8 else LARGE_SINGLE) > 0.0:
        return False
    falls = descents(columns, begin, end) if end - begin > 1 else 0.0
    for n in range(first, last):
        at, after = starts[n], starts[n + 1]
        if at < after:
            if columns[at] < 0 or columns[after - 1] >= n_columns:  # those between are too, if they ascend
                return False
            if at > begin:  # what is no descent within a row is one from row to row
                falls -= 1.0 if columns[at] <= columns[at - 1] else 0.0
    return bool(falls == 0.0)
