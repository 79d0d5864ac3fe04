"""What has changed in a stream: rows at which all did, and weights that have moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.errors import ModelFileError

MOST = 32  # of weights that are kept; when there are more, every second goes
FIRST_SPACING = 256  # examples


class ChangePoint(NamedTuple):
    """A row at which all began anew, and how probable that was when it was most."""

    row: int
    probability: float


class Change(NamedTuple):
    """How the weight of an input has moved since a row, and by how many deviations of what was known of it."""

    feature: int
    since: int
    before: float
    now: float
    deviations: float


class Snapshots:
    """Weights of the inputs as they were now and then: means and variances, in memory that does not grow."""

    def __init__(self, n_features: int) -> None:
        self.rows = np.full(MOST, -1.0)
        self.mean, self.variance = np.zeros((MOST, n_features)), np.zeros((MOST, n_features))
        self.spacing = FIRST_SPACING

    @property
    def nbytes(self) -> int:
        """Bytes of all of them."""
        return self.rows.nbytes + self.mean.nbytes + self.variance.nbytes

    def until_next(self, n_examples: int) -> int:
        """How many examples there are before the next."""
        return self.spacing - n_examples % self.spacing

    def look(self, n_examples: int, weights: Callable[[], tuple[Vector, Matrix]]) -> None:
        """Keep the weights if it is time to."""
        if n_examples % self.spacing:
            return
        count = int(np.sum(self.rows >= 0.0))
        if count == MOST:
            self._thin_out()
            count = int(np.sum(self.rows >= 0.0))
            if n_examples % self.spacing:
                return
        mean, covariance = weights()
        self.rows[count], self.mean[count], self.variance[count] = n_examples, mean, np.diagonal(covariance)

    def _thin_out(self) -> None:
        """Every second goes, and from now on they are twice as far apart."""
        self.spacing *= 2
        kept = np.flatnonzero(self.rows % self.spacing == 0.0)
        for array in (self.rows, self.mean, self.variance):
            array[: kept.size] = array[kept]
        self.rows[kept.size :] = -1.0

    def changes(self, now: tuple[Vector, Matrix], since: int) -> list[Change]:
        """How each weight has moved since the last that was kept at that row or before, or else since the first."""
        taken = np.flatnonzero(self.rows >= 0.0)
        if not taken.size:
            return []
        before = taken[self.rows[taken] <= since]
        place = before[-1] if before.size else taken[0]
        mean, variance = now[0], np.diagonal(now[1])
        deviations = (mean - self.mean[place]) / np.sqrt(variance + self.variance[place])
        found = [
            Change(j, int(self.rows[place]), float(self.mean[place, j]), float(mean[j]), float(deviations[j]))
            for j in range(mean.size)
        ]
        return sorted(found, key=lambda change: -abs(change.deviations))

    def extend(self, n_features: int) -> None:
        """Room for more inputs, whose weights were nothing so far."""
        more = ((0, 0), (0, n_features - self.mean.shape[1]))
        self.mean, self.variance = np.pad(self.mean, more), np.pad(self.variance, more, constant_values=1.0)

    def retell(self, scale: Vector, shift: Vector) -> None:
        """Inputs are told otherwise: see `Bank.retell`. Of what is shifted to the first, the variance is left out."""
        moved = self.mean @ shift
        self.mean *= scale
        self.mean[:, 0] += moved
        self.variance *= scale**2

    def retell_targets(self, ratio: float, shift: float) -> None:
        """Targets are told otherwise: see `Bank.retell_targets`."""
        self.mean *= ratio
        self.mean[:, 0] += shift
        self.variance *= ratio**2

    def to_arrays(self) -> dict[str, Any]:
        """As data."""
        return {
            "snapshots.rows": np.append(self.rows, float(self.spacing)),
            "snapshots.mean": self.mean,
            "snapshots.variance": self.variance,
        }

    def load(self, arrays: dict[str, Any]) -> None:
        """From data."""
        *rows, spacing = arrays["snapshots.rows"].tolist()
        mean, variance = arrays["snapshots.mean"], arrays["snapshots.variance"]
        if len(rows) != MOST or mean.shape != self.mean.shape or variance.shape != mean.shape or spacing < 1.0:
            raise ModelFileError(f"`snapshots` must be {MOST} of {self.mean.shape[1]} weights; got {mean.shape}.")
        self.rows, self.mean, self.variance, self.spacing = np.array(rows), mean.copy(), variance.copy(), int(spacing)
