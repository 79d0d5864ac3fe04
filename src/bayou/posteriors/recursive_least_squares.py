"""w minimises sum_s forgetting^(t - s) (y_s - w . x_s)^2 + ridge |w|^2: least squares over the recent past.

    R = forgetting R + x x' + (1 - forgetting) ridge I,    w += R^-1 (x e - (1 - forgetting) ridge w),    e = y - w . x

The ridge is not forgotten: R, from initial_precision I on, never comes to less than ridge I, in whatever directions no
example has come for long. What is added back to R for that has full rank, so no update of R^-1 by one direction follows
it: R is factorised for every example, in O(d^3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayou.contracts import Array, Matrix, Vector
from bayou.errors import ImproperBelief, InvalidSpec
from bayou.numerics.jit import vectorized_kernel
from bayou.numerics.points import PointEstimate, largest_weight, passes_over_errors
from bayou.numerics.priors import Scales, per_weight
from bayou.numerics.validation import require_positive


class RecursiveBelief(NamedTuple):
    """The point; (how many examples it has seen, the ridge in R now); the rest of R; where the ridge pulls to; and
    (forgetting, ridge).
    """

    mean: Array
    tally: Array
    information: Array
    start: Array
    memory: Vector


@vectorized_kernel
def solve(matrix: Matrix, vector: Vector, digits: float) -> None:
    """vector = matrix^-1 vector, by Cholesky, of which the lower triangle is left in the place of the matrix.

    A direction in which rounding has left nothing of the matrix is held by the last of so many digits.
    """
    for i in range(vector.size):
        row = matrix[i, : i + 1]
        least = digits * vector.size * row[i]
        for j in range(i + 1):
            other = matrix[j, : j + 1]
            total = row[j]
            for k in range(j):
                total -= row[k] * other[k]
            row[j] = math.sqrt(max(total, least)) if i == j else total / other[j]
        total = vector[i]
        for k in range(i):
            total -= row[k] * vector[k]
        vector[i] = total / row[i]
    for i in range(vector.size - 1, -1, -1):
        vector[i] /= matrix[i, i]
        for k in range(i):
            vector[k] -= matrix[i, k] * vector[i]


@vectorized_kernel
def step(belief: RecursiveBelief, x: Array, error: float, weight: float, trust: float) -> bool:
    """Forget as long as the row counts, then learn it."""
    d = x.size
    keep = belief.memory[0] ** weight
    added = (1.0 - keep) * belief.memory[1]
    ridge = keep * belief.tally[1] + added
    share = weight * trust
    matrix, change = np.empty((d, d)), np.empty(d)
    for i in range(d):
        for j in range(i + 1):
            matrix[i, j] = keep * belief.information[i, j] + share * np.float64(x[i]) * x[j]
        matrix[i, i] += ridge
        change[i] = share * error * x[i] - added * (belief.mean[i] - belief.start[i])
    largest, digits = largest_weight(belief.mean), 1e-7 if belief.mean.itemsize == 4 else 1e-16
    for i in range(d):  # by this, and Cauchy and Schwarz, all of it is finite
        if not (matrix[i, i] < largest and abs(change[i]) < np.inf):
            return False
    solve(matrix, change, digits)
    for i in range(d):
        if not abs(belief.mean[i] + change[i]) < largest:
            return False
    for i in range(d):
        belief.mean[i] += change[i]
        for j in range(i + 1):
            belief.information[i, j] = keep * belief.information[i, j] + share * np.float64(x[i]) * x[j]
            belief.information[j, i] = belief.information[i, j]
    belief.tally[0] += weight
    belief.tally[1] = ridge
    return True


_passes = passes_over_errors(__name__, step)


@dataclass(frozen=True)
class RecursiveLeastSquares(PointEstimate[RecursiveBelief]):
    """Least squares that forget: for weights that change, and for study beside the Gaussian beliefs.

    Each example makes those before it count for ``forgetting`` of what they did. It is a point without error bars: R^-1
    would be the covariance if all targets had been seen with the weights as they are now, which is what forgetting
    denies. Without forgetting the point is the mean of a `FullGaussian`, which learns it in O(d^2), with error bars.

    >>> from bayou import Gaussian, Learner, MomentMatching, RecursiveLeastSquares
    >>> learner = Learner(Gaussian(), RecursiveLeastSquares(forgetting=0.5), MomentMatching(), n_features=1)
    >>> _ = learner.learn_many([[1.0]] * 8, [1.0] * 4 + [2.0] * 4)
    >>> learner.belief.mean.round(2)
    array([1.89])
    """

    forgetting: float = 0.9
    ridge: float = 0.05
    initial_precision: float = 1.0
    prior_mean: Scales = 0.0
    dtype: str = "float64"

    needs_errors = True
    predict = staticmethod(_passes.predict)
    learn = staticmethod(_passes.learn)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "ridge", "initial_precision")
        if not 0.0 < self.forgetting <= 1.0:
            raise InvalidSpec(f"`forgetting` must be positive and at most 1; got {self.forgetting!r}.")

    def prior(self, n_features: int) -> RecursiveBelief:
        """The point before any example."""
        mean = per_weight("prior_mean", self.prior_mean, n_features).astype(self.dtype)
        return RecursiveBelief(
            mean,
            np.array([0.0, self.initial_precision]),
            np.zeros((n_features, n_features), dtype=self.dtype),
            mean.copy(),
            np.array([self.forgetting, self.ridge]),
        )

    def absorb(self, belief: RecursiveBelief, features: Vector, slope: float, precision: float) -> None:
        """Move the point by one site, in place: that of a Gaussian, which holds the error, counted as one example."""
        if precision > 0.0:
            step(belief, np.ascontiguousarray(features, dtype=self.dtype), slope / precision, 1.0, 1.0)

    def forget(self, belief: RecursiveBelief, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let the examples so far count for less, so that those to come move the point further."""
        super().forget(belief, discount, diffusion)
        belief.information[...] *= discount
        belief.tally[1] = discount * belief.tally[1] + (1.0 - discount) * self.initial_precision

    def transform(self, belief: RecursiveBelief, scale: Vector, shift: Vector) -> None:
        """Make it the point ``scale * w``, with ``shift . w`` added to the first weight, in place; the ridge stays."""
        super().transform(belief, scale, shift)
        linear = np.diag(scale)
        linear[0] += shift
        half = np.linalg.solve(linear.T, belief.information.astype(np.float64))
        whole = np.linalg.solve(linear.T, half.T)
        belief.information[...] = 0.5 * (whole + whole.T)

    def merge(self, shards: Sequence[RecursiveBelief]) -> RecursiveBelief:
        """The point of all that the shards remember: without forgetting, that of all their examples."""
        return super().merge(shards)

    def _average(self, parts: Sequence[tuple[float, RecursiveBelief]]) -> RecursiveBelief:
        """Information adds up; the ridge is averaged by examples."""
        merged = super()._average(parts)
        if merged.tally[0] == 0.0:
            return merged
        information, shift, ridge = np.zeros(merged.information.shape), np.zeros(merged.mean.size), 0.0
        for share, part in parts:
            offset = (part.mean - merged.start).astype(np.float64)
            information += share * part.information
            shift += share * (part.information @ offset + part.tally[1] * offset)
            ridge += share * float(part.tally[0] * part.tally[1] / merged.tally[0])
        total = information + ridge * np.eye(merged.mean.size)
        try:
            np.linalg.cholesky(total)
        except np.linalg.LinAlgError:
            raise ImproperBelief(
                "what is left of the information must be positive in every direction; it is not. "
                "Was something taken out that was never learnt?"
            ) from None
        merged.information[...], merged.tally[1] = information, ridge
        merged.mean[...] = merged.start + np.linalg.solve(total, shift)
        return merged
