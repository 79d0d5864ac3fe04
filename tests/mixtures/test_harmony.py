"""Harmony learning: identities by finite differences, evidence by the chain rule, how many clusters it finds."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from scipy.special import logsumexp

from bayou.mixtures.evidence import Prior, Statistics, first_prior, learnt_prior, log_evidence, log_shares
from bayou.mixtures.gaussians import collect, gaussians_of, log_joint, with_covariance
from bayou.mixtures.harmony import RATE, Mixture, broad_start, flow, learn_mixture, objective
from bayou.mixtures.labels import weigh, yang
from bayou.mixtures.points import flow_points, look, objective_of_points
from bayou.mixtures.streaming import begin_stream
from bayou.numerics.jit import COMPILED
from tests.mixtures.made import clusters

PRIOR = Prior(certainty=0.3, strength=2.0, scale=0.5)


def standardised(rows: np.ndarray) -> np.ndarray:
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def some_mixture(rows: np.ndarray, k: int, seed: int = 0) -> Mixture:
    rng = np.random.default_rng(seed)
    statistics = collect(rows, rng.dirichlet(np.ones(k), len(rows)))
    return Mixture(statistics, gaussians_of(statistics, PRIOR), PRIOR)


def test_evidence_is_that_of_one_point_after_the_other() -> None:
    """The predictive of a normal and inverse Wishart belief is a Student t: their product is the evidence."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(7, 3)) + 1.0
    d, total = 3, 0.0
    for n in range(len(rows)):
        before = rows[:n]
        certainty, dof = PRIOR.certainty + n, d + 1.0 + PRIOR.strength + n
        mean = before.sum(axis=0) / certainty
        scatter = PRIOR.strength * PRIOR.scale * np.eye(d) + before.T @ before - certainty * np.outer(mean, mean)
        free = dof - d + 1.0
        shape = scatter * (certainty + 1.0) / (certainty * free)
        total += scipy.stats.multivariate_t(mean, shape, df=free).logpdf(rows[n])
    assert log_evidence(collect(rows, np.ones((7, 1))), PRIOR)[0] == pytest.approx(total, rel=1e-10)


def test_evidence_of_nothing_is_one() -> None:
    nothing = Statistics(np.zeros(1), np.zeros((1, 4)), np.zeros((1, 4, 4)))
    assert log_evidence(nothing, PRIOR)[0] == pytest.approx(0.0, abs=1e-12)


def test_shares_are_those_of_one_label_after_the_other() -> None:
    counts, seen, total = np.array([3, 1, 2]), np.zeros(3), 0.0
    for label in (0, 2, 0, 1, 2, 0):
        total += np.log((seen[label] + 1.0) / (seen.sum() + 3.0))
        seen[label] += 1
    assert log_shares(counts.astype(float)) == pytest.approx(total, rel=1e-12)


def test_densities_are_scipys() -> None:
    rows = np.random.default_rng(0).normal(size=(20, 3))
    found = some_mixture(rows, 4).clusters
    wanted = np.stack(
        [
            np.log(share) + scipy.stats.multivariate_normal(mean, covariance).logpdf(rows)
            for share, mean, covariance in zip(found.share, found.mean, found.covariance, strict=True)
        ],
        axis=1,
    )
    np.testing.assert_allclose(log_joint(found, rows), wanted, rtol=1e-9)


def test_harmony_is_likelihood_less_entropy() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 2))
    labels = yang(log_joint(some_mixture(rows, 3).clusters, rows), 0.4)
    p = labels.probability
    assert labels.harmony == pytest.approx(labels.log_likelihood + float(np.sum(p * np.log(p))), rel=1e-10)
    np.testing.assert_allclose(labels.weight.sum(axis=1), 1.0)


@pytest.mark.parametrize("matching", [0.0, 0.3, 1.0])
def test_weights_are_the_gradient(matching: float) -> None:
    """Of matching L + (1 - matching) H in log q(x, l), by differences; where nothing is clipped."""
    joint = np.random.default_rng(0).normal(scale=0.3, size=(4, 3))

    def risk(values: np.ndarray) -> float:
        p = np.exp(values - logsumexp(values, axis=1, keepdims=True))
        return float(matching * logsumexp(values, axis=1).sum() + (1.0 - matching) * np.sum(p * values))

    step, gradient = 1e-6, np.empty_like(joint)
    for place in np.ndindex(joint.shape):
        moved = np.zeros_like(joint)
        moved[place] = step
        gradient[place] = (risk(joint + moved) - risk(joint - moved)) / (2.0 * step)
    np.testing.assert_allclose(yang(joint, matching).weight, gradient, atol=1e-7)


