"""Figures are written as pictures and as data; a missing matplotlib is explained."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import pytest

from bayou.papers.figures import BLUE, INK, Picture, Sheet, draw, line, points, require_matplotlib, write_data

PICTURE = Picture(
    "picture",
    "Title",
    "α",
    "error",
    (
        line("$theory$", [1.0, 10.0], [0.5, 0.05], "dashed", INK),
        points("simulation", [1.0, 10.0], [0.51, 0.049], [0.01, 0.002], BLUE),
    ),
    logarithmic=True,
)


def test_a_picture_is_drawn_and_settings_stay(tmp_path: Path) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    draw(PICTURE, tmp_path / "new" / "picture.png")
    assert dict(mpl.rcParams) == before
    assert (tmp_path / "new" / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_data_are_what_is_drawn(tmp_path: Path) -> None:
    write_data(PICTURE, tmp_path / "new" / "picture.csv")
    with (tmp_path / "new" / "picture.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["series"], float(row["x"]), float(row["y"]), row["standard_error"]) for row in rows] == [
        ("theory", 1.0, 0.5, ""),
        ("theory", 10.0, 0.05, ""),
        ("simulation", 1.0, 0.51, "0.01"),
        ("simulation", 10.0, 0.049, "0.002"),
    ]


def test_without_matplotlib_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for attempt in (require_matplotlib, lambda: draw(PICTURE, tmp_path / "picture.png")):
        with pytest.raises(ImportError, match=r'pip install "bayou\[plot\]"'):
            attempt()
    assert not (tmp_path / "picture.png").exists()


def axes_of(drawing: Picture | Sheet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What matplotlib was told to draw."""
    from matplotlib.figure import Figure

    kept: list[Any] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path: kept.extend(figure.axes))
    draw(drawing, tmp_path / "picture.png")
    return kept


def test_an_axis_may_be_logarithmic_alone_and_a_series_unlisted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = (
        line("mean", [1.0, 2.0], [1.0, 10.0], "solid", INK),
        line("beside", [1.0, 2.0], [2.0, 20.0], "dotted", INK, listed=False),
        line("seen", [1.0], [3.0], "dots", BLUE),
    )
    picture = Picture("picture", "Title", "x", "y", series, logarithmic="y", legend="center right")
    (axes,) = axes_of(picture, tmp_path, monkeypatch)
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["mean", "seen"]
    assert len(axes.lines) == 3
    assert axes.lines[2].get_linestyle() == "None"
    (axes,) = axes_of(PICTURE, tmp_path, monkeypatch)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_a_sheet_has_a_panel_per_picture_one_legend_and_all_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = tuple(
        Picture(name, name, "x", "y", (line(label, [0.0, 1.0], [value, 1.0], "solid", INK),))
        for name, label, value in (("one", "theory", 1.0), ("two", "theory", 2.0), ("three", "batch", 3.0))
    )
    sheet = Sheet("sheet", "Title", pictures, columns=2)
    draw(sheet, tmp_path / "sheet.png")
    assert (tmp_path / "sheet.png").read_bytes().startswith(b"\x89PNG")
    panels = axes_of(sheet, tmp_path, monkeypatch)
    assert [axes.get_title(loc="left") for axes in panels] == ["one", "two", "three", ""]
    (legend,) = panels[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["theory", "batch"]
    write_data(sheet, tmp_path / "sheet.csv")
    with (tmp_path / "sheet.csv").open(encoding="utf-8") as file:
        rows = [(row["series"], float(row["y"])) for row in csv.DictReader(file)]
    assert rows[::2] == [("one: theory", 1.0), ("two: theory", 2.0), ("three: batch", 3.0)]
