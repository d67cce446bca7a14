"""The ASGI application: the route for reports is plain ASGI, all other routes are Starlette's."""

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
        The service; it starts and stops with the application.
    tokens
        The tokens that may read results.
    routes
        Additional routes, such as those of a dashboard.
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
    others: ASGIApp = LimitedBySender(Logged(pages), service.senders)  # refused requests are not logged
    reports = ReportsRoute(service)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        to_reports = scope["type"] == "http" and scope["path"] == PATH
        await (reports if to_reports else others)(scope, receive, send)

    return app
