"""The benchmarks run and say what they should; how fast anything was is no matter here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayou import HarmonyMixture

pytest.importorskip("padasip")
pytest.importorskip("river")
pytest.importorskip("rich")
pytest.importorskip("threadpoolctl")

from benchmarks.mixtures import APART, FEW, FIRST, NumpyMixture, Stream, draw, learn_each  # needs the peers

KEYS = {"case", "setting", "contender", "microseconds", "figure", "unit", "goal", "reached"}


def run(root: Path, tmp_path: Path, *arguments: str) -> tuple[str, dict[str, Any]]:
    path = tmp_path / "bench.json"
    search = os.pathsep.join([str(root / "src"), str(root)])
    printed = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--json", str(path), *arguments],
        cwd=root,
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return printed, json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_a_case_is_measured_printed_and_written(root: Path, tmp_path: Path) -> None:
    printed, written = run(root, tmp_path, "--only", "arrays")
    assert set(written) == {"machine", "versions", "effort", "results"}
    assert written["machine"]["dgemm GFLOP/s (1 thread)"] > 0.0
    assert {"bayou", "scikit-learn", "river"} <= set(written["versions"])
    assert len(written["results"]) == 2
    for result in written["results"]:
        assert set(result) == KEYS
        assert result["case"] == "arrays"
        assert result["microseconds"] > result["figure"]
        assert result["reached"] == (result["figure"] < result["goal"])
        assert result["contender"] in printed
    assert "reached" in printed


@pytest.mark.slow
def test_peers_are_compared_on_dicts(root: Path, tmp_path: Path) -> None:
    _, written = run(root, tmp_path, "--only", "dicts")
    peers = [result for result in written["results"] if result["contender"].startswith("River")]
    assert len(peers) == 4
    for result in peers:
        assert result["unit"] == "ratio"
        assert result["figure"] > 0.0
        if result["contender"] == "River LogisticRegression":
            assert result["goal"] == 3.0
            assert result["reached"] == (result["figure"] >= 3.0)
        else:
            assert result["goal"] is None
            assert result["reached"] is None


@pytest.mark.slow
def test_functions_have_a_bound_peers_and_a_cost_each(root: Path, tmp_path: Path) -> None:
    printed, written = run(root, tmp_path, "--only", "functions")
    steps, peers, sizes = (
        [result for result in written["results"] if result["unit"] == unit] for unit in ("step", "ratio", "nanoseconds")
    )
    assert len(steps) == 3
    for result in steps:
        assert result["microseconds"] == result["figure"]
        assert result["reached"] == (result["figure"] < result["goal"])
    assert [result["contender"] for result in peers] == ["River BayesianLinearRegression", "padasip FilterRLS"]
    for result in peers:
        assert result["figure"] == pytest.approx(result["microseconds"] / steps[0]["microseconds"])
    counts = [int(result["setting"].removesuffix(" functions").replace(",", "")) for result in sizes]
    assert counts == [101, 101, 1001, 1001, 10_001, 10_001, 100_001, 100_001]
    for count, result in zip(counts, sizes, strict=True):
        assert result["figure"] == pytest.approx(1e3 * result["microseconds"] / count)
    assert "ns per function" in printed


@pytest.mark.slow
def test_clusters_of_a_stream_have_a_goal_against_numpy_alone(root: Path, tmp_path: Path) -> None:
    _, written = run(root, tmp_path, "--only", "cluster-streams")
    settings = list(dict.fromkeys(result["setting"] for result in written["results"]))
    assert settings == [f"{d} columns{kind}" for d in (2, 5, 10) for kind in ("", ", at most 4", ", dicts")]
    for setting in settings:
        ours, *others = (result for result in written["results"] if result["setting"] == setting)
        assert ours["contender"].startswith("bayou")
        peers = {"the same step in numpy"} if "at most" in setting else {"River KMeans", "River DBSTREAM"}
        assert {result["contender"] for result in others} == peers
        for result in others:
            assert result["figure"] == pytest.approx(result["microseconds"] / ours["microseconds"])
            assert result["goal"] == (20.0 if "at most" in setting else None)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "count"), [("mixtures", 4), ("nearest", 20)])
def test_batches_say_how_many_clusters_were_found(case: str, count: int, root: Path, tmp_path: Path) -> None:
    printed, written = run(root, tmp_path, "--only", case)
    counted = [result for result in written["results"] if result["contender"].endswith("found")]
    assert len(counted) == {"mixtures": 6, "nearest": 2}[case]
    for result in counted:
        assert result["contender"] in printed
        if result["contender"].startswith("bayou"):
            assert int(result["contender"].split()[-2]) == count


def test_nearest_centres_are_as_far_apart_as_they_should_be() -> None:
    rows, labels = draw(3, 2, 30_000)
    means = [rows[labels == c].mean(axis=0) for c in range(3)]
    covariances = [np.cov(rows[labels == c].T) for c in range(3)]
    distances = []
    for i, j in ((0, 1), (0, 2), (1, 2)):
        between = means[i] - means[j]
        distances.append(np.sqrt(between @ np.linalg.solve(0.5 * (covariances[i] + covariances[j]), between)))
    assert min(distances) == pytest.approx(APART, abs=0.15)  # standard error 0.03


@pytest.mark.parametrize("d", [2, 10])
def test_the_numpy_step_learns_what_the_estimator_does(d: int) -> None:
    stream = draw(FEW, d, 6_000)
    ours = HarmonyMixture().partial_fit(stream.rows)
    assert ours.n_clusters_ == FEW
    peer = NumpyMixture(Stream(stream.rows[:FIRST], stream.labels[:FIRST]), FEW)
    learn_each(peer, list(stream.rows[FIRST:]))
    peer.refresh()
    nearest = np.argmin(((ours.means_[:, None] - peer.mean[None]) ** 2).sum(axis=2), axis=1)
    assert sorted(nearest) == list(range(FEW))
    # Some rows that are far from all clusters are held back by one, and learnt by the other.
    np.testing.assert_allclose(ours.means_, peer.mean[nearest], atol=0.05)
    np.testing.assert_allclose(ours.weights_, (peer.n / peer.n.sum())[nearest], atol=0.01)
    covariance = np.linalg.inv(peer.whitening.transpose(0, 2, 1) @ peer.whitening)[nearest]
    np.testing.assert_allclose(ours.covariances_, covariance, atol=0.12)


def test_an_unknown_case_is_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        run(root, tmp_path, "--only", "everything")
