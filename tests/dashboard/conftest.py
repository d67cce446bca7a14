"""What the tests of the pages share: a collector with a month of answers, its pages, and a browser."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from runpy import run_path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import uvicorn
from starlette.applications import Starlette

from hubbub.dashboard.app import ServiceReader, dashboard
from hubbub.dashboard.pages import routes
from hubbub.service.app import create_app
from hubbub.service.auth import Tokens
from hubbub.service.collector import Collector
from hubbub.service.server import bind
from hubbub.service.service import Service

if TYPE_CHECKING:
    from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).parent))  # the tests share a fleet of devices

TOKEN = "a token for the tests of pages"
DAY = 86400


class Answered(NamedTuple):
    """What a page answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


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

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    given = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answered(sent[0]["status"], given, b"".join(message.get("body", b"") for message in sent[1:]))


@pytest.fixture(scope="session")
def collector() -> Collector:
    """A month of emoji and of telemetry, and seven hours of the day after; some reports were turned away."""
    from fleet import emoji_fleet, serve, telemetry_fleet, trouble

    fleets = [emoji_fleet(12_000), telemetry_fleet(4_000)]
    made = serve(fleets, start=fleets[0].collection.opens(100), seconds=30 * DAY, then=7 * 3600)
    for fleet in fleets:
        fleet.answer(made)
    trouble(made, fleets[0])
    return made


@pytest.fixture(scope="session")
def get(collector: Collector) -> Callable[[str], Answered]:
    """A page of the collector, for everyone."""
    app = Starlette(routes=routes(ServiceReader(Service(collector))))
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


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real browser, without a window."""
    from playwright.sync_api import sync_playwright

    found = run_path(str(Path(__file__).parents[1] / "js" / "chromium.py"))
    program, environment = found["chromium"]()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], env=environment)
        yield browser
        browser.close()
