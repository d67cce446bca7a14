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
