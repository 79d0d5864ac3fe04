"""Rows of Parquet files: all of them, in order, in little memory; or a word on what is wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pyarrow import parquet

from bayou import read_parquet
from bayou.errors import BayouError, InvalidSpec, StreamError

N_ROWS = 1000


def table(n_rows: int = N_ROWS, seed: int = 0) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    words = [f"word {k} that is longer than a view" if k % 3 else f"w{k}" for k in random.integers(0, 50, n_rows)]
    numbers = [None if k % 7 == 0 else float(k) for k in range(n_rows)]
    return pl.DataFrame({"n": np.arange(n_rows), "x": numbers, "word": words})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    table().write_parquet(path, row_group_size=170)
    return path


@pytest.mark.parametrize("chunk_rows", [1, 7, 170, 999, 1000, 100_000])
@pytest.mark.parametrize("group", [1, 170, N_ROWS])
def test_the_same_rows_in_the_same_order(tmp_path: Path, group: int, chunk_rows: int) -> None:
    path = tmp_path / "rows.parquet"
    table().write_parquet(path, row_group_size=group)
    chunks = list(read_parquet(path, chunk_rows=chunk_rows))
    assert max(map(len, chunks)) <= chunk_rows
    assert all(chunk.n_chunks("all") == [1, 1, 1] for chunk in chunks)
    assert pl.concat(chunks).equals(table(), null_equal=True)


@pytest.mark.parametrize("block", [1, 3, 100, 400, 10_000])
def test_blocks_are_flat_whatever_the_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr("bayou.streams.parquet.BLOCK", block)
    path = tmp_path / "rows.parquet"
    groups = [1, 399, 2, 0, 5, 300, 293]
    with parquet.ParquetWriter(path, table().to_arrow().schema) as writer:
        start = 0
        for count in groups:
            writer.write_table(table()[start : start + count].to_arrow())
            start += count
    chunks = list(read_parquet(path, chunk_rows=100))
    assert pl.concat(chunks).equals(table(), null_equal=True)


def test_what_pyarrow_wrote_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    for dictionary in (True, False):
        parquet.write_table(table().to_arrow(), path, row_group_size=300, use_dictionary=dictionary)
        assert pl.concat(read_parquet(path, chunk_rows=64)).equals(table(), null_equal=True)


def test_columns_are_chosen_in_the_order_asked_for(file: Path) -> None:
    chunks = list(read_parquet(file, columns=["word", "n"]))
    assert pl.concat(chunks).equals(table().select("word", "n"))


def test_a_folder_a_pattern_and_a_list_are_read_by_name(tmp_path: Path) -> None:
    for number in (2, 0, 1):
        table(100, seed=number).write_parquet(tmp_path / f"part-{number}.parquet")
    table(0).write_parquet(tmp_path / "part-3.parquet")  # has no rows, nor types
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "_metadata.parquet").write_bytes(b"no data")
    expected = pl.concat([table(100, seed=number) for number in range(3)])
    paths = [tmp_path / f"part-{number}.parquet" for number in range(3)]
    for source in (tmp_path, str(tmp_path / "part-*.parquet"), paths):
        assert pl.concat(read_parquet(source)).equals(expected, null_equal=True)


def test_a_name_that_looks_like_a_pattern_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rows[1].parquet"
    table().write_parquet(path)
    assert pl.concat(read_parquet(path)).equals(table(), null_equal=True)


@pytest.mark.parametrize("chunk_rows", [0, -1, 2.5])
def test_chunks_have_rows(file: Path, chunk_rows: float) -> None:
    with pytest.raises(InvalidSpec, match="`chunk_rows` must be a whole number, at least 1; got"):
        next(read_parquet(file, chunk_rows=chunk_rows))


def test_columns_are_a_list(file: Path) -> None:
    with pytest.raises(InvalidSpec, match="`columns` must be a list of names; got 'word'"):
        next(read_parquet(file, columns="word"))


@pytest.mark.parametrize("name", ["none.parquet", "*.parquet", ""])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(StreamError, match=r"`path` must name a file, a folder of files \(.parquet, .pq\)") as caught:
        next(read_parquet(tmp_path / name))
    assert str(tmp_path / name) in str(caught.value)
    assert isinstance(caught.value, BayouError)


def test_a_missing_column_is_named(file: Path) -> None:
    with pytest.raises(StreamError, match=r"rows.parquet must have a column 'y'; got 'n', 'x', 'word'\."):
        next(read_parquet(file, columns=["n", "y"]))


def test_no_rows_are_no_stream(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    table(0).write_parquet(path)
    with pytest.raises(StreamError, match=r"files of at least one row; got '.*rows.parquet', which has none"):
        next(read_parquet(path))


def test_later_files_have_the_same_columns(tmp_path: Path) -> None:
    table(10).write_parquet(tmp_path / "a.parquet")
    table(10).with_columns(pl.col("n").cast(pl.String)).write_parquet(tmp_path / "b.parquet")
    stream = read_parquet(tmp_path)
    assert next(stream).equals(table(10), null_equal=True)
    with pytest.raises(StreamError, match=r"column 'n' of .*b.parquet must be Int64, as in the first file; got String"):
        next(stream)
    table(10).drop("x").write_parquet(tmp_path / "b.parquet")
    with pytest.raises(StreamError, match=r"b.parquet must have a column 'x'; got 'n', 'word'"):
        list(read_parquet(tmp_path))
    assert len(list(read_parquet(tmp_path, columns=["n"]))) == 2


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"\x00" * 4096])
def test_what_is_no_parquet_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(content)
    with pytest.raises(StreamError, match=r"rows.parquet must be a whole Parquet file; the reader") as caught:
        next(read_parquet(path))
    assert "Traceback" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_off_is_told(file: Path, share: float) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    with pytest.raises(StreamError, match=r"rows.parquet must be a whole Parquet file"):
        list(read_parquet(file))


def test_garbage_in_the_middle_is_told_where_it_is(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayou.streams.parquet.BLOCK", 170)
    parquet.write_table(table().to_arrow(), file, row_group_size=170)
    metadata = parquet.read_metadata(file)
    column = metadata.row_group(3).column(2)
    start = column.dictionary_page_offset or column.data_page_offset
    content = bytearray(file.read_bytes())
    content[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    file.write_bytes(content)
    stream = read_parquet(file, chunk_rows=170)
    before = [next(stream) for _ in range(3)]
    assert pl.concat(before).equals(table()[:510], null_equal=True)
    with pytest.raises(
        StreamError, match=r"rows.parquet must be a whole Parquet file, from row 510 to 680; the reader"
    ):
        next(stream)


def test_flipped_bytes_are_told_or_change_values_alone(tmp_path: Path) -> None:
    """Without checksums in the file, a changed value is no error; but there is none other than ours, and no crash."""
    path, told = tmp_path / "rows.parquet", []
    table().write_parquet(path, row_group_size=250, compression="zstd")
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    for _ in range(60):
        content = bytearray(whole)
        for place in random.integers(4, len(content) - 8, 8):
            content[place] ^= 0xA5
        path.write_bytes(content)
        try:
            n_rows = sum(len(chunk) for chunk in read_parquet(path, chunk_rows=100))
        except StreamError as error:
            told.append(str(error))
        else:
            assert n_rows == N_ROWS
    assert len(told) > 30
    assert all(str(path) in message for message in told)


MEMORY = """
import resource, sys
from pathlib import Path
import numpy as np
import polars as pl
import pyarrow.parquet as pq
from bayou import read_parquet

