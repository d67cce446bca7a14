"""A shuffler as a program: a server that runs until it gets a signal."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable

from hubbub.client.transport import HttpTransport
from hubbub.collection import Clock, SystemClock
from hubbub.service.exposure import warn_of_open_secrets
from hubbub.service.guard import Guard
from hubbub.service.limits import ConnectionLimits, SenderLimits
from hubbub.service.logs import log
from hubbub.service.senders import Senders
from hubbub.service.server import SignalFreeServer, bind, loop_factory, server_config
from hubbub.shuffler.app import ShufflerApp
from hubbub.shuffler.config import HopConfig
from hubbub.shuffler.hop import ShufflerHop
from hubbub.shuffler.keys import ShufflerKeys
from hubbub.shuffler.store import ShufflerStore

PATIENCE = 120.0
"""Seconds for a whole request: sending 64 MB, and waiting until a hundred thousand reports are opened."""


def serve_hop(
    config: HopConfig, *, clock: Clock | None = None, on_ready: Callable[[str], None] = lambda url: None
) -> None:
    """Serve until SIGTERM or SIGINT. Acknowledged reports are on the disk, and are handled after the next start.

    Parameters
    ----------
    config
        The settings.
    clock
        The clock; by default that of the system.
    on_ready
        Called with its address once requests are answered.
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
    store.close()
    log("stopped")


def _connect(url: str) -> HttpTransport:
    return HttpTransport(url, timeout=PATIENCE)
