"""Angles, large and small."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bayou.numerics.angles import angle


@pytest.mark.parametrize("size", [1e-12, 1e-8, 1e-3, 1.0, 3.0, math.pi - 1e-9, math.pi])
def test_an_angle_of_known_size_in_the_plane(size: float) -> None:
    turned = 7.0 * np.array([math.cos(size), math.sin(size)])
    assert angle(np.array([0.1, 0.0]), turned) == pytest.approx(size, rel=1e-12, abs=1e-15)


def test_it_is_the_arc_cosine_where_that_has_its_digits() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 40))
    cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert angle(one, other) == pytest.approx(math.acos(cosine), rel=1e-12)


def test_without_a_direction_it_is_right() -> None:
    assert angle(np.zeros(3), np.ones(3)) == 0.5 * math.pi
