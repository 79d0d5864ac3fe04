"""What a classifier does with a `bayou.Calibration` behind its bank of two classes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from bayou.bank import Forecast
from bayou.calibration import Calibration, Foreseen
from bayou.contracts import State, Vector
from bayou.estimators.encoded_inputs import NO_WEIGHTS
from bayou.estimators.forecasts import Pending
from bayou.estimators.online import OnlineEstimator, below
from bayou.mixed_prediction import MixedPrediction


class CalibratedEstimator(OnlineEstimator):
    """Learns how often what its bank says comes true, beside the bank."""

    _calibration: Calibration | None = None
    _codes: dict[Any, int]

    def _learn_calibration(self, evidence: Vector, targets: Vector, weights: Vector) -> Vector:
        """Probability of the second of two classes, from what a bank gave to the targets that came, and calibrated."""
        given = np.clip(np.exp(evidence), 0.0, 1.0)
        second: Vector = np.where(targets > 0.0, given, 1.0 - given)
        if self._calibration is None:
            return second
        return self._calibration.learn_many(second, targets, weights if weights.size else None)

    def _learn_encoded(self, mask: Any, y: float) -> None:
        super()._learn_encoded(mask, y)
        if self._calibration is not None and len(self._codes) > 1:
            self._learn_calibration(np.array([self.bank_.latest_evidence]), np.array([y]), NO_WEIGHTS)

    def _learn_forecast(self, forecast: Forecast, target: float, pending: Pending) -> None:
        super()._learn_forecast(forecast, target, pending)
        if self._calibration is not None and pending.calibrated is not None:
            self._calibration.learn_late(pending.calibrated, target)

    def _foreseen(self, forecast: Forecast) -> Foreseen | None:
        said = forecast.prediction
        if self._calibration is None or not isinstance(said, MixedPrediction) or len(self._codes) < 2:
            return None
        return self._calibration.forecast(float(np.atleast_1d(said.probability_of_one())[0]))

    @property
    def log_evidence_(self) -> float:
        """Log probability that was given to all targets learnt so far, each before it was seen."""
        return super().log_evidence_ + (0.0 if self._calibration is None else self._calibration.gain)

    def _note(self) -> str:
        note = super()._note()
        if self._calibration is None:
            return note
        kept, gain = self._calibration.share_unchanged, self._calibration.gain
        return f"{note}\ncalibrated: left as it is with probability {kept:.2f}; a gain of {gain:.1f} nats in all"

    @property
    def calibration_(self) -> Calibration | None:
        """How often what the bank says of two classes comes true; None where no bank of two classes learns."""
        self._check_begun()
        return self._calibration

    def to_state(self) -> State:
        """All that this estimator is, as data."""
        state = super().to_state()
        if self._calibration is not None:
            state.config["calibration"], arrays = self._calibration.to_state()
            state.arrays.update({f"calibration.{name}": array for name, array in arrays.items()})
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The estimator that this data describes; it continues to the last bit."""
        model = super().from_state(state)
        if "calibration" in state.config:
            known = State(state.config["calibration"], below("calibration.", state.arrays))
            model._calibration = Calibration.from_state(known)
        return model
