"""The online step: predict an example, then learn from its target.

    belief.marginal -> likelihood (the prediction) -> rule.site(y) -> belief.absorb

A learner owns one belief and is a point of the grid likelihood x posterior x rule.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from bayou.contracts import (
    Array,
    Growth,
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
from bayou.errors import ImproperBelief, InvalidFeatures, InvalidSpec, ModelFileError, ShapeMismatch
from bayou.numerics.finite import LARGE, any_large, count_beyond
from bayou.numerics.jit import entry_point
from bayou.numerics.passes import LEARNT, REFUSED, learn_single
from bayou.numerics.pointers import scalar_kernels, vector_kernels
from bayou.numerics.validation import checked_weights
from bayou.prediction import Prediction, latent_of

_NONE_MISSING: Mask = np.zeros((0, 0), dtype=np.bool_)
_EQUAL_WEIGHTS: Vector = np.zeros(0)
_ARRAY = np.ndarray
# So many different targets `learn_one` knows by sight; any other is put to the likelihood each time.
MOST_FAMILIAR = 64
NOT_FINITE = "the example has a latent that is not finite; it was not learnt."


class Learner:
    """Learns weights from a stream, one example at a time, one pass, constant memory.

    ``belief`` is what it knows: ``belief.mean`` are the weights' means. ``learn_many`` is the same as a loop of
    ``learn_one``, in chunks of any size. A bad input raises before the belief is touched.

    >>> from bayou import FullGaussian, Learner, MomentMatching, Probit
    >>> learner = Learner(Probit(), FullGaussian(), MomentMatching(), n_features=2)
    >>> _ = learner.learn_many([[1.0, 0.5], [-1.0, 0.2], [0.7, -1.0]], [1, -1, 1])
    >>> round(learner.predict_one([1.0, 0.0]).mean, 2)
    0.6
    """

    def __init__(self, likelihood: Likelihood, posterior: Posterior[Any], rule: Rule, n_features: int) -> None:
        check_fit(likelihood, posterior, rule)
        if not (isinstance(n_features, (int, np.integer)) and n_features >= 1):
            raise InvalidSpec(f"`n_features` must be a whole number, at least 1; got {n_features!r}.")
        self.likelihood, self.posterior, self.rule, self.n_features = likelihood, posterior, rule, int(n_features)
        self.belief: Any = self._prior()
        self._tally = np.zeros(2)
        self._prepare()

    @property
    def n_examples(self) -> int:
        """How many examples were learnt."""
        return int(self._tally[0])

    @n_examples.setter
    def n_examples(self, count: int) -> None:
        self._tally[0] = count

    @property
    def log_evidence(self) -> float:
        """Log probability that was given to all targets learnt so far, each before it was seen."""
        return float(self._tally[1])

    @log_evidence.setter
    def log_evidence(self, value: float) -> None:
        self._tally[1] = value

    def _prior(self) -> Any:
        """The prior; for several latents, one for each, stacked."""
        prior = self.posterior.prior(self.n_features)
        if isinstance(self.likelihood, VectorLikelihood):
            return type(prior)(*(np.stack([array] * self.likelihood.n_latents) for array in prior))
        return prior

    def _prepare(self) -> None:
        """Compile what is not yet on disk, and lay out what every call needs."""
        self.posterior.prepare(self.n_features)
        self._vector = isinstance(self.likelihood, VectorLikelihood)
        self._params = self.likelihood.params
        self.learns_noise = self.posterior.learns_noise
        self._dtype = self.belief.mean.dtype
        self.example = np.zeros(self.n_features + 1)
        self._line, self._target = self.example[:-1], self.example[-1:]
        self._row = self._line.astype(self._dtype, copy=False).reshape(1, -1)
        self._shape = (self.n_features,)
        self._familiar: set[float] = set()
        tells_fast = type(self.likelihood).accepts_one is not Likelihood.accepts_one
        self._accepts = self.likelihood.accepts_one if tells_fast else self._familiar.__contains__
        record = self._one_record = self._record(1)
        if isinstance(self.likelihood, VectorLikelihood):
            self._kernels = vector_kernels(self.likelihood, self.rule)
            learn: Any = self.posterior.learn_vector
            one_latent = type(self.belief)(*(array[0] for array in self.belief))
            self._predict = entry_point(self.posterior.predict, one_latent, self._row, _NONE_MISSING, record[0])
        else:
            assert isinstance(self.likelihood, ScalarLikelihood)
            self._kernels = scalar_kernels(self.likelihood, self.rule)
            learn = self.posterior.learn
            self._predict = entry_point(self.posterior.predict, self.belief, self._row, _NONE_MISSING, record)
        row = self._row, _NONE_MISSING, self._target, _EQUAL_WEIGHTS, record
        given = self.belief, self._kernels, self._params, *row
        self._learn = entry_point(learn, *given)
        single: tuple[Any, ...] = (*given, self._tally)
        self._learn_single = entry_point(learn, *single, template=learn_single, nogil=False)
        self._given = single if self._dtype == self.example.dtype else (None, *single[1:])

    def predict_one(self, features: ArrayLike) -> Prediction:
        """What is known of the target of one example."""
        return Prediction(self.likelihood, self._latents(self._one_row(features), _NONE_MISSING), single=True)

    def predict_many(self, features: ArrayLike, missing: Mask | None = None) -> Prediction:
        """What is known of the target of each row."""
        rows, mask = self._rows(features, missing)
        any_large(rows)
        return Prediction(self.likelihood, self._latents(rows, mask))

    def predict_interval(self, features: ArrayLike, coverage: float = 0.9) -> Matrix:
        """Central intervals of the targets: one row (low, high) per example."""
        intervals: Matrix = self.predict_many(features).interval(coverage)
        return intervals

    def learn_one(self, features: ArrayLike, y: float, weight: float = 1.0) -> Prediction:
        """Learn from one example; returns the prediction made before the target was used."""
        if weight != 1.0:
            row, weights = self._one_row(features), checked_weights([weight], 1)
            self._target[0] = y
            self._check_target(self._target.item())
            return self._absorb(row, _NONE_MISSING, self._target, weights, single=True)
        if type(features) is not _ARRAY or features.shape != self._shape:
            features = self._shaped(features)
        self._line[...] = features
        self._target[0] = y
        try:
            legal = self._accepts(y)
        except TypeError:  # a number in some other guise, such as an array of one
            legal = False
        if not legal:
            self._check_target(self._target.item())
        if not self.learn_example():
            self._check_finite(self._row)
            raise ImproperBelief(NOT_FINITE)
        return Prediction(self.likelihood, self._one_record.tolist(), True)

    def learn_many(
        self,
        features: ArrayLike,
        targets: ArrayLike,
        weights: ArrayLike | None = None,
        missing: Mask | None = None,
    ) -> Prediction:
        """Learn from the rows in order; returns the predictions made before each target was used.

        ``missing`` marks features that are unknown: they count as drawn from N(0, 1), independent of all others.
        """
        rows, mask = self._rows(features, missing)
        wanted = np.ascontiguousarray(targets, dtype=np.float64)
        if wanted.shape != (len(rows),):
            raise ShapeMismatch(f"`targets` must have one value per row, {len(rows)}; got shape {wanted.shape}.")
        self.likelihood.check_targets(wanted)
        counts = _EQUAL_WEIGHTS if weights is None else checked_weights(weights, len(rows))
        before = self._way_back(rows)
        return self._absorb(rows, mask, np.require(wanted, requirements=["C", "W"]), counts, before=before)

    def learn_row(self, row: Vector, mask: Mask, y: float) -> None:
        """Learn from finite features, with a mask of one row or none, and a legal target: none of them is checked."""
        self._line[...] = row
        self._target[0] = y
        if mask.size:
            self._row[0] = self._line
            self._absorb(self._row, mask, self._target, _EQUAL_WEIGHTS)
        elif not self.learn_example():
            raise ImproperBelief(NOT_FINITE)

    def learn_example(self) -> bool:
        """Learn what lies in ``example``: features, then a legal target; False, untouched, if they are not finite.

        It is the short way for those who write examples there themselves: nothing is checked, nothing returned.
        """
        given = self._given
        if given[0] is not self.belief:  # it was replaced; or the row is narrower than the example, see `_prepare`
            given = self.belief, *given[1:]
            self._row[0] = self._line
        outcome = self._learn_single(*given)
        if outcome == LEARNT:
            return True
        if outcome == REFUSED:
            return False
        self.log_evidence += self._evidence()
        return True

    def _evidence(self) -> float:
        """What the one target was given, for rules that do not compute it (NaN in the record)."""
        return self.likelihood.log_weight(self._target, latent_of(self._one_record)).item()

    def extend(self, n_features: int) -> None:
        """Make room for more features, of which nothing is known but the prior."""
        if n_features < self.n_features:
            raise ShapeMismatch(f"`n_features` can only grow from {self.n_features}; got {n_features}.")
        known, self.n_features = self.belief, n_features
        self.belief = self._prior()
        for array, old in zip(self.belief, known, strict=True):
            array[tuple(slice(size) for size in old.shape)] = old
        self._prepare()

    def retell(self, scale: Vector, shift: Vector) -> None:
        """Go on with features that are told otherwise: see `bayou.contracts.Posterior.retell`."""
        for belief in self.beliefs():
            self.posterior.retell(belief, scale, shift)

    def recast(self, posterior: Posterior[Any], growth: Growth) -> Learner:
        """A learner of functions over a wider box, that knows what this one does: see `Posterior.recast`."""
        wider = Learner(self.likelihood, posterior, self.rule, len(growth.back))
        for mine, other in zip(self.beliefs(), wider.beliefs(), strict=True):
            for array, value in zip(other, posterior.recast(mine, self.posterior, growth), strict=True):
                array[...] = value
        wider.n_examples, wider.log_evidence = self.n_examples, self.log_evidence
        return wider

    def forget(self, discount: float = 1.0, diffusion: float = 0.0) -> None:
        """Let go of the past: see `bayou.contracts.Posterior.forget`."""
        for belief in self.beliefs():
            self.posterior.forget(belief, discount, diffusion)

    def copy(self) -> Learner:
        """A learner that knows the same and learns on its own."""
        return copy.deepcopy(self)

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
        done = self._learn(self.belief, self._kernels, self._params, rows, mask, targets, weights, record)
        if done < len(rows):
            for array, saved in zip(self.belief, before or self.belief, strict=True):
                array[...] = saved
            any_large(rows)
            raise ImproperBelief(
                f"row {done} has a latent that is not finite: its features are too large for what is believed of the "
                "weights. No row was learnt."
            )
        return self._count(record, targets, single)

    def _count(self, record: Matrix, targets: Vector, single: bool = False) -> Prediction:
        """So many examples and so much evidence more; what the record tells of them."""
        prediction = Prediction(self.likelihood, record, single)
        values = record[0, :, -1] if self._vector else record[:, -1]
        if values.size and values[0] != values[0]:  # NaN: this rule does not compute the evidence
            values = self.likelihood.log_weight(targets, prediction.latent)
        self.log_evidence += float(values[0]) if values.size == 1 else float(values.sum())
        self.n_examples += len(targets)
        return prediction

    def _latents(self, rows: Array, mask: Mask) -> Latent:
        record = self._record(len(rows))
        if self._vector:
            for belief, part in zip(self.beliefs(), record, strict=True):
                self._predict(belief, rows, mask, part)
        else:
            self._predict(self.belief, rows, mask, record)
        return latent_of(record)

    def _record(self, n: int) -> Matrix:
        shape = (n, self.posterior.n_records)
        return np.empty((self.likelihood.n_latents, *shape) if self._vector else shape)

    def beliefs(self) -> list[Any]:
        """The belief about the weights of each latent, as views: one, unless the likelihood has several latents."""
        if not self._vector:
            return [self.belief]
        kind = type(self.belief)
        return [kind(*(array[c] for array in self.belief)) for c in range(self.likelihood.n_latents)]

    def _one_row(self, features: ArrayLike) -> Array:
        self._row[0] = self._shaped(features)
        self._check_finite(self._row)
        return self._row

    def _shaped(self, features: ArrayLike) -> Array:
        given: Array = features if isinstance(features, np.ndarray) else np.asarray(features, dtype=np.float64)
        if given.shape != self._shape:
            raise ShapeMismatch(f"`features` must be {self.n_features} numbers; got shape {given.shape}.")
        return given

    @staticmethod
    def _check_finite(row: Array) -> None:
        if count_beyond(row, LARGE) and not np.isfinite(row).all():
            raise InvalidFeatures(f"`features` must be finite; got {row[~np.isfinite(row)][0]}.")

    def _check_target(self, target: float) -> None:
        """Raise unless the likelihood can produce it."""
        if not self.likelihood.accepts_one(target):
            self.likelihood.check_targets(np.array([target]))
        if len(self._familiar) < MOST_FAMILIAR:
            self._familiar.add(target)

    def _rows(self, features: ArrayLike, missing: Mask | None) -> tuple[Array, Mask]:
        return rows_and_mask(features, missing, self.n_features, self._dtype)

    def _way_back(self, rows: Array) -> list[Array] | None:
        """A copy of the belief, if a row may be found unfit only when those before it have been learnt.

        A pass stops at a row that is not finite. So where a copy costs less than looking at all rows beforehand, a copy
        is all it takes; else only features so large that a latent may overflow need one.
        """
        if sum(array.nbytes for array in self.belief) > rows.nbytes and not any_large(rows):
            return None
        return [array.copy() for array in self.belief]

    def to_state(self) -> State:
        """All that this learner is, as data."""
        config = {
            "likelihood": self.likelihood,
            "posterior": self.posterior,
            "rule": self.rule,
            "n_features": self.n_features,
            "n_examples": self.n_examples,
            "log_evidence": self.log_evidence,
        }
        return State(config, {f"belief.{name}": array for name, array in self.belief._asdict().items()})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The learner that this data describes; it continues to the last bit."""
        config = state.config
        learner = cls._like(config)
        for name, array in learner.belief._asdict().items():
            saved = state.arrays[f"belief.{name}"]
            if saved.shape != array.shape or saved.dtype != array.dtype:
                raise ModelFileError(
                    f"`belief.{name}` must be {array.dtype} of shape {array.shape}; got {saved.dtype} of {saved.shape}."
                )
            array[...] = saved
        for belief in learner.beliefs():
            learner.posterior.check(belief)
        learner.n_examples, learner.log_evidence = int(config["n_examples"]), float(config["log_evidence"])
        return learner

    @classmethod
    def _like(cls, config: dict[str, Any]) -> Self:
        """A new learner of these parts."""
        return cls(config["likelihood"], config["posterior"], config["rule"], config["n_features"])

    def __getstate__(self) -> dict[str, Any]:
        kept = ("likelihood", "posterior", "rule", "n_features", "belief", "_tally")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.belief = type(self.belief)(*(np.require(array, requirements=["C", "W"]) for array in self.belief))
        self._tally = np.require(self._tally, requirements=["C", "W"])
        self._prepare()

    def __repr__(self) -> str:
        return f"Learner({self.likelihood!r}, {self.posterior!r}, {self.rule!r}, n_features={self.n_features})"


def rows_and_mask(features: ArrayLike, missing: Mask | None, n_features: int, dtype: Any) -> tuple[Array, Mask]:
    """Rows and mask as the kernels take them; their values are not looked at."""
    rows = np.require(features, dtype=dtype, requirements=["C", "W"])
    if rows.ndim != 2 or rows.shape[1] != n_features:
        raise ShapeMismatch(f"`features` must have {n_features} columns; got shape {rows.shape}.")
    if missing is None:
        return rows, _NONE_MISSING
    mask = np.require(missing, dtype=np.bool_, requirements=["C", "W"])
    if mask.shape != rows.shape:
        raise ShapeMismatch(f"`missing` must have the shape of `features`, {rows.shape}; got {mask.shape}.")
    return rows, mask
