"""Limits how often one sender may request pages and documents."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from hubbub.service.frames import RefusedRequest
from hubbub.service.problems import problem_of
from hubbub.service.senders import PRICE, Senders


class LimitedBySender:
    """An ASGI application that refuses the requests of senders beyond their limit.

    Example:
        >>> import asyncio
        >>> import httpx
        >>> from hubbub.collection import ManualClock
        >>> from hubbub.service.limits import SenderLimits
        >>> from starlette.responses import PlainTextResponse
        >>> senders = Senders(SenderLimits(rate=10.0, burst=50), ManualClock())
        >>> app = LimitedBySender(PlainTextResponse("hello"), senders)
        >>> transport = httpx.ASGITransport(app, client=("192.0.2.7", 1))
        >>> async def ask():
        ...     async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
        ...         return [(await client.get("/")).status_code for _ in range(2)]
        >>> asyncio.run(ask())
        [200, 429]
    """

    def __init__(self, app: ASGIApp, senders: Senders) -> None:
        self._app = app
        self._senders = senders

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http":
            sender = self._senders.name((scope.get("client") or ("",))[0], scope["headers"])
            try:
                self._senders.take(sender, PRICE)
            except RefusedRequest as refused:
                return await problem_of(refused).response()(scope, receive, send)
        return await self._app(scope, receive, send)
