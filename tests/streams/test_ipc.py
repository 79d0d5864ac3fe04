"""Rows of Arrow IPC files and streams: all of them, in order, in little memory; or a word on what is wrong."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather

from bayou import Skipped, read_ipc
from bayou.errors import StreamError

N_ROWS = 1000


def table(n_rows: int = N_ROWS) -> pl.DataFrame:
    words = [f"word {k} that is longer than a view" if k % 3 else f"w{k}" for k in range(n_rows)]
    numbers = [None if k % 7 == 0 else float(k) for k in range(n_rows)]
    return pl.DataFrame({"n": np.arange(n_rows), "x": numbers, "word": words})


def written(kind: str, frame: pl.DataFrame, batch: int = 170) -> bytes:
    sink, arrow = io.BytesIO(), frame.to_arrow()
    new = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with new(sink, arrow.schema) as writer:
        for part in arrow.to_batches(max_chunksize=batch):
            writer.write_batch(part)
    return sink.getvalue()


@pytest.mark.parametrize("chunk_rows", [1, 7, 170, 100_000])
@pytest.mark.parametrize("kind", ["file", "stream"])
def test_the_same_rows_in_the_same_order(tmp_path: Path, kind: str, chunk_rows: int) -> None:
    path = tmp_path / "rows.arrow"
    path.write_bytes(written(kind, table()))
    chunks = list(read_ipc(path, chunk_rows=chunk_rows))
    assert max(map(len, chunks)) <= chunk_rows
    assert all(chunk.n_chunks("all") == [1, 1, 1] for chunk in chunks)
    assert pl.concat(chunks).equals(table(), null_equal=True)


def test_what_others_write_is_read(tmp_path: Path) -> None:
    for compression in ("uncompressed", "lz4", "zstd"):
        table().write_ipc(tmp_path / "rows.ipc", compression=compression)
        assert pl.concat(read_ipc(tmp_path / "rows.ipc")).equals(table(), null_equal=True)
        table().write_ipc_stream(tmp_path / "rows.ipc", compression=compression)
        assert pl.concat(read_ipc(tmp_path / "rows.ipc")).equals(table(), null_equal=True)
    feather.write_feather(table().to_arrow(), str(tmp_path / "rows.feather"), chunksize=100)
    assert pl.concat(read_ipc(tmp_path / "rows.feather")).equals(table(), null_equal=True)
    coded = pa.table({"c": pa.array(["a", "b", None, "a"]).dictionary_encode()})
    feather.write_feather(coded, str(tmp_path / "rows.feather"))
    assert pl.concat(read_ipc(tmp_path / "rows.feather"))["c"].cast(pl.String).to_list() == ["a", "b", None, "a"]


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_streams_and_packed_files(tmp_path: Path, kind: str) -> None:
    raw = written(kind, table())
    assert pl.concat(read_ipc(io.BytesIO(raw))).equals(table(), null_equal=True)
    assert pl.concat(read_ipc(io.BytesIO(gzip.compress(raw)))).equals(table(), null_equal=True)
    for ending, packed in ((".gz", gzip.compress(raw)), (".zst", pa.compress(raw, codec="zstd", asbytes=True))):
        (tmp_path / f"rows.arrow{ending}").write_bytes(packed)
        assert pl.concat(read_ipc(tmp_path / f"rows.arrow{ending}")).equals(table(), null_equal=True)


def test_columns_types_and_folders(tmp_path: Path) -> None:
    (tmp_path / "a.arrow").write_bytes(written("file", table(10)))
    (tmp_path / "b.arrow").write_bytes(written("stream", table(10).select("word", "x", "n")))
    read = pl.concat(read_ipc(tmp_path, columns=["word", "n"], types={"n": "number"}))
    assert read.schema == {"word": pl.String, "n": pl.Float64}
    assert read.equals(pl.concat([table(10), table(10)]).select("word", pl.col("n").cast(pl.Float64)))
    with pytest.raises(StreamError, match=r"a.arrow must have a column 'y'; got 'n', 'x', 'word'"):
        list(read_ipc(tmp_path, columns=["y"]))
    (tmp_path / "c.arrow").write_bytes(written("file", table(10).with_columns(pl.col("x").cast(pl.String))))
    with pytest.raises(StreamError, match=r"column 'x' of .*c.arrow must be Float64, as in the first file; got String"):
        list(read_ipc(tmp_path))


def test_rows_that_are_not_of_the_types_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.arrow"
    path.write_bytes(written("file", pl.DataFrame({"a": ["1", "2", "x", None, "5", "6.5"]}), batch=2))
    skipped = Skipped()
    read = pl.concat(read_ipc(path, types={"a": pl.Int64}, on_error="skip", skipped=skipped))
    assert read["a"].to_list() == [1, 2, None, 5]
    assert [(row.row, row.line) for row in skipped.rows] == [(3, None), (6, None)]
    given: list[int] = []
    wrong = r"rows.arrow, row 3, must have a whole number \(Int64\) in column 'a'; got 'x'"
    with pytest.raises(StreamError, match=wrong):
        given.extend(a for chunk in read_ipc(path, types={"a": pl.Int64}) for a in chunk["a"])
    assert given == [1, 2]


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_a_file_that_was_cut_off_is_told(tmp_path: Path, kind: str) -> None:
    path, raw = tmp_path / "rows.arrow", written(kind, table())
    ends = [1, 4, 9, 100, len(raw) // 3, len(raw) // 2] + ([len(raw) - 1, len(raw) - 8] if kind == "file" else [])
    for end in ends:
        path.write_bytes(raw[:end])
        read: list[pl.DataFrame] = []
        with pytest.raises(StreamError, match=r"rows.arrow must"):
            read.extend(read_ipc(path))
        if read:
            assert pl.concat(read).equals(table()[: sum(map(len, read))], null_equal=True)


def test_garbage_is_told_or_read_as_values(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    path = tmp_path / "rows.arrow"
    told = 0
    for kind in ("file", "stream"):
        raw = written(kind, table(200))
        for _ in range(60):
            broken = bytearray(raw)
            for place in random.integers(0, len(raw), random.integers(1, 4)):
                broken[place] = random.integers(0, 256)
            path.write_bytes(bytes(broken))
            try:
                list(read_ipc(path))
            except StreamError:
                told += 1
    assert told > 0


@pytest.mark.parametrize("raw", [b"", b"FEA1 of old", b"a,b\n1,2\n", b"\0" * 100])
def test_what_is_none_is_told(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "rows.arrow").write_bytes(raw)
    with pytest.raises(StreamError, match=r"rows.arrow must be a whole Arrow IPC file or stream"):
        list(read_ipc(tmp_path / "rows.arrow"))


def test_no_rows_are_no_stream(tmp_path: Path) -> None:
    (tmp_path / "rows.arrow").write_bytes(written("file", table(0)))
    with pytest.raises(StreamError, match=r"files of at least one row; got '.*rows.arrow', which has none"):
        list(read_ipc(tmp_path / "rows.arrow"))


MEMORY = """
from pathlib import Path
from bayou import read_ipc

def peak():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024

for path in ({few!r}, {few!r}, {many!r}):
    print(sum(len(chunk) for chunk in read_ipc(path, chunk_rows=20_000)), peak())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_memory_is_flat_in_the_number_of_rows(tmp_path: Path, run_python: Callable[..., str]) -> None:
    """The many are 144 MB more than the few."""
    batch = pa.record_batch({f"x{j}": np.ones(50_000) for j in range(10)})
    few, many = tmp_path / "few.arrow", tmp_path / "many.arrow"
    for path, pieces in ((few, 12), (many, 48)):
        with pa.ipc.new_file(str(path), batch.schema) as writer:
            for _ in range(pieces):
                writer.write_batch(batch)
    printed = run_python(MEMORY.format(few=str(few), many=str(many)))
    (_, _), (rows, before), (more, after) = (map(float, line.split()) for line in printed.splitlines())
    assert (rows, more) == (600_000, 2_400_000)
    assert after - before < 40.0
