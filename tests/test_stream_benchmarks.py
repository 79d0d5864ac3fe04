"""The benchmark of streams: its rows, baselines and scores are what they say, and no label is told too early."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import log_loss  # these need the peers

from benchmarks import vowpal
from benchmarks.streams import bandits, contenders, files, late, linear, made, scores, trees
from benchmarks.streams.__main__ import main
from benchmarks.streams.contenders import BASELINES, NO_CHANGE, OURS, OURSELVES, Contender, Predicted
from benchmarks.streams.stream import MOST_VALUES, Category, Stream

needs_vowpal = pytest.mark.skipif(not vowpal.is_there(), reason=vowpal.ABSENT)
NO_MOA = linear.without("capymoa") or trees.without_java()
LATE_TOO = bandits.bandits(None)
ON_TIME = [*OURSELVES, *linear.linear(), *trees.trees(None), *BASELINES]


def each(contenders: list[Contender]) -> pytest.MarkDecorator:
    """A test of each; those that are absent are skipped, and it is said why."""
    absent = [pytest.mark.skipif(bool(contender.missing), reason=contender.missing) for contender in contenders]
    found = [pytest.param(one, marks=mark, id=one.name) for one, mark in zip(contenders, absent, strict=True)]
    return pytest.mark.parametrize("contender", found)


def small(n_rows: int = 300) -> Stream:
    """Labels that nothing tells."""
    random = np.random.default_rng(0)
    kinds = Category.of(random.choice(["a", "b", "c"], n_rows))
    return Stream("small", random.normal(size=(n_rows, 3)), {"kind": kinds}, random.integers(0, 2, n_rows), 2)


def with_foresight(contenders: list[Contender]) -> list[Contender]:
    """In hindsight another rate may be the best."""
    return [contender for contender in contenders if contender.takes(small()) and "hindsight" not in contender.name]


# --- streams


def test_rows_are_the_same_in_every_form() -> None:
    stream = small(25)
    dense = np.concatenate([rows for rows, _ in stream.chunks(10)])
    values = stream.categories["kind"].values
    assert dense.shape == (25, stream.n_columns) == (25, 6)
    told = zip(dense, stream.each(), stream.dicts(), stream.dense_dicts(), strict=True)
    for row, (numbers, places, label), (as_dict, also), (as_dense, again) in told:
        np.testing.assert_array_equal(row[:3], numbers)
        assert np.flatnonzero(row[3:]).tolist() == [place - 3 for place in places] == [values.index(as_dict["kind"])]
        assert [as_dict[f"x{column}"] for column in range(3)] == numbers.tolist()
        assert list(as_dense.values()) == row.tolist()
        assert label == also == again


def test_values_beyond_the_most_have_no_column() -> None:
    category = Category.of([*range(MOST_VALUES + 5), 0, MOST_VALUES])
    stream = Stream("wide", np.zeros((107, 0)), {"c": category}, np.zeros(107, dtype=np.int64), 2)
    (rows, _) = next(stream.chunks())
    assert rows.shape == (107, MOST_VALUES)
    np.testing.assert_array_equal(rows.sum(axis=1), [1.0] * MOST_VALUES + [0.0] * 5 + [1.0, 0.0])
    assert rows[-2, 0] == 1.0
    assert [row["c"] for row, _ in stream.dicts()][-2:] == ["0", "another"]


def test_numbers_that_are_missing_are_refused() -> None:
    with pytest.raises(ValueError, match="missing"):
        replace(small(5), numbers=np.full((5, 1), np.nan))


def test_made_labels_come_as_often_as_said() -> None:
    for make in made.MADE.values():
        stream = make(20_000)
        said = stream.truth[:, 1]
        for low in (0.0, 0.2, 0.4, 0.6, 0.8):  # at least 1,000 rows each: a standard error of at most 1.6 %
            part = (said >= low) & (said < low + 0.2)
            assert part.sum() > 1000
            assert stream.labels[part].mean() == pytest.approx(said[part].mean(), abs=0.05)


def test_files_are_read(tmp_path: Path) -> None:
    for folder in ("drift", "small", "binary", "flights"):
        (tmp_path / folder).mkdir()
    (tmp_path / "drift/electricity.csv").write_text("date,day,class\n0,2,UP\n0.5,3,DOWN\n")
    (tmp_path / "drift/NEweather_data.csv").write_text("1,2.5\n3,4\n")
    (tmp_path / "drift/NEweather_class.csv").write_text("1\n0\n")
    (tmp_path / "small/phishing.csv.gz").write_bytes(gzip.compress(b"a,is_phishing\n0.5,1\n1,0\n"))
    numbers = "39, Private, 7, BA, 13, Never, Adm, No, White, Male, 2, 0, 40, US"
    (tmp_path / "binary/adult-train.csv").write_text(f"{numbers}, <=50K\n")
    (tmp_path / "binary/adult-test.csv").write_text(f"{numbers}, >50K.\n")
    (tmp_path / "binary/bank-marketing.csv").write_text("V1,V2,Class\n58,clerk,1\n40,none,2\n")
    with zipfile.ZipFile(tmp_path / "small/banana.zip", "w") as archive:
        archive.writestr("banana.all.txt", "-1 1:1.5 2:-0.5 \n1 1:2 2:3 \n")
    with zipfile.ZipFile(tmp_path / "small/segment.csv.zip", "w") as archive:
        archive.writestr("segment.csv", "a,category\n1,sky\n2,path\n3,sky\n")
    expected = {
        "electricity": ([[0.0, 2.0], [0.5, 3.0]], [1, 0]),
        "NEweather": ([[1.0, 2.5], [3.0, 4.0]], [1, 0]),
        "phishing": ([[0.5], [1.0]], [1, 0]),
        "adult": ([[39.0, 7.0, 13.0, 2.0, 0.0, 40.0]] * 2, [0, 1]),
        "bank": ([[58.0], [40.0]], [0, 1]),
        "bananas": ([[1.5, -0.5], [2.0, 3.0]], [0, 1]),
        "segments": ([[1.0], [2.0], [3.0]], [1, 0, 1]),
    }
    for name, (rows, labels) in expected.items():
        stream = files.FILES[name](tmp_path)
        np.testing.assert_array_equal(stream.numbers, rows)
        assert stream.labels.tolist() == labels
    assert len(files.FILES["adult"](tmp_path).categories) == 8
    assert files.FILES["bank"](tmp_path).categories["V2"].values == ("clerk", "none")
    with pytest.raises(FileNotFoundError):
        files.FILES["SEA"](tmp_path)


def test_flights_come_in_the_order_of_the_year(tmp_path: Path) -> None:
    import polars as pl

    columns = {"month": [10, 2, 2], "day": [1, 3, 3], "sched_dep_time": [500, 900, 600], "hour": [5, 9, 6]}
    texts = {"carrier": ["AA", "UA", "UA"], "origin": ["JFK"] * 3, "dest": ["LAX"] * 3}
    (tmp_path / "flights").mkdir()
    table = pl.DataFrame({**columns, **texts, "distance": [1, 2, 3], "arr_delay": [16, 15, None]})
    table.vstack(table.with_columns(arr_delay=pl.lit(20, pl.Int64))).write_parquet(
        tmp_path / "flights/nycflights13.parquet"
    )
    stream = files.flights(tmp_path)
    assert stream.numbers[:, [0, 2]].tolist() == [[2, 600], [2, 900], [2, 900], [10, 500], [10, 500]]
    assert stream.labels.tolist() == [1, 0, 1, 1, 1]


# --- contenders


def told(contender: Contender, stream: Stream) -> np.ndarray:
    return contender.predict(stream).probabilities


@each(with_foresight([*ON_TIME, *LATE_TOO]))
def test_no_label_is_told_too_early(contender: Contender) -> None:
    """What comes later has no say: another label changes nothing until the row after it."""
    stream = small(60)
    other = stream.labels.copy()
    other[40] = 1 - other[40]
    before, after = told(contender, stream), told(contender, replace(stream, labels=other))
    assert before.shape == (60, 2)
    np.testing.assert_allclose(before[:41], after[:41], rtol=1e-12)
    assert not np.array_equal(before[41:], after[41:])
    np.testing.assert_allclose(before.sum(axis=1), 1.0, atol=1e-6)


@each([contender for contender in [*ON_TIME, *LATE_TOO] if contender.kind != "baseline"])
def test_several_classes_are_predicted(contender: Contender) -> None:
    """Three classes that one number tells apart: to guess gives a loss of 1.10."""
    random = np.random.default_rng(1)
    labels = random.integers(0, 3, 600)
    numbers = np.column_stack([4.0 * labels + random.normal(size=600), random.normal(size=600)])
    stream = Stream("three", numbers, {}, labels, 3)
    if not contender.takes(stream):
        pytest.skip("it has two classes")
    result = scores.score(stream, contender, contender.run(stream))
    assert result.accuracy > 0.6
    assert result.microseconds > 0.0


@each([contender for contender in [*late.LATE, *LATE_TOO] if "hindsight" not in contender.name])
def test_no_late_label_is_told_too_early(contender: Contender) -> None:
    """Row 40 is told before row 50 is predicted, and not before row 49."""
    stream = replace(small(70), delay=9)
    assert contender.takes(stream)
    assert not any(other.takes(stream) for other in ON_TIME)
    other = stream.labels.copy()
    other[40] = 1 - other[40]
    before, after = told(contender, stream), told(contender, replace(stream, labels=other))
    np.testing.assert_allclose(before[:50], after[:50], rtol=1e-12)
    assert not np.array_equal(before[50:], after[50:])
    np.testing.assert_allclose(before.sum(axis=1), 1.0, atol=1e-6)


def test_no_change_repeats_the_last_label() -> None:
    stream = replace(small(6), labels=np.array([1, 1, 0, 0, 0, 1]))
    given = contenders.by_no_change(stream).probabilities
    # It was right once after the second row, not after the third, and again after the fourth and fifth.
    np.testing.assert_allclose(given[:, 1], [1 / 2, 1 / 2, 2 / 3, 1 - 2 / 4, 1 - 3 / 5, 1 - 4 / 6])


def test_running_units_are_those_of_the_rows_so_far() -> None:
    rows = np.random.default_rng(2).normal(1e6, 3.0, size=(50, 4))
    units = linear.RunningUnits(4)
    for t, row in enumerate(rows):
        so_far = rows[: t + 1]
        deviation = so_far.std(axis=0) if t else 1.0
        np.testing.assert_allclose(units.tell(row), (row - so_far.mean(axis=0)) / deviation, atol=1e-6)


def test_the_best_rate_is_the_best() -> None:
    stream = made.stationary(400)
    best = linear.by_best_rate(stream)
    losses = [log_loss(stream.labels, linear.by_river(rate)(stream).probabilities) for rate in linear.RATES]
    assert log_loss(stream.labels, best.probabilities) == pytest.approx(min(losses), rel=1e-6)
    assert best.note == f" ({linear.RATES[int(np.argmin(losses))]:g})"


@needs_vowpal
@pytest.mark.parametrize("options", ["", "--coin"])
def test_vowpal_predicts_before_it_learns(options: str) -> None:
    """The file that it writes has what a workspace says when it is asked first and told then."""
    from vowpalwabbit import Workspace

    stream, second = made.abrupt(200), []
    workspace = Workspace(f"--loss_function logistic --link logistic --quiet {options}")
    for numbers, places, label in stream.each():
        values = " ".join(f"{column}:{value:.9g}" for column, value in enumerate(numbers))
        row = f"| {values} {' '.join(map(str, places))}"
        second.append(workspace.predict(row))
        workspace.learn(f"{2 * label - 1} {row}")
    workspace.finish()
    np.testing.assert_allclose(linear.by_vowpal(options)(stream).probabilities[:, 1], second, atol=2e-6)


def test_bandits_predict_before_they_learn() -> None:
    """What the model says when it is asked first and told then, in the units that scikit-learn has so far."""
    import bayesianbandits as peer
    from sklearn.preprocessing import StandardScaler

    stream, second = replace(made.abrupt(150), categories={}), []
    model, scaler = peer.EmpiricalBayesGLM(forgetting=peer.StabilizedForgetting(0.97)), StandardScaler()
    for t in range(len(stream)):
        row = stream.numbers[t : t + 1]
        told_row = np.column_stack([scaler.partial_fit(row).transform(row), [1.0]])
        second.append(model.predict(told_row)[0])
        model.partial_fit(told_row, stream.labels[t : t + 1])
    setting = bandits.Setting("EmpiricalBayesGLM", "StabilizedForgetting", 0.97)
    given = bandits.by_model(setting.make)(stream).probabilities
    np.testing.assert_allclose(given[:, 1], second, rtol=1e-6)


@pytest.mark.slow
def test_the_best_setting_of_bandits_forgets_what_is_no_longer_true() -> None:
    stream = made.abrupt(600)
    never, best = bandits.by_laplace(stream), bandits.by_best_setting(stream)
    losses = [log_loss(stream.labels, run.probabilities) for run in (never, best)]
    assert losses[1] < losses[0] - 0.02
    assert best.note.startswith((" (GLM, ", " (EB GLM, "))  # a rule and its rate follow


READ_BY_MOA = """
import sys
from capymoa.classifier import AdaptiveRandomForestClassifier
from capymoa.stream import ARFFStream

