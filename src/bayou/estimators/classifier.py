"""Classification: two classes by a scalar latent, more by one latent per class; classes may appear at any time."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from bayou.calibration import Foreseen
from bayou.contracts import Likelihood, Mask, Matrix, Posterior, State, Vector
from bayou.errors import InvalidSpec, InvalidTarget, ShapeMismatch
from bayou.estimators import dicts
from bayou.estimators.calibrated import CalibratedEstimator
from bayou.estimators.choice import Choice
from bayou.estimators.sparse_inputs import HashedInputs
from bayou.estimators.standard_members import (
    affordable,
    affordable_sparse,
    of_classes,
    of_sparse_classes,
    of_sparse_several,
    of_two_classes,
    usual_budget,
)
from bayou.estimators.summary import Summary
from bayou.learner import Learner
from bayou.likelihoods import Logistic, Probit, Softmax
from bayou.members import Member
from bayou.mixed_classes import MixedClasses
from bayou.mixed_prediction import MixedPrediction
from bayou.posteriors import FullGaussian
from bayou.probability_intervals import probability_interval
from bayou.sparse_bank import SparseBank
from bayou.sparse_class_bank import SparseClassBank

# The logistic function is close to the normal one of its argument over this.
LOGISTIC_OVER_PROBIT = 1.702
FEW_CLASSES = 16


class OnlineClassifier(ClassifierMixin, CalibratedEstimator):
    """Bayesian linear classification, one pass, with calibrated probabilities.

    ``likelihood`` is that of two classes, `Logistic()` by default, and `Probit()` where rows are sparse; three or more
    use `Softmax`. A class that was never seen may appear at any time: what was learnt of the others is kept. With
    ``encoder=Hashing()`` inputs are dicts or tables of text, numbers and anything between.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.utils import shuffle
    >>> from bayou import OnlineClassifier
    >>> X, y = shuffle(*load_iris(return_X_y=True), random_state=0)
    >>> model = OnlineClassifier().fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    >>> model = OnlineClassifier()
    >>> for x, label in [({"size": 1.0}, "small"), ({"size": 9.0}, "large"), ({"size": 2.0}, "small")]:
    ...     model.learn_one(x, label)
    >>> model.predict_one({"size": 10.0})
    'large'
    """

    _intercept = 3.0
    _sparse_variance, _row_variance, _intercept_wider = 0.2, 1.5, 5.0

    def _default_posterior(self) -> Posterior[Any]:
        return FullGaussian()

    # --- learning

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything and learn the rows in one pass.

        A bank learns the rows of a batch in an order of its own, as it reads meaning into that of a stream: for rows
        in the order in which they came, use `partial_fit` or `learn_many`.
        """
        rows = self._rows(X, reset=True)
        labels, weights = self._labels(y, len(rows)), self._weights(sample_weight, rows)
        self._start(self._columns_of(rows), np.unique(labels).tolist())
        rows, labels, weights = self._as_drawn(rows, labels, weights)
        self._learn_rows(rows, labels, weights, tell=False)
        return self

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn more rows, in order, from where the last call ended.

        ``classes`` may name all classes beforehand; without it they are admitted as they appear.
        """
        self._learn_more(X, y, classes, sample_weight, tell=False)
        return self

    def learn_many(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Matrix:
        """Learn more rows; returns the probabilities given to each class before each target was used.

        Columns are those of ``classes_`` afterwards; a class has probability 0 before it was known.
        """
        return self._learn_more(X, y, classes, sample_weight)

    def _learn_more(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None, sample_weight: ArrayLike | None, tell: bool = True
    ) -> Matrix:
        """Learn more rows; probabilities cost more than learning, and are told if asked for."""
        rows = self._rows(X, reset=not self._begun())
        labels, weights = self._labels(y, len(rows)), self._weights(sample_weight, rows)
        named = None if classes is None else np.unique(np.asarray(classes)).tolist()
        if named is not None:
            self._check_classes(labels, named)
        if self._begun():
            for label in [*self._unknown(labels), *(named or [])]:
                self._check_label(label)
        if not self._begun():
            self._start(self._columns_of(rows), named or [])
        elif named is not None:
            for label in named:
                if label not in self._codes:
                    self._admit(label)
        return self._learn_rows(rows, labels, weights, tell)

    def learn_one(self, x: Mapping[Hashable, Any], y: Any) -> None:
        """Learn from a dict of named values, any of which may be new, absent or None; the class may be new too."""
        short_way = self._short_way
        if short_way is not None and short_way(x, y):
            return
        known = getattr(self, "_codes", None)  # None before anything was learnt
        code = None if known is None else known.get(y)
        if code is None:
            label = _label(y)
            if known is None:
                self._check_dict(x)
                self._start(len(x), [], dicts.in_order(x))
            code = self._codes.get(label)
            if code is None:
                self._check_label(label)
        mask = self._encode_one(x, learn=True)
        if code is None:
            code = self._admit(label)
        self._learn_encoded(mask, self._target(code))
        self._count(1.0)
        if self._has_short_way and self._short_way is None:
            targets = {label: self._target(code) for label, code in self._codes.items()}
            if isinstance(self._inputs, HashedInputs) and self._calibration is None:
                self._short_way = self._inputs.text_way(self._sparse_learner, targets, self._count)
            elif self._inputs is None and not self._standardizes and not self._reads_order:
                intercept = [self._intercept] * self._first
                self._short_way = dicts.short_way(self._learner_, self._order, intercept, targets)

    def _target(self, code: int) -> float:
        """What the learner is told of a class."""
        return float(code) if self._is_multiclass else 2.0 * code - 1.0

    def _labels(self, y: ArrayLike, n: int) -> NDArray[Any]:
        if y is None:
            raise InvalidTarget(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        labels: NDArray[Any] = column_or_1d(y, warn=True)
        if not self._begun() or self._unknown(labels):  # those that are known were looked at before
            assert_all_finite(labels, input_name="y")
            check_classification_targets(labels)
        if len(labels) != n:
            raise ShapeMismatch(f"`y` must have one label per row, {n}; got {len(labels)}.")
        return labels

    @staticmethod
    def _check_classes(labels: NDArray[Any], named: Sequence[Any]) -> None:
        unknown = sorted(set(np.unique(labels[are_others(labels, named)]).tolist()) - set(named), key=str)
        if unknown:
            raise InvalidTarget(f"`y` must hold labels of `classes`, {list(named)}; got {unknown[0]!r}.")

    def _start(self, n_columns: int, labels: Sequence[Any], names: list[Hashable] | None = None) -> None:
        self._begin(n_columns, names)
        self._codes: dict[Any, int] = {label: code for code, label in enumerate(labels)}
        self._is_multiclass = len(labels) > 2
        if self._is_multiclass:
            self._choice = self._choice_of_classes(len(labels))
        likelihood = Softmax(len(labels)) if self._is_multiclass else self._binary_likelihood()
        self._learner_ = self._new_learner(likelihood)
        self._calibration = None if self._is_multiclass else self._new_calibration()
        self._order_classes()

    def _choice_of_classes(self, count: int) -> Choice:
        """What was chosen for two classes, for more: a bank where a latent per class can be afforded."""
        if not self._choice.members:
            return self._choice
        if self._inputs is not None:
            return self._choice_of_sparse_classes(count)
        n_columns, standard = self._frame.mean.size, of_classes(count, self.n_waves)
        budget = usual_budget(standard, self._first + n_columns) if self.budget is None else self.budget
        members = affordable(standard, self._first + n_columns, budget)
        size = f"up to {budget.microseconds:.4g} us a row: {count} classes, {n_columns} columns"
        if members:
            return self._choice._replace(members=members, why=f"{len(members)} members, weighed by evidence; {size}")
        return self._choice._replace(members=(), why=f"every correlation between weights; no bank takes {size}")

    def _choice_of_sparse_classes(self, count: int) -> Choice:
        """The same of sparse rows."""
        assert self._inputs is not None
        assert self.budget is not None  # without one, there is no bank of sparse rows
        n_columns = self._inputs.n_columns
        standard = of_sparse_several(count, float(self._choice.posterior.prior_variance))  # type: ignore[attr-defined]  # it is sparse
        members = affordable_sparse(standard, self._first + n_columns, self._entries, self.budget)
        size = f"each weight by itself: {count} classes, {n_columns:,} columns"
        why = f"{len(members)} members; {size}" if members else f"{size}, which no bank takes within the budget"
        return self._choice._replace(members=members, why=why)

    def _binary_likelihood(self) -> Likelihood:
        """By default logistic; of sparse rows probit, which takes half the time and, of hashed rows, is as good."""
        if self.likelihood is not None:
            return self.likelihood
        return Logistic() if self._inputs is None else Probit()

    def _learn_rows(self, rows: Any, labels: NDArray[Any], weights: Vector, tell: bool) -> Matrix:
        parts: list[tuple[list[Any], Matrix]] = []
        start = 0
        for row in [*self._first_appearances(labels), len(rows)]:
            if row > start:  # rows of known classes, up to the next that is new
                part = slice(start, row)
                parts.append((list(self._codes), self._learn_known(rows[part], labels[part], weights[part], tell)))
                start = row
            if row < len(rows):
                self._admit(_label(labels[row]))
        if not tell:
            return np.zeros((0, len(self._codes)))
        classes = self.classes_.tolist()
        if len(parts) == 1 and parts[0][0] == classes:
            return parts[0][1]
        given = np.zeros((len(rows), len(self._codes)))
        position = {label: column for column, label in enumerate(classes)}
        start = 0
        for known, probabilities in parts:
            given[start : start + len(probabilities), [position[label] for label in known]] = probabilities
            start += len(probabilities)
        return given

    def _learn_known(self, rows: Any, labels: NDArray[Any], weights: Vector, tell: bool) -> Matrix:
        """Learn rows whose classes are all known; probabilities in the order in which classes were admitted."""
        codes = self._codes_of(labels)
        targets = codes if self._is_multiclass else 2.0 * codes - 1.0
        given = [np.zeros((0, len(self._codes)))]
        for part in self._parts(rows, weights):
            prediction = self._learn_part(rows[part], targets[part], weights[part])
            if tell or self._calibration is not None:
                given.append(self._before(prediction, targets[part], weights[part]))
        return given[1] if len(given) == 2 else np.concatenate(given)

    def _before(self, prediction: Any, targets: Vector, weights: Vector) -> Matrix:
        """Probabilities that were given before targets were used."""
        told = isinstance(prediction, MixedPrediction) and prediction.evidence is not None
        if len(self._codes) < 2 or (self._calibration is None and not told):
            return self._probabilities(prediction)
        second = self._learn_calibration(self._evidence(prediction, targets), targets, weights)
        return np.column_stack([1.0 - second, second])

    def _late_target(self, y: Any) -> float | None:
        label = _label(y)
        code = getattr(self, "_codes", {}).get(label)
        if code is None and self._begun():
            self._check_label(label)
        return None if code is None else self._target(code)

    def _told_of(self, prediction: Any, calibrated: Foreseen | None = None) -> dict[Any, float]:
        if calibrated is not None:
            first, second = self._codes
            return {first: 1.0 - calibrated.said, second: calibrated.said}
        values = self._probabilities(prediction)[0]
        return {label: float(values[code]) for label, code in self._codes.items()}

    # --- labels

    def _codes_of(self, labels: NDArray[Any]) -> Vector:
        """The number of each label; -1 if it is not known."""
        codes = np.full(len(labels), -1.0)
        if len(self._codes) <= FEW_CLASSES:
            for label, code in self._codes.items():
                codes += (labels == label) * (code + 1.0)
        else:
            values, inverse = np.unique(labels, return_inverse=True)
            codes = np.array([float(self._codes.get(label, -1)) for label in values.tolist()])[inverse]
        return codes

    def _unknown(self, labels: NDArray[Any]) -> list[Any]:
        """The labels that are not known yet, each once."""
        new = are_others(labels, self._codes)
        found: list[Any] = np.unique(labels[new]).tolist() if new.any() else []
        return found

    def _first_appearances(self, labels: NDArray[Any]) -> list[int]:
        """Rows at which labels appear that are not known yet, in order."""
        places = np.flatnonzero(are_others(labels, self._codes))
        _, first = np.unique(labels[places], return_index=True)
        return sorted(places[first].tolist())

    # --- classes

    def _admit(self, label: Any) -> int:
        """A class that was never seen; what is known of the others is kept."""
        count = len(self._codes)
        if count >= 2:
            evidence = self.log_evidence_
            self._learner_ = self._with_one_class_more()
            self._learner_.log_evidence, self._calibration = evidence, None
            self._is_multiclass = True
        self._codes[label] = count
        self._short_way = None
        self._order_classes()
        return count

    def _check_label(self, label: Any) -> None:
        """Raise unless a new label can stand beside the known ones, which are kept sorted."""
        for known in self._codes:
            if type(label) is not type(known):
                raise InvalidTarget(f"labels must be of one type; got {label!r} after {known!r}.")

    def _with_one_class_more(self) -> Any:
        """One latent per class; the new one has the prior, but for an intercept that tells how rare it is so far."""
        known, count = self._learner_, len(self._codes)
        self._choice = self._choice_of_classes(count + 1)
        if self._pending is not None:
            self._pending.outdate()
        if self._bank is not None and self._choice.members:
            return self._bank.with_one_class_more(self._choice.members, self._intercept if self._first else 0.0)
        if isinstance(known, SparseBank) and self._choice.members:
            bank = self._new_bank()
            assert isinstance(bank, SparseClassBank)
            bank.carry(known, math.log(1.0 + known.n_examples))
            return bank
        (posterior, belief), likelihood = self._believed(), self._told_likelihood()
        learner = self._learner(Softmax(count + 1))
        learner.n_examples, learner.log_evidence = known.n_examples, known.log_evidence
        if self._is_multiclass:
            for array, old in zip(learner.belief, belief, strict=True):
                array[:count] = old
        else:  # two classes: half of their one latent each, against each other, as logits
            for code, sign in enumerate((-1.0, 1.0)):
                half = type(belief)(*(array.copy() for array in belief))
                per_noise = 1.0 / getattr(likelihood, "noise_scale", 1.0)
                as_logits = per_noise * (1.0 if isinstance(likelihood, Logistic) else LOGISTIC_OVER_PROBIT)
                size = np.full(known.n_features, as_logits / math.sqrt(2.0))
                posterior.transform(half, size, np.zeros_like(size))
                half.mean[...] *= sign / math.sqrt(2.0)
                for array, part in zip(learner.belief, half, strict=True):
                    array[code] = part
        if self._first:
            rarity, place = math.log(1.0 + known.n_examples) / self._intercept, self._intercept_place
            learner.belief.mean[count, place] = learner.belief.mean[:count, place].mean() - rarity
        return learner

    def _told_likelihood(self) -> Likelihood:
        """In whose latent weights are told."""
        return self._learner_.likelihood if self._bank is None else self._bank.members[0].likelihood

    def _standard_members(self) -> list[Member]:
        return of_two_classes(self.n_waves)

    def _sparse_members(self, prior_variance: float) -> list[Member]:
        return of_sparse_classes(prior_variance)

    def _member_scales(self) -> Vector:
        """Weights of probit members are told as those of logistic ones."""
        kinds = [member.likelihood for member in self.bank_.members]
        return np.array([1.0 if isinstance(kind, (Logistic, Softmax)) else LOGISTIC_OVER_PROBIT for kind in kinds])

    def _order_classes(self) -> None:
        labels = list(self._codes)
        order = sorted(range(len(labels)), key=labels.__getitem__)
        self.classes_ = np.array([labels[code] for code in order]) if labels else np.zeros(0)
        self._class_order = order

    # --- predicting

    def predict_proba(self, X: ArrayLike) -> Matrix:
        """Probability of each class, in the order of ``classes_``."""
        return self._probabilities(self._predictions(X))[:, self._class_order]

    def predict_proba_interval(self, X: ArrayLike, coverage: float = 0.9) -> Matrix:
        """Where the probability of the second of two classes lies, given what is believed of the weights: low and high.

        The interval is that of the probability itself: it shrinks as more is learnt, while labels stay as random as
        they are. What `predict_proba` says is always in it, also where that is the mean of something so lopsided that
        it lies beyond.
        """
        prediction = self._predictions(X)
        if len(self._codes) != 2 or isinstance(prediction, MixedClasses):
            raise InvalidSpec(f"intervals of probabilities must be of two classes; got {len(self._codes)}.")
        ends = probability_interval(prediction, coverage)
        if self._calibration is not None:
            ends = np.sort(self._calibration.predict_many(ends.ravel()).reshape(ends.shape), axis=1)
        said = self._probabilities(prediction)[:, 1]
        ends = np.column_stack([np.minimum(ends[:, 0], said), np.maximum(ends[:, 1], said)])
        return ends if self._class_order[1] == 1 else 1.0 - ends[:, ::-1]

    def predict_log_proba(self, X: ArrayLike) -> Matrix:
        """Log probability of each class, in the order of ``classes_``."""
        return self._log_probabilities(self._predictions(X))[:, self._class_order]

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable class of each row."""
        best = np.argmax(self.predict_proba(X), axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def decision_function(self, X: ArrayLike) -> Matrix | Vector:
        """Log odds of the second class; with more than two classes, log probabilities."""
        logs = self.predict_log_proba(X)
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    def predict_one(self, x: Mapping[Hashable, Any]) -> Any:
        """The most probable class of a dict of named values; None before anything was learnt."""
        probabilities = self.predict_proba_one(x)
        return max(probabilities, key=probabilities.__getitem__) if probabilities else None

    def predict_proba_one(self, x: Mapping[Hashable, Any]) -> dict[Any, float]:
        """Probability of each class; empty before anything was learnt."""
        if not self._begun() or not self._codes:
            return {}
        values = self._probabilities(self._predict_dict(x))[0]
        return {label: float(values[code]) for label, code in self._codes.items()}

    def _log_probabilities(self, prediction: Any) -> Matrix:
        """Per class, in the order in which classes were admitted."""
        if self._calibration is not None or isinstance(prediction, MixedClasses) or len(self._codes) == 1:
            return np.log(self._probabilities(prediction))
        rows = len(np.atleast_1d(prediction.mean)) if self._bank else len(prediction.latent.mean)
        targets = range(len(self._codes)) if self._is_multiclass else (-1.0, 1.0)
        return np.column_stack([prediction.log_probability(np.full(rows, float(t))) for t in targets])

    def _probabilities(self, prediction: Any) -> Matrix:
        """Per class, in the order in which classes were admitted."""
        if isinstance(prediction, MixedClasses):
            return prediction.probabilities
        if len(self._codes) == 1:  # nothing else is known yet
            return np.ones((len(np.atleast_1d(prediction.mean)), 1))
        if self._calibration is not None or isinstance(prediction, MixedPrediction):
            second = self._uncalibrated(prediction)
            if self._calibration is not None:
                second = self._calibration.predict_many(second)
            return np.column_stack([1.0 - second, second])
        likelihood = self._learner_.likelihood
        if isinstance(likelihood, Softmax):
            return likelihood.probabilities(prediction.latent)
        probabilities = np.exp(self._log_probabilities(prediction))
        normalised: Matrix = probabilities / probabilities.sum(axis=1, keepdims=True)
        return normalised

    # --- what was learnt

    @property
    def coef_(self) -> Matrix:
        """Expected weight per unit of each raw input: a row per class, or one towards the second of two."""
        return np.stack([sign * self._slopes(b.mean) / self._weight_scale() for sign, b in self._oriented()])

    @property
    def intercept_(self) -> Vector:
        """Expected latent where all raw inputs are zero."""
        return np.array([sign * self._raw_intercept(b.mean) for sign, b in self._oriented()])

    def coef_interval(self, coverage: float = 0.9) -> Matrix:
        """Central interval of each weight: (low, high) per input; with more than two classes, per class and input."""
        intervals = []
        for sign, belief in self._oriented():
            ends = sign * self._slopes(self._believed()[0].intervals(belief, coverage))
            intervals.append(np.sort(ends, axis=1) / np.reshape(self._weight_scale(), (-1, 1)))
        return np.stack(intervals) if self._is_multiclass else intervals[0]

    def summary(self, coverage: float = 0.9) -> Summary:
        """Each weight with its deviation, interval and the probability of its sign, in raw units."""
        self._check_begun()
        scale = 1.0 / self._weight_scale()
        parts = []
        for label, (sign, belief) in zip(self.classes_[-len(self._oriented()) :], self._oriented(), strict=True):
            prefix = f"{label}: " if self._is_multiclass else ""
            parts.append(self._weights_told(belief, sign * scale, coverage, prefix))
        return Summary.joined(parts)._replace(note=self._note())

    def _oriented(self) -> list[tuple[float, Any]]:
        """The belief of each latent, in the order of ``classes_``, with the sign that points to its class."""
        self._check_begun()
        beliefs = self._learner_.beliefs() if isinstance(self._learner_, Learner) else [self._believed()[1]]
        if self._is_multiclass and not isinstance(self._learner_, Learner):
            beliefs = [type(beliefs[0])(*(array[code] for array in beliefs[0])) for code in range(len(self._codes))]
        if self._is_multiclass:
            return [(1.0, beliefs[code]) for code in self._class_order]
        return [(1.0 if self._class_order in ([0], [0, 1], []) else -1.0, beliefs[0])]

    # --- as data

    def to_state(self) -> State:
        """All that this estimator is, as data."""
        state = super().to_state()
        if self._begun():
            state.config["classes"] = list(self._codes)
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The estimator that this data describes; it continues to the last bit."""
        model = super().from_state(state)
        if model._begun():
            model._codes = {label: code for code, label in enumerate(state.config["classes"])}
            model._is_multiclass = isinstance(model._learner_.likelihood, Softmax)
            if model._is_multiclass and not isinstance(model._learner_, Learner):
                model._choice = model._choice_of_classes(len(model._codes))
            model._order_classes()
        return model


def are_others(labels: NDArray[Any], known: Collection[Any]) -> Mask:
    """Which labels are none of those that are known. For few of these a look at each is quicker than sorting."""
    if len(known) > FEW_CLASSES:
        values, inverse = np.unique(labels, return_inverse=True)
        return np.array([label not in known for label in values.tolist()], np.bool_)[inverse]
    found = np.zeros(len(labels), np.bool_)
    for label in known:
        found |= labels == label
    return ~found


def _label(y: Any) -> Any:
    """A label as a plain Python value, so that 1 and numpy's 1 are one class."""
    label = y.item() if isinstance(y, np.generic) else y
    if label is None or (isinstance(label, float) and not math.isfinite(label)):
        raise InvalidTarget(f"a label must be a value that can be known again; got {label!r}.")
    return label
