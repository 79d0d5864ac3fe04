"""Competition with penalties for rivals: the steps by hand, the window of gamma, and what is kept."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bayou.mixtures.rival_penalised import FARTHEST, Units, compete, square_distances, train, worth_keeping
from bayou.numerics.jit import COMPILED

needs_speed = pytest.mark.skipif(not COMPILED, reason="many thousands of rows need compiled kernels")


def clusters(seed: int, n_columns: int, n: int, distance: float = 5.0, k: int = 4) -> np.ndarray:
    """Gaussians of different shapes whose closest two means are so many deviations apart; mean 0, mean variance 1."""
    random = np.random.default_rng(seed)
    turns = [np.linalg.qr(random.normal(size=(n_columns, n_columns)))[0] for _ in range(k)]
    covariances = [turn @ np.diag(random.uniform(0.5, 1.5, n_columns) ** 2) @ turn.T for turn in turns]

    def closest(means: np.ndarray) -> float:
        pairs = [(i, j) for i in range(k) for j in range(i)]
        mean = [0.5 * (covariances[i] + covariances[j]) for i, j in pairs]
        apart = [means[i] - means[j] for i, j in pairs]
        return min(float(a @ np.linalg.solve(c, a)) ** 0.5 for a, c in zip(apart, mean, strict=True))

    spread = [random.normal(size=(k, n_columns)) for _ in range(20)]
    means = max(spread, key=lambda m: closest(m) / np.std(m))
    means = means * distance / closest(means)
    which = random.choice(k, n, p=random.dirichlet(np.full(k, 10.0)))
    rows = np.array([means[j] + np.linalg.cholesky(covariances[j]) @ random.normal(size=n_columns) for j in which])
    return (rows - rows.mean(axis=0)) / math.sqrt(np.mean(rows.var(axis=0)))


def exact_share(n_columns: int, gamma: float, n: int, epochs: int | None, n_seeds: int = 20) -> float:
    """How often four clusters are found as four."""
    found = [
        worth_keeping(
            train(clusters(seed, n_columns, n), 10, gamma, 0.05, epochs, np.random.default_rng(seed)).counts
        ).sum()
        for seed in range(n_seeds)
    ]
    return float(np.mean(np.array(found) == 4))


def by_hand(
    units: Units, rows: np.ndarray, rates: np.ndarray, gamma: float, memory: float
) -> tuple[np.ndarray, np.ndarray]:
    centres, counts = units.centres.copy(), units.counts.copy()
    for row, rate in zip(rows, rates, strict=True):
        distances = counts / counts.sum() * np.sum((row - centres) ** 2, axis=1)
        winner, rival = np.argsort(distances)[:2]
        counts *= 1.0 - 1.0 / memory
        counts[winner] += 1.0
        before = centres.copy()
        centres[winner] = (1.0 - rate) * before[winner] + rate * row
        centres[rival] = (1.0 + gamma * rate) * before[rival] - gamma * rate * row
    return centres, counts


@pytest.mark.parametrize("memory", [math.inf, 50.0])
def test_the_steps_are_those_of_the_rule(memory: float) -> None:
    random = np.random.default_rng(0)
    rows, units = random.normal(size=(200, 3)), Units(random.normal(size=(5, 3)), np.ones(5))
    wanted = by_hand(units, rows, 0.05 - 0.03 * np.arange(200) / 200.0, 0.3, memory)
    compete(units, rows, np.arange(200), 0.05, 0.02, 0.3, memory)
    np.testing.assert_allclose(units.centres, wanted[0], rtol=1e-10)
    np.testing.assert_allclose(units.counts, wanted[1], rtol=1e-10)


def test_one_unit_has_no_rival_and_follows_the_mean() -> None:
    random = np.random.default_rng(1)
    units = train(random.normal(size=(500, 2)), 1, 0.25, 0.05, None, random)
    np.testing.assert_allclose(units.centres, 0.0, atol=0.15)  # three standard errors of a mean of 500
    assert units.counts.tolist() == [500.0]


def test_units_start_from_rows_that_differ() -> None:
    rows = np.repeat([[0.0, 1.0], [2.0, 0.0], [-1.0, -1.0]], 30, axis=0)
    units = train(rows, 10, 0.0, 0.05, 1, np.random.default_rng(0))
    assert sorted(map(tuple, units.centres.tolist())) == [(-1.0, -1.0), (0.0, 1.0), (2.0, 0.0)]
    assert units.counts.tolist() == [30.0, 30.0, 30.0]


def test_who_is_driven_out_stays_a_number() -> None:
    """Two units and one cluster: the rival is always the same, and leaves exponentially."""
    rows = np.random.default_rng(2).normal(size=(1000, 2))
    units = Units(np.array([[0.0, 0.0], [30.0, 30.0]]), np.ones(2))
    for _ in range(100):
        compete(units, rows, np.arange(1000), 0.05, 0.05, 0.9, math.inf)
    assert np.isfinite(units.centres).all()
    assert FARTHEST <= np.abs(units.centres[1]).max() < 1.1 * FARTHEST
    assert np.abs(units.centres[0]).max() < 1.0
    assert worth_keeping(units.counts).tolist() == [True, False]


def test_a_unit_whose_wins_are_forgotten_takes_a_cluster_that_appears() -> None:
    """The nearer unit serves another cluster: it won of late, the one far away has not won for long."""
    random = np.random.default_rng(3)
    units = Units(np.array([[0.0], [20.0]]), np.ones(2))
    compete(units, random.normal(size=(3000, 1)), np.arange(3000), 0.05, 0.05, 0.0, 40.0)
    both = random.normal(size=(400, 1)) + 8.0 * (random.random((400, 1)) < 0.5)
    compete(units, both, np.arange(400), 0.05, 0.05, 0.0, 40.0)
    np.testing.assert_allclose(units.centres[:, 0], [0.0, 8.0], atol=1.0)


def test_a_fiftieth_of_the_rows_is_a_cluster() -> None:
    assert worth_keeping(np.array([97.0, 3.0])).tolist() == [True, True]
    assert worth_keeping(np.array([98.0, 2.0])).tolist() == [True, False]
    assert worth_keeping(np.ones(200)).all()  # where units are many, an equal share is enough


def test_distances_are_euclidean() -> None:
    random = np.random.default_rng(4)
    rows, centres = random.normal(size=(7, 3)), random.normal(size=(4, 3))
    wanted = [[float(np.linalg.norm(row - centre)) ** 2 for centre in centres] for row in rows]
    np.testing.assert_allclose(square_distances(centres, rows), wanted, rtol=1e-12)


@needs_speed
@pytest.mark.slow
def test_the_window_of_gamma_is_narrow_and_moves() -> None:
    """Four clusters five deviations apart, ten units, 20 draws each: the standard error of a share is at most 0.11."""
    shares = {gamma: exact_share(2, gamma, 400, epochs=15) for gamma in (0.1, 0.15, 0.3, 0.6, 0.8)}
    assert shares[0.3] >= 0.65  # here 0.95
    assert max(shares[0.1], shares[0.15], shares[0.6], shares[0.8]) <= 0.3
    assert max(exact_share(2, gamma, 400, epochs=15) for gamma in (0.2, 0.5)) <= 0.5  # not wider than 0.2 to 0.5
    in_five = {gamma: exact_share(5, gamma, 300, epochs=15) for gamma in (0.25, 0.45, 0.8)}
    assert in_five[0.45] >= 0.5
    assert max(in_five[0.25], in_five[0.8]) <= 0.3
    assert shares[0.3] - exact_share(5, 0.3, 300, epochs=15) >= 0.4  # more dimensions: higher
    assert exact_share(2, 0.2, 400, epochs=40) - exact_share(2, 0.2, 400, epochs=15) >= 0.2  # more epochs: lower


@needs_speed
@pytest.mark.slow
def test_what_counts_is_how_many_rows_are_shown() -> None:
    """With 16,000 presentations the default finds four clusters among 400 rows or 4,000 about as often; 40 epochs of
    4,000 rows drive most of them out. Shares of 20 draws, with standard errors of at most 0.11.
    """
    few, many = exact_share(2, 0.25, 400, None), exact_share(2, 0.25, 4000, None)
    assert min(few, many) >= 0.45
    assert exact_share(5, 0.25, 4000, None) >= 0.45
    assert exact_share(2, 0.25, 4000, 40) <= many - 0.15
