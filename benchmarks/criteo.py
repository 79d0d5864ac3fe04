"""A made table in the likeness of Criteo's display advertising challenge: 13 numbers, 26 categories, a row per advert.

Counts have heavy tails, categories have power laws over so many values as Criteo's have (a million where those have
more), both are missing now and then. Whether an advert was clicked, one in four is, follows a logistic model of the
logarithms of some numbers and of some categories.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.special import expit

from bayou.contracts import Vector
from bayou.numerics.files import polars

pl = polars()  # as in a program that reads by bayou: with its allocator told to keep memory
NUMBERS = tuple(f"I{j}" for j in range(1, 14))
CATEGORIES = tuple(f"C{j}" for j in range(1, 27))
# How many values the categories of the challenge have, cut at a million.
CARDINALITIES = (
    1_460, 583, 1_000_000, 1_000_000, 305, 24, 12_517, 633, 3, 93_145, 5_683, 1_000_000, 3_194,
    27, 14_992, 1_000_000, 10, 5_652, 2_173, 4, 1_000_000, 18, 15, 286_181, 105, 142_572,
)  # fmt: skip
MISSING = 0.15  # of the entries of every third column
PIECE = 100_000  # rows that are made at a time, and that a row group has
# The four hexadecimal digits of every half word, as one word of text.
DIGITS = np.frombuffer("".join(f"{half:04x}" for half in range(2**16)).encode("ascii"), np.uint32)
INTERCEPT = -1.9  # of the model: one in four is clicked


def pieces(n_rows: int, seed: int = 0) -> Iterator[Any]:
    """So many rows, some at a time: the first rows are the same however many follow."""
    for number, start in enumerate(range(0, n_rows, PIECE)):
        yield piece(min(PIECE, n_rows - start), np.random.default_rng((seed, number)))


def piece(n_rows: int, random: np.random.Generator) -> Any:
    score = np.full(n_rows, INTERCEPT)
    columns: dict[str, Any] = {}
    for j, name in enumerate(NUMBERS):
        logarithm = 0.3 * j + (1.0 + 0.1 * j) * random.normal(size=n_rows)
        told = present(j, n_rows, random)
        columns[name] = pl.Series(np.floor(np.exp(logarithm)).astype(np.int64)).set(~pl.Series(told), None)
        score += told * (0.3 if j % 4 == 0 else 0.0) * (logarithm - 0.3 * j)
    for j, (name, cardinality) in enumerate(zip(CATEGORIES, CARDINALITIES, strict=True)):
        rank = np.exp(math.log(cardinality) * random.random(n_rows)).astype(np.uint64)  # its logarithm is uniform
        told = present(j, n_rows, random)
        key = mixed(rank + (np.uint64(j + 1) << np.uint64(32)))
        columns[name] = hexadecimal(key.astype(np.uint32), told)
        score += told * (0.35 if j % 2 == 0 else 0.0) * normal_like(key)
    clicked = random.random(n_rows) < expit(score)
    return pl.DataFrame({"clicked": clicked.astype(np.int8), **columns})


def present(j: int, n_rows: int, random: np.random.Generator) -> NDArray[np.bool_]:
    return random.random(n_rows) >= MISSING if j % 3 == 2 else np.ones(n_rows, dtype=bool)


def mixed(key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bits that look random, the same for the same key: the finaliser of MurmurHash3."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        key = (key ^ (key >> np.uint64(33))) * np.uint64(factor)
    return key ^ (key >> np.uint64(33))


def normal_like(key: NDArray[np.uint64]) -> Vector:
    """A weight of mean 0 and variance 1 for each key: the sum of three uniform numbers of its bits."""
    parts = [(key >> np.uint64(shift)) & np.uint64(0xFFFFF) for shift in (0, 20, 40)]
    return 2.0 * (sum(part.astype(np.float64) for part in parts) / 2**20 - 1.5)


def hexadecimal(words: NDArray[np.uint32], told: NDArray[np.bool_]) -> Any:
    """Each word as eight hexadecimal digits."""
    digits = np.stack([DIGITS[words >> np.uint32(16)], DIGITS[words & np.uint32(0xFFFF)]], axis=1)
    buffers = [
        pa.py_buffer(np.packbits(told, bitorder="little")),
        pa.py_buffer(np.arange(0, 8 * len(words) + 1, 8, dtype=np.int32)),
        pa.py_buffer(digits),
    ]
    return pl.Series(pa.StringArray.from_buffers(len(words), buffers[1], buffers[2], buffers[0]))


def write_parquet(path: Path, n_rows: int) -> None:
    writer = None
    for table in pieces(n_rows):
        arrow = table.to_arrow(compat_level=pl.CompatLevel.oldest())
        writer = writer or pq.ParquetWriter(path, arrow.schema)
        writer.write_table(arrow, row_group_size=PIECE)
    assert writer is not None
    writer.close()


def write_csv(path: Path, n_rows: int) -> None:
    with path.open("wb") as file:
        for number, table in enumerate(pieces(n_rows)):
            table.write_csv(file, include_header=number == 0)


def write_vowpal(path: Path, n_rows: int) -> None:
    """A namespace per column: ``-1 |I1 n:3 |C1 68fd1e64``, and nothing where it is missing."""
    numbers = [pl.concat_str(pl.lit(f" |{name} n:"), pl.col(name)) for name in NUMBERS]
    categories = [pl.concat_str(pl.lit(f" |{name} "), pl.col(name)) for name in CATEGORIES]
    label = pl.when(pl.col("clicked") > 0).then(pl.lit("1")).otherwise(pl.lit("-1"))
    line = pl.concat_str(label, *(each.fill_null("") for each in (*numbers, *categories)))
    with path.open("wb") as file:
        for table in pieces(n_rows):
            table.select(line).write_csv(file, include_header=False, quote_style="never")
