"""The application: the ingest route bare, all others by Starlette."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from hubbub.service.auth import Tokens
from hubbub.service.logs import Logged
from hubbub.service.problems import handlers
from hubbub.service.queries import Queries
from hubbub.service.reports import PATH, ReportsRoute
from hubbub.service.sender_limit import LimitedBySender
from hubbub.service.service import Service
from hubbub.service.shuffled_route import ShuffledRoute


def create_app(service: Service, tokens: Tokens, *, routes: Sequence[BaseRoute] = ()) -> ASGIApp:
    """The ASGI application of a service.

    Parameters
    ----------
    service
        What is served; it starts and stops with the application.
    tokens
        Who may read results.
    routes
        More routes, such as a dashboard's.

    Example:
        >>> import asyncio
        >>> import httpx
        >>> from hubbub.service.example import example_collector
        >>> app = create_app(Service(example_collector()), Tokens([]))
        >>> async def ask(path):
        ...     async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
        ...         return (await client.get(path)).json()
        >>> asyncio.run(ask("/v1/collections"))["collections"][0]["name"]
        'themes'
    """

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    shuffled = ShuffledRoute(service, tokens)
    pages = Starlette(
        routes=[*Queries(service, tokens).routes(), shuffled.route(), shuffled.checks_route(), *routes],
        exception_handlers=handlers(),
        lifespan=lifespan,
    )
    rest: ASGIApp = LimitedBySender(Logged(pages), service.senders)  # a flood writes no log
    reports = ReportsRoute(service)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        hot = scope["type"] == "http" and scope["path"] == PATH
        await (reports if hot else rest)(scope, receive, send)

    return app
