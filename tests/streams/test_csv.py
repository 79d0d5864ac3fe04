"""Rows of text files: all of them, in order, in little memory; or a word on what is wrong."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from bayou import Skipped, read_csv
from bayou.errors import InvalidSpec, StreamError
from bayou.streams import open_source

N_ROWS = 1000


def table(n_rows: int = N_ROWS) -> pl.DataFrame:
    numbers = [None if k % 7 == 0 else k + 0.5 for k in range(n_rows)]
    words = [f'a "{k % 50}", and\nmore' if k % 3 else f"é{k}" for k in range(n_rows)]
    return pl.DataFrame({"n": np.arange(n_rows), "x": numbers, "word": words})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    table().write_csv(path)
    return path


def plain(n_rows: int = N_ROWS) -> bytes:
    return b"a,b,c\n" + b"".join(b"%d,%d,x%d\n" % (k, k, k) for k in range(n_rows))


@pytest.mark.parametrize("chunk_rows", [1, 7, 999, 1000, 100_000])
def test_the_same_rows_in_the_same_order(file: Path, chunk_rows: int) -> None:
    chunks = list(read_csv(file, chunk_rows=chunk_rows))
    assert max(map(len, chunks)) <= chunk_rows
    assert all(chunk.n_chunks("all") == [1, 1, 1] for chunk in chunks)
    assert pl.concat(chunks).equals(table(), null_equal=True)
    assert chunks[0].schema == {"n": pl.Int64, "x": pl.Float64, "word": pl.String}


@pytest.mark.parametrize("block", [1, 10, 1000])
def test_rows_are_whole_wherever_blocks_end(file: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr("bayou.streams.csv.BLOCK", block)
    types = {"n": pl.Int64, "x": pl.Float64, "word": pl.String}
    assert pl.concat(read_csv(file, types=types)).equals(table(), null_equal=True)


def test_a_quote_that_is_left_open_costs_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayou.streams.csv.BLOCK", 100)
    monkeypatch.setattr("bayou.streams.csv.LONGEST", 1000)
    path = tmp_path / "rows.csv"
    for size in ('70" disk', '"disk', '"disk"s'):
        rows = [(k, size if k == 70 else "none") for k in range(500)]
        path.write_text("n,size\n" + "".join(f"{k},{size}\n" for k, size in rows))
        read: list[tuple[int, str]] = []
        with pytest.raises(StreamError, match=r"rows.csv, line 72 \(row 71\), must have fields whose quotes"):
            read.extend(row for chunk in read_csv(path) for row in chunk.rows())
        assert read == rows[:70]
        skipped = Skipped()
        tables = read_csv(path, on_error="skip", skipped=skipped)
        assert [row for table in tables for row in table.rows()] == [row for row in rows if row[0] != 70]
        assert [(row.row, row.line) for row in skipped.rows] == [(71, 72)]


@pytest.mark.parametrize("separator", ["\t", ";", "|"])
def test_other_separators(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "rows.tsv"
    table().write_csv(path, separator=separator)
    assert pl.concat(read_csv(path, separator=separator)).equals(table(), null_equal=True)


def test_packed_files(tmp_path: Path) -> None:
    packed = tmp_path / "rows.csv.gz"
    packed.write_bytes(gzip.compress(table().write_csv().encode()))
    assert pl.concat(read_csv(packed, chunk_rows=100)).equals(table(), null_equal=True)
    packed.write_bytes(packed.read_bytes()[:-200])
    with pytest.raises(StreamError, match=r"rows.csv.gz must be"):
        list(read_csv(packed, chunk_rows=100))


def test_zstandard(tmp_path: Path) -> None:
    import pyarrow as pa

    packed = tmp_path / "rows.csv.zst"
    packed.write_bytes(pa.compress(table().write_csv().encode(), codec="zstd", asbytes=True))
    assert pl.concat(read_csv(packed)).equals(table(), null_equal=True)


def test_types_are_said_or_guessed(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("zip,code\n" + "01234,12345678\n" * 600_000 + "x1234,1e45678a\n")
    stream = read_csv(path)
    assert next(stream).schema == {"zip": pl.Int64, "code": pl.Int64}
    wrong = r"line 600,002 \(row 600,001\), must have a whole number \(Int64\) in column 'zip'; got 'x1234'"
    with pytest.raises(StreamError, match=wrong):
        list(stream)
    told = pl.concat(read_csv(path, types={"zip": pl.String, "code": pl.String}))
    assert told.row(0) == ("01234", "12345678")
    assert told.row(-1) == ("x1234", "1e45678a")
    assert len(told) == 600_001


def test_a_type_of_no_column_is_told(file: Path) -> None:
    with pytest.raises(StreamError, match=r"rows.csv must have a column 'zip'; got 'n', 'x', 'word'"):
        next(read_csv(file, types={"zip": pl.String}))


def test_columns_are_chosen_in_the_order_asked_for(file: Path) -> None:
    assert pl.concat(read_csv(file, columns=["word", "n"])).equals(table().select("word", "n"))
    with pytest.raises(StreamError, match=r"rows.csv must have a column 'y'; got 'n', 'x', 'word'"):
        next(read_csv(file, columns=["y"]))


def test_files_of_a_folder_have_the_types_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,one\n2,two\n")
    (tmp_path / "b.csv").write_text("y,x\n3,3\n")  # columns are found by name; 3 is a word here
    (tmp_path / "notes.txt").write_text("no data")
    expected = pl.DataFrame({"x": [1, 2, 3], "y": ["one", "two", "3"]})
    assert pl.concat(read_csv(tmp_path)).equals(expected)
    (tmp_path / "c.csv").write_text("x,y\nfour,four\n")
    with pytest.raises(StreamError, match=r"c.csv, line 2 \(row 1\), must have a whole .* 'x'; got 'four'"):
        list(read_csv(tmp_path))
    (tmp_path / "c.csv").write_text("x,z\n4,four\n")
    with pytest.raises(StreamError, match=r"c.csv must have a column 'y'; got 'x', 'z'"):
        list(read_csv(tmp_path))


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"x,2,z\n", "must have a whole number (Int64) in column 'a'; got 'x'"),
        (b"1.5,2,z\n", "must have a whole number (Int64) in column 'a'; got '1.5'"),
        (b"1,2,3,4\n", "must have 3 fields; got 4"),
        (b"1,2\n", "must have 3 fields; got 2"),
        (b"1,2,\xff\xfe\n", "must be UTF-8; got b'1,2,\\xff\\xfe'"),
        (b'1,2,"z\n', "must have fields whose quotes are closed; got '1,2,\"z'"),
        (bytes(range(256)) + b"\n", "must be UTF-8"),
    ],
)
def test_a_later_row_that_breaks_the_schema(tmp_path: Path, bad: bytes, reason: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(plain(400_000) + bad + b"1,2,z\n")
    line = 400_002 + (bad[:11] == bytes(range(11)))  # the first of its two lines is a row of one field
    read = []
    with pytest.raises(StreamError, match=r"rows.csv, line 400,002 \(row 400,001\), must ") as caught:
        read.extend(chunk["a"] for chunk in read_csv(path, chunk_rows=1000))
    assert reason in str(caught.value) or line > 400_002
    assert "\n" not in str(caught.value)
    assert pl.concat(read).to_list() == list(range(400_000))  # all rows before it are given
    skipped = Skipped()
    tables = list(read_csv(path, chunk_rows=1000, on_error="skip", skipped=skipped))
    assert pl.concat(tables)["a"].to_list() == [*range(400_000), 1]
    assert {row.line for row in skipped.rows} == {400_002, line}
    assert reason in skipped.rows[-1].reason


@pytest.mark.parametrize("content", [b"a,b,c\n1,2,x\n3,4", b"a,b,c\n1,2,x\n3", b"a,b,c\n3"])
def test_a_file_that_was_cut_off_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(
        StreamError, match=r"rows.csv, line [23] .*, must have 3 fields; got [12] and the end of the file"
    ):
        list(read_csv(path))


def test_a_last_row_without_an_end_of_line_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b'a,b\n1,x\n2,"y\nz"')
    assert pl.concat(read_csv(path)).rows() == [(1, "x"), (2, "y\nz")]


@pytest.mark.parametrize("content", [b"a,b,c\n", b"a,b,c"])
def test_no_rows_are_no_stream(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(StreamError, match=r"files of at least one row; got '.*rows.csv', which has none"):
        next(read_csv(path))


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.touch()
    with pytest.raises(StreamError, match=r"rows.csv must be a text file with a line of names and rows of values"):
        next(read_csv(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        StreamError, match=r"`path` must name a file, a folder of files \(.csv, .csv.gz, .csv.zst, .tsv"
    ):
        next(read_csv(tmp_path / "none.csv"))


def test_specs_are_checked(file: Path) -> None:
    with pytest.raises(InvalidSpec, match="`separator` must be one character of ASCII; got ', '"):
        next(read_csv(file, separator=", "))
    with pytest.raises(InvalidSpec, match="`chunk_rows` must be a whole number, at least 1; got 0"):
        next(read_csv(file, chunk_rows=0))


def test_a_stream_may_be_left(file: Path) -> None:
    stream = read_csv(file, chunk_rows=10)
    assert len(next(stream)) == 10
    stream.close()
    assert list(stream) == []


MEMORY = """
from pathlib import Path
from bayou import Skipped, read_csv
from bayou.streams import open_source

