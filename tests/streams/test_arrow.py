"""Tables of this process as streams: the same rows, whoever holds them, without a copy of all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from bayou import Skipped, column_types, read_arrow
from bayou.errors import InvalidSpec, StreamError

N_ROWS = 100


def table() -> pl.DataFrame:
    numbers = [None if k % 7 == 0 else float(k) for k in range(N_ROWS)]
    return pl.DataFrame({"n": np.arange(N_ROWS), "x": numbers, "word": [f"w{k % 9}" for k in range(N_ROWS)]})


class Foreign:
    """Something with the one method that Arrow asks for."""

    def __init__(self, inside: Any) -> None:
        self.inside = inside

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.inside.__arrow_c_stream__(requested_schema)


def sources() -> dict[str, Callable[[], Any]]:
    arrow = table().to_arrow()
    found: dict[str, Callable[[], Any]] = {
        "polars": table,
        "pyarrow": lambda: arrow,
        "batch": lambda: arrow.combine_chunks().to_batches()[0],
        "reader": lambda: pa.RecordBatchReader.from_batches(arrow.schema, arrow.to_batches(max_chunksize=13)),
        "foreign": lambda: Foreign(arrow),
    }
    if "pandas" not in found:
        import pandas as pd

        found["pandas"] = lambda: pd.DataFrame(
            {"n": table()["n"].to_numpy(), "x": table()["x"].to_numpy(), "word": table()["word"].to_list()}
        )
    return found


@pytest.mark.parametrize("chunk_rows", [1, 7, 1000])
@pytest.mark.parametrize("source", ["polars", "pyarrow", "batch", "reader", "foreign", "pandas"])
def test_the_same_rows_in_the_same_order(source: str, chunk_rows: int) -> None:
    chunks = list(read_arrow(sources()[source](), chunk_rows=chunk_rows))
    assert max(map(len, chunks)) <= chunk_rows
    read = pl.concat(chunks)
    if source == "pandas":
        read = read.with_columns(pl.col("x").fill_nan(None))
    assert read.equals(table(), null_equal=True)


def test_columns_and_types() -> None:
    read = pl.concat(read_arrow(table(), columns=["word", "n"], types={"n": pl.Int16}, chunk_rows=9))
    assert read.equals(table().select("word", pl.col("n").cast(pl.Int16)))
    with pytest.raises(StreamError, match="the DataFrame must have a column 'y'; got 'n', 'x', 'word'"):
        list(read_arrow(table(), columns=["y"]))
    skipped = Skipped()
    read = pl.concat(read_arrow(table(), types={"n": pl.Int8, "x": pl.Int64}, on_error="skip", skipped=skipped))
    assert len(read) == N_ROWS
    wide = pl.DataFrame({"n": [1, 300, 3], "x": [1.0, 2.0, 2.5]})
    read = pl.concat(read_arrow(wide, types={"n": pl.Int8, "x": pl.Int64}, on_error="skip", skipped=skipped))
    assert read.rows() == [(1, 1)]
    assert [row.row for row in skipped.rows] == [2, 3]
    with pytest.raises(StreamError, match=r"the DataFrame, row 2, must have a whole number \(Int8\) in .*'n'; got 300"):
        list(read_arrow(wide, types={"n": pl.Int8}))


def test_a_column_of_pandas_keeps_its_type_where_values_are_missing() -> None:
    import pandas as pd

    frame = pd.DataFrame({"word": pd.Series([None, None, "a", None], dtype=object), "n": [1, 2, 3, 4]})
    chunks = list(read_arrow(frame, chunk_rows=2))
    assert [chunk.schema for chunk in chunks] == [{"word": pl.String, "n": pl.Int64}] * 2
    assert pl.concat(chunks)["word"].to_list() == [None, None, "a", None]
    with pytest.raises(
        StreamError, match="the DataFrame must be a table of columns that Arrow can hold, from row 1 on"
    ):
        list(read_arrow(pd.DataFrame({"a": [object(), 1]})))


def test_a_reader_is_read_as_its_rows_are_asked_for() -> None:
    made = []

    def batches() -> Iterator[Any]:
        for k in range(100):
            made.append(k)
            yield pa.record_batch({"k": [k]})

    reader = pa.RecordBatchReader.from_batches(pa.schema([("k", pa.int64())]), batches())
    stream = read_arrow(reader)
    assert next(stream)["k"].to_list() == [0]
    assert len(made) < 5
    stream.close()

    def breaking() -> Iterator[Any]:
        yield pa.record_batch({"k": [0]})
        raise RuntimeError("the line went dead")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("k", pa.int64())]), breaking())
    with pytest.raises(StreamError, match=r"must be a stream of tables of Arrow; .*the line went dead"):
        list(read_arrow(reader))


def test_nothing_that_arrow_holds_is_copied() -> None:
    numbers = np.arange(1_000_000)
    addresses = []
    for chunk in read_arrow(pa.table({"n": numbers}), chunk_rows=250_000):
        addresses.append(chunk["n"].to_numpy(allow_copy=False).__array_interface__["data"][0])
    start = numbers.__array_interface__["data"][0]
    assert addresses == [start + 250_000 * 8 * k for k in range(4)]


def test_what_is_no_table_is_told() -> None:
    with pytest.raises(
        InvalidSpec, match="`data` must be a table of polars, pandas or pyarrow, or have __arrow_c_stream__"
    ):
        next(read_arrow([1, 2]))
    with pytest.raises(StreamError, match="at least one row; got 'the DataFrame', which has none"):
        list(read_arrow(table()[:0]))


def test_columns_are_said_in_words() -> None:
    frame = pl.DataFrame(
        {
            "n": [1, 2],
            "x": [0.5, None],
            "flag": [True, False],
            "day": pl.Series(["2024-01-02", None]).str.to_date(),
            "city": ["Paris", "New York"],
            "note": ["it was a fine day", None],
            "code": pl.Series(["a", "b"], dtype=pl.Categorical),
            "nothing": [None, None],
            "list": [[1], [2]],
        }
    )
    said = column_types(frame, types={"city": "text", "n": pl.Int64})
    kinds = ["number", "number", "boolean", "date", "text", "text", "category", "category", "List(Int64)"]
    assert [kind.kind for kind in said.values()] == kinds
    assert {name: kind.type for name, kind in said.items()} == dict(frame.schema)
    assert column_types(frame)["city"].kind == "category"


MEMORY = """
from pathlib import Path
import numpy as np, pandas as pd
from bayou import read_arrow

def peak():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024

frame = pd.DataFrame({"word": pd.Series(["a word that is long enough to count"] * 2_000_000, dtype=object)})
for _ in read_arrow(frame[:60_000], chunk_rows=20_000):
    pass
before = peak()
print(sum(len(chunk) for chunk in read_arrow(frame, chunk_rows=20_000)), peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_memory_is_flat_in_the_number_of_rows(run_python: Callable[..., str]) -> None:
    """All of it in Arrow would be 70 MB of text and 32 MB of views."""
    rows, grown = map(float, run_python(MEMORY).split())
    assert rows == 2_000_000
    assert grown < 30.0
