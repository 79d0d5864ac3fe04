"""The units in which a learner of unknown noise knows its targets: their own mean and deviation.

Units are taken anew whenever what was learnt has doubled, and the belief is told in the new ones, exactly: the function
that it stands for, its noise and its uncertainty stay what they were. Only the prior is always that of standardised
targets.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayou.contracts import Vector
from bayou.encoders import Standardizer
from bayou.encoders.standardizer import Frame
from bayou.learner import Learner


class Units:
    """Location and scale of the targets, and how they were found."""

    def __init__(self, has_intercept: bool) -> None:
        self._has_intercept = has_intercept  # without one, nothing in the model can carry a location
        self._standardizer = Standardizer()
        self._frame = self._standardizer.begin(1)
        self.current = (0.0, 1.0)
        self.log_scales = 0.0  # the log density of raw targets is that of scaled ones less this

    @property
    def untouched(self) -> bool:
        """Whether no target has come yet."""
        return bool(self._frame.weight[0] == 0.0)

    def enter(self, targets: Vector) -> Vector:
        """Targets in the current units. The very first one sets the location: there was none before."""
        if self.untouched and self._has_intercept:
            self.current = (float(targets[0]), 1.0)
        location, scale = self.current
        self.log_scales += targets.size * math.log(scale)
        scaled: Vector = (targets - location) / scale
        return scaled

    def count(self, targets: Vector, weights: Vector) -> None:
        """Let targets into the moments."""
        self._standardizer.learn(self._frame, targets[:, None], weights if weights.size else None)

    def retake(self, learner: Learner) -> None:
        """Take new units from the targets seen, and tell the belief in them."""
        before = self.current
        self.take()
        if self.current != before:
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
