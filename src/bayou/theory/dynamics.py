"""The dynamics of R, Q and c: online learning with any likelihood and rule, in the limit of many weights.

Teacher w* and student mean w are vectors of N weights; inputs are isotropic normal, so that latents w . x / sqrt(N) are
told by the order parameters

    T = w* . w* / N      R = w . w* / N      Q = w . w / N      c, the variance of each weight

With b and h the latents of teacher and student, y ~ p(y | b) the label, and slope, precision and
gain = 1 / (1 + precision c) of the site that the rule makes of y at h, c, the step is F = gain slope c and

    dR/dalpha = E[F b]      dQ/dalpha = 2 E[F h] + E[F^2]      dc/dalpha = -c E[1 - gain]

alpha being examples per weight (Opper 1998, section 9; de Oliveira & Alamino 2007, (14)-(16) and (21), for any site).
Given h, b is normal: the chance of each label and the mean of b once it is known are `log_evidence` of the teacher and
its slope, so that all is one integral over h of kernels that learning itself uses. The student's angle is kept as
psi = artanh(rho), rho = R / sqrt(T Q), which has its digits even where rho is 1 to the last of them:

    dpsi/dalpha = sqrt(T / Q) E[F s] - sinh(psi) cosh(psi) E[F^2] / (2 Q),   s the slope of the teacher's log evidence
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate

from bayou.contracts import Posterior, Rule, ScalarLikelihood, Vector
from bayou.contracts.fit import check_fit
from bayou.errors import InvalidSpec
from bayou.posteriors import DiagonalGaussian, SphericalGaussian
from bayou.rules import MomentMatching
from bayou.theory.averages import Averages, Teacher, check_collapse, collapse
from bayou.theory.blocks import Inputs, blocks_from_nothing

FIRST_ALPHA = 1e-13  # a start from nothing is its first term up to here, to the last digit
TOLERANCE = 1e-11
FARTHEST = 150.0  # where steps that the integrator tries and rejects may lead


@dataclass(frozen=True, eq=False)
class OrderParameters:
    """R, Q and c at each alpha, in the order in which the alphas came.

    ``overlap`` is rho, the correlation of the latents, and ``error`` arccos(rho) / pi: for targets -1 and +1 the chance
    to disagree with the sign of the teacher's latent. Where inputs come in blocks, R, Q and c have a column for each.
    """

    alpha: Vector
    R: Vector
    Q: Vector
    c: Vector
    overlap: Vector
    error: Vector


def order_parameters(
    likelihood: ScalarLikelihood,
    posterior: Posterior[tuple[object, ...]],
    alphas: ArrayLike,
    teacher: Teacher | None = None,
    rule: Rule | None = None,
    inputs: Inputs | None = None,
    start: tuple[float, float] = (0.0, 0.0),
) -> OrderParameters:
    """How well a learner knows its teacher after alpha examples per weight.

    ``posterior``   `SphericalGaussian` or `DiagonalGaussian`, which have the same limit where inputs are isotropic;
                    its prior variance is the first c
    ``teacher``     who makes the labels: unless given, one of unit weights whose noise the student knows
    ``rule``        `MomentMatching` unless given
    ``inputs``      isotropic of variance 1 unless given; else in blocks, see `Inputs`
    ``start``       R and Q at alpha = 0; nothing is known unless given, and none can be given for several blocks

    Latents are w . x / sqrt(N), so that ``Probit(noise_scale)`` has the noise sigma0^2 / N = noise_scale^2. Labels are
    -1 and +1, or a `Gaussian` teacher's numbers.

    >>> from bayou import SphericalGaussian, Step
    >>> learnt = order_parameters(Step(), SphericalGaussian(), [10.0])
    >>> learnt.error, learnt.c
    (array([0.0711656]), array([0.0491577]))
    """
    rule = MomentMatching() if rule is None else rule
    variance = _first_variance(likelihood, posterior, rule)
    teacher = Teacher(likelihood) if teacher is None else teacher
    inputs = Inputs() if inputs is None else inputs
    alpha = np.atleast_1d(np.array(alphas, dtype=np.float64))
    if alpha.ndim != 1 or not np.all(np.isfinite(alpha) & (alpha >= 0.0)):
        raise InvalidSpec(f"`alphas` must be finite numbers, none negative, in one row; got {alphas!r}.")
    R, Q = (float(value) for value in start)
    if not (0.0 <= Q < math.inf and (Q * teacher.norm > R * R or R == Q == 0.0)):
        raise InvalidSpec(f"`start` must be R and Q with R^2 < Q * {teacher.norm:g}, or both 0; got {start!r}.")
    sizes, places = np.unique(alpha, return_inverse=True)
    if len(inputs.variances) > 1:
        if Q > 0.0:
            raise InvalidSpec(f"`start` must be (0, 0) where inputs come in several blocks; got {start!r}.")
        one_c = isinstance(posterior, SphericalGaussian)
        parts = blocks_from_nothing(likelihood, rule, teacher, inputs, one_c, variance, sizes)
        return OrderParameters(alpha, *(part[places] for part in parts))
    scale = inputs.variances[0]  # of the latents: weights of that size and inputs of size 1 have the same
    averages = Averages(likelihood, rule, replace(teacher, norm=teacher.norm * scale))
    if Q > 0.0:
        state = (math.log(Q * scale), math.log(variance * scale), math.atanh(R / math.sqrt(Q * teacher.norm)))
        log_Q, log_c, psis = _solve(averages, state, 0.0, 1e-3 * min(1.0, Q), sizes)
    else:
        log_Q, log_c, psis = _from_nothing(averages, variance * scale, sizes)
    known, rho = np.exp(log_Q[places]) / scale, np.tanh(psis[places])
    return OrderParameters(
        alpha=alpha,
        R=rho * np.sqrt(known * teacher.norm),
        Q=known,
        c=np.exp(log_c[places]) / scale,
        overlap=rho,
        error=np.arctan2(1.0, np.sinh(psis[places])) / math.pi,
    )


def _first_variance(likelihood: ScalarLikelihood, posterior: Posterior[tuple[object, ...]], rule: Rule) -> float:
    check_fit(likelihood, posterior, rule)
    if not isinstance(posterior, (SphericalGaussian, DiagonalGaussian)):
        raise InvalidSpec(f"`posterior` must be SphericalGaussian or DiagonalGaussian; got {posterior!r}.")
    if np.ndim(posterior.prior_variance) or np.any(posterior.prior_mean):
        raise InvalidSpec(f"`posterior` must have one prior variance and the prior mean 0; got {posterior!r}.")
    if isinstance(posterior, DiagonalGaussian) and posterior.projection != "moments":
        raise InvalidSpec(f"`posterior` must keep the moments of its weights; got {posterior!r}.")
    return float(posterior.prior_variance)  # type: ignore[arg-type]  # one number, as was just seen


def _from_nothing(averages: Averages, c: float, alphas: Vector) -> Vector:
    """At first the steps do not depend on where the student is: R and Q grow with alpha, rho with its root."""
    of_slopes, _, of_squares, _ = averages(0.0, 0.0, c)
    rate = c * c * of_squares
    turn = math.sqrt(averages.teacher.norm) * of_slopes / math.sqrt(of_squares)  # rho = turn sqrt(alpha)
    early, late = alphas[alphas < FIRST_ALPHA], alphas[alphas >= FIRST_ALPHA]
    with np.errstate(divide="ignore"):
        first = np.array([np.log(rate * early), np.full_like(early, math.log(c)), np.arctanh(turn * np.sqrt(early))])
    if not late.size:
        return first
    state = (math.log(rate * FIRST_ALPHA), math.log(c), math.atanh(turn * math.sqrt(FIRST_ALPHA)))
    return np.concatenate([first, _solve(averages, state, FIRST_ALPHA, FIRST_ALPHA, late)], axis=1)


def _solve(averages: Averages, state: tuple[float, ...], start: float, unit: float, alphas: Vector) -> Vector:
    """log Q, log c and psi at each alpha; integrated in log(unit + alpha), since most happens early."""

    def slope(log_time: float, state: Vector) -> list[float]:
        log_Q, log_c, psi = np.clip(state, -FARTHEST, FARTHEST).tolist()
        Q, c = math.exp(log_Q), math.exp(log_c)
        of_slopes, of_latents, of_squares, of_precisions = averages(psi, Q, c)
        spread = c * c * of_squares / Q
        turn = math.sqrt(averages.teacher.norm / Q) * c * of_slopes - 0.25 * math.sinh(2.0 * psi) * spread
        rates = (2.0 * c * of_latents / Q + spread, -c * of_precisions, turn)
        return [math.exp(log_time) * rate for rate in rates]

    if not alphas.size or alphas[-1] == start:
        return np.tile(state, (alphas.size, 1)).T
    times = np.log(unit + alphas)
    span = (math.log(unit + start), float(times[-1]))
    solution = integrate.solve_ivp(
        slope, span, state, "DOP853", times, events=collapse(slice(1, 2)), rtol=TOLERANCE, atol=TOLERANCE, max_step=0.5
    )
    check_collapse(solution, unit)
    return np.asarray(solution.y)
