"""What a learner says of targets before it sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bayou.contracts import Array, Latent, Likelihood, Matrix
from bayou.errors import InvalidSpec


class Parts(NamedTuple):
    """What was said of some rows, part by part."""

    parts: Sequence[Prediction]


class Prediction:
    """What a learner says of y: numbers for one example, arrays with one entry per row for many.

    In place of a `Latent` it takes what a pass has recorded, or what was said of parts of the rows: the latent is made
    of it when it is first asked for.
    """

    __slots__ = ("_latent", "_likelihood", "_single")

    def __init__(
        self, likelihood: Likelihood, latent: Latent | Matrix | list[Any] | Parts, single: bool = False
    ) -> None:
        self._likelihood = likelihood
        self._latent = latent
        self._single = single

    @property
    def latent(self) -> Latent:
        """The belief, seen through the examples."""
        if isinstance(self._latent, Latent):
            return self._latent
        if isinstance(self._latent, Parts):
            self._latent = _joined([part.latent for part in self._latent.parts])
        else:
            self._latent = latent_of(np.asarray(self._latent))
        return self._latent

    @property
    def likelihood(self) -> Likelihood:
        """What targets are like, given the latent."""
        return self._likelihood

    @property
    def mean(self) -> Any:
        """Expected y; for targets -1 and +1, twice the probability of +1, less one."""
        return self._shaped(self._likelihood.moments(self.latent)[0])

    @property
    def variance(self) -> Any:
        """Variance of y."""
        return self._shaped(self._likelihood.moments(self.latent)[1])

    def cumulative(self, y: ArrayLike) -> Any:
        """Probability that the target is y or less."""
        values = np.broadcast_to(np.asarray(y, dtype=np.float64), len(self.latent.mean)).copy()
        return self._shaped(self._likelihood.cumulative(values, self.latent))

    def quantiles(self, probabilities: ArrayLike) -> Any:
        """Quantiles of y: a column per probability."""
        wanted = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
        if not np.all((wanted > 0.0) & (wanted < 1.0)):
            raise InvalidSpec(f"`probabilities` must lie between 0 and 1; got {probabilities!r}.")
        return self._shaped(self._likelihood.quantiles(self.latent, wanted))

    def interval(self, coverage: float = 0.9) -> Any:
        """Central interval that y falls into with this probability: low and high."""
        if not 0.0 < coverage < 1.0:
            raise InvalidSpec(f"`coverage` must lie between 0 and 1; got {coverage!r}.")
        return self.quantiles([0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])

    def log_probability(self, y: ArrayLike) -> Any:
        """Log probability, or log density, that was given to y."""
        targets = np.atleast_1d(np.asarray(y, dtype=np.float64))
        self._likelihood.check_targets(targets)
        return self._shaped(self._likelihood.log_probability(targets, self.latent))

    def __getitem__(self, rows: Any) -> Prediction:
        """What was said of some of the rows."""
        latent = self.latent
        return Prediction(
            self._likelihood, Latent(*(np.broadcast_to(part, latent.mean.shape)[rows] for part in latent))
        )

    def _shaped(self, values: Array) -> Any:
        if not self._single:
            return values
        return float(values[0]) if values.ndim == 1 else values[0]

    def __repr__(self) -> str:
        return f"Prediction(mean={self.mean!r}, variance={self.variance!r})"


def latent_of(record: Matrix) -> Latent:
    """What a pass has recorded: a column per field of `Latent`, then the evidence."""
    if record.ndim == 3:  # several latents, along the first axis
        return Latent(record[:, :, 0].T, record[:, :, 1].T)
    return Latent(*record.T[:-1])


def joined(likelihood: Likelihood, parts: Sequence[Prediction]) -> Prediction:
    """What was said of several parts of some rows, as of one."""
    return parts[0] if len(parts) == 1 else Prediction(likelihood, Parts(parts))


def _joined(latents: Sequence[Latent]) -> Latent:
    if not latents:
        return Latent(np.zeros(0), np.zeros(0))
    fields = [
        np.concatenate([np.broadcast_to(a, b.mean.shape) for a, b in zip(column, latents, strict=True)])
        for column in zip(*latents, strict=True)
    ]
    return Latent(*fields)
