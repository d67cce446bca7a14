"""Serving: sockets, signals, and an orderly end."""

from __future__ import annotations

import asyncio
import logging
import math
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec

import uvicorn
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from hubbub.service.app import create_app
from hubbub.service.auth import Tokens
from hubbub.service.collector import Collector
from hubbub.service.guard import Guard
from hubbub.service.guarded_http import guarded
from hubbub.service.key_folder import KeyFolder
from hubbub.service.limits import ConnectionLimits
from hubbub.service.logs import log
from hubbub.service.metrics import metrics_app
from hubbub.service.service import Service
from hubbub.service.webhooks.config import Webhook

__all__ = ["KeyFolder", "bind", "run"]

PATIENCE = 20
"""Seconds that requests in flight have to end once the collector is told to stop."""


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one.

    Example:
        >>> with bind("127.0.0.1", 0) as listening:
        ...     listening.getsockname()[1] > 0
        True
    """
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
    """A server that leaves signals to whoever runs it: there are two in one loop."""

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
    """Serve until SIGTERM or SIGINT, then let requests in flight end, count what is waiting, and close the store.

    Parameters
    ----------
    collector, tokens
        What is served, and who may read results.
    sockets
        One to listen on; a second one, if given, has the metrics.
    routes
        More routes, such as a dashboard's.
    on_ready
        Called once requests are answered.
    webhooks
        Who is told of alarms.

    Returns the exit code: 0, or 1 if the collector could go no further.

    Example:
        >>> import os
        >>> from hubbub.service.example import example_collector
        >>> with bind("127.0.0.1", 0) as listening:
        ...     run(example_collector(), Tokens([]), [listening], on_ready=lambda: os.kill(os.getpid(), signal.SIGTERM))
        0
    """
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_run(collector, tokens, sockets, routes, on_ready, webhooks))


async def _run(
    collector: Collector,
    tokens: Tokens,
    sockets: Sequence[socket.socket],
    routes: Callable[[Service], Sequence[BaseRoute]],
    on_ready: Callable[[], None],
    webhooks: Sequence[Webhook],
) -> int:
    failed: list[BaseException] = []

    def stop() -> None:
        service.drain()
        for server in servers:
            server.should_exit = True

    def fail(error: BaseException) -> None:
        failed.append(error)
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
        await service.warm()  # whoever is told that this is ready does not wait for a compiler
    log("started", collections=list(collector.collections))
    on_ready()
    await asyncio.gather(*serving)
    # The last line: whoever reads it need not look further for why this ended.
    if failed:
        log("stopped", level=logging.ERROR, error=type(failed[0]).__name__, detail=str(failed[0]))
        return 1
    log("stopped")
    return 0


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The faster event loop, where it is installed.

    Example:
        >>> loop_factory() is None or callable(loop_factory())
        True
    """
    if find_spec("uvloop") is None:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    return factory


def server_config(app: ASGIApp, guard: Guard) -> uvicorn.Config:
    """The settings of a server whose connections a guard watches, and which writes no log of requests.

    Example:
        >>> from hubbub.service.metrics import metrics_app
        >>> from hubbub.service.example import example_collector
        >>> server_config(metrics_app(Service(example_collector())), Guard()).access_log
        False
    """
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
