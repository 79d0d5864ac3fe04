"""Rows of text files that cannot be read: left out one by one, each told with its line, and never anything worse."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings

from bayou import Skipped, read_csv
from bayou.errors import InvalidSpec, SkippedRows, StreamError
from bayou.numerics.byte_blocks import count_outside_quotes

BAD = {
    "nine,9,x": "must have a whole number (Int64) in column 'n'; got 'nine'",
    "9,nine,x": "must have a number (Float64) in column 'x'; got 'nine'",
    "9,9": "must have 3 fields; got 2",
    "9": "must have 3 fields; got 1",
    "9,": "must have 3 fields; got 2",
    "9,9,x,": "must have 3 fields; got 4",
    '9,9,"x"y': "must have fields whose quotes are closed",
    '9,9,x"y': "must have fields whose quotes are closed",
}
TYPES = {"n": "Int64", "x": "Float64", "word": "String"}


def read(path: Path, **options: object) -> tuple[pl.DataFrame, Skipped]:
    skipped = Skipped()
    types = {name: getattr(pl, kind) for name, kind in TYPES.items()}
    tables = list(read_csv(path, types=types, on_error="skip", skipped=skipped, **options))
    return pl.concat(tables), skipped


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("seed", range(5))
def test_what_is_skipped_is_what_was_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, end: str
) -> None:
    """Good rows of all kinds, as the csv module writes them, with broken ones in between."""
    random = np.random.default_rng(seed)
    monkeypatch.setattr("bayou.streams.csv.BLOCK", int(random.integers(50, 5000)))
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=end)
    writer.writerow(TYPES)
    line, good, broken = 2, [], []
    words = ["", "a", "b, c", 'say "d"', "two\nlines", "é", " space "]
    for row in range(1, 400):
        if random.random() < 0.1:
            bad = random.choice(list(BAD))
            broken.append((row, line, BAD[bad]))
            text.write(bad + end)
            line += 1
            continue
        n = None if random.random() < 0.2 else int(random.integers(-9, 9))
        x, word = round(random.normal(), 3), str(random.choice(words))
        writer.writerow(["" if n is None else n, x, word])
        good.append((n, x, word or None))
        line += 2 if "\n" in word else 1
    path = tmp_path / "rows.csv"
    path.write_bytes(text.getvalue().encode())
    for chunk_rows in (7, 100_000):
        table, skipped = read(path, chunk_rows=chunk_rows)
        assert table.rows() == good
        assert [(row.row, row.line) for row in skipped.rows] == [(row, line) for row, line, _ in broken]
        assert all(one.reason.startswith(reason) for one, (_, _, reason) in zip(skipped.rows, broken, strict=True))
        assert skipped.count == len(broken) == skipped.by_file[str(path)]
    row, line, _ = broken[0]
    given: list[tuple[object, ...]] = []
    types = {"n": pl.Int64, "x": pl.Float64, "word": pl.String}
    with pytest.raises(StreamError, match=rf"rows.csv, line {line:,} \(row {row:,}\), must"):
        given.extend(row for table in read_csv(path, types=types, chunk_rows=10) for row in table.rows())
    assert given == good[: row - 1]


def test_types_beyond_numbers_are_skipped_by_value_too(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("day,flag,time\n2024-01-02,true,10:00:00\nsoon,true,10:00:00\n2024-01-04,maybe,10:00:00\n")
    skipped = Skipped()
    types = {"day": pl.Date, "flag": "boolean"}
    [table] = read_csv(path, types=types, on_error="skip", skipped=skipped)
    assert table["day"].to_list() == pl.Series(["2024-01-02"]).str.to_date().to_list()
    assert [row.reason for row in skipped.rows] == [
        "must have a date (Date) in column 'day'; got 'soon'",
        "must have true or false (Boolean) in column 'flag'; got 'maybe'",
    ]
    path.write_text("time\n10:00:00\nnoon\n11:00:00\n")  # of which polars tells no single value
    [table] = read_csv(path, types={"time": pl.Time}, on_error="skip", skipped=(skipped := Skipped()))
    assert (len(table), [row.line for row in skipped.rows]) == (2, [3])


def test_columns_that_are_not_wanted_break_nothing_by_their_values(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,1\n2,x\n3\n")
    skipped = Skipped()
    [table] = read_csv(path, columns=["a"], types={"b": pl.Int64}, on_error="skip", skipped=skipped)
    assert table["a"].to_list() == [1, 2]
    assert [row.line for row in skipped.rows] == [4]


def test_empty_lines_are_no_rows_but_of_a_single_column(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("\n\na,b\n1,2\n\n3,4\n\nx,5\n\n")
    skipped = Skipped()
    [table] = read_csv(path, types={"a": pl.Int64}, on_error="skip", skipped=skipped)
    assert table.rows() == [(1, 2), (3, 4)]
    assert [(row.row, row.line) for row in skipped.rows] == [(3, 8)]
    path.write_text("a\n1\n\n3\n")
    assert pl.concat(read_csv(path))["a"].to_list() == [1, None, 3]


def test_a_thousand_reasons_are_kept_and_all_rows_counted(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("n,x,word\n" + "1,2,w\n" + "x,2,w\n" * 30_000)
    table, skipped = read(path)
    assert (len(table), skipped.count, len(skipped.rows)) == (1, 30_000, 1000)
    assert str(skipped).startswith("30,000 rows were skipped:\n")
    assert str(skipped).endswith("\nand 29,000 more")


def test_rows_are_never_skipped_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n3\n")
    with pytest.warns(SkippedRows, match=r"1 rows were skipped, the first: .*rows.csv, line 3 \(row 2\), must have 2"):
        assert len(pl.concat(read_csv(path, on_error="skip"))) == 1
    path.write_text("a,b\n3\n")
    with pytest.raises(StreamError, match=r"at least one row; got '.*rows.csv', all of them were skipped"):
        list(read_csv(path, on_error="skip", skipped=Skipped()))


def test_specs_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InvalidSpec, match="`on_error` must be 'stop' or 'skip'; got 'ignore'"):
        next(read_csv(path, on_error="ignore"))
    with pytest.raises(InvalidSpec, match=r"`skipped` must be a Skipped\(\), to be filled; got \[\]"):
        next(read_csv(path, on_error="skip", skipped=[]))  # type: ignore[arg-type]
    with pytest.raises(InvalidSpec, match=r"the type of 'a' must be of polars or one of number, .*; got 'float'"):
        next(read_csv(path, types={"a": "float"}))


@given(st.text(alphabet='ab,"\n', max_size=300))
@example('"' * 64 + "," + '"' * 63 + ",")
def test_marks_outside_of_quotes_are_counted_as_by_hand(text: str) -> None:
    inside, expected = False, 0
    for letter in text:
        inside ^= letter == '"'
        expected += letter == "," and not inside
    assert count_outside_quotes(text.encode(), b",") == expected


SOUND = b'n,x,word\n1,2.5,one\n,3.5,"two, or\nthree"\n-4,,\n5,nan,"say ""six"""\n7,1e3,\xc3\xa9\n'


@settings(max_examples=300)
@given(st.data())
def test_whatever_the_bytes_there_is_a_stream_error_or_a_table(data: st.DataObject) -> None:
    raw = bytearray(SOUND)
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(raw)))
        piece = data.draw(
            st.sampled_from([b"", b'"', b",", b"\n", b"\r", b"\0", b"\xff", b"x", b"9" * 30, b"\n\n", b'""'])
        )
        raw[place : place + data.draw(st.integers(0, 3))] = piece
    told: dict[str, int] = {}
    for on_error in ("stop", "skip"):
        skipped = Skipped()
        try:
            told[on_error] = sum(
                len(table)
                for table in read_csv(io.BytesIO(bytes(raw)), types={"n": pl.Int64}, on_error=on_error, skipped=skipped)
            )
        except StreamError:
            continue
        assert on_error == "skip" or skipped.count == 0
    if "stop" in told:  # what does not stop a stream is not skipped either
        assert told["skip"] == told["stop"]
