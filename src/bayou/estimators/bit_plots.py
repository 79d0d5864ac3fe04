"""Pictures of rows by their bits: where each combination puts them, and what each bit adds."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from bayou.errors import InvalidFeatures
from bayou.estimators.mixture_plots import HALO, INK, MOST_ROWS, canvas, names_of, scatter, two_columns

if TYPE_CHECKING:
    from bayou.estimators.binary_factor_analysis import BinaryFactorAnalysis

MOST_STATES = 64  # centres drawn


def plot_factors(model: BinaryFactorAnalysis, X: ArrayLike, columns: tuple[Hashable, Hashable]) -> Figure:
    """Rows in the colour of their bits, a cross where each combination puts x, and an arrow for what a bit adds."""
    model._check_begun()
    if model._width < 2:
        raise InvalidFeatures(f"a picture needs two inputs; this {type(model).__name__} has {model._width}.")
    places, names = two_columns(model, columns), names_of(model)
    rows = model._rows(X, reset=False)
    m = model.n_factors_
    figure, axes = canvas(str(names[places[0]]), str(names[places[1]]), f"{m} bit{'s' * (m != 1)}")
    states, which = np.unique(model.predict(X), axis=0, return_inverse=True)
    thin = slice(None, None, math.ceil(len(rows) / MOST_ROWS))
    scatter(axes, rows[thin][:, places], which.ravel()[thin])
    made = model.inverse_transform(states[:MOST_STATES])[:, places]
    axes.plot(*made.T, "X", color=INK, mec="white", mew=1.2, ms=9, ls="", zorder=4, label="what the bits make")
    start = model.location_[places]
    for j, component in enumerate(model.components_[:, places]):
        arrow = {"arrowstyle": "-|>", "color": INK, "lw": 1.8, "shrinkA": 0.0, "shrinkB": 7.0, "mutation_scale": 16.0}
        axes.annotate("", xy=tuple(start + component), xytext=tuple(start), arrowprops=arrow)
        middle: dict[str, Any] = {"textcoords": "offset points", "weight": "bold", "color": INK, "zorder": 5}
        axes.annotate(f"{j}", tuple(start + 0.5 * component), xytext=(6, 6), path_effects=HALO, **middle)
    ends = np.concatenate([start[None], start + model.components_[:, places]])
    axes.update_datalim(ends)
    axes.autoscale_view()
    axes.margins(0.08)
    figure.legend(loc="outside upper right", frameon=False)
    return figure
