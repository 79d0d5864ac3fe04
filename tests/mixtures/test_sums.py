"""Sums with the weights of harmony: compiled blocks against matrix products, few nearest clusters against all."""

from __future__ import annotations

import numpy as np
import pytest

from bayou.mixtures.all_rows import Choice, HeldRows
from bayou.mixtures.evidence import Prior, first_prior
from bayou.mixtures.gaussians import Gaussians, collect, gaussians_of, log_joint
from bayou.mixtures.harmony import Mixture, flow, learn_mixture
from bayou.mixtures.labels import keep_nearest, weigh, yang
from bayou.mixtures.streaming import StreamOptions, begin_stream, learn_stream
from bayou.mixtures.sums import CANDIDATES, candidates_of, sums_of_candidates, weighed_sums
from bayou.numerics.jit import COMPILED
from tests.mixtures.made import clusters as made


def some_clusters(rows: np.ndarray, k: int, sharp: float = 1.0) -> Gaussians:
    """Clusters that share the rows softly; the sharper, the less."""
    rng = np.random.default_rng(0)
    distance = np.sum((rows[:, None] - rows[rng.choice(len(rows), k, replace=False)]) ** 2, axis=2)
    weights = np.exp(-sharp * distance) + 1e-3
    return gaussians_of(collect(rows, weights / weights.sum(axis=1, keepdims=True)), Prior(0.3, 2.0, 0.5))


@pytest.mark.parametrize(("n", "d", "k"), [(1, 1, 1), (63, 2, 3), (64, 5, 4), (200, 3, 9), (130, 60, 2)])
@pytest.mark.parametrize("matching", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("nearest", [0, 1, 2])
def test_blocks_sum_what_matrix_products_do(n: int, d: int, k: int, matching: float, nearest: int) -> None:
    """Whatever is left over of the last block, and with ``nearest`` as if the others were not there."""
    rows = np.random.default_rng(1).normal(size=(n, d))
    found = some_clusters(rows, k)
    joint = log_joint(found, rows)
    if nearest:
        ranks = np.argsort(np.argsort(-joint, axis=1), axis=1)
        joint = np.where(ranks < nearest, joint, -np.inf)
    labels = yang(np.maximum(joint, -1e300), matching)
    statistics, log_likelihood, harmony = weighed_sums(rows, found, matching, nearest)
    for sums, wanted in zip(statistics, collect(rows, labels.weight), strict=True):
        np.testing.assert_allclose(sums, wanted, rtol=1e-9, atol=1e-9)
    assert log_likelihood == pytest.approx(labels.log_likelihood, rel=1e-9)
    assert harmony == pytest.approx(labels.harmony, rel=1e-9)


def test_points_far_from_every_cluster_have_weights() -> None:
    """40 million deviations away: the density is zero in doubles, whose the point is not."""
    rows = np.random.default_rng(0).normal(size=(50, 2))
    found = some_clusters(rows, 3)
    statistics, log_likelihood, _ = weighed_sums(np.array([[4e7, -4e7]]), found, 0.0)
    assert np.isfinite(log_likelihood)
    assert statistics.n.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("nearest", [1, 2, 4])
def test_candidates_are_the_nearest(nearest: int) -> None:
    """While clusters stay where they are, the sums are those with a look at all of them."""
    rows = np.random.default_rng(2).normal(size=(500, 3))
    found = some_clusters(rows, 12, sharp=2.0)
    candidates = candidates_of(rows, found)
    order = np.argsort(-log_joint(found, rows), axis=1)[:, :CANDIDATES]
    np.testing.assert_array_equal(candidates.table, order)
    few = sums_of_candidates(rows, found, candidates, 0.3, nearest)
    every = weighed_sums(rows, found, 0.3, nearest)
    for sums, wanted in zip(few.statistics, every.statistics, strict=True):
        np.testing.assert_allclose(sums, wanted, rtol=1e-9, atol=1e-9)
    assert few.harmony == pytest.approx(every.harmony, rel=1e-10)
    assert few.log_likelihood == pytest.approx(every.log_likelihood, rel=1e-10)


def test_candidates_are_chosen_anew() -> None:
    """When clusters are gone, and after some steps: also then the sums are those of the clusters as they are."""
    rows = np.random.default_rng(2).normal(size=(300, 2))
    held, choice = HeldRows(rows), Choice(2)
    for k in (12, 11, 8, 3):
        found = some_clusters(rows, k)
        chosen = choice.now(found)
        assert (chosen is None) == (k == 3)
        assert held.sums(found, 0.0, 2, chosen).harmony == pytest.approx(
            weighed_sums(rows, found, 0.0, 2).harmony, rel=1e-10
        )


def test_one_point_as_many() -> None:
    joint = np.random.default_rng(3).normal(size=(20, 7))
    for row in joint:
        kept, weight = row.copy(), np.empty(7)
        keep_nearest(kept, 3)
        log_likelihood, harmony = weigh(kept, 0.25, weight)
        wanted = yang(row[None], 0.25, 3)
        np.testing.assert_allclose(weight, wanted.weight[0], rtol=1e-12)
        assert (log_likelihood, harmony) == pytest.approx((wanted.log_likelihood, wanted.harmony), rel=1e-12)


def test_all_clusters_are_the_nearest() -> None:
    """As many as there are: nothing is cut off."""
    rows = made(2, 4, 300, 5.0, 0)[0]
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    start = some_clusters(rows, 4)
    mixture = Mixture(weighed_sums(rows, start, 1.0).statistics, start, first_prior(10, 2))
    wanted, found = (flow(rows, mixture, 0.0, 0.3, 10, nearest=nearest) for nearest in (0, 4))
    np.testing.assert_array_equal(found.statistics.s2, wanted.statistics.s2)


@pytest.mark.skipif(not COMPILED, reason="many mixtures need compiled kernels")
def test_two_nearest_find_as_many_clusters_as_all() -> None:
    """From rows and from a stream; five data sets each."""
    for seed in range(5):
        rows = made(2, 4, 600, 5.0, seed)[0]
        rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
        assert learn_mixture(rows, 10, 0.0, np.random.default_rng(0), nearest=2).statistics.n.size == 4
        first = learn_mixture(rows[:100], 10, 0.0, np.random.default_rng(0), nearest=2)
        options = StreamOptions(first.prior, 0.0, 0.0, 10, nearest=2)
        assert learn_stream(begin_stream(first, rows[:100]), rows[100:].copy(), options).n.size == 4


@pytest.mark.skipif(not COMPILED, reason="many rows need compiled kernels")
def test_many_rows_start_from_some() -> None:
    """Of 20,000 rows 5,000 tell the structure; the clusters are those of all."""
    rows, labels = made(2, 4, 20_000, 5.0, 0)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    found = learn_mixture(rows, 10, 0.0, np.random.default_rng(0))
    assert found.statistics.n.size == 4
    assert found.statistics.n.sum() == pytest.approx(len(rows))
    centres = np.stack([rows[labels == label].mean(axis=0) for label in range(4)])
    nearest = np.min(np.linalg.norm(centres[:, None] - found.clusters.mean[None], axis=2), axis=1)
    assert nearest.max() < 0.02  # standard error of a mean of 5,000 rows: below 0.01
