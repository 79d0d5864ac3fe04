"""The first rows of a stream, kept, for estimators that must know a little of the data before they can begin.

How inputs and targets are told to a learner is found from the first rows themselves. What was learnt before that is not
told again: the rows are learnt again, from the start, as they are told then.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Self

import numpy as np

from bayou.contracts import Mask, Matrix, State, Vector
from bayou.estimators.online import OnlineEstimator
from bayou.estimators.units import Units

KEPT = 256  # rows that may be learnt again


class EarlyRows(OnlineEstimator):
    """An estimator that keeps its first rows until they are too many. What it learns is not linear in its inputs."""

    _takes_sparse = False
    _early: list[tuple[Vector, float, float]]

    def _begin(self, n_columns: int, names: list[Hashable] | None = None) -> None:
        super()._begin(n_columns, names)
        self._early = []

    def _learn_part(self, rows: Matrix, targets: Vector, weights: Vector) -> Any:
        prediction = super()._learn_part(rows, targets, weights)
        self._keep(rows, targets, weights)
        return prediction

    def _learn_encoded(self, mask: Mask, y: float) -> None:
        super()._learn_encoded(mask, y)
        self._keep(self._raw, np.array([y]), np.zeros(0))

    def _keep(self, rows: Matrix, targets: Vector, weights: Vector) -> None:
        """Rows that were just learnt, while all that were learnt can be kept."""
        if self._learner_.n_examples <= KEPT:
            counts = weights if weights.size else np.ones(len(rows))
            self._early += [(rows[n].copy(), float(targets[n]), float(counts[n])) for n in range(len(rows))]

    @property
    def _units_in_use(self) -> Units | None:
        """Those of the targets, if they are told in units of their own."""
        return getattr(self, "_units", None) if self._learner_.learns_noise else None

    def _take_units(self) -> None:
        """Let the targets seen say what their units are."""
        if self._units_in_use is not None:
            self._units_in_use.take()

    def _told(self, targets: Vector) -> Vector:
        """Targets as the learner is told them."""
        if self._units_in_use is None:
            return targets
        location, scale = self._units_in_use.current
        told: Vector = (targets - location) / scale
        return told

    def _early_rows(self) -> Matrix:
        """The rows that were kept; inputs that came later are missing in them."""
        rows = np.full((len(self._early), self._frame.mean.size), np.nan)
        for row, (values, _, _) in zip(rows, self._early, strict=True):
            row[: values.size] = values
        return rows

    def _learn_again(self) -> None:
        """Learn the rows that were kept, from the start, as they are told now."""
        known = self._learner_
        self._learner_ = self._learner(known.likelihood)
        targets, weights = (np.array([kept[part] for kept in self._early]) for part in (1, 2))
        features, missing = self._encode(self._early_rows(), weights, learn=False)
        self._learner_.learn_many(features, self._told(targets), weights, missing)
        self._learner_.n_examples, self._learner_.log_evidence = known.n_examples, known.log_evidence

    @property
    def coef_(self) -> Any:
        """There is no one weight per input."""
        raise AttributeError(f"{type(self).__name__} has no weight per input: what it learns is not linear in them.")

    intercept_ = coef_

    def coef_interval(self, coverage: float = 0.9) -> Any:
        """There is no one weight per input."""
        return self.coef_

    def summary(self, coverage: float = 0.9) -> Any:
        """There is no one weight per input."""
        return self.coef_

    def to_state(self) -> State:
        """All that this estimator is, as data."""
        state = super().to_state()
        if self._begun():
            targets_and_weights = np.array([kept[1:] for kept in self._early]).reshape(-1, 2)
            state.arrays["early"] = np.column_stack([self._early_rows(), targets_and_weights])
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The estimator that this data describes; it continues to the last bit."""
        model = super().from_state(state)
        if model._begun():
            model._early = [(row[:-2].copy(), float(row[-2]), float(row[-1])) for row in state.arrays["early"]]
        return model
