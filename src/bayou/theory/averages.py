"""Averages over teacher, student and label, of what an example does: one integral over production kernels.

Given the student's latent h, that of the teacher, b, is N(m, v), so the chance of a label y and the slope s by which y
moves the mean of b (from m to m + v s) are the teacher's own `log_evidence`. In t = h / sqrt(Q) ~ N(0, 1) everything
turns at t = 0, on scales that may be as narrow as the error; in t = width sinh(u) all of them are smooth, and a
trapezoid converges exponentially.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayou.contracts import Rule, ScalarLikelihood, Vector
from bayou.errors import ImproperBelief, InvalidSpec
from bayou.likelihoods import Gaussian
from bayou.numerics.pointers import likelihood_kernels, scalar_kernels

STEP = 0.1
COARSE_STEP = 0.5
REACH = 9.0  # standard deviations of h
LEAST_VARIANCE = 1e-60  # a belief surer than this has collapsed, as one without noise does where there is some
NEGLIGIBLE = 1e-30  # a chance that adds nothing to any digit

_POINTS, _SHARES = np.polynomial.hermite_e.hermegauss(20)
_SHARES = _SHARES / _SHARES.sum()


@dataclass(frozen=True)
class Teacher:
    """Who makes the labels: y ~ likelihood(b), b the latent of weights with the squared length ``norm`` per weight.

    >>> from bayou import Probit
    >>> Teacher(Probit(0.5), norm=2.0)
    Teacher(likelihood=Probit(noise_scale=0.5), norm=2.0)
    """

    likelihood: ScalarLikelihood
    norm: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.norm < math.inf:
            raise InvalidSpec(f"`norm` must be positive and finite; got {self.norm!r}.")
        known = isinstance(self.likelihood, ScalarLikelihood) and (
            self.likelihood.target_range == (-1.0, 1.0) or isinstance(self.likelihood, Gaussian)
        )
        if not known:
            raise InvalidSpec(f"`likelihood` must have targets -1 and +1, or be Gaussian; got {self.likelihood!r}.")


class Averages:
    """Called with artanh of the overlap, Q, and the variance of the latent: E[G s], E[G h], E[G^2], E[gain precision].

    G = gain slope is the step that the mean makes, in units of the variance times the input.
    """

    def __init__(self, likelihood: ScalarLikelihood, rule: Rule, teacher: Teacher) -> None:
        self.teacher = teacher
        self._signs = teacher.likelihood.target_range == (-1.0, 1.0)
        if (likelihood.target_range == (-1.0, 1.0)) != self._signs:
            raise InvalidSpec(f"{likelihood!r} cannot learn the targets of {teacher!r}.")
        self._site: Any = rule.site
        self._student = scalar_kernels(likelihood, rule), likelihood.params
        self._evidence: Any = teacher.likelihood.log_evidence
        self._teacher = likelihood_kernels(teacher.likelihood), teacher.likelihood.params

    def __call__(self, psi: float, Q: float, variance: float) -> tuple[float, float, float, float]:
        of_slopes = of_latents = of_squares = of_precisions = 0.0
        site, (kernels, params) = self._site, self._student
        scale = math.sqrt(self.teacher.norm)
        missing = self.teacher.norm / math.cosh(psi) ** 2
        for t, weight in self._places(psi, Q, variance):
            h = math.sqrt(Q) * t
            for y, chance, s in self._labels(scale * math.tanh(psi) * t, missing):
                share = weight * chance
                if share > NEGLIGIBLE:
                    _, slope, precision = site(kernels, y, h, variance, params)
                    gain = 1.0 / (1.0 + precision * variance)
                    step = gain * slope
                    of_slopes += share * step * s
                    of_latents += share * step * h
                    of_squares += share * step * step
                    of_precisions += share * gain * precision
        return of_slopes, of_latents, of_squares, of_precisions

    def _places(self, psi: float, Q: float, variance: float) -> list[tuple[float, float]]:
        """Values of t with their weights."""
        if Q == 0.0:
            return [(0.0, 1.0)]
        if not self._signs:  # nothing turns anywhere
            t = np.arange(-REACH, REACH + COARSE_STEP, COARSE_STEP)
            weights = np.exp(-0.5 * t * t) * (COARSE_STEP / math.sqrt(2.0 * math.pi))
            return list(zip(t.tolist(), weights.tolist(), strict=True))
        width = min(1.0, math.sqrt(variance / Q), 1.0 / max(abs(math.sinh(psi)), 1.0))
        steps = math.ceil(math.asinh(REACH / width) / STEP)
        u = STEP * np.arange(-steps, steps + 1)
        t = width * np.sinh(u)
        weights = np.exp(-0.5 * t * t) * np.cosh(u) * (width * STEP / math.sqrt(2.0 * math.pi))
        return list(zip(t.tolist(), weights.tolist(), strict=True))

    def _labels(self, mean: float, variance: float) -> list[tuple[float, float, float]]:
        """Each label, its chance, and the slope by which it moves the mean of the teacher's latent."""
        kernels, params = self._teacher
        if self._signs:
            told = [(y, *self._evidence(kernels, y, mean, variance, params)[:2]) for y in (-1.0, 1.0)]
            return [(y, math.exp(log_chance), s) for y, log_chance, s in told]
        targets = mean + math.sqrt(variance + params[0]) * _POINTS  # a Gaussian's parameter is its variance
        return [
            (y, share, self._evidence(kernels, y, mean, variance, params)[1])
            for y, share in zip(targets.tolist(), _SHARES.tolist(), strict=True)
        ]


def collapse(variances: slice) -> Callable[[float, Vector], float]:
    """For an integrator: stop where a log variance, in this part of the state, becomes too small."""

    def left(_: float, state: Vector) -> float:
        return float(np.min(state[variances])) - math.log(LEAST_VARIANCE)

    left.terminal = True  # type: ignore[attr-defined]  # scipy's way to say it
    return left


def check_collapse(solution: Any, unit: float) -> None:
    """Raise if an integration in log(unit + alpha) has stopped early."""
    if solution.status != 0:
        alpha = math.exp(solution.t_events[0][0]) - unit if solution.status == 1 else math.nan
        raise ImproperBelief(
            f"the belief collapses at alpha = {alpha:.4g}, where its variance falls below {LEAST_VARIANCE:g}: "
            "`alphas` must end before."
        )
