"""What the columns of a table are: numbers, categories, text or dates, by their types and first values."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from bayou.errors import InvalidFeatures, StreamError
from bayou.numerics.files import polars

KINDS = ("number", "category", "text", "date")
WORDS = 4.0  # on average, that make a column one of text
DISTINCT = 0.5  # of the rows: fewer texts are categories, however long


def as_table(rows: Any) -> Any:
    """A polars table of anything that is one: a table of pandas, pyarrow, polars, or dicts."""
    library = polars()
    if isinstance(rows, library.DataFrame):
        return rows
    if isinstance(rows, Mapping) and not all(isinstance(value, list | tuple) for value in rows.values()):
        rows = [rows]
    try:
        if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
            table = library.DataFrame(rows)
        elif type(rows).__module__.startswith("pandas"):
            table = library.from_pandas(rows)
        else:
            table = library.DataFrame(rows, strict=False)
    except Exception as error:  # of any library that made the table
        raise InvalidFeatures(f"rows must be a table or dicts; got {type(rows).__name__}: {error}") from error
    return table


def kinds_of(table: Any, told: Mapping[str, str], leave_out: set[str]) -> dict[str, str]:
    """The kind of each column, in the order of the columns; those that are ignored are left out."""
    library = polars()
    for name in told:
        if name not in table.columns:
            raise StreamError(f"the table must have a column {name!r}; got {listed(table.columns, name)}.")
    found = {}
    for name in table.columns:
        if name in leave_out or told.get(name) == "ignored":
            continue
        found[name] = told.get(name) or _kind(library, table[name])
    if not found:
        raise StreamError(f"the table must have a column beside the target; got {listed(table.columns)}.")
    return found


def _kind(library: Any, column: Any) -> str:
    kind = column.dtype
    if kind.is_numeric() or kind in (library.Boolean, library.Duration):
        return "number"
    if kind.is_temporal():
        return "date"
    if kind != library.String:
        if kind in (library.Categorical, library.Enum, library.Null):
            return "category"
        raise StreamError(f"column {column.name!r} must hold numbers, text or dates; got {kind}.")
    told = column.drop_nulls()
    if len(told) and is_date(library, told):
        return "date"
    if len(told) and _are_spaced_numbers(library, told):
        return "number"
    words = float(told.str.count_matches(r"\S+").mean() or 0.0) if len(told) else 0.0
    return "text" if words >= WORDS and told.n_unique() > DISTINCT * len(told) else "category"


def _are_spaced_numbers(library: Any, texts: Any) -> bool:
    """Whether all texts are numbers with blanks around, as where fields are separated by a comma and a blank."""
    plain = texts.str.strip_chars()
    return bool((plain != texts).all()) and int(plain.cast(library.Float64, strict=False).null_count()) == 0


def is_date(library: Any, texts: Any) -> bool:
    """Whether all texts are dates as ISO 8601 writes them."""
    some = texts.head(1000)
    if not some.str.contains(r"^\d{4}-\d{2}-\d{2}").all():
        return False
    return int(as_times(library, some).null_count()) == 0


def as_times(library: Any, column: Any) -> Any:
    """Points in time; null where a text is none."""
    kind = library.Datetime("us")
    if column.dtype == library.String:
        plain = column.str.strip_chars().str.replace("T", " ").str.replace(r"(Z|[+-]\d{2}:?\d{2})$", "")
        times = plain.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", strict=False, time_unit="us")
        for form in ("%Y-%m-%d %H:%M", "%Y-%m-%d"):
            times = times.fill_null(plain.str.to_datetime(form, strict=False, time_unit="us"))
        return times
    if column.dtype == library.Time:
        return (column.to_physical() // 1000).cast(kind)
    if isinstance(column.dtype, library.Datetime):
        return column.dt.replace_time_zone(None).cast(kind)
    try:
        return column.cast(kind)
    except Exception as error:
        raise InvalidFeatures(f"column {column.name!r} must hold dates; got {column.dtype}.") from error


def listed(names: Any, missing: str = "") -> str:
    """Names of columns, the nearest first where one was looked for."""
    near = get_close_matches(missing, list(names), n=1, cutoff=0.6) if missing else []
    some = ", ".join(repr(name) for name in list(names)[:12]) + (", ..." if len(names) > 12 else "")
    return f"{some} (did you mean {near[0]!r}?)" if near else some
