"""What the columns of a table hold, said in words; and the types that words stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from bayou.errors import InvalidSpec
from bayou.numerics.broken_rows import BrokenRow, Teller, shown
from bayou.numerics.files import File, polars, told_plainly

WORDS = ("number", "category", "text", "date", "boolean")
LOOKED_AT = 1000  # rows that tell text from categories


class ColumnType(NamedTuple):
    """What a column is to a learner, and what it is to polars."""

    kind: str
    type: Any


def column_types(table: Any, types: Mapping[str, Any] | None = None) -> dict[str, ColumnType]:
    """Each column of a table of polars as "number", "category", "text", "date" or "boolean", with its polars type.

    Strings are text where most of the first 1,000 that are there have three words or more, and categories otherwise.
    Words in ``types`` win: ``{"review": "text"}``. What a learner has no use for, as lists, has its polars name.

    >>> import polars as pl
    >>> table = pl.DataFrame({"age": [31, 40], "city": ["Paris", "Rome"], "note": ["came by train", "did not come"]})
    >>> [f"{name}: {kind}, {type}" for name, (kind, type) in column_types(table).items()]
    ['age: number, Int64', 'city: category, String', 'note: text, String']
    """
    said = types or {}
    return {
        column.name: ColumnType(said[column.name] if said.get(column.name) in WORDS else _kind(column), column.dtype)
        for column in table.iter_columns()
    }


def _kind(column: Any) -> str:
    pl, kind = polars(), column.dtype
    if kind == pl.String:
        some = column.head(LOOKED_AT).drop_nulls()
        many_words = some.str.strip_chars().str.count_matches(r"\s+") >= 2
        return "text" if len(some) and many_words.mean() > 0.5 else "category"
    if kind.is_numeric():
        return "number"
    if kind.is_temporal():
        return "date"
    if kind == pl.Boolean:
        return "boolean"
    return "category" if kind in (pl.Categorical, pl.Enum, pl.Null) else str(kind)


def polars_types(types: Mapping[str, Any] | None) -> dict[str, Any]:
    """Types as polars has them. Words stand for one each; that of categories keeps no list of all that ever came."""
    pl = polars()
    stand_for = dict(zip(WORDS, (pl.Float64, pl.String, pl.String, pl.Datetime("us"), pl.Boolean), strict=True))
    found = {}
    for name, kind in (types or {}).items():
        if isinstance(kind, str):
            if kind not in stand_for:
                raise InvalidSpec(f"the type of {name!r} must be of polars or one of {', '.join(WORDS)}; got {kind!r}.")
            kind = stand_for[kind]
        elif not isinstance(kind, pl.DataType) and not (isinstance(kind, type) and issubclass(kind, pl.DataType)):
            raise InvalidSpec(f"the type of {name!r} must be of polars or one of {', '.join(WORDS)}; got {kind!r}.")
        found[name] = kind
    return found


def said(kind: Any) -> str:
    """What a value of such a type is."""
    pl = polars()
    if kind.is_integer():
        word = "a whole number"
    elif kind.is_numeric():
        word = "a number"
    elif kind == pl.Boolean:
        word = "true or false"
    elif kind == pl.Time:
        word = "a time"
    elif kind.is_temporal():
        word = "a date"
    else:
        word = "text"
    return f"{word} ({kind})"


def not_of_type(name: str, kind: Any, value: Any) -> str:
    """The reason why a row is broken."""
    return f"must have {said(kind)} in column {name!r}; got {shown(value)}"


def retyped(table: Any, types: Mapping[str, Any]) -> tuple[Any, list[BrokenRow]]:
    """The rows whose values are of such types, with these; and those that are not."""
    broken: dict[int, BrokenRow] = {}
    new = {}
    for name, kind in types.items():
        if table.schema.get(name, kind) == kind:
            continue
        new[name] = table[name].cast(kind, strict=False)
        lost = new[name].is_null() & table[name].is_not_null()
        if new[name].dtype.is_integer() and table[name].dtype.is_float():
            lost |= (new[name] != table[name]).fill_null(False)  # polars would cut what is behind the point
        for place in lost.arg_true().to_list():
            broken.setdefault(place, BrokenRow(place, None, not_of_type(name, new[name].dtype, table[name][place])))
    if not new:
        return table, []
    table = table.with_columns(list(new.values()))
    if broken:
        pl = polars()
        keep = pl.Series([True]).new_from_index(0, len(table)).scatter(list(broken), False)
        table = table.filter(keep)
    return table, [broken[place] for place in sorted(broken)]


def retyped_rows(file: File | str, row: int, table: Any, types: Mapping[str, Any], teller: Teller) -> tuple[Any, Any]:
    """A table in the types that were told, and what is left to tell after it: nothing, where all is well."""
    if not types:
        return table, lambda: None
    with told_plainly(file, "of rows that can be had in the types told"):
        whole, broken = retyped(table, types)
    return whole[: teller.given(len(whole), broken)], lambda: teller.tell(file, row, None, broken)
