"""Fig. 1: the perceptron of unit length by the best schedule, eta = 2 sqrt(2 pi) / alpha, on a rule it can learn.

Its error falls as (4 / pi) / alpha; at N weights the constant is lower by some 0.9 / N of it, which the exact chain of
`chain` tells. A clock that goes by mistakes (`AdaptiveRate`) needs no alpha. Beside it, not in the paper, are the
Bayesian answers from the same examples: a sign without noise and a Gaussian belief, spherical or full.
"""

from __future__ import annotations

import math

import numpy as np

from bayou.contracts import Vector
from bayou.likelihoods import Step
from bayou.papers.barkai1995.chain import chain_errors
from bayou.papers.barkai1995.worlds import random_start
from bayou.papers.claims import Claim, Effort, Experiment, Findings, Verdict, judge
from bayou.papers.ensembles import Ensemble, Estimate, Signs, Student, times_of
from bayou.papers.figures import BLUE, GREEN, GREY, INK, ORANGE, Picture, line, points
from bayou.posteriors import FullGaussian, ScheduledPoint, SphericalGaussian
from bayou.schedules import AdaptiveRate, OptimalRate
from bayou.theory import dichotomy_curve, perceptron_curve

PAPER, ITEM = "barkai1995", "Fig. 1"
MANY, FEW = 500, 50  # weights
EARLY = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
ALPHAS = (*EARLY, 200.0, 500.0)
SOONER = (*EARLY, 200.0)  # where the constant of few weights is measured, in many runs
SETTLED = 50.0  # from here on the error tells the constant, told by the curve of theory how far there is to go
FAR = 1e6
BEST = (2.0, 1.0)  # eta0 and power
LIMIT = 4.0 / math.pi


def perceptrons(n_weights: int) -> list[Student]:
    """By the clock and by mistakes, from a random start."""
    start = random_start(n_weights)
    return [Student(Step(), ScheduledPoint(schedule, prior_mean=start)) for schedule in (OptimalRate(), AdaptiveRate())]


SPHERICAL = Student(Step(), SphericalGaussian())
FULL = Student(Step(), FullGaussian())
STUDENTS = {MANY: [*perceptrons(MANY), SPHERICAL], FEW: [*perceptrons(FEW), SPHERICAL, FULL]}
NAMES = ("perceptron, eta0 = 2", "perceptron, adaptive rate", "spherical Bayes", "full Bayes")

STATED = Claim(PAPER, ITEM, f"eps × alpha, eta0 = 2, alpha = {FAR:.0e}", 1.27, "stated", 0.005)
BATCH = Claim(
    PAPER, ITEM, f"eps × alpha, batch (a draw from the exact posterior), alpha = {FAR:.0e}", 0.625, "stated", 5e-4
)
CONSTANT = Claim(
    PAPER,
    ITEM,
    f"constant of 1 / alpha, eta0 = 2, N = {MANY}, alpha = {SETTLED:g} ... {ALPHAS[-1]:g}",
    1.27,
    "stated",
    0.005,
    resolution=0.005,
    finite_size=1.0 / MANY,
    quick=False,
)
SHIFT = Claim(
    PAPER,
    ITEM,
    f"what N = {FEW} weights take from the constant, times N / constant, alpha = {SETTLED:g} ... {SOONER[-1]:g}",
    quick=False,
)
ON_THE_CHAIN = {
    alpha: Claim(
        PAPER,
        ITEM,
        f"eps × alpha, eta0 = 2, N = {FEW}, alpha = {alpha:g}",
        resolution=0.01,
    )
    for alpha in (1.0, 10.0, 100.0)
}
SPHERICAL_POINTS = {
    alpha: Claim(
        PAPER,
        ITEM,
        f"eps × alpha, Step × SphericalGaussian, N = {MANY}, alpha = {alpha:g}",
        resolution=0.01,
        finite_size=1.0 / MANY,
        quick=alpha <= EARLY[-1],
    )
    for alpha in (10.0, 100.0, 500.0)
}
BAYES_FIRST = {
    (n_weights, place): Claim(
        PAPER,
        ITEM,
        f"share of the alphas from 1 on at which {NAMES[place]} errs less than both perceptrons, N = {n_weights}",
        1.0,
        "derived",
        0.0,
    )
    for n_weights, place in ((MANY, 2), (FEW, 2), (FEW, 3))
}


def constants(found: Ensemble, n_weights: int) -> Vector:
    """(4 / pi) eps / eps(N to infinity) of each replica, averaged over the alphas at which the end has come near."""
    alpha = np.array(found.times) / n_weights
    late = alpha >= SETTLED
    ratios = found.values[:, 0, late, 0] / dichotomy_curve(BEST, alpha[late]).error
    return np.asarray(LIMIT * ratios.mean(axis=1))


def estimate(values: Vector) -> Estimate:
    """Mean over replicas, and its standard error."""
    return Estimate(float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size)))


