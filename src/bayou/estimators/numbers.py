"""What regression and counting share: targets that are numbers, and one latent."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import column_or_1d

from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidTarget, ShapeMismatch
from bayou.estimators.dicts import in_order
from bayou.estimators.online import OnlineEstimator, Said
from bayou.estimators.summary import Summary


class NumberEstimator(OnlineEstimator):
    """Learns and predicts numbers."""

    def _targets(self, y: ArrayLike, n: int) -> Vector:
        targets = column_or_1d(y, dtype=np.float64, warn=True)
        if len(targets) != n:
            raise ShapeMismatch(f"`y` must have one value per row, {n}; got {len(targets)}.")
        assert_all_finite(targets, input_name="y")
        return np.require(targets, requirements=["C", "W"])

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything and learn the rows in one pass.

        A bank learns the rows of a batch in an order of its own, as it reads meaning into that of a stream: for rows
        in the order in which they came, use `partial_fit` or `learn_many`.
        """
        if y is None:
            raise InvalidTarget(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        rows = self._rows(X, reset=True)
        targets, weights = self._targets(y, len(rows)), self._weights(sample_weight, rows)
        likelihood = self._default_likelihood() if self.likelihood is None else self.likelihood
        likelihood.check_targets(targets)
        self._start(self._columns_of(rows))
        self._learn_rows(*self._as_drawn(rows, targets, weights))
        return self

    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn more rows, in order, from where the last call ended."""
        self.learn_many(X, y, sample_weight)
        return self

    def learn_many(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Said:
        """Learn more rows; returns the predictions made before each target was used."""
        rows = self._rows(X, reset=not self._begun())
        targets, weights = self._targets(y, len(rows)), self._weights(sample_weight, rows)
        if not self._begun():
            likelihood = self._default_likelihood() if self.likelihood is None else self.likelihood
            likelihood.check_targets(targets)
            self._start(self._columns_of(rows))
        self._learner_.likelihood.check_targets(targets)
        return self._learn_rows(rows, targets, weights)

    def _start(self, n_columns: int, names: list[Hashable] | None = None) -> None:
        self._begin(n_columns, names)
        self._learner_ = self._new_learner(self._default_likelihood() if self.likelihood is None else self.likelihood)

    def _learn_rows(self, rows: Matrix, targets: Vector, weights: Vector) -> Said:
        parts = [self._learn_part(rows[p], targets[p], weights[p]) for p in self._parts(rows, weights)]
        said: Said = self.joined(parts)
        return said

    def learn_one(self, x: Mapping[Hashable, Any], y: float) -> None:
        """Learn from a dict of named values, any of which may be new, absent or None."""
        self._check_target(y)
        if not self._begun():
            self._check_dict(x)
            self._start(len(x), in_order(x))
        mask = self._encode_one(x, learn=True)
        self._learn_encoded(mask, y)
        self._count(1.0)

    def _late_target(self, y: Any) -> float:
        self._check_target(y)
        return float(y)

    def _check_target(self, y: float) -> None:
        likelihood = self._default_likelihood() if self.likelihood is None else self.likelihood
        likelihood.check_targets(np.array([y], dtype=np.float64))

    def predict_one(self, x: Mapping[Hashable, Any]) -> float:
        """Expected target of a dict of named values; 0 before anything was learnt."""
        return float(self._predict_dict(x).mean[0]) if self._begun() else 0.0

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Expected target of each row; with ``return_std``, also its predictive standard deviation."""
        prediction = self._predictions(X)
        return (prediction.mean, np.sqrt(prediction.variance)) if return_std else prediction.mean

    def predict_distribution(self, X: ArrayLike) -> Said:
        """All that is known of the target of each row: mean, variance, quantiles, the log density of any value."""
        said: Said = self._predictions(X)
        return said

    def predict_distribution_one(self, x: Mapping[Hashable, Any]) -> Said:
        """The same for a dict of named values, as of one row."""
        self._check_begun()
        said: Said = self._predict_dict(x)
        return said

    def predict_var(self, X: ArrayLike) -> Vector:
        """Predictive variance of the target of each row."""
        variance: Vector = self._predictions(X).variance
        return variance

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> Matrix:
        """Central intervals that the targets fall into with this probability: one row (low, high) per row."""
        interval: Matrix = self._predictions(X).interval(coverage)
        return interval

    def predict_quantiles(self, X: ArrayLike, alpha: ArrayLike = (0.05, 0.5, 0.95)) -> Matrix:
        """Predictive quantiles: a row per row, a column per probability in ``alpha``."""
        quantiles: Matrix = self._predictions(X).quantiles(alpha)
        return quantiles

    @property
    def coef_(self) -> Vector:
        """Expected weight per unit of each raw input."""
        self._check_begun()
        mean: Vector = self._slopes(self._believed()[1].mean) / self._weight_scale()
        return mean * self._target_scale()

    @property
    def intercept_(self) -> float:
        """Expected latent where all raw inputs are zero."""
        self._check_begun()
        return self._raw_intercept(self._believed()[1].mean) * self._target_scale() + self._target_location()

    def coef_interval(self, coverage: float = 0.9) -> Matrix:
        """Central interval of each weight: one row (low, high) per input."""
        self._check_begun()
        posterior, belief = self._believed()
        intervals: Matrix = self._slopes(posterior.intervals(belief, coverage))
        return intervals * np.reshape(self._target_scale() / self._weight_scale(), (-1, 1))

    def summary(self, coverage: float = 0.9) -> Summary:
        """Each weight with its deviation, interval and the probability of its sign, in raw units."""
        self._check_begun()
        scale = self._target_scale() / self._weight_scale()
        return self._weights_told(self._believed()[1], scale, coverage)._replace(note=self._note())

    def _target_scale(self) -> float:
        return 1.0

    def _target_location(self) -> float:
        return 0.0
