"""``bayou learn``: from a file to a model in one pass, every row predicted before it is learnt."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from bayou.cli.asked import Asked
from bayou.cli.errors import STOPPED, Failed
from bayou.cli.places import require_folder
from bayou.cli.predict import Writer
from bayou.cli.shown import as_json, header, line, say, scores_table, warn
from bayou.estimators import TableModel
from bayou.evaluation.table_run import TableRun
from bayou.modelfile import load, save
from bayou.numerics.files import polars
from bayou.streams import Skipped, Tables, open_tables


def run(asked: Asked) -> int:
    """Learn; returns the exit code."""
    if asked.save_every is not None and (asked.save_every < 1 or asked.model is None):
        raise Failed("--save-every must be a number of rows, at least 1, and needs a --model to save to.")
    require_folder(None if asked.test_only else asked.model, asked.predictions)
    skipped = Skipped()
    tables = open_tables(
        asked.source, format=asked.format, on_error=asked.on_error, skipped=skipped, names=asked.header
    )
    begun = taken_up(asked, tables)
    if begun is None:
        say(f"{asked.model} has learnt all of {asked.source} already.", asked.quiet)
        return 0
    begun.skipped = skipped if asked.on_error == "skip" else None
    clock = Clock(begun.rows)
    with stopping() as stopped:  # also while the last model is saved
        with writing(asked, begun) as writer:
            done = follow(asked, begun, tables.rows, clock, stopped)
            if writer is not None:
                writer.is_whole = done
        if done:
            check_target(begun)
        keep(asked, begun)
    told(asked, begun, skipped, clock, done)
    return 0 if done else STOPPED


def taken_up(asked: Asked, tables: Tables) -> TableRun | None:
    """The run that is asked for: a new one, one that goes on with a model, or one that was broken off."""
    if asked.resume and asked.model is None:
        raise Failed("--resume needs the --model that was saved.")
    if asked.resume and Path(str(asked.model)).exists():  # else it was broken off before it was saved
        name = asked.model
        model = loaded(str(name), asked.target)
        begun = TableRun.of(model)
        if begun.source != asked.source:
            raise Failed(f"{name} was broken off in {begun.source}; it cannot be resumed in {asked.source}.")
        if asked.delay not in (0, begun.delay):
            raise Failed(f"{name} was broken off with a --delay of {begun.delay}; got {asked.delay}.")
        asked.check_settings(model, str(name))
        return None if begun.finished else begun
    name = asked.initial or asked.model
    exists = name is not None and Path(name).exists()
    if asked.initial is not None and not exists:
        raise Failed(f"there is no model file {asked.initial}.")
    model = loaded(str(name), asked.target) if exists else asked.new_model(tables.format)
    if exists:
        asked.check_settings(model, str(name))
    if asked.test_only and not exists:
        raise Failed("-t scores a model that exists; name it with -i or --model.")
    return TableRun(model, asked.source, asked.delay, learns=not asked.test_only)


def loaded(name: str, target: str | None = None) -> TableModel:
    """A model of tables from a file, of this target if one is asked for."""
    model = load(name)
    if not isinstance(model, TableModel):
        raise Failed(f"{name} must hold a model of tables, as `bayou learn` saves them; got {type(model).__name__}.")
    if target is not None and model.target.text != target:
        raise Failed(f"{name} has learnt {model.target.text!r}, not {target!r}; name another --model.")
    return model


@contextmanager
def writing(asked: Asked, begun: TableRun) -> Iterator[Writer | None]:
    """Write down what is said of each row before it is learnt, where that is asked for.

    A run that may be taken up notes how far it has come in that file, too.
    """
    if asked.predictions is None:
        yield None
        return
    with Writer(asked.predictions, asked.model is not None, begun.known_beside, begun.rows > 0) as writer:
        begun.tell = lambda learnt: writer.write(begun.model.told_table(learnt))
        begun.beside = writer.mark
        yield writer


class Stopped:
    """Whether Ctrl-C was pressed; a second time ends at once."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def stopping() -> Iterator[Stopped]:
    """Let Ctrl-C end a run between two parts."""
    polars()  # which would take Ctrl-C for itself if it were loaded later
    stopped = Stopped()
    before = signal.signal(signal.SIGINT, stopped)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)


