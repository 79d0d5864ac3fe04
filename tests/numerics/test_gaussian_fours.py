"""A Gaussian target of four latents at once: against scipy, and against the product of two normal densities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bayou.numerics.fours import KEPT, MOVES, SAID_BY_FOUR, SPREADS, VALUES
from bayou.numerics.gaussian_fours import gaussian_four


@pytest.mark.parametrize("noise", [1e-12, 0.3, 1.0, 1e6])
def test_what_a_target_says_of_four(noise: float) -> None:
    rng = np.random.default_rng(3)
    said = np.full(SAID_BY_FOUR, np.nan)
    for y in (-2.0, 0.0, 5.0):
        means, variances = 3.0 * rng.normal(size=4), np.array([0.0, 1e-9, 0.7, 40.0])
        assert gaussian_four(y, noise, means, 0.75 * variances, 0.25 * variances, said)
        spread = np.sqrt(noise + variances)
        np.testing.assert_allclose(said[VALUES : VALUES + 4], stats.norm.logpdf(y, means, spread), rtol=1e-13)
        # the posterior of the latent, by the product of two normal densities
        kept = 1.0 / (1.0 + variances / noise)
        after = means + (1.0 - kept) * (y - means)
        np.testing.assert_allclose(said[KEPT : KEPT + 4], kept, rtol=1e-13)
        np.testing.assert_allclose(means + variances * said[MOVES : MOVES + 4], after, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(1.0 - variances * said[SPREADS : SPREADS + 4], kept, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("variance", [np.inf, np.nan, 1e301])
def test_what_is_out_of_all_measure_is_asked_alone(variance: float) -> None:
    assert not gaussian_four(
        0.0, 1.0, np.zeros(4), np.array([1.0, 1.0, variance, 1.0]), np.zeros(4), np.zeros(SAID_BY_FOUR)
    )
    assert not gaussian_four(0.0, 1e-305, *np.zeros((3, 4)), np.zeros(SAID_BY_FOUR))
