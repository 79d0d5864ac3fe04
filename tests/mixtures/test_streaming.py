"""Streams: what a look at the structure sees, by second routes; units that change on the way; any order of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from bayou import HarmonyMixture, SubspaceRegressor
from bayou.mixtures.evidence import Prior, Statistics, log_evidence, log_shares
from bayou.mixtures.gaussians import collect, gaussians_of, log_joint
from bayou.mixtures.harmony import Mixture, learn_mixture
from bayou.mixtures.points import N_HELD, StreamBelief, best_merge, gain_of_newcomers, has_spread, newcomers
from bayou.mixtures.streaming import (
    LAGS,
    StreamOptions,
    Units,
    begin_stream,
    learn_stream,
    retold,
    statistics_of,
    units_of,
)
from bayou.numerics.jit import COMPILED
from tests.mixtures.made import clusters

PRIOR = Prior(certainty=0.3, strength=2.0, scale=0.5)


def belief_of(groups: list[np.ndarray]) -> StreamBelief:
    """A stream that has learnt these clusters, one after the other."""
    rows = np.concatenate(groups)
    weights = np.repeat(np.eye(len(groups)), [len(group) for group in groups], axis=0)
    statistics = collect(rows, weights)
    return begin_stream(Mixture(statistics, gaussians_of(statistics, PRIOR), PRIOR), rows)


def value_of(statistics: Statistics) -> float:
    return float(log_evidence(statistics, PRIOR).sum()) + log_shares(statistics.n)


def test_the_best_merge_is_that_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    groups = [rng.normal(centre, 1.0, size=(30 + 5 * i, 3)) for i, centre in enumerate((0.0, 6.0, 6.5, -9.0))]
    statistics = statistics_of(belief_of(groups))
    values = {
        (i, j): value_of(statistics.without(i, j).beside(statistics.joined(i, j))) - value_of(statistics)
        for i in range(4)
        for j in range(i + 1, 4)
    }
    i, j, gain = best_merge(*statistics, np.array(PRIOR))
    assert (i, j) == max(values, key=values.__getitem__) == (1, 2)
    assert gain == pytest.approx(values[1, 2], rel=1e-9)


def test_the_gain_of_newcomers_is_that_of_the_sums() -> None:
    rng = np.random.default_rng(1)
    old, new = rng.normal(size=(60, 2)), rng.normal(5.0, 1.0, size=(40, 2))
    belief = belief_of([np.concatenate([old, new]), rng.normal(-9.0, 1.0, size=(50, 2))])
    own = np.arange(100)[::-1].copy()  # places in the ring, the latest first
    whole = statistics_of(belief)
    split = collect(np.concatenate([old, new]), np.repeat(np.eye(2), [60, 40], axis=0))
    finer = whole.without(0).beside(split)
    found = gain_of_newcomers(belief, 0, own, 100, 40, np.array(PRIOR))
    found -= log_evidence(Statistics(*(part[:1] for part in whole)), PRIOR)[0]
    assert found == pytest.approx(value_of(finer) - value_of(whole), rel=1e-9)


def test_newcomers_are_seen_to_the_point() -> None:
    """63 points of another place, after 80: not one of the numbers that are tried first, but near one."""
    rng = np.random.default_rng(2)
    rows = np.concatenate([rng.normal(size=(80, 2)), rng.normal(4.5, 1.0, size=(63, 2))])
    cluster, count = newcomers(belief_of([rows]), LAGS, np.array(PRIOR))
    assert cluster == 0
    assert abs(count - 63) <= 2
    assert newcomers(belief_of([rng.normal(size=(143, 2))]), LAGS, np.array(PRIOR)) == (-1, 0)


def test_a_remainder_of_sums_may_be_of_no_points() -> None:
    """More taken away than there was: the covariance that is left is not positive."""
    rows = np.random.default_rng(3).normal(size=(40, 3))
    n, s1, s2 = (part[0] for part in collect(rows, np.ones((40, 1))))
    assert has_spread(float(n), s1, s2)
    few = collect(3.0 * rows[:20], np.ones((20, 1)))
    assert not has_spread(float(n - few.n[0]), s1 - few.s1[0], s2 - few.s2[0])


def test_other_units_tell_the_same() -> None:
    """Densities of all points, those kept and those held back too, are the same but for the volume of the units."""
    rng = np.random.default_rng(4)
    groups = [rng.normal(centre, 1.0, size=(80, 2)) for centre in (0.0, 7.0)]
    belief = belief_of(groups)
    belief.held[:2], belief.tally[N_HELD] = [[20.0, 20.0], [21.0, 19.0]], 2.0
    units = Units(np.array([3.0, -2.0]), np.array([0.5, 4.0]))
    other, prior = retold(belief, PRIOR, units)
    rows = rng.normal(3.0, 4.0, size=(10, 2))
    weak = Prior(0.3, 1e-9, 1.0)  # without one: priors are told in units
    before = log_joint(gaussians_of(statistics_of(belief), weak), rows)
    after = log_joint(gaussians_of(statistics_of(other), weak), (rows - units.location) / units.scale)
    np.testing.assert_allclose(after - np.sum(np.log(units.scale)), before, rtol=1e-8)
    np.testing.assert_allclose(other.held[:2] * units.scale + units.location, [[20.0, 20.0], [21.0, 19.0]])
    np.testing.assert_allclose(other.ring[:160] * units.scale + units.location, np.concatenate(groups))
    assert not other.ring[160:].any()
    assert prior.scale != PRIOR.scale


def test_units_are_those_of_all_points() -> None:
    rng = np.random.default_rng(5)
    groups = [rng.normal(centre, 1.0, size=(50, 2)) for centre in (0.0, 7.0)]
    mean, deviation = units_of(belief_of(groups))
    rows = np.concatenate(groups)
    np.testing.assert_allclose(mean, rows.mean(axis=0))
    np.testing.assert_allclose(deviation, rows.std(axis=0))


@pytest.mark.skipif(not COMPILED, reason="long streams need compiled kernels")
@pytest.mark.parametrize(("d", "k", "n", "separation"), [(2, 7, 700, 4.5), (5, 4, 300, 5.0), (10, 4, 600, 5.0)])
def test_sorted_streams_are_counted_right(d: int, k: int, n: int, separation: float) -> None:
    """One cluster after the other: in at least 5 of 6 streams; if it were right in 60 %, so once in 4."""
    found = []
    for seed in range(6):
        rows, labels = clusters(d, k, n, separation, seed)
        found.append(HarmonyMixture(seed=seed).partial_fit(rows[np.argsort(labels, kind="stable")]).n_clusters_)
    assert found.count(k) >= 5


@pytest.mark.skipif(not COMPILED, reason="long streams need compiled kernels")
def test_first_rows_of_another_size() -> None:
    """A hundred rows within a millionth of what comes later: units and prior follow."""
    rng = np.random.default_rng(6)
    rows = np.concatenate([1e-6 * rng.normal(size=(100, 2)), rng.normal(8.0, 1.0, size=(300, 2))])
    model = HarmonyMixture().partial_fit(rows)
    assert model.n_clusters_ == 2
    assert np.all(np.isfinite(model.score_samples(rows)))


@pytest.mark.skipif(not COMPILED, reason="long streams need compiled kernels")
def test_streams_stay_positive() -> None:
    """40,000 rows with outliers of all sizes, forgetting, and clusters that come and go."""
    rng = np.random.default_rng(7)
    first = rng.normal(size=(100, 3))
    mixture = learn_mixture(first, 8, 0.0, np.random.default_rng(0))
    belief = begin_stream(mixture, first)
    options = StreamOptions(mixture.prior, 0.0, 1e-3, 8)
    for part in range(40):
        rows = rng.normal(10.0 * (part % 3), 1.0, size=(1000, 3))
        rows[::97] *= 10.0 ** rng.integers(0, 12)
        belief = learn_stream(belief, rows, options)
        assert np.all(belief.n > 0.0)
        assert np.isfinite(belief.whitening).all()
        assert np.isfinite(belief.constant).all()


@pytest.mark.parametrize("jump", [1e3, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("component", ["subspace", "extended_radial", "radial", "alternative_experts"])
@pytest.mark.skipif(not COMPILED, reason="long streams need compiled kernels")
def test_streams_may_jump(jump: float, component: str) -> None:
    """By so many deviations: sums lose digits there, but nothing becomes NaN."""
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(300, 2))
    targets = rows @ [1.0, 2.0] + 0.1 * rng.normal(size=300)
    model = SubspaceRegressor(component=component).partial_fit(rows, targets).partial_fit(rows + jump, targets)
    assert np.all(np.isfinite(model.predict(np.concatenate([rows, rows + jump]))))


@pytest.mark.skipif(not COMPILED, reason="many mixtures need compiled kernels")
def test_there_are_never_more_clusters_than_said() -> None:
    """A ring, of which any number of clusters could be made."""
    angle = np.random.default_rng(9).uniform(0.0, 2.0 * np.pi, 600)
    rows = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for most in (1, 2, 5):
        assert HarmonyMixture(most, matching=1.0).fit(rows).n_clusters_ <= most
        assert HarmonyMixture(most, matching=1.0).partial_fit(rows).n_clusters_ <= most
