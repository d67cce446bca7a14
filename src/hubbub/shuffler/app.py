"""A shuffler as a program, and its HTTP routes.

Neither the address nor the time of a request is logged. For rate limits, senders are told apart by a keyed hash of
their address, which is in memory alone.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hubbub.client.upload import HttpTransport, Unreachable
from hubbub.collection import Clock, SystemClock
from hubbub.collection.shuffle_route import MOST_BATCH_BYTES
from hubbub.core.errors import HubbubError
from hubbub.core.spec import Json
from hubbub.service.base.limits import ConnectionLimits, Receipt, SenderLimits
from hubbub.service.base.logs import log, log_error
from hubbub.service.http.bodies import Bodies, read_body
from hubbub.service.http.guard import Guard, Senders
from hubbub.service.http.key_folder import warn_of_open_secrets
from hubbub.service.http.problems import Problem, handlers, problem_of
from hubbub.service.http.server import SignalFreeServer, bind, loop_factory, server_config
from hubbub.service.store.base import StoreFailed
from hubbub.shuffler.batch_states import PATH
from hubbub.shuffler.config import HopConfig, ShufflerKeys
from hubbub.shuffler.hop import ShufflerHop
from hubbub.shuffler.store import ShufflerStore
from hubbub.wire.batches import SHUFFLED_TYPE
from hubbub.wire.shares import MESSAGE_PATH, MESSAGE_TYPE
from hubbub.wire.upload import json_size

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from hubbub.shuffle.dgk import DGKPublic

PACE = 0.2
"""Seconds between two checks for work that is due."""
MOST_GROUP = 512
"""How many uploads are stored in one transaction at most."""
_FRAME = 1 << 22
_ANY_ORIGIN = {"Access-Control-Allow-Origin": "*"}
_PREFLIGHT = {
    **_ANY_ORIGIN,
    "Access-Control-Allow-Methods": "POST",
    "Access-Control-Allow-Headers": "content-type",
    "Access-Control-Max-Age": "86400",
}


class _Waiting(NamedTuple):
    kind: str
    body: bytes
    future: asyncio.Future[Receipt]


class ShufflerApp:
    """The ASGI application of a shuffler, in `app`."""

    def __init__(self, hop: ShufflerHop, senders: Senders) -> None:
        self._hop, self._senders = hop, senders
        self._waiting: deque[_Waiting] = deque()
        self._more = asyncio.Event()
        self._bodies = Bodies(2 * MOST_BATCH_BYTES)
        self._batch = asyncio.Lock()  # one batch at a time: they are large
        routes = [
            Route("/v1/reports", self.reports, methods=["POST", "OPTIONS"]),
            Route(PATH, self.shuffled, methods=["POST"]),
            Route(MESSAGE_PATH, self.message, methods=["POST"]),
            Route("/v1/status", self.status),
            Route("/healthz", self.healthz),
        ]
        self.app = Starlette(routes=routes, exception_handlers=handlers(), lifespan=self._lifespan)

    async def reports(self, request: Request) -> Response:
        """Take an upload. When it is answered, its reports are on the disk."""
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_PREFLIGHT)
        try:
            sender = self._senders.name(request.client.host if request.client else "", request.scope["headers"])
            self._senders.take(sender, 1)
            collection = self._hop.collection
            body = await read_body(request, _FRAME if collection is None else json_size(collection.frame_bytes))
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            waiting = _Waiting(kind, body, asyncio.get_running_loop().create_future())
            self._waiting.append(waiting)
            self._more.set()
            receipt = await waiting.future
        except HubbubError as error:
            problem = problem_of(error)
            problem.headers = [*problem.headers, *_ANY_ORIGIN.items()]
            raise problem from None
        rejected = [{"id": report, "reason": reason} for report, reason in receipt.rejected]
        answer = {"accepted": receipt.accepted, "duplicates": receipt.duplicates, "rejected": rejected}
        return Response(msgspec.json.encode(answer), headers=_ANY_ORIGIN, media_type="application/json")

    async def shuffled(self, request: Request) -> Response:
        """Take a batch from the previous shuffler."""
        return await self._large(request, SHUFFLED_TYPE, self._hop.receive)

    async def message(self, request: Request) -> Response:
        """Take a message from another shuffler of shares."""
        return await self._large(request, MESSAGE_TYPE, self._hop.receive_message)

    async def _large(self, request: Request, kind: str, take: Callable[[bytes], dict[str, Json]]) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
            raise Problem(415, "unsupported_type", f"allowed: {kind}")
        try:
            body = await read_body(request, MOST_BATCH_BYTES, self._bodies)
            async with self._batch:
                return JSONResponse(await asyncio.to_thread(take, body))
        except Unreachable as error:
            raise Problem(503, "busy", str(error), headers=[("Retry-After", "1")]) from None
        except HubbubError as error:
            raise problem_of(error) from None

    async def status(self, _request: Request) -> Response:
        """The states of batches; nothing of single reports."""
        return JSONResponse(await asyncio.to_thread(self._hop.status))

    async def healthz(self, _request: Request) -> Response:
        """Whether the process answers."""
        return JSONResponse({"alive": True})

    # -- at work ----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._store()), asyncio.create_task(self._tick())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _tick(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self._hop.tick)
            except Exception as error:  # such as a full disk, or an unexpected document: it is tried again
                log_error("not done", error)
            await asyncio.sleep(PACE)

    async def _store(self) -> None:
        """Store waiting uploads, many in one transaction: a commit costs as much for one as for hundreds."""
        while True:
            await self._more.wait()
            self._more.clear()
            while self._waiting:
                group = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_GROUP))]
                try:
                    outcomes = await asyncio.to_thread(
                        self._hop.take_all, [(upload.kind, upload.body) for upload in group]
                    )
                except Exception as error:  # nothing was stored, and the senders try again
                    log_error("not stored", error)
                    outcomes = [StoreFailed("nothing was stored")] * len(group)
                for upload, outcome in zip(group, outcomes, strict=True):
                    if upload.future.done():
                        continue
                    if isinstance(outcome, Receipt):
                        upload.future.set_result(outcome)
                    else:
                        upload.future.set_exception(outcome)


PATIENCE = 120.0
"""Seconds for a whole request: sending 64 MB, and waiting until a hundred thousand reports are opened."""


def serve_hop(
    config: HopConfig, *, clock: Clock | None = None, on_ready: Callable[[str], None] = lambda url: None
) -> None:
    """Serve until SIGTERM or SIGINT. Acknowledged reports are on the disk, and are handled after the next start.

    `clock`: the clock; by default that of the system. `on_ready`: called with its address once requests are answered.
    """
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(config, clock or SystemClock(), on_ready))


async def _serve(config: HopConfig, clock: Clock, on_ready: Callable[[str], None]) -> None:
    listening = bind(config.host, config.port)
    store = ShufflerStore(config.store)
    warn_of_open_secrets(config.key, config.store)
    hop = ShufflerHop(
        config.collection,
        ShufflerKeys.load(config.key),
        store,
        _connect(config.collector),
        config.public_key,
        clock=clock,
        connect=_connect,
        start=lambda work: threading.Thread(target=work, daemon=True).start(),
        workers=_mask_makers,
    )
    senders = Senders(SenderLimits(rate=100.0, burst=2000), clock)
    guard = Guard(ConnectionLimits(), blocked=senders.blocked)
    server = SignalFreeServer(server_config(ShufflerApp(hop, senders).app, guard))

    def stop() -> None:
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    serving = asyncio.ensure_future(server.serve(sockets=[listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    shown = f"[{config.host}]" if ":" in config.host else config.host
    address = f"http://{shown}:{listening.getsockname()[1]}"
    log("shuffling", collection=config.collection, at=address)
    on_ready(address)
    await serving
    hop.close()
    store.close()
    log("stopped")


def _mask_makers(key: DGKPublic) -> Executor:
    from hubbub.shuffle.keys import key_workers

    return key_workers(key, max(1, (os.cpu_count() or 1) // 2))


def _connect(url: str) -> HttpTransport:
    return HttpTransport(url, timeout=PATIENCE)
