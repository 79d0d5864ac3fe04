"""What a bank says of classes before it sees them: the mixture of what its members say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayou.contracts import Array, Matrix, Vector
from bayou.errors import InvalidSpec, InvalidTarget
from bayou.numerics.predictive import class_cumulative


class MixedClasses:
    """What a bank says of a target that is one of several classes, 0, 1, ...; arrays have one entry per row.

    ``of_members`` (rows, members, classes) are the probabilities that each member gave, ``shares`` what was believed of
    each member then. ``evidence`` is the log probability that was given to each target, if it is known by now. Means,
    variances and quantiles are those of the number of the class.
    """

    __slots__ = ("_single", "evidence", "of_members", "shares")

    def __init__(self, of_members: Array, shares: Matrix, single: bool = False, evidence: Vector | None = None) -> None:
        self.of_members, self.shares, self._single, self.evidence = of_members, shares, single, evidence

    @classmethod
    def joined(cls, parts: Sequence[MixedClasses]) -> MixedClasses:
        """What was said of several parts of some rows, as of one."""
        if len(parts) == 1:
            return parts[0]
        said, shares = (np.concatenate([getattr(part, name) for part in parts]) for name in ("of_members", "shares"))
        known = [part.evidence for part in parts if part.evidence is not None]
        return cls(said, shares, evidence=np.concatenate(known) if len(known) == len(parts) else None)

    @property
    def probabilities(self) -> Matrix:
        """How probable each class is: a row per example, summing to one, a column per class."""
        mixed: Matrix = np.matmul(self.shares[:, None, :], self.of_members)[:, 0, :]
        mixed /= mixed.sum(axis=1, keepdims=True)
        return mixed

    @property
    def mean(self) -> Any:
        """Expected number of the class."""
        return self._shaped(self._moments()[0])

    @property
    def variance(self) -> Any:
        """Variance of the number of the class."""
        return self._shaped(self._moments()[1])

    def _moments(self) -> tuple[Vector, Vector]:
        probabilities = self.probabilities
        numbers = np.arange(float(probabilities.shape[1]))
        mean = probabilities @ numbers
        return mean, (probabilities * (numbers - mean[:, None]) ** 2).sum(axis=1)

    def log_probability(self, y: ArrayLike) -> Any:
        """Log probability that was given to y."""
        targets = np.atleast_1d(np.asarray(y, dtype=np.float64))
        probabilities = self.probabilities
        known = np.isin(targets, np.arange(float(probabilities.shape[1])))
        if not known.all():
            raise InvalidTarget(f"targets are classes 0 to {probabilities.shape[1] - 1}; got {targets[~known][0]}.")
        return self._shaped(np.log(probabilities[np.arange(len(probabilities)), targets.astype(np.int64)]))

    def cumulative(self, y: ArrayLike) -> Any:
        """Probability that the number of the class is y or less."""
        values = np.broadcast_to(np.asarray(y, dtype=np.float64), len(self.shares)).copy()
        return self._shaped(class_cumulative(self._below(), values))

    def quantiles(self, probabilities: ArrayLike) -> Any:
        """The first class that, with those before it, is probable enough: a column per probability."""
        wanted = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
        if not np.all((wanted > 0.0) & (wanted < 1.0)):
            raise InvalidSpec(f"`probabilities` must lie between 0 and 1; got {probabilities!r}.")
        return self._shaped(np.argmax(self._below()[:, :, None] >= wanted, axis=1).astype(np.float64))

    def interval(self, coverage: float = 0.9) -> Any:
        """Central interval that y falls into with this probability: low and high."""
        if not 0.0 < coverage < 1.0:
            raise InvalidSpec(f"`coverage` must lie between 0 and 1; got {coverage!r}.")
        return self.quantiles([0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])

    def _below(self) -> Matrix:
        """P(y <= c), a column per class."""
        below = np.minimum(np.cumsum(self.probabilities, axis=1), 1.0)
        below[:, -1] = 1.0  # which rounding might miss
        return below

    def __getitem__(self, rows: Any) -> MixedClasses:
        """What was said of some of the rows."""
        return MixedClasses(self.of_members[rows], self.shares[rows])

    def _shaped(self, values: Array) -> Any:
        if not self._single:
            return values
        return float(values[0]) if values.ndim == 1 else values[0]

    def __repr__(self) -> str:
        return f"MixedClasses(probabilities={self.probabilities!r})"
