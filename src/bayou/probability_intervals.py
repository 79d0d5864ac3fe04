"""How sure a model is of a probability: where it lies, given what is believed of the weights.

The probability of +1 is a rising function of the latent, and the latent of each member is normal. Its quantiles are
those of points: the probabilities at evenly spaced quantiles of each member's latent, weighed as the member is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from bayou.contracts import Latent, Matrix
from bayou.errors import InvalidSpec
from bayou.mixed_prediction import MixedPrediction

POINTS = 256  # of each member: ends are off by less than one in so many of the probability
LEAST_SHARE = 1e-4  # of members that are asked


def probability_interval(prediction: Any, coverage: float = 0.9) -> Matrix:
    """Central interval of the probability of +1, a row per example: low and high.

    >>> import numpy as np
    >>> from bayou import FullGaussian, Learner, Logistic, MomentMatching
    >>> learner = Learner(Logistic(), FullGaussian(4.0), MomentMatching(), n_features=1)
    >>> probability_interval(learner.predict_many(np.ones((1, 1)))).round(2)
    array([[0.04, 0.96]])
    """
    if not 0.0 < coverage < 1.0:
        raise InvalidSpec(f"`coverage` must lie between 0 and 1; got {coverage!r}.")
    if isinstance(prediction, MixedPrediction):
        shares, members = prediction.believed(LEAST_SHARE)
    else:
        latent = prediction.latent
        shares, members = np.ones((len(latent.mean), 1)), [(prediction.likelihood, latent)]
    steps = ndtri((np.arange(POINTS) + 0.5) / POINTS)
    at = np.hstack([_probabilities(likelihood, latent, steps) for likelihood, latent in members])
    weights = np.repeat(shares / (POINTS * shares.sum(axis=1, keepdims=True)), POINTS, axis=1)
    order = np.argsort(at, axis=1)
    at, below = (np.take_along_axis(part, order, axis=1) for part in (at, weights))
    below = np.cumsum(below, axis=1)
    levels = 0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage
    places = [np.minimum((below < level).sum(axis=1), at.shape[1] - 1) for level in levels]
    return np.stack([at[np.arange(len(at)), place] for place in places], axis=1)


def _probabilities(likelihood: Any, latent: Latent, steps: Any) -> Matrix:
    """Of +1, where the latent is so many deviations from what is expected."""
    at = (latent.mean[:, None] + np.sqrt(latent.variance)[:, None] * steps).ravel()
    logs = likelihood.log_probability(np.ones(at.size), Latent(at, np.zeros(at.size)))
    found: Matrix = np.clip(np.exp(logs), 0.0, 1.0).reshape(-1, steps.size)
    return found
