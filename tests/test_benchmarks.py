"""The benchmarks run and say what they should; how fast anything was is no matter here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl  # these need the peers
import pytest

from bayou import HarmonyMixture
from benchmarks import __main__ as command
from benchmarks import criteo, sparse, sparse_quality, tables, vowpal
from benchmarks.mixtures import APART, FEW, FIRST, NumpyMixture, Stream, draw, learn_each
from benchmarks.timing import Effort

Run = Callable[[str], tuple[str, dict[str, Any]]]
KEYS = {"case", "setting", "contender", "microseconds", "figure", "unit", "goal", "reached"}


def as_a_command(root: Path, *arguments: str) -> str:
    """What the command prints that contributors call."""
    search = os.pathsep.join([str(root / "src"), str(root)])
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", *arguments],
        cwd=root,
        env={**os.environ, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """One round of a case, in this process: what was printed, and what was written."""
    monkeypatch.setattr(command, "QUICK", Effort(rounds=1, size=0.3))

    def measured(case: str) -> tuple[str, dict[str, Any]]:
        path = tmp_path / "bench.json"
        command.main(["--quick", "--json", str(path), "--only", case])
        return capsys.readouterr().out, json.loads(path.read_text(encoding="utf-8"))

    return measured


def test_a_case_is_measured_printed_and_written(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    printed = as_a_command(root, "--json", str(path), "--only", "arrays")
    written = json.loads(path.read_text(encoding="utf-8"))
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


def test_peers_are_compared_on_dicts(run: Run) -> None:
    _, written = run("dicts")
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


def test_members_of_a_bank_are_counted_in_learners(run: Run) -> None:
    printed, written = run("banks")
    assert "learners" in printed
    settings = [f"10 features, {name}" for name in ("Logistic", "Probit", "Gaussian")]
    for setting in settings:
        one, *banks = (result for result in written["results"] if result["setting"] == setting)
        assert [bank["contender"] for bank in banks] == ["8 members alike", "8 rates of drift"]
        for bank in banks:
            assert bank["figure"] == pytest.approx(bank["microseconds"] / one["microseconds"])
            assert bank["goal"] == 8.0
            assert bank["reached"] == (bank["figure"] < 8.0)


def test_functions_have_a_bound_peers_and_a_cost_each(run: Run) -> None:
    printed, written = run("functions")
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


def test_clusters_of_a_stream_have_a_goal_against_numpy_alone(run: Run) -> None:
    _, written = run("cluster-streams")
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
def test_batches_say_how_many_clusters_were_found(case: str, count: int, run: Run) -> None:
    printed, written = run(case)
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


needs_vowpal = pytest.mark.skipif(not vowpal.is_there(), reason=vowpal.ABSENT)
TINY = Effort(rounds=1, size=0.001)


def test_sparse_rows_have_forty_columns_of_a_power_law() -> None:
    rows, signs = sparse.stream(3000, 18)
    columns = rows.indices.reshape(3000, sparse.ENTRIES)
    assert np.all(np.diff(columns, axis=1) > 0)
    assert rows.shape == (3000, 2**18)
    assert set(signs) == {-1.0, 1.0}
    counts = np.sort(np.bincount(columns.ravel(), minlength=2**18))[::-1]
    assert counts[0] > 0.5 * 3000  # a frequent one is in most rows
    assert 1.0 < counts[9] / counts[99] < 20.0  # ten times the rank, about a tenth of the frequency


@pytest.mark.slow
def test_sparse_rows_are_compared_with_all_peers() -> None:
    results = list(sparse.sparse(TINY))
    for setting in ("2^18 columns", "2^22 columns"):
        ours, *others = (result for result in results if result.setting == setting)
        assert ours.contender == sparse.OURS
        assert set(sparse.GOALS) - {result.contender for result in others} == (
            set() if vowpal.is_there() else {"VW from its cache"}
        )
        for result in others:
            if result.microseconds is not None:
                assert result.figure == pytest.approx(result.microseconds / ours.microseconds)
                assert result.goal == sparse.GOALS.get(result.contender)


@pytest.mark.slow
def test_peers_are_compared_on_dicts_of_categories() -> None:
    ours, *others = sparse.hashed(Effort(rounds=1, size=0.01))
    assert [(result.contender, result.goal) for result in others] == [
        ("River LogisticRegression", 2.0),
        ("River AdPredictor", 5.0),
    ]
    assert all(result.figure == pytest.approx(result.microseconds / ours.microseconds) for result in others)


def test_made_clicks_look_like_clicks() -> None:
    table = pl.concat(criteo.pieces(120_000))
    assert table.shape == (120_000, 40)
    assert table["clicked"].mean() == pytest.approx(0.25, abs=0.01)  # standard error 0.001
    for name, cardinality in zip(criteo.CATEGORIES, criteo.CARDINALITIES, strict=True):
        values = table[name].drop_nulls()
        assert values.str.contains("^[0-9a-f]{8}$").all()
        assert values.n_unique() <= cardinality
    assert table["C9"].n_unique() <= 4
    assert table["C3"].n_unique() > 20_000
    assert table["C3"].null_count() == pytest.approx(criteo.MISSING * 120_000, rel=0.05)  # standard error 0.7 %
    assert table["I5"].skew() > 3.0
    assert next(criteo.pieces(500)).equals(next(criteo.pieces(500)), null_equal=True)


def test_what_is_clicked_can_be_learnt() -> None:
    chunks = list(criteo.pieces(100_000))
    model = tables.learn(iter(table[:80_000] for table in chunks))
    later = chunks[0][80_000:]
    found = model.predict_proba(later.drop("clicked"))[:, 1]
    clicked = later["clicked"].to_numpy() > 0
    loss = -np.mean(np.log(np.where(clicked, found, 1.0 - found)))
    rate = clicked.mean()
    unconditional = -rate * np.log(rate) - (1.0 - rate) * np.log(1.0 - rate)
    assert loss < 0.97 * unconditional  # standard error of the loss about 0.004, of 0.56


def test_a_table_is_the_same_in_every_format(tmp_path: Path) -> None:
    table = pl.concat(criteo.pieces(1000))
    criteo.write_parquet(tmp_path / "t.parquet", 1000)
    criteo.write_csv(tmp_path / "t.csv", 1000)
    criteo.write_vowpal(tmp_path / "t.txt", 1000)
    assert pl.read_parquet(tmp_path / "t.parquet").equals(table, null_equal=True)
    assert pl.read_csv(tmp_path / "t.csv", schema=table.schema).equals(table, null_equal=True)
    lines = (tmp_path / "t.txt").read_text().splitlines()
    assert len(lines) == 1000
    for line, row in zip(lines, table.iter_rows(named=True), strict=True):
        label, *told = (part.split() for part in line.split("|"))
        assert label == ["1" if row.pop("clicked") else "-1"]
        expected = [(name, value) for name, value in row.items() if value is not None]
        assert [(name, value.removeprefix("n:")) for name, value in told] == [(n, str(v)) for n, v in expected]


@pytest.mark.slow
def test_tables_are_learnt_from_files_by_all() -> None:
    results = list(tables.tables(TINY))
    found = {result.contender: result for result in results}
    assert results[0].contender == tables.FROM_PARQUET
    assert found[tables.FROM_CSV].figure > 0.0
    assert sum(name.startswith("River") for name in found) == 2
    if vowpal.is_there():
        assert found[tables.FROM_TEXT].goal == 5.0
        assert found[tables.FROM_CACHE].goal == 3.5
        csv = found[f"{tables.FROM_TEXT} over {tables.FROM_CSV}"]
        assert csv.figure == pytest.approx(found[tables.FROM_TEXT].microseconds / found[tables.FROM_CSV].microseconds)
        assert csv.reached == (csv.figure >= 1.8)


@pytest.mark.slow
def test_the_memory_of_learning_is_measured() -> None:
    few, many, growth = tables.memory(TINY)
    assert few.unit == many.unit == "megabytes"
    assert few.figure > 50.0
    assert growth.figure == pytest.approx(many.figure / few.figure)
    assert growth.reached == (growth.figure < 1.2)


@pytest.mark.slow
def test_a_peer_that_is_absent_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vowpal, "is_there", lambda: False)
    for results in (list(sparse.sparse(TINY)), list(tables.tables(TINY))):
        told = [result.contender for result in results if result.contender.startswith("VW")]
        assert set(told) == {"VW: vowpalwabbit is not installed"}


@needs_vowpal
def test_vowpal_reads_what_is_written(tmp_path: Path) -> None:
    rows, signs = sparse.stream(50, 18)
    path, told = tmp_path / "rows.txt", tmp_path / "told"
    vowpal.write(path, rows, signs > 0.0)
    vowpal.run(f"-d {path} -b 18 --loss_function logistic -p {told}")
    assert len(np.loadtxt(told)) == 50
    label, features = path.read_text().splitlines()[3].split(" | ")
    assert float(label) == signs[3]
    pairs = dict(pair.split(":") for pair in features.split())
    assert list(map(int, pairs)) == rows[3].indices.tolist()
    np.testing.assert_allclose([float(value) for value in pairs.values()], rows[3].data, rtol=1e-5)


@pytest.fixture
def noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Labels that have nothing to do with the rows: they can be remembered, but not foreseen."""
    random = np.random.default_rng(0)
    for name in ("a9a", "a9a.t", "w8a"):
        lines = []
        for label in random.integers(0, 2, 400):
            columns = np.sort(random.choice(np.arange(1, 124), 20, replace=False))
            lines.append(f"{2 * label - 1:+d} " + " ".join(f"{column}:1" for column in columns))
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    monkeypatch.setenv(sparse_quality.FOLDER, str(tmp_path))
    return tmp_path


