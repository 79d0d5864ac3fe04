"""What the paper got wrong, printed and corrected side by side.

(22), the equation of motion of the overlap, lacks a factor 1/2 in its second term, which (21) has: integrated as
printed, with (17) and (18), it does not come to 0.88 / alpha. And 0.88 / alpha is said of the rule (2), which knows the
teacher's field; it belongs to (3), its expectation. With (2), 1 - rho^2 = exp(-alpha) (1 - rho0^2): exponential.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import integrate, special

from bayou.contracts import Vector
from bayou.likelihoods import Step
from bayou.papers.claims import Claim, Effort, Experiment, Findings, judge
from bayou.papers.deoliveira2007.figure_1 import STUDENT as BONA_STUDENT
from bayou.papers.ensembles import Generator, Signs, Student, times_of
from bayou.papers.figures import BLUE, GREY, INK, ORANGE, Picture, line, points
from bayou.posteriors import VariationalPerceptron

PAPER = "deoliveira2007"
AS_PRINTED, CORRECTED = 1.0, 0.5  # factor of the second term of (22)
MISSING_HALF = "the second term of (22) lacks a factor 1/2"
FAR, NEAR = 1e4, 10.0
N_WEIGHTS = 500

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(100)
_NODES, _WEIGHTS = 4.5 * (_NODES + 1.0), 4.5 * _WEIGHTS  # on [0, 9], in units of each half's own width

PRINTED_22 = Claim(
    PAPER,
    "(22)",
    f"e_g × alpha by (17), (18), (22) as printed, alpha = {FAR:.0e}",
    0.88,
    "stated",
    0.005,
    erratum=MISSING_HALF,
)
CORRECTED_22 = Claim(
    PAPER, "(22)", f"e_g × alpha by (17), (18), (22) corrected, alpha = {FAR:.0e}", 0.88, "stated", 0.005
)
PRINTED_CURVE = Claim(PAPER, "(22)", f"e_g by (22) as printed, alpha = {NEAR:g}", erratum=MISSING_HALF)
CORRECTED_CURVE = Claim(PAPER, "(22)", f"e_g by (22) corrected, alpha = {NEAR:g}", resolution=0.01)


def log_erfc(x: Vector) -> Vector:
    """Without underflow."""
    return np.asarray(math.log(2.0) + special.log_ndtr(-math.sqrt(2.0) * x))


def slopes(Q: float, zeta: float, r: float, factor: float) -> tuple[float, float, float]:
    """dQ/dalpha, dzeta/dalpha and drho/dalpha of (17), (18) and (22), with this factor in the last."""
    B, rho = math.sqrt(Q / zeta), 1.0 / math.sqrt(1.0 + r)
    left, right = 1.0 / math.sqrt(1.0 + 1.0 / r), 1.0 / math.sqrt(1.0 + B * B)
    tau = np.concatenate([-left * _NODES, right * _NODES])
    weights = np.concatenate([left * _WEIGHTS, right * _WEIGHTS])
    teacher, student = log_erfc(-tau / math.sqrt(r)), log_erfc(-tau * B)
    common = weights * np.exp(teacher - student - (1.0 + B * B) * tau**2)
    ratio = np.exp(-((B * tau) ** 2) - student) / math.sqrt(math.pi)
    dQ = 2.0 * zeta / math.pi * float(common @ (2.0 * B * tau + ratio))
    dzeta = -2.0 * zeta / math.pi * float(common @ (B * tau + ratio))
    gained = math.sqrt(r) / B * float(weights @ np.exp(-(1.0 + B * B + 1.0 / r) * tau**2 - student))
    lost = math.sqrt(math.pi) / (B * B) * float(common @ ratio)
    drho = 2.0 * rho / math.pi**1.5 * (gained - factor * lost)
    return dQ, dzeta, drho


def generalisation_error(alphas: Vector, factor: float) -> Vector:
    """e_g at increasing alphas, from no knowledge, by the equations of the paper.

    In logs of Q, zeta and cot(pi e_g) = 1 / sqrt(r), which keep their digits; from where Q = rho^2 = 2 alpha / pi.
    """
    first = 1e-6
    Q = 2.0 * first / math.pi

    def motion(log_alpha: float, state: Vector) -> list[float]:
        Q, zeta, cotangent = np.exp(state)
        dQ, dzeta, drho = slopes(Q, zeta, cotangent**-2, factor)
        turn = drho * (1.0 + cotangent**2) ** 1.5
        alpha = math.exp(log_alpha)
        return [alpha * dQ / Q, alpha * dzeta / zeta, alpha * turn / cotangent]

    start = [math.log(Q), math.log1p(-Q), 0.5 * math.log(Q / (1.0 - Q))]
    span = math.log(first), math.log(alphas[-1])
    solution = integrate.solve_ivp(motion, span, start, method="LSODA", t_eval=np.log(alphas), rtol=1e-8, atol=1e-10)
    return np.asarray(np.arctan(np.exp(-solution.y[2])) / math.pi)


# The oracle


ORACLE_ALPHAS = (1.0, 2.0, 5.0, 10.0)


def fixed_teacher(rng: Generator, n: int) -> Vector:
    """One for all replicas, because the oracle's specification names it; inputs have no direction of their own."""
    return np.ones(n)


