"""The units in which a learner of unknown noise knows its targets: their own mean and deviation.

Units are taken anew whenever the rows learnt have doubled, and the belief is told in the new ones, exactly: the
function that it stands for, its noise and its uncertainty stay what they were. Only the prior is always that of
standardised targets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from bayou.contracts import Vector
from bayou.encoders import Standardizer
from bayou.encoders.standardizer import Moments
from bayou.learner import Learner


class Units:
    """Location and scale of the targets, and how they were found."""

    def __init__(self, has_intercept: bool) -> None:
        self._has_intercept = has_intercept  # without one, nothing in the model can carry a location
        self._standardizer = Standardizer()
        self._moments = self._standardizer.begin(1)
        self.current = (0.0, 1.0)
        self.log_scales = 0.0  # the log density of raw targets is that of scaled ones less this

    @property
    def untouched(self) -> bool:
        """Whether no target has come yet."""
        return bool(self._moments.weight[0] == 0.0)

    def segments(self, weights: Vector) -> Iterator[int]:
        """Where to stop and take new units: after each row that brings the weight seen to the next power of two."""
        totals = np.cumsum(np.concatenate([self._moments.weight, weights]))
        doublings = np.where(totals >= 1.0, np.frexp(totals)[1] - 1, -1)
        stops: list[int] = (np.flatnonzero(np.diff(doublings) > 0) + 1).tolist()
        yield from stops
        if len(weights) and (not stops or stops[-1] < len(weights)):
            yield len(weights)

    def enter(self, targets: Vector) -> Vector:
        """Targets in the current units. The very first one sets the location: there was none before."""
        if self.untouched and self._has_intercept:
            self.current = (float(targets[0]), 1.0)
        location, scale = self.current
        self.log_scales += targets.size * math.log(scale)
        scaled: Vector = (targets - location) / scale
        return scaled

    def leave(self, targets: Vector, weights: Vector, learner: Learner) -> None:
        """Count the targets; if their weight has come to the next power of two, take new units."""
        before = float(self._moments.weight[0])
        self._standardizer.learn(self._moments, targets[:, None], weights if weights.size else None)
        if _doublings(float(self._moments.weight[0])) > _doublings(before) and self._moments.squares[0] > 0.0:
            location = float(self._moments.mean[0]) if self._has_intercept else 0.0
            scale = float(self._standardizer.deviations(self._moments)[0])
            self._retell(learner, location, scale)
            self.current = (location, scale)

    def _retell(self, learner: Learner, location: float, scale: float) -> None:
        """The same belief, in new units. The intercept's feature is 1 and comes first."""
        ratio = self.current[1] / scale
        belief, prior_rate = learner.belief, learner.posterior.prior(learner.n_features).noise[1]
        belief.mean[...] *= ratio
        if self._has_intercept:
            belief.mean[0] += (self.current[0] - location) / scale
        belief.noise[1] = prior_rate + (belief.noise[1] - prior_rate) * ratio**2

    def to_arrays(self) -> dict[str, Any]:
        """As data."""
        moments = {f"units.{name}": array for name, array in self._moments._asdict().items()}
        return moments | {"units.current": np.array([*self.current, self.log_scales])}

    def from_arrays(self, arrays: dict[str, Any]) -> None:
        """From data."""
        self._moments = Moments(*(arrays[f"units.{name}"].copy() for name in Moments._fields))
        location, scale, log_scales = arrays["units.current"]
        self.current, self.log_scales = (float(location), float(scale)), float(log_scales)


def _doublings(weight: float) -> int:
    """How many times a weight of one has doubled; -1 before."""
    return math.frexp(weight)[1] - 1 if weight >= 1.0 else -1