def follow(asked: Asked, begun: TableRun, tables: Iterator[Any], clock: Clock, stopped: Stopped) -> bool:
    """Learn part by part, and say how it goes; whether the source came to its end."""
    next_line, shown = 1, 0
    with progress(asked) as show:
        for rows in begun.over(tables, asked.save_every):
            show(rows)
            if rows >= next_line and is_under_way(begun):
                if not shown:
                    introduce(asked, begun, clock)
                report(asked, begun, clock)
                shown, next_line = rows, 2 * rows
            if asked.save_every and rows % asked.save_every == 0:
                keep(asked, begun)
            if stopped.asked:
                return False
    if is_under_way(begun) and shown != begun.rows and not asked.json:
        if not shown:
            introduce(asked, begun, clock)
        report(asked, begun, clock)
    return True


def is_under_way(begun: TableRun) -> bool:
    """Whether there is something to report: with late targets rows are scored before any is learnt."""
    return begun.has_scores and begun.model.begun


class Clock:
    """How long a run takes, and what was said of the model when it began."""

    def __init__(self, rows: int) -> None:
        self._started, self._first = time.perf_counter(), rows
        self.introduced = ""

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started

    def rate(self, rows: int) -> float:
        """Rows per second."""
        return (rows - self._first) / max(self.seconds, 1e-9)


@contextmanager
def progress(asked: Asked) -> Iterator[Any]:
    """A line that moves, where there is somebody to look at it."""
    if asked.quiet or asked.json or not sys.stderr.isatty():
        yield lambda rows: None
        return
    from rich.console import Console  # noqa: PLC0415  # where it is shown
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{asked.source}", total=None)
        yield lambda rows: bar.update(task, description=f"{asked.source}: {rows:,} rows")


def introduce(asked: Asked, begun: TableRun, clock: Clock) -> None:
    """What is learnt from what, said aloud."""
    if asked.json or asked.quiet:
        return
    model = begun.model
    classes = f": {', '.join(map(str, model.classes))}" if model.classes else ""
    say(f"target: {model.target.text} ({model.task}{classes})")
    kinds: dict[str, list[str]] = {}
    for name, kind in model.kinds().items():
        kinds.setdefault(kind, []).append(name)
    for kind, names in kinds.items():
        some = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
        say(f"{kind}: {some}")
    clock.introduced = model.summary().note.splitlines()[0]
    say(f"model: {clock.introduced}\n")
    say(header(model.task))


def report(asked: Asked, begun: TableRun, clock: Clock) -> None:
    """How it goes."""
    values, since = begun.scores.values(), begun.since_last()
    if asked.json:
        say(as_json(begun.rows, clock.seconds, values), asked.quiet)
    else:
        say(line(begun.model.task, begun.rows, clock.rate(begun.rows), values, since), asked.quiet)


def check_target(begun: TableRun) -> None:
    """Raise if there was nothing to learn."""
    model = begun.model
    if not begun.has_scores:
        raise Failed(
            f"the target {model.target.text!r} must have a value in some row; got none in {begun.rows:,} rows."
        )
    if model.task in ("binary", "multiclass") and len(model.classes) < 2:
        raise Failed(
            f"the target {model.target.text!r} must have two values at least; "
            f"got {model.classes[0]!r} in all {begun.rows:,} rows."
        )
    if begun.scores.is_constant:
        raise Failed(f"the target {model.target.text!r} must vary; it is the same in all {begun.rows:,} rows.")


def keep(asked: Asked, begun: TableRun) -> None:
    """Save the model, with all that the run knows."""
    if asked.model is not None and not asked.test_only:
        begun.keep()
        save(begun.model, asked.model)


def told(asked: Asked, begun: TableRun, skipped: Skipped, clock: Clock, done: bool) -> None:
    """The end: scores, what was skipped, where the model is."""
    values = begun.scores.values() if begun.has_scores else {}
    left_out = {"skipped": skipped.count, "without_target": begun.without_target}
    if asked.json:
        say(as_json(begun.rows, clock.seconds, values, task=begun.model.task, final=True, **left_out), asked.quiet)
    elif not asked.quiet:
        say("")
        if values:
            say(scores_table(values, begun.scores.errors()))
        if begun.without_target:
            say(f"{begun.without_target:,} rows without a target were not learnt")
        if is_under_way(begun):
            first, *lines = begun.model.summary().note.splitlines()
            if clock.introduced not in ("", first):
                say(f"model by now: {first}")
            say("\n".join(lines[:3]))
    if skipped.count:
        warn(str(skipped))
    if done and asked.quiet:
        return
    if asked.model is not None and not asked.test_only:
        where = f"saved to {asked.model}" if done else f"stopped after {begun.rows:,} rows; saved to {asked.model}"
        hint = "" if done else "; go on with --resume"
        warn(where + hint)
    elif not done:
        warn(f"stopped after {begun.rows:,} rows; nothing was saved, as no --model was named")
