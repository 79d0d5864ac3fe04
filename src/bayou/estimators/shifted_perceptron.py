"""The shifted perceptron: for two classes with labels that are flipped now and then."""

from __future__ import annotations

from typing import Any

from bayou.contracts import Posterior, Schedule
from bayou.estimators.perceptron import OnlinePerceptron
from bayou.estimators.summary import Summary
from bayou.posteriors import ShiftedPoint


class ShiftedPerceptron(OnlinePerceptron):
    """The shifted perceptron of Barkai, Seung and Sompolinsky 1995, one pass, for two classes with flipped labels.

    ``shift`` is "mean", "projection" or "auto", which picks one from the examples; ``shift_`` says which is in use.
    It has no intercept: the shift of a constant input is the input itself, so that it would never be learnt. And inputs
    are scaled but not centred, because centres are what the shift is about: the hyperplane goes through the raw zero.

    >>> import numpy as np
    >>> from bayou import ShiftedPerceptron
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 3)) + [1.0, 2.0, 0.0]
    >>> truth = X @ [0.6, 0.0, 0.8] > 0.0
    >>> model = ShiftedPerceptron().fit(X, truth ^ (rng.random(5000) < 0.2))
    >>> bool(model.score(X, truth) > 0.95), model.shift_
    (True, 'projection')
    """

    fit_intercept = False

    def __init__(self, shift: str = "auto", schedule: Schedule | None = None, standardize: bool = True) -> None:
        self.shift = shift
        self.schedule = schedule
        self.standardize = standardize

    def _default_posterior(self) -> Posterior[Any]:
        return ShiftedPoint(self.shift, self.schedule)

    @property
    def shift_(self) -> str:
        """The shift in use: "mean", "projection", or "none" while it warms up, by Hebb's rule."""
        self._check_begun()
        return ShiftedPoint(self.shift).shift_of(self._learner_.belief)

    @property
    def flip_rate_(self) -> float:
        """How often labels are flipped, if the weights have come close to the truth; 1/2 before anything is known."""
        self._check_begun()
        return ShiftedPoint(self.shift).flip_rate(self._learner_.belief)

    def summary(self, coverage: float = 0.9) -> Summary:
        """Each weight in raw units, and which shift is in use."""
        return super().summary(coverage)._replace(note=f"shift: {self.shift_}")
