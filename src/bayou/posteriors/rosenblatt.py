"""w += rate * y * x where y (w . x) <= 0, else nothing: the perceptron (Rosenblatt 1962).

From examples that a hyperplane divides its error falls as 0.278 alpha^(-1/3), alpha examples per weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayou.contracts import Array, Vector
from bayou.numerics.jit import vectorized_kernel
from bayou.numerics.passes import passes
from bayou.numerics.points import PointEstimate, marginal, pass_over_signs, scatter, step_along
from bayou.numerics.priors import Scales, per_weight
from bayou.numerics.validation import require_positive


class RosenblattBelief(NamedTuple):
    """The point, how many examples it has seen, and its rate."""

    mean: Array
    tally: Array
    rate: Array


@vectorized_kernel
def absorb(belief: RosenblattBelief, x: Array, slope: float, precision: float, variance: float) -> None:
    """A step towards the sign of the slope."""
    step_along(belief.mean, belief.rate[0] * np.sign(slope), x)
    belief.tally[0] += 1.0


@vectorized_kernel
def latent_belief(belief: RosenblattBelief, c: int) -> RosenblattBelief:
    """The point of one latent."""
    return RosenblattBelief(belief.mean[c], belief.tally[c], belief.rate[c])


_passes = passes(__name__, marginal, scatter, absorb, latent_belief)


@vectorized_kernel
def step(belief: RosenblattBelief, x: Array, y: float, share: float) -> None:
    """A row on the wrong side is added, by its share."""
    if y * marginal(belief, x)[0] <= 0.0:
        step_along(belief.mean, belief.rate[0] * y * share, x)
    belief.tally[0] += 1.0


@dataclass(frozen=True)
class Rosenblatt(PointEstimate[RosenblattBelief]):
    """The perceptron, for study. From the zero point the rate changes nothing but the length of the weights.

    >>> from bayou import Learner, MomentMatching, Rosenblatt, Step
    >>> learner = Learner(Step(), Rosenblatt(), MomentMatching(), n_features=2)
    >>> _ = learner.learn_many([[1.0, 0.5], [-1.0, 0.2], [0.7, -1.0]], [1, -1, -1])
    >>> learner.belief.mean
    array([0.3, 1.5])
    """

    rate: float = 1.0
    prior_mean: Scales = 0.0
    dtype: str = "float64"

    needs_signs = True
    asks_evidence = True
    predict = staticmethod(_passes.predict)
    learn = staticmethod(pass_over_signs(__name__, step))

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "rate")

    def prior(self, n_features: int) -> RosenblattBelief:
        """The point before any example."""
        mean = per_weight("prior_mean", self.prior_mean, n_features).astype(self.dtype)
        return RosenblattBelief(mean, np.zeros(1), np.array([self.rate]))

    def absorb(self, belief: RosenblattBelief, features: Vector, slope: float, precision: float) -> None:
        """Move the point towards the sign of the slope, in place."""
        absorb(belief, np.ascontiguousarray(features, dtype=self.dtype), slope, precision, 0.0)
