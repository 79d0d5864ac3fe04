"""Figures are written as pictures and as data; a missing matplotlib is explained."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

from bayou.papers.figures import BLUE, INK, Picture, draw, line, points, require_matplotlib, write_data

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
