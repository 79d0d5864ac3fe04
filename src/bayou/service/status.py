"""All that can be told of a served model while it learns, in JSON's types: numbers that are not there are null."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np

from bayou.bank import Bank
from bayou.errors import InvalidSpec
from bayou.evaluation.stream_scores import PLACES, NumberStream
from bayou.service.learning_curve import panels
from bayou.service.served_model import ServedModel

MOST_POINTS, MOST_WEIGHTS = 200, 20
SHARES = ("drift", "flip_rate")  # what members of a bank may differ in


def status(served: ServedModel) -> dict[str, Any]:
    """What a page about the model shows."""
    model, run = served.model, served.run
    told: dict[str, Any] = {
        "target": model.target.text,
        "task": model.task,
        "begun": model.begun,
        "examples": model.n_rows,
        "without_target": run.without_target,
        "columns": model.kinds(),
        "classes": model.classes,
        "pending": len(served.pending),
        "scores": {},
        "curve": {"names": [], "points": []},
        "panels": panels(run),
        "reliability": None,
        "coverage": None,
        "weights": [],
        "found": {},
        "change_points": None,
    }
    if run.has_scores:
        scores = run.scores
        errors = scores.errors()
        told["scores"] = {
            name: {"value": plain(value), "error": plain(errors[name])} for name, value in scores.values().items()
        }
        points = run.curve[:: -(-len(run.curve) // MOST_POINTS) or 1]
        told["curve"] = {"names": ["rows", *scores.metrics], "points": [[plain(x) for x in p] for p in points]}
        told |= _calibration(scores)
    if model.begun:
        told["log_evidence"] = plain(model.estimator.log_evidence_)
        told["weights"] = weights(served)
        told |= _bank(model.estimator._bank)
    return told


def weights(served: ServedModel, count: int = MOST_WEIGHTS) -> list[dict[str, Any]]:
    """Those that are surest, with their deviations and intervals of 90 %."""
    found = served.model.summary_per_deviation(0.9).most_certain(count)
    return [
        {"name": str(name), "mean": plain(mean), "sd": plain(sd), "low": plain(low), "high": plain(high)}
        for name, mean, sd, (low, high) in zip(
            found.names, found.mean.tolist(), found.deviation.tolist(), found.interval.tolist(), strict=True
        )
    ]


def _calibration(scores: Any) -> dict[str, Any]:
    """Bins of a reliability diagram; of numbers, where targets fell, and how many in the intervals of 90 %."""
    if isinstance(scores, NumberStream):
        cover = scores.metrics["coverage"]
        edges = np.arange(PLACES + 1) / PLACES
        return {
            "coverage": {"level": 0.9, "value": plain(cover.value), "error": plain(cover.standard_error)},
            "reliability": {"edges": edges.tolist(), "counts": scores.places.tolist()},
        }
    bins = scores.metrics["ece"]
    with np.errstate(divide="ignore", invalid="ignore"):
        said, came = bins.predicted / bins.rows, bins.observed / bins.rows
    parts = {"predicted": said, "observed": came, "counts": bins.rows}
    return {"reliability": {name: [plain(x) for x in part.tolist()] for name, part in parts.items()}}


def _bank(bank: Any) -> dict[str, Any]:
    """What a bank has found of drift, flips and noise, and when all began anew."""
    if not isinstance(bank, Bank):
        return {}
    found = {}
    for name in SHARES:
        with suppress(InvalidSpec):  # no member has it
            found[name] = [[value, plain(p)] for value, p in bank.settings(name).items()]
    changes = [{"row": change.row, "probability": change.probability} for change in bank.change_points()]
    return {"found": found, "drift_probability": plain(bank.drift_probability), "change_points": changes}


def plain(value: Any) -> float | None:
    """A number as JSON has it."""
    number = float(value)
    return number if math.isfinite(number) else None
