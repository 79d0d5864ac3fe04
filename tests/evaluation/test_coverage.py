"""Intervals that cover: nominal 90 % intervals of the default regressor, each made before its target was seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes

from bayou import OnlineRegressor
from bayou.evaluation.metrics import Coverage

SEEDS = 5
LOWEST, HIGHEST = 0.85, 0.95
REAL = ["concrete", "energy", "kin8nm", "power-plant", "protein-tertiary-structure", "wine-quality-red", "yacht"]


def check_claim(name: str, X: NDArray[Any], y: NDArray[Any]) -> None:
    """One pass over all rows, the first ones included, in each of several shuffled orders.

    The rows are the same in each order: as a sample, they have the standard error of so many.
    """
    covered = []
    for seed in range(SEEDS):
        order = np.random.default_rng(seed).permutation(len(y))
        coverage = Coverage(0.9)
        coverage.update(OnlineRegressor().learn_many(X[order], y[order]).interval(0.9), y[order])
        covered.append(coverage.value)
    print(f"{name}: {np.mean(covered):.4f} covered, in {SEEDS} orders {min(covered):.4f} to {max(covered):.4f}")
    error = np.sqrt(0.9 * 0.1 / len(y))
    assert LOWEST - error <= np.mean(covered) <= HIGHEST + error, f"{name}: 90 % intervals cover {np.mean(covered):.1%}"


@pytest.mark.parametrize("name", REAL)
def test_real_numbers(data: Path, name: str) -> None:
    folder = data / "regression"
    table = np.loadtxt(folder / f"{name}.txt")
    inputs = np.loadtxt(folder / f"{name}.index_features.txt").astype(int)
    target = int(np.loadtxt(folder / f"{name}.index_target.txt"))
    check_claim(name, table[:, inputs], table[:, target])


def test_diabetes() -> None:
    check_claim("diabetes", *load_diabetes(return_X_y=True))


def test_heavy_tails() -> None:
    """Noise of Student's t with four degrees of freedom, on features of different scales and a far-off mean."""
    random = np.random.default_rng(1)
    X = random.normal(size=(3000, 8)) * 10.0 ** np.arange(-4, 4)
    y = 500.0 + X @ (random.normal(size=8) / 10.0 ** np.arange(-4, 4)) + 2.0 * random.standard_t(4, size=3000)
    check_claim("heavy tails", X, y)
