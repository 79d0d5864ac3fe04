"""What a hashing encoder remembers: names, as many as there is room for, and how often they share a column."""

from __future__ import annotations

import copy
import json
import math
import pickle
from typing import Any

import numpy as np
import polars as pl
import pytest

from bayou import Hashing, json_values, modelfile
from bayou.contracts import State
from bayou.errors import InvalidSpec, ModelFileError
from bayou.numerics.hashed_names import HashedNames
from bayou.numerics.jit import COMPILED
from tests.encoders.hashed import (
    SPECS,
    TABLES,
    N,
    as_row,
    category,
    columns_of_all_kinds,
    key,
    missing,
    numbers,
)
from tests.numerics.test_hashing import M64, mix


def test_names_are_told() -> None:
    spec = Hashing(interactions=(("city", "age"), ("title", "city")), text=("title",))
    names = spec.begin()
    spec.encode_one(names, {"city": "Paris", "title": "A word"}, {"age": 2.0})
    spec.encode_one(names, {"city": None, "title": None}, {"age": math.nan})
    spec.encode_table(names, {"city": ["Rome"], "title": ["the"]}, {"age": [math.nan]})
    told = {
        "city=Paris": category("city", "Paris"),
        "age": key("age"),
        "title:word": category("title", "word"),
        "city=Paris x age": mix(category("city", "Paris") + key("age") & M64),
        "title:word x city=Paris": mix(category("title", "word") + category("city", "Paris") & M64),
        "city is missing": missing("city"),
        "age is missing": missing("age"),
        "title is missing": missing("title"),
        "city=Rome": category("city", "Rome"),
        "city=Rome x age is missing": mix(category("city", "Rome") + missing("age") & M64),
        "title:the x city=Rome": mix(category("title", "the") + category("city", "Rome") & M64),
    }
    assert names.names_of(k >> 46 for k in told.values()) == list(told)
    unknown = category("city", "Atlantis") >> 46
    assert names.names_of([unknown]) == [f"#{unknown}"]


@pytest.mark.parametrize(
    "kind", ["lists", "polars", "categories of polars", "pyarrow in chunks", "pandas", "a slice of pandas"]
)
def test_tables_tell_the_names_that_dicts_tell(kind: str) -> None:
    spec, columns, amounts = SPECS[3], columns_of_all_kinds(), numbers()
    of_dicts, of_table = spec.begin(), spec.begin()
    rows = spec.encode_table(of_table, TABLES[kind](columns), amounts)
    for n in range(N):
        row = {name: values[n] for name, values in columns.items()}
        spec.encode_one(of_dicts, row, {name: values[n] for name, values in amounts.items()})
    every = np.unique(rows.columns).tolist()
    assert of_table.names_of(every) == of_dicts.names_of(every)
    assert not any(name.startswith("#") for name in of_table.names_of(every))
    assert of_table.collisions == of_dicts.collisions


def test_names_that_share_a_column_are_all_told() -> None:
    spec = Hashing(bits=10)
    first = next(
        (i, j) for j in range(500) for i in range(j) if category("v", str(i)) >> 54 == category("v", str(j)) >> 54
    )
    names = spec.begin()
    for i in (*first, *first):
        spec.encode_one(names, {"v": i})
    assert names.names_of([category("v", str(first[0])) >> 54]) == [f"v={first[0]} | v={first[1]}"]
    assert names.collisions == (4, 1, 2, 1)


def test_the_memory_of_names_is_bounded_and_keeps_the_frequent() -> None:
    spec = Hashing(bits=16)
    names = HashedNames(16, capacity=100)
    for i in range(600):
        spec.encode_one(names, {"often": i % 10, "once": i})
        assert len(names) <= 100
    often = [category("often", str(i)) >> 48 for i in range(10)]
    assert all(f"often={i}" in name for i, name in enumerate(names.names_of(often)))
    spec.encode_one(names, {"long": "x" * 10_000})
    assert len(names.names_of([category("long", "x" * 10_000) >> 48])[0]) == 64


def test_a_name_that_was_lost_comes_back_with_use() -> None:
    spec, names = Hashing(bits=16), HashedNames(16, capacity=8)
    spec.encode_one(names, {"late": "comer"})
    for i in range(20):
        spec.encode_one(names, {"v": i})
    column = category("late", "comer") >> 48
    assert names.names_of([column]) == [f"#{column}"]
    for _ in range(20):
        spec.encode_one(names, {"late": "comer"})
    assert names.names_of([column]) == ["late=comer"]


def test_without_learning_nothing_is_remembered() -> None:
    spec, columns, amounts = SPECS[2], columns_of_all_kinds(), numbers()
    names = spec.begin()
    spec.encode_table(names, pl.DataFrame(columns), amounts, learn=False)
    spec.encode_one(names, {name: values[0] for name, values in columns.items()}, {}, learn=False)
    spec.encode_one(names, {"town": "Rome"}, learn=False)
    fresh = spec.begin().to_state()
    state = names.to_state()
    assert state.config == fresh.config
    assert all(np.array_equal(array, fresh.arrays[name]) for name, array in state.arrays.items())


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_who_predicts_grants_no_time_for_names(spec: Hashing) -> None:
    columns, amounts, names = columns_of_all_kinds(), numbers(), spec.begin()
    spec.encode_table(names, columns, amounts)
    names.credit = 0.5  # as after more names than may be asked for at once
    before, first = names.to_state(), {name: values[0] for name, values in columns_of_all_kinds(seed=7).items()}
    for _ in range(3):
        spec.encode_table(names, columns_of_all_kinds(seed=7), amounts, learn=False)
        for _ in spec.encode_chunks(names, columns, amounts, learn=False, chunk_rows=7):
            pass
        spec.encode_one(names, first, {"age": 1.5}, learn=False)
        spec.encode_one(names, {name: str(value) for name, value in first.items()}, learn=False)
    assert names.to_state().config == before.config
    assert all(np.array_equal(array, before.arrays[name]) for name, array in names.to_state().arrays.items())


