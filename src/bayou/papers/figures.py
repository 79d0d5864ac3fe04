"""Figures as the papers show them, as PNG, and what is drawn in them as CSV: theory as lines, simulation as points."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from bayou.contracts import Vector
from bayou.evaluation.plots import BLUE, GREY, INK, ORANGE, STYLE

GREEN, PURPLE = "#009E73", "#CC79A7"
DASHES: dict[str, str | tuple[int, tuple[int, ...]]] = {"solid": "-", "dashed": (0, (5, 2)), "dotted": (0, (1, 2))}
BARS = 2.0  # standard errors to either side
# Squares are open and larger, so that they can be seen around discs in the same place.
MARKERS: dict[str, dict[str, Any]] = {
    "discs": {"fmt": "o", "markersize": 4.5},
    "squares": {"fmt": "s", "markersize": 9, "markerfacecolor": "none"},
}
Stroke: TypeAlias = Literal["solid", "dashed", "dotted", "discs", "squares"]

__all__ = ["BLUE", "GREEN", "GREY", "INK", "ORANGE", "PURPLE", "Picture", "Series", "draw", "write_data"]


@dataclass(frozen=True)
class Series:
    """A line, or points with their standard errors."""

    label: str
    x: Vector
    y: Vector
    stroke: Stroke = "solid"
    colour: str = INK
    standard_error: Vector | None = None


@dataclass(frozen=True)
class Picture:
    """All that a figure shows; ``name`` is that of its files."""

    name: str
    title: str
    xlabel: str
    ylabel: str
    series: tuple[Series, ...]
    logarithmic: bool = False
    xlim: tuple[float, float] | None = None
    ylim: tuple[float, float] | None = None


def line(label: str, x: ArrayLike, y: ArrayLike, stroke: Stroke, colour: str) -> Series:
    """A curve of theory."""
    return Series(label, np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64), stroke, colour)


def points(
    label: str, x: ArrayLike, y: ArrayLike, standard_error: ArrayLike, colour: str, stroke: Stroke = "discs"
) -> Series:
    """Measurements."""
    measured = [np.asarray(values, dtype=np.float64) for values in (x, y, standard_error)]
    return Series(label, measured[0], measured[1], stroke, colour, measured[2])


def require_matplotlib() -> None:
    """Raise, before any work is done, if nothing could be drawn."""
    try:
        import matplotlib  # noqa: F401, ICN001, PLC0415  # an extra
    except ImportError as error:
        raise ImportError('figures need matplotlib, which is missing: pip install "bayou[plot]"') from error


def draw(picture: Picture, path: str | Path) -> None:
    """Write the figure as PNG."""
    require_matplotlib()
    import matplotlib as mpl  # noqa: PLC0415  # an extra
    from matplotlib.figure import Figure  # noqa: PLC0415  # an extra

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.5, 5.5), layout="constrained")
        axes = figure.subplots()
        for series in picture.series:
            if series.standard_error is None:
                stroke = DASHES[series.stroke]
                axes.plot(series.x, series.y, color=series.colour, linestyle=stroke, linewidth=1.6, label=series.label)
            else:
                axes.errorbar(
                    series.x,
                    series.y,
                    BARS * series.standard_error,
                    color=series.colour,
                    elinewidth=1.3,
                    capsize=2.5,
                    label=series.label,
                    **MARKERS[series.stroke],
                )
        axes.set(title=picture.title, xlabel=picture.xlabel, ylabel=picture.ylabel)
        if picture.logarithmic:
            axes.set(xscale="log", yscale="log")
        axes.set(xlim=picture.xlim, ylim=picture.ylim)
        axes.legend(fontsize=10)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


def write_data(picture: Picture, path: str | Path) -> None:
    """Write what the figure shows as CSV: a row per point of each of its series."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["series", "x", "y", "standard_error"])
        for series in picture.series:
            errors: Sequence[float | str] = [""] * series.x.size
            if series.standard_error is not None:
                errors = series.standard_error.tolist()
            for row in zip(series.x.tolist(), series.y.tolist(), errors, strict=True):
                writer.writerow([series.label.replace("$", ""), *row])
