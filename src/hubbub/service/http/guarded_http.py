"""HTTP connections with limits on the size of headers, on time, and on the number of connections.

Uvicorn's protocol sets no such limits: an endless header is copied with every piece that arrives, a silent connection
stays open, and an answer that the client does not read waits for ever.
"""

import asyncio
import logging
import math
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hubbub.service.http.guard import Guard, network_of
from hubbub.service.http.problems import CONTENT_TYPE, Problem

_LINGER = 2.0  # seconds that a client has to read a refusal
_quiet = logging.getLogger("hubbub.service.http")
_quiet.setLevel(logging.ERROR)  # a line for each bad request would fill the disk


class _Guarded(HttpToolsProtocol):
    """A connection. Its state is "idle", "header", "body", "work", "unread" or "refused".

    Callbacks of the parser are costly: only those at the end of a header, a body or an answer are overridden.
    """

    guard: Guard

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.logger = _quiet
        self.access_log = False  # it would name addresses
        self.address = ""
        self.state = "header"
        self.deadline = self.write_deadline = math.inf
        self._refusal: Problem | None = None
        self._events = 0  # headers and bodies that are complete
        self._piece = 0  # bytes of the latest piece
        self._stalled = 0  # bytes since a header or a body last made progress

    __hash__ = object.__hash__

    @property
    def unread(self) -> int:
        """Bytes that wait for the client to read them."""
        return self.transport.get_write_buffer_size()

    def abort(self) -> None:
        """Close at once."""
        self.transport.abort()

    def _enter(self, state: str, seconds: float) -> None:
        self.state, self.deadline = state, self.loop.time() + seconds

    # -- the connection ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection if the guard has room."""
        self.transport = transport
        self.address = _address(transport)
        if self.guard.enter(self, self.loop):
            super().connection_made(transport)
            self._enter("header", self.guard.limits.header_seconds)
            self.guard.waits(self, True)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the guard that the connection is closed."""
        self.guard.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse a piece. Refuse the connection after too many bytes that complete no header and extend no body."""
        limits, events, cycle = self.guard.limits, self._events, self.cycle
        if self.state == "idle":
            self._enter("header", limits.header_seconds)
        self._piece = len(data)
        body = len(cycle.body) if cycle is not None else 0
        super().data_received(data)
        if self._events != events:
            self._stalled = 0
            if self.state == "body":  # the rest of the body is still to come
                self._enter("body", limits.body_seconds)
        elif cycle is not None and len(cycle.body) > body:
            self._stalled = 0
        else:
            self._stalled += len(data)
            if self._stalled > limits.header_bytes and not self.transport.is_closing():
                self._refuse_header()
                self.send_400_response("")

    def send_400_response(self, msg: str) -> None:
        """Send the problem, and close."""
        problem = self._refusal or Problem(400, "malformed", "this is not HTTP")
        self.guard.closed[problem.slug] += 1
        body = problem.body()
        head = f"HTTP/1.1 {problem.status} \r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\n"
        self.transport.write(f"{head}Connection: close\r\n\r\n".encode() + body)
        self.transport.close()
        self._enter("refused", _LINGER)

    def pause_writing(self) -> None:
        """The client reads too slowly: it gets a deadline."""
        super().pause_writing()
        self.write_deadline = self.loop.time() + self.guard.limits.write_seconds
        self.guard.waits(self, True)

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        self.write_deadline = math.inf
        self.guard.waits(self, self.state != "work")

    # -- a request --------------------------------------------------------------------------------------------

    def on_headers_complete(self) -> None:
        """Check the header; the body begins."""
        limits = self.guard.limits
        if len(self.pipeline) >= limits.pipelined:
            self._refusal = Problem(400, "malformed", "too many requests at once")
            raise ValueError("too many requests")
        if len(self.headers) > limits.headers or (
            self._stalled + self._piece > limits.header_bytes and self._header_bytes() > limits.header_bytes
        ):
            self._refuse_header()
            raise ValueError("a header that is too large")
        self._events += 1
        self.state = "body"
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The whole request has arrived."""
        self._events += 1
        super().on_message_complete()
        if self.cycle.response_complete:  # it was answered before all of it had arrived
            self._become_idle()
        else:
            self.state, self.deadline = "work", math.inf
            self.guard.waits(self, self.write_deadline < math.inf)

    def on_response_complete(self) -> None:
        """The application has written its answer; the client may not have read it."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._enter("unread", self.guard.limits.write_seconds)
        elif self.state == "work" and self.cycle.response_complete:
            self._become_idle()

    def _become_idle(self) -> None:
        self._enter("idle", self.guard.limits.idle_seconds)
        self.guard.waits(self, True)

    def _header_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _refuse_header(self) -> None:
        limits = self.guard.limits
        detail = f"at most {limits.header_bytes:,} bytes in at most {limits.headers} lines"
        self._refusal = Problem(431, "header_too_large", detail)


class _Door(asyncio.Protocol):
    """The first protocol of a connection: refused connections never get a parser."""

    __slots__ = ("_more",)
    guard: Guard
    inside: type[_Guarded]

    def __init__(self, **more: Any) -> None:
        self._more = more

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Hand the connection to `inside`, or close it."""
        if self.guard.refuses(_address(transport)):
            transport.abort()
            return
        connection = self.inside(**self._more)
        transport.set_protocol(connection)
        connection.connection_made(transport)


def _address(transport: asyncio.Transport) -> str:
    peer = transport.get_extra_info("peername")
    return network_of(peer[0]) if isinstance(peer, tuple) else ""


def guarded(guard: Guard) -> type[asyncio.Protocol]:
    """The protocol class for a server whose connections are limited by `guard`."""
    inside = type("Guarded", (_Guarded,), {"guard": guard})
    return type("Door", (_Door,), {"guard": guard, "inside": inside})
