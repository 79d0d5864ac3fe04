"""Regression whose intervals cover as often as they promise, even where the model is wrong."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.base import RegressorMixin

from bayou.contracts import Matrix
from bayou.errors import InvalidTarget
from bayou.estimators.conformal import ConformalEstimator
from bayou.estimators.conformal_prediction import ConformalPrediction, intervals, reaches
from bayou.estimators.conformal_reach import Reach
from bayou.estimators.regressor import OnlineRegressor

NARROWER = 100.0  # than the model's own intervals, at most: those that came down further would be long on their way up
HIGHEST = 690.0  # an interval of this reach, as a logarithm, covers every target that is legal


class ConformalRegressor(RegressorMixin, ConformalEstimator):
    """An online regressor whose intervals are adapted until they cover as often as they promise.

    ``estimator`` is any of bayou's online estimators of numbers, `OnlineRegressor()` if none is given. Each row is
    predicted, its interval is judged by the target, then the intervals adapt and the model learns. In the long run the
    share of targets that are covered is ``coverage``, whatever the stream does; ``coverage_`` says what it was so far.

    >>> import numpy as np
    >>> from bayou import ConformalRegressor
    >>> random = np.random.default_rng(0)
    >>> x = random.normal(size=(4000, 1))
    >>> noise = random.normal(size=4000) * np.where(np.arange(4000) < 2000, 0.1, 1.0)  # ten times as large from now on
    >>> model = ConformalRegressor(coverage=0.9).fit(x, 2.0 * x[:, 0] + noise)
    >>> bool(abs(model.coverage_ - 0.9) < 0.02)
    True
    >>> model.predict_interval([[0.0]]).round(0)
    array([[-2.,  2.]])
    """

    def _default(self) -> OnlineRegressor:
        return OnlineRegressor()

    def _first_reach(self, coverage: float) -> Reach:
        own = float(ndtri(0.5 + 0.5 * coverage))
        # Of log |z|, where z is standard normal: what a model that is right gives its targets.
        density = 2.0 * own * math.exp(-0.5 * own**2) / math.sqrt(2.0 * math.pi)
        return Reach(coverage, math.log(own), density, (math.log(own / NARROWER), HIGHEST))

    # --- learning

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything and learn the rows in order, in one pass."""
        if y is None:
            raise InvalidTarget(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        self._learn_rows(X, y, sample_weight, reset=True)
        return self

    def learn_many(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> ConformalPrediction:
        """Learn more rows; returns the predictions and intervals given before each target was used."""
        return self._learn_rows(X, y, sample_weight, reset=False)

    def _learn_rows(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, reset: bool) -> ConformalPrediction:
        model, reach = self._model(reset)
        said = model.learn_many(X, y, **({} if sample_weight is None else {"sample_weight": sample_weight}))
        targets = np.asarray(y, dtype=np.float64).reshape(-1)
        judged = self._judged(reset, len(targets), sample_weight)
        before = reach.judge(np.log(reaches(said, targets)), judged)
        self._keep(model, reach)
        return ConformalPrediction(said, np.exp(before), reach.coverage)

    def learn_one(self, x: Mapping[Hashable, Any], y: float) -> None:
        """Learn from a dict of named values, any of which may be new, absent or None."""
        model, reach = self._model(reset=False)
        said = model.predict_distribution_one(x) if self.__sklearn_is_fitted__() else None
        model.learn_one(x, y)
        if said is not None:
            reach.judge(np.log(reaches(said, np.array([float(y)]))), np.ones(1, dtype=np.bool_))
        self._keep(model, reach)

    # --- predicting

    def predict_interval(self, X: Any) -> Matrix:
        """Intervals that cover as promised: one row (low, high) per row."""
        said = self._known().predict_distribution(X)
        return intervals(said, math.exp(self._reach.now))

    def predict_interval_one(self, x: Mapping[Hashable, Any]) -> tuple[float, float]:
        """The same for a dict of named values; everything there is before anything was learnt."""
        if not self.__sklearn_is_fitted__():
            return -math.inf, math.inf
        low, high = intervals(self.estimator_.predict_distribution_one(x), math.exp(self._reach.now))[0].tolist()
        return low, high

    def predict_one(self, x: Mapping[Hashable, Any]) -> float:
        """Expected target of a dict of named values; 0 before anything was learnt."""
        return float(super().predict_one(x) or 0.0)

    def predict_distribution(self, X: Any) -> Any:
        """All that the model inside says of the target of each row."""
        return self._known().predict_distribution(X)

    def predict_quantiles(self, X: Any, alpha: ArrayLike = (0.05, 0.5, 0.95)) -> Matrix:
        """Quantiles that the model inside gives: a row per row, a column per probability in ``alpha``."""
        quantiles: Matrix = self._known().predict_quantiles(X, alpha)
        return quantiles

    @property
    def stretch_(self) -> float:
        """How far intervals reach, relative to those of the model inside: of Gaussian predictions, their width."""
        self._known()
        return math.exp(self._reach.now) / float(ndtri(0.5 + 0.5 * self._reach.coverage))
