"""What the conformal estimators share: a model inside, and a reach that is judged by each row before it is learnt."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from bayou.contracts import Mask, State
from bayou.errors import InvalidSpec, ModelFileError
from bayou.estimators.conformal_reach import Reach, check_coverage
from bayou.modelfile import MODELS

HOME = "bayou.estimators"
INSIDE = "model."  # before the names of the arrays of the model inside


class ConformalEstimator(BaseEstimator):
    """A model whose intervals or sets are widened and narrowed, row by row, until they cover as promised."""

    estimator_: Any
    _reach: Reach

    def __init__(self, estimator: Any = None, coverage: float = 0.9) -> None:
        self.estimator = estimator
        self.coverage = coverage

    # --- the parts that estimators fill in

    @abstractmethod
    def _default(self) -> Any:
        """The model inside, if none is given."""

    @abstractmethod
    def _first_reach(self, coverage: float) -> Reach:
        """The reach before any row: that of the model's own intervals or sets."""

    # --- learning

    def partial_fit(self, X: Any, y: ArrayLike, *arguments: Any, **options: Any) -> Self:
        """Learn more rows, in order, from where the last call ended, as the model inside does."""
        self.learn_many(X, y, *arguments, **options)
        return self

    @abstractmethod
    def learn_many(self, X: Any, y: ArrayLike) -> Any:
        """Learn more rows; returns what was said of each before its target was used."""

    def _model(self, reset: bool) -> tuple[Any, Reach]:
        """The model inside and its reach: those that there are, or new ones."""
        if not reset and self.__sklearn_is_fitted__():
            return self.estimator_, self._reach
        coverage = check_coverage(self.coverage)
        model = self._default() if self.estimator is None else clone(self.estimator)
        kind = get_tags(model).estimator_type
        if not hasattr(model, "learn_many") or kind not in (None, get_tags(self).estimator_type):
            wanted = f"an online {get_tags(self).estimator_type} of bayou, or None"
            raise InvalidSpec(f"`estimator` must be {wanted}; got {self.estimator!r}.")
        return model, self._first_reach(coverage)

    def _judged(self, reset: bool, rows: int, sample_weight: ArrayLike | None) -> Mask:
        """Which rows count: not the first of all, before which nothing was known, nor those of weight zero."""
        judged = np.ones(rows, dtype=np.bool_)
        if sample_weight is not None:
            judged &= np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), rows) > 0.0
        if reset or not self.__sklearn_is_fitted__():
            judged[:1] = False
        return judged

    def _keep(self, model: Any, reach: Reach) -> None:
        self.estimator_, self._reach = model, reach

    # --- predicting

    def predict(self, X: Any, **options: Any) -> Any:
        """Expected target, or the most probable class, of each row: what the model inside says."""
        return self._known().predict(X, **options)

    def predict_one(self, x: Mapping[Hashable, Any]) -> Any:
        """The same for a dict of named values; None before anything was learnt."""
        return self.estimator_.predict_one(x) if self.__sklearn_is_fitted__() else None

    def _known(self) -> Any:
        from sklearn.exceptions import NotFittedError  # noqa: PLC0415  # only needed to say what is wrong

        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} has learnt nothing yet; call `fit`, `partial_fit` or `learn_one`."
            )
        return self.estimator_

    # --- what was learnt

    @property
    def coverage_(self) -> float:
        """Share of the targets learnt so far that were covered, each before it was used; NaN before the second."""
        self._known()
        return self._reach.share

    @property
    def coverage_error_(self) -> float:
        """The standard error of ``coverage_``, if rows do not depend on each other."""
        self._known()
        return self._reach.error

    @property
    def n_examples_(self) -> int:
        """How many examples were learnt."""
        return int(self._known().n_examples_)

    @property
    def n_features_in_(self) -> int:
        """How many features rows have."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the features, where they have some."""
        names: NDArray[Any] = self.estimator_.feature_names_in_
        return names

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._default() if self.estimator is None else self.estimator).input_tags
        return tags

    # --- as data

    def to_state(self) -> State:
        """All that this estimator is, as data."""
        given = None if self.estimator is None else _described(clone(self.estimator).to_state(), self.estimator)
        config: dict[str, Any] = {"params": {"estimator": given, "coverage": self.coverage}, "begun": False}
        if not self.__sklearn_is_fitted__():
            return State(config, {})
        inner = self.estimator_.to_state()
        model = _described(inner, self.estimator_)
        arrays = {f"{INSIDE}{name}": array for name, array in inner.arrays.items()}
        return State(config | {"begun": True, "model": model, "reach": self._reach.to_config()}, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The estimator that this data describes; it continues to the last bit."""
        config, arrays = state
        given = config["params"]["estimator"]
        model = cls(None if given is None else _made(given, {}), config["params"]["coverage"])
        if config["begun"]:
            reach = model._first_reach(check_coverage(model.coverage))
            reach.load(config["reach"])
            own = {name.removeprefix(INSIDE): array for name, array in arrays.items() if name.startswith(INSIDE)}
            model._keep(_made(config["model"], own), reach)
        return model


def _may_hold(name: Any) -> bool:
    return MODELS.get(name) == HOME and not issubclass(getattr(import_module(HOME), name), ConformalEstimator)


def _described(state: State, model: Any) -> dict[str, Any]:
    """A model without its arrays, as data."""
    name = type(model).__name__
    if not _may_hold(name):
        raise InvalidSpec(f"a model file can hold the estimators that bayou exports; got {model!r}.")
    return {"class": name, "config": state.config}


def _made(described: dict[str, Any], arrays: dict[str, Any]) -> Any:
    name = described["class"]
    if not isinstance(name, str) or not _may_hold(name):
        raise ModelFileError(f"the model inside must be an estimator that this bayou has; got {name!r}.")
    return getattr(import_module(HOME), name).from_state(State(described["config"], arrays))
