"""(23)-(27): one weight behind a threshold, where it comes to rest and how fast, by the chain of its mistakes.

f = s - w with s uniform in (-1/2, 1/2) and a teacher at 0: a mistake has the chance |w| and moves w by eta towards 0.
For a constant rate the law of x = w / eta is said to follow from (24), but x modulo 1 never changes: every density of
that phase has a law of its own. From a smooth start it is a triangle, and the error is eta / 3; from starts of a few
phases it is not. For eta = eta0 / n phases mix, and n times the error comes to a number of eta0 alone, if that is above
1.
"""

from __future__ import annotations

import math

import numpy as np

from bayou.contracts import Vector
from bayou.papers.barkai1995.figure_1 import estimate
from bayou.papers.claims import Claim, Effort, Experiment, Findings, judge
from bayou.papers.ensembles import Estimate
from bayou.papers.figures import BLUE, GREEN, INK, ORANGE, Picture, Series, line, points
from bayou.theory import decaying_density, decaying_error, stationary_density, stationary_error

PAPER = "barkai1995"
ETA, STEPS = 0.01, 1500  # a constant rate, and after how many examples nothing is left of the start but its phase
WIDTH = 0.05  # of the smooth start
LOW, HIGH = 0.2, 0.4  # phases of starts that are not smooth
KAPPAS = (1.5, 2.0, 4.0)  # eta0 r c, with r = c = 1
LAST = 5_000  # n, where the law of eta0 / n is read
ONE_PERCENT = 1.63  # of Kolmogorov and Smirnov: chance goes no further, times the root of the number of runs

TRIANGLE = Claim(PAPER, "(24)", "error / (r eta c) from a smooth start", 1.0 / 3.0, "derived", 1e-9, resolution=0.01)
SHAPE = Claim(PAPER, "(24)", "largest gap between the distribution of x and that of the triangle", 0.0, "derived", 0.0)
UNIQUE = Claim(
    PAPER,
    "(24)",
    "error / (r eta c) from starts of phases 0.2 to 0.4, if the law were unique",
    1.0 / 3.0,
    "derived",
    0.01,
    erratum="(24) has a law for every density of x modulo 1, which no mistake changes",
)
FEW_PHASES = Claim(
    PAPER,
    "(24)",
    "error / (r eta c) from starts of phases 0.2 to 0.4, by the law of these phases",
    (HIGH + LOW) - 2.0 / 3.0 * (HIGH**2 + HIGH * LOW + LOW**2),
    "derived",
    1e-6,
    resolution=0.01,
)
FALLING = {
    kappa: Claim(PAPER, "(27)", f"n × error for eta0 / n, eta0 r c = {kappa:g}, n = {LAST}", resolution=0.01)
    for kappa in KAPPAS
}


def chain(start: Vector, rates: Vector, rng: np.random.Generator) -> Vector:
    """Where w is after these rates."""
    w = start.copy()
    for eta in rates:
        w -= eta * np.sign(w) * (rng.random(w.size) < np.abs(w))
    return w


def falling_chain(kappa: float, n_runs: int, rng: np.random.Generator) -> Vector:
    """w n / kappa of many runs in the end; an offset keeps the first steps within the inputs."""
    offset = 2.0 * kappa
    n = np.arange(1.0, LAST + 1.0) + offset
    return np.asarray(chain(rng.uniform(-0.5, 0.5, n_runs), kappa / n, rng) * (n[-1] / kappa))


def few(phase: Vector) -> Vector:
    """The density of phases that are not smooth."""
    return np.asarray(np.where((phase > LOW) & (phase < HIGH), 1.0 / (HIGH - LOW), 0.0))


def gap(x: Vector) -> Estimate:
    """The largest gap to the triangle's distribution, with a third of what chance would leave."""
    ordered = np.sort(x)
    triangle = 0.5 + ordered - 0.5 * ordered * np.abs(ordered)
    ranks = np.arange(x.size + 1.0) / x.size
    largest = max(np.max(np.abs(triangle - ranks[:-1])), np.max(np.abs(triangle - ranks[1:])))
    return Estimate(float(largest), ONE_PERCENT / 3.0 / math.sqrt(x.size))


def run(effort: Effort) -> Findings:
    """The chain at a constant rate, from both starts, and at falling ones."""
    runs = effort.replicas(full=40_000, quick=8_000)
    rng = np.random.default_rng([effort.seed, 24])
    rates = np.full(STEPS, ETA)
    smooth = chain(rng.normal(0.0, WIDTH, runs), rates, rng) / ETA
    rough = estimate(np.abs(chain(ETA * (5.0 + rng.uniform(LOW, HIGH, runs)), rates, rng))) * (1.0 / ETA)
    expected = stationary_error(1.0, few)
    verdicts = [
        judge(TRIANGLE, stationary_error(1.0), estimate(np.abs(smooth)), quick=effort.quick),
        judge(SHAPE, 0.0, gap(smooth), quick=effort.quick),
        judge(UNIQUE, expected, rough, quick=effort.quick),
        judge(FEW_PHASES, expected, rough, quick=effort.quick),
    ]
    falling = {kappa: falling_chain(kappa, runs, rng) for kappa in KAPPAS}
    for kappa, claim in FALLING.items():
        seen = estimate(np.abs(falling[kappa])) * kappa
        verdicts.append(judge(claim, decaying_error(kappa), seen, quick=effort.quick))
    return Findings(tuple(verdicts), (picture({"constant": smooth, 2.0: falling[2.0], 4.0: falling[4.0]}),))


def picture(found: dict[str | float, Vector]) -> Picture:
    """The laws F of (24) and (27), and how often x was where."""
    edges = np.linspace(-2.0, 2.0, 41)
    middles = 0.5 * (edges[1:] + edges[:-1])
    grid = np.linspace(-2.0, 2.0, 401)
    series: list[Series] = []
    for (kind, x), colour in zip(found.items(), (INK, BLUE, ORANGE, GREEN), strict=False):
        name = "constant η" if isinstance(kind, str) else f"η₀ r c / n, η₀ r c = {kind:g}"
        density = stationary_density(grid) if isinstance(kind, str) else decaying_density(grid, kind)
        share = np.histogram(x, edges)[0] / x.size
        width = edges[1] - edges[0]
        bars = np.sqrt(share * (1.0 - share) / x.size) / width
        series.append(line(f"{name}: theory", grid, density, "solid", colour))
        series.append(points(f"{name}: {x.size:,} runs", middles, share / width, bars, colour))
    return Picture(
        "barkai1995-stationary",
        "One weight behind a threshold: where it is",
        "x = (w - w₀) / η c",
        "F(x)",
        tuple(series),
        xlim=(-2.0, 2.0),
        ylim=(0.0, 1.5),
    )


EXPERIMENT = Experiment(
    "Sec. 4, one weight",
    "the laws of one weight",
    (TRIANGLE, SHAPE, UNIQUE, FEW_PHASES, *FALLING.values()),
    run,
)
