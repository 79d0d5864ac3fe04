"""The report of a run: one page, whole, harmless, and true."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import bayou
from bayou.cli import report as command
from bayou.cli.app import app
from bayou.errors import InvalidSpec
from bayou.evaluation import TableRun, report_page
from bayou.evaluation.report_theory import Expected, Windows, expected, weights_of

HOSTILE = "<script>alert(1)</script>"
BREAKOUT = '"></svg><img src=x onerror=alert(2)> $x_{$ \n\x07 漢'
SECTIONS = ["learnt", "scores", "curve", "calibration", "weights", "drift"]
TASKS = ["binary", "multiclass", "regression", "count"]
VOID = {"meta", "br", "hr", "img", "link", "input"}
ROWS = 600


class Page(HTMLParser):
    """The elements of a page; raises where they are not closed as they were opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def chances(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return 1.0 / (1.0 + np.exp(-2.0 * x[:, 0] + x[:, 1]))


def made(task: str, rows: int = ROWS) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(rows, 2))
    table = {HOSTILE: x[:, 0], BREAKOUT: 1e6 * x[:, 1], "city": rng.choice(["Rome", "</td>Oslo&"], rows)}
    targets = {
        "binary": lambda: np.where(rng.random(rows) < chances(x), HOSTILE, "no"),
        "multiclass": lambda: np.array(["a", HOSTILE, "c"])[
            np.argmax(x @ np.array([[2.0, 0.0, -1.0], [0.0, 1.0, -2.0]]) + rng.gumbel(size=(rows, 3)), axis=1)
        ],
        "regression": lambda: x[:, 0] - 2.0 * x[:, 1] + 0.5 * rng.normal(size=rows),
        "count": lambda: rng.poisson(np.exp(0.5 * x[:, 0] + 1.0)),
    }
    return pl.DataFrame({**table, f"y{HOSTILE}": targets[task]()})


def learnt(task: str, rows: int = ROWS, budget: bayou.Budget | None = None, **options: Any) -> TableRun:
    encoder = bayou.TableEncoder(**options)
    model = bayou.TableModel(f"y{HOSTILE}", task, encoder, budget=budget)
    run = TableRun(model, "secret\\folder/<i>rows.csv")
    for _ in run.over([made(task, rows)]):
        pass
    return run


@pytest.fixture(scope="module")
def runs() -> dict[str, TableRun]:
    return {}


@pytest.fixture
def run(runs: dict[str, TableRun], request: pytest.FixtureRequest) -> TableRun:
    task = request.param
    if task not in runs:
        runs[task] = learnt(task)
    return runs[task]


@functools.cache
def page_of(run: TableRun) -> str:
    """Drawn once for all tests that look at it."""
    return report_page(run)


each_task = pytest.mark.parametrize("run", TASKS, indirect=True)


@each_task
def test_the_page_is_whole_and_harmless(run: TableRun) -> None:
    text = page_of(run)
    page = Page(text)
    tags = [tag for tag, _ in page.elements]
    assert [attrs["id"] for tag, attrs in page.elements if tag == "section"] == SECTIONS
    assert not {"script", "iframe", "object", "embed", "link", "img", "form", "foreignobject", "i"} & set(tags)
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    (policy,) = [attrs["content"] for _, attrs in page.elements if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert {"default-src 'none'", "style-src 'unsafe-inline'", "img-src data:"} <= set(policy.split("; "))
    assert page.text.count(HOSTILE) >= 4  # as text: title, heading, target, a column
    pictures = [attrs for tag, attrs in page.elements if tag == "svg"]
    assert len(pictures) == 4
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in pictures)


@each_task
def test_nothing_is_asked_from_outside(run: TableRun) -> None:
    text = page_of(run)
    addresses = re.findall(r"[a-z]+://[^\s\"'<]*", text)
    assert set(addresses) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    page = Page(text)
    links = [
        value for _, attrs in page.elements for name, value in attrs.items() if name in ("href", "xlink:href", "src")
    ]
    assert links
    assert all(link is not None and link.startswith("#") for link in links)
    assert "@import" not in text
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))


@each_task
def test_identifiers_are_unique_and_found(run: TableRun) -> None:
    """Two pictures that share a page must not clip each other."""
    text = page_of(run)
    known = [attrs["id"] for _, attrs in Page(text).elements if "id" in attrs]
    assert len(known) == len(set(known))
    assert set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", text)) <= set(known)


