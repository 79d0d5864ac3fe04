"""w += (x e - decay w) / |x|^2, e = y - w . x: a point that meets each target, whatever it forgets by that.

Of all weights that meet the target it takes the nearest: the normalised gradient, and the Passive-Aggressive rule of
Crammer, Dekel, Keshet, Shalev-Shwartz and Singer 2006 for a margin of zero. The decay is that of a ridge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayou.contracts import Array, Vector
from bayou.errors import InvalidSpec
from bayou.numerics.jit import vectorized_kernel
from bayou.numerics.points import PointEstimate, largest_weight, passes_over_errors
from bayou.numerics.priors import Scales, per_weight

SHORTEST = 1e-120  # squared: a row as short as that has no direction worth following


class NormalisedBelief(NamedTuple):
    """The point, how many examples it has seen, where it decays to, and how fast."""

    mean: Array
    tally: Array
    start: Array
    decay: Vector


@vectorized_kernel
def step(belief: NormalisedBelief, x: Array, error: float, weight: float, trust: float) -> bool:
    """Go as far towards the target as the row counts; a row of zeros teaches nothing."""
    square = 0.0
    for j in range(x.size):
        square += np.float64(x[j]) * x[j]
    if not square < np.inf:
        return False
    if square > SHORTEST:
        along = weight * trust * error / square
        shrinkage = min(weight * belief.decay[0] / square, 1.0)  # a short row takes all there is, not more
        largest = largest_weight(belief.mean)
        for j in range(x.size):
            if not abs(belief.mean[j] + along * x[j] - shrinkage * (belief.mean[j] - belief.start[j])) < largest:
                return False
        for j in range(x.size):
            belief.mean[j] += along * x[j] - shrinkage * (belief.mean[j] - belief.start[j])
    belief.tally[0] += weight
    return True


_passes = passes_over_errors(__name__, step)


@dataclass(frozen=True)
class NormalisedGradient(PointEstimate[NormalisedBelief]):
    """A target is met exactly, its noise with it: no rate to tune, and no way to average the noise out, for study.

    ``decay`` pulls the weights towards their prior mean.

    >>> from bayou import Gaussian, Learner, MomentMatching, NormalisedGradient
    >>> learner = Learner(Gaussian(), NormalisedGradient(), MomentMatching(), n_features=2)
    >>> _ = learner.learn_one([1.0, 2.0], 5.0)
    >>> learner.belief.mean
    array([1., 2.])
    """

    decay: float = 0.0
    prior_mean: Scales = 0.0
    dtype: str = "float64"

    needs_errors = True
    predict = staticmethod(_passes.predict)
    learn = staticmethod(_passes.learn)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.decay < math.inf:
            raise InvalidSpec(f"`decay` must be finite and not negative; got {self.decay!r}.")

    def prior(self, n_features: int) -> NormalisedBelief:
        """The point before any example."""
        mean = per_weight("prior_mean", self.prior_mean, n_features).astype(self.dtype)
        return NormalisedBelief(mean, np.zeros(1), mean.copy(), np.array([float(self.decay)]))

    def absorb(self, belief: NormalisedBelief, features: Vector, slope: float, precision: float) -> None:
        """Move the point by one site, in place: that of a Gaussian, which holds the error, counted as one example."""
        if precision > 0.0:
            step(belief, np.ascontiguousarray(features, dtype=self.dtype), slope / precision, 1.0, 1.0)
