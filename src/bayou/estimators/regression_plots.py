"""Pictures of a regression along one input: what is expected, and between what."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from bayou.contracts import Matrix, Vector
from bayou.estimators.mixture_plots import COLOURS, CURVE, GREY, MOST_ROWS, canvas


def plot_regression(
    line: Callable[[Vector], tuple[Vector, Matrix]], span: tuple[float, float], name: str, rows: Matrix | None
) -> Figure:
    """Mean and central 90 % over a span of the input, with rows (input, target)."""
    figure, axes = canvas(name, "target", "expected, and the central 90 %")
    if rows is not None:
        few = rows[:: max(1, len(rows) // MOST_ROWS)]
        axes.scatter(few[:, 0], few[:, 1], s=7, color=GREY, alpha=0.4, linewidths=0)
    inputs = np.linspace(*span, 2 * CURVE)
    mean, interval = line(inputs)
    axes.fill_between(inputs, interval[:, 0], interval[:, 1], color=COLOURS[0], alpha=0.18, lw=0)
    axes.plot(inputs, mean, color=COLOURS[0], lw=2.0)
    axes.margins(x=0.0)
    return figure
