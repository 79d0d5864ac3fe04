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
    on_error: str,
) -> None:
    """Serve the models of a store."""
    try:
        from bayou.service.server import serve  # noqa: PLC0415  # an extra
        from bayou.service.sources.follower import Follow  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise Failed(f"`bayou serve` needs bayou[serve]; {error.name} is not installed.") from None
    sources = [Follow.of(one, target, on_error) for one in follow]
    token = os.environ.get("BAYOU_TOKEN") if token_file is None else Path(token_file).read_text().strip()
    typer.echo(f"bayou: serving {store} at http://{host}:{port}; Ctrl-C ends it.", err=True)
    serve(store, host, port, sync, token or None, sources)
