"""Both labels equally frequent: the uniform shift (12) divides by zero, and a nonuniform T(S) is left to the reader.

Here T(S) = A (A . S) / |A|^2, A the mean of y S: steps at right angles to A. It has what (11) asks for whatever the law
of inputs. Two mixtures of two Gaussians show it, with labels of mean zero; for mixtures the plain rule moves by

    F = (1/2) sum_k share_k [(1 - 2p) (m(q0_k) U_k + g(q0_k) W0) - m(q_k) U_k - g(q_k) W]
    R' = eta (F . W0 - R F . W) - eta^2 R eps / 2      and likewise for the overlap beside W0

with m and g of `bayou.theory.off_centre`, and all U_k in the plane of W0 and one other direction.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import integrate, special

from bayou.contracts import Vector
from bayou.likelihoods import FlipProbit, Step
from bayou.papers.barkai1995.figure_1 import estimate
from bayou.papers.barkai1995.worlds import Centre, Clusters, random_start
from bayou.papers.claims import Claim, Effort, Experiment, Findings, Verdict, judge
from bayou.papers.ensembles import Ensemble, Estimate, Student, times_of
from bayou.papers.figures import BLUE, GREY, INK, ORANGE, PURPLE, Picture, line, points
from bayou.posteriors import FullGaussian, ScheduledPoint, ShiftedPoint
from bayou.schedules import PowerLawRate

PAPER, ITEM = "barkai1995", "Sec. 3, zero mean"
N_WEIGHTS = 100
FLIP_RATE = 0.2
ALPHAS = (10.0, 30.0, 100.0, 300.0, 1000.0)
SCALE, LARGEST = 4.0, 0.25  # of the rate of the plain rule
FOUND = 0.03  # above p: a run nearer than that has found the teacher


def balanced(along: float, share: float) -> float:
    """Where along the teacher the other centre must lie for labels of mean zero."""
    return float(special.ndtri(0.5 - 0.5 * share / (1.0 - share) * special.erf(along / math.sqrt(2.0))))


MIXTURES = {
    "two equal clusters": (Centre(1.0, 2.0, 0.5), Centre(-1.0, -1.0, 0.5)),
    "two unequal clusters": (Centre(-0.5, 2.0, 2.0 / 3.0), Centre(balanced(-0.5, 2.0 / 3.0), -2.0, 1.0 / 3.0)),
}
WORLDS = {name: Clusters(N_WEIGHTS, FLIP_RATE, centres) for name, centres in MIXTURES.items()}

START = random_start(N_WEIGHTS)
STUDENTS = {
    "plain": Student(Step(), ScheduledPoint(PowerLawRate(SCALE, largest=LARGEST), prior_mean=START)),
    "mean shift": Student(Step(), ShiftedPoint("mean", prior_mean=START)),
    "projection": Student(Step(), ShiftedPoint("projection", prior_mean=START)),
    "auto": Student(Step(), ShiftedPoint("auto", prior_mean=START)),
    "FlipProbit": Student(FlipProbit(FLIP_RATE), FullGaussian()),
}
NAMES = list(STUDENTS)


def told_rate(alpha: float) -> float:
    """That of the plain rule, for the theory."""
    return SCALE / max(alpha, SCALE / LARGEST)


def drift(world: Clusters, overlap: float, across: float) -> tuple[float, float]:
    """R and what lies beside it, per unit of the rate, as the rate goes to 0."""
    kept = 1.0 - 2.0 * world.flip_rate
    towards, W = np.zeros(2), np.array([overlap, across])
    for centre in world.centres:
        place = np.array([centre.along, centre.across])
        m0, m = (math.erf(q / math.sqrt(2.0)) for q in (centre.along, float(W @ place)))
        g0 = math.sqrt(2.0 / math.pi) * math.exp(-0.5 * centre.along**2)
        towards += 0.5 * centre.share * ((kept * m0 - m) * place + kept * g0 * np.array([1.0, 0.0]))
    # What F has along W, of unit length, is taken away by the division: F - W (F . W).
    moved = towards - W * float(towards @ W)
    return float(moved[0]), float(moved[1])


def plain_curve(world: Clusters, alphas: Vector) -> Vector:
    """Errors of the plain rule from a random start, in the limit of many weights."""

    def slope(alpha: float, state: Vector) -> list[float]:
        rate = told_rate(alpha)
        spread = 0.5 * rate**2 * world.error(*state)
        return [rate * part - spread * own for part, own in zip(drift(world, *state), state, strict=True)]

    found = integrate.solve_ivp(slope, (0.0, alphas[-1]), [0.0, 0.0], "LSODA", alphas, rtol=1e-8, atol=1e-10)
    return np.array([world.error(*state) for state in found.y.T])


def plain_end(world: Clusters) -> float:
    """Its error as the rate goes to 0, from a random start."""
    span = (0.0, 1e4)
    found = integrate.solve_ivp(lambda _, state: drift(world, *state), span, [0.0, 0.0], "LSODA", rtol=1e-9, atol=1e-12)
    return world.error(*found.y[:, -1])


PLAIN = {
    name: Claim(
        PAPER,
        ITEM,
        f"error of the plain rule, {name}, N = {N_WEIGHTS}, alpha = {ALPHAS[-1]:g}",
        resolution=0.01,
        finite_size=1.0 / N_WEIGHTS,
        quick=False,
    )
    for name in MIXTURES
}


def _share_claim(rule: str, name: str, printed: float) -> Claim:
    words = f"share of runs that find the teacher, {rule}, {name}, N = {N_WEIGHTS}"
    return Claim(PAPER, ITEM, words, printed, "derived", 0.0)


RULES = ("plain", "projection", "auto")
SHARES = {(rule, name): _share_claim(rule, name, float(rule != "plain")) for rule in RULES for name in MIXTURES}
UNIFORM = {
    name: Claim(
        PAPER,
        ITEM,
        f"share of alphas from 100 on at which the mean shift errs more than the projection, {name}, N = {N_WEIGHTS}",
        1.0,
        "derived",
        0.0,
    )
    for name in MIXTURES
}
BAYES = {
    name: Claim(
        PAPER,
        ITEM,
        f"share of alphas at which FlipProbit × FullGaussian errs less than every perceptron, {name}, N = {N_WEIGHTS}",
        1.0,
        "derived",
        0.0,
    )
    for name in MIXTURES
}
EXPONENTS = {
    name: Claim(
        PAPER,
        ITEM,
        f"exponent of eps - p, projection, {name}, from alpha = 100 to 1000, N = {N_WEIGHTS}",
        -0.5,
        "derived",
        0.1,
        quick=False,
    )
    for name in MIXTURES
}


def run(effort: Effort) -> Findings:
    """Both mixtures."""
    verdicts, pictures = [], []
    alphas = ALPHAS[:-1] if effort.quick else ALPHAS
    for name, world in WORLDS.items():
        found = effort.ensemble(
            list(STUDENTS.values()), world, times_of(alphas, N_WEIGHTS), full=40, quick=8, measure=world.measure
        )
        verdicts += judge_mixture(name, found, effort)
        pictures.append(picture(name, found, alphas))
    return Findings(tuple(verdicts), tuple(pictures))


def judge_mixture(name: str, found: Ensemble, effort: Effort) -> list[Verdict]:
    """Who has found the teacher in the end, and how fast."""
    verdicts = []
    excess = found.values[:, :, :, 0] - FLIP_RATE
    for rule in RULES:
        share = float(np.mean(excess[:, NAMES.index(rule), -1] < FOUND))
        note = f"error {estimate(excess[:, NAMES.index(rule), -1]).mean + FLIP_RATE:.4f} in the end"
        verdicts.append(judge(SHARES[rule, name], None, Estimate(share, 0.0), note=note))
    late = np.array(found.times) >= 100.0 * N_WEIGHTS
    above = found.mean[NAMES.index("mean shift"), late, 0] > found.mean[NAMES.index("projection"), late, 0]
    ends = excess[:, NAMES.index("mean shift"), -1] + FLIP_RATE
    note = f"error {ends.mean():.3f} in the end, from {ends.min():.3f} to {ends.max():.3f}"
    verdicts.append(judge(UNIFORM[name], None, Estimate(float(above.mean()), 0.0), note=note))
    perceptrons = [NAMES.index(rule) for rule in NAMES if rule != "FlipProbit"]
    first = found.mean[NAMES.index("FlipProbit"), :, 0] < found.mean[perceptrons, :, 0].min(axis=0)
    verdicts.append(judge(BAYES[name], None, Estimate(float(first.mean()), 0.0)))
    if not effort.quick:
        theory = float(plain_curve(WORLDS[name], np.array([ALPHAS[-1]]))[0])
        verdicts.append(
            judge(PLAIN[name], theory, found.at(found.times[-1]), note=f"eta to 0: {plain_end(WORLDS[name]):.4f}")
        )
        projected = np.log(excess[:, NAMES.index("projection")])
        exponents = (projected[:, -1] - projected[:, ALPHAS.index(100.0)]) / math.log(10.0)
        verdicts.append(judge(EXPONENTS[name], None, estimate(exponents)))
    return verdicts


def picture(name: str, found: Ensemble, alphas: tuple[float, ...]) -> Picture:
    """eps - p on logarithmic axes."""
    grid = np.geomspace(5.0, 1300.0, 60)
    series = [line("plain, N → ∞", grid, plain_curve(WORLDS[name], grid) - FLIP_RATE, "solid", ORANGE)]
    series.append(line("(18): (2p / πα)$^{1/2}$", grid, (FLIP_RATE * 2.0 / math.pi / grid) ** 0.5, "dashed", GREY))
    for rule, colour in (("plain", ORANGE), ("mean shift", PURPLE), ("projection", INK), ("FlipProbit", BLUE)):
        place = NAMES.index(rule)
        mean, bars = found.mean[place, :, 0] - FLIP_RATE, found.standard_error[place, :, 0]
        series.append(points(f"{rule}, N = {N_WEIGHTS}", alphas, mean, bars, colour))
    return Picture(
        f"barkai1995-zero-mean-{'equal' if name.startswith('two equal') else 'unequal'}",
        f"Labels of mean zero, p = {FLIP_RATE:g}: {name}",
        "α",
        "$ε_g - p$",
        tuple(series),
        logarithmic=True,
        xlim=(7.0, 1300.0),
        ylim=(3e-4, 0.6),
    )


EXPERIMENT = Experiment(
    ITEM,
    "labels of mean zero",
    (*PLAIN.values(), *SHARES.values(), *UNIFORM.values(), *BAYES.values(), *EXPONENTS.values()),
    run,
)
