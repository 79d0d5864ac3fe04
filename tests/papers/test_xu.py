"""Xu's harmony learning: the worlds, the algorithms to the letter, the limits, and the claims."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from bayou.mixtures.gaussians import log_joint, with_covariance
from bayou.mixtures.labels import yang
from bayou.numerics.jit import COMPILED
from bayou.papers.claims import judge
from bayou.papers.ensembles import Estimate
from bayou.papers.xu import counting, factors, identities, literal, resolution, selection
from bayou.papers.xu.world import Clusters, Sample, Subspaces, nearest, standardised

TWO = Sample(
    np.concatenate([np.random.default_rng(0).normal(centre, 1.0, size=(150, 2)) for centre in (0.0, 8.0)]),
    np.repeat([0, 1], 150),
)


# --- worlds


@pytest.mark.parametrize("uniform", [False, True])
def test_clusters_are_as_far_apart_as_is_said(uniform: bool) -> None:
    """By the moments of many rows: 50,000 per cluster have standard errors below 1 %."""
    rows, labels = Clusters(2, 3, 150_000, 4.0, uniform).draw(0)
    parts = [rows[labels == c] for c in range(3)]
    means = np.stack([part.mean(axis=0) for part in parts])
    roots = np.stack([np.linalg.cholesky(np.cov(part.T)) for part in parts])
    assert nearest(means, roots) == pytest.approx(4.0, rel=0.02)
    values = np.concatenate([np.linalg.eigvalsh(np.cov(part.T)) for part in parts])
    assert 0.49 < values.min() < values.max() < 2.05
    whitened = [
        np.linalg.solve(*pair) for pair in zip(roots, ((part - part.mean(axis=0)).T for part in parts), strict=True)
    ]
    farthest = float(np.sqrt(max(np.max(np.sum(part**2, axis=0)) for part in whitened)))
    assert (farthest < 2.6) == uniform  # the corner of a square of unit variance is at the square root of 6


def test_worlds_follow_from_their_seed() -> None:
    for world in (Clusters(2, 4, 50, 5.0), Subspaces(6, (1, 2), 50)):
        np.testing.assert_array_equal(world.draw(3).rows, world.draw(3).rows)
        assert not np.array_equal(world.draw(3).rows, world.draw(4).rows)
    assert nearest(np.zeros((1, 3)), np.eye(3)[None]) == math.inf


def test_subspaces_have_their_factors() -> None:
    """Eigenvalues of 20,000 rows each: 1 but for as many as there are factors, which are 7 to 13."""
    rows, labels = Subspaces(8, (1, 3), 40_000).draw(0)
    for cluster, m in enumerate((1, 3)):
        values = np.linalg.eigvalsh(np.cov(rows[labels == cluster].T))[::-1]
        assert np.all((values[:m] > 6.5) & (values[:m] < 13.5))
        np.testing.assert_allclose(values[m:], 1.0, atol=0.08)


# --- the letter


def test_raw_weights_are_those_of_yang_where_none_is_negative() -> None:
    joint = np.random.default_rng(0).normal(scale=0.3, size=(20, 4))
    for matching in (0.0, 0.5, 1.0):
        np.testing.assert_allclose(literal.raw_weights(joint, matching), yang(joint, matching).weight, rtol=1e-12)


def test_raw_weights_may_be_negative_but_not_below_the_least() -> None:
    a = np.linspace(-60.0, 60.0, 20_001)
    w = literal.raw_weights(np.stack([a, np.zeros_like(a)], axis=1))
    assert w.min() == pytest.approx(identities.least_weight(), abs=1e-6)
    assert w.min() < -0.09
    assert np.isfinite(literal.raw_weights(np.array([[0.0, -1e5], [-1e300, 0.0]]))).all()


def test_a_wrong_weight_is_no_gradient() -> None:
    """The comparison with differences can fail: clipped weights are another direction."""
    state = identities.some_state(0)
    assert identities.error_of_gradient(state, 0.0) < 1e-7
    by_matching = identities.gradient(state, 1.0)
    assert np.max(np.abs(by_matching - identities.differences(state, 0.0))) > 1e-2


def test_the_flow_row_by_row_is_a_step_along_the_weights() -> None:
    """One row, by arrays: log shares, means and covariances."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1, 3))
    share, mean = rng.dirichlet(np.ones(4)), rng.normal(size=(4, 3))
    roots = rng.normal(size=(4, 3, 3))
    covariance = np.einsum("kij,klj->kil", roots, roots) + np.eye(3)
    joint = np.array(
        [[np.log(share[k]) + multivariate_normal(mean[k], covariance[k]).logpdf(rows[0]) for k in range(4)]]
    )
    w = literal.raw_weights(joint)[0]
    error = rows[0] - mean
    wanted = (
        np.log(share) + 0.1 * (w - share),
        mean + 0.1 * w[:, None] * error,
        covariance + 0.1 * w[:, None, None] * (np.einsum("ki,kj->kij", error, error) - covariance),
    )
    found = np.log(share), mean.copy(), covariance.copy()
    assert literal.follow(rows, np.array([0]), 0.1, *found) == 1
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_the_flow_row_by_row_ends_where_there_is_no_covariance() -> None:
    flat = np.zeros((1, 2, 2))
    assert literal.follow(np.ones((3, 2)), np.arange(3), 0.1, np.zeros(1), np.zeros((1, 2)), flat) == 0


