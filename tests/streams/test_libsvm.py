"""Sparse rows of text: as scikit-learn reads them, some at a time; or a word on the line that is wrong."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.sparse import csr_matrix, random_array, vstack
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from bayou import Skipped, read_libsvm
from bayou.errors import InvalidSpec, StreamError

N_ROWS, N_COLUMNS = 500, 40


@pytest.fixture
def file(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    X = random_array((N_ROWS, N_COLUMNS), density=0.1, rng=random, data_sampler=random.normal).tocsr()
    path = tmp_path / "rows.svm"
    dump_svmlight_file(X, random.normal(size=N_ROWS), str(path), zero_based=False, comment="made up")
    return path


def matrix(chunks: Iterator[Any], n_columns: int) -> tuple[csr_matrix, np.ndarray]:
    rows, labels = [], []
    for sparse, y in chunks:
        rows.append(csr_matrix((sparse.values, sparse.columns, sparse.starts), shape=(len(sparse), n_columns)))
        labels.append(y)
    return vstack(rows).tocsr(), np.concatenate(labels)


def of_lines(*lines: str, **options: Any) -> list[tuple[list[list[float]], list[float]]]:
    """In full, by hand."""
    found = []
    for rows, labels in read_libsvm(io.BytesIO("".join(f"{line}\n" for line in lines).encode()), **options):
        full = np.zeros(rows.shape)
        for n in range(len(rows)):
            for k in range(rows.starts[n], rows.starts[n + 1]):
                full[n, rows.columns[k]] += rows.values[k]
        found.append((full.tolist(), labels.tolist()))
    return found


@pytest.mark.parametrize("chunk_rows", [1, 7, 100_000])
@pytest.mark.parametrize("block", [1, 300, 2**23])
def test_rows_are_those_of_scikit_learn(
    file: Path, monkeypatch: pytest.MonkeyPatch, chunk_rows: int, block: int
) -> None:
    monkeypatch.setattr("bayou.numerics.byte_blocks.BLOCK", block)
    X, y = load_svmlight_file(str(file), n_features=N_COLUMNS, zero_based=False)
    chunks = list(read_libsvm(file, chunk_rows=chunk_rows))
    assert max(len(labels) for _, labels in chunks) <= chunk_rows
    read, labels = matrix(iter(chunks), N_COLUMNS)
    assert (read != X).nnz == 0
    assert labels.tolist() == y.tolist()
    assert chunks[-1].rows.n_columns == N_COLUMNS
    assert all(rows.n_columns == 50 for rows, _ in read_libsvm(file, n_columns=50))


def test_indices_from_0_and_from_1(file: Path) -> None:
    text = "1 0:5 2:6\n-1 1:7"
    X, y = load_svmlight_file(io.BytesIO(text.encode()), zero_based=True)
    assert of_lines(text, zero_based=True) == [(X.toarray().tolist(), y.tolist())]
    with pytest.raises(
        StreamError, match=r"line 1 \(row 1\), must have whole indices of few digits, from 1 on: say zero_based=True"
    ):
        of_lines(text)


def test_packed_files(file: Path, tmp_path: Path) -> None:
    import pyarrow as pa

    X, y = load_svmlight_file(str(file), n_features=N_COLUMNS, zero_based=False)
    raw = file.read_bytes()
    for ending, packed in ((".gz", gzip.compress(raw)), (".zst", pa.compress(raw, codec="zstd", asbytes=True))):
        path = tmp_path / f"rows.libsvm{ending}"
        path.write_bytes(packed)
        read, labels = matrix(read_libsvm(path), N_COLUMNS)
        assert (read != X).nnz == 0
        assert labels.tolist() == y.tolist()
        path.write_bytes(packed[:-30])
        with pytest.raises(StreamError, match=r"rows.libsvm.* must be a whole text file"):
            list(read_libsvm(path))


def test_comments_empty_lines_and_rows_without_entries() -> None:
    text = ["# a comment", "", "1 2:3 # and one more: 7:8", "-1", "  ", "+1.5e0\t1:-.5  3:1e-3 \r"]
    assert of_lines(*text) == [([[0, 3, 0], [0, 0, 0], [-0.5, 0, 0.001]], [1.0, -1.0, 1.5])]
    assert of_lines("1", "2") == [([[], []], [1.0, 2.0])]


WRONG = {
    "x 1:2": "must begin with a number as label; got 'x'",
    "1:2 2:3": "must begin with a number as label; got '1:2'",
    "1,2 1:2": "must begin with one label, not several; got '1,2'",
    "nan 1:2": "must begin with a number as label; got 'nan'",
    "1 qid:3 1:2": "must have no query: qid is not supported; got 'qid:3'",
    "1 2": "must have entries as index:value, of finite numbers; got '2'",
    "1 2:": "must have entries as index:value, of finite numbers; got '2:'",
    "1 :2": "must have entries as index:value, of finite numbers; got ':2'",
    "1 1 :2": "must have entries as index:value, of finite numbers; got '1'",
    "1 1: 2": "must have entries as index:value, of finite numbers; got '1:'",
    "1 1:2:3 4": "must have entries as index:value, of finite numbers; got '1:2:3'",
    "1 1:inf": "must have entries as index:value, of finite numbers; got '1:inf'",
    "1 1:1e999": "must have entries as index:value, of finite numbers; got '1:1e999'",
    "1 1:2x": "must have entries as index:value, of finite numbers; got '1:2x'",
    "1 -1:2": "must have whole indices of few digits, from 1 on; got '-1'",
    "1 1.5:2": "must have whole indices of few digits, from 1 on; got '1.5'",
    "1 2e0:2": "must have whole indices of few digits, from 1 on; got '2e0'",
    "1 00000000001:2": "must have whole indices of few digits, from 1 on; got '00000000001'",
    "1 9:2": "must have indices of 8 columns, up to 8; got '9'",
    "1 1:\xff": "must have entries as index:value, of finite numbers; got '1:ÿ'",
    "1 1:\0": "must have entries as index:value, of finite numbers",
}


@pytest.mark.parametrize("bad", WRONG)
@pytest.mark.parametrize("block", [30, 2**23])
def test_a_line_that_is_broken(monkeypatch: pytest.MonkeyPatch, bad: str, block: int) -> None:
    monkeypatch.setattr("bayou.numerics.byte_blocks.BLOCK", block)
    lines = ["# first", *["1 3:4"] * 20, bad, "5", "2 1:1"]
    skipped = Skipped()
    chunks = of_lines(*lines, n_columns=8, chunk_rows=6, on_error="skip", skipped=skipped)
    assert [y for _, labels in chunks for y in labels] == [1.0] * 20 + [5.0, 2.0]
    assert [(row.row, row.line) for row in skipped.rows] == [(21, 22)]
    assert skipped.rows[0].reason.startswith(WRONG[bad])
    given: list[float] = []
    with pytest.raises(StreamError, match=r"the stream, line 22 \(row 21\), must"):
        given.extend(
            y
            for _, ys in read_libsvm(
                io.BytesIO("".join(f"{line}\n" for line in lines).encode()), n_columns=8, chunk_rows=6
            )
            for y in ys
        )
    assert given == [1.0] * 20


@settings(max_examples=300)
@given(st.data())
def test_whatever_the_bytes_there_are_rows_or_a_stream_error(data: st.DataObject) -> None:
    raw = bytearray(b"1 1:2 3:4.5\n-1 2:1e3 # seen\n\n0.5 1:1\t2:2\n")
    pieces = [b"", b":", b" ", b"\n", b"#", b"-", b".", b"e", b"9" * 30, b"\0", b"\xff", b"1:1", b"\x0b"]
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(raw)))
        raw[place : place + data.draw(st.integers(0, 3))] = data.draw(st.sampled_from(pieces))
    told: dict[str, int] = {}
    for on_error in ("stop", "skip"):
        try:
            chunks = read_libsvm(io.BytesIO(bytes(raw)), on_error=on_error, skipped=Skipped())
            told[on_error] = sum(len(labels) for _, labels in chunks)
        except StreamError:
            continue
    if "stop" in told:  # what does not stop a stream is not skipped either
        assert told["skip"] == told["stop"]


@settings(max_examples=300)
@given(st.from_regex(r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?", fullmatch=True))
def test_numbers_are_those_of_python(text: str) -> None:
    """To the last bit: whether they are made by one multiplication or by Python itself."""
    number = float(text)
    if not np.isfinite(number):
        with pytest.raises(StreamError, match="must begin with a number"):
            of_lines(f"{text} 1:1")
        return
    [([[value]], [label])] = of_lines(f"{text} 1:{text}")
    assert (np.float64(value).tobytes(), np.float64(label).tobytes()) == (np.float64(number).tobytes(),) * 2 or (
        value == label == number == 0.0
    )


def test_no_rows_and_specs() -> None:
    with pytest.raises(StreamError, match="files of at least one row"):
        of_lines("# nothing")
    with pytest.raises(InvalidSpec, match="`n_columns` must be a whole number from 1 to 2,147,483,647, or None; got 0"):
        of_lines("1", n_columns=0)


MEMORY = """
from pathlib import Path
from bayou import read_libsvm

def peak():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024

for path in ({few!r}, {few!r}, {many!r}):
    print(sum(len(labels) for _, labels in read_libsvm(path)), peak())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_memory_is_flat_in_the_number_of_rows(tmp_path: Path, run_python: Callable[..., str]) -> None:
    """The many are 80 MB of text more than the few."""
    lines = b"1 " + b" ".join(b"%d:%d.5" % (k, k) for k in range(1, 12)) + b"\n"
    few, many = tmp_path / "few.svm", tmp_path / "many.svm"
    few.write_bytes(lines * 300_000)
    many.write_bytes(lines * 1_200_000)
    printed = run_python(MEMORY.format(few=str(few), many=str(many)))
    (_, _), (rows, before), (more, after) = (map(float, line.split()) for line in printed.splitlines())
    assert (rows, more) == (300_000, 1_200_000)
    assert after - before < 40.0
