"""Rows in, predictions out, labels back: ``POST /v1/models/{name}:verb``, as KServe spells it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from bayou.errors import BayouError
from bayou.service.errors import TooLarge, Unusable
from bayou.service.http import PROBLEMS, answered, body_of, gives, hub_of, key_of, takes
from bayou.service.hub import Hub
from bayou.service.limits import MOST_BYTES, PART
from bayou.service.rows import Row
from bayou.service.schemas import Feedback, Learn, Learnt, Predict, PredictedLearnt, Predictions, Streamed
from bayou.service.served_model import ServedModel

NDJSON = "application/x-ndjson"
router = APIRouter(prefix="/v1/models", tags=["rows"], responses=PROBLEMS)


@router.post("/{name}:predict", responses=gives(Predictions), openapi_extra=takes(Predict))
async def predict(name: str, request: Request) -> Response:
    """What is known of rows: probabilities of classes, or mean and interval; with ids, by which labels come later."""
    asked = await body_of(request, Predict)
    if asked.intervals:
        if asked.issue_id:
            raise Unusable("`intervals` must come with `issue_id` false; got true.")
        hub = hub_of(request)
        version = hub.lane(name).version
        return answered(await hub.look(name, lambda served: _with_intervals(served, asked.instances, version)))
    found = await hub_of(request).predict(name, asked.instances, asked.issue_id)
    told: dict[str, Any] = {"predictions": found.predictions, "version": found.version}
    if found.ids is not None:
        told["ids"] = found.ids
    if found.ignored:
        told["ignored_columns"] = found.ignored
    return answered(told)


def _with_intervals(served: ServedModel, rows: list[Row], version: int) -> bytes:
    return orjson.dumps({"predictions": served.predict_with_intervals(rows), "version": version})


@router.post(
    "/{name}:learn",
    responses={200: {"model": Learnt | Streamed, "description": "Rows that were learnt, and are stored."}},
    openapi_extra=takes(Learn, NDJSON, key=True),
)
async def learn(name: str, request: Request) -> Response:
    """Learn rows with their targets; as NDJSON, a row per line, a stream of any length."""
    if request.headers.get("content-type", "").split(";")[0].strip() == NDJSON:
        return await _learn_stream(hub_of(request), name, request, key_of(request))
    asked = await body_of(request, Learn)
    told = await hub_of(request).learn(name, asked.instances, key=key_of(request))
    return answered(told.answer)


@router.post("/{name}:predict_learn", responses=gives(PredictedLearnt), openapi_extra=takes(Learn, key=True))
async def predict_learn(name: str, request: Request) -> Response:
    """Predict rows, then learn them: what was said of each row before its target was used."""
    asked = await body_of(request, Learn)
    told = await hub_of(request).predict_learn(name, asked.instances, key=key_of(request))
    return answered(told.answer)


@router.post("/{name}:feedback", responses=gives(Learnt), openapi_extra=takes(Feedback, key=True))
async def feedback(name: str, request: Request) -> Response:
    """Learn labels of predictions by their ids, any time later, as of when they were predicted."""
    asked = await body_of(request, Feedback)
    labels = [(one.id, one.label) for one in asked.labels]
    told = await hub_of(request).feedback(name, labels, key_of(request))
    if told.applied is not None:
        request.app.state.metrics.labelled(name, told.applied.delays)
    return answered(told.answer)


async def _learn_stream(hub: Hub, name: str, request: Request, key: str | None) -> Response:
    """Learn lines in parts: each is stored whole or not at all, and a part that cannot be learnt ends the stream."""
    hub.lane(name)
    told: dict[str, Any] = {"learnt": 0, "lines": 0, "parts": 0}
    status = 200
    try:
        async for rows, lines in _parts(request):
            each = None if key is None else f"{key}/{told['parts']}"
            part = await hub.learn(name, rows, key=each)
            told["learnt"] += orjson.loads(part.answer)["learnt"]
            told["lines"] += lines
            told["parts"] += 1
    except BayouError as error:
        status = getattr(error, "status", Unusable.status)
        told["error"] = told["detail"] = f"after line {told['lines']}: {error}"
    return answered(told, status)


async def _parts(request: Request) -> AsyncIterator[tuple[list[Any], int]]:
    """Rows of so many lines at a time, fewer where they are long, and how many lines they were.

    The same stream is always cut at the same lines: its key counts each part once.
    """
    rows, lines, size, before = list[Any](), 0, 0, 0
    async for line in _lines(request):
        lines, size = lines + 1, size + len(line)
        if line.strip():
            rows.append(_row(line, before + lines))
        if len(rows) == PART or (rows and size > MOST_BYTES):
            yield rows, lines
            rows, lines, size, before = [], 0, 0, before + lines
    if rows:
        yield rows, lines


async def _lines(request: Request) -> AsyncIterator[bytes]:
    """Lines of a body, the last of which needs no end."""
    pieces, length = list[bytes](), 0  # of a line that has not ended
    async for chunk in request.stream():
        if b"\n" in chunk:
            *whole, rest = b"".join([*pieces, chunk]).split(b"\n")
            for line in whole:
                yield line
            pieces, length = [rest], len(rest)
        else:
            pieces.append(chunk)
            length += len(chunk)
        if length > MOST_BYTES:
            raise TooLarge(f"a line must have at most {MOST_BYTES} bytes.")
    if length:
        yield b"".join(pieces)


def _row(line: bytes, number: int) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise Unusable(f"line {number} must be JSON; {error}.") from None
