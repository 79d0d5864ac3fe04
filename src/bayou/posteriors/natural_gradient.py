"""w += J^-1 d log p(y | w . x) / dw / (t + offset): a point that follows the natural gradient (Opper 1998, (4.4)).

J is the Fisher information, given or taken from the examples: then (t + offset) J is offset times the identity plus the
sum of precision * x x' over the sites, the present one included. Its inverse is kept as factors, and moves as the
covariance of a `FullGaussian` does: with the rule `Linearized`, the points are the same.

Without the offset the first step has length one in the units of J^-1, from where J is not yet known or no longer holds:
on Opper's example 13.5 % of the runs never come back. ``reach`` bounds how far a weight may go, as another remedy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayou.contracts import Array, Vector
from bayou.errors import InvalidSpec, ShapeMismatch
from bayou.numerics import factor as factors
from bayou.numerics.jit import vectorized_kernel
from bayou.numerics.passes import passes
from bayou.numerics.points import PointEstimate, marginal, scatter
from bayou.numerics.priors import Scales, per_weight
from bayou.numerics.validation import require_positive

FisherMatrix = tuple[tuple[float, ...], ...]


class NaturalGradientBelief(NamedTuple):
    """The point, how many examples it has seen, the factors of its metric, and (offset, reach, 1.0 if J is given)."""

    mean: Array
    tally: Array
    factor: Array
    scale: Array
    schedule: Array


@vectorized_kernel
def absorb(belief: NaturalGradientBelief, x: Array, slope: float, precision: float, variance: float) -> None:
    """One step along the natural gradient."""
    projection, direction = np.empty_like(belief.mean), np.empty_like(belief.mean)
    offset, reach, given = belief.schedule[0], belief.schedule[1], belief.schedule[2]
    factors.project(belief.factor, x, projection)
    if given == 1.0:
        for j in range(direction.size):
            direction[j] = 0.0
        for i in range(projection.size):
            along = belief.scale[i] * projection[i]
            row = belief.factor[i, : i + 1]
            for j in range(row.size):
                direction[j] += along * row[j]
        step = slope / (belief.tally[0] + offset)
    else:
        step = slope * factors.downdate(
            belief.factor, belief.scale, projection, max(precision, 0.0), direction, x, projection, 0
        )
    for j in range(direction.size):
        belief.mean[j] = min(max(belief.mean[j] + step * direction[j], -reach), reach)
    belief.tally[0] += 1.0


@vectorized_kernel
def latent_belief(belief: NaturalGradientBelief, c: int) -> NaturalGradientBelief:
    """The point of one latent."""
    return NaturalGradientBelief(belief.mean[c], belief.tally[c], belief.factor[c], belief.scale[c], belief.schedule[c])


_passes = passes(__name__, marginal, scatter, absorb, latent_belief)


@dataclass(frozen=True)
class NaturalGradient(PointEstimate[NaturalGradientBelief]):
    """A point that moves in the metric of the Fisher information, given as rows of a matrix or learnt on the way.

    >>> from bayou import Learner, Linearized, NaturalGradient, Probit
    >>> learner = Learner(Probit(), NaturalGradient(fisher=((0.6,),), offset=2.0), Linearized(), n_features=1)
    >>> _ = learner.learn_many([[1.0], [-0.5], [0.3]], [1, -1, 1])
    >>> learner.belief.mean.round(3)
    array([0.912])
    """

    fisher: FisherMatrix | None = None
    offset: float = 2.0
    reach: float = 1e100
    prior_mean: Scales = 0.0
    dtype: str = "float64"

    needs_slope = True
    predict = staticmethod(_passes.predict)
    learn = staticmethod(_passes.learn)
    learn_vector = staticmethod(_passes.learn_vector)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(self, "offset", "reach")
        if self.fisher is not None:
            matrix = self._fisher_matrix(len(self.fisher))
            if not (np.all(np.isfinite(matrix)) and np.array_equal(matrix, matrix.T)):
                raise InvalidSpec(f"`fisher` must be a symmetric matrix of finite numbers; got {self.fisher!r}.")
            if not np.all(np.linalg.eigvalsh(matrix) > 0.0):
                raise InvalidSpec(f"`fisher` must be positive definite; got {self.fisher!r}.")

    def _fisher_matrix(self, n_features: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        assert self.fisher is not None
        if len(self.fisher) != n_features or any(len(row) != n_features for row in self.fisher):
            raise ShapeMismatch(f"`fisher` must be {n_features} rows of {n_features} numbers; got {self.fisher!r}.")
        return np.array(self.fisher, dtype=np.float64).reshape(n_features, n_features)

    def prior(self, n_features: int) -> NaturalGradientBelief:
        """The point before any example."""
        if self.fisher is None:
            factor, scale = np.eye(n_features), np.full(n_features, 1.0 / self.offset)
        else:
            factor, scale = factors.factors_of_precision(self._fisher_matrix(n_features))
        mean = per_weight("prior_mean", self.prior_mean, n_features).astype(self.dtype)
        return NaturalGradientBelief(
            mean,
            np.zeros(1),
            factor.astype(self.dtype),
            scale.astype(self.dtype),
            np.array([self.offset, self.reach, float(self.fisher is not None)]),
        )

    def absorb(self, belief: NaturalGradientBelief, features: Vector, slope: float, precision: float) -> None:
        """Move the point by one site, in place."""
        absorb(belief, np.ascontiguousarray(features, dtype=self.dtype), slope, precision, 0.0)

    def forget(self, belief: NaturalGradientBelief, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let the examples so far count for less, so that those to come move the point further."""
        super().forget(belief, discount, diffusion)
        if self.fisher is None and discount < 1.0:
            self._average_metrics(belief, [(discount, belief)])

    def transform(self, belief: NaturalGradientBelief, scale: Vector, shift: Vector) -> None:
        """Make it the point ``scale * w``, with ``shift . w`` added to the first weight, in place; its metric too."""
        factors.transform(belief.mean, belief.factor, belief.scale, scale, shift)

    def _average(self, parts: Sequence[tuple[float, NaturalGradientBelief]]) -> NaturalGradientBelief:
        merged = super()._average(parts)
        if self.fisher is None:
            self._average_metrics(merged, parts)
        return merged

    def _average_metrics(
        self, belief: NaturalGradientBelief, parts: Sequence[tuple[float, NaturalGradientBelief]]
    ) -> None:
        """The prior's information, plus what each part has gathered beyond it, times its share."""
        prior = self.offset * np.eye(belief.mean.size)
        total = prior.copy()
        for share, part in parts:
            total += share * (factors.precision_of(part.factor, part.scale) - prior)
        factor, scale = factors.factors_of_precision(total)
        belief.factor[...], belief.scale[...] = factor, scale
