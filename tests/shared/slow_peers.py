"""Peers that answer slowly, endlessly, or not at all: real sockets of this machine."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

PACE = 0.02
"""Seconds between two pieces of a slow answer: well below any deadline of a test."""
HANG = 60.0
"""Seconds after which a call is taken to hang, however busy the machine is."""
_OK = b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Allow-Headers: *\r\n"  # for pages
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"


class SlowAnswer(NamedTuple):
    """An answer: how it begins, and what follows again and again; with a negative pace, it ends there."""

    begins: bytes = b""
    follows: bytes = b""
    pace: float = PACE


SLOW = {
    "silence": SlowAnswer(),
    "a slow status": SlowAnswer(b"HTTP/1.1 200 O", b"K"),
    "a slow header": SlowAnswer(_OK + b"X: ", b"a"),
    "slow headers": SlowAnswer(_OK, b"X: a\r\n"),
    "a slow body": SlowAnswer(_OK + b"Content-Length: 1000000\r\n\r\n", b" "),
    "a slow body without a length": SlowAnswer(_OK + b"\r\n", b" "),
    "a slow body of any length": SlowAnswer(_OK + b"Content-Length: 1000000000000000\r\n\r\n", b" "),
    "slow chunks": SlowAnswer(_CHUNKED, b"1\r\n \r\n"),
    "a slow chunk of any length": SlowAnswer(_CHUNKED + b"FFFFFFFFFFFF\r\n", b" "),
    "a slow name of a chunk": SlowAnswer(_CHUNKED + b"1;", b"a"),
    "slow words of 100 Continue": SlowAnswer(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "silence after a body that is too short": SlowAnswer(_OK + b"Content-Length: 9\r\n\r\n[]"),
}
ENDLESS = {
    "an endless status": SlowAnswer(b"HTTP/1.1 200 O", b"K" * 4096, 0),
    "an endless header": SlowAnswer(_OK + b"X: ", b"a" * 4096, 0),
    "endless headers": SlowAnswer(_OK, b"X: a\r\n" * 512, 0),
    "an endless body": SlowAnswer(_OK + b"\r\n", b" " * 65536, 0),
    "endless chunks": SlowAnswer(_CHUNKED, b"1000\r\n" + b" " * 4096 + b"\r\n", 0),
    "an endless trailer": SlowAnswer(_CHUNKED + b"1\r\n1\r\n0\r\n", b"X: a\r\n" * 512, 0),
    "endless words of 100 Continue": SlowAnswer(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100, 0),
}


class SlowPeer:
    """Listens on a port of its own, and answers every request in the same way."""

    def __init__(self, answer: SlowAnswer, tls: ssl.SSLContext | None = None) -> None:
        self._answer, self._tls, self._closed = answer, tls, threading.Event()
        self.requests: list[bytes] = []
        """The first line of each request."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._dribble, args=(connection,), daemon=True).start()

    def _dribble(self, connection: socket.socket) -> None:
        begins, follows, pace = self._answer
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True)
        with suppress(OSError), connection:
            request = connection.recv(1 << 16)
            if b"HTTP" in request:
                self.requests.append(request.partition(b"\r\n")[0])
            connection.sendall(begins)
            while pace >= 0 and not self._closed.wait(pace):
                connection.sendall(follows)


@contextmanager
def slow_peer(answer: SlowAnswer, tls: ssl.SSLContext | None = None) -> Iterator[SlowPeer]:
    """A peer, for as long as the block lasts."""
    peer = SlowPeer(answer, tls)
    try:
        yield peer
    finally:
        peer.close()


def outcomes(call: Callable[[str], Any], answers: Mapping[str, SlowAnswer]) -> dict[str, Any]:
    """How a call with the address of each peer ends, all at the same time."""
    peers = {name: SlowPeer(answer) for name, answer in answers.items()}
    results = outcomes_of({name: partial(call, peer.url) for name, peer in peers.items()})
    for peer in peers.values():
        peer.close()
    return results


def outcomes_of(calls: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """What each call returns, or the class of its error; "hangs" where it does not end."""
    found: dict[str, Any] = dict.fromkeys(calls, "hangs")

    def run(name: str) -> None:
        try:
            found[name] = calls[name]()
        except Exception as error:
            found[name] = type(error)

    threads = [threading.Thread(target=run, args=(name,), daemon=True) for name in calls]
    for thread in threads:
        thread.start()
    until = time.monotonic() + HANG
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return dict(found)
