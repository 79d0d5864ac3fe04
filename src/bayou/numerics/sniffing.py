"""What a stream of bytes holds, by its first ones; and what a file holds, by its name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bayou.errors import StreamError
from bayou.numerics.byte_blocks import BYTE_ORDER_MARK
from bayou.numerics.files import Piped, Source, files, told_plainly

LOOKED_AT = 2**16  # bytes
LIBSVM = re.compile(rb"[+-]?[\d.][^\s:,|]*(?:[ \t]+\d+:[^\s:]+)+[ \t]*(?:#.*)?")
VOWPAL = re.compile(rb"(?:[+-]?[\d.][^\s|]*(?:[ \t]+[+-]?[\d.][^\s|]*)?[ \t]+)?(?:'[^\s|]*[ \t]*)?\|(?:[^|]|$).*")


def sniffed(stream: Piped) -> str:
    """The format of a stream that is not packed; none of its bytes are lost."""
    with told_plainly(stream, "a stream that can be read"):
        start = stream.peek(8)
        if start.startswith(b"PAR1"):
            return "parquet"
        if start.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
            return "ipc"
        start = stream.peek(LOOKED_AT, until=_first_line)
    first = _first_line(start) or _first_line(start + b"\n")
    if first.startswith(b"{"):
        return "json"
    if LIBSVM.fullmatch(first):
        return "libsvm"
    if VOWPAL.fullmatch(first):
        return "vw"
    return "tsv" if b"\t" in first and b"," not in first else "csv"


def _first_line(start: bytes) -> bytes:
    """The first line that is whole, not empty and no comment."""
    said = (line.strip() for line in start.removeprefix(BYTE_ORDER_MARK).split(b"\n")[:-1])
    return next((line for line in said if line and not line.startswith(b"#")), b"")


def named(source: Source, endings: Mapping[str, Sequence[str]]) -> str:
    """The format of files, by their endings: one for all of them."""
    every = sorted({ending for known in endings.values() for ending in known})
    found: dict[str, Any] = {}
    for file in files(source, every):
        kinds = [kind for kind, known in endings.items() if str(file).lower().endswith(tuple(known))]
        if not kinds:
            raise StreamError(f"{file} must end with one of {', '.join(every)}, or its `format` be said.")
        found.setdefault(kinds[0], file)
    if len(found) > 1:
        several = " and ".join(f"{file} ({kind})" for kind, file in found.items())
        raise StreamError(f"`source` must be of files of one format, or its `format` be said; got {several}.")
    return next(iter(found))