@each_task
def test_the_folder_of_the_source_is_not_told(run: TableRun) -> None:
    text = page_of(run)
    assert "&lt;i&gt;rows.csv" in text
    assert "secret" not in text
    assert "folder" not in text


@each_task
def test_scores_are_told_with_errors_beside_baselines(run: TableRun) -> None:
    text = Page(page_of(run)).text
    values, errors = run.scores.values(), run.scores.errors()
    first = next(iter(values))
    assert f"{values[first]:.4g}" in text
    assert f"{errors[first]:.4g}" in text
    assert ("RMSE of the mean so far" if "rmse" in values else "accuracy of the majority class") in text


def test_names_that_are_no_mathematics_are_drawn_as_they_are(runs: dict[str, TableRun]) -> None:
    run = runs.setdefault("regression", learnt("regression"))
    assert "$x_{$" in Page(page_of(run)).text


def test_a_run_without_scores_has_no_report() -> None:
    with pytest.raises(InvalidSpec, match="has scored rows"):
        report_page(TableRun(bayou.TableModel("y"), "nothing"))


def test_hashed_rows_and_short_runs_have_a_report_without_theory() -> None:
    text = Page(report_page(learnt("multiclass", hashed=True))).text
    assert "Of hashed rows theory expects nothing" in text
    assert "No member of this bank begins anew" in text
    assert "not a bank" in Page(report_page(learnt("binary", 40, bayou.Budget(0.01), hashed=True))).text
    assert "too short for a theory" in Page(report_page(learnt("regression", 17))).text


def over_sparse_rows(*tables: pl.DataFrame) -> TableRun:
    """Of hashed rows, by a bank."""
    model = bayou.TableModel(f"y{HOSTILE}", "binary", bayou.TableEncoder(hashed=True), budget=bayou.Budget())
    run = TableRun(model, "rows.csv")
    for _ in run.over(tables):
        pass
    return run


def test_the_drift_of_a_bank_of_sparse_rows_is_told() -> None:
    """Of a stream whose labels mean the opposite from the middle on, and of one that is the same all along."""
    steady = made("binary", 2000)
    classes = {HOSTILE: "no", "no": HOSTILE}
    opposite = steady.with_columns(pl.col(f"y{HOSTILE}").replace(classes))
    drifts = []
    for run in (over_sparse_rows(steady, steady), over_sparse_rows(steady, opposite)):
        page, bank = Page(report_page(run)), run.model.estimator.bank_
        assert isinstance(bank, bayou.SparseBank)
        assert f"the stream drifts with probability {bank.drift_probability:.2f}." in page.text
        assert "not looked for" in page.text
        assert bank.found() in page.text
        assert any("Probability of each rate of drift" in (attrs.get("aria-label") or "") for _, attrs in page.elements)
        drifts.append(bank.drift_probability)
    assert drifts[0] < 0.5 < drifts[1]


# --- theory


@pytest.mark.parametrize("run", ["regression"], indirect=True)
def test_the_row_of_a_window_stands_for_all_its_rows(run: TableRun) -> None:
    windows = Windows.of(run, "rmse")
    assert windows.rows.sum() == run.curve[-1][0]
    stop = 0
    for row, count in zip(windows.row[1:], windows.rows[1:], strict=True):
        stop = stop or int(windows.rows[0])
        rows = np.arange(stop, stop + int(count)) + 0.5
        assert np.mean(1.0 / rows) == pytest.approx(1.0 / row, rel=1e-3)
        stop += int(count)


@pytest.mark.parametrize(
    ("run", "name", "law"),
    [
        ("binary", "log_loss", lambda n: 0.3 + 5 / (2 * n)),
        ("multiclass", "log_loss", lambda n: 0.7 + 10 / (2 * n)),
        ("regression", "nlpd", lambda n: -1.2 + 6 / (2 * n)),
        ("regression", "rmse", lambda n: 2.0 * np.sqrt(1.0 + 5 / n)),
        ("count", "nlpd", lambda n: 1.5 + 5 / (2 * n)),
    ],
    indirect=["run"],
)
def test_a_curve_that_follows_the_law_is_met(run: TableRun, name: str, law: Any) -> None:
    """Windows of a run that is made, row by row, to follow the law; of squares where the score is a root."""
    followed = TableRun.of(kept(run))
    rows = np.arange(run.rows) + 0.5
    each = law(rows) ** (2 if name == "rmse" else 1)
    place, before, curve = 1 + list(run.scores.metrics).index(name), 0, []
    for point in run.curve:
        stop = int(point[0])
        mean = float(each[before:stop].mean())
        changed = list(point)
        changed[place], before = (np.sqrt(mean) if name == "rmse" else mean), stop
        curve.append(tuple(changed))
    followed.curve = curve
    theory = expected(followed, name)
    assert isinstance(theory, Expected)
    assert theory.value == pytest.approx(law(theory.row), abs=0.03 * (law(5.0) - law(1e9)))
    assert theory.end == pytest.approx(float(law(1e9)), abs=0.003)


