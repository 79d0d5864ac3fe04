"""The pictures of a report, as SVG to be put into a page.

They are narrow, so that their letters can be read on a phone, and tell apart by shape what they tell apart by colour.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

import numpy as np

from bayou.bank_found import Findings, Settings
from bayou.estimators.summary import Summary
from bayou.evaluation.metrics import CalibrationError
from bayou.evaluation.plots import BLUE, GREY, INK, ORANGE, PALE_BLUE, draw_reliability, drawing
from bayou.evaluation.report_theory import Expected, Windows
from bayou.evaluation.stream_scores import PLACES, RESIDUALS, NumberStream
from bayou.evaluation.table_run import TableRun

WIDTH = 5.4  # inches: letters of 11 points are still readable at the width of a phone
# Letters stay letters: the page is lighter, and the browser has every script. Names are not mathematics.
STYLE: dict[Any, Any] = {"svg.fonttype": "none", "text.parse_math": False, "axes.formatter.use_mathtext": False}
NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
LONGEST_NAME = 26  # letters beside an axis
FAR_ABOVE = 2.5  # times what is otherwise the highest: windows above are left out of the frame


class Drawn:
    """A picture once it is drawn."""

    def __init__(self) -> None:
        self.svg = ""


@contextmanager
def picture(name: str, alt: str, height: float) -> Iterator[tuple[Any, Drawn]]:
    """A figure to draw on, which then is SVG: `name` begins its identifiers, so that two can share a page."""
    drawn = Drawn()
    with drawing(WIDTH, height, STYLE | {"svg.hashsalt": name}) as figure:
        yield figure, drawn
        stream = io.StringIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # the browser will find it
            figure.savefig(stream, format="svg", metadata=NO_METADATA)
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    drawn.svg = text.replace("<svg", f'<svg role="img" aria-label="{escape(alt)}"', 1)


def shortened(name: str, longest: int = LONGEST_NAME) -> str:
    """A name on one line, cut where it is too long."""
    line = "".join(letter if letter.isprintable() else " " for letter in name)
    line = " ".join(line.split()) or "(no name)"
    return line if len(line) <= longest else line[: longest - 1] + "…"


# --- the learning curve


def curve_picture(run: TableRun, panels: list[tuple[str, str, str, dict[str, str], Expected | str]]) -> tuple[str, int]:
    """Windows, baselines and theory, a panel per score; and how many windows lie above the frames.

    A panel is a score, its title, the label of its axis, baselines with their names, and what theory expects.
    """
    alt = "Learning curve: " + " and ".join(title.lower() for _, title, *_ in panels) + " against rows learnt"
    outside = 0
    with picture("curve", alt, 3.1 * len(panels)) as (figure, drawn):
        for axes, panel in zip(np.atleast_1d(figure.subplots(len(panels), 1, sharex=True)), panels, strict=True):
            outside += _draw_windows(axes, run, *panel)
        axes.set(xlabel="rows learnt", xscale="log")
        axes.xaxis.set_major_formatter(lambda row, _: f"{row:,.0f}")
    return drawn.svg, outside


def _draw_windows(
    axes: Any, run: TableRun, name: str, title: str, unit: str, baselines: dict[str, str], theory: Expected | str
) -> int:
    windows = Windows.of(run, name)
    for place, (baseline, label) in enumerate(baselines.items()):
        other = Windows.of(run, baseline)
        value = 1.0 - other.value if name == "error" else other.value
        axes.plot(other.row, value, color=GREY, linewidth=1.3, linestyle=("-", ":")[place], label=label)
    top = _top(windows, [line.get_ydata() for line in axes.get_lines()])
    inside = windows.value <= top
    bars = 2.0 * np.where(windows.error <= top, windows.error, np.nan)
    axes.errorbar(
        windows.row[inside],
        windows.value[inside],
        bars[inside],
        fmt="o",
        color=BLUE,
        markersize=4.5,
        elinewidth=1.2,
        label="each window, ± 2 se",
    )
    if isinstance(theory, Expected):
        shown = theory.value <= top
        axes.plot(
            theory.row[shown],
            theory.value[shown],
            color=ORANGE,
            linewidth=2.2,
            linestyle="--",
            label="theory",
            zorder=4,
        )
    axes.set(title=title, ylabel=unit)
    axes.legend(loc="best", fontsize=9)
    return int((~inside).sum())


def _top(windows: Windows, baselines: list[Any]) -> float:
    """Up to where it is worth to look: one wild window at the start shall not press all others flat."""
    highest = max(float(np.max(part[len(part) // 3 :])) for part in (windows.value, *baselines) if len(part))
    return highest + (FAR_ABOVE - 1.0) * abs(highest)


# --- whether what was said is true


def reliability_picture(calibration: CalibrationError, of_what: str) -> str:
    """Frequencies against probabilities, with binomial error bars."""
    alt = f"Reliability diagram: how often {of_what} against the predicted probability"
    with picture("reliability", alt, 5.6) as (figure, drawn):
        draw_reliability(figure, calibration)
    return drawn.svg


def places_picture(scores: NumberStream) -> str:
    """Where targets fell in what was predicted, and how far from the mean in deviations."""
    alt = "Two histograms: places of the targets in their predictive distributions, and standardised residuals"
    total, share = scores.places.sum(), 1.0 / PLACES
    with picture("places", alt, 5.8) as (figure, drawn):
        upper, lower = figure.subplots(2, 1)
        upper.stairs(
            scores.places / (total * share), np.linspace(0.0, 1.0, PLACES + 1), fill=True, color=PALE_BLUE, label="rows"
        )
        upper.axhline(1.0, color=GREY, linewidth=1.2, label="if predictions are true")
        reach = 2.0 * np.sqrt((1.0 - share) / (share * total))
        for side in (1.0 - reach, 1.0 + reach):
            upper.axhline(side, color=GREY, linewidth=1.0, linestyle=(0, (4, 4)))
        upper.set(title="Places of targets (PIT)", xlabel="share of the prediction below the target", ylabel="density")
        upper.set(xlim=(0, 1), ylim=(0, None))
        upper.legend(loc="lower center", fontsize=9)
        widths = np.diff(RESIDUALS)
        lower.stairs(scores.residuals / (total * widths), RESIDUALS, fill=True, color=PALE_BLUE, label="rows")
        grid = np.linspace(RESIDUALS[0], RESIDUALS[-1], 200)
        normal = np.exp(-0.5 * grid**2) / np.sqrt(2.0 * np.pi)
        lower.plot(grid, normal, color=ORANGE, linewidth=1.8, linestyle="--", label="normal")
        lower.set(title="Residuals", xlabel="(target - mean) / deviation", ylabel="density", ylim=(0, None))
        lower.legend(loc="upper right", fontsize=9)
    return drawn.svg


# --- what was learnt


def weights_picture(weights: Summary) -> str:
    """Weights with their intervals, the first on top."""
    count = len(weights.names)
    alt = f"The {count} strongest weights with their {weights.coverage:.0%} intervals; the table below has the numbers"
    with picture("weights", alt, 1.1 + 0.3 * count) as (figure, drawn):
        axes = figure.subplots()
        places = np.arange(count)[::-1]
        axes.axvline(0.0, color=GREY, linewidth=1.2)
        bars = np.abs(weights.interval.T - weights.mean)
        axes.errorbar(weights.mean, places, xerr=bars, fmt="o", color=BLUE, markersize=5, elinewidth=1.6, capsize=2.5)
        axes.set_yticks(places, [shortened(name) for name in weights.names])
        axes.set(ylim=(-0.6, count - 0.4), xlabel="weight per deviation of its input")
        axes.xaxis.set_major_locator(_few_ticks())
    return drawn.svg


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415  # an extra

    return MaxNLocator(5)


def drift_picture(bank: Settings) -> str:
    """How probable each rate of drift is, and the rows at which all changed, where the bank looks for them."""
    rates = sorted(bank.settings("drift").items())
    changes, end = (bank.change_points(), bank.n_steps) if isinstance(bank, Findings) else ([], 0)
    alt = f"Probability of each rate of drift, and {len(changes)} change points"
    with picture("drift", alt, 5.2 if changes else 2.8) as (figure, drawn):
        upper, *rest = np.atleast_1d(figure.subplots(2 if changes else 1, 1))
        places = np.arange(len(rates))
        bars = upper.bar(places, [p for _, p in rates], color=PALE_BLUE, edgecolor=BLUE)
        upper.bar_label(bars, [f"{p:.2f}" for _, p in rates], color=INK, fontsize=9, padding=2)
        upper.set_xticks(places, [f"{rate:g}" for rate, _ in rates])
        upper.set(title="Rates of drift", xlabel="drift per row, of the prior variance", ylabel="probability")
        upper.set(ylim=(0, 1.12))
        for lower in rest:
            rows, heights = [change.row for change in changes], [change.probability for change in changes]
            lower.vlines(rows, 0.0, heights, color=BLUE, linewidth=1.6)
            lower.plot(rows, heights, "o", color=BLUE, markersize=5)
            lower.set(title="Change points", xlabel="row", ylabel="probability", ylim=(0, 1.05), xlim=(0, end))
            lower.xaxis.set_major_locator(_few_ticks())
            lower.xaxis.set_major_formatter(lambda row, _: f"{row:,.0f}")
    return drawn.svg
