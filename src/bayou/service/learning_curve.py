"""The learning curve as a page draws it: windows, baselines, and what theory expects, as `bayou report` has them."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from bayou.estimators.table_model import CLASSES
from bayou.evaluation.report_page import PANELS
from bayou.evaluation.report_theory import Expected, Windows, doubts, expected
from bayou.evaluation.table_run import TableRun

_DRAWN: WeakKeyDictionary[TableRun, tuple[Any, list[dict[str, Any]]]] = WeakKeyDictionary()  # theory takes its time


def panels(run: TableRun) -> list[dict[str, Any]]:
    """One per score: each window with its standard error, baselines, and theory or why there is none."""
    if not run.has_scores or not run.curve:
        return []
    latest = len(run.curve), run.curve[-1]
    known = _DRAWN.get(run)
    if known is None or known[0] != latest:
        drawn = [_panel(run, *one) for one in PANELS["classes" if run.model.task in CLASSES else "numbers"]]
        known = _DRAWN[run] = latest, drawn
    return known[1]


def _panel(run: TableRun, name: str, title: str, unit: str, baselines: dict[str, str]) -> dict[str, Any]:
    windows, theory = Windows.of(run, name), expected(run, name)
    lines = {}
    for baseline, label in baselines.items():
        other = Windows.of(run, baseline)
        value = 1.0 - other.value if name == "error" else other.value
        lines[label] = {"row": _plain(other.row), "value": _plain(value)}
    told: dict[str, Any] = {
        "name": name,
        "title": title,
        "unit": unit,
        "has_zero": name != "nlpd",
        "row": _plain(windows.row),
        "value": _plain(windows.value),
        "error": _plain(windows.error),
        "baselines": lines,
        "theory": None,
        "words": theory if isinstance(theory, str) else f"{theory.words} {doubts(run.model)}".strip(),
    }
    if isinstance(theory, Expected):
        told["theory"] = {"row": _plain(theory.row), "value": _plain(theory.value), "end": theory.end}
    return told


def _plain(values: Any) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in np.asarray(values, np.float64).tolist()]
