"""Pictures of rows of two inputs by what they belong to: clusters with their centres, or bits with what they add."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from bayou.contracts import Matrix
from bayou.errors import InvalidFeatures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayou.estimators.binary_factor_analysis import BinaryFactorAnalysis
    from bayou.estimators.complete_rows import CompleteRows
    from bayou.estimators.rival_penalised_clustering import RivalPenalisedClustering

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#767676")
INK = "#222222"
MOST_STATES = 64  # centres drawn


def plot_clusters(model: RivalPenalisedClustering, X: ArrayLike) -> Figure:
    """Rows in the colour of their cluster, and a cross at each centre."""
    model._check_begun()
    rows = _two_inputs(model, X)
    figure, axes = _picture(model)
    _scatter(axes, rows, model.predict(X))
    axes.plot(*model.cluster_centers_.T, "x", color=INK, ms=9, mew=2.5, label="centres")
    axes.legend(frameon=False)
    return figure


def plot_factors(model: BinaryFactorAnalysis, X: ArrayLike) -> Figure:
    """Rows in the colour of their bits, a cross where each combination puts x, and an arrow for what a bit adds."""
    model._check_begun()
    rows = _two_inputs(model, X)
    figure, axes = _picture(model)
    bits = model.predict(X)
    states, which = np.unique(bits, axis=0, return_inverse=True)
    _scatter(axes, rows, which.ravel())
    axes.plot(*model.inverse_transform(states[:MOST_STATES]).T, "x", color=INK, ms=7, mew=2, label="bits of these rows")
    for j, component in enumerate(model.components_):
        end = model.location_ + component
        arrow = {"arrowstyle": "->", "color": INK, "lw": 1.5}
        axes.annotate("", xy=tuple(end), xytext=tuple(model.location_), arrowprops=arrow)
        axes.annotate(f"{j}", xy=tuple(end), xytext=(4, 4), textcoords="offset points", color=INK)
    axes.legend(frameon=False)
    return figure


def _two_inputs(model: CompleteRows, X: ArrayLike) -> Matrix:
    if model._width != 2:
        raise InvalidFeatures(f"a picture needs two inputs; this {type(model).__name__} has {model._width}.")
    return np.asarray(X, dtype=np.float64)


def _picture(model: CompleteRows) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(6.0, 5.0), layout="constrained")
    axes = figure.add_subplot()
    names: Any = getattr(model, "feature_names_in_", ("x0", "x1"))
    axes.set_xlabel(str(names[0]))
    axes.set_ylabel(str(names[1]))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _scatter(axes: Axes, rows: Matrix, groups: NDArray[Any]) -> None:
    colours = np.array(COLOURS)[groups % len(COLOURS)]
    axes.scatter(rows[:, 0], rows[:, 1], s=9, c=colours, alpha=0.6, linewidths=0)
