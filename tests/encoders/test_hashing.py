"""Dicts and tables of every kind to the columns that the definition gives, and what is refused."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bayou import Hashing
from bayou.errors import InvalidFeatures, InvalidSpec, ShapeMismatch
from bayou.numerics.hashed_rows import row_entries
from bayou.numerics.hashed_tokens import token_keys
from bayou.numerics.jit import COMPILED
from bayou.numerics.table_columns import list_piece
from tests.encoders.hashed import (
    SPECS,
    TABLES,
    N,
    as_row,
    as_rows,
    assert_close,
    category,
    columns_of_all_kinds,
    expected,
    key,
    missing,
    numbers,
)
from tests.numerics.test_hashing import reference


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_dicts_are_what_the_definition_says(spec: Hashing) -> None:
    columns, amounts, names = columns_of_all_kinds(), numbers(), spec.begin()
    for n in range(N):
        row = {name: values[n] for name, values in columns.items()}
        more = {name: float(values[n]) for name, values in amounts.items()}
        assert_close([as_row(*spec.encode_one(names, row, more))], [expected(spec, row, more)])
        texts = {name: value for name, value in row.items() if isinstance(value, str)}
        assert_close([as_row(*spec.encode_one(names, texts))], [expected(spec, texts, {})])
        present = {name: value for name, value in more.items() if not math.isnan(value)}
        assert_close([as_row(*spec.encode_one(names, texts, present))], [expected(spec, texts, present)])


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_every_table_gives_what_its_rows_give_as_dicts(kind: str, spec: Hashing) -> None:
    columns, amounts = columns_of_all_kinds(), numbers()
    table = TABLES[kind](columns)
    rows = spec.encode_table(spec.begin(), table, amounts, dtype=np.float64)
    assert rows.shape == (N, 2**spec.bits)
    names, wanted = spec.begin(), []
    for n in range(N):
        row = {name: values[n] for name, values in columns.items()}
        wanted.append(as_row(*spec.encode_one(names, row, {name: values[n] for name, values in amounts.items()})))
    assert_close(as_rows(rows), wanted)
    single = spec.encode_table(spec.begin(), table, amounts)
    assert single.values.dtype == np.float32
    assert_close(as_rows(single), wanted, rtol=1e-6)


@pytest.mark.parametrize("kind", ["polars", "pyarrow in chunks", "pandas", "lists"])
def test_chunks_are_the_same_rows(kind: str) -> None:
    spec, table, amounts = SPECS[4], TABLES[kind](columns_of_all_kinds()), numbers()
    whole = as_rows(spec.encode_table(spec.begin(), table, amounts))
    for chunk_rows in (1, 7, N - 1, 10**6):
        chunks = list(spec.encode_chunks(spec.begin(), table, amounts, chunk_rows=chunk_rows))
        assert [row for chunk in chunks for row in as_rows(chunk)] == whole
        assert max(len(chunk) for chunk in chunks) <= chunk_rows
    assert next(spec.encode_chunks(spec.begin(), table, amounts)).shape == (N, spec.n_columns)


@pytest.mark.skipif(not COMPILED, reason="NUMBA_DISABLE_JIT=1: too many rows for plain Python")
def test_tables_of_several_blocks() -> None:
    spec = Hashing(bits=12, interactions=(("a", "b"),))
    table = {"a": [f"a{i % 97}" for i in range(10_000)], "b": [i % 13 for i in range(10_000)]}
    rows = as_rows(spec.encode_table(spec.begin(), pl.DataFrame(table)))
    for n in (0, 4095, 4096, 8191, 8192, 9999):
        assert_close([rows[n]], [expected(spec, {name: values[n] for name, values in table.items()}, {})])


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("n_numbers", [3, 100])
def test_short_strings_and_numbers_of_several_groups_of_rows(n_numbers: int, signed: bool) -> None:
    """Of 100 names of numbers some share one of 1,024 columns, and so do categories with them, and with each other."""
    spec, rng, n = Hashing(bits=10, signed=signed), np.random.default_rng(0), 200
    letters = "abcdefghijkl"
    lengths = {"upto8": range(9), "upto12": range(13), "nine": [9], "late": [3]}
    table = {name: [letters[: rng.choice(list(some))] for _ in range(n)] for name, some in lengths.items()}
    table["late"][70] = letters  # the first of its group of rows that is long
    table |= {f"many{j}": [None if rng.random() < 0.2 else f"{rng.integers(99)}" for _ in range(n)] for j in range(20)}
    amounts = {f"x{j}": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)) for j in range(n_numbers)}
    rows = as_rows(spec.encode_table(spec.begin(), pl.DataFrame(table), amounts, dtype=np.float64))
    wanted = [
        expected(spec, {a: t[i] for a, t in table.items()}, {a: float(v[i]) for a, v in amounts.items()})
        for i in range(n)
    ]
    assert_close(rows, wanted)
    assert any(len(row) < len(table) + n_numbers for row in wanted)
    apart = len({column for a in amounts for column in expected(spec, {}, {a: 1.0})})
    assert (apart < n_numbers) == (n_numbers == 100)


def test_long_strings_in_many_buffers() -> None:
    texts = [f"a string that is too long for a view: {i}" for i in range(60)]
    frames = [pl.DataFrame({"s": texts[i : i + 5]}) for i in range(0, 60, 5)]
    table = pl.concat(frames, rechunk=True)
    spec = Hashing()
    views = table["s"].to_arrow(compat_level=pl.CompatLevel.newest())
    assert len(views.buffers()) > 3  # so this is about several buffers
    rows = as_rows(spec.encode_table(spec.begin(), table))
    assert_close(rows, [expected(spec, {"s": text}, {}) for text in texts])


def test_a_dictionary_much_longer_than_the_column() -> None:
    words = pa.array([f"w{i}" for i in range(1000)]).dictionary_encode()
    spec = Hashing()
    rows = as_rows(spec.encode_table(spec.begin(), pa.table({"w": words}).slice(990)))
    assert_close(rows, [expected(spec, {"w": f"w{i}"}, {}) for i in range(990, 1000)])
    frame = pd.DataFrame({"w": pd.Categorical([f"w{i}" for i in range(1000)])})[995:]
    assert_close(as_rows(spec.encode_table(spec.begin(), frame)), rows[5:])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint64", "float64", "bool"])
def test_columns_of_numpy(dtype: str) -> None:
    values = np.array([0, 1, 1, 0] if dtype == "bool" else [0, 1, 100, 7]).astype(dtype)
    spec = Hashing()
    wanted = [expected(spec, {"v": bool(v) if dtype == "bool" else int(v)}, {}) for v in values]
    for table in ({"v": values}, pl.DataFrame({"v": values}), pd.DataFrame({"v": values}), pa.table({"v": values})):
        assert_close(as_rows(spec.encode_table(spec.begin(), table)), wanted)


def test_seven_is_one_category_however_it_is_told() -> None:
    spec = Hashing()
    names = spec.begin()
    rows = [as_row(*spec.encode_one(names, {"v": v})) for v in (7, "7", 7.0, np.int8(7), np.float32(7.0), np.str_("7"))]
    assert all(row == rows[0] for row in rows)
    assert as_row(*spec.encode_one(names, {"v": True})) == as_row(*spec.encode_one(names, {"v": "True"}))
    assert as_row(*spec.encode_one(names, {"v": 1})) != as_row(*spec.encode_one(names, {"v": True}))


def test_missing_is_a_feature_and_absent_is_none() -> None:
    spec = Hashing()
    names = spec.begin()
    for nothing in (None, math.nan, np.nan, pd.NA, pd.NaT):
        assert as_row(*spec.encode_one(names, {"v": nothing})) == {missing("v") >> 46: 1.0}
    assert as_row(*spec.encode_one(names, {}, {"v": math.nan})) == {missing("v") >> 46: 1.0}
    assert as_row(*spec.encode_one(names, {}, {"v": None})) == {missing("v") >> 46: 1.0}
    columns, values = spec.encode_one(names, {})
    assert columns.size == values.size == 0
    assert len({missing("v"), key("v"), category("v", "")}) == 3


@pytest.mark.parametrize("kind", ["lists", "polars", "pyarrow"])
def test_text_of_any_characters(kind: str) -> None:
    rng = np.random.default_rng(0)
    ascii_alone = "".join(map(chr, range(128)))
    texts = [
        ascii_alone,
        ascii_alone[::-1],
        "İstanbul ISTANBUL ß ẞ",
        "don't",
        "ΣΑΣ σας",
        "a\x1fb\x1f",
        "\x1fé\x1fÉ",
        "_",
        "é",
        " ",
    ]
    texts += ["".join(map(chr, rng.choice([32, 65, 97, 95, 57, 233, 0x4E2D, 0x1F600, 31], 40))) for _ in range(20)]
    texts += [" ".join(f"w{i * i % 5003}" for i in range(6000 if COMPILED else 600)), None, "the end"]
    spec = Hashing(bits=22, text=("t",))
    table = {"lists": dict, "polars": pl.DataFrame, "pyarrow": pa.table}[kind]({"t": texts})
    wanted = [expected(spec, {"t": text}, {}) for text in texts]
    assert_close(as_rows(spec.encode_table(spec.begin(), table)), wanted)
    assert_close([as_row(*spec.encode_one(spec.begin(), {"t": text})) for text in texts], wanted)


def test_each_word_of_a_long_text_has_one_key() -> None:
    words = [f"w{i % 500}" for i in range(1500)]  # some share the bits they are looked for by
    starts = np.array([5, 0], np.int64)
    keys, counts = token_keys(list_piece([" ".join(words)]), 0, 1, np.uint64(3), np.uint64(4), starts)
    assert starts.tolist() == [5, 5 + len(keys)]
    assert dict(zip(keys.tolist(), counts.tolist(), strict=True)) == {
        reference(word.encode(), 3): times for word, times in Counter(words).items()
    }
    assert len(set(keys.tolist())) == len(keys)


def test_texts_with_the_separator_and_odd_ones() -> None:
    spec = Hashing()
    names = spec.begin()
    for value in ("\x1f", "a\x1fb", "\x1f" * 9, "\ud800", "\0", "a" * 1000):
        row = {"u": "x", "v": value, "w": "y"}
        wanted = {reference(v.encode("utf-8", "surrogatepass"), key(n)) >> 46: 1.0 for n, v in row.items()}
        assert as_row(*spec.encode_one(names, row)) == wanted


def test_rows_of_ones_have_no_values() -> None:
    table = {"a": ["x", "y", None], "b": ["x", "x", "z"]}
    for spec in (Hashing(bits=24), Hashing(bits=24, interactions=(("a", "b"),)), Hashing(bits=24, text=("a",))):
        assert spec.encode_table(spec.begin(), table).values.size == 0
    assert Hashing(signed=True).encode_table(Hashing(signed=True).begin(), table).values.size == 6
    assert Hashing().encode_table(Hashing().begin(), table, {"n": np.ones(3)}).values.size == 9


def test_entries_that_share_a_column_are_summed() -> None:
    spec = Hashing(bits=10)
    row = {f"f{i}": "x" for i in range(200)}
    wanted = expected(spec, row, {})
    assert len(wanted) < 200  # so some do
    columns, values = spec.encode_one(spec.begin(), row)
    assert as_row(columns, values) == wanted
    assert values.sum() == 200.0
    rows = spec.encode_table(spec.begin(), {name: [value] * 3 for name, value in row.items()})
    assert as_rows(rows) == [wanted] * 3
    assert rows.values.size == rows.columns.size


@pytest.mark.parametrize("bits", [13, 14, 16])
def test_entries_that_share_some_bits_of_their_columns_are_kept_apart(bits: int) -> None:
    spec = Hashing(bits=bits, signed=True)
    row = {f"f{i}": "x" for i in range(600)}
    wanted = expected(spec, row, {})
    places = [column & 4095 for column in wanted]
    assert len(wanted) < 600  # so some are in one column
    assert len(set(places)) < len(places) - 10  # and many are looked for at one place
    assert as_row(*spec.encode_one(spec.begin(), row)) == wanted
    rows = spec.encode_table(spec.begin(), {name: [value] * 2 for name, value in row.items()})
    assert as_rows(rows) == [wanted] * 2


def test_what_lay_in_memory_before_is_not_taken_for_an_entry() -> None:
    spec = Hashing(bits=10)
    names = spec.begin()
    keys = np.array([category("f", "x")], np.uint64)
    columns, values = np.array([keys[0] >> np.uint64(54)], np.int32), np.array([5.0])
    assert row_entries()[0](keys, np.ones(1), columns, values, *names.kept, False) == 1
    assert values[0] == 1.0
    names.places[-1] = 2**30 + 1  # after so many entries the places are cleared
    values[0] = 5.0
    assert row_entries()[0](keys, np.ones(1), columns, values, *names.kept, False) == 1
    assert values[0] == 1.0


def test_tables_leave_alone_where_single_rows_look_for_their_entries() -> None:
    spec = Hashing(bits=10)
    names = spec.begin()
    before = names.places.copy()
    spec.encode_table(names, columns_of_all_kinds(), numbers())
    np.testing.assert_array_equal(names.places, before)


def test_signs_are_fair_and_cancel() -> None:
    """Of 2,000 signs, the mean has standard error 1 / sqrt(2,000) = 0.022."""
    spec = Hashing(bits=26, signed=True)
    n = 2000 if COMPILED else 200
    rows = spec.encode_table(spec.begin(), {"v": [str(i) for i in range(n)]}, learn=False)
    assert set(rows.values.tolist()) == {-1.0, 1.0}
    assert abs(rows.values.mean()) < 4.0 / np.sqrt(n)


@pytest.mark.parametrize("kind", ["none", "lists", "polars", "pyarrow", "pandas"])
def test_tables_without_rows(kind: str) -> None:
    empty = {
        "none": {},
        "lists": {"a": []},
        "polars": pl.DataFrame({"a": []}, schema={"a": pl.String}),
        "pyarrow": pa.table({"a": pa.array([], pa.string())}),
        "pandas": pd.DataFrame({"a": pd.Series([], dtype="str")}),
    }[kind]
    spec = Hashing()
    rows = spec.encode_table(spec.begin(), empty)
    assert rows.shape == (0, spec.n_columns)
    assert rows.columns.size == rows.values.size == 0
    assert list(spec.encode_chunks(spec.begin(), empty)) == []


def test_a_table_of_numbers_alone() -> None:
    spec = Hashing()
    rows = spec.encode_table(spec.begin(), {}, {"n": np.array([1.0, np.nan])}, dtype=np.float64)
    assert as_rows(rows) == [{key("n") >> 46: 1.0}, {missing("n") >> 46: 1.0}]


# What is refused

BAD: list[tuple[Any, str]] = [
    (lambda: Hashing(9), "`bits` must be a whole number from 10 to 26; got 9"),
    (lambda: Hashing(27), "`bits` must be a whole number from 10 to 26; got 27"),
    (lambda: Hashing(18.5), "`bits` must be a whole number"),
    (lambda: Hashing(signed="yes"), "`signed` must be True or False; got 'yes'"),
    (lambda: Hashing(seed=-1), "`seed` must be a whole number from 0"),
    (lambda: Hashing(text="title"), "`text` must be different names of columns, as a tuple; got 'title'"),
    (lambda: Hashing(text=5), "`text` must be different names"),
    (lambda: Hashing(text=("a", "a")), "`text` must be different names"),
    (
        lambda: Hashing(interactions=("ab",)),
        r"`interactions` must be different pairs of names, as a tuple; got \('ab',\)",
    ),
    (lambda: Hashing(interactions=(("a", "b"), ("b", "a"))), "`interactions` must be different pairs"),
    (lambda: Hashing(interactions=(("a", "b", "c"),)), "`interactions` must be different pairs"),
    (lambda: Hashing(interactions=(("a", 1),)), "`interactions` must be different pairs"),
    (lambda: Hashing(interactions=7), "`interactions` must be different pairs"),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_specs_are_named(make: Any, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        make()


def test_lists_become_tuples() -> None:
    spec = Hashing(interactions=[["a", "b"]], text=["c"])
    assert spec == Hashing(interactions=(("a", "b"),), text=("c",))
    assert hash(spec) == hash(Hashing(interactions=(("a", "b"),), text=("c",)))


@pytest.mark.parametrize(
    ("spec", "table", "amounts", "error", "message"),
    [
        (
            Hashing(interactions=(("a", "z"),)),
            {"a": ["x"]},
            {},
            InvalidFeatures,
            r"`interactions` must name columns; 'z' is not among \['a'\]",
        ),
        (Hashing(text=("z",)), {"a": ["x"]}, {}, InvalidFeatures, "`text` must name columns that are text; 'z'"),
        (Hashing(text=("a",)), {}, {"a": np.ones(1)}, InvalidFeatures, "`text` must name columns that are text; 'a'"),
        (Hashing(), {"a": ["x"], "b": []}, {}, ShapeMismatch, "of one length; got {'a': 1, 'b': 0}"),
        (
            Hashing(),
            {"a": ["x"]},
            {"n": np.ones(2)},
            ShapeMismatch,
            r"'n' must have one value per row, 1; got shape \(2,\)",
        ),
        (Hashing(), {"a": ["x"]}, {"n": np.array([-np.inf])}, InvalidFeatures, "'n' must be finite; got inf in row 0"),
        (Hashing(), {"a": [0.5]}, {}, InvalidFeatures, "column 'a' must hold text, whole numbers, .* got 0.5"),
        (Hashing(), {"a": [["x"]]}, {}, InvalidFeatures, r"column 'a' must hold .* got \['x'\]"),
        (Hashing(), {"a": np.zeros((1, 2))}, {}, InvalidFeatures, r"column 'a' must have one axis; got shape \(1, 2\)"),
        (Hashing(), {"a": np.zeros(1, complex)}, {}, InvalidFeatures, "column 'a' must hold .* got complex128"),
        (Hashing(), {1: ["x"]}, {}, InvalidFeatures, "must have different names, as text; got 1"),
        (
            Hashing(),
            pl.DataFrame({"a": ["x"]}).lazy(),
            {},
            InvalidFeatures,
            "a table must be a DataFrame .* got polars's LazyFrame",
        ),
        (Hashing(), [["x"]], {}, InvalidFeatures, "a table must be a DataFrame .* got builtins's list"),
        (Hashing(), pd.Series(["x"]), {}, InvalidFeatures, "a table must be a DataFrame"),
        (Hashing(), pa.table({"a": [b"x"]}), {}, InvalidFeatures, "column 'a' must hold .* got binary"),
        (
            Hashing(),
            pa.table([["x"], ["y"]], names=["a", "a"]),
            {},
            InvalidFeatures,
            "must have different names, as text; got 'a'",
        ),
    ],
)
def test_bad_tables_are_named(spec: Hashing, table: Any, amounts: Any, error: type, message: str) -> None:
    names = spec.begin()
    with pytest.raises(error, match=message):
        spec.encode_table(names, table, amounts)
    assert names.n_rows == 0


def test_bad_rows_are_named() -> None:
    spec = Hashing()
    names = spec.begin()
    with pytest.raises(InvalidFeatures, match=r"'a' must hold text, .* got \['x'\]"):
        spec.encode_one(names, {"a": ["x"]})
    with pytest.raises(InvalidFeatures, match=r"'a' must hold text, .* got 0\.5"):
        spec.encode_one(names, {"a": 0.5})
    with pytest.raises(InvalidFeatures, match="the number 'n' must be finite; got -inf"):
        spec.encode_one(names, {}, {"n": -math.inf})
    with pytest.raises(InvalidFeatures, match=r"`numbers` must be numbers; got \{'n': 'x'\}"):
        spec.encode_one(names, {}, {"n": "x"})
    with pytest.raises(InvalidFeatures, match=r"`text` must name what is text; 't' came as the number 1\.5"):
        Hashing(text=("t",)).encode_one(Hashing(text=("t",)).begin(), {}, {"t": 1.5})
    with pytest.raises(InvalidFeatures, match="the names of features must be text; got 3"):
        spec.encode_one(names, {3: "x"})
    with pytest.raises(InvalidSpec, match="`dtype` must be float32 or float64; got 'int8'"):
        spec.encode_table(names, {"a": ["x"]}, dtype="int8")
    with pytest.raises(InvalidSpec, match="`chunk_rows` must be a whole number"):
        spec.encode_chunks(names, {"a": ["x"]}, chunk_rows=0)
    assert names.n_rows == 0


ENCODE_AND_COUNT = """
import gc

