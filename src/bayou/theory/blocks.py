"""R, Q and c where inputs are not isotropic: one of each for every block of inputs of one variance.

A block has a share f_k of the weights, and inputs of variance v_k. Its part of the student's latent is normal with that
of the teacher, so averages of G s, G h, G^2 and gain precision over whole latents (`bayou.theory.averages`) are enough:

    dR_k/dalpha = v_k c_k (R_k / Q E[G h] + (T - R_k R / Q) E[G s])
    dQ_k/dalpha = 2 v_k c_k (Q_k / Q E[G h] + (R_k - Q_k R / Q) E[G s]) + v_k c_k^2 E[G^2]
    dc_k/dalpha = -v_k c_k^2 E[gain precision]      diagonal
    dc/dalpha   = -c V E[gain precision]            spherical

where R, Q and V are the sums of f_k v_k R_k, f_k v_k Q_k and f_k v_k c_k; one block is `bayou.theory.dynamics`. Here
the angle comes from R and Q by a difference: of its 16 digits it loses twice those of a small error.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import integrate

from bayou.contracts import Matrix, Rule, ScalarLikelihood, Vector
from bayou.errors import InvalidSpec
from bayou.theory.averages import Averages, Teacher, check_collapse, collapse

FIRST_ALPHA = 1e-13
TOLERANCE = 1e-10
FARTHEST = 150.0  # where steps that the integrator tries and rejects may lead


@dataclass(frozen=True)
class Inputs:
    """Independent normal inputs of mean 0: so many blocks of equal variance, each with its share of all inputs.

    >>> Inputs(variances=(1.0, 0.1))
    Inputs(variances=(1.0, 0.1), shares=(0.5, 0.5))
    """

    variances: tuple[float, ...] = (1.0,)
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        variances = tuple(float(value) for value in self.variances)
        shares = tuple(float(value) for value in self.shares) or (1.0 / max(len(variances), 1),) * len(variances)
        for name, values in (("variances", variances), ("shares", shares)):
            if not values or not all(0.0 < value < math.inf for value in values):
                raise InvalidSpec(f"`{name}` must be positive and finite, at least one; got {getattr(self, name)!r}.")
        if len(shares) != len(variances) or not math.isclose(sum(shares), 1.0):
            raise InvalidSpec(f"`shares` must be one for each variance, with the sum 1; got {self.shares!r}.")
        object.__setattr__(self, "variances", variances)
        object.__setattr__(self, "shares", shares)


class Blocks(NamedTuple):
    """R, Q and c: a row per alpha, a column per block; and the error."""

    R: Matrix
    Q: Matrix
    c: Matrix
    overlap: Vector
    error: Vector


class _Student:
    """What the equations need to know of a learner and its world."""

    def __init__(self, likelihood: ScalarLikelihood, rule: Rule, teacher: Teacher, inputs: Inputs, one_c: bool) -> None:
        self.v = np.array(inputs.variances)
        self.fv = np.array(inputs.shares) * self.v
        self.norm, self.one_c = teacher.norm, one_c
        self.averages = Averages(likelihood, rule, replace(teacher, norm=teacher.norm * float(self.fv.sum())))

    def angle(self, R: Matrix, Q: Matrix) -> tuple[Vector, Vector]:
        """Cosine and cotangent of the angle between the latents of student and teacher."""
        along, length = R @ self.fv, Q @ self.fv * self.averages.teacher.norm
        return along / np.sqrt(length), along / np.sqrt(np.maximum(length - along**2, 1e-300))

    def slopes(self, R: Vector, Q: Vector, c: Vector) -> tuple[Vector, Vector, Vector]:
        """Derivatives of R, Q and log c in alpha."""
        V = float(c @ self.fv)
        if not np.any(Q):
            of_slopes, _, of_squares, of_precisions = self.averages(0.0, 0.0, V)
            dR, dQ = self.norm * of_slopes * np.ones_like(R), c * of_squares
        else:
            _, cotangent = self.angle(R, Q)
            whole_R, whole_Q = R @ self.fv, Q @ self.fv
            psi = math.asinh(float(cotangent))
            of_slopes, of_latents, of_squares, of_precisions = self.averages(psi, float(whole_Q), V)
            dR = R / whole_Q * of_latents + (self.norm - R * (whole_R / whole_Q)) * of_slopes
            dQ = 2.0 * (Q / whole_Q * of_latents + (R - Q * (whole_R / whole_Q)) * of_slopes) + c * of_squares
        narrowing = np.full_like(c, V) if self.one_c else self.v * c
        return self.v * c * dR, self.v * c * dQ, -narrowing * of_precisions


def blocks_from_nothing(
    likelihood: ScalarLikelihood, rule: Rule, teacher: Teacher, inputs: Inputs, one_c: bool, c: float, alphas: Vector
) -> Blocks:
    """R, Q and c of each block at increasing alphas, from R = Q = 0 at alpha = 0."""
    student = _Student(likelihood, rule, teacher, inputs, one_c)
    n = student.v.size
    dR, dQ, _ = student.slopes(np.zeros(n), np.zeros(n), np.full(n, c))

    def slope(log_alpha: float, state: Vector) -> Vector:
        R, Q, log_c = state.reshape(3, n)
        c = np.exp(np.clip(log_c, -FARTHEST, FARTHEST))
        return math.exp(log_alpha) * np.concatenate(student.slopes(R, Q, c))

    early, late = alphas[alphas < FIRST_ALPHA, None], alphas[alphas >= FIRST_ALPHA]
    first = np.concatenate([early * dR, early * dQ, np.full((early.size, n), math.log(c))], axis=1)
    if late.size:
        state = np.concatenate([FIRST_ALPHA * dR, FIRST_ALPHA * dQ, np.full(n, math.log(c))])
        span = (math.log(FIRST_ALPHA), max(math.log(late[-1]), math.log(FIRST_ALPHA) + 1e-9))
        stops = np.maximum(np.log(late), span[0])
        limits = {"rtol": TOLERANCE, "atol": 1e-3 * TOLERANCE * FIRST_ALPHA, "max_step": 0.5}
        solution = integrate.solve_ivp(
            slope, span, state, "DOP853", stops, events=collapse(slice(2 * n, None)), **limits
        )
        check_collapse(solution, 0.0)
        first = np.concatenate([first, solution.y.T])
    R, Q, log_c = first[:, :n], first[:, n : 2 * n], first[:, 2 * n :]
    with np.errstate(invalid="ignore"):
        overlap, cotangent = student.angle(R, Q)
    nothing = ~np.any(Q, axis=1)
    overlap[nothing] = cotangent[nothing] = 0.0
    return Blocks(R, Q, np.exp(log_c), overlap, np.arctan2(1.0, cotangent) / math.pi)
