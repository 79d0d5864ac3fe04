"""Averages of counts over a normal log mean: against quadrature that makes no assumption, and at the edges."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from bayou.contracts import ScalarLikelihood
from bayou.likelihoods import NegativeBinomial, Poisson
from bayou.numerics.count_normal import in_reach
from bayou.numerics.pointers import scalar_kernels
from bayou.numerics.quadrature import log_evidence_by_quadrature
from bayou.rules import MomentMatching

LIKELIHOODS = [Poisson(), Poisson(2.5), *(NegativeBinomial(d) for d in (0.004, 0.1, 1.0, 8.0))]


def shape_of(likelihood: ScalarLikelihood) -> float:
    return 1.0 / likelihood.dispersion if isinstance(likelihood, NegativeBinomial) else math.inf


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_agrees_with_quadrature_anywhere(likelihood: ScalarLikelihood) -> None:
    random = np.random.default_rng(0)
    kernels = scalar_kernels(likelihood, MomentMatching())
    asked = 0
    for _ in range(300):
        mean, variance = random.uniform(-8.0, 10.0), 10.0 ** random.uniform(-8.0, 2.5)
        likely = math.exp(min(mean + random.normal() * min(math.sqrt(variance), 3.0), 16.0))
        y = float(random.choice([random.poisson(likely), random.integers(0, 50)]))
        if not in_reach(y, mean + 1.0, variance, shape_of(likelihood)):
            continue
        asked += 1
        given = y, mean, variance, likelihood.params
        expected = log_evidence_by_quadrature(kernels, *given)
        found = likelihood.log_evidence(kernels, *given)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-7, atol=1e-10 * math.sqrt(1.0 / variance))
        np.testing.assert_allclose(found[2:], expected[2:], rtol=1e-7, atol=1e-10)
    assert asked > 200


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_is_finite_at_the_edges(likelihood: ScalarLikelihood) -> None:
    kernels = scalar_kernels(likelihood, MomentMatching())
    counts, means = (0.0, 1.0, 1e6, 1e12), (-1000.0, -49.0, 0.0, 49.0, 300.0)
    for y, mean, variance in product(counts, means, (0.0, 1e-300, 1e-9, 1.0, 399.0, 1e6)):
        log_mass, slope, precision, kept = likelihood.log_evidence(kernels, y, mean, variance, likelihood.params)
        assert log_mass <= 1e-9, (y, mean, variance)
        assert np.isfinite([slope, precision, kept]).all(), (y, mean, variance)
        assert precision >= 0.0, (y, mean, variance)
        assert -1e-6 <= kept <= 1.0, (y, mean, variance)
