"""Clusters along subspaces: their number, their dimensions, and the factors of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import FactorAnalysis
from sklearn.utils.estimator_checks import parametrize_with_checks

import bayou
from bayou import LocalFactorAnalysis
from bayou.errors import InvalidSpec
from bayou.mixtures.factors import covariance_of, factors_of
from bayou.numerics.jit import COMPILED


@parametrize_with_checks([LocalFactorAnalysis(n_clusters=4)])
def test_scikit_learn(estimator: Any, check: Any) -> None:
    """A check of scikit-learn\'s raises where it is not met."""
    check(estimator)


def subspaces(
    d: int, dimensions: tuple[int, ...], n: int, strength: tuple[float, float], seed: int, apart: float = 9.0
) -> tuple[np.ndarray, np.ndarray]:
    """Clusters of unit noise, with factors of so many times its variance."""
    rng = np.random.default_rng([seed, d, n])
    centres: list[np.ndarray] = []
    while len(centres) < len(dimensions):
        centre = 1.3 * apart / np.sqrt(2.0 * d) * rng.normal(size=d)
        if all(np.linalg.norm(centre - other) > apart for other in centres):
            centres.append(centre)
    rows, labels = [], []
    for label, (centre, m) in enumerate(zip(centres, dimensions, strict=True)):
        count = n // len(dimensions)
        directions = np.linalg.qr(rng.normal(size=(d, m)))[0]
        loadings = np.sqrt(rng.uniform(*strength, m))
        rows.append(centre + rng.normal(size=(count, m)) * loadings @ directions.T + rng.normal(size=(count, d)))
        labels += [label] * count
    return np.concatenate(rows), np.array(labels)


CASES = {
    "equal": (10, (2, 2, 2), 600, (6.0, 12.0), 9.0),
    "unequal": (10, (1, 2, 3), 600, (6.0, 12.0), 9.0),
    "weak": (10, (1, 2, 3), 600, (1.5, 2.5), 7.0),
    "few rows": (10, (1, 2, 3), 150, (6.0, 12.0), 9.0),
    "many columns": (20, (1, 3, 5), 400, (6.0, 12.0), 9.0),
}


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="many mixtures need compiled kernels")
@pytest.mark.parametrize("case", CASES)
def test_numbers_and_dimensions_are_found(case: str) -> None:
    """In 5 of 5 data sets."""
    d, dimensions, n, strength, apart = CASES[case]
    for seed in range(5):
        model = LocalFactorAnalysis(seed=seed).fit(subspaces(d, dimensions, n, strength, seed, apart)[0])
        assert sorted(model.n_factors_.tolist()) == sorted(dimensions)


def test_one_cluster_is_factor_analysis() -> None:
    """With as many factors, the covariance is about that of scikit-learn's, whose noise may differ between columns."""
    X, _ = subspaces(8, (2,), 2000, (6.0, 12.0), 0)
    model = LocalFactorAnalysis().fit(X)
    peer = FactorAnalysis(2).fit(X)
    assert model.n_factors_.tolist() == [2]
    np.testing.assert_allclose(
        model.covariances_[0], peer.get_covariance(), atol=0.15 * np.abs(model.covariances_).max()
    )
    assert model.noise_variance_[0] == pytest.approx(1.0, abs=0.05)
    made = model.components_[0].T @ model.components_[0] + model.noise_variance_[0] * np.eye(8)
    np.testing.assert_allclose(made, model.covariances_[0], rtol=1e-6, atol=1e-8)


def test_the_evidence_prefers_what_is_there() -> None:
    """Eigenvalues beyond noise by far are factors; equal ones are none, in any number of points."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    for n in (20.0, 200.0, 1e6):
        assert factors_of(n, turn @ np.diag([9.0, 5.0, 1.0, 1.0, 1.0]) @ turn.T, 4).loadings.size == 2
        assert factors_of(n, np.eye(5), 4).loadings.size == 0
    found = factors_of(200.0, turn @ np.diag([9.0, 5.0, 1.2, 1.0, 0.8]) @ turn.T, 4)
    np.testing.assert_allclose(np.linalg.eigvalsh(covariance_of(found))[::-1], [9.0, 5.0, 1.0, 1.0, 1.0], rtol=1e-9)


def test_factors_of_rows_are_their_posterior_means() -> None:
    """Against regression of the true factors on the rows, of many rows."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.normal(size=(6, 2)))[0]
    scores = rng.normal(size=(20_000, 2))
    X = scores * [3.0, 2.0] @ directions.T + rng.normal(size=(20_000, 6))
    model = LocalFactorAnalysis(n_clusters=1).fit(X)
    found = model.transform(X)
    slope = np.linalg.lstsq(X, scores, rcond=None)[0]
    signs = np.sign(np.sum(found * (X @ slope), axis=0))
    np.testing.assert_allclose(found * signs, X @ slope, atol=0.15)
    np.testing.assert_array_equal(LocalFactorAnalysis(n_clusters=1).fit_transform(X[:500]).shape, (500, 2))


@pytest.mark.skipif(not COMPILED, reason="thousands of points need compiled kernels")
def test_a_stream_finds_them_too(tmp_path: Path) -> None:
    X, labels = subspaces(6, (1, 2), 2000, (6.0, 12.0), 1)
    order = np.random.default_rng(0).permutation(len(X))
    model = LocalFactorAnalysis().partial_fit(X[order])
    assert sorted(model.n_factors_.tolist()) == [1, 2]
    assert max(np.mean(model.predict(X) == labels), np.mean(model.predict(X) != labels)) > 0.97
    bayou.save(model, tmp_path / "model.bayou")
    loaded = bayou.load(tmp_path / "model.bayou")
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


def test_settings() -> None:
    X, _ = subspaces(6, (3,), 400, (6.0, 12.0), 0)
    assert LocalFactorAnalysis(n_factors=1).fit(X).n_factors_.max() == 1
    assert LocalFactorAnalysis(n_factors=0).fit(X).transform(X).shape == (400, 0)
    with pytest.raises(InvalidSpec, match="`n_factors` must be a whole number"):
        LocalFactorAnalysis(n_factors=-1).fit(X)


def test_lines_of_a_picture_run_along_the_factors_as_far_as_the_ellipses() -> None:
    """In two columns a line ends on the ellipse; in more, it is the shadow of one that ends on the ellipsoid."""
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(200, 1)) * along + centre for along, centre in (([4.0, 2.0], 0.0), ([-1.0, 4.0], 15.0))]
    model = LocalFactorAnalysis().fit(np.concatenate(parts) + 0.3 * rng.normal(size=(400, 2)))
    assert model.n_factors_.tolist() == [1, 1]
    (axes,) = model.plot().axes
    assert len(axes.lines) == 2
    for line, mean, covariance in zip(axes.lines, model.means_, model.covariances_, strict=True):
        for end in np.column_stack(line.get_data()):
            assert (end - mean) @ np.linalg.solve(covariance, end - mean) == pytest.approx(4.0)
    X, _ = subspaces(6, (1, 2), 600, (6.0, 12.0), 1)
    assert len(LocalFactorAnalysis().fit(X).plot(X, (1, 4)).axes[0].lines) == 3
