"""``bayou serve``: what the options mean."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from bayou.cli.errors import Failed


def run(
    store: str,
    host: str,
    port: int,
    sync: str,
    token_file: str | None,
    follow: list[str],
    target: str | None,
    task: str,
    on_error: str,
) -> None:
    """Serve the models of a store."""
    try:
        from bayou.service.server import serve  # noqa: PLC0415  # an extra
        from bayou.service.sources.follower import Follow, check_options  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise Failed(f"`bayou serve` needs bayou[serve]; {error.name} is not installed.") from None
    check_options(task, on_error)  # also where nothing is followed
    sources = [Follow.of(one, target, on_error, task) for one in follow]
    token = os.environ.get("BAYOU_TOKEN") if token_file is None else Path(token_file).read_text().strip()

    def begun(url: str) -> None:
        typer.echo(f"bayou: serving {store} at {url}; Ctrl-C ends it.", err=True)

    serve(store, host, port, sync, token or None, sources, begun)
