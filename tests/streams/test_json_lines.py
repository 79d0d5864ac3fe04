"""Rows of JSON lines: all of them, nested or not, in order; or a word on the line that is wrong."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import given, settings

from bayou import Skipped, read_json_lines
from bayou.errors import SkippedRows, StreamError

N_ROWS = 1000


def table(n_rows: int = N_ROWS) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "n": list(range(n_rows)),
            "x": [None if k % 7 == 0 else k + 0.5 for k in range(n_rows)],
            "word": [f'a "{k}", é\nmore' for k in range(n_rows)],
            "flag": [k % 2 == 0 for k in range(n_rows)],
        }
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    table().write_ndjson(path)
    return path


def of_lines(*lines: str | bytes, **options: object) -> pl.DataFrame:
    raw = b"\n".join(line.encode() if isinstance(line, str) else line for line in lines)
    return pl.concat(read_json_lines(io.BytesIO(raw), **options))


@pytest.mark.parametrize("chunk_rows", [1, 7, 1000, 100_000])
def test_the_same_rows_in_the_same_order(file: Path, chunk_rows: int) -> None:
    chunks = list(read_json_lines(file, chunk_rows=chunk_rows))
    assert max(map(len, chunks)) <= chunk_rows
    assert all(chunk.n_chunks("all") == [1, 1, 1, 1] for chunk in chunks)
    assert pl.concat(chunks).equals(table(), null_equal=True)
    assert chunks[0].schema == table().schema


@pytest.mark.parametrize("block", [1, 100, 5000])
def test_lines_are_whole_wherever_blocks_end(file: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr("bayou.numerics.byte_blocks.BLOCK", block)
    types = {"x": pl.Float64}  # which the first line does not tell
    read = pl.concat(read_json_lines(file, types=types))
    assert read.select(table().columns).equals(table(), null_equal=True)


def test_what_pandas_writes_is_read(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "é"], "c": [0.5, None, 1e300]})
    frame.to_json(tmp_path / "rows.json", orient="records", lines=True)
    assert pl.concat(read_json_lines(tmp_path / "rows.json")).rows() == [
        (1, "x", 0.5),
        (2, None, None),
        (3, "é", 1e300),
    ]


def test_packed_files(tmp_path: Path) -> None:
    raw = table().write_ndjson().encode()
    packed = tmp_path / "rows.ndjson.gz"
    packed.write_bytes(gzip.compress(raw))
    assert pl.concat(read_json_lines(tmp_path)).equals(table(), null_equal=True)
    packed.write_bytes(packed.read_bytes()[:-100])
    with pytest.raises(StreamError, match=r"rows.ndjson.gz must be a whole text file"):
        list(read_json_lines(packed))
    import pyarrow as pa

    packed = tmp_path / "rows.jsonl.zst"
    packed.write_bytes(pa.compress(raw, codec="zstd", asbytes=True))
    assert pl.concat(read_json_lines(packed)).equals(table(), null_equal=True)


def test_keys_within_keys_are_columns_with_a_point() -> None:
    read = of_lines(
        '{"a": {"b": 1, "c": {"d": "x"}}, "e": 2}', '{"a": {"c": {"d": null}}}', '{"a": null, "e": 3}', "{}"
    )
    assert read.columns == ["a.b", "a.c.d", "e"]
    assert read.rows() == [(1, "x", 2), (None, None, None), (None, None, 3), (None, None, None)]
    chosen = of_lines('{"a": {"b": 1, "c": 2}, "e": [1]}', columns=["a.c"], types={"a.c": pl.Float32})
    assert chosen.schema == {"a.c": pl.Float32}
    with pytest.raises(StreamError, match=r"must have columns of different names; got 'a.b' twice"):
        of_lines('{"a.b": 1, "a": {"b": 2}}')


def test_lists_are_told_or_had_as_text() -> None:
    with pytest.raises(
        StreamError, match=r"column 'a' of .* must hold single values; got List\(Int64\): choose others"
    ):
        of_lines('{"a": [1, 2], "b": 1}')
    assert json.loads(of_lines('{"a": [1, 2], "b": 1}', types={"a": "text"})["a"][0]) == [1, 2]
    assert of_lines('{"a": [1, 2], "b": 1}', columns=["b"]).rows() == [(1,)]


def test_keys_that_come_later_are_read_where_they_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayou.numerics.byte_blocks.BLOCK", 10)
    lines = ['{"a": 1}', '{"a": 2, "late": 3}', '{"a": null, "late": "x"}']
    assert of_lines(*lines).columns == ["a"]
    assert of_lines(*lines, types={"late": "text"}).rows() == [(1, None), (2, "3"), (None, "x")]


WRONG = {
    b'{"a": "x"}': "must have a whole number (Int64) in column 'a'; got 'x'",
    b'{"a": 1.5}': "must have a whole number (Int64) in column 'a'; got 1.5",
    b'{"a": true}': "must have a whole number (Int64) in column 'a'; got True",
    b'{"a": 99999999999999999999}': "must have a whole number (Int64) in column 'a'; got 99999999999999999999",
    b'{"f": "no"}': "must have true or false (Boolean) in column 'f'; got 'no'",
    b'{"o": 3}': "must have an object in 'o'; got 3",
    b'{"o": {"p": "x"}}': "must have a number (Float64) in column 'o.p'; got 'x'",
    b'{"d": "soon"}': "must be a row of these types; the reader says",
    b'{"i": 300}': "must have a whole number (Int8) in column 'i'; got 300",
    b'{"a": 1': "must be a JSON object; got '{\"a\": 1'",
    b"[1, 2]": "must be a JSON object; got [1, 2]",
    b"null": "must be a JSON object; got None",
    b'"text"': "must be a JSON object; got 'text'",
    b'{"a": NaN}': "must be a JSON object",
    b'{"a": 1} {"a": 2}': "must be a JSON object",
    b'{"s": "\xff"}': "must be UTF-8",
    b'{"s": ' + b"[" * 5000 + b"]" * 5000 + b"}": "must be",
}


@pytest.mark.parametrize("bad", WRONG)
def test_a_line_that_breaks_the_schema(monkeypatch: pytest.MonkeyPatch, bad: bytes) -> None:
    first = b'{"a": 1, "f": true, "o": {"p": 0.5}, "s": "x", "d": "2024-01-02", "i": 3}\n'
    few = {"d": pl.Date, "i": pl.Int8}
    for block, types in ((len(first), few), (2**23, {"a": pl.Int64, "f": pl.Boolean, "o.p": pl.Float64} | few)):
        monkeypatch.setattr("bayou.numerics.byte_blocks.BLOCK", block)
        raw = first + b"\n" + b'{"a": 2}\n' * 50 + bad + b'\n{"a": 3}\n'
        skipped = Skipped()
        read = pl.concat(read_json_lines(io.BytesIO(raw), types=types, chunk_rows=7, on_error="skip", skipped=skipped))
        assert read["a"].to_list() == [1, *[2] * 50, 3]
        assert [(row.row, row.line) for row in skipped.rows] == [(52, 53)]
        assert skipped.rows[0].reason.startswith(WRONG[bad])
        given: list[int] = []
        with pytest.raises(StreamError, match=r"the stream, line 53 \(row 52\), must") as caught:
            given.extend(n for chunk in read_json_lines(io.BytesIO(raw), types=types, chunk_rows=7) for n in chunk["a"])
        assert given == [1, *[2] * 50]
        assert "\n" not in str(caught.value)


def test_broken_lines_in_front_do_not_tell_the_types() -> None:
    skipped = Skipped()
    read = of_lines("# no JSON", "{}", "7", '{"a": 1}', '{"a": 2}', on_error="skip", skipped=skipped)
    assert read.rows() == [(None,), (1,), (2,)]
    assert [row.line for row in skipped.rows] == [1, 3]
    with pytest.raises(StreamError, match=r"line 1 \(row 1\), must be a JSON object; got '# no JSON'"):
        of_lines("# no JSON", '{"a": 1}')


def test_columns_without_any_value_in_front_take_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayou.numerics.byte_blocks.BLOCK", 10)
    assert of_lines('{"a": null}', '{"a": "x"}', '{"a": 5}')["a"].to_list() == [None, "x", "5"]


@pytest.mark.parametrize("raw", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_no_rows_are_no_stream(raw: bytes) -> None:
    with pytest.raises(StreamError, match="files of at least one row"):
        list(read_json_lines(io.BytesIO(raw)))


def test_objects_without_keys_are_no_rows() -> None:
    with pytest.raises(StreamError, match=r"line 1 \(row 1\), must have a key"):
        of_lines("{}", "{}")


def test_a_mark_of_the_order_of_bytes_is_passed_over() -> None:
    assert of_lines(b'\xef\xbb\xbf{"a": 1}\r', b'{"a": 2}\r').rows() == [(1,), (2,)]


def test_a_line_without_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayou.numerics.byte_blocks.BLOCK", 100)
    monkeypatch.setattr("bayou.numerics.byte_blocks.LONGEST", 1000)
    with pytest.raises(StreamError, match="must have lines of at most 1,000 bytes; got one of 1,100"):
        of_lines(b'{"a": "' + b"x" * 5000)


SOUND = (
    b'{"n": 1, "o": {"p": 2.5, "q": "x"}}\n\n{"n": null, "o": null}\n{"n": -4, "o": {"q": "\xc3\xa9\\n"}, "z": true}\n'
)


@settings(max_examples=300)
@given(st.data())
def test_whatever_the_bytes_there_is_a_stream_error_or_a_table(data: st.DataObject) -> None:
    raw = bytearray(SOUND)
    pieces = [
        b"",
        b'"',
        b",",
        b"\n",
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b"\0",
        b"\xff",
        b"x",
        b"9" * 30,
        b"null",
        b"\\",
        b"1e999",
    ]
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(raw)))
        raw[place : place + data.draw(st.integers(0, 3))] = data.draw(st.sampled_from(pieces))
    told: dict[str, int] = {}
    for on_error in ("stop", "skip"):
        try:
            chunks = read_json_lines(io.BytesIO(bytes(raw)), on_error=on_error, skipped=Skipped())
            told[on_error] = sum(map(len, chunks))
        except StreamError:
            continue
    if "stop" in told:  # what does not stop a stream is not skipped either
        assert told["skip"] == told["stop"]


def test_rows_are_never_skipped_without_a_word() -> None:
    with pytest.warns(SkippedRows, match="1 rows were skipped, the first: the stream, line 2"):
        of_lines('{"a": 1}', "x", on_error="skip")


MEMORY = """
from pathlib import Path
from bayou import read_json_lines

def peak():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024

for path in ({few!r}, {few!r}, {many!r}):
    print(sum(len(chunk) for chunk in read_json_lines(path, chunk_rows=20_000)), peak())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_memory_is_flat_in_the_number_of_rows(tmp_path: Path, run_python: Callable[..., str]) -> None:
    """The many are 120 MB of text more than the few."""
    lines = (json.dumps({f"x{j}": 1.5 for j in range(10)}) + "\n").encode() * 100_000
    few, many = tmp_path / "few.jsonl", tmp_path / "many.jsonl"
    for path, pieces in ((few, 3), (many, 12)):
        with path.open("wb") as file:
            for _ in range(pieces):
                file.write(lines)
    printed = run_python(MEMORY.format(few=str(few), many=str(many)))
    (_, _), (rows, before), (more, after) = (map(float, line.split()) for line in printed.splitlines())
    assert (rows, more) == (300_000, 1_200_000)
    assert after - before < 60.0
