"""The units in which a learner of unknown noise knows its targets: their own mean and deviation.

Units are taken anew whenever what was learnt has doubled, and the belief is told in the new ones, exactly: the function
that it stands for, its noise and its uncertainty stay what they were. Only the prior is always that of standardised
targets.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayou.bank import Bank
from bayou.contracts import Latent, Vector
from bayou.encoders import Standardizer
from bayou.encoders.standardizer import Frame, count_whole
from bayou.learner import Learner
from bayou.numerics.running_noise import FIRST_MEMORY, NOISE_MEMORY
from bayou.sparse_bank import SparseBank


class Units:
    """Location and scale of the targets, and how they were found."""

    def __init__(self, has_intercept: bool) -> None:
        self._has_intercept = has_intercept  # without one, nothing in the model can carry a location
        self._frame = Standardizer().begin(1)
        self.current = (0.0, 1.0)
        self.log_scales = 0.0  # the log density of raw targets is that of scaled ones less this

    @property
    def spread(self) -> float:
        """What variances must be multiplied by: one, where the belief knows the noise."""
        return 1.0

    @property
    def untouched(self) -> bool:
        """Whether no target has come yet."""
        return bool(self._frame.weight[0] == 0.0)

    def enter(self, targets: Vector) -> Vector:
        """Targets in the current units. The very first one sets the location: there was none before."""
        if self.untouched and self._has_intercept:
            self.current = float(targets[0]), self.current[1]
        location, scale = self.current
        self.log_scales += targets.size * math.log(scale)
        scaled: Vector = (targets - location) / scale
        return scaled

    def count(self, targets: Vector, weights: Vector) -> None:
        """Let targets into the moments, however far they are: they may stay at another level from now on."""
        count_whole(self._frame, *(np.require(each, np.float64, ["C", "W"]) for each in (targets, weights)))

    def retake(self, learner: Learner | Bank | SparseBank) -> None:
        """Take new units from the targets seen, and tell the belief in them."""
        before = self.current
        self.take()
        if self.current == before:
            return
        if isinstance(learner, (Bank, SparseBank)):
            location, scale = self.current
            shift = (before[0] - location) / scale if self._has_intercept else 0.0
            learner.retell_targets(before[1] / scale, shift)
        else:
            self._retell(learner, before)

    def take(self) -> None:
        """Take new units from the targets seen."""
        if self._frame.squares[0] > 0.0:
            location = float(self._frame.mean[0]) if self._has_intercept else 0.0
            self.current = location, math.sqrt(float(self._frame.squares[0] / self._frame.weight[0]))

    def _retell(self, learner: Learner, before: tuple[float, float]) -> None:
        """The same belief, in new units. The intercept's feature is 1 and comes first."""
        location, scale = self.current
        ratio = before[1] / scale
        belief, prior_rate = learner.belief, learner.posterior.prior(learner.n_features).noise[1]
        belief.mean[...] *= ratio
        if self._has_intercept:
            belief.mean[0] += (before[0] - location) / scale
        belief.noise[1] = prior_rate + (belief.noise[1] - prior_rate) * ratio**2

    def to_arrays(self) -> dict[str, Any]:
        """As data."""
        moments = {f"units.{name}": array for name, array in self._frame._asdict().items()}
        return moments | {"units.current": np.array([*self.current, self.log_scales])}

    def from_arrays(self, arrays: dict[str, Any]) -> None:
        """From data."""
        self._frame = Frame(*(arrays[f"units.{name}"].copy() for name in Frame._fields))
        location, scale, log_scales = arrays["units.current"]
        self.current, self.log_scales = (float(location), float(scale)), float(log_scales)


class NoiseUnits(Units):
    """For a belief that does not learn the noise: targets in units of it, found from the errors of predictions issued.

    In these the noise is 1. When it turns out to be another, so do the uncertainties of the weights that were learnt
    with it: they stay what they were in units of the noise. ``spread`` is what the squares of the latest errors are, in
    units of what was predicted of them.
    """

    def __init__(self, has_intercept: bool, place: int, value: float) -> None:
        super().__init__(has_intercept)
        self._place, self._value = place, value  # where the intercept's weight lies, and its feature
        self._errors = np.zeros(3)  # how many in all; of the latest how many, and the sum of their squares

    @property
    def spread(self) -> float:
        """Mean square of the latest errors, in predicted deviations."""
        return float(self._errors[2] / self._errors[1]) if self._errors[2] > 0.0 else 1.0

    def enter(self, targets: Vector) -> Vector:
        """Targets in the current units. The first that differs sets the scale: there was none before."""
        location = float(targets[0]) if self.untouched and self._has_intercept else self.current[0]
        if self.current[1] == 1.0 and self._errors[2] == 0.0:
            others = np.abs(targets - location)
            found = others[others > 0.0]
            if found.size:
                self.current = self.current[0], float(found[0])
        return super().enter(targets)

    def learn_from(self, latent: Latent, scaled: Vector, weights: Vector) -> None:
        """Let in the errors of predictions made in the current units; those of the latest quarter are remembered."""
        counts = weights if weights.size else np.ones(len(scaled))
        self._errors[0] += counts.sum()
        memory = FIRST_MEMORY + NOISE_MEMORY * self._errors[0]
        after = counts[::-1].cumsum()[::-1] - counts  # so much came after each
        kept = np.exp(-after / memory) * counts
        self._errors[1:] *= np.exp(-counts.sum() / memory)
        squares = (scaled - latent.mean) ** 2 / (1.0 + latent.variance)
        self._errors[1:] += kept.sum(), kept @ squares

    def take(self) -> None:
        """Take new units from the targets seen and the errors made."""
        if self._errors[2] > 0.0:
            location = float(self._frame.mean[0]) if self._has_intercept else 0.0
            self.current = location, self.current[1] * math.sqrt(self.spread)
            self._errors[2] = self._errors[1]

    def _retell(self, learner: Learner, before: tuple[float, float]) -> None:
        location, scale = self.current
        learner.belief.mean[...] *= before[1] / scale
        if self._has_intercept:
            learner.belief.mean[self._place] += (before[0] - location) / scale / self._value

    def to_arrays(self) -> dict[str, Any]:
        """As data."""
        return super().to_arrays() | {"units.errors": self._errors}

    def from_arrays(self, arrays: dict[str, Any]) -> None:
        """From data."""
        super().from_arrays(arrays)
        self._errors = arrays["units.errors"].copy()
