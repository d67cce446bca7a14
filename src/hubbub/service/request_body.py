"""Reads the body of a request, with a limit on its size and its time."""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect, Request

from hubbub.service.bodies import Bodies
from hubbub.service.problems import Problem

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
