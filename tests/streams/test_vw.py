"""Lines of Vowpal Wabbit's text: labels, weights, tags and features; or a word on what is not supported."""

from __future__ import annotations

import gzip
import io
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from bayou import Skipped, read_vw
from bayou.errors import StreamError
from bayou.streams import VowpalRows


def of_lines(*lines: str, **options: Any) -> VowpalRows:
    [rows] = read_vw(io.BytesIO("".join(f"{line}\n" for line in lines).encode()), **options)
    return rows


@pytest.mark.parametrize(
    ("line", "label", "weight", "tag", "features"),
    [
        ("1 |f a b:2", 1.0, 1.0, None, {"f^a": 1.0, "f^b": 2.0}),
        ("-1.5e0 0.25 'row-1|f a", -1.5, 0.25, "row-1", {"f^a": 1.0}),
        ("1 2 tag|f a", 1.0, 2.0, "tag", {"f^a": 1.0}),
        ("1 'tag |f a", 1.0, 1.0, "tag", {"f^a": 1.0}),
        ("| a b:-.5", math.nan, 1.0, None, {"a": 1.0, "b": -0.5}),
        ("'x|n a", math.nan, 1.0, "x", {"n^a": 1.0}),
        ("0 |f:0.5 a b:4 |g a:3 | c", 0.0, 1.0, None, {"f^a": 0.5, "f^b": 2.0, "g^a": 3.0, "c": 1.0}),
        ("1 |f a:2 a |f a:3", 1.0, 1.0, None, {"f^a": 6.0}),
        ("1 |u city:Paris age:31", 1.0, 1.0, None, {"u^city": "Paris", "u^age": 31.0}),
        ("1 |", 1.0, 1.0, None, {}),
        ("1 |f", 1.0, 1.0, None, {}),
        ("1|f a", math.nan, 1.0, "1", {"f^a": 1.0}),  # what touches the bar is a tag
        ("1 |é ü:2\r", 1.0, 1.0, None, {"é^ü": 2.0}),
    ],
)
def test_what_a_line_means(
    line: str, label: float, weight: float, tag: str | None, features: dict[str, float | str]
) -> None:
    rows = of_lines(line)
    np.testing.assert_equal(rows.labels, [label])
    assert rows.weights.tolist() == [weight]
    assert rows.tags == [tag]
    assert rows.features == [features]


@pytest.mark.parametrize("chunk_rows", [1, 7, 1000])
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_rows_come_back_as_they_were_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_rows: int, packed: str
) -> None:
    monkeypatch.setattr("bayou.numerics.byte_blocks.BLOCK", 500)
    random = np.random.default_rng(0)
    written = []
    for k in range(300):
        features: dict[str, float | str] = {
            f"{space}^{name}": float(random.normal()) for space in "fg" for name in "abc" if random.random() < 0.5
        }
        written.append((float(random.normal()), float(random.random()), f"row{k}", features | {"w^word": f"w{k}"}))
    lines = []
    for label, weight, tag, features in written:
        spaces: dict[str, list[str]] = {}
        for name, value in features.items():
            space, _, feature = name.partition("^")
            spaces.setdefault(space, []).append(f"{feature}:{value}")
        text = " ".join(f"|{space} {' '.join(some)}" for space, some in spaces.items())
        lines.append(f"{label} {weight} '{tag}{text}\n")
    raw = "".join(lines).encode()
    path = tmp_path / f"rows.vw{packed}"
    path.write_bytes(gzip.compress(raw) if packed else raw)
    chunks = list(read_vw(path, chunk_rows=chunk_rows))
    assert max(len(chunk.labels) for chunk in chunks) <= chunk_rows
    read = [row for chunk in chunks for row in zip(*chunk, strict=True)]
    assert read == written


WRONG = {
    "1 a b": "must have a bar before its features; got '1 a b'",
    "one |f a": "must have a number as label and importance; got 'one'",
    "1 2 3 |f a": "must have a label and an importance at most: a base is not supported",
    "1:0.5 2:1 |f a": "must have one number as label: several and their costs are not supported; got '1:0.5'",
    "1,3 |f a": "must have one number as label: several and their costs are not supported; got '1,3'",
    "shared |f a": "must have one number as label: several and their costs are not supported; got 'shared'",
    "1 -2 |f a": "must have a finite label and an importance of 0 or more",
    "1e999 |f a": "must have a finite label and an importance of 0 or more",
    "1 |f :3": "must have a name for each feature: those without are not supported; got ':3'",
    "1 |f a:": "must have features as name or name:value; got '' as value of 'f^a'",
    "1 |f a:1:2": "must have features as name or name:value; got '1:2' as value of 'f^a'",
    "1 |f a:nan": "must have a finite value of 'f^a'; got 'nan'",
    "1 |f a:1e999": "must have a finite value of 'f^a'; got '1e999'",
    "1 |f a:1e308 a:1e308": "must have a finite value of 'f^a'; got '1e308'",
    "1 |f a:1 a:red": "must have text in 'f^a' once; got 1.0 and 'red'",
    "1 |f:x a": "must have a number as scale of the namespace 'f'; got 'x'",
    "1 |f:2 a:red": "must have numbers in a namespace with a scale: text has none; got 'red' in 'f^a'",
    "1 |f a:red a:blue": "must have text in 'f^a' once; got 'red' and 'blue'",
    "1 |f a:red a:2": "must have a number or text in 'f^a', not both; got 'a:2'",
}


