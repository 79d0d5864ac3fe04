"""A block of separated values, gone through row by row: which can be read, and what is wrong with the others.

A block that polars reads is never gone through. Of a row that is broken only its own line is left out, also where a
quote is left open: what follows is a row again, if it is one.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from bayou.errors import StreamError
from bayou.numerics.broken_rows import BrokenRow, shown
from bayou.numerics.column_types import not_of_type
from bayou.numerics.files import told_plainly
from bayou.numerics.halves import in_halves, tried


def parsed(library: Any, block: bytes, separator: str, schema: Mapping[str, Any], columns: Sequence[str]) -> Any:
    """The wanted columns of a block in which all is well."""
    if not block:
        return library.DataFrame(schema=schema).select(columns)
    return library.scan_csv(block, separator=separator, has_header=False, schema=schema).select(columns).collect()


def gone_through(
    library: Any, block: bytes, separator: str, schema: Mapping[str, Any], columns: Sequence[str], may_go_on: bool
) -> tuple[Any, list[BrokenRow], bytes]:
    """The rows of a block that can be read, those that cannot, in order, and what is left: a row that may go on.

    Empty lines are no rows, but of a single column.
    """
    rows, places, lines, broken, rest = _whole_rows(block, separator, len(schema), may_go_on)
    table, wrong = _of_types(library, rows, separator, schema, columns)
    return table, sorted([*broken, *(BrokenRow(places[k], lines[k], reason) for k, reason in wrong)]), rest


class _Patterns(NamedTuple):
    row: re.Pattern[bytes]
    field: re.Pattern[bytes]
    open_row: re.Pattern[bytes]


@lru_cache
def _patterns(separator: str, n_columns: int) -> _Patterns:
    """A whole row; a field, in quotes, or without any but pairs of them within; a row whose quotes may close later."""
    mark = re.escape(separator.encode())
    plain, quoted = rb'[^%b"\n]*+' % mark, rb'"[^"]*+(?:""[^"]*+)*+'
    field = rb'(?:%b"(?=%b|\r?\n|\r?\Z)|(?!")%b(?:"%b"%b)*+)' % (quoted, mark, plain, plain, plain)
    row = rb"%b(?:%b%b){%d}(?:\r?\n|\r?\Z)" % (field, mark, field, n_columns - 1)
    open_row = rb"(?:%b%b){0,%d}%b\Z" % (field, mark, n_columns - 1, quoted)
    return _Patterns(*map(re.compile, (row, field, open_row)))


def _whole_rows(
    block: bytes, separator: str, n_columns: int, may_go_on: bool
) -> tuple[list[bytes], array[int], array[int], list[BrokenRow], bytes]:
    """Rows of as many fields as there are columns, which of the block's rows and after how many lines; the others."""
    patterns = _patterns(separator, n_columns)
    rows, places, lines, broken = [], array("q"), array("q"), []
    is_utf8 = _is_utf8(block)
    place = line = position = 0
    while position < len(block):
        found = patterns.row.match(block, position)
        if not found and may_go_on and patterns.open_row.match(block, position):
            break
        end = found.end() if found else block.find(b"\n", position) + 1 or len(block)
        text = block[position:end]
        if n_columns > 1 and not text.strip(b"\r\n"):
            position, line = end, line + 1
            continue
        if not is_utf8 and not _is_utf8(text):
            reason = f"must be UTF-8; got {shown(text.rstrip())}"
        else:
            reason = "" if found else _what_is_wrong(text, separator, n_columns, patterns.field)
        if reason:
            broken.append(BrokenRow(place, line, reason))
        else:
            rows.append(text)
            places.append(place)
            lines.append(line)
        place, line, position = place + 1, line + text.count(b"\n"), end
    return rows, places, lines, broken, block[position:]


def _what_is_wrong(text: bytes, separator: str, n_columns: int, field: re.Pattern[bytes]) -> str:
    line, n_fields, position = text.rstrip(b"\r\n"), 0, 0
    while found := field.match(line, position):
        n_fields, position = n_fields + 1, found.end()
        if line[position : position + 1] != separator.encode():
            break
        position += 1
    if position < len(line) or not found:
        return f"must have fields whose quotes are closed; got {shown(line.decode())}"
    cut_off = " and the end of the file, as if it had been cut off" if not text.endswith(b"\n") else ""
    return f"must have {n_columns} fields; got {n_fields}{cut_off}"


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _of_types(
    library: Any, rows: list[bytes], separator: str, schema: Mapping[str, Any], columns: Sequence[str]
) -> tuple[Any, list[tuple[int, str]]]:
    """The rows whose values are of the types; and which are not, and why."""

    def table_of(those: Sequence[int]) -> Any:
        return parsed(library, b"".join(_ended(rows[k]) for k in those), separator, schema, columns)

    everyone = range(len(rows))
    table = tried(table_of, everyone)
    if table is not None:
        return table, []
    text = b"".join(map(_ended, rows))
    wrong: dict[int, str] = {}
    try:
        with told_plainly("", "readable"):
            texts = parsed(library, text, separator, dict.fromkeys(schema, library.String), columns)
            scan = library.scan_csv(text, separator=separator, has_header=False, schema=schema, ignore_errors=True)
            typed = scan.select(columns).collect()
    except StreamError:  # some types are guessed by polars itself, and then not ignored
        typed = texts = None
    if typed is not None and len(typed) == len(texts) == len(rows):
        for name in columns:
            if schema[name] != library.String:
                missing = texts[name].is_null() | (texts[name].str.strip_chars() == "")
                for k in (typed[name].is_null() & ~missing).arg_true().to_list():
                    wrong.setdefault(k, not_of_type(name, typed[name].dtype, texts[name][k]))
        table = tried(table_of, [k for k in everyone if k not in wrong])
        if table is not None:
            return table, sorted(wrong.items())
    wrong = {}
    parts = in_halves(table_of, everyone, wrong)
    return library.concat([table_of([]), *parts]), sorted(wrong.items())


def _ended(row: bytes) -> bytes:
    return row if row.endswith(b"\n") else row + b"\n"
