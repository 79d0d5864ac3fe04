"""What two views of the same things have in common: Bayesian canonical correlations, in one pass.

Rows are kept as moments alone. So the model after any chunks of rows is that of all of them at once, memory does not
grow with the stream, and the model is solved when it is asked for.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from bayou.contracts import Matrix, State, Vector
from bayou.encoders.standardizer import check_magnitude
from bayou.errors import InvalidFeatures, InvalidSpec, InvalidTarget, ModelFileError, ShapeMismatch
from bayou.estimators.two_view_rows import checked_coverage, values_of
from bayou.mixtures.canonical_correlation import (
    CanonicalModel,
    canonical_model,
    conditional,
    correlation_intervals,
    loadings,
    log_density,
    shared,
)
from bayou.mixtures.two_views import Moments, discounted, merged, moments_of, no_moments

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class BayesianCCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Canonical correlations between two views, X and y, as many as there is evidence for.

    Whatever invertible linear map the columns of a view go through, the correlations and predictions stay. A pair of
    canonical variables is retained if its correlation is above ``min_correlation`` and, with ``selection="evidence"``,
    if it raises the evidence; ``"relevance"`` leaves out the second condition, as Wang 2007 does, and then finds
    correlations where there are none if rows are few. With a ``half_life``, a row counts half after so many others.

    >>> import numpy as np
    >>> from bayou import BayesianCCA
    >>> rng = np.random.default_rng(0)
    >>> both, own = rng.normal(size=(300, 1)), rng.normal(size=(300, 7))
    >>> X, Y = both * [1, -2, 0, 3] + own[:, :4], both * [2, 0, 1] + own[:, 4:]
    >>> model = BayesianCCA().fit(X[:200], Y[:200]).partial_fit(X[200:], Y[200:])
    >>> model.n_correlations_, model.correlations_.round(2)
    (1, array([0.89]))
    >>> model.predict(X[:2]).shape, model.predict_interval(X[:2], coverage=0.9).shape
    ((2, 3), (2, 3, 2))
    """

    _moments: Moments
    _x_names: list[Hashable]
    _y_names: list[Hashable]
    _solved: tuple[tuple[Any, ...], CanonicalModel] | None = None

    def __init__(
        self,
        min_correlation: float = 0.1,
        selection: Literal["evidence", "relevance"] = "evidence",
        half_life: float | None = None,
    ) -> None:
        self.min_correlation = min_correlation
        self.selection = selection
        self.half_life = half_life

    # --- learning

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget everything and learn these rows: X is the first view, y the second."""
        self._learn(self._both(X, y, reset=True, least=2))
        _ = self.model_
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn more rows: the model is that of all rows so far."""
        self._learn(self._both(X, y, reset=not self._begun()))
        return self

    def learn_one(self, x: Mapping[Hashable, Any], y: Mapping[Hashable, Any] | float) -> None:
        """Learn from two dicts of named values, always the same names; the second may be a number."""
        self._check_params()
        begun = self._begun()
        x_names = self._x_names if begun else list(x)
        y_names = self._y_names if begun else list(y) if isinstance(y, Mapping) else []
        if not x_names:
            told = "has learnt rows without names" if begun else "needs a named value at least"
            raise InvalidFeatures(f"{type(self).__name__} {told}; got {x!r}.")
        row = np.concatenate([values_of(x, x_names, "x"), values_of(y, y_names, "y")])
        if not begun:
            self._begin(len(x_names), row.size - len(x_names), y_is_vector=not y_names)
            self._x_names, self._y_names = x_names, y_names
            self.n_features_in_ = len(x_names)
            if all(isinstance(name, str) for name in x_names):
                self.feature_names_in_ = np.asarray(x_names, dtype=object)
        self._learn(row[None, :])

    def _both(self, X: ArrayLike, y: ArrayLike, reset: bool, least: int = 1) -> Matrix:
        """Joint rows to learn; with ``reset``, of views that are new."""
        self._check_params()
        given = self._given(y)
        others = given.reshape(len(given), -1) if reset else self._y_rows(given)
        check_consistent_length(X, others)
        rows = self._x_rows(X, reset, least)
        if reset:
            self._begin(rows.shape[1], others.shape[1], y_is_vector=given.ndim == 1)
        return np.hstack([rows, others])

    def _begin(self, n_x: int, n_y: int, y_is_vector: bool) -> None:
        self._n_x, self._n_rows, self._y_is_vector = n_x, 0, y_is_vector
        self._moments = no_moments(n_x + n_y)
        self._x_names, self._y_names = [], []

    def _learn(self, rows: Matrix) -> None:
        n, weights, kept = len(rows), None, 1.0
        if self.half_life is not None:
            weights, kept = 0.5 ** (np.arange(n)[::-1] / self.half_life), 0.5 ** (n / self.half_life)
        self._moments = merged(discounted(self._moments, kept), moments_of(rows, weights))
        self._n_rows += n
        self._solved = None

    def _x_rows(self, X: ArrayLike, reset: bool, least: int = 1) -> Matrix:
        rows: Matrix = validate_data(self, X, reset=reset, dtype=np.float64, ensure_min_samples=least)
        check_magnitude(rows)
        return rows

    def _given(self, y: ArrayLike | None) -> Matrix:
        """The second view as it came, a vector or rows."""
        if y is None:
            raise InvalidTarget(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        given: Matrix = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        check_magnitude(given.reshape(len(given), -1))
        return given

    def _y_rows(self, y: ArrayLike | None) -> Matrix:
        given = self._given(y)
        rows, n_y = given.reshape(len(given), -1), self._moments.mean.size - self._n_x
        if rows.shape[1] != n_y:
            raise ShapeMismatch(f"`y` must have {n_y} columns, as before; got {rows.shape[1]}.")
        return rows

    @staticmethod
    def _check_lengths(x: Matrix, y: Matrix) -> None:
        if len(x) != len(y):
            raise ShapeMismatch(f"`y` must have a row for each of X, {len(x)}; got {len(y)}.")

    def _check_params(self) -> None:
        if not 0.0 <= self.min_correlation < 1.0:
            raise InvalidSpec(f"`min_correlation` must lie in [0, 1); got {self.min_correlation!r}.")
        if self.selection not in ("evidence", "relevance"):
            raise InvalidSpec(f"`selection` must be 'evidence' or 'relevance'; got {self.selection!r}.")
        if self.half_life is not None and not 1.0 <= self.half_life < np.inf:
            raise InvalidSpec(f"`half_life` must be a number of rows, at least 1, or None; got {self.half_life!r}.")

    def _begun(self) -> bool:
        return hasattr(self, "_moments")

    def __sklearn_is_fitted__(self) -> bool:
        return self._begun()

    # --- what was learnt

    @property
    def model_(self) -> CanonicalModel:
        """The views in canonical coordinates, and all pairs: see `bayou.mixtures.canonical_correlation`."""
        if not self._begun():
            raise NotFittedError(
                f"This {type(self).__name__} has learnt nothing yet; call `fit`, `partial_fit` or `learn_one`."
            )
        if self._n_rows < 2:
            raise NotFittedError(f"This {type(self).__name__} has learnt one row; correlations need at least two.")
        asked = (self.min_correlation, self.selection)
        if self._solved is None or self._solved[0] != asked:
            self._check_params()
            self._solved = asked, canonical_model(self._moments, self._n_x, *asked)
        return self._solved[1]

    @property
    def n_correlations_(self) -> int:
        """How many correlations are retained."""
        return self.model_.n_retained

    @property
    def correlations_(self) -> Vector:
        """Those that are retained, the largest first, by the posterior means of loadings and noise."""
        return self.model_.pairs.correlation[: self.n_correlations_]

    @property
    def evidence_(self) -> Vector:
        """By how much each pair raises the log evidence, retained or not."""
        return self.model_.pairs.evidence

    @property
    def order_probabilities_(self) -> Vector:
        """Of 0, 1, 2, ... correlations; predictions are averages over them. Without evidence, one number is certain."""
        at_least = np.concatenate([[1.0], self.model_.pairs.probability, [0.0]])
        return -np.diff(at_least)

    def correlation_interval(self, coverage: float = 0.9) -> Matrix:
        """Central interval of each retained correlation, for many rows: one row (low, high) per correlation.

        It allows for the sample's correlations being too large, so ``correlations_`` need not lie in the middle.
        """
        return correlation_intervals(self.model_, checked_coverage(coverage))

    @property
    def x_weights_(self) -> Matrix:
        """The retained canonical variables are ``(x - x_mean_) @ x_weights_``, of unit variance."""
        return self.model_.x.weights[:, : self.n_correlations_]

    @property
    def y_weights_(self) -> Matrix:
        """The same for the second view."""
        return self.model_.y.weights[:, : self.n_correlations_]

    @property
    def x_loadings_(self) -> Matrix:
        """What a unit of each shared variable does to the columns of the first view, on average."""
        return loadings(self.model_, "x")[0]

    @property
    def y_loadings_(self) -> Matrix:
        """The same for the second view."""
        return loadings(self.model_, "y")[0]

    @property
    def x_mean_(self) -> Vector:
        """Of each column of the first view."""
        return self.model_.x.mean

    @property
    def y_mean_(self) -> Vector:
        """Of each column of the second view."""
        return self.model_.y.mean

    @property
    def n_examples_(self) -> int:
        """How many rows were learnt."""
        _ = self.model_
        return self._n_rows

    @property
    def _n_features_out(self) -> int:
        return self.n_correlations_

    # --- canonical variables

    def transform(self, X: ArrayLike, y: ArrayLike | None = None) -> Any:
        """The retained canonical variables of X, of unit variance; with y, those of both views."""
        model = self.model_
        x_scores = model.x.white(self._x_rows(X, reset=False))[:, : model.n_retained]
        if y is None:
            return x_scores
        return x_scores, model.y.white(self._y_rows(y))[:, : model.n_retained]

    def fit_transform(self, X: ArrayLike, y: ArrayLike) -> Matrix:
        """Learn both views; the canonical variables of X, as in a pipeline."""
        scores: Matrix = self.fit(X, y).transform(X)
        return scores

    def shared(self, X: ArrayLike | None = None, y: ArrayLike | None = None, return_std: bool = False) -> Any:
        """The variables behind both views, as one view or both tell them: posterior means, one row per row."""
        model = self.model_
        if X is None and y is None:
            raise InvalidFeatures("one view at least must be given; got None for both.")
        x_rows = None if X is None else self._x_rows(X, reset=False)
        y_rows = None if y is None else self._y_rows(y)
        if x_rows is not None and y_rows is not None:
            self._check_lengths(x_rows, y_rows)
        mean, variance = shared(model, x_rows, y_rows)
        return (mean, np.broadcast_to(np.sqrt(variance), mean.shape)) if return_std else mean

    # --- one view from the other

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Expected y of each row of X; with ``return_std``, also predictive standard deviations."""
        _ = self.model_
        return self._across(self._x_rows(X, reset=False), "x", return_std)

    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> Matrix:
        """Central intervals for each column of y: the last axis is (low, high)."""
        _ = self.model_
        return self._interval(self._x_rows(X, reset=False), "x", coverage)

    def inverse_predict(self, y: ArrayLike, return_std: bool = False) -> Any:
        """Expected X of each row of y; with ``return_std``, also predictive standard deviations."""
        _ = self.model_
        return self._across(self._y_rows(y), "y", return_std)

    def inverse_predict_interval(self, y: ArrayLike, coverage: float = 0.9) -> Matrix:
        """Central intervals for each column of X: the last axis is (low, high)."""
        _ = self.model_
        return self._interval(self._y_rows(y), "y", coverage)

    def predict_one(self, x: Mapping[Hashable, Any]) -> Any:
        """Expected second view of a dict: a dict, or a number where numbers were learnt."""
        model = self.model_
        mean = conditional(model, values_of(x, self._x_names, "x")[None, :]).mean[0]
        return dict(zip(self._y_names, mean.tolist(), strict=True)) if self._y_names else float(mean[0])

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Mean log density of joint rows; what never varied is left out of it."""
        model = self.model_
        x_rows, y_rows = self._x_rows(X, reset=False), self._y_rows(y)
        self._check_lengths(x_rows, y_rows)
        return float(np.mean(log_density(model, x_rows, y_rows)))

    def _told(self, rows: Matrix, given: Literal["x", "y"]) -> tuple[Matrix, Matrix, float]:
        """Mean and variance of the other view, and degrees of freedom."""
        told = conditional(self.model_, rows, given)
        variance = told.factor[:, None] * np.maximum(np.diag(told.covariance), 0.0)
        return told.mean, variance, told.degrees

    def _flat(self, values: Matrix, given: Literal["x", "y"]) -> Matrix:
        """A view that came as a vector leaves as one."""
        return values[:, 0] if given == "x" and self._y_is_vector else values

    def _across(self, rows: Matrix, given: Literal["x", "y"], return_std: bool) -> Any:
        mean, variance, _ = self._told(rows, given)
        flat = self._flat(mean, given)
        return (flat, self._flat(np.sqrt(variance), given)) if return_std else flat

    def _interval(self, rows: Matrix, given: Literal["x", "y"], coverage: float) -> Matrix:
        mean, variance, degrees = self._told(rows, given)
        reach = stdtrit(degrees, 0.5 + 0.5 * checked_coverage(coverage)) * np.sqrt(variance * (degrees - 2.0) / degrees)
        return self._flat(np.stack([mean - reach, mean + reach], axis=-1), given)

    def plot(self, X: ArrayLike | None = None, y: ArrayLike | None = None, *, coverage: float = 0.9) -> Figure:
        """A picture of the correlations, and of the first canonical variables of rows; needs ``bayou[plot]``."""
        from bayou.estimators.canonical_plots import plot_correlations  # noqa: PLC0415  # needs the extra

        model = self.model_
        if (X is None) != (y is None):
            raise InvalidFeatures("rows must be given of both views, or of none; got one view.")
        if X is None or y is None:
            return plot_correlations(model, self.min_correlation, checked_coverage(coverage), None)
        rows = self._x_rows(X, reset=False), self._y_rows(y)
        self._check_lengths(*rows)
        return plot_correlations(model, self.min_correlation, checked_coverage(coverage), rows)

    # --- as data

    def to_state(self) -> State:
        """All that this estimator is, as data."""
        config: dict[str, Any] = {"params": self.get_params(deep=False), "begun": self._begun()}
        if not self._begun():
            return State(config, {})
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        config |= {"n_x": self._n_x, "n_rows": self._n_rows, "weight": self._moments.weight}
        config |= {"x_names": self._x_names, "y_names": self._y_names, "y_is_vector": self._y_is_vector}
        config |= {"feature_names": names}
        return State(config, {"moments.mean": self._moments.mean, "moments.scatter": self._moments.scatter})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The estimator that this data describes; it continues to the last bit."""
        config, arrays = state
        model = cls(**config["params"])
        if config["begun"]:
            mean, scatter = arrays["moments.mean"], arrays["moments.scatter"]
            n_x, d = int(config["n_x"]), mean.size
            proper = mean.shape == (d,) and scatter.shape == (d, d) and 0 < n_x < d
            if not (proper and np.isfinite(mean).all() and np.isfinite(scatter).all()):
                raise ModelFileError("the moments must be finite numbers of two views; got others.")
            model._begin(n_x, d - n_x, bool(config["y_is_vector"]))
            model._moments = Moments(float(config["weight"]), mean, scatter)
            model._n_rows = int(config["n_rows"])
            model._x_names, model._y_names = (
                [tuple(name) if isinstance(name, list) else name for name in config[key]]
                for key in ("x_names", "y_names")
            )
            model.n_features_in_ = n_x
            if config["feature_names"]:
                model.feature_names_in_ = np.asarray(config["feature_names"], dtype=object)
        return model

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_solved", None)  # it can be solved again
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
