"""Local linear functions of inputs: against least squares, sampling and refits; units, and clusters that are flat."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from scipy.optimize import brentq

from bayou.mixtures.conditional import Conditional, conditional, log_density, mixed, quantiles
from bayou.mixtures.evidence import Prior, Statistics
from bayou.mixtures.gaussians import Gaussians, collect
from bayou.mixtures.joint import Blocks, blocks_of, joint_gaussians, local_regressions, predictive_noise, unexplained
from bayou.mixtures.shapes import EXTENDED_RADIAL, FULL, NORMALISED_RADIAL
from bayou.mixtures.subspace_functions import SubspaceFunctions, subspace_functions_of
from bayou.numerics.jit import COMPILED

SHAPES = {"full": FULL, "extended radial": EXTENDED_RADIAL, "normalised radial": NORMALISED_RADIAL}


def prior_of(n_inputs: int, shape: int = FULL) -> Prior:
    return Prior(0.1, 1.0, 0.5, shape, n_inputs)


def sums(rows: np.ndarray, labels: np.ndarray | None = None) -> Statistics:
    labels = np.zeros(len(rows), dtype=int) if labels is None else labels
    return collect(rows, np.eye(labels.max() + 1)[labels])


def slopes_of(clusters: Gaussians, d: int) -> np.ndarray:
    """(cluster, input, target), by solving for them."""
    return np.linalg.solve(clusters.covariance[:, :d, :d], clusters.covariance[:, :d, d:])


def noises_of(clusters: Gaussians, d: int) -> np.ndarray:
    """What the inputs leave of each target, by the inverse of the whole covariance."""
    return np.stack([1.0 / np.diagonal(np.linalg.inv(covariance))[d:] for covariance in clusters.covariance])


# --- sums, and the Gaussians of local functions


def test_blocks_are_numpys_covariances() -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(90, 5)) @ rng.normal(size=(5, 5)) + 3.0, np.arange(90) % 3
    found = blocks_of(sums(rows, labels), 3)
    for c in range(3):
        whole = np.cov(rows[labels == c].T, bias=True)
        np.testing.assert_allclose(found.inputs[c], whole[:3, :3], rtol=1e-9)
        np.testing.assert_allclose(found.cross[c], whole[:3, 3:], rtol=1e-9)
        np.testing.assert_allclose(found.targets[c], whole[3:, 3:], rtol=1e-9)
        np.testing.assert_allclose(found.mean[c], rows[labels == c].mean(axis=0))
    np.testing.assert_array_equal(found.n, [30.0, 30.0, 30.0])


@pytest.mark.parametrize("offset", [0.0, 1e5, 1e9])
def test_rows_far_from_zero_have_covariances(offset: float) -> None:
    """Of 1e9 deviations squares leave nothing; what is read off them must be Gaussians all the same."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 4)) + offset
    for read in (local_regressions, lambda *given: subspace_functions_of(*given, 3).clusters):
        made = read(sums(rows), prior_of(3))
        assert all(np.isfinite(part).all() for part in made)
        assert np.linalg.eigvalsh(made.covariance[0]).min() > 0.0