ORACLE = Student(Step(), VariationalPerceptron(teacher=(1.0,) * N_WEIGHTS))
PRINTED_ORACLE = Claim(
    PAPER,
    "(2)",
    f"e_g × alpha with the teacher's field known, alpha = {ORACLE_ALPHAS[-1]:g}",
    0.88,
    "stated",
    0.005,
    erratum="0.88 / alpha belongs to (3); with (2) the error falls exponentially",
)
CORRECTED_ORACLE = {
    alpha: Claim(PAPER, "(2)", f"e_g with the teacher's field known, alpha = {alpha:g}", resolution=0.02)
    for alpha in ORACLE_ALPHAS
}


def oracle_error(alpha: Vector, first_overlap: float) -> Vector:
    """1 - rho^2 = exp(-alpha) (1 - rho0^2)."""
    missing = np.exp(-alpha) * (1.0 - first_overlap**2)
    return np.asarray(np.arctan2(np.sqrt(missing), np.sqrt(1.0 - missing)) / math.pi)


def run(effort: Effort) -> Findings:
    """Integrate (22) both ways; let the oracle learn."""
    world = Signs(N_WEIGHTS, draw_weights=fixed_teacher)
    found = effort.ensemble([ORACLE, BONA_STUDENT], world, times_of(ORACLE_ALPHAS, N_WEIGHTS), full=200, quick=30)

    alpha = np.geomspace(0.01, FAR, 121)
    printed, corrected = (generalisation_error(alpha, factor) for factor in (AS_PRINTED, CORRECTED))
    verdicts = [judge(PRINTED_22, float(printed[-1]) * FAR), judge(CORRECTED_22, float(corrected[-1]) * FAR)]
    bona = found.at(round(NEAR * N_WEIGHTS), student=1)
    for claim, factor in ((PRINTED_CURVE, AS_PRINTED), (CORRECTED_CURVE, CORRECTED)):
        (error,) = generalisation_error(np.array([NEAR]), factor)
        verdicts.append(judge(claim, float(error), bona, quick=effort.quick))

    hebb = math.sqrt(2.0 / math.pi / N_WEIGHTS)  # the overlap after the first example
    theory = oracle_error(np.array(ORACLE_ALPHAS), hebb)
    last = ORACLE_ALPHAS[-1]
    simulation = found.at(found.times[-1])
    verdicts.append(judge(PRINTED_ORACLE, float(theory[-1]) * last, simulation * last, quick=effort.quick))
    for place, claim in enumerate(CORRECTED_ORACLE.values()):
        verdicts.append(judge(claim, float(theory[place]), found.at(found.times[place]), quick=effort.quick))

    near = alpha[alpha <= 20.0]
    picture = Picture(
        "deoliveira2007-errata",
        "Printed and corrected",
        "α",
        "generalisation error $e_g$",
        (
            line("(22) as printed", alpha, printed, "dashed", ORANGE),
            line("(22) corrected", alpha, corrected, "solid", INK),
            line("0.88 / α", alpha, 0.88 / alpha, "dotted", GREY),
            line("(2), the oracle: exponential", near, oracle_error(near, 0.0), "solid", BLUE),
            *(
                points(
                    f"{name}, N = {N_WEIGHTS}",
                    ORACLE_ALPHAS,
                    found.mean[i, :, 0],
                    found.standard_error[i, :, 0],
                    colour,
                )
                for i, (name, colour) in enumerate((("the oracle", BLUE), ("scalar BOnA", INK)))
            ),
        ),
        logarithmic=True,
        xlim=(0.008, 1.3 * FAR),
        ylim=(3e-5, 1.0),
    )
    return Findings(tuple(verdicts), (picture,))


EXPERIMENT = Experiment(
    "Errata",
    "(22) and the oracle",
    (PRINTED_22, CORRECTED_22, PRINTED_CURVE, CORRECTED_CURVE, PRINTED_ORACLE, *CORRECTED_ORACLE.values()),
    run,
)
