"""Asking for pages: straight from the application, or over a port."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import uvicorn
from starlette.applications import Starlette

from hubbub.dashboard.pages import dashboard, routes
from hubbub.dashboard.reader import Reader
from hubbub.service.collector.collector import Collector
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import bind, create_app
from hubbub.service.http.service import Service
from tests.dashboard.pages_outline import Outline

TOKEN = "a-token-for-the-tests-of-pages"


class Answered(NamedTuple):
    """What a page answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def page(self) -> Outline:
        return Outline(self.text)


Get: TypeAlias = Callable[[str], Answered]


def ask(app: Any, path: str, *, headers: dict[str, str] | None = None) -> Answered:
    """One GET request, straight to the application."""
    at, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": at,
        "raw_path": at.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
        "server": ("localhost", 80),
        "client": ("localhost", 1),
    }
    sent: list[dict[str, Any]] = []
    received = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        return next(received, {"type": "http.disconnect"})  # an endless answer ends, too

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    decoded = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answered(sent[0]["status"], decoded, b"".join(message.get("body", b"") for message in sent[1:]))


def pages_of(collector: Collector) -> Get:
    """A page of a collector, for everyone."""
    app = Starlette(routes=routes(Reader(Service(collector))))
    return lambda path: ask(app, path)


class Site:
    """A service on a port of its own."""

    def __init__(self, collector: Collector, tokens: Tokens | None) -> None:
        service = Service(collector)
        app = create_app(service, Tokens([TOKEN]), routes=dashboard(tokens)(service))
        self._socket = bind("127.0.0.1", 0)
        self.port: int = self._socket.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=2)
        self._service = service
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._service.drain()
        self._server.should_exit = True
        self._thread.join(20)
        self._socket.close()
