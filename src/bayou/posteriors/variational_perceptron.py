"""The rule that gains the most overlap with a teacher per example (Kinouchi and Caticha 1992; de Oliveira and Alamino).

With h = w . x / |w|, b the field of a teacher of length 1, rho the overlap, r = 1 / rho^2 - 1, features of variance 1:

    w += |w| (b / rho - h) x / d                              (2), if the teacher's field is known: an oracle
    w += |w| sqrt(r) lambda(y h / sqrt(r)) y x / d            (3), its expectation given the sign y

The expectation needs the overlap, which follows its own average course: u = 1 / r gains (1 + u) lambda^2 / d. At no
overlap both are singular; the first example is learnt by Hebb's rule, which leaves u = (2 / pi) / d.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayou.contracts import Array, Vector
from bayou.errors import InvalidSpec
from bayou.numerics.jit import vectorized_kernel
from bayou.numerics.normal import normal_ratios
from bayou.numerics.passes import passes
from bayou.numerics.points import PointEstimate, length_of, marginal, pass_over_signs, scatter, step_along
from bayou.numerics.priors import Scales, per_weight

# u beyond this is certainty: it stays a number, whatever targets contradict it.
MOST_KNOWN = 1e30


class VariationalBelief(NamedTuple):
    """The point, (how many examples it has seen, u = rho^2 / (1 - rho^2)), and the teacher of unit length, or zeros."""

    mean: Array
    tally: Array
    teacher: Array


@vectorized_kernel
def _set_to_unit_length(weights: Array) -> None:
    """Only the direction counts; on targets that no hyperplane divides, the length would grow without bound."""
    per_length = 1.0 / max(length_of(weights), 1e-300)
    for j in range(weights.size):
        weights[j] *= per_length


@vectorized_kernel
def absorb(belief: VariationalBelief, x: Array, slope: float, precision: float, variance: float) -> None:
    """Learn an example whose sign is that of the slope."""
    y = 1.0 if slope > 0.0 else -1.0
    d = belief.mean.size
    length = length_of(belief.mean)
    belief.tally[0] += 1.0
    if length == 0.0:
        step_along(belief.mean, y, x)
        belief.tally[1] = 2.0 / math.pi / d
        _set_to_unit_length(belief.mean)
        return
    h = marginal(belief, x)[0] / length
    field, overlap = 0.0, 0.0
    for j in range(d):
        field += belief.teacher[j] * x[j]
        overlap += belief.teacher[j] * belief.mean[j]
    if overlap != 0.0:
        step_along(belief.mean, length * (field * length / overlap - h) / d, x)
    else:
        root = math.sqrt(belief.tally[1])
        ratio = normal_ratios(y * h * root)[1]
        step_along(belief.mean, length * ratio / root * y / d, x)
        belief.tally[1] = min(belief.tally[1] + (1.0 + belief.tally[1]) * ratio * ratio / d, MOST_KNOWN)
    _set_to_unit_length(belief.mean)


@vectorized_kernel
def latent_belief(belief: VariationalBelief, c: int) -> VariationalBelief:
    """The point of one latent."""
    return VariationalBelief(belief.mean[c], belief.tally[c], belief.teacher[c])


_passes = passes(__name__, marginal, scatter, absorb, latent_belief)


@vectorized_kernel
def step(belief: VariationalBelief, x: Array, y: float, share: float) -> None:
    """A weight counts as whole rows, rounded up."""
    if share > 0.0:
        absorb(belief, x, y, 0.0, 0.0)


@dataclass(frozen=True)
class VariationalPerceptron(PointEstimate[VariationalBelief]):
    """The variational optimal rule, for study: from what is known, or with a teacher, whose field it then sees.

    >>> from bayou import Learner, MomentMatching, Step, VariationalPerceptron
    >>> learner = Learner(Step(), VariationalPerceptron(), MomentMatching(), n_features=2)
    >>> _ = learner.learn_many([[1.0, 0.5], [-1.0, 0.2], [0.7, -1.0]], [1, -1, -1])
    >>> learner.belief.mean.round(2)
    array([0.45, 0.89])
    """

    teacher: tuple[float, ...] | None = None
    dtype: str = "float64"
    prior_mean: Scales = 0.0

    needs_signs = True
    asks_evidence = True
    predict = staticmethod(_passes.predict)
    learn = staticmethod(pass_over_signs(__name__, step))

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.any(self.prior_mean):
            raise InvalidSpec(f"`prior_mean` must be 0, where the overlap is known; got {self.prior_mean!r}.")
        if self.teacher is not None and not (np.all(np.isfinite(self.teacher)) and np.any(self.teacher)):
            raise InvalidSpec(f"`teacher` must be finite numbers, not all of them 0; got {self.teacher!r}.")

    def prior(self, n_features: int) -> VariationalBelief:
        """The point before any example."""
        teacher = per_weight("teacher", 0.0 if self.teacher is None else self.teacher, n_features)
        unit = teacher / max(float(np.linalg.norm(teacher)), 1e-300)
        return VariationalBelief(np.zeros(n_features, dtype=self.dtype), np.zeros(2), unit.astype(self.dtype))

    def absorb(self, belief: VariationalBelief, features: Vector, slope: float, precision: float) -> None:
        """Learn an example whose sign is that of the slope, in place."""
        absorb(belief, np.ascontiguousarray(features, dtype=self.dtype), slope, precision, 0.0)
