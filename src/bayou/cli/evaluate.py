"""``bayou evaluate``: a model on a source, in all, in a sliding window and fading; or two models on the same rows."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from bayou.cli.errors import Failed
from bayou.cli.learn import loaded
from bayou.cli.shown import say, warn
from bayou.estimators import TableModel
from bayou.estimators.summary import aligned
from bayou.estimators.table_model import CLASSES, Learnt
from bayou.evaluation.metrics import (
    RMSE,
    Accuracy,
    CalibrationError,
    Coverage,
    Fading,
    LogLoss,
    McNemar,
    NegativeLogDensity,
    PairedDifference,
    Windowed,
)
from bayou.evaluation.score_names import FULL_NAMES, number
from bayou.evaluation.stream_scores import LEVEL, codes_of, losses, with_new_ones
from bayou.evaluation.table_run import TableRun
from bayou.streams import Skipped, open_tables


class Recent:
    """What was scored lately: in a sliding window, and by rows that count less the older they are."""

    def __init__(self, task: str, window: int, half_life: float) -> None:
        self._of_classes = task in CLASSES
        kinds: dict[str, Any] = {"log_loss": LogLoss, "accuracy": Accuracy, "ece": CalibrationError}
        if not self._of_classes:
            kinds = {"rmse": RMSE, "nlpd": NegativeLogDensity, "coverage": lambda: Coverage(LEVEL)}
        self.windowed = {name: Windowed(kind, window) for name, kind in kinds.items()}
        self.fading = {name: Fading(kind, half_life) for name, kind in kinds.items()}

    def update(self, learnt: Learnt) -> None:
        """Count more rows."""
        if learnt.said is None:
            return
        for part in (self.windowed, self.fading):
            if self._of_classes:
                codes = codes_of(learnt.targets, learnt.classes)
                for metric in part.values():
                    metric.update(with_new_ones(np.asarray(learnt.said), codes), codes)
                continue
            said, came = learnt.said, np.asarray(learnt.targets, np.float64)
            part["rmse"].update(np.atleast_1d(said.mean), came)
            part["nlpd"].update(np.atleast_1d(said.log_probability(came)))
            part["coverage"].update(np.atleast_2d(said.interval(LEVEL)), came)


def run(
    name: str,
    source: str,
    against: str | None,
    learn: bool,
    delay: int,
    window: int,
    half_life: float,
    format: str | None,
    header: tuple[str, ...] | None,
    on_error: str,
    as_json: bool,
) -> None:
    """Score one model, or two."""
    if window < 1 or half_life <= 0.0:
        raise Failed(f"--window and --half-life must be above 0; got {window} and {half_life}.")
    models = [loaded(each) for each in (name, against) if each is not None]
    for each, model in zip((name, against), models, strict=False):
        if not model.begun:
            raise Failed(f"{each} has learnt nothing yet.")
    if len(models) == 2 and (models[0].target.text, models[0].task) != (models[1].target.text, models[1].task):
        raise Failed(f"two models are compared on one target; got {models[0].target.text} and {models[1].target.text}.")
    runs = [TableRun(model, source, delay, learn) for model in models]
    recent = Recent(models[0].task, window, half_life)
    both = Both(models) if len(models) == 2 else None

    def first(learnt: Learnt) -> None:
        recent.update(learnt)
        if both is not None:
            both.first(learnt)

    runs[0].tell = first
    if both is not None:
        runs[1].tell = both.second
    skipped = Skipped()
    if on_error == "skip":
        for one in runs:
            one.skipped = skipped
    tables = open_tables(source, format, chunk_rows=1024, on_error=on_error, skipped=skipped, names=header)
    for table in tables.rows:
        for one in runs:
            table = one.whole(table)
        for one in runs:
            one.learn(table)
    if skipped.count:
        warn(str(skipped))
    if not runs[0].has_scores:
        raise Failed(f"the target {models[0].target.text!r} must have a value in some row; got none.")
    show(runs, recent, both, (window, half_life), as_json)


class Both:
    """Two models on the same rows: who was wrong where, and by how much."""

    def __init__(self, models: list[TableModel]) -> None:
        self._of_classes = models[0].task in CLASSES
        self.mcnemar, self.difference = McNemar(), PairedDifference()
        self._held: Learnt | None = None

    def first(self, learnt: Learnt) -> None:
        """What the first said of a part."""
        self._held = learnt

    def second(self, learnt: Learnt) -> None:
        """And the second, of the same."""
        if self._held is None or self._held.said is None or learnt.said is None:
            return
        (wrong_a, loss_a), (wrong_b, loss_b) = (losses(one, self._of_classes) for one in (self._held, learnt))
        if self._of_classes:
            self.mcnemar.update(wrong_a, wrong_b)
        self.difference.update(loss_a, loss_b)


def show(runs: list[TableRun], recent: Recent, both: Both | None, told: tuple[int, float], as_json: bool) -> None:
    """For people, or as JSON."""
    scores, (window, half_life) = runs[0].scores, told
    lately = {name: (recent.windowed[name].value, recent.fading[name].value) for name in recent.windowed}
    if as_json:
        found: dict[str, Any] = {"rows": runs[0].rows, **_finite(scores.values())}
        found["window"] = {"rows": window, **_finite({name: pair[0] for name, pair in lately.items()})}
        found["fading"] = {"half_life": half_life, **_finite({name: pair[1] for name, pair in lately.items()})}
        if both is not None:
            found["against"] = _finite(runs[1].scores.values())
            found["difference"] = {"mean": both.difference.value, "p_value": both.difference.p_value}
            if runs[0].model.task in CLASSES:
                found["mcnemar_p_value"] = both.mcnemar.p_value
        say(json.dumps(found))
        return
    head = ["score", "all", "± se", f"last {window:,}", f"half-life {half_life:,g}"]
    if both is not None:
        head.append("the other, all")
    rows, errors = [head], scores.errors()
    for name, value in scores.values().items():
        pair = lately.get(name, (math.nan, math.nan))
        cells = [FULL_NAMES.get(name, name), *(number(name, each) for each in (value, errors[name], *pair))]
        rows.append(cells + ([number(name, runs[1].scores.values()[name])] if both is not None else []))
    say(f"{runs[0].rows:,} rows")
    say(aligned(rows))
    if both is not None:
        what = "log loss" if runs[0].model.task in CLASSES else "negative log density"
        gap = both.difference
        say(f"\n{what}, this less the other: {gap.value:.4g} ± {gap.standard_error:.2g}, p = {gap.p_value:.2g}")
        if runs[0].model.task in CLASSES:
            say(f"McNemar's test of who errs: p = {both.mcnemar.p_value:.2g}")


def _finite(values: dict[str, float]) -> dict[str, float | None]:
    return {name: (value if math.isfinite(value) else None) for name, value in values.items()}
