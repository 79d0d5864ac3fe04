"""Any source of rows, found by what it is, how it is called, or its first bytes; also from a pipe."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from bayou import open_source, read_parquet
from bayou.errors import InvalidSpec, StreamError
from bayou.numerics.files import Piped
from bayou.numerics.sniffing import sniffed

TABLE = pl.DataFrame({"n": [1, 2, 3], "x": [0.5, None, 1.5], "word": ["a", "b", "c"]})
SECONDS = 60  # that a process may take


def packed(raw: bytes, ending: str) -> bytes:
    if ending == ".gz":
        return gzip.compress(raw)
    return pa.compress(raw, codec="zstd", asbytes=True) if ending == ".zst" else raw


def ipc(table: pl.DataFrame) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.to_arrow().schema) as writer:
        writer.write_table(table.to_arrow())
    return sink.getvalue()


def bytes_of(method: str, **options: Any) -> bytes:
    sink = io.BytesIO()
    getattr(TABLE, method)(sink, **options)
    return sink.getvalue()


RAW = {
    "csv": bytes_of("write_csv"),
    "tsv": bytes_of("write_csv", separator="\t"),
    "json": bytes_of("write_ndjson"),
    "parquet": bytes_of("write_parquet"),
    "ipc": bytes_of("write_ipc"),
    "arrows": ipc(TABLE),
    "libsvm": b"1 1:0.5\n-1 2:3\n1\n",
    "vw": b"1 |f a:0.5\n-1 'tag|f b\n1 |f c\n",
}


def is_right(chunks: list[Any]) -> bool:
    if isinstance(chunks[0], pl.DataFrame):
        return bool(pl.concat(chunks).equals(TABLE, null_equal=True))
    return [y for chunk in chunks for y in chunk.labels] == [1.0, -1.0, 1.0]


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
@pytest.mark.parametrize("ending", RAW)
def test_files_are_told_by_their_endings_and_streams_by_their_bytes(tmp_path: Path, ending: str, packing: str) -> None:
    raw = packed(RAW[ending], packing)
    assert is_right(list(open_source(io.BytesIO(raw))))
    if ending == "parquet" and packing:
        return  # packs itself
    path = tmp_path / f"rows.{ending}{packing}"
    path.write_bytes(raw)
    assert is_right(list(open_source(path)))
    assert is_right(list(open_source(tmp_path)))
    assert is_right(list(open_source(str(tmp_path / "rows.*"), chunk_rows=2)))
    assert is_right(list(open_source([path])))


def test_tables_are_told_by_what_they_are() -> None:
    for source in (TABLE, TABLE.to_arrow(), TABLE.to_arrow().to_reader()):
        assert is_right(list(open_source(source, chunk_rows=2)))
    with pytest.raises(InvalidSpec, match="`format` must be None for a table; got 'csv'"):
        open_source(TABLE, format="csv")


@pytest.mark.parametrize(
    ("start", "format"),
    [
        (b"a,b\n1,2\n", "csv"),
        (b"a\tb\n", "tsv"),
        (b"a|b|c\n1|2|3\n", "csv"),
        (b"1|2|3\n", "csv"),
        (b"word\n1\n", "csv"),
        (b'\n \n{"a": 1}\n', "json"),
        (b'{"a": 1}', "json"),
        (b"\xef\xbb\xbfa,b\n", "csv"),
        (b"# a comment\n+1 1:2.5 7:1e-3 # more\n", "libsvm"),
        (b"0 3:1", "libsvm"),
        (b"|f a b\n", "vw"),
        (b"1 0.5 'tag|f a:2 b:red\n", "vw"),
        (b"'tag |f a\n", "vw"),
        (b"-1 | a\n", "vw"),
        (b"1 |f a:0.5 |g b\n", "vw"),
        (b"", "csv"),
    ],
)
def test_formats_are_told_by_the_first_line(start: bytes, format: str) -> None:
    stream = Piped(io.BytesIO(start + b"rest"))
    assert sniffed(stream) == format or not start.endswith(b"\n")
    stream = Piped(io.BytesIO(start))
    assert sniffed(stream) == format
    assert stream.read() == start


def test_bytes_come_as_they_are_however_they_are_asked_for() -> None:
    raw = bytes(range(256)) * 10

    class Slow(io.RawIOBase):
        """As a pipe, of which each call reads a little."""

        def __init__(self) -> None:
            self.inside = io.BytesIO(raw)

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            return self.inside.readinto(memoryview(buffer)[:7])

    for make in (Slow, lambda: io.BufferedReader(Slow()), lambda: io.BytesIO(raw)):
        stream = Piped(make())
        assert stream.peek(100)[:100] == raw[:100]
        assert [stream.read(n) for n in (3, 0, 200)] == [raw[:3], b"", raw[3:203]]
        assert stream.read() == raw[203:]
        assert stream.read(5) == b""


def test_what_is_not_known_is_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.xlsx"
    path.write_bytes(b"PK")
    with pytest.raises(
        StreamError, match=r"rows.xlsx must end with one of .arrow, .* .vw.zst, or its `format` be said"
    ):
        open_source(path)
    with pytest.raises(StreamError, match=r"`path` must name a file, a folder of files \(.arrow, .*\) or a pattern"):
        open_source(tmp_path)
    with pytest.raises(
        InvalidSpec, match="`format` must be one of csv, tsv, parquet, ipc, json, libsvm, vw; got 'xls'"
    ):
        open_source(path, format="xls")
    with pytest.raises(InvalidSpec, match="`path` must be a path, a stream of bytes or a list of these; got 5"):
        open_source(5)
    with pytest.raises(StreamError, match="must be a stream of bytes; got str: open it with mode 'rb'"):
        open_source(io.StringIO("a,b\n"))
    path.write_bytes(RAW["csv"])
    assert is_right(list(open_source(path, format="csv")))
    (tmp_path / "a.csv").write_bytes(RAW["csv"])
    (tmp_path / "b.parquet").write_bytes(RAW["parquet"])
    with pytest.raises(StreamError, match=r"must be of files of one format, .* got .*a.csv \(csv\) and .*b.parquet"):
        open_source(tmp_path)
    assert is_right(list(open_source(tmp_path, format="parquet")))
    with pytest.raises(InvalidSpec, match="`columns` must be None for vw, which has no columns to name"):
        open_source(io.BytesIO(RAW["vw"]), columns=["a"])


def test_columns_and_types_go_to_the_reader() -> None:
    for format in ("csv", "tsv", "json", "parquet", "ipc"):
        [table] = open_source(io.BytesIO(RAW[format]), columns=["x", "n"], types={"n": "text"})
        assert table.rows() == [(0.5, "1"), (None, "2"), (1.5, "3")]


FROM_PIPE = """
import os, sys, tempfile
from bayou import Skipped, open_source
skipped = Skipped()
for chunk in open_source("-", format={format}, chunk_rows=2, on_error="skip", skipped=skipped):
    print(*([y for y in chunk.labels] if hasattr(chunk, "labels") else chunk["n"]), end=" ")
