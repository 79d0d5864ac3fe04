"""Section 8: how beliefs narrow and errors fall in the end, whether the model is true or not.

In the end C^-1 / t = A (8.4), t E[e e'] = A^-1 B A^-1 (8.10); for a true model A = B = J, Fisher's information (8.5).
Of the entropic error (8.11) the paper says that it exceeds the best that the model can do by tr(B A^-1) / 2t (8.12).
That holds for the plug-in p(y | mean). For the predictive distribution, of which it is stated, the average over the
belief adds (N - tr(B A^-1)) / 2t, of the same order: the excess is N / 2t, true model or not. The paper prints no
numbers; its formulas are evaluated for three models that are not true, and one that is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy import optimize, special

from bayou.contracts import Matrix, Vector
from bayou.likelihoods import Gaussian, Probit
from bayou.papers.claims import Claim, Effort, Experiment, Findings, Verdict, judge
from bayou.papers.ensembles import Estimate, Generator, Numbers, Pupil, Signs, Student, Threshold
from bayou.papers.opper1998.figure_1 import inverse_mills, threshold_student
from bayou.posteriors import FullGaussian
from bayou.theory import entropic_error, latent_information, plug_in_entropic_error, sandwich

PAPER = "opper1998"
WRONG_ENTROPY = "(8.12) is the excess of the plug-in; the predictive distribution, of which it is stated, has N / 2t"


# A model that is true: five weights, probit


N_WEIGHTS = 5
LATE, LATER = 4_000, 50_000
TEST_INPUTS = 500
PERCEPTRON = Student(Probit(), FullGaussian())

NARROWING = Claim(PAPER, "(8.5)", f"tr(C⁻¹ J⁻¹) / N t, N = 5 probit, t = {LATER}", 1.0, tolerance=0.0, resolution=0.01)
ESTIMATION = Claim(PAPER, "(8.10)", f"t e'J e / N, N = 5 probit, t = {LATE}", 1.0, tolerance=0.0, resolution=0.02)
ENTROPY = Claim(
    PAPER, "(8.12)", f"2 t × entropic error / N, N = 5 probit, t = {LATE}", 1.0, tolerance=0.0, resolution=0.02
)


def on_a_sphere(rng: Generator, n: int) -> Vector:
    """A teacher of any direction, with the length that the prior expects: all have the same information."""
    direction = rng.standard_normal(n)
    return np.asarray(direction * math.sqrt(n / (direction @ direction)))


TRUE_WORLD = Signs(N_WEIGHTS, noise_scale=1.0, draw_weights=on_a_sphere)


@cache
def perceptron_information() -> tuple[float, float]:
    """Eigenvalues of J for standard normal inputs: across the teacher, and along it."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(100)
    shares = shares / shares.sum()
    information = latent_information(Probit(), math.sqrt(N_WEIGHTS) * nodes)
    return float(shares @ information), float(shares @ (information * nodes**2))


def compare_with_truth(pupil: Pupil, teacher: Vector, rng: Generator) -> tuple[float, float, float]:
    """tr(C^-1 J^-1) / N, e'Je / N, and the entropic error, over inputs drawn for this replica."""
    across, along = perceptron_information()
    covariance, error = pupil.covariance(), pupil.belief.mean - teacher
    unit = teacher / math.sqrt(teacher @ teacher)
    precision = np.linalg.inv(covariance) - np.eye(N_WEIGHTS)  # what was learnt beyond the prior
    towards = float(unit @ precision @ unit)
    narrowing = ((np.trace(precision) - towards) / across + towards / along) / N_WEIGHTS
    estimation = (across * (error @ error) + (along - across) * (unit @ error) ** 2) / N_WEIGHTS
    inputs = rng.standard_normal((TEST_INPUTS, N_WEIGHTS))
    spread = np.sqrt(1.0 + np.einsum("ij,jk,ik->i", inputs, covariance, inputs))
    entropic = relative_entropy(inputs @ teacher, inputs @ pupil.belief.mean / spread).mean()
    return float(narrowing), float(estimation), float(entropic)


