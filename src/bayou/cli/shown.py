"""How runs are shown: a line per report, a table of scores at the end, or JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import typer

from bayou.estimators.summary import aligned
from bayou.evaluation.score_names import FULL_NAMES, number

# What is shown along the way, and how it is called; the last ones need no model.
ALONG = {
    "binary": ("log_loss", "accuracy", "ece", "no_change_accuracy", "majority_accuracy"),
    "multiclass": ("log_loss", "accuracy", "ece", "no_change_accuracy", "majority_accuracy"),
    "regression": ("rmse", "nlpd", "coverage", "no_change_rmse", "mean_rmse"),
    "count": ("rmse", "nlpd", "coverage", "no_change_rmse", "mean_rmse"),
}
TITLES = {
    "log_loss": "log loss",
    "ece": "calib. err",
    "no_change_accuracy": "no-change",
    "majority_accuracy": "majority",
    "coverage": "90% covers",
    "no_change_rmse": "no-change",
    "mean_rmse": "mean so far",
}
WIDTH = 11


def header(task: str) -> str:
    """The names of what is shown along the way."""
    first = ALONG[task][0]
    names = ["rows", "rows/s", TITLES.get(first, first), "since last", *(TITLES.get(n, n) for n in ALONG[task][1:])]
    return "  ".join(name.rjust(WIDTH) for name in names)


def line(task: str, rows: int, rate: float, values: dict[str, float], since: float) -> str:
    """One report."""
    first, *others = ALONG[task]
    told = [f"{rows:,}", f"{rate:,.0f}", number(first, values[first]), number(first, since)]
    told += [number(name, values[name]) for name in others]
    return "  ".join(part.rjust(WIDTH) for part in told)


def scores_table(values: dict[str, float], errors: dict[str, float]) -> str:
    """Every score with its standard error."""
    rows = [["score", "value", "± se"]]
    for name, value in values.items():
        error = errors.get(name, math.nan)
        rows.append([FULL_NAMES.get(name, name), number(name, value), number(name, error)])
    return aligned(rows)


def as_json(rows: int, seconds: float, values: dict[str, float], **more: Any) -> str:
    """One report as a JSON object; what is not known is null."""
    told = {name: (value if math.isfinite(value) else None) for name, value in values.items()}
    return json.dumps({"rows": rows, "seconds": round(seconds, 3), **told, **more})


def say(text: str, quiet: bool = False) -> None:
    """To the standard output, unless nothing is to be said."""
    if not quiet:
        typer.echo(text)


def warn(text: str) -> None:
    """To where errors go."""
    typer.echo(text, err=True)
