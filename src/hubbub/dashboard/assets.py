"""The files that pages refer to: read once, under addresses that change when they do."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

NAMES = {
    "style.css": "text/css",
    "live.js": "text/javascript",
    "charts.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "uplot/uPlot.iife.min.js": "text/javascript",
    "uplot/uPlot.min.css": "text/css",
    "uplot/LICENSE": "text/plain",
}
_FOR_GOOD = "public, max-age=31536000, immutable"


class _Asset(NamedTuple):
    body: bytes
    address: str


def _load() -> dict[str, _Asset]:
    assets = {}
    for name in NAMES:
        body = files("hubbub.dashboard").joinpath("static", name).read_bytes()
        assets[name] = _Asset(body, f"/static/{hashlib.sha256(body).hexdigest()[:12]}/{name}")
    return assets


_ASSETS = _load()


def address(name: str) -> str:
    """Where a file is."""
    return _ASSETS[name].address


def asset_route() -> Route:
    """The route that serves them."""

    async def asset(request: Request) -> Response:
        content = _ASSETS.get(request.path_params["name"])
        if content is None or request.url.path != content.address:
            return PlainTextResponse("There is nothing here.", 404)
        headers = {"Cache-Control": _FOR_GOOD, "X-Content-Type-Options": "nosniff"}
        return Response(content.body, headers=headers, media_type=NAMES[request.path_params["name"]])

    return Route("/static/{digest}/{name:path}", asset)
