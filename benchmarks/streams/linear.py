"""Linear peers, with their defaults: River, scikit-learn, Vowpal Wabbit.

All are told the numbers in running units, and categories as a column of ones per value. Vowpal Wabbit has ways of its
own for units, so that it is given the numbers as they are too.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from river import linear_model, optim, preprocessing
from sklearn.linear_model import SGDClassifier

from bayou.contracts import Matrix, Vector
from benchmarks import vowpal
from benchmarks.streams.contenders import BEST_RATE, Clock, Contender, Predicted
from benchmarks.streams.scores import checked, log_losses
from benchmarks.streams.stream import Stream

RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
SGD_ROWS = 10
Way = Callable[[Stream], Predicted]


# --- River


def by_river(rate: float | None = None) -> Way:
    """Its regression of two classes or more after its scaler; by default with the rate that it has."""

    def way(stream: Stream) -> Predicted:
        scaler, model = preprocessing.StandardScaler(), river_model(stream.n_classes, rate)
        codes, given = range(stream.n_classes), []
        constant = {} if stream.n_classes == 2 else {"constant": 1.0}  # that of several classes has no intercept
        with Clock() as clock:
            for numbers, places, label in stream.each():
                raw = dict(enumerate(numbers.tolist()))
                scaler.learn_one(raw)
                x = {**scaler.transform_one(raw), **dict.fromkeys(places, 1.0), **constant}
                told = model.predict_proba_one(x)
                given.append([told.get(code, 0.0) for code in codes])
                model.learn_one(x, label)
        note = "" if stream.n_classes == 2 else ", softmax"
        return Predicted(even_if_empty(given), clock.seconds, len(pickle.dumps((scaler, model))), note)

    return way


def river_model(n_classes: int, rate: float | None) -> Any:
    if n_classes > 2:
        return linear_model.SoftmaxRegression(optim.SGD(0.01 if rate is None else rate))
    if rate is None:
        return linear_model.LogisticRegression()
    return linear_model.LogisticRegression(optim.SGD(rate), intercept_lr=rate)


def even_if_empty(given: list[list[float]]) -> Matrix:
    """Where nothing was said yet, all classes are as probable."""
    probabilities = np.array(given)
    probabilities[probabilities.sum(axis=1) == 0.0] = 1.0 / probabilities.shape[1]
    return probabilities


def by_best_rate(stream: Stream) -> Predicted:
    """Of all rates the one whose log loss is least, which only hindsight can tell; the cost is that of one run."""
    return best_of({rate: by_river(rate)(stream) for rate in RATES}, stream)


def best_of(runs: Mapping[float, Predicted], stream: Stream) -> Predicted:
    """That of least log loss, with its rate as a note."""
    losses = {rate: loss(stream, run) for rate, run in runs.items()}
    best = min(losses, key=losses.__getitem__)
    return runs[best]._replace(note=f" ({best:g}){runs[best].note}")


def loss(stream: Stream, run: Predicted) -> float:
    return float(log_losses(checked(run.probabilities, stream.n_classes), stream.labels).mean())


# --- scikit-learn


class RunningUnits:
    """Mean and deviation of each number so far: a row is told in units that include itself, as a scaler has them."""

    def __init__(self, n_numbers: int) -> None:
        self._count, self._mean, self._squares = 0, np.zeros(n_numbers), np.zeros(n_numbers)

    def tell(self, numbers: Vector) -> Vector:
        self._count += 1
        distance = numbers - self._mean
        self._mean += distance / self._count
        self._squares += distance * (numbers - self._mean)
        deviation = np.sqrt(self._squares / self._count)
        told: Vector = (numbers - self._mean) / np.where(deviation > 0.0, deviation, 1.0)
        return told


def told_rows(stream: Stream, size: int) -> Iterator[tuple[Matrix, NDArray[np.int64]]]:
    """Dense rows, so many at once, with their numbers in running units."""
    n_numbers = stream.numbers.shape[1]
    units = RunningUnits(n_numbers)
    for rows, labels in stream.chunks(size):
        for row in rows:
            row[:n_numbers] = units.tell(row[:n_numbers])
        yield rows, labels


def by_sgd(stream: Stream) -> Predicted:
    """Few rows per call, as a call takes about a millisecond: they are predicted, then learnt."""
    model = SGDClassifier(loss="log_loss", random_state=0)
    classes, given = np.arange(stream.n_classes), np.full((len(stream), stream.n_classes), 1.0 / stream.n_classes)
    with Clock() as clock:
        for start, (rows, labels) in zip(count(0, SGD_ROWS), told_rows(stream, SGD_ROWS), strict=False):
            if start:
                given[start : start + len(rows)] = model.predict_proba(rows)
            model.partial_fit(rows, labels, classes=classes)
    return Predicted(given, clock.seconds, len(pickle.dumps(model)) + 8 * (1 + 2 * stream.numbers.shape[1]))


# --- Vowpal Wabbit


def by_vowpal(options: str, in_units: bool = False) -> Way:
    """It prints what it predicts of a row before it learns it. Reading its text is timed, writing it is not."""

    def way(stream: Stream) -> Predicted:
        if in_units:
            units = RunningUnits(stream.numbers.shape[1])
            stream = replace(stream, numbers=np.array([units.tell(numbers) for numbers in stream.numbers]))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_vowpal(folder / "rows", stream)
            several = f"--oaa {stream.n_classes} --probabilities" if stream.n_classes > 2 else "--link logistic"
            files = f"-d {folder / 'rows'} -p {folder / 'before'} -f {folder / 'model'}"
            with Clock() as clock:
                vowpal.run(f"{files} --loss_function logistic {several} {options}")
            given = read_vowpal(folder / "before", stream.n_classes)
            return Predicted(given, clock.seconds, (folder / "model").stat().st_size)

    return way


def write_vowpal(path: Path, stream: Stream) -> None:
    """A line per row: its label, the numbers that are not zero, the columns of its categories."""
    with path.open("w", encoding="ascii") as file:
        for numbers, places, label in stream.each():
            told = label + 1 if stream.n_classes > 2 else 2 * label - 1
            values = (f"{column}:{value:.9g}" for column, value in enumerate(numbers.tolist()) if value)
            file.write(f"{told} | {' '.join(values)} {' '.join(map(str, places))}\n")


def read_vowpal(path: Path, n_classes: int) -> Matrix:
    """A probability per line, of two classes; of more, ``1:p 2:p ...``."""
    lines = path.read_text(encoding="ascii").splitlines()
    if n_classes == 2:
        second = np.array([float(line) for line in lines])
        return np.column_stack([1.0 - second, second])
    return np.array([[float(pair.split(":")[1]) for pair in line.split()] for line in lines])


def has_two_classes(stream: Stream) -> bool:
    return stream.n_classes == 2


def without(package: str) -> str:
    """Why a peer is left out; nothing if it is there."""
    return "" if find_spec(package) is not None else f"{package} is not installed"


def linear() -> list[Contender]:
    no_vowpal = "" if vowpal.is_there() else vowpal.ABSENT
    return [
        Contender("River regression, default rate", by_river()),
        Contender(f"River regression, {BEST_RATE}", by_best_rate),
        Contender(f"scikit-learn SGDClassifier, {SGD_ROWS} rows a call", by_sgd),
        Contender("VW", by_vowpal(""), missing=no_vowpal),
        Contender("VW --coin", by_vowpal("--coin"), missing=no_vowpal),
        Contender("VW, in running units", by_vowpal("", in_units=True), missing=no_vowpal),
        Contender("VW --coin, in running units", by_vowpal("--coin", in_units=True), missing=no_vowpal),
    ]
