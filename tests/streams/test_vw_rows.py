"""Vowpal Wabbit's text as sparse rows, against the same text as dicts and `Hashing` of these."""

from __future__ import annotations

import io
from collections import defaultdict
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from bayou import Hashing, Skipped, read_vw
from bayou.encoders import SparseEncoder
from bayou.errors import StreamError
from bayou.streams import SparseTable, read_vw_rows

BITS = 26
PIECES = [
    *(
        "|",
        "| ",
        " |",
        "|ns ",
        "|a:2 ",
        "|a:0.1 ",
        "|:3 ",
        "x",
        "x ",
        "y:2 ",
        "y:-.5e1 ",
        "z:text ",
        "x:nan ",
        "x:-Inf ",
    ),
    *("1 ", "-1 ", "0.25 ", "'tag", "'tag ", " ", "\t", ":", "::", "1e400 ", "12345678901234567890.5 ", "é", "\u00a0"),
    *("x:0.1234567890123456789 ", "|b:0.1234567890123456789 ", "-2 ", "x:1e-400 ", "shared ", "x:infinity2 ", "\x1c"),
]
lines = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)


def by_rows(text: bytes, **options: Any) -> SparseTable:
    [rows] = read_vw_rows(io.BytesIO(text), **options)
    return rows


def summed(columns: Any, values: Any) -> dict[int, float]:
    found: dict[int, float] = defaultdict(float)
    for column, value in zip(columns.tolist(), values.tolist(), strict=True):
        found[column] += value
    return dict(found)


def hashed(features: dict[str, float | str]) -> dict[int, float]:
    encoder = Hashing(bits=BITS)
    texts = {name: value for name, value in features.items() if isinstance(value, str)}
    numbers = {name: value for name, value in features.items() if not isinstance(value, str)}
    return summed(*encoder.encode_one(encoder.begin(), texts, numbers))


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(lines, lines.map(lambda line: f"1 |{line}")), min_size=1, max_size=6))
def test_rows_and_dicts_are_of_the_same_lines(some: list[str]) -> None:
    text = "".join(f"{line}\n" for line in ["0 |always there", *some]).encode()
    told, skipped = Skipped(), Skipped()
    [expected] = read_vw(io.BytesIO(text), on_error="skip", skipped=told)
    rows = by_rows(text, on_error="skip", skipped=skipped)
    assert skipped.rows == told.rows
    np.testing.assert_array_equal(rows.labels, expected.labels)
    np.testing.assert_array_equal(rows.weights, expected.weights)
    sparse = SparseEncoder(bits=BITS, hashed=True).begin(rows).prepared(rows)
    for n, features in enumerate(expected.features):
        row = sparse[n : n + 1]
        found, wanted = summed(row.columns, row.values), hashed(features)
        assert found.keys() == wanted.keys()
        for column, value in wanted.items():
            assert found[column] == pytest.approx(value, rel=1e-15, abs=0.0)


def test_cut_joined_and_filtered_rows_are_the_same_rows() -> None:
    from bayou.numerics.sparse_table import rows_joined

    text = b"".join(f"{n} {n + 1} |a f{n}:{n + 0.5} g |b h{n % 3}\n".encode() for n in range(20))
    rows = by_rows(text)
    parts = rows_joined([rows.slice(0, 7), rows.slice(7, 1), rows.slice(8)])
    for field in ("labels", "weights", "starts", "keys", "values"):
        np.testing.assert_array_equal(getattr(parts, field), getattr(rows, field))
    for row in (0, 7, 19):
        begin, end = parts.lines[row]
        assert parts.text[begin:end] == text.split(b"\n")[row]
    layout = SparseEncoder(interactions=(("a", "b"),), hashed=False).begin(rows)
    np.testing.assert_array_equal(layout.encode(parts), layout.encode(rows))
    odd = np.arange(20) % 2 == 1
    np.testing.assert_array_equal(layout.encode(rows.filter(odd)), layout.encode(rows)[odd])


def test_pairs_of_namespaces_are_products() -> None:
    rows = by_rows(b"1 |user u:2 v |item i:3 |other o\n")
    layout = SparseEncoder(interactions=(("u", "i"), ("user", "user")), hashed=False).begin(rows)
    found = dict(zip(layout.names, layout.encode(rows)[0].tolist(), strict=True))
    singles = {"user^u": 2.0, "user^v": 1.0, "item^i": 3.0, "other^o": 1.0}
    pairs = {"user^u x item^i": 6.0, "user^v x item^i": 3.0}
    own = {"user^u x user^u": 4.0, "user^u x user^v": 2.0, "user^v x user^v": 1.0}
    assert found == singles | pairs | own
    every = SparseEncoder(interactions=((":", "item"),), hashed=False).begin(rows)
    assert {"item^i x other^o", "item^i x item^i"} <= set(every.names)


def test_a_pair_is_hashed_as_an_interaction_is() -> None:
    rows = by_rows(b"1 |a x:2 |b y:3\n")
    sparse = SparseEncoder(interactions=(("a", "b"),), bits=BITS, hashed=True).begin(rows).prepared(rows)
    encoder = Hashing(bits=BITS, interactions=(("a^x", "b^y"),))
    wanted = summed(*encoder.encode_one(encoder.begin(), {}, {"a^x": 2.0, "b^y": 3.0}))
    assert summed(sparse.columns, sparse.values) == wanted


def test_a_line_that_is_broken_stops_the_rows() -> None:
    stream = read_vw_rows(io.BytesIO(b"1 |a b\n1 |a b\nx |a b\n1 |a c\n"))
    assert len(next(stream)) == 2
    with pytest.raises(StreamError, match="line 3"):
        next(stream)
