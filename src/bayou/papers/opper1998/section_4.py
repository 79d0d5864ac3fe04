"""Section 4: points that follow a gradient, on the toy of Fig. 1.

The online gradient (4.2), theta += (eta / t) dlnP, is efficient at one rate only: with a = eta J > 1/2, t J MSE goes to
a^2 / (2a - 1). A given metric for one weight is a rate: so the learner is `NaturalGradient` with J / a for the metric.

The natural gradient (4.4), theta += gamma_t J(theta)^-1 dlnP, takes the information at the point where it stands. With
gamma_t = 1 / t as printed the first step has length one; where it ends beyond the inputs, J is next to nothing, and the
second step goes beyond all bounds. An offset in gamma_t, or a bound on theta, keeps every run, and all are efficient.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from bayou.contracts import Vector
from bayou.likelihoods import Probit
from bayou.papers.claims import Claim, Effort, Experiment, Findings, judge
from bayou.papers.ensembles import Estimate, Student
from bayou.papers.opper1998.figure_1 import WORLD, information, inverse_mills, squared_error
from bayou.posteriors import NaturalGradient
from bayou.rules import Linearized

PINNED = 1e30  # the information on a weight that is known
OFFSET = 10.0  # lets the first steps be small ones; it is forgotten as offset / t
RATES = (1.0, 2.0, 3.0)
STEPS = 1500
ASTRAY = 2.0  # a threshold so far from all inputs has not been found
FARTHEST = 6.0  # where J is below 1e-20, and a run is lost


def _claim(item: str, quantity: str, printed: float | None, tolerance: float | None, erratum: str = "") -> Claim:
    resolution = 0.02 if printed else None  # a share of none has no relative error
    return Claim("opper1998", item, quantity, printed, "derived", tolerance, resolution, erratum=erratum)


EFFICIENCIES = {
    a: _claim("(4.2)", f"t J × mean square error at rate {a:g} / J, t = {STEPS}", a**2 / (2.0 * a - 1.0), None)
    for a in RATES
}
AS_PRINTED = _claim("(4.4)", "share of runs that go astray, gamma = 1 / t, as printed", 0.0, 0.001, "1 / t diverges")
WITH_OFFSET = _claim("(4.4)", "share of runs that go astray, gamma = 1 / (t + 2)", 0.0, 0.001)
WITH_BOUND = _claim("(4.4)", "share of runs that go astray, gamma = 1 / t, |theta| <= 1", 0.0, 0.001)
EFFICIENT = _claim("(4.4)", "t J × mean square error, gamma = 1 / (t + 2), t = 1000", 1.0, 0.0)


def gradient_student(a: float) -> Student:
    """Who follows the gradient at a times the efficient rate."""
    fisher = ((PINNED, 0.0), (0.0, information() / a))
    return Student(
        Probit(WORLD.noise_scale), NaturalGradient(fisher, offset=OFFSET, prior_mean=(1.0, 0.0)), Linearized()
    )


@cache
def information_along() -> tuple[Vector, Vector]:
    """Thresholds, and the log of the information at each: it takes seconds, and every run needs it."""
    places = np.linspace(-FARTHEST, FARTHEST, 241)
    return places, np.log([information(place) for place in places])


def natural_gradient(n_replicas: int, steps: int, offset: float, bound: float, seed: int) -> Vector:
    """Where (4.4) ends, from theta = 0, for many replicas at once."""
    places, logs = information_along()
    rng = np.random.default_rng([seed, 4])
    theta = np.zeros(n_replicas)
    for t in range(1, steps + 1):
        x = rng.uniform(-1.0, 1.0, n_replicas)
        signs = np.where(x - WORLD.threshold + WORLD.noise_scale * rng.standard_normal(n_replicas) > 0.0, 1.0, -1.0)
        z = signs * (x - theta) / WORLD.noise_scale
        slope = -signs * inverse_mills(z) / WORLD.noise_scale
        step = slope * np.exp(-np.interp(theta, places, logs)) / (t + offset)
        reach = min(bound, FARTHEST)
        theta = np.where(np.abs(theta) < FARTHEST, np.clip(theta + step, -reach, reach), theta)
    return theta


def _share(theta: Vector) -> Estimate:
    share = float(np.mean(np.abs(theta) > ASTRAY))
    return Estimate(share, math.sqrt(share * (1.0 - share) / theta.size))


def run(effort: Effort) -> Findings:
    """Both gradients."""
    students = [gradient_student(a) for a in RATES]
    measured = effort.ensemble(students, WORLD, (STEPS,), full=20_000, quick=500, measure=squared_error)
    J = information()
    verdicts = []
    for place, claim in enumerate(EFFICIENCIES.values()):
        squares = STEPS * J * measured.values[:, place, 0, 0]
        simulated = Estimate(float(squares.mean()), float(squares.std() / math.sqrt(squares.size)))
        verdicts.append(judge(claim, claim.printed, simulated, quick=effort.quick))
    n, steps = effort.replicas(full=20_000, quick=2_000), 1000
    for claim, offset, bound in ((AS_PRINTED, 0.0, math.inf), (WITH_OFFSET, 2.0, math.inf), (WITH_BOUND, 0.0, 1.0)):
        theta = natural_gradient(n, steps, offset, bound, effort.seed)
        verdicts.append(judge(claim, None, _share(theta), quick=effort.quick))
        if claim is WITH_OFFSET:
            squares = steps * J * (theta - WORLD.threshold) ** 2
            efficiency = Estimate(float(squares.mean()), float(squares.std() / math.sqrt(n)))
    verdicts.append(judge(EFFICIENT, 1.0, efficiency, quick=effort.quick))
    return Findings(tuple(verdicts))


EXPERIMENT = Experiment(
    "Sec. 4",
    "points that follow a gradient",
    (*EFFICIENCIES.values(), AS_PRINTED, WITH_OFFSET, WITH_BOUND, EFFICIENT),
    run,
)