@pytest.mark.parametrize("name", ["A", "C", "ONE"])
def test_negative_weights_give_no_covariance_with_the_first_step(name: str) -> None:
    for seed in range(5):
        rows = standardised(selection.SETS[name].draw(seed).rows)
        found = literal.fixed_point(rows, literal.broad(rows, 10, np.random.default_rng(seed)))
        assert found.broke_at == 1


def test_the_letter_finds_what_it_starts_from() -> None:
    """Two clusters far apart, and two to start with, near to them: nothing is to vanish."""
    rows = standardised(TWO.rows)
    start = with_covariance(
        np.full(2, 0.5),
        np.stack([rows[:150].mean(axis=0), rows[150:].mean(axis=0)]),
        np.stack([np.cov(rows[:150].T), np.cov(rows[150:].T)]),
    )
    assert literal.fixed_point(rows, start) == (2, None)
    assert literal.online(rows, start, np.random.default_rng(0)) == (2, None)
    assert literal.without_moves(rows, start) == (2, None)


def test_harmony_of_a_factor_is_what_sampling_says() -> None:
    """E log q(x | y) q(y) over x ~ N(0, s) and y given x: 400,000 draws, a standard error below 0.003."""
    s, noise, rng = 5.0, 1.0, np.random.default_rng(0)
    for loading in (0.5, 2.0, 4.0):
        x = rng.normal(0.0, math.sqrt(s), 400_000)
        gain, spread = loading / (loading + noise), loading * noise / (loading + noise)
        y = gain * x + math.sqrt(spread) * rng.normal(size=x.size)
        value = np.mean(norm.logpdf(x, y, math.sqrt(noise)) + norm.logpdf(y, 0.0, math.sqrt(loading)))
        rest = -math.log(2.0 * math.pi) - 0.5 * math.log(noise) - 0.5  # what does not depend on the loading
        assert value == pytest.approx(factors.harmony_of_factor(loading, s, noise) + rest, abs=0.01)


def test_harmony_keeps_factors_beyond_four_times_the_noise() -> None:
    for s in (3.0, 3.9):
        assert literal.literal_loading(s, 1.0) == factors.climbed(s) == 0.0
    for s in (4.1, 5.0, 8.0):
        assert literal.literal_loading(s, 1.0) == pytest.approx(factors.climbed(s), abs=1e-6)
    assert literal.literal_loading(4.1, 1.0) == pytest.approx(1.37, abs=5e-3)
    assert literal.literal_loading(41.0, 10.0) == pytest.approx(13.7, abs=5e-2)


