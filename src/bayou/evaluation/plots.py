"""Pictures of an evaluation, as files: how fast it learnt, and whether its probabilities and intervals are true.

Bands and bars reach two standard errors to either side. Colours are those of Okabe and Ito, which the colour-blind
can tell apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayou.contracts import Vector
from bayou.evaluation.metrics import CalibrationError, PITHistogram
from bayou.evaluation.progressive import Report
from bayou.evaluation.scores import ClassScores, CountScores, RegressionScores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

BLUE, PALE_BLUE, ORANGE, GREY, INK = "#0072B2", "#80B9D9", "#D55E00", "#767676", "#222222"
STYLE: dict[Any, Any] = {
    "font.size": 11,
    "axes.titlesize": 12.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.85,
    "savefig.dpi": 150,
}
FRACTION = "fraction of rows"
# Per kind of scores, a panel each: metric, its baseline and that one's name, title, label of the axis.
PANELS: dict[type, list[tuple[str, str | None, str, str, str]]] = {
    ClassScores: [
        ("log_loss", "majority_log_loss", "class frequencies", "Log loss", "nats per row"),
        ("accuracy", "majority_accuracy", "majority class", "Accuracy", FRACTION),
    ],
    RegressionScores: [
        ("rmse", "mean_rmse", "mean so far", "Root mean squared error", "units of the target"),
        ("coverage", None, "", "Coverage of the intervals", FRACTION),
    ],
}
PANELS[CountScores] = [("deviance", "mean_deviance", "mean so far", "Deviance", "per row"), PANELS[RegressionScores][1]]


def learning_curve(reports: Sequence[Report[Any]], path: str | Path) -> None:
    """The scores against the rows seen: over all rows so far, and over each window."""
    with _picture(path, 8.0, 7.2) as figure:
        _draw_curves(figure, reports)


def reliability(report: Report[Any], path: str | Path) -> None:
    """How often what was given some probability came true, and how often each probability was given."""
    with _picture(path, 6.0, 7.2) as figure:
        draw_reliability(figure, report.total.calibration_error)


def intervals(report: Report[Any], path: str | Path) -> None:
    """How much intervals of every level covered, and where targets fell in their predictive distributions."""
    with _picture(path, 6.0, 7.2) as figure:
        _draw_intervals(figure, report.total.pit)


def overview(reports: Sequence[Report[Any]], path: str | Path) -> None:
    """The learning curve and, beside it, reliability (of classes) or intervals (of numbers that have a density)."""
    total = reports[-1].total
    if isinstance(total, CountScores):
        learning_curve(reports, path)
        return
    with _picture(path, 13.0, 7.2) as figure:
        parts: Any = figure.subfigures(1, 2, width_ratios=[1.35, 1.0], wspace=0.04)
        left, right = parts
        _draw_curves(left, reports)
        if isinstance(total, ClassScores):
            draw_reliability(right, total.calibration_error)
        else:
            _draw_intervals(right, total.pit)


@contextmanager
def drawing(width: float, height: float, style: Mapping[Any, Any] | None = None) -> Iterator[Figure]:
    """A figure to draw on and to write, in the style of all pictures and what is added to it."""
    try:
        import matplotlib as mpl  # noqa: PLC0415  # an extra
        from matplotlib.figure import Figure  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise ImportError('pictures need matplotlib, which is missing: pip install "bayou[plot]"') from error
    with mpl.rc_context(STYLE | dict(style or {})):
        yield Figure(figsize=(width, height), layout="constrained")


@contextmanager
def _picture(path: str | Path, width: float, height: float) -> Iterator[Figure]:
    """A figure to draw on, written to a file afterwards."""
    with drawing(width, height) as figure:
        yield figure
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


def _draw_curves(figure: FigureBase, reports: Sequence[Report[Any]]) -> None:
    total = reports[-1].total
    upper, lower = figure.subplots(2, 1, sharex=True)
    for axes, (name, baseline, baseline_label, title, unit) in zip((upper, lower), PANELS[type(total)], strict=True):
        _draw_curve(axes, reports, name, bounded=unit == FRACTION)
        if baseline is None:
            level = total.coverage.level
            axes.axhline(level, color=GREY, linewidth=1.2, label=f"nominal: {level:.0%}")
        else:
            rows, values, _ = _series(reports, "total", baseline)
            axes.plot(rows, values, color=GREY, linewidth=1.2, label=f"baseline: {baseline_label}")
        axes.set(title=title, ylabel=unit)
        axes.margins(y=0.08)
        axes.legend(loc="best", fontsize=10)
    lower.set(xlabel="rows learnt", xlim=(0, reports[-1].rows * 1.02))
    figure.align_ylabels([upper, lower])


def _draw_curve(axes: Axes, reports: Sequence[Report[Any]], name: str, bounded: bool) -> None:
    rows, values, errors = _series(reports, "total", name)
    low, high = values - 2.0 * errors, values + 2.0 * errors
    if bounded:
        low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
    axes.fill_between(rows, low, high, color=BLUE, alpha=0.15, linewidth=0)
    axes.plot(rows, values, color=BLUE, linewidth=2.2, label="all rows so far", zorder=3)
    width = int(np.diff(rows).max(initial=0)) or int(rows[0])
    rows, values, _ = _series(reports, "window", name)
    label = f"each window of {width:,} rows"
    axes.plot(rows, values, color=ORANGE, linewidth=0.9, marker="o", markersize=3.5, alpha=0.8, label=label)


def _series(reports: Sequence[Report[Any]], span: str, name: str) -> tuple[Vector, Vector, Vector]:
    """Rows, values and standard errors of one metric."""
    metrics = [getattr(getattr(report, span), name) for report in reports]
    columns = ([r.rows for r in reports], [m.value for m in metrics], [m.standard_error for m in metrics])
    rows, values, errors = (np.array(column, dtype=np.float64) for column in columns)
    return rows, values, errors


def draw_reliability(figure: FigureBase, calibration: CalibrationError) -> None:
    """Frequencies against probabilities with binomial error bars, and how often each probability was given."""
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3.2, 1.0])
    used = calibration.rows > 0
    rows = calibration.rows[used]
    predicted, observed = calibration.predicted[used] / rows, calibration.observed[used] / rows
    upper.plot([0, 1], [0, 1], color=GREY, linewidth=1.2, label="as often as said")
    bars = np.abs(wilson(observed, rows) - observed)
    upper.errorbar(predicted, observed, bars, fmt="none", ecolor=BLUE, elinewidth=1.2, alpha=0.45)
    area = 12.0 + 110.0 * np.sqrt(rows / rows.max())  # a bin of few rows should not catch the eye
    upper.scatter(predicted, observed, area, color=BLUE, edgecolor="white", zorder=3, clip_on=False, label="observed")
    upper.set(title="Reliability", ylabel="observed frequency", xlim=(0, 1), ylim=(0, 1))
    text = f"calibration error {calibration.value:.3f} ± {calibration.standard_error:.3f}"
    text += f"\nby chance alone {calibration.noise:.3f}"
    upper.legend(loc="lower right", fontsize=10, title=text, title_fontsize=10, alignment="left", markerscale=0.7)
    lower.stairs(calibration.rows, np.linspace(0.0, 1.0, calibration.rows.size + 1), fill=True, color=PALE_BLUE)
    lower.set(xlabel="predicted probability", ylabel="rows", ylim=(0, None))
    figure.align_ylabels([upper, lower])


def wilson(fraction: Vector, rows: Vector) -> Vector:
    """Two standard errors around a fraction, after Wilson: sensible even where the fraction is 0 or 1."""
    middle = (fraction + 2.0 / rows) / (1.0 + 4.0 / rows)
    reach = 2.0 * np.sqrt(fraction * (1.0 - fraction) / rows + 1.0 / rows**2) / (1.0 + 4.0 / rows)
    return np.stack([middle - reach, middle + reach])


def _draw_intervals(figure: FigureBase, pit: PITHistogram) -> None:
    upper, lower = figure.subplots(2, 1, height_ratios=[2.2, 1.0])
    total, share = pit.counts.sum(), 1.0 / pit.counts.size
    levels, covered = pit.coverage()
    upper.plot([0, 1], [0, 1], color=GREY, linewidth=1.2, label="as much as said")
    bars = np.abs(wilson(covered, np.full(levels.shape, total)) - covered)
    upper.errorbar(levels, covered, bars, fmt="o", color=BLUE, markersize=6, elinewidth=1.3, label="observed")
    upper.set(title="Intervals of every level", xlabel="nominal coverage", ylabel="covered fraction of rows")
    upper.set(xlim=(0, 1), ylim=(0, 1))
    upper.legend(loc="lower right", fontsize=10)
    edges = np.linspace(0.0, 1.0, pit.counts.size + 1)
    lower.stairs(pit.counts / (total * share), edges, fill=True, color=PALE_BLUE)
    reach = 2.0 * np.sqrt((1.0 - share) / (share * total))
    lower.axhline(1.0, color=GREY, linewidth=1.2)
    for side in (1.0 - reach, 1.0 + reach):  # where a flat histogram's bars would stay
        lower.axhline(side, color=GREY, linewidth=1.0, linestyle=(0, (4, 4)))
    lower.set(xlabel="place of the target in its predictive distribution", ylabel="density", xlim=(0, 1))
    figure.align_ylabels([upper, lower])
