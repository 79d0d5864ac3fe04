"""What routes share: bodies in, answers out, and what goes wrong as a code and a sentence."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from bayou.errors import BayouError
from bayou.service.errors import Refused, TooLarge, Unusable
from bayou.service.hub import Hub
from bayou.service.json_parts import parsed
from bayou.service.limits import INLINE_BYTES, KEY, MOST_ROWS
from bayou.service.schemas import Problem
from bayou.service.security import TooLong

JSON = "application/json"
SAID = {
    400: "what was sent cannot be read",
    401: "the token is missing or wrong",
    404: "there is no such model, version or prediction",
    409: "what is asked does not fit what is there",
    413: "more than is taken at once",
    421: "the request is for another host",
    422: "what was sent can be read, and makes no sense",
    503: "too much waits already",
    507: "the store took nothing, so nothing was learnt",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem, "description": told} for code, told in SAID.items()
}
KEY_HEADER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A repetition of a request with the same key counts once, and gets the same answer.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
}
Kind = TypeVar("Kind", bound=BaseModel)


def hub_of(request: Request) -> Hub:
    """That of the server."""
    hub: Hub = request.app.state.hub
    return hub


def key_of(request: Request) -> str | None:
    """What makes repetitions of a request count once."""
    key = request.headers.get("idempotency-key")
    if key is not None and not KEY.fullmatch(key):
        raise Unusable("`Idempotency-Key` must be 1 to 200 printable letters without blanks.")
    return key


async def body_of(request: Request, kind: type[Kind]) -> Kind:
    """What was sent, if it is what is asked for."""
    body = await request.body()
    told = await asyncio.to_thread(parsed, body) if len(body) > INLINE_BYTES else orjson.loads(body)
    return kind.model_validate(told)


def answered(body: Any, status: int = 200) -> Response:
    """JSON, or bytes that are JSON already."""
    return Response(body if isinstance(body, bytes) else orjson.dumps(body), status, media_type=JSON)


def takes(kind: type[BaseModel], *more: str, key: bool = False) -> dict[str, Any]:
    """What OpenAPI is to tell of a body that a route reads itself."""
    content: dict[str, Any] = {JSON: {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}}
    content |= {name: {"schema": {"type": "string", "format": "binary"}} for name in more}
    told: dict[str, Any] = {"requestBody": {"required": True, "content": content}}
    return told | ({"parameters": [KEY_HEADER]} if key else {})


def gives(kind: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI is to tell of an answer."""
    return {200: {"model": kind, "description": kind.__doc__ or ""}}


def add_problems(app: FastAPI) -> None:
    """Have what goes wrong told in a sentence."""

    def tell(status: int, detail: str) -> Response:
        return answered({"detail": detail}, status)

    @app.exception_handler(BayouError)
    async def refused(_: Request, error: BayouError) -> Response:
        return tell(error.status if isinstance(error, Refused) else Unusable.status, str(error))

    @app.exception_handler(ValidationError)
    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: Any) -> Response:
        found = error.errors()
        status = TooLarge.status if any(_is_too_many(one) for one in found) else Unusable.status
        return tell(status, "; ".join(_sentence(one) for one in found[:3]) + ".")

    @app.exception_handler(orjson.JSONDecodeError)
    async def unreadable(_: Request, error: orjson.JSONDecodeError) -> Response:
        return tell(400, f"the body must be JSON; {error}.")

    @app.exception_handler(TooLong)
    async def too_long(_: Request, error: TooLong) -> Response:
        return tell(TooLarge.status, str(error))

    @app.exception_handler(ClientDisconnect)
    async def gone(_: Request, error: ClientDisconnect) -> Response:
        return tell(400, "the body must be sent to its end.")

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        detail = str(error.detail)
        if error.status_code in (404, 405):  # which say no more than that
            detail = f"there is no {request.method} {request.url.path[:80]}; /openapi.json tells what there is."
        answer = tell(error.status_code, detail)
        answer.headers.update(error.headers or {})
        return answer


def _is_too_many(one: Any) -> bool:
    return bool(one["type"] == "too_long" and one["ctx"].get("max_length") == MOST_ROWS)


def _sentence(one: Any) -> str:
    """What pydantic found, where, and what came."""
    where = ".".join(map(str, one["loc"]))[:80]
    said = str(one["msg"]).removeprefix("Value error, ").rstrip(".")
    if one["type"] == "extra_forbidden":
        said = "nothing by that name is known"
    elif one["type"] == "missing":
        said = "it must be there"
    elif one["type"] == "model_type":
        said = f"it must be an object; got {json_kind(one['input'])}"
    elif one["type"] != "value_error":
        said = f"{said}; got {_shortly(one['input'])}"
    return f"`{where}`: {said}" if where else said[0].lower() + said[1:]


def json_kind(value: Any) -> str:
    """What JSON calls it.

    >>> json_kind([]), json_kind(None), json_kind("x"), json_kind(1)
    ('an array', 'null', 'text', 'a number')
    """
    kinds = {dict: "an object", list: "an array", str: "text", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")


def _shortly(value: Any) -> str:
    """A value as JSON, if it is short."""
    if isinstance(value, dict | list):
        return f"{json_kind(value)} of {len(value)}"
    text = orjson.dumps(value, default=str).decode()
    return text if len(text) <= 60 else f"{text[:57]}..."
