"""The application: a store and its hub behind the routes, and a guard in front of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response

from bayou import __version__
from bayou.service import routes_models, routes_rows, routes_v2, schemas
from bayou.service.dashboard import routes as routes_dashboard
from bayou.service.http import add_problems, answered, gives
from bayou.service.hub import Hub
from bayou.service.metrics import Metrics
from bayou.service.schemas import Ready
from bayou.service.security import Guard
from bayou.service.sources.follower import Follow, Follower, begin
from bayou.service.store import Store

READ_BY_ROUTES = (
    schemas.NewModel,
    schemas.Predict,
    schemas.Learn,
    schemas.Feedback,
    schemas.KeepVersion,
    schemas.RollBack,
    schemas.Infer,
)


def create_app(
    store: Store,
    token: str | None = None,
    hosts: tuple[str, ...] | None = None,
    threads: int = 2,
    follow: Sequence[Follow] = (),
) -> Guard:
    """An ASGI application over one store, which is closed with it.

    With ``hosts``, requests for any other are refused; sources to ``follow`` are learnt while it runs.
    """
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.hub = hub = Hub(store, threads)
        metrics.known = hub.lanes
        await hub.start()
        followers: list[Follower] = []
        try:
            followers = await begin(hub, follow)
            yield
        finally:
            for follower in followers:
                await follower.stop()
            await hub.close()

    app = FastAPI(title="bayou", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.metrics, app.state.is_ending = metrics, lambda: False
    add_problems(app)
    app.include_router(routes_rows.router)
    app.include_router(routes_models.router)
    app.include_router(routes_v2.router)
    app.include_router(routes_dashboard.router)

    @app.get("/v2/health/live", responses=gives(Ready), tags=["health"])
    async def live(request: Request) -> Response:
        """Whether the server is there."""
        return answered({"live": True, "ready": request.app.state.hub.ready})

    @app.get("/v2/health/ready", responses=gives(Ready) | {503: {"model": Ready}}, tags=["health"])
    async def ready(request: Request) -> Response:
        """Whether it takes requests."""
        is_ready = request.app.state.hub.ready
        return answered({"live": True, "ready": is_ready}, 200 if is_ready else 503)

    @app.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}}, tags=["health"])
    async def told(request: Request) -> Response:
        """For Prometheus."""
        return Response(await metrics.page(request.app.state.hub), media_type=metrics.media_type)

    app.openapi = lambda: _openapi(app, token is not None)  # type: ignore[method-assign]
    return Guard(app, token, hosts, metrics.seen)


def _openapi(app: FastAPI, has_token: bool) -> dict[str, Any]:
    """With what routes read themselves, and the token."""
    if app.openapi_schema is None:
        told = FastAPI.openapi(app)
        parts = told["components"]["schemas"]
        for kind in READ_BY_ROUTES:
            own = kind.model_json_schema(ref_template="#/components/schemas/{model}")
            parts |= own.pop("$defs", {}) | {kind.__name__: own}
        if has_token:
            told["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            told["security"] = [{"token": []}]
    return app.openapi_schema or {}
