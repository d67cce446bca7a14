"""Requests to an application in this process, which is started and stopped as by a server."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx
from starlette.types import ASGIApp

_Made = TypeVar("_Made")


class Loopback:
    """A client of an application, without a network."""

    def __init__(self, app: ASGIApp, loop: asyncio.AbstractEventLoop) -> None:
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://collector")
        self._loop = loop

    def request(self, method: str, path: str, *, content: Any = None, headers: Any = None) -> httpx.Response:
        async def ask() -> httpx.Response:
            body = _stream(content) if hasattr(content, "__next__") else content
            return await self._client.request(method, path, content=body, headers=headers)

        return asyncio.run_coroutine_threadsafe(ask(), self._loop).result(60)

    def to(self, app: ASGIApp) -> "Loopback":
        """A client of another application, which needs no start."""
        return Loopback(app, self._loop)

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def run(self, made: Coroutine[Any, Any, _Made]) -> _Made:
        """What a coroutine returns, in the application's loop."""
        return asyncio.run_coroutine_threadsafe(made, self._loop).result(60)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.request("POST", path, **more)


async def _stream(chunks: Any) -> Any:
    for chunk in chunks:
        yield chunk


@contextmanager
def running(app: ASGIApp) -> Iterator[Loopback]:
    """The application, started."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    to_app: asyncio.Queue[Any] = asyncio.Queue()
    from_app: asyncio.Queue[Any] = asyncio.Queue()

    def call(made: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(made, loop).result(60)

    async def serve() -> None:
        await app({"type": "lifespan", "asgi": {"version": "3.0"}}, to_app.get, from_app.put)

    async def tell(kind: str) -> None:
        await to_app.put({"type": f"lifespan.{kind}"})
        answer = await from_app.get()
        assert answer["type"] == f"lifespan.{kind}.complete", answer

    serving = asyncio.run_coroutine_threadsafe(serve(), loop)
    try:
        call(tell("startup"))
        try:
            yield Loopback(app, loop)
        finally:
            call(tell("shutdown"))
            serving.result(60)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
