"""Log loss along each stream: how fast contenders learn, and what a change does to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.streams.contenders import BEST_RATE, NO_CHANGE, OURS
from benchmarks.streams.scores import Score

# Colours of Okabe and Ito, which the colour-blind can tell apart; who has none is not drawn.
INK, GRID = "#222222", "#E6E6E6"
LINES = {
    "bayou": (OURS, "#0072B2", "-", 2.4),
    "River": (f"River regression, {BEST_RATE}", "#D55E00", "-", 1.3),
    "VW": ("the best of VW", "#009E73", "-", 1.3),
    "trees": ("the best forest", "#CC79A7", "-", 1.3),
    "no change": (NO_CHANGE, "#767676", "--", 1.1),
    "truth": ("the probabilities that made it", "#222222", ":", 1.3),
}
COLUMNS = 3  # at most


def chosen(scores: Sequence[Score]) -> dict[str, Score]:
    """Which scores of a stream are drawn: of Vowpal Wabbit and the forests the best alone."""
    groups: dict[str, list[Score]] = {key: [] for key in LINES}
    for score in scores:
        name = score.contender
        if name == OURS:
            groups["bayou"].append(score)
        elif BEST_RATE in name:
            groups["River"].append(score)
        elif name.startswith("VW"):
            groups["VW"].append(score)
        elif score.kind == "trees":
            groups["trees"].append(score)
        elif name == NO_CHANGE:
            groups["no change"].append(score)
        elif name.startswith("the probabilities"):
            groups["truth"].append(score)
    return {key: min(group, key=lambda score: score.log_loss) for key, group in groups.items() if group}


def draw(by_stream: Sequence[Sequence[Score]], path: Path) -> None:
    """A panel per stream; curves are means of 40 stretches, and the legend has their names once."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    columns = min(COLUMNS, math.ceil(math.sqrt(len(by_stream))))
    rows = math.ceil(len(by_stream) / columns)
    figure = Figure(figsize=(4.6 * columns, 2.9 * rows + 0.7), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    handles = {}
    for panel, scores in zip(axes.flat, by_stream, strict=False):
        longest = max(score.rows for score in scores)
        drawn = chosen(scores)
        for key, score in drawn.items():
            label, colour, style, width = LINES[key]
            heights = score.windows()
            ends = (np.arange(len(heights)) + 0.5) * score.rows / len(heights)
            (handles[label],) = panel.plot(
                ends, heights, color=colour, linestyle=style, linewidth=width, zorder=3 if key == "bayou" else 2
            )
        panel.set_title(scores[0].stream, loc="left", fontsize=11, fontweight="bold", color=INK)
        panel.set_xlim(0, longest)
        panel.set_ylim(0.0, 1.05 * max(max(score.windows()) for score in drawn.values()))
        panel.xaxis.set_major_locator(MaxNLocator(4))
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        panel.grid(color=GRID)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=9)
    for panel in axes.flat[len(by_stream) :]:
        panel.set_visible(False)
    figure.supylabel("log loss, nats per row", fontsize=10, color=INK)
    figure.supxlabel("rows", fontsize=10, color=INK)
    figure.legend(handles.values(), handles.keys(), loc="outside upper left", ncols=3, frameon=False, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
