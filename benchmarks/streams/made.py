"""Streams that are drawn here: the labels are those of a logistic model, whose probabilities are known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from benchmarks.streams.stream import Category, Stream

ROWS = 20_000
N_NUMBERS, N_VALUES = 8, 5


def stationary(n_rows: int = ROWS, seed: int = 0) -> Stream:
    """The same weights from the first row to the last."""
    return _drawn("made: stationary", n_rows, [n_rows], seed)


def abrupt(n_rows: int = ROWS, seed: int = 1) -> Stream:
    """Half way, all weights are drawn anew."""
    return _drawn("made: abrupt change", n_rows, [n_rows // 2, n_rows], seed)


def _drawn(name: str, n_rows: int, ends: list[int], seed: int) -> Stream:
    """Numbers of different units and a category; each stretch of rows has weights of its own."""
    random = np.random.default_rng(seed)
    units, origins = 10.0 ** random.uniform(-2.0, 3.0, N_NUMBERS), random.normal(0.0, 3.0, N_NUMBERS)
    plain = random.normal(size=(n_rows, N_NUMBERS))
    codes = random.integers(0, N_VALUES, n_rows)
    latent, start = np.empty(n_rows), 0
    for end in ends:
        weights, effects = random.normal(0.0, 0.8, N_NUMBERS), random.normal(0.0, 0.8, N_VALUES)
        latent[start:end] = plain[start:end] @ weights + effects[codes[start:end]] - 0.5
        start = end
    probability = expit(latent)
    labels = (random.uniform(size=n_rows) < probability).astype(np.int64)
    numbers = units * (plain + origins)
    categories = {"kind": Category.of([f"kind {code}" for code in codes])}
    return Stream(name, numbers, categories, labels, 2, np.column_stack([1.0 - probability, probability]))


MADE: dict[str, Callable[[int], Stream]] = {"stationary": stationary, "abrupt": abrupt}
