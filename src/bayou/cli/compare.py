"""``bayou compare``: two or more settings over one read of the source."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import time
from itertools import chain

from bayou.cli.asked import Asked
from bayou.cli.errors import Failed
from bayou.cli.names import split
from bayou.cli.shown import say, warn
from bayou.estimators.summary import aligned
from bayou.evaluation.score_names import FULL_NAMES, number
from bayou.evaluation.table_run import TableRun
from bayou.streams import Skipped, open_tables

LISTS = ("numeric", "categorical", "text", "time", "ignore")


def run(
    source: str,
    target: str,
    settings: list[str],
    format: str | None,
    header: tuple[str, ...] | None,
    on_error: str,
    as_json: bool,
) -> None:
    """Learn side by side, and tell the scores side by side."""
    if len(settings) < 2:
        raise Failed(f"at least two settings are compared, as -s '' -s '--basis spline'; got {len(settings)}.")
    skipped = Skipped()
    asked = [asked_by(setting, source, target or None) for setting in settings]
    tables = open_tables(source, format=format, on_error=on_error, skipped=skipped, names=header)
    runs = [TableRun(each.new_model(tables.format), source) for each in asked]
    if on_error == "skip":
        for each in runs:
            each.skipped = Skipped()
        runs[0].skipped = skipped  # they are told once
    seconds = [0.0] * len(runs)
    for table in chain(tables.rows, [None]):
        for place, each in enumerate(runs):
            started = time.process_time()
            for _ in each.finish() if table is None else each.take(table):
                pass
            seconds[place] += time.process_time() - started
    if skipped.count:
        warn(str(skipped))
    if not all(each.has_scores for each in runs):
        raise Failed(f"the target {runs[0].model.target.text!r} must have a value in some row; got none.")
    costs = [1e6 * spent / max(each.rows, 1) for spent, each in zip(seconds, runs, strict=True)]
    names = [setting or "(defaults)" for setting in settings]
    if as_json:
        for name, each, cost in zip(names, runs, costs, strict=True):
            told = {key: value if math.isfinite(value) else None for key, value in each.scores.values().items()}
            say(json.dumps({"setting": name, "rows": each.rows, "microseconds_per_row": round(cost, 2), **told}))
        return
    rows = [["score", *names]]
    for score in runs[0].scores.values():
        cells = []
        for each in runs:
            value, error = each.scores.values()[score], each.scores.errors()[score]
            cells.append(f"{number(score, value)} ± {number(score, error)}")
        rows.append([FULL_NAMES.get(score, score), *cells])
    rows.append(["µs per row", *(f"{cost:,.1f}" for cost in costs)])
    say(f"{runs[0].model.target.text}: {runs[0].rows:,} rows, each predicted before it was learnt")
    say(aligned(rows))


class Options(argparse.ArgumentParser):
    """Of one setting: errors are told as all others."""

    def error(self, message: str) -> None:  # type: ignore[override]  # it does not return
        raise Failed(f"a setting must be options of `bayou learn`: {message}.")


def asked_by(setting: str, source: str, target: str | None) -> Asked:
    """The options of `learn` in a text."""
    parser = Options(add_help=False, allow_abbrev=False)
    parser.add_argument("--task", default="auto")
    for name in LISTS:
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--weight")
    parser.add_argument("--interactions", "-q", action="append", default=[])
    parser.add_argument("--basis")
    parser.add_argument("--bits", "-b", type=int, default=18)
    parser.add_argument("--budget", type=float)
    parser.add_argument("--hashed", action="store_const", const=True, dest="hashed")
    parser.add_argument("--dense", action="store_const", const=False, dest="hashed")
    try:
        words = shlex.split(setting)
    except ValueError as error:
        raise Failed(f"a setting must be options of `bayou learn`; got {setting!r}: {error}.") from None
    given = vars(parser.parse_args(words))
    given["interactions"] = tuple(split(pair) for pair in given["interactions"])
    for name in LISTS:
        given[name] = split(given[name])
    return Asked(source=source, target=target, **given)