def peak():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024

for path in ({few!r}, {few!r}, {many!r}):
    print(sum(len(chunk) for chunk in read_csv(path, chunk_rows=20_000)), peak())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_memory_is_flat_in_the_number_of_rows(tmp_path: Path, run_python: Callable[..., str]) -> None:
    """The many are 72 MB of text and 288 MB of numbers more than the few."""
    lines = ("1," * 19 + "1\n").encode() * 200_000
    few, many = tmp_path / "few.csv", tmp_path / "many.csv"
    for path, pieces in ((few, 3), (many, 12)):
        with path.open("wb") as file:
            file.write(",".join(f"x{j}" for j in range(20)).encode() + b"\n")
            for _ in range(pieces):
                file.write(lines)
    printed = run_python(MEMORY.format(few=str(few), many=str(many)))
    (_, _), (rows, before), (more, after) = (map(float, line.split()) for line in printed.splitlines())
    assert (rows, more) == (600_000, 2_400_000)
    assert after - before < 60.0


def test_polars_missing_is_said_with_the_name_of_the_extra(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r'polars, which is missing: pip install "bayou\[tables\]"'):
        next(read_csv(file))


def test_names_can_be_told_where_the_file_has_none(tmp_path: Path) -> None:
    (tmp_path / "bare.csv").write_text('1,x\n2,"y,z"\n3\n')
    skipped = Skipped()
    [table] = read_csv(tmp_path / "bare.csv", names=["a", "b, c"], on_error="skip", skipped=skipped)
    assert table.to_dict(as_series=False) == {"a": [1, 2], "b, c": ["x", "y,z"]}
    assert [(row.row, row.line) for row in skipped.rows] == [(3, 3)]
    [table] = open_source(tmp_path / "bare.csv", names=["a", "b"], on_error="skip", skipped=Skipped())
    assert table.columns == ["a", "b"]
    for names in ("ab", [], ["a", "a"], ["a", "b\nc"], ["a", ""], ["a", 'b"'], ["a", 3]):
        with pytest.raises(InvalidSpec, match="names"):
            list(read_csv(tmp_path / "bare.csv", names=names))  # type: ignore[arg-type]
    with pytest.raises(InvalidSpec, match="names"):
        open_source(tmp_path / "rows.parquet", format="parquet", names=["a"])
