"""Scores of shards are those of all their rows in one go, each row judged before it is learnt."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import poisson
from sklearn.metrics import roc_auc_score

from bayou import (
    FullGaussian,
    Gaussian,
    Learner,
    Logistic,
    MomentMatching,
    NormalInverseGamma,
    OnlineClassifier,
    OnlineCounter,
    OnlineRegressor,
    Poisson,
)
from bayou.distributed import InProcess, LocalProcesses, fit
from bayou.numerics.factor import factors_of_covariance
from tests.distributed import made

X = made.rows(900)
LABELS, NUMBERS, COUNTS = made.labels(X), made.numbers(X), made.counts(X)
CUTS = [0, 200, 550, 900]


def standardised(intercept: float) -> Any:
    return np.column_stack([np.full(len(X), intercept), (X - X.mean(axis=0)) / X.std(axis=0)])


def row_by_row(
    likelihood: Any, variance: float, features: Any, targets: Any, known: list[Any] | None = None
) -> tuple[list[Any], list[Any]]:
    """What is said of each row by calls for one row each; and what each shard believes: precision and mean."""
    said, beliefs, prior = [], [], np.eye(features.shape[1]) / variance
    for shard, (a, b) in enumerate(pairwise(CUTS)):
        learner = Learner(likelihood, FullGaussian(variance), MomentMatching(), features.shape[1])
        if known is not None:  # what the others have told in the first round
            others = [known[s] for s in range(len(known)) if s != shard]
            covariance = np.linalg.inv(prior + sum(precision - prior for precision, _ in others))
            factor, scale = factors_of_covariance(covariance)
            learner.belief.factor[...], learner.belief.scale[...] = factor, scale
            learner.belief.mean[...] = covariance @ sum(precision @ mean for precision, mean in others)
        for x, y in zip(features[a:b], targets[a:b], strict=True):
            said.append(learner.predict_one(x))
            learner.learn_one(x, float(y))
        beliefs.append((np.linalg.inv(learner.posterior.covariance(learner.belief)), learner.belief.mean.copy()))
    return said, beliefs


def test_classes_are_scored_before_they_are_learnt() -> None:
    shards = made.cut(X, LABELS, CUTS[1:-1])
    fitted = fit(OnlineClassifier(likelihood=Logistic()), shards, engine=InProcess(), rounds=2, tolerance=1e-9)
    features, signs = standardised(3.0), np.where(LABELS, 1.0, -1.0)
    first, beliefs = row_by_row(Logistic(), 1.0, features, signs)
    second, _ = row_by_row(Logistic(), 1.0, features, signs, beliefs)
    for said, one in ((first, fitted.rounds[0]), (second, fitted.rounds[1])):
        given = np.array([0.5 + 0.5 * row.mean for row in said])
        of_truth = np.where(LABELS, given, 1.0 - given)
        close = 1e-12 if one is fitted.rounds[0] else 1e-9  # a belief that was told in another form
        assert one.scores["log_loss"].value == pytest.approx(-np.log(of_truth).mean(), rel=close)
        assert one.scores["brier"].value == pytest.approx(np.mean((given - LABELS) ** 2), rel=close)
        assert one.scores["accuracy"].value == np.mean((given > 0.5) == LABELS)
        bins = np.minimum((20 * given).astype(int), 19)
        gaps = [abs(given[bins == b].sum() - LABELS[bins == b].sum()) for b in range(20)]
        assert one.scores["ece"].value == pytest.approx(np.sum(gaps) / len(X), rel=1e-9)
        assert one.scores["auc"].value == pytest.approx(roc_auc_score(LABELS, given), abs=1e-3)
        assert one.log_score == pytest.approx(np.log(of_truth).mean(), rel=1e-9)
    assert fitted.scores["log_loss"] == fitted.rounds[-1].scores["log_loss"].value
    assert fitted.rounds[1].scores["log_loss"].value < fitted.rounds[0].scores["log_loss"].value


def test_numbers_are_scored_in_their_own_units() -> None:
    model = OnlineRegressor(likelihood=Gaussian(4.0), posterior=FullGaussian(50.0))
    fitted = fit(model, made.cut(X, NUMBERS, CUTS[1:-1]), engine=InProcess())
    said, _ = row_by_row(Gaussian(4.0), 50.0, standardised(1.0), NUMBERS)
    means, variances = np.array([row.mean for row in said]), np.array([row.variance for row in said])
    off = NUMBERS - means
    scores = fitted.scores
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean(off**2)), rel=1e-12)
    assert scores["mae"] == pytest.approx(np.mean(np.abs(off)), rel=1e-12)
    density = 0.5 * (off**2 / variances + np.log(2.0 * np.pi * variances))
    assert scores["nlpd"] == pytest.approx(density.mean(), rel=1e-12)
    assert scores["coverage"] == np.mean(np.abs(off) <= 1.6448536269514722 * np.sqrt(variances))


def test_learnt_noise_is_scored_in_units_of_the_targets() -> None:
    """The same rows in other units: errors scale with them, densities lose the log of it."""
    model = OnlineRegressor(posterior=NormalInverseGamma(10.0))
    one, other = (fit(model, made.cut(X, s * NUMBERS, CUTS[1:-1]), engine=InProcess()).scores for s in (1.0, 1000.0))
    assert other["rmse"] == pytest.approx(1000.0 * one["rmse"], rel=1e-9)
    assert other["nlpd"] == pytest.approx(one["nlpd"] + np.log(1000.0), rel=1e-9)
    assert one["coverage"] == other["coverage"] == pytest.approx(0.9, abs=0.04)
    assert one["rmse"] == pytest.approx(2.0, abs=0.3)


def test_counts_cover_a_whole_step() -> None:
    fitted = fit(OnlineCounter(likelihood=Poisson()), made.cut(X, COUNTS, CUTS[1:-1]), engine=InProcess(), rounds=1)
    assert 0.88 < fitted.scores["coverage"] < 0.99
    rate = np.exp(0.2 * (X @ made.WEIGHTS + 2.0))
    best = -poisson.logpmf(COUNTS, rate).mean()
    assert best - 0.01 < fitted.scores["nlpd"] < best + 0.2


def test_weights_count_and_three_classes_have_no_auc() -> None:
    kinds, weights = np.digitize(NUMBERS, [4.0, 9.0]), np.random.default_rng(0).integers(1, 3, len(X)).astype(float)
    fitted = fit(OnlineClassifier(likelihood=Logistic()), (X, kinds, weights), engine=InProcess(), shards=3, rounds=1)
    assert set(fitted.scores) == {"log_loss", "accuracy", "ece", "brier"}
    assert fitted.rounds[0].scores["log_loss"].total == weights.sum()  # type: ignore[attr-defined]


def test_scores_are_the_same_bits_on_processes() -> None:
    model, shards = OnlineClassifier(likelihood=Logistic()), made.cut(X, LABELS, CUTS[1:-1])
    here, there = (fit(model, shards, engine=engine, rounds=2).scores for engine in (InProcess(), LocalProcesses(2)))
    assert here == there
