"""The perceptron of unit length, by a schedule: for two classes that a hyperplane divides."""

from __future__ import annotations

from typing import Any

from bayou.contracts import Posterior, Schedule
from bayou.estimators.perceptron import OnlinePerceptron
from bayou.posteriors import ScheduledPoint
from bayou.schedules import AdaptiveRate


class NormalisedPerceptron(OnlinePerceptron):
    """The perceptron of Barkai, Seung and Sompolinsky 1995, one pass, for two classes.

    ``schedule`` is `AdaptiveRate()` by default: for classes that a hyperplane divides it is as good as the best by the
    clock, and comes back after a change. Where labels are noisy, use a `PowerLawRate`, a `ShiftedPerceptron` or, better
    still, an `OnlineClassifier`. ``normalise=False`` lets the length of the weights grow, as in Rosenblatt's; then the
    first steps count for long, those too that are taken before the scales of inputs are known: scale inputs beforehand.

    >>> import numpy as np
    >>> from bayou import NormalisedPerceptron
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5))
    >>> model = NormalisedPerceptron().fit(X[:1000], X[:1000, 0] > X[:1000, 1])
    >>> bool(model.score(X[1000:], X[1000:, 0] > X[1000:, 1]) > 0.98)
    True
    """

    def __init__(
        self,
        schedule: Schedule | None = None,
        normalise: bool = True,
        fit_intercept: bool = True,
        standardize: bool = True,
    ) -> None:
        self.schedule = schedule
        self.normalise = normalise
        self.fit_intercept = fit_intercept
        self.standardize = standardize

    def _default_posterior(self) -> Posterior[Any]:
        return ScheduledPoint(AdaptiveRate() if self.schedule is None else self.schedule, bool(self.normalise))