@pytest.mark.parametrize("bad", WRONG)
def test_a_line_that_is_broken_or_not_supported(bad: str) -> None:
    lines = ["1 |f a", "", *["2 |f b"] * 5, bad, "3 |f c"]
    skipped = Skipped()
    rows = of_lines(*lines, on_error="skip", skipped=skipped)
    assert rows.labels.tolist() == [1.0, *[2.0] * 5, 3.0]
    assert [(row.row, row.line) for row in skipped.rows] == [(7, 8)]
    assert skipped.rows[0].reason.startswith(WRONG[bad])
    given: list[float] = []
    with pytest.raises(StreamError, match=r"the stream, line 8 \(row 7\), must"):
        given.extend(
            y
            for chunk in read_vw(io.BytesIO("".join(f"{line}\n" for line in lines).encode()), chunk_rows=2)
            for y in chunk.labels
        )
    assert given == [1.0, *[2.0] * 5]


def test_damaged_files(tmp_path: Path) -> None:
    import pyarrow as pa

    raw = "".join(f"{k % 2} |f a:{k} b:{k * k}\n" for k in range(5000)).encode()
    for ending, packed in (("gz", gzip.compress(raw)), ("zst", pa.compress(raw, codec="zstd", asbytes=True))):
        path = tmp_path / f"rows.vw.{ending}"
        path.write_bytes(packed)
        assert sum(len(chunk.labels) for chunk in read_vw(path)) == 5000
        path.write_bytes(packed[: len(packed) // 2])
        with pytest.raises(StreamError, match=r"rows.vw.\w+ must be a whole text file"):
            list(read_vw(path))
    with pytest.raises(StreamError, match=r"line 1 \(row 1\), must be UTF-8"):
        list(read_vw(io.BytesIO(b"1 |f \xff\n")))
    with pytest.raises(StreamError, match="files of at least one row"):
        list(read_vw(io.BytesIO(b"\n")))


@settings(max_examples=300)
@given(st.data())
def test_whatever_the_bytes_there_are_rows_or_a_stream_error(data: st.DataObject) -> None:
    raw = bytearray(b"1 2 'tag|f:2 a b:3 |g c:text\n\n| d:-1\n")
    pieces = [b"", b":", b" ", b"\n", b"|", b"'", b"-", b"e", b"9" * 400, b"\0", b"\xff", b"^", b"\xc2\x85", b"nan"]
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(raw)))
        raw[place : place + data.draw(st.integers(0, 3))] = data.draw(st.sampled_from(pieces))
    for on_error in ("stop", "skip"):
        try:
            for chunk in read_vw(io.BytesIO(bytes(raw)), on_error=on_error, skipped=Skipped()):
                assert not np.isinf(chunk.labels).any()
                assert all(math.isfinite(v) for row in chunk.features for v in row.values() if not isinstance(v, str))
        except StreamError:
            continue


MEMORY = """
from pathlib import Path
from bayou import read_vw

def peak():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024

for path in ({few!r}, {few!r}, {many!r}):
    print(sum(len(chunk.labels) for chunk in read_vw(path)), peak())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_memory_is_flat_in_the_number_of_rows(tmp_path: Path, run_python: Callable[..., str]) -> None:
    """The many are 100,000 dicts more than the few, which take 120 MB."""
    line = b"1 |f " + b" ".join(b"name%d:%d.5" % (k, k) for k in range(12)) + b"\n"
    few, many = tmp_path / "few.vw", tmp_path / "many.vw"
    few.write_bytes(line * 30_000)
    many.write_bytes(line * 130_000)
    printed = run_python(MEMORY.format(few=str(few), many=str(many)))
    (_, _), (rows, before), (more, after) = (map(float, each.split()) for each in printed.splitlines())
    assert (rows, more) == (30_000, 130_000)
    assert after - before < 30.0
