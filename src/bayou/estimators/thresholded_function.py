"""sgn f(x; w) for any differentiable f: two classes by rule (20) of Barkai, Seung and Sompolinsky 1995."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _check_sample_weight, validate_data

from bayou.contracts import Code, Matrix, Schedule, State, Vector
from bayou.errors import ImproperBelief, InvalidFeatures, InvalidTarget, ModelFileError, SlowSchedule
from bayou.estimators.dicts import number_of
from bayou.estimators.online import _name
from bayou.estimators.thresholds import (
    WORTH,
    Boundary,
    Rate,
    Tally,
    boundary,
    check_flip_rate,
    chosen_rate,
    flip_rate,
    given_rate,
    next_look,
    nothing,
    one_pass,
    present_rate,
)
from bayou.estimators.two_classes import checked_labels, probabilities, signs_of, smoothed_error_rate, two_classes
from bayou.functions.jax_function import Shape, double_precision, flattened, jax, name_of, padded

LENGTHS = (1, 16, 256, 4096)  # of what is compiled: one example, and chunks
SURE = 50.0  # examples near the boundary, per weight, from which the schedule is judged


@lru_cache(maxsize=64)
def _compiled(function: Callable[..., Any], shape: Shape, n_features: int, name: str) -> Any:
    return jax().jit(one_pass(function, shape, n_features, name))


@lru_cache(maxsize=64)
def _values(function: Callable[..., Any], shape: Shape) -> Any:
    """Compiled: f of each row."""
    return jax().jit(jax().vmap(lambda w, x: jax().numpy.reshape(function(shape.unravel(w), x), ()), (None, 0)))


class ThresholdedFunction(ClassifierMixin, BaseEstimator):
    """Two classes by the sign of a function that the user wrote in JAX: ``function(weights, x)``, a number.

    A mistake moves the weights along the gradient: ``w += eta label grad f``. ``start`` is where they begin: an array,
    any structure of arrays (the function gets the same), or a function that makes it from the number of features. It
    must break what symmetry there is. Inputs go to the function as they are; nothing is standardised, and a missing
    value is refused. f > 0 is the second class of ``classes_``. Memory and time per example are of order d^2 for d
    weights.

    ``schedule`` is None, a number (a constant eta) or a spec of `bayou.schedules`, whose rate, at n examples of d
    weights, gives eta = rate(n / d) / d: that of `PowerLawRate(eta0, offset=n0 / d)` is eta0 / (n + n0). With such a
    rate the error falls as 1 / n if ``eta0 lambda_min(B) > 1``, B = E[delta(f) grad f grad f']. B is estimated from the
    examples near the boundary; ``condition_`` is the product, and a `SlowSchedule` warning says when it is too small.
    With None, eta0 = 2 / lambda_min(B): twice what is needed, and too large if in doubt, for too few examples make
    lambda_min smaller. Until n is so large that such steps are small, a step changes f by a tenth of its mean size,
    later by less, as n^-1/2. Directions in which the boundary moves 1000 times less than in others, or not at all, do
    not count (``n_flat_``).

    ``flip_rate`` is the share of labels that are wrong at random: a number below 1/2, or "learn". The steps then are
    ``eta / 2 (label / (1 - 2 flip_rate) - sgn f) grad f``, whose mean is that without noise; rule (20) itself would
    converge to something else. The paper's other remedy, to shift the gradient by its mean, is stable only where most
    labels are negative.

    ``predict_proba`` knows one number, the share of mistakes among recent examples, each predicted before it was learnt
    (a mean over the past with cubic weights, and one more mistake and one more right answer): every answer is given
    with the doubt that follows from it, near the boundary or far.

    ``classes`` names both labels, for streams that do not show them at once. ``name`` is what a model file calls the
    function, by default as the code does: `bayou.load(path, functions={name: function})`; a ``start`` that is a
    function is called ``name + ".start"`` there.

    >>> import numpy as np
    >>> from bayou import ThresholdedFunction
    >>> def ring(w, x):
    ...     return w["weight"] @ x**2 - 1.0
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> y = np.where(X[:, 0] ** 2 + 2.0 * X[:, 1] ** 2 > 1.0, "out", "in")
    >>> model = ThresholdedFunction(ring, start={"weight": np.ones(2)}).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    def __init__(
        self,
        function: Callable[..., Any],
        start: Any,
        schedule: Schedule | float | None = None,
        flip_rate: float | str = 0.0,
        classes: Any = None,
        name: str | None = None,
    ) -> None:
        self.function = function
        self.start = start
        self.schedule = schedule
        self.flip_rate = flip_rate
        self.classes = classes
        self.name = name

    # --- learning

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything and learn the rows in order, in one pass."""
        rows = self._rows(X, reset=True)
        labels, weights = checked_labels(y, len(rows), type(self).__name__), self._weights(sample_weight, rows)
        named = two_classes(labels if self.classes is None else self.classes, type(self).__name__)
        signs = signs_of(labels, named)
        self._begin(rows.shape[1], named)
        self._learn_rows(rows, signs, weights)
        return self

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn more rows, in order, from where the last call ended.

        The first call must show both classes, unless ``classes`` names them here or in the constructor.
        """
        self.learn_many(X, y, classes, sample_weight)
        return self

    def learn_many(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Matrix:
        """Learn more rows; returns the probabilities given to each class before each target was used.

        A weight multiplies the step, and counts as so many examples.
        """
        rows = self._rows(X, reset=not self._begun())
        labels, weights = checked_labels(y, len(rows), type(self).__name__), self._weights(sample_weight, rows)
        given = self.classes if classes is None else classes
        if self._begun():
            named = self.classes_
            if classes is not None and list(two_classes(classes, type(self).__name__)) != list(named):
                raise InvalidTarget(f"`classes` must be those learnt so far, {list(named)}; got {list(classes)}.")  # type: ignore[arg-type]  # two classes were found in it
        else:
            named = two_classes(labels if given is None else given, type(self).__name__)
        signs = signs_of(labels, named)
        if not self._begun():
            self._begin(rows.shape[1], named)
        return self._learn_rows(rows, signs, weights)

    def learn_one(self, x: Mapping[Hashable, Any] | ArrayLike, y: Any) -> None:
        """Learn from a dict of named values, always the same names, or from one row.

        Both labels must be known before, from ``classes``; False and True are.
        """
        label = y.item() if isinstance(y, np.generic) else y
        if self._begun():
            named = self.classes_
        elif self.classes is None and not isinstance(label, bool):
            raise InvalidTarget(f"`classes` must name both labels before the first comes alone; got {label!r}.")
        else:
            named = two_classes([False, True] if self.classes is None else self.classes, type(self).__name__)
        signs = signs_of(np.array([label]), named)
        row, names = self._one_row(x)
        if not self._begun():
            self._begin(row.shape[1], named, names)
        self._learn_rows(row, signs, np.ones(1))

    def _begin(self, n_features: int, named: NDArray[Any], names: list[Hashable] | None = None) -> None:
        name = name_of(self.function, self.name)
        check_flip_rate(self.flip_rate)
        with double_precision():
            start, shape = flattened(self.start(n_features) if callable(self.start) else self.start, name)
        rate = given_rate(self.schedule, start.size)
        one_pass(
            self.function, shape, n_features, name
        )  # raises, before anything changes, if the function does not fit
        self.classes_ = named
        self._names, self._width, self._shape = names or [], n_features, shape
        self._tally, self._rate, self._n_rows = nothing(start), rate, 0
        self._boundary = boundary(self._tally)
        self._warned = False

    def _learn_rows(self, rows: Matrix, signs: Vector, weights: Vector) -> Matrix:
        name = name_of(self.function, self.name)
        run = _compiled(self.function, self._shape, self._width, name)
        p = -1.0 if self.flip_rate == "learn" else float(self.flip_rate)
        before = self._tally, self._rate, self._n_rows, self._boundary
        look = self._next_look()
        given, start = [np.zeros((0, 2))], 0
        while start < len(rows):
            stop = min(len(rows), start + LENGTHS[-1], start + look - self._n_rows)
            length = next(length for length in LENGTHS if length >= stop - start)
            part = slice(start, stop)
            counts = np.concatenate([weights[part], np.zeros(length - (stop - start))])
            with double_precision():
                after, said = run(
                    self._tally, self._rate, p, padded(rows[part], length), padded(signs[part], length), counts
                )
                tally = Tally(*(np.array(array) for array in after))
                values, wrong, total, finite = (np.asarray(array)[: stop - start] for array in said)
            if not (finite.all() and np.isfinite(tally.weights).all()):
                row = start + int(np.argmin(finite))
                self._tally, self._rate, self._n_rows, self._boundary = before
                raise ImproperBelief(
                    f"{name!r} and its gradient must be finite; in row {row} they are not: its features or the steps "
                    "are too large."
                )
            given.append(probabilities(values, smoothed_error_rate(wrong, WORTH * total)))
            self._tally, self._n_rows, start = tally, self._n_rows + stop - start, stop
            if self._n_rows == look:
                self._look()
                look = next_look(look)
        return np.concatenate(given)

    def _next_look(self) -> int:
        look = next_look(0)
        while look <= self._n_rows:
            look = next_look(look)
        return look

    def _look(self) -> None:
        """Read B: choose the rate by it, or judge the rate that was given."""
        self._boundary = boundary(self._tally)
        if self.schedule is None:
            self._rate = chosen_rate(self._boundary.lowest)
            return
        # The smallest eigenvalue of a matrix that was told by n examples per weight may be too small by this factor.
        n_near = float(self._boundary.n_near)
        known_to = (1.0 - min(n_near, SURE) ** -0.5) ** 2
        if not self._warned and n_near >= SURE and self.condition_ < known_to:
            self._warned = True
            needed = "" if self._rate.power != 1.0 else f": `scale` must be above {1.0 / self._boundary.lowest:.3g}"
            warnings.warn(
                f"the error will fall more slowly than 1 / n, for eta0 lambda_min(B) must be above 1 and is about "
                f"{self.condition_:.2g}{needed}. With `schedule=None` the rate is chosen.",
                SlowSchedule,
                stacklevel=4,
            )

    # --- what comes in

    def _rows(self, X: ArrayLike, reset: bool) -> Matrix:
        if not reset and self._names:
            raise InvalidFeatures(f"{type(self).__name__} has learnt dicts with named values; got rows.")
        checked: Matrix = validate_data(self, X, reset=reset, dtype=np.float64, order="C")
        return checked

    def _one_row(self, x: Mapping[Hashable, Any] | ArrayLike) -> tuple[Matrix, list[Hashable]]:
        if not isinstance(x, Mapping):
            return self._rows(np.atleast_2d(np.asarray(x)), reset=not self._begun()), []
        names = self._names if self._begun() else list(x)
        if x.keys() != set(names):
            raise InvalidFeatures(f"a dict must have the names that the function was given, {names}; got {list(x)}.")
        row = np.array([[math.nan if x[name] is None else number_of(name, x[name]) for name in names]])
        if not np.isfinite(row).all():
            missing = names[int(np.argmin(np.isfinite(row[0])))]
            raise InvalidFeatures(f"feature {missing!r} must be there: {type(self).__name__} takes no missing values.")
        return row, names

    def _weights(self, sample_weight: ArrayLike | None, rows: Matrix) -> Vector:
        weights: Vector = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        return weights

    # --- predicting

    def decision_function(self, X: ArrayLike) -> Vector:
        """f(x; w) of each row: above 0 for the second class."""
        self._check_begun()
        return self._decide(self._rows(X, reset=False))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of each row, by the sign of f."""
        chosen = (self.decision_function(X) > 0.0).astype(int)
        labels: NDArray[Any] = self.classes_[chosen]
        return labels

    def predict_proba(self, X: ArrayLike) -> Matrix:
        """Probability of each class, in the order of ``classes_``: one minus the error rate for the one predicted."""
        values = self.decision_function(X)
        return probabilities(values, self.error_rate_)

    def predict_one(self, x: Mapping[Hashable, Any] | ArrayLike) -> Any:
        """The class of a dict or of one row; None before anything was learnt."""
        given = self.predict_proba_one(x)
        return max(given, key=given.__getitem__) if given else None

    def predict_proba_one(self, x: Mapping[Hashable, Any] | ArrayLike) -> dict[Any, float]:
        """Probability of each class; empty before anything was learnt."""
        if not self._begun():
            return {}
        values = self._decide(self._one_row(x)[0])
        row = probabilities(values, self.error_rate_)[0]
        return dict(zip(self.classes_.tolist(), row.tolist(), strict=True))

    def _decide(self, rows: Matrix) -> Vector:
        n = len(rows)
        if not n:
            return np.zeros(0)
        with double_precision():
            found = _values(self.function, self._shape)(self._tally.weights, padded(rows, 1 << (n - 1).bit_length()))
            values: Vector = np.array(found[:n])
        if not np.isfinite(values).all():
            raise ImproperBelief(f"f must be finite; got {values[~np.isfinite(values)][0]}.")
        return values

    # --- what was learnt

    @property
    def weights_(self) -> Any:
        """The weights, in the structure of ``start``."""
        self._check_begun()
        return self._shape.unravel(self._tally.weights)

    @property
    def n_examples_(self) -> int:
        """How many examples were learnt."""
        self._check_begun()
        return self._n_rows

    @property
    def error_rate_(self) -> float:
        """Share of recent examples that were predicted wrongly, before they were learnt."""
        self._check_begun()
        return float(smoothed_error_rate(self._tally.wrong, WORTH * self._tally.total))

    @property
    def flip_rate_(self) -> float:
        """Share of flipped labels that steps reckon with."""
        self._check_begun()
        return float(flip_rate(self._tally)) if self.flip_rate == "learn" else float(self.flip_rate)

    @property
    def boundary_matrix_(self) -> Matrix:
        """The estimate of B = E[delta(f) grad f grad f']."""
        self._check_begun()
        return np.array(self._tally.matrix)

    @property
    def n_flat_(self) -> int:
        """Directions of the weights that hardly move the boundary, and do not count for the condition."""
        self._check_begun()
        return int(self._boundary.n_flat)

    @property
    def condition_(self) -> float:
        """n eta lambda_min(B) as n grows, which is to be above 1; infinite for rates that fall more slowly than 1 / n.

        Where the rate is chosen, it is that of now. NaN until enough examples near the boundary were seen.
        """
        self._check_begun()
        lowest, rate = float(self._boundary.lowest), self._rate
        if math.isnan(lowest):
            return math.nan
        if self.schedule is None:
            return lowest * float(self._tally.total) * float(present_rate(self._tally, rate))
        return lowest * float(rate.scale) if rate.power == 1.0 else math.inf if rate.power < 1.0 else 0.0

    # --- as data

    def to_state(self) -> State:
        """All that this estimator is, as data; of the function its name."""
        params = self.get_params(deep=False)
        name = params["name"] = name_of(self.function, self.name)  # what it is called here, whatever the code there
        params["function"] = Code(name)
        if callable(self.start):
            params["start"] = Code(f"{name}.start")
        else:
            plain = jax().tree_util.tree_map(lambda leaf: np.asarray(leaf, dtype=np.float64), self.start)
            params["start"] = plain
        if self.classes is not None:
            params["classes"] = np.asarray(self.classes).tolist()
        config: dict[str, Any] = {"params": params, "begun": self._begun()}
        arrays: dict[str, Any] = {}
        if self._begun():
            config |= {"names": self._names, "n_rows": self._n_rows, "learnt_classes": self.classes_.tolist()}
            config["n_features_in"] = getattr(self, "n_features_in_", None)
            config["feature_names"] = [str(name) for name in getattr(self, "feature_names_in_", [])]
            config["width"] = self._width
            for part, values in (("tally", self._tally), ("rate", self._rate), ("boundary", self._boundary)):
                arrays |= {f"{part}.{name}": np.asarray(array) for name, array in values._asdict().items()}
        return State(config, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The estimator that this data describes; it continues to the last bit."""
        config, arrays = state
        model = cls(**config["params"])
        if config["begun"]:
            names = [_name(name) for name in config["names"]]
            model._begin(config["width"], np.array(config["learnt_classes"]), names)
            for part, kind in (("tally", Tally), ("rate", Rate), ("boundary", Boundary)):
                known = getattr(model, f"_{part}")._asdict()
                values = {name: arrays[f"{part}.{name}"] for name in known}
                for name, value in known.items():
                    if np.shape(value) != values[name].shape:
                        wanted = f"`{part}.{name}` must have shape {np.shape(value)} to fit the function"
                        raise ModelFileError(f"{wanted}; got {values[name].shape}.")
                setattr(model, f"_{part}", kind(**values))
            model._n_rows = int(config["n_rows"])
            if config["n_features_in"] is not None:
                model.n_features_in_ = config["n_features_in"]
            if config["feature_names"]:
                model.feature_names_in_ = np.asarray(config["feature_names"], dtype=object)
        return model

    # --- scikit-learn

    def _begun(self) -> bool:
        return hasattr(self, "_tally")

    def __sklearn_is_fitted__(self) -> bool:
        return self._begun()

    def _check_begun(self) -> None:
        from sklearn.exceptions import NotFittedError  # noqa: PLC0415  # only needed to say what is wrong

        if not self._begun():
            raise NotFittedError(
                f"This {type(self).__name__} has learnt nothing yet; call `fit`, `partial_fit` or `learn_one`."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Without the structure of the weights, which JAX does not always let go of."""
        state = dict(super().__getstate__())
        state.pop("_shape", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._begun():
            start = self.start(self._width) if callable(self.start) else self.start
            self._shape = flattened(start, name_of(self.function, self.name))[1]