def shift_of(constant: Estimate) -> Estimate:
    """(1 - constant / (4 / pi)) N at few weights."""
    return Estimate(FEW * (1.0 - constant.mean / LIMIT), FEW * constant.standard_error / LIMIT)


def run(effort: Effort) -> Findings:
    """Many weights and few; then the chain of few, with many more runs."""
    alphas = EARLY if effort.quick else ALPHAS
    found = {
        MANY: effort.ensemble(STUDENTS[MANY], Signs(MANY), times_of(alphas, MANY), full=48, quick=4),
        FEW: effort.ensemble(STUDENTS[FEW], Signs(FEW), times_of(alphas, FEW), full=100, quick=20),
    }
    sooner = EARLY if effort.quick else SOONER
    often = effort.ensemble(STUDENTS[FEW][:1], Signs(FEW), times_of(sooner, FEW), full=3_000, quick=200)
    chain = chain_errors(BEST[0], FEW, sooner, effort.replicas(full=20_000, quick=4_000), effort.seed)

    end = float(dichotomy_curve(BEST, [FAR]).error[0]) * FAR
    batch = float(perceptron_curve("gibbs", [FAR]).error[0]) * FAR
    verdicts = [judge(STATED, end), judge(BATCH, batch)]
    if not effort.quick:
        verdicts.append(judge(CONSTANT, LIMIT, estimate(constants(found[MANY], MANY))))
        theory, simulation = (shift_of(estimate(constants(each, FEW))) for each in (chain, often))
        verdicts.append(judge(SHIFT, theory, simulation, note=_sampled(chain, theory)))
    for alpha, claim in ON_THE_CHAIN.items():
        theory, simulation = (each.at(round(alpha * FEW)) * alpha for each in (chain, often))
        verdicts.append(judge(claim, theory, simulation, quick=effort.quick, note=_sampled(chain, theory)))
    for alpha, claim in SPHERICAL_POINTS.items():
        if alpha in alphas:
            expected = float(perceptron_curve("spherical", [alpha]).error[0]) * alpha
            simulation = found[MANY].at(round(alpha * MANY), student=2) * alpha
            verdicts.append(judge(claim, expected, simulation, quick=effort.quick))
    verdicts += [judge_first(claim, found[n], place) for (n, place), claim in BAYES_FIRST.items()]
    return Findings(tuple(verdicts), (picture(alphas, found),))


def _sampled(chain: Ensemble, theory: Estimate) -> str:
    return f"theory: the exact chain, {len(chain.values):,} runs, ± {theory.standard_error:.2g}"


def judge_first(claim: Claim, found: Ensemble, place: int) -> Verdict:
    """At how many of the alphas a student comes before the perceptrons."""
    mean = found.mean[:, :, 0]
    return judge(claim, None, Estimate(float(np.mean(mean[place] < mean[:2].min(axis=0))), 0.0))


def picture(alphas: tuple[float, ...], found: dict[int, Ensemble]) -> Picture:
    """As in the paper: the error by the best schedule and 1.27 / alpha dashed; and what is not in it."""
    grid = np.geomspace(0.3, 1.3 * ALPHAS[-1], 120)
    series = [
        line("1.27 / α, as printed", grid, 1.27 / grid, "dashed", GREY),
        line("perceptron, η₀ = 2, N → ∞", grid, dichotomy_curve(BEST, grid).error, "solid", INK),
        line("spherical Gaussian, N → ∞", grid, perceptron_curve("spherical", grid).error, "solid", BLUE),
        line("batch, N → ∞ (0.625 / α)", grid, perceptron_curve("gibbs", grid).error, "dotted", GREY),
    ]
    shown = (
        (FEW, 0, "perceptron, η₀ = 2", INK, "squares"),
        (MANY, 0, "perceptron, η₀ = 2", INK, "discs"),
        (MANY, 1, "perceptron, adaptive rate", ORANGE, "discs"),
        (MANY, 2, "Step × SphericalGaussian", BLUE, "discs"),
        (FEW, 3, "Step × FullGaussian", GREEN, "discs"),
    )
    for n_weights, place, name, colour, stroke in shown:
        mean, error = found[n_weights].mean[place, :, 0], found[n_weights].standard_error[place, :, 0]
        series.append(points(f"{name}, N = {n_weights}", alphas, mean, error, colour, stroke))  # type: ignore[arg-type]  # mixed
    return Picture(
        "barkai1995-figure-1",
        "Realisable perceptron",
        "α",
        "generalisation error $ε_g$",
        tuple(series),
        logarithmic=True,
        xlim=(0.7, 1.3 * ALPHAS[-1]),
        ylim=(7e-4, 1.0),
    )


EXPERIMENT = Experiment(
    ITEM,
    "the best schedule for a rule that can be learnt",
    (
        STATED,
        BATCH,
        CONSTANT,
        SHIFT,
        *ON_THE_CHAIN.values(),
        *SPHERICAL_POINTS.values(),
        *BAYES_FIRST.values(),
    ),
    run,
)
