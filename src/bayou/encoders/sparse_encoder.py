"""Rows of libsvm's and Vowpal Wabbit's text as columns of numbers, while rows keep coming.

Where there are few names, each has a column, begun when it first comes; beyond 500, 32 columns share the others by
hash. Of many names there are 2**bits columns: a name has that of the top bits of its hash, as `bayou.Hashing` has it;
of libsvm an index is the column itself, or has that of its hash if it is larger. A pair of namespaces adds the products
of the entries of one with those of the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

from bayou.contracts import Spec
from bayou.errors import InvalidFeatures, InvalidSpec
from bayou.numerics.grams import whole_number
from bayou.numerics.sparse_table import BY_INDEX, SparseTable

__all__ = ["SparseEncoder"]

NO_PREFIX = set("|: \t\r\n")
ANY = ":"


@final
@dataclass(frozen=True)
class SparseEncoder(Spec):
    r"""What becomes of the entries of sparse rows that come with labels, as `bayou.streams.open_tables` reads them.

    ``hashed`` says whether there are 2**``bits`` columns from the start, or one for each name; None to find out: rows
    of at most 300 different names are told in full. ``interactions`` are pairs of namespaces of Vowpal Wabbit's text,
    by how their names begin, ":" for all of them.

    >>> import io
    >>> from bayou import SparseEncoder, TableModel
    >>> from bayou.streams import open_tables
    >>> text = b"1 |size large\n-1 |size small\n" * 20
    >>> model = TableModel("label", encoder=SparseEncoder())
    >>> for rows in open_tables(io.BytesIO(text)).rows:
    ...     _ = model.learn_many(rows)
    >>> model.layout.names, model.classes
    (['size^large', 'size^small'], [-1, 1])
    """

    interactions: tuple[tuple[str, str], ...] = ()
    bits: int = 18
    hashed: bool | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", whole_number("bits", self.bits, 10, 26))
        for pair in self.interactions:
            fits = len(pair) == 2 and all(isinstance(side, str) and side for side in pair)
            if not fits or any(side != ANY and NO_PREFIX & set(side) for side in pair):
                raise InvalidSpec(f"`interactions` must be pairs of namespaces, as ('a', 'b'); got {pair!r}.")
        object.__setattr__(self, "interactions", tuple((a, b) for a, b in self.interactions))

    def begin(self, table: Any, leave_out: Iterable[str] = ()) -> Any:
        """A `SparseLayout` of rows of which these are the first; the label is no entry, whatever is left out."""
        from bayou.numerics.sparse_layout import SparseLayout, is_wide  # noqa: PLC0415  # brings kernels

        if not isinstance(table, SparseTable):
            raise InvalidFeatures("rows must be of libsvm or Vowpal Wabbit's text; got a table of columns.")
        if self.interactions and table.by == BY_INDEX:
            raise InvalidSpec(f"rows of libsvm have no namespaces to interact; got {self.interactions!r}.")
        pairs = [("" if a == ANY else a, "" if b == ANY else b) for a, b in self.interactions]
        layout = SparseLayout(table.by, pairs, self.bits, bool(self.hashed))
        if self.hashed is None:
            layout.hashed = is_wide(layout.expanded(table).keys)
        layout.lay_out(table)
        return layout
