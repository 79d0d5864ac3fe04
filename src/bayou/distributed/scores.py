"""Progressive scores of shards: each row is judged by what was said of it before it was learnt, and counts add up.

What is said of a row knows the rows before it in its own shard and, from the second round on, what all other shards
have told, those that come later in a stream included. In the first round a shard knows itself alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayou.contracts import Matrix, Vector
from bayou.estimators.common_frame import Encoding
from bayou.evaluation.metrics import (
    AUC,
    MAE,
    RMSE,
    Accuracy,
    Brier,
    CalibrationError,
    Coverage,
    LogLoss,
    Metric,
    NegativeLogDensity,
)
from bayou.evaluation.stream_scores import LEVEL, places_of
from bayou.likelihoods import Softmax
from bayou.mixed_classes import MixedClasses
from bayou.mixed_prediction import MixedPrediction

Scores = dict[str, Metric]


def no_scores(encoding: Encoding) -> Scores:
    """The metrics of targets like these, of no rows yet."""
    if not encoding.labels:
        return {"rmse": RMSE(), "mae": MAE(), "nlpd": NegativeLogDensity(), "coverage": Coverage(LEVEL)}
    found: Scores = {"log_loss": LogLoss(), "accuracy": Accuracy(), "ece": CalibrationError(), "brier": Brier()}
    return found | {"auc": AUC()} if len(encoding.labels) == 2 else found


def count(scores: dict[str, Any], encoding: Encoding, said: Any, told: Vector, weights: Vector | None) -> None:
    """Count rows: what was said of each, and its target as a learner takes it."""
    if encoding.labels:
        given, codes = _probabilities(said, told, len(encoding.labels))
        for metric in scores.values():
            metric.update(given, codes, weights)
        return
    shift, scale = encoding.location, encoding.scale
    means, came = shift + scale * said.mean, shift + scale * told
    scores["rmse"].update(means, came, weights)
    scores["mae"].update(means, came, weights)
    scores["nlpd"].update(said.log_probability(told) - np.log(scale), weights)
    scores["coverage"].count(places_of(said, told, encoding.counts).inside, weights)


def joined(one: Scores, other: Scores) -> Scores:
    """Of the rows of both."""
    both = {name: metric.fresh() for name, metric in one.items()}
    for name, metric in both.items():
        metric.merge(one[name])
        metric.merge(other[name])
    return both


def _probabilities(said: Any, told: Vector, n_classes: int) -> tuple[Matrix, Any]:
    """What each class was given, and which it was."""
    if isinstance(said, MixedClasses):
        return said.probabilities, told.astype(np.intp)
    if isinstance(said, MixedPrediction):
        assert said.evidence is not None
        return _of_two(np.exp(said.evidence), told)
    likelihood = said._likelihood
    if isinstance(likelihood, Softmax):
        return likelihood.probabilities(said.latent), told.astype(np.intp)
    assert n_classes == 2
    return _of_two(np.exp(said.log_probability(told)), told)


def _of_two(given: Vector, told: Vector) -> tuple[Matrix, Any]:
    codes = (told > 0.0).astype(np.intp)
    second = np.where(codes == 1, given, 1.0 - given)
    return np.column_stack([1.0 - second, second]), codes
