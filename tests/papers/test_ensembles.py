"""Replicas are what learners are, whatever the threads; the errors of their means are what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bayou import (
    BinaryWeights,
    DiagonalGaussian,
    FullGaussian,
    Gaussian,
    Learner,
    MomentMatching,
    Probit,
    Rosenblatt,
    SphericalGaussian,
    Step,
    VariationalPerceptron,
)
from bayou.numerics.jit import COMPILED
from bayou.papers.ensembles import (
    NUMBERS_AT_ONCE,
    Ensemble,
    Numbers,
    Pupil,
    Signs,
    Student,
    Threshold,
    angle_error,
    batches,
    run_replicas,
    times_of,
)
from bayou.papers.opper1998.figure_1 import WORLD, threshold_student, written_out_step

STUDENTS = [
    Student(Probit(2.0), FullGaussian()),
    Student(Probit(2.0), DiagonalGaussian()),
    Student(Probit(2.0), SphericalGaussian()),
    Student(Probit(2.0), BinaryWeights(form="cavity")),
    Student(Step(), Rosenblatt()),
    Student(Step(), VariationalPerceptron()),
]
SMALL = Signs(5, noise_scale=2.0)


def pupil_with_mean(mean: list[float]) -> Pupil:
    pupil = Pupil(STUDENTS[0], len(mean))
    pupil.belief.mean[...] = mean
    return pupil


@pytest.mark.parametrize("student", STUDENTS, ids=lambda student: type(student.posterior).__name__)
def test_a_pupil_is_a_learner_to_the_last_bit(student: Student) -> None:
    rng = np.random.default_rng(0)
    rows, targets = SMALL.examples(rng, SMALL.teacher(rng), 40)
    learner, pupil = Learner(*student, n_features=5), Pupil(student, 5)
    for part in (slice(0, 25), slice(25, 40)):
        learner.learn_many(rows[part], targets[part])
        pupil.learn(rows[part], targets[part])
    for mine, theirs in zip(pupil.belief, learner.belief, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    pupil.reset()
    for mine, theirs in zip(pupil.belief, student.posterior.prior(5), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_two_features_are_the_one_dimensional_update() -> None:
    rng = np.random.default_rng(0)
    pupil = Pupil(threshold_student(WORLD.noise_scale), 2)
    mean, variance = np.zeros(1), np.ones(1)
    for _ in range(300):
        rows, targets = WORLD.examples(rng, WORLD.teacher(rng), 1)
        pupil.learn(rows, targets)
        mean, variance = written_out_step(mean, variance, rows[:, 0], targets)
        np.testing.assert_allclose(pupil.belief.mean, [1.0, mean[0]], rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(pupil.belief.variance[1], variance[0], rtol=1e-12)


def test_threads_change_nothing() -> None:
    runs = [run_replicas(STUDENTS, SMALL, (3, 10, 20), 7, seed=1, threads=threads) for threads in (1, 3)]
    np.testing.assert_array_equal(runs[0].values, runs[1].values)


def test_seeds_change_everything() -> None:
    one, other = (run_replicas(STUDENTS[:1], SMALL, (3, 10), 4, seed=seed).values for seed in (1, 2))
    assert np.all(one != other)
    assert np.unique(one[:, 0, 1, 0]).size == 4


def test_students_of_a_replica_see_the_same_examples() -> None:
    values = run_replicas([STUDENTS[0], STUDENTS[0]], SMALL, (3, 10), 4).values
    np.testing.assert_array_equal(values[:, 0], values[:, 1])


def test_times_have_to_increase() -> None:
    for times in ((0, 10), (10, 10), (10, 5)):
        with pytest.raises(ValueError, match="`times` must be positive and increase"):
            run_replicas(STUDENTS[:1], SMALL, times, 2)


def test_every_replica_is_told_of() -> None:
    told = []
    run_replicas(STUDENTS[:1], SMALL, (3,), 5, done=lambda: told.append(1))
    assert len(told) == 5


def test_a_failure_in_a_thread_is_heard() -> None:
    def measure(pupil: Pupil, teacher: object, rng: object) -> tuple[float]:
        if pupil.belief.mean.any() and measured.append(0) is None and len(measured) > 2:
            raise ArithmeticError("in a replica")
        return (0.0,)

    measured: list[int] = []
    with pytest.raises(ArithmeticError, match="in a replica"):
        run_replicas(STUDENTS[:1], SMALL, (3,), 5, measure=measure, threads=2)


def test_mean_and_standard_error() -> None:
    ensemble = Ensemble((7,), np.array([1.0, 2.0, 6.0])[:, None, None, None])
    found = ensemble.at(7)
    assert found.mean == pytest.approx(3.0)
    assert found.standard_error == pytest.approx(math.sqrt((4.0 + 1.0 + 9.0) / 2.0 / 3.0))
    assert (found * -2.0).standard_error == pytest.approx(2.0 * found.standard_error)


def test_the_error_is_an_angle() -> None:
    teacher = np.array([2.0, 0.0])
    for mean, error in (([3.0, 0.0], 0.0), ([1.0, 1.0], 0.25), ([0.0, -5.0], 0.5), ([-1.0, 0.0], 1.0)):
        assert angle_error(pupil_with_mean(mean), teacher) == pytest.approx(error, abs=1e-15)
    assert angle_error(pupil_with_mean([0.0, 0.0]), teacher) == 0.5


def test_small_errors_keep_their_digits() -> None:
    assert angle_error(pupil_with_mean([1.0, 1e-12]), np.array([2.0, 0.0])) == pytest.approx(1e-12 / math.pi, rel=1e-9)


def test_labels_have_the_noise_that_they_should() -> None:
    """The chance that noise turns a label is arctan(noise / length) / pi; its standard error is 0.0011."""
    rng, n = np.random.default_rng(0), 200_000
    world = Signs(4, noise_scale=1.5)
    teacher = np.array([1.0, -1.0, 1.0, 1.0])
    rows, targets = world.examples(rng, teacher, n)
    assert np.mean(targets * (rows @ teacher) < 0.0) == pytest.approx(math.atan(0.75) / math.pi, abs=0.0035)
    world = Signs(4)
    rows, targets = world.examples(rng, teacher, 1000)
    np.testing.assert_array_equal(targets, np.sign(rows @ teacher))


def test_thresholds_and_numbers() -> None:
    """Standard errors are 0.005 and 0.009."""
    rng = np.random.default_rng(0)
    rows, targets = Threshold(0.5, 1e-9).examples(rng, np.array([1.0, 0.5]), 10_000)
    np.testing.assert_array_equal(targets, np.sign(rows[:, 0] - 0.5))
    assert np.mean(targets) == pytest.approx(-0.5, abs=0.03)
    world = Numbers((2.0, -1.0), 0.9)
    rows, targets = world.examples(rng, world.teacher(rng), 10_000)
    assert np.mean((targets - rows @ [2.0, -1.0]) ** 2) == pytest.approx(0.81, abs=0.04)
    assert np.all(Numbers((2.0,), 0.9, constant=True).examples(rng, np.array([2.0]), 3)[0] == 1.0)


@pytest.mark.skipif(not COMPILED, reason="thousands of replicas need compiled kernels")
def test_regression_by_the_book() -> None:
    """The mean square error of a mean of t numbers is noise^2 / t: with 2,000 replicas to 3 %."""

    def squared_error(pupil: Pupil, teacher: np.ndarray, rng: object) -> tuple[float]:
        return (float(np.sum((pupil.belief.mean - teacher) ** 2)),)

    world = Numbers((0.3,), 2.0, constant=True)
    student = Student(Gaussian(4.0), FullGaussian(prior_variance=1e6), MomentMatching())
    found = run_replicas([student], world, (20,), 2_000, measure=squared_error).at(20)
    assert found.standard_error < 0.05 * 4.0 / 20
    assert abs(found.mean - 4.0 / 20) < 3.0 * found.standard_error


def test_when_it_is_measured_does_not_change_what_is_learnt() -> None:
    """Also where examples are drawn in several pieces."""
    world = Signs(NUMBERS_AT_ONCE // 10, noise_scale=1.0)
    often, once = (run_replicas([STUDENTS[2]], world, times, 2).values for times in ((3, 10, 14, 23), (23,)))
    np.testing.assert_array_equal(often[:, :, -1], once[:, :, 0])
    rng = np.random.default_rng(0)
    cut = [(list(batch.ends), batch.places) for batch in batches(world, rng, world.teacher(rng), (3, 10, 14, 23))]
    assert cut == [([3, 10], range(2)), ([4, 10], range(2, 3)), ([3], range(3, 4))]


@pytest.mark.parametrize("student", STUDENTS, ids=lambda student: type(student.posterior).__name__)
def test_angles_within_the_pass_are_those_measured_outside(student: Student) -> None:
    def measure(pupil: Pupil, teacher: np.ndarray, rng: object) -> tuple[float]:
        return (angle_error(pupil, teacher),)

    world = Signs(NUMBERS_AT_ONCE // 10, noise_scale=1.0) if student is STUDENTS[2] else SMALL
    within, outside = (run_replicas([student], world, (3, 10, 14, 23), 2, measure=m).values for m in (None, measure))
    np.testing.assert_allclose(within, outside, rtol=1e-12)


def test_times_per_weight() -> None:
    assert times_of((0.5, 2.0), 50) == (25, 100)
