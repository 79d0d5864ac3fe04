"""The Open Inference Protocol, which KServe calls V2: what a model is, and predictions of columns sent as tensors."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from bayou import __version__
from bayou.estimators.table_model import CLASSES
from bayou.service.errors import Conflict, NotFound, Unusable
from bayou.service.http import PROBLEMS, answered, body_of, gives, hub_of, takes
from bayou.service.lane import Lane
from bayou.service.rows import Row
from bayou.service.schemas import About, Infer, Inferred, ModelReady, ServerAbout, Tensor
from bayou.service.served_model import name_of

NUMBERS = ("mean", "sd", "low", "high")
router = APIRouter(prefix="/v2", tags=["open inference protocol"], responses=PROBLEMS)


@router.get("", responses=gives(ServerAbout))
async def about_server(request: Request) -> Response:
    """What this server is."""
    return answered({"name": "bayou", "version": __version__, "extensions": []})


@router.get("/models/{name}", responses=gives(About))
async def about(name: str, request: Request) -> Response:
    """What a model takes, and what it says."""
    return answered(_about(hub_of(request).lane(name)))


@router.get("/models/{name}/ready", responses=gives(ModelReady))
async def ready(name: str, request: Request) -> Response:
    """Whether a model has learnt something, and so predicts."""
    lane = hub_of(request).lane(name)
    return answered({"name": name, "ready": lane.served.model.begun})


@router.get("/models/{name}/versions/{number}", responses=gives(About))
async def about_version(name: str, number: str, request: Request) -> Response:
    """The same of the version that is served, which is the latest."""
    return answered(_about(_of_version(request, name, number)))


@router.post("/models/{name}/infer", responses=gives(Inferred), openapi_extra=takes(Infer))
async def infer(name: str, request: Request) -> Response:
    """What is known of rows; no label is waited for."""
    return await _infer(hub_of(request).lane(name), request)


@router.post("/models/{name}/versions/{number}/infer", responses=gives(Inferred), openapi_extra=takes(Infer))
async def infer_version(name: str, number: str, request: Request) -> Response:
    """The same by the version that is served, which is the latest."""
    return await _infer(_of_version(request, name, number), request)


def _of_version(request: Request, name: str, number: str) -> Lane:
    lane = hub_of(request).lane(name)
    if number != str(lane.version):
        raise NotFound(f"the version of {name!r} that is served must be {lane.version}; got {number[:20]!r}.")
    return lane


def _about(lane: Lane) -> dict[str, Any]:
    model = lane.served.model
    kinds = model.kinds().items()
    said = [(one, "FP64", [-1]) for one in NUMBERS]
    if model.task in CLASSES:
        said = [("label", "BYTES", [-1]), ("probabilities", "FP64", [-1, len(model.classes)])]
    return {
        "name": lane.name,
        "versions": [str(lane.version)],
        "platform": "bayou",
        "inputs": [_told(column, "FP64" if kind == "number" else "BYTES", [-1]) for column, kind in kinds],
        "outputs": [_told(*one) for one in said] if model.layout is not None else [],
    }


async def _infer(lane: Lane, request: Request) -> Response:
    asked = await body_of(request, Infer)
    found = await hub_of(request).predict(lane.name, _rows(asked.inputs), issue=False)
    said = found.predictions
    told: dict[str, Any] = {"model_name": lane.name, "model_version": str(found.version)}
    if asked.id is not None:
        told["id"] = asked.id
    if said[0] is None:
        raise Conflict(f"{lane.name!r} must have learnt something before it predicts; it has not.")
    if "probabilities" in said[0]:
        classes = list(said[0]["probabilities"])
        shares = [one["probabilities"][label] for one in said for label in classes]
        about = {"parameters": {"classes": classes}, "data": shares}
        labels = [name_of(one["label"]) for one in said]
        told["outputs"] = [
            _told("label", "BYTES", [len(said)]) | {"data": labels},
            _told("probabilities", "FP64", [len(said), len(classes)]) | about,
        ]
    else:
        told["outputs"] = [_told(each, "FP64", [len(said)]) | {"data": [one[each] for one in said]} for each in NUMBERS]
    return answered(told)


def _told(name: str, datatype: str, shape: list[int]) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape}


def _rows(tensors: list[Tensor]) -> list[Row]:
    """A row per value of each tensor."""
    count = len(tensors[0].data)
    for one in tensors:
        if one.shape not in ([count], [count, 1]) or len(one.data) != count:
            raise Unusable(f"`shape` and `data` of {one.name[:40]!r} must be of {count} rows; got {one.shape}.")
    names = [one.name for one in tensors]
    if len(set(names)) < len(names):
        raise Unusable(f"each tensor must have a name of its own; got {names[:12]}.")
    return [dict(zip(names, values, strict=True)) for values in zip(*(one.data for one in tensors), strict=True)]