def test_joint_gaussians_are_those_of_their_samples() -> None:
    """z = mean + B' (x - mean) + noise, drawn as it is written: 400,000 rows, standard errors below 1 %."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    inputs, slope, noise = root @ root.T, rng.normal(size=(3, 2)), np.array([0.5, 2.0])
    mean = rng.normal(size=5)
    blocks = Blocks(np.array([7.0]), mean[None], inputs[None], (inputs @ slope)[None], np.zeros((1, 2, 2)))
    made = joint_gaussians(blocks, inputs[None], slope[None], noise[None])
    x = mean[:3] + rng.normal(size=(400_000, 3)) @ root.T
    z = mean[3:] + (x - mean[:3]) @ slope + rng.normal(size=(400_000, 2)) * np.sqrt(noise)
    sampled = np.cov(np.column_stack([x, z]).T)
    unit = np.sqrt(np.diagonal(sampled))
    np.testing.assert_allclose(made.covariance[0] / np.outer(unit, unit), sampled / np.outer(unit, unit), atol=0.01)
    fitted, residues, *_ = np.linalg.lstsq(np.column_stack([np.ones(len(x)), x]), z, rcond=None)
    point = rng.normal(size=(4, 3))
    told = conditional(made, point, np.arange(5) >= 3)
    np.testing.assert_allclose(told.mean[:, 0], np.column_stack([np.ones(4), point]) @ fitted, atol=0.05)
    np.testing.assert_allclose(told.variance[0], residues / len(x), rtol=0.02)


def test_what_slopes_leave_is_what_residuals_are() -> None:
    """For any slopes, not only the best."""
    rng = np.random.default_rng(0)
    rows, slope = rng.normal(size=(50, 5)), rng.normal(size=(1, 3, 2))
    x, z = rows[:, :3] - rows[:, :3].mean(axis=0), rows[:, 3:] - rows[:, 3:].mean(axis=0)
    found = unexplained(blocks_of(sums(rows), 3), slope)
    np.testing.assert_allclose(found[0], np.mean((z - x @ slope[0]) ** 2, axis=0), rtol=1e-10)


# --- regressions


@pytest.mark.parametrize("shape", ["full", "extended radial"])
def test_many_rows_of_one_cluster_are_least_squares(shape: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, 4)) @ rng.normal(size=(4, 4))
    z = x @ rng.normal(size=(4, 2)) + 0.5 * rng.normal(size=(5000, 2))
    wanted, residues, *_ = np.linalg.lstsq(np.column_stack([np.ones(5000), x]), z, rcond=None)
    made = local_regressions(sums(np.column_stack([x, z])), prior_of(4, SHAPES[shape]))
    np.testing.assert_allclose(slopes_of(made, 4)[0], wanted[1:], atol=1e-3)  # a tenth of a standard error
    told = conditional(made, x[:5], np.arange(6) >= 4)
    np.testing.assert_allclose(told.mean[:, 0], np.column_stack([np.ones(5), x[:5]]) @ wanted, atol=5e-3)
    np.testing.assert_allclose(told.variance[0], residues / 4995.0 * 5000.0 / 4993.0, rtol=2e-3)


def test_radial_functions_have_no_slope() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 2)) * [1.0, 3.0]
    made = local_regressions(sums(np.column_stack([x, x[:, 0]])), prior_of(2, NORMALISED_RADIAL))
    np.testing.assert_array_equal(made.covariance[0, :2, 2], 0.0)
    assert made.covariance[0, 2, 2] == pytest.approx(np.var(x[:, 0]), rel=0.01)
    np.testing.assert_allclose(np.diagonal(made.covariance[0])[:2], np.var(x, axis=0).mean(), rtol=1e-3)


def coverage(n: int, noise: float, most: int | None, repeats: int) -> np.ndarray:
    """Of 90 % intervals, in each of many data sets of five inputs: of 50 rows that were not learnt."""
    found = np.empty(repeats)
    for seed in range(repeats):
        rng = np.random.default_rng([seed, n])
        x = rng.normal(size=(n + 50, 5))
        z = x @ rng.normal(size=5) / np.sqrt(5.0) + noise * rng.normal(size=n + 50)
        rows = np.column_stack([x, z])
        rows = (rows - rows[:n].mean(axis=0)) / rows[:n].std(axis=0)
        given = sums(rows[:n]), prior_of(5)
        made = local_regressions(*given) if most is None else subspace_functions_of(*given, most).clusters
        low, high = quantiles(conditional(made, rows[n:, :5], np.arange(6) >= 5), np.array([0.05, 0.95]))[:, 0].T
        found[seed] = np.mean((rows[n:, 5] > low) & (rows[n:, 5] < high))
    return found


@pytest.mark.skipif(not COMPILED, reason="hundreds of regressions need compiled kernels")
@pytest.mark.parametrize("most", [None, 5])
@pytest.mark.parametrize(("n", "noise"), [(15, 1.0), (30, 0.1), (100, 1e-3)])
def test_intervals_of_refits_cover(n: int, noise: float, most: int | None) -> None:
    """120 data sets: the standard error is at most 1 %. A subspace that was chosen by the same rows covers less."""
    found = coverage(n, noise, most, 120)
    assert found.std() / np.sqrt(119.0) < 0.011
    assert (0.83 if most and n < 100 else 0.86) < found.mean() < 0.94


def test_predictive_noise_is_the_variance_of_new_rows() -> None:
    """20,000 refits of 3 slopes to 12 rows, a new row each: the mean square of its error, standard error 2 %."""
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(20_000, 13, 3)), 0.3 * rng.normal(size=(20_000, 13))
    full = np.concatenate([np.ones((20_000, 13, 1)), x], axis=2)
    gram = np.swapaxes(full[:, :12], 1, 2) @ full[:, :12]
    slope = np.linalg.solve(gram, np.einsum("sni,sn->si", full[:, :12], z[:, :12])[..., None])[..., 0]
    left = np.mean((z[:, :12] - np.einsum("sni,si->sn", full[:, :12], slope)) ** 2, axis=1)
    error = np.mean((z[:, 12] - np.einsum("si,si->s", full[:, 12], slope)) ** 2)
    told = predictive_noise(left[:, None], np.full((20_000, 1), 12.0), np.array(3))
    # A Student t of 8 degrees has 8 / 6 of the variance, which is what makes normal intervals as wide as its own.
    assert told.mean() * 6.0 / 8.0 == pytest.approx(error, rel=0.06)


def test_noise_of_few_rows_is_that_of_all_targets() -> None:
    """Rows that were all fitted tell nothing of it; and the more there are, the less the belief counts."""
    for n in (1.0, 2.0, 4.0, 6.0):
        wide = predictive_noise(np.array([[0.0]]), np.array([[n]]), np.array(5))[0, 0]
        assert wide == pytest.approx(1.0 + 6.0 / n)
    ladder = [predictive_noise(np.array([[1e-4]]), np.array([[n]]), np.array(5))[0, 0] for n in np.arange(6.0, 40.0)]
    assert np.all(np.diff(ladder) <= 0.0)
    assert ladder[0] > 100.0 * ladder[-1]
    assert predictive_noise(np.array([[1e-8]]), np.array([[1000.0]]), np.array(5))[0, 0] < 2e-8
    assert predictive_noise(np.array([[50.0]]), np.array([[3.0]]), np.array(5))[0, 0] == 150.0


# --- subspaces


def along(seed: int, factors: tuple[int, ...], d: int = 8, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Rows of clusters along subspaces, with a target that is linear in their factors, and labels."""
    rng = np.random.default_rng(seed)
    parts = []
    for m in factors:
        directions = np.linalg.qr(rng.normal(size=(d, m)))[0]
        y = 2.0 * rng.normal(size=(n, m))
        x = 6.0 * rng.normal(size=d) + y @ directions.T + 0.5 * rng.normal(size=(n, d))
        parts.append(np.column_stack([x, y @ rng.choice([-1.0, 1.0], m) + 0.2 * rng.normal(size=n)]))
    rows = np.concatenate(parts)
    return (rows - rows.mean(axis=0)) / rows.std(axis=0), np.repeat(np.arange(len(factors)), n)


