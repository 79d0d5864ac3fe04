"""Many replicas of production learners, each with a teacher of its own: means and standard errors at some times.

A replica draws a teacher, then examples, and every student of the replica learns the same ones: differences between
students are then much better known than the students. Replicas are spread over threads (the compiled passes and NumPy's
generators let go of the interpreter); each has its own child of one seed, so the numbers do not depend on the threads.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Posterior, Rule, ScalarLikelihood, Vector
from bayou.errors import ImproperBelief
from bayou.learner import Learner
from bayou.numerics.angles import angle
from bayou.rules import MomentMatching

Generator: TypeAlias = np.random.Generator

NUMBERS_AT_ONCE = 250_000  # features drawn at a time: 2 MB, which stay in the cache until they are learnt


class Student(NamedTuple):
    """A point of the grid likelihood x posterior x rule."""

    likelihood: ScalarLikelihood
    posterior: Posterior[Any]
    rule: Rule = MomentMatching()


class Pupil:
    """A student with a belief, which learns by the compiled pass of a `Learner` without the checks of its input.

    They cost more than the few examples between two measurements, and threads cannot share them. ``log_evidence`` is
    the log probability that it gave to the targets it has learnt; NaN, if its rule does not compute it.
    """

    def __init__(self, student: Student, n_features: int) -> None:
        self.student = student
        self._learner = Learner(*student, n_features)
        self.belief: Any = self._learner.belief
        self._prior = [array.copy() for array in self.belief]
        self._record = np.empty((0, student.posterior.n_records))
        self.log_evidence = 0.0

    def reset(self) -> None:
        """Know nothing again."""
        for array, initial in zip(self.belief, self._prior, strict=True):
            array[...] = initial
        self.log_evidence = 0.0

    def learn(self, rows: Matrix, targets: Vector) -> None:
        """Learn from the rows in order."""
        n = len(rows)
        if n > len(self._record):
            self._record = np.empty((n, self._record.shape[1]))
        if self._learner.learn_unchecked(rows, targets, self._record[:n]) < n:
            raise ImproperBelief(f"{self.student!r} has no finite latent for an example that was drawn.")
        self.log_evidence += float(self._record[:n, -1].sum())

    def variances(self) -> Vector:
        """Variance of each weight."""
        return self.student.posterior.variances(self.belief)

    def covariance(self) -> Matrix:
        """Covariance of the weights."""
        return self.student.posterior.covariance(self.belief)


class World(Protocol):
    """What examples come from: a teacher for each replica, and rows and targets that it makes."""

    @property
    def n_features(self) -> int:
        """How many columns rows have."""

    def teacher(self, rng: Generator) -> Vector:
        """What a replica's examples are made with."""

    def examples(self, rng: Generator, teacher: Vector, n: int) -> tuple[Matrix, Vector]:
        """So many rows and targets."""


@dataclass(frozen=True)
class Signs:
    """y = sign(w . x + noise_scale n) with x and n standard normal: the noisy perceptron, and without noise the sharp.

    ``draw_weights`` makes the teacher w of a replica.
    """

    n_features: int
    noise_scale: float = 0.0
    draw_weights: Callable[[Generator, int], Vector] = field(default=lambda rng, n: rng.standard_normal(n))

    def teacher(self, rng: Generator) -> Vector:
        """The weights that a replica's examples are made with."""
        return self.draw_weights(rng, self.n_features)

    def examples(self, rng: Generator, teacher: Vector, n: int) -> tuple[Matrix, Vector]:
        """So many rows and targets."""
        drawn = rng.standard_normal(n * (self.n_features + 1))
        rows, noise = drawn[n:].reshape(n, self.n_features), drawn[:n]
        fields = np.einsum("ij,j->i", rows, teacher)  # not `@`: it would take a second core, and round as it likes
        fields += self.noise_scale * noise
        return rows, np.where(fields > 0.0, 1.0, -1.0)


@dataclass(frozen=True)
class Threshold:
    """y = sign(x - threshold + noise_scale n), x uniform in [-1, 1]: Opper's one-dimensional toy.

    As features (x, -1), for a student who knows that the first weight is 1.
    """

    threshold: float
    noise_scale: float
    n_features: int = 2

    def teacher(self, rng: Generator) -> Vector:
        """The same in every replica."""
        return np.array([1.0, self.threshold])

    def examples(self, rng: Generator, teacher: Vector, n: int) -> tuple[Matrix, Vector]:
        """So many rows and targets."""
        rows = np.column_stack([rng.uniform(-1.0, 1.0, n), np.full(n, -1.0)])
        fields = rows[:, 0] - self.threshold + self.noise_scale * rng.standard_normal(n)
        return rows, np.where(fields > 0.0, 1.0, -1.0)


