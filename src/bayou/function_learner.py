"""The online step for latents that are not linear in the weights: assumed-density filtering of f(x; w).

By default the function is replaced, at each example, by its tangent at the mean of the weights, and the belief learns
from that as it would from features: the extended Kalman filter, for any likelihood, rule and family. With samples, the
expectations over the weights that a rule asks for are taken by Monte Carlo (`bayou.numerics.sampled_sites`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
from bayou.errors import ImproperBelief, InvalidSpec, ModelFileError
from bayou.learner import Learner, check_fit
from bayou.numerics.finite import any_large
from bayou.numerics.pointers import scalar_kernels, vector_kernels
from bayou.numerics.running_noise import first_noise, noise_variance, predictive_noise, tail_degrees
from bayou.numerics.sampled_sites import Sites, matching_sites, variational_sites
from bayou.numerics.sites import bounded, pieces
from bayou.numerics.tangents import function_kernels
from bayou.numerics.validation import checked_weights
from bayou.prediction import Prediction, latent_of
from bayou.rules import MomentMatching, Variational

ROWS_AT_ONCE = 256  # of a function that is not compiled: so many gradients are held in memory
_NONE_MISSING: Mask = np.zeros((0, 0), dtype=np.bool_)
_NOTHING: Vector = np.zeros(0)


class FunctionLearner(Learner):
    """Learns the weights of a function from a stream, one example at a time, one pass, constant memory.

    The posterior is full, diagonal or low rank; its prior is the function's, and its own ``prior_variance`` a factor on
    that. With ``learn_noise`` the noise of a Gaussian likelihood is learnt, and so are the spread and the tails of the
    errors, by which predictions are Student t's that cover. With ``n_samples`` expectations over the weights are taken
    over so many draws, in pairs about the mean, for moment matching or the variational rule.

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
        _check_function(function, likelihood, posterior)
        _check_options(likelihood, rule, learn_noise, n_samples)
        self.function, self.learn_noise, self.n_samples, self.seed = function, learn_noise, n_samples, seed
        self.noise = first_noise() if learn_noise else _NOTHING
        super().__init__(likelihood, posterior, rule, n_features)

    @property
    def learns_noise(self) -> bool:
        """Whether the noise of the targets is learnt with the weights."""
        return self.learn_noise

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
        return None if len(rows) == 1 else [array.copy() for array in (*self.belief, self.noise)]

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
        if self.n_samples or self._function is None:
            done = self._learn_one_by_one(rows, mask, targets, weights, record)
        else:
            learn = self._passes.learn_vector if self._vector else self._passes.learn
            given = self.belief, self._kernels, self._params, self._function, self._layout
            done = learn(*given, rows, mask, targets, weights, self.noise, record)
        if done < len(rows):
            for array, saved in zip((*self.belief, self.noise), before or (), strict=False):
                array[...] = saved
            any_large(rows)
            raise ImproperBelief(
                f"row {done} has a latent that is not finite: the function, its gradient or the belief is too large "
                "there. No row was learnt."
            )
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
        if mask.size:
            raise InvalidSpec("missing features are for compiled functions, without samples.")
        params, seen, no_blur = self._params, np.empty(self.belief.mean.size), np.zeros(self.function.n_outputs)
        for n in range(len(rows)):
            weight = float(weights[n]) if weights.size else 1.0
            count = pieces(weight)
            for piece in range(count):
                values, gradients = self.function.linearized(self.belief.mean, rows[n : n + 1])
                share, line = weight / count, np.ascontiguousarray(gradients[0]).ravel()
                first = record[:, n] if piece == 0 else record[:0, n]
                if self.n_samples:
                    learnt = self._learn_sampled(rows[n : n + 1], targets[n], values, gradients, share, n, piece, first)
                elif self._vector:
                    several = np.ascontiguousarray(values[0]), line, no_blur
                    learnt = self._passes.learn_lines(
                        self.belief, self._kernels, params, *several, targets[n], share, first
                    )
                else:
                    entry = first[0] if piece == 0 else _NOTHING
                    at = float(values[0, 0]), line, seen, 0.0
                    learnt = self._passes.learn_line(
                        self.belief, self._kernels, params, *at, targets[n], share, self.noise, entry
                    )
                if not learnt:
                    return n
        return len(rows)

    def _learn_sampled(
        self,
        row: Matrix,
        target: float,
        values: Matrix,
        gradients: NDArray[np.float64],
        weight: float,
        n: int,
        piece: int,
        entry: Matrix,
    ) -> bool:
        """One example, by draws of the weights. They depend on the seed and on how many were learnt before."""
        variances = np.empty((1, self.function.n_outputs))
        self._passes.spread(self.belief, gradients, variances)
        random = np.random.default_rng([self.seed, self.n_examples + n, piece])
        half = self._family.sample(self.belief, self.n_samples // 2, random)
        draws = np.concatenate([half, 2.0 * self.belief.mean - half])
        seen = [self.function.linearized(draw, row) for draw in draws]
        fields, slopes = np.concatenate([value for value, _ in seen]), np.concatenate([slope for _, slope in seen])
        if not (np.isfinite(fields).all() and np.isfinite(slopes).all() and np.isfinite(variances).all()):
            return False
        if len(entry):
            entry[:, 0], entry[:, 1], entry[:, 2] = values[0], variances[0], np.nan
        before = self.belief.mean.copy()
        for direction, slope, precision in zip(*self._sites(target, fields, slopes, weight), strict=True):
            variance = np.empty((1, 1))
            self._passes.spread(self.belief, direction[None, None], variance)
            moved = float(direction @ (self.belief.mean - before))
            site = bounded(float(slope - precision * moved), float(precision), variance.item())
            self._family.absorb(self.belief, direction, *site)
        return True

    def _sites(self, target: float, fields: Matrix, gradients: NDArray[np.float64], weight: float) -> Sites:
        """What the draws say of the weights, by the rule."""
        logs, slopes, precisions = self._densities(target, fields)
        if isinstance(self.rule, Variational):
            return variational_sites(gradients, weight * slopes, weight * precisions)
        lines = gradients.reshape(-1, gradients.shape[2])
        m = len(lines)
        pairs = lines[:, None] + lines[None, :]
        variances = np.empty((m, m))
        self._passes.spread(self.belief, np.ascontiguousarray(pairs), variances)
        own = np.diag(variances) / 4.0
        covariance = 0.5 * (variances - own[:, None] - own[None, :])
        return matching_sites(gradients, weight * slopes, weight * precisions, weight * logs, covariance)

    def _densities(self, target: float, fields: Matrix) -> tuple[Vector, Matrix, Matrix]:
        """log p(y | f), its slope and minus its curvature, for each draw."""
        n, k = fields.shape
        logs, slopes, precisions = np.empty(n), np.empty((n, k)), np.zeros((n, k, k))
        params, likelihood = self.likelihood.params, self.likelihood
        for s in range(n):
            if isinstance(likelihood, VectorLikelihood):
                logs[s] = likelihood.log_density(target, fields[s].copy(), params, slopes[s], np.empty(k))
                chances = (np.arange(k) == target) - slopes[s]
                precisions[s] = np.diag(chances) - np.outer(chances, chances)
            else:
                assert isinstance(likelihood, ScalarLikelihood)
                logs[s], slopes[s, 0], precisions[s, 0, 0] = likelihood.log_density(target, fields[s, 0], params)
        return logs, slopes, precisions

    # --- predicting

    def _latents(self, rows: Any, mask: Mask) -> Latent:
        record = self._record(len(rows))
        if self._function is not None:
            self._passes.predict(self.belief, self._function, self._layout, rows, mask, self.noise, record)
        else:
            if mask.size:
                raise InvalidSpec("missing features are for compiled functions.")
            for start in range(0, len(rows), ROWS_AT_ONCE):
                part = slice(start, start + ROWS_AT_ONCE)
                values, gradients = self.function.linearized(self.belief.mean, rows[part])
                variances = np.empty(values.shape)
                self._passes.spread(self.belief, np.ascontiguousarray(gradients), variances)
                record[:, part, 0], record[:, part, 1] = values.T, variances.T
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

    def extend(self, n_features: int, likelihood: Likelihood | None = None) -> None:
        """Make room for more features, or for a likelihood of more latents; of what is new, only the prior is known."""
        places = getattr(self.function, "places", None)
        if places is None:
            raise InvalidSpec(f"{self.function!r} has a fixed number of features and outputs.")
        self.likelihood = self.likelihood if likelihood is None else likelihood
        wider = replace(self.function, n_outputs=self.likelihood.n_latents)  # type: ignore[type-var]  # a dataclass
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
    def from_state(cls, state: State) -> FunctionLearner:
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


def _check_function(function: Function, likelihood: Likelihood, posterior: Posterior[Any]) -> None:
    """Raise unless the function fits the others."""
    if not isinstance(function, Function):
        raise InvalidSpec(f"`function` must be a Function; got {function!r}.")
    if posterior.tangents is None:
        raise InvalidSpec(f"{posterior!r} knows linear latents only; use a full, diagonal or low-rank Gaussian.")
    if getattr(posterior, "dtype", "float64") != "float64":
        raise InvalidSpec(f"functions are learnt in float64; got {posterior!r}.")
    if function.n_outputs != likelihood.n_latents:
        raise InvalidSpec(f"{likelihood!r} has {likelihood.n_latents} latents; {function!r} has {function.n_outputs}.")


def _check_options(likelihood: Likelihood, rule: Rule, learn_noise: bool, n_samples: int) -> None:
    """Raise unless the options fit the others."""
    if learn_noise and not likelihood.scales_with_noise:
        raise InvalidSpec(f"`learn_noise` is for a Gaussian likelihood; got {likelihood!r}.")
    if not (isinstance(n_samples, int) and n_samples >= 0 and n_samples % 2 == 0):
        raise InvalidSpec(f"`n_samples` must be a whole, even number, or 0; got {n_samples!r}.")
    if n_samples and not isinstance(rule, (MomentMatching, Variational)):
        raise InvalidSpec(f"`n_samples` is for rules that take expectations; got {rule!r}.")
    if n_samples and learn_noise:
        raise InvalidSpec("`learn_noise` goes by the tangent; it must be False with `n_samples`.")
    if n_samples and not likelihood.smooth:
        raise InvalidSpec(f"{likelihood!r} has no slope for `n_samples` draws to follow.")
