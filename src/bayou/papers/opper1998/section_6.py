"""Section 6: weights that are -1 or +1, as a product of independent signs (the Ising perceptron of Winther and Solla).

Learning them online follows its equation of motion with and without noise of the labels; without, every weight is known
for certain at a finite number of examples per weight. So it is in most runs of a few hundred weights. In a few, some
weight is taken for certain with the wrong sign: for a model without noise later examples are then impossible, and the
run goes astray.
"""

from __future__ import annotations

import math

import numpy as np

from bayou.contracts import Vector
from bayou.likelihoods import Probit, Step
from bayou.papers.claims import Claim, Effort, Experiment, Findings, judge
from bayou.papers.ensembles import Ensemble, Estimate, Generator, Pupil, Signs, Student, angle_error, times_of
from bayou.papers.figures import BLUE, GREY, ORANGE, Picture, line, points
from bayou.posteriors import BinaryWeights
from bayou.theory import perceptron_curve

N_WEIGHTS = 500
NOISES = {0.0: (0.5, 1.0, 2.0, 3.0), 0.25: (0.5, 1.0, 2.0, 4.0)}
AFTER = 6.0  # examples per weight by which the last of the weights is known, also where there are not infinitely many


def _claim(quantity: str, printed: float | None = None, tolerance: float | None = None) -> Claim:
    return Claim("opper1998", "Sec. 6", quantity, printed, "derived", tolerance, resolution=0.02)


CLAIMS = {
    (noise, alpha): _claim(f"generalisation error, weights ±1, noise {noise:g}, alpha = {alpha:g}")
    for noise, alphas in NOISES.items()
    for alpha in alphas
}
PERFECT = _claim("alpha of perfect generalisation, weights ±1, no noise", 4.368, 0.0005)
ALL_KNOWN = _claim(f"share of weights with the wrong sign in the median run, no noise, alpha = {AFTER:g}")


def draw_signs(rng: Generator, n: int) -> Vector:
    """A teacher."""
    return rng.choice([-1.0, 1.0], n)


def error_and_wrong_signs(pupil: Pupil, teacher: Vector, rng: Generator) -> tuple[float, float]:
    """Generalisation error, and the share of weights whose sign is wrong."""
    return angle_error(pupil, teacher), float(np.mean(pupil.belief.mean * teacher <= 0.0))


def perfect_alpha() -> float:
    """Where the error of the equation of motion becomes zero, to six digits."""
    low, high = 1.0, 10.0
    for _ in range(5):
        alphas = np.linspace(low, high, 21)
        first = int(np.argmax(perceptron_curve("ising", alphas).error == 0.0))
        low, high = alphas[first - 1], alphas[first]
    return float(high)


def simulate(noise: float, effort: Effort) -> Ensemble:
    """Noise is that of the label in units of the field's, squared: noise_scale^2 / N."""
    scale = math.sqrt(noise * N_WEIGHTS)
    student = Student(Probit(scale) if noise else Step(), BinaryWeights(form="cavity"))
    times = times_of((*NOISES[noise], AFTER), N_WEIGHTS)
    world = Signs(N_WEIGHTS, scale, draw_signs)
    return effort.ensemble([student], world, times, full=600, quick=10, measure=error_and_wrong_signs)


def run(effort: Effort) -> Findings:
    """With and without noise."""
    measured = {noise: simulate(noise, effort) for noise in NOISES}
    verdicts = []
    for (noise, alpha), claim in CLAIMS.items():
        theory = float(perceptron_curve("ising", [alpha], noise).error[0])
        verdicts.append(judge(claim, theory, measured[noise].at(round(alpha * N_WEIGHTS)), quick=effort.quick))
    wrong = measured[0.0].values[:, 0, -1, 1]
    astray = f"{np.count_nonzero(wrong)} of {wrong.size} runs went astray"
    verdicts += [
        judge(PERFECT, perfect_alpha(), note="not printed: an independent integration"),
        judge(ALL_KNOWN, 0.0, Estimate(float(np.median(wrong)), 0.0), note=astray),
    ]

    grid = np.linspace(0.0, AFTER, 241)
    shown = [line("spherical Gaussian, no noise", grid, perceptron_curve("spherical", grid).error, "dotted", GREY)]
    for (noise, found), colour in zip(measured.items(), (BLUE, ORANGE), strict=True):
        curve = perceptron_curve("ising", grid, noise).error
        label = f"weights ±1, noise {noise:g}, N = {N_WEIGHTS}, {len(found.values)} runs"
        seen, mean, error = np.array(found.times) / N_WEIGHTS, found.mean[0, :, 0], found.standard_error[0, :, 0]
        shown += [
            line(f"weights ±1, noise {noise:g}, N → ∞", grid, curve, "solid", colour),
            points(label, seen, mean, error, colour),
        ]
    picture = Picture(
        "opper1998-ising",
        "Ising perceptron, learnt online",
        "α",
        "generalisation error ε",
        tuple(shown),
        xlim=(0.0, AFTER + 0.1),
        ylim=(-0.01, 0.5),
    )
    return Findings(tuple(verdicts), (picture,))


EXPERIMENT = Experiment("Sec. 6", "binary weights: the Ising perceptron", (*CLAIMS.values(), PERFECT, ALL_KNOWN), run)
