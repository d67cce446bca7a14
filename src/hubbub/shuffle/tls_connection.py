"""A TLS connection that one thread reads while others write."""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import threading
import time

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
        """Wait for so many bytes; raises an `OSError` if the connection ends before."""
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
