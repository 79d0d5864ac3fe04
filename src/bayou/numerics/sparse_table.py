"""Rows of libsvm's and Vowpal Wabbit's text as a table: a column of labels, and entries that have keys for names.

A key is the index in the text, or the hash of a name, as `bayou.Hashing` has it: which column it becomes is for a
`bayou.numerics.sparse_layout.SparseLayout` to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Vector
from bayou.errors import StreamError
from bayou.numerics.files import polars
from bayou.numerics.libsvm_rows import LabelledRows

LABEL = "label"
BY_INDEX, BY_NAME = "index", "name"
NO_PLACES: NDArray[np.int64] = np.zeros(0, np.int64)
NO_LINES: NDArray[np.int64] = np.zeros((0, 2), np.int64)


@dataclass(frozen=True)
class SparseTable:
    """Rows whose entries are those between two of their ``starts``, of ``keys`` and ``values``.

    Labels are NaN where there is none. Of rows by name, ``lines`` is where each begins and ends in the ``text``, and
    ``spaces`` where the namespace of each entry does. It can be cut and filtered as tables of polars are.
    """

    by: str
    labels: Vector
    weights: Vector | None
    starts: NDArray[np.int64]
    keys: NDArray[np.uint64]
    values: Vector
    spaces: NDArray[np.int64] = field(default_factory=lambda: NO_PLACES)
    lines: NDArray[np.int64] = field(default_factory=lambda: NO_LINES)
    text: bytes = b""

    @classmethod
    def of_libsvm(cls, given: LabelledRows) -> SparseTable:
        """Rows by index."""
        rows = given.rows
        values = np.asarray(rows.values, np.float64)
        return cls(BY_INDEX, given.labels, None, rows.starts, rows.columns.astype(np.uint64), values)

    @property
    def columns(self) -> list[str]:
        """What can be asked for by name."""
        return [LABEL]

    def __getitem__(self, name: str) -> Any:
        if name != LABEL:
            raise StreamError(f"rows of libsvm and Vowpal Wabbit's text have one column, {LABEL!r}; got {name!r}.")
        return polars().Series(LABEL, self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def slice(self, first: int, count: int | None = None) -> SparseTable:
        """So many rows from one on, or all."""
        last = len(self) if count is None else min(first + count, len(self))
        starts = self.starts[first : last + 1]
        entries = slice(int(starts[0]), int(starts[-1]))
        return SparseTable(
            self.by,
            self.labels[first:last],
            None if self.weights is None else self.weights[first:last],
            starts - starts[0],
            self.keys[entries],
            self.values[entries],
            self.spaces[entries],
            self.lines[first:last],
            self.text,
        )

    def head(self, count: int) -> SparseTable:
        """The first rows."""
        return self.slice(0, count)

    def filter(self, mask: Any) -> SparseTable:
        """The rows where there is a mark."""
        kept = np.flatnonzero(np.asarray(mask))
        counts = np.diff(self.starts)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts[kept])])
        entries = np.repeat(self.starts[:-1][kept] - starts[:-1], counts[kept]) + np.arange(starts[-1])
        return SparseTable(
            self.by,
            self.labels[kept],
            None if self.weights is None else self.weights[kept],
            starts,
            self.keys[entries],
            self.values[entries],
            self.spaces[entries] if self.spaces.size else self.spaces,
            self.lines[kept] if len(self.lines) else self.lines,
            self.text,
        )

    def with_text_of_its_own(self) -> SparseTable:
        """Without the text before its first line and after its last."""
        if not len(self.lines):
            return self
        first, last = int(self.lines[0, 0]), int(self.lines[-1, 1])
        own = self.text[first:last] + b"\n"
        return SparseTable(
            self.by,
            self.labels,
            self.weights,
            self.starts,
            self.keys,
            self.values,
            self.spaces - first,
            self.lines - first,
            own,
        )


def rows_joined(tables: Sequence[Any]) -> Any:
    """Tables one after the other, as one: of polars, or these."""
    if len(tables) == 1:
        return tables[0]
    if not isinstance(tables[0], SparseTable):
        return polars().concat(tables)
    own = [table.with_text_of_its_own() for table in tables]
    sizes = [len(table.keys) for table in own]
    before, texts = np.concatenate([[0], np.cumsum(sizes)]), np.cumsum([0, *(len(table.text) for table in own)])
    starts = [table.starts[:-1] + at for table, at in zip(own, before, strict=False)]
    weights = [table.weights for table in own if table.weights is not None]
    return SparseTable(
        own[0].by,
        np.concatenate([table.labels for table in own]),
        np.concatenate(weights) if weights else None,
        np.concatenate([*starts, before[-1:]]),
        np.concatenate([table.keys for table in own]),
        np.concatenate([table.values for table in own]),
        np.concatenate([table.spaces + at for table, at in zip(own, texts, strict=False)]),
        np.concatenate([table.lines + at for table, at in zip(own, texts, strict=False)]),
        b"".join(table.text for table in own),
    )