def test_factors_to_the_letter_are_stationary() -> None:
    """Loadings and noise together, by differences of the harmony of a factor analyser; and its noise is too low."""
    s = np.array([30.0, 12.0, 1.2, 1.1, 1.0, 0.9, 0.8])
    m, noise = literal.literal_factors(s, 3)
    assert m == 2

    def harmony(numbers: np.ndarray) -> float:
        loadings, psi = numbers[:2], numbers[2]
        kept = np.sum(np.log(loadings) + s[:2] / (loadings + psi))
        return float(-0.5 * kept - 0.5 * s.size * np.log(psi) - 0.5 * s[2:].sum() / psi)

    numbers = np.array([*(literal.literal_loading(value, noise) for value in s[:2]), noise])
    for place in range(3):
        step = np.zeros(3)
        step[place] = 1e-5
        assert (harmony(numbers + step) - harmony(numbers - step)) / 2e-5 == pytest.approx(0.0, abs=1e-6)
    assert 0.6 < noise < 0.9  # five sevenths of the mean of the rest, and a little


def test_weak_factors_are_lost_to_the_letter() -> None:
    """Eigenvalues of 3 beside a noise of 1, known exactly."""
    assert literal.literal_factors(np.array([3.0, 3.0, *[1.0] * 8]), 5)[0] == 0
    assert literal.literal_factors(np.array([8.0, 8.0, *[1.0] * 8]), 5)[0] == 2


# --- resolution


def test_harmony_of_two_and_its_gradient() -> None:
    """By scipy's densities, and by differences."""
    points = resolution.population(3.0, 0.3)
    assert points.weight.sum() == pytest.approx(1.0, abs=1e-12)
    numbers = np.array([-0.4, -1.2, 1.9, 0.2, -0.3])
    share = 1.0 / (1.0 + math.exp(0.4))
    joint = np.stack(
        [
            math.log(share) + norm.logpdf(points.x, -1.2, math.exp(0.2)),
            math.log(1.0 - share) + norm.logpdf(points.x, 1.9, math.exp(-0.3)),
        ],
        axis=1,
    )
    p = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    value, gradient = resolution.harmony(numbers, points)
    assert value == pytest.approx(float(points.weight @ np.sum(p * joint, axis=1)), rel=1e-12)
    for place in range(5):
        step = np.zeros(5)
        step[place] = 1e-5
        difference = resolution.harmony(numbers + step, points)[0] - resolution.harmony(numbers - step, points)[0]
        assert gradient[place] == pytest.approx(difference / 2e-5, abs=1e-8)


def test_limits_of_resolution() -> None:
    assert resolution.limit(0.5) == pytest.approx(3.364, abs=1e-3)
    assert resolution.limit(0.2) == pytest.approx(3.027, abs=1e-3)
    assert resolution.limit(0.5, held=True) == pytest.approx(2.0 * math.sqrt(3.0), abs=1e-9)


def test_held_clusters_have_a_closed_form() -> None:
    """E log q(x, l) under itself is minus the entropy of share and normal, whatever the distance."""
    for share in (0.5, 0.2):
        entropy = -share * math.log(share) - (1.0 - share) * math.log(1.0 - share)
        for apart in (2.0, 4.0):
            wanted = 0.5 * math.log1p(share * (1.0 - share) * apart**2) - entropy
            found = resolution.gain(resolution.population(apart, share), apart, share, held=True)
            assert found == pytest.approx(wanted, abs=1e-10)


def test_a_small_cluster_that_is_too_near_vanishes() -> None:
    assert resolution.gain(resolution.population(2.4, 0.2), 2.4, 0.2) == -math.inf


def test_a_cut_is_a_maximum_of_the_harmony() -> None:
    """One normal cluster, cut in halves: the climb ends at two, which have less harmony than one."""
    points = resolution.population(0.0, 0.5)
    halves = np.array([0.0, -0.8, 0.8, math.log(0.6), math.log(0.6)])
    best = minimize(lambda numbers: [-part for part in resolution.harmony(numbers, points)], halves, jac=True)
    assert np.max(np.abs(best.jac)) < 1e-4
    assert best.x[2] - best.x[1] > 1.0
    assert np.linalg.eigvalsh(np.linalg.inv(best.hess_inv)).min() > 1e-3
    one = -0.5 * math.log(2.0 * math.pi * math.e)
    assert -best.fun < one - 0.1


