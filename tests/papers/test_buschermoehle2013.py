"""The sequences of Buschermoehle et al. 2013, the algorithms written out, and what is claimed: by other routes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bayou import FunctionNorm, GeometricStiffness
from bayou.numerics.jit import COMPILED
from bayou.papers.__main__ import main
from bayou.papers.buschermoehle2013 import PAPER, figure_1, figure_2, table_1
from bayou.papers.buschermoehle2013.sequences import (
    DOMAIN,
    GRID,
    GROWTH,
    NOISE,
    ORDERS,
    SNAPSHOTS,
    START,
    Sequences,
    batch_fit,
    deviation,
    draw_sequences,
    estimate,
    irma,
    median,
    predictions,
    snapshots,
    target,
)
from bayou.papers.buschermoehle2013.written_out import (
    chebyshev_at,
    incremental_risk,
    integrals,
    normalised_gradient,
    recursive_least_squares,
)
from bayou.papers.claims import judge
from bayou.papers.ensembles import Estimate

FEW = draw_sequences(5, seed=7)
needs_kernels = pytest.mark.skipif(not COMPILED, reason="ensembles need compiled kernels")


# Sequences


def test_examples_are_those_of_the_paper() -> None:
    """Means of so many have standard errors of 0.003 (inputs) and 1e-4 (noise)."""
    x, y = draw_sequences(500, seed=1)
    noise = y - x * np.exp(-(x**2))
    assert 0.0 <= x.min() < x.max() <= 3.0
    assert np.abs(noise).max() <= NOISE
    assert x.mean() == pytest.approx(1.5, abs=0.01)
    assert noise.mean() == pytest.approx(0.0, abs=4e-4)
    assert noise.var() == pytest.approx(figure_1.NOISE_VARIANCE, rel=0.01)


def test_the_first_of_many_sequences_are_those_of_few() -> None:
    np.testing.assert_array_equal(draw_sequences(9, seed=7).x[:5], FEW.x)
    assert not np.any(draw_sequences(5, seed=8).x == FEW.x)


def test_statistics_have_the_standard_errors_that_they_say() -> None:
    """Of 400 samples of 200 numbers each, within 3 of the standard errors of a deviation, of 3.5 %."""
    samples = np.random.default_rng(0).normal(2.0, 3.0, size=(400, 200))
    for statistic, centre in ((estimate, 2.0), (deviation, 3.0), (median, 2.0)):
        found = [statistic(sample) for sample in samples]
        values = np.array([each.mean for each in found])
        said = np.mean([each.standard_error for each in found])
        assert values.mean() == pytest.approx(centre, abs=3.0 * values.std() / math.sqrt(400) + 0.02)
        assert values.std() == pytest.approx(said, rel=0.11)


def test_the_ratio_of_means_has_the_standard_error_that_it_says() -> None:
    rng = np.random.default_rng(0)
    common = rng.normal(10.0, 1.0, size=(400, 200))
    ours = 1.5 * common + rng.normal(0.0, 0.5, size=common.shape)
    found = [figure_1.ratio(*pair) for pair in zip(ours, common, strict=True)]
    values = np.array([each.mean for each in found])
    assert values.mean() == pytest.approx(1.5, abs=0.001)
    assert values.std() == pytest.approx(np.mean([each.standard_error for each in found]), rel=0.11)


# Written out


def test_integrals_are_those_of_sums() -> None:
    x = np.linspace(*DOMAIN, 200_001)
    values = chebyshev_at(x, 4)
    np.testing.assert_allclose(
        integrals(4), np.trapezoid(values[:, :, None] * values[:, None, :], x, axis=0), atol=1e-8
    )


def test_each_step_minimises_the_risk() -> None:
    """(6), by quadrature: no small step away from where (8) leads makes it smaller."""
    order, A = 4, integrals(4)
    before = incremental_risk(Sequences(FEW.x[:, :20], FEW.y[:, :20]), order)[1]
    after = incremental_risk(Sequences(FEW.x[:, :21], FEW.y[:, :21]), order)[1]
    phi, y = chebyshev_at(FEW.x[:, 20], order), FEW.y[:, 20]

    def risk(theta: np.ndarray) -> np.ndarray:
        change = theta - before
        moved = np.einsum("ij,jk,ik->i", change, A, change)
        return START * GROWTH**20 * moved + (y - np.sum(theta * phi, axis=1)) ** 2

    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-3):
        for _ in range(50):
            step = size * rng.normal(size=after.shape)
            assert np.all(risk(after + step) > risk(after))


def test_powers_give_the_same_where_they_keep_their_digits() -> None:
    """(8) to the letter, with the powers of (14) and their integrals in closed form."""
    order = 4
    powers = np.add.outer(np.arange(order + 1), np.arange(order + 1))
    A = 3.0 ** (powers + 1) / (powers + 1)
    said = np.empty(FEW.x.shape)
    for row, (xs, ys) in enumerate(zip(*FEW, strict=True)):
        theta, sigma = np.zeros(order + 1), 0.1
        for t, (x, y) in enumerate(zip(xs, ys, strict=True)):
            phi = x ** np.arange(order + 1.0)
            said[row, t] = theta @ phi
            theta = np.linalg.solve(A + np.outer(phi, phi) / sigma, A @ theta + phi * y / sigma)
            sigma *= 1.05
    np.testing.assert_allclose(incremental_risk(FEW, order)[0], said, atol=1e-9)


# Learners


@needs_kernels
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("domain", [DOMAIN, table_1.WIDER])
def test_the_learner_is_the_equation(order: int, domain: tuple[float, float]) -> None:
    said, theta = incremental_risk(FEW, order, domain)
    np.testing.assert_allclose(predictions([irma(order, domain)], FEW)[0], said, atol=figure_2.EXACT)
    ends = [functions[-1] for functions in snapshots(irma(order, domain), FEW, GRID)]
    np.testing.assert_allclose(ends, theta @ chebyshev_at(GRID, order, domain).T, atol=1e-11)


@needs_kernels
def test_gradient_and_least_squares_are_those_written_out() -> None:
    approaches = [figure_1.APPROACHES[name] for name in ("GD", "RLS")]
    gd, rls = predictions(approaches, FEW)
    expected = normalised_gradient(FEW, figure_1.ORDER, figure_1.TIKHONOV)
    np.testing.assert_allclose(gd, expected, rtol=1e-9, atol=1e-9)
    # R has a condition of 1e8, which the equation R theta = r pays with digits
    expected = recursive_least_squares(FEW, figure_1.ORDER, figure_1.FORGETTING, figure_1.TIKHONOV)
    np.testing.assert_allclose(rls, expected, rtol=1e-6, atol=1e-6)


@needs_kernels
@pytest.mark.parametrize(("start", "growth"), [(START, GROWTH), (3.0 * START, 1.06)])
def test_a_wrong_stiffness_breaks_the_equation(start: float, growth: float) -> None:
    """Such as one whose norm is taken for a mean, or that grows faster."""
    right = irma(6)
    wrong = replace(right, student=right.student._replace(posterior=FunctionNorm(GeometricStiffness(start, growth))))
    gap = float(np.abs(predictions([wrong], FEW)[0] - incremental_risk(FEW, 6)[0]).max())
    assert not judge(figure_2.EQUATION[6], None, Estimate(gap, 0.0)).holds


@needs_kernels
def test_snapshots_are_taken_when_they_say() -> None:
    functions = next(snapshots(irma(4), FEW, GRID))
    for place, n in enumerate(SNAPSHOTS):
        theta = incremental_risk(Sequences(FEW.x[:1, :n], FEW.y[:1, :n]), 4)[1]
        np.testing.assert_allclose(functions[place], chebyshev_at(GRID, 4) @ theta[0], atol=1e-11)


def test_the_batch_fit_is_that_of_numpy() -> None:
    x, y = FEW.x[0], FEW.y[0]
    np.testing.assert_allclose(batch_fit(6, x, y, GRID), np.polyval(np.polyfit(x, y, 6), GRID), atol=1e-8)


# Claims


def test_slopes_tell_where_a_function_is_the_target() -> None:
    near = np.array([np.abs(figure_2.X[:, None] - x[:10]).min(axis=1) < 0.1 for x in FEW.x])
    functions = np.where(near, target(figure_2.X), 0.0)
    assert figure_2.slope_on_target(functions, FEW, 0.0, 0.1) == pytest.approx((1.0, 0.0), abs=1e-12)
    assert figure_2.slope_on_target(functions, FEW, 0.1, math.inf) == pytest.approx((0.0, 0.0), abs=1e-12)


def test_what_is_printed_has_its_own_standard_error() -> None:
    """Half a digit, and thrice the root of variance / 1000."""
    assert table_1.margin(3.1e-3, 0.0) == pytest.approx(0.05e-3)
    assert table_1.margin(9.4e-5, 3.0e-9) == pytest.approx(0.05e-5 + 3.0 * math.sqrt(3.0e-12))


def test_the_farthest_ratio_may_lie_on_either_side() -> None:
    errors = {cell: np.array([0.9, 1.1]) * mean for cell, mean in table_1.MEANS.items()}
    assert table_1.farthest(errors).mean == pytest.approx(1.0)
    assert table_1.farthest(errors | {(10, 4): 0.5 * errors[10, 4]}).mean == pytest.approx(0.5)
    assert table_1.farthest(
        errors | {(10, 4): 0.5 * errors[10, 4], (80, 6): 3.0 * errors[80, 6]}
    ).mean == pytest.approx(3.0)


def test_the_printed_deviations_are_variances() -> None:
    """Of numbers that vary as printed; as deviations they would be off by orders of magnitude."""
    rng = np.random.default_rng(0)
    as_variances = {cell: rng.normal(0.0, math.sqrt(v), 2_000) for cell, v in table_1.VARIANCES.items()}
    as_deviations = {cell: rng.normal(0.0, v, 2_000) for cell, v in table_1.VARIANCES.items()}
    assert judge(table_1.VARIANCE, None, table_1.variance_ratio(as_variances)).holds
    assert not judge(table_1.VARIANCE, None, table_1.variance_ratio(as_deviations)).holds


@pytest.fixture(scope="module")
def quick_rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, list[dict[str, object]], Path]:
    if not COMPILED:
        pytest.skip("ensembles need compiled kernels")
    folder = tmp_path_factory.mktemp("papers")
    code = main(["run", "buschermoehle2013", "--quick", "--output", str(folder)])
    return code, json.loads((folder / "claims.json").read_text(encoding="utf-8")), folder


def test_quick_claims_hold_but_for_the_erratum(quick_rows: tuple[int, list[dict[str, object]], Path]) -> None:
    """Each within 3 of its own standard errors, with seed 0."""
    code, rows, _ = quick_rows
    claims = [claim.quantity for experiment in PAPER.experiments for claim in experiment.claims]
    assert sorted(str(row["quantity"]) for row in rows) == sorted(claims)
    assert [row["quantity"] for row in rows if not row["holds"]] == [table_1.DEVIATION.quantity]
    assert code == 0


def test_both_figures_are_drawn(quick_rows: tuple[int, list[dict[str, object]], Path]) -> None:
    folder = quick_rows[2]
    for name in ("figure-1", "figure-2"):
        assert (folder / f"buschermoehle2013-{name}.png").read_bytes().startswith(b"\x89PNG")
    told = (folder / "buschermoehle2013-figure-2.csv").read_text(encoding="utf-8")
    assert all(f'"order {order}, {n} examples: IRMA"' in told for order in ORDERS for n in SNAPSHOTS)
    assert all(f'"order {order}, batch of 150: batch fit"' in told for order in ORDERS)
