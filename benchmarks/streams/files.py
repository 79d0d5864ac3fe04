"""Streams from a folder of files, in the order in which they came; none of them is part of this project.

electricity    Elec2 of Harries (1999): does the price rise?
NEweather      daily weather at Bellevue, Nebraska (Elwell and Polikar, 2011): does it rain?
SEA            three numbers, a threshold that moves three times, one label in ten flipped (Street and Kim, 2001)
phishing       web pages (UCI)
adult          income above 50,000 (UCI), its part for training and then that for tests
bank           whether a customer signs (UCI); the duration of the call is among the numbers, as is usual
flights        arrival more than 15 minutes late (nycflights13), from what is known before departure;
               sorted, as the file has the months in the order of their digits
bananas        two bent clusters (Raetsch et al., 2001)
segments       seven kinds of surface in images (UCI)
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.datasets import load_svmlight_file

from benchmarks.streams.stream import Category, Stream

LATE = 15  # minutes


def electricity(folder: Path) -> Stream:
    table = pl.read_csv(folder / "drift/electricity.csv", infer_schema_length=None)
    return _stream("electricity", table.drop("class"), table["class"] == "UP")


def electricity_late(folder: Path) -> Stream:
    """A day of 48 half hours passes before a label is known."""
    return replace(electricity(folder), name="electricity, labels 48 rows late", delay=48)


def weather(folder: Path) -> Stream:
    return _of_two_files("NEweather", folder / "drift/NEweather_data.csv", folder / "drift/NEweather_class.csv")


def sea(folder: Path) -> Stream:
    return _of_two_files("SEA", folder / "drift/SEA_training_data.csv", folder / "drift/SEA_training_class.csv")


def _of_two_files(name: str, data: Path, classes: Path) -> Stream:
    rows = pl.read_csv(data, has_header=False, infer_schema_length=None)
    labels = pl.read_csv(classes, has_header=False).to_series()
    return _stream(name, rows, labels == 1)


def phishing(folder: Path) -> Stream:
    table = pl.read_csv(folder / "small/phishing.csv.gz", infer_schema_length=None)
    return _stream("phishing", table.drop("is_phishing"), table["is_phishing"] == 1)


def adult(folder: Path) -> Stream:
    parts = [pl.read_csv(folder / f"binary/adult-{part}.csv", has_header=False, infer_schema=False) for part in PARTS]
    table = pl.concat(parts).select(pl.all().str.strip_chars()).drop_nulls()
    *columns, label = table.columns
    numbers = [columns[place] for place in (0, 2, 4, 10, 11, 12)]  # the others are words
    return _stream("adult", table.select(columns).cast(dict.fromkeys(numbers, pl.Float64)), _above(table[label]))


PARTS = ("train", "test")


def _above(labels: pl.Series) -> pl.Series:
    return labels.str.strip_chars_end(".") == ">50K"


def bank(folder: Path) -> Stream:
    table = pl.read_csv(folder / "binary/bank-marketing.csv", infer_schema_length=None)
    return _stream("bank", table.drop("Class"), table["Class"] == 2)


def flights(folder: Path) -> Stream:
    known = ["month", "day", "sched_dep_time", "hour", "distance", "carrier", "origin", "dest"]
    table = pl.read_parquet(folder / "flights/nycflights13.parquet", columns=[*known, "arr_delay"])
    table = table.drop_nulls("arr_delay").sort("month", "day", "sched_dep_time", maintain_order=True)
    return _stream("flights", table.select(known), table["arr_delay"] > LATE)


def bananas(folder: Path) -> Stream:
    with zipfile.ZipFile(folder / "small/banana.zip") as archive:
        rows, labels = load_svmlight_file(io.BytesIO(archive.read("banana.all.txt")))
    return _stream("bananas", pl.DataFrame(rows.toarray()), pl.Series(labels > 0.0))


def segments(folder: Path) -> Stream:
    with zipfile.ZipFile(folder / "small/segment.csv.zip") as archive:
        (inside,) = archive.namelist()
        table = pl.read_csv(archive.read(inside), infer_schema_length=None)
    return _stream("segments", table.drop("category"), table["category"])


def _stream(name: str, table: pl.DataFrame, labels: pl.Series) -> Stream:
    """Columns of text are categories, all others numbers; labels are told by their order."""
    texts = [column for column in table.columns if table[column].dtype == pl.String]
    numbers = table.drop(texts).cast(pl.Float64).fill_null(float("nan")).to_numpy()
    categories = {column: Category.of(table[column].to_list()) for column in texts}
    classes, codes = np.unique(labels.to_numpy(), return_inverse=True)
    return Stream(name, np.ascontiguousarray(numbers), categories, codes.astype(np.int64), len(classes))


FILES: dict[str, Callable[[Path], Stream]] = {
    "electricity": electricity,
    "electricity-late": electricity_late,
    "NEweather": weather,
    "SEA": sea,
    "phishing": phishing,
    "adult": adult,
    "bank": bank,
    "flights": flights,
    "bananas": bananas,
    "segments": segments,
}
