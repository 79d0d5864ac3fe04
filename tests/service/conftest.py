"""A server in this process, asked as over the wire."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from bayou.service.app import create_app
from bayou.service.store import Store


@asynccontextmanager
async def asked(path, **options) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application over a store; the application ends with the block."""
    guard = create_app(Store(str(path), options.pop("sync", "normal")), **options)
    app = guard.app
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(guard, raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            client.app, client.hub = app, app.state.hub
            yield client


@pytest.fixture
def serving(tmp_path) -> Callable[..., AsyncIterator[httpx.AsyncClient]]:
    """`serving()` again and again is the same store, served anew."""
    return lambda **options: asked(tmp_path / "store.db", **options)