def peak():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024

few, many = sys.argv[1:] if len(sys.argv) > 1 else ({few!r}, {many!r})
for path in (few, few, many):
    total = sum(len(chunk) for chunk in read_parquet(path, chunk_rows=20_000))
    print(total, peak())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_memory_is_flat_in_the_number_of_rows(tmp_path: Path, run_python: Callable[..., str]) -> None:
    """Two million rows are 480 MB of numbers: what is read of them at a time is 31."""
    random = np.random.default_rng(0)
    piece = pl.DataFrame({f"x{j}": random.normal(size=100_000) for j in range(30)}).to_arrow()
    few, many = tmp_path / "few.parquet", tmp_path / "many.parquet"
    for path, pieces in ((few, 2), (many, 20)):
        with parquet.ParquetWriter(path, piece.schema, compression="none", use_dictionary=False) as writer:
            for _ in range(pieces):
                writer.write_table(piece)
    printed = run_python(MEMORY.format(few=str(few), many=str(many)))
    (_, _), (rows, before), (more, after) = (map(float, line.split()) for line in printed.splitlines())
    assert (rows, more) == (200_000, 2_000_000)
    assert after - before < 100.0


def test_what_is_missing_is_said_with_the_name_of_the_extra(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r'tables are read with polars, which is missing: pip install "bayou\[tables'):
        next(read_parquet(file))
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pyarrow, which is missing: pip install "bayou\[tables\]"'):
        next(read_parquet(file))
