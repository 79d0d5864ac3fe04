"""Models: made, listed, told of, deleted; their files, versions, status, and events as it changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import StreamingResponse

from bayou.service.errors import Busy, NotFound, Unusable
from bayou.service.http import PROBLEMS, answered, body_of, gives, hub_of, key_of, takes
from bayou.service.hub import Hub
from bayou.service.lane import Lane
from bayou.service.limits import MODEL_NAME, MOST_WATCHERS
from bayou.service.schemas import KeepVersion, Kept, Models, ModelTold, NewModel, RollBack, Versions

EVENTS_EVERY, BEAT_EVERY = 0.5, 15.0  # seconds between events, at least, and until a sign of life
FILE = "application/octet-stream"
A_FILE = {"content": {FILE: {"schema": {"type": "string", "format": "binary"}}}}
Number = Annotated[int, Path(ge=1, lt=2**53)]
router = APIRouter(prefix="/v1/models", tags=["models"], responses=PROBLEMS)


def told_of(lane: Lane) -> dict[str, Any]:
    """A model in a few lines."""
    served = lane.served
    return {
        "name": lane.name,
        "ready": served.model.layout is not None,
        "created": lane.created,
        "settings": served.settings.model_dump(),
        "task": served.model.task,
        "examples": served.model.n_rows,
        "version": lane.version,
        "pending": len(served.pending),
        "columns": served.model.kinds(),
        "classes": served.model.classes,
    }


@router.get("", responses=gives(Models))
async def models(request: Request) -> Response:
    """All models."""
    lanes = hub_of(request).lanes
    return answered({"models": [told_of(lanes[name]) for name in sorted(lanes)]})


@router.post("", status_code=201, responses={201: {"model": ModelTold}}, openapi_extra=takes(NewModel))
async def create(request: Request) -> Response:
    """Make a model. With its columns it begins at once; without, by the first rows that it learns."""
    asked = await body_of(request, NewModel)
    return answered(told_of(await hub_of(request).create(asked.name, asked.settings)), 201)


@router.get("/{name}", responses=gives(ModelTold))
async def inspect(name: str, request: Request) -> Response:
    """One model."""
    return answered(told_of(hub_of(request).lane(name)))


@router.delete("/{name}", status_code=204)
async def delete(name: str, request: Request) -> Response:
    """Forget a model and all that it learnt."""
    await hub_of(request).delete(name)
    request.app.state.metrics.forget(name)
    return Response(status_code=204)


@router.get("/{name}/file", response_class=Response, responses={200: A_FILE})
async def export_file(name: str, request: Request) -> Response:
    """The model as a file, which `bayou.load` and the commands read."""
    data = await hub_of(request).look(name, lambda served: served.to_bytes())
    return Response(data, media_type=FILE)


@router.put(
    "/{name}/file",
    status_code=201,
    responses={201: {"model": ModelTold}},
    openapi_extra={"requestBody": {"required": True} | A_FILE},
)
async def import_file(name: str, request: Request) -> Response:
    """Make a model of a file. It is data: nothing in it is run."""
    if not MODEL_NAME.fullmatch(name):
        raise Unusable(f"the name of a model must match {MODEL_NAME.pattern}.")
    return answered(told_of(await hub_of(request).take_in(name, await request.body())), 201)


# --- versions


@router.get("/{name}/versions", responses=gives(Versions))
async def versions(name: str, request: Request) -> Response:
    """Versions that are kept, the latest first."""
    hub = hub_of(request)
    found = await asyncio.to_thread(hub.store.versions, hub.lane(name).id)
    return answered({"versions": [one._asdict() for one in found]})


@router.post("/{name}/versions", responses=gives(Kept), openapi_extra=takes(KeepVersion))
async def keep_version(name: str, request: Request) -> Response:
    """Keep the model as it is now."""
    asked = await body_of(request, KeepVersion) if await request.body() else KeepVersion()
    return answered((await hub_of(request).keep_version(name, asked.label)).answer)


@router.get("/{name}/versions/{number}/file", response_class=Response, responses={200: A_FILE})
async def version_file(name: str, number: Number, request: Request) -> Response:
    """A version as a model file."""
    hub = hub_of(request)
    data = await asyncio.to_thread(hub.store.state, hub.lane(name).id, number)
    if data is None:
        raise NotFound(f"there must be a version {number} of {name!r}; there is none.")
    return Response(data, media_type=FILE)


@router.post("/{name}:roll_back", responses=gives(Kept), openapi_extra=takes(RollBack, key=True))
async def roll_back(name: str, request: Request) -> Response:
    """Go on from an older version; what was learnt since stays among the versions."""
    asked = await body_of(request, RollBack)
    return answered((await hub_of(request).roll_back(name, asked.version, key_of(request))).answer)


# --- what a page shows


@router.get("/{name}/status", responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}})
async def status(name: str, request: Request) -> Response:
    """All that a page about the model shows: scores, learning curve, calibration, weights, drift."""
    return answered(await hub_of(request).status(name))


@router.get("/{name}/events", response_class=Response, responses={200: {"content": {"text/event-stream": {}}}})
async def events(name: str, request: Request) -> Response:
    """The status as server-sent events: at once, and then when it has changed, at most twice a second."""
    hub = hub_of(request)
    hub.lane(name)
    if hub.watchers >= MOST_WATCHERS:
        raise Busy(f"at most {MOST_WATCHERS} may watch at a time; try again later.")
    return StreamingResponse(_watch(hub, name, request), media_type="text/event-stream")


def _is_ending(request: Request) -> bool:
    """Whether who watches is to let go: a server waits for those who are still served."""
    return request.app.state.is_ending() or not hub_of(request).ready


async def _watch(hub: Hub, name: str, request: Request) -> AsyncIterator[bytes]:
    last: tuple[float, ...] | None = None
    silent = 0.0
    if hub.watchers >= MOST_WATCHERS:  # others came since it was looked
        return
    hub.watchers += 1
    try:
        while not _is_ending(request) and name in hub.lanes:
            lane = hub.lanes[name]
            now = (lane.id, lane.served.seq, lane.version, round(lane.rate.now(), 1))  # a rate that falls is told
            if now != last:
                try:
                    told = orjson.dumps(await hub.status(name))
                except (Busy, NotFound):
                    told = b""
                if told:
                    yield b"event: status\ndata: " + told + b"\n\n"
                    last, silent = now, 0.0
            elif silent >= BEAT_EVERY:
                yield b": still here\n\n"
                silent = 0.0
            await asyncio.sleep(EVENTS_EVERY)
            silent += EVENTS_EVERY
        if not _is_ending(request):
            yield b"event: deleted\ndata: {}\n\n"
    finally:
        hub.watchers -= 1
