"""What a bank says of targets before it sees them: the mixture of what its members say, exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import elementwise
from scipy.special import logsumexp

from bayou.contracts import Array, Latent, Likelihood, Matrix, Vector
from bayou.errors import InvalidSpec
from bayou.likelihoods import Gaussian, StudentT
from bayou.numerics.bank_belief import MEAN, NOISE, VALUE

NEGLIGIBLE = 1e-12
LEAST_SHARE = 1e-13  # of a member, for quantiles to know of it
CONTINUOUS = (Gaussian, StudentT)  # likelihoods whose cumulative probability has no jumps
BELOW_ALL, LARGEST = -2.0, 1e300  # no whole target is as small, or as large
DOUBLINGS = 1100


class MixedPrediction:
    """What a bank says of y: numbers for one example, arrays with one entry per row for many.

    ``record`` has mean and variance of the latent, noise and degrees of freedom for each row and member, ``shares``
    what was believed of each member then. A member that nothing is believed of is not asked. ``evidence`` is the log
    probability that was given to each target, if it is known by now. ``largest`` is the largest count before each row:
    what members expect stays within sight of it.
    """

    __slots__ = ("_asked_for_one", "_likelihoods", "_record", "_single", "evidence", "largest", "shares")

    def __init__(
        self,
        likelihoods: Sequence[Likelihood],
        record: Matrix,
        shares: Matrix,
        single: bool = False,
        evidence: Vector | None = None,
        asked_for_one: bool = False,
        largest: Vector | None = None,
    ) -> None:
        self.largest = largest
        self._likelihoods, self._record, self._single = tuple(likelihoods), record, single
        self.shares, self.evidence, self._asked_for_one = shares, evidence, asked_for_one

    def probability_of_one(self) -> Vector:
        """Probability that a target of two classes is +1, per row; for those that members were asked for, at once."""
        if not self._asked_for_one:
            halved: Vector = 0.5 * (1.0 + np.clip(np.atleast_1d(self.mean), -1.0, 1.0))
            return halved
        given: Vector = np.sum(self.shares * np.exp(self._record[:, :, VALUE]), axis=1)
        return np.clip(given, 0.0, 1.0)

    @classmethod
    def joined(cls, parts: Sequence[MixedPrediction]) -> MixedPrediction:
        """What was said of several parts of some rows, as of one."""
        if len(parts) == 1:
            return parts[0]
        record, shares = (np.concatenate([getattr(part, name) for part in parts]) for name in ("_record", "shares"))
        known = [part.evidence for part in parts if part.evidence is not None]
        evidence = np.concatenate(known) if len(known) == len(parts) else None
        counts = [part.largest for part in parts if part.largest is not None]
        largest = np.concatenate(counts) if len(counts) == len(parts) else None
        return cls(parts[0]._likelihoods, record, shares, evidence=evidence, largest=largest)

    def first(self) -> MixedPrediction:
        """What was said of the first row."""
        return self[:1]

    def within_sight(self, largest: Vector) -> MixedPrediction:
        """The same by members that expect no count far beyond the largest before each row (`bayou.numerics.rates`)."""
        own = self._likelihoods, self._record, self.shares, self._single, self.evidence, self._asked_for_one
        return MixedPrediction(*own, largest)

    def in_units(self, location: float, scale: float) -> MixedPrediction:
        """The same of ``location + scale * y``, by members that learn the noise."""
        record = self._record.copy()
        record[:, :, MEAN] = location + scale * record[:, :, MEAN]
        record[:, :, NOISE] *= scale**2
        evidence = None if self.evidence is None else self.evidence - math.log(scale)
        return MixedPrediction(self._likelihoods, record, self.shares, self._single, evidence)

    @property
    def latents(self) -> list[Latent]:
        """The belief of each member, seen through the examples."""
        return [Latent(*self._record[:, m, :VALUE].T) for m in range(len(self._likelihoods))]

    @property
    def mean(self) -> Any:
        """Expected y; for targets -1 and +1, twice the probability of +1, less one."""
        return self._shaped(self._moments()[0])

    @property
    def variance(self) -> Any:
        """Variance of y: that of the members' y, and that between the members."""
        return self._shaped(self._moments()[1])

    def _moments(self) -> tuple[Vector, Vector]:
        shares, members = self.believed()
        if self.largest is None:
            pairs = [likelihood.moments(latent) for likelihood, latent in members]
        else:
            pairs = [likelihood.moments_within_sight(latent, self.largest) for likelihood, latent in members]
        mean = _mixed(shares, [mean for mean, _ in pairs])
        return mean, _mixed(shares, [variance + (own - mean) ** 2 for own, variance in pairs])

    def believed(self, least: float = 0.0) -> tuple[Matrix, list[tuple[Likelihood, Latent]]]:
        """The members of which more than so much is believed in some row: their shares, and what each of them says."""
        asked = (
            np.flatnonzero(self.shares.max(axis=0) > least) if len(self.shares) else np.arange(len(self._likelihoods))
        )
        return self.shares[:, asked], [
            (self._likelihoods[m], Latent(*self._record[:, m, :VALUE].T)) for m in asked.tolist()
        ]

    def log_probability(self, y: ArrayLike) -> Any:
        """Log probability, or log density, that was given to y."""
        targets = np.atleast_1d(np.asarray(y, dtype=np.float64))
        for likelihood in set(self._likelihoods):
            likelihood.check_targets(targets)
        shares, members = self.believed()
        values = np.stack([likelihood.log_probability(targets, latent) for likelihood, latent in members], axis=1)
        return self._shaped(np.asarray(logsumexp(values, axis=1, b=shares)))

    def cumulative(self, y: ArrayLike) -> Any:
        """Probability that the target is y or less."""
        return self._shaped(self._cumulative(np.broadcast_to(np.asarray(y, np.float64), len(self._record)).copy()))

    def _cumulative(self, values: Vector) -> Vector:
        """Each member is asked of the rows in which it counts for something."""
        total = np.zeros(len(values))
        for m, likelihood in enumerate(self._likelihoods):
            rows = self.shares[:, m] > NEGLIGIBLE
            if rows.any():
                latent = Latent(*self._record[rows, m, :VALUE].T)
                total[rows] += self.shares[rows, m] * likelihood.cumulative(values[rows], latent)
        return total

    def quantiles(self, probabilities: ArrayLike) -> Any:
        """Quantiles of y: a column per probability."""
        wanted = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
        if not np.all((wanted > 0.0) & (wanted < 1.0)):
            raise InvalidSpec(f"`probabilities` must lie between 0 and 1; got {probabilities!r}.")
        _, members = self.believed(LEAST_SHARE)
        if not all(isinstance(likelihood, CONTINUOUS) for likelihood, _ in members):
            return self._shaped(np.stack([self._whole_quantile(p) for p in wanted], axis=1))
        of_members = np.stack([likelihood.quantiles(latent, wanted) for likelihood, latent in members])
        # Where no member has so much probability yet, the mixture has not; where every member has, it has.
        return self._shaped(self._roots(wanted, of_members.min(axis=0), of_members.max(axis=0)))

    def _roots(self, wanted: Vector, low: Matrix, high: Matrix) -> Matrix:
        """Where the cumulative probability is that wanted, from low to high, if it has no jumps."""
        shares, members = self.believed(LEAST_SHARE)
        rows, levels = np.divmod(np.arange(low.size), wanted.size)

        def excess(y: Vector, row: Vector, level: Vector) -> Vector:
            at = row.astype(np.int64)
            parts = [
                likelihood.cumulative(y, Latent(*(np.asarray(field)[at] for field in latent)))
                for likelihood, latent in members
            ]
            return _mixed(shares[at], parts) - level

        given = rows.astype(np.float64), wanted[levels]
        found = elementwise.find_root(excess, (low.ravel(), high.ravel()), args=given, tolerances={"xrtol": NEGLIGIBLE})
        # Without a root in between, ends differ by rounding at most.
        roots: Matrix = np.where(found.success, found.x, high.ravel()).reshape(low.shape)
        return roots

    def _whole_quantile(self, p: float) -> Vector:
        """The least whole number whose cumulative probability is p or more: targets are whole where they jump."""
        low = np.full(len(self._record), BELOW_ALL)
        high = np.ceil(np.clip(np.atleast_1d(self.mean), 0.0, LARGEST)) + 1.0
        for _ in range(DOUBLINGS):
            short = (self._cumulative(high) < p) & (high < LARGEST)
            if not short.any():
                break
            low, high = np.where(short, high, low), np.where(short, 2.0 * high + 1.0, high)
        while True:
            middle = np.floor(low + 0.5 * (high - low))
            between = (middle > low) & (middle < high)  # beyond 2^53 there may be no number between two that differ
            if not between.any():
                break
            enough = self._cumulative(np.where(between, middle, high)) >= p
            low, high = np.where(between & ~enough, middle, low), np.where(between & enough, middle, high)
        return np.where(self._cumulative(high) >= p, high, np.inf)

    def interval(self, coverage: float = 0.9) -> Any:
        """Central interval that y falls into with this probability: low and high."""
        if not 0.0 < coverage < 1.0:
            raise InvalidSpec(f"`coverage` must lie between 0 and 1; got {coverage!r}.")
        return self.quantiles([0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])

    def __getitem__(self, rows: Any) -> MixedPrediction:
        """What was said of some of the rows."""
        largest = None if self.largest is None else self.largest[rows]
        return MixedPrediction(self._likelihoods, self._record[rows], self.shares[rows], largest=largest)

    def _shaped(self, values: Array) -> Any:
        if not self._single:
            return values
        return float(values[0]) if values.ndim == 1 else values[0]

    def __repr__(self) -> str:
        return f"MixedPrediction(mean={self.mean!r}, variance={self.variance!r})"


def _mixed(shares: Matrix, parts: Sequence[Vector]) -> Vector:
    """Sums of what members say, one after another: who has no share in a row changes not a bit of it.

    What one without a share says may be infinite.
    """
    total: Vector = np.zeros(len(shares))
    for share, part in zip(shares.T, parts, strict=True):
        total += np.where(share > 0.0, share * np.where(share > 0.0, part, 0.0), 0.0)
    return total
