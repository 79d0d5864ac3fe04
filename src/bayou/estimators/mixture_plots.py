"""Pictures of clusters: ellipses of two deviations, and the rows in the colours of theirs."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from numpy.typing import NDArray

from bayou.contracts import Matrix
from bayou.errors import InvalidSpec
from bayou.mixtures.gaussians import Gaussians

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
DEVIATIONS = 2.0


def plot_clusters(clusters: Gaussians, rows: Matrix | None, labels: NDArray[np.intp] | None) -> Figure:
    """The clusters of two columns."""
    if clusters.mean.shape[1] != 2:
        raise InvalidSpec(f"clusters can be drawn of two columns; there are {clusters.mean.shape[1]}.")
    figure = Figure(figsize=(6.0, 5.0), layout="constrained")
    axes = figure.add_subplot()
    if rows is not None and labels is not None:
        colours = np.array(COLOURS)[labels % len(COLOURS)]
        axes.scatter(rows[:, 0], rows[:, 1], s=6, c=colours, alpha=0.5, linewidths=0)
    for k, (mean, covariance) in enumerate(zip(clusters.mean, clusters.covariance, strict=True)):
        values, vectors = np.linalg.eigh(covariance)
        width, height = 2.0 * DEVIATIONS * np.sqrt(values)
        angle = float(np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0])))
        colour = COLOURS[k % len(COLOURS)]
        axes.add_patch(Ellipse((mean[0], mean[1]), width, height, angle=angle, fill=False, color=colour, lw=2))
        axes.annotate(f"{clusters.share[k]:.0%}", (mean[0], mean[1]), ha="center", va="center", weight="bold")
    axes.autoscale_view()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.set_xlabel("x0")
    axes.set_ylabel("x1")
    return figure
