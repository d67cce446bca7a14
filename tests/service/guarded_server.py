"""A collector behind a real socket, in this process: so that a test can look at what it holds."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from hubbub.collection import Keys, ManualClock
from hubbub.service.base.limits import Limits
from hubbub.service.collector.collector import Collector
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import bind, create_app, loop_factory, server_config
from hubbub.service.http.service import Service
from hubbub.service.store.sqlite import SqliteStore
from tests.service.exact_world import exact_collection

TOKEN = "a token for the tests"
COLLECTION = exact_collection(step=86400, lateness=3600)


class Guarded:
    """The server, and sockets to it."""

    def __init__(self, service: Service, port: int) -> None:
        self.service, self.port = service, port
        self.guard = service.guard
        (ask,) = service.collector.board.asks.values()
        self.window = ask
        self._open: list[socket.socket] = []

    def connect(self, source: str = "127.0.0.1", *, receive_buffer: int = 0) -> socket.socket:
        connection = socket.socket()
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(30)
        connection.bind((source, 0))
        connection.connect(("127.0.0.1", self.port))
        self._open.append(connection)
        return connection

    def send(self, *pieces: bytes, source: str = "127.0.0.1") -> bytes:
        """What is answered to some pieces on a connection of their own; b"" if it is closed without a word."""
        with self.connect(source) as connection:
            try:
                for piece in pieces:
                    connection.sendall(piece)
            except OSError:
                pass  # it may be closed before all is sent
            return heard(connection)

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something that must come to be."""
        deadline = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < deadline, (len(self.guard), dict(self.guard.closed))
            time.sleep(0.01)

    def close(self) -> None:
        for connection in self._open:
            connection.close()


def heard(connection: socket.socket) -> bytes:
    """All that comes until the connection is closed."""
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return received


@contextmanager
def guarded_server(limits: Limits) -> Iterator[Guarded]:
    collector = Collector(
        [COLLECTION], SqliteStore(":memory:"), clock=ManualClock(1000.0), keys=Keys(b"k" * 32), limits=limits
    )
    service, listening = Service(collector), bind("127.0.0.1", 0)
    port = listening.getsockname()[1]
    server = uvicorn.Server(server_config(create_app(service, Tokens([TOKEN])), service.guard))

    def serve() -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(server.serve(sockets=[listening]))

    thread = threading.Thread(target=serve)
    thread.start()
    guarded = Guarded(service, port)
    try:
        guarded.until(lambda: server.started)
        yield guarded
    finally:
        guarded.close()
        server.should_exit = True
        thread.join(60)
