"""One pass is as good as batch: log loss of rows never seen, beside scikit-learn's logistic regression on all rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayou import Logistic, OnlineClassifier
from bayou.evaluation.metrics import Mean

CLAIM = 0.005  # nats
SPLITS = 3
MODELS = {"default": OnlineClassifier(), "logistic": OnlineClassifier(likelihood=Logistic())}

Split = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


def splits(X: NDArray[Any], y: NDArray[Any]) -> Iterator[Split]:
    """80 % to learn, 20 % to predict, in several shuffled orders."""
    learnt = int(0.8 * len(y))
    for seed in range(SPLITS):
        order = np.random.default_rng(seed).permutation(len(y))
        yield X[order[:learnt]], y[order[:learnt]], X[order[learnt:]], y[order[learnt:]]


def losses(model: Any, split: Split) -> NDArray[Any]:
    X, y, unseen, truth = split
    probabilities = model.fit(X, y).predict_proba(unseen)
    return -np.log(probabilities[np.arange(len(truth)), truth])


def check_claim(name: str, model: str, parts: Iterator[Split]) -> None:
    """Rows of all splits count alike; the standard error is that of one split, for their rows overlap."""
    gap, batch_loss, n_splits = Mean(), Mean(), 0
    for split in parts:
        batch = losses(make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)), split)
        gap.count(losses(MODELS[model], split) - batch)
        batch_loss.count(batch)
        n_splits += 1
    error = gap.standard_error * math.sqrt(n_splits)
    print(f"{name}, {model}: batch {batch_loss.value:.4f}, one pass {gap.value:+.5f} ± {error:.5f}")
    assert gap.value <= CLAIM, f"{name}, {model}: one pass loses {gap.value:.5f} ± {error:.5f} nats against batch"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("seed", range(3))
def test_made_classes(seed: int, model: str) -> None:
    check_claim(f"made classes {seed}", model, splits(*make_classification(20_000, random_state=seed)))


def adult(data: Path) -> Iterator[Split]:
    """Learnt in the order of the file."""
    columns = {"header": None, "skipinitialspace": True}
    parts = [pd.read_csv(data / "binary" / f"adult-{part}.csv", **columns) for part in ("train", "test")]
    table = pd.concat(parts)
    y = table.pop(14).str.startswith(">").to_numpy().astype(int)
    X, learnt = pd.get_dummies(table).to_numpy(float), len(parts[0])
    yield X[:learnt], y[:learnt], X[learnt:], y[learnt:]


def bank(data: Path) -> Iterator[Split]:
    table = pd.read_csv(data / "binary" / "bank-marketing.csv")
    y = (table.pop("Class") == 2).to_numpy().astype(int)
    return splits(pd.get_dummies(table).to_numpy(float), y)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("source", [adult, bank])
def test_real_classes(data: Path, source: Any, model: str) -> None:
    check_claim(source.__name__, model, source(data))
