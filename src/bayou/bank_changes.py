"""What has changed in a stream: rows at which all did, and weights that have moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bayou.contracts import Vector
from bayou.errors import ModelFileError

MOST = 32  # of weights that are kept; when there are more, every second goes
FIRST_SPACING = 256  # examples


class ChangePoint(NamedTuple):
    """A row at which all began anew, and how probable that was when it was most."""

    row: int
    probability: float


class Change(NamedTuple):
    """How the weight of an input has moved since a row, and by how many deviations of what was known of it.

    Of classes, ``latent`` is the number of the class whose weight it is.
    """

    feature: int
    since: int
    before: float
    now: float
    deviations: float
    latent: int = 0


class Snapshots:
    """Weights of the inputs as they were now and then: means and variances, in memory that does not grow.

    Those of several latents lie one behind the other.
    """

    def __init__(self, n_features: int, n_latents: int = 1) -> None:
        self.n_latents = n_latents
        self.rows = np.full(MOST, -1.0)
        self.mean, self.variance = np.zeros((MOST, n_latents * n_features)), np.zeros((MOST, n_latents * n_features))
        self.spacing = FIRST_SPACING

    @property
    def nbytes(self) -> int:
        """Bytes of all of them."""
        return self.rows.nbytes + self.mean.nbytes + self.variance.nbytes

    def until_next(self, n_examples: int) -> int:
        """How many examples there are before the next."""
        return self.spacing - n_examples % self.spacing

    def look(self, n_examples: int, weights: Callable[[], tuple[Vector, Vector]]) -> None:
        """Keep the weights if it is time to."""
        if n_examples % self.spacing:
            return
        count = int(np.sum(self.rows >= 0.0))
        if count == MOST:
            self._thin_out()
            count = int(np.sum(self.rows >= 0.0))
            if n_examples % self.spacing:
                return
        self.rows[count], (self.mean[count], self.variance[count]) = n_examples, weights()

    def _thin_out(self) -> None:
        """Every second goes, and from now on they are twice as far apart."""
        self.spacing *= 2
        kept = np.flatnonzero(self.rows % self.spacing == 0.0)
        for array in (self.rows, self.mean, self.variance):
            array[: kept.size] = array[kept]
        self.rows[kept.size :] = -1.0

    def changes(self, now: tuple[Vector, Vector], since: int) -> list[Change]:
        """How each weight has moved since the last that was kept at that row or before, or else since the first."""
        taken = np.flatnonzero(self.rows >= 0.0)
        if not taken.size:
            return []
        before = taken[self.rows[taken] <= since]
        place = before[-1] if before.size else taken[0]
        mean, variance = now
        n_features = mean.size // self.n_latents
        deviations = (mean - self.mean[place]) / np.sqrt(variance + self.variance[place])
        found = [
            Change(j % n_features, int(self.rows[place]), *numbers, latent=j // n_features)
            for j, numbers in enumerate(zip(self.mean[place].tolist(), mean.tolist(), deviations.tolist(), strict=True))
        ]
        return sorted(found, key=lambda change: -abs(change.deviations))

    def extend(self, n_features: int, n_latents: int = 1) -> None:
        """Room for more inputs, or latents, whose weights were nothing so far."""
        shape = (MOST, self.n_latents, self.mean.shape[1] // self.n_latents)
        more = ((0, 0), (0, n_latents - shape[1]), (0, n_features - shape[2]))
        self.mean = np.pad(self.mean.reshape(shape), more).reshape(MOST, -1)
        self.variance = np.pad(self.variance.reshape(shape), more, constant_values=1.0).reshape(MOST, -1)
        self.n_latents = n_latents

    def retell(self, scale: Vector, shift: Vector) -> None:
        """Inputs are told otherwise: see `Bank.retell`. Of what is shifted to the first, the variance is left out."""
        for start in range(0, self.mean.shape[1], scale.size):
            mean, variance = (array[:, start : start + scale.size] for array in (self.mean, self.variance))
            moved = mean @ shift
            mean *= scale
            mean[:, 0] += moved
            variance *= scale**2

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
