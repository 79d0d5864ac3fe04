"""Flipped labels and inputs off centre: Owen's T against (8), equations against sampled steps and whole runs, ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, special, stats

from bayou.errors import InvalidSpec
from bayou.theory import (
    OffCentre,
    best_eta0,
    critical_rate,
    dichotomy_curve,
    hebb_overlaps,
    linear_slopes,
    off_centre_curve,
    off_centre_error,
    off_centre_residual,
    plain_fixed_points,
    shifted_law,
    small_noise_error,
    small_rate_error,
)
from bayou.theory.off_centre import gauss, mean_sign, wedge_error

FIG_2 = OffCentre(flip_rate=0.2, distance=4.0, field=-1.95)
TASKS = [FIG_2, OffCentre(0.1, 2.0, 1.0), OffCentre(0.3, 1.0, -1.0), OffCentre(0.0, 3.0, 0.0), OffCentre(0.2, 0.0, 0.0)]


def capped(task: OffCentre, eta0: float, largest: float) -> Callable[[float], float]:
    return lambda alpha: min(largest, eta0 / (gauss(task.field) * max(alpha, 1e-9)))


def as_printed(task: OffCentre, R: float, q: float) -> float:
    """(8), its two integrals over the normal measure, with the factor 1 - 2p."""
    s = math.sqrt(1.0 - R * R)

    def wrong(y: float) -> float:
        z = (task.field + R * y) / s
        return stats.norm.pdf(y) * float(special.ndtr(z if y < -q else -z))

    kinks = sorted(
        {-12.0, 12.0, min(max(-q, -12.0), 12.0), *((-task.field / R,) if abs(task.field) < 12 * abs(R) else ())}
    )
    parts = [integrate.quad(wrong, *ends, epsabs=1e-13)[0] for ends in pairwise(kinks)]
    return task.flip_rate + task.kept * sum(parts)


def possible(task: OffCentre) -> list[tuple[float, float]]:
    """Pairs of R and q, some at the border of what is possible and some where q is 0."""
    pairs = []
    for R in (-0.999, -0.6, 0.0, 0.3, 0.9, 0.9999):
        width = task.across * math.sqrt(1.0 - R * R)
        pairs += [(R, R * task.field + share * width) for share in (-1.0, -0.4, 0.0, 0.7, 1.0)]
        if abs(R * task.field) < width:
            pairs.append((R, 0.0))
    return pairs


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_owens_t_is_the_printed_integral_and_that_of_the_wedge(task: OffCentre) -> None:
    for R, q in possible(task):
        error = float(off_centre_error(task, R, q))
        assert error == pytest.approx(as_printed(task, R, q), abs=1e-9), (R, q)
        s = math.sqrt(1.0 - R * R)
        tilt = (q - R * task.field) / s
        wedge = task.flip_rate + task.kept * wedge_error(task, math.acos(R), tilt)
        assert error == pytest.approx(wedge, abs=1e-12), (R, q)


@pytest.mark.parametrize(("R", "q"), [(0.3, -1.0), (0.9, -0.5), (-0.4, 2.0)])
def test_the_error_is_what_sampling_counts(R: float, q: float) -> None:
    W = np.array([R, (q - R * FIG_2.field) / FIG_2.across, 0.0])
    W[2] = math.sqrt(1.0 - W @ W)
    rng = np.random.default_rng(0)
    S = rng.standard_normal((400_000, 3)) + np.array([FIG_2.field, FIG_2.across, 0.0])
    wrong = (np.sign(S @ W) != np.sign(S[:, 0])) ^ (rng.random(len(S)) < FIG_2.flip_rate)
    assert off_centre_error(FIG_2, R, q) == pytest.approx(wrong.mean(), abs=4.0 * 0.5 / math.sqrt(len(S)))


def test_errors_at_the_ends() -> None:
    task = OffCentre(0.1, 2.0, 1.0)
    assert off_centre_error(task, [1.0, -1.0], [1.0, -1.0]).tolist() == pytest.approx([0.1, 0.9])
    assert off_centre_error(OffCentre(0.0, 0.0, 0.0), [0.0, 0.5], 0.0).tolist() == pytest.approx([0.5, 1.0 / 3.0])
    assert wedge_error(task, 1e-9, 0.0) == pytest.approx(1e-9 * math.exp(-0.5) / math.pi, rel=1e-12)
    far = OffCentre(0.0, 60.0, 30.0)
    assert off_centre_error(far, 0.5, 0.0) == pytest.approx(
        wedge_error(far, math.pi / 3, -30.0 / math.sqrt(3.0)), rel=1e-9
    )
    for R, q in ((1.1, 1.0), (0.0, 3.0), (0.99, -1.0)):
        with pytest.raises(InvalidSpec):
            off_centre_error(task, R, q)


def slopes_of(task: OffCentre, rule: str, eta: float, R: float, q: float) -> np.ndarray:
    step = 1e-5
    curve = off_centre_curve(task, eta, [step], rule=rule, start=(R, q))
    return np.array([curve.overlap[0] - R, curve.field[0] - q]) / step


@pytest.mark.parametrize("rule", ["plain", "shifted"])
@pytest.mark.parametrize(("R", "q"), [(0.3, -1.0), (0.8, -2.5), (-0.2, 1.5)])
def test_the_plane_is_that_of_sampled_steps(rule: str, R: float, q: float) -> None:
    """The mean steps of R and q over inputs of 300 weights, normalisation and all."""
    N, M, eta, task = 300, 40_000, 0.8, FIG_2
    rng = np.random.default_rng(1)
    U = np.zeros(N)
    U[:2] = task.field, task.across
    W = np.zeros(N)
    W[:2] = R, (q - R * task.field) / task.across
    W[2] = math.sqrt(1.0 - W @ W)
    S = rng.standard_normal((M, N)) + U
    label = np.sign(S[:, 0]) * np.where(rng.random(M) < task.flip_rate, -1.0, 1.0)
    T = np.zeros(N)
    if rule == "shifted":
        T = U + np.eye(N)[0] * gauss(task.field) / mean_sign(task.field)
    moved = W + eta / N * (((S @ W) * label <= 0.0) * label)[:, None] * (S - T)
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    steps = N * np.array([moved[:, 0] - R, moved @ U - q])
    standard_errors = steps.std(axis=1) / math.sqrt(M)
    assert np.all(standard_errors < 0.05)
    assert np.all(np.abs(steps.mean(axis=1) - slopes_of(task, rule, eta, R, q)) < 4.0 * standard_errors + 0.02)


def runs_of(task: OffCentre, rule: str, rate: Callable[[float], float], N: int, alpha: float, runs: int) -> np.ndarray:
    """Whole runs, example by example: the errors of their last students."""
    rng = np.random.default_rng(2)
    U = np.zeros(N)
    U[0], U[1] = task.field, task.across
    W = rng.standard_normal((runs, N))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    A, a = np.zeros((runs, N)), np.zeros(runs)
    for n in range(1, int(alpha * N) + 1):
        S = rng.standard_normal((runs, N)) + U
        label = np.sign(S[:, 0]) * np.where(rng.random(runs) < task.flip_rate, -1.0, 1.0)
        A += label[:, None] * S
        a += label
        if rule == "learned" and n <= 5 * N:
            W = A / np.linalg.norm(A, axis=1, keepdims=True)
            continue
        wrong = np.einsum("ij,ij->i", W, S) * label <= 0.0
        shift = A / a[:, None] if rule == "learned" else 0.0
        W += (rate(n / N) / N * wrong * label)[:, None] * (S - shift)
        W /= np.linalg.norm(W, axis=1, keepdims=True)
    return off_centre_error(task, np.clip(W[:, 0], -1.0, 1.0), W @ U)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "task", "alpha"),
    [("plain", FIG_2, 30.0), ("plain", OffCentre(0.2, 2.0, 2.0), 60.0), ("learned", OffCentre(0.2, 2.0, 1.0), 40.0)],
    ids=str,
)
def test_simulation_follows_the_curve(rule: str, task: OffCentre, alpha: float) -> None:
    """To 3 standard errors and 2 % of what is to be learnt, for 200 weights are not infinitely many."""
    rate = capped(task, 2.0, 0.25)
    errors = runs_of(task, rule, rate, N=200, alpha=alpha, runs=40)
    wanted = off_centre_curve(task, rate, [alpha], rule=rule).error[0]
    standard_error = errors.std() / math.sqrt(len(errors))
    assert standard_error < 0.03 * (wanted - task.flip_rate)
    assert abs(errors.mean() - wanted) < 3.0 * standard_error + 0.02 * (wanted - task.flip_rate)


def test_hebbs_vector_is_where_sums_lead() -> None:
    N, alpha, runs, task = 200, 3.0, 200, OffCentre(0.2, 2.0, 1.0)
    rng = np.random.default_rng(4)
    U = np.zeros(N)
    U[:2] = task.field, task.across
    found = []
    for _ in range(runs):
        S = rng.standard_normal((int(alpha * N), N)) + U
        label = np.sign(S[:, 0]) * np.where(rng.random(len(S)) < task.flip_rate, -1.0, 1.0)
        A = label @ S
        found.append((A[0] / np.linalg.norm(A), A @ U / np.linalg.norm(A)))
    wanted = [float(part[0]) for part in hebb_overlaps(task, [alpha])]
    standard_errors = np.std(found, axis=0) / math.sqrt(runs)
    assert np.all(np.abs(np.mean(found, axis=0) - wanted) < 3.0 * standard_errors + 2.0 / N)
    assert off_centre_curve(task, 0.1, [alpha], rule="learned").overlap[0] == pytest.approx(wanted[0])
    assert [float(part[0]) for part in hebb_overlaps(task, [0.0])] == [0.0, 0.0]


def test_fig_2_the_plain_rule_stalls() -> None:
    points = plain_fixed_points(FIG_2)
    (stable,) = (point for point in points if point.stable)
    assert (stable.overlap, stable.field, stable.error) == pytest.approx((0.9528, -0.7975, 0.3122), abs=5e-5)
    assert len(points) == 4
    R, q, error = off_centre_residual(FIG_2, 1e-4)
    assert (R, q, error) == pytest.approx((stable.overlap, stable.field, stable.error), abs=1e-3)


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_fixed_points_are_where_nothing_moves_and_their_rates_are_true(task: OffCentre) -> None:
    """By the equation of W itself: dW/dalpha = F - W (F . W), F the mean of y S at mistakes."""
    U, W0 = np.array([task.field, task.across, 0.0]), np.array([1.0, 0.0, 0.0])

    def drift(W: np.ndarray) -> np.ndarray:
        hebb = task.kept * (U * mean_sign(task.field) + W0 * gauss(task.field))
        F = 0.5 * (hebb - U * mean_sign(U @ W) - W * gauss(U @ W))
        return F - W * (F @ W)

    points = plain_fixed_points(task)
    assert sum(point.stable for point in points) >= 1
    for point in points:
        angle = math.acos(min(max(point.overlap, -1.0), 1.0))
        sign = 1.0 if point.field >= point.overlap * task.field else -1.0
        W = np.array([math.cos(angle), sign * math.sin(angle), 0.0])
        along, out = np.array([-W[1], W[0], 0.0]), np.array([0.0, 0.0, 1.0])
        assert drift(W) == pytest.approx(np.zeros(3), abs=1e-7)
        for direction, rate in ((along, point.in_plane), (out, point.out_of_plane)):
            h = 1e-5
            ahead, behind = (math.cos(h) * W + side * math.sin(h) * direction for side in (1.0, -1.0))
            assert (drift(ahead) - drift(behind)) @ direction / (2.0 * h) == pytest.approx(rate, abs=1e-5)
        assert point.error == pytest.approx(float(off_centre_error(task, point.overlap, point.field)), abs=1e-9)


def test_a_centre_parallel_to_the_teacher_does_not_save_the_plain_rule() -> None:
    """Barkai et al. 1995, below (9), call W0 the end there for any p; it repels where 2 p q0 m0 > (1 - 2p) g0."""
    task = OffCentre(0.2, 2.0, 2.0)
    (teacher,) = (point for point in plain_fixed_points(task) if point.overlap > 1.0 - 1e-9)
    assert not teacher.stable
    assert teacher.error == pytest.approx(0.2)
    assert off_centre_curve(task, 0.01, [1e5], start=(0.9999, 1.9998)).error[0] > 0.31
    few = OffCentre(0.01, 2.0, 2.0)
    assert any(point.stable and point.overlap > 1.0 - 1e-9 for point in plain_fixed_points(few))


def test_small_noise() -> None:
    """(9): the error that is lost by the plain rule, per p."""
    for task in (
        OffCentre(1e-5, 4.0, -1.95),
        OffCentre(1e-5, 2.0, 1.0),
        OffCentre(1e-5, 1.0, 1.0),
        OffCentre(1e-5, 1.0, 0.0),
    ):
        lowest = min(point.error for point in plain_fixed_points(task) if point.stable)
        assert lowest == pytest.approx(small_noise_error(task), rel=1e-4)
    task = OffCentre(1e-3, 4.0, -1.95)
    (point,) = (point for point in plain_fixed_points(task) if point.stable)
    assert (point.error / 1e-3 - 1.0, small_noise_error(task) / 1e-3 - 1.0) == pytest.approx(
        (0.87650, 0.87696), abs=5e-6
    )


def test_linearised_equations() -> None:
    """(14), by differences of the full ones near the teacher."""
    task, eta = FIG_2, 0.03
    for lost_overlap, tilt in ((1e-5, 0.5), (2e-5, -0.8)):
        R = 1.0 - lost_overlap
        q = task.field * R + tilt * math.sqrt(1.0 - R * R) * 1e-2
        slopes = slopes_of(task, "shifted", eta, R, q)
        wanted = linear_slopes(task, eta, lost_overlap, task.field - q)
        assert -slopes == pytest.approx(wanted, rel=0.02, abs=1e-7)
    lost = eta * task.flip_rate / (2.0 * gauss(task.field))
    assert linear_slopes(task, eta, lost, lost * task.field) == pytest.approx((0.0, 0.0), abs=1e-15)


def test_constant_rates_of_the_shifted_rule() -> None:
    """(15), with the factor 1 - 2p that the print lacks: 0.0109 was simulated where the print would have 0.0176."""
    task = OffCentre(0.2, 2.0, 1.0)
    R, q, error = off_centre_residual(task, 0.02, "shifted")
    assert error - 0.2 == pytest.approx(0.01085, abs=5e-6)
    assert small_rate_error(task, 0.02) - 0.2 == pytest.approx(0.01053, abs=5e-6)
    assert (off_centre_residual(task, 1e-6, "shifted")[2] - 0.2) / (
        small_rate_error(task, 1e-6) - 0.2
    ) == pytest.approx(1.0, abs=1e-3)
    curve = off_centre_curve(task, 0.02, [1e5], rule="shifted", start=(0.1, 0.1))
    assert (curve.overlap[0], curve.field[0], curve.error[0]) == pytest.approx((R, q, error), rel=1e-7)


def test_above_the_critical_rate_the_sign_is_forgotten() -> None:
    limit = critical_rate(FIG_2)
    assert limit == pytest.approx(0.391, abs=5e-4)
    for factor, remembered in ((0.97, True), (1.03, False)):
        curve = off_centre_curve(FIG_2, factor * limit, [0.0, 200.0], rule="shifted", start=(1e-4, -1.95e-4))
        assert (curve.overlap[1] > curve.overlap[0]) == remembered
    assert off_centre_residual(FIG_2, 10.0 * limit, "shifted")[2] == pytest.approx(0.5)
    assert critical_rate(OffCentre(0.1, 1.0, 1e-7)) == pytest.approx(critical_rate(OffCentre(0.1, 1.0, 0.0)))


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize(
    ("p", "eta0", "power", "accuracy"),
    [
        (0.2, 2.0, 1.0, 2e-3),
        (0.05, 2.0, 1.0, 6e-3),
        (0.35, 3.0, 1.0, 2e-3),
        (0.2, 3.13, 1.0, 2e-3),
        (0.2, 0.5, 0.5, 3e-2),
    ],
)
def test_the_laws_are_where_the_curves_end(p: float, eta0: float, power: float, accuracy: float, learned: bool) -> None:
    task = OffCentre(p, 2.0, 1.0)
    rule, start = ("learned", None) if learned else ("shifted", (0.1, 0.1))
    curve = off_centre_curve(task, (eta0, power, 30.0), [1e7], rule=rule, start=start)
    law = shifted_law(task, eta0, power, learned=learned)
    assert curve.error[0] - p == pytest.approx(float(law(1e7)), rel=accuracy)


def test_the_law_of_fig_2() -> None:
    """(18): its printed constant is that of a learned T at eta0 = 2, for any p."""
    for p in (0.05, 0.2, 0.35):
        assert shifted_law(OffCentre(p, 4.0, -1.95), 2.0, 1.0).prefactor == pytest.approx(math.sqrt(2.0 * p / math.pi))
    curve = off_centre_curve(FIG_2, capped(FIG_2, 2.0, 0.25), [1e7], rule="learned")
    assert (curve.error[0] - 0.2) * math.sqrt(1e7) == pytest.approx(math.sqrt(0.4 / math.pi), rel=1e-3)


def test_laws_at_and_below_the_critical_schedule() -> None:
    task, alphas = OffCentre(0.2, 2.0, 1.0), np.array([1e6, 1e9])
    for learned in (False, True):
        rule, start = ("learned", None) if learned else ("shifted", (0.5, 0.5))
        squares = alphas * (off_centre_curve(task, (1.0, 1.0, 30.0), alphas, rule=rule, start=start).error - 0.2) ** 2
        law = shifted_law(task, 1.0, 1.0, learned=learned)
        assert (squares[1] - squares[0]) / math.log(1e3) == pytest.approx(law.prefactor**2, rel=2e-2)
        assert (law.exponent, law.log_exponent) == (-0.5, 0.5)
    errors = off_centre_curve(task, (0.6, 1.0, 30.0), alphas, rule="shifted", start=(0.5, 0.5)).error - 0.2
    assert math.log(errors[1] / errors[0]) / math.log(1e3) == pytest.approx(
        shifted_law(task, 0.6, 1.0).exponent, abs=3e-3
    )
    assert math.isnan(shifted_law(task, 1.0, 1.5).prefactor)


def test_the_best_schedule_is_at_the_minimum_of_its_prefactor() -> None:
    grid = np.linspace(1.05, 8.0, 1391)
    for p in (0.0, 0.2, 0.35):
        task = OffCentre(p, 2.0, 1.0)
        for learned in (False, True):
            if p > 0.0:
                found = min(grid, key=lambda eta0: shifted_law(task, eta0, 1.0, learned=learned).prefactor)
                assert best_eta0(p, learned=learned) == pytest.approx(found, abs=6e-3)
    assert best_eta0(0.2) == pytest.approx(3.13, abs=5e-3)


def test_without_flips_the_laws_are_those_of_centred_inputs() -> None:
    task = OffCentre(0.0, 2.0, 1.0)
    curve = off_centre_curve(task, (4.0, 1.0, 30.0), [1e6], rule="shifted", start=(0.5, 0.5))
    assert curve.error[0] == pytest.approx(float(shifted_law(task, 4.0, 1.0)(1e6)), rel=1e-3)
    plain = off_centre_curve(OffCentre(0.0, 0.0, 0.0), 0.7, [1.0, 30.0, 1e4])
    assert plain.error == pytest.approx(dichotomy_curve(0.7, [1.0, 30.0, 1e4]).error, rel=1e-8)


def test_what_makes_no_sense_is_refused() -> None:
    for numbers in ((0.5, 1.0, 1.0), (-0.1, 1.0, 1.0), (0.1, 1.0, 1.1), (0.1, math.inf, 0.0), (0.1, math.nan, 0.0)):
        with pytest.raises(InvalidSpec):
            OffCentre(*numbers)
    centred = OffCentre(0.1, 1.0, 0.0)
    for rule in ("shifted", "learned", "other"):
        with pytest.raises(InvalidSpec, match="`rule`"):
            off_centre_curve(centred, 0.1, [1.0], rule=rule)
    with pytest.raises(InvalidSpec, match="`start`"):
        off_centre_curve(FIG_2, 0.1, [1.0], rule="shifted")
    with pytest.raises(InvalidSpec, match="`start`"):
        off_centre_curve(FIG_2, 0.1, [1.0], start=(1.0, -1.95))
    with pytest.raises(InvalidSpec, match="`warm_up`"):
        off_centre_curve(FIG_2, 0.1, [1.0], rule="learned", warm_up=0.0)
    with pytest.raises(InvalidSpec, match="`eta`"):
        off_centre_residual(FIG_2, 0.0)
    with pytest.raises(InvalidSpec, match="`rule`"):
        off_centre_residual(centred, 0.1, "shifted")
    with pytest.raises(InvalidSpec, match="`eta0`"):
        shifted_law(FIG_2, 0.0, 1.0)
    with pytest.raises(InvalidSpec, match="`flip_rate`"):
        best_eta0(0.5)
