"""Server-sent events: releases, asks, alarms and counters, sent to all listeners as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec

from hubbub.core.spec import Json

_ROOM = 256
_SILENCE = 15.0


class Hub:
    """Sends events to all listeners of a collection. A listener that reads too slowly is disconnected."""

    def __init__(self) -> None:
        self._listeners: dict[asyncio.Queue[bytes | None], str] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._listeners)

    def tell(self, collection: str, event: str, data: dict[str, Json]) -> None:
        """Send an event to the listeners of a collection. Must be called in their event loop."""
        message = b"event: %s\ndata: %s\n\n" % (event.encode(), msgspec.json.encode(data))
        for queue, listened_to in list(self._listeners.items()):
            if listened_to != collection:
                continue
            if queue.qsize() >= _ROOM - 1:
                del self._listeners[queue]
                queue.put_nowait(None)
            else:
                queue.put_nowait(message)

    async def listen(self, collection: str) -> AsyncIterator[bytes]:
        """The events of a collection from now on, as the bytes to send."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(_ROOM)
        if self._closed:
            return
        self._listeners[queue] = collection
        try:
            yield b": hello\n\n"
            while True:
                try:
                    message = await asyncio.wait_for(queue.get(), _SILENCE)
                except TimeoutError:
                    message = b": still here\n\n"  # a proxy might close a silent connection
                if message is None:
                    return
                yield message
        finally:
            self._listeners.pop(queue, None)

    def close(self) -> None:
        """Disconnect all listeners."""
        self._closed = True
        for queue in list(self._listeners):
            queue.put_nowait(None)
        self._listeners.clear()
