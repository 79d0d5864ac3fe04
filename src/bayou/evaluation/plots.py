"""Pictures of an evaluation, as files: how fast it learnt, and whether its probabilities and intervals are true.

Bands and bars are two standard errors wide on either side. Colours are those of Okabe and Ito, which the colour-blind
can tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayou.contracts import Vector
from bayou.errors import InvalidSpec
from bayou.evaluation.metrics import CalibrationError, PITHistogram
from bayou.evaluation.progressive import Report
from bayou.evaluation.scores import ClassScores, CountScores, RegressionScores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

BLUE, ORANGE, GREY, INK = "#0072B2", "#D55E00", "#767676", "#222222"
STYLE = {
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
    "legend.frameon": False,
    "savefig.dpi": 150,
}
# Per kind of scores, a panel each: metric, its baseline and that one's name, title, label of the axis.
PANELS: dict[type, list[tuple[str, str | None, str, str, str]]] = {
    ClassScores: [
        ("log_loss", "majority_log_loss", "class frequencies", "Log loss", "nats per row"),
        ("accuracy", "majority_accuracy", "majority class", "Accuracy", "fraction of rows"),
    ],
    RegressionScores: [
        ("rmse", "mean_rmse", "mean so far", "Root mean squared error", "units of the target"),
        ("coverage", None, "nominal", "Coverage of the intervals", "fraction of rows"),
    ],
}
PANELS[CountScores] = [("deviance", "mean_deviance", "mean so far", "Deviance", "per row"), PANELS[RegressionScores][1]]


def learning_curve(reports: Sequence[Report[Any]], path: str | Path) -> None:
    """The scores against the rows seen: over all rows so far, and over each window."""
    figure = _figure(8.0, 7.2)
    _draw_curves(figure, reports)
    _save(figure, path)


def reliability(report: Report[Any], path: str | Path) -> None:
    """How often what was given some probability came true, and how often each probability was given."""
    figure = _figure(6.0, 7.2)
    _draw_reliability(figure, report.total.calibration_error, two_classes=report.total.calibration_error.two_classes)
    _save(figure, path)


def intervals(report: Report[Any], path: str | Path) -> None:
    """Where targets fell in their predictive distributions, and how much of them intervals of every level covered."""
    figure = _figure(6.0, 7.2)
    _draw_intervals(figure, report.total.pit)
    _save(figure, path)


def overview(reports: Sequence[Report[Any]], path: str | Path) -> None:
    """The learning curve and, beside it, reliability (of classes) or intervals (of numbers)."""
    figure = _figure(13.0, 7.2)
    left, right = figure.subfigures(1, 2, width_ratios=[1.35, 1.0], wspace=0.04)
    _draw_curves(left, reports)
    total = reports[-1].total
    if isinstance(total, ClassScores):
        _draw_reliability(right, total.calibration_error)
    else:
        _draw_intervals(right, total.pit)
    _save(figure, path)


def _figure(width: float, height: float) -> Figure:
    try:
        import matplotlib as mpl  # noqa: PLC0415  # an extra
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise ImportError('pictures need matplotlib, which is not installed: pip install "bayou[plot]"') from error
    with mpl.rc_context(STYLE):
        return Figure(figsize=(width, height), layout="constrained")
