"""Small networks as estimators: one pass, no learning rate.

Features are standardised as for the linear estimators, but what a network has learnt in one frame cannot be told in
another. So the first rows are kept, and whenever they have doubled and the frame has moved, they are learnt again from
the start, in the new one. From then on a frame stays, unless it turns out to be quite wrong.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable
from typing import Any

import numpy as np

from bayou.contracts import Likelihood, Posterior, Rule, VectorLikelihood
from bayou.encoders import Standardizer
from bayou.encoders.standardizer import deviation_of
from bayou.errors import InvalidSpec
from bayou.estimators.classifier import OnlineClassifier
from bayou.estimators.early_rows import KEPT, EarlyRows
from bayou.estimators.regressor import OnlineRegressor
from bayou.function_learner import FunctionLearner
from bayou.functions import Network
from bayou.learner import Learner
from bayou.likelihoods import Softmax
from bayou.posteriors import FullGaussian, LowRankGaussian
from bayou.rules import MomentMatching, Variational

QUITE_WRONG = 4.0  # a later frame is taken when deviations differ by such a factor, or a centre by such a multiple
DOUBT = 0.1  # what is kept then of all that was learnt
MOST_FULL = 1000  # weights up to which all correlations are kept, if there is one output
RANK = 30


class NetworkEstimator(EarlyRows):
    """What the networks share: how they are made, and how they begin."""

    _learner_class = FunctionLearner
    _has_short_way = False
    _retells = False
    _has_bias = True  # of its own, without a feature for it
    _output_variance = 1.0
    fit_intercept = False

    def __init__(
        self,
        hidden: int | tuple[int, ...] = 50,
        likelihood: Likelihood | None = None,
        posterior: Posterior[Any] | None = None,
        rule: Rule | None = None,
        standardize: bool = True,
        seed: int = 0,
    ) -> None:
        self.hidden = hidden
        self.likelihood = likelihood
        self.posterior = posterior
        self.rule = rule
        self.standardize = standardize
        self.seed = seed

    def _learner(self, likelihood: Likelihood) -> FunctionLearner:
        n_features = self._frame.mean.size
        widths = (self.hidden,) if isinstance(self.hidden, (int, np.integer)) else self.hidden
        try:
            widths = tuple(operator.index(width) for width in widths)
        except TypeError:
            raise InvalidSpec(f"`hidden` must be a whole number, or one per layer; got {self.hidden!r}.") from None
        network = Network(widths, likelihood.n_latents, self._output_variance, self.seed)
        given = self._choice.posterior if self.posterior is not None else None
        posterior = self._family(network, n_features) if given is None else given
        rule = _rule(likelihood) if self.rule is None else self.rule
        learn_noise = self._learns_noise(likelihood)
        return FunctionLearner(network, likelihood, posterior, rule, n_features, learn_noise=learn_noise)

    @staticmethod
    def _family(network: Network, n_features: int) -> Posterior[Any]:
        """All correlations between the weights, while they are few: an example costs their square, for each output."""
        few = network.n_weights(n_features) ** 2 * network.n_outputs <= MOST_FULL**2
        return FullGaussian() if few else LowRankGaussian(rank=RANK)

    def _learns_noise(self, likelihood: Likelihood) -> bool:
        return False

    @property
    def network_(self) -> Network:
        """The function that is learnt."""
        return self._filter.function  # type: ignore[return-value]  # made by `_learner`

    @property
    def posterior_(self) -> Posterior[Any]:
        """The family of the belief about its weights."""
        return self._filter.posterior

    @property
    def _filter(self) -> FunctionLearner:
        self._check_begun()
        assert isinstance(self._learner_, FunctionLearner)
        return self._learner_

    # --- the first rows

    def _begin(self, n_columns: int, names: list[Hashable] | None = None) -> None:
        super()._begin(n_columns, names)
        self._standardizer = Standardizer()  # centred: biases carry it
        self._lay_out()

    def _settle(self) -> None:
        if self._learner_.n_examples <= KEPT:
            if self.standardize:
                self._standardizer.retake(self._frame)
            self._take_units()
            self._learn_again()
        else:
            self._early = []
            if self.standardize:
                self._mend_frame()

    def _mend_frame(self) -> None:
        """Columns that have become something else than they were in the first rows get a frame that fits."""
        frame, mended = self._frame, False
        for j in np.flatnonzero(frame.deviation).tolist():
            ratio = max(deviation_of(frame, j), 1e-300) / frame.deviation[j]
            moved = abs(frame.mean[j] - frame.centre[j]) / frame.deviation[j]
            if max(ratio, 1.0 / ratio, moved) > QUITE_WRONG:
                frame.centre[j], frame.deviation[j] = frame.mean[j], frame.deviation[j] * ratio
                mended = True
        if mended:  # what was known of it is out of place: let the rows to come count for more
            self._learner_.forget(discount=DOUBT)


def _rule(likelihood: Likelihood) -> Rule:
    """Moment matching; for several latents, which share weights, the variational rule."""
    return Variational() if isinstance(likelihood, VectorLikelihood) else MomentMatching()


class NetworkClassifier(NetworkEstimator, OnlineClassifier):
    """Classification by a small network, in one pass and with nothing to tune: see `OnlineNetwork`.

    >>> from sklearn.datasets import make_moons
    >>> from bayou import NetworkClassifier
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> model = NetworkClassifier().fit(X, y)
    >>> bool(model.score(*make_moons(1000, noise=0.1, random_state=1)) > 0.97)
    True
    """

    _output_variance = 10.0  # log odds of clear cases are several units

    def _with_one_class_more(self) -> Learner:
        """The output of two classes becomes that of the one, the other's is zero; a new class is as rare as it is."""
        learner, count = self._filter.copy(), len(self._codes)
        assert isinstance(learner, FunctionLearner)
        if not self._is_multiclass:
            first, second = self._codes
            self._codes = {second: 0, first: 1}
            self._early = [(row, 0.0 if target > 0.0 else 1.0, weight) for row, target, weight in self._early]
        likelihood = Softmax(count + 1)
        learner.extend(learner.n_features, likelihood, _rule(likelihood) if self.rule is None else self.rule)
        bias = 1 + learner.n_features + self.network_.hidden[-1]
        learner.belief.mean[-bias] = -math.log(1.0 + learner.n_examples)
        return learner


class NetworkRegressor(NetworkEstimator, OnlineRegressor):
    """Regression by a small network, in one pass, with intervals that cover and nothing to tune: see `OnlineNetwork`.

    >>> import numpy as np
    >>> from bayou import NetworkRegressor
    >>> x = np.random.default_rng(0).uniform(-3, 3, size=(1000, 1))
    >>> model = NetworkRegressor().fit(x, np.sin(2 * x[:, 0]))
    >>> bool(np.abs(model.predict([[1.0]]) - np.sin(2.0)).max() < 0.05)
    True
    """

    def _learns_noise(self, likelihood: Likelihood) -> bool:
        return self.likelihood is None and likelihood.scales_with_noise
