"""w += rate / (t + offset)^power * d log p(y | w . x) / dw: a point that follows the gradient (Opper 1998, (4.2)).

In one dimension, with power 1 and ``a`` the rate times the Fisher information, t times the mean square error goes to
a^2 / (2a - 1) of what the best estimator reaches, if a > 1/2; else the error only falls as t^(-2a).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayou.contracts import Array, Vector
from bayou.numerics.jit import vectorized_kernel
from bayou.numerics.passes import passes
from bayou.numerics.points import PointEstimate, marginal, scatter, step_along
from bayou.numerics.priors import Scales, per_weight
from bayou.numerics.validation import require_positive


class GradientBelief(NamedTuple):
    """The point, how many examples it has seen, and its schedule: rate, offset and power."""

    mean: Array
    tally: Array
    schedule: Array


@vectorized_kernel
def absorb(belief: GradientBelief, x: Array, slope: float, precision: float, variance: float) -> None:
    """One step along the gradient."""
    rate, offset, power = belief.schedule[0], belief.schedule[1], belief.schedule[2]
    step_along(belief.mean, rate * slope / (belief.tally[0] + offset) ** power, x)
    belief.tally[0] += 1.0


@vectorized_kernel
def latent_belief(belief: GradientBelief, c: int) -> GradientBelief:
    """The point of one latent."""
    return GradientBelief(belief.mean[c], belief.tally[c], belief.schedule[c])


_passes = passes(__name__, marginal, scatter, absorb, latent_belief)


@dataclass(frozen=True)
class OnlineGradient(PointEstimate[GradientBelief]):
    """Stochastic gradient ascent on the log likelihood, for study: it has a rate to tune, and no error bars.

    >>> from bayou import Learner, Linearized, Logistic, OnlineGradient
    >>> learner = Learner(Logistic(), OnlineGradient(rate=4.0), Linearized(), n_features=1)
    >>> _ = learner.learn_many([[1.0], [-0.5], [0.3]], [1, -1, 1])
    >>> learner.belief.mean.round(3)
    array([2.403])
    """

    rate: float = 1.0
    offset: float = 1.0
    power: float = 1.0
    prior_mean: Scales = 0.0
    dtype: str = "float64"

    needs_slope = True
    predict = staticmethod(_passes.predict)
    learn = staticmethod(_passes.learn)
    learn_vector = staticmethod(_passes.learn_vector)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "rate", "offset", "power")

    def prior(self, n_features: int) -> GradientBelief:
        """The point before any example."""
        return GradientBelief(
            per_weight("prior_mean", self.prior_mean, n_features).astype(self.dtype),
            np.zeros(1),
            np.array([self.rate, self.offset, self.power]),
        )

    def absorb(self, belief: GradientBelief, features: Vector, slope: float, precision: float) -> None:
        """Move the point by one site, in place."""
        absorb(belief, np.ascontiguousarray(features, dtype=self.dtype), slope, precision, 0.0)
