"""Limits how much each sender may send, and how many connections there are and how long they may wait."""

import asyncio
import hashlib
import hmac
import ipaddress
import math
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from hubbub.collection import Clock
from hubbub.core.errors import InvalidValue
from hubbub.random.source import Random
from hubbub.service.base.limits import ConnectionLimits, Quota, RefusedRequest, SenderLimits

HEADER = b"x-hubbub-sender"
"""The header that a proxy adds to a request: the sender's address, a space, and the proxy's signature."""

PROXIES = frozenset({"", "127.0.0.1", "::1", "::ffff:127.0.0.1"})
"""Addresses of a proxy on the same machine; "" is a socket without an address."""

PRICE = 50
"""How many reports a request for a page, or a refused request, counts as: about what it costs the server."""

_HOUR = 3600.0
_SHORTEST = 16


class Senders:
    """A token bucket for each sender, in memory, under a keyed hash of the address. The key changes every hour."""

    def __init__(self, limits: SenderLimits, clock: Clock, rng: Random | None = None) -> None:
        self._limits = limits
        self._clock = clock
        self._rng = rng or Random()
        self._quota = Quota(rate=limits.rate, burst=limits.burst, clock=clock, most=limits.most)
        self._key, self._until = b"", 0.0

    def __len__(self) -> int:
        return len(self._quota)

    def name(self, address: str, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """The hash of a request's sender; None, and not limited, if the sender is unknown behind a proxy."""
        secret = self._limits.secret
        if secret is not None:
            address = next((_signed(value, secret) for name, value in headers if name == HEADER), None) or address
        elif address in PROXIES:
            return None
        now = self._clock.now()
        if not self._until - _HOUR <= now < self._until:
            self._key, self._until = self._rng.bytes(32), now + _HOUR
            self._quota.clear()
        return hashlib.blake2b(network_of(address).encode(), key=self._key, digest_size=16).hexdigest()

    def take(self, name: str | None, reports: int) -> None:
        """Count reports of a sender, or refuse them (`RefusedRequest`) if the sender's bucket is empty."""
        if name is None:
            return
        wait = self._quota.take(name, reports)
        if wait:
            self._quota.owe(name, PRICE)
            reason = f"more than {self._limits.rate:g} reports per second; try again in {wait:.3g} seconds"
            raise RefusedRequest("over_sender_quota", reason, wait=wait)

    def blocked(self, address: str) -> bool:
        """Whether a sender went on for so long after refusals that not even a connection is accepted.

        A sender in debt also pays for connections: many at once would else all be accepted before the first is refused.
        """
        if not len(self._quota) or address in PROXIES:
            return False
        name = self.name(address, ())
        left = self._quota.left(name) if name is not None else 0.0
        if name is not None and -self._limits.burst <= left < 0:
            self._quota.owe(name, PRICE)
        return left < -self._limits.burst

    def correct(self, name: str | None, reports: int) -> None:
        """Count `reports` more, or fewer if negative, for a sender whose request held another number than estimated."""
        if name is not None:
            self._quota.owe(name, reports)


def network_of(address: str) -> str:
    """The network that counts as one sender: an IPv4 address, or the /64 network of an IPv6 address."""
    if ":" not in address:
        return address
    try:
        parsed = ipaddress.IPv6Address(address)
    except ValueError:
        return address
    return str(parsed.ipv4_mapped or ipaddress.IPv6Network((parsed, 64), strict=False))


def signed_sender(address: str, secret: bytes) -> str:
    """The value of `X-Hubbub-Sender`: the address, and its HMAC-SHA256 under the proxy's secret in hexadecimal."""
    return f"{address} {hmac.new(secret, address.encode(), 'sha256').hexdigest()}"


def read_secret(path: Path) -> bytes:
    """The secret in a file, without surrounding white space.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "secret"
        >>> path.write_text("a secret of the proxy\\n")
        22
        >>> read_secret(path)
        b'a secret of the proxy'
    """
    secret = path.read_bytes().strip()
    if len(secret) < _SHORTEST:
        raise InvalidValue("proxy secret", f"{len(secret)} bytes", f"at least {_SHORTEST} bytes, in {path}")
    return secret


def _signed(value: bytes, secret: bytes) -> str | None:
    """The address in a proxy's header, if its signature is valid; else None."""
    address, _, signature = value.partition(b" ")
    expected = hmac.new(secret, address, "sha256").hexdigest().encode()
    return address.decode("latin-1") if hmac.compare_digest(signature.strip().lower(), expected) else None


_SWEEP = 0.5


class Connection(Protocol):
    """What a guard needs of a connection."""

    address: str
    state: str
    deadline: float
    """When the connection is closed, unless its client sends something before."""
    write_deadline: float
    """When the connection is closed, unless its client reads before."""

    @property
    def unread(self) -> int:
        """Bytes that wait for the client to read them."""
        ...

    def abort(self) -> None:
        """Close it at once."""
        ...


class Guard:
    """The connections of a server, in the order in which they began to wait for their clients."""

    def __init__(
        self,
        limits: ConnectionLimits | None = None,
        *,
        proxies: Iterable[str] = PROXIES,
        blocked: Callable[[str], bool] = lambda address: False,
    ) -> None:
        self.limits = limits or ConnectionLimits()
        self._blocked = blocked
        self.closed: Counter[str] = Counter()
        """How many connections were closed, by reason."""
        self._most = self.limits.most
        self._proxies = frozenset(map(network_of, proxies))
        self.connections: set[Connection] = set()
        self._waiting: dict[Connection, None] = {}
        self._senders: Counter[str] = Counter()
        self._sweep: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self.connections)

    def refuses(self, address: str) -> bool:
        """Whether to refuse an address that has too many connections, or is blocked. Refusals are counted."""
        if address in self._proxies:
            return False
        too_many = self._senders[address] >= self.limits.sender_connections
        if too_many or self._blocked(address):
            self.closed["sender_connections" if too_many else "blocked"] += 1
            return True
        return False

    def enter(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> bool:
        """Add a connection. If there is no room, the one that has waited longest for its client is closed for it.

        Returns False if none waits: then the new connection is closed.
        """
        if len(self.connections) >= self._most:
            oldest = next(iter(self._waiting), None)
            self._close(oldest or connection, "connections")
            if oldest is None:
                return False
        self.connections.add(connection)
        self._senders[connection.address] += 1
        if self._sweep is None:
            self._sweep = loop.call_later(_SWEEP, self._close_overdue, loop)
        return True

    def leave(self, connection: Connection) -> None:
        """Remove a closed connection."""
        self._waiting.pop(connection, None)
        if connection in self.connections:
            self.connections.remove(connection)
            self._senders[connection.address] -= 1
            if not self._senders[connection.address]:
                del self._senders[connection.address]

    def waits(self, connection: Connection, waits: bool) -> None:
        """Note whether a connection waits for its client."""
        self._waiting.pop(connection, None)
        if waits and connection in self.connections:
            self._waiting[connection] = None

    def _close_overdue(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close connections past their deadline, and the largest unread answers if all together exceed the limit."""
        now, unread = loop.time(), 0
        for connection in list(self.connections):
            if now > min(connection.deadline, connection.write_deadline):
                self._close(connection, "unread" if now > connection.write_deadline else connection.state)
            elif connection.write_deadline < math.inf:
                unread += connection.unread
        if unread > self.limits.unread_bytes:
            slow = [connection for connection in self.connections if connection.write_deadline < math.inf]
            for connection in sorted(slow, key=lambda connection: connection.unread, reverse=True):
                if unread <= self.limits.unread_bytes:
                    break
                unread -= connection.unread
                self._close(connection, "unread")
        self._sweep = loop.call_later(_SWEEP, self._close_overdue, loop) if self.connections else None

    def _close(self, connection: Connection, reason: str) -> None:
        self.closed[reason] += 1
        self.leave(connection)
        connection.abort()
