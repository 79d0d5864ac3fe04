"""Pictures of clusters: where they lie in two columns, or in one, and how many there were as rows were learnt."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector
from bayou.errors import InvalidSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayou.estimators.complete_rows import CompleteRows

# Okabe and Ito's, without the yellow that white paper swallows; with a marker and a dash they tell 28 groups apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555")
MARKERS, DASHES = ("o", "s", "^", "D"), ("-", "--", ":", "-.")
INK, GREY = "#222222", "#767676"
DEVIATIONS = 2.0
MOST_ROWS = 5000  # that are drawn, evenly taken: more would be one blot
CURVE = 400  # points of one
LABEL = (0.09, 0.05)  # size of a share that is written, as a part of the axes
HALO = [withStroke(linewidth=3, foreground="white")]


class Drawn(NamedTuple):
    """What there is to draw of clusters: centres, and if they are known covariances, shares, and the deviations along
    directions of their own, a row each.
    """

    centres: Matrix
    covariances: NDArray[np.float64] | None = None
    shares: Vector | None = None
    directions: list[Matrix] | None = None


def names_of(model: CompleteRows) -> list[Hashable]:
    """What the columns are called."""
    known = model._names or list(getattr(model, "feature_names_in_", ()))
    return known or [f"x{column}" for column in range(model._width)]


def two_columns(model: CompleteRows, columns: tuple[Hashable, Hashable]) -> list[int]:
    """The places of two columns that are told by place or by name."""
    names = names_of(model)
    places: list[int] = []
    for column in columns:
        if isinstance(column, (int, np.integer)) and -len(names) <= column < len(names):
            places.append(int(column) % len(names))
        elif column in names:
            places.append(names.index(column))
    if len(columns) != 2 or len(set(places)) != 2:
        raise InvalidSpec(f"`columns` must be two of the {len(names)} columns, by place or by name; got {columns!r}.")
    return places


def plot_clusters(
    model: CompleteRows,
    drawn: Drawn,
    rows: Matrix | None,
    labels: NDArray[np.integer] | None,
    columns: tuple[Hashable, Hashable],
) -> Figure:
    """The clusters in two columns; of one column, if there is only one."""
    names, k = names_of(model), len(drawn.centres)
    thin = slice(None, None, math.ceil(len(rows) / MOST_ROWS)) if rows is not None else slice(None)
    title = f"{k} cluster{'s' * (k != 1)}"
    if len(names) == 1:
        figure, axes = canvas(str(names[0]), "density", title)
        _in_one_column(axes, drawn, rows, labels)
        return figure
    places = two_columns(model, columns)
    figure, axes = canvas(str(names[places[0]]), str(names[places[1]]), title)
    if rows is not None and labels is not None:
        scatter(axes, rows[thin][:, places], labels[thin])
    for group in range(k):
        _cluster(axes, drawn, group, places)
    axes.autoscale_view()
    axes.margins(0.08)
    if drawn.shares is not None:
        _write_shares(axes, drawn.centres[:, places], drawn.shares)
    return figure


def _cluster(axes: Axes, drawn: Drawn, group: int, places: list[int]) -> None:
    centre = drawn.centres[group, places]
    if drawn.covariances is not None:
        values, vectors = np.linalg.eigh(drawn.covariances[group][np.ix_(places, places)])
        width, height = 2.0 * DEVIATIONS * np.sqrt(np.maximum(values, 0.0))
        style: dict[str, Any] = {"angle": math.degrees(math.atan2(vectors[1, 0], vectors[0, 0])), "fill": False}
        colour, dash = COLOURS[group % len(COLOURS)], DASHES[group // len(COLOURS) % len(DASHES)]
        for ink, line, wide in (("white", "-", 4.5), (colour, dash, 2.2)):  # white first: rows must not hide dashes
            place = float(centre[0]), float(centre[1])
            axes.add_patch(Ellipse(place, width, height, ec=ink, ls=line, lw=wide, zorder=3, **style))
    for direction in [] if drawn.directions is None else drawn.directions[group][:, places]:
        ends = np.stack([centre - DEVIATIONS * direction, centre + DEVIATIONS * direction])
        axes.plot(*ends.T, color=INK, lw=1.6, solid_capstyle="round", zorder=4, path_effects=HALO)
    if drawn.shares is None:
        axes.plot(*centre, "X", color=INK, mec="white", mew=1.2, ms=11, zorder=5)


def _write_shares(axes: Axes, centres: Matrix, shares: Vector) -> None:
    """At the centres, from below; one that would lie upon another is moved up."""
    low = np.array([axes.get_xlim()[0], axes.get_ylim()[0]])
    size = np.array([np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())])
    taken: list[Vector] = []
    for group in np.argsort(centres[:, 1]):
        spot = (centres[group] - low) / size
        while any(np.all(np.abs(spot - other) < LABEL) for other in taken):
            spot = np.array([spot[0], spot[1] + 0.2 * LABEL[1]])
        taken.append(spot)
        style: dict[str, Any] = {"ha": "center", "va": "center", "weight": "bold", "color": INK, "zorder": 5}
        axes.annotate(_percent(shares[group]), tuple(low + spot * size), path_effects=HALO, **style)


def _in_one_column(axes: Axes, drawn: Drawn, rows: Matrix | None, labels: NDArray[np.integer] | None) -> None:
    """Rows as a histogram; clusters as densities, or else as centres on the axis."""
    k, centres = len(drawn.centres), drawn.centres[:, 0]
    if rows is not None and labels is not None:
        edges = np.histogram_bin_edges(rows[:, 0], bins=min(60, max(10, math.isqrt(len(rows))))).tolist()
        if drawn.covariances is None:
            parts = [rows[labels == group, 0] for group in range(k)]
            weights = [np.full(len(part), 1.0 / (len(rows) * (edges[1] - edges[0]))) for part in parts]
            axes.hist(parts, edges, weights=weights, stacked=True, color=[COLOURS[g % len(COLOURS)] for g in range(k)])
        else:
            axes.hist(rows[:, 0], edges, density=True, color=GREY, alpha=0.25)
    if drawn.covariances is None or drawn.shares is None:
        axes.plot(centres, np.zeros(k), "X", color=INK, mec="white", mew=1.2, ms=11, zorder=5, clip_on=False)
        return
    deviations = np.sqrt(drawn.covariances[:, 0, 0])
    around = np.linspace(-2.0 * DEVIATIONS, 2.0 * DEVIATIONS, CURVE)
    every = np.sort((centres[:, None] + deviations[:, None] * around).ravel())
    total = np.zeros_like(every)
    for group, (centre, deviation, share) in enumerate(zip(centres, deviations, drawn.shares, strict=True)):
        height = share / (deviation * math.sqrt(2.0 * math.pi))
        total += height * np.exp(-0.5 * ((every - centre) / deviation) ** 2)
        colour, dash = COLOURS[group % len(COLOURS)], DASHES[group // len(COLOURS) % len(DASHES)]
        x, y = centre + deviation * around, height * np.exp(-0.5 * around**2)
        axes.fill_between(x, y, color=colour, alpha=0.2, lw=0)
        axes.plot(x, y, color=colour, ls=dash, lw=2.2)
        style: dict[str, Any] = {"ha": "center", "va": "bottom", "weight": "bold", "color": INK, "path_effects": HALO}
        axes.annotate(_percent(share), (centre, height), xytext=(0, 3), textcoords="offset points", **style)
    axes.plot(every, total, color=INK, lw=1.0, zorder=1)
    axes.set_ylim(0.0, 1.12 * max(float(total.max()), axes.dataLim.y1))
    axes.margins(x=0.02)


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "< 1%"


def plot_order(history: NDArray[np.int64], n_rows: int, k: int) -> Figure:
    """How many clusters there were, as steps, up to now."""
    figure, axes = canvas("rows learnt", "clusters", f"{k} cluster{'s' * (k != 1)} after {n_rows:,} rows")
    steps = np.concatenate([history, [[n_rows, k]]])
    axes.fill_between(steps[:, 0], steps[:, 1], step="post", color=COLOURS[0], alpha=0.12, lw=0)
    axes.plot(steps[:, 0], steps[:, 1], drawstyle="steps-post", color=COLOURS[0], lw=2.2)
    axes.plot(n_rows, k, "o", color=COLOURS[0], ms=7, clip_on=False)
    axes.set_xlim(left=0.0)
    axes.set_ylim(0.0, float(steps[:, 1].max()) + 1.0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,.0f}"))
    figure.set_size_inches(6.5, 3.6)
    return figure


def canvas(across: str, up: str, title: str) -> tuple[Figure, Axes]:
    """A figure with one pair of axes, dressed."""
    figure = Figure(figsize=(6.0, 5.0), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_title(title, loc="left", fontsize=11)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def scatter(axes: Axes, rows: Matrix, groups: NDArray[np.integer]) -> None:
    """Rows in the colour and with the marker of their group."""
    for group in np.unique(groups).tolist():
        own = rows[groups == group]
        marker = MARKERS[group // len(COLOURS) % len(MARKERS)]
        style: dict[str, Any] = {"s": 11, "c": COLOURS[group % len(COLOURS)], "marker": marker}
        axes.scatter(own[:, 0], own[:, 1], alpha=0.45, linewidths=0, zorder=2, **style)
