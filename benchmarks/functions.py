"""Functions of one input: a step of a polynomial against River and padasip, and the cost of many functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from padasip.filters import FilterRLS

from bayou import (
    Fourier,
    FunctionNorm,
    Gaussian,
    GeometricStiffness,
    Learner,
    LearntStiffness,
    MomentMatching,
    Polynomials,
)
from bayou.contracts import Basis, Matrix, Vector
from benchmarks.dense import bayesian_regression, ours
from benchmarks.report import Result, against
from benchmarks.timing import Contender, Effort, microseconds_per_example

DOMAIN = (0.0, 3.0)
POLYNOMIALS = Polynomials(6, DOMAIN)
WANTED = 0.5  # microseconds per example
VALUES = 2_000_000  # of functions, in the rows of a round


def functions(effort: Effort) -> Iterator[Result]:
    yield from step(effort)
    for order in (50, 500, 5_000, 50_000):
        yield from growth(effort, Fourier(order, DOMAIN))


def step(effort: Effort) -> Iterator[Result]:
    """A polynomial of order 6: its features given, as they are to the peers, and computed from the inputs."""
    x, targets = stream(effort.examples(50_000))
    rows = POLYNOMIALS.encode(x)
    first, second = "bayou, learnt stiffness", "bayou, geometric stiffness"
    times = microseconds_per_example(
        [
            ours(first, Gaussian(), FunctionNorm(LearntStiffness(), POLYNOMIALS), rows, targets),
            ours(second, Gaussian(), FunctionNorm(GeometricStiffness(0.3), POLYNOMIALS), rows, targets),
            with_encoding(f"{first}, and encoding", POLYNOMIALS, x, targets),
            Contender("River BayesianLinearRegression", *bayesian_regression(rows, targets, effort)),
            Contender("padasip FilterRLS", *least_squares(rows, targets, effort)),
        ],
        effort,
    )
    for result in against("functions", "order 6", times, first, {}):
        if result.contender.startswith("bayou"):
            yield replace(result, figure=result.microseconds, unit="step", goal=WANTED)
        else:
            yield result


def growth(effort: Effort, basis: Basis) -> Iterator[Result]:
    """Sines and cosines over a whole period: nothing but their values is formed."""
    x, targets = stream(effort.examples(VALUES // basis.size, least=10))
    rows = basis.encode(x)
    times = microseconds_per_example(
        [
            ours("bayou, learnt stiffness", Gaussian(), FunctionNorm(LearntStiffness(), basis), rows, targets),
            with_encoding("bayou, learnt stiffness, and encoding", basis, x, targets),
        ],
        effort,
    )
    for name, microseconds in times.items():
        each = 1e3 * microseconds / basis.size
        yield Result("functions", f"{basis.size:,} functions", name, microseconds, each, "nanoseconds")


def stream(n: int) -> tuple[Matrix, Vector]:
    """Inputs all over the domain, and a curve with noise: x exp(-x^2)."""
    random = np.random.default_rng(0)
    x = random.uniform(*DOMAIN, n)
    return x[:, None], x * np.exp(-(x**2)) + random.uniform(-0.05, 0.05, n)


def with_encoding(name: str, basis: Basis, x: Matrix, targets: Vector) -> Contender:
    def prepare() -> Callable[[], object]:
        learner = Learner(Gaussian(), FunctionNorm(LearntStiffness(), basis), MomentMatching(), basis.size)
        return lambda: learner.learn_many(basis.encode(x), targets)

    return Contender(name, len(x), prepare)


def least_squares(rows: Matrix, targets: Vector, effort: Effort) -> tuple[int, Callable[[], Callable[[], object]]]:
    """Recursive least squares with forgetting, an array and a number per call."""
    count = min(len(rows), effort.examples(5_000, 50))

    def prepare() -> Callable[[], object]:
        model = FilterRLS(n=rows.shape[1], mu=0.9)
        examples = list(zip(list(rows[:count]), targets[:count].tolist(), strict=True))

        def work() -> None:
            adapt = model.adapt
            for x, y in examples:
                adapt(y, x)

        return work

    return count, prepare
