"""Regression with intervals: by default the noise is learnt, in units that the targets themselves set."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from bayou.contracts import Latent, Likelihood, Matrix, Posterior, State, Vector
from bayou.errors import InvalidTarget
from bayou.estimators.forecasts import Pending
from bayou.estimators.numbers import NumberEstimator
from bayou.estimators.online import Said
from bayou.estimators.standard_members import of_numbers, of_sparse_numbers
from bayou.estimators.units import NoiseUnits, Units
from bayou.likelihoods import Gaussian
from bayou.members import Member
from bayou.mixed_prediction import MixedPrediction
from bayou.posteriors import NormalInverseGamma
from bayou.prediction import Prediction

LARGEST_TARGET = 1e140


class OnlineRegressor(RegressorMixin, NumberEstimator):
    """Bayesian linear regression, one pass, with intervals that cover.

    By default weights and noise are learnt together (`NormalInverseGamma`), so there is nothing to set: targets are
    measured in units of their own spread. With a ``posterior`` that does not learn the noise, targets are taken as they
    are, and ``likelihood`` says how they scatter.

    ``n_waves`` is how many random waves those members of the bank have that bend: with 600, functions are learnt that
    bend more, at one or two milliseconds per row.

    >>> import numpy as np
    >>> from bayou import OnlineRegressor
    >>> x = np.linspace(0, 1, 50)[:, None]
    >>> model = OnlineRegressor().fit(x, 3 * x[:, 0] + 5 + 0.1 * np.cos(40 * x[:, 0]))
    >>> model.predict([[0.5]]).round(1), model.coef_.round(1)
    (array([6.5]), array([3.]))
    """

    _sparse_variance = 10.0

    def _default_likelihood(self) -> Likelihood:
        return Gaussian()

    def _default_posterior(self) -> Posterior[Any]:
        return NormalInverseGamma(prior_variance=10.0)

    def _standard_members(self) -> list[Member]:
        return of_numbers(10.0, self.n_waves)

    def _sparse_members(self, prior_variance: float) -> list[Member]:
        return of_sparse_numbers(prior_variance)

    def _start(self, n_columns: int, names: list[Hashable] | None = None) -> None:
        super()._start(n_columns, names)
        self._units = self._new_units()

    @property
    def _finds_noise(self) -> bool:
        """Whether the noise is found beside a belief that does not learn it: one that was chosen for many columns."""
        return bool(self._choice.why) and self.likelihood is None and not self._learner_.learns_noise

    @property
    def _in_units(self) -> bool:
        """Whether targets are told in units of their own."""
        return self._learner_.learns_noise or self._finds_noise

    def _new_units(self) -> Units:
        if self._finds_noise:
            return NoiseUnits(self._has_bias, self._intercept_place, self._intercept)
        return Units(self._has_bias)

    def _learn_part(self, rows: Matrix, targets: Vector, weights: Vector) -> Said:
        if not self._in_units:
            unscaled: Said = super()._learn_part(rows, targets, weights)
            return unscaled
        before, first, spread = self._units.current, self._units.untouched, self._units.spread
        scaled = self._units.enter(targets)
        prediction = super()._learn_part(rows, scaled, weights)
        if isinstance(self._units, NoiseUnits):
            assert isinstance(prediction, Prediction)
            self._units.learn_from(prediction.latent, scaled, weights)
        if first:
            self._count_surprise(prediction, float(targets[0]), float(scaled[0]))
        self._units.count(targets, weights)
        return self._in_raw(prediction, before, spread)

    def _in_raw(self, prediction: Said, units: tuple[float, float], spread: float) -> Said:
        """The same, told in raw units: the noise carries the scale."""
        location, scale = units
        if isinstance(prediction, MixedPrediction):
            return prediction.in_units(location, scale)
        latent = prediction.latent
        raw = Latent(location + scale * latent.mean, latent.variance, spread * scale**2 * latent.noise, latent.degrees)
        return Prediction(self._learner_.likelihood, raw)

    def _settle(self) -> None:
        super()._settle()
        if self._in_units:
            self._units.retake(self._learner_)

    def _learn_encoded(self, mask: Any, y: float) -> None:
        if not self._in_units:
            super()._learn_encoded(mask, y)
            return
        units, target = self._units, np.array([y], dtype=np.float64)
        first = units.untouched
        scaled = float(units.enter(target)[0])
        if first or self._finds_noise:
            said = self._predict_encoded(mask)
        if first:
            self._count_surprise(said, y, scaled)
        super()._learn_encoded(mask, scaled)
        if isinstance(units, NoiseUnits):
            units.learn_from(said.latent, np.array([scaled]), np.zeros(0))
        units.count(target, np.zeros(0))

    def _units_now(self) -> tuple[float, float]:
        return self._units.current

    def _learn_forecast(self, target: float, pending: Pending) -> None:
        assert self._bank is not None
        assert pending.forecast is not None  # nothing but a bank has forecasts of numbers
        forecast = pending.forecast.seen_as(*self._features_of(pending.example, learn=True))
        raw, (location, scale) = np.array([target]), pending.units
        scaled = float(self._units.enter(raw)[0])
        self._units.log_scales += math.log(scale) - math.log(self._units.current[1])  # it was said in other units
        self._bank.learn_late(forecast, scaled, (target - location) / scale)
        self._units.count(raw, np.zeros(0))

    def _count_surprise(self, prediction: Said, y: float, scaled: float) -> None:
        """The first target set the units that it was learnt in; its evidence is that of the units before."""
        if isinstance(self._units, NoiseUnits):  # without units, its first prediction means nothing
            return
        if isinstance(prediction, MixedPrediction):
            first: Said = prediction.first()
        else:
            latent = Latent(*(np.atleast_1d(value)[:1] for value in prediction.latent))
            first = Prediction(self._learner_.likelihood, latent)
        in_old, in_new = (first.log_probability([value])[0] for value in (y, scaled))
        self._units.log_scales -= float(in_old - in_new)

    def _check_target(self, y: float) -> None:
        try:
            legal = math.isfinite(y) and abs(y) <= LARGEST_TARGET
        except TypeError:
            legal = False
        if not legal:
            raise InvalidTarget(f"the target must be a finite number below {LARGEST_TARGET:g} in size; got {y!r}.")

    def _targets(self, y: ArrayLike, n: int) -> Vector:
        targets = super()._targets(y, n)
        for target in targets[np.abs(targets) > LARGEST_TARGET][:1]:
            raise InvalidTarget(f"targets must be below {LARGEST_TARGET:g} in size; got {target}.")
        return targets

    def _predict_rows(self, rows: Matrix) -> Any:
        return self._in_raw_units(super()._predict_rows(rows))

    def _predict_dict(self, x: Mapping[Hashable, Any]) -> Any:
        return self._in_raw_units(super()._predict_dict(x))

    def _in_raw_units(self, prediction: Any) -> Any:
        return self._in_raw(prediction, self._units.current, self._units.spread) if self._in_units else prediction

    def _target_scale(self) -> float:
        return self._units.current[1] if self._in_units else 1.0

    def _target_location(self) -> float:
        return self._units.current[0] if self._in_units else 0.0

    @property
    def log_evidence_(self) -> float:
        """Log density that was given to all targets learnt so far, each before it was seen."""
        self._check_begun()
        return self._learner_.log_evidence - (self._units.log_scales if self._in_units else 0.0)

    def to_state(self) -> State:
        """All that this estimator is, as data."""
        state = super().to_state()
        if self._begun():
            state.arrays.update(self._units.to_arrays())
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The estimator that this data describes; it continues to the last bit."""
        model = super().from_state(state)
        if model._begun():
            model._units = model._new_units()
            model._units.from_arrays(state.arrays)
        return model
