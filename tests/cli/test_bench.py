"""``bayou bench``: what it tells is what the contenders say by themselves, and who is absent is named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from bayou.evaluation import peers
from tests.cli.made import bayou, refused, table

KEYS = {"contender", "rows", "task", "log_loss", "accuracy", "ece", "microseconds_per_row", "ratio"}


def found(*words: object) -> dict[str, dict[str, float]]:
    result = bayou("bench", *words, "--json")
    assert result.exit_code == 0, result.output
    return {one["contender"]: one for one in map(json.loads, result.stdout.splitlines())}


def test_the_peers_are_told_the_same_rows(tmp_path: Path) -> None:
    source = tmp_path / "t.csv"
    table(1500).write_csv(source)
    words = (source, "--target", "label", "--ignore", "size")
    told = found(*words)
    assert len(told) == len(peers.CONTENDERS)
    ours = told["bayou"]
    learnt = bayou("learn", *words, "--json")
    last = json.loads(learnt.stdout.splitlines()[-1])  # it finds the classes along the way
    assert ours["log_loss"] == pytest.approx(last["log_loss"], rel=0.01)
    for one in told.values():
        if "missing" not in one:
            assert one.keys() == KEYS
            assert one["accuracy"] > 0.7
            assert one["ratio"] == pytest.approx(one["microseconds_per_row"] / ours["microseconds_per_row"], rel=0.01)
    shown = bayou("bench", *words, "--rows", 200).stdout
    assert "200 rows, 5 features" in shown
    assert "µs per row" in shown


def test_river_is_asked_as_its_users_do(tmp_path: Path) -> None:
    """Its pipeline on the raw numbers, row by row: its scaler has the same units as ours."""
    from river import linear_model, preprocessing

    rows = table(400)
    rows.select("a", "b", "label").write_csv(tmp_path / "t.csv")
    scaler, model = preprocessing.StandardScaler(), linear_model.LogisticRegression()
    given = []
    for a, b, label in rows.select("a", "b", "label").iter_rows():
        scaler.learn_one({"0": a, "1": b})
        x = scaler.transform_one({"0": a, "1": b})
        given.append(model.predict_proba_one(x)[True])
        model.learn_one(x, label == "yes")
    told = found(tmp_path / "t.csv", "--target", "label")["River, default"]
    assert told["log_loss"] == pytest.approx(log_loss(rows["label"] == "yes", given), rel=1e-6)


def test_running_units_are_those_of_a_scaler() -> None:
    rows = np.random.default_rng(0).normal(1e4, 2.0, (30, 3))
    for last in (1, 2, 29):
        expected = StandardScaler().fit(rows[: last + 1]).transform(rows[last : last + 1])
        np.testing.assert_allclose(peers.in_running_units(rows)[last], expected[0], rtol=1e-6)
    rows[5, 1] = np.nan
    assert peers.in_running_units(rows)[5, 1] == 0.0


@pytest.mark.parametrize("kind", ["classes", "numbers", "text"])
def test_other_tasks_and_sparse_text(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(1)
    if kind == "text":
        source = tmp_path / "t.vw"
        names = rng.integers(0, 1000, (600, 3))
        signs = np.where(names.sum(axis=1) % 2 == 0, 1, -1)
        lines = (f"{y} | {' '.join(f'f{k}' for k in row)}\n" for y, row in zip(signs, names, strict=True))
        source.write_text("".join(lines))
        told = found(source)
        assert told["bayou"]["task"] == "binary"
    else:
        source = tmp_path / "t.csv"
        x = rng.normal(size=600)
        y = 3.0 * x + rng.normal(size=600) if kind == "numbers" else np.digitize(x, [-0.5, 0.5])
        pl.DataFrame({"x": x, "y": y}).write_csv(source)
        told = found(source, "--target", "y")
    assert all(one["rows"] == 600 for one in told.values())
    if kind == "numbers":
        assert all(one["rmse"] < np.std(y) for one in told.values() if "missing" not in one)
    if kind == "classes":
        assert all(one["accuracy"] > 0.5 for one in told.values() if "missing" not in one)


def test_who_is_absent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers.VowpalWabbit, "package", "nowhere_to_be_found")
    assert "not here: Vowpal Wabbit, default, as nowhere_to_be_found is not installed" in bayou("bench").stdout


def test_what_cannot_be_raced_is_told(tmp_path: Path) -> None:
    source = tmp_path / "t.csv"
    table(50).write_csv(source)
    assert "--target" in refused("bench", source)
    assert "--rows" in refused("bench", "--rows", 0)
    texts = [f"some words that are new, {n} of them" for n in range(40)]
    pl.DataFrame({"y": [0, 1] * 20, "x": texts}).write_csv(source)
    assert "columns of text" in refused("bench", source, "--target", "y")
