"""Rows of JSON as typed tables: each column is told as what the model takes it for, whatever these rows look like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bayou.errors import InvalidFeatures, InvalidTarget
from bayou.numerics.files import polars
from bayou.service.limits import LONGEST_NAME, LONGEST_VALUE, MOST_COLUMNS

Row = Mapping[str, Any]
PLAIN = (bool, int, float, str)


def check_rows(rows: Sequence[Any]) -> None:
    """Raise unless these are rows of plain values."""
    seen: set[tuple[str, ...]] = set()
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            raise InvalidFeatures(f"row {place} must be an object of columns; got {type(row).__name__}.")
        if (names := tuple(row)) not in seen:  # most rows have the same
            _check_names(names, place)
            seen.add(names)
        for name, value in row.items():
            kind = type(value)
            if kind is int or value is None or kind is bool or (kind is float and value - value == 0.0):
                continue
            if kind is float:
                raise InvalidFeatures(f"row {place} must hold finite numbers; got {value} in {name[:40]!r}.")
            if kind is not str:
                raise InvalidFeatures(f"row {place} must hold plain values; got {kind.__name__} in {name[:40]!r}.")
            if len(value) > LONGEST_VALUE:
                raise InvalidFeatures(
                    f"row {place} must hold at most {LONGEST_VALUE} letters a value; got {len(value)} in {name[:40]!r}."
                )


def _check_names(names: tuple[str, ...], place: int) -> None:
    if len(names) > MOST_COLUMNS + 2:  # with those of the target and the weight
        raise InvalidFeatures(f"row {place} must have at most {MOST_COLUMNS + 2} columns; got {len(names)}.")
    if (longest := max(map(len, names), default=0)) > LONGEST_NAME:
        raise InvalidFeatures(
            f"columns must have names of at most {LONGEST_NAME} letters; got {longest} in row {place}."
        )


def names_of(rows: Iterable[Row]) -> list[str]:
    """The columns that any row has, in the order in which they come."""
    found: dict[str, None] = {}
    for row in rows:
        if not found.keys() >= row.keys():
            found.update(dict.fromkeys(row))
    return list(found)


def unknown_names(rows: Iterable[Row], known: set[str]) -> list[str]:
    """Columns that nobody has asked for."""
    return [name for name in names_of(rows) if name not in known]


def table_of(rows: Sequence[Row], kinds: Mapping[str, str], others: Iterable[str] = ()) -> Any:
    """A table of the columns that have a kind, absent values missing; and of others, by what they hold."""
    columns = [_of_kind(name, kind, [row.get(name) for row in rows]) for name, kind in kinds.items()]
    columns += [by_values(name, [row.get(name) for row in rows]) for name in others if name not in kinds]
    return polars().DataFrame(columns)


def _of_kind(name: str, kind: str, values: list[Any]) -> Any:
    library = polars()
    if kind == "number":
        return library.Series(name, _numbers(name, values), library.Float64)
    return library.Series(name, [value if type(value) is str else text_of(value) for value in values], library.String)


def _numbers(name: str, values: list[Any]) -> list[float | None]:
    try:
        return [value if type(value) is float or value is None else _number(value) for value in values]
    except (ValueError, OverflowError):
        for place, value in enumerate(values):
            try:
                _number(value)
            except (ValueError, OverflowError):
                told = repr(value)[:60]
                raise InvalidFeatures(f"column {name!r} must hold numbers; got {told} in row {place}.") from None
        raise


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        return float(value) if value.strip() else None
    return None if value is None else float(value)


def text_of(value: Any) -> str | None:
    """A category as text, as polars writes it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def by_values(name: str, values: list[Any]) -> Any:
    """A column that nothing is known of: truth values, whole numbers, numbers, or text if there is any."""
    library = polars()
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return library.Series(name, values, library.Null)
    if kinds == {bool}:
        return library.Series(name, values, library.Boolean)
    if str in kinds:
        return library.Series(name, [text_of(value) for value in values], library.String)
    if kinds == {int} and all(value is None or abs(value) < 2**63 for value in values):
        return library.Series(name, values, library.Int64)
    return library.Series(name, [_number(value) for value in values], library.Float64)


def check_label(label: Any) -> None:
    """Raise unless this can be a label at all."""
    if not isinstance(label, PLAIN) or (isinstance(label, str) and len(label) > LONGEST_VALUE):
        raise InvalidTarget(f"a label must be a number, a truth value or text; got {repr(label)[:60]}.")
