"""``bayou inspect``: what a model has learnt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bayou import __version__
from bayou.cli.errors import Failed
from bayou.cli.learn import loaded
from bayou.cli.shown import say, scores_table
from bayou.estimators import TableModel
from bayou.estimators.summary import Summary
from bayou.evaluation.table_run import TableRun


def run(name: str, number: int, coverage: float, as_json: bool) -> None:
    """Tell it, for people or as JSON."""
    if not 0.0 < coverage < 1.0:
        raise Failed(f"--coverage must lie between 0 and 1; got {coverage}.")
    model = loaded(name)
    if not model.begun:
        raise Failed(f"{name} has learnt nothing yet.")
    weights = model.summary(coverage).most_certain(number)
    if as_json:
        say(json.dumps(facts(name, model, weights)))
        return
    state = model.to_state()
    size = sum(array.nbytes for array in state.arrays.values())
    say(f"{name}: {model.target.text} ({model.task}), {model.n_rows:,} rows")
    evidence = model.estimator.log_evidence_
    say(f"evidence: {evidence:.1f} nats, {evidence / model.n_rows:.4f} per row")
    say(f"size of the state: {size:,} bytes; of the file: {Path(name).stat().st_size:,}")
    for column, kind in model.kinds().items():
        say(f"  {column}: {kind}")
    say("")
    say(str(weights))
    if "run" in model.extra.config:
        known = TableRun.of(model)
        if known.has_scores:
            where = "" if known.finished else f", of which {known.rows:,} rows were read"
            say(f"\nlearnt from {known.source}{where}; each row predicted before it was learnt:")
            say(scores_table(known.scores.values(), known.scores.errors()))


def facts(name: str, model: TableModel, weights: Summary) -> dict[str, Any]:
    """All of it, as JSON's types."""
    told = [
        {"name": each, "mean": mean, "sd": deviation, "low": low, "high": high, "sign_probability": sign}
        for each, mean, deviation, (low, high), sign in zip(
            weights.names,
            weights.mean.tolist(),
            weights.deviation.tolist(),
            weights.interval.tolist(),
            weights.sign_probability.tolist(),
            strict=True,
        )
    ]
    found: dict[str, Any] = {
        "file": name,
        "bayou": __version__,
        "target": model.target.text,
        "task": model.task,
        "rows": model.n_rows,
        "columns": model.kinds(),
        "log_evidence": model.estimator.log_evidence_,
        "weights": told,
        "note": weights.note,
    }
    if model.classes:
        found["classes"] = model.classes
    return found
