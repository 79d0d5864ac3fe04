"""libsvm's and Vowpal Wabbit's text from end to end, against the estimators that Python users call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from bayou import Budget, Hashing, OnlineClassifier, OnlineRegressor, SparseRows, load, read_libsvm, read_vw, save
from bayou.cli.asked import Asked
from bayou.evaluation import TableRun
from bayou.streams import open_tables
from tests.cli.made import bayou, refused

QUICK = ("--budget", "3")
ROWS = 700


def made(n_names: int, seed: int = 0) -> Iterator[tuple[int, dict[int, float], float]]:
    """A label, a value for each of some names, and an importance."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=n_names)
    for _ in range(ROWS):
        names = np.sort(rng.choice(n_names, 8, replace=False)).tolist()
        values = rng.uniform(0.2, 2.0, 8).round(3).tolist()
        score = sum(weights[name] * value for name, value in zip(names, values, strict=True))
        yield (1 if score + rng.logistic() > 0.0 else -1), dict(zip(names, values, strict=True)), rng.integers(1, 4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of few names and of many, in both kinds of text."""
    here = tmp_path_factory.mktemp("sparse")
    for name, count in (("few", 12), ("many", 900)):
        rows = list(made(count))
        told = [" ".join(f"{k + 1}:{v}" for k, v in row.items()) for _, row, _ in rows]
        (here / f"{name}.libsvm").write_text("".join(f"{y} {t}\n" for (y, _, _), t in zip(rows, told, strict=True)))
        lines = [
            f"{y} {w} 'row{n}|{'ab'[n % 2]} " + " ".join(f"f{k}:{v}" for k, v in row.items())
            for n, (y, row, w) in enumerate(rows)
        ]
        (here / f"{name}.vw").write_text("".join(f"{line}\n" for line in lines))
        for ending in ("libsvm", "vw"):
            result = bayou("learn", here / f"{name}.{ending}", "-f", here / f"{name}.{ending}.bayou", *QUICK)
            assert result.exit_code == 0, result.output
    return here


def predicted(folder: Path, name: str, tmp_path: Path) -> Any:
    said = tmp_path / "said.csv"
    assert bayou("predict", folder / f"{name}.bayou", folder / name, "-o", said).exit_code == 0
    return pl.read_csv(said)


def test_many_indices_are_sparse_rows(folder: Path, tmp_path: Path) -> None:
    [(rows, labels)] = read_libsvm(folder / "many.libsvm", n_columns=2**18, zero_based=True)
    model = OnlineClassifier(budget=Budget(3.0)).partial_fit(rows, labels.astype(np.int64))
    said = predicted(folder, "many.libsvm", tmp_path)
    assert said.columns == ["prediction", "probability_-1", "probability_1"]
    np.testing.assert_array_equal(said["probability_1"].to_numpy(), model.predict_proba(rows)[:, 1])
    assert load(folder / "many.libsvm.bayou").estimator.log_evidence_ == model.log_evidence_


def test_few_indices_are_rows_in_full(folder: Path, tmp_path: Path) -> None:
    [(rows, labels)] = read_libsvm(folder / "few.libsvm")
    full = np.zeros(rows.shape)
    for n in range(len(rows)):
        full[n, rows.columns[rows.starts[n] : rows.starts[n + 1]]] = rows.values[rows.starts[n] : rows.starts[n + 1]]
    model = OnlineClassifier(budget=Budget(3.0)).partial_fit(full, labels.astype(np.int64))
    said = predicted(folder, "few.libsvm", tmp_path)
    np.testing.assert_array_equal(said["probability_1"].to_numpy(), model.predict_proba(full)[:, 1])
    assert load(folder / "few.libsvm.bayou").layout.names == [str(index) for index in range(1, 13)]


def test_many_names_are_hashed_and_importances_are_weights(folder: Path, tmp_path: Path) -> None:
    [told] = read_vw(folder / "many.vw")
    encoder = Hashing(bits=18)
    rows = [encoder.encode_one(encoder.begin(), {}, row) for row in told.features]
    starts = np.cumsum([0, *(len(columns) for columns, _ in rows)])
    columns, values = (np.concatenate(part) for part in zip(*rows, strict=True))
    sparse = SparseRows(starts, columns, values, 2**18)
    model = OnlineClassifier(budget=Budget(3.0))
    model.partial_fit(sparse, told.labels.astype(np.int64), sample_weight=told.weights)
    said = predicted(folder, "many.vw", tmp_path)
    np.testing.assert_array_equal(said["probability_1"].to_numpy(), model.predict_proba(sparse)[:, 1])
    other = OnlineClassifier(budget=Budget(3.0)).partial_fit(sparse, told.labels.astype(np.int64))
    assert abs(other.predict_proba(sparse) - model.predict_proba(sparse)).max() > 0.01
    assert any(name.startswith("a^f") for name in load(folder / "many.vw.bayou").summary().names)


def test_the_label_is_a_column_that_can_be_compared(folder: Path, tmp_path: Path) -> None:
    result = bayou("learn", folder / "few.vw", "--target", "label > 0", "-f", tmp_path / "m", *QUICK)
    assert "label > 0 (binary: False, True)" in result.stdout
    result = bayou("learn", folder / "few.libsvm", "--task", "regression", "-f", tmp_path / "r", "--hashed", "--json")
    assert "rmse" in json.loads(result.stdout.splitlines()[-1])
    [(rows, labels)] = read_libsvm(folder / "few.libsvm", n_columns=2**18, zero_based=True)
    model = OnlineRegressor(budget=Budget()).partial_fit(rows, labels)
    said = pl.read_csv(bayou("predict", tmp_path / "r", folder / "few.libsvm").stdout.encode())
    np.testing.assert_allclose(said["prediction"].to_numpy(), model.predict(rows), rtol=1e-12)


def test_standard_input_the_other_commands_and_their_scores(folder: Path, tmp_path: Path) -> None:
    whole = json.loads(bayou("learn", folder / "few.vw", "--json", *QUICK).stdout.splitlines()[-1])
    piped = bayou("learn", "-", "--json", *QUICK, stdin=(folder / "few.vw").read_bytes())
    assert json.loads(piped.stdout.splitlines()[-1])["log_loss"] == whole["log_loss"]
    settings = ("-s", "--budget 3", "-s", "--budget 3 --hashed")
    compared = [
        json.loads(line) for line in bayou("compare", folder / "few.vw", *settings, "--json").stdout.splitlines()
    ]
    assert compared[0]["log_loss"] == whole["log_loss"]
    assert compared[1]["log_loss"] != whole["log_loss"]
    model = folder / "many.vw.bayou"
    found = json.loads(bayou("evaluate", model, folder / "many.vw", "--no-learn", "--json").stdout)
    right = predicted(folder, "many.vw", tmp_path)["prediction"].to_numpy() == [y for y, _, _ in made(900)]
    assert found["accuracy"] == pytest.approx(right.mean())
    scored = json.loads(bayou("learn", "-t", "-i", model, "-d", folder / "many.vw", "--json").stdout.splitlines()[-1])
    assert scored["accuracy"] == pytest.approx(found["accuracy"])
    facts = json.loads(bayou("inspect", model, "--json", "-n", 3).stdout)
    assert facts["classes"] == [-1, 1]
    assert len(facts["weights"]) == 3
    page = tmp_path / "page.html"
    assert bayou("report", folder / "few.libsvm.bayou", "-o", page).exit_code == 0
    assert "few.libsvm" in page.read_text()


def test_broken_lines_and_rows_without_a_label(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "few.vw").read_text().splitlines()
    lines[20], lines[40], lines[50] = "x |a f1", "|a f1:2", "1 |a f1:1e200"
    source, model = tmp_path / "t.vw", tmp_path / "m"
    source.write_text("\n".join(lines))
    assert "line 21" in refused("learn", source, "-f", model, *QUICK)
    assert not model.exists()
    result = bayou("learn", source, "-f", model, "--on-error", "skip", "--json", *QUICK)
    assert json.loads(result.stdout.splitlines()[-1])["skipped"] == 2
    assert json.loads(result.stdout.splitlines()[-1])["without_target"] == 1
    assert "values must be below 1e+140 in size; got 1e+200" in result.stderr
    said = bayou("predict", model, source, "--on-error", "skip")
    assert len(said.stdout.splitlines()) == 1 + ROWS - 2
    assert "2 rows were skipped" in said.stderr
    (tmp_path / "t.libsvm").write_text("1 1:2\n-1 1:x\n")
    assert "line 2" in refused("learn", tmp_path / "t.libsvm", *QUICK)


def test_what_sparse_rows_do_not_have_is_told(folder: Path) -> None:
    source = folder / "few.vw"
    assert "--ignore is for columns" in refused("learn", source, "--ignore", "f1")
    assert "two namespaces" in refused("learn", source, "-q", "abc")
    assert "no namespaces" in refused("learn", folder / "few.libsvm", "-q", "ab")
    assert "the target must be a column" in refused("learn", source, "--target", "f1")
    assert "rows of libsvm" in refused("predict", folder / "few.libsvm.bayou", source)
    assert "late have no weights" in refused("learn", source, "--delay", 5, *QUICK)
    table = folder / "t.csv"
    pl.DataFrame({"label": [1, 2], "x": [1, 2]}).write_csv(table)
    assert "got tables of columns" in refused("predict", folder / "few.vw.bayou", table)


def test_namespaces_interact_by_letters_or_by_names(tmp_path: Path) -> None:
    source, rng = tmp_path / "t.vw", np.random.default_rng(1)
    users, items = rng.integers(0, 4, (2, 600))
    y = np.where((users + items) % 2 == 0, 1, -1)  # no sum of one and the other tells it
    told = zip(y, users, items, strict=True)
    source.write_text("".join(f"{label} |user u{user} |item i{item}\n" for label, user, item in told))
    alone, *both = (
        json.loads(bayou("learn", source, "--json", *QUICK, *words).stdout.splitlines()[-1])["accuracy"]
        for words in (("--hashed",), ("-q", "ui"), ("-q", "user,item"), ("--interactions", "ui", "--hashed"))
    )
    assert alone < 0.65
    assert min(both) > 0.9
    assert both[0] == both[1]


def test_indices_that_come_late(tmp_path: Path) -> None:
    """A column begins with its index, as if it had been there with zeros; too many share some."""
    first = "".join(f"{(-1) ** n} {1 + n % 3}:1\n" for n in range(16_384))
    source, model = tmp_path / "t.libsvm", tmp_path / "m"
    source.write_text(first + "".join(f"{(-1) ** n} {10 + n % 2}:1 {10_000 + n}:1\n" for n in range(600)))
    assert bayou("learn", source, "-f", model, "--budget", 1).exit_code == 0
    names = load(model).layout.names
    assert names[:4] == ["1", "2", "3", "10"]
    assert len(names) == 500 + 32
    assert names[-1] == "others #31"
    assert "532 columns" in bayou("inspect", model).stdout
    said = bayou("predict", model, source)
    assert len(said.stdout.splitlines()) == 1 + 16_384 + 600


def test_indices_beyond_the_columns_are_hashed(tmp_path: Path) -> None:
    source, model = tmp_path / "t.libsvm", tmp_path / "m"
    source.write_text("".join(f"{(-1) ** n} {n % 400}:1 {10**9 + n % 2}:1\n" for n in range(800)))
    assert bayou("learn", source, "-f", model, "-b", 12).exit_code == 0
    assert load(model).layout.hashed
    said = pl.read_csv(bayou("predict", model, source).stdout.encode())
    assert (said["prediction"].to_numpy() == (-1) ** np.arange(800)).all()


@pytest.mark.parametrize("name", ["few.vw", "many.vw", "many.libsvm"])
@pytest.mark.parametrize("delay", [0, 100])
def test_a_run_that_is_taken_up_ends_as_one_that_was_not(folder: Path, tmp_path: Path, name: str, delay: int) -> None:
    source = tmp_path / name
    text = (folder / name).read_text()
    source.write_text(text)
    if delay and name.endswith("vw"):  # which has no importances then
        lines = (line.split(maxsplit=2) for line in text.splitlines())
        source.write_text("".join(f"{label} {rest}\n" for label, _, rest in lines))
    asked = Asked(str(source), None, budget=3.0)

    def run(stop: int | None) -> bytes:
        model = asked.new_model(open_tables(source).format)
        begun, path = TableRun(model, str(source), delay), tmp_path / "model"
        for rows in begun.over(open_tables(source).rows, 50):
            if rows == stop:
                begun.keep()
                save(begun.model, path)
                begun = TableRun.of(load(path))
                for _ in begun.over(open_tables(source).rows, 50):
                    pass
                break
        begun.keep()
        save(begun.model, path)
        return path.read_bytes()

    whole = run(None)
    assert [run(stop) == whole for stop in (50, 450)] == [True, True]


def test_late_targets_of_sparse_rows_are_learnt(folder: Path) -> None:
    words = ("learn", folder / "many.libsvm", "--json", *QUICK)
    soon, late = (
        json.loads(bayou(*words, *more).stdout.splitlines()[-1])["log_loss"] for more in ((), ("--delay", 100))
    )
    assert late < np.log(2.0)
    assert abs(late - soon) < 0.02  # a hundred rows of nine hundred, which the bank has to do without
