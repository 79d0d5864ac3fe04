"""Xu's functions on local subspaces, and sums over few clusters: the worlds, the oracle, and claims that can fail."""

from __future__ import annotations

import numpy as np
import pytest

from bayou.mixtures.evidence import Prior
from bayou.mixtures.gaussians import Gaussians
from bayou.mixtures.harmony import Mixture
from bayou.numerics.jit import COMPILED
from bayou.papers.claims import Effort
from bayou.papers.xu import functions, kappa
from bayou.papers.xu.functions import BALLS, FIT, FOREST, GATES, LINE, LOCAL, ORACLE, PASS, PIECES, WAVES, Local, Pieces
from bayou.papers.xu.world import Clusters


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def test_worlds_follow_from_their_seed() -> None:
    for world in functions.WORLDS.values():
        one, again, other = world.draw(3), world.draw(3), world.draw(4)
        np.testing.assert_array_equal(one.x, again.x)
        np.testing.assert_array_equal(one.new_z, again.new_z)
        assert not np.array_equal(one.x, other.x)
        assert len(one.x) == len(one.z) == world.n
        assert rms(one.new_z - one.new_f) == pytest.approx(world.noise, rel=0.06)  # a standard error of 1.6 %


def test_the_oracle_is_the_best_that_inputs_tell() -> None:
    """Without clusters to mistake, it is least squares on many rows; with them, its errors have mean zero."""
    sample = Local(n=20_000, k=1).draw(0)
    full, new = (np.column_stack([np.ones(len(x)), x]) for x in (sample.x, sample.new_x))
    line = new @ np.linalg.lstsq(full, sample.z, rcond=None)[0]
    np.testing.assert_allclose(sample.oracle, line, atol=0.1)  # a standard error of 0.03 at the farthest
    sample = Local().draw(1)
    left = sample.new_f - sample.oracle
    error = left.std() / np.sqrt(left.size)
    assert abs(left.mean()) < 4.0 * error
    assert abs(np.mean(left * sample.oracle)) < 4.0 * np.std(left * sample.oracle) / np.sqrt(left.size)


def test_pieces_jump() -> None:
    sample = Pieces(n=10).draw(0)
    order = np.argsort(sample.new_x[:, 0])
    x, f = sample.new_x[order, 0], sample.new_f[order]
    jumps = np.flatnonzero(np.abs(np.diff(f)) > 0.2)
    np.testing.assert_allclose(x[jumps], [-0.4, 0.1, 0.6], atol=0.01)
    np.testing.assert_allclose(np.diff(f)[jumps], [0.4, -1.0, 1.25], atol=0.02)


def made_up(worse: str | None = None) -> functions.Values:
    """Errors as they should be; or with those of one method three times as large."""
    errors = {FIT: 0.63, PASS: 0.64, ORACLE: 0.62, LINE: 2.5, FOREST: 1.0, GATES: 0.65}
    values = {(LOCAL, method): np.full(4, errors.get(method, 0.8)) for method in functions.METHODS}
    values |= {(PIECES, method): np.full(4, {LINE: 0.7, GATES: 0.03}.get(method, 0.15)) for method in functions.METHODS}
    values |= {(WAVES, method): np.full(4, {FOREST: 0.1}.get(method, 0.2)) for method in functions.METHODS}
    for key in values:
        values[key] = values[key] * (3.0 if key[1] == worse else 1.0)
    return values


@pytest.mark.parametrize(
    ("worse", "failed"),
    [
        (None, set()),
        (FIT, {functions.NEAR[FIT], functions.JUMPS[FIT]}),
        (PASS, {functions.NEAR[PASS], functions.JUMPS[PASS], functions.AHEAD}),
        (FOREST, {functions.WRONG}),
        (BALLS, set()),
    ],
)
def test_a_method_that_does_worse_fails_its_claims(worse: str | None, failed: set[object]) -> None:
    """Of four samples one may be a chance; all four are not."""
    values = made_up(worse)
    verdicts = [*functions._of_places(values), *functions._of_pieces(values)]
    verdicts += [functions._ahead(values), functions._wrong(values)]
    found = {verdict.claim for verdict in verdicts if verdict.claim in functions.NEAR.values() and not verdict.holds}
    found |= {
        verdict.claim
        for verdict in verdicts
        if verdict.claim not in functions.NEAR.values() and verdict.simulation is not None and verdict.simulation < 0.9
    }
    assert found == failed
    assert len(functions.picture(values).series) == len(functions.METHODS)


@pytest.mark.skipif(not COMPILED, reason="ensembles need compiled kernels")
def test_errors_are_those_of_the_models() -> None:
    sample = Pieces(n=300).draw(0)
    found, inside = functions.errors(sample, 0, (FIT, PASS, LINE, ORACLE))
    assert set(found) == {FIT, PASS, LINE, ORACLE}
    assert found[ORACLE] == 0.0
    line = np.polyval(np.polyfit(sample.x[:, 0], sample.z, 1), sample.new_x[:, 0])
    assert found[LINE] == pytest.approx(rms(line - sample.new_f))
    assert 0.8 < inside < 1.0


# --- few of many


@pytest.mark.skipif(not COMPILED, reason="ensembles need compiled kernels")
def test_few_clusters_cost_little_where_clusters_are_apart() -> None:
    found = kappa.after_steps(Clusters(3, 9, 600, 6.0), 0)
    assert set(found) == set(kappa.KAPPAS)
    for few in (2, 3, 4):
        assert abs(found[few].harmony - found[0].harmony) < 0.02
    assert found[0].log_likelihood >= found[0].harmony
    assert found[1].seconds >= 0.0


@pytest.mark.skipif(not COMPILED, reason="ensembles need compiled kernels")
def test_a_kappa_that_loses_harmony_fails_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the clusters of kappa = 2 moved off by a deviation; and where it never counts right."""
    honest = kappa.flow

    def astray(rows: np.ndarray, mixture: Mixture, *given: float, settle: bool = True, nearest: int = 0) -> Mixture:
        ended = honest(rows, mixture, *given, settle=settle, nearest=nearest)
        clusters: Gaussians = ended.clusters
        moved = clusters._replace(mean=clusters.mean + 0.2) if nearest == 2 else clusters
        assert isinstance(ended.prior, Prior)
        return ended._replace(clusters=moved)

    monkeypatch.setattr(kappa, "flow", astray)
    monkeypatch.setattr(kappa, "FEWER", Clusters(3, 9, 600, 6.0))
    monkeypatch.setattr(kappa, "counted", lambda name, seed, few: few is None)
    found = kappa.run(Effort(quick=True))
    assert [verdict.claim for verdict in found.verdicts] == [kappa.COST, kappa.LIKELIHOOD, kappa.FOUND["A"]]
    assert not any(verdict.holds for verdict in found.verdicts)
    assert len(found.pictures[0].series) == 2  # type: ignore[union-attr]
