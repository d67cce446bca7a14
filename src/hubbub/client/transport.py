"""How a client reaches its server: an object with one method; and the delays before the next try."""

from __future__ import annotations

import http.client
import math
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit

from hubbub.core.bounded_http import HttpPeer, Response
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.random.source import Random

__all__ = ["DEADLINE", "MOST_BYTES", "HttpTransport", "Response", "Transport", "Unreachable"]


def uniform(rng: Random) -> float:
    """A random number from 0 to below 1, for delays: privacy does not depend on it."""
    return float(rng.uint32(1)[0]) / (1 << 32)


class Delay:
    """A wait of some seconds from now. It is over at once if the clock is set back before its beginning."""

    def __init__(self, now: float, seconds: float) -> None:
        self.since, self.until = now, now + seconds

    def over(self, now: float) -> bool:
        """Whether the wait is over."""
        return not self.since <= now < self.until


class Backoff:
    """Exponential backoff with full jitter: after k failures in a row, anything up to base 2^k seconds, at most `cap`.

    Parameters
    ----------
    rng
        Where the delays come from.
    base, cap
        Seconds.
    """

    def __init__(self, rng: Random, *, base: float = 1.0, cap: float = 3600.0) -> None:
        self._rng, self._base, self._cap = rng, base, cap
        self._failures = 0
        self._delay: Delay | None = None

    def ready(self, now: float) -> bool:
        """Whether it is time to try."""
        return self._delay is None or self._delay.over(now)

    def failed(self, now: float, at_least: float = 0.0) -> None:
        """Wait after a failure, for at least as long as the server asked for."""
        self._failures += 1
        most = min(self._cap, self._base * 2.0 ** min(self._failures, 30))
        self._delay = Delay(now, max(uniform(self._rng) * most, min(at_least, self._cap)))

    def succeeded(self) -> None:
        """Reset after a success: the next failure counts as the first."""
        self._failures, self._delay = 0, None


MOST_BYTES = 8 << 20
"""The longest response that is read: a collection with a very long list of names takes a tenth of it."""
DEADLINE = 30.0
"""Seconds for a whole request, however the server answers: a very long collection on a slow line takes half of it."""


class Unreachable(HubbubError):
    """The server gave no response, or none that can be used: try again later."""


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
        Seconds for a whole request: connecting, sending, and reading the response to its last byte.

    Example:
        >>> HttpTransport("ftp://stats.example.org")
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: url: got 'ftp://stats.example.org'; allowed: an http or https address
    """

    def __init__(self, url: str, *, timeout: float = DEADLINE) -> None:
        try:
            parts = urlsplit(url)
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except (ValueError, AttributeError):
            valid = False
        if not valid:
            raise InvalidValue("url", url, "an http or https address")
        self._peer = HttpPeer(parts, seconds=timeout, most_bytes=MOST_BYTES)
        self._root = parts.path.rstrip("/")

    def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        at_most: float = math.inf,
    ) -> Response:
        """Send a request and read its response; one that is too slow or too long raises `Unreachable`.

        With `at_most`, it takes no more seconds than that.
        """
        try:
            return self._peer.request(method, self._root + path, headers, body, at_most=at_most)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(f"{method} {path}: {type(error).__name__}: {error}") from error
