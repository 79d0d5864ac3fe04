"""Functions of few inputs as estimators: each example changes the function elsewhere as little as possible.

The functions live on a box. It is that of the first rows, with some room around them, unless it is given; when an input
falls outside, it grows, and what was learnt is told in functions over the wider box: in the old box the function is
what it was, as firmly as it was known.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from bayou.contracts import Basis, Growth, Likelihood, Mask, Matrix, Posterior, Rule, State, Vector
from bayou.encoders import Additive, CubicSplines, Polynomials, RandomFourier, TensorProduct
from bayou.errors import InvalidFeatures, InvalidSpec
from bayou.estimators.classifier import OnlineClassifier
from bayou.estimators.early_rows import EarlyRows
from bayou.estimators.regressor import OnlineRegressor
from bayou.learner import Learner
from bayou.posteriors import FullGaussian, FunctionNorm, NormalInverseGamma
from bayou.rules import MomentMatching

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Box: TypeAlias = tuple[tuple[float, float], ...]

CELLS = 10  # of splines, per input
ORDER = 6  # of polynomials
RANDOM_FUNCTIONS = 200
LENGTH_SCALE = 0.25  # of random functions of one input, in sides of the box; of several, times the root of their number
ROOM = 0.1  # around the first rows, in units of their range
GROWTH = 0.25  # room beyond an input that fell outside, in units of the new side
MOST_FUNCTIONS = 5000
SMOOTHNESS = 0.1  # of the prior of Gaussian families, as in `LearntStiffness`
NAMED = ("additive", "polynomial", "random", "tensor")
_NONE_MISSING: Mask = np.zeros((0, 0), dtype=np.bool_)


class IncrementalRiskEstimator(EarlyRows):
    """What the estimators of functions share: the box, the basis over it, and how both grow."""

    _has_short_way = False
    _retells = False
    fit_intercept = False
    standardize = False

    def __init__(
        self,
        basis: Basis | str = "additive",
        posterior: Posterior[Any] | None = None,
        likelihood: Likelihood | None = None,
        rule: Rule | None = None,
        domain: Box | None = None,
    ) -> None:
        self.basis = basis
        self.posterior = posterior
        self.likelihood = likelihood
        self.rule = rule
        self.domain = domain

    @property
    def _has_bias(self) -> bool:
        """Constants are among the functions, or near them."""
        return True

    @property
    def basis_(self) -> Basis:
        """The functions, over the box as it is by now."""
        self._check_begun()
        return self._basis

    @property
    def domain_(self) -> Box:
        """The box: per input, where it has come to lie."""
        return self.basis_.box

    @property
    def posterior_(self) -> Posterior[Any]:
        """The family of the belief about the weights."""
        self._check_begun()
        return self._learner_.posterior

    # --- how it begins

    def _begin(self, n_columns: int, names: list[Hashable] | None = None) -> None:
        super()._begin(n_columns, names)
        given: Box | None = self.basis.box if isinstance(self.basis, Basis) else self._given_domain()
        if given is not None and len(given) != n_columns:
            raise InvalidSpec(f"the domain must have an interval for each input, {n_columns}; got {len(given)}.")
        self._box_is_given = given is not None
        self._basis = self._basis_over(given if given is not None else ((0.0, 1.0),) * n_columns)

    def _given_domain(self) -> Box | None:
        if self.domain is None:
            return None
        try:
            return tuple((float(low), float(high)) for low, high in self.domain)
        except (TypeError, ValueError):
            raise InvalidSpec(
                f"`domain` must be an interval (low, high) for each input; got {self.domain!r}."
            ) from None

    def _basis_over(self, box: Box) -> Basis:
        if isinstance(self.basis, Basis):
            return self.basis if self.basis.box == box else self.basis.grown(box)[0]
        if self.basis not in NAMED:
            raise InvalidSpec(f"`basis` must be a Basis or one of {', '.join(NAMED)}; got {self.basis!r}.")
        if self.basis == "random":
            sides = (LENGTH_SCALE * math.sqrt(len(box)) * (high - low) for low, high in box)
            return RandomFourier(RANDOM_FUNCTIONS, tuple(sides), box)
        splines = [CubicSplines(CELLS, interval) for interval in box]
        lines = [Polynomials(ORDER, interval) for interval in box]
        factors: list[Basis] = [*(lines if self.basis == "polynomial" else splines)]
        if len(box) == 1:
            return factors[0]
        return TensorProduct(tuple(factors)) if self.basis == "tensor" else Additive(tuple(factors))

    def _learner(self, likelihood: Likelihood) -> Learner:
        rule = MomentMatching() if self.rule is None else self.rule
        return Learner(likelihood, self._family(likelihood), rule, self._basis.size)

    def _family(self, likelihood: Likelihood) -> Posterior[Any]:
        """The posterior, made for the functions as they are by now.

        A Gaussian family gets the prior of a smooth function, whose mean square is the prior variance.
        """
        posterior = self.posterior
        if posterior is None:
            posterior = FunctionNorm(learn_noise=self.likelihood is None and likelihood.scales_with_noise)
        if isinstance(posterior, FunctionNorm):
            return replace(posterior, basis=self._basis, features="orthonormal")
        if isinstance(posterior, (FullGaussian, NormalInverseGamma)):
            share = 1.0 / (self._basis.size * (1.0 + SMOOTHNESS * self._basis.roughness))
            variances: Vector = np.asarray(posterior.prior_variance) * share
            return replace(posterior, prior_variance=tuple(variances.tolist()))
        raise InvalidSpec(
            f"`posterior` must be a FunctionNorm, a FullGaussian or a NormalInverseGamma; got {posterior!r}."
        )

    # --- the box

    def _parts(self, rows: Matrix, weights: Vector) -> Iterator[slice]:
        """The rows in parts; before each the box has come to hold it."""
        self._check_known(rows)
        for part in super()._parts(rows, weights):
            start = part.start
            while start < part.stop:
                self._make_room(rows[start])
                low, high = np.array(self._basis.box).T
                outside = np.any((rows[start : part.stop] < low) | (rows[start : part.stop] > high), axis=1)
                stop = start + int(np.argmax(outside)) if outside.any() else part.stop
                yield slice(start, stop)
                start = stop

    def _check_known(self, rows: Matrix) -> None:
        """Raise if a value is missing: a function needs all of its inputs."""
        absent = np.argwhere(np.isnan(rows))
        if len(absent):
            row, column = absent[0]
            name = self._input_names()[column]
            raise InvalidFeatures(
                f"input {name!r} must be a number, of which there are functions; got NaN in row {row}."
            )

    def _make_room(self, row: Vector) -> None:
        """Let the box grow, if this row is outside."""
        box = self._basis.box
        inside = all(low <= value <= high for (low, high), value in zip(box, row, strict=True))
        if len(self._early) == self._learner_.n_examples:  # all that was learnt can be learnt again
            if inside and (self._box_is_given or self._early):
                return
            self._basis = self._checked(self._basis_over(self._first_box(row)))
            self._learn_again()
        elif not inside:
            wider = tuple(_stretched(interval, value) for interval, value in zip(box, row, strict=True))
            self._grow(wider)

    def _first_box(self, row: Vector) -> Box:
        """The box of the first rows and this one, with some room around them; or as given, and no less."""
        rows = np.vstack([self._early_rows(), row])
        low, high = rows.min(axis=0), rows.max(axis=0)
        room = np.where(high > low, ROOM * (high - low), 0.5 * np.maximum(np.abs(low), 1.0))
        found = [(float(a), float(b)) for a, b in zip(low - room, high + room, strict=True)]
        if not self._box_is_given:
            return tuple(found)
        box = self._basis.box
        return tuple(
            (min(a, c) if x < a else a, max(b, d) if x > b else b)
            for (a, b), (c, d), x in zip(box, found, row, strict=True)
        )

    def _grow(self, box: Box) -> None:
        """Functions over a wider box; what was learnt is told in them."""
        narrow = self._basis
        grown, forward = narrow.grown(box)
        self._basis = self._checked(grown, narrow)
        points = _points_in(narrow.box, 4 * self._basis.size + 100)
        back: Matrix = np.linalg.lstsq(narrow.encode(points), self._basis.encode(points), rcond=None)[0].T.astype(
            np.float64
        )
        share = math.prod((b - a) / (d - c) for (a, b), (c, d) in zip(narrow.box, grown.box, strict=True))
        family = self._family(self._learner_.likelihood)
        self._learner_ = self._learner_.recast(family, Growth(forward, back, share))

    def _checked(self, basis: Basis, before: Basis | None = None) -> Basis:
        if basis.size > MOST_FUNCTIONS and (before is None or basis.size > before.size):
            raise InvalidFeatures(
                f"an input lies so far outside {self._basis.box} that {basis.size} functions would be needed; there "
                f"may be {MOST_FUNCTIONS}. Give a `domain`, or take the row out."
            )
        return basis

    # --- rows and dicts

    def _encode(self, rows: Matrix, weights: Vector, learn: bool) -> tuple[Matrix, Mask | None]:
        """The functions at the rows. Beyond the box a function is what it is at the edge."""
        self._check_known(rows)
        low, high = np.array(self._basis.box).T
        return self._basis.encode(np.clip(rows, low, high)), None

    def _encode_one(self, x: Mapping[Hashable, Any], learn: bool) -> Mask:
        self._pack(x, learn)
        self._check_known(self._raw)
        if learn:
            self._make_room(self._raw[0])
        self._features = self._encode(self._raw, np.zeros(0), learn)[0]
        self._line = self._features[0]
        return _NONE_MISSING

    def _admit_inputs(self, x: Mapping[Hashable, Any]) -> None:
        if self._names:
            fresh = next(name for name in x if name not in self._names)
            raise InvalidFeatures(f"the inputs must be {', '.join(map(repr, self._names))}; got {fresh!r} beside them.")
        super()._admit_inputs(x)

    def _settle(self) -> None:
        """While the first rows are few, take the units that they tell, and learn them again."""
        if len(self._early) == self._learner_.n_examples:
            self._take_units()
            self._learn_again()
        else:
            self._early = []

    # --- what was learnt

    def plot_function(
        self,
        inputs: int | tuple[int, int] | None = None,
        *,
        at: Any = None,
        coverage: float = 0.9,
        data: tuple[Any, Any] | None = None,
    ) -> Figure:
        """A picture of the function over its box, with bands: along one input, or along two; needs ``bayou[plot]``.

        Other inputs stay ``at`` some values, by default in the middle of the box. ``data`` is (X, y) to draw with it.
        """
        from bayou.estimators.function_plots import plot_function  # noqa: PLC0415  # needs the extra

        self._check_begun()
        return plot_function(self, inputs, at, coverage, data)

    # --- as data

    def to_state(self) -> State:
        """All that this estimator is, as data."""
        state = super().to_state()
        if self._begun():
            state.config["basis_over_box"] = self._basis
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The estimator that this data describes; it continues to the last bit."""
        model = super().from_state(state)
        if model._begun():
            model._basis = state.config["basis_over_box"]
        return model

    def _width(self, state: State) -> int:
        basis = state.config["basis_over_box"]
        if not isinstance(basis, Basis) or len(basis.box) != self._frame.mean.size:
            raise InvalidSpec(f"`basis_over_box` must have {self._frame.mean.size} inputs; got {basis!r}.")
        return basis.size

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags


def _stretched(interval: tuple[float, float], value: float) -> tuple[float, float]:
    """The interval, and beyond it a value with room behind."""
    low, high = interval
    if value < low:
        low = value - GROWTH / (1.0 - GROWTH) * (high - value)
    elif value > high:
        high = value + GROWTH / (1.0 - GROWTH) * (value - low)
    return low, high


def _points_in(box: Box, n: int) -> Matrix:
    """Points all over a box, always the same."""
    low, high = np.array(box).T
    points: Matrix = low + (high - low) * np.random.default_rng(0).uniform(size=(n, len(box)))
    return points


class IncrementalRiskRegressor(IncrementalRiskEstimator, OnlineRegressor):
    """Regression by functions of the inputs that change as little as possible with every example: IRMA.

    ``basis`` is one of bayou's bases, over its domain; or "additive", a sum of splines of one input each, "tensor", all
    products of such, "polynomial" or "random", over a ``domain`` that is given or found from the first rows. The noise
    and how much is known are learnt. With ``posterior=NormalInverseGamma(30.0)`` the same functions are learnt with all
    their correlations: the fully Bayesian version, O(d^2) per example, of a prior mean square of 30 times the noise.
    Counts and outliers: ``likelihood=Poisson()``, ``likelihood=StudentT(4.0, scale)``.

    >>> import numpy as np
    >>> from bayou import IncrementalRiskRegressor
    >>> x = np.random.default_rng(0).uniform(0, 3, size=(300, 1))
    >>> model = IncrementalRiskRegressor().fit(x, x[:, 0] * np.exp(-x[:, 0] ** 2))
    >>> bool(np.abs(model.predict([[1.0]]) - np.exp(-1.0)).max() < 0.01)
    True
    """


class IncrementalRiskClassifier(IncrementalRiskEstimator, OnlineClassifier):
    """Classification by functions of the inputs that change as little as possible with every example.

    As `IncrementalRiskRegressor`, with log odds as the function; three or more classes have one each. With
    ``posterior=FullGaussian(30.0)`` it is the fully Bayesian version.

    >>> from sklearn.datasets import make_moons
    >>> from bayou import IncrementalRiskClassifier
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> model = IncrementalRiskClassifier("tensor").fit(X, y)
    >>> bool(model.score(*make_moons(1000, noise=0.1, random_state=1)) > 0.97)
    True
    """

    def _with_one_class_more(self) -> Any:
        """As for linear classes; what was kept of two is told as it is of more."""
        if not self._is_multiclass:
            self._early = [(row, 0.5 * (target + 1.0), weight) for row, target, weight in self._early]
        return super()._with_one_class_more()
