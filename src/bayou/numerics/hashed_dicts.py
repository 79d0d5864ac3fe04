"""One row of texts, learnt in one call: hashed, looked at, summed up and absorbed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Array, Kernel, Vector
from bayou.numerics.hashed_rows import Layout, Noticed, row_of_joined
from bayou.numerics.hashing import Bytes
from bayou.numerics.jit import COMPILED, callee, entry_point

NOT_LEARNT = -1
ONE_REPORT = 2**32  # what `row_of_joined` adds to the number of columns for each report


class Learning(NamedTuple):
    """What a pass over sparse rows takes besides the row, and where examples and their evidence are counted."""

    belief: Any
    kernels: Any
    params: Vector
    constant: float
    record: Array
    tally: Vector


class Row(NamedTuple):
    """Room for one row as it is hashed, and as a pass takes it; ``nothing`` is an empty array."""

    columns: NDArray[np.int32]
    sums: Vector
    values: Array
    starts: NDArray[np.int64]
    target: Vector
    nothing: Vector


def row_of(n: int, dtype: Any) -> Row:
    """Room for so many entries."""
    columns, values = np.empty(n, np.int32), np.empty(n, dtype)
    return Row(columns, np.empty(n), values, np.zeros(2, np.int64), np.zeros(1), np.zeros(0))


def learn_texts(
    learning: Learning,
    row: Row,
    layout: Layout,
    noticed: Noticed,
    places: Any,
    bits: int,
    signed: bool,
    data: Bytes,
    y: float,
) -> int:
    """`callee`, a pass that learns sparse rows, for joined texts (see `hash_joined`); how many names to ask for.

    `NOT_LEARNT` if a text has the separator in it, or the pass refuses the row.
    """
    n = layout.keys.size
    columns, sums = row.columns[:n], row.sums[:n]
    given = noticed.cells, noticed.counts, noticed.reports, places, bits, signed
    done = row_of_joined(data, layout, row.nothing, columns, sums, *given, True)
    if done < 0:
        return NOT_LEARNT
    size = done % ONE_REPORT
    for i in range(size):
        row.values[i] = sums[i]
    row.starts[1] = size
    row.target[0] = y
    entries = row.starts, columns[:size], row.values[:size], learning.constant, row.target, row.nothing
    if callee(learning.belief, learning.kernels, learning.params, *entries, learning.record, 0) == 0:
        return NOT_LEARNT
    learning.tally[0] += 1.0
    learning.tally[1] += learning.record.flat[learning.record.size - 1]
    return done // ONE_REPORT


def texts_entry(learn: Kernel, learning: Learning, row: Row, layout: Layout, *kept: Any) -> Kernel:
    """`learn_texts` for a pass and such arguments, but for the data and the target."""
    data = np.frombuffer(b" ", np.uint8)
    entry = entry_point(learn, learning, row, layout, *kept, data, 0.0, template=learn_texts, nogil=False)
    return entry if COMPILED else np.errstate(over="ignore")(entry)
