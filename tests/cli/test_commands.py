"""Every command on small files: what it says, writes and refuses."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from bayou import Budget, TableModel, load, save
from bayou.cli.app import app
from bayou.evaluation import TableRun
from tests.cli.made import QUICK, bayou, refused, table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of one table, and models of its columns."""
    here = tmp_path_factory.mktemp("cli")
    made = table()
    made.write_csv(here / "t.csv")
    made.write_csv(here / "t.tsv", separator="\t")
    made.write_csv(here / "bare.csv", include_header=False)
    made.write_parquet(here / "t.parquet")
    made.write_ndjson(here / "t.jsonl")
    for target, other in (("label", "size"), ("size", "label")):
        result = bayou("learn", here / "t.csv", "--target", target, "--ignore", other, "-f", here / target, *QUICK)
        assert result.exit_code == 0, result.output
    return here


def learn(folder: Path, *words: object, code: int = 0) -> list[dict[str, object]]:
    """The reports of a run, as JSON."""
    result = bayou("learn", *words, "--target", "label", "--ignore", "size", "--json", *QUICK)
    assert result.exit_code == code, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_every_format_gives_the_same_scores(folder: Path) -> None:
    last = [learn(folder, folder / f"t.{ending}")[-1] for ending in ("csv", "tsv", "parquet", "jsonl")]
    header = ("--header", "a,b,city,size,label")
    last.append(learn(folder, folder / "bare.csv", *header)[-1])
    for one in last:
        one.pop("seconds")
        assert one == last[0]
    assert {"rows", "log_loss", "accuracy", "ece", "task", "final", "skipped", "without_target"} <= last[0].keys()
    assert last[0]["rows"] == 600
    assert 0.75 < float(last[0]["accuracy"]) < 1.0  # type: ignore[arg-type]


def test_reports_come_at_doublings_and_have_their_keys(folder: Path) -> None:
    reports = learn(folder, folder / "t.csv")
    assert [report["rows"] for report in reports[:-1]] == [16, 32, 64, 128, 256, 512]
    assert all({"rows", "seconds", "log_loss", "accuracy", "ece"} <= report.keys() for report in reports)
    result = bayou("learn", folder / "t.csv", "--target", "size", "--ignore", "label", "--json", *QUICK)
    assert {"rows", "seconds", "rmse", "nlpd", "coverage"} <= json.loads(result.stdout.splitlines()[-1]).keys()


def test_people_are_told_what_is_learnt_from_what(folder: Path) -> None:
    result = bayou("learn", folder / "t.csv", "--target", "label", "--ignore", "size", *QUICK)
    for words in ("target: label (binary: no, yes)", "number: a, b", "category: city", "log loss (nats)", "± se"):
        assert words in result.stdout
    quiet = bayou("learn", folder / "t.csv", "--target", "label", "--quiet", "-f", folder / "quiet", *QUICK)
    assert (quiet.stdout, quiet.stderr, quiet.exit_code) == ("", "", 0)


def test_standard_input_is_a_source(folder: Path) -> None:
    text = (folder / "t.csv").read_bytes()
    result = bayou("learn", "-", "--target", "label", "--json", *QUICK, stdin=text)
    assert json.loads(result.stdout.splitlines()[-1])["rows"] == 600


