"""Messages between shufflers over TLS: each side shows its certificate, and is known by that alone."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hubbub.core.errors import InvalidValue
from hubbub.shuffle.channel import ShuffleAborted

ABORT = "abort"
_HEADER = struct.Struct(">HQ")
_MOST_TOPIC = 256
_RETRY_SECONDS = 0.2
_WELCOME = b"+"


@dataclass(frozen=True)
class Party:
    """Where a party listens, and the certificate that it is known by.

    Example:
        >>> Party("shuffler-1.example", 7001, Path("one.pem")).port
        7001
    """

    host: str
    port: int
    certificate: Path


class TlsChannel:
    """One party's connections to all others; the ones with smaller numbers are called, the others call.

    Parameters
    ----------
    me, parties
        Which party this is, and all of them in their order: the shufflers, then the server.
    private_key
        The file of the key of this party's certificate.
    most_bytes
        The longest message that is taken.
    seconds
        How long to wait for anybody.
    """

    def __init__(
        self, me: int, parties: Sequence[Party], private_key: Path, *, most_bytes: int, seconds: float = 60.0
    ) -> None:
        self._me, self._parties, self._most, self._seconds = me, parties, most_bytes, seconds
        self._ready = threading.Condition()
        self._came: dict[tuple[int, str], bytes] = {}
        self._sockets: dict[int, ssl.SSLSocket] = {}
        self._writing = [threading.Lock() for _ in parties]
        self._failed: dict[int, ShuffleAborted] = {}
        self._known = {_der(party.certificate): number for number, party in enumerate(parties)}
        if len(self._known) != len(parties):
            raise InvalidValue("parties", "a certificate twice", "a certificate of its own for every party")
        self._contexts = [self._context(purpose, private_key) for purpose in (True, False)]

    def __enter__(self) -> TlsChannel:
        """Listen, call, and wait until everyone is there."""
        mine = self._parties[self._me]
        try:
            listener = socket.create_server((mine.host, mine.port), backlog=len(self._parties))
        except OSError as error:
            raise ShuffleAborted("port", mine.port, f"one that can be listened at: {error.strerror}") from None
        deadline = time.monotonic() + self._seconds
        accepting = threading.Thread(target=self._accept, args=(listener, deadline), daemon=True)
        accepting.start()
        try:
            for number in range(self._me):
                self._call(number, deadline)
            with self._ready:
                self._ready.wait_for(self._everyone_or_failed, timeout=max(0.0, deadline - time.monotonic()))
                for failure in self._failed.values():
                    raise failure
                missing = [k for k in range(len(self._parties)) if k != self._me and k not in self._sockets]
            if missing:
                raise ShuffleAborted("parties", missing, f"all of them within {self._seconds:g} s")
        except BaseException:
            self.__exit__()
            raise
        finally:
            listener.close()
        return self

    def __exit__(self, *error: object) -> None:
        for connection in self._sockets.values():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def send(self, to: int, topic: str, body: bytes) -> None:
        """Send a message, or fail with the reason."""
        name = topic.encode()
        try:
            with self._writing[to]:
                self._sockets[to].sendall(_HEADER.pack(len(name), len(body)) + name)
                self._sockets[to].sendall(body)
        except OSError:
            raise self._failure(to) or ShuffleAborted("party", to, "a connection; it is gone") from None

    def receive(self, sender: int, topic: str) -> bytes:
        """Wait for a message, or fail with the reason."""
        with self._ready:
            self._ready.wait_for(lambda: (sender, topic) in self._came or self._failure(sender), self._seconds)
            if (sender, topic) in self._came:
                return self._came.pop((sender, topic))
            failure = self._failure(sender)
        raise failure or ShuffleAborted("party", sender, f"an answer to {topic} within {self._seconds:g} s")

    def abort(self, reason: str) -> None:
        """Tell everyone that the run is over."""
        for number in list(self._sockets):
            with contextlib.suppress(ShuffleAborted):
                self.send(number, ABORT, reason.encode()[:1000])

    # -- connections ------------------------------------------------------------------------------------------

    def _context(self, serving: bool, private_key: Path) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if serving else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # who it is follows from the certificate itself, which is compared
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        try:
            context.load_cert_chain(self._parties[self._me].certificate, private_key)
        except (OSError, ssl.SSLError) as error:
            raise InvalidValue(
                "private_key", str(private_key), f"the key of this party's certificate: {error}"
            ) from None
        for party in self._parties:
            context.load_verify_locations(party.certificate)
        return context

    def _accept(self, listener: socket.socket, deadline: float) -> None:
        while time.monotonic() < deadline:
            listener.settimeout(max(0.05, deadline - time.monotonic()))
            try:
                plain, _ = listener.accept()
            except OSError:
                return  # all are there, or the time is up
            # Each by itself: a stranger who connects and says nothing keeps nobody else waiting.
            threading.Thread(target=self._admit, args=(plain, deadline), daemon=True).start()

    def _admit(self, plain: socket.socket, deadline: float) -> None:
        try:
            plain.settimeout(max(0.05, deadline - time.monotonic()))
            connection = self._contexts[0].wrap_socket(plain, server_side=True)
            number = self._known.get(connection.getpeercert(binary_form=True) or b"")
            if number is None or number <= self._me or number in self._sockets:
                connection.close()
                return
            connection.sendall(_WELCOME)
            self._begin(number, connection)
        except (OSError, ssl.SSLError):
            plain.close()

    def _call(self, number: int, deadline: float) -> None:
        party = self._parties[number]
        while True:
            try:
                plain = socket.create_connection(
                    (party.host, party.port), timeout=max(0.1, deadline - time.monotonic())
                )
                connection = self._contexts[1].wrap_socket(plain)
                welcomed = (
                    connection.recv(len(_WELCOME)) == _WELCOME
                )  # a certificate may be refused after the handshake
                if not welcomed:
                    raise ConnectionResetError("it does not let this party in")
                break
            except (OSError, ssl.SSLError) as error:
                if time.monotonic() + _RETRY_SECONDS > deadline:
                    raise ShuffleAborted("party", number, f"somebody who answers at its address: {error}") from None
                with self._ready:  # who is awaited may have come and gone; the others were told
                    if self._ready.wait_for(lambda: self._failed, timeout=_RETRY_SECONDS):
                        raise next(iter(self._failed.values())) from None
        if self._known.get(connection.getpeercert(binary_form=True) or b"") != number:
            connection.close()
            raise ShuffleAborted("party", number, "the certificate of that party")
        self._begin(number, connection)

    def _begin(self, number: int, connection: ssl.SSLSocket) -> None:
        connection.settimeout(None)
        with self._ready:
            self._sockets[number] = connection
            self._ready.notify_all()
        threading.Thread(target=self._read, args=(number, connection), daemon=True).start()

    def _failure(self, awaited: int) -> ShuffleAborted | None:
        """Why nothing more is to be expected: who is awaited has gone, or anybody has called the run off."""
        called_off = (failure for failure in self._failed.values() if not failure.left)
        return self._failed.get(awaited) or next(called_off, None)

    def _everyone_or_failed(self) -> bool:
        return bool(self._failed) or len(self._sockets) == len(self._parties) - 1

    def _read(self, number: int, connection: ssl.SSLSocket) -> None:
        try:
            while True:
                length, size = _HEADER.unpack(_exactly(connection, _HEADER.size))
                if length > _MOST_TOPIC or size > self._most:
                    raise ShuffleAborted(
                        "party", number, f"messages of at most {self._most:,} bytes; it sends {size:,}"
                    )
                topic = _exactly(connection, length).decode("ascii", "replace")
                body = _exactly(connection, size)
                if topic == ABORT:
                    raise ShuffleAborted("party", number, f"to go on; it stopped: {body.decode('utf-8', 'replace')}")
                with self._ready:
                    if (number, topic) in self._came:
                        raise ShuffleAborted("party", number, f"one message about {topic}; it sent two")
                    self._came[number, topic] = body
                    self._ready.notify_all()
        except (ShuffleAborted, OSError) as error:
            with self._ready:
                gone = ShuffleAborted("party", number, "to stay until the end; its connection is gone")
                gone.left = True
                self._failed[number] = error if isinstance(error, ShuffleAborted) else gone
                self._ready.notify_all()


def _exactly(connection: ssl.SSLSocket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise ConnectionResetError
        parts += part
    return bytes(parts)


def _der(path: Path) -> bytes:
    try:
        return ssl.PEM_cert_to_DER_cert(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise InvalidValue("certificate", str(path), f"a certificate in PEM: {error}") from None
