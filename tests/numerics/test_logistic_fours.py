"""The logistic function of four normal variables at once: against integrals, and against one at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bayou.numerics.fours import KEPT, MOVES, SAID_BY_FOUR, SPREADS, VALUES
from bayou.numerics.logistic_fours import FARTHEST, logistic_four
from bayou.numerics.logistic_normal import WIDE, logistic_normal
from tests.numerics.test_logistic_normal import expected

VARIANCES = (0.0, 1e-12, 1e-6, 0.003, 0.02, 0.1, 0.143, 0.144, 0.3, 0.9, 2.0, 5.0, 8.9, WIDE - 1e-9)


def asked(y: float, per_scale: float, means: Any, variances: Any) -> dict[str, Any]:
    said, total = np.full(SAID_BY_FOUR, np.nan), np.array(variances)
    assert logistic_four(y, per_scale, np.array(means), 0.75 * total, 0.25 * total, said)
    return {
        name: said[place : place + 4]
        for name, place in (("value", VALUES), ("step", MOVES), ("spread", SPREADS), ("kept", KEPT))
    }


@pytest.mark.parametrize("variance", [variance for variance in VARIANCES if variance >= 1e-6])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_against_adaptive_quadrature(variance: float, y: float) -> None:
    """Of four with the same mean and variances up to this one: each is what it is alone."""
    for mean in (-6.0, -1.3, 0.0, 0.4, 3.0, 20.0):
        variances = variance * np.array([1.0, 0.5, 1e-3, 0.9])
        said = asked(y, 1.0, [mean] * 4, variances)
        for i in (0, 1, 3):
            mass, slope, bend = (expected(y * mean, variances[i], power) for power in range(3))
            first, curvature = slope / mass, (slope / mass) ** 2 - bend / mass
            assert said["value"][i] == pytest.approx(math.log(mass), rel=1e-10, abs=1e-11)
            assert said["step"][i] == pytest.approx(y * first, rel=1e-10)
            assert said["spread"][i] == pytest.approx(curvature, rel=1e-8, abs=1e-10 * first)
            assert said["kept"][i] == pytest.approx(1.0 - variances[i] * curvature, rel=1e-9)


@pytest.mark.parametrize("y", [-1.0, 1.0])
@pytest.mark.parametrize("per_scale", [1.0, 0.3, 4.0])
def test_four_are_told_what_each_is_told_alone(y: float, per_scale: float) -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        variances = rng.choice(VARIANCES, size=4) * rng.uniform(0.5, 1.0, size=4) / per_scale**2
        means = rng.choice([0.1, 1.0, 5.0, 30.0]) * rng.normal(size=4) / per_scale
        said = asked(y, per_scale, means, variances)
        for i, (mean, variance) in enumerate(zip(means, variances, strict=True)):
            value, first, second = logistic_normal(y * mean * per_scale, variance * per_scale**2)
            curvature = max(first**2 - second, 0.0) * per_scale**2
            assert said["value"][i] == pytest.approx(value, rel=1e-9, abs=1e-10)
            assert said["step"][i] == pytest.approx(y * first * per_scale, rel=1e-8)
            assert said["spread"][i] == pytest.approx(curvature, rel=1e-7, abs=1e-8 * per_scale**2)
            assert said["kept"][i] == pytest.approx(1.0 - variance * curvature, rel=1e-7)


def test_of_what_is_known_exactly_nothing_is_lost() -> None:
    """No variance: the logistic function itself, also where targets are next to impossible."""
    means = np.array([-140.0, -1.0, 0.0, 140.0])
    said = asked(1.0, 1.0, means, np.zeros(4))
    np.testing.assert_allclose(said["value"], -np.logaddexp(0.0, -means), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(said["step"], 1.0 / (1.0 + np.exp(means)), rtol=1e-13)
    np.testing.assert_array_equal(said["kept"], 1.0)


@pytest.mark.parametrize(
    ("means", "variances"),
    [([0.0] * 4, [0.1, 0.1, WIDE, 0.1]), ([0.0, FARTHEST, 0.0, 0.0], [0.1] * 4), ([0.0] * 3 + [math.nan], [0.1] * 4)],
    ids=["wide", "far", "nan"],
)
def test_where_one_is_out_of_reach_none_is_told(means: Any, variances: Any) -> None:
    assert not logistic_four(1.0, 1.0, np.array(means), np.array(variances), np.zeros(4), np.zeros(SAID_BY_FOUR))
