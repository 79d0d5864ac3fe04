"""Section 2: what becomes of the error under every schedule, (5) and (6); and of a student that keeps its length.

eta = eta0 sqrt(2 pi) alpha^-z. A constant rate stops at eta / sqrt(2 pi^3). For z < 1 the error follows the rate, for
z > 1 it freezes, for z = 1 it falls as 1 / alpha if eta0 > 1, as alpha^-eta0 if eta0 < 1, and between them as
log(alpha) / alpha: the print has a root of the logarithm, but (alpha theta)' = 1 / alpha has none.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from bayou.likelihoods import Step
from bayou.papers.barkai1995.figure_1 import estimate
from bayou.papers.barkai1995.worlds import random_start
from bayou.papers.claims import Claim, Effort, Experiment, Findings, Verdict, judge
from bayou.papers.ensembles import Ensemble, Estimate, Signs, Student, times_of
from bayou.papers.figures import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, Picture, line, points
from bayou.posteriors import ScheduledPoint
from bayou.schedules import ConstantRate, PowerLawRate
from bayou.theory import DichotomyCurve, dichotomy_curve, residual_error

PAPER = "barkai1995"
N_WEIGHTS = 500
UNIT = math.sqrt(2.0 * math.pi)
SKY = "#56B4E9"
ALPHAS = (1.0, 3.0, 10.0, 30.0, 100.0)
FIRST, LAST = 10.0, 100.0  # between which slopes are measured
STEADY = 0.5  # a constant rate
OFFSET = 1.0  # where the rate falls faster than 1 / alpha: without it nothing would be left of the start
FREEZING = 2.0  # its power
START = tuple((np.array(random_start(N_WEIGHTS)) / np.linalg.norm(random_start(N_WEIGHTS))).tolist())  # of length 1

KEEPS_LENGTH = "no division by the length"
RATES: dict[str, float | tuple[float, ...]] = {
    "eta0 = 3": (3.0, 1.0),
    "eta0 = 1": (1.0, 1.0),
    "eta0 = 1/2": (0.5, 1.0),
    "z = 1/2": (1.0, 0.5),
    "z = 2": (1.0, FREEZING, OFFSET),
    "constant": STEADY,
    KEEPS_LENGTH: 1.0,
}


def student(name: str) -> Student:
    """Who learns at this rate."""
    rate = RATES[name]
    if isinstance(rate, tuple):
        eta0, power, offset = (*rate, 0.0)[:3]
        point = ScheduledPoint(PowerLawRate(eta0 * UNIT, power, offset), prior_mean=START)
    else:
        point = ScheduledPoint(ConstantRate(rate), normalised=name == "constant", prior_mean=START)
    return Student(Step(), point)


GRID = tuple(np.geomspace(0.3, 130.0, 60).tolist())
FAR = {"z = 1/2": (1e6,), "eta0 = 1": (1e4, 1e6, 1e8), KEEPS_LENGTH: (1e13, 1e15)}
FARTHER = (1e4, 1e6)


@cache
def curve(name: str) -> DichotomyCurve:
    """Of infinitely many weights, at every alpha that is asked about."""
    alphas = sorted({*GRID, *ALPHAS, *FAR.get(name, FARTHER)})
    return dichotomy_curve(RATES[name], alphas, normalised=name != KEEPS_LENGTH)


def error(name: str, alpha: float) -> float:
    """At one of these alphas."""
    return float(curve(name).error[curve(name).alpha.tolist().index(alpha)])


def local_exponent(name: str, low: float, high: float) -> float:
    """Of the error, between two alphas."""
    return math.log(error(name, high) / error(name, low)) / math.log(high / low)


def log_slope(alpha_error: tuple[float, float], low: float, high: float) -> float:
    """Of pi alpha eps against the logarithm of alpha."""
    return math.pi * (alpha_error[1] - alpha_error[0]) / math.log(high / low)


def _simulated(item: str, quantity: str) -> Claim:
    return Claim(
        PAPER,
        item,
        f"{quantity}, N = {N_WEIGHTS}",
        resolution=0.02,
        finite_size=1.0 / N_WEIGHTS,
    )


FLOOR = Claim(
    PAPER,
    "(5)",
    "error at which a rate of 0.01 stops, over that rate",
    1.0 / math.sqrt(2.0 * math.pi**3),
    "derived",
    1e-5,
)
RELAXATION = Claim(PAPER, "(5)", "rate at which it comes there, over that rate", 1.0 / UNIT, "stated", 1e-3)
FLOOR_SEEN = _simulated("(5)", f"error at which a rate of {STEADY:g} stops")
FOLLOWING = Claim(PAPER, "(5)", "eps × alpha^(1/2) for z = 1/2, alpha = 1e+06", 1.0 / math.pi, "derived", 3e-4)
FOLLOWING_SEEN = _simulated("(5)", f"eps × alpha^(1/2) for z = 1/2, alpha = {LAST:g}")
FREEZES = Claim(PAPER, "(5)", "exponent of the error for z = 2, from alpha = 1e4 to 1e6", 0.0, "stated", 1e-3)
FROZEN_SEEN = _simulated("(5)", f"error for z = 2, alpha = {LAST:g}")
ABOVE = Claim(PAPER, "(6)", "eps × alpha for eta0 = 3, alpha = 1e+06", 9.0 / (2.0 * math.pi), "derived", 1e-4)
ABOVE_SEEN = _simulated("(6)", f"eps × alpha for eta0 = 3, alpha = {LAST:g}")
BELOW = Claim(PAPER, "(6)", "exponent of the error for eta0 = 1/2, from alpha = 1e4 to 1e6", -0.5, "derived", 1e-3)
BELOW_SEEN = _simulated("(6)", f"exponent of the error for eta0 = 1/2, from alpha = {FIRST:g} to {LAST:g}")
ROOT_OF_LOG = Claim(
    PAPER,
    "(6)",
    "growth of alpha × eps for eta0 = 1 from alpha = 1e4 to 1e8, as printed",
    math.sqrt(2.0),
    "derived",
    0.1,
    erratum="(6) reads sqrt(log alpha) / alpha for eta0 = 1; it is log(alpha) / (pi alpha)",
)
LOG = Claim(
    PAPER,
    "(6)",
    "slope of pi alpha eps against log(alpha) for eta0 = 1, from alpha = 1e6 to 1e8, corrected",
    1.0,
    "derived",
    1e-3,
)
LOG_SEEN = _simulated(
    "(6)", f"slope of pi alpha eps against log(alpha) for eta0 = 1, from alpha = {FIRST:g} to {LAST:g}"
)
BAUM = Claim(
    PAPER,
    "Sec. 5",
    "exponent of the error if W keeps its length, from alpha = 1e13 to 1e15",
    -1.0 / 3.0,
    "stated",
    1e-3,
)
LENGTH = Claim(PAPER, "Sec. 5", "exponent of that length, from alpha = 1e13 to 1e15", 1.0 / 3.0, "stated", 1e-3)
BAUM_FACTOR = Claim(
    PAPER,
    "Sec. 5",
    "eps × alpha^(1/3) if W keeps its length, alpha = 1e+15",
    (2.0 / 3.0) ** (1.0 / 3.0) / math.pi,
    "derived",
    1e-4,
)
BAUM_SEEN = _simulated("Sec. 5", f"error if W keeps its length, alpha = {LAST:g}")


def theory_alone() -> list[Verdict]:
    """The laws as printed beside the equations of motion, so far on that nothing else is left."""
    small = 0.01
    floor = residual_error(small)
    early, late = (float(part) - floor for part in dichotomy_curve(small, [2000.0, 3000.0]).error)
    relaxation = math.log(early / late) / 1000.0 / small
    one = {alpha: error("eta0 = 1", alpha) * alpha for alpha in FAR["eta0 = 1"]}
    growth = math.log(curve(KEEPS_LENGTH).norm[-1] / curve(KEEPS_LENGTH).norm[-2]) / math.log(1e2) / 2.0
    return [
        judge(FLOOR, floor / small),
        judge(RELAXATION, relaxation),
        judge(FOLLOWING, error("z = 1/2", 1e6) * 1e3),
        judge(FREEZES, local_exponent("z = 2", *FARTHER)),
        judge(ABOVE, error("eta0 = 3", 1e6) * 1e6),
        judge(BELOW, local_exponent("eta0 = 1/2", *FARTHER)),
        judge(ROOT_OF_LOG, one[1e8] / one[1e4]),
        judge(LOG, log_slope((one[1e6], one[1e8]), 1e6, 1e8)),
        judge(BAUM, local_exponent(KEEPS_LENGTH, *FAR[KEEPS_LENGTH])),
        judge(LENGTH, growth),
        judge(BAUM_FACTOR, error(KEEPS_LENGTH, 1e15) * 1e5),
    ]


def simulated(found: Ensemble, effort: Effort) -> list[Verdict]:
    """The production learners beside the same equations, where they have come to."""
    places = {name: place for place, name in enumerate(RATES)}
    seen = {name: dict(zip(ALPHAS, found.values[:, place, :, 0].T, strict=True)) for name, place in places.items()}
    last = {name: error(name, LAST) for name in RATES}
    one = {alpha: error("eta0 = 1", alpha) * alpha for alpha in (FIRST, LAST)}
    slopes = math.pi * (seen["eta0 = 1"][LAST] * LAST - seen["eta0 = 1"][FIRST] * FIRST) / math.log(LAST / FIRST)
    exponents = np.log(seen["eta0 = 1/2"][LAST] / seen["eta0 = 1/2"][FIRST]) / math.log(LAST / FIRST)
    cases: list[tuple[Claim, float, Estimate]] = [
        (FLOOR_SEEN, residual_error(STEADY), estimate(seen["constant"][LAST])),
        (FOLLOWING_SEEN, last["z = 1/2"] * math.sqrt(LAST), estimate(seen["z = 1/2"][LAST]) * math.sqrt(LAST)),
        (FROZEN_SEEN, last["z = 2"], estimate(seen["z = 2"][LAST])),
        (ABOVE_SEEN, last["eta0 = 3"] * LAST, estimate(seen["eta0 = 3"][LAST]) * LAST),
        (BELOW_SEEN, local_exponent("eta0 = 1/2", FIRST, LAST), estimate(exponents)),
        (LOG_SEEN, log_slope((one[FIRST], one[LAST]), FIRST, LAST), estimate(slopes)),
        (BAUM_SEEN, last[KEEPS_LENGTH], estimate(seen[KEEPS_LENGTH][LAST])),
    ]
    return [judge(claim, theory, found, quick=effort.quick) for claim, theory, found in cases]


def run(effort: Effort) -> Findings:
    """All schedules on the same examples."""
    students = [student(name) for name in RATES]
    found = effort.ensemble(students, Signs(N_WEIGHTS), times_of(ALPHAS, N_WEIGHTS), full=40, quick=3)
    return Findings((*theory_alone(), *simulated(found, effort)), (picture(found),))


def picture(found: Ensemble) -> Picture:
    """The schedules of section 2, which the paper tells of without a figure."""
    colours = (INK, BLUE, GREEN, ORANGE, PURPLE, GREY, SKY)
    series = []
    for place, (name, colour) in enumerate(zip(RATES, colours, strict=True)):
        label = name.replace("eta0", "η₀").replace("constant", f"constant, η = {STEADY:g}")
        series.append(line(f"{label}, N → ∞", curve(name).alpha, curve(name).error, "solid", colour))
        mean, bars = found.mean[place, :, 0], found.standard_error[place, :, 0]
        series.append(points(f"{label}, N = {N_WEIGHTS}", ALPHAS, mean, bars, colour))
    return Picture(
        "barkai1995-section-2",
        "Schedules of the rate",
        "α",
        "generalisation error $ε_g$",
        tuple(series),
        logarithmic=True,
        xlim=(0.7, 130.0),
        ylim=(2e-4, 1.0),
    )


EXPERIMENT = Experiment(
    "Sec. 2",
    "schedules of the rate",
    (
        FLOOR,
        RELAXATION,
        FOLLOWING,
        FREEZES,
        ABOVE,
        BELOW,
        ROOT_OF_LOG,
        LOG,
        BAUM,
        LENGTH,
        BAUM_FACTOR,
        FLOOR_SEEN,
        FOLLOWING_SEEN,
        FROZEN_SEEN,
        ABOVE_SEEN,
        BELOW_SEEN,
        LOG_SEEN,
        BAUM_SEEN,
    ),
    run,
)