@pytest.mark.parametrize("way", ["dicts", "table"])
@pytest.mark.parametrize(("bits", "n"), [(12, 1500), (14, 3000)])
def test_collisions_are_as_many_as_chance_has_it(bits: int, n: int, way: str) -> None:
    """Of n keys at random in m columns, m (1 - (1 - 1/m)^n - (n/m) (1 - 1/m)^(n-1)) columns meet more than one.

    Counts of such columns are nearly Poisson's, a little narrower: the standard error is below the root of the mean.
    """
    m, spec = 2**bits, Hashing(bits=bits)
    values, names = [f"value {i}" for i in range(n)], spec.begin()
    if way == "table":
        spec.encode_table(names, {"v": values})
    else:
        for value in values:
            spec.encode_one(names, {"v": value})
    met = names.collisions
    empty = (1.0 - 1.0 / m) ** n
    shared = m * (1.0 - empty - n / m * (1.0 - 1.0 / m) ** (n - 1))
    assert met.entries == n
    assert abs(met.columns - m * (1.0 - empty)) < 4.0 * np.sqrt(shared)
    assert abs(met.shared_columns - shared) < 4.0 * np.sqrt(shared)
    assert abs(met.shared_entries - (n - m * (1.0 - empty))) < 4.0 * np.sqrt(shared)
    exact = np.bincount([category("v", value) >> (64 - bits) for value in values], minlength=m)
    assert abs(met.shared_columns - np.sum(exact > 1)) <= 2  # but for equal marks, one in 32,767
    assert met.columns == np.sum(exact > 0)


@pytest.mark.skipif(not COMPILED, reason="NUMBA_DISABLE_JIT=1: too many rows for plain Python")
def test_long_tables_are_sampled() -> None:
    spec = Hashing(bits=16)
    names, table = spec.begin(), pl.DataFrame({"v": [f"v{i % 100}" for i in range(50_000)]})
    spec.encode_table(names, table)
    assert names.collisions.entries == 4096 + len(range(4096, 50_000, 64))
    for part in (table[:1000], table[1000:]):
        spec.encode_table(names, part)
    assert names.n_rows == 100_000
    other = spec.begin()
    for _ in spec.encode_chunks(other, pl.concat([table, table]), chunk_rows=777):
        pass
    assert other.collisions == names.collisions  # however the rows are cut


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_names_as_data_and_in_copies(spec: Hashing) -> None:
    columns, amounts, names = columns_of_all_kinds(), numbers(), spec.begin()
    rows = spec.encode_table(names, columns, amounts)
    state = names.to_state()
    assert all(array.dtype.name in modelfile.DTYPES for array in state.arrays.values())
    text = json.dumps(json_values.encode(state.config), allow_nan=False)
    read = HashedNames.from_state(State(json_values.decode(json.loads(text)), state.arrays))
    row = {name: values[3] for name, values in columns_of_all_kinds(seed=5).items()}
    wanted = None
    for same in (names, read, pickle.loads(pickle.dumps(read)), copy.deepcopy(read)):
        again = spec.encode_table(copy.deepcopy(same), columns, amounts)
        np.testing.assert_array_equal(again.columns, rows.columns)
        encoded = as_row(*spec.encode_one(same, row, {}))
        after = same.to_state()
        if wanted is None:
            wanted = encoded, after, same.collisions
            continue
        assert (encoded, same.collisions) == (wanted[0], wanted[2])
        assert after.config == wanted[1].config
        for name, array in after.arrays.items():
            np.testing.assert_array_equal(array, wanted[1].arrays[name])


def test_names_serve_one_kind_of_encoder() -> None:
    names = Hashing(18).begin()
    for other in (Hashing(20), Hashing(18, signed=True), Hashing(18, seed=1)):
        with pytest.raises(InvalidSpec, match="names must be for the bits, signs and seed of the encoder"):
            other.encode_one(names, {"a": "x"})
        with pytest.raises(InvalidSpec, match="names must be for"):
            other.encode_table(names, {"a": ["x"]})
    plain, crossed = Hashing(18), Hashing(18, interactions=(("a", "b"),))
    for _ in range(2):  # the same names may serve both: what is kept for one is not used for the other
        assert len(plain.encode_one(names, {"a": "x", "b": "y"})[0]) == 2
        assert len(crossed.encode_one(names, {"a": "x", "b": "y"})[0]) == 3


@pytest.mark.parametrize(
    "spoil",
    [
        lambda config, arrays: config.pop("bits"),
        lambda config, arrays: config.update(bits=40),
        lambda config, arrays: config.update(bits=12),
        lambda config, arrays: config.update(names=[["a"], ["b"], ["c"]]),
        lambda config, arrays: config.update(capacity=0),
        lambda config, arrays: arrays.pop("cells"),
        lambda config, arrays: arrays.update(counts=np.zeros(2, np.int64)),
    ],
)
def test_damaged_names_are_refused(spoil: Any) -> None:
    names = Hashing(10).begin()
    Hashing(10).encode_one(names, {"a": "x"})
    config, arrays = names.to_state()
    spoil(config, arrays)
    with pytest.raises(ModelFileError, match="hashed names"):
        HashedNames.from_state(State(config, arrays))
