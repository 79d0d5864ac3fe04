"""Clusters: a stream against the same step in numpy and against River, a batch against scikit-learn; many clusters."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from river import cluster
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from bayou import HarmonyMixture
from bayou.contracts import Matrix, Vector
from benchmarks.report import Result, against
from benchmarks.timing import Contender, Effort, microseconds_per_example

APART = 5.0  # of the nearest centres, in deviations
FEW, MANY = 4, 60  # clusters
MOST_OF_FEW, MOST_OF_MANY = 10, 64  # that may be found
FIRST, CHUNK = 1000, 1000  # rows of a stream before the clock starts, and rows per call
SMALLEST_SHARE = 0.01  # of a component that counts as found
VALUES = 150_000  # in the rows of a batch, beyond which there is one round


class Stream(NamedTuple):
    """Rows and the cluster of each."""

    rows: Matrix
    labels: NDArray[np.intp]


def cluster_streams(effort: Effort) -> Iterator[Result]:
    chunks, dicts = "bayou partial_fit of 1,000 rows", "bayou learn_one, dicts"
    numpy_step, k_means = "the same step in numpy", "River KMeans"
    for d in (2, 5, 10):
        stream = draw(FEW, d, FIRST + effort.examples(20_000, least=CHUNK))
        rows, as_many = stream.rows, f"{chunks} of {FEW} clusters"
        make_dbstream = partial(cluster.DBSTREAM, clustering_threshold=1.5 * np.sqrt(d))  # about a cluster's radius
        times = microseconds_per_example(
            [
                in_chunks(chunks, HarmonyMixture, rows, FIRST),
                in_chunks(as_many, partial(HarmonyMixture, FEW), rows, FIRST),
                by_numpy(numpy_step, stream, effort),
                on_dicts(dicts, HarmonyMixture, rows, effort),
                on_dicts(k_means, partial(cluster.KMeans, n_clusters=FEW, seed=0), rows, effort),
                on_dicts("River DBSTREAM", make_dbstream, rows, effort),
            ],
            effort,
        )
        alone = {name: time for name, time in times.items() if name not in {dicts, as_many, numpy_step}}
        yield from against("cluster-streams", f"{d} columns", alone, chunks, {})
        # Neither of these looks for births or splits: what is compared is the step.
        steps = {name: times[name] for name in (as_many, numpy_step)}
        yield from against("cluster-streams", f"{d} columns, at most {FEW}", steps, as_many, {numpy_step: 20.0})
        each = {name: time for name, time in times.items() if name not in {chunks, as_many, numpy_step}}
        yield from against("cluster-streams", f"{d} columns, dicts", each, dicts, {})


def mixtures(effort: Effort) -> Iterator[Result]:
    sizes = ((1_000, 2), (10_000, 5), (100_000, 10)) if effort.size >= 1.0 else ((500, 2), (5_000, 5))
    for n, d in sizes:
        rows, found = draw(FEW, d, n).rows, dict[str, int]()
        bayesian, by_criterion = "scikit-learn BayesianGaussianMixture", "scikit-learn GaussianMixture, BIC of 1 to 10"
        ours = "bayou HarmonyMixture"
        times = microseconds_per_example(
            [
                fitting(ours, harmony, rows, found),
                fitting(bayesian, bayesian_mixture, rows, found),
                fitting(by_criterion, best_by_criterion, rows, found),
            ],
            effort._replace(rounds=min(effort.rounds, max(VALUES // (n * d), 1))),
        )
        goals = {bayesian: 1.0} if n == 100_000 else {}
        yield from with_counts(against("mixtures", f"{n:,} x {d}", times, ours, goals), found)


def nearest(effort: Effort) -> Iterator[Result]:
    """What it saves that a row is only of the two clusters nearest to it, where there are many."""
    k, n = (MANY, 1_500) if effort.size >= 1.0 else (MANY // 3, 500)
    rows, fitted, found = draw(k, 5, 4 * n).rows, dict[str, HarmonyMixture](), dict[str, int]()
    names = {"bayou, n_nearest=2": 2, "bayou, all clusters": None}

    def fit(name: str, rows: Matrix) -> int:
        fitted[name] = HarmonyMixture(MOST_OF_MANY, n_nearest=names[name]).fit(rows)
        return fitted[name].n_clusters_

    batches = [fitting(name, partial(fit, name), rows[:n], found) for name in names]
    times = microseconds_per_example(batches, effort._replace(rounds=1))
    results = against("nearest", f"{k} clusters, fit", times, next(iter(names)), {})
    yield from with_counts(results, found)
    streams = [in_chunks(name, partial(copy.deepcopy, fitted[name]), rows, n) for name in names]
    times = microseconds_per_example(streams, effort)
    yield from against("nearest", f"{k} clusters, stream", times, next(iter(names)), {})


def with_counts(results: list[Result], found: Mapping[str, int]) -> Iterator[Result]:
    for result in results:
        yield replace(result, contender=f"{result.contender}: {found[result.contender]} found")


def draw(k: int, d: int, n: int) -> Stream:
    """Normal clusters of random shapes and equal shares, the nearest of them just so far apart, in random order.

    The distance of two centres is in deviations under the mean of the two covariances.
    """
    random = np.random.default_rng([k, d, n])
    axes = np.linalg.qr(random.normal(size=(k, d, d)))[0]
    covariance = (axes * np.exp(random.uniform(-1.0, 1.0, size=(k, 1, d)))) @ axes.transpose(0, 2, 1)
    centres = random.normal(size=(k, d))
    i, j = np.triu_indices(k, 1)
    between = centres[i] - centres[j]
    told = np.linalg.solve(0.5 * (covariance[i] + covariance[j]), between[:, :, None])[:, :, 0]
    centres *= APART / np.sqrt(np.sum(between * told, axis=1).min())
    labels = random.integers(k, size=n)
    noise = np.einsum("nij,nj->ni", np.linalg.cholesky(covariance)[labels], random.normal(size=(n, d)))
    return Stream(centres[labels] + noise, labels)


# --- streams


class NumpyMixture:
    """What a row of a stream does to clusters whose number stays, in numpy; all clusters in one operation each.

    The weights are those of `bayou.mixtures.labels`. Nothing is held back, born, merged or split.
    """

    def __init__(self, first: Stream, k: int) -> None:
        member = np.eye(k)[first.labels]
        self.n = member.sum(axis=0)
        self.s1 = member.T @ first.rows
        self.s2 = np.einsum("nk,ni,nj->kij", member, first.rows, first.rows)
        self.unit = np.eye(first.rows.shape[1])
        self.stale = 0
        self.refresh()

    def refresh(self) -> None:
        """Means and inverse Cholesky factors from the sums, and a prior worth one row."""
        n = self.n[:, None]
        self.mean = self.s1 / n
        products = self.s2 - n[:, :, None] * self.mean[:, :, None] * self.mean[:, None, :] + self.unit
        lower = np.linalg.cholesky(products / (n[:, :, None] + 1.0))
        self.whitening = np.linalg.inv(lower)
        self.constant = np.log(self.n / self.n.sum()) - np.log(np.diagonal(lower, 0, 1, 2)).sum(axis=1)

    def learn_one(self, x: Vector) -> None:
        white = (self.whitening @ (x - self.mean)[:, :, None])[:, :, 0]
        joint = self.constant - 0.5 * (white * white).sum(axis=1)
        probability = np.exp(joint - joint.max())
        probability /= probability.sum()
        weight = probability * np.maximum(1.0 + joint - probability @ joint, 0.0)
        weight /= weight.sum()
        self.n += weight
        self.s1 += weight[:, None] * x
        self.s2 += weight[:, None, None] * np.outer(x, x)
        self.stale += 1
        if self.stale == 5:  # as often as in `bayou.mixtures.points`
            self.refresh()
            self.stale = 0


def in_chunks(name: str, make: Callable[[], HarmonyMixture], rows: Matrix, first: int) -> Contender:
    """Calls of `partial_fit` after so many rows, which a new model has learnt before the clock starts."""

    def prepare() -> Callable[[], object]:
        model = make()
        if not hasattr(model, "n_examples_"):
            model.partial_fit(rows[:first])

        def work() -> None:
            for start in range(first, len(rows), CHUNK):
                model.partial_fit(rows[start : start + CHUNK])

        return work

    return Contender(name, len(rows) - first, prepare)


def by_numpy(name: str, stream: Stream, effort: Effort) -> Contender:
    count = effort.examples(2_000)

    def prepare() -> Callable[[], object]:
        model = NumpyMixture(Stream(stream.rows[:FIRST], stream.labels[:FIRST]), FEW)
        rows = list(stream.rows[FIRST : FIRST + count])
        return lambda: learn_each(model, rows)

    return Contender(name, count, prepare)


def on_dicts(name: str, make: Callable[[], Any], rows: Matrix, effort: Effort) -> Contender:
    count = effort.examples(1_000)
    names = [f"feature_{j}" for j in range(rows.shape[1])]

    def prepare() -> Callable[[], object]:
        model = make()
        examples = [dict(zip(names, row, strict=True)) for row in rows[: FIRST + count].tolist()]
        learn_each(model, examples[:FIRST])
        return lambda: learn_each(model, examples[FIRST:])

    return Contender(name, count, prepare)


def learn_each(model: Any, examples: list[Any]) -> None:
    learn = model.learn_one
    for x in examples:
        learn(x)


# --- batches


def fitting(name: str, fit: Callable[[Matrix], int], rows: Matrix, found: dict[str, int]) -> Contender:
    """All rows at once; how many clusters there are is noted."""

    def prepare() -> Callable[[], object]:
        def work() -> None:
            found[name] = fit(rows)

        return work

    return Contender(name, len(rows), prepare)


def harmony(rows: Matrix) -> int:
    return HarmonyMixture(MOST_OF_FEW).fit(rows).n_clusters_


def bayesian_mixture(rows: Matrix) -> int:
    """With its defaults, whether or not its 100 steps are enough."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = BayesianGaussianMixture(n_components=MOST_OF_FEW, random_state=0).fit(rows)
    return int(np.sum(model.weights_ > SMALLEST_SHARE))


def best_by_criterion(rows: Matrix) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models = [GaussianMixture(k, random_state=0).fit(rows) for k in range(1, MOST_OF_FEW + 1)]
    return 1 + int(np.argmin([model.bic(rows) for model in models]))
