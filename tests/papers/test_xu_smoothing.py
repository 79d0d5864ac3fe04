"""Xu's smoothing: Parzen's width by loops, the mixture under a prior, gains in pairs, and what the claims ask."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from bayou.mixtures.gaussians import log_joint
from bayou.papers.claims import Effort
from bayou.papers.xu import smoothing
from bayou.papers.xu.smoothing import EACH, EXPERIMENT, LEARNT, METHODS, NONE, ONCE, gain, parzen_width, under_a_prior
from bayou.papers.xu.world import Clusters


@pytest.mark.parametrize(("n", "d"), [(12, 2), (30, 5)])
def test_parzens_width_makes_each_row_probable_by_the_others(n: int, d: int) -> None:
    """No h of 200 beside it does better, by densities of scipy, one row left out at a time."""
    rows = np.random.default_rng(0).normal(size=(n, d))

    def value(h: float) -> float:
        total = 0.0
        for t in range(n):
            others = np.delete(rows, t, axis=0)
            total += math.log(np.mean(np.prod(scipy.stats.norm.pdf(rows[t], others, h), axis=1)))
        return total

    found = parzen_width(rows)
    assert value(found) >= max(value(found * factor) for factor in np.geomspace(0.2, 5.0, 200)) - 1e-9
    assert value(found) > value(1.2 * found) + 1e-3


def test_under_a_prior_the_clusters_of_many_rows_are_found() -> None:
    """2,000 rows: standard errors of means below 0.06, of shares below 0.012."""
    rows, labels = Clusters(2, 3, 2000, 6.0).draw(0)
    found = under_a_prior(rows, np.random.default_rng(0))
    for k in range(3):
        own = rows[labels == k]
        nearest = int(np.argmin(np.sum((found.mean - own.mean(axis=0)) ** 2, axis=1)))
        np.testing.assert_allclose(found.mean[nearest], own.mean(axis=0), atol=0.1)
        np.testing.assert_allclose(found.covariance[nearest], np.cov(own.T), atol=0.2)
        assert found.share[nearest] == pytest.approx(len(own) / 2000.0, abs=0.01)


def test_fewer_rows_than_columns_leave_every_method_with_numbers() -> None:
    rows = Clusters(8, 3, 12, 5.0).draw(1).rows
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    found, _ = smoothing.learnt(rows, np.random.default_rng(0))
    assert set(found) == set(METHODS)
    for clusters in found.values():
        assert np.all(np.isfinite(log_joint(clusters, rows)))


def test_gains_are_told_in_pairs() -> None:
    """Samples differ much more than methods do: the standard error is that of the differences."""
    level = np.array([-9.0, -5.0, -7.0, -3.0])
    values = {(NONE, 2, 20): level, (ONCE, 2, 20): level + np.array([0.1, 0.3, 0.1, 0.3])}
    found = gain(values, ONCE, NONE, (2, 20))
    assert found.mean == pytest.approx(0.2)
    assert found.standard_error == pytest.approx(np.std([0.1, 0.3, 0.1, 0.3], ddof=1) / 2.0)


def test_a_method_that_does_worse_fails_its_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the clusters without smoothing in the place of those under a prior, and of those of q(h) for each point."""
    honest = smoothing.learnt

    def swapped(rows: np.ndarray, rng: np.random.Generator) -> tuple[dict[str, object], float]:
        found, ratio = honest(rows, rng)
        return {**found, LEARNT: found[NONE], EACH: found[NONE], ONCE: found[NONE]}, ratio

    monkeypatch.setattr(smoothing, "learnt", swapped)
    monkeypatch.setattr(Effort, "replicas", lambda self, full, quick: 1)
    found = smoothing.run(Effort(quick=True))
    assert [verdict.claim for verdict in found.verdicts] == list(EXPERIMENT.claims)
    failed = {verdict.claim.quantity for verdict in found.verdicts if not verdict.holds}
    assert {smoothing.BETTER.quantity, smoothing.ABOVE[ONCE].quantity} <= failed
    assert {series.label for series in found.pictures[0].series} == set(METHODS)  # type: ignore[union-attr]
