"""Adapters: bayou's estimators inside River's pipelines, evaluation and bandits (`bayou[river]`)."""

from __future__ import annotations

from typing import Any

from bayou.contracts import Likelihood, Posterior, Rule
from bayou.estimators.classifier import OnlineClassifier
from bayou.estimators.regressor import OnlineRegressor

try:
    from river import base
except ImportError as error:
    raise ImportError("bayou.estimators.river needs River; install `bayou[river]`.") from error


class RiverClassifier(base.Classifier):
    """`OnlineClassifier` as River knows classifiers.

    >>> from river import datasets, evaluate, metrics
    >>> from bayou.estimators.river import RiverClassifier
    >>> evaluate.progressive_val_score(datasets.Phishing().take(300), RiverClassifier(), metrics.Accuracy()).get() > 0.8
    True
    """

    def __init__(
        self,
        likelihood: Likelihood | None = None,
        posterior: Posterior[Any] | None = None,
        rule: Rule | None = None,
        fit_intercept: bool = True,
        standardize: bool = True,
    ) -> None:
        self.likelihood = likelihood
        self.posterior = posterior
        self.rule = rule
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.model = OnlineClassifier(likelihood, posterior, rule, fit_intercept, standardize)

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learn from one example."""
        self.model.learn_one(x, y)

    def predict_proba_one(self, x: dict[Any, Any]) -> dict[Any, float]:
        """Probability of each class seen so far."""
        return self.model.predict_proba_one(x)


class RiverRegressor(base.Regressor):
    """`OnlineRegressor` as River knows regressors.

    >>> from river import datasets, evaluate, metrics
    >>> from bayou.estimators.river import RiverRegressor
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), RiverRegressor(), metrics.MAE()).get() < 1.0
    True
    """

    def __init__(
        self,
        likelihood: Likelihood | None = None,
        posterior: Posterior[Any] | None = None,
        rule: Rule | None = None,
        fit_intercept: bool = True,
        standardize: bool = True,
    ) -> None:
        self.likelihood = likelihood
        self.posterior = posterior
        self.rule = rule
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.model = OnlineRegressor(likelihood, posterior, rule, fit_intercept, standardize)

    def learn_one(self, x: dict[Any, Any], y: float) -> None:
        """Learn from one example."""
        self.model.learn_one(x, y)

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Expected target."""
        return self.model.predict_one(x)
