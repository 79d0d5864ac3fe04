"""How good one pass over real sparse rows is: predictions made before each row was learnt, beside the peers'.

The folder holds sets in the format of libsvm, one row per line: ``a9a`` with ``a9a.t`` to test on, and ``w8a``
(www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets). Everyone has its defaults.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from river import linear_model
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression, SGDClassifier

from bayou import OnlineClassifier, SparseDiagonalGaussian
from bayou.contracts import Vector
from benchmarks import vowpal
from benchmarks.report import Result
from benchmarks.timing import Effort

FOLDER = "BAYOU_SPARSE_DATA"
SETS = {"a9a": 123, "w8a": 300}
SORTED = {"w8a"}  # three runs of equal labels: who repeats the last one is wrong twice
MOST = 1.0 - 1e-12  # of certainty: what River allows itself


class Rows(NamedTuple):
    """Rows and whether each is of the second class."""

    rows: csr_matrix
    positive: Vector


class Passed(NamedTuple):
    """Probabilities of the second class: of each row before it was learnt, and of the rows to test on after all."""

    before: Vector
    after: Vector


Way = Callable[[Rows, Rows], Passed]


def quality(effort: Effort) -> Iterator[Result]:
    """Log loss and accuracy of one pass."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        yield Result("quality", f"skipped: set {FOLDER} to the folder of a9a and w8a", "")
        return
    for name, n_columns in SETS.items():
        if not (Path(folder) / name).is_file():
            yield Result("quality", f"skipped: there is no {name} in the folder", "")
            continue
        whole = read(Path(folder) / name, n_columns)
        tested = Path(folder) / f"{name}.t"
        unseen = read(tested, n_columns) if tested.is_file() else Rows(whole.rows[:0], whole.positive[:0])
        yield from of_order(name, first(whole, effort), unseen)
        if name in SORTED:
            yield from of_order(f"{name}, shuffled", first(shuffled(whole), effort), unseen)


def of_order(name: str, learnt: Rows, unseen: Rows) -> Iterator[Result]:
    for contender, way in WAYS.items():
        if contender.startswith("VW") and not vowpal.is_there():
            yield Result("quality", name, f"{contender}: {vowpal.ABSENT}")
            continue
        start = time.process_time()
        passed = way(learnt, unseen)
        spent = 1e6 * (time.process_time() - start) / len(learnt.positive)
        yield from scores(name, contender, spent, learnt, unseen, passed)


def scores(name: str, contender: str, spent: float, learnt: Rows, unseen: Rows, passed: Passed) -> Iterator[Result]:
    rows = f"{len(learnt.positive):,} rows"
    when = "all, after" if contender.startswith("batch") else "before each"
    yield Result("quality", f"{name}, {rows}", f"{contender}: {when}", spent, log_loss(learnt, passed.before), "nats")
    yield Result("quality", f"{name}, {rows}", f"{contender}: {when}", None, accuracy(learnt, passed.before), "percent")
    if len(unseen.positive):
        test = f"{name}.t, {len(unseen.positive):,} rows"
        yield Result("quality", test, contender, None, log_loss(unseen, passed.after), "nats")
        yield Result("quality", test, contender, None, accuracy(unseen, passed.after), "percent")


def read(path: Path, n_columns: int) -> Rows:
    rows, labels = load_svmlight_file(str(path), n_features=n_columns)
    return Rows(csr_matrix(rows), labels > 0.0)


def first(data: Rows, effort: Effort) -> Rows:
    """As many as the effort asks for: all of them, usually."""
    count = effort.examples(len(data.positive), least=min(len(data.positive), 200))
    return Rows(data.rows[:count], data.positive[:count])


def shuffled(data: Rows) -> Rows:
    order = np.random.default_rng(0).permutation(len(data.positive))
    return Rows(data.rows[order], data.positive[order])


