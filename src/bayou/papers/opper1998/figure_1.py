"""Fig. 1: the threshold of a noisy step on the line, learnt as well as any estimator could.

p(S | theta, x) = Phi(S (x - theta) / sigma0), x uniform in [-1, 1], theta* = 0.1, sigma0 = 0.5. The paper does not say
from which prior it starts; here it is N(0, 1), which matters for the first fifty examples only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from bayou.contracts import Matrix, Vector
from bayou.likelihoods import Probit
from bayou.papers.claims import Claim, Effort, Experiment, Findings, judge
from bayou.papers.ensembles import Ensemble, Generator, Pupil, Student, Threshold
from bayou.papers.figures import BLUE, INK, ORANGE, Picture, line, points
from bayou.posteriors import DiagonalGaussian
from bayou.theory import cramer_rao, fisher_information

WORLD = Threshold(threshold=0.1, noise_scale=0.5)
PRIOR_VARIANCE = 1.0
PINNED = 1e-30  # the variance of a weight that is known
TIMES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

_NODES, _SHARES = np.polynomial.legendre.leggauss(200)


def threshold_student(noise_scale: float) -> Student:
    """Who learns the threshold: the features are (x, -1), the first weight is known to be 1."""
    posterior = DiagonalGaussian(prior_mean=(1.0, 0.0), prior_variance=(PINNED, PRIOR_VARIANCE))
    return Student(Probit(noise_scale), posterior)


def information(threshold: float = WORLD.threshold) -> float:
    """Fisher's information of one example about the threshold."""
    rows = np.column_stack([_NODES, -np.ones_like(_NODES)])
    return float(fisher_information(Probit(WORLD.noise_scale), rows, [1.0, threshold], _SHARES)[1, 1])


def inverse_mills(z: Vector) -> Vector:
    """lambda = phi / Phi, the slope of log Phi, without underflow."""
    return np.asarray(math.sqrt(2.0 / math.pi) / special.erfcx(-z / math.sqrt(2.0)))


def written_out_step(mean: Vector, variance: Vector, x: Vector, S: Vector) -> tuple[Vector, Vector]:
    """The update as (7.1), (7.2) and (9.2) have it, for one example of each of many replicas:

        m -= c S lambda(z) / s,    c -= c^2 lambda (lambda + z) / s^2,    z = S (x - m) / s,  s^2 = sigma0^2 + c

    with lambda = phi / Phi. It shares nothing with the learners.
    """
    s = np.sqrt(WORLD.noise_scale**2 + variance)
    z = S * (x - mean) / s
    ratio = inverse_mills(z)
    return mean - variance * S * ratio / s, variance - (variance / s) ** 2 * ratio * (ratio + z)


def written_out(n_replicas: int, times: Sequence[int], seed: int) -> Matrix:
    """Squared errors at these times, a row per replica, of `written_out_step` on examples of its own."""
    rng = np.random.default_rng([seed, 1])
    mean, variance = np.zeros(n_replicas), np.full(n_replicas, PRIOR_VARIANCE)
    errors = np.empty((n_replicas, len(times)))
    for t in range(1, times[-1] + 1):
        x = rng.uniform(-1.0, 1.0, n_replicas)
        fields = x - WORLD.threshold + WORLD.noise_scale * rng.standard_normal(n_replicas)
        mean, variance = written_out_step(mean, variance, x, np.where(fields > 0.0, 1.0, -1.0))
        if t in times:
            errors[:, times.index(t)] = (mean - WORLD.threshold) ** 2
    return errors


def squared_error(pupil: Pupil, teacher: Vector, rng: Generator) -> tuple[float]:
    """Of the threshold."""
    return (float(pupil.belief.mean[1] - teacher[1]) ** 2,)


def _claim(t: int, printed: float | None = None, tolerance: float | None = None) -> Claim:
    quantity = f"mean square error / Cramér-Rao bound, t = {t}"
    return Claim("opper1998", "Fig. 1", quantity, printed, "read off the plot", tolerance, resolution=0.01)


# In the plot the curve has reached the straight line, which is the bound, at its right end.
CLAIMS = {10: _claim(10), 100: _claim(100), 1000: _claim(1000, printed=1.0, tolerance=0.02)}


def run(effort: Effort) -> Findings:
    """Simulate, and compare with as many runs of the written-out update."""
    student = threshold_student(WORLD.noise_scale)
    measured = effort.ensemble([student], WORLD, TIMES, full=40_000, quick=2_500, measure=squared_error)
    n_written_out = effort.replicas(full=100_000, quick=10_000)
    recursion = Ensemble(TIMES, written_out(n_written_out, TIMES, effort.seed)[:, None, :, None])
    J = information()
    bound = {t: float(cramer_rao([[J]], t)[0, 0]) for t in TIMES}
    verdicts = []
    for t, claim in CLAIMS.items():
        theory, simulation = recursion.at(t) * (1.0 / bound[t]), measured.at(t) * (1.0 / bound[t])
        note = f"theory: {n_written_out:,} runs of the update as printed, ± {theory.standard_error:.2g}"
        verdicts.append(judge(claim, theory, simulation, quick=effort.quick, note=note))
    picture = Picture(
        "opper1998-figure-1",
        "One-dimensional noisy perceptron, θ* = 0.1, σ₀ = 0.5",
        "t",
        "quadratic error  E (θ − θ*)²",
        (
            line("bound (3.1)", TIMES, list(bound.values()), "solid", INK),
            line("update as printed", TIMES, recursion.mean[0, :, 0], "dashed", ORANGE),
            points(
                f"bayou, {len(measured.values):,} runs",
                TIMES,
                measured.mean[0, :, 0],
                measured.standard_error[0, :, 0],
                BLUE,
            ),
        ),
        logarithmic=True,
    )
    return Findings(tuple(verdicts), (picture,))


EXPERIMENT = Experiment("Fig. 1", "quadratic error of a one-dimensional toy", tuple(CLAIMS.values()), run)