def n_factors(found: SubspaceFunctions) -> list[int]:
    return [factors.loadings.size for factors in found.factors]


@pytest.mark.parametrize("true", [(2, 2, 2, 2), (1, 2, 3), (0, 3)])
def test_factors_are_counted(true: tuple[int, ...]) -> None:
    for seed in range(8):
        rows, labels = along(seed, true)
        assert n_factors(subspace_functions_of(sums(rows, labels), prior_of(8), 8)) == list(true)
        assert max(n_factors(subspace_functions_of(sums(rows, labels), prior_of(8), 1))) == 1


def test_slopes_are_along_the_factors_and_those_of_the_coordinates() -> None:
    """Least squares on the coordinates in the subspace is the second route."""
    rows, labels = along(3, (2, 3))
    found = subspace_functions_of(sums(rows, labels), prior_of(8), 8)
    for c in range(2):
        own = rows[labels == c]
        directions = found.factors[c].directions
        slope = slopes_of(found.clusters, 8)[c] * found.unit[:, None]  # in units of noise
        np.testing.assert_allclose(directions @ (directions.T @ slope), slope, atol=1e-9 * np.abs(slope).max())
        coordinates = (own[:, :8] - own[:, :8].mean(axis=0)) / found.unit @ directions
        wanted, residues, *_ = np.linalg.lstsq(
            np.column_stack([np.ones(len(own)), coordinates]), own[:, 8:], rcond=None
        )
        np.testing.assert_allclose(directions.T @ slope, wanted[1:], rtol=1e-3)
        free = 400.0 - 1.0 - directions.shape[1] - 2.0
        noise = residues / free * (1.0 + (1.0 + directions.shape[1]) / (free + 1.0))
        np.testing.assert_allclose(noises_of(found.clusters, 8)[c], noise, rtol=1e-3)


