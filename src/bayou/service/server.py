"""``bayou serve``: the application behind uvicorn, on this machine unless told otherwise."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from bayou.errors import BayouError
from bayou.service.app import create_app
from bayou.service.patience import be_quick
from bayou.service.security import check_token, is_loopback
from bayou.service.sources.follower import Follow, check_asked
from bayou.service.store import Store

LOCAL = ("127.0.0.1", "localhost", "::1")


def serve(
    store: str,
    host: str = "127.0.0.1",
    port: int = 8000,
    sync: str = "normal",
    token: str | None = None,
    follow: Sequence[Follow] = (),
) -> None:
    """Serve until stopped."""
    token = check_token(token, host)
    if not Path(store).resolve().parent.is_dir():
        raise BayouError(f"the folder of the store must be there; got {store}.")
    hosts = (*LOCAL, host) if is_loopback(host) else None
    file = Store(store, sync)
    check_asked(follow, {model.name for model in file.models()})
    app = create_app(file, token, hosts, follow=follow)
    be_quick()
    gc.collect()
    gc.freeze()  # what is loaded stays: to look through all of it takes a tenth of a second, in which nobody answers
    config = uvicorn.Config(
        app, host, port, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=5
    )
    server = uvicorn.Server(config)
    app.app.state.is_ending = lambda: server.should_exit
    server.run()
    if not server.started:
        raise BayouError(f"the server could not begin at {host}:{port} with the store {store}; see above.")
