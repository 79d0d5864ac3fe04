"""``bayou push``: a file, part by part, to a server that learns it."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import typer

from bayou.cli.errors import Failed
from bayou.cli.shown import warn
from bayou.client import Client, ServerError
from bayou.numerics.sparse_table import SparseTable
from bayou.streams import Skipped, open_tables

SHOWN_EVERY = 1.0  # seconds


def run(
    source: str,
    to: str,
    model: str,
    target: str | None,
    rows: int,
    token_file: str | None,
    format: str | None,
    header: tuple[str, ...] | None,
    on_error: str,
    quiet: bool,
) -> None:
    """Send all rows; each part has a key made of its place and its rows, so that what was sent before counts once."""
    if not model:
        raise Failed("name the model with --model.")
    token = os.environ.get("BAYOU_TOKEN") if token_file is None else Path(token_file).read_text().strip()
    skipped = Skipped()
    with closing(Client(to, token or None)) as client:
        sent, learnt, examples = _send(client, source, model, target, rows, (format, header, on_error), skipped, quiet)
    if skipped.count:
        warn(str(skipped))
    if not quiet:
        typer.echo(f"{sent:,} rows were sent, {learnt:,} with a target; {model} has learnt {examples:,} by then.")


def _send(
    client: Client,
    source: str,
    model: str,
    target: str | None,
    rows: int,
    read: tuple[str | None, tuple[str, ...] | None, str],
    skipped: Skipped,
    quiet: bool,
) -> tuple[int, int, int]:
    """Rows that were sent, those that were learnt, and all that the model has learnt by then."""
    format, header, on_error = read
    if target is not None and model not in {one["name"] for one in client.models()}:
        client.create(model, target)
    known, sent, learnt, examples, shown = client.model(model), 0, 0, 0, time.monotonic()
    for table in open_tables(source, format, chunk_rows=rows, on_error=on_error, skipped=skipped, names=header).rows:
        if isinstance(table, SparseTable):
            raise Failed("rows of libsvm and VW's text cannot be pushed; only tables can.")
        for start in range(0, len(table), rows):
            part = [_plain(row) for row in table.slice(start, rows).iter_rows(named=True)]
            try:
                told = known.learn(part, _key(source, sent, part))
            except ServerError as error:
                raise Failed(f"after {sent:,} rows: {error}") from None
            sent, learnt, examples = sent + len(part), learnt + told.learnt, told.examples
            if not quiet and time.monotonic() - shown > SHOWN_EVERY:
                typer.echo(f"{sent:,} rows", err=True)
                shown = time.monotonic()
    return sent, learnt, examples


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