def test_isotropic_inputs_have_all_directions_if_targets_need_them() -> None:
    """No subspace tells the target; where no target depends on inputs, none is needed."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 4))
    z = x @ [1.0, -0.5, 0.7, 2.0] + 0.1 * rng.normal(size=1000)
    assert n_factors(subspace_functions_of(sums(np.column_stack([x, z])), prior_of(4), 4)) == [4]
    alone = np.column_stack([x, rng.normal(size=1000)])
    assert n_factors(subspace_functions_of(sums(alone), prior_of(4), 4)) == [0]


def test_nothing_depends_on_the_units_of_inputs() -> None:
    """Columns in units from 1e-3 to 1e3, with a cluster of one row, a copy of a column and one that is constant."""
    rows, labels = along(1, (1, 2), n=150)
    rows = np.insert(rows, 8, [rows[:, 0], np.full(len(rows), 0.5)], axis=1)
    rows, labels = np.concatenate([rows, rows[:1] + 9.0]), np.append(labels, 2)
    rows[-1, 9] = 0.5
    units = np.append(np.geomspace(1e-3, 1e3, 9)[np.random.default_rng(0).permutation(9)], [1.0, 1.0])
    plain, other = (subspace_functions_of(sums(rows * u, labels), prior_of(10), 10) for u in (np.ones(11), units))
    assert n_factors(plain) == n_factors(other)
    square = np.outer(units, units)
    np.testing.assert_allclose(other.clusters.covariance / square, plain.clusters.covariance, rtol=1e-5, atol=1e-8)
    told = [
        mixed(conditional(found.clusters, rows[:20, :10] * u[:10], np.arange(11) >= 10))
        for found, u in ((plain, np.ones(11)), (other, units))
    ]
    np.testing.assert_allclose(told[0], told[1], rtol=1e-4, atol=1e-6)


# --- what is flat


@pytest.mark.parametrize("kind", ["subspace", *SHAPES])
@pytest.mark.parametrize("rows", ["one", "two", "identical", "copies", "constant", "exact", "no target"])
def test_flat_clusters_have_densities(kind: str, rows: str) -> None:
    """Beside a cluster like any other; one row is expected with the variance of all targets at least."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3))
    flat = {
        "one": x[:1],
        "two": x[:2],
        "identical": np.tile(x[:1], (40, 1)),
        "copies": x[:, [0, 0, 0]],
        "constant": np.column_stack([x[:, :2], np.ones(80)]),
        "exact": x,
        "no target": x,
    }[rows]
    z = np.zeros(len(flat)) if rows == "no target" else flat @ [1.0, 0.5, -1.0]
    both = np.concatenate([np.column_stack([flat, z]) + 12.0, np.column_stack([x, rng.normal(size=80)])])
    labels = np.repeat([0, 1], [len(flat), 80])
    given = sums(both, labels), prior_of(3, SHAPES.get(kind, FULL))
    made = subspace_functions_of(*given, 3).clusters if kind == "subspace" else local_regressions(*given)
    assert np.linalg.eigvalsh(made.covariance).min() > 0.0
    found = conditional(made, both[:, :3], np.arange(4) >= 3)
    assert all(np.isfinite(part).all() for part in found)
    assert np.isfinite(log_density(found, both[:, 3:])).all()
    if rows == "one":
        assert found.variance[0, 0] >= 1.0
    elif rows in ("identical", "copies", "constant", "exact", "no target") and kind != "normalised radial":
        assert found.variance[0, 0] < 1e-2
        np.testing.assert_allclose(mixed(found)[0][: len(flat), 0], both[: len(flat), 3], atol=0.02)


# --- mixtures of what is expected


def some_conditional(seed: int) -> Conditional:
    rng = np.random.default_rng(seed)
    return Conditional(rng.dirichlet(np.ones(3), 6), 3.0 * rng.normal(size=(6, 3, 2)), rng.uniform(0.1, 2.0, (3, 2)))


def test_quantiles_are_where_scipys_distribution_crosses() -> None:
    found, levels = some_conditional(0), np.array([0.001, 0.05, 0.5, 0.9])
    made = quantiles(found, levels)
    assert made.shape == (6, 2, 4)
    for row, target, place in np.ndindex(made.shape):
        parts = scipy.stats.norm(found.mean[row, :, target], np.sqrt(found.variance[:, target]))
        wanted = brentq(
            lambda value, row=row, parts=parts, place=place: found.chance[row] @ parts.cdf(value) - levels[place],
            -50.0,
            50.0,
            xtol=1e-12,
        )
        assert made[row, target, place] == pytest.approx(wanted, abs=1e-8)


def test_log_density_is_scipys() -> None:
    found, values = some_conditional(1), np.random.default_rng(2).normal(size=(6, 2))
    for row in range(6):
        each = [
            scipy.stats.multivariate_normal(found.mean[row, k], np.diag(found.variance[k])).pdf(values[row])
            for k in range(3)
        ]
        assert np.exp(log_density(found, values)[row]) == pytest.approx(found.chance[row] @ each, rel=1e-9)


def test_clusters_that_are_out_of_the_question_and_values_far_away() -> None:
    found = Conditional(np.array([[1.0, 0.0]]), np.array([[[0.0], [1e9]]]), np.array([[1.0], [1.0]]))
    assert log_density(found, np.array([[0.5]]))[0] == pytest.approx(scipy.stats.norm.logpdf(0.5))
    assert quantiles(found, np.array([0.95]))[0, 0, 0] == pytest.approx(scipy.stats.norm.ppf(0.95), abs=1e-6)
    assert log_density(found, np.array([[1e100]]))[0] == pytest.approx(-0.5e200)
