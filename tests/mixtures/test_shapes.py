"""Shapes of clusters: their evidence point after point, the covariances they make, and what they find."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from bayou.mixtures.evidence import Prior, Statistics, log_evidence
from bayou.mixtures.gaussians import collect, gaussians_of
from bayou.mixtures.harmony import learn_mixture
from bayou.mixtures.shapes import DIAGONAL, EXTENDED_RADIAL, FULL, NORMALISED_RADIAL, SPHERICAL
from bayou.mixtures.streaming import StreamOptions, begin_stream, learn_stream
from bayou.numerics.jit import COMPILED

CERTAINTY, STRENGTH, SCALE = 0.3, 2.0, 0.5
SHAPES = {
    "full": FULL,
    "diagonal": DIAGONAL,
    "spherical": SPHERICAL,
    "normalised radial": NORMALISED_RADIAL,
    "extended radial": EXTENDED_RADIAL,
}


def prior_of(shape: int) -> Prior:
    return Prior(CERTAINTY, STRENGTH, SCALE, shape, 2)


def of_full(before: np.ndarray, row: np.ndarray) -> float:
    """The Student t that a normal and inverse Wishart belief expects next."""
    d, certainty = row.size, CERTAINTY + len(before)
    mean = before.sum(axis=0) / certainty
    scatter = STRENGTH * SCALE * np.eye(d) + before.T @ before - certainty * np.outer(mean, mean)
    free = d + 1.0 + STRENGTH + len(before) - d + 1.0
    return float(scipy.stats.multivariate_t(mean, scatter * (certainty + 1.0) / (certainty * free), free).logpdf(row))


def of_ball(before: np.ndarray, row: np.ndarray) -> float:
    """The same for one variance of all columns: normal and inverse gamma."""
    d, certainty = row.size, CERTAINTY + len(before)
    mean = before.sum(axis=0) / certainty
    scatter = STRENGTH * d * SCALE + float(np.sum(before**2) - certainty * np.sum(mean**2))
    free = 2.0 + STRENGTH * d + len(before) * d
    shape = scatter / free * (certainty + 1.0) / certainty * np.eye(d)
    return float(scipy.stats.multivariate_t(mean, shape, free).logpdf(row))


def next_row(shape: int, before: np.ndarray, row: np.ndarray) -> float:
    columns = [of_full(before[:, i : i + 1], row[i : i + 1]) for i in range(row.size)]
    if shape == FULL:
        return of_full(before, row)
    if shape == DIAGONAL:
        return sum(columns)
    if shape == SPHERICAL:
        return of_ball(before, row)
    if shape == NORMALISED_RADIAL:
        return of_ball(before[:, :2], row[:2]) + sum(columns[2:])
    return of_ball(before[:, :2], row[:2]) + of_full(before, row) - of_full(before[:, :2], row[:2])


@pytest.mark.parametrize("shape", SHAPES)
def test_evidence_is_that_of_one_point_after_the_other(shape: str) -> None:
    rows = np.random.default_rng(0).normal(size=(7, 4)) + 1.0
    wanted = sum(next_row(SHAPES[shape], rows[:n], rows[n]) for n in range(len(rows)))
    found = log_evidence(collect(rows, np.ones((7, 1))), prior_of(SHAPES[shape]))[0]
    assert found == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
def test_covariances_have_the_shape_and_are_positive(shape: str) -> None:
    """Also of points that all lie on a line."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 1)) * np.array([1.0, -2.0, 3.0, 0.5])
    statistics = collect(rows, np.ones((50, 1)))
    weak = prior_of(SHAPES[shape])._replace(strength=1e-6)
    made = gaussians_of(statistics, weak).covariance[0]
    assert np.linalg.eigvalsh(made).min() > 0.0
    np.testing.assert_allclose(made, made.T)
    variances = rows.var(axis=0)
    inputs = made[:2, :2]
    if SHAPES[shape] == DIAGONAL:
        np.testing.assert_allclose(made, np.diag(variances), rtol=1e-5, atol=1e-6)
    elif SHAPES[shape] == SPHERICAL:
        np.testing.assert_allclose(made, variances.mean() * np.eye(4), rtol=1e-5)
    elif SHAPES[shape] != FULL:
        np.testing.assert_allclose(inputs, variances[:2].mean() * np.eye(2), rtol=1e-5)
    if SHAPES[shape] == NORMALISED_RADIAL:
        np.testing.assert_allclose(made[2:], np.diag(np.diag(made))[2:])


def test_extended_radial_clusters_keep_the_regression() -> None:
    """The slope is that of least squares, the noise that of what is left."""
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(400, 2)) @ np.array([[2.0, 0.3], [0.0, 0.5]])
    targets = inputs @ np.array([[1.0, -2.0], [0.5, 3.0]]) + rng.normal(scale=[0.1, 0.7], size=(400, 2))
    statistics = collect(np.hstack([inputs, targets]), np.ones((400, 1)))
    made = gaussians_of(statistics, Prior(1e-9, 1e-9, 1.0, EXTENDED_RADIAL, 2)).covariance[0]
    slope = np.linalg.solve(made[:2, :2], made[:2, 2:])
    design = np.column_stack([np.ones(400), inputs])
    wanted, left, *_ = np.linalg.lstsq(design, targets, rcond=None)
    np.testing.assert_allclose(slope, wanted[1:], rtol=1e-6)
    np.testing.assert_allclose(made[2:, 2:] - slope.T @ made[:2, :2] @ slope, np.diag(left / 400), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_evidence_of_nothing_is_one(shape: str) -> None:
    nothing = Statistics(np.zeros(1), np.zeros((1, 4)), np.zeros((1, 4, 4)))
    assert log_evidence(nothing, prior_of(SHAPES[shape]))[0] == pytest.approx(0.0, abs=1e-12)


def test_the_evidence_knows_the_shape() -> None:
    """Of balls that of balls is the highest, and so on: fewer numbers, where they are enough."""
    rng = np.random.default_rng(2)
    rows = {
        FULL: rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4)),
        DIAGONAL: rng.normal(size=(200, 4)) * [0.2, 0.5, 1.0, 2.0],
        SPHERICAL: rng.normal(size=(200, 4)),
    }
    for shape, points in rows.items():
        values = {
            other: log_evidence(collect(points, np.ones((200, 1))), prior_of(other)._replace(scale=1.0))[0]
            for other in rows
        }
        assert max(values, key=values.__getitem__) == shape


@pytest.mark.skipif(not COMPILED, reason="many mixtures need compiled kernels")
@pytest.mark.parametrize("shape", ["diagonal", "spherical"])
def test_clusters_of_a_shape_are_found(shape: str) -> None:
    """Four balls in ten dimensions, from 20 points each; also from a stream that is sorted."""
    rng = np.random.default_rng(3)
    centres = 4.0 * np.eye(10)[:4]
    for n in (80, 1200):
        rows = np.concatenate([rng.normal(centre, 1.0, size=(n // 4, 10)) for centre in centres])
        rows = (rows - rows.mean(axis=0)) / math.sqrt(rows.var(axis=0).mean())
        if n == 80:
            found = learn_mixture(rows, 10, 0.0, np.random.default_rng(0), SHAPES[shape])
            assert found.statistics.n.size == 4
        else:
            first = learn_mixture(rows[:100], 10, 0.0, np.random.default_rng(0), SHAPES[shape])
            options = StreamOptions(first.prior, 0.0, 0.0, 10)
            belief = learn_stream(begin_stream(first, rows[:100]), np.ascontiguousarray(rows[100:]), options)
            assert belief.n.size == 4
