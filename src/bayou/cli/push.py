"""``bayou push``: a file, part by part, to a server that learns it."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import typer

from bayou.cli.errors import Failed
from bayou.cli.shown import warn
from bayou.client import Client, Model, ServerError
from bayou.estimators.table_target import AUTO, TASKS
from bayou.streams import Skipped, open_tables

SHOWN_EVERY = 1.0  # seconds
PATIENCE = 10.0  # seconds, with a server that has just answered
NO_ANSWER = 0  # where it is not known what was learnt
FORMATS = ("csv", "tsv", "parquet", "ipc", "json")  # of tables


class Asked(NamedTuple):
    """What is to be sent, and to which model; what that learns, if it is not there yet."""

    source: str
    model: str
    target: str | None
    task: str
    rows: int
    format: str | None
    header: tuple[str, ...] | None
    on_error: str
    quiet: bool


class Sent(NamedTuple):
    """Rows that were sent, those that were learnt, and all that the model has learnt by then."""

    sent: int = 0
    learnt: int = 0
    examples: int = 0
    ignored: tuple[str, ...] = ()


def run(asked: Asked, to: str, token_file: str | None) -> None:
    """Send all rows; each part has a key made of its place and its rows, so that what was sent before counts once."""
    if not asked.model:
        raise Failed("name the model with --model.")
    if asked.format not in (None, *FORMATS):
        raise Failed(f"--format must be one of {', '.join(FORMATS)}; got {asked.format!r}.")
    if asked.task not in (AUTO, *TASKS):
        raise Failed(f"--task must be one of {', '.join((AUTO, *TASKS))}; got {asked.task!r}.")
    token = os.environ.get("BAYOU_TOKEN") if token_file is None else Path(token_file).read_text().strip()
    skipped = Skipped()
    care: dict[str, Any] = {"on_error": asked.on_error, "skipped": skipped, "names": asked.header}
    found = open_tables(asked.source, asked.format, chunk_rows=asked.rows, **care)
    if found.format not in FORMATS:
        raise Failed(f"rows of {found.format} cannot be pushed; only tables can: {', '.join(FORMATS)}.")
    with closing(Client(to, token or None)) as client:
        target, is_new = _ready(client, asked)
        try:
            done = _send(client.model(asked.model), asked, found.rows)
            if done.sent and not done.learnt:
                raise Failed(f"rows must have the target {target!r}; of {done.sent:,} that were sent none has one.")
        except Exception as error:
            if is_new and not (isinstance(error, ServerError) and error.status == NO_ANSWER):
                _take_back(to, token, asked.model)
            raise
    if skipped.count:
        warn(str(skipped))
    if done.ignored:
        warn(f"columns that {asked.model} does not know were left out: {', '.join(done.ignored)}.")
    if not asked.quiet:
        told = f"{done.sent:,} rows were sent, {done.learnt:,} with a target"
        typer.echo(f"{told}; {asked.model} has learnt {done.examples:,} by then.")


def _ready(client: Client, asked: Asked) -> tuple[str | None, bool]:
    """What the model learns, if that is known, and whether it was made for this."""
    known = next((one for one in client.models() if one["name"] == asked.model), None)
    if known is None:
        if asked.target is not None:
            client.create(asked.model, asked.target, task=asked.task)
        return asked.target, asked.target is not None
    target, tasks = str(known["settings"]["target"]), {known["settings"]["task"], known["task"]}
    if asked.target is not None and asked.target.strip() != target:
        raise Failed(f"the target of {asked.model}, which is there, must be {target!r}; got --target {asked.target!r}.")
    if asked.task != AUTO and asked.task not in tasks:
        raise Failed(f"the task of {asked.model}, which is there, must be {known['task']}; got --task {asked.task}.")
    return target, False


def _take_back(to: str, token: str | None, name: str) -> None:
    """Delete a model that was made for nothing: of what was sent it has learnt none."""
    with closing(Client(to, token or None, timeout=PATIENCE, tries=1)) as client, suppress(ServerError):
        if any(one["name"] == name and not one["examples"] for one in client.models()):
            client.model(name).delete()


def _send(model: Model, asked: Asked, tables: Iterable[Any]) -> Sent:
    done, shown = Sent(), time.monotonic()
    for table in tables:
        for start in range(0, len(table), asked.rows):
            part = [_plain(row) for row in table.slice(start, asked.rows).iter_rows(named=True)]
            try:
                told = model.learn(part, _key(asked.source, done.sent, part))
            except ServerError as error:
                raise ServerError(error.status, f"after {done.sent:,} rows: {error}") from None
            ignored = tuple(dict.fromkeys((*done.ignored, *told.ignored_columns)))
            done = Sent(done.sent + len(part), done.learnt + told.learnt, told.examples, ignored)
            if not asked.quiet and time.monotonic() - shown > SHOWN_EVERY:
                typer.echo(f"{done.sent:,} rows", err=True)
                shown = time.monotonic()
    return done


def _key(source: str, start: int, part: list[dict[str, Any]]) -> str:
    told = json.dumps([Path(source).name, start, part]).encode()
    return f"push-{start}-{hashlib.sha256(told).hexdigest()[:32]}"


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """As JSON has it: dates as text, and nothing for what is no number."""
    return {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