print(skipped.count, os.listdir({folder!r}))
"""


def run_with_input(script: str, raw: bytes, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """A process that reads from a pipe, whose temporary files go to a folder."""
    root = Path(__file__).parents[2] / "src"
    return subprocess.run(
        [sys.executable, "-c", script],
        input=raw,
        env=os.environ | {"PYTHONPATH": str(root), "TMPDIR": str(folder)},
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )


@pytest.mark.parametrize("said", [True, False])
@pytest.mark.parametrize("ending", RAW)
def test_standard_input(tmp_path: Path, ending: str, said: bool) -> None:
    format = {"arrows": "ipc"}.get(ending, ending) if said else None
    script = FROM_PIPE.format(format=repr(format), folder=str(tmp_path))
    finished = run_with_input(script, RAW[ending] if said else packed(RAW[ending], ".gz"), tmp_path)
    numbers = "1.0 -1.0 1.0" if ending in ("libsvm", "vw") else "1 2 3"
    assert finished.stdout.decode() == f"{numbers} 0 []\n", finished.stderr.decode()


def test_standard_input_in_many_blocks(tmp_path: Path) -> None:
    raw = b"n,x\n" + b"".join(b"%d,%d\n" % (k, k) for k in range(1_000_000)) + b"x,y,z\n"
    script = """
from bayou import Skipped, read_csv
skipped = Skipped()
print(sum(chunk["n"].sum() for chunk in read_csv("-", on_error="skip", skipped=skipped)), skipped.rows)
"""
    finished = run_with_input(script, raw, tmp_path)
    told = "[SkippedRow(file='standard input', row=1000001, line=1000002, reason='must have 2 fields; got 3')]"
    assert finished.stdout.decode() == f"{sum(range(1_000_000))} {told}\n", finished.stderr.decode()


@pytest.mark.parametrize("how", ["left", "broken", "killed"])
def test_no_temporary_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    if how == "left":
        stream = read_parquet(io.BytesIO(RAW["parquet"]), chunk_rows=1)
        assert len(next(stream)) == 1
        stream.close()
    elif how == "broken":
        with pytest.raises(StreamError, match="the stream must be a whole Parquet file"):
            list(read_parquet(io.BytesIO(RAW["parquet"][:-20])))
    elif sys.platform == "linux":  # where a file can be had that has no name
        script = "import os, signal\nfrom bayou import read_parquet\nnext(read_parquet('-'))\n"
        finished = run_with_input(f"{script}os.kill(os.getpid(), signal.SIGKILL)", RAW["parquet"], tmp_path)
        assert finished.returncode == -9, finished.stderr.decode()
    assert list(tmp_path.iterdir()) == []


def test_where_files_must_have_names_they_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("bayou.numerics.byte_blocks.sys.platform", "other")
    stream = read_parquet(io.BytesIO(RAW["parquet"]), chunk_rows=1)
    assert len(next(stream)) == 1
    assert len(list(tmp_path.iterdir())) == 1
    stream.close()
    assert list(tmp_path.iterdir()) == []
