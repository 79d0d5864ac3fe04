"""Wang 2007: the world, the methods of selection, the model written out, and the claims."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bayou.mixtures.canonical_correlation import canonical_model
from bayou.mixtures.two_views import moments_of
from bayou.numerics.jit import COMPILED
from bayou.papers.__main__ import main
from bayou.papers.wang2007 import PAPER, order, recursion, unseen
from bayou.papers.wang2007.world import COLUMNS, CORRELATIONS, bartlett, draw_views, likeliest, share
from bayou.papers.wang2007.written_out import own_scale, shared_scale

N_X = COLUMNS[0]


def test_the_world_has_its_correlations() -> None:
    """100,000 rows: standard errors below 0.002."""
    r = canonical_model(moments_of(draw_views(100_000, 0).rows), N_X).pairs.sample_correlation
    np.testing.assert_allclose(r, [*CORRELATIONS, *[0.0] * 5], atol=0.02)
    assert not np.array_equal(draw_views(50, 0).rows, draw_views(50, 1).rows)
    np.testing.assert_array_equal(draw_views(50, 0).rows, draw_views(50, 0).rows)


def test_penalties_are_those_of_the_likelihood() -> None:
    """By the Gaussian density of the rows themselves: it rises by what is told, and each order has its parameters."""
    rows = draw_views(120, 2).rows
    r = canonical_model(moments_of(rows), N_X).pairs.sample_correlation
    densities = [float(np.sum(unseen.likelihood(rows, rows, k))) for k in range(9)]
    np.testing.assert_allclose(np.diff(densities), -60.0 * np.log1p(-(r**2)), rtol=1e-9)
    parameters = [k * (10 + 8 - k) for k in range(9)]
    for price in (1.0, 0.5 * math.log(120.0)):
        best = int(np.argmax(np.array(densities) - price * np.array(parameters)))
        assert likeliest(r, 120, price) == best
    assert likeliest(r, 120, 0.0) == 8


def test_the_likelihood_is_gaussian() -> None:
    rows, new = draw_views(100, 1, n_unseen=7)
    theirs = multivariate_normal(rows.mean(axis=0), np.cov(rows.T, bias=True)).logpdf(new)
    np.testing.assert_allclose(unseen.likelihood(rows, new, 8), theirs, rtol=1e-9)


def test_bartletts_test_has_its_level() -> None:
    """Without correlations it finds some in one of twenty samples: of 400, 20 +- 4.4."""
    rng, hits = np.random.default_rng(0), 0
    for _ in range(400):
        rows = rng.normal(size=(100, 18))
        hits += bartlett(canonical_model(moments_of(rows), N_X).pairs.sample_correlation, 100) > 0
    assert 7 <= hits <= 33


def test_shares_have_standard_errors() -> None:
    assert share([True, True, False, False]) == (0.5, 0.25)
    mean, error = share([True] * 100)
    assert mean == 1.0
    assert error == pytest.approx(math.sqrt(0.01 * 0.99 / 100.0))


def test_both_models_find_what_generates_many_rows() -> None:
    """Of 20,000 rows: the correlations, in any coordinates, from a start that knows nothing of them."""
    rows = draw_views(20_000, 0).rows
    moments = moments_of(rows)
    rng = np.random.default_rng(0)
    scale = np.sqrt(np.diag(moments.scatter) / moments.weight)
    start = 0.1 * rng.normal(size=(4, 18)) / scale
    starts = start[:, :N_X], start[:, N_X:]
    priors = tuple(1e-3 / 20_000 * moments.scatter[part, part] for part in (slice(None, N_X), slice(N_X, None)))
    for found in (
        shared_scale(moments.scatter, moments.weight, N_X, starts, (priors[0], priors[1]), 600),
        own_scale(moments.scatter, moments.weight, N_X, starts, 600),
    ):
        np.testing.assert_allclose(found.correlations()[:3], CORRELATIONS, atol=0.03)
        covariance = found.loadings[0] @ found.loadings[0].T + found.noises[0]
        np.testing.assert_allclose(covariance, np.cov(rows[:, :N_X].T), atol=0.03 * np.max(np.cov(rows[:, :N_X].T)))


def test_units_matter_to_wangs_model_and_not_to_bayous() -> None:
    rows = draw_views(100, 4).rows
    units = np.logspace(-1.5, 1.5, 18)
    white, other = order.by_wang(moments_of(rows)).values()
    assert np.max(np.abs(white - other)) > order.MOVED
    ours = [canonical_model(moments_of(some), N_X).pairs.correlation for some in (rows, rows * units)]
    np.testing.assert_allclose(ours[0], ours[1], atol=1e-9)


@pytest.mark.parametrize(("n", "least"), [(100, 0.85), (200, 0.9)])
def test_three_of_three_are_found_in_most_of_thirty_samples(n: int, least: float) -> None:
    """A standard error of 5 %; samples that no claim has looked at."""
    found = [order.orders(moments_of(draw_views(n, 9000 + seed).rows)) for seed in range(30)]
    for method in ("evidence", "relevance"):
        assert np.mean([one[method] == 3 for one in found]) >= least


def test_where_there_are_none_the_evidence_finds_none() -> None:
    """40 samples of 100 rows: a standard error below 4 %; relevance alone finds some in most."""
    found = [order.orders(moments_of(draw_views(100, 9000 + seed, ()).rows)) for seed in range(40)]
    assert np.mean([one["evidence"] == 0 for one in found]) > 0.9
    assert np.mean([one["relevance"] == 0 for one in found]) < 0.4


def test_a_wrong_start_of_matrices_is_noticed() -> None:
    """The comparison with matrices can fail: with another prior they come to something else."""
    rows = draw_views(100, 0).rows
    model = canonical_model(moments_of(rows), N_X)
    moments = moments_of(rows)
    start = 0.5 / np.sqrt(0.5 * (1.0 + model.pairs.sample_correlation))
    starts = start[:, None] * model.x.weights[:, :8].T, start[:, None] * model.y.weights[:, :8].T
    priors = 5.0 * moments.scatter[:N_X, :N_X] / 100.0, 5.0 * moments.scatter[N_X:, N_X:] / 100.0
    found = shared_scale(moments.scatter, 100.0, N_X, starts, priors, recursion.ROUNDS).correlations()
    assert np.max(np.abs(found - model.pairs.correlation)) > 1e-3


@pytest.fixture(scope="module")
def quick_rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[dict[str, object]], Path]:
    if not COMPILED:
        pytest.skip("ensembles need compiled kernels")
    folder = tmp_path_factory.mktemp("papers")
    code = main(["run", "wang2007", "--quick", "--output", str(folder)])
    return code, json.loads((folder / "claims.json").read_text(encoding="utf-8")), folder


def test_quick_claims_hold(quick_rows: tuple[int, list[dict[str, object]], Path]) -> None:
    """Each within 3 of its own standard errors, with seed 0."""
    code, rows, _ = quick_rows
    claims = [claim.quantity for experiment in PAPER.experiments for claim in experiment.claims]
    assert sorted(str(row["quantity"]) for row in rows) == sorted(claims)
    assert [row["quantity"] for row in rows if not row["holds"]] == []
    assert code == 0


def test_the_picture_has_every_method(quick_rows: tuple[int, list[dict[str, object]], Path]) -> None:
    folder = quick_rows[2]
    assert (folder / "wang2007-order.png").read_bytes().startswith(b"\x89PNG")
    told = (folder / "wang2007-order.csv").read_text(encoding="utf-8")
    assert all(name in told for name in ("bayou", "relevance alone", "ML", "AIC", "BIC", "Bartlett", *order.WANG))