def kept(run: TableRun) -> bayou.TableModel:
    run.keep()
    return run.model


def test_the_error_rate_ends_at_the_wrong_labels_that_none_can_avoid() -> None:
    run = learnt("binary", 3000)
    theory = expected(run, "error")
    assert isinstance(theory, Expected)
    p = chances(np.random.default_rng(0).normal(size=(100_000, 2)))
    best = np.minimum(p, 1.0 - p).mean()
    assert theory.end == pytest.approx(best, abs=3.0 * np.sqrt(best * (1.0 - best) / 1500))
    assert np.all(np.diff(theory.value) < 0.0)


def test_weights_are_counted() -> None:
    assert weights_of(bayou.TableModel("y")) is None


# --- the command


@pytest.fixture
def model(runs: dict[str, TableRun], tmp_path: Path) -> Path:
    run = runs.setdefault("binary", learnt("binary"))
    run.keep()
    bayou.save(run.model, tmp_path / "model.bayou")
    return tmp_path / "model.bayou"


def test_the_command_writes_the_page(model: Path, tmp_path: Path, runs: dict[str, TableRun]) -> None:
    done = CliRunner().invoke(app, ["report", str(model), "-o", str(tmp_path / "page.html")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == report_page(runs["binary"])


def test_the_command_writes_all_or_nothing(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: dict[str, TableRun]
) -> None:
    page = tmp_path / "page.html"
    page.write_text("what was there")

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(Path, "replace", full)
    done = CliRunner().invoke(app, ["report", str(model), "-o", str(page)])
    assert done.exit_code == 1
    assert "the disk is full" in done.output
    assert page.read_text() == "what was there"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.bayou", "page.html"]


def test_an_error_on_the_way_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        command.write_whole(tmp_path / "page.html", "begun" * 10_000 + "\ud800")
    assert list(tmp_path.iterdir()) == []


def test_the_model_is_not_overwritten(model: Path) -> None:
    before = model.read_bytes()
    done = CliRunner().invoke(app, ["report", str(model), "-o", str(model)])
    assert done.exit_code == 1
    assert "a file of its own" in done.output
    assert model.read_bytes() == before


def test_a_model_without_a_run_is_told_in_one_line(tmp_path: Path) -> None:
    fresh = bayou.TableModel("y")
    fresh.learn_many(pl.DataFrame({"x": range(40), "y": [n % 2 == 0 for n in range(40)]}))
    bayou.save(fresh, tmp_path / "model.bayou")
    done = CliRunner().invoke(app, ["report", str(tmp_path / "model.bayou"), "-o", str(tmp_path / "page.html")])
    assert done.exit_code == 1
    assert done.output.count("\n") == 1
    assert "holds no run to report" in done.output
    assert not (tmp_path / "page.html").exists()


# --- in a browser


def test_a_browser_shows_it(model: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("there is no Chromium: the report was not looked at in a browser")
    page, shot = tmp_path / "page.html", tmp_path / "shot.png"
    assert CliRunner().invoke(app, ["report", str(model), "-o", str(page)]).exit_code == 0
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=390,3000"]
    options += [f"--user-data-dir={tmp_path / 'profile'}"]

    def looked(*more: str) -> str:
        command = [browser, *options, *more, page.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return done.stdout

    seen = Page(re.sub(r"^<!DOCTYPE[^>]*>", "", looked("--dump-dom"), flags=re.IGNORECASE))
    assert [attrs["id"] for tag, attrs in seen.elements if tag == "section"] == SECTIONS
    assert not {"script", "img"} & {tag for tag, _ in seen.elements}
    assert sum(tag == "svg" for tag, _ in seen.elements) == 4
    looked(f"--screenshot={shot}")
    from matplotlib import image

    pixels = image.imread(shot)[..., :3]
    assert pixels.shape[1] >= 390
    dark, blue = pixels.max(axis=2) < 0.4, (pixels[..., 2] > pixels[..., 0] + 0.3)
    assert 0.005 < dark.mean() < 0.2  # letters on white
    assert blue.sum() > 500  # pictures
    assert np.median(pixels) > 0.99
