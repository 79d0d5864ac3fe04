"""What every rule must do, for every likelihood: against quadrature, optimisation, and at the extremes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

from bayou import rules
from bayou.contracts import Likelihood, Rule, VectorLikelihood
from bayou.likelihoods import Gaussian, Step
from bayou.numerics.jit import COMPILED
from bayou.numerics.pointers import scalar_kernels, vector_kernels
from bayou.numerics.sites import observe_move
from bayou.rules import Iterated, Linearized, MomentMatching, Variational
from tests.contracts.grid import LIKELIHOODS, RULES, SCALAR, draw_targets

SMOOTH = [likelihood for likelihood in SCALAR if likelihood.smooth]
VECTOR = [likelihood for likelihood in LIKELIHOODS if isinstance(likelihood, VectorLikelihood)]
MARGINALS = [(0.3, 1.0), (-1.2, 0.25), (0.8, 4.0)] if COMPILED else [(0.3, 1.0)]


def site(rule: Rule, likelihood: Likelihood, y: float, mean: float, variance: float) -> tuple[float, float, float]:
    kernels = scalar_kernels(likelihood, rule)
    return rule.site(kernels, float(y), float(mean), float(variance), likelihood.params)


def log_density(likelihood: Likelihood, y: float, f: float) -> float:
    return likelihood.log_density(float(y), float(f), likelihood.params)[0]


def targets(likelihood: Likelihood) -> Any:
    return np.unique(draw_targets(likelihood, 3, np.random.default_rng(0)))


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_a_spec_is_a_value(rule: Rule) -> None:
    assert eval(repr(rule), vars(rules)) == rule
    assert hash(rule) == hash(type(rule)())


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_every_rule_is_exact_on_a_gaussian(rule: Rule) -> None:
    _, slope, precision = site(rule, Gaussian(noise_variance=0.3), 1.7, 0.4, 2.5)
    assert precision == pytest.approx(1.0 / 0.3, rel=1e-10)
    assert slope == pytest.approx((1.7 - 0.4) / 0.3, rel=1e-10)


@pytest.mark.parametrize("likelihood", SCALAR, ids=repr)
@pytest.mark.parametrize(("mean", "variance"), MARGINALS)
def test_moment_matching_gives_the_moments_of_the_tilted_density(
    likelihood: Likelihood, mean: float, variance: float
) -> None:
    for y in targets(likelihood):
        value, slope, precision = site(MomentMatching(), likelihood, y, mean, variance)
        deviation = math.sqrt(variance)
        corners = [
            mean - 12 * deviation,
            min(0.0, mean),
            max(0.0, mean),
            mean + 12 * deviation,
        ]  # a step has its jump at 0

        def moment(power: int) -> float:
            def integrand(f: float) -> float:
                normal = math.exp(-0.5 * (f - mean) ** 2 / variance) / math.sqrt(2 * math.pi * variance)
                return (f - mean) ** power * normal * math.exp(log_density(likelihood, y, f))

            pieces = itertools.pairwise(corners)
            return sum(
                scipy.integrate.quad(integrand, a, b, epsabs=0, epsrel=1e-11, limit=200)[0] for a, b in pieces if b > a
            )

        mass = moment(0)
        shift = moment(1) / mass
        left = moment(2) / mass - shift**2
        assert value == pytest.approx(math.log(mass), abs=1e-8)
        assert 1.0 / (1.0 / variance + precision) == pytest.approx(left, rel=1e-6)
        assert variance * slope / (1.0 + precision * variance) == pytest.approx(shift, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("likelihood", SMOOTH, ids=repr)
@pytest.mark.parametrize(("mean", "variance"), MARGINALS)
def test_variational_averages_slope_and_curvature(likelihood: Likelihood, mean: float, variance: float) -> None:
    for y in targets(likelihood):
        _, slope, precision = site(Variational(), likelihood, y, mean, variance)
        nodes, weights = np.polynomial.legendre.leggauss(400)
        f = mean + 10.0 * math.sqrt(variance) * nodes
        weights = weights * np.exp(-0.5 * (f - mean) ** 2 / variance)
        derivatives = np.array([likelihood.log_density(float(y), float(at), likelihood.params)[1:] for at in f])
        wanted_slope, wanted_precision = weights @ derivatives / weights.sum()
        assert slope == pytest.approx(wanted_slope, rel=1e-6, abs=1e-8)
        assert precision == pytest.approx(max(wanted_precision, 0.0), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("likelihood", SMOOTH, ids=repr)
@pytest.mark.parametrize(("mean", "variance"), MARGINALS)
def test_iterated_moves_to_the_mode(likelihood: Likelihood, mean: float, variance: float) -> None:
    for y in targets(likelihood):
        _, slope, precision = site(Iterated(), likelihood, y, mean, variance)
        moved = mean + variance * slope / (1.0 + precision * variance)

        def cost(f: float) -> float:
            return 0.5 * (f - mean) ** 2 / variance - log_density(likelihood, y, f)

        best = scipy.optimize.minimize_scalar(cost, bracket=(mean, moved + 1e-3), options={"xtol": 1e-12})
        assert cost(moved) <= best.fun + 1e-12 * abs(best.fun)
        assert moved == pytest.approx(best.x, abs=1e-6)


@pytest.mark.parametrize("likelihood", SMOOTH, ids=repr)
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_a_sure_latent_gives_the_linearized_site(likelihood: Likelihood, rule: Rule) -> None:
    for y in targets(likelihood):
        _, slope, precision = site(rule, likelihood, y, 0.4, 1e-10)
        _, wanted_slope, wanted_precision = site(Linearized(), likelihood, y, 0.4, 1e-10)
        if not isinstance(rule, MomentMatching):
            assert precision == pytest.approx(wanted_precision, rel=1e-4, abs=1e-6)
        assert slope == pytest.approx(wanted_slope, rel=1e-6, abs=1e-6)


EXTREMES = [0.0, 1e-8, -1e-8, 1.0, -40.0, 40.0, 1e3, -1e3, 1e8, -1e8]
VARIANCES = [1e-20, 1e-8, 1e-2, 1.0, 1e2, 1e4, 1e8, 1e20]


@pytest.mark.parametrize("likelihood", SCALAR, ids=repr)
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_one_plus_precision_times_variance_is_positive_at_every_input(likelihood: Likelihood, rule: Rule) -> None:
    if rule.needs_slope and not likelihood.smooth:
        return  # refused when a learner is made: see test_learners
    low, high = likelihood.target_range
    legal = [y for y in (low, high, *targets(likelihood)) if math.isfinite(y)]
    kernels = scalar_kernels(likelihood, rule)
    for y in legal if COMPILED else legal[:1]:
        for mean in EXTREMES if COMPILED else EXTREMES[::4]:
            for variance in VARIANCES if COMPILED else VARIANCES[::3]:
                _, slope, precision = site(rule, likelihood, y, mean, variance)
                assert math.isfinite(slope), (y, mean, variance)
                assert math.isfinite(precision), (y, mean, variance)
                assert 1.0 + precision * variance > 0.0, (y, mean, variance)
                for blur, weight in ((0.0, 1.0), (0.0, 0.5), (0.3 * variance, 1.0)):
                    # the same, told as what it does to the part of the latent that is not blur
                    given = likelihood.params, float(y), mean, variance - blur, blur, weight
                    _, step, spread, kept = observe_move(kernels, *given)
                    share = weight / (1.0 + precision * blur)
                    assert kept > 0.0, given
                    near = {"rel": 1e-6, "abs": 1e-12}
                    assert kept == pytest.approx(1.0 / (1.0 + share * precision * (variance - blur)), **near), given
                    assert step == pytest.approx(share * slope * kept, **near), given
                    assert spread == pytest.approx(share * precision * kept, **near), given


@pytest.mark.parametrize("likelihood", VECTOR, ids=repr)
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_the_same_holds_for_several_latents(likelihood: Any, rule: Rule) -> None:
    k = likelihood.n_latents
    kernels = vector_kernels(likelihood, rule)
    rng = np.random.default_rng(1)
    for size, variance in [(1.0, 1.0), (30.0, 1.0), (1e3, 1e-8), (1e3, 1e4)] if COMPILED else [(1.0, 1.0)]:
        for y in range(k):
            slope, precision = np.empty(k), np.empty(k)
            mean, variances = size * rng.normal(size=k), variance * rng.uniform(0.5, 2.0, size=k)
            rule.vector_site(kernels, float(y), mean, variances, likelihood.params, slope, precision)
            assert np.all(np.isfinite(slope))
            assert np.all(np.isfinite(precision))
            assert np.all(1.0 + precision * variances > 0.0)


@pytest.mark.parametrize("likelihood", VECTOR, ids=repr)
def test_iterated_moves_several_latents_to_their_mode(likelihood: Any) -> None:
    k = likelihood.n_latents
    mean, variance = np.linspace(-1.0, 1.5, k), np.linspace(0.5, 3.0, k)
    slope, precision, scratch = np.empty(k), np.empty(k), np.empty(k)
    Iterated().vector_site(
        vector_kernels(likelihood, Iterated()), 1.0, mean, variance, likelihood.params, slope, precision
    )

    def cost(f: np.ndarray) -> float:
        value = likelihood.log_density(1.0, np.ascontiguousarray(f), likelihood.params, scratch, scratch.copy())
        return float(np.sum(0.5 * (f - mean) ** 2 / variance)) - value

    best = scipy.optimize.minimize(cost, mean, tol=1e-12)
    np.testing.assert_allclose(mean + variance * slope / (1.0 + precision * variance), best.x, atol=1e-5)


def test_step_gives_the_scalar_noise_free_perceptron() -> None:
    # de Oliveira and Alamino (10)-(11): z = -1: lambda = phi/Phi, k = lambda (lambda + z)
    from scipy.stats import norm

    ratio = norm.pdf(-1.0) / norm.cdf(-1.0)
    k = ratio * (ratio - 1.0)
    _, slope, precision = site(MomentMatching(), Step(), 1.0, -2.0, 4.0)
    gain = 1.0 / (1.0 + 4.0 * precision)
    assert gain * slope == pytest.approx(ratio / 2.0, rel=1e-12)
    assert gain == pytest.approx(1.0 - k, rel=1e-12)
