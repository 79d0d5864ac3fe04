"""One surprising example, learnt by a polynomial of order 10: how far does the function move where nothing was seen?

IRMA changes the function as little as it can over the whole domain. A gradient changes the coefficients as little as it
can, and recursive least squares keep to the recent past: neither knows what that does to the function elsewhere. Drawn
is one of many sequences of examples, that in which least squares do as in half of those that all three find surprising.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bayou import (
    FunctionNorm,
    Gaussian,
    GeometricStiffness,
    Learner,
    MomentMatching,
    NormalisedGradient,
    Polynomials,
    RecursiveLeastSquares,
)

try:
    from matplotlib.figure import Figure
except ImportError:
    sys.exit('The picture is drawn by matplotlib, which is missing: pip install "bayou[plot]".')

PICTURE = Path("out/localised_learning.png")
SEQUENCES = 201
EXAMPLES = 40
SURPRISE = (1.5, 0.8)  # where the function is 0.16
FAIR = 0.2  # how far from the truth a function may be there that is to be surprised
NEAR = 0.5  # farther from the surprise than that is elsewhere
DOMAIN = (0.0, 3.0)
BASIS = Polynomials(10, DOMAIN)
GRID = np.linspace(*DOMAIN, 601)
SHOWN = (-0.6, 1.0)  # of the vertical axis, the same in all panels: what leaves it is said in numbers
BLUE, ORANGE, GREY, INK = "#0072B2", "#D55E00", "#8A8A8A", "#222222"

Encoding = Callable[[Any], Any]


class Panel(NamedTuple):
    """A learner, the features that it sees of an input, and what to call it."""

    title: str
    posterior: Any
    encode: Encoding


PANELS = (
    Panel("IRMA", FunctionNorm(GeometricStiffness(0.3), BASIS), BASIS.encode),
    Panel("Normalised gradient, powers of x", NormalisedGradient(decay=0.05), BASIS.functions),
    Panel("Recursive least squares, powers of x", RecursiveLeastSquares(0.9, 0.05), BASIS.functions),
)


class Change(NamedTuple):
    """The function before and after, over the grid."""

    before: Any
    after: Any

    @property
    def gap(self) -> float:
        """How far it was from the truth where the surprise came."""
        return float(np.interp(SURPRISE[0], GRID, np.abs(self.before - target(GRID))))

    @property
    def ratio(self) -> float:
        """How far it moved elsewhere, at most, in units of how far it moved where the surprise was."""
        moved = np.abs(self.after - self.before)
        elsewhere = np.abs(GRID - SURPRISE[0]) > NEAR
        return float(moved[elsewhere].max() / np.interp(SURPRISE[0], GRID, moved))


def target(x: Any) -> Any:
    return x * np.exp(-(x**2))


def examples(seed: int) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    x = random.uniform(*DOMAIN, EXAMPLES)
    return x, target(x) + random.uniform(-0.05, 0.05, EXAMPLES)


def learn(panel: Panel, seed: int) -> Change:
    x, y = examples(seed)
    learner = Learner(Gaussian(), panel.posterior, MomentMatching(), BASIS.size)
    learner.learn_many(panel.encode(x[:, None]), y)
    before = learner.predict_many(panel.encode(GRID[:, None])).mean
    learner.learn_one(panel.encode(np.array([[SURPRISE[0]]]))[0], SURPRISE[1])
    return Change(before, learner.predict_many(panel.encode(GRID[:, None])).mean)


def draw(changes: list[Change], seed: int) -> Figure:
    figure = Figure(figsize=(12.0, 4.2), layout="constrained", dpi=110)
    x, y = examples(seed)
    for axes, panel, change in zip(figure.subplots(1, len(PANELS), sharey=True), PANELS, changes, strict=True):
        axes.axvspan(SURPRISE[0] - NEAR, SURPRISE[0] + NEAR, color=GREY, alpha=0.1, lw=0)
        axes.plot(GRID, target(GRID), color=GREY, lw=1.3, ls=(0, (5, 2)), label="truth")
        axes.plot(x, y, ".", color=INK, ms=5, alpha=0.55, mew=0, label=f"{EXAMPLES} examples")
        axes.plot(GRID, change.before, color=BLUE, lw=2, label="function, learnt from these")
        axes.plot(*SURPRISE, "*", color=ORANGE, ms=15, mec=INK, mew=0.7, ls="none", zorder=3, label="surprise")
        axes.plot(GRID, change.after, color=ORANGE, lw=2, label="function, after the surprise")
        axes.set_title(panel.title, loc="left", fontsize=11, fontweight="bold", pad=21)
        moved = f"elsewhere, it moves {shown(change.ratio)} × as far as here, or less"
        axes.text(0.0, 1.025, moved, transform=axes.transAxes, fontsize=10, color=INK, in_layout=False)
        axes.set(xlim=DOMAIN, ylim=SHOWN, xlabel="x")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.axes[0].set_ylabel("y")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=10)
    return figure


def chosen(changes: list[list[Change]], ratios: Any) -> int:
    """The sequence of the median ratio, of those after which no function is far from the truth at the surprise."""
    gaps = np.array([[each.gap for each in of_all] for of_all in changes])
    fair = np.flatnonzero(gaps.max(axis=1) < FAIR)
    return int(fair[np.argsort(ratios[fair])[len(fair) // 2]])


def shown(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10.0 else f"{ratio:,.0f}"


def main() -> None:
    changes = [[learn(panel, seed) for panel in PANELS] for seed in range(SEQUENCES)]
    ratios = np.array([[change.ratio for change in each] for each in changes])
    print(f"How far the function moves elsewhere, at most, over how far at the surprise; {SEQUENCES} sequences:")
    for panel, found in zip(PANELS, ratios.T, strict=True):
        median, high = np.quantile(found, [0.5, 0.9])
        print(f"  {panel.title:36s} median {median:7.2f}, nine of ten below {high:7.2f}")
    typical = chosen(changes, ratios[:, -1])
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    draw(changes[typical], typical).savefig(PICTURE)
    print(f"picture: {PICTURE}")


if __name__ == "__main__":
    main()
