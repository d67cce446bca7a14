"""The ASGI application, and running a collector on sockets until a signal."""

import asyncio
import logging
import math
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from importlib.util import find_spec

import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from hubbub.service.base.limits import ConnectionLimits, RefusedRequest
from hubbub.service.base.logs import Logged, log
from hubbub.service.collector.collector import Collector
from hubbub.service.http.guard import PRICE, Guard, Senders
from hubbub.service.http.guarded_http import guarded
from hubbub.service.http.key_folder import KeyFolder
from hubbub.service.http.metrics import metrics_app
from hubbub.service.http.problems import Tokens, handlers, problem_of
from hubbub.service.http.queries import Queries
from hubbub.service.http.reports import PATH, ReportsRoute, ShuffledRoute
from hubbub.service.http.service import Service
from hubbub.service.webhooks.config import Webhook

__all__ = ["KeyFolder", "bind", "run"]


class LimitedBySender:
    """An ASGI application that refuses the requests of senders beyond their limit.

    Example:
        >>> import asyncio
        >>> import httpx
        >>> from hubbub.collection import ManualClock
        >>> from hubbub.service.base.limits import SenderLimits
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


def create_app(service: Service, tokens: Tokens, *, routes: Sequence[BaseRoute] = ()) -> ASGIApp:
    """The ASGI application of a service.

    `service`: the service; it starts and stops with the application. `routes`: additional routes, such as those of a
    dashboard.
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


PATIENCE = 20
"""Seconds that requests in flight have to finish after a signal to stop."""


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
    except OSError:
        listening.close()
        raise
    return listening


class SignalFreeServer(uvicorn.Server):
    """A uvicorn server that does not handle signals: `run` does, for two servers in one event loop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def run(
    collector: Collector,
    tokens: Tokens,
    sockets: Sequence[socket.socket],
    *,
    routes: Callable[[Service], Sequence[BaseRoute]] = lambda service: (),
    on_ready: Callable[[], None] = lambda: None,
    webhooks: Sequence[Webhook] = (),
) -> int:
    """Serve until SIGTERM or SIGINT; then finish requests in flight, count waiting reports, and close the store.

    Parameters
    ----------
    collector, tokens
        The collector, and the tokens that may read results.
    sockets
        The socket of the API and, optionally, that of the metrics.
    routes
        Additional routes, such as those of a dashboard.
    on_ready
        Called once requests are answered.
    webhooks
        The receivers of alarm events.

    Returns the exit code: 0, or 1 if the collector failed. If a call of a question's code does not return, or the
    collector does not end within `LAST_SECONDS` of a signal, its watchdog ends the process with 1.

    Example:
        >>> import os
        >>> from hubbub.service.collector.collector import example_collector
        >>> with bind("127.0.0.1", 0) as listening:
        ...     run(example_collector(), Tokens([]), [listening], on_ready=lambda: os.kill(os.getpid(), signal.SIGTERM))
        0
    """
    with collector.watchdog, asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_run(collector, tokens, sockets, routes, on_ready, webhooks))


async def _run(
    collector: Collector,
    tokens: Tokens,
    sockets: Sequence[socket.socket],
    routes: Callable[[Service], Sequence[BaseRoute]],
    on_ready: Callable[[], None],
    webhooks: Sequence[Webhook],
) -> int:
    errors: list[BaseException] = []

    def stop() -> None:
        collector.watchdog.end_soon()
        service.drain()
        for server in servers:
            server.should_exit = True

    def fail(error: BaseException) -> None:
        errors.append(error)
        log("failed", level=logging.ERROR, error=type(error).__name__, detail=str(error))
        stop()

    service = Service(collector, fail, webhooks)
    apps: list[ASGIApp] = [create_app(service, tokens, routes=routes(service)), metrics_app(service)]
    guards = [service.guard, Guard(ConnectionLimits(connections=64))]
    servers = [
        SignalFreeServer(server_config(app, guard)) for app, guard, _ in zip(apps, guards, sockets, strict=False)
    ]
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    serving = [
        asyncio.ensure_future(server.serve(sockets=[listening]))
        for server, listening in zip(servers, sockets, strict=True)
    ]
    while not all(server.started for server in servers) and not any(task.done() for task in serving):
        await asyncio.sleep(0.01)
    if any(server.started for server in servers):
        await service.warm()  # "ready" means that kernels are compiled
    log("started", collections=list(collector.collections))
    on_ready()
    await asyncio.gather(*serving)
    # The last line of the log says why the collector ended.
    if errors:
        log("stopped", level=logging.ERROR, error=type(errors[0]).__name__, detail=str(errors[0]))
        return 1
    log("stopped")
    return 0


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The factory of uvloop's event loop if uvloop is installed, else None."""
    if find_spec("uvloop") is None:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    return factory


def server_config(app: ASGIApp, guard: Guard) -> uvicorn.Config:
    """The settings of a uvicorn server whose connections are limited by `guard`, without an access log."""
    return uvicorn.Config(
        app,
        http=guarded(guard),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=math.ceil(guard.limits.idle_seconds),
        timeout_graceful_shutdown=PATIENCE,
    )
