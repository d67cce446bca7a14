"""How a client reaches its server: an object with one method."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from hubbub.core.errors import HubbubError, InvalidValue

MOST_BYTES = 8 << 20
"""The longest response that is read: a collection with a very long list of names takes a tenth of it."""


class Unreachable(HubbubError):
    """The server gave no response, or none that can be used: try again later."""


class Response(NamedTuple):
    """The response to a request: a status, headers by lower-case name, and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport(Protocol):
    """Anything that carries a request to a server."""

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        """The server's response; `Unreachable` where there is none."""
        ...


class HttpTransport:
    """HTTP or HTTPS, with nothing but the standard library. Redirects are not followed.

    Parameters
    ----------
    url
        Where the server is, such as "https://stats.example.org".
    timeout
        Seconds to wait for each answer.

    Example:
        >>> HttpTransport("ftp://stats.example.org")
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: url: got 'ftp://stats.example.org'; allowed: an http or https address
    """

    def __init__(self, url: str, *, timeout: float = 10.0) -> None:
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidValue("url", url, "an http or https address")
        self._host, self._port, self._root = parts.hostname, parts.port, parts.path.rstrip("/")
        self._timeout = timeout
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        """Send a request and read its response; one that is too long raises `Unreachable`."""
        connection = self._connect()
        try:
            connection.request(method, self._root + path, body=body, headers=dict(headers))
            response = connection.getresponse()
            body_read = response.read(MOST_BYTES + 1)
            if len(body_read) > MOST_BYTES:
                raise Unreachable(f"{method} {path}: the answer is longer than {MOST_BYTES} bytes")
            return Response(response.status, {name.lower(): value for name, value in response.getheaders()}, body_read)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(f"{method} {path}: {type(error).__name__}: {error}") from error
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
