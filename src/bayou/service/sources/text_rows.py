"""Rows of text that comes in pieces: JSON lines, or separated values under a line of names."""

from __future__ import annotations

import csv
import re
from typing import Any

import orjson

from bayou.service.limits import MOST_BYTES
from bayou.service.sources.source import Item, SourceError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d{1,3})?")
JSON, COMMAS, TABS = "json", "csv", "tsv"
WORDS: dict[str, Any] = {"": None, "true": True, "false": False}


def plain(text: str) -> Any:
    """A field as JSON would have it: a number, a truth value, nothing, or text, as whatever is no plain number stays.

    >>> plain("7"), plain("-2.5"), plain("007"), plain(""), plain("true"), plain("Rome")
    (7, -2.5, '007', None, True, 'Rome')
    """
    if text in WORDS:
        return WORDS[text]
    found = NUMBER.fullmatch(text)
    if found is None:
        return text
    return float(text) if found[2] or found[3] or len(text) > 18 else int(text)


class TextRows:
    """Takes bytes, gives rows; what is not a whole line yet waits."""

    def __init__(self, format: str | None, offset: int = 0, line: int = 0, names: list[str] | None = None) -> None:
        self.format, self.names = format, names
        self.offset, self.line = offset, line  # of what waits
        self.rest = b""
        self._searched, self._lines, self._quotes = 0, 0, 0  # of what waits: how far it was looked at

    def feed(self, data: bytes, is_all: bool = False) -> list[Item]:
        """More bytes; with ``is_all``, the last line needs no end."""
        text, start, items = self.rest + data, 0, list[Item]()
        if is_all and text and not text.endswith(b"\n"):
            text += b"\n"
        while (end := text.find(b"\n", start + self._searched) + 1) > 0:
            self._lines += 1
            self._quotes += text.count(b'"', start + self._searched, end)
            record = text[start:end]
            if self.offset == 0:
                record = record.removeprefix(BYTE_ORDER_MARK)
            self._find_format(record)
            if self.format != JSON and self._quotes % 2 and not (is_all and end == len(text)):
                self._searched = end - start  # a field in quotes goes on
                self._check_length(self._searched)
                continue
            line = self.line + 1
            self.offset, self.line = self.offset + end - start, self.line + self._lines
            start, self._searched, self._lines, self._quotes = end, 0, 0, 0
            if record.strip() and (item := self._item(record, line)) is not None:
                items.append(item)
        self.rest = text[start:]
        self._check_length(len(self.rest))
        return items

    def _find_format(self, record: bytes) -> None:
        if self.format is None and record.strip():
            self.format = JSON if record.lstrip().startswith(b"{") else COMMAS

    def _check_length(self, length: int) -> None:
        if length > MOST_BYTES:
            why = " or a quote is left open" if self.format != JSON else ""
            raise SourceError(f"line {self.line + 1} must have at most {MOST_BYTES} bytes; it has more,{why or ''}.")

    def _item(self, record: bytes, line: int) -> Item | None:
        row, why = parsed(record) if self.format == JSON else self._fields(record)
        if row is None and not why:
            return None
        return Item(row, why, f"line {line:,}", (self.offset, self.line))

    def _fields(self, record: bytes) -> tuple[dict[str, Any] | None, str]:
        """A row of separated values; neither a row nor a reason for the line of names."""
        separator = "\t" if self.format == TABS else ","
        try:
            fields = next(csv.reader([record.decode().rstrip("\r\n")], delimiter=separator, strict=True))
        except (UnicodeDecodeError, csv.Error) as error:
            fields, why = [], f"it must be separated values in UTF-8; {error}"
        else:
            why = ""
        if self.names is None:
            if why or not all(fields) or len(set(fields)) < len(fields):
                raise SourceError(f"the first line must name the columns, each once; got {record[:60]!r}.")
            self.names = fields
            return None, ""
        if why or len(fields) != len(self.names):
            return None, why or f"it must have {len(self.names)} fields; got {len(fields)}"
        return dict(zip(self.names, map(plain, fields), strict=True)), ""


def parsed(record: bytes) -> tuple[dict[str, Any] | None, str]:
    try:
        row = orjson.loads(record)
    except orjson.JSONDecodeError as error:
        return None, f"it must be JSON; {error}"
    if not isinstance(row, dict):
        return None, f"it must be an object of columns; got {type(row).__name__}"
    return row, ""
