"""The columns of a table as columns of numbers, while rows of it keep coming.

    a number      its value, NaN where it is missing
    a category    a column per value, 0 or 1, that is begun when the value first comes; a missing value is one, too;
                  beyond 128 values, and of those with more from the start, 32 columns share them by hash
    a date        sines and cosines of the hour, the day of the week and the day of the year
    a pair        the product of numbers, the pairs of categories, a number per value of a category
    a basis       of each number: splines, or the powers and products of all numbers

Where most columns are categories with many values, or text, the table is `prepared` for `bayou.Hashing` instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from bayou.contracts import Matrix, Spec
from bayou.errors import InvalidSpec
from bayou.numerics.table_kinds import kinds_of
from bayou.numerics.table_layout import DENSE_COLUMNS, MANY_AT_MOST, TableLayout, is_many

__all__ = ["TableEncoder"]

BASES = ("fourier", "spline", "polynomial")
PARAMETERS = {"fourier": (1, 4096), "spline": (2, 64), "polynomial": (2, 6)}
USUAL = {"fourier": 600, "spline": 6, "polynomial": 2}


@final
@dataclass(frozen=True)
class TableEncoder(Spec):
    """What the columns of a table are, where that is not to be found out, and what becomes of them.

    ``numeric``, ``categorical``, ``text`` and ``time`` name columns by what they are; ``ignore`` those that are left
    out. ``interactions`` are pairs of columns whose products become features too. ``basis`` is ``"spline"``,
    ``"polynomial:3"`` or ``"fourier:300"``, the last of which a model makes itself. ``hashed`` says whether rows are
    hashed; None to find out. `begin` looks at the first rows and makes the `TableLayout` that the others do with.

    >>> import polars as pl
    >>> from bayou import TableEncoder
    >>> encoder = TableEncoder()
    >>> table = pl.DataFrame({"city": ["Paris", "Rome", "Paris"], "age": [31, None, 40]})
    >>> layout = encoder.begin(table)
    >>> encoder.encode(layout, table)
    array([[31.,  1.,  0.],
           [nan,  0.,  1.],
           [40.,  1.,  0.]])
    >>> layout.names
    ['age', 'city=Paris', 'city=Rome']
    """

    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    time: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    interactions: tuple[tuple[str, str], ...] = ()
    basis: str | None = None
    hashed: bool | None = None

    def __post_init__(self) -> None:
        named: dict[str, str] = {}
        for kind in ("numeric", "categorical", "text", "time", "ignore"):
            names = _names(kind, getattr(self, kind))
            object.__setattr__(self, kind, names)
            for name in names:
                if name in named:
                    raise InvalidSpec(f"a column must be of one kind; got {name!r} in `{named[name]}` and `{kind}`.")
                named[name] = kind
        pairs = tuple(_names("interactions", pair) for pair in self.interactions)
        for pair in pairs:
            if len(pair) != 2 or pair[0] == pair[1]:
                raise InvalidSpec(f"`interactions` must be pairs of two columns; got {pair!r}.")
            for name in pair:
                if named.get(name) == "ignore":
                    raise InvalidSpec(f"a column that is ignored cannot interact; got {name!r}.")
        object.__setattr__(self, "interactions", pairs)
        if self.basis is not None:
            basis_of(self.basis)
        if self.hashed and self.basis is not None:
            raise InvalidSpec(f"hashed rows have no `basis`; got {self.basis!r}.")

    @property
    def told(self) -> dict[str, str]:
        """Columns whose kind was given."""
        kinds = {"numeric": "number", "categorical": "category", "text": "text", "time": "date", "ignore": "ignored"}
        return {name: kind for part, kind in kinds.items() for name in getattr(self, part)}

    def begin(self, table: Any, leave_out: Iterable[str] = ()) -> TableLayout:
        """What becomes of the columns of a table, of which these are the first rows."""
        kinds = kinds_of(table, self.told, set(leave_out))
        for a, b in self.interactions:
            for name in (a, b):
                if kinds.get(name) not in ("number", "category"):
                    known = kinds.get(name, "none of the columns")
                    raise InvalidSpec(f"`interactions` take numbers and categories; got {name!r}, {known}.")
        many = [name for name, kind in kinds.items() if kind == "category" and is_many(table, name)]
        layout = TableLayout(kinds, many, self.interactions, self._hashes(table, kinds, many))
        layout.lay_out(table, *((None, 0) if self.basis is None else basis_of(self.basis)))
        return layout

    def _hashes(self, table: Any, kinds: Mapping[str, str], many: Sequence[str]) -> bool:
        if self.hashed is not None:
            return self.hashed
        if self.basis is not None:
            return False
        few = [name for name, kind in kinds.items() if kind == "category" and name not in many]
        columns = len(kinds) + sum(int(table[name].n_unique()) for name in few)
        return "text" in kinds.values() or len(many) > MANY_AT_MOST or columns > DENSE_COLUMNS

    def admit(self, layout: TableLayout, table: Any) -> None:
        """Begin columns for values that were never seen."""
        layout.admit(table)

    def encode(self, layout: TableLayout, table: Any) -> Matrix:
        """A row of features per row, NaN where a number is missing; a value that was not admitted has none."""
        return layout.encode(table)

    def prepared(self, layout: TableLayout, table: Any) -> Any:
        """The table as `Hashing` takes it: numbers, categories as text, and dates as numbers."""
        return layout.prepared(table)


def basis_of(text: str) -> tuple[str, int]:
    """``"fourier:300"`` as a kind and how many; without a number, as many as is usual."""
    kind, _, count = text.partition(":") if isinstance(text, str) else ("", "", "")
    if kind not in BASES:
        raise InvalidSpec(f"`basis` must be one of {', '.join(BASES)}, as {BASES[0]}:300; got {text!r}.")
    low, high = PARAMETERS[kind]
    if not count:
        return kind, USUAL[kind]
    if not (count.isdigit() and low <= int(count) <= high):
        raise InvalidSpec(f"`basis` must be {kind}:n with n from {low} to {high}; got {text!r}.")
    return kind, int(count)


def _names(what: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise InvalidSpec(f"`{what}` must be names of columns; got {names!r}.")
    return tuple(names)
