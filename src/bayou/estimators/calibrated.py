"""What a classifier of two classes does with a `bayou.Calibration` behind its bank, or behind one dense learner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from bayou.calibration import LEAN, Calibration, Foreseen
from bayou.contracts import State, Vector
from bayou.estimators.encoded_inputs import NO_WEIGHTS
from bayou.estimators.forecasts import Pending
from bayou.estimators.online import OnlineEstimator, below
from bayou.members import Budget
from bayou.mixed_prediction import MixedPrediction

COST, LEAN_COST = 2.5, 0.7  # microseconds per row


class CalibratedEstimator(OnlineEstimator):
    """Learns how often what its bank, or its learner, says comes true."""

    _calibration: Calibration | None = None
    _codes: dict[Any, int]

    def _new_calibration(self) -> Calibration | None:
        """One behind a bank, and behind a learner if nothing was set that it could be meant to mend.

        Sparse rows take less time to learn than to calibrate: they get a lean one, where a budget says that it may be.
        """
        if self._bank is not None:
            return Calibration()
        if self.likelihood is not None or self.rule is not None or not self._choice.why:
            return None
        if self._inputs is not None:
            allowed = self.budget is not None and self.budget.microseconds >= LEAN_COST
            return Calibration(LEAN) if allowed else None
        return Calibration() if (Budget() if self.budget is None else self.budget).microseconds >= COST else None

    @property
    def _asks_of_members(self) -> bool:
        return len(self._codes) != 2

    @property
    def _reads_order(self) -> bool:
        return super()._reads_order or self._calibration is not None

    def _learn_calibration(self, evidence: Vector, targets: Vector, weights: Vector) -> Vector:
        """Probability of the second of two classes, from what was given to the targets that came, and calibrated."""
        given = np.clip(np.exp(evidence), 0.0, 1.0)
        second: Vector = np.where(targets > 0.0, given, 1.0 - given)
        if self._calibration is None:
            return second
        return self._calibration.learn_many(second, targets, weights if weights.size else None)

    def _learn_encoded(self, mask: Any, y: float) -> None:
        if self._calibration is None or len(self._codes) < 2:
            super()._learn_encoded(mask, y)
            return
        evidence = np.zeros(1) if self._bank is not None else self._evidence(self._predict_encoded(mask), np.array([y]))
        super()._learn_encoded(mask, y)
        if self._bank is not None:
            evidence[0] = self._bank.latest_evidence
        self._learn_calibration(evidence, np.array([y]), NO_WEIGHTS)

    @staticmethod
    def _evidence(prediction: Any, targets: Vector) -> Vector:
        """Log probability that was given to targets; a bank has noted it of those that came."""
        if isinstance(prediction, MixedPrediction) and prediction.evidence is not None:
            return prediction.evidence
        return np.atleast_1d(prediction.log_probability(targets))

    def _learn_forecast(self, target: float, pending: Pending) -> None:
        super()._learn_forecast(target, pending)
        if self._calibration is not None and pending.calibrated is not None:
            self._calibration.learn_late(pending.calibrated, target)

    def _foreseen(self, said: Any, count: int) -> Sequence[Foreseen | None]:
        if self._calibration is None or len(self._codes) < 2:
            return super()._foreseen(said, count)
        return [self._calibration.forecast(given) for given in self._uncalibrated(said).tolist()]

    @staticmethod
    def _uncalibrated(prediction: Any) -> Vector:
        """Probability of the second of two classes, as a bank or a learner says it."""
        if isinstance(prediction, MixedPrediction):
            return np.atleast_1d(prediction.probability_of_one())
        logs: Vector = prediction.log_probability(np.ones(len(np.atleast_1d(prediction.latent.mean))))
        return np.clip(np.exp(np.atleast_1d(logs)), 0.0, 1.0)

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
        """How often what is said of two classes comes true; None of more classes, and where a likelihood, a posterior
        or a rule was set; of sparse rows where no budget was.
        """
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
