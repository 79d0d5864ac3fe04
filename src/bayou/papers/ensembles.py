"""Many replicas of production learners, each with a teacher of its own: means and standard errors at some times.

A replica draws a teacher, then examples, and every student of the replica learns the same ones: differences between
students are then much better known than the students. Replicas are spread over threads (the compiled passes and NumPy's
generators let go of the interpreter); each has its own child of one seed, so the numbers do not depend on the threads.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Mask, Matrix, Posterior, Rule, ScalarLikelihood, Vector
from bayou.contracts.fit import check_fit
from bayou.errors import ImproperBelief
from bayou.numerics.angles import angle, learn_by_angles
from bayou.numerics.jit import entry_point
from bayou.numerics.pointers import scalar_kernels
from bayou.rules import MomentMatching

Generator: TypeAlias = np.random.Generator

NUMBERS_AT_ONCE = 250_000  # features drawn at a time: 2 MB, which stay in the cache until they are learnt

_NONE_MISSING: Mask = np.zeros((0, 0), dtype=np.bool_)
_EQUAL_WEIGHTS: Vector = np.zeros(0)


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
        likelihood, posterior, rule = self.student = student
        check_fit(likelihood, posterior, rule)
        self.belief: Any = posterior.prior(n_features)
        self._prior = [array.copy() for array in self.belief]
        self._record = np.empty((1, posterior.n_records))
        self._given = self.belief, scalar_kernels(likelihood, rule), likelihood.params
        line = np.zeros((1, n_features)), _NONE_MISSING, np.zeros(1), _EQUAL_WEIGHTS, self._record
        measured = np.zeros(n_features), np.zeros(1, dtype=np.intp), np.zeros(1)
        self._learn = entry_point(posterior.learn, *self._given, *line)
        self._learn_by_angles = entry_point(posterior.learn, *self._given, *line, *measured, template=learn_by_angles)
        self.log_evidence = 0.0

    def reset(self) -> None:
        """Know nothing again."""
        for array, initial in zip(self.belief, self._prior, strict=True):
            array[...] = initial
        self.log_evidence = 0.0

    def learn(self, rows: Matrix, targets: Vector) -> None:
        """Learn from the rows in order."""
        record = self._record_of(len(rows))
        done = self._learn(*self._given, rows, _NONE_MISSING, targets, _EQUAL_WEIGHTS, record)
        self._check(done, len(rows))
        self.log_evidence += float(record[:, -1].sum())

    def learn_by_angles(self, rows: Matrix, targets: Vector, teacher: Vector, ends: NDArray[np.intp]) -> Vector:
        """Learn from the rows in order, up to the last end; the angles between means and teacher after so many rows.

        In one compiled call, because threads get in each other's way wherever they come back to the interpreter. The
        log evidence is not kept.
        """
        angles = np.empty(len(ends))
        record = self._record_of(len(rows))
        measured = teacher, ends, angles
        done = self._learn_by_angles(*self._given, rows, _NONE_MISSING, targets, _EQUAL_WEIGHTS, record, *measured)
        self._check(done, ends[-1])
        return angles

    def variances(self) -> Vector:
        """Variance of each weight."""
        return self.student.posterior.variances(self.belief)

    def covariance(self) -> Matrix:
        """Covariance of the weights."""
        return self.student.posterior.covariance(self.belief)

    def _record_of(self, n: int) -> Matrix:
        if n > len(self._record):
            self._record = np.empty((n, self._record.shape[1]))
        return self._record[:n]

    def _check(self, done: int, n: int) -> None:
        if done < n:
            raise ImproperBelief(f"{self.student!r} has no finite latent for an example that was drawn.")


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
    """Probability that student and noiseless teacher disagree about a standard normal input; (9.3) of Opper."""
    return angle(pupil.belief.mean, teacher) / math.pi


def run_replicas(
    students: Sequence[Student],
    world: World,
    times: Sequence[int],
    n_replicas: int,
    *,
    measure: Measure | None = None,
    seed: int = 0,
    threads: int | None = None,
    done: Callable[[], None] | None = None,
) -> Ensemble:
    """Let every student of so many replicas learn, and measure each at these times; ``done`` is called per replica.

    What is measured is `angle_error`, as for most learning curves, unless there is another measure.
    """
    if any(later <= earlier for earlier, later in pairwise((0, *times))):
        raise ValueError(f"`times` must be positive and increase; got {tuple(times)}.")
    workers = os.cpu_count() or 1 if threads is None else threads
    crews = [[Pupil(student, world.n_features) for student in students] for _ in range(workers)]
    rng = np.random.default_rng(seed)
    teacher = world.teacher(rng)
    for pupil in crews[0]:
        pupil.learn(*world.examples(rng, teacher, 1))
    n_measured = 1 if measure is None else len(measure(crews[0][0], teacher, rng))
    values = np.empty((n_replicas, len(students), len(times), n_measured))
    seeds = np.random.SeedSequence(seed).spawn(n_replicas)
    waiting = iter(range(n_replicas))  # shared: whoever is free takes the next

    def work(crew: list[Pupil]) -> None:
        for replica in waiting:
            rng = np.random.default_rng(seeds[replica])
            teacher = world.teacher(rng)
            for pupil in crew:
                pupil.reset()
            for batch in batches(world, rng, teacher, times):
                if measure is None:
                    _learn_by_angles(crew, teacher, batch, values[replica, :, :, 0])
                else:
                    _learn_and_measure(crew, teacher, batch, values[replica], measure, rng)
            if done is not None:
                done()

    with ThreadPoolExecutor(workers) as pool:
        for share in [pool.submit(work, crew) for crew in crews]:
            share.result()
    return Ensemble(tuple(times), values)


class Batch(NamedTuple):
    """Examples of a replica that are drawn together.

    After each of ``ends`` of them it is one of the times, whose places among all are ``places``; but for the last end,
    that of the batch, which need not be.
    """

    rows: Matrix
    targets: Vector
    ends: NDArray[np.intp]
    places: range


def batches(world: World, rng: Generator, teacher: Vector, times: Sequence[int]) -> Iterator[Batch]:
    """The examples of a replica up to the last time.

    They are drawn by as many as fit in the cache, so that what is drawn does not depend on when it is measured.
    """
    size = max(NUMBERS_AT_ONCE // world.n_features, 1)
    for start in range(0, times[-1], size):
        n = min(size, times[-1] - start)
        places = range(bisect_right(times, start), bisect_right(times, start + n))
        ends = sorted({*(times[place] - start for place in places), n})
        yield Batch(*world.examples(rng, teacher, n), np.array(ends, dtype=np.intp), places)


def _learn_by_angles(crew: list[Pupil], teacher: Vector, batch: Batch, errors: Matrix) -> None:
    """Let all learn the batch, and write their errors at its times into ``errors[student, time]``."""
    rows, targets, ends, places = batch
    for which, pupil in enumerate(crew):
        angles = pupil.learn_by_angles(rows, targets, teacher, ends)
        errors[which, places.start : places.stop] = angles[: len(places)] / math.pi


def _learn_and_measure(
    crew: list[Pupil], teacher: Vector, batch: Batch, values: NDArray[np.float64], measure: Measure, rng: Generator
) -> None:
    """Let all learn the batch, and write what is measured at its times into ``values[student, time, quantity]``."""
    rows, targets, ends, places = batch
    for (start, end), place in zip_longest(pairwise((0, *ends)), places):
        for pupil in crew:
            pupil.learn(rows[start:end], targets[start:end])
        if place is not None:
            for which, pupil in enumerate(crew):
                values[which, place] = measure(pupil, teacher, rng)


def times_of(alphas: Sequence[float], n_weights: int) -> tuple[int, ...]:
    """After how many examples so many per weight were seen."""
    return tuple(round(alpha * n_weights) for alpha in alphas)
