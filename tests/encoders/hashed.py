"""Rows by the definition of the hashing encoder, in whole numbers; columns of all kinds, as every kind of table."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from bayou import Hashing
from bayou.contracts import SparseRows
from bayou.numerics.jit import COMPILED
from tests.numerics.test_hashing import M64, mix, reference

N = 120 if COMPILED else 40
Row = dict[int, float]


def key(name: str, seed: int = 0) -> int:
    return reference(name.encode(), seed)


def category(name: str, value: str, seed: int = 0) -> int:
    return reference(value.encode(), key(name, seed))


def missing(name: str, seed: int = 0) -> int:
    return reference(b"", key(name, seed) ^ M64)


def expected(spec: Hashing, categories: Mapping[str, Any], numbers: Mapping[str, float]) -> Row:
    """One row by the definition, in whole numbers."""
    found: dict[str, list[tuple[int, float]]] = {}
    for name, value in categories.items():
        if value is None or value != value:
            found[name] = [(missing(name, spec.seed), 1.0)]
        elif name in spec.text:
            words = re.findall(r"\w+", str(value).lower())
            found[name] = [(category(name, word, spec.seed), float(words.count(word))) for word in dict.fromkeys(words)]
        else:
            found[name] = [(category(name, str(value), spec.seed), 1.0)]
    for name, value in numbers.items():
        absent = value is None or value != value
        found[name] = [(missing(name, spec.seed), 1.0) if absent else (key(name, spec.seed), value)]
    entries = [entry for some in found.values() for entry in some]
    for a, b in spec.interactions:
        for i, (key_a, value_a) in enumerate(found.get(a, [])):
            for j, (key_b, value_b) in enumerate(found.get(b, [])):
                if a != b or i <= j:
                    entries.append((mix(key_a + key_b & M64), value_a * value_b))
    row: Row = defaultdict(float)
    for k, value in entries:
        row[k >> (64 - spec.bits)] += value if not spec.signed or k & 1 else -value
    return dict(row)


def as_row(columns: np.ndarray, values: np.ndarray) -> Row:
    assert len(set(columns.tolist())) == len(columns)  # none comes twice
    return dict(zip(columns.tolist(), values.tolist(), strict=True))


def as_rows(rows: SparseRows) -> list[Row]:
    values = rows.values if rows.values.size else np.ones(rows.columns.size)
    assert rows.starts.dtype == np.int64
    assert rows.columns.dtype == np.int32
    pairs = zip(rows.starts[:-1], rows.starts[1:], strict=True)
    return [as_row(rows.columns[a:b], values[a:b]) for a, b in pairs]


def assert_close(found: Sequence[Row], wanted: Sequence[Row], rtol: float = 1e-12) -> None:
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.keys() == other.keys()
        np.testing.assert_allclose([one[k] for k in other], list(other.values()), rtol=rtol, atol=1e-12)


def columns_of_all_kinds(n: int = N, seed: int = 0) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    towns = ["Paris", "", "Überlingen am Bodensee", "東京", "São Paulo, a name of more than twelve bytes", "x" * 12]
    lengths = "abcdefghij" * 5
    sentences = ["The cat and the hat", "", "the THE The", "naïve Ärger, 東京 2020", "...", "a_b c-d"]

    def some(values: Sequence[Any], gaps: float = 0.2) -> list[Any]:
        return [None if rng.random() < gaps else values[int(rng.integers(len(values)))] for _ in range(n)]

    return {
        "town": some(towns),
        "length": [lengths[: i % 41] for i in range(n)],
        "code": some([0, 7, -3, 123_456_789_012, -(2**63), 2**63 - 1]),
        "yes": some([True, False]),
        "title": some(sentences),
        "shop": some(["a", "b", "c"], gaps=0.0),
    }


def numbers(n: int = N, seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = {"age": rng.normal(size=n), "price": rng.normal(size=n)}
    for values in found.values():
        values[rng.random(n) < 0.2] = np.nan
    found["price"][: n // 10] = 0.0
    return found


def chunked(table: pa.Table) -> pa.Table:
    """In pieces that end at other places in every column."""
    columns = {}
    for i, name in enumerate(table.column_names):
        cut = 1 + 7 * i
        parts = [table[name].slice(0, cut), table[name].slice(cut, cut), table[name].slice(2 * cut)]
        columns[name] = pa.chunked_array([chunk for part in parts for chunk in part.chunks])
    return pa.table(columns)


def sliced(frame: Any, extra: Any) -> Any:
    """The same rows, as a part of a longer table."""
    return pl.concat([extra, frame, extra]).slice(len(extra), len(frame))


def pandas_frame(columns: dict[str, list[Any]]) -> pd.DataFrame:
    return pd.DataFrame(columns | {"code": pd.array(columns["code"], dtype="Int64")})


TABLES: dict[str, Any] = {
    "lists": lambda c: c,
    "numpy": lambda c: {name: np.array(values, dtype=object) for name, values in c.items()},
    "polars": pl.DataFrame,
    "polars in chunks": lambda c: pl.concat([pl.DataFrame(c)[:13], pl.DataFrame(c)[13:]], rechunk=False),
    "a slice of polars": lambda c: sliced(pl.DataFrame(c), pl.DataFrame(c)[:11]),
    "categories of polars": lambda c: pl.DataFrame(c).with_columns(
        pl.col("town").cast(pl.Categorical), pl.col("shop").cast(pl.Enum(["c", "b", "a"]))
    ),
    "pyarrow": pa.table,
    "a slice of pyarrow": lambda c: (
        pa.concat_tables([pa.table(c), pa.table(c)]).combine_chunks().slice(5).slice(N - 5, N)
    ),
    "pyarrow in chunks": lambda c: chunked(pa.table(c)),
    "a batch of pyarrow": lambda c: pa.table(c).combine_chunks().to_batches()[0],
    "large strings": lambda c: pa.table(c).cast(
        pa.schema([(f.name, pa.large_string() if f.type == pa.string() else f.type) for f in pa.table(c).schema])
    ),
    "views of pyarrow": lambda c: pa.table(c).cast(
        pa.schema([(f.name, pa.string_view() if f.type == pa.string() else f.type) for f in pa.table(c).schema])
    ),
    "dictionaries of pyarrow": lambda c: pa.table(
        {name: pa.array(v).dictionary_encode() for name, v in c.items() if name != "yes"} | {"yes": c["yes"]}
    ),
    "pandas": pandas_frame,
    "objects of pandas": lambda c: pd.DataFrame({name: pd.Series(v, dtype=object) for name, v in c.items()}),
    "categories of pandas": lambda c: pandas_frame(c).astype({"town": "category", "shop": "category"}),
    "a slice of pandas": lambda c: pd.concat([pandas_frame(c)] * 2)[N : 2 * N],
}
SPECS = [
    Hashing(bits=18),
    Hashing(bits=10, seed=3),  # many columns are shared within a row
    Hashing(bits=16, signed=True, interactions=(("town", "shop"), ("age", "price"), ("age", "town"), ("age", "age"))),
    Hashing(bits=20, text=("title",)),
    Hashing(
        bits=11,
        signed=True,
        text=("title", "town"),
        interactions=(("title", "age"), ("title", "title"), ("town", "title")),
    ),
]
