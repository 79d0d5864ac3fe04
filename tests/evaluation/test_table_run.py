"""Runs of models through tables: the same model wherever the reader cuts, and wherever a run was broken off."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, roc_auc_score

from bayou import Budget, TableEncoder, TableModel, load, save
from bayou.contracts import State
from bayou.errors import BayouError, InvalidSpec, ModelFileError
from bayou.evaluation import TableRun
from bayou.evaluation.report_theory import Windows
from bayou.evaluation.stream_scores import NumberStream
from bayou.streams import Skipped

QUICK = Budget(microseconds=3.0)
TASKS = [("label", "auto"), ("size", "auto"), ("count", "count"), ("grade", "auto")]


def made(n_rows: int, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n_rows))
    city = np.where(np.arange(n_rows) < n_rows // 2, "early", rng.choice(["u", "v"], n_rows))
    size = a - b + rng.normal(size=n_rows)
    return pl.DataFrame(
        {
            "a": a,
            "b": b,
            "city": city,
            "size": size,
            "label": np.where(size > 0.0, "yes", "no"),
            "count": rng.poisson(np.exp(0.3 * a)),
            "grade": np.where(size > 1.0, "high", np.where(size < -1.0, "low", "middle")),
        }
    )


def model(target: str, task: str = "auto", **options: Any) -> TableModel:
    left_out = tuple(name for name in ("size", "label", "count", "grade") if name != target)
    return TableModel(target, task, TableEncoder(ignore=left_out, **options), budget=QUICK)


def cut(table: pl.DataFrame, sizes: list[int]) -> Iterator[pl.DataFrame]:
    at = 0
    for size in sizes:
        yield table[at : at + size]
        at += size
    yield table[at:]


def saved(run: TableRun, path: Path) -> bytes:
    run.keep()
    save(run.model, path)
    return path.read_bytes()


def through(run: TableRun, tables: Any, cut_every: int | None = None) -> TableRun:
    for _ in run.over(tables, cut_every):
        pass
    return run


@pytest.mark.parametrize(("target", "task"), TASKS)
def test_the_model_does_not_depend_on_how_the_reader_cuts(tmp_path: Path, target: str, task: str) -> None:
    table = made(1500)
    cuts = [[], [1, 2, 3], [700, 700], [1] * 40, [1024], [1499]]
    files = {saved(through(TableRun(model(target, task), "s"), cut(table, each)), tmp_path / "m") for each in cuts}
    assert len(files) == 1


def test_the_model_begins_by_the_same_rows_however_many_the_reader_gives(tmp_path: Path) -> None:
    """A basis has its knots by the first rows, of which there are more than in one table."""
    table = made(17_000)
    runs = [TableRun(model("size", basis="spline:4"), "s") for _ in range(2)]
    through(runs[0], cut(table, [3000] * 5))
    through(runs[1], [table])
    assert saved(runs[0], tmp_path / "a") == saved(runs[1], tmp_path / "b")


@pytest.mark.parametrize("delay", [0, 30])
@pytest.mark.parametrize(("target", "task"), TASKS)
def test_a_run_that_was_broken_off_ends_with_the_same_file(tmp_path: Path, target: str, task: str, delay: int) -> None:
    table, every = made(600 if delay else 1500), 130
    whole = saved(through(TableRun(model(target, task), "s", delay), [table], every), tmp_path / "whole")
    run, points = TableRun(model(target, task), "s", delay), []
    for rows in run.over(cut(table, [500]), every):
        if rows % every == 0:
            saved(run, tmp_path / f"{rows}")
            points.append(rows)
    assert points == list(range(every, len(table), every))
    for rows in points:
        again = TableRun.of(load(tmp_path / f"{rows}"))
        assert again.rows == rows
        assert saved(through(again, cut(table, [77, 300]), every), tmp_path / "again") == whole


def test_a_run_of_hashed_rows_goes_on(tmp_path: Path) -> None:
    table, every = made(1200), 500
    whole = saved(through(TableRun(model("label", hashed=True), "s"), [table], every), tmp_path / "whole")
    run = TableRun(model("label", hashed=True), "s")
    for rows in run.over([table], every):
        if rows == every:
            saved(run, tmp_path / "half")
            break
    again = TableRun.of(load(tmp_path / "half"))
    assert saved(through(again, cut(table, [640]), every), tmp_path / "again") == whole


def test_a_shorter_source_or_a_model_of_no_run_cannot_be_taken_up(tmp_path: Path) -> None:
    run = through(TableRun(model("label"), "s"), [made(300)])
    saved(run, tmp_path / "m")
    again = TableRun.of(load(tmp_path / "m"))
    with pytest.raises(InvalidSpec, match="the 300 rows that were read of it before; got 200"):
        through(again, [made(200)])
    plain = model("label")
    plain.learn_many(made(100))
    with pytest.raises(InvalidSpec, match="not saved by a run"):
        TableRun.of(plain)
    with pytest.raises(InvalidSpec, match="delay"):
        TableRun(plain, "s", -1)
    with pytest.raises(InvalidSpec, match="has not"):
        _ = TableRun(plain, "s").scores


def test_scores_are_those_of_scikit_learn() -> None:
    table, said = made(900), []
    classes = TableRun(model("label"), "s", tell=said.append)
    through(classes, [table])
    given = np.concatenate([part.said for part in said])
    truth = table["label"].to_numpy()
    found = classes.scores.values()
    assert found["log_loss"] == pytest.approx(log_loss(truth, given), rel=1e-6)
    assert found["accuracy"] == pytest.approx(accuracy_score(truth == "yes", given[:, 1] > 0.5), abs=2 / 900)
    assert found["auc"] == pytest.approx(roc_auc_score(truth == "yes", given[:, 1]), abs=2e-3)
    assert found["no_change_accuracy"] == pytest.approx((truth[1:] == truth[:-1]).sum() / 900, abs=1e-12)
    said.clear()
    numbers = through(TableRun(model("size"), "s", tell=said.append), [table])
    means = np.concatenate([part.said.mean for part in said])
    ends = np.concatenate([part.said.interval(0.9) for part in said])
    size = table["size"].to_numpy()
    found = numbers.scores.values()
    assert found["rmse"] == pytest.approx(math.sqrt(mean_squared_error(size, means)), rel=1e-12)
    assert found["coverage"] == pytest.approx(((ends[:, 0] <= size) & (size <= ends[:, 1])).mean(), abs=1.5 / 900)
    assert numbers.scores.places.sum() == numbers.scores.residuals.sum() == 900  # type: ignore[attr-defined]


def test_the_score_since_the_last_report_makes_up_the_whole() -> None:
    for target in ("label", "size"):
        run, parts = TableRun(model(target), "s"), []
        for rows in run.over([made(700)]):
            parts.append((rows, run.since_last()))
        rows = np.diff([0, *(row for row, _ in parts)])
        values = np.array([value for _, value in parts])
        name, whole = next(iter(run.scores.values().items()))
        power = 2 if name == "rmse" else 1
        assert np.average(values**power, weights=rows) == pytest.approx(whole**power, rel=1e-9)
        assert math.isnan(run.since_last())


def test_without_learning_a_model_stays_as_it_is(tmp_path: Path) -> None:
    known = through(TableRun(model("label"), "s"), [made(400)]).model
    save(known, tmp_path / "before")
    run = through(TableRun(known, "s", learns=False), [made(200, seed=4)])
    save(known, tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert run.scores.rows == 200


def test_rows_that_cannot_be_learnt_are_skipped_and_named(tmp_path: Path) -> None:
    table = made(1400)
    size, a = table["size"].to_list(), table["a"].to_list()
    size[20], a[1200] = math.inf, 1e300
    spoilt = table.with_columns(pl.Series("size", size), pl.Series("a", a))
    good = table.filter(~pl.int_range(1400).is_in([20, 1200]))
    for options in ({}, {"basis": "spline:3"}):
        with pytest.raises(BayouError, match=r"'size' must hold finite numbers"):
            through(TableRun(model("size", **options), "s"), [spoilt])
        skipped = Skipped()
        run = through(TableRun(model("size", **options), "s", skipped=skipped), cut(spoilt, [100, 900]))
        whole = through(TableRun(model("size", **options), "s"), [good])
        assert saved(run, tmp_path / "a") == saved(whole, tmp_path / "b")
        assert [row.row for row in skipped.rows] == [21, 1201]
        assert "s, row 21, the target 'size' must hold finite numbers below 1e+140 in size; got inf." in str(skipped)
        assert "s, row 1,201, column 'a' must hold numbers below 1e+140 in size; got 1e+300." in str(skipped)


def test_the_curve_tells_each_stretch() -> None:
    run = through(TableRun(model("label"), "s"), [made(1500)])
    rows = [point[0] for point in run.curve]
    assert rows[:3] == [16.0, 32.0, 64.0]
    accuracies = [point[2] for point in run.curve]
    shares = np.diff([0.0, *rows])
    counted = np.average(accuracies, weights=shares) * rows[-1]
    assert counted == pytest.approx(round(counted), abs=1e-6)


class AlwaysStandard:
    """What says of 50 rows that each has mean 0 and variance 1."""

    mean, variance = np.zeros(50), np.ones(50)
    log_probability, cumulative = staticmethod(norm.logpdf), staticmethod(norm.cdf)


def windows_of(targets: np.ndarray) -> Windows:
    """Of 50 rows each, where this was said."""
    run = TableRun(model("size"), "s")
    run._scores = NumberStream()
    for start in range(0, len(targets), 50):
        run.scores.update(AlwaysStandard(), targets[start : start + 50], [])
        run.rows = start + 50
        run.add_point()
    return Windows.of(run, "nlpd")


def test_the_errors_of_windows_are_how_far_they_scatter() -> None:
    """Of 200 windows of noise, about the truth; the mean of 200 squares of deviations is 1 with an error of 0.1."""
    windows = windows_of(np.random.default_rng(5).normal(size=10_000))
    truth = 0.5 * math.log(2.0 * math.pi) + 0.5
    assert np.mean(((windows.value - truth) / windows.error) ** 2) == pytest.approx(1.0, abs=0.3)


def test_a_wild_start_says_nothing_of_the_windows_after_it() -> None:
    noise = np.random.default_rng(5).normal(size=10_000)
    wild = noise.copy()
    wild[:50] *= 1000.0
    calm, other = windows_of(noise), windows_of(wild)
    assert other.error[0] > 1000.0 * calm.error[0]
    assert other.error[1:] == pytest.approx(calm.error[1:], rel=0.02)


def test_five_right_answers_do_not_know_the_rate() -> None:
    windows = windows_of(np.concatenate([np.zeros(50), np.random.default_rng(5).normal(size=500)]))
    assert 0.5 < windows.error[0] / np.median(windows.error[1:]) < 1.0


def test_a_curve_without_errors_can_be_read(tmp_path: Path) -> None:
    """As files of before had it."""
    run = through(TableRun(model("label"), "s"), [made(300)])
    run.keep()
    config, arrays = run.model.extra
    run.model.extra = State(config, {name: array for name, array in arrays.items() if name != "curve_errors"})
    save(run.model, tmp_path / "m")
    again = TableRun.of(load(tmp_path / "m"))
    assert again.curve == run.curve
    assert np.isnan(Windows.of(again, "log_loss").error).all()
    again.model.extra.arrays["curve_errors"] = np.zeros((2, 3))
    with pytest.raises(ModelFileError, match="errors of the learning curve must have the shape"):
        TableRun.of(again.model)


def test_a_run_of_few_rows_can_be_kept(tmp_path: Path) -> None:
    """Fewer than there are before the first point of the curve."""
    run = through(TableRun(model("label"), "s"), [made(10)])
    saved(run, tmp_path / "m")
    again = TableRun.of(load(tmp_path / "m"))
    assert again.curve == []
    assert again.scores.rows == 10
