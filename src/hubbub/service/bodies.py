"""Bounds the memory of all request bodies that are still arriving."""

from __future__ import annotations

import asyncio

SMALL = 16 << 10
"""Bytes up to which a body is not counted: there are at most as many such bodies as connections."""


class Bodies:
    """The sizes of unfinished bodies, oldest first. If they exceed `most` together, the oldest is dropped.

    Parameters
    ----------
    most
        The most bytes of all bodies together.

    Example:
        >>> async def example():
        ...     bodies = Bodies(most=1 << 20)
        ...     async with asyncio.timeout(30) as first, asyncio.timeout(30) as second:
        ...         bodies.grown(first, 600_000)
        ...         bodies.grown(second, 600_000)  # the first is dropped: its timeout expires at once
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
        """Note the size of a body so far. The body is identified by the timeout that it is read under."""
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
        """Note that a body has arrived, or will not."""
        self.total -= self._sizes.pop(body, 0)