@dataclass(frozen=True)
class Numbers:
    """y = w . x + noise_scale n, x constant or standard normal: linear regression."""

    weights: tuple[float, ...]
    noise_scale: float
    constant: bool = False

    @property
    def n_features(self) -> int:
        """How many weights there are."""
        return len(self.weights)

    def teacher(self, rng: Generator) -> Vector:
        """The same in every replica."""
        return np.array(self.weights)

    def examples(self, rng: Generator, teacher: Vector, n: int) -> tuple[Matrix, Vector]:
        """So many rows and targets."""
        shape = (n, self.n_features)
        rows = np.ones(shape) if self.constant else rng.standard_normal(shape)
        return rows, np.einsum("ij,j->i", rows, teacher) + self.noise_scale * rng.standard_normal(n)


Measure: TypeAlias = Callable[[Pupil, Vector, Generator], Sequence[float]]


class Estimate(NamedTuple):
    """A mean over replicas and its standard error."""

    mean: float
    standard_error: float

    def __mul__(self, factor: float) -> Estimate:  # type: ignore[override]  # a number times a number, not a longer tuple
        return Estimate(self.mean * factor, self.standard_error * abs(factor))


@dataclass(frozen=True)
class Ensemble:
    """What was measured: ``values[replica, student, time, quantity]``."""

    times: tuple[int, ...]
    values: NDArray[np.float64]

    @property
    def mean(self) -> NDArray[np.float64]:
        """Per student, time and quantity."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """Of the mean, per student, time and quantity."""
        return np.asarray(self.values.std(axis=0, ddof=1) / math.sqrt(len(self.values)))

    def at(self, time: int, student: int = 0, quantity: int = 0) -> Estimate:
        """One number of it."""
        place = student, self.times.index(time), quantity
        return Estimate(float(self.mean[place]), float(self.standard_error[place]))


def angle_error(pupil: Pupil, teacher: Vector) -> float:
    """Probability that student and noiseless teacher disagree about a standard normal input; (9.3) of Opper.

    In one compiled call: threads get in each other's way wherever they come back to the interpreter.
    """
    return angle(pupil.belief.mean, teacher) / math.pi


def errors_only(pupil: Pupil, teacher: Vector, rng: Generator) -> tuple[float]:
    """The measurement of most learning curves."""
    return (angle_error(pupil, teacher),)


def run_replicas(
    students: Sequence[Student],
    world: World,
    times: Sequence[int],
    n_replicas: int,
    *,
    measure: Measure = errors_only,
    seed: int = 0,
    threads: int | None = None,
    done: Callable[[], None] | None = None,
) -> Ensemble:
    """Let every student of so many replicas learn, and measure each at these times; ``done`` is called per replica."""
    if any(later <= earlier for earlier, later in pairwise((0, *times))):
        raise ValueError(f"`times` must be positive and increase; got {tuple(times)}.")
    workers = os.cpu_count() or 1 if threads is None else threads
    crews = [[Pupil(student, world.n_features) for student in students] for _ in range(workers)]
    rng = np.random.default_rng(seed)
    teacher = world.teacher(rng)
    for pupil in crews[0]:  # what has to be compiled is compiled here, once, not in every thread
        pupil.learn(*world.examples(rng, teacher, 1))
    n_measured = len(measure(crews[0][0], teacher, rng))
    values = np.empty((n_replicas, len(students), len(times), n_measured))
    seeds = np.random.SeedSequence(seed).spawn(n_replicas)
    waiting = iter(range(n_replicas))  # shared: whoever is free takes the next

    def work(crew: list[Pupil]) -> None:
        for replica in waiting:
            rng = np.random.default_rng(seeds[replica])
            teacher = world.teacher(rng)
            for pupil in crew:
                pupil.reset()
            for rows, targets, place in stretches(world, rng, teacher, times):
                for pupil in crew:
                    pupil.learn(rows, targets)
                if place is not None:
                    for which, pupil in enumerate(crew):
                        values[replica, which, place] = measure(pupil, teacher, rng)
            if done is not None:
                done()

    with ThreadPoolExecutor(workers) as pool:
        for share in [pool.submit(work, crew) for crew in crews]:
            share.result()
    return Ensemble(tuple(times), values)


def stretches(
    world: World, rng: Generator, teacher: Vector, times: Sequence[int]
) -> Iterator[tuple[Matrix, Vector, int | None]]:
    """The examples of a replica, cut where there is something to measure, with the place of that time among all.

    They are drawn by as many as fit in the cache, so that what is drawn does not depend on when it is measured.
    """
    size = max(NUMBERS_AT_ONCE // world.n_features, 1)
    for first in range(0, times[-1], size):
        last = min(first + size, times[-1])
        rows, targets = world.examples(rng, teacher, last - first)
        for start, end in pairwise([first, *(t for t in times if first < t < last), last]):
            part = slice(start - first, end - first)
            yield rows[part], targets[part], times.index(end) if end in times else None


def times_of(alphas: Sequence[float], n_weights: int) -> tuple[int, ...]:
    """After how many examples so many per weight were seen."""
    return tuple(round(alpha * n_weights) for alpha in alphas)
