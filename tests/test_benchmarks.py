"""The benchmarks run and say what they should; how fast anything was is no matter here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("padasip")
pytest.importorskip("river")
pytest.importorskip("rich")
pytest.importorskip("threadpoolctl")

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


def test_an_unknown_case_is_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        run(root, tmp_path, "--only", "everything")