def log_loss(data: Rows, probabilities: Vector) -> float:
    certain = np.clip(probabilities, 1.0 - MOST, MOST)
    return float(-np.mean(np.log(np.where(data.positive, certain, 1.0 - certain))))


def accuracy(data: Rows, probabilities: Vector) -> float:
    return 100.0 * float(np.mean((probabilities > 0.5) == data.positive))


def by_bayou(**options: Any) -> Way:
    def way(learnt: Rows, unseen: Rows) -> Passed:
        model = OnlineClassifier(**options)
        before = model.learn_many(learnt.rows, learnt.positive, classes=[False, True])[:, 1]
        return Passed(before, probabilities(model, unseen))

    return way


def by_sgd(learnt: Rows, unseen: Rows) -> Passed:
    """A row per call: only so does every prediction precede what is learnt from its label."""
    model = SGDClassifier(loss="log_loss", random_state=0)
    before = np.full(len(learnt.positive), 0.5)
    starts, columns, values = learnt.rows.indptr, learnt.rows.indices, learnt.rows.data
    for t, label in enumerate(learnt.positive):
        if t:
            told = slice(starts[t], starts[t + 1])
            before[t] = expit(model.coef_[0, columns[told]] @ values[told] + model.intercept_[0])
        model.partial_fit(learnt.rows[t], [label], classes=[False, True])
    return Passed(before, probabilities(model, unseen))


def by_batch(learnt: Rows, unseen: Rows) -> Passed:
    model = LogisticRegression(max_iter=10_000).fit(learnt.rows, learnt.positive)
    return Passed(probabilities(model, learnt), probabilities(model, unseen))


def probabilities(model: Any, data: Rows) -> Vector:
    return model.predict_proba(data.rows)[:, 1] if len(data.positive) else np.empty(0)


def by_adpredictor(learnt: Rows, unseen: Rows) -> Passed:
    model = linear_model.AdPredictor()
    before = []
    for x, y in zip(dicts(learnt), learnt.positive.tolist(), strict=True):
        before.append(model.predict_proba_one(x)[True])
        model.learn_one(x, y)
    return Passed(np.array(before), np.array([model.predict_proba_one(x)[True] for x in dicts(unseen)]))


def dicts(data: Rows) -> Iterator[dict[int, float]]:
    starts = data.rows.indptr
    for t in range(len(data.positive)):
        told = slice(starts[t], starts[t + 1])
        yield dict(zip(data.rows.indices[told].tolist(), data.rows.data[told].tolist(), strict=True))


def by_vowpal(options: str) -> Way:
    """VW prints what it predicts of a row before it learns it; what it then knows is tested in a run of its own."""

    def way(learnt: Rows, unseen: Rows) -> Passed:
        with tempfile.TemporaryDirectory() as folder:
            told, model = Path(folder) / "told", Path(folder) / "model"
            before = Path(folder) / "before"
            vowpal.write(told, learnt.rows, learnt.positive)
            always = "--loss_function logistic --link logistic -b 18"
            vowpal.run(f"-d {told} -p {before} -f {model} {always} {options}")
            after = np.empty(0)
            if len(unseen.positive):
                asked = Path(folder) / "asked"
                vowpal.write(asked, unseen.rows, unseen.positive)
                vowpal.run(f"-d {asked} -t -i {model} -p {Path(folder) / 'after'}")
                after = np.loadtxt(Path(folder) / "after")
            return Passed(np.loadtxt(before), after)

    return way


WAYS: dict[str, Way] = {
    "bayou OnlineClassifier": by_bayou(),
    "bayou, sparse diagonal": by_bayou(posterior=SparseDiagonalGaussian(prior_variance=0.2)),
    "scikit-learn SGDClassifier": by_sgd,
    "VW": by_vowpal(""),
    "VW --coin": by_vowpal("--coin"),
    "River AdPredictor": by_adpredictor,
    "batch LogisticRegression": by_batch,
}