def relative_entropy(truth: Vector, told: Vector) -> Vector:
    """Between signs of probability Phi(+-truth) and Phi(+-told)."""
    total = np.zeros_like(truth)
    for S in (1.0, -1.0):
        total += special.ndtr(S * truth) * (special.log_ndtr(S * truth) - special.log_ndtr(S * told))
    return total


def true_model(effort: Effort) -> list[Verdict]:
    """Judge what is claimed of a model that is true."""
    early = effort.ensemble([PERCEPTRON], TRUE_WORLD, [LATE], full=8_000, quick=1_000, measure=compare_with_truth)
    late = effort.ensemble([PERCEPTRON], TRUE_WORLD, [LATER], full=40, quick=8, measure=compare_with_truth)
    narrowing = late.at(LATER) * (1.0 / LATER)
    estimation = early.at(LATE, quantity=1) * LATE
    entropy = early.at(LATE, quantity=2) * (1.0 / entropic_error(LATE, N_WEIGHTS))
    found = ((NARROWING, narrowing), (ESTIMATION, estimation), (ENTROPY, entropy))
    return [judge(claim, 1.0, estimate, quick=effort.quick) for claim, estimate in found]


# Models that are not true: a step and a mean, with noise of another size than the model says


_NODES, _SHARES = np.polynomial.legendre.leggauss(100)
_SIGNS = np.array([[1.0], [-1.0]])


@dataclass(frozen=True)
class WrongStep:
    """A threshold, learnt by `Probit` with the wrong noise: also the best threshold is then not the true one."""

    name: str
    world: Threshold
    model_scale: float
    place: int = 1  # of the weight that is learnt

    @property
    def student(self) -> Student:
        """Who learns it."""
        return threshold_student(self.model_scale)

    @cached_property
    def chances(self) -> Matrix:
        """Of each sign, a row each, at the nodes x, with the weight of the node."""
        told = special.ndtr(_SIGNS * (_NODES - self.world.threshold) / self.world.noise_scale)
        return np.asarray(0.5 * _SHARES * told)

    def ratios(self, threshold: float) -> tuple[Matrix, Matrix]:
        """Slope and minus curvature of log Phi(z), at z = S (x - threshold) / scale."""
        z = _SIGNS * (_NODES - threshold) / self.model_scale
        ratio = inverse_mills(z)
        return ratio, ratio * (ratio + z)

    @cached_property
    def best(self) -> float:
        """The threshold at which the expected slope vanishes (8.3)."""

        def slope(threshold: float) -> float:
            return float(np.sum(self.chances * _SIGNS * self.ratios(threshold)[0]))

        return float(optimize.brentq(slope, -1.0, 1.0, xtol=1e-14))

    @property
    def information(self) -> tuple[float, float]:
        """A and B of (8.7)."""
        slope, curvature = self.ratios(self.best)
        A, B = np.sum(self.chances * curvature), np.sum(self.chances * slope**2)
        return float(A) / self.model_scale**2, float(B) / self.model_scale**2

    def excess(self, mean: float, scale: float) -> float:
        """What the prediction Phi(S (x - mean) / scale) costs beyond the best of the model."""
        best = special.log_ndtr(_SIGNS * (_NODES - self.best) / self.model_scale)
        told = special.log_ndtr(_SIGNS * (_NODES - mean) / scale)
        return float(np.sum(self.chances * (best - told)))


@dataclass(frozen=True)
class WrongMean:
    """A mean, learnt by `Gaussian` with the wrong noise: everything is exact, at every t."""

    name: str
    world: Numbers
    model_scale: float
    place: int = 0

    @property
    def student(self) -> Student:
        """Who learns it, from a prior that says next to nothing."""
        return Student(Gaussian(self.model_scale**2), FullGaussian(prior_variance=1e6))

    @property
    def best(self) -> float:
        """The true mean."""
        return self.world.weights[0]

    @property
    def information(self) -> tuple[float, float]:
        """A and B of (8.7)."""
        return self.model_scale**-2, self.world.noise_scale**2 * self.model_scale**-4

    def excess(self, mean: float, scale: float) -> float:
        """What the prediction N(mean, scale^2) costs beyond the best of the model."""
        told = math.log(scale) + (self.world.noise_scale**2 + (mean - self.best) ** 2) / (2.0 * scale**2)
        best = math.log(self.model_scale) + self.world.noise_scale**2 / (2.0 * self.model_scale**2)
        return told - best


