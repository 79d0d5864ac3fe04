"""The files that a path names, in order, streams of bytes as such, and what polars says of them."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import IO, Any

from bayou.errors import BayouError, InvalidSpec, StreamError

STANDARD_INPUT = "-"


class Piped(io.RawIOBase):
    """Bytes that come once, front to back, and can be looked at before they are read: standard input, a socket."""

    def __init__(self, stream: Any, name: str = "standard input", owns: bool = False) -> None:
        self.stream, self.name, self._ahead, self._owns = stream, name, b"", owns

    def close(self) -> None:
        """The stream, too, where it was opened for this alone."""
        if self._owns:
            self.stream.close()
        super().close()

    def __str__(self) -> str:
        return self.name

    def readable(self) -> bool:
        return True

    def peek(self, size: int, until: Callable[[bytes], Any] | None = None) -> bytes:
        """The next bytes, which stay where they are: so many, fewer at the end or where ``until`` is true of them."""
        while len(self._ahead) < size and not (until and until(self._ahead)):
            more = self._more(size - len(self._ahead), at_once=True)
            if not more:
                break
            self._ahead += more
        return self._ahead

    def read(self, size: int = -1) -> bytes:
        """So many bytes, fewer at the end only; all that are left where no size is told."""
        pieces, size = [self._ahead], sys.maxsize if size is None or size < 0 else size
        if len(self._ahead) >= size:
            piece, self._ahead = self._ahead[:size], self._ahead[size:]
            return piece
        self._ahead, left = b"", size - len(pieces[0])
        while left and (more := self._more(min(left, 2**24))):
            pieces.append(more)
            left -= len(more)
        return b"".join(pieces)

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _more(self, size: int, at_once: bool = False) -> bytes:
        """What a pipe has is taken at once where one looks ahead only: its other end may wait for us."""
        read = getattr(self.stream, "read1", self.stream.read) if at_once else self.stream.read
        more = read(size)
        if not isinstance(more, bytes | bytearray | memoryview):
            raise StreamError(
                f"{self.name} must be a stream of bytes; got {type(more).__name__}: open it with mode 'rb'."
            )
        return bytes(more)


File = Path | Piped
Place = str | os.PathLike[str] | IO[bytes] | Piped
MOST_TOLD = 6  # endings of files, where one is missing
Source = Place | Sequence[Place]


# The allocator that polars brings gives memory back within a second, only to ask for it anew with the next block of
# rows: a third of the time of reading, where the system is slow at it. It has a thread of its own for that, which keeps
# a processor for milliseconds from whoever is to answer meanwhile. It reads this once, when polars is loaded.
ALLOCATOR, KEEPS_MEMORY = "_RJEM_MALLOC_CONF", "dirty_decay_ms:60000,background_thread:false"


def polars() -> Any:
    """Polars, if it is there; loaded here for the first time, it keeps memory from block to block."""
    ours = "polars" not in sys.modules and ALLOCATOR not in os.environ
    if ours:
        os.environ[ALLOCATOR] = KEEPS_MEMORY
    try:
        import polars as pl  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise ImportError('tables are read with polars, which is missing: pip install "bayou[tables]"') from error
    finally:
        if ours:
            del os.environ[ALLOCATOR]  # not for the processes that this one starts
    return pl


def files(source: Source, endings: Sequence[str]) -> list[Any]:
    """One file; all with such endings of a folder and its subfolders, or all that match a pattern, by name; a list.

    "-" is standard input, and what can be read from is a stream of bytes.
    """
    if isinstance(source, Piped):
        return [source]
    if hasattr(source, "read"):
        return [Piped(source, str(getattr(source, "name", "the stream")))]
    if not isinstance(source, str | os.PathLike):
        if not isinstance(source, Sequence):
            raise InvalidSpec(f"`path` must be a path, a stream of bytes or a list of these; got {source!r}.")
        return [file for each in source for file in files(each, endings)]
    if source == STANDARD_INPUT:
        return [Piped(sys.stdin.buffer)]
    path = Path(source)
    if path.is_file():
        return [path]
    if is_piped(path):
        return [Piped(path.open("rb"), str(path), owns=True)]
    if path.is_dir():
        inside = (file for file in path.rglob("*") if file.name.endswith(tuple(endings)) and file.is_file())
        found = [file for file in inside if not any(_is_hidden(part) for part in file.relative_to(path).parts)]
    else:
        matches = glob(os.fspath(source), recursive=True)  # noqa: PTH207  # a pattern may be absolute
        found = [Path(file) for file in matches if Path(file).is_file()]
    if not found:
        kinds = ", ".join(endings if len(endings) <= MOST_TOLD else [*endings[:MOST_TOLD], "..."])
        what = "" if path.exists() else ", which is not there"
        raise StreamError(
            f"`path` must name a file, a folder of files ({kinds}) or a pattern; got {str(path)!r}{what}."
        )
    return sorted(found)


def is_piped(source: Any) -> bool:
    """Whether a path is that of a pipe, which can be read once: as a shell's ``<(zcat rows.csv.gz)``."""
    return isinstance(source, str | os.PathLike) and Path(source).is_fifo()


def no_rows(source: Any, n_skipped: int = 0) -> StreamError:
    """What is said of a source without rows."""
    what = "all of them were skipped" if n_skipped else "which has none"
    said = repr(source) if isinstance(source, list | tuple) else repr(str(source))
    return StreamError(f"`path` must name files of at least one row; got {said}, {what}.")


def _is_hidden(part: str) -> bool:
    """As Spark marks what is not data: `_SUCCESS`, `.crc`."""
    return part.startswith((".", "_"))


def check_chunk_rows(chunk_rows: int) -> None:
    if not (isinstance(chunk_rows, int) and chunk_rows >= 1):
        raise InvalidSpec(f"`chunk_rows` must be a whole number, at least 1; got {chunk_rows!r}.")


def checked_columns(file: File | str, present: Sequence[str], wanted: Sequence[str] | None) -> list[str]:
    """The wanted columns, or all that are there."""
    if isinstance(wanted, str):
        raise InvalidSpec(f"`columns` must be a list of names; got {wanted!r}.")
    for name in wanted or ():
        if name not in present:
            raise StreamError(f"{file} must have a column {name!r}; got {_listed(present)}.")
    return list(present if wanted is None else wanted)


def check_schema(file: File | str, schema: Any, first: Any) -> None:
    """Later files have the columns and types of the first."""
    for name, kind in first.items():
        if schema[name] != kind:
            raise StreamError(f"column {name!r} of {file} must be {kind}, as in the first file; got {schema[name]}.")


def evenly(n_rows: int, most: int) -> Iterator[slice]:
    """The rows in as few parts of equal size as have so many at most: no small rest that costs a call of its own."""
    n_parts = -(-n_rows // most)
    return (slice(n_rows * k // n_parts, n_rows * (k + 1) // n_parts) for k in range(n_parts))


@contextmanager
def told_plainly(file: File | str, requirement: str) -> Iterator[None]:
    """What goes wrong in a reader, in one line and with the name of the file."""
    try:
        yield
    except (BayouError, MemoryError):
        raise
    except Exception as error:
        raise StreamError(f"{file} must be {requirement}; the reader says: {_first_line(error)}") from None
    except BaseException as error:  # a panic of polars is no Exception
        if type(error).__name__ != "PanicException":
            raise
        raise StreamError(f"{file} must be {requirement}; the reader gave up: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:20])
    return shown if len(names) <= 20 else f"{shown} and {len(names) - 20} more"
