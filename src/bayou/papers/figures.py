"""Figures as the papers show them, as PNG, and what is drawn in them as CSV: theory as lines, simulation as points."""

from __future__ import annotations

import csv
import math
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
DOTS = {"linestyle": "none", "marker": "o", "markersize": 3.5, "markeredgewidth": 0.0, "alpha": 0.5, "zorder": 3}
Place: TypeAlias = Literal["best", "center right"]
Stroke: TypeAlias = Literal["solid", "dashed", "dotted", "discs", "squares", "dots"]

__all__ = ["BLUE", "GREEN", "GREY", "INK", "ORANGE", "PURPLE", "Picture", "Series", "Sheet", "draw", "write_data"]


@dataclass(frozen=True)
class Series:
    """A line, or points with their standard errors, or dots without; ``listed`` in the legend or not."""

    label: str
    x: Vector
    y: Vector
    stroke: Stroke = "solid"
    colour: str = INK
    standard_error: Vector | None = None
    listed: bool = True


@dataclass(frozen=True)
class Picture:
    """All that a figure shows; ``name`` is that of its files. Both of its axes may be logarithmic, or one.

    ``legend`` is where it stands, in the words of matplotlib.
    """

    name: str
    title: str
    xlabel: str
    ylabel: str
    series: tuple[Series, ...]
    logarithmic: bool | Literal["y"] = False
    xlim: tuple[float, float] | None = None
    ylim: tuple[float, float] | None = None
    legend: Place = "best"


@dataclass(frozen=True)
class Sheet:
    """Pictures beside and below each other, in rows of so many, with axes of the same kind and one legend for all."""

    name: str
    title: str
    pictures: tuple[Picture, ...]
    columns: int


Drawing: TypeAlias = Picture | Sheet


def line(label: str, x: ArrayLike, y: ArrayLike, stroke: Stroke, colour: str, listed: bool = True) -> Series:
    """A curve of theory; or dots, where there is no error to tell."""
    return Series(
        label, np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64), stroke, colour, listed=listed
    )


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


def draw(drawing: Drawing, path: str | Path) -> None:
    """Write the figure as PNG."""
    require_matplotlib()
    import matplotlib as mpl  # noqa: PLC0415  # an extra
    from matplotlib.figure import Figure  # noqa: PLC0415  # an extra

    with mpl.rc_context(STYLE):
        if isinstance(drawing, Sheet):
            figure = _sheet(drawing, Figure)
        else:
            figure = Figure(figsize=(7.5, 5.5), layout="constrained")
            axes = figure.subplots()
            _plot(axes, drawing)
            axes.legend(fontsize=10, loc=drawing.legend)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


def _sheet(sheet: Sheet, make: Any) -> Any:
    """Labels stand at the rim alone; the legend, of all that is in any picture, below."""
    rows = math.ceil(len(sheet.pictures) / sheet.columns)
    figure = make(figsize=(3.4 * sheet.columns, 2.3 * rows + 0.9), layout="constrained")
    panels = figure.subplots(rows, sheet.columns, squeeze=False, sharex=True, sharey=True)
    for axes, picture in zip(panels.flat, sheet.pictures, strict=False):
        _plot(axes, picture)
        axes.set_title(picture.title, fontsize=10.5, fontweight="normal", pad=4)
        axes.label_outer()
    figure.suptitle(sheet.title, x=0.01, ha="left", fontsize=12.5, fontweight="bold")
    named: dict[str, Any] = {}
    for axes in panels.flat:
        handles, labels = axes.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=len(named), fontsize=10)
    return figure


def _plot(axes: Any, picture: Picture) -> None:
    for series in picture.series:
        label = series.label if series.listed else "_"  # matplotlib leaves out what begins so
        if series.standard_error is not None:
            axes.errorbar(
                series.x,
                series.y,
                BARS * series.standard_error,
                color=series.colour,
                elinewidth=1.3,
                capsize=2.5,
                label=label,
                **MARKERS[series.stroke],
            )
        elif series.stroke == "dots":
            axes.plot(series.x, series.y, color=series.colour, label=label, **DOTS)
        else:
            stroke = DASHES[series.stroke]
            axes.plot(series.x, series.y, color=series.colour, linestyle=stroke, linewidth=1.6, label=label)
    axes.set(title=picture.title, xlabel=picture.xlabel, ylabel=picture.ylabel)
    if picture.logarithmic:
        axes.set(yscale="log")
    if picture.logarithmic is True:
        axes.set(xscale="log")
    axes.set(xlim=picture.xlim, ylim=picture.ylim)


def write_data(drawing: Drawing, path: str | Path) -> None:
    """Write what the figure shows as CSV: a row per point of each of its series, picture by picture."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["series", "x", "y", "standard_error"])
        if isinstance(drawing, Picture):
            _write_rows(writer, drawing)
        else:
            for picture in drawing.pictures:
                _write_rows(writer, picture, f"{picture.title}: ")


def _write_rows(writer: Any, picture: Picture, prefix: str = "") -> None:
    for series in picture.series:
        errors: Sequence[float | str] = [""] * series.x.size
        if series.standard_error is not None:
            errors = series.standard_error.tolist()
        for row in zip(series.x.tolist(), series.y.tolist(), errors, strict=True):
            writer.writerow([prefix + series.label.replace("$", ""), *row])
