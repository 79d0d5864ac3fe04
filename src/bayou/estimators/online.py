"""What the estimators share: from raw rows or dicts to features (`EncodedInputs`), and from there to a learner."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from bayou.bank import Bank
from bayou.contracts import Likelihood, Posterior, Rule, SparseRows, State, Vector
from bayou.encoders import Hashing
from bayou.encoders.standardizer import CHANGE
from bayou.errors import InvalidSpec, ModelFileError
from bayou.estimators.doublings import EVERY, is_doubling, next_look, stops
from bayou.estimators.encoded_inputs import NO_WEIGHTS
from bayou.estimators.late_targets import LateTargets
from bayou.estimators.sparse_inputs import Table, all_of
from bayou.estimators.standard_members import N_WAVES, Budget
from bayou.estimators.summary import Summary
from bayou.learner import Learner
from bayou.mixed_prediction import MixedPrediction
from bayou.numerics.factor import factors_of_covariance
from bayou.numerics.sparse_rows import in_full, in_order
from bayou.numerics.table_columns import taken
from bayou.posteriors import FullGaussian
from bayou.posteriors.full_gaussian import FullBelief
from bayou.prediction import Prediction
from bayou.sparse_bank import SparseBank
from bayou.sparse_class_bank import bank_from_state
from bayou.sparse_learner import SparseLearner

FULL_ROWS = 4096  # sparse rows that are written out in full at once
MOST_TOLD = 50  # weights that are told of sparse rows
MOST_WAVES_BEGUN = 64.0  # examples until which waves begin anew when the scale of the inputs turns out to be another
SEED_OF_ORDER = 0
FAR = 0.5  # by this much of a deviation a column must change for its frame to follow in between
Said = Prediction | MixedPrediction


class OnlineEstimator(LateTargets):
    """A learner behind scikit-learn's interface, and behind River's for dicts."""

    _learner_class: type[Learner] = Learner
    _has_short_way = True
    _retells = True  # what was learnt is told exactly in another frame, at any time

    def __init__(
        self,
        likelihood: Likelihood | None = None,
        posterior: Posterior[Any] | str | None = None,
        rule: Rule | None = None,
        fit_intercept: bool = True,
        standardize: bool = True,
        encoder: Hashing | None = None,
        budget: Budget | None = None,
        n_waves: int = N_WAVES,
    ) -> None:
        self.likelihood = likelihood
        self.posterior = posterior
        self.rule = rule
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.encoder = encoder
        self.budget = budget
        self.n_waves = n_waves

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

    def _check_begun(self) -> None:
        from sklearn.exceptions import NotFittedError  # noqa: PLC0415  # only needed to say what is wrong

        if not self._begun():
            raise NotFittedError(
                f"This {type(self).__name__} has learnt nothing yet; call `fit`, `partial_fit` or `learn_one`."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return self._begun()

    def _learn_part(self, rows: Any, targets: Vector, weights: Vector) -> Any:
        """Learn rows during which the frame of the features stays."""
        if self._inputs is not None:
            return self._inputs.learn(self._sparse_learner, rows, targets, weights, self._asks_of_members)
        if isinstance(rows, SparseRows):
            parts = [slice(n, n + FULL_ROWS) for n in range(0, len(rows), FULL_ROWS)]
            learnt = [self._learn_part(in_full(rows[p]), targets[p], weights[p]) for p in parts]
            return self.joined(learnt)
        features, missing = self._encode(rows, weights, learn=True)
        return self._learner_.learn_many(features, targets, weights if weights.size else None, missing)

    @property
    def _asks_of_members(self) -> bool:
        """Whether anybody asks what each member of a bank said of rows, and not only what all gave to the targets."""
        return True

    def _as_drawn(self, rows: Any, *others: Any) -> tuple[Any, ...]:
        """Rows of a batch, and what belongs to them, in an order drawn once for all.

        A bank reads meaning into the order: classes one after another would be a stream that has changed. The rows of
        a batch are taken to be in any order. Learners that know of no change learn them as they come.
        """
        if not self._reads_order:
            return rows, *others
        order = np.random.default_rng(SEED_OF_ORDER).permutation(len(rows))
        if isinstance(rows, Table):
            drawn: Any = Table(taken(rows.columns, order))
        else:
            drawn = in_order(rows, order) if isinstance(rows, SparseRows) else rows[order]
        return drawn, *(other[order] if len(other) else other for other in others)

    @property
    def _reads_order(self) -> bool:
        """Whether what is learnt depends on the order of rows by more than what one pass makes of it."""
        return self._bank is not None

    def joined(self, parts: list[Any]) -> Any:
        """What was said of parts of the rows, as of one."""
        return all_of(self._learner_.likelihood, parts)

    def _believed(self) -> tuple[Posterior[Any], Any]:
        """What is believed of the weights of the inputs; by the members of a bank, on average, as one Gaussian.

        Where there are several latents, one for each, stacked.
        """
        bank, learner = self._bank, self._learner_
        if isinstance(learner, SparseBank):
            return learner.posterior, learner.weights_told()
        if bank is None:
            return learner.posterior, learner.belief
        told = [bank.weights_of_inputs(self._member_scales(), latent) for latent in range(bank.n_latents)]
        beliefs = [FullBelief(mean, *factors_of_covariance(covariance)) for mean, covariance in told]
        if len(beliefs) == 1:
            return FullGaussian(), beliefs[0]
        return FullGaussian(), FullBelief(*(np.stack(arrays) for arrays in zip(*beliefs, strict=True)))

    def _member_scales(self) -> Vector | None:
        """What the latent of each member of a bank must be multiplied by to be that of the first."""
        return None

    def _learn_encoded(self, mask: Any, y: float) -> None:
        """Learn what `_encode_one` has left: in the buffer, or as a sparse row."""
        if self._inputs is None:
            self._learner_.learn_row(self._line, mask, y)
        else:
            columns, values = mask
            self._sparse_learner.learn_entries(columns, values, y)

    def _parts(self, rows: Any, weights: Vector) -> Iterator[slice]:
        """The rows in parts; between them the frame of the features may change."""
        start = 0
        every = EVERY if self._inputs is None else math.inf  # sparse rows look at doublings alone
        for stop in stops(self._seen, weights, len(rows), every):
            part = slice(start, stop)
            yield part
            self._count(float(weights[part].sum()) if weights.size else float(stop - start))
            start = stop

    def _count(self, weight: float) -> None:
        """So much more was learnt; where that makes twice as much, look again at how features are told.

        In between, look whether some are not told far too large or too small by now.
        """
        before = self._seen
        self._seen += weight
        if self._seen >= self._next:
            self._next = next_look(self._seen)
            if is_doubling(self._seen, before):
                self._settle()
            elif self._retells and self._inputs is None and self._standardizes:
                self._retake(FAR)

    def _settle(self) -> None:
        """Let the frame follow what was seen; what was learnt in the old one is told in the new."""
        if self._inputs is not None:
            self._inputs.settle(self._sparse_learner)
            return
        if self._standardizes:
            self._retake(CHANGE)

    def _retake(self, change_of: float) -> None:
        """Let the frame follow if some column has changed by this fraction of its deviation."""
        change = self._standardizer.retake(self._frame, change_of)
        if change is not None:
            ratio, shift = change
            first = np.ones(self._first)
            told = np.concatenate([first, ratio]), np.concatenate([0.0 * first, shift / self._intercept])
            if self._bank is not None and self._seen <= MOST_WAVES_BEGUN:
                self._bank.retell(*told, bent=False)
                self._bank.begin_waves()
            else:
                self._learner_.retell(*told)

    def _predictions(self, X: ArrayLike) -> Any:
        self._check_begun()
        return self._predict_rows(self._rows(X, reset=False))

    def _predict_rows(self, rows: Any) -> Any:
        if self._inputs is not None:
            return self._inputs.predict(self._sparse_learner, rows)
        if isinstance(rows, SparseRows):
            parts = [rows[n : n + FULL_ROWS] for n in range(0, len(rows), FULL_ROWS)]
            return self.joined([self._predict_rows(in_full(part)) for part in parts])
        return self._learner_.predict_many(*self._encode(rows, NO_WEIGHTS, learn=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = self._takes_sparse and self.encoder is None
        return tags

    def _predict_dict(self, x: Mapping[Hashable, Any]) -> Any:
        return self._predict_encoded(self._encode_one(x, learn=False))

    def _predict_encoded(self, mask: Any) -> Any:
        """What is known of what `_encode_one` has left."""
        if self._inputs is not None:
            return self._sparse_learner.predict_entries(*mask)
        return self._learner_.predict_many(self._features, mask if mask.size else None)

    def _slopes(self, weights: Any) -> Any:
        """What there is per weight, without that of the intercept."""
        return weights[self._first :] if self._inputs is None else weights[: len(weights) - self._first]

    @property
    def _intercept_place(self) -> int:
        return 0 if self._inputs is None else -1

    def _raw_intercept(self, mean: Any) -> float:
        """The latent of an example whose raw inputs are all zero; of standardised numbers that are hashed, average."""
        if self._inputs is not None:
            return float(mean[-1]) * self._intercept if self._first else 0.0
        direction = np.full(self._features.shape[1], self._intercept)
        direction[self._first :] = -self._frame.centre / self._weight_scale()
        return float(mean @ direction)

    def inspect(self, n: int = 20, coverage: float = 0.9) -> Summary:
        """The weights that are furthest from zero in deviations, by name as far as names are known."""
        return self.summary(coverage).most_certain(n)

    def summary(self, coverage: float = 0.9) -> Summary:
        """Each weight with its deviation, interval and the probability of its sign."""
        raise InvalidSpec(f"{type(self).__name__} has no weights to tell of")

    def _weights_told(self, belief: Any, scale: Any, coverage: float, prefix: str = "") -> Summary:
        """The weights of one latent, each times its scale; of sparse rows the surest alone."""
        posterior, first = self._believed()[0], self._first
        if self._inputs is None:
            return Summary.of(
                [prefix + name for name in self._input_names()], posterior, belief, first, scale, coverage
            )
        mean, variance = self._slopes(belief.mean), self._slopes(belief.variance)
        distance = np.abs(mean) / np.sqrt(variance)
        count = min(MOST_TOLD, int(np.count_nonzero(distance)))
        places = np.sort(np.argpartition(distance, -count)[-count:]) if count else np.zeros(0, dtype=np.int64)
        some = posterior.prior(len(places))
        for array, own in zip(some, belief, strict=True):
            array[...] = own[places]
        names = [prefix + name for name in self._inputs.names_of(places)]
        return Summary.of(names, posterior, some, 0, np.full(len(places), scale), coverage)

    def _note(self) -> str:
        """What was chosen and why, and what there is to say of the inputs."""
        why = f" ({self._choice.why})" if self._choice.why else ""
        if self._bank is not None:
            return f"bank{why}\n{self._bank.found()}"
        lines = [f"posterior: {type(self._learner_.posterior).__name__}{why}"]
        if isinstance(self._learner_, SparseBank):
            lines = [f"bank{why}", self._learner_.found()]
        if self._inputs is not None:
            lines += [f"the {MOST_TOLD} weights whose sign is surest, at most", self._inputs.note()]
        return "\n".join(filter(None, lines))

    def to_state(self) -> State:
        """All that this estimator is, as data."""
        config: dict[str, Any] = {"params": self.get_params(deep=False), "begun": self._begun()}
        arrays: dict[str, Any] = {}
        if self._begun():
            learner = self._learner_.to_state()
            config["learner"] = learner.config
            config["banked"] = self._bank is not None
            config["names"] = list(self._names)
            config["feature_names"] = [str(name) for name in getattr(self, "feature_names_in_", [])]
            config["seen"] = self._seen
            config["n_features_in"] = getattr(self, "n_features_in_", None)
            arrays = {f"learner.{name}": array for name, array in learner.arrays.items()}
            arrays |= {f"frame.{name}": array for name, array in self._frame._asdict().items()}
            if self._given_sparse:
                config["given_sparse"] = True
        if self._pending is not None and self._pending.issued:  # an id is given once, also where none waits
            config["pending"], said = self._pending.to_config()
            arrays |= {f"pending.{name}": array for name, array in said.items()}
        if self._begun() and self._inputs is not None:
            inputs = self._inputs.to_state()
            config["inputs"], config["entries"] = inputs.config, self._entries
            arrays |= {f"inputs.{name}": array for name, array in inputs.arrays.items()}
        return State(config, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The estimator that this data describes; it continues to the last bit."""
        config, arrays = state
        model = cls(**config["params"])
        if config["begun"]:
            sparse = config.get("inputs")
            n_columns, names = arrays["frame.mean"].size, [_name(name) for name in config["names"] if sparse is None]
            _require("names", len(names), 0 if not names else n_columns)
            model._given_sparse = bool(config.get("given_sparse", False))
            if sparse is not None:
                n_columns = sparse.get("n_columns", 0)
                model._entries = _entries(config)
            model._begin(n_columns, names)
            if model._inputs is not None and sparse is not None:
                model._inputs.load(State(sparse, below("inputs.", arrays)))
            for name, array in model._frame._asdict().items():
                _require(f"frame.{name}", arrays[f"frame.{name}"].shape, array.shape)
                array[...] = arrays[f"frame.{name}"]
            banked = bool(config.get("banked", False))
            learner_class: Any = SparseLearner if sparse is not None else Bank if banked else cls._learner_class
            from_state = learner_class.from_state
            if sparse is not None and "members" in config["learner"]:
                from_state = bank_from_state
            elif not banked:  # of an earlier version, or of more than can be afforded
                model._choice = model._choice._replace(members=())
            model._learner_ = from_state(State(config["learner"], below("learner.", arrays)))
            if isinstance(model._learner_, (SparseLearner, SparseBank)):  # as it was chosen by rows that are gone
                model._choice = model._choice._replace(posterior=model._learner_.posterior)
                model._intercept = model._learner_.constant
            model._seen = float(config["seen"])
            model._next = next_look(model._seen)
            _require("learner.n_features", model._learner_.n_features, model._width(state))
            if "pending" in config:
                kinds = [member.likelihood for member in model._bank.members] if model._bank is not None else []
                model.forecasts.load(config["pending"], below("pending.", arrays), kinds)
            if config["n_features_in"] is not None:
                model.n_features_in_ = config["n_features_in"]
            if config["feature_names"]:
                model.feature_names_in_ = np.asarray(config["feature_names"], dtype=object)
        elif "pending" in config:
            model.forecasts.load(config["pending"], below("pending.", arrays), [])
        return model

    def _width(self, state: State) -> int:
        """How many features the learner of this state must have."""
        return self._first + (self._inputs.n_columns if self._inputs else int(self._frame.mean.size))


def below(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _entries(config: Mapping[str, Any]) -> float:
    """How many entries a row has, by which members are chosen; files of before do not say."""
    entries = config.get("entries", 0.0)
    if isinstance(entries, bool) or not isinstance(entries, int | float) or not 0.0 <= entries < math.inf:
        raise ModelFileError(f"`entries` must be a number, at least 0 and finite; got {reprlib.repr(entries)}.")
    return float(entries)


def _require(name: str, came: Any, required: Any) -> None:
    if came != required:
        raise ModelFileError(f"`{name}` must have size {required} to fit the other parts; got {came}.")


def _name(name: Any) -> Hashable:
    return tuple(name) if isinstance(name, list) else name
