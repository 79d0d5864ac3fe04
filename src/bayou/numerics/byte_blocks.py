"""Files and streams as blocks of bytes: unpacked, cut where lines end, counted."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bayou.errors import StreamError
from bayou.numerics.files import File, Piped, told_plainly

BLOCK = 2**23  # bytes
LONGEST = 2**26  # bytes of a line
PIECE = 2**16  # bytes
PACKED = ("", ".gz", ".zst")
GZIP, ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
WHOLE = "a whole text file"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def with_packed(endings: Sequence[str]) -> list[str]:
    """The same endings of files that may be packed."""
    return [f"{ending}{packed}" for ending in endings for packed in PACKED]


@contextmanager
def opened(file: File) -> Iterator[Any]:
    """Something to read unpacked bytes from."""
    with told_plainly(file, "a file that can be read"):
        source = unpacked(file)
    if source is file:
        yield source
    else:
        with source:
            yield source


def unpacked(file: File) -> Any:
    """The same, to be closed. Files say by their ending how they are packed, streams by their first bytes."""
    if isinstance(file, Piped):
        start: bytes = file.peek(4)
        gzipped, zstandard = start.startswith(GZIP), start.startswith(ZSTANDARD)
    else:
        gzipped, zstandard = file.name.endswith(".gz"), file.name.endswith(".zst")
    if gzipped:
        return gzip.GzipFile(fileobj=file) if isinstance(file, Piped) else gzip.open(file)
    if zstandard:
        try:
            import pyarrow as pa  # noqa: PLC0415  # an extra
        except ImportError as error:
            raise ImportError('.zst is read with pyarrow, which is missing: pip install "bayou[tables]"') from error
        return pa.CompressedInputStream(file if isinstance(file, Piped) else str(file), "zstd")
    return file if isinstance(file, Piped) else file.open("rb")


def line_blocks(file: File, most: int = LONGEST) -> Iterator[bytes]:
    """The bytes of a file, cut where lines end; read so many at a time, or as many as a block has."""
    text = b""
    with opened(file) as source:
        while True:
            with told_plainly(file, WHOLE):
                more = source.read(min(BLOCK, most))
            text += more
            cut = text.rfind(b"\n") + 1 if more else len(text)
            if cut:
                yield text[:cut]
                text = text[cut:]
            if not more:
                return
            if len(text) > LONGEST:
                raise StreamError(f"{file} must have lines of at most {LONGEST:,} bytes; got one of {len(text):,}.")


def count_byte(block: bytes, byte: bytes) -> int:
    """How often a byte comes, quicker than bytes count: by pieces that stay in the cache."""
    text = np.frombuffer(block, np.uint8)
    return sum(int(np.count_nonzero(text[k : k + PIECE] == byte[0])) for k in range(0, len(text), PIECE))


def count_outside_quotes(block: bytes, byte: bytes) -> int:
    """How often a byte comes that is not between two double quotes, by bits: 64 bytes at a time."""
    if b'"' not in block:
        return count_byte(block, byte)
    inside = _bits(block, b'"')
    for shift in (1, 2, 4, 8, 16, 32):  # each bit becomes the parity of those up to it
        inside ^= inside << np.uint64(shift)
    odd_before = np.bitwise_xor.accumulate(inside >> np.uint64(63)) ^ (inside >> np.uint64(63))
    inside ^= np.uint64(0) - odd_before
    # A last word may be partly beyond the block, where no byte is found.
    return int(np.bitwise_count(_bits(block, byte) & ~inside).sum())


def _bits(block: bytes, byte: bytes) -> Any:
    text = np.frombuffer(block, np.uint8)
    words = np.zeros(-(-len(text) // 64), "<u8")
    bits = words.view(np.uint8)
    for k in range(0, len(text), PIECE):
        piece = np.packbits(text[k : k + PIECE] == byte[0], bitorder="little")
        bits[k // 8 : k // 8 + len(piece)] = piece
    return words.astype(np.uint64, copy=False)


@contextmanager
def on_disk(file: File) -> Iterator[Path]:
    """The file, or one that holds all bytes of a stream as long as it is needed."""
    if isinstance(file, Piped):
        with _spooled(file) as place:
            yield place
    else:
        yield file


@contextmanager
def _spooled(stream: Piped) -> Iterator[Path]:
    """All bytes of a stream as a file, for what is read from its end; gone afterwards, whatever happens.

    Where the system lets us, the file has no name from the start, so that not even a process that is killed leaves it.
    """
    with told_plainly(stream, "a stream that fits on the disk"):
        nameless = sys.platform == "linux" and Path("/proc/self/fd").is_dir()
        file: Any = tempfile.TemporaryFile() if nameless else tempfile.NamedTemporaryFile(delete=False)  # noqa: SIM115
    try:
        with opened(stream) as source, told_plainly(stream, "a stream that fits on the disk"):
            while more := source.read(BLOCK):
                file.write(more)
            file.flush()
        yield Path(f"/proc/self/fd/{file.fileno()}") if nameless else Path(file.name)
    finally:
        file.close()
        if not nameless:
            os.unlink(file.name)  # noqa: PTH108  # a path of the system's
