"""Columns of tables as columns of numbers: what each is taken for, and what becomes of it."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta

import numpy as np
import polars as pl
import pytest
from scipy.interpolate import splev
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from bayou import TableEncoder
from bayou.errors import InvalidFeatures, InvalidSpec, ModelFileError, StreamError
from bayou.numerics.table_kinds import as_table
from bayou.numerics.table_layout import BUCKETS, MOST_INDEXED, TableLayout

DAYS = [datetime(2023, 1, 1, 5, 30) + timedelta(hours=31 * k) for k in range(40)]


def kinds(columns: dict[str, object], **told: object) -> dict[str, str]:
    return TableEncoder(**told).begin(pl.DataFrame(columns)).kinds  # type: ignore[arg-type]


def column(layout: TableLayout, table: pl.DataFrame, name: str) -> np.ndarray:
    return layout.encode(table)[:, layout.names.index(name)]


def test_kinds_are_found_by_types_and_values() -> None:
    found = kinds(
        {
            "whole": [1, 2, 3],
            "real": [0.5, None, 2.0],
            "truth": [True, False, None],
            "city": ["Paris", "Rome", "Paris"],
            "note": ["a long text of words", "another text with many words", "and the third one is different"],
            "day": [date(2024, 1, k) for k in (1, 2, 3)],
            "moment": DAYS[:3],
            "clock": [time(1), time(2), time(3)],
            "lasted": [timedelta(seconds=k) for k in range(3)],
            "iso_day": ["2024-01-01", "2024-02-29", None],
            "iso_moment": ["2024-01-01T10:00:00Z", "2024-01-01 11:30", "2024-01-01 11:30:00.5"],
            "spaced": [" 1", " 2.5", " -3e2"],
        }
    )
    numbers = ("whole", "real", "truth", "lasted", "spaced")
    dates = ("day", "moment", "clock", "iso_day", "iso_moment")
    assert found == {
        **dict.fromkeys(numbers, "number"),
        "city": "category",
        "note": "text",
        **dict.fromkeys(dates, "date"),
    }


def test_not_every_text_with_digits_is_a_date_or_a_number() -> None:
    found = kinds({"wrong": ["2024-13-45", "2024-01-01"], "zip": ["01234", "99999"], "mixed": [" 1", "x"]})
    assert set(found.values()) == {"category"}


def test_kinds_that_are_told_count() -> None:
    columns = {"zip": [1, 2, 3], "size": ["1", " 2 ", ""], "word": ["a", "b", "c"], "id": [7, 8, 9]}
    told = {"categorical": ("zip",), "numeric": ("size",), "text": ("word",), "ignore": ("id",), "hashed": False}
    assert kinds(columns, **told) == {"zip": "category", "size": "number", "word": "text"}
    table = pl.DataFrame(columns)
    layout = TableEncoder(**{**told, "text": (), "ignore": ("id", "word")}).begin(table)  # type: ignore[arg-type]
    np.testing.assert_array_equal(column(layout, table, "size"), [1.0, 2.0, np.nan])


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"numeric": ("a",), "text": ("a",)}, "one kind"),
        ({"numeric": "a"}, "names of columns"),
        ({"interactions": (("a", "a"),)}, "two columns"),
        ({"interactions": (("a", "b"),), "ignore": ("a",)}, "ignored"),
        ({"basis": "wavelets"}, "wavelets"),
        ({"basis": "spline:1"}, "from 2 to 64"),
        ({"basis": "spline", "hashed": True}, "hashed"),
    ],
)
def test_a_bad_encoder_is_refused(told: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidSpec, match=words):
        TableEncoder(**told)  # type: ignore[arg-type]


def test_a_column_that_is_not_there_is_named_with_the_nearest() -> None:
    table = pl.DataFrame({"price": [1.0], "city": ["x"]})
    with pytest.raises(StreamError, match="did you mean 'price'"):
        TableEncoder(numeric=("prize",)).begin(table)
    layout = TableEncoder().begin(table)
    with pytest.raises(StreamError, match=r"'price'.*did you mean 'prices'"):
        layout.encode(table.rename({"price": "prices"}))
    with pytest.raises(StreamError, match="beside the target"):
        TableEncoder().begin(table, ["price", "city"])
    with pytest.raises(InvalidSpec, match=r"interactions.*'when', date"):
        TableEncoder(interactions=(("when", "a"),)).begin(pl.DataFrame({"when": ["2024-01-01"], "a": [1]}))


def test_categories_begin_columns_whenever_they_come() -> None:
    layout = TableEncoder().begin(pl.DataFrame({"a": [1.0, 2.0], "c": ["x", None]}))
    assert layout.names == ["a", "c=x", "c is missing"]
    later = pl.DataFrame({"a": [3.0, None, 5.0], "c": ["y", "x", "z"]})
    np.testing.assert_array_equal(layout.encode(later), [[3, 0, 0], [np.nan, 1, 0], [5, 0, 0]])  # not admitted yet
    more = layout.admitted(later)
    assert layout.names == ["a", "c=x", "c is missing"]
    assert more.names == ["a", "c=x", "c is missing", "c=y", "c=z"]
    np.testing.assert_array_equal(more.encode(later)[:, 1:], [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]])


def test_rows_have_one_feature_of_a_category_and_beyond_128_values_share_32() -> None:
    first = pl.DataFrame({"a": range(100), "c": [f"v{k}" for k in range(100)]})
    rest = pl.DataFrame({"a": range(400), "c": [f"v{k}" for k in range(50, 450)]})
    layout = TableEncoder(hashed=False).begin(first)
    layout.admit(rest)
    assert len(layout.names) == 1 + MOST_INDEXED + BUCKETS
    rows = layout.encode(rest)[:, 1:]
    assert set(rows.sum(axis=1)) == {1.0}
    own, shared = rows[:, :MOST_INDEXED], rows[:, MOST_INDEXED:]
    assert (own.sum(axis=1) == (np.arange(50, 450) < MOST_INDEXED)).all()
    expected = 322 / BUCKETS
    counts = shared.sum(axis=0)
    assert ((counts - expected) ** 2 / expected).sum() < 80.0  # a chi-square of 31 degrees: beyond 1 in 10^5
    np.testing.assert_array_equal(rows, layout.encode(rest)[:, 1:])


def test_many_values_from_the_start_are_hashed_at_once() -> None:
    table = pl.DataFrame({"a": range(300), "c": [f"v{k}" for k in range(300)]})
    layout = TableEncoder(hashed=False).begin(table)
    assert len(layout.names) == 1 + BUCKETS
    assert set(layout.encode(table)[:, 1:].sum(axis=1)) == {1.0}


def test_tables_with_text_or_many_wide_categories_are_hashed() -> None:
    wide = {f"c{k}": [f"{k}-{row}" for row in range(300)] for k in range(2)}
    assert TableEncoder().begin(pl.DataFrame({"a": range(300), **wide})).hashed
    assert not TableEncoder().begin(pl.DataFrame({"a": range(300), "c0": wide["c0"]})).hashed
    assert TableEncoder().begin(pl.DataFrame({"t": ["many words in one", "other words of a text"]})).hashed
    assert not TableEncoder(hashed=False).begin(pl.DataFrame({"a": range(300), **wide})).hashed


def test_dates_turn_as_datetime_counts() -> None:
    table = pl.DataFrame({"when": [*DAYS, None]})
    layout = TableEncoder().begin(table)
    rows = dict(zip(layout.names, layout.encode(table).T, strict=True))
    for turns in rows.values():
        assert math.isnan(turns[-1])
    for k, day in enumerate(DAYS):
        hours = day.hour + day.minute / 60.0
        angles = {"hour": 2.0 * math.pi * hours / 24.0, "weekday": 2.0 * math.pi * (day.weekday() + hours / 24.0) / 7.0}
        for clock, harmonics in (("hour", 2), ("weekday", 3)):
            for h in range(1, harmonics + 1):
                more = "" if h == 1 else f" x{h}"
                assert rows[f"when: {clock}{more} sine"][k] == pytest.approx(math.sin(h * angles[clock]), abs=1e-9)
                assert rows[f"when: {clock}{more} cosine"][k] == pytest.approx(math.cos(h * angles[clock]), abs=1e-9)


def test_the_season_turns_once_a_year() -> None:
    begin = datetime(2020, 3, 1)
    table = pl.DataFrame({"when": [begin + timedelta(days=365.2425 * k / 8) for k in range(17)]})
    layout = TableEncoder().begin(table)
    sine, cosine = (column(layout, table, f"when: season {part}") for part in ("sine", "cosine"))
    turns = np.unwrap(np.arctan2(sine, cosine)) / (2.0 * math.pi)
    np.testing.assert_allclose(turns - turns[0], np.arange(17) / 8, atol=1e-9)


def test_dates_as_text_are_those_that_they_say() -> None:
    texts = [day.isoformat() for day in DAYS]
    plain, written = pl.DataFrame({"when": DAYS}), pl.DataFrame({"when": texts})
    rows = [TableEncoder().begin(table).encode(table) for table in (plain, written)]
    np.testing.assert_array_equal(*rows)
    days = pl.DataFrame({"when": ["2024-01-01", "2024-01-02"]})
    assert not [name for name in TableEncoder().begin(days).names if "hour" in name]


def test_pairs_of_columns() -> None:
    table = pl.DataFrame({"a": [2.0, 3.0, None], "b": [5.0, 7.0, 1.0], "c": ["x", "y", "x"], "d": ["u", "u", None]})
    pairs = (("a", "b"), ("c", "a"), ("c", "d"))
    layout = TableEncoder(interactions=pairs).begin(table)
    np.testing.assert_array_equal(column(layout, table, "a x b"), [10.0, 21.0, np.nan])
    np.testing.assert_array_equal(column(layout, table, "c=x x a"), [2.0, 0.0, np.nan])
    np.testing.assert_array_equal(column(layout, table, "c=y x a"), [0.0, 3.0, 0.0])
    np.testing.assert_array_equal(column(layout, table, "c=x x d=u"), [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(column(layout, table, "c=x x d is missing"), [0.0, 0.0, 1.0])
    assert "c=y x d is missing" not in layout.names
    turned = TableEncoder(interactions=(("a", "c"),)).begin(table)
    np.testing.assert_array_equal(column(turned, table, "c=y x a"), [0.0, 3.0, 0.0])


def test_splines_are_those_of_scipy_and_sum_to_one() -> None:
    rng = np.random.default_rng(1)
    first, later = rng.gamma(2.0, size=500), rng.gamma(2.0, size=200)
    layout = TableEncoder(basis="spline:5").begin(pl.DataFrame({"a": first}))
    rows = layout.encode(pl.DataFrame({"a": later}))[:, 1:]
    assert rows.shape == (200, 9)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)
    inner = np.quantile(first, np.arange(1, 6) / 6.0)
    knots = np.concatenate([[first.min()] * 4, inner, [first.max()] * 4])
    inside = np.clip(later, first.min(), first.max())
    for k in range(9):
        np.testing.assert_allclose(rows[:, k], splev(inside, (knots, np.eye(9)[k], 3)), atol=1e-12)
    assert np.isnan(layout.encode(pl.DataFrame({"a": [None]}, schema={"a": pl.Float64}))).all()


def test_splines_of_few_values_have_even_knots() -> None:
    table = pl.DataFrame({"a": [0.0, 1.0, 1.0, 1.0], "same": [3.0] * 4})
    rows = TableEncoder(basis="spline:4").begin(table).encode(table)[:, 2:]
    np.testing.assert_allclose(rows[:, :8].sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(rows[:, 8:].sum(axis=1), 1.0, atol=1e-12)


def test_polynomials_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    first, later = rng.normal(3.0, 2.0, size=(400, 3)), rng.normal(3.0, 2.0, size=(50, 3))
    layout = TableEncoder(basis="polynomial:3").begin(pl.DataFrame(first, schema=["a", "b", "c"]))
    rows = layout.encode(pl.DataFrame(later, schema=["a", "b", "c"]))[:, 3:]
    peer = PolynomialFeatures(3, include_bias=False)
    expected = peer.fit_transform(StandardScaler().fit(first).transform(later))[:, 3:]
    np.testing.assert_allclose(rows, expected, atol=1e-10)
    assert layout.names[3:] == list(peer.get_feature_names_out(["a", "b", "c"])[3:])


def test_too_many_products_are_refused() -> None:
    with pytest.raises(InvalidSpec, match="at most 2000 products"):
        TableEncoder(basis="polynomial:6").begin(pl.DataFrame(np.ones((2, 12))))


def test_numbers_that_cannot_be_counted_with_are_named() -> None:
    layout = TableEncoder(interactions=(("a", "b"),)).begin(pl.DataFrame({"a": [1.0], "b": [2.0]}))
    table = pl.DataFrame({"a": [1.0, math.inf, 1e100, 2.0], "b": [1.0, 1.0, 1e100, None]})
    with pytest.raises(InvalidFeatures, match="column 'a' must hold numbers below 1e\\+140 in size; got inf"):
        layout.encode(table)
    bad = layout.bad_rows(table)
    assert list(bad) == [1, 2]
    assert "'a'" in bad[1]
    assert "product" in bad[2]
    text = pl.DataFrame({"a": ["1", "x", " 2"], "b": [1.0, 1.0, 1.0]})
    with pytest.raises(InvalidFeatures, match=r"'a' must hold numbers.*got 'x'"):
        layout.encode(text)
    assert list(layout.bad_rows(text)) == [1]
    with pytest.raises(InvalidFeatures, match="'a' must hold numbers; got Date"):
        layout.encode(pl.DataFrame({"a": [date(2024, 1, 1)], "b": [1.0]}))


@pytest.mark.parametrize("basis", [None, "spline:3", "polynomial:2"])
def test_a_layout_is_the_same_from_its_data(basis: str | None) -> None:
    table = pl.DataFrame(
        {"a": [0.1, 0.2, 0.7], "b": [3.0, None, 1.0], "c": ["x", "y", None], "d": ["1", "2", "2"], "when": DAYS[:3]}
    )
    layout = TableEncoder(interactions=(("c", "d"), ("a", "b")), basis=basis).begin(table)
    state = layout.to_state()
    again = TableLayout.from_state(state)
    assert again.to_state().config == state.config
    assert again.encode(table).tobytes() == layout.encode(table).tobytes()
    state.config["categories"][0][2][0] = 10_000
    with pytest.raises(ModelFileError, match="places of categories"):
        TableLayout.from_state(state)


def test_hashed_tables_keep_numbers_and_tell_dates_by_their_hands() -> None:
    table = pl.DataFrame({"a": [1, None], "c": [3, 4], "when": [datetime(2024, 5, 6, 7), None]})
    layout = TableEncoder(categorical=("c",), hashed=True).begin(table)
    told = TableEncoder(categorical=("c",), hashed=True).prepared(layout, table)
    assert told.to_dict(as_series=False) == {
        "a": [1.0, None],
        "c": ["3", "4"],
        "when: hour": ["7", None],
        "when: weekday": ["1", None],
        "when: month": ["5", None],
    }


def test_anything_that_is_a_table_is_one() -> None:
    import pandas as pd
    import pyarrow as pa

    plain = {"a": [1, 2], "c": ["x", "y"]}
    expected = pl.DataFrame(plain)
    rows = [{"a": 1, "c": "x"}, {"a": 2, "c": "y"}]
    for table in (expected, plain, rows, pd.DataFrame(plain), pa.table(plain)):
        assert as_table(table).equals(expected)
    assert as_table(rows[0]).equals(expected.head(1))
    with pytest.raises(InvalidFeatures, match="a table or dicts"):
        as_table(object())


def test_a_pair_is_not_taken_for_a_column_of_its_name() -> None:
    table = pl.DataFrame({"c": ["u", "v"], "d": ["p", "p"], "c x d": ["left", "right"], "n": [1.0, 2.0]})
    encoder = TableEncoder(interactions=(("c", "d"),))
    layout = encoder.begin(table)
    rows = encoder.encode(layout, table)
    found = [{name: value for name, value in zip(layout.names, row, strict=True) if value} for row in rows.tolist()]
    assert found == [
        {"n": 1.0, "c=u": 1.0, "d=p": 1.0, "c x d=left": 1.0, "c=u x d=p": 1.0},
        {"n": 2.0, "c=v": 1.0, "d=p": 1.0, "c x d=right": 1.0, "c=v x d=p": 1.0},
    ]
