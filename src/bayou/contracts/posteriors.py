"""Families of beliefs about the weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from bayou.contracts.data import Kernel, Matrix, Spec, Vector
from bayou.contracts.functions import Growth
from bayou.errors import ImproperBelief, InvalidSpec

B = TypeVar("B", bound=tuple[Any, ...])


class Posterior(Spec, Generic[B]):
    """A family of beliefs about the weights. Its kernels:

    ``predict(belief, features, missing, record)``
        Record mean and variance of the latent of each row (and noise and degrees, if it learns the noise).
    ``learn(belief, kernels, params, features, missing, targets, weights, record)``
        Absorb the rows in order; record what `predict` would have said before each, and in the last column
        log E p(y | f). Returns how many rows were absorbed: fewer than given if one has no finite latent.
    ``learn_vector``
        The same with a leading axis of latents on every array of the belief and on the record.

    `bayou.numerics.passes` makes all three from ``marginal``, ``scatter`` and ``absorb``. A missing feature (True in
    ``missing``, 0 in ``features``) is one of mean 0 and variance 1, independent of the rest.
    """

    n_records: int = 3
    learns_noise: bool = False
    is_point: ClassVar[bool] = False  # knows weights, but not how sure they are
    needs_slope: ClassVar[bool] = False  # refuses likelihoods that are not smooth
    needs_signs: ClassVar[bool] = False  # refuses likelihoods whose targets are not -1 or +1
    needs_errors: ClassVar[bool] = False  # refuses likelihoods that are not Gaussian in the latent
    asks_evidence: ClassVar[bool] = False  # asks the likelihood itself, as moment matching does: no other rule applies
    predict: ClassVar[Kernel]
    learn: ClassVar[Kernel]
    learn_vector: ClassVar[Kernel | None] = None  # None: one latent only
    tangents: ClassVar[Any] = None  # passes of `bayou.numerics.tangents`, for a `Function`; None: linear latents only

    @abstractmethod
    def prior(self, n_features: int) -> B:
        """The belief before any example."""

    def prepare(self, n_features: int) -> None:
        """Compile what a learner of so many features needs beside the kernels that all have."""

    def check(self, belief: B) -> None:  # most beliefs are right as soon as their shapes are
        """Raise unless a belief from elsewhere, of the right shapes, is one that kernels may trust."""

    @abstractmethod
    def absorb(self, belief: B, features: Vector, slope: float, precision: float) -> None:
        """Move the belief by one site, in place."""

    @abstractmethod
    def covariance(self, belief: B) -> Matrix:
        """Covariance of the weights."""

    @abstractmethod
    def variances(self, belief: B) -> Vector:
        """Variance of each weight."""

    @abstractmethod
    def sample(self, belief: B, n: int, seed: int | np.random.Generator) -> Matrix:
        """So many draws of the weights, one per row."""

    @abstractmethod
    def log_density(self, belief: B, weights: Vector) -> float:
        """Log density of the belief at some weights."""

    def intervals(self, belief: B, coverage: float) -> Matrix:
        """Central interval of each weight: a row (low, high) per weight. Gaussian unless a family says otherwise."""
        reach = NormalDist().inv_cdf(0.5 + 0.5 * coverage) * np.sqrt(self.variances(belief))
        mean: Vector = belief.mean  # type: ignore[attr-defined]  # every belief has a mean
        return np.column_stack([mean - reach, mean + reach])

    def sign_probability(self, belief: B) -> Vector:
        """Probability that each weight has the sign of its mean. Gaussian unless a family says otherwise."""
        mean: Vector = belief.mean  # type: ignore[attr-defined]  # every belief has a mean
        distance = np.abs(mean) / np.sqrt(self.variances(belief))
        return np.array([NormalDist().cdf(value) for value in distance])

    @abstractmethod
    def forget(self, belief: B, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let go of the past, in place.

        ``discount`` keeps that fraction of what was learnt beyond the prior (exponential forgetting). ``diffusion`` is
        the variance that each weight gains in a random walk; no weight becomes less certain than the prior had it.
        """

    @abstractmethod
    def transform(self, belief: B, scale: Vector, shift: Vector) -> None:
        """Make it the belief about ``scale * w``, with ``shift . w`` added to the first weight, in place.

        Of the correlations that the sum brings, a family keeps those that it has.
        """

    def retell(self, belief: B, scale: Vector, shift: Vector) -> None:
        """Tell what was learnt in new coordinates, as by `transform`; the prior is then that of the new ones."""
        prior = self.prior(scale.size)
        self.transform(belief, scale, shift)
        self.transform(prior, scale, shift)
        try:
            kept = self.subtract(belief, prior)
        except ImproperBelief:  # the old prior hides what was learnt beyond the digits there are: it stays
            return
        for array, value in zip(belief, kept, strict=True):
            array[...] = value

    def recast(self, belief: B, before: Posterior[B], growth: Growth) -> B:
        """What a belief of this family, but of functions over a smaller box, becomes over the wider one."""
        raise InvalidSpec(f"{self!r} cannot be told in other functions; its domain cannot grow.")

    @abstractmethod
    def merge(self, shards: Sequence[B]) -> B:
        """The prior, times what each shard learnt beyond it."""

    @abstractmethod
    def subtract(self, belief: B, part: B) -> B:
        """The belief without what the part learnt beyond the prior."""


class SparsePosterior(Posterior[B]):
    """A family that learns rows of which only some entries are told (`SparseRows`), in time that goes with those.

    ``predict_sparse(belief, starts, columns, values, constant, record)``
        `predict` for such rows. Without ``values`` all entries are 1. A ``constant`` other than 0 is the value of the
        last column in every row.
    ``learn_sparse(belief, kernels, params, starts, columns, values, constant, targets, weights, record, careful)``
        `learn` for such rows. No column may come twice in a row, nor may the last if there is a constant. If it is to
        be careful, it stops at rows whose columns do not ascend or do not exist, and at values so large, or none at
        all, that they might not be learnt.
    ``learn_sparse_vector``
        The same for several latents.
    """

    predict_sparse: ClassVar[Kernel]
    learn_sparse: ClassVar[Kernel]
    learn_sparse_vector: ClassVar[Kernel]

    @abstractmethod
    def merge_onto(self, belief: B, shards: Sequence[B]) -> None:
        """Add to a belief what each shard, begun as a copy of it, has learnt beyond it, in place."""
