"""The examples of the paper, y = x exp(-x^2) + noise with x from 0 to 3, and learners that see them in their own terms.

Learners of one sequence see its inputs as different features: powers of x, or the orthonormal polynomials of a basis.
So these replicas are not those of `bayou.papers.ensembles`, whose students share their rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.encoders import Polynomials
from bayou.learner import Learner
from bayou.likelihoods import Gaussian
from bayou.papers.claims import Effort
from bayou.papers.ensembles import Estimate, Student
from bayou.posteriors import FunctionNorm
from bayou.stiffness import GeometricStiffness

DOMAIN = (0.0, 3.0)
NOISE = 0.05  # uniform, to either side
N_EXAMPLES = 150
SNAPSHOTS = (10, 80, 150)
ORDERS = (4, 6, 10)
START, GROWTH = 0.1, 1.05  # of the stiffness, whose norm is the integral over the domain
GRID: Vector = np.linspace(*DOMAIN, 1000)


def target(x: Vector) -> Vector:
    """(15)."""
    return np.asarray(x * np.exp(-(x**2)))


class Sequences(NamedTuple):
    """Inputs and targets, a row per sequence."""

    x: Matrix
    y: Matrix


def draw_sequences(n: int, seed: int | Sequence[int]) -> Sequences:
    """So many, each with a child of the seed: the first of many are those of few."""
    drawn = np.array([_draw(np.random.default_rng(child)) for child in np.random.SeedSequence(seed).spawn(n)])
    return Sequences(drawn[:, 0], drawn[:, 1])


def _draw(rng: np.random.Generator) -> Matrix:
    x = rng.uniform(*DOMAIN, N_EXAMPLES)
    return np.array([x, target(x) + rng.uniform(-NOISE, NOISE, N_EXAMPLES)])


@dataclass(frozen=True)
class Approach:
    """A student, and what it sees of an input."""

    student: Student
    n_features: int
    encode: Callable[[Vector], Matrix]

    def learner(self) -> Learner:
        """One that knows nothing yet."""
        return Learner(*self.student, n_features=self.n_features)


def on_powers(student: Student, order: int) -> Approach:
    """A polynomial by its coefficients, (14)."""
    return Approach(student, order + 1, lambda x: np.vander(x, order + 1, increasing=True))


def on_polynomials(student: Student, basis: Polynomials) -> Approach:
    """A polynomial by orthonormal ones."""
    return Approach(student, basis.size, lambda x: basis.encode(x[:, None]))


def irma(order: int, domain: tuple[float, float] = DOMAIN) -> Approach:
    """The algorithm of the paper. bayou's norm is a mean over the domain, the paper's the integral over it."""
    stiffness = GeometricStiffness(START * (domain[1] - domain[0]), GROWTH)
    return on_polynomials(Student(Gaussian(), FunctionNorm(stiffness)), Polynomials(order, domain))


def predictions(
    approaches: Sequence[Approach], sequences: Sequences, done: Callable[[], None] | None = None
) -> NDArray[np.float64]:
    """What each says of each target before it is learnt: (approach, sequence, example)."""
    learners = [approach.learner() for approach in approaches]
    said = np.empty((len(approaches), *sequences.x.shape))
    for row, (x, y) in enumerate(zip(*sequences, strict=True)):
        for place, (approach, learner) in enumerate(zip(approaches, learners, strict=True)):
            begin_again(learner)
            said[place, row] = learner.learn_many(approach.encode(x), y).mean
        if done is not None:
            done()
    return said


def snapshots(approach: Approach, sequences: Sequences, grid: Vector) -> Iterator[Matrix]:
    """Per sequence, the function that is learnt, on the grid, after so many examples as `SNAPSHOTS` says: (time, x)."""
    learner, rows = approach.learner(), approach.encode(grid)
    for x, y in zip(*sequences, strict=True):
        begin_again(learner)
        features = approach.encode(x)
        functions = np.empty((len(SNAPSHOTS), grid.size))
        for place, (begin, end) in enumerate(pairwise((0, *SNAPSHOTS))):
            learner.learn_many(features[begin:end], y[begin:end])
            functions[place] = learner.predict_many(rows).mean
        yield functions


def batch_fit(order: int, x: Vector, y: Vector, grid: Vector) -> Vector:
    """Least squares of all examples at once, on the grid; in orthonormal polynomials, which lose no digits."""
    basis = Polynomials(order, DOMAIN)
    weights = np.linalg.lstsq(basis.encode(x[:, None]), y, rcond=None)[0]
    return np.asarray(basis.encode(grid[:, None]) @ weights)


def begin_again(learner: Learner) -> None:
    """Know nothing again."""
    learner.belief = learner.posterior.prior(learner.n_features)


def watched(effort: Effort, n: int) -> Callable[[], None] | None:
    """What to call after each of so many sequences."""
    return None if effort.watch is None else effort.watch(n)


def estimate(values: Vector) -> Estimate:
    """Mean over sequences, and its standard error."""
    return Estimate(float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size)))


def deviation(values: Vector) -> Estimate:
    """Standard deviation over sequences; its standard error, from the fourth moment."""
    centred = values - values.mean()
    variance = float(np.mean(centred**2))
    of_variance = math.sqrt(max(float(np.mean(centred**4)) - variance**2, 0.0) / values.size)
    return Estimate(math.sqrt(variance), of_variance / (2.0 * math.sqrt(variance)))


def median(values: Vector) -> Estimate:
    """Median over sequences; its standard error, from the quantiles one binomial deviation to either side."""
    half = 0.5 / math.sqrt(values.size)
    low, middle, high = np.quantile(values, [0.5 - half, 0.5, 0.5 + half])
    return Estimate(float(middle), float(high - low) / 2.0)