import polars as pl
from numba.core.dispatcher import Dispatcher

from bayou import Hashing

spec = Hashing(text=("t",), interactions=(("a", "n"), ("t", "t")))
names = spec.begin()
table = {"a": ["x", "a long string that is not in the view"], "t": ["one two", None], "b": [1, 2], "c": [True, None]}
spec.encode_table(names, pl.DataFrame(table), {"n": [1.0, 2.0]})
spec.encode_table(names, table, {"n": [1.0, 2.0]}, dtype="float64")
spec.encode_one(names, {"a": "x", "t": "one"}, {"n": 1.0})
columns, _ = Hashing().encode_one(Hashing().begin(), {"a": "x"}, {"n": 1.0})

kernels = [o for o in gc.get_objects() if isinstance(o, Dispatcher) and o.py_func.__module__.startswith("bayou.")]
print(*columns)
print(sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels))
print(*sorted(f"{kernel.py_func.__module__}.{kernel.__name__}" for kernel in kernels if kernel.stats.cache_misses))
"""


@pytest.mark.parametrize("fresh", [False, pytest.param(True, marks=pytest.mark.soak)])
@pytest.mark.skipif(not COMPILED, reason="NUMBA_DISABLE_JIT=1: nothing is compiled")
def test_a_second_process_compiles_nothing(tmp_path: Path, run_python: Callable[..., str], fresh: bool) -> None:
    """In the cache of all tests, which has these kernels already, and in one of its own."""
    options = {"NUMBA_CACHE_DIR": str(tmp_path)} if fresh else {}

    def encode_and_count() -> list[list[str]]:
        return [line.split() for line in run_python(ENCODE_AND_COUNT, **options).splitlines()]

    columns, _, *compiled = encode_and_count()
    assert any(compiled) or not fresh, "the first process compiled nothing: the test does not see the kernels"
    same_columns, hits, *missed = encode_and_count()
    assert missed in ([], [[]])
    assert int(hits[0]) > 0
    assert same_columns == columns
