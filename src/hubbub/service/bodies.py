"""The bodies of requests that are still arriving: together they may take so much memory, and not more."""

from __future__ import annotations

import asyncio

SMALL = 16 << 10
"""Bytes up to which a body is not counted: there are at most as many as connections."""


class Bodies:
    """Bytes of unfinished bodies, oldest first. If they are too many the oldest has to go: others finish in no time.

    Parameters
    ----------
    most
        Bytes of all of them.

    Example:
        >>> async def example():
        ...     bodies = Bodies(most=1 << 20)
        ...     async with asyncio.timeout(30) as first, asyncio.timeout(30) as second:
        ...         bodies.grown(first, 600_000)
        ...         bodies.grown(second, 600_000)  # the first is sent away: its time is over at once
        ...         return first.when() < second.when(), bodies.total
        >>> asyncio.run(example())
        (True, 600000)
    """

    def __init__(self, most: int = 128 << 20) -> None:
        self.most = most
        self.total = 0
        self.sent_away = 0
        self._sizes: dict[asyncio.Timeout, int] = {}

    def grown(self, body: asyncio.Timeout, size: int) -> None:
        """A body, known by the timeout that it is read under, has so many bytes now."""
        if size <= SMALL:
            return
        self.total += size - self._sizes.get(body, 0)
        self._sizes[body] = size
        while self.total > self.most and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            self.done(oldest)
            self.sent_away += 1
            oldest.reschedule(asyncio.get_running_loop().time())

    def done(self, body: asyncio.Timeout) -> None:
        """A body is here, or will not come."""
        self.total -= self._sizes.pop(body, 0)
