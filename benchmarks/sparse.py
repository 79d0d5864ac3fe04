"""Rows of which 40 entries are not zero, in columns of a power law: against scikit-learn, Vowpal Wabbit and River."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from river import linear_model
from scipy.sparse import csr_matrix
from sklearn.linear_model import SGDClassifier

from bayou import Hashing, MomentMatching, OnlineClassifier, Probit, SparseDiagonalGaussian, SparseLearner
from bayou.contracts import SparseRows, Vector
from benchmarks import vowpal
from benchmarks.report import Result, against
from benchmarks.single import learn_each
from benchmarks.timing import Contender, Effort, microseconds_per_example

BATCH = 1000
ENTRIES = 40
ROWS = 200_000
ROUNDS = 5  # a round takes seconds
OURS = "bayou Probit x sparse diagonal, float32"
GOALS = {
    "scikit-learn SGD, one call, no shuffling": 1.5,
    "scikit-learn SGD, partial_fit of 1,000 rows": 7.0,
    "VW from its cache": 10.0,
}


class Sparse(NamedTuple):
    """Rows in single precision, what all like best, and signs."""

    rows: csr_matrix
    signs: Vector


def sparse(effort: Effort) -> Iterator[Result]:
    effort = effort._replace(rounds=min(effort.rounds, ROUNDS))
    for bits in (18, 22):
        data = stream(effort.examples(ROWS, least=2 * BATCH), bits)
        with tempfile.TemporaryDirectory() as folder:
            contenders = [*ours(data), *sgd(data), *of_river(data), *of_vowpal(data, bits, Path(folder))]
            times = microseconds_per_example(contenders, effort)
        yield from against("sparse", f"2^{bits} columns", times, OURS, GOALS)
        if not vowpal.is_there():
            yield Result("sparse", f"2^{bits} columns", f"VW: {vowpal.ABSENT}")


def stream(n_rows: int, bits: int) -> Sparse:
    """The frequency of a column is inverse to its rank. One weight in ten is not zero; half of a score is noise."""
    random = np.random.default_rng(bits)
    ranks = distinct(n_rows, 2**bits, random)
    columns = (ranks * 0x9E3779B1 + 12345) % 2**bits  # an odd factor: the frequent ones are not neighbours
    columns.sort(axis=1)  # as scipy has them
    values = random.normal(size=(n_rows, ENTRIES)).astype(np.float32)
    weights = random.normal(size=2**bits) * (random.random(2**bits) < 0.1)
    scores = np.sum(weights[columns] * values, axis=1) + np.sqrt(0.1 * ENTRIES) * random.normal(size=n_rows)
    starts = np.arange(0, ENTRIES * n_rows + 1, ENTRIES, dtype=np.int32)
    rows = csr_matrix((values.ravel(), columns.ravel().astype(np.int32), starts), shape=(n_rows, 2**bits))
    return Sparse(rows, np.where(scores > 0.0, 1.0, -1.0))


def distinct(n_rows: int, n_columns: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Ranks of a power law, no two alike in a row."""
    ranks = np.zeros((n_rows, ENTRIES), dtype=np.int64)
    again = np.ones(ranks.shape, dtype=bool)
    while again.any():
        ranks[again] = np.exp(np.log(n_columns) * random.random(np.count_nonzero(again))).astype(np.int64)
        ranks.sort(axis=1)
        again[:, 1:] = ranks[:, 1:] == ranks[:, :-1]
        again[:, 0] = False
    return ranks


def ours(data: Sparse) -> list[Contender]:
    """A fresh model is ready before the time begins; once within it, as in a call of `fit`."""
    ones = SparseRows(data.rows.indptr, data.rows.indices, np.empty(0, np.float32), data.rows.shape[1])
    return [
        learner(OURS, data.rows, data.signs),
        learner(f"{OURS}, made in time", data.rows, data.signs, made_in_time=True),
        learner(f"{OURS}, all ones", ones, data.signs),
        learner(OURS.replace("32", "64"), data.rows.astype(np.float64), data.signs, "float64"),
    ]


def learner(name: str, rows: Any, signs: Vector, dtype: str = "float32", *, made_in_time: bool = False) -> Contender:
    def make() -> SparseLearner:
        return SparseLearner(Probit(), SparseDiagonalGaussian(dtype=dtype), MomentMatching(), rows.shape[1])

    def prepare() -> Callable[[], object]:
        if made_in_time:
            return lambda: make().learn_many(rows, signs)
        ready = make()
        return lambda: ready.learn_many(rows, signs)

    return Contender(name, len(signs), prepare)


