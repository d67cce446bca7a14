"""Limits the connections of a server: their number, and how long each may wait for its client."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol

from hubbub.service.limits import ConnectionLimits
from hubbub.service.senders import PROXIES, network_of

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
        self._all: set[Connection] = set()
        self._waiting: dict[Connection, None] = {}
        self._senders: Counter[str] = Counter()
        self._sweep: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._all)

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
        if len(self._all) >= self._most:
            oldest = next(iter(self._waiting), None)
            self._close(oldest or connection, "connections")
            if oldest is None:
                return False
        self._all.add(connection)
        self._senders[connection.address] += 1
        if self._sweep is None:
            self._sweep = loop.call_later(_SWEEP, self._close_overdue, loop)
        return True

    def leave(self, connection: Connection) -> None:
        """Remove a closed connection."""
        self._waiting.pop(connection, None)
        if connection in self._all:
            self._all.remove(connection)
            self._senders[connection.address] -= 1
            if not self._senders[connection.address]:
                del self._senders[connection.address]

    def waits(self, connection: Connection, waits: bool) -> None:
        """Note whether a connection waits for its client."""
        self._waiting.pop(connection, None)
        if waits and connection in self._all:
            self._waiting[connection] = None

    def _close_overdue(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close connections past their deadline, and the largest unread answers if all together exceed the limit."""
        now, unread = loop.time(), 0
        for connection in list(self._all):
            if now > min(connection.deadline, connection.write_deadline):
                self._close(connection, "unread" if now > connection.write_deadline else connection.state)
            elif connection.write_deadline < math.inf:
                unread += connection.unread
        if unread > self.limits.unread_bytes:
            slow = [connection for connection in self._all if connection.write_deadline < math.inf]
            for connection in sorted(slow, key=lambda connection: connection.unread, reverse=True):
                if unread <= self.limits.unread_bytes:
                    break
                unread -= connection.unread
                self._close(connection, "unread")
        self._sweep = loop.call_later(_SWEEP, self._close_overdue, loop) if self._all else None

    def _close(self, connection: Connection, reason: str) -> None:
        self.closed[reason] += 1
        self.leave(connection)
        connection.abort()