def test_the_spellings_of_vowpal_wabbit(folder: Path, tmp_path: Path) -> None:
    first, second, said = tmp_path / "one", tmp_path / "two", tmp_path / "said.csv"
    words = ("--target", "label", "--ignore", "size", *QUICK)
    result = bayou("learn", "-d", folder / "t.csv", "-f", first, "-b", 12, "-q", "a,city", "-l", 0.5, *words)
    assert result.exit_code == 0
    assert "there is no learning rate" in result.stderr
    assert "city=u x a" in load(first).layout.names
    result = bayou("learn", "-d", folder / "t.csv", "-i", first, "-f", second, "-p", said, "--target", "label")
    assert result.exit_code == 0, result.output
    assert load(second).n_rows == 1200
    assert load(first).n_rows == 600
    assert len(pl.read_csv(said)) == 600
    before = first.read_bytes()
    result = bayou("learn", "-t", "-i", first, "-d", folder / "t.csv", "--json")
    assert json.loads(result.stdout.splitlines()[-1])["rows"] == 600
    assert first.read_bytes() == before


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_predictions_are_those_of_the_model(folder: Path, tmp_path: Path, ending: str) -> None:
    said = tmp_path / f"said.{ending}"
    assert bayou("predict", folder / "size", folder / "t.csv", "-o", said, "--coverage", "0.5").exit_code == 0
    read = {
        "csv": pl.read_csv,
        "tsv": lambda name: pl.read_csv(name, separator="\t"),
        "jsonl": pl.read_ndjson,
        "parquet": pl.read_parquet,
    }
    expected = load(folder / "size").predict_table(table(), 0.5)
    np.testing.assert_allclose(read[ending](said).to_numpy(), expected.to_numpy(), rtol=1e-12)
    assert [file.name for file in tmp_path.iterdir()] == [said.name]


def test_predictions_go_to_the_standard_output(folder: Path) -> None:
    result = bayou("predict", folder / "label", folder / "t.csv")
    lines = result.stdout.splitlines()
    assert lines[0] == "prediction,probability_no,probability_yes"
    assert len(lines) == 601


def test_inspect_tells_weights_and_scores(folder: Path) -> None:
    result = bayou("inspect", folder / "label")
    for words in ("label (binary), 600 rows", "evidence:", "a: number", "city=u", "log loss (nats)"):
        assert words in result.stdout
    facts = json.loads(bayou("inspect", folder / "size", "--json", "-n", 2).stdout)
    assert facts["task"] == "regression"
    assert len(facts["weights"]) == 2
    weight = next(one for one in facts["weights"] if one["name"] == "a")
    assert weight["low"] < 2.0 < weight["high"]


