"""HTTP requests that end: one deadline and one maximum size for all of a request, whatever the peer does.

The timeout of a socket limits one call. A peer that sends one byte per second, or "100 Continue" without end, keeps
`http.client` reading for ever. Here each call gets the time that is left, and every byte counts, headers too.
"""

import http.client
import io
import math
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import SplitResult

_PIECE = 1 << 16


class AnswerTooLong(http.client.HTTPException):
    """The peer sent more bytes than are read."""


class Response(NamedTuple):
    """The response to a request: a status, headers by lower-case name, and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Wire(io.RawIOBase):
    """A connected socket that is used until a deadline, and read up to a number of bytes."""

    def __init__(self, connected: socket.socket, until: float, most_bytes: int) -> None:
        self._socket, self._until = connected, until
        self._most = self._room = most_bytes

    def renew(self, *, seconds: float | None = None, most_bytes: int | None = None) -> None:
        """Set the deadline to a number of seconds from now, or the number of bytes that may still come."""
        if seconds is not None:
            self._until = time.monotonic() + seconds
        if most_bytes is not None:
            self._most = self._room = most_bytes

    def readinto(self, buffer: Any) -> int:
        """Read what is there; `TimeoutError` after the deadline, `AnswerTooLong` after too many bytes."""
        self._socket.settimeout(_left(self._until))
        count = self._socket.recv_into(memoryview(buffer)[: self._room + 1])
        self._room -= count
        if self._room < 0:
            raise AnswerTooLong(f"the answer is longer than {self._most} bytes")
        return count

    def sendall(self, data: bytes) -> None:
        """Send everything; `TimeoutError` after the deadline."""
        rest = memoryview(data)
        while rest:
            self._socket.settimeout(_left(self._until))
            rest = rest[self._socket.send(rest) :]

    # -- what http.client asks of a socket --------------------------------------------------------------------

    def makefile(self, *_: object) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        """Nothing: http.client closes before it has read the body. The block of `connected_to` closes the socket."""


class HttpPeer:
    """The host of an address, and the limits of every request to it. Redirects are not followed.

    Whatever fails raises an `OSError` (`TimeoutError` after the deadline), an `http.client.HTTPException` or a
    `ValueError`. The system's resolver of names has a time limit of its own.

    `seconds`: the time for all of a request: connecting, sending, and reading the response to its last byte.
    `most_bytes`: the longest response that is read, with its headers.
    """

    def __init__(self, address: SplitResult, *, seconds: float, most_bytes: int) -> None:
        self._address, self._seconds, self._most_bytes = address, seconds, most_bytes
        self._tls = ssl.create_default_context() if address.scheme == "https" else None

    def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        at_most: float = math.inf,
    ) -> Response:
        """Send a request and read all of its response, in `at_most` seconds where that is less."""
        with self.connected(at_most) as (connection, _):
            connection.request(method, path, body=body, headers=dict(headers))
            response = connection.getresponse()
            # In pieces: http.client allocates as much as a peer announces.
            content = b"".join(iter(lambda: response.read(_PIECE), b""))
            if response.length:
                raise http.client.IncompleteRead(content, response.length)
            return Response(response.status, {name.lower(): value for name, value in response.getheaders()}, content)

    @contextmanager
    def connected(self, at_most: float = math.inf) -> Iterator[tuple[http.client.HTTPConnection, Wire]]:
        """A connection for one request, and its wire."""
        until = time.monotonic() + min(self._seconds, at_most)
        host, tls = self._address.hostname or "", self._tls
        port = self._address.port or (80 if tls is None else 443)
        connection = (
            http.client.HTTPConnection(host, port)
            if tls is None
            else http.client.HTTPSConnection(host, port, context=tls)
        )
        sock = _connect(host, port, until)
        try:
            if tls is not None:
                sock.settimeout(_left(until))  # for the whole handshake
                sock = tls.wrap_socket(sock, server_hostname=host)
            connection.sock = wire = Wire(sock, until, self._most_bytes)
            yield connection, wire
        finally:
            sock.close()


def _connect(host: str, port: int, until: float) -> socket.socket:
    """A connection to the first address of a host that takes one; each gets its part of the time that is left."""
    places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    failure: OSError = ConnectionError(f"no address of {host}")
    for tried, (family, kind, protocol, _, place) in enumerate(places):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(_left(until) / (len(places) - tried))
            sock.connect(place)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError as error:
            sock.close()
            failure = error
    raise failure


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left
