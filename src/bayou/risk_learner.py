"""The incremental risk of a function that is not linear in its weights: its Gauss-Newton step.

An example should move the weights w to where the target is better met and the function changes least, over all of a
box:

    stiffness * mean over the box of (f(x; w') - f(x; w))^2 / 2 - log p(y | f(x; w'))

To first order the change is the gradient times w' - w, so that the mean square of it is a norm of w' - w with the Gram
matrix of the gradients over the box: `FunctionNorm`, about the weights as they are. As they move, so does the matrix:
it is taken anew whenever a tenth more examples have been learnt. A step that would raise the risk, because the function
bends on the way, is halved until it does not.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import qmc

from bayou.contracts import Array, Function, Latent, Likelihood, Mask, Matrix, Rule, ScalarLikelihood, State, Vector
from bayou.contracts.fit import check_fit
from bayou.errors import InvalidSpec, ModelFileError
from bayou.learner import Learner
from bayou.numerics.bands import band_factor, inverse_diagonal, to_band
from bayou.numerics.function_norms import learn_seen, look
from bayou.numerics.grams import Box, check_box, tensor_quadrature
from bayou.numerics.pointers import scalar_kernels
from bayou.numerics.priors import check_forgetting
from bayou.numerics.sites import pieces
from bayou.numerics.validation import checked_weights
from bayou.posteriors import FunctionNorm
from bayou.prediction import Prediction, latent_of

POINTS_PER_WEIGHT = 4  # of the mean over a box of several inputs
FEWEST_POINTS = 64
RENEWAL = 1.1
HALVINGS = 20
ROWS_AT_ONCE = 256
MISSING = "all features must be known: the gradient of a function needs them; got a mask of missing ones."
_NOTHING: Vector = np.zeros(0)
_NONE_MISSING: Mask = np.zeros((0, 0), dtype=np.bool_)


class IncrementalRiskLearner(Learner):
    """Learns the weights of a function so that each example changes it elsewhere, over a box, as little as possible.

    ``function`` is a `Network`, or any function that you wrote in JAX (`JaxFunction`); ``domain`` has an interval for
    each feature. The posterior says how stiff it is, and whether the noise is learnt. ``damping``, as a fraction of the
    mean of its diagonal, is added to the Gram matrix: weights that hardly move the function do not move far for it. For
    d weights O(d^2) per example, and O(d^3) now and then.

    >>> import numpy as np
    >>> from bayou import FunctionNorm, Gaussian, IncrementalRiskLearner, Linearized, Network
    >>> learner = IncrementalRiskLearner(
    ...     Network((10,)), Gaussian(), FunctionNorm(learn_noise=True), Linearized(), domain=((-2.0, 2.0),)
    ... )
    >>> x = np.random.default_rng(0).uniform(-2, 2, size=(500, 1))
    >>> _ = learner.learn_many(x, np.sin(2 * x[:, 0]))
    >>> bool(abs(learner.predict_one([1.0]).mean - np.sin(2.0)) < 0.1)
    True
    """

    def __init__(
        self,
        function: Function,
        likelihood: Likelihood,
        posterior: FunctionNorm,
        rule: Rule,
        domain: Box,
        damping: float = 0.05,
    ) -> None:
        if not isinstance(function, Function):
            raise InvalidSpec(f"`function` must be a Function; got {function!r}.")
        check_fit(likelihood, posterior, rule)
        if not isinstance(posterior, FunctionNorm) or posterior.basis is not None or posterior.dtype != "float64":
            raise InvalidSpec(f"`posterior` must be a FunctionNorm without a basis, in float64; got {posterior!r}.")
        if not isinstance(likelihood, ScalarLikelihood) or function.n_outputs != 1:
            raise InvalidSpec(
                f"the function and the likelihood must have one latent; got {function!r}, {likelihood!r}."
            )
        if not 0.0 <= damping < np.inf:
            raise InvalidSpec(f"`damping` must be finite and not negative; got {damping!r}.")
        self.function, self.damping = function, float(damping)
        self.domain: Box = tuple((float(low), float(high)) for low, high in domain)
        check_box(self.domain)
        super().__init__(likelihood, posterior, rule, len(self.domain))

    def _prior(self) -> Any:
        start, _ = self.function.start(self.n_features)
        belief = self.posterior.prior(start.size)
        belief.mean[...] += start
        self._renewed = 0
        factor, spread = self._norm_at(belief.mean)
        return belief._replace(factor=factor, spread=spread)

    def _norm_at(self, weights: Vector) -> tuple[Matrix, Vector]:
        """The factor of the Gram matrix of the gradients over the box, at some weights; the diagonal of its inverse."""
        points, shares = self._points(max(POINTS_PER_WEIGHT * weights.size, FEWEST_POINTS))
        gram = np.zeros((weights.size, weights.size))
        for start in range(0, len(points), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            gradients = self.function.linearized(weights, points[part])[1][:, 0]
            gram += (gradients * shares[part, None]).T @ gradients
        gram[np.diag_indices_from(gram)] += self.damping * max(float(np.trace(gram)) / weights.size, 1e-300)
        factor = band_factor(to_band(gram), len(gram))
        return factor, inverse_diagonal(factor)

    def _points(self, n: int) -> tuple[Matrix, Vector]:
        """Where the mean over the box is taken, and by what shares: Gauss and Legendre's points, or Sobol's."""
        if len(self.domain) <= 2:
            return tensor_quadrature(self.domain, [int(np.ceil(n ** (1.0 / len(self.domain))))] * len(self.domain))
        low, high = np.array(self.domain).T
        drawn = qmc.Sobol(len(self.domain), scramble=False).random_base2(int(np.ceil(np.log2(n))))
        return low + (high - low) * drawn, np.full(len(drawn), 1.0 / len(drawn))

    def _prepare(self) -> None:
        """Lay out what every call needs."""
        self._vector = False
        self._params = self.likelihood.params
        self.learns_noise = self.posterior.learns_noise
        self._dtype = np.dtype(np.float64)
        self._row, self._target = np.zeros((1, self.n_features)), np.zeros(1)
        self._shape = (self.n_features,)
        self._familiar: set[float] = set()
        assert isinstance(self.likelihood, ScalarLikelihood)
        self._kernels = scalar_kernels(self.likelihood, self.rule)
        self._density = self.likelihood.log_density
        self._box_points = self._points(FEWEST_POINTS)

    # --- learning

    def learn_one(self, features: ArrayLike, y: float, weight: float = 1.0) -> Prediction:
        """Learn from one example; returns the prediction made before the target was used."""
        row, self._target[0] = self._one_row(features), y
        self._check_target(self._target.item())
        weights = checked_weights([weight], 1)
        return self._absorb(row, _NONE_MISSING, self._target, weights, single=True, before=self._copies())

    def _way_back(self, rows: Array) -> list[Array]:
        return self._copies()

    def _copies(self) -> list[Array]:
        return [array.copy() for array in self.belief]

    def _learn(  # in place of the compiled pass
        self,
        belief: Any,
        kernels: Any,
        params: Vector,
        rows: Matrix,
        mask: Mask,
        targets: Vector,
        weights: Vector,
        record: Matrix,
    ) -> int:
        if mask.size:
            raise InvalidSpec(MISSING)
        seen, renewed = np.empty(belief.mean.size), self._renewed
        for n in range(len(rows)):
            if self.n_examples + n >= RENEWAL * self._renewed:
                self._renew(self.n_examples + n)
            weight = float(weights[n]) if weights.size else 1.0
            count = pieces(weight)
            for piece in range(count):
                values, gradients = self.function.linearized(belief.mean, rows[n : n + 1])
                mean = float(values[0, 0])
                variance = look(belief, np.ascontiguousarray(gradients[0, 0]), seen)[1]
                if not abs(mean + variance) < np.inf:
                    self._renewed = renewed
                    return n
                entry, share = record[n] if piece == 0 else _NOTHING, weight / count
                held, before = float(belief.stiffness[0] + belief.stiffness[2]), belief.mean.copy()
                learn_seen(belief, kernels, params, seen, mean, variance, 0.0, targets[n], share, entry)
                self._restrain(before, rows[n : n + 1], mean, targets[n], share, held)
        return len(rows)

    def _restrain(self, before: Vector, row: Matrix, f: float, y: float, share: float, held: float) -> None:
        """Halve the step that was just taken until the risk is no more than it was without it."""
        points, shares = self._box_points
        was, step = self.function.linearized(before, points)[0][:, 0], self.belief.mean - before
        surprise = -share * self._density(y, f, self._params)[0]
        for _ in range(HALVINGS):
            now = self.function.linearized(self.belief.mean, np.concatenate([points, row]))[0][:, 0]
            change = float(shares @ (now[:-1] - was) ** 2)
            if 0.5 * held * change - share * self._density(y, float(now[-1]), self._params)[0] <= surprise:
                return
            step *= 0.5
            self.belief.mean[...] = before + step
        self.belief.mean[...] = before

    def _renew(self, count: int) -> None:
        """Take the norm at the weights as they are."""
        factor, spread = self._norm_at(self.belief.mean)
        self.belief.factor[...], self.belief.spread[...] = factor, spread
        self._renewed = max(count, 1)

    def learn_row(self, row: Vector, mask: Mask, y: float) -> None:
        """Learn from finite features and a legal target: they are not checked."""
        self._row[0], self._target[0] = row, y
        self._absorb(self._row, mask if mask.size else _NONE_MISSING, self._target, _NOTHING, before=self._copies())

    # --- predicting

    def _latents(self, rows: Any, mask: Mask) -> Latent:
        if mask.size:
            raise InvalidSpec(MISSING)
        record, seen = self._record(len(rows)), np.empty(self.belief.mean.size)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            values, gradients = self.function.linearized(self.belief.mean, rows[part])
            record[part, 0] = values[:, 0]
            record[part, 1] = [look(self.belief, np.ascontiguousarray(line[0]), seen)[1] for line in gradients]
        if self.learns_noise:
            shape, rate, _ = self.belief.noise
            record[:, 2], record[:, 3] = rate / shape, 2.0 * shape
        return latent_of(record)

    # --- as a value

    def extend(self, n_features: int) -> None:
        """Not for functions of a fixed number of features."""
        raise InvalidSpec(f"{self.function!r} has a fixed number of features; got {n_features}.")

    def retell(self, scale: Vector, shift: Vector) -> None:
        """Not for functions: what was learnt would not be the same in other coordinates."""
        raise InvalidSpec(f"{self.function!r} cannot be told in other features; start anew.")

    def forget(self, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let what comes count for more: the stiffness keeps that fraction of what it has grown. The function stays."""
        check_forgetting(discount, diffusion)
        if diffusion > 0.0:
            raise InvalidSpec(
                f"`diffusion` must be 0 for a function that is not linear in its weights; got {diffusion!r}."
            )
        self.belief.stiffness[2] *= discount

    def to_state(self) -> State:
        """All that this learner is, as data."""
        config, arrays = super().to_state()
        own = {"function": self.function, "domain": self.domain, "damping": self.damping, "renewed": self._renewed}
        return State(config | own, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The learner that this data describes; it continues to the last bit."""
        config, arrays = state
        specs = [config[name] for name in ("function", "likelihood", "posterior", "rule", "domain", "damping")]
        learner = cls(*specs)
        if config["n_features"] != learner.n_features:
            raise ModelFileError(
                f"`n_features` must be {learner.n_features}, as the domain has; got {config['n_features']}."
            )
        for name, array in learner.belief._asdict().items():
            saved = arrays[f"belief.{name}"]
            if saved.shape != array.shape or saved.dtype != array.dtype:
                raise ModelFileError(
                    f"`belief.{name}` must be {array.dtype} of shape {array.shape}; got {saved.dtype} of {saved.shape}."
                )
            array[...] = saved
        belief = learner.belief
        if not (np.all(belief.factor[:, 0] > 0.0) and belief.stiffness[2] >= 0.0 and np.all(belief.noise[:2] > 0.0)):
            raise ModelFileError("the norm, the stiffness and the noise must be positive; they are not.")
        learner.n_examples, learner.log_evidence = int(config["n_examples"]), float(config["log_evidence"])
        learner._renewed = int(config["renewed"])
        return learner

    def __getstate__(self) -> dict[str, Any]:
        own = {name: self.__dict__[name] for name in ("function", "domain", "damping", "_renewed")}
        return super().__getstate__() | own

    def __repr__(self) -> str:
        parts = ", ".join(repr(part) for part in (self.function, self.likelihood, self.posterior, self.rule))
        return f"IncrementalRiskLearner({parts}, domain={self.domain!r}, damping={self.damping!r})"
