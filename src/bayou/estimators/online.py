"""What the estimators share: from raw rows or dicts to standardised features, and from there to a learner.

Features are an intercept, then one standardised column per input. A missing value (NaN, None, an absent key) is treated
as unknown: the column's distribution so far stands in for it, so its expectation enters the prediction, and the
prediction is less sure by what the value could have changed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, validate_data

from bayou.contracts import Likelihood, Mask, Matrix, Posterior, Rule, State, Vector
from bayou.encoders import Standardizer
from bayou.encoders.standardizer import LARGEST, Frame, check_magnitude, count_and_scale
from bayou.errors import InvalidFeatures, InvalidSpec, ModelFileError
from bayou.estimators.dicts import NOT_PLAIN, values_of
from bayou.estimators.doublings import next_doubling, stops
from bayou.learner import Learner
from bayou.numerics.jit import entry_point
from bayou.prediction import Prediction
from bayou.rules import MomentMatching

_NO_WEIGHTS: Vector = np.zeros(0)
_NONE_MISSING: Mask = np.zeros((0, 0), dtype=np.bool_)


class OnlineEstimator(BaseEstimator):
    """A learner behind scikit-learn's interface, and behind River's for dicts."""

    # The value of the intercept's feature: the prior deviation of the intercept, in units of that of the weights.
    _intercept = 1.0
    _learner_class: type[Learner] = Learner
    _has_short_way = True
    _learner_: Learner
    # Learns what dicts it can, once laid out for the names and labels known; see `bayou.estimators.dicts`.
    _short_way: Callable[[Any, Hashable], bool] | None = None

    def __init__(
        self,
        likelihood: Likelihood | None = None,
        posterior: Posterior[Any] | None = None,
        rule: Rule | None = None,
        fit_intercept: bool = True,
        standardize: bool = True,
    ) -> None:
        self.likelihood = likelihood
        self.posterior = posterior
        self.rule = rule
        self.fit_intercept = fit_intercept
        self.standardize = standardize

    # --- the parts that estimators fill in

    def _default_likelihood(self) -> Likelihood:
        raise InvalidSpec(f"{type(self).__name__} has no likelihood of its own")

    def _default_posterior(self) -> Posterior[Any]:
        raise InvalidSpec(f"{type(self).__name__} has no posterior of its own")

    def _learner(self, likelihood: Likelihood) -> Learner:
        """A new learner for the inputs known so far."""
        posterior = self._default_posterior() if self.posterior is None else self.posterior
        rule = MomentMatching() if self.rule is None else self.rule
        return Learner(likelihood, posterior, rule, self._first + self._frame.mean.size)

    # --- rows

    @property
    def _has_bias(self) -> bool:
        """Whether the model can carry a location of its targets."""
        return self._first == 1

    @property
    def log_evidence_(self) -> float:
        """Log probability that was given to all targets learnt so far, each before it was seen."""
        self._check_begun()
        return self._learner_.log_evidence

    @property
    def n_examples_(self) -> int:
        """How many examples were learnt."""
        self._check_begun()
        return self._learner_.n_examples

    def _begun(self) -> bool:
        return hasattr(self, "_learner_")

    def _check_begun(self) -> None:
        from sklearn.exceptions import NotFittedError  # noqa: PLC0415  # only needed to say what is wrong

        if not self._begun():
            raise NotFittedError(
                f"This {type(self).__name__} has learnt nothing yet; call `fit`, `partial_fit` or `learn_one`."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return self._begun()

    def _begin(self, n_columns: int, names: list[Hashable] | None = None) -> None:
        """Start with so many inputs; names, if they come as dicts."""
        self._first = 1 if self.fit_intercept else 0
        # Without an intercept nothing in the model could carry a centre.
        self._standardizer = Standardizer(centred=bool(self.fit_intercept))
        self._frame = self._frame_of(n_columns)
        self._seen, self._next = 0.0, 1.0
        self._names: dict[Hashable, int] = {name: column for column, name in enumerate(names or [])}
        self._lay_out()

    def _frame_of(self, n_columns: int) -> Frame:
        frame = self._standardizer.begin(n_columns)
        if not self.standardize:
            frame.deviation[:] = 1.0
        return frame

    def _lay_out(self) -> None:
        """Buffers for one example, as wide as the inputs known so far."""
        n_columns = self._frame.mean.size
        self._order = tuple(self._names)
        self._values, self._packer = values_of(self._order), struct.Struct(f"{len(self._order)}d")
        self._raw = np.full((1, n_columns), np.nan)
        self._features = np.full((1, self._first + n_columns), self._intercept)
        self._line = self._features[0]
        self._missing = np.zeros((1, self._first + n_columns), dtype=np.bool_)
        self._counts, self._centred = int(self.standardize), int(self._standardizer.centred)
        rows = self._frame, self._raw, _NO_WEIGHTS
        place = self._centred, self._first, self._features, self._missing
        self._encoding = (*rows, 0, *place), (*rows, self._counts, *place)  # to predict, to learn
        self._encode_row = entry_point(count_and_scale, *self._encoding[0])
        self._short_way = None

    def _rows(self, X: ArrayLike, reset: bool) -> Matrix:
        if not reset and self._names and not hasattr(X, "columns"):
            raise InvalidFeatures(f"{type(self).__name__} has learnt dicts with named values; got rows without names.")
        checked = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan", order="C")
        check_magnitude(checked)
        return np.require(checked, requirements=["C", "W"])

    def _encode(self, rows: Matrix, weights: Vector, learn: bool) -> tuple[Matrix, Mask | None]:
        """Features of the rows, and which are missing (None if none are)."""
        features = np.full((len(rows), self._first + rows.shape[1]), self._intercept)
        missing = np.zeros(features.shape, dtype=np.bool_)
        counts = self._counts if learn else 0
        absent = count_and_scale(self._frame, rows, weights, counts, self._centred, self._first, features, missing)
        return features, missing if absent else None

    def _learn_part(self, rows: Matrix, targets: Vector, weights: Vector) -> Prediction:
        """Learn rows during which the frame of the features stays."""
        features, missing = self._encode(rows, weights, learn=True)
        return self._learner_.learn_many(features, targets, weights if weights.size else None, missing)

    def _learn_encoded(self, mask: Mask, y: float) -> None:
        self._learner_.learn_row(self._line, mask, y)

    def _parts(self, rows: Matrix, weights: Vector) -> Iterator[slice]:
        """The rows in parts; between them the frame of the features may change."""
        start = 0
        for stop in stops(self._seen, weights, len(rows)):
            part = slice(start, stop)
            yield part
            self._count(float(weights[part].sum()) if weights.size else float(stop - start))
            start = stop

    def _count(self, weight: float) -> None:
        """So much more was learnt; where that makes twice as much, look again at how features are told."""
        self._seen += weight
        if self._seen >= self._next:
            self._next = next_doubling(self._seen)
            self._settle()

    def _settle(self) -> None:
        """Let the frame follow what was seen; what was learnt in the old one is told in the new."""
        change = self._standardizer.retake(self._frame) if self.standardize else None
        if change is not None:
            ratio, shift = change
            first = np.ones(self._first)
            self._learner_.retell(
                np.concatenate([first, ratio]), np.concatenate([0.0 * first, shift / self._intercept])
            )

    def _predictions(self, X: ArrayLike) -> Prediction:
        self._check_begun()
        return self._predict_rows(self._rows(X, reset=False))

    def _predict_rows(self, rows: Matrix) -> Prediction:
        return self._learner_.predict_many(*self._encode(rows, _NO_WEIGHTS, learn=False))

    def _weights(self, sample_weight: ArrayLike | None, rows: Matrix) -> Vector:
        if sample_weight is None:
            return _NO_WEIGHTS
        weights = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        return np.require(weights, requirements=["C", "W"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # --- dicts

    def _pack(self, x: Mapping[Hashable, Any], learn: bool) -> None:
        """The values of a dict into the buffer; inputs never seen are admitted if ``learn``, else left out."""
        if type(x) is dict and len(x) == len(self._order):
            try:
                self._packer.pack_into(self._raw, 0, *self._values(x))  # type: ignore[arg-type]  # an array is a buffer
                return
            except NOT_PLAIN:
                pass
        if learn and not self._names.keys() >= x.keys():
            self._admit_inputs(x)
        self._pack_any(x)

    def _pack_any(self, x: Mapping[Hashable, Any]) -> None:
        row = np.full(self._raw.shape[1], np.nan)
        for name, value in x.items():
            column = self._names.get(name)
            if column is not None and value is not None:
                row[column] = _number(name, value)
        self._raw[0] = row

    def _admit_inputs(self, x: Mapping[Hashable, Any]) -> None:
        """Make room for inputs that were never seen; all of them are checked before anything changes."""
        fresh = [name for name in x if name not in self._names]
        self._check_dict(x)
        for name in fresh:
            self._names[name] = len(self._names)
        frame = self._frame_of(len(self._names))
        for array, known in zip(frame, self._frame, strict=True):
            array[: known.size] = known
        self._frame = frame
        self._lay_out()
        if self._begun():
            self._learner_.extend(self._features.shape[1])

    @staticmethod
    def _check_dict(x: Mapping[Hashable, Any]) -> None:
        """Raise unless every value is a number or None."""
        for name, value in x.items():
            if value is not None:
                _number(name, value)

    def _encode_one(self, x: Mapping[Hashable, Any], learn: bool) -> Mask:
        """Features of a dict into the buffer; returns the mask of missing ones, empty if there are none."""
        self._pack(x, learn)
        absent = self._encode_row(*self._encoding[learn])
        if absent < 0:
            check_magnitude(self._raw)
        return self._missing if absent else _NONE_MISSING

    def _predict_dict(self, x: Mapping[Hashable, Any]) -> Prediction:
        mask = self._encode_one(x, learn=False)
        return self._learner_.predict_many(self._features, mask if mask.size else None)

    # --- what was learnt

    def _input_names(self) -> list[str]:
        if self._names:
            return [str(name) for name in self._names]
        names = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self._frame.mean.size)] if names is None else [str(name) for name in names]

    def _weight_scale(self) -> Vector:
        """What a weight is divided by to be one of the raw input."""
        return np.where(self._frame.deviation > 0.0, self._frame.deviation, 1.0)

    def _intercept_direction(self) -> Vector:
        """The features of an example whose raw inputs are all zero: its latent is the raw intercept."""
        direction = np.full(self._features.shape[1], self._intercept)
        direction[self._first :] = -self._frame.centre / self._weight_scale()
        return direction

    def to_state(self) -> State:
        """All that this estimator is, as data."""
        config: dict[str, Any] = {"params": self.get_params(deep=False), "begun": self._begun()}
        arrays: dict[str, Any] = {}
        if self._begun():
            learner = self._learner_.to_state()
            config["learner"] = learner.config
            config["names"] = list(self._names)
            config["feature_names"] = [str(name) for name in getattr(self, "feature_names_in_", [])]
            config["seen"] = self._seen
            config["n_features_in"] = getattr(self, "n_features_in_", None)
            arrays = {f"learner.{name}": array for name, array in learner.arrays.items()}
            arrays |= {f"frame.{name}": array for name, array in self._frame._asdict().items()}
        return State(config, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The estimator that this data describes; it continues to the last bit."""
        config, arrays = state
        model = cls(**config["params"])
        if config["begun"]:
            n_columns, names = arrays["frame.mean"].size, [_name(name) for name in config["names"]]
            _require("names", len(names), 0 if not names else n_columns)
            model._begin(n_columns, names)
            for name, array in model._frame._asdict().items():
                _require(f"frame.{name}", arrays[f"frame.{name}"].shape, array.shape)
                array[...] = arrays[f"frame.{name}"]
            inner = {
                name.removeprefix("learner."): array for name, array in arrays.items() if name.startswith("learner.")
            }
            model._learner_ = cls._learner_class.from_state(State(config["learner"], inner))
            model._seen = float(config["seen"])
            model._next = next_doubling(model._seen)
            _require("learner.n_features", model._learner_.n_features, model._width(state))
            if config["n_features_in"] is not None:
                model.n_features_in_ = config["n_features_in"]
            if config["feature_names"]:
                model.feature_names_in_ = np.asarray(config["feature_names"], dtype=object)
        return model

    def _width(self, state: State) -> int:
        """How many features the learner of this state must have."""
        return self._first + int(self._frame.mean.size)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        for buffer in (
            "_encode_row",
            "_encoding",
            "_values",
            "_packer",
            "_raw",
            "_features",
            "_line",
            "_missing",
            "_short_way",
        ):
            state.pop(buffer, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._begun():
            self._frame = Frame(*(np.require(array, requirements=["C", "W"]) for array in self._frame))
            self._lay_out()


def _number(name: Hashable, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidFeatures(f"feature {name!r} must be a number, or None if it is missing; got {value!r}.") from None
    if abs(number) > LARGEST:
        raise InvalidFeatures(f"feature {name!r} must be finite and below {LARGEST:g} in size; got {value!r}.")
    return number


def _require(name: str, came: Any, required: Any) -> None:
    if came != required:
        raise ModelFileError(f"`{name}` must have size {required} to fit the other parts; got {came}.")


def _name(name: Any) -> Hashable:
    return tuple(name) if isinstance(name, list) else name
