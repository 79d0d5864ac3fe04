"""What the perceptrons share: two classes, and probabilities from the mistakes of late.

A perceptron knows a direction and nothing of how sure it is. What it can say honestly is how often it was wrong of late
(`bayou.numerics.perceptrons`): with e that share, the class that it answers has probability 1 - e, wherever the input
lies. Where values are missing, the answer could have been the other one with probability 1 - Phi, and the class has
e + (1 - 2e) Phi.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayou.contracts import Likelihood, Matrix, Vector
from bayou.errors import InvalidTarget
from bayou.estimators.classifier import OnlineClassifier
from bayou.likelihoods import Step
from bayou.numerics.perceptrons import error_rate, errors_before


class OnlinePerceptron(OnlineClassifier):
    """A perceptron behind the interface of `OnlineClassifier`, for two classes."""

    likelihood = None
    posterior = None
    rule = None
    _intercept = 1.0
    _takes_sparse = False

    def _binary_likelihood(self) -> Likelihood:
        return Step()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    # --- two classes

    def _learn_more(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None, sample_weight: ArrayLike | None, tell: bool = True
    ) -> Matrix:
        known = list(self._codes) if self._begun() else []
        given = [value for values in (y, classes) if values is not None for value in np.unique(np.asarray(values))]
        _check_two([*known, *given])
        return super()._learn_more(X, y, classes, sample_weight, tell)

    def _start(self, n_columns: int, labels: Sequence[Any], names: list[Hashable] | None = None) -> None:
        _check_two(labels)
        super()._start(n_columns, labels, names)

    def _check_label(self, label: Any) -> None:
        super()._check_label(label)
        _check_two([*self._codes, label])

    # --- probabilities

    @property
    def error_rate_(self) -> float:
        """How often its answers are expected to be wrong, from those of late, each given before the target was seen."""
        self._check_begun()
        return float(error_rate(self._learner_.belief.account))

    @property
    def log_evidence_(self) -> float:
        """Log probability that was given to all targets learnt so far, each before it was seen."""
        self._check_begun()
        return float(self._learner_.belief.account[2])

    def predict_proba(self, X: ArrayLike) -> Matrix:
        """Probability of each class, in the order of ``classes_``: 1 - ``error_rate_`` for the one it answers."""
        return _doubted(super().predict_proba(X), self.error_rate_)

    def predict_log_proba(self, X: ArrayLike) -> Matrix:
        """Log probability of each class, in the order of ``classes_``."""
        logs: Matrix = np.log(self.predict_proba(X))
        return logs

    def predict_proba_one(self, x: Mapping[Hashable, Any]) -> dict[Any, float]:
        """Probability of each class; empty before anything was learnt."""
        sure = super().predict_proba_one(x)
        if not sure:
            return sure
        values = _doubted(np.array([list(sure.values())]), self.error_rate_)[0]
        return {label: float(value) for label, value in zip(sure, values, strict=True)}

    def decision_function(self, X: ArrayLike) -> Matrix | Vector:
        """The latent w . x, positive towards the second class."""
        latent = self._predictions(X).latent.mean
        sign = self._oriented()[0][0]
        return sign * latent if len(self.classes_) == 2 else np.zeros((len(latent), len(self.classes_)))

    def _learn_known(self, rows: Matrix, labels: NDArray[Any], weights: Vector, tell: bool) -> Matrix:
        """As the answers were believed before each target was used."""
        if weights.size:  # a row of weight k is answered k times: what was believed is asked in between
            given = [np.zeros((0, len(self._codes)))]
            for n in range(len(rows)):
                errors, row = self.error_rate_, slice(n, n + 1)
                given.append(_doubted(super()._learn_known(rows[row], labels[row], weights[row], tell=True), errors))
            return np.concatenate(given)
        account = self._learner_.belief.account.copy()
        sure = super()._learn_known(rows, labels, weights, tell=True)
        codes = [self._codes[label] for label in labels.tolist()]
        margins = sure[np.arange(len(sure)), codes] - 0.5
        return _doubted(sure, errors_before(account, margins)[:, None])


def _doubted(sure: Matrix, errors: float | Matrix) -> Matrix:
    """Probabilities of the answers, by those that they would have without mistakes; a class alone has no other."""
    return sure if sure.shape[1] < 2 else errors + (1.0 - 2.0 * errors) * sure


def _check_two(labels: Sequence[Any]) -> None:
    distinct = sorted({label.item() if isinstance(label, np.generic) else label for label in labels}, key=str)
    if len(distinct) > 2:
        raise InvalidTarget(
            "Only binary classification is supported. The type of the target is multiclass: labels must be of two "
            f"classes; got {distinct[:3]}."
        )
