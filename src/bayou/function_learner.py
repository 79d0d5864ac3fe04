"""The online step for latents that are not linear in the weights: assumed-density filtering of f(x; w).

By default the function is replaced, at each example, by its tangent at the mean of the weights, and the belief learns
from that as it would from features: the extended Kalman filter, for any likelihood, rule and family. With samples, the
tangent gives way to the line that is nearest to the function over the whole belief, found by Monte Carlo.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayou.contracts import (
    Array,
    Function,
    Latent,
    Likelihood,
    Mask,
    Matrix,
    Posterior,
    Rule,
    ScalarLikelihood,
    State,
    Vector,
    VectorLikelihood,
)
from bayou.contracts.fit import check_fit
from bayou.errors import BayouError, ImproperBelief, InvalidSpec, ModelFileError
from bayou.learner import Learner
from bayou.numerics.finite import any_large
from bayou.numerics.pointers import scalar_kernels, vector_kernels
from bayou.numerics.running_noise import first_noise, noise_variance, predictive_noise, tail_degrees
from bayou.numerics.sites import pieces
from bayou.numerics.tangents import function_kernels
from bayou.numerics.validation import checked_weights
from bayou.prediction import Prediction, latent_of
from bayou.rules import MomentMatching

ROWS_AT_ONCE = 256  # of a function that is not compiled: so many gradients are held in memory
_NONE_MISSING: Mask = np.zeros((0, 0), dtype=np.bool_)
_NOTHING: Vector = np.zeros(0)


class FunctionLearner(Learner):
    """Learns the weights of a function from a stream, one example at a time, one pass, constant memory.

    The posterior is full, diagonal or low rank; its prior is the function's, and its own ``prior_variance`` a factor on
    that. With ``learn_noise`` the noise of a Gaussian likelihood is learnt, and so are the spread and the tails of the
    errors, by which predictions are Student t's that cover. With ``n_samples`` the function is replaced by the line
    nearest to it over so many draws of the weights, in pairs about the mean, instead of its tangent.

    >>> import numpy as np
    >>> from bayou import FullGaussian, FunctionLearner, Gaussian, MomentMatching, Network
    >>> network = Network(hidden=(10,))
    >>> learner = FunctionLearner(network, Gaussian(0.01), FullGaussian(), MomentMatching(), n_features=1)
    >>> x = np.random.default_rng(0).uniform(-2, 2, size=(500, 1))
    >>> _ = learner.learn_many(x, np.sin(2 * x[:, 0]))
    >>> bool(abs(learner.predict_one([1.0]).mean - np.sin(2.0)) < 0.1)
    True
    """

    def __init__(
        self,
        function: Function,
        likelihood: Likelihood,
        posterior: Posterior[Any],
        rule: Rule,
        n_features: int,
        *,
        learn_noise: bool = False,
        n_samples: int = 0,
        seed: int = 0,
    ) -> None:
        check_fit(likelihood, posterior, rule)
        _check_function(function, likelihood, posterior, rule)
        _check_options(likelihood, learn_noise, n_samples)
        self.function, self.learn_noise, self.n_samples, self.seed = function, learn_noise, n_samples, seed
        self.noise = first_noise() if learn_noise else _NOTHING
        super().__init__(likelihood, posterior, rule, n_features)

    def _prior(self) -> Any:
        mean, variance = self.function.start(self.n_features)
        given: Any = self.posterior
        prior_mean, prior_variance = mean + np.asarray(given.prior_mean), variance * np.asarray(given.prior_variance)
        self._family = replace(given, prior_mean=tuple(prior_mean), prior_variance=tuple(prior_variance))
        return self._family.prior(mean.size)

    def _prepare(self) -> None:
        """Lay out what every call needs."""
        self._vector = isinstance(self.likelihood, VectorLikelihood)
        self._dtype = np.dtype(np.float64)
        self.learns_noise = self.learn_noise
        self._row, self._target = np.zeros((1, self.n_features)), np.zeros(1)
        self._shape = (self.n_features,)
        self._familiar: set[float] = set()
        self._layout = self.function.layout(self.n_features)
        if isinstance(self.likelihood, VectorLikelihood):
            self._kernels = vector_kernels(self.likelihood, self.rule)
        else:
            assert isinstance(self.likelihood, ScalarLikelihood)
            self._kernels = scalar_kernels(self.likelihood, self.rule)
        self._function = None if self.function.linearize is None else function_kernels(self.function.linearize)
        self._passes = self.posterior.tangents

    # --- learning

    def learn_one(self, features: ArrayLike, y: float, weight: float = 1.0) -> Prediction:
        """Learn from one example; returns the prediction made before the target was used."""
        row, self._target[0] = self._one_row(features), y
        self._check_target(self._target.item())
        return self._absorb(row, _NONE_MISSING, self._target, checked_weights([weight], 1), single=True)

    def learn_row(self, row: Vector, mask: Mask, y: float) -> None:
        """Learn from finite features, with a mask of one row or none, and a legal target: none of them is checked."""
        self._row[0], self._target[0] = row, y
        self._absorb(self._row, mask if mask.size else _NONE_MISSING, self._target, _NOTHING)

    def _way_back(self, rows: Array) -> list[Array] | None:
        """A copy of all that learning changes, unless there is but one row: one that is unfit changes nothing."""
        return None if len(rows) == 1 else self._copies()

    def _copies(self) -> list[Array]:
        return [array.copy() for array in (*self.belief, self.noise)]

    def _absorb(
        self,
        rows: Array,
        mask: Mask,
        targets: Vector,
        weights: Vector,
        single: bool = False,
        before: list[Array] | None = None,
    ) -> Prediction:
        record = self._record(len(rows))
        one_by_one = self.n_samples > 0 or self._function is None
        if before is None and (one_by_one or weights.size):  # even one example may be learnt in parts
            before = self._copies()
        try:
            if one_by_one:
                done = self._learn_one_by_one(rows, mask, targets, weights, record)
            else:
                learn = self._passes.learn_vector if self._vector else self._passes.learn
                given = self.belief, self._kernels, self._params, self._function, self._layout
                done = learn(*given, rows, mask, targets, weights, self.noise, record)
            if done < len(rows):
                any_large(rows)
                raise ImproperBelief(
                    f"row {done} has a latent that is not finite: the function, its gradient or the belief is too "
                    "large there. No row was learnt."
                )
        except BayouError:
            for array, saved in zip((*self.belief, self.noise), before or (), strict=False):
                array[...] = saved
            raise
        prediction = Prediction(self.likelihood, record if self._vector else record[0], single)
        values = record[0, :, -1]
        if np.isnan(values).any():  # the rule does not compute the evidence
            values = self.likelihood.log_weight(targets, prediction.latent)
        self.log_evidence += float(values.sum())
        self.n_examples += len(rows)
        return prediction

    @property
    def _params(self) -> Vector:
        """Of the likelihood, with the noise as it is known by now."""
        params = self.likelihood.params
        if self.noise.size:
            params[0] *= noise_variance(self.noise)
        return params

    @_params.setter
    def _params(self, params: Vector) -> None:
        """They follow from the rest."""

    def _learn_one_by_one(self, rows: Any, mask: Mask, targets: Vector, weights: Vector, record: Matrix) -> int:
        """The pass for functions that are not compiled, and for samples."""
        params, seen = self._params, np.empty(self.belief.mean.size)
        for n in range(len(rows)):
            weight = float(weights[n]) if weights.size else 1.0
            count = pieces(weight)
            for piece in range(count):
                lines = self._lines(rows[n : n + 1], mask[n : n + 1], self.n_examples + n, piece)
                values, gradient, blur = (np.ascontiguousarray(part[0]).ravel() for part in lines)
                share, given = weight / count, (self.belief, self._kernels, params)
                if self._vector:
                    entry = record[:, n] if piece == 0 else record[:0, n]
                    done = self._passes.learn_lines(*given, values, gradient, blur, targets[n], share, entry)
                else:
                    first = record[0, n] if piece == 0 else _NOTHING
                    line = float(values[0]), gradient, seen, float(blur[0])
                    done = self._passes.learn_line(*given, *line, targets[n], share, self.noise, first)
                if not done:
                    return n
        return len(rows)

    def _lines(
        self, rows: Matrix, mask: Mask, n_before: int, piece: int = 0
    ) -> tuple[Matrix, NDArray[np.float64], Matrix]:
        """Per row and latent: the value and the gradient of its line, and the variance about it.

        Without samples the line is the tangent at the mean of the weights. With them it is the one that is nearest to
        the function over all weights: by Stein's lemma its gradient is E grad f, and its value E f. What the function
        departs from it is variance of the latent that the weights cannot explain along a line. The draws depend on the
        seed and on how many examples were learnt before, so that a prediction is made with those that learn.
        """
        if mask.size:
            raise InvalidSpec("missing features are for compiled functions, without samples.")
        mean = self.belief.mean
        if not self.n_samples:
            values, gradients = self.function.linearized(mean, rows)
            return values, gradients, np.zeros(values.shape)
        random = np.random.default_rng([self.seed, n_before, piece])
        half = self._family.sample(self.belief, self.n_samples // 2, random) - mean
        offsets = np.concatenate([half, -half])  # in pairs, so that a line is met exactly
        drawn = [self.function.linearized(mean + offset, rows) for offset in offsets]
        fields = np.stack([value for value, _ in drawn])
        gradients = np.mean([gradient for _, gradient in drawn], axis=0)
        values = fields.mean(axis=0)
        departures = fields - values - np.einsum("nkp,sp->snk", gradients, offsets)
        return values, gradients, np.mean(departures**2, axis=0)

    # --- predicting

    def _latents(self, rows: Any, mask: Mask) -> Latent:
        record = self._record(len(rows))
        if self._function is not None and not self.n_samples:
            self._passes.predict(self.belief, self._function, self._layout, rows, mask, self.noise, record)
        else:
            for start in range(0, len(rows), ROWS_AT_ONCE):
                part = slice(start, start + ROWS_AT_ONCE)
                values, gradients, blur = self._lines(rows[part], mask[part], self.n_examples)
                variances = np.empty(values.shape)
                self._passes.spread(self.belief, np.ascontiguousarray(gradients), variances)
                record[:, part, 0], record[:, part, 1] = values.T, (variances + blur).T
            if self.noise.size:
                degrees = tail_degrees(self.noise)
                record[:, :, 1] /= noise_variance(self.noise)
                record[:, :, 2], record[:, :, 3] = predictive_noise(self.noise, degrees), degrees
        return latent_of(record if self._vector else record[0])

    def _record(self, n: int) -> Matrix:
        return np.empty((self.function.n_outputs, n, 5 if self.noise.size else 3))

    def beliefs(self) -> list[Any]:
        """The belief about the weights: there is one, whatever the number of latents."""
        return [self.belief]

    # --- as a value

    def extend(self, n_features: int, likelihood: Likelihood | None = None, rule: Rule | None = None) -> None:
        """Make room for more features, or for a likelihood of more latents; of what is new, only the prior is known."""
        places = getattr(self.function, "places", None)
        if places is None:
            raise InvalidSpec(f"{self.function!r} has a fixed number of features and outputs.")
        self.likelihood = self.likelihood if likelihood is None else likelihood
        self.rule = self.rule if rule is None else rule
        wider = replace(self.function, n_outputs=self.likelihood.n_latents)  # type: ignore[type-var]  # a dataclass
        _check_function(wider, self.likelihood, self.posterior, self.rule)
        kept = places(self.n_features, wider, n_features)
        known, size = self.belief, self.belief.mean.size
        self.function, self.n_features = wider, n_features
        self.belief = self._prior()
        for array, old in zip(self.belief, known, strict=True):
            array[np.ix_(*(kept if length == size else np.arange(length) for length in old.shape))] = old
        self._prepare()

    def retell(self, scale: Vector, shift: Vector) -> None:
        """Not for functions: what was learnt would not be the same in other coordinates."""
        raise InvalidSpec(f"{self.function!r} cannot be told in other features; start anew.")

    def forget(self, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let go of the past: see `bayou.contracts.Posterior.forget`."""
        self._family.forget(self.belief, discount, diffusion)

    def to_state(self) -> State:
        """All that this learner is, as data."""
        config, arrays = super().to_state()
        options = {"learn_noise": self.learn_noise, "n_samples": self.n_samples, "seed": self.seed}
        return State(config | {"function": self.function} | options, arrays | {"noise": self.noise})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The learner that this data describes; it continues to the last bit."""
        config, arrays = state
        specs = (config[name] for name in ("function", "likelihood", "posterior", "rule", "n_features"))
        options = {name: config[name] for name in ("learn_noise", "n_samples", "seed")}
        learner = cls(*specs, **options)
        named = {f"belief.{name}": array for name, array in learner.belief._asdict().items()} | {"noise": learner.noise}
        for name, array in named.items():
            saved = arrays[name]
            if saved.shape != array.shape or saved.dtype != array.dtype:
                raise ModelFileError(
                    f"`{name}` must be {array.dtype} of shape {array.shape}; got {saved.dtype} of {saved.shape}."
                )
            array[...] = saved
        learner.posterior.check(learner.belief)
        learner.n_examples, learner.log_evidence = int(config["n_examples"]), float(config["log_evidence"])
        return learner

    def __getstate__(self) -> dict[str, Any]:
        own = ("function", "learn_noise", "n_samples", "seed", "noise", "_family")
        return super().__getstate__() | {name: self.__dict__[name] for name in own}

    def __repr__(self) -> str:
        parts = ", ".join(repr(part) for part in (self.function, self.likelihood, self.posterior, self.rule))
        return f"FunctionLearner({parts}, n_features={self.n_features})"


def _check_function(function: Function, likelihood: Likelihood, posterior: Posterior[Any], rule: Rule) -> None:
    """Raise unless the function fits the others."""
    if not isinstance(function, Function):
        raise InvalidSpec(f"`function` must be a Function; got {function!r}.")
    if posterior.tangents is None:
        raise InvalidSpec(f"{posterior!r} knows linear latents only; use a full, diagonal or low-rank Gaussian.")
    if getattr(posterior, "dtype", "float64") != "float64":
        raise InvalidSpec(f"functions are learnt in float64; got {posterior!r}.")
    if isinstance(likelihood, VectorLikelihood) and isinstance(rule, MomentMatching):
        raise InvalidSpec(f"{likelihood!r} has latents that share weights here: use Variational() or Linearized().")
    if function.n_outputs != likelihood.n_latents:
        raise InvalidSpec(f"{likelihood!r} has {likelihood.n_latents} latents; {function!r} has {function.n_outputs}.")


def _check_options(likelihood: Likelihood, learn_noise: bool, n_samples: int) -> None:
    """Raise unless the options fit the others."""
    if learn_noise and not likelihood.scales_with_noise:
        raise InvalidSpec(f"`learn_noise` is for a Gaussian likelihood; got {likelihood!r}.")
    if not (isinstance(n_samples, int) and n_samples >= 0 and n_samples % 2 == 0):
        raise InvalidSpec(f"`n_samples` must be a whole, even number, or 0; got {n_samples!r}.")
