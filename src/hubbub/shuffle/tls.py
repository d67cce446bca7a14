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

from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.shuffle.channel import ShuffleAborted

ABORT = "abort"
_HEADER = struct.Struct(">HQ")
_MOST_TOPIC = 256
_RETRY_SECONDS = 0.2
_WELCOME = b"+"
_AGAIN = b"again: "
_MOST_REASON = 1000
_MOST_STRANGERS = 16
_HANDSHAKE_SECONDS = 10.0


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
    seconds
        How long to wait for anybody.
    """

    def __init__(self, me: int, parties: Sequence[Party], private_key: Path, *, seconds: float = 60.0) -> None:
        self._me, self._parties, self._seconds = me, parties, seconds
        self._ready = threading.Condition()
        self._due: dict[tuple[int, str], int] = {}
        self._undue: dict[int, str] = {}
        self._closed = False
        self.sent_bytes = self.received_bytes = 0
        self._admitting = threading.Semaphore(_MOST_STRANGERS)
        self._came: dict[tuple[int, str], bytes] = {}
        self._sockets: dict[int, ssl.SSLSocket] = {}
        self._writing = [threading.Lock() for _ in parties]
        self._failed: dict[int, ShuffleAborted] = {}
        self._left: set[int] = set()
        self._heard: set[tuple[int, str]] = set()
        self._known = {_der(party.certificate): number for number, party in enumerate(parties)}
        if len(self._known) != len(parties):
            raise InvalidValue("parties", "a certificate twice", "a certificate of its own for every party")
        self._contexts = [self._context(purpose, private_key) for purpose in (True, False)]

    def __enter__(self) -> TlsChannel:
        """Listen, call, and wait until everyone is there."""
        deadline = time.monotonic() + self._seconds
        listener = self._listen(deadline)
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
                raise _loss("parties", missing, f"all of them within {self._seconds:g} s")
        except BaseException:
            self.__exit__()
            raise
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes who waits at it, which would keep the port
            listener.close()
            accepting.join()
        return self

    def __exit__(self, *error: object) -> None:
        with self._ready:
            self._closed = True
            self._ready.notify_all()
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
            self.sent_bytes += _HEADER.size + len(name) + len(body)
        except OSError:
            raise self._failure(to) or _loss("party", to, "a connection that takes messages") from None

    def expect(self, sender: int, topic: str, most_bytes: int) -> None:
        """Say that a message is due; until then it is not read, and none that is longer."""
        with self._ready:
            self._due[sender, topic] = most_bytes
            self._ready.notify_all()

    def receive(self, sender: int, topic: str) -> bytes:
        """Wait for a message, or fail with the reason."""
        with self._ready:
            self._ready.wait_for(lambda: (sender, topic) in self._came or self._failure(sender), self._seconds)
            if (sender, topic) in self._came:
                return self._came.pop((sender, topic))
            failure, undue = self._failure(sender), self._undue.get(sender)
        instead = f"; it sends {undue!r}" if undue is not None else ""
        raise failure or ShuffleAborted("party", sender, f"an answer to {topic} within {self._seconds:g} s{instead}")

    def abort(self, error: HubbubError) -> None:
        """Tell everyone that the run is over, why, and whether another attempt may go better."""
        again = _AGAIN if isinstance(error, ShuffleAborted) and error.lost else b""
        for number in list(self._sockets):
            with contextlib.suppress(ShuffleAborted):
                self.send(number, ABORT, again + str(error).encode()[:_MOST_REASON])

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

    def _listen(self, deadline: float) -> socket.socket:
        mine = self._parties[self._me]
        while True:
            try:
                return socket.create_server((mine.host, mine.port), backlog=len(self._parties))
            except OSError as error:  # perhaps of a run that was broken off a moment ago
                if time.monotonic() + _RETRY_SECONDS > deadline:
                    raise ShuffleAborted("port", mine.port, f"one to listen at: {error.strerror}") from None
                time.sleep(_RETRY_SECONDS)

    def _accept(self, listener: socket.socket, deadline: float) -> None:
        while time.monotonic() < deadline:
            listener.settimeout(max(0.05, deadline - time.monotonic()))
            try:
                plain, _ = listener.accept()
            except OSError:
                return  # all are there, or the time is up
            # Each by itself: a stranger who connects and says nothing keeps nobody else waiting, and few can at once.
            if not self._admitting.acquire(blocking=False):
                plain.close()
                continue
            threading.Thread(target=self._admit, args=(plain, deadline), daemon=True).start()

    def _admit(self, plain: socket.socket, deadline: float) -> None:
        try:
            plain.settimeout(max(0.05, min(_HANDSHAKE_SECONDS, deadline - time.monotonic())))
            connection = self._contexts[0].wrap_socket(plain, server_side=True)
            number = self._known.get(connection.getpeercert(binary_form=True) or b"")
            if number is None or number <= self._me or number in self._sockets:
                connection.close()
                return
            connection.sendall(_WELCOME)
            self._begin(number, connection)
        except (OSError, ssl.SSLError):
            plain.close()
        finally:
            self._admitting.release()

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
                    raise _loss("party", number, f"somebody who answers at its address: {error}") from None
                with self._ready:  # who is awaited may have come and gone; the others were told
                    if self._ready.wait_for(lambda: self._failed, timeout=_RETRY_SECONDS):
                        raise next(iter(self._failed.values())) from None
        if self._known.get(connection.getpeercert(binary_form=True) or b"") != number:
            connection.close()
            raise ShuffleAborted("party", number, "the certificate of that party")
        self._begin(number, connection)

    def _begin(self, number: int, connection: ssl.SSLSocket) -> None:
        connection.settimeout(self._seconds)  # a party that takes nothing keeps nobody waiting for ever
        with self._ready:
            self._sockets[number] = connection
            self._ready.notify_all()
        threading.Thread(target=self._read, args=(number, connection), daemon=True).start()

    def _failure(self, awaited: int) -> ShuffleAborted | None:
        """Why nothing more is to be expected: who is awaited has gone, or anybody has called the run off."""
        called_off = (failure for number, failure in self._failed.items() if number not in self._left)
        return self._failed.get(awaited) or next(called_off, None)

    def _everyone_or_failed(self) -> bool:
        return bool(self._failed) or len(self._sockets) == len(self._parties) - 1

    def _read(self, number: int, connection: ssl.SSLSocket) -> None:
        try:
            while True:
                length, size = _HEADER.unpack(_exactly(connection, _HEADER.size))
                if length > _MOST_TOPIC:
                    raise ShuffleAborted("party", number, f"topics of at most {_MOST_TOPIC} bytes")
                topic = _exactly(connection, length).decode("ascii", "replace")
                most = _MOST_REASON + len(_AGAIN) if topic == ABORT else self._allowed(number, topic)
                if size > most:
                    raise ShuffleAborted("party", number, f"at most {most:,} bytes about {topic}; it sends {size:,}")
                body = _exactly(connection, size)
                if topic == ABORT:
                    raise _called_off(number, body)
                with self._ready:
                    self._came[number, topic] = body
                    self.received_bytes += _HEADER.size + length + size
                    self._ready.notify_all()
        except (ShuffleAborted, OSError) as error:
            with self._ready:
                if isinstance(error, ShuffleAborted):
                    self._failed[number] = error
                else:
                    self._left.add(number)
                    self._failed[number] = _loss("party", number, "to stay until the end; its connection is gone")
                self._ready.notify_all()

    def _allowed(self, number: int, topic: str) -> int:
        """How long a message may be, once it is due: until then nothing more is read from its sender."""
        with self._ready:
            if (number, topic) in self._heard:
                raise ShuffleAborted("party", number, f"one message about {topic}; it sent two")
            self._undue[number] = topic
            self._ready.wait_for(lambda: (number, topic) in self._due or self._closed)
            if self._closed:
                raise ConnectionResetError
            del self._undue[number]
            self._heard.add((number, topic))
            return self._due.pop((number, topic))


def _loss(field: str, value: object, allowed: str) -> ShuffleAborted:
    error = ShuffleAborted(field, value, allowed)
    error.lost = True
    return error


def _called_off(number: int, body: bytes) -> ShuffleAborted:
    reason = body.removeprefix(_AGAIN).decode("utf-8", "replace")
    error = ShuffleAborted("party", number, f"to go on; it stopped: {reason}")
    error.lost = body.startswith(_AGAIN)
    return error


def _exactly(connection: ssl.SSLSocket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        try:
            part = connection.recv(min(size - len(parts), 1 << 20))
        except TimeoutError:
            continue  # it may be at work: who waits for a message knows for how long
        if not part:
            raise ConnectionResetError
        parts += part
    return bytes(parts)


def _der(path: Path) -> bytes:
    try:
        return ssl.PEM_cert_to_DER_cert(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise InvalidValue("certificate", str(path), f"a certificate in PEM: {error}") from None
