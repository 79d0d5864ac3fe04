"""Fig. 1: generalisation error and variance of the scalar BOnA, from its equations of motion, and learners on them.

The scalar BOnA is a spherical Gaussian belief and a sign without noise: `SphericalGaussian` with `Step`. For many
examples per weight e_g = 0.88 / alpha and zeta falls as alpha^-2. With I = int phi^2 / Phi the exact limits are
sqrt(2 / pi) / I and 2 pi / I^2.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import integrate, special

from bayou.contracts import Vector
from bayou.likelihoods import Step
from bayou.papers.claims import Claim, Effort, Experiment, Findings, Verdict, judge
from bayou.papers.ensembles import Ensemble, Generator, Pupil, Signs, Student, angle_error, times_of
from bayou.papers.figures import BLUE, GREY, INK, ORANGE, Picture, line, points
from bayou.posteriors import SphericalGaussian
from bayou.theory import order_parameters, perceptron_curve

PAPER, ITEM = "deoliveira2007", "Fig. 1"
N_WEIGHTS = 500
WORLD = Signs(N_WEIGHTS)
STUDENT = Student(Step(), SphericalGaussian())
SOON = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LATE = (30.0, 100.0)
LAST = (300.0, 1000.0)
JUDGED = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
FAR = 1e6  # where the error times alpha is its limit to five digits


def limits() -> tuple[float, float]:
    """Of e_g alpha and zeta alpha^2, by the integral I."""
    log_two_pi = math.log(2.0 * math.pi)
    integral, _ = integrate.quad(lambda z: math.exp(-z * z - log_two_pi - special.log_ndtr(z)), -40.0, 40.0)
    return math.sqrt(2.0 / math.pi) / integral, 2.0 * math.pi / integral**2


_ERROR_LIMIT, _VARIANCE_LIMIT = limits()
STATED = Claim(PAPER, ITEM, f"e_g × alpha, alpha = {FAR:.0e}", 0.88, "stated", 0.005)
ERROR_DERIVED = Claim(PAPER, ITEM, f"e_g × alpha, alpha = {FAR:.0e}, four digits", _ERROR_LIMIT, "derived", 5e-5)
VARIANCE_DERIVED = Claim(
    PAPER, ITEM, f"zeta × alpha², alpha = {FAR:.0e}, four digits", _VARIANCE_LIMIT, "derived", 5e-4
)
POINTS = {
    (symbol, alpha): Claim(
        PAPER,
        ITEM,
        f"{symbol}, N = {N_WEIGHTS}, alpha = {alpha:g}",
        resolution=0.01,
        finite_size=1.0 / N_WEIGHTS,
        quick=alpha <= LATE[-1],
    )
    for symbol in ("e_g", "zeta")
    for alpha in JUDGED
}


def error_and_variance(pupil: Pupil, teacher: Vector, rng: Generator) -> tuple[float, float]:
    """e_g and zeta."""
    return angle_error(pupil, teacher), float(pupil.belief.variance[0])


def run(effort: Effort) -> Findings:
    """Few replicas go as far as the figure does; more of them as far as most of its points."""
    ensembles = [
        effort.ensemble([STUDENT], WORLD, times_of(SOON, N_WEIGHTS), full=400, quick=50, measure=error_and_variance)
    ]
    later = (*LATE, *(() if effort.quick else LAST))
    ensembles.append(
        effort.ensemble([STUDENT], WORLD, times_of(later, N_WEIGHTS), full=24, quick=6, measure=error_and_variance)
    )
    far = order_parameters(STUDENT.likelihood, STUDENT.posterior, [FAR])
    error, variance = float(far.error[0]) * FAR, float(far.c[0]) * FAR**2
    verdicts = [judge(STATED, error), judge(ERROR_DERIVED, error), judge(VARIANCE_DERIVED, variance)]
    verdicts += judge_points(ensembles, effort)
    return Findings(tuple(verdicts), (picture(ensembles),))


def judge_points(ensembles: list[Ensemble], effort: Effort) -> list[Verdict]:
    """Those alphas that were reached; by the closed curve, which has no kernel in common with the learners."""
    curve = perceptron_curve("spherical", JUDGED)
    theory = {"e_g": curve.error, "zeta": curve.variance}
    verdicts = []
    for (symbol, alpha), claim in POINTS.items():
        time = round(alpha * N_WEIGHTS)
        for ensemble in ensembles:
            if time in ensemble.times:
                found = ensemble.at(time, quantity=list(theory).index(symbol))
                verdicts.append(judge(claim, float(theory[symbol][JUDGED.index(alpha)]), found, quick=effort.quick))
    return verdicts


def picture(ensembles: list[Ensemble]) -> Picture:
    """As in the paper: e_g continuous, zeta dotted, 0.88 / alpha dashed."""
    alpha = np.geomspace(0.01, 1000.0, 200)
    curve = perceptron_curve("spherical", alpha)
    seen = np.concatenate([np.array(ensemble.times) / N_WEIGHTS for ensemble in ensembles])
    mean = np.concatenate([ensemble.mean[0] for ensemble in ensembles])
    errors = np.concatenate([ensemble.standard_error[0] for ensemble in ensembles])
    label = f"bayou, N = {N_WEIGHTS}"
    return Picture(
        "deoliveira2007-figure-1",
        "Scalar BOnA",
        "α",
        "$e_g(α)$ and $ζ(α)$",
        (
            line("$e_g$", alpha, curve.error, "solid", INK),
            line("$ζ$", alpha, curve.variance, "dotted", INK),
            line("0.88 / α", alpha, 0.88 / alpha, "dashed", GREY),
            points(f"$e_g$, {label}", seen, mean[:, 0], errors[:, 0], BLUE),
            points(f"$ζ$, {label}", seen, mean[:, 1], errors[:, 1], ORANGE),
        ),
        logarithmic=True,
        xlim=(0.008, 1300.0),
        ylim=(3e-6, 3.0),
    )


EXPERIMENT = Experiment(
    ITEM,
    "generalisation error and variance of the scalar BOnA",
    (STATED, ERROR_DERIVED, VARIANCE_DERIVED, *POINTS.values()),
    run,
)
