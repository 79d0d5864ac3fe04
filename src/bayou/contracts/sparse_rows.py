"""Rows of which only some entries are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from bayou.contracts.data import Array


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows of ``n_columns`` features, of which all are 0 but those told: CSR, as scipy and Arrow have it.

    Row n has ``values[starts[n]:starts[n + 1]]`` in the ``columns`` of the same places, in any order. Without any
    values all entries are 1. A slice of rows is a view. `bayou.numerics.sparse_rows` makes and checks them.
    """

    starts: NDArray[Any]
    columns: NDArray[Any]
    values: Array
    n_columns: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), self.n_columns

    def __getitem__(self, rows: slice) -> SparseRows:
        first, last, step = rows.indices(len(self))
        if step != 1:
            raise IndexError("sparse rows can be sliced without a step only")
        starts = self.starts[first : max(last, first) + 1]
        entries = slice(max(int(starts[0]), 0), max(int(starts[-1]), 0))
        return SparseRows(starts - starts[0], self.columns[entries], self.values[entries], self.n_columns)