FOREIGN = (
    WrongStep("step, noise 1.5 told as 0.5", Threshold(0.1, 1.5), 0.5),
    WrongStep("step, noise 0.3 told as 1", Threshold(0.1, 0.3), 1.0),
    WrongMean("mean, noise 2 told as 1", Numbers((0.3,), 2.0, constant=True), 1.0),
)
FOREIGN_TIME, FOREIGN_LATER = 5_000, 100_000


@dataclass(frozen=True)
class ForeignClaims:
    """What the paper says of one of them, and what it should say."""

    narrowing: Claim
    estimation: Claim
    plug_in: Claim
    predictive: Claim
    corrected: Claim


def _foreign_claims(toy: WrongStep | WrongMean) -> ForeignClaims:
    A, B = toy.information
    printed = B / A

    def claim(item: str, quantity: str, value: float, t: int = FOREIGN_TIME, erratum: str = "") -> Claim:
        named = f"{quantity}: {toy.name}, t = {t}"
        return Claim(PAPER, item, named, value, "derived", 1e-9, 0.05, erratum=erratum)

    return ForeignClaims(
        claim("(8.4)", "1 / C t", A, FOREIGN_LATER),
        claim("(8.10)", "t × mean square error", float(sandwich([[A]], [[B]])[0, 0])),
        claim("(8.12)", "2 t × excess entropy of the plug-in", printed),
        claim("(8.12)", "2 t × excess entropy of the predictive, as printed", printed, erratum=WRONG_ENTROPY),
        claim("(8.12)", "2 t × excess entropy of the predictive, corrected", 1.0),
    )


CLAIMS = {toy: _foreign_claims(toy) for toy in FOREIGN}


def foreign_model(toy: WrongStep | WrongMean, effort: Effort) -> list[Verdict]:
    """Judge what is claimed of a model that is not true."""

    def measure(pupil: Pupil, teacher: Vector, rng: Generator) -> tuple[float, float, float, float]:
        mean, variance = float(pupil.belief.mean[toy.place]), float(pupil.variances()[toy.place])
        predictive = toy.excess(mean, math.hypot(toy.model_scale, math.sqrt(variance)))
        return 1.0 / variance - 1.0 / prior, (mean - toy.best) ** 2, toy.excess(mean, toy.model_scale), predictive

    prior = float(Pupil(toy.student, toy.world.n_features).variances()[toy.place])
    t, later = FOREIGN_TIME, FOREIGN_LATER
    narrowed = effort.ensemble([toy.student], toy.world, [later], full=40, quick=10, measure=measure)
    found = effort.ensemble([toy.student], toy.world, [t], full=20_000, quick=1_000, measure=measure)
    A, B = toy.information
    mean_square = float(sandwich([[A]], [[B]])[0, 0])
    plug_in = 2.0 * t * plug_in_entropic_error(t, [[A]], [[B]])
    predictive = 2.0 * t * entropic_error(t, 1)
    claims = CLAIMS[toy]
    cases: list[tuple[Claim, float, Estimate]] = [
        (claims.narrowing, A, narrowed.at(later) * (1.0 / later)),
        (claims.estimation, mean_square, found.at(t, quantity=1) * t),
        (claims.plug_in, plug_in, found.at(t, quantity=2) * (2.0 * t)),
        (claims.predictive, predictive, found.at(t, quantity=3) * (2.0 * t)),
        (claims.corrected, predictive, found.at(t, quantity=3) * (2.0 * t)),
    ]
    return [judge(claim, theory, estimate, quick=effort.quick) for claim, theory, estimate in cases]


def run(effort: Effort) -> Findings:
    """All four models."""
    verdicts = true_model(effort)
    for toy in FOREIGN:
        verdicts += foreign_model(toy, effort)
    return Findings(tuple(verdicts))


ALL = (NARROWING, ESTIMATION, ENTROPY, *(claim for claims in CLAIMS.values() for claim in vars(claims).values()))
EXPERIMENT = Experiment("Sec. 8", "asymptotics, true model and wrong models", ALL, run)
