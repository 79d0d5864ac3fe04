"""``bayou bench``: the default model beside those of other libraries, on a source or on a data set that is there."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from bayou.cli.asked import Asked
from bayou.cli.errors import Failed
from bayou.cli.shown import say, warn
from bayou.estimators.summary import aligned
from bayou.estimators.table_model import CLASSES
from bayou.evaluation.metrics import MAE, RMSE, Accuracy, CalibrationError, LogLoss
from bayou.evaluation.peers import Result, Stream, known_set, race
from bayou.evaluation.score_names import number
from bayou.numerics.sparse_table import rows_joined
from bayou.streams import Skipped, open_tables

TITLES = {"log_loss": "log loss", "accuracy": "accuracy", "ece": "calib. err", "rmse": "RMSE", "mae": "mean abs. err"}
NOTE = "each row predicted, then learnt; CPU time of both, features made beforehand; peers as they come, not tuned"


def run(asked: Asked, rows: int) -> None:
    """Read, race, and tell."""
    if rows < 1:
        raise Failed(f"--rows must be a number of rows, at least 1; got {rows}.")
    name, stream = ("breast cancer, of scikit-learn", known_set()) if asked.source == "" else read(asked, rows)
    results = race(stream)
    scores = [scored(stream, each) for each in results]
    ours = scores[0]["microseconds_per_row"]
    if asked.json:
        for each, found in zip(results, scores, strict=True):
            told: dict[str, Any] = {"contender": each.name, "rows": len(stream.targets), "task": stream.task}
            say(json.dumps(told | ({"missing": each.missing} if each.missing else found | _ratio(found, ours))))
        return
    names = [key for key in scores[0] if key != "microseconds_per_row"]
    table = [["", *(TITLES[key] for key in names), "µs per row", "ratio"]]
    for each, found in zip(results, scores, strict=True):
        if not each.missing:
            cost = found["microseconds_per_row"]
            cells = [*(number(key, found[key]) for key in names), f"{cost:,.2f}", f"{cost / ours:.2f}"]
            table.append([each.name, *cells])
    width = stream.rows.shape[1]
    say(f"{name} ({stream.task}): {len(stream.targets):,} rows, {width:,} features; {NOTE}")
    say(aligned(table))
    for each in results:
        if each.missing:
            say(f"not here: {each.name}, as {each.missing}")


def read(asked: Asked, most: int) -> tuple[str, Stream]:
    """The first rows of a source, as the features that `bayou learn` makes of them."""
    skipped, parts, count = Skipped(), [], 0
    tables = open_tables(asked.source, asked.format, on_error=asked.on_error, skipped=skipped, names=asked.header)
    model = asked.new_model(tables.format)
    for table in tables.rows:
        parts.append(table)
        count += len(table)
        if count >= most:
            break
    rows = rows_joined(parts).head(most)
    model.begin(rows)
    values, known = model.target.of(rows, model.task)
    rows = rows.filter(known) if not known.all() else rows
    layout = model.layout
    if layout.hashed and "text" in layout.kinds.values():
        raise Failed("bench takes numbers and categories; --ignore the columns of text.")
    if skipped.count:
        warn(str(skipped))
    features = layout.prepared(rows) if layout.hashed else layout.admitted(rows).encode(rows)
    name = f"{asked.source}, {model.target.text}"
    if model.task not in CLASSES:
        return name, Stream(features, values, [], model.task)
    classes = sorted(set(values.tolist()))
    if len(classes) < 2:
        raise Failed(f"the target {model.target.text!r} must have two values at least; got {classes!r}.")
    codes = np.searchsorted(np.array(classes), values)
    return name, Stream(features, codes, classes, "binary" if len(classes) == 2 else "multiclass")


def scored(stream: Stream, result: Result) -> dict[str, float]:
    """The scores of one, and its cost."""
    if result.missing:
        return {}
    if stream.classes:
        codes = stream.targets.astype(np.intp)
        metrics: dict[str, Any] = {"log_loss": LogLoss(), "accuracy": Accuracy(), "ece": CalibrationError()}
        for metric in metrics.values():
            metric.update(result.said, codes)
    else:
        metrics = {"rmse": RMSE(), "mae": MAE()}
        for metric in metrics.values():
            metric.update(result.said, np.asarray(stream.targets, np.float64))
    cost = 1e6 * result.seconds / len(stream.targets)
    return {name: metric.value for name, metric in metrics.items()} | {"microseconds_per_row": round(cost, 3)}


def _ratio(found: dict[str, float], ours: float) -> dict[str, float]:
    return {"ratio": round(found["microseconds_per_row"] / ours, 3)}