stream = ARFFStream(sys.argv[1])
model = AdaptiveRandomForestClassifier(stream.get_schema(), ensemble_size=3)
for instance in stream:
    votes = model.predict_proba(instance)
    print(*([0.5, 0.5] if votes is None else votes))
    model.train(instance)
"""


@pytest.mark.skipif(bool(NO_MOA), reason=NO_MOA)
def test_moa_says_the_same_of_a_file_that_it_reads_itself(tmp_path: Path) -> None:
    """A category tells the label nine times in ten; two of its values come too late for a column."""
    random = np.random.default_rng(3)
    kinds = np.array([*range(MOST_VALUES + 2), *random.integers(0, 4, 400)])
    labels = np.where(random.uniform(size=len(kinds)) < 0.1, (kinds + 1) % 2, kinds % 2)
    stream = Stream("told", random.normal(size=(len(kinds), 1)), {"kind": Category.of(kinds)}, labels, 2)
    names = [*stream.categories["kind"].values, "another"]
    rows = [f"{row['x0']!r},{row['kind']},{label}" for row, label in stream.dicts()]
    header = ["@relation told", "@attribute x0 numeric", f"@attribute kind {{{','.join(names)}}}"]
    lines = [*header, "@attribute label {0,1}", "@data", *rows]
    (tmp_path / "told.arff").write_text("\n".join(lines) + "\n", encoding="ascii")
    command = [sys.executable, "-c", READ_BY_MOA, str(tmp_path / "told.arff")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    read = np.array([line.split() for line in printed.splitlines()], dtype=float)
    given = trees.by_capymoa(3)(stream).probabilities
    np.testing.assert_allclose(given, read, atol=1e-9)
    assert np.mean(given[-200:].argmax(axis=1) == labels[-200:]) > 0.8


# --- scores


def predicted(second: list[float]) -> Predicted:
    column = np.array(second)
    return Predicted(np.column_stack([1.0 - column, column]), 0.001, 10)


def test_scores_by_hand() -> None:
    stream = replace(small(4), labels=np.array([1, 0, 1, 1]))
    found = scores.score(stream, OURSELVES[0], predicted([0.9, 0.2, 0.4, 0.92]))
    assert found.log_loss == pytest.approx(log_loss([1, 0, 1, 1], [0.9, 0.2, 0.4, 0.92]))
    assert found.accuracy == 0.75
    assert found.ece == pytest.approx((abs(0.9 + 0.92 - 2.0) + 0.2 + 0.6) / 4.0)  # 0.9 and 0.92 share a bin
    assert found.microseconds == pytest.approx(250.0)


def test_certainty_is_bounded_and_no_number_is_the_worst() -> None:
    stream = replace(small(3), labels=np.array([1, 1, 0]))
    found = scores.score(stream, OURSELVES[0], predicted([0.0, 1.0, np.nan]))
    np.testing.assert_allclose(found.losses, [-np.log(1e-6), -np.log(1.0 - 1e-6), -np.log(1e-6)])


def test_goals_are_missed_honestly() -> None:
    stream = replace(small(4), labels=np.array([1, 0, 1, 1]))
    said: dict[str, Callable[[], scores.Score]] = {
        OURS: lambda: scores.score(stream, OURSELVES[0], predicted([0.6, 0.4, 0.6, 0.6])),
        "peer": lambda: scores.score(stream, Contender("peer", contenders.by_truth), predicted([0.7, 0.3, 0.7, 0.7])),
        "tree": lambda: scores.score(stream, Contender("tree", contenders.by_truth, "trees"), predicted([0.9] * 4)),
        NO_CHANGE: lambda: scores.score(stream, BASELINES[0], predicted([0.5] * 4)),
    }
    linear_peer, forest, calibrated, no_change = scores.goals([make() for make in said.values()])
    assert linear_peer.what == "not above peer"
    assert not linear_peer.reached
    assert linear_peer.difference == pytest.approx(np.log(0.7 / 0.6))
    assert linear_peer.standard_error == pytest.approx(0.0, abs=1e-12)
    assert forest.what == "not above tree"
    assert forest.reached  # the forest's one wrong label costs it more than ours lose by doubt
    assert calibrated.bound == 0.03
    assert not calibrated.reached
    assert no_change.reached


def test_forests_of_fewer_rows_are_no_goal() -> None:
    stream = replace(small(4), labels=np.array([1, 0, 1, 1]))
    ours = scores.score(stream, OURSELVES[0], predicted([0.6, 0.4, 0.6, 0.6]))
    tree = scores.score(stream, Contender("tree", contenders.by_truth, "trees"), predicted([0.9] * 2))
    assert [goal.what for goal in scores.goals([ours, tree])] == ["calibrated"]


# --- the whole


def test_a_quick_run_is_printed_written_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--quick", "--rows", "400", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    written = json.loads((tmp_path / "streams.json").read_text(encoding="utf-8"))
    assert {"versions", "settings", "scores", "goals"} == set(written)
    assert {score["stream"] for score in written["scores"]} == {"made: stationary", "made: abrupt change"}
    for score in written["scores"]:
        assert score["contender"] in printed
        assert score["rows"] == 400
        assert np.mean(score["losses"]) == pytest.approx(score["log_loss"])  # of 40 stretches of ten rows
    names = {score["contender"] for score in written["scores"]}
    assert {OURS, NO_CHANGE, "class frequencies", "the probabilities that made it"} <= names
    assert sum(goal["what"] == "not above no change" for goal in written["goals"]) == 2
    assert printed.count("goal:") == len(written["goals"]) == 6
    assert "1e-06" in printed
    assert (tmp_path / "streams.png").stat().st_size > 10_000


def test_what_is_absent_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--only", "SEA", "--out", str(tmp_path)])
    assert "skipped: SEA: give the folder of its files with --data" in capsys.readouterr().out
    main(["--only", "SEA", "--out", str(tmp_path), "--data", str(tmp_path)])
    assert "skipped: SEA: its files are not in" in capsys.readouterr().out
    assert not (tmp_path / "streams.png").exists()


@pytest.mark.slow
def test_forests_are_compared_on_the_same_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--quick", "--rows", "300", "--only", "stationary", "--trees", "--tree-rows", "100", "--out", str(tmp_path)])
    capsys.readouterr()
    written = json.loads((tmp_path / "streams.json").read_text(encoding="utf-8"))["scores"]
    few = {score["contender"] for score in written if score["rows"] == 100}
    assert {"River ARFClassifier", "River AMFClassifier", f"{OURS}, the first rows"} <= few
    assert NO_MOA or "CapyMOA AdaptiveRandomForest, 100 trees" in few
    assert all(score["rows"] == 300 for score in written if score["contender"] not in few)
