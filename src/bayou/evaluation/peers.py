"""Learners of other libraries with their defaults, beside ours, on one stream: each row is predicted, then learnt.

All are given the same features. Numbers are told in units of what was seen so far, a missing one as their mean; sparse
rows as they are. Ours finds its units itself. Vowpal Wabbit reads its text from a file, which is part of its time.
"""

from __future__ import annotations

import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, SparseRows, Vector
from bayou.estimators import Budget, OnlineClassifier, OnlineCounter, OnlineRegressor

SGD_ROWS = 10  # that scikit-learn is given at a time: a call takes about a millisecond
CHUNK = 1000  # rows after which the next contender has its turn
WARM_UP = 2000  # rows that are learnt before the clock starts, by a model that is thrown away


class Stream(NamedTuple):
    """Rows in full, or sparse, and their targets: codes of ``classes``, or numbers where there are none."""

    rows: Matrix | SparseRows
    targets: NDArray[Any]
    classes: list[Any]
    task: str

    def part(self, rows: slice) -> Stream:
        """Some of the rows."""
        return self._replace(rows=self.rows[rows], targets=self.targets[rows])


class Result(NamedTuple):
    """What a contender said of each row before it learnt it, and seconds of CPU; or why it is not there."""

    name: str
    said: NDArray[Any]
    seconds: float
    missing: str = ""


class Contender(ABC):
    """One that learns a stream."""

    name = ""
    package = ""

    def __init__(self, stream: Stream) -> None:
        self.classes, self.task = stream.classes, stream.task

    @classmethod
    def missing(cls) -> str:
        """Why it cannot be asked; nothing if it can."""
        return f"{cls.package} is not installed" if cls.package and find_spec(cls.package) is None else ""

    def told(self, rows: Matrix | SparseRows) -> Any:
        """The rows as it takes them, which is not timed."""
        return rows

    @abstractmethod
    def step(self, rows: Any, targets: NDArray[Any]) -> NDArray[Any]:
        """Predict and learn: probabilities of the classes of each row, or numbers."""


class Ours(Contender):
    """The estimator of the task."""

    name = "bayou"

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        budget = Budget() if isinstance(stream.rows, SparseRows) else None
        kinds: dict[str, Any] = {"regression": OnlineRegressor, "count": OnlineCounter}
        self._model = kinds.get(self.task, OnlineClassifier)(budget=budget)

    def step(self, rows: Any, targets: NDArray[Any]) -> NDArray[Any]:
        if not self.classes:
            return np.atleast_1d(self._model.learn_many(rows, targets).mean)
        given: Matrix = self._model.learn_many(rows, targets, classes=np.arange(len(self.classes)))
        return given


class River(Contender):
    """Its linear or logistic regression; of several classes softmax regression, which has no rate of its own."""

    name = "River, default"
    package = "river"

    def __init__(self, stream: Stream) -> None:
        from river import linear_model  # noqa: PLC0415  # a peer

        super().__init__(stream)
        kinds = {0: linear_model.LinearRegression, 2: linear_model.LogisticRegression}
        self._model = kinds.get(len(self.classes), linear_model.SoftmaxRegression)()

    def told(self, rows: Matrix | SparseRows) -> list[dict[str, float]]:
        constant = {"constant": 1.0} if len(self.classes) > 2 else {}  # that of several classes has no intercept
        return [constant | entries for entries in entries_of(rows)]

    def step(self, rows: Any, targets: NDArray[Any]) -> NDArray[Any]:
        said, model = [], self._model
        if not self.classes:
            for x, y in zip(rows, targets.tolist(), strict=True):
                said.append(model.predict_one(x))
                model.learn_one(x, y)
            return np.array(said)
        codes = range(len(self.classes))
        for x, y in zip(rows, targets.tolist(), strict=True):
            told = model.predict_proba_one(x)
            said.append([told.get(code, 0.0) for code in codes])
            model.learn_one(x, bool(y) if len(codes) == 2 else y)
        return even_if_empty(np.array(said, dtype=np.float64).reshape(-1, len(codes)))


class StochasticGradient(Contender):
    """scikit-learn's, a few rows per call: they are predicted, then learnt."""

    name = f"scikit-learn SGD, default, {SGD_ROWS} rows a call"
    package = "sklearn"

    def __init__(self, stream: Stream) -> None:
        from sklearn.linear_model import SGDClassifier, SGDRegressor  # noqa: PLC0415  # a peer

        super().__init__(stream)
        classifier, numbers = SGDClassifier(loss="log_loss", random_state=0), SGDRegressor(random_state=0)
        self._model, self._begun = classifier if self.classes else numbers, False

    def told(self, rows: Matrix | SparseRows) -> Any:
        if not isinstance(rows, SparseRows):
            return rows
        from scipy.sparse import csr_matrix  # noqa: PLC0415  # for sparse rows

        return csr_matrix((rows.values, rows.columns, rows.starts), shape=rows.shape)

    def step(self, rows: Any, targets: NDArray[Any]) -> NDArray[Any]:
        codes, said = np.arange(len(self.classes)), []
        for start in range(0, len(targets), SGD_ROWS):
            part, came = rows[start : start + SGD_ROWS], targets[start : start + SGD_ROWS]
            if self._begun:
                said.append(self._model.predict_proba(part) if self.classes else self._model.predict(part))
            elif self.classes:
                said.append(np.full((len(came), len(codes)), 1.0 / len(codes)))
            else:
                said.append(np.zeros(len(came)))
            more = {"classes": codes} if self.classes else {}
            self._model.partial_fit(part, came, **more)
            self._begun = True
        return np.concatenate(said)