def test_the_cost_of_a_cut_by_quadrature() -> None:
    """A grid across the cut is good to its spacing."""
    found = resolution.cost_of_cut(resolution.population(0.0, 0.5))
    assert found == pytest.approx(math.log(2.0) + 0.5 * math.log(1.0 - 2.0 / math.pi), abs=0.01)


# --- counting


def test_criteria_count_two() -> None:
    assert counting.criteria(standardised(TWO.rows), 0) == (2, 2)


def test_icl_counts_fewer_where_clusters_overlap() -> None:
    """Two normals, 2.8 apart, 2,000 rows: density needs both, labels are of neither."""
    rows = resolution.draw(2_000, 0.5, 0).at(2.8).x[:, None]
    assert counting.criteria(standardised(rows), 0) == (2, 1)


@pytest.mark.skipif(not COMPILED, reason="ensembles need compiled kernels")
def test_every_method_counts() -> None:
    found = counting.counts(TWO, 0)
    assert set(found) == set(counting.METHODS)
    ours = (counting.OURS, counting.STREAM, counting.SORTED, counting.MATCHING, counting.BIC, counting.ICL)
    assert [found[method] for method in ours] == [2] * 6
    assert set(counting.counts(TWO, 0, (counting.RIVALS,))) == {counting.RIVALS}


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="many mixtures need compiled kernels")
@pytest.mark.parametrize("name", ["A", "ONE", "C", "S5"])
def test_the_number_is_found_in_samples_that_no_claim_has_looked_at(name: str) -> None:
    """In 11 of 12 at least: one that is right in 70 % would do so once in 12."""
    world = selection.SETS[name]
    found = [counting.counts(world.draw(9000 + seed), seed, (counting.OURS,)) for seed in range(12)]
    assert sum(one[counting.OURS] == world.k for one in found) >= 11


def test_peers_are_compared_over_all_sets() -> None:
    shares = {(method, name): Estimate(0.5, 0.1) for method in counting.METHODS for name in selection.SETS}
    assert selection.above_peers(shares).mean == 0.0
    shares[counting.OURS, "A"] = Estimate(0.6, 0.1)
    assert selection.above_peers(shares).mean == 1.0
    shares[counting.BIC, "U"] = Estimate(0.9, 0.1)
    assert selection.above_peers(shares).mean == 0.75


def test_majorities() -> None:
    labels, found = np.array([0, 0, 1, 1, 1]), np.array([1, 1, 0, 0, 1])
    assert factors.majority(labels, found, 3) == [1, 0, -1]


@pytest.mark.skipif(not COMPILED, reason="ensembles need compiled kernels")
def test_factors_that_are_not_those_of_the_world_are_noticed() -> None:
    sample = factors.SETS["SMALL"].draw(0)
    assert factors.hits(sample, (1, 2, 3), 0) == (True, True, True)
    assert factors.hits(sample, (1, 2, 2), 0).factors is False
    assert factors.hits(sample, (1, 2, 3, 3), 0).clusters is False


# --- claims


def test_a_claim_of_selection_can_fail() -> None:
    """A method that is right in 60 % of 24 samples is not one that is right in 95 %."""
    claim = selection.COUNTED["B"]
    assert judge(claim, None, selection.share([True] * 23 + [False])).holds
    assert not judge(claim, None, selection.share([True] * 14 + [False] * 10)).holds


def test_densities_of_the_identities_are_those_of_the_mixture() -> None:
    """What is told of a mixture makes it again."""
    clusters = identities.some_state(1).clusters
    again = identities.made_of(identities.told(clusters))
    rows = np.random.default_rng(0).normal(size=(5, identities.D))
    np.testing.assert_allclose(log_joint(again, rows), log_joint(clusters, rows), rtol=1e-12)