def test_evaluate_scores_one_model_or_two(folder: Path, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh.csv"
    table(400, seed=3).write_csv(fresh)
    found = json.loads(bayou("evaluate", folder / "label", fresh, "--no-learn", "--json").stdout)
    said = load(folder / "label").predict(pl.read_csv(fresh))
    right = np.array(["no", "yes"])[said.argmax(axis=1)] == pl.read_csv(fresh)["label"].to_numpy()
    assert found["accuracy"] == pytest.approx(right.mean(), abs=1e-12)
    assert found["window"]["rows"] == 1000
    assert {"log_loss", "accuracy", "ece"} <= found["fading"].keys()
    words = ("evaluate", folder / "label", fresh, "--against", folder / "label")
    both = json.loads(bayou(*words, "--json").stdout)
    assert both["difference"]["mean"] == 0.0
    assert "McNemar" in bayou(*words).stdout
    assert "rmse" in json.loads(bayou("evaluate", folder / "size", fresh, "--json").stdout)


def test_compare_learns_as_learn_does(folder: Path) -> None:
    settings = ("-s", "--ignore size --budget 3", "-s", "--ignore size,a --budget 3")
    words = ("compare", folder / "t.csv", "--target", "label", *settings)
    found = [json.loads(line) for line in bayou(*words, "--json").stdout.splitlines()]
    assert found[0]["log_loss"] == learn(folder, folder / "t.csv")[-1]["log_loss"]
    assert found[0]["log_loss"] < found[1]["log_loss"] - 0.1
    assert "µs per row" in bayou(*words).stdout


def test_the_version_is_told() -> None:
    assert bayou("version").stdout.startswith("bayou ")


def test_what_can_be_mended_is_told_in_one_line(folder: Path, tmp_path: Path) -> None:
    source, missing = folder / "t.csv", tmp_path / "missing"
    assert "did you mean 'label'" in refused("learn", source, "--target", "lable", *QUICK)
    assert "did you mean 'city'" in refused("learn", source, "--target", "label", "--ignore", "citi", *QUICK)
    assert "missing.csv" in refused("learn", tmp_path / "missing.csv", "--target", "label")
    assert "target" in refused("learn", source)
    assert "one source" in refused("learn", "--target", "label")
    assert "missing" in refused("predict", missing, source)
    assert "no model file" in refused("learn", source, "-i", missing, "--target", "label")
    assert "has learnt 'label', not 'size'" in refused("learn", source, "-f", folder / "label", "--target", "size")
    assert "two models are compared on one target" in refused(
        "evaluate", folder / "label", source, "--against", folder / "size"
    )
    assert "at least two settings" in refused("compare", source, "--target", "label", "-s", "")
    assert "must be options" in refused("compare", source, "--target", "label", "-s", "", "-s", "--what 3")
    assert "--save-every" in refused("learn", source, "--target", "label", "--save-every", 5)
    assert "--resume needs" in refused("learn", source, "--target", "label", "--resume")
    assert "delay" in refused("learn", source, "--target", "label", "--delay", "-1")
    assert "on_error" in refused("learn", source, "--target", "label", "--on-error", "hope")
    assert "basis" in refused("learn", source, "--target", "label", "--basis", "wavelet")
    assert "got {" not in refused("predict", folder / "label", source, "-o", tmp_path / "said.txt")
    assert bayou("learn", source, "--no-such-option").exit_code == 2
    assert "did you mean 'city'" in refused("learn", source, "--target", "label", "--weight", "citi")
    assert "missing.csv', which is not there" in refused("learn", tmp_path / "missing.csv", "--target", "label")


def test_where_files_go_is_looked_at_before_anything_is_learnt(folder: Path, tmp_path: Path) -> None:
    source, label = folder / "t.csv", folder / "label"
    nowhere = tmp_path / "none" / "m.csv"
    for words in (
        ("learn", source, "--target", "label", "-f", nowhere),
        ("learn", source, "--target", "label", "-p", nowhere),
        ("learn", source, "--target", "label", "-f", nowhere, "--workers", 2),
        ("predict", label, source, "-o", nowhere),
        ("merge", label, label, "-o", nowhere),
        ("report", label, "-o", nowhere),
    ):
        said = refused(*words)
        assert "must go to a folder that is there" in said
        assert ".tmp" not in said


def test_a_model_that_exists_keeps_its_settings(folder: Path, tmp_path: Path) -> None:
    source, model = folder / "t.csv", tmp_path / "m.bayou"
    words = ("learn", source, "--target", "label", "-f", model, "--quiet")
    asked = ("--ignore", "size", "--categorical", "city", *QUICK)
    assert bayou(*words, *asked).exit_code == 0
    before = model.read_bytes()
    for setting, known in (
        (("--task", "regression"), "'binary'"),
        (("--basis", "spline"), "not set"),
        (("--ignore", "a"), "'size'"),
        (("-q", "a,b"), "not set"),
        (("--budget", 7), "3.0"),
    ):
        said = refused(*words, *setting)
        assert "was made with other settings" in said
        assert known in said
        assert model.read_bytes() == before
    assert bayou(*words, *asked).exit_code == 0  # the same words again go on
    assert load(model).n_rows == 1200
    assert bayou(*words).exit_code == 0


@pytest.mark.parametrize("delay", [48, 1000])
def test_targets_may_come_later_than_the_first_report(folder: Path, delay: int) -> None:
    reports = learn(folder, folder / "t.csv", "--delay", delay)
    assert reports[-1]["rows"] == 600
    result = bayou("learn", folder / "t.csv", "--target", "label", "--ignore", "size", "--delay", delay, *QUICK)
    assert result.exit_code == 0
    assert "model: bank" in result.stdout


def test_a_pipe_is_read_like_standard_input(folder: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = (folder / "t.csv").read_bytes()
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    last = learn(folder, pipe)[-1]
    writer.join()
    assert last["log_loss"] == learn(folder, folder / "t.csv")[-1]["log_loss"]


def test_the_shell_completes_commands_and_options() -> None:
    def completed(words: str, place: int) -> list[str]:
        asked = {"_BAYOU_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(place)}
        return CliRunner().invoke(app, [], env=asked, prog_name="bayou").stdout.split()

    assert completed("bayou ev", 1) == ["evaluate"]
    assert {"--save-every", "--resume"} <= set(completed("bayou learn --", 2))


def test_damaged_files_are_told(folder: Path, tmp_path: Path) -> None:
    damaged, source = tmp_path / "damaged", folder / "t.csv"
    content = bytearray((folder / "label").read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    for words in (("predict", damaged, source), ("inspect", damaged), ("learn", source, "-f", damaged)):
        assert "cannot be loaded" in refused(*words)
    assert damaged.read_bytes() == content
    (tmp_path / "t.parquet").write_bytes(b"PAR1 is not enough")
    assert "t.parquet" in refused("learn", tmp_path / "t.parquet", "--target", "label")


def test_targets_that_cannot_be_learnt_leave_no_file(folder: Path, tmp_path: Path) -> None:
    for name, values, words in (
        ("same", ["yes"] * 50, "two values"),
        ("flat", [1.5] * 50, "must vary"),
        ("none", [None] * 50, "missing"),
    ):
        source, model = tmp_path / f"{name}.csv", tmp_path / name
        pl.DataFrame({"x": range(50), "y": values}).write_csv(source)
        task = ("--task", "regression") if name == "flat" else ()
        assert words in refused("learn", source, "--target", "y", "-f", model, *task, *QUICK)
        assert not model.exists()


def test_a_class_that_a_model_does_not_know(folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "t.csv"
    table(50).with_columns(pl.lit("perhaps").alias("label")).write_csv(source)
    assert "'perhaps'" in refused("evaluate", folder / "label", source, "--no-learn")


def test_a_third_class_makes_a_task_that_was_found_one_of_several(folder: Path, tmp_path: Path) -> None:
    source, model = tmp_path / "t.csv", tmp_path / "model"
    later = table(2000, seed=5).with_columns(
        pl.when(pl.col("a") > 1.0).then(pl.lit("perhaps")).otherwise("label").alias("label")
    )
    pl.concat([table(20_000), later]).write_csv(source)  # a model begins by the first 16,384 rows
    words = ("learn", source, "--target", "label", "--ignore", "size", "-f", model, "--json", "--budget", 1)
    assert "must have two classes" in refused(*words, "--task", "binary")
    last = json.loads(bayou(*words).stdout.splitlines()[-1])
    assert (last["task"], last["rows"], last["auc"]) == ("multiclass", 22_000, None)
    known = load(model)
    assert known.classes == ["no", "perhaps", "yes"]
    said = known.predict_table(later)["prediction"].to_numpy()
    assert (said == later["label"].to_numpy()).mean() > 0.75
    assert TableRun.of(known).scores.rows == 22_000
    again = bayou("learn", folder / "t.csv", "-i", model, "--target", "label", "--json")
    assert json.loads(again.stdout.splitlines()[-1])["task"] == "multiclass"


def test_a_third_class_after_a_run_was_taken_up(tmp_path: Path) -> None:
    rows = table(1200).with_columns(
        pl.when(pl.int_range(pl.len()) % 7 + pl.int_range(pl.len()) > 900).then(pl.lit("new")).otherwise("label")
    )
    rows = rows.with_columns(rows["literal"].alias("label")).drop("literal", "size")

    def run(stop: int) -> bytes:
        begun, path = TableRun(TableModel("label", budget=Budget(3.0)), "made"), tmp_path / "model"
        begun.model.begin(rows.head(600))
        for at in begun.over([rows], 100):
            if at == stop:
                begun.keep()
                save(begun.model, path)
                begun = TableRun.of(load(path))
                for _ in begun.over([rows], 100):
                    pass
                break
        begun.keep()
        save(begun.model, path)
        assert begun.model.task == "multiclass"
        return path.read_bytes()

    whole = run(0)
    assert [run(stop) == whole for stop in (800, 1100)] == [True, True]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_predictions_of_a_run_that_is_taken_up_go_on(tmp_path: Path, ending: str) -> None:
    """As after a kill: the model of an earlier moment, and predictions up to a later one."""
    source, model = tmp_path / "t.csv", tmp_path / "model"
    whole, said = tmp_path / f"whole.{ending}", tmp_path / f"said.{ending}"
    table(3000).write_csv(source)
    words = ("learn", source, "--target", "label", "--ignore", "size", "--save-every", 500, "--quiet", *QUICK)
    assert bayou(*words, "-f", tmp_path / "other", "-p", whole).exit_code == 0

    def stop(self: TableRun, part: pl.DataFrame) -> None:
        if self.rows >= 1500:
            raise OSError(28, "No space left on device")
        learn(self, part)

    learn = TableRun.learn
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TableRun, "learn", stop)
        assert bayou(*words, "-f", model, "-p", said).exit_code == 1
    part = tmp_path / f"said.{ending}.part"
    with part.open("ab") as file:
        file.write(b"what was said after the model was saved")
    assert not said.exists()
    assert "go on in .csv" in refused(*words, "-f", model, "-p", tmp_path / "said.parquet", "--resume")
    short = part.read_bytes()
    part.write_bytes(short[:100])
    assert "must have the" in refused(*words, "-f", model, "-p", said, "--resume")
    part.write_bytes(short)
    assert bayou(*words, "-f", model, "-p", said, "--resume").exit_code == 0
    assert said.read_bytes() == whole.read_bytes()
    assert not part.exists()
    assert model.read_bytes() == (tmp_path / "other").read_bytes()


def test_predictions_that_were_not_asked_for_at_first(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    begun = TableRun(TableModel("label"), str(folder / "t.csv"))
    begun.learn(table(50))
    begun.keep()
    save(begun.model, model)
    words = ("learn", folder / "t.csv", "-f", model, "-p", tmp_path / "said.csv", "--resume")
    assert "begun without --predictions" in refused(*words)


def test_columns_that_came_later_are_told(tmp_path: Path) -> None:
    source, model = tmp_path / "t.csv", tmp_path / "model"
    late = table(300).with_columns(pl.lit("elsewhere").alias("city"))
    pl.concat([table(16_384), late]).write_csv(source)
    told = bayou("learn", source, "--target", "label", "--ignore", "size", "-f", model, "--budget", 1).stdout
    assert "model: " in told
    assert ": 5 columns" in told.split("\n\n")[0]
    assert "model by now" in told
    assert ": 6 columns" in told
    assert "6 columns" in bayou("inspect", model).stdout


def test_a_number_that_is_too_large_is_skipped_when_predicting(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "t.csv").read_text().splitlines()
    source = tmp_path / "t.csv"
    source.write_text("\n".join([*lines[:40], "1e300," + lines[40].partition(",")[2], *lines[41:]]))
    assert "'a' must hold numbers below 1e+140" in refused("predict", folder / "label", source)
    result = bayou("predict", folder / "label", source, "--on-error", "skip")
    expected = bayou("predict", folder / "label", folder / "t.csv").stdout.splitlines()
    assert result.stdout.splitlines() == [*expected[:40], *expected[41:]]
    assert "row 40, column 'a'" in result.stderr


def test_rows_that_cannot_be_learnt_are_skipped_where_that_is_asked_for(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "t.csv").read_text().splitlines()
    lines[40] = "1e300," + lines[40].partition(",")[2]
    source, model = tmp_path / "t.csv", tmp_path / "model"
    source.write_text("\n".join(lines))
    words = ("learn", source, "--target", "label", "-f", model, *QUICK)
    assert "'a' must hold numbers below 1e+140" in refused(*words)
    assert not model.exists()
    result = bayou(*words, "--on-error", "skip")
    assert result.exit_code == 0
    assert "1 row was skipped" in result.stderr
    assert "row 40, column 'a'" in result.stderr


def test_a_full_disk_leaves_what_was_there(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, model = tmp_path / "said.csv", tmp_path / "model"
    said.write_text("before")
    model.write_bytes((folder / "label").read_bytes())

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("bayou.cli.predict.Writer.write", full)
        assert "the disk is full" in refused("predict", folder / "label", folder / "t.csv", "-o", said)
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        result = bayou("learn", folder / "t.csv", "-f", model)
        assert result.exit_code == 1
        assert "the disk is full" in result.stderr.splitlines()[-1]
    assert said.read_text() == "before"
    assert model.read_bytes() == (folder / "label").read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model", "said.csv"]