class VowpalWabbit(Contender):
    """One run over a file of its text, which prints what it says of each row before it learns it."""

    name = "Vowpal Wabbit, default"
    package = "vowpalwabbit"

    def step(self, rows: Any, targets: NDArray[Any]) -> NDArray[Any]:
        from vowpalwabbit import Workspace  # noqa: PLC0415  # a peer

        options = "--loss_function squared"
        if self.classes:
            several = f"--oaa {len(self.classes)} --probabilities" if len(self.classes) > 2 else "--link logistic"
            options = f"--loss_function logistic {several}"
        with tempfile.TemporaryDirectory() as name:
            text, said = Path(name) / "rows.vw", Path(name) / "said"
            text.write_text(self._lines(rows, targets), encoding="ascii")
            self.seconds = -time.process_time()
            Workspace(f"-d {text} -p {said} {options} --quiet").finish()
            self.seconds += time.process_time()
            return self._said(said.read_text(encoding="ascii").splitlines())

    def _lines(self, rows: Matrix | SparseRows, targets: NDArray[Any]) -> str:
        labels = targets.tolist()
        if self.classes:
            labels = [2 * code - 1 for code in labels] if len(self.classes) == 2 else [code + 1 for code in labels]
        told = (" ".join(f"{name}:{value:.9g}" for name, value in row.items()) for row in entries_of(rows))
        return "".join(f"{label} | {features}\n" for label, features in zip(labels, told, strict=True))

    def _said(self, lines: Sequence[str]) -> NDArray[Any]:
        if len(self.classes) > 2:
            return np.array([[float(pair.split(":")[1]) for pair in line.split()] for line in lines])
        second = np.array([float(line) for line in lines])
        return np.column_stack([1.0 - second, second]) if self.classes else second


def known_set() -> Stream:
    """Breast cancer, which comes with scikit-learn, in an order drawn once for all."""
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415  # when it is asked for

    rows, targets = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(targets))
    return Stream(rows[order], targets[order], [0, 1], "binary")


CONTENDERS: tuple[type[Contender], ...] = (Ours, River, StochasticGradient, VowpalWabbit)


def race(stream: Stream) -> list[Result]:
    """All that are installed, in turns of a thousand rows; Vowpal Wabbit has one of its own."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  # it comes with scikit-learn

    told = stream if isinstance(stream.rows, SparseRows) else stream._replace(rows=in_running_units(stream.rows))
    there = [kind for kind in CONTENDERS if not kind.missing()]
    results = {kind: Result(kind.name, np.zeros(0), 0.0, kind.missing()) for kind in CONTENDERS}
    with threadpool_limits(1):
        for kind in there:
            _turn(kind(stream), (stream if kind is Ours else told).part(slice(0, WARM_UP)))
        taking_turns = [kind for kind in there if kind is not VowpalWabbit]
        contenders = [kind(stream) for kind in taking_turns]
        parts: list[list[NDArray[Any]]] = [[] for _ in contenders]
        seconds = [0.0] * len(contenders)
        for start in range(0, len(stream.targets), CHUNK):
            for place, one in enumerate(contenders):
                part = (stream if isinstance(one, Ours) else told).part(slice(start, start + CHUNK))
                said, spent = _turn(one, part)
                parts[place].append(said)
                seconds[place] += spent
        for kind, some, spent in zip(taking_turns, parts, seconds, strict=True):
            results[kind] = Result(kind.name, np.concatenate(some), spent)
        if VowpalWabbit in there:
            last = VowpalWabbit(told)
            results[VowpalWabbit] = Result(last.name, last.step(told.rows, told.targets), last.seconds)
    return list(results.values())


def _turn(one: Contender, part: Stream) -> tuple[NDArray[Any], float]:
    rows = one.told(part.rows)
    started = time.process_time()
    said = one.step(rows, part.targets)
    return said, time.process_time() - started


def entries_of(rows: Matrix | SparseRows) -> list[dict[str, float]]:
    """What is not zero in each row, by column."""
    if not isinstance(rows, SparseRows):
        return [{str(at): row[at] for at in np.flatnonzero(row).tolist()} for row in rows]
    parts = [slice(int(a), int(b)) for a, b in zip(rows.starts[:-1], rows.starts[1:], strict=True)]
    return [
        {str(column): value for column, value in zip(rows.columns[p].tolist(), rows.values[p].tolist(), strict=True)}
        for p in parts
    ]


def even_if_empty(given: Matrix) -> Matrix:
    """Where nothing was said yet, all classes are as probable."""
    given[given.sum(axis=1) == 0.0] = 1.0 / given.shape[1]
    return given


def in_running_units(rows: Matrix) -> Matrix:
    """Each column less its mean so far, over its deviation so far, of which the row itself is a part."""
    known = ~np.isnan(rows)
    origin: Vector = np.array(
        [column[mask][0] if mask.any() else 0.0 for column, mask in zip(rows.T, known.T, strict=True)]
    )
    off = np.where(known, rows - origin, 0.0)
    count = np.maximum(np.cumsum(known, axis=0), 1)
    mean = np.cumsum(off, axis=0) / count
    deviation = np.sqrt(np.maximum(np.cumsum(off**2, axis=0) / count - mean**2, 0.0))
    told: Matrix = np.where(known & (deviation > 0.0), (off - mean) / np.where(deviation > 0.0, deviation, 1.0), 0.0)
    return told