def sgd(data: Sparse) -> list[Contender]:
    def one_call(**options: Any) -> Callable[[], Callable[[], object]]:
        def prepare() -> Callable[[], object]:
            model = SGDClassifier(loss="log_loss", max_iter=1, tol=None, **options)
            return lambda: model.fit(data.rows, data.signs)

        return prepare

    def in_batches() -> Callable[[], object]:
        model = SGDClassifier(loss="log_loss")
        batches = [(data.rows[k : k + BATCH], data.signs[k : k + BATCH]) for k in range(0, len(data.signs), BATCH)]
        model.partial_fit(*batches[0], classes=[-1.0, 1.0])

        def work() -> None:
            for rows, signs in batches:
                model.partial_fit(rows, signs)

        return work

    n_rows = len(data.signs)
    return [
        Contender("scikit-learn SGD, one call, no shuffling", n_rows, one_call(shuffle=False)),
        Contender("scikit-learn SGD, one call, its defaults", n_rows, one_call()),
        Contender("scikit-learn SGD, partial_fit of 1,000 rows", n_rows, in_batches),
    ]


def of_river(data: Sparse) -> list[Contender]:
    count = min(len(data.signs) // 50, 4000)

    def contender(kind: type[Any]) -> Contender:
        def prepare() -> Callable[[], object]:
            columns = data.rows.indices[: ENTRIES * count].reshape(count, ENTRIES).tolist()
            values = data.rows.data[: ENTRIES * count].reshape(count, ENTRIES).tolist()
            dicts = (dict(zip(*row, strict=True)) for row in zip(columns, values, strict=True))
            examples = list(zip(dicts, (data.signs[:count] > 0.0).tolist(), strict=True))
            model = kind()
            return lambda: learn_each(model, examples)

        return Contender(f"River {kind.__name__}, learn_one", count, prepare)

    return [contender(linear_model.LogisticRegression), contender(linear_model.AdPredictor)]


def of_vowpal(data: Sparse, bits: int, folder: Path) -> list[Contender]:
    if not vowpal.is_there():
        return []
    text, cache = folder / "rows.txt", folder / "rows.cache"
    vowpal.write(text, data.rows, data.signs > 0.0)
    always = f"-d {text} -b {bits} --loss_function logistic"
    vowpal.run(f"{always} --cache_file {cache}")  # which makes it
    runs = {
        "VW from its cache": f"{always} --cache_file {cache}",
        "VW --sgd from its cache": f"{always} --cache_file {cache} --sgd",
        "VW from text": always,
    }
    return [Contender(name, len(data.signs), vowpal.a_run(options)) for name, options in runs.items()]


def hashed(effort: Effort) -> Iterator[Result]:
    """Dicts of 40 categories of 10 to 2^18 values, a call each. River gets a key for each, made beforehand."""
    count = effort.examples(4000)
    random = np.random.default_rng(0)
    most = np.geomspace(10.0, 2.0**18, ENTRIES)
    ranks = np.exp(np.log(most) * random.random((count, ENTRIES))).astype(np.int64).tolist()  # power laws again
    fields = [f"field_{j}" for j in range(ENTRIES)]
    labels = [bool(random.random() < 0.3 + 0.4 * (row[0] % 2)) for row in ranks]

    def ours_on(make: Callable[[], Any]) -> Callable[[], Callable[[], object]]:
        def prepare() -> Callable[[], object]:
            dicts = [dict(zip(fields, [f"{rank:x}" for rank in row], strict=True)) for row in ranks]
            return ready(make(), list(zip(dicts, labels, strict=True)))

        return prepare

    def theirs_on(make: Callable[[], Any]) -> Callable[[], Callable[[], object]]:
        def prepare() -> Callable[[], object]:
            dicts = [{f"{name}={rank:x}": 1.0 for name, rank in zip(fields, row, strict=True)} for row in ranks]
            return ready(make(), list(zip(dicts, labels, strict=True)))

        return prepare

    name = "bayou OnlineClassifier, hashed"
    times = microseconds_per_example(
        [
            Contender(name, count, ours_on(lambda: OnlineClassifier(encoder=Hashing()))),
            Contender("River LogisticRegression", count, theirs_on(linear_model.LogisticRegression)),
            Contender("River AdPredictor", count, theirs_on(linear_model.AdPredictor)),
        ],
        effort,
    )
    goals = {"River LogisticRegression": 2.0, "River AdPredictor": 5.0}
    yield from against("hashed", f"{ENTRIES} categories", times, name, goals)


def ready(model: Any, examples: list[tuple[Any, Any]]) -> Callable[[], object]:
    for example in examples[:10]:  # both classes are known, buffers are made
        model.learn_one(*example)
    return lambda: learn_each(model, examples)
