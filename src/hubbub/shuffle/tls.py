"""Messages between shufflers over TLS, in which each side is identified by its certificate alone."""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import struct
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.shuffle.channel import Mailbox, ShuffleAborted
from hubbub.shuffle.config import Party, certificate_bytes, tls_context

_MOST_BYTES = 1 << 20
_WANTS = (ssl.SSLWantReadError, ssl.SSLWantWriteError)


class TlsConnection:
    """Sends and receives whole messages over a TLS socket, from several threads.

    OpenSSL allows one thread at a time inside a connection, and Python does not always see to it: a read and a write at
    the same moment break the connection now and then. Here every call is made under a lock, and none waits there.

    Parameters
    ----------
    connection
        A socket after its handshake.
    seconds
        How long the write of a whole message may take.
    """

    def __init__(self, connection: ssl.SSLSocket, seconds: float) -> None:
        connection.setblocking(False)
        self._socket, self._seconds = connection, seconds
        self._inside, self._writing = threading.Lock(), threading.Lock()

    def write(self, message: bytes) -> None:
        """Send all bytes of a message, before those of any other; raises an `OSError` where that is not possible."""
        left, until = memoryview(message), time.monotonic() + self._seconds
        with self._writing:
            while left:
                try:
                    with self._inside:
                        left = left[self._socket.send(left[:_MOST_BYTES]) :]
                except _WANTS as want:
                    self._wait(want, until - time.monotonic())

    def read(self, size: int) -> bytes:
        """Wait for a number of bytes; raises an `OSError` if the connection ends before."""
        parts = bytearray()
        while len(parts) < size:
            try:
                with self._inside:
                    part = self._socket.recv(min(size - len(parts), _MOST_BYTES))
            except _WANTS as want:
                with contextlib.suppress(TimeoutError):  # the party may be at work: its messages have time limits
                    self._wait(want, self._seconds)
            else:
                if not part:
                    raise ConnectionResetError
                parts += part
        return bytes(parts)

    def close(self) -> None:
        """End the connection; threads that read or write it fail."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _wait(self, want: ssl.SSLError, seconds: float) -> None:
        event = selectors.EVENT_WRITE if isinstance(want, ssl.SSLWantWriteError) else selectors.EVENT_READ
        with selectors.DefaultSelector() as selector:
            try:
                selector.register(self._socket, event)
            except ValueError:  # closed meanwhile
                raise ConnectionResetError from None
            if seconds <= 0 or not selector.select(seconds):
                raise TimeoutError


ABORT = "abort"
_HEADER = struct.Struct(">HQ")
_MOST_TOPIC = 256
_RETRY_SECONDS = 0.2
_WELCOME = b"+"
_AGAIN = b"again: "
_MOST_REASON = 1000
_MOST_STRANGERS = 16
_HANDSHAKE_SECONDS = 10.0
_ACCEPT_SECONDS = 0.05


class TlsChannel:
    """One party's connections to all others. It connects to the parties with smaller numbers; the others connect to it.

    Parameters
    ----------
    me, parties
        The number of this party, and all parties in order: the shufflers, then the server.
    private_key
        The file of the key of this party's certificate.
    seconds
        How long to wait for another party.
    """

    def __init__(self, me: int, parties: Sequence[Party], private_key: Path, *, seconds: float = 60.0) -> None:
        self._me, self._parties, self._seconds = me, parties, seconds
        self.mailbox = Mailbox(seconds)
        self.sent_bytes = self.received_bytes = 0
        self._admitting = threading.Semaphore(_MOST_STRANGERS)
        self._connections: dict[int, TlsConnection] = {}
        self._known = {certificate_bytes(party.certificate): number for number, party in enumerate(parties)}
        if len(self._known) != len(parties):
            raise InvalidValue("parties", "a certificate twice", "a certificate of its own for every party")
        self._contexts = [tls_context(me, parties, private_key, serving=serving) for serving in (True, False)]

    def __enter__(self) -> TlsChannel:
        """Listen, call, and wait until everyone is there."""
        deadline = time.monotonic() + self._seconds
        listener = self._listen(deadline)
        complete = threading.Event()
        accepting = threading.Thread(target=self._accept, args=(listener, deadline, complete), daemon=True)
        accepting.start()
        try:
            for number in range(self._me):
                self._call(number, deadline)
            self.mailbox.wait(self._everyone_or_failed, max(0.0, deadline - time.monotonic()))
            failure = self.mailbox.any_failure()
            if failure is not None:
                raise failure
            missing = [k for k in range(len(self._parties)) if k != self._me and k not in self._connections]
            if missing:
                raise _loss("parties", missing, f"all of them within {self._seconds:g} s")
        except BaseException:
            self.__exit__()
            raise
        finally:
            complete.set()
            accepting.join()  # before closing: a thread inside a call goes on with whatever has the closed one's number
            listener.close()
        return self

    def __exit__(self, *error: object) -> None:
        self.mailbox.close()
        for connection in self._connections.values():
            connection.close()

    def send(self, to: int, topic: str, body: bytes) -> None:
        """Send a message, or fail with the reason."""
        name = topic.encode()
        message = b"".join((_HEADER.pack(len(name), len(body)), name, body))
        try:
            self._connections[to].write(message)
            self.sent_bytes += len(message)
        except OSError:
            raise self.mailbox.failure(to) or _loss("party", to, "a connection that takes messages") from None

    def expect(self, sender: int, topic: str, most_bytes: int) -> None:
        """Announce a message that is due, and its greatest length. It is not read before."""
        self.mailbox.expect(sender, topic, most_bytes)

    def receive(self, sender: int, topic: str) -> bytes:
        """Wait for a message, or fail with the reason."""
        return self.mailbox.receive(sender, topic)

    def abort(self, error: HubbubError) -> None:
        """Tell all parties that the run is aborted, why, and whether another attempt may succeed."""
        again = _AGAIN if isinstance(error, ShuffleAborted) and error.lost else b""
        for number in list(self._connections):
            with contextlib.suppress(ShuffleAborted):
                self.send(number, ABORT, again + str(error).encode()[:_MOST_REASON])

    # -- connections ------------------------------------------------------------------------------------------

    def _listen(self, deadline: float) -> socket.socket:
        mine = self._parties[self._me]
        while True:
            try:
                return socket.create_server((mine.host, mine.port), backlog=len(self._parties))
            except OSError as error:  # perhaps of a run that was broken off a moment ago
                if time.monotonic() + _RETRY_SECONDS > deadline:
                    raise ShuffleAborted("port", mine.port, f"one to listen at: {error.strerror}") from None
                time.sleep(_RETRY_SECONDS)

    def _accept(self, listener: socket.socket, deadline: float, complete: threading.Event) -> None:
        listener.settimeout(_ACCEPT_SECONDS)
        while time.monotonic() < deadline and not complete.is_set():
            try:
                plain, _ = listener.accept()
            except OSError:  # nobody called, or whoever did is gone
                continue
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
            if number is None or number <= self._me or number in self._connections:
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
                # Who is awaited may have come and gone; the others were told.
                if self.mailbox.wait(lambda: self.mailbox.any_failure() is not None, _RETRY_SECONDS):
                    raise self.mailbox.any_failure() or error from None
        if self._known.get(connection.getpeercert(binary_form=True) or b"") != number:
            connection.close()
            raise ShuffleAborted("party", number, "the certificate of that party")
        self._begin(number, connection)

    def _begin(self, number: int, tls_socket: ssl.SSLSocket) -> None:
        connection = self._connections[number] = TlsConnection(tls_socket, self._seconds)
        self.mailbox.stir()
        threading.Thread(target=self._read, args=(number, connection), daemon=True).start()

    def _everyone_or_failed(self) -> bool:
        return self.mailbox.any_failure() is not None or len(self._connections) == len(self._parties) - 1

    def _read(self, number: int, connection: TlsConnection) -> None:
        try:
            while True:
                length, size = _HEADER.unpack(connection.read(_HEADER.size))
                if length > _MOST_TOPIC:
                    raise ShuffleAborted("party", number, f"topics of at most {_MOST_TOPIC} bytes")
                topic = connection.read(length).decode("ascii", "replace")
                most = _MOST_REASON + len(_AGAIN) if topic == ABORT else self.mailbox.allowed(number, topic)
                if size > most:
                    raise ShuffleAborted("party", number, f"at most {most:,} bytes about {topic}; it sends {size:,}")
                body = connection.read(size)
                if topic == ABORT:
                    raise _called_off(number, body)
                self.received_bytes += _HEADER.size + length + size
                self.mailbox.put(number, topic, body)
        except ShuffleAborted as error:
            self.mailbox.fail(number, error, left=False)
        except OSError:
            gone = _loss("party", number, "to stay until the end; its connection is gone")
            self.mailbox.fail(number, gone, left=True)


def _loss(field: str, value: object, allowed: str) -> ShuffleAborted:
    error = ShuffleAborted(field, value, allowed)
    error.lost = True
    return error


def _called_off(number: int, body: bytes) -> ShuffleAborted:
    reason = body.removeprefix(_AGAIN).decode("utf-8", "replace")
    error = ShuffleAborted("party", number, f"to go on; it stopped: {reason}")
    error.lost = body.startswith(_AGAIN)
    return error