def test_matching_at_full_rate_is_expectation_maximisation() -> None:
    """scikit-learn's, from the same start; the prior is taken so weak that it is none."""
    from sklearn import mixture as mixture_module

    rows = standardised(clusters(2, 3, 300, 5.0, 0)[0])
    start = some_mixture(rows, 3)
    weak = Prior(1e-9, 1e-9, 1e-3)
    mixture = Mixture(start.statistics, gaussians_of(start.statistics, weak), weak)
    peer = mixture_module.GaussianMixture(
        3,
        max_iter=5,
        tol=0.0,
        reg_covar=0.0,
        weights_init=mixture.clusters.share,
        means_init=mixture.clusters.mean,
        precisions_init=np.linalg.inv(mixture.clusters.covariance),
    )
    with pytest.warns(Warning, match="did not converge"):
        peer.fit(rows)
    found = flow(rows, mixture, 1.0, rate=1.0, steps=5).clusters
    np.testing.assert_allclose(found.mean, peer.means_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.covariance, peer.covariances_, rtol=1e-5, atol=1e-8)


def test_compiled_points_do_what_arrays_do() -> None:
    rows = standardised(clusters(3, 2, 80, 5.0, 0)[0])
    start = some_mixture(rows, 2)
    belief = begin_stream(start, rows)
    joint, weight = np.empty(2), np.empty(2)
    wanted = log_joint(start.clusters, rows)
    for row in (0, 17):
        look(belief, rows[row], joint)
        np.testing.assert_allclose(joint, wanted[row], rtol=1e-9)
        weigh(joint, 0.2, weight)
        np.testing.assert_allclose(weight, yang(wanted, 0.2).weight[row], rtol=1e-9)
    assert objective_of_points(belief, rows, 0.3, np.array(PRIOR)) == pytest.approx(
        objective(rows, start, 0.3), rel=1e-9
    )
    flow_points(belief, rows, 4, RATE, 0.2, np.array(PRIOR))
    moved = flow(rows, start, 0.2, RATE, 4, settle=False)
    np.testing.assert_allclose(belief.mean, moved.clusters.mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(belief.s2, moved.statistics.s2, rtol=1e-8, atol=1e-8)


def test_columns_may_be_scaled_and_rows_permuted() -> None:
    """The number of clusters does not know of units; of the start it might, so that is the same."""
    rows = clusters(2, 3, 240, 5.0, 1)[0]
    counts = [
        learn_mixture(standardised(version), 8, 0.0, np.random.default_rng(0)).statistics.n.size
        for version in (rows, rows * [1e-6, 1e6] + [5.0, -3e8], rows[np.random.default_rng(2).permutation(len(rows))])
    ]
    assert counts == [3, 3, 3]


def test_learnt_priors_are_of_the_size_of_clusters() -> None:
    rows = np.random.default_rng(0).normal(scale=0.2, size=(200, 2))
    prior = learnt_prior(collect(rows, np.ones((200, 1))), first_prior(10, 2))
    assert prior.scale == pytest.approx(0.04, rel=0.2)


CASES = {"A": (2, 4, 400, 5.0), "C": (5, 4, 300, 5.0), "one": (3, 1, 200, 5.0), "few": (5, 3, 90, 5.0)}


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="many mixtures need compiled kernels")
@pytest.mark.parametrize("case", CASES)
def test_the_number_of_clusters_is_found(case: str) -> None:
    """In 8 of 8 data sets; a method that is right in 70 % would do so once in 17."""
    d, k, n, separation = CASES[case]
    found = [
        learn_mixture(standardised(clusters(d, k, n, separation, seed)[0]), 10, 0.0, np.random.default_rng(seed))
        for seed in range(8)
    ]
    assert [mixture.statistics.n.size for mixture in found] == [k] * 8


def test_two_clusters_closer_than_harmony_tells_apart() -> None:
    """3 deviations apart: one to harmony, two to matching."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(-1.5, 1.0, 1500), rng.normal(1.5, 1.0, 1500)])[:, None]
    counts = [
        learn_mixture(standardised(rows), 5, matching, np.random.default_rng(0)).statistics.n.size
        for matching in (0.0, 1.0)
    ]
    assert counts == [1, 2]


def test_a_broad_start_covers_everything() -> None:
    rows = np.random.default_rng(0).normal(size=(30, 2))
    start = broad_start(rows, first_prior(50, 2), 50, np.random.default_rng(0))
    assert start.statistics.n.size == 30
    np.testing.assert_allclose(start.clusters.covariance[0], np.cov(rows.T, bias=True), atol=1e-8)
    made = with_covariance(np.ones(1), np.zeros((1, 2)), np.eye(2)[None])
    assert made.half_log_determinant[0] == 0.0
