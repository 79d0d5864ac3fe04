"""``bayou learn --workers`` and ``--dask``: the files of a source side by side, and what they tell added up."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

from bayou.cli.asked import Asked
from bayou.cli.errors import Failed
from bayou.cli.places import require_folder
from bayou.cli.shown import say, warn
from bayou.distributed import DaskCluster, Fitted, LocalProcesses, Reading, bar, fit
from bayou.estimators.summary import aligned
from bayou.modelfile import save
from bayou.numerics.sniffing import named
from bayou.streams.sources import ENDINGS

# Options that mean a stream, row by row, in the order in which rows come.
OF_STREAMS = {
    "initial": "--initial",
    "resume": "--resume",
    "predictions": "--predictions",
    "test_only": "--test-only",
    "delay": "--delay",
    "save_every": "--save-every",
}

KNOWN = "at first its own shard alone is known, then all others, later ones too"


class Workers(NamedTuple):
    """Who learns, and how often."""

    processes: int | None
    dask: str | None
    shards: int | None
    rounds: int | None

    @property
    def engine(self) -> Any:
        """Local processes, or a cluster."""
        if self.dask is None:
            return LocalProcesses(self.processes)
        if self.dask == "local":
            return DaskCluster(workers=self.processes or 2)
        if self.processes is not None:
            raise Failed("--workers is for local processes, or for --dask local; a cluster has its own.")
        return DaskCluster(self.dask)


def run(asked: Asked, workers: Workers) -> int:
    """Learn in shards; returns the exit code."""
    for name, option in OF_STREAMS.items():
        if getattr(asked, name):
            raise Failed(f"{option} is for rows that come one after another; shards are learnt side by side.")
    if asked.on_error != "stop":
        raise Failed("--on-error skip is for rows that come one after another; shards are learnt side by side.")
    if asked.model is not None and Path(asked.model).exists():
        raise Failed(f"{asked.model} exists: learn to another file, and add them up by `bayou merge`.")
    require_folder(asked.model)
    if asked.source == "-":
        raise Failed("standard input comes one row after another; shards are those of files.")
    format = asked.format or named(asked.source, ENDINGS)
    show = bar if sys.stderr.isatty() and not (asked.quiet or asked.json) else False
    fitted = fit(
        asked.new_model(format),
        asked.source,
        engine=workers.engine,
        rounds=workers.rounds,
        shards=workers.shards,
        reading=Reading(asked.format, asked.header),
        progress=show,
    )
    tell(asked, fitted)
    if asked.model is not None:
        save(fitted.model, asked.model)
        if not asked.quiet:
            warn(f"saved to {asked.model}")
    return 0


def tell(asked: Asked, fitted: Fitted) -> None:
    """How the rounds went."""
    if asked.json:
        for number in range(1, len(fitted.rounds) + 1):
            say(json.dumps({"round": number, **_values(fitted, number)}), asked.quiet)
        last = {"rows": fitted.rows, "shards": fitted.n_shards, "exact": fitted.exact, "settled": fitted.settled}
        say(json.dumps({**last, "task": fitted.model.task, "final": True}), asked.quiet)
        return
    model = fitted.model
    say(f"target: {model.target.text} ({model.task})", asked.quiet)
    say(f"model: {model.summary().note.splitlines()[0]}; {fitted.note}\n", asked.quiet)
    rows = [["round", "seconds", "rows/s", "MB moved", "log score", "means by", "deviations by"]]
    for number, one in enumerate(fitted.rounds, 1):
        moved = ["", ""] if one.moved is None else [f"{one.moved.mean:.3g}", f"{100.0 * one.moved.deviation:.2g} %"]
        rate, score = f"{fitted.rows / one.seconds:,.0f}", f"{one.log_score:.5g}"
        rows.append([str(number), f"{one.seconds:.2f}", rate, f"{one.bytes_moved / 1e6:.2f}", score, *moved])
    say(aligned(rows) + "\n", asked.quiet)
    say("each row before it was learnt, round by round: " + KNOWN, asked.quiet)
    scores = [["round", *fitted.scores]]
    for number, one in enumerate(fitted.rounds, 1):
        scores.append([str(number), *(f"{metric.value:.5g}" for metric in one.scores.values())])
    say(aligned(scores) + "\n", asked.quiet)
    say(str(fitted), asked.quiet)


def _values(fitted: Fitted, number: int) -> dict[str, Any]:
    one = fitted.rounds[number - 1]
    moved = (None, None) if one.moved is None else tuple(value if math.isfinite(value) else None for value in one.moved)
    told = {"rows": fitted.rows, "seconds": round(one.seconds, 3), "bytes_moved": one.bytes_moved}
    scores = {name: metric.value if math.isfinite(metric.value) else None for name, metric in one.scores.items()}
    return {**told, "log_score": one.log_score, "moved_mean": moved[0], "moved_deviation": moved[1], **scores}
