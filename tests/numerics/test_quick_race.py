"""The quick race against the exact one, and against what needs no integral."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from bayou.contracts import Latent
from bayou.likelihoods import Softmax
from bayou.likelihoods.softmax import log_evidence
from bayou.numerics.jit import COMPILED
from bayou.numerics.quick_race import race, race_room, race_slopes

CASES = 60 if COMPILED else 4


def raced(y: int, mean: Any, variance: Any) -> tuple[Any, Any, Any]:
    room, k = race_room(mean.size), mean.size
    probability, slope, curvature = np.empty(k), np.empty(k), np.empty(k)
    race_slopes(y, race(mean, variance, probability, room), slope, curvature, room)
    return probability, slope, curvature


@pytest.mark.parametrize("k", [2, 3, 7, 20])
@pytest.mark.parametrize(
    ("low", "high"), [(1e-9, 1e-8), (0.01, 0.1), (0.2, 0.6), (1.0, 4.0), (4.0, 12.0), (0.01, 300.0)]
)
def test_it_is_the_exact_race_to_some_digits(k: int, low: float, high: float) -> None:
    random = np.random.default_rng(k)
    for _ in range(CASES):
        mean = 3.0 * random.normal(size=k)
        variance = np.exp(random.uniform(np.log(low), np.log(high), k))
        y = int(random.integers(k))
        slope, curvature, kept = np.empty(k), np.empty(k), np.empty(k)
        value = log_evidence(float(y), mean, variance, np.zeros(0), slope, curvature, kept)
        said = raced(y, mean, variance)
        exact = Softmax(k).probabilities(Latent(mean[None], variance[None]))[0]
        np.testing.assert_allclose(said[0], exact, atol=1e-5)
        assert np.log(said[0][y]) == pytest.approx(value, abs=5e-3)  # of classes that are improbable, too
        np.testing.assert_allclose(said[1], slope, atol=2e-3)
        np.testing.assert_allclose(variance * said[2], variance * curvature, atol=0.03)


def test_without_variance_it_is_the_softmax() -> None:
    mean = np.array([0.3, -1.0, 2.0])
    probability, slope, curvature = raced(1, mean, np.zeros(3))
    p = softmax(mean)
    np.testing.assert_allclose(probability, p, atol=1e-9)
    np.testing.assert_allclose(slope, np.eye(3)[1] - p, atol=2e-4)
    np.testing.assert_allclose(curvature, p * (1.0 - p), atol=2e-3)


@pytest.mark.parametrize("scale", [1e3, 1e10, 1e150])
def test_it_bears_any_size(scale: float) -> None:
    """Probabilities sum to one and everything is finite, however far apart or wide latents are."""
    for variance in (np.zeros(3), np.array([scale, 0.0, 1.0]), np.full(3, scale)):
        probability, slope, curvature = raced(0, np.array([-scale, 0.0, 0.5 * scale]), variance)
        assert probability.sum() == pytest.approx(1.0)
        assert np.isfinite([probability, slope, curvature]).all()
        assert probability.min() > 0.0