@pytest.mark.slow
def test_predictions_precede_labels(noise: Path) -> None:
    """The standard error of 400 right guesses out of two is 2.5 %."""
    results = list(sparse_quality.quality(Effort(rounds=1, size=1.0)))
    right = [result for result in results if result.unit == "percent"]
    assert {result.setting.split(",")[0] for result in right} == {"a9a", "a9a.t", "w8a"}
    for result in right:
        if result.contender == "batch LogisticRegression: all, after":
            assert result.figure > 65.0
        else:
            assert 40.0 < result.figure < 60.0
    peers = {result.contender.split(":")[0] for result in right}
    assert {"bayou OnlineClassifier", "scikit-learn SGDClassifier", "River AdPredictor"} <= peers
    assert all(result.figure > 0.6 for result in results if result.unit == "nats" and "batch" not in result.contender)


def test_files_that_are_absent_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sparse_quality.FOLDER, raising=False)
    (result,) = sparse_quality.quality(TINY)
    assert result.setting == f"skipped: set {sparse_quality.FOLDER} to the folder of a9a and w8a"
    monkeypatch.setenv(sparse_quality.FOLDER, str(tmp_path))
    assert [result.setting for result in sparse_quality.quality(TINY)] == [
        f"skipped: there is no {name} in the folder" for name in ("a9a", "w8a")
    ]


def test_an_unknown_case_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--only", "everything"])
    assert "invalid choice: 'everything'" in capsys.readouterr().err
