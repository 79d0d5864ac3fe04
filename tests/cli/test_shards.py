"""Files learnt side by side by the command line, and models merged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from bayou import TableEncoder, TableModel, load, save
from bayou.distributed import InProcess, fit
from tests.cli.made import bayou, refused, table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files of one table, and a model of each."""
    here = tmp_path_factory.mktemp("shards")
    rows = table(900)
    for part in range(3):
        rows[300 * part : 300 * part + 300].write_csv(here / f"part-{part}.csv")
        model = TableModel("size", encoder=TableEncoder(ignore=("label",)))
        save(fit(model, here / f"part-{part}.csv", engine=InProcess()).model, here / f"size-{part}.bayou")
    return here


def test_workers_learn_files_side_by_side(folder: Path) -> None:
    source, model = folder / "part-*.csv", folder / "label.bayou"
    words = ("learn", source, "--target", "label", "--ignore", "size", "--workers", "1")
    result = bayou(*words, "-f", model)
    assert result.exit_code == 0, result.output
    assert "900 rows in 3 shards" in result.stdout
    assert "without drift" in result.stdout
    assert "each row before it was learnt" in result.stdout
    assert {"log_loss", "accuracy", "ece", "brier", "auc"} <= set(result.stdout.split())
    assert f"saved to {model}" in result.stderr
    learnt = load(model)
    assert learnt.n_rows == 900
    assert (learnt.predict_table(table(900))["prediction"] == table(900)["label"]).mean() > 0.8
    here = fit(TableModel("label", encoder=TableEncoder(ignore=("size",))), str(source), engine=InProcess())
    np.testing.assert_array_equal(learnt.estimator.coef_, here.model.estimator.coef_)
    assert "exists" in refused(*words, "-f", model)


def test_reports_as_json(folder: Path) -> None:
    words = ("--target", "size", "--ignore", "label", "--workers", "1", "--shards", "2", "--json")
    result = bayou("learn", folder / "part-*.csv", *words)
    first, last = map(json.loads, result.stdout.splitlines())
    assert first["round"] == 1
    assert {"rows", "seconds", "bytes_moved", "log_score", "moved_mean", "moved_deviation"} <= first.keys()
    assert 0.0 < first["rmse"] < 10.0
    assert 0.7 < first["coverage"] <= 1.0
    assert last == {"rows": 900, "shards": 2, "exact": True, "settled": True, "task": "regression", "final": True}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--resume", "-f", "m"), "--resume is for rows that come one after another"),
        (("--delay", "3"), "--delay is for rows"),
        (("-p", "said.csv"), "--predictions is for rows"),
        (("--on-error", "skip"), "--on-error skip is for rows"),
        (("--rounds", "0"), "`rounds`"),
        (("--dask", "tcp://127.0.0.1:1", "--workers", "2"), "a cluster has its own"),
    ],
)
def test_what_workers_cannot_do_is_said(folder: Path, words: tuple[str, ...], said: str) -> None:
    asked = ("--target", "label", *(("--workers", "1") if "--workers" not in words else ()), *words)
    assert said in refused("learn", folder / "part-*.csv", *asked)


def test_standard_input_cannot_be_read_again() -> None:
    assert "shards are those of files" in refused("learn", "-", "--target", "label", "--workers", "1")


def test_models_are_merged_and_taken_apart(folder: Path) -> None:
    parts = [folder / f"size-{part}.bayou" for part in range(3)]
    result = bayou("merge", *parts, "-o", folder / "all.bayou")
    assert result.exit_code == 0, result.output
    assert "900 rows" in result.stderr
    whole = load(folder / "all.bayou")
    rows = pl.concat([pl.read_csv(folder / f"part-{part}.csv") for part in range(3)])
    exact = fit(TableModel("size", encoder=TableEncoder(ignore=("label",))), [rows], engine=InProcess()).model
    np.testing.assert_allclose(whole.predict(rows).mean, exact.predict(rows).mean, atol=0.02)
    result = bayou("merge", folder / "all.bayou", *parts[1:], "--subtract", "-o", folder / "first.bayou", "--quiet")
    assert result.exit_code == 0, result.output
    assert not result.stderr
    first, alone = load(folder / "first.bayou"), load(parts[0])
    assert first.n_rows == 300
    np.testing.assert_allclose(first.predict(rows).mean, alone.predict(rows).mean, atol=1e-3)


def test_models_that_do_not_belong_together(folder: Path) -> None:
    assert "two models at least" in refused("merge", folder / "size-0.bayou", "-o", folder / "x")
    other = fit(TableModel("size"), folder / "part-0.csv", engine=InProcess()).model
    save(other, folder / "other.bayou")
    said = refused("merge", folder / "size-0.bayou", folder / "other.bayou", "-o", folder / "x")
    assert "models must have the same encoder of tables" in said
    assert not (folder / "x").exists()
