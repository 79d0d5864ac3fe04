"""python -m bayou.papers: what it prints, what it writes, and how it refuses."""

from __future__ import annotations

import csv
import json
import sys
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from bayou.numerics.jit import COMPILED
from bayou.papers.__main__ import PAPERS, main
from tests.papers.quick import QuickRun

KEYS = ["paper", "item", "quantity", "printed", "theory", "simulation", "standard_error", "tolerance", "holds", "note"]


def test_the_list_names_every_claim(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {row["paper"] for row in listed} == set(PAPERS)
    quantities = [(row["paper"], row["item"], row["quantity"]) for row in listed]
    assert len(set(quantities)) == len(quantities)
    assert main(["list"]) == 0
    table = capsys.readouterr().out
    assert all(row["quantity"] in table for row in listed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["run", "opper1999"],
            "there is no paper 'opper1999'; there are opper1998, deoliveira2007, barkai1995, buschermoehle2013, "
            "wang2007, xu.",
        ),
        (["run", "opper1998", "--figure", "3"], "opper1998 has no figure 3 here; it has 1, 2."),
        (
            ["run"],
            "name one paper, of opper1998, deoliveira2007, barkai1995, buschermoehle2013, wang2007, xu, or give --all.",
        ),
        (
            ["run", "opper1998", "--all"],
            "name one paper, of opper1998, deoliveira2007, barkai1995, buschermoehle2013, wang2007, xu, or give --all.",
        ),
    ],
)
def test_what_does_not_exist_is_named(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--output", str(tmp_path / "new")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"bayou.papers: {message}\n"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("arguments", [["--threads", "0"], ["--seed", "-1"], ["--figure", "two"]])
def test_what_is_no_number_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["run", "opper1998", *arguments])
    assert arguments[1] in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    assert main(["run", "opper1998", "--output", str(tmp_path / "file" / "new")]) == 2
    assert str(tmp_path / "file") in capsys.readouterr().err


@pytest.mark.parametrize(("module", "extra"), [("matplotlib", "plot"), ("rich.console", "demo")])
def test_a_missing_extra_is_named_before_any_work(
    module: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["run", "opper1998", "--output", str(tmp_path / "new")]) == 2
    assert f'pip install "bayou[{extra}]"' in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(not COMPILED, reason="ensembles need compiled kernels")
def test_json_and_nothing_else_from_the_same_seed_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = []
    for threads in ("1", "2"):
        arguments = ["--figure", "2", "--quick", "--json", "--threads", threads, "--output", str(tmp_path / threads)]
        assert main(["run", "opper1998", *arguments]) == 0
        runs.append(json.loads(capsys.readouterr().out))
    assert runs[0] == runs[1]
    assert [list(row) for row in runs[0]] == [KEYS] * len(runs[0])
    assert {row["item"] for row in runs[0]} == {"Fig. 2"}
    written = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert written == ["claims.json", "opper1998-figure-2.csv", "opper1998-figure-2.png"]


def test_every_figure_is_drawn_and_told(quick_run: QuickRun) -> None:
    pictures = {path.stem for path in quick_run.folder.glob("*.png")}
    assert pictures >= {"opper1998-figure-1", "opper1998-figure-2", "deoliveira2007-figure-1"}
    for name in pictures:
        assert (quick_run.folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert len((quick_run.folder / f"{name}.csv").read_text(encoding="utf-8").splitlines()) > 5


def test_no_two_series_of_a_figure_have_the_same_name(quick_run: QuickRun) -> None:
    """By its name a reader of the data has to tell a series from the others."""
    for path in quick_run.folder.glob("*.csv"):
        with path.open(encoding="utf-8") as file:
            rows = [(row["series"], float(row["x"])) for row in csv.DictReader(file)]
        names = [name for name, _ in groupby(rows, key=lambda row: row[0])]
        assert len(set(names)) == len(names), path.name
        assert all(x < y for (name, x), (other, y) in pairwise(rows) if name == other), path.name


def test_a_quick_run_judges_every_quick_claim_once(quick_run: QuickRun) -> None:
    quick = [
        (claim.paper, claim.item, claim.quantity)
        for paper in PAPERS.values()
        for experiment in paper.experiments
        for claim in experiment.judged(quick=True)
    ]
    assert sorted((row["paper"], row["item"], row["quantity"]) for row in quick_run.rows) == sorted(quick)
