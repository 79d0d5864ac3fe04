"""When to look again: at doublings, then at even distances or, for sparse rows, at doublings alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bayou.estimators.doublings import stops


@pytest.mark.parametrize("weights", [np.zeros(0), np.ones(5000)])
def test_looks_are_at_doublings_and_then_at_even_distances(weights: np.ndarray) -> None:
    assert stops(0.0, weights, 5000) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072, 4096, 5000]
    assert stops(0.0, weights, 5000, math.inf) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 5000]


@pytest.mark.parametrize("weights", [np.zeros(0), np.ones(3000)])
def test_looks_go_on_from_what_was_seen(weights: np.ndarray) -> None:
    assert stops(5000.0, weights, 3000) == [120, 1144, 2168, 3000]
    assert stops(5000.0, weights, 3000, math.inf) == [3000]
    assert stops(6000.0, weights, 3000, math.inf) == [2192, 3000]
