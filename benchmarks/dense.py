"""Rows of numbers in one call: diagonal against scikit-learn, full covariance against River and dgemm, low rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from river import linear_model
from sklearn.linear_model import SGDClassifier

from bayou import DiagonalGaussian, FullGaussian, Gaussian, Learner, LowRankGaussian, MomentMatching, Probit
from bayou.contracts import Likelihood, Matrix, Posterior, Vector
from benchmarks.machine import dgemm, gigaflops
from benchmarks.report import Result, against
from benchmarks.timing import Contender, Effort, microseconds_per_example

BATCH = 1000


def diagonal(effort: Effort) -> Iterator[Result]:
    for n_features in (10, 100, 1000):
        rows, signs, _ = stream(effort.examples(min(50_000, 5_000_000 // n_features), least=2 * BATCH), n_features)
        times = microseconds_per_example(
            [
                ours("bayou Probit x diagonal", Probit(), DiagonalGaussian(), rows, signs),
                Contender("scikit-learn SGD, partial_fit of 1,000 rows", len(rows), sgd_in_batches(rows, signs)),
                Contender("scikit-learn SGD, one call, no shuffling", len(rows), sgd_in_one_call(rows, signs)),
            ],
            effort,
        )
        goals = {"scikit-learn SGD, partial_fit of 1,000 rows": 8.0}
        yield from against("diagonal", f"{n_features} features", times, "bayou Probit x diagonal", goals)


def full(effort: Effort) -> Iterator[Result]:
    peer = "River BayesianLinearRegression"
    for n_features in (10, 50, 100, 500):
        rows, signs, targets = stream(
            effort.examples(max(min(50_000, 10_000_000 // n_features**2), 500), 100), n_features
        )
        times = microseconds_per_example(
            [
                ours("bayou Gaussian x full", Gaussian(), FullGaussian(), rows, targets),
                ours("bayou Probit x full", Probit(), FullGaussian(), rows, signs),
                Contender(peer, *bayesian_regression(rows, targets, effort)),
            ],
            effort,
        )
        yield from against("full", f"{n_features} features", times, "bayou Gaussian x full", {peer: 15.0})
    yield from rates(effort, n_features=200, usual=1000, goal=0.4)
    for n_features, usual in ((500, 960), (1000, 480), (2000, 240)):
        yield from rates(effort, n_features, usual, goal=0.7)


def rates(effort: Effort, n_features: int, usual: int, goal: float) -> Iterator[Result]:
    """3 d^2 operations per example: a matrix times a vector, and half of a rank-one update.

    In single precision too, without a goal; the fraction is still that of a product in double precision.
    """
    rows, _, targets = stream(effort.examples(usual), n_features)
    double = ours("bayou Gaussian x full", Gaussian(), FullGaussian(), rows, targets)
    single = ours(
        "bayou Gaussian x full, float32", Gaussian(), FullGaussian(dtype="float32"), rows.astype(np.float32), targets
    )
    times = microseconds_per_example([double, single, dgemm()], effort)
    for name, wanted in ((double.name, goal), (single.name, None)):
        fraction = 3.0 * n_features**2 / times[name] / 1e3 / gigaflops(times["dgemm"])
        yield Result("full", f"{n_features} features", name, times[name], fraction, "fraction", goal=wanted)


def low_rank(effort: Effort) -> Iterator[Result]:
    """The same per feature at all sizes, if cost is linear."""
    for n_features in (1000, 3000, 10_000):
        rows, signs, _ = stream(effort.examples(1_000_000 // n_features, least=50), n_features)
        learner = ours("bayou Probit x rank 10", Probit(), LowRankGaussian(rank=10), rows, signs)
        microseconds = microseconds_per_example([learner], effort)[learner.name]
        figure = 1e3 * microseconds / n_features
        yield Result("low-rank", f"{n_features} features", learner.name, microseconds, figure, "per feature")


def stream(n_rows: int, n_features: int) -> tuple[Matrix, Vector, Vector]:
    """Rows, the signs of a noisy linear function of them, and the function itself."""
    random = np.random.default_rng(n_features)
    rows = random.normal(size=(n_rows, n_features))
    targets = rows @ random.normal(size=n_features) / np.sqrt(n_features) + random.normal(size=n_rows)
    return rows, np.where(targets > 0.0, 1.0, -1.0), targets


def ours(name: str, likelihood: Likelihood, posterior: Posterior, rows: Matrix, targets: Vector) -> Contender:
    def prepare() -> Callable[[], object]:
        learner = Learner(likelihood, posterior, MomentMatching(), rows.shape[1])
        return lambda: learner.learn_many(rows, targets)

    return Contender(name, len(rows), prepare)


def sgd_in_batches(rows: Matrix, signs: Vector) -> Callable[[], Callable[[], object]]:
    def prepare() -> Callable[[], object]:
        model = SGDClassifier(loss="log_loss")
        model.partial_fit(rows[:BATCH], signs[:BATCH], classes=[-1.0, 1.0])

        def work() -> None:
            for start in range(0, len(rows), BATCH):
                model.partial_fit(rows[start : start + BATCH], signs[start : start + BATCH])

        return work

    return prepare


def sgd_in_one_call(rows: Matrix, signs: Vector) -> Callable[[], Callable[[], object]]:
    def prepare() -> Callable[[], object]:
        model = SGDClassifier(loss="log_loss", max_iter=1, tol=None, shuffle=False)
        return lambda: model.fit(rows, signs)

    return prepare


def bayesian_regression(
    rows: Matrix, targets: Vector, effort: Effort
) -> tuple[int, Callable[[], Callable[[], object]]]:
    n_features = rows.shape[1]
    count = min(len(rows), effort.examples(min(5_000, 200_000 // n_features), 50))
    names = [f"x{j}" for j in range(n_features)]

    def prepare() -> Callable[[], object]:
        model = linear_model.BayesianLinearRegression()
        examples = [
            (dict(zip(names, row, strict=True)), y)
            for row, y in zip(rows[:count].tolist(), targets[:count].tolist(), strict=True)
        ]
        model.learn_one(*examples[0])  # makes its arrays

        def work() -> None:
            learn = model.learn_one
            for x, y in examples:
                learn(x, y)

        return work

    return count, prepare
