"""Fig. 2: the noisy perceptron of fifty weights. The full covariance learns online what batch Bayes learns.

Teacher and inputs are standard normal, labels have noise of scale 6.24; the prior is the true one. The spherical
covariance (9.4), and the diagonal one, lie on a curve of their own, a little above.
"""

from __future__ import annotations

import numpy as np

from bayou.likelihoods import Probit
from bayou.papers.claims import Claim, Effort, Experiment, Findings, judge
from bayou.papers.ensembles import Signs, Student, times_of
from bayou.papers.figures import BLUE, GREEN, GREY, INK, ORANGE, Picture, line, points
from bayou.posteriors import DiagonalGaussian, FullGaussian, SphericalGaussian
from bayou.theory import perceptron_curve

N_WEIGHTS = 50
NOISE_SCALE = 6.24
NOISE = NOISE_SCALE**2 / N_WEIGHTS
WORLD = Signs(N_WEIGHTS, NOISE_SCALE)
STUDENTS = {
    "full": Student(Probit(NOISE_SCALE), FullGaussian()),
    "diagonal": Student(Probit(NOISE_SCALE), DiagonalGaussian()),
    "spherical": Student(Probit(NOISE_SCALE), SphericalGaussian()),
}
CURVES = {"full": "batch_bayes", "diagonal": "spherical", "spherical": "spherical"}  # what each is to lie on
COLOURS = {"full": BLUE, "spherical": ORANGE, "diagonal": GREEN}
ALPHAS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
REPLICAS = 1_500

CLAIMS = {
    (family, alpha): Claim(
        "opper1998",
        "Fig. 2",
        f"generalisation error, {family} covariance, alpha = {alpha:g}",
        resolution=0.005,
    )
    for family in STUDENTS
    for alpha in ALPHAS
}


def run(effort: Effort) -> Findings:
    """All families on the same examples."""
    students = list(STUDENTS.values())
    measured = effort.ensemble(students, WORLD, times_of(ALPHAS, N_WEIGHTS), full=REPLICAS, quick=400)
    theory = {kind: perceptron_curve(kind, ALPHAS, NOISE).error for kind in set(CURVES.values())}
    verdicts = []
    for (family, alpha), claim in CLAIMS.items():
        simulation = measured.at(round(alpha * N_WEIGHTS), list(STUDENTS).index(family))
        expected = float(theory[CURVES[family]][ALPHAS.index(alpha)])
        verdicts.append(judge(claim, expected, simulation, quick=effort.quick))
    alphas = np.linspace(0.0, 20.0, 201)
    shown = [
        line("batch Bayes, N → ∞", alphas, perceptron_curve("batch_bayes", alphas, NOISE).error, "solid", INK),
        line("spherical online, N → ∞", alphas, perceptron_curve("spherical", alphas, NOISE).error, "dashed", GREY),
    ]
    for family, colour in COLOURS.items():
        which = list(STUDENTS).index(family)
        label = f"{family} covariance, N = {N_WEIGHTS}, {len(measured.values):,} runs"
        mean, error = measured.mean[which, :, 0], measured.standard_error[which, :, 0]
        shown.append(points(label, ALPHAS, mean, error, colour, "squares" if family == "diagonal" else "discs"))
    picture = Picture(
        "opper1998-figure-2",
        f"Noisy perceptron, σ₀ = {NOISE_SCALE}",
        "α",
        "generalisation error ε",
        tuple(shown),
        xlim=(0.0, 20.5),
        ylim=(0.0, 0.5),
    )
    return Findings(tuple(verdicts), (picture,))


EXPERIMENT = Experiment("Fig. 2", "generalisation error of the noisy perceptron", tuple(CLAIMS.values()), run)
