"""Counts: Poisson regression with a log link, or any likelihood of counts."""

from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin

from bayou.contracts import Likelihood, Posterior
from bayou.estimators.numbers import NumberEstimator
from bayou.estimators.standard_members import of_counts
from bayou.likelihoods import Poisson
from bayou.members import Member
from bayou.posteriors import FullGaussian


class OnlineCounter(RegressorMixin, NumberEstimator):
    """Bayesian regression of counts (0, 1, 2, ...), one pass.

    ``likelihood`` is `Poisson()` by default; for counts that vary more than their mean use `NegativeBinomial`.
    ``coef_`` are effects on the logarithm of the rate.

    >>> import numpy as np
    >>> from bayou import OnlineCounter
    >>> x = np.repeat([[0.0], [1.0]], 50, axis=0)
    >>> model = OnlineCounter().fit(x, np.tile([1, 2, 3, 2, 2], 20) + 6 * x[:, 0].astype(int))
    >>> model.predict([[0.0], [1.0]]).round(0)
    array([2., 8.])
    """

    _sparse_variance, _row_variance, _intercept_wider = 0.1, 1.5, 2.5
    _intercept = 6.0  # times the deviation of a weight, 1/2: rates span many orders of magnitude

    def _default_likelihood(self) -> Likelihood:
        return Poisson()

    def _default_posterior(self) -> Posterior[Any]:
        return FullGaussian(prior_variance=0.25)

    def _standard_members(self) -> list[Member]:
        return of_counts(0.25, self.n_waves)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
