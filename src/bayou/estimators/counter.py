"""Counts: Poisson regression with a log link, or any likelihood of counts."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from bayou.calibration import Foreseen
from bayou.contracts import Likelihood, Posterior, State, Vector
from bayou.estimators.forecasts import Pending
from bayou.estimators.numbers import NumberEstimator
from bayou.estimators.standard_members import of_counts, of_sparse_counts
from bayou.likelihoods import Poisson
from bayou.members import Member
from bayou.mixed_prediction import MixedPrediction
from bayou.posteriors import FullGaussian


class OnlineCounter(RegressorMixin, NumberEstimator):
    """Bayesian regression of counts (0, 1, 2, ...), one pass.

    ``likelihood`` is `Poisson()` by default; for counts that vary more than their mean use `NegativeBinomial`.
    ``coef_`` are effects on the logarithm of the rate. A bank expects no more than ten times the largest count so far:
    the mean of what is not known yet on a logarithmic scale would be beyond all measure.

    >>> import numpy as np
    >>> from bayou import OnlineCounter
    >>> x = np.repeat([[0.0], [1.0]], 50, axis=0)
    >>> model = OnlineCounter().fit(x, np.tile([1, 2, 3, 2, 2], 20) + 6 * x[:, 0].astype(int))
    >>> model.predict([[0.0], [1.0]]).round(0)
    array([2., 8.])
    """

    _largest: float = math.inf  # of the counts so far; files of before do not tell it
    _sparse_variance, _row_variance, _intercept_wider = 0.1, 1.5, 2.5
    _intercept = 6.0  # times the deviation of a weight, 1/2: rates span many orders of magnitude

    def _default_likelihood(self) -> Likelihood:
        return Poisson()

    def _default_posterior(self) -> Posterior[Any]:
        return FullGaussian(prior_variance=0.25)

    def _standard_members(self) -> list[Member]:
        return of_counts(0.25, self.n_waves)

    def _sparse_members(self, prior_variance: float) -> list[Member]:
        return of_sparse_counts(prior_variance)

    # --- what is expected stays within sight of what has come

    def _start(self, n_columns: int, names: list[Hashable] | None = None) -> None:
        super()._start(n_columns, names)
        self._largest = 0.0

    def _learn_part(self, rows: Any, targets: Vector, weights: Vector) -> Any:
        said = super()._learn_part(rows, targets, weights)
        before = np.maximum.accumulate(np.concatenate([[self._largest], targets]))
        self._largest = float(before[-1])
        return _bounded(said, before[:-1])

    def _learn_encoded(self, mask: Any, y: float) -> None:
        super()._learn_encoded(mask, y)
        self._largest = max(self._largest, float(y))

    def _learn_forecast(self, target: float, pending: Pending) -> None:
        super()._learn_forecast(target, pending)
        self._largest = max(self._largest, target)

    def _predict_rows(self, rows: Any) -> Any:
        return _bounded(super()._predict_rows(rows), self._largest)

    def _predict_encoded(self, mask: Any) -> Any:
        return _bounded(super()._predict_encoded(mask), self._largest)

    def _told_of(self, prediction: Any, calibrated: Foreseen | None = None) -> Any:
        return _bounded(prediction, self._largest)

    def to_state(self) -> State:
        """All that this estimator is, as data."""
        state = super().to_state()
        if self._begun():
            state.config["largest"] = self._largest
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The estimator that this data describes; it continues to the last bit."""
        model = super().from_state(state)
        model._largest = float(state.config.get("largest", math.inf))
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


def _bounded(said: Any, largest: ArrayLike) -> Any:
    """What a bank says, within sight of the largest count before each row."""
    if not isinstance(said, MixedPrediction):
        return said
    if not np.all(np.isfinite(largest)):  # it is not known
        return said
    return said.within_sight(np.broadcast_to(np.asarray(largest, np.float64), len(said.shares)).copy())
