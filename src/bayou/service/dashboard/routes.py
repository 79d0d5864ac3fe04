"""``GET /`` and ``GET /dashboard/...``: pages, styles and scripts. They hold no data, and so need no token."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib import metadata, resources
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from bayou.service.errors import NotFound

CHARTS = "uplot-python"  # the package that brings uPlot
OF_CHARTS = {"uPlot.js": "uplot/static/uPlot.iife.js", "uPlot.css": "uplot/static/uPlot.min.css"}
OWN = ("dashboard.css", "asking.js", "charts.js", "index.js", "model.js", "numbers.js")
KINDS = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
router = APIRouter(include_in_schema=False)


class File(NamedTuple):
    """A file as it is sent: browsers keep it, and ask whether it is still the same."""

    plain: bytes
    packed: bytes
    tag: str


@cache
def file_of(name: str) -> File:
    """One of the dashboard's own, or of the package that draws charts."""
    if name in OF_CHARTS:
        try:
            data = metadata.distribution(CHARTS).locate_file(OF_CHARTS[name]).read_bytes()  # type: ignore[attr-defined]
        except (metadata.PackageNotFoundError, OSError):
            raise NotFound(f"{name} must come from {CHARTS}, which is not installed; see bayou[serve].") from None
    else:
        data = resources.files(__package__).joinpath(name).read_bytes()
    return File(data, gzip.compress(data, 9, mtime=0), f'"{hashlib.sha256(data).hexdigest()[:20]}"')


def sent(name: str, request: Request) -> Response:
    """A file, or that it has not changed."""
    file, headers = file_of(name), {"cache-control": "no-cache", "vary": "Accept-Encoding"}
    headers["etag"] = file.tag
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    packed = "gzip" in request.headers.get("accept-encoding", "")
    if packed:
        headers["content-encoding"] = "gzip"
    return Response(file.packed if packed else file.plain, 200, headers, KINDS[name.rsplit(".", 1)[1]])


@router.get("/")
async def index(request: Request) -> Response:
    """All models."""
    return sent("index.html", request)


@router.get("/dashboard/models/{name}")
async def model(name: str, request: Request) -> Response:
    """One model: the page finds its name in its address."""
    return sent("model.html", request)


@router.get("/dashboard/{name}")
async def static(name: str, request: Request) -> Response:
    """Styles and scripts."""
    if name not in OWN and name not in OF_CHARTS:
        raise NotFound(f"there must be a file of the dashboard by that name; got {name[:40]!r}.")
    return sent(name, request)
