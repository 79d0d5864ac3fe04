"""w += (rate / d) y x where y (w . x) <= 0, then w /= |w|: the perceptron on the sphere, by a schedule.

Barkai, Seung and Sompolinsky 1995, (2). From d weights and alpha d examples that a hyperplane divides, the error falls
as (4 / pi) / alpha with the best schedule; with w of any length it falls as 0.278 alpha^(-1/3), whatever the rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayou.contracts import Array, Schedule, Vector
from bayou.errors import InvalidSpec
from bayou.numerics.jit import vectorized_kernel
from bayou.numerics.passes import passes
from bayou.numerics.perceptrons import PerceptronEstimate, count_answer, unit_step
from bayou.numerics.points import length_of, marginal, pass_over_signs, scatter, step_along
from bayou.numerics.priors import Scales, per_weight
from bayou.numerics.schedules import no_memory, rate, remember
from bayou.schedules import OptimalRate


class ScheduledBelief(NamedTuple):
    """The point; (how many examples it has seen, whether it is of unit length); its schedule and what that remembers;
    (mistakes, answers) of late and the log probability that its targets were given.
    """

    mean: Array
    tally: Array
    schedule: Vector
    memory: Vector
    account: Vector


@vectorized_kernel
def step(belief: ScheduledBelief, x: Array, y: float, share: float) -> None:
    """A row on the wrong side, or on neither, is added by its share; a row of zeros has no side."""
    if not share > 0.0:
        return
    d = x.size
    belief.tally[0] += share
    latent = y * marginal(belief, x)[0]
    count_answer(belief.account, latent, share)
    if latent == 0.0 and length_of(x) == 0.0:
        return
    remember(belief.memory, latent <= 0.0, share, d)
    if latent > 0.0:
        return
    size = y * share * rate(belief.schedule, belief.memory, belief.tally[0] / d) / d
    if belief.tally[1] == 0.0:
        step_along(belief.mean, size, x)
    else:  # in units of the length, which is 1 but after a change of coordinates; from 0 any step gives the direction
        length = length_of(belief.mean)
        unit_step(belief.mean, size * (length if length > 0.0 else 1.0), x, 0.0, x)


@vectorized_kernel
def absorb(belief: ScheduledBelief, x: Array, slope: float, precision: float, variance: float) -> None:
    """Learn an example whose sign is that of the slope."""
    step(belief, x, np.sign(slope), abs(np.sign(slope)))


@vectorized_kernel
def latent_belief(belief: ScheduledBelief, c: int) -> ScheduledBelief:
    """The point of one latent."""
    return ScheduledBelief(belief.mean[c], belief.tally[c], belief.schedule[c], belief.memory[c], belief.account[c])


_passes = passes(__name__, marginal, scatter, absorb, latent_belief)


@dataclass(frozen=True)
class ScheduledPoint(PerceptronEstimate[ScheduledBelief]):
    """The perceptron with a schedule; ``normalised=False`` lets its length grow, which is a schedule of its own.

    >>> from bayou import AdaptiveRate, Learner, MomentMatching, ScheduledPoint, Step
    >>> learner = Learner(Step(), ScheduledPoint(AdaptiveRate()), MomentMatching(), n_features=2)
    >>> _ = learner.learn_many([[1.0, 0.5], [-1.0, 0.2], [0.7, -1.0]], [1, -1, -1])
    >>> learner.belief.mean.round(2)
    array([0.33, 0.94])
    """

    schedule: Schedule = OptimalRate()  # noqa: RUF009  # a spec is a value
    normalised: bool = True
    prior_mean: Scales = 0.0
    dtype: str = "float64"

    needs_signs = True
    asks_evidence = True
    predict = staticmethod(_passes.predict)
    learn = staticmethod(pass_over_signs(__name__, step))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.schedule, Schedule):
            raise InvalidSpec(f"`schedule` must be a Schedule; got {self.schedule!r}.")

    def _keeps_unit_length(self) -> bool:
        return bool(self.normalised)

    def prior(self, n_features: int) -> ScheduledBelief:
        """The point before any example."""
        mean = per_weight("prior_mean", self.prior_mean, n_features).astype(self.dtype)
        tally = np.array([0.0, float(self.normalised)])
        return ScheduledBelief(mean, tally, self.schedule.numbers, no_memory(), np.zeros(3))

    def absorb(self, belief: ScheduledBelief, features: Vector, slope: float, precision: float) -> None:
        """Learn an example whose sign is that of the slope, in place."""
        absorb(belief, np.ascontiguousarray(features, dtype=self.dtype), slope, precision, 0.0)
