"""Blocks of JSON lines as tables, nested objects as columns "a.b"; broken lines are looked for one by one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bayou.errors import StreamError
from bayou.numerics.broken_rows import BrokenRow, shown
from bayou.numerics.column_types import not_of_type, retyped
from bayou.numerics.files import File, told_plainly
from bayou.numerics.halves import in_halves, tried

OBJECT = "must be a JSON object"


def guessed(library: Any, file: File, block: bytes) -> dict[str, Any]:
    """The type of each key in a block: of whole lines only, where some are broken."""
    try:
        with told_plainly(file, "lines of JSON objects"):
            return dict(library.scan_ndjson(block, infer_schema_length=None).collect_schema())
    except StreamError:
        lines = [line.text for line in _lines(block) if not line.reason]
    if not lines:
        return {}
    with told_plainly(file, "lines of JSON objects, in which a key has values of one kind"):
        return dict(library.scan_ndjson(b"\n".join(lines), infer_schema_length=None).collect_schema())


def flattened(library: Any, file: File, schema: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The columns of nested objects: a key within a key is "a.b"."""
    flat: dict[str, Any] = {}
    for name, kind in schema.items():
        inside = {prefix + name: kind}
        if isinstance(kind, library.Struct):
            inside = flattened(library, file, {each.name: each.dtype for each in kind.fields}, f"{prefix}{name}.")
        if twice := flat.keys() & inside.keys():
            raise StreamError(
                f"{file} must have columns of different names; got {min(twice)!r} twice: nested and flat."
            )
        flat |= inside
    return flat


def read_as(library: Any, kind: Any) -> Any:
    """The type that polars reads from JSON, from which such a type is cast."""
    kind = library.Series([], dtype=kind).dtype
    if kind.is_integer():
        return library.Int64 if kind != library.Int128 else library.Float64
    if kind.is_numeric():
        return library.Float64
    return kind if kind in (library.Boolean, library.Date, library.Datetime) else library.String


def nested(library: Any, flat: Mapping[str, Any], schema: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The types of such columns alone, as nested as they come."""
    found: dict[str, Any] = {}
    for name, kind in schema.items():
        if isinstance(kind, library.Struct) and prefix + name not in flat:
            inside = nested(library, flat, {each.name: each.dtype for each in kind.fields}, f"{prefix}{name}.")
            if inside:
                found[name] = library.Struct(inside)
        elif prefix + name in flat:
            found[name] = flat[prefix + name]
    if not prefix:  # keys that were told, but have not come yet
        known = flattened(library, _NOWHERE, found)
        found |= {name: kind for name, kind in flat.items() if name not in known}
    return found


_NOWHERE: Any = "the lines"


def parsed(library: Any, block: bytes, schema: Mapping[str, Any], flat: Mapping[str, Any]) -> Any:
    """A block in which all is well, as a flat table."""
    if not block.strip():
        return library.DataFrame(schema=flat)
    table = library.scan_ndjson(block, schema=schema).collect()
    return library.DataFrame(_flat_columns(library, table, "")).select(list(flat))


def _flat_columns(library: Any, table: Any, prefix: str) -> list[Any]:
    columns = []
    for column in table.iter_columns():
        if isinstance(column.dtype, library.Struct):
            columns += _flat_columns(library, column.struct.unnest(), f"{prefix}{column.name}.")
        else:
            columns.append(column.alias(prefix + column.name))
    return columns


def gone_through(
    library: Any, block: bytes, schema: Mapping[str, Any], flat: Mapping[str, Any], types: Mapping[str, Any]
) -> tuple[Any, list[BrokenRow]]:
    """The rows of a block that can be read, and those that cannot, in order. Empty lines are no rows."""
    rows, broken = [], []
    for line in _lines(block):
        reason = line.reason or _what_is_wrong(library, line.record, schema)
        if not (reason or schema):
            reason = "must have a key"
        if reason:
            broken.append(BrokenRow(line.place, line.lines_before, reason))
        else:
            rows.append(line)

    def table_of(those: Sequence[int]) -> Any:
        return parsed(library, b"\n".join(rows[k].text for k in those), schema, flat)

    everyone = range(len(rows))
    table = tried(table_of, everyone)
    if table is None:
        wrong: dict[int, str] = {}
        table = library.concat([table_of([]), *in_halves(table_of, everyone, wrong)])
        broken += [BrokenRow(rows[k].place, rows[k].lines_before, reason) for k, reason in wrong.items()]
        rows = [line for k, line in enumerate(rows) if k not in wrong]
    table, lost = retyped(table, types)
    broken += [BrokenRow(rows[one.place].place, rows[one.place].lines_before, one.reason) for one in lost]
    return table, sorted(broken)


class _Line(NamedTuple):
    place: int
    lines_before: int
    text: bytes
    record: Any
    reason: str  # why it is no object


def _lines(block: bytes) -> list[_Line]:
    """The lines that are not empty."""
    found: list[_Line] = []
    for number, text in enumerate(block.split(b"\n")):
        if not text.strip():
            continue
        record, reason = None, ""
        try:
            record = json.loads(text.decode(), parse_constant=_refused, object_pairs_hook=_first_of_each)
        except UnicodeDecodeError:
            reason = f"must be UTF-8; got {shown(text)}"
        except (ValueError, RecursionError) as error:
            reason = f"{OBJECT}; got {shown(text.decode())}: {error}"
        if not reason and not isinstance(record, dict):
            reason = f"{OBJECT}; got {shown(record)}"
        found.append(_Line(len(found), number, text, record, reason))
    return found


def _refused(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _first_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """As polars takes a key that comes twice."""
    return dict(reversed(pairs))


def _what_is_wrong(library: Any, record: Mapping[str, Any], schema: Mapping[str, Any], prefix: str = "") -> str:
    """Dates are left to polars."""
    for name, kind in schema.items():
        value = record.get(name)
        if value is None or kind == library.String:
            continue
        if isinstance(kind, library.Struct):
            if not isinstance(value, dict):
                return f"must have an object in {prefix + name!r}; got {shown(value)}"
            fields = {each.name: each.dtype for each in kind.fields}
            if reason := _what_is_wrong(library, value, fields, f"{prefix}{name}."):
                return reason
        elif not (
            (kind == library.Int64 and type(value) is int and -(2**63) <= value < 2**63)
            or (kind == library.Float64 and type(value) in (int, float))
            or (kind == library.Boolean and type(value) is bool)
            or (kind.is_temporal() and type(value) is str)
        ):
            return not_of_type(prefix + name, kind, value)
    return ""
