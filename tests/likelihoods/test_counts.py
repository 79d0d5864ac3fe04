"""Counts: what dispersion and exposure mean, and large rates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from bayou.contracts import Latent
from bayou.errors import InvalidSpec
from bayou.likelihoods import NegativeBinomial, Poisson
from bayou.numerics.pointers import likelihood_kernels

PROBABILITIES = np.array([1e-6, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0 - 1e-6])


@pytest.mark.parametrize("rate", [1e-3, 0.7, 12.0, 1e3, 4e4])
def test_quantiles_without_doubt_are_scipys(rate: float) -> None:
    latent = Latent(np.array([math.log(rate / 2.0)]), np.zeros(1))
    assert Poisson(2.0).quantiles(latent, PROBABILITIES)[0].tolist() == stats.poisson.ppf(PROBABILITIES, rate).tolist()
    got = NegativeBinomial(0.2).quantiles(latent, PROBABILITIES)[0]
    want = stats.nbinom.ppf(PROBABILITIES, 5.0, 1.0 / (1.0 + 0.1 * rate))
    assert got == pytest.approx(want, rel=1e-8, abs=0.0)


@pytest.mark.parametrize("rate", [1e6, 1e9, 1e12])
def test_quantiles_of_a_large_rate_are_those_of_a_normal(rate: float) -> None:
    """With the first term of Cornish and Fisher for the skewness; scipy errs in these tails."""
    latent = Latent(np.array([math.log(rate)]), np.zeros(1))
    z = stats.norm.ppf(PROBABILITIES)
    want = rate + math.sqrt(rate) * z + (z**2 - 1.0) / 6.0
    got = Poisson().quantiles(latent, PROBABILITIES)[0]
    assert np.abs(got - want).max() <= 1.0 + 10.0 / math.sqrt(rate) + 1e-14 * rate * math.log(rate)


@pytest.mark.parametrize("spec", [Poisson(), NegativeBinomial(0.1), NegativeBinomial(3.0)], ids=repr)
@pytest.mark.parametrize(("mean", "variance"), [(1.0, 0.3), (2.0, 2.0), (-1.0, 1.0)])
def test_quantiles_invert_the_summed_probabilities(
    spec: Poisson | NegativeBinomial, mean: float, variance: float
) -> None:
    counts = np.arange(300.0)
    latent = Latent(np.full(counts.size, mean), np.full(counts.size, variance))
    below = np.cumsum(np.exp(spec.log_probability(counts, latent)))
    wanted = PROBABILITIES[below[-1] - 1e-6 > PROBABILITIES]
    got = spec.quantiles(Latent(np.array([mean]), np.array([variance])), wanted)[0]
    assert got.tolist() == np.searchsorted(below, wanted).tolist()


@pytest.mark.parametrize("mean", [14.0, 30.0, 300.0])
def test_a_large_rate_is_as_uncertain_as_its_logarithm(mean: float) -> None:
    """At such rates the count is its rate, which is log-normal, up to 1 / sqrt(rate)."""
    got = Poisson().quantiles(Latent(np.array([mean]), np.array([0.25])), np.array([0.025, 0.5, 0.975]))[0]
    want = np.exp(mean + 0.5 * stats.norm.ppf([0.025, 0.5, 0.975]))
    assert got == pytest.approx(want, rel=2e-5)


def test_beyond_all_numbers_is_infinite() -> None:
    latent = Latent(np.array([1e4, -1e4]), np.array([1.0, 1.0]))
    assert Poisson().quantiles(latent, np.array([0.5])).tolist() == [[math.inf], [0.0]]
    mean, variance = Poisson().moments(latent)
    assert mean.tolist() == variance.tolist() == [math.inf, 0.0]


@pytest.mark.parametrize("y", [0.0, 4.0, 300.0, 1e5])
@pytest.mark.parametrize("f", [-2.0, 1.0, 6.0, 11.5])
def test_without_dispersion_it_is_poisson(y: float, f: float) -> None:
    of_poisson = Poisson().log_density(y, f, Poisson().params)
    spec = NegativeBinomial(dispersion=1e-13)
    scale = 1.0 + abs(y) + math.exp(f)
    assert spec.log_density(y, f, spec.params) == pytest.approx(of_poisson, rel=1e-7, abs=1e-7 + 1e-12 * scale**2)


@pytest.mark.parametrize(("y", "dispersion"), [(1e6, 1.0), (1e6, 1e-6), (1e9, 0.3)])
def test_large_counts_keep_their_digits(y: float, dispersion: float) -> None:
    """At its largest, at mean y, the density is about that of a normal of the same variance."""
    spec = NegativeBinomial(dispersion)
    got = spec.log_density(y, math.log(y), spec.params)
    if dispersion < 1e-3:
        want = stats.norm.logpdf(0.0, 0.0, math.sqrt(y + dispersion * y**2))
        assert got[0] == pytest.approx(want, abs=1e-5)
    else:  # the count over its mean is a gamma variable
        shape = 1.0 / dispersion
        assert got[0] == pytest.approx(stats.gamma.logpdf(1.0, shape, 0.0, dispersion) - math.log(y), abs=1e-5)
    assert got[1] == pytest.approx(0.0, abs=1e-6 * y)


@pytest.mark.parametrize("mean", [-2.0, 3.0])
def test_expected_log_density_of_a_poisson_is_that_of_draws(mean: float) -> None:
    spec, y, variance = Poisson(2.0), 4.0, 0.3
    value, slope, curvature = spec.expected_log_density(likelihood_kernels(spec), y, mean, variance, spec.params)
    f = mean + math.sqrt(variance) * np.random.default_rng(3).normal(size=400_000)
    rates = 2.0 * np.exp(f)
    for got, draws in (
        (value, stats.poisson.logpmf(y, rates)),
        (slope, y - rates),
        (curvature, rates),
    ):
        assert abs(got - draws.mean()) <= 5.0 * draws.std() / math.sqrt(draws.size)


def test_what_is_no_spec_says_why() -> None:
    with pytest.raises(InvalidSpec, match=r"`exposure` must be positive; got 0\."):
        Poisson(0)
    with pytest.raises(InvalidSpec, match=r"`dispersion` must be positive; got inf\."):
        NegativeBinomial(math.inf)
