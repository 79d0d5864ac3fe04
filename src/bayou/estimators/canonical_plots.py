"""Pictures of canonical correlations: which are retained, and the first pair of canonical variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bayou.contracts import Matrix
from bayou.mixtures.canonical_correlation import CanonicalModel, correlation_intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, GREY, INK = "#0072B2", "#D55E00", "#767676", "#222222"


def plot_correlations(
    model: CanonicalModel, least: float, coverage: float, rows: tuple[Matrix, Matrix] | None
) -> Figure:
    """The picture: correlations of all pairs, and with rows of both views their first canonical variables."""
    panels = 1 if rows is None or not len(model.pairs.correlation) else 2
    figure = Figure(figsize=(5.5 * panels, 4.2), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    _correlations(axes[0], model, least, coverage)
    if panels == 2 and rows is not None:
        _first_pair(axes[1], model, rows)
    return figure


def _correlations(axes: Axes, model: CanonicalModel, least: float, coverage: float) -> None:
    pairs, m = model.pairs, model.n_retained
    place = np.arange(1, len(pairs.correlation) + 1)
    axes.plot(place, pairs.sample_correlation, "o", mfc="none", color=GREY, label="in the sample")
    if m:
        low, high = correlation_intervals(model, coverage).T
        axes.vlines(place[:m], low, high, color=BLUE, lw=6, alpha=0.25, label=f"{coverage:.0%} interval")
    axes.plot(place[:m], pairs.correlation[:m], "o", color=BLUE, label="retained")
    axes.plot(place[m:], pairs.correlation[m:], "o", color=ORANGE, ms=4, label="not retained")
    axes.axhline(least, color=INK, lw=1, ls=(0, (5, 2)), label=f"at least {least:g}")
    axes.xaxis.set_major_locator(MaxNLocator(12, integer=True))
    axes.set_xlim(0.5, len(place) + 0.5)
    axes.set_ylim(-0.03, 1.03)
    axes.legend(frameon=False, fontsize=9)
    _dress(axes, "pair", "correlation", f"{m} of {len(place)} correlations retained")


def _first_pair(axes: Axes, model: CanonicalModel, rows: tuple[Matrix, Matrix]) -> None:
    u, v = model.x.white(rows[0])[:, 0], model.y.white(rows[1])[:, 0]
    axes.plot(u, v, ".", color=BLUE, ms=4, alpha=0.6)
    told = f"correlation {model.pairs.correlation[0]:.2f}" if model.n_retained else "not retained"
    _dress(axes, "first view", "second view", f"first canonical variables: {told}")


def _dress(axes: Axes, across: str, up: str, title: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_title(title, loc="left", fontsize=11)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
