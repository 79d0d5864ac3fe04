"""Bayesian canonical correlations: pairs against matrices, against scikit-learn, against integrals; and extremes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import digamma, gammaln
from scipy.stats import multivariate_t, wishart
from sklearn.cross_decomposition import CCA

from bayou.contracts import Matrix
from bayou.errors import InvalidSpec
from bayou.mixtures.canonical_correlation import (
    canonical_model,
    conditional,
    correlation_intervals,
    loadings,
    log_density,
    noise_covariance,
    predictive,
    shared,
)
from bayou.mixtures.canonical_pairs import VAGUE, at_least, gain, settle, settle_off, solve_pairs
from bayou.mixtures.two_views import discounted, merged, moments_of, no_moments, whitened
from bayou.papers.wang2007.recursion import by_matrices
from bayou.papers.wang2007.world import CORRELATIONS, draw_views

N_X = 10


def small(n: int = 80, seed: int = 0) -> Matrix:
    """Joint rows of 3 and 2 columns, which share one variable."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 1))
    return z @ rng.normal(size=(1, 5)) + rng.normal(size=(n, 5)) @ np.diag([1.0, 0.5, 2.0, 1.0, 0.7])


# --- moments and white views


def test_moments_of_parts_are_those_of_the_whole() -> None:
    rows = small() + 1e6
    parts = no_moments(5)
    for part in np.array_split(rows, 7):
        parts = merged(parts, moments_of(part))
    np.testing.assert_allclose(parts.mean, rows.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(parts.scatter, 80.0 * np.cov(rows.T, bias=True), rtol=1e-9)


def test_weights_are_repetitions() -> None:
    rows, weights = small(6), np.array([1.0, 3.0, 2.0, 0.0, 1.0, 5.0])
    weighted, repeated = moments_of(rows, weights), moments_of(np.repeat(rows, weights.astype(int), axis=0))
    for one, other in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(discounted(weighted, 0.5).scatter, moments_of(rows, 0.5 * weights).scatter, rtol=1e-12)


def test_views_are_white_and_come_back() -> None:
    rows = small()
    x, y, cross = whitened(moments_of(rows), 3)
    for view, part in ((x, rows[:, :3]), (y, rows[:, 3:])):
        white = view.white(part)
        np.testing.assert_allclose(np.cov(white.T, bias=True), np.eye(white.shape[1]), atol=1e-10)
        np.testing.assert_allclose(view.mean + white @ view.patterns, part, atol=1e-10)
        assert view.log_volume == pytest.approx(np.linalg.slogdet(view.weights)[1], abs=1e-10)
    np.testing.assert_allclose(cross, x.white(rows[:, :3]).T @ y.white(rows[:, 3:]) / 80.0, atol=1e-12)


def test_correlations_of_the_sample_are_those_of_scikit_learn() -> None:
    rows = draw_views(200, 0).rows
    model = canonical_model(moments_of(rows), N_X)
    u, v = CCA(n_components=3, max_iter=5000, tol=1e-12).fit_transform(rows[:, :N_X], rows[:, N_X:])
    theirs = [np.corrcoef(u[:, j], v[:, j])[0, 1] for j in range(3)]
    np.testing.assert_allclose(model.pairs.sample_correlation[:3], theirs, atol=1e-6)
    ours = model.x.white(rows[:, :N_X])
    assert [abs(np.corrcoef(ours[:, j], u[:, j])[0, 1]) for j in range(3)] == pytest.approx([1.0] * 3, abs=1e-6)


# --- the recursion


@pytest.mark.parametrize("n", [30, 100, 400])
def test_pairs_come_to_what_matrices_come_to(n: int) -> None:
    """In the coordinates of the columns, where nothing is diagonal; all pairs, on or off."""
    rows = draw_views(n, 3).rows
    model = canonical_model(moments_of(rows), N_X)
    np.testing.assert_allclose(by_matrices(rows, model).correlations(), model.pairs.correlation, atol=1e-6)


def test_loadings_and_noise_are_those_of_matrices() -> None:
    """Loadings up to signs; here all pairs are retained, so the noise is that of all."""
    rows = draw_views(200, 3, (0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6)).rows
    model = canonical_model(moments_of(rows), N_X, least=0.0, selection="relevance")
    assert model.n_retained == 8
    matrices = by_matrices(rows, model)
    for view, W, noise in zip(("x", "y"), matrices.loadings, matrices.noises, strict=True):
        mean, _ = loadings(model, view)  # type: ignore[arg-type]
        np.testing.assert_allclose(mean, W, atol=1e-3 * np.abs(W).max())
        degrees = len(noise) + 1.0 + 200.0
        np.testing.assert_allclose(
            noise_covariance(model, view),  # type: ignore[arg-type]
            noise * degrees / 200.0,
            atol=1e-3 * np.abs(noise).max(),
        )


@pytest.mark.parametrize("n", [20.0, 50.0, 200.0, 2000.0])
@pytest.mark.parametrize("r", [0.0, 0.2, 0.5, 0.7, 0.9, 0.99, 0.999])
def test_newtons_steps_lead_where_rounds_lead(r: float, n: float) -> None:
    """The plain recursion, as published, for as long as it takes."""
    d_x, d_y = 10.0, 8.0
    A = B = 0.5 / math.sqrt(0.5 * (1.0 + r))
    s, a = 0.3, 1.0
    M = L = 0.0
    for _ in range(60_000):
        V = 1.0 / (a + n * (s + A * A + B * B + 2.0 * A * B * r))
        before, M, L = (M, L, a), n * (A + B * r) * V, n * (B + A * r) * V
        phi, psi = (d_x + 1.0 + n) / (1e-3 + n - M * M / V), (d_y + 1.0 + n) / (1e-3 + n - L * L / V)
        E = M * M * phi + L * L * psi + (d_x + d_y) * V
        a, s = (1e-3 + 0.5 * (d_x + d_y)) / (1e-3 + 0.5 * E), 1.0 / (1.0 + E)
        A, B = s * phi * M, s * psi * L
        if abs(M - before[0]) + abs(L - before[1]) < 1e-15 and abs(a / before[2] - 1.0) < 1e-12:
            break
    rho = M * L / math.sqrt((M * M + 1.0 / phi) * (L * L + 1.0 / psi))
    pairs = solve_pairs(np.array([r]), n, 10, 8)
    assert pairs.converged[0]
    assert pairs.correlation[0] == pytest.approx(rho, abs=1e-9)
    assert pairs.x_loading[0] == pytest.approx(M, abs=1e-6)
    assert pairs.spread[0] == pytest.approx(V, rel=1e-6)


@pytest.mark.parametrize(("n", "threshold"), [(50, 0.59), (100, 0.47), (200, 0.36), (500, 0.245), (2000, 0.14)])
def test_below_a_correlation_that_falls_with_rows_a_pair_is_off(n: int, threshold: float) -> None:
    pairs = solve_pairs(np.array([threshold + 0.015, threshold - 0.015]), n, 10, 8, selection="relevance")
    assert pairs.correlation[0] > 0.09
    assert pairs.correlation[1] < 0.105
    assert n > 500 or pairs.correlation[1] == 0.0


def bound_by_parts(r: float, n: float, d_x: int, d_y: int, state: np.ndarray, pair: np.ndarray) -> float:
    """The variational bound of one pair: expectations and divergences one by one, by moments of the posteriors."""
    A, B, s, a = np.exp(state)
    M, L, V, K, Q, _ = pair
    shape = VAGUE + 0.5 * (d_x + d_y)
    rate = shape / a
    log_a = digamma(shape) - math.log(rate)
    z2, xz, yz = n * (s + A * A + B * B + 2.0 * A * B * r), n * (A + B * r), n * (B + A * r)
    total = -0.5 * (z2 - n - n * math.log(s))  # divergence of z
    total -= (shape - VAGUE) * digamma(shape) - gammaln(shape) + VAGUE * math.log(rate)  # and of a, but for constants
    total -= shape * (VAGUE - rate) / rate
    for d, W, scale, cross in ((d_x, M, K, xz), (d_y, L, Q, yz)):
        phi = (d + 1.0 + n) / scale
        log_phi = -math.log(scale)  # of the determinant, the part that depends on the pair
        errors = phi * (n - 2.0 * W * cross + W * W * z2) + d * V * z2
        total += 0.5 * n * log_phi - 0.5 * errors  # the rows
        total += 0.5 * d * log_a - 0.5 * a * (phi * W * W + d * V) + 0.5 * d * math.log(V)  # W given Phi
        total += 0.5 * (d + 1.0) * log_phi - 0.5 * VAGUE * phi  # Phi
    return float(total)


@pytest.mark.parametrize("r", [0.65, 0.8, 0.95])
def test_the_gain_is_a_difference_of_bounds(r: float) -> None:
    n, d_x, d_y = 60.0, 4, 3
    on, off, pair, none = np.empty(4), np.empty(4), np.empty(6), np.empty(6)
    settle(r, n, float(d_x), float(d_y), on, pair)
    settle_off(n, float(d_x), float(d_y), off, none)
    expected = bound_by_parts(r, n, d_x, d_y, on, pair) - bound_by_parts(r, n, d_x, d_y, off, none)
    assert gain(r, n, float(d_x), float(d_y)) == pytest.approx(expected, abs=1e-6)


def test_a_pair_is_judged_in_what_the_pairs_before_it_left() -> None:
    """The second of two is kept at a correlation at which the first would not be."""
    r = np.array([0.9, 0.8, 0.57])
    pairs = solve_pairs(r, 100, 10, 8)
    assert pairs.retained.tolist() == [True, True, True]
    assert solve_pairs(r[2:], 100, 10, 8).retained.tolist() == [False]
    assert solve_pairs(r[2:], 100, 10, 8, selection="relevance").retained.tolist() == [True]


def test_numbers_of_pairs_have_probabilities() -> None:
    """As if each number were a model with the evidence of all its pairs: at three gains, by hand; and at extremes."""
    weights = np.exp([0.0, 2.0, 2.0 + 0.5, 2.0 + 0.5 - 3.0])
    np.testing.assert_allclose(
        at_least(np.array([2.0, 0.5, -3.0])), [weights[k:].sum() / weights.sum() for k in (1, 2, 3)]
    )
    assert at_least(np.array([1e9, -1e9])).tolist() == [1.0, 0.0]
    assert at_least(np.zeros(0)).size == 0


def test_nothing_follows_a_pair_that_is_not_retained() -> None:
    pairs = solve_pairs(np.array([0.5, 0.49, 0.48, 0.47, 0.46]), 100, 6, 5)
    assert np.all(np.diff(pairs.retained.astype(int)) <= 0)
    assert solve_pairs(np.array([0.9, 0.3]), 1e6, 6, 5, least=0.5).retained.tolist() == [True, False]


@pytest.mark.parametrize("n", [2.5, 1e4, 1e7, 1e12])
def test_any_number_of_rows_settles(n: float) -> None:
    pairs = solve_pairs(np.array([1.0, 1.0 - 1e-9, 0.7, 0.3, 0.01, 0.0]), n, 10, 8)
    assert all(np.all(np.isfinite(values)) for values in pairs)
    assert np.all((pairs.correlation >= 0.0) & (pairs.correlation <= 1.0))
    if n > 1e3:
        np.testing.assert_allclose(pairs.correlation[:4], [1.0, 1.0, 0.7, 0.3], atol=0.01)


# --- what is expected of a new row


def posterior_rows(n: int, seed: int) -> tuple[Matrix, Matrix]:
    """The covariance that new rows have under the posterior, by drawing parameters and rows; and the model's."""
    model = canonical_model(moments_of(small(40)), 3, selection="relevance")
    rng, m, pairs = np.random.default_rng(seed), model.n_retained, model.pairs
    drawn = np.empty((n, 5))
    for row in range(n):
        z, start = rng.normal(size=m), 0
        for d, scale, loading in ((3, pairs.x_noise, pairs.x_loading), (2, pairs.y_noise, pairs.y_loading)):
            scales = np.full(d, 40.0 + VAGUE)
            scales[:m] = scale[:m]
            noise = np.linalg.inv(wishart.rvs(d + 1 + 40, np.diag(1.0 / scales), random_state=rng))
            root = np.linalg.cholesky(noise)
            W = np.eye(d, m) * loading[:m] + root @ rng.normal(size=(d, m)) * np.sqrt(pairs.spread[:m])
            drawn[row, start : start + d] = W @ z + root @ rng.normal(size=d)
            start += d
    told = predictive(model)
    covariance = np.diag(np.concatenate([told.x_variance, told.y_variance]))
    covariance[np.arange(m), 3 + np.arange(m)] = covariance[3 + np.arange(m), np.arange(m)] = told.covariance
    return np.cov(drawn.T) * (1.0 + 1.0 / 40.0), covariance  # and the mean is uncertain


def test_a_new_row_has_the_moments_of_the_posterior() -> None:
    """Of 20,000 draws variances are known to 1 %."""
    drawn, told = posterior_rows(20_000, 0)
    np.testing.assert_allclose(told, drawn, atol=0.05)
    np.testing.assert_allclose(np.diag(told), np.diag(drawn), rtol=0.04)
    assert told[0, 3] > 0.3


def test_the_density_is_students() -> None:
    """By scipy, from the full covariance in raw units."""
    rows = small(60)
    model = canonical_model(moments_of(rows), 3)
    told = predictive(model)
    m = told.covariance.size
    x, y = model.x.patterns, model.y.patterns
    cross = (x[:m].T * told.covariance) @ y[:m]
    covariance = np.block([[(x.T * told.x_variance) @ x, cross], [cross.T, (y.T * told.y_variance) @ y]])
    theirs = multivariate_t(rows.mean(axis=0), covariance * (told.degrees - 2.0) / told.degrees, df=told.degrees)
    unseen = small(20, 1) * 3.0
    np.testing.assert_allclose(log_density(model, unseen[:, :3], unseen[:, 3:]), theirs.logpdf(unseen), rtol=1e-9)


def test_the_density_is_one_in_all_and_tells_the_other_view() -> None:
    """By quadrature over both columns: its integral, and mean and variance of one given the other."""
    rows = small(12)[:, [0, 3]]
    model = canonical_model(moments_of(rows), 1, selection="relevance")
    deviation = rows.std(axis=0)

    spans = [(mean - 60.0 * d, mean + 60.0 * d) for mean, d in zip(rows.mean(axis=0), deviation, strict=True)]
    nodes, weights = np.polynomial.legendre.leggauss(600)
    grids = [0.5 * (b - a) * np.tan(nodes * math.atan(1.0)) ** 3 + 0.5 * (a + b) for a, b in spans]
    slopes = [
        0.5
        * (b - a)
        * 3.0
        * np.tan(nodes * math.atan(1.0)) ** 2
        / np.cos(nodes * math.atan(1.0)) ** 2
        * math.atan(1.0)
        * weights
        for a, b in spans
    ]
    X, Y = np.meshgrid(*grids, indexing="ij")
    values = np.exp(log_density(model, X.reshape(-1, 1), Y.reshape(-1, 1))).reshape(X.shape)
    assert slopes[0] @ values @ slopes[1] == pytest.approx(1.0, abs=1e-3)
    told = conditional(model, grids[0][[280, 310, 330], None])
    for place, row in enumerate((280, 310, 330)):
        mass = values[row] * slopes[1]
        mean = mass @ grids[1] / mass.sum()
        variance = mass @ (grids[1] - mean) ** 2 / mass.sum()
        assert told.mean[place, 0] == pytest.approx(mean, abs=1e-3)
        assert told.factor[place] * told.covariance[0, 0] == pytest.approx(variance, rel=0.01)


def test_the_second_view_tells_the_first_as_if_they_were_exchanged() -> None:
    rows = small(60)
    model, other = canonical_model(moments_of(rows), 3), canonical_model(moments_of(rows[:, [3, 4, 0, 1, 2]]), 2)
    back, forth = conditional(model, rows[:, 3:], "y"), conditional(other, rows[:, 3:], "x")
    for one, same in zip(back, forth, strict=True):
        np.testing.assert_allclose(one, same, rtol=1e-6)


def test_intervals_cover() -> None:
    """70 samples of 100 rows, with about 200 correlations: a standard error of 2 %, less for predictions."""
    covered, inside = [], []
    for seed in range(70):
        rows, unseen = draw_views(100, seed, n_unseen=50)
        model = canonical_model(moments_of(rows), N_X)
        told = conditional(model, unseen[:, :N_X])
        deviation = np.sqrt(told.factor[:, None] * np.diag(told.covariance))
        inside.append(np.mean(np.abs(unseen[:, N_X:] - told.mean) < 1.645 * deviation))
        intervals = correlation_intervals(model, 0.9)[:3]
        true = np.array(CORRELATIONS[: len(intervals)])
        covered += list((intervals[:, 0] < true) & (true < intervals[:, 1]))
    assert np.mean(inside) == pytest.approx(0.9, abs=0.02)
    assert np.mean(covered) == pytest.approx(0.9, abs=0.06)


def test_what_is_shared() -> None:
    """Both views together tell z as the recursion has it; one alone less; correlations with z are the loadings."""
    rows = draw_views(4000, 0).rows
    x, y = rows[:, :N_X], rows[:, N_X:]
    model = canonical_model(moments_of(rows), N_X)
    m, pairs = model.n_retained, model.pairs
    mean, variance = shared(model, x, y)
    expected = model.x.white(x)[:, :m] * pairs.x_share[:m] + model.y.white(y)[:, :m] * pairs.y_share[:m]
    np.testing.assert_allclose(mean, expected, atol=1e-6)
    np.testing.assert_allclose(variance, pairs.variance[:m], rtol=1e-6)
    one, wider = shared(model, x, None)
    assert np.all(wider > variance)
    np.testing.assert_allclose(np.var(one, axis=0) + wider, 1.0, atol=0.01)  # z has unit variance, seen or not
    np.testing.assert_allclose(
        shared(model, None, y)[0].T @ model.y.white(y)[:, :m] / 4000.0, np.diag(pairs.y_loading[:m]), atol=0.02
    )


# --- whatever the columns are


@pytest.mark.parametrize("scale", [1e-130, 1e-6, 1.0, 1e6, 1e130])
def test_maps_of_the_columns_change_nothing(scale: float) -> None:
    rows, unseen = draw_views(60, 1, n_unseen=10)
    rng = np.random.default_rng(0)
    maps = rng.normal(size=(N_X, N_X)) * np.logspace(-2.0, 2.0, N_X), scale * rng.normal(size=(8, 8))
    told = [np.hstack([part[:, :N_X] @ maps[0] + 7.0, part[:, N_X:] @ maps[1]]) for part in (rows, unseen)]
    model, other = canonical_model(moments_of(rows), N_X), canonical_model(moments_of(told[0]), N_X)
    np.testing.assert_allclose(other.pairs.correlation, model.pairs.correlation, atol=1e-9)
    np.testing.assert_allclose(other.pairs.evidence, model.pairs.evidence, atol=1e-7)
    np.testing.assert_allclose(
        conditional(other, told[1][:, :N_X]).mean / scale,
        conditional(model, unseen[:, :N_X]).mean @ maps[1] / scale,
        atol=1e-7,
    )
    volume = sum(np.linalg.slogdet(one / np.abs(one).max())[1] + len(one) * math.log(np.abs(one).max()) for one in maps)
    ours = log_density(other, told[1][:, :N_X], told[1][:, N_X:]) + volume
    np.testing.assert_allclose(ours, log_density(model, unseen[:, :N_X], unseen[:, N_X:]), atol=1e-6)


def test_columns_that_tell_nothing_new_change_nothing() -> None:
    """Constant ones, copies, sums: the model is that of the others."""
    rows = small(60)
    x, y = rows[:, :3], rows[:, 3:]
    more = np.column_stack([x, np.full(60, 0.1), x[:, 0], x @ [1.0, 2.0, -1.0], np.zeros(60)])
    model, other = canonical_model(moments_of(rows), 3), canonical_model(moments_of(np.hstack([more, y])), 7)
    np.testing.assert_allclose(other.pairs.correlation, model.pairs.correlation, atol=1e-9)
    np.testing.assert_allclose(conditional(other, more).mean, conditional(model, x).mean, atol=1e-9)
    back = conditional(other, y, "y")
    np.testing.assert_allclose(back.mean[:, :3], conditional(model, y, "y").mean, atol=1e-9)
    np.testing.assert_allclose(back.mean[:, 5], back.mean[:, :3] @ [1.0, 2.0, -1.0], atol=1e-9)
    np.testing.assert_allclose(back.covariance[3], 0.0, atol=1e-12)


def test_columns_that_nearly_agree() -> None:
    """However near: the correlations stay between 0 and 1, and do not jump as a direction vanishes."""
    rows, rng = small(60), np.random.default_rng(1)
    noise = rng.normal(size=60)
    without = canonical_model(moments_of(rows), 3).pairs.correlation[0]
    for distance in 10.0 ** np.arange(-1.0, -17.0, -1.0):
        near = np.column_stack([rows[:, :3], rows[:, 0] + distance * noise, rows[:, 3:]])
        model = canonical_model(moments_of(near), 4)
        assert all(np.all(np.isfinite(values)) for values in model.pairs)
        assert model.pairs.correlation[0] == pytest.approx(without, abs=0.03)
        assert np.all(np.isfinite(log_density(model, near[:, :4], near[:, 4:])))


@pytest.mark.parametrize("n", [2, 3, 5, 18, 30])
def test_more_columns_than_rows(n: int) -> None:
    """Correlations of the sample would all be 1. None are found between columns that have nothing in common."""
    rng = np.random.default_rng(n)
    rows = rng.normal(size=(n, 50)) * np.logspace(-5.0, 5.0, 50)
    model = canonical_model(moments_of(rows), 30)
    assert model.x.n_signals + model.y.n_signals <= n / 4
    assert model.n_retained == 0
    unseen = rng.normal(size=(20, 50)) * np.logspace(-5.0, 5.0, 50)
    assert np.all(np.isfinite(log_density(model, unseen[:, :30], unseen[:, 30:])))
    assert np.all(np.isfinite(conditional(model, unseen[:, :30]).mean))


def test_what_many_columns_share_is_found_with_few_rows() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 2))
    rows = z @ rng.normal(size=(2, 150)) + rng.normal(size=(60, 150))
    model = canonical_model(moments_of(rows), 90)
    assert (model.x.n_signals, model.y.n_signals, model.n_retained) == (2, 2, 2)
    truth = z @ np.linalg.lstsq(z, shared(model, rows[:, :90], rows[:, 90:])[0], rcond=None)[0]
    np.testing.assert_allclose(truth, shared(model, rows[:, :90], rows[:, 90:])[0], atol=0.6)
    scaled = canonical_model(moments_of(rows * np.logspace(-9.0, 9.0, 150)), 90)
    np.testing.assert_allclose(scaled.pairs.correlation, model.pairs.correlation, atol=1e-9)


def test_one_view_that_never_varies() -> None:
    rows = np.column_stack([np.full((30, 2), 3.0), small(30)[:, :2]])
    model = canonical_model(moments_of(rows), 2)
    assert model.n_retained == 0
    told = conditional(model, rows[:, :2])
    np.testing.assert_allclose(told.mean, np.tile(rows[:, 2:].mean(axis=0), (30, 1)))
    assert correlation_intervals(model, 0.9).shape == (0, 2)


def test_what_cannot_be_is_named() -> None:
    with pytest.raises(InvalidSpec, match="more than one row; got a weight of 1"):
        canonical_model(moments_of(small(1)), 3)
    with pytest.raises(InvalidSpec, match="`selection` must be one of evidence, relevance; got 'all'"):
        canonical_model(moments_of(small()), 3, selection="all")  # type: ignore[arg-type]
