"""Table I: how the error falls in the end, for the perceptron rule, the variational rule, BOnA and batch Bayes.

The factors come from integrating each learner's own equations far enough; none is a formula's value.
"""

from __future__ import annotations

from bayou.likelihoods import Step
from bayou.papers.claims import Claim, Effort, Experiment, Findings, judge
from bayou.papers.deoliveira2007.figure_1 import STUDENT as BONA_STUDENT
from bayou.papers.ensembles import Signs, Student, times_of
from bayou.posteriors import Rosenblatt, VariationalPerceptron
from bayou.theory import order_parameters, perceptron_curve

PAPER, ITEM = "deoliveira2007", "Table I"
N_WEIGHTS = 500
WORLD = Signs(N_WEIGHTS)
FAR = 1e6
FARTHER = 1e15  # the perceptron rule comes to its limit with alpha^(-1/3) only
ALPHAS = (1.0, 10.0)
STUDENTS = {
    "rosenblatt": Student(Step(), Rosenblatt()),
    "variational": Student(Step(), VariationalPerceptron()),
}


def _stated(column: str, quantity: str, printed: float) -> Claim:
    return Claim(PAPER, ITEM, f"{column}: {quantity}", printed, "stated", 0.005)


ROSENBLATT = _stated("Rosenblatt", f"e_g × alpha^(1/3), alpha = {FARTHER:.0e}", 0.28)
VARIATIONAL = _stated("variational", f"e_g × alpha, alpha = {FAR:.0e}", 0.88)
BONA = _stated("BOnA", f"e_g × alpha, alpha = {FAR:.0e}", 0.88)
BATCH = _stated("batch Bayes", f"e_g × alpha, alpha = {FAR:.0e}", 0.44)
POINTS = {
    (kind, alpha): Claim(PAPER, ITEM, f"e_g, {kind} rule, N = {N_WEIGHTS}, alpha = {alpha:g}", resolution=0.01)
    for kind in STUDENTS
    for alpha in ALPHAS
}


def factors() -> dict[Claim, float]:
    """The four columns."""
    return {
        ROSENBLATT: float(perceptron_curve("rosenblatt", [FARTHER]).error[0]) * FARTHER ** (1.0 / 3.0),
        VARIATIONAL: float(perceptron_curve("variational", [FAR]).error[0]) * FAR,
        BONA: float(order_parameters(BONA_STUDENT.likelihood, BONA_STUDENT.posterior, [FAR]).error[0]) * FAR,
        BATCH: float(perceptron_curve("batch_bayes", [FAR]).error[0]) * FAR,
    }


def run(effort: Effort) -> Findings:
    """The limits, and the two rules that are not in Fig. 1 on their curves."""
    verdicts = [judge(claim, factor) for claim, factor in factors().items()]
    found = effort.ensemble(list(STUDENTS.values()), WORLD, times_of(ALPHAS, N_WEIGHTS), full=400, quick=30)
    for (kind, alpha), claim in POINTS.items():
        theory = float(perceptron_curve(kind, [alpha]).error[0])
        simulation = found.at(round(alpha * N_WEIGHTS), list(STUDENTS).index(kind))
        verdicts.append(judge(claim, theory, simulation, quick=effort.quick))
    return Findings(tuple(verdicts))


EXPERIMENT = Experiment(
    ITEM, "asymptotic errors of four learners", (ROSENBLATT, VARIATIONAL, BONA, BATCH, *POINTS.values()), run
)
