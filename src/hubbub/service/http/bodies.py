"""Bodies of requests, with limits on size, time and the memory of all of them together, and bodies of answers."""

import asyncio
from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from hubbub.service.base.api import ApiBody, encode
from hubbub.service.http.problems import Problem

SMALL = 16 << 10
"""Bytes up to which a body is not counted: there are at most as many such bodies as connections."""


class Bodies:
    """The sizes of unfinished bodies, oldest first. If they exceed `most` together, the oldest is dropped.

    `most`: the most bytes of all bodies together.
    """

    def __init__(self, most: int = 128 << 20) -> None:
        self.most = most
        self.total = 0
        self.sent_away = 0
        self._sizes: dict[asyncio.Timeout, int] = {}

    def grown(self, body: asyncio.Timeout, size: int) -> None:
        """Note the size of a body so far. The body is identified by the timeout that it is read under."""
        if size <= SMALL:
            return
        self.total += size - self._sizes.get(body, 0)
        self._sizes[body] = size
        while self.total > self.most and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            self.done(oldest)
            self.sent_away += 1
            oldest.reschedule(asyncio.get_running_loop().time())

    def done(self, body: asyncio.Timeout) -> None:
        """Note that a body has arrived, or will not."""
        self.total -= self._sizes.pop(body, 0)


MOST_BODY = 64 << 10
"""The most bytes of a query."""
PATIENCE = 60.0
"""Seconds that a body may take to arrive."""


async def read_body(request: Request, most: int, bodies: Bodies | None = None) -> bytes:
    """The whole body of a request. A body of more than `most` bytes is refused before it is read to its end.

    `bodies` counts it among all bodies that are still arriving.
    """
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise Problem(413, "too_large", f"at most {most:,} bytes", headers=[("Connection", "close")])
    chunks, size = [], 0
    try:
        async with asyncio.timeout(PATIENCE) as patience:
            async for chunk in request.stream():
                chunks.append(chunk)
                size += len(chunk)
                if bodies is not None:
                    bodies.grown(patience, size)
                if size > most:
                    raise Problem(413, "too_large", f"at most {most:,} bytes", headers=[("Connection", "close")])
    except TimeoutError:
        raise Problem(408, "too_slow", f"at most {PATIENCE:g} seconds", headers=[("Connection", "close")]) from None
    except ClientDisconnect:
        raise Problem(400, "malformed", "the request was not sent to its end") from None
    finally:
        if bodies is not None:
            bodies.done(patience)
    return b"".join(chunks)


Read = TypeVar("Read", bound=ApiBody)


async def read_json(request: Request, kind: type[Read], most: int = MOST_BODY) -> Read:
    """The body of a request. Unknown keys and invalid values are refused by name."""
    body = await read_body(request, most)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise Problem(400, "invalid_parameter", str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(400, "malformed", f"the body is no JSON: {error}") from None


class JsonAnswer(Response):
    """A response with a body of the API."""

    media_type = "application/json"

    def render(self, content: ApiBody) -> bytes:
        return encode(content)
