"""Worlds of Barkai, Seung and Sompolinsky 1995 and what is said about them: by drawing, and by other routes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bayou import FlipProbit, FullGaussian, Learner, ScheduledPoint, ShiftedPoint, Step
from bayou.numerics.jit import COMPILED
from bayou.papers.barkai1995 import figure_1, figure_2, section_2, section_3, stationary, zero_mean
from bayou.papers.barkai1995.chain import chain_errors
from bayou.papers.barkai1995.worlds import Centre, Clusters, beside, random_start
from bayou.papers.claims import judge
from bayou.papers.ensembles import Estimate, Pupil, Signs, Student, run_replicas
from bayou.posteriors import Rosenblatt
from bayou.schedules import PowerLawRate
from bayou.theory import dichotomy_curve, off_centre_curve, plain_fixed_points
from tests.papers.quick import QuickRun

needs_kernels = pytest.mark.skipif(not COMPILED, reason="ensembles need compiled kernels")
MIXTURE = (Centre(-0.5, 1.5, 2.0 / 3.0), Centre(1.2, -1.0, 1.0 / 3.0))


# Worlds


def test_the_direction_beside_is_a_unit_at_right_angles() -> None:
    teacher = Clusters(10, 0.2, MIXTURE).teacher(np.random.default_rng(0))
    assert teacher @ teacher == pytest.approx(1.0)
    assert beside(teacher) @ beside(teacher) == pytest.approx(1.0)
    assert beside(teacher) @ teacher == pytest.approx(0.0, abs=1e-15)


def test_inputs_lie_around_their_centres() -> None:
    """Means of so many inputs have standard errors of 0.005."""
    world = Clusters(6, 0.2, MIXTURE)
    rng = np.random.default_rng(0)
    teacher = world.teacher(rng)
    rows, targets = world.examples(rng, teacher, 60_000)
    along, across = (2.0 / 3.0 * -0.5 + 1.2 / 3.0), (2.0 / 3.0 * 1.5 - 1.0 / 3.0)
    assert rows.mean(axis=0) == pytest.approx(along * teacher + across * beside(teacher), abs=0.03)
    true = np.where(rows @ teacher > 0.0, 1.0, -1.0)
    assert np.mean(targets != true) == pytest.approx(0.2, abs=0.005)  # 3 standard errors


@pytest.mark.parametrize("intercept", [False, True])
def test_the_error_is_that_of_labels_drawn(intercept: bool) -> None:
    """(8), summed over the centres, within 3 standard errors of a count."""
    world = Clusters(6, 0.1, MIXTURE, intercept=intercept)
    rng = np.random.default_rng(1)
    teacher = world.teacher(rng)
    for _ in range(3):
        weights = rng.standard_normal(world.n_features)
        weights[:6] += teacher
        rows, targets = world.examples(rng, teacher, 100_000)
        count = np.mean(targets * (rows @ weights) <= 0.0)
        assert world.error_of(weights, teacher) == pytest.approx(count, abs=3.0 * 0.5 / math.sqrt(100_000))


def test_the_teacher_errs_by_the_flips_and_its_opposite_by_the_rest() -> None:
    world = Clusters(4, 0.2, MIXTURE)
    teacher = world.teacher(np.random.default_rng(0))
    assert world.error_of(3.0 * teacher, teacher) == pytest.approx(0.2)
    assert world.error_of(-teacher, teacher) == pytest.approx(0.8)


# Chains


def test_the_chain_has_the_law_of_the_algorithm() -> None:
    """Against (2) written out with all its weights; both within 3 standard errors."""
    n_weights, runs, alphas = 10, 2_000, (1.0, 5.0)
    rng = np.random.default_rng(0)
    W = rng.standard_normal((runs, n_weights))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    errors = []
    for n in range(1, 51):
        S = rng.standard_normal((runs, n_weights))
        label = np.sign(S[:, 0])
        wrong = label * np.einsum("ij,ij->i", W, S) <= 0.0
        W += (2.0 * math.sqrt(2.0 * math.pi) / n * label * wrong)[:, None] * S
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        if n in (10, 50):
            errors.append(np.arccos(np.clip(W[:, 0], -1.0, 1.0)) / math.pi)
    chain = chain_errors(2.0, n_weights, alphas, runs, seed=1)
    for place, written_out in enumerate(errors):
        spread = math.hypot(chain.standard_error[0, place, 0], written_out.std() / math.sqrt(runs))
        assert chain.mean[0, place, 0] == pytest.approx(written_out.mean(), abs=3.0 * spread)


def test_a_chain_of_many_weights_is_the_equation_of_motion() -> None:
    chain = chain_errors(2.0, 20_000, (1.0, 3.0), 20, seed=0)
    expected = dichotomy_curve((2.0, 1.0), [1.0, 3.0]).error
    np.testing.assert_allclose(chain.mean[0, :, 0], expected, rtol=0.005)  # 3 standard errors


def test_phases_never_change() -> None:
    """The reason why (24) has many solutions."""
    rng = np.random.default_rng(0)
    start = rng.normal(0.0, 0.05, 500)
    end = stationary.chain(start, np.full(400, 0.01), rng)
    moved = (end - start) / 0.01
    assert np.ptp(moved) > 1.0
    np.testing.assert_allclose(moved, np.round(moved), atol=1e-9)


# Pupils


@pytest.mark.parametrize("student", [Student(FlipProbit(0.2), FullGaussian()), Student(Step(), ScheduledPoint())])
def test_a_pupil_knows_its_evidence(student: Student) -> None:
    rng = np.random.default_rng(0)
    world = Signs(4)
    rows, targets = world.examples(rng, world.teacher(rng), 60)
    learner, pupil = Learner(*student, n_features=4), Pupil(student, 4)
    learner.learn_many(rows, targets)
    for part in (slice(0, 20), slice(20, 60)):
        pupil.learn(rows[part], targets[part])
    assert pupil.log_evidence == pytest.approx(learner.log_evidence)
    pupil.reset()
    assert pupil.log_evidence == 0.0


def test_evidence_mixes_means() -> None:
    """Of one student it is that student; of two, of which one has all evidence, the other."""
    n = figure_2.N_WEIGHTS
    rng = np.random.default_rng(0)
    teacher = figure_2.BAYES_WORLD.teacher(rng)
    values = np.empty((1, 2, 1, n + 4))
    means = rng.standard_normal((2, n + 1)) + 3.0 * np.append(teacher, 0.0)
    for place, mean in enumerate(means):
        values[0, place, 0] = [0.0, mean[:n] @ teacher, mean[:n] @ beside(teacher), mean[n], *mean[:n]]
    alone = figure_2.mixed_errors(values[:, :1])
    assert alone[0, 0] == pytest.approx(figure_2.BAYES_WORLD.error_of(means[0], teacher))
    equal = figure_2.mixed_errors(values)
    assert equal[0, 0] == pytest.approx(figure_2.BAYES_WORLD.error_of(means.mean(axis=0), teacher))
    values[0, 1, 0, 0] = -1e4
    assert figure_2.mixed_errors(values)[0, 0] == pytest.approx(alone[0, 0])


# Theory of mixtures


def test_a_mixture_of_one_is_the_theory_off_centre() -> None:
    task = figure_2.TASK
    world = Clusters(4, task.flip_rate, (Centre(task.field, task.across),))
    (end,) = [point.error for point in plain_fixed_points(task) if point.stable]
    assert zero_mean.plain_end(world) == pytest.approx(end, abs=1e-6)
    alphas = np.array([10.0, 100.0, 1000.0])
    expected = off_centre_curve(task, zero_mean.told_rate, alphas).error
    np.testing.assert_allclose(zero_mean.plain_curve(world, alphas), expected, rtol=1e-6)


@pytest.mark.parametrize("name", zero_mean.MIXTURES)
def test_labels_of_the_mixtures_have_mean_zero_and_shares_sum_to_one(name: str) -> None:
    centres = zero_mean.MIXTURES[name]
    assert sum(centre.share for centre in centres) == pytest.approx(1.0)
    assert sum(centre.share * math.erf(centre.along / math.sqrt(2.0)) for centre in centres) == pytest.approx(0.0)


@pytest.mark.parametrize("name", zero_mean.MIXTURES)
def test_the_teacher_is_no_fixed_point_of_the_plain_rule(name: str) -> None:
    assert np.hypot(*zero_mean.drift(zero_mean.WORLDS[name], 1.0, 0.0)) > 0.01
    true = Clusters(4, 0.0, zero_mean.MIXTURES[name])  # but without flips it is
    assert zero_mean.drift(true, 1.0, 0.0) == pytest.approx((0.0, 0.0), abs=1e-15)


# Claims


@needs_kernels
@pytest.mark.parametrize("eta0", [0.5, 4.0])
def test_a_wrong_schedule_misses_the_chain(eta0: float) -> None:
    """By ten standard errors, of 1 %."""
    student = Student(
        Step(), ScheduledPoint(PowerLawRate(eta0 * math.sqrt(2.0 * math.pi)), prior_mean=random_start(50))
    )
    found = run_replicas([student], Signs(50), [500], 200).at(500)
    chain = chain_errors(2.0, 50, (10.0,), 2_000, seed=0).at(500)
    assert found.standard_error < 0.02 * found.mean
    assert not judge(figure_1.ON_THE_CHAIN[10.0], chain * 10.0, found * 10.0, quick=True).holds


@needs_kernels
def test_the_plain_rule_does_not_pass_for_the_shifted_one() -> None:
    world = figure_2.WORLD
    students = [Student(Step(), Rosenblatt()), Student(Step(), ShiftedPoint("projection"))]
    found = run_replicas(students, world, [100 * 250], 4, measure=world.measure)
    plain, shifted = found.values[:, :, 0, 0].T
    assert np.all(plain > figure_2.FOUND)
    assert np.all(shifted < figure_2.FOUND)


def test_numbers_of_the_paper(quick_run: QuickRun) -> None:
    """To as many digits as are known of them."""
    rows = [row for row in quick_run.rows if row["paper"] == "barkai1995"]

    def find(item: str, part: str) -> dict[str, object]:
        (row,) = [row for row in rows if row["item"] == item and part in row["quantity"]]
        return row

    assert find("Fig. 1", "eta0 = 2, alpha = 1e+06")["theory"] == pytest.approx(4.0 / math.pi, rel=1e-5)
    assert find("(6)", "corrected")["theory"] == pytest.approx(1.0, abs=1e-6)
    assert find("Sec. 5", "alpha = 1e+15")["theory"] == pytest.approx(0.2781, abs=5e-5)
    assert find("Fig. 2", "eta to 0")["theory"] == pytest.approx(0.3122, abs=5e-5)
    assert find("(18)", "T learnt")["theory"] == pytest.approx(math.sqrt(0.4 / math.pi), abs=5e-4)
    assert [round(find("(27)", f"= {kappa}, n")["theory"], 2) for kappa in ("1.5", "2", "4")] == [1.12, 1.12, 1.61]  # type: ignore[call-overload]


def test_the_errata_are_named(quick_run: QuickRun) -> None:
    failed = {row["item"] for row in quick_run.rows if row["paper"] == "barkai1995" and not row["holds"]}
    assert failed == {"(6)", "(8)", "(9)", "(10)", "(15)", "(18)", "(24)"}


def test_the_rule_to_the_letter_ends_at_either_pole() -> None:
    """At the teacher in most runs, at its opposite in some."""
    errors = section_3.to_the_letter(30, seed=1)
    assert np.mean(errors < 0.3) > 0.5
    assert np.any(errors > 0.6)


def test_a_claim_of_a_share_can_fail() -> None:
    claim = figure_2.BAYES_KNOWN
    assert judge(claim, None, Estimate(1.0, 0.0)).holds
    assert not judge(claim, None, Estimate(0.75, 0.0)).holds


def test_every_schedule_has_a_student_of_its_own() -> None:
    students = {repr(section_2.student(name)) for name in section_2.RATES}
    assert len(students) == len(section_2.RATES)
    assert sum("normalised=False" in text for text in students) == 1
