"""Columns given the others: against integrals of the joint density, and in extremes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from bayou.mixtures.conditional import conditional, mixed
from bayou.mixtures.gaussians import Gaussians, with_covariance


def some(d: int, k: int, seed: int) -> Gaussians:
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(k, d, 2 * d))
    share = rng.dirichlet(np.full(k, 5.0))
    return with_covariance(share, 2.0 * rng.normal(size=(k, d)), roots @ np.swapaxes(roots, 1, 2) / (2 * d))


@pytest.mark.parametrize("column", [0, 1, 2])
def test_against_the_integrals_of_the_joint_density(column: int) -> None:
    clusters = some(3, 3, 0)
    parts = [scipy.stats.multivariate_normal(m, c) for m, c in zip(clusters.mean, clusters.covariance, strict=True)]
    missing = np.arange(3) == column
    known = np.array([[0.3, -1.0], [2.5, 2.0]])
    found = conditional(clusters, known, missing)
    mean, variance = mixed(found)
    grid, step = np.linspace(-40.0, 40.0, 40_001, retstep=True)  # sums over it are exact, for what is so smooth
    for row, values in enumerate(known):
        at = np.insert(np.tile(values, (grid.size, 1)), column, grid, axis=1)
        densities = np.stack([share * part.pdf(at) for share, part in zip(clusters.share, parts, strict=True)])
        m0, m1, m2 = (step * densities @ grid**power for power in range(3))
        np.testing.assert_allclose(found.chance[row], m0 / m0.sum(), rtol=1e-9)
        np.testing.assert_allclose(found.mean[row, :, 0], m1 / m0, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.variance[:, 0], m2 / m0 - (m1 / m0) ** 2, rtol=1e-7)
        expected = m1.sum() / m0.sum()
        assert mean[row, 0] == pytest.approx(expected, rel=1e-9)
        assert variance[row, 0] == pytest.approx(m2.sum() / m0.sum() - expected**2, rel=1e-7)


def test_all_missing_and_shapes() -> None:
    clusters = some(4, 2, 1)
    nothing = conditional(clusters, np.zeros((5, 0)), np.ones(4, dtype=bool))
    assert nothing.mean.shape == (5, 2, 4)
    mean, variance = mixed(nothing)
    np.testing.assert_allclose(mean, np.tile(clusters.share @ clusters.mean, (5, 1)))
    second = np.einsum("k,kij->ij", clusters.share, clusters.covariance)
    apart = clusters.mean - clusters.share @ clusters.mean
    second += np.einsum("k,ki,kj->ij", clusters.share, apart, apart)
    np.testing.assert_allclose(variance, np.tile(np.diag(second), (5, 1)))
    some_missing = conditional(clusters, np.zeros((5, 1)), np.array([True, True, False, True]))
    assert [part.shape for part in some_missing] == [(5, 2), (5, 2, 3), (2, 3)]


def test_far_rows_and_columns_that_are_the_same() -> None:
    """Where no cluster is near, the nearest has it; a column that another one tells has no variance left."""
    clusters = some(2, 3, 2)
    far = conditional(clusters, np.array([[1e8], [-1e8]]), np.array([False, True]))
    assert np.isfinite(far.mean).all()
    np.testing.assert_allclose(far.chance.sum(axis=1), 1.0)
    twin = np.array([[[1.0, 1.0], [1.0, 1.0 + 1e-12]]])
    told = conditional(with_covariance(np.ones(1), np.zeros((1, 2)), twin), np.array([[3.0]]), np.array([False, True]))
    mean, variance = mixed(told)
    assert mean[0, 0] == pytest.approx(3.0)
    assert 0.0 <= variance[0, 0] < 1e-10
