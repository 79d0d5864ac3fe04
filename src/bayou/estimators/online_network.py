"""A small network that finds out from its first targets whether it has numbers or classes to learn."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from bayou.contracts import Likelihood, Posterior, Rule, State
from bayou.errors import InvalidSpec
from bayou.estimators.networks import NetworkClassifier, NetworkRegressor

TASKS = {"regression": NetworkRegressor, "classification": NetworkClassifier}


class OnlineNetwork(BaseEstimator):
    """A small neural network that learns in one pass, with no learning rate, and says how sure it is.

    Weights have a joint Gaussian belief, moved by each example along the tangent of the network (an extended Kalman
    filter), with all correlations while there are no more than a thousand of them and of low rank beyond. In
    regression the noise is learnt, and the spread and the tails of the errors with it, so that intervals cover.

    ``hidden`` is the width of the hidden layer, or of each of several. ``task="auto"`` takes targets of type float as
    numbers, and all others (integers, strings, booleans) as classes; ``"regression"`` and ``"classification"`` say it.
    What else it can do is what `NetworkRegressor` and `NetworkClassifier` can.

    >>> import numpy as np
    >>> from bayou import OnlineNetwork
    >>> x = np.random.default_rng(0).uniform(-3, 3, size=(1000, 1))
    >>> model = OnlineNetwork(hidden=20).fit(x, np.sin(2 * x[:, 0]))
    >>> low, high = model.predict_interval([[1.0]], coverage=0.9)[0]
    >>> bool(low < np.sin(2.0) < high)
    True
    """

    def __init__(
        self,
        hidden: int | tuple[int, ...] = 50,
        task: str = "auto",
        likelihood: Likelihood | None = None,
        posterior: Posterior[Any] | None = None,
        rule: Rule | None = None,
        standardize: bool = True,
        seed: int = 0,
    ) -> None:
        self.hidden = hidden
        self.task = task
        self.likelihood = likelihood
        self.posterior = posterior
        self.rule = rule
        self.standardize = standardize
        self.seed = seed

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything and learn the rows in order, in one pass."""
        self.model_ = self._model(y).fit(X, y, sample_weight=sample_weight)
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, **options: Any) -> Self:
        """Learn more rows, in order, from where the last call ended."""
        self.learn_many(X, y, **options)
        return self

    def learn_many(self, X: ArrayLike, y: ArrayLike, **options: Any) -> Any:
        """Learn more rows; returns what was said of each before its target was used."""
        model = getattr(self, "model_", None) or self._model(y)
        given = model.learn_many(X, y, **options)
        self.model_ = model
        return given

    def learn_one(self, x: Mapping[Hashable, Any], y: Any) -> None:
        """Learn from a dict of named values, any of which may be new, absent or None."""
        model = getattr(self, "model_", None) or self._model(y)
        model.learn_one(x, y)
        self.model_ = model

    def predict(self, X: ArrayLike, **options: Any) -> Any:
        """Expected target, or the most probable class, of each row."""
        return self._known().predict(X, **options)

    def predict_one(self, x: Mapping[Hashable, Any]) -> Any:
        """The same for a dict of named values; None before anything was learnt."""
        return self.model_.predict_one(x) if self.__sklearn_is_fitted__() else None

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of classes, or the fraction of variance explained."""
        return float(self._known().score(X, y, sample_weight))

    def _model(self, y: Any) -> Any:
        if self.task not in ("auto", *TASKS):
            raise InvalidSpec(f"`task` must be auto, {' or '.join(TASKS)}; got {self.task!r}.")
        numbers = np.asarray(y).dtype.kind == "f"
        task = self.task if self.task != "auto" else "regression" if numbers else "classification"
        return TASKS[task](**{name: value for name, value in self.get_params(deep=False).items() if name != "task"})

    def _known(self) -> Any:
        check_is_fitted(self)
        return self.model_

    def __getattr__(self, name: str) -> Any:
        model = self.__dict__.get("model_")
        if model is None or name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(model, name)

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        if self.task in TASKS:
            return TASKS[self.task]().__sklearn_tags__()
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags

    def to_state(self) -> State:
        """All that this estimator is, as data."""
        config: dict[str, Any] = {"params": self.get_params(deep=False), "learns": None}
        if not self.__sklearn_is_fitted__():
            return State(config, {})
        inner = self.model_.to_state()
        learns = next(task for task, kind in TASKS.items() if isinstance(self.model_, kind))
        return State(config | {"learns": learns, "model": inner.config}, inner.arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The estimator that this data describes; it continues to the last bit."""
        config, arrays = state
        network = cls(**config["params"])
        if config["learns"] is not None:
            network.model_ = TASKS[config["learns"]].from_state(State(config["model"], arrays))
        return network
