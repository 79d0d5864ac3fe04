"""From a file of clicks to what is learnt of it: Parquet and CSV against Vowpal Wabbit's text and cache, and River."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from river import linear_model, preprocessing
from river import stream as river_stream

from bayou import Hashing, OnlineClassifier, read_csv, read_parquet
from bayou.numerics.files import polars
from benchmarks import criteo, vowpal
from benchmarks.report import Result, against
from benchmarks.timing import Contender, Effort, microseconds_per_example

pl = polars()  # as in a program that reads by bayou: with its allocator told to keep memory
BITS = 22
ROWS = 1_000_000
ROUNDS = 9  # a round takes a quarter of a minute; of fewer, the fastest is not yet that of a quiet machine
FROM_PARQUET, FROM_CSV = "bayou from Parquet", "bayou from CSV"
FROM_TEXT, FROM_CACHE = "VW from text", "VW from its cache"
FASTER_THAN_TEXT, FASTER_THAN_CACHE, CSV_FASTER_THAN_TEXT = 5.0, 3.5, 1.8
MOST_GROWTH = 1.2
PROGRAM = """
import resource, sys
from bayou import Hashing, OnlineClassifier, read_parquet

model = OnlineClassifier(encoder=Hashing(bits={bits}))
for chunk in read_parquet(sys.argv[1]):
    model.partial_fit(chunk.drop("clicked"), chunk["clicked"], classes=[0, 1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def tables(effort: Effort) -> Iterator[Result]:
    """All of it is timed: reading, hashing, making the model and learning."""
    n_rows = effort.examples(ROWS, least=1000)
    setting = f"{n_rows:,} rows, 2^{BITS}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        contenders = [*ours(folder, n_rows), *of_vowpal(folder, n_rows), *of_river(folder, n_rows)]
        times = microseconds_per_example(contenders, effort._replace(rounds=min(effort.rounds, ROUNDS)))
    goals = {FROM_TEXT: FASTER_THAN_TEXT, FROM_CACHE: FASTER_THAN_CACHE}
    yield from against("tables", setting, times, FROM_PARQUET, goals)
    if not vowpal.is_there():
        yield Result("tables", setting, f"VW: {vowpal.ABSENT}")
        return
    ratio = times[FROM_TEXT] / times[FROM_CSV]
    yield Result("tables", setting, f"{FROM_TEXT} over {FROM_CSV}", None, ratio, goal=CSV_FASTER_THAN_TEXT)


def ours(folder: Path, n_rows: int) -> list[Contender]:
    parquet, csv = folder / "clicks.parquet", folder / "clicks.csv"
    criteo.write_parquet(parquet, n_rows)
    criteo.write_csv(csv, n_rows)
    types = dict.fromkeys(criteo.CATEGORIES, pl.String)  # some begin with digits alone
    return [
        Contender(FROM_PARQUET, n_rows, lambda: lambda: learn(read_parquet(parquet))),
        Contender(FROM_CSV, n_rows, lambda: lambda: learn(read_csv(csv, types=types))),
    ]


def learn(chunks: Iterator[Any]) -> OnlineClassifier:
    model = OnlineClassifier(encoder=Hashing(bits=BITS))
    for chunk in chunks:
        model.partial_fit(chunk.drop("clicked"), chunk["clicked"], classes=[0, 1])
    return model


def of_vowpal(folder: Path, n_rows: int) -> list[Contender]:
    if not vowpal.is_there():
        return []
    text, cache = folder / "clicks.txt", folder / "clicks.cache"
    criteo.write_vowpal(text, n_rows)
    always = f"-d {text} -b {BITS} --loss_function logistic"
    cached = f"{always} --cache_file {cache}"
    vowpal.run(cached)  # which makes it
    return [
        Contender(FROM_TEXT, n_rows, vowpal.a_run(always)),
        Contender(FROM_CACHE, n_rows, vowpal.a_run(cached)),
    ]


def of_river(folder: Path, n_rows: int) -> list[Contender]:
    csv, count = folder / "clicks.csv", min(n_rows, 5000)

    def contender(kind: type[Any]) -> Contender:
        def prepare() -> Callable[[], object]:
            model = preprocessing.OneHotEncoder(drop_zeros=True) | kind()

            def work() -> None:
                with csv.open(newline="") as file:
                    for x, y in islice(river_stream.iter_csv(file, target="clicked"), count):
                        model.learn_one(x, y == "1")

            return work

        return Contender(f"River iter_csv | OneHotEncoder | {kind.__name__}", count, prepare)

    return [contender(linear_model.LogisticRegression), contender(linear_model.AdPredictor)]


def memory(effort: Effort) -> Iterator[Result]:
    """The most memory that a process has while it learns a Parquet file, and ten times as many rows."""
    few = effort.examples(ROWS, least=1000)
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        for n_rows in (few, 10 * few):
            path = Path(folder) / "clicks.parquet"
            criteo.write_parquet(path, n_rows)
            peaks.append(peak_of_learning(path))
            yield Result("memory", f"{n_rows:,} rows, 2^{BITS}", FROM_PARQUET, None, peaks[-1], "megabytes")
    growth = peaks[1] / peaks[0]
    yield Result("memory", "ten times as many rows", FROM_PARQUET, None, growth, "growth", goal=MOST_GROWTH)


def peak_of_learning(path: Path) -> float:
    """Megabytes, of a process of its own that knows no peers."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", PROGRAM.format(bits=BITS), str(path)]
    finished = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    return float(finished.stdout) / (2**20 if sys.platform == "darwin" else 2**10)
