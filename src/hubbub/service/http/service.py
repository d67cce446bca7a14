"""A collector in an event loop: its writer, whether it is ready for reports, and the events it sends to listeners."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from hubbub.core.spec import Json
from hubbub.service.collector.collector import Collector
from hubbub.service.collector.writer import StoreProbe, Writer
from hubbub.service.http.bodies import Bodies
from hubbub.service.http.guard import Guard, Senders
from hubbub.service.http.table_queries import TableQueries
from hubbub.service.store.base import StoreChanges
from hubbub.service.store.scrub import Scrub
from hubbub.service.webhooks.config import Webhook
from hubbub.service.webhooks.sender import WebhookSender

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


BEAT = 0.5
"""Seconds between two updates of the counters to listeners: commits may be a few milliseconds apart."""


class Service:
    """What all routes share. `start` and `stop` are called in the event loop of the server.

    `on_failure`: called in the event loop with an error that stops the collector. `webhooks`: the receivers of alarm
    events.
    """

    def __init__(
        self,
        collector: Collector,
        on_failure: Callable[[BaseException], None] = lambda error: None,
        webhooks: Sequence[Webhook] = (),
    ) -> None:
        self.collector = collector
        self.hub = Hub()
        self.tables = TableQueries(collector)
        self.writer = Writer(collector, self._failed)
        self.scrub = Scrub(collector.store)
        self.senders = Senders(collector.limits.senders, collector.clock)
        self.guard = Guard(collector.limits.connections, blocked=self.senders.blocked)
        self.bodies = Bodies()
        self.webhooks = [WebhookSender(webhook, collector) for webhook in webhooks]
        self.draining = False
        self._on_failure = on_failure
        self._probe = StoreProbe(collector.store)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._beat: asyncio.Task[None] | None = None
        self._names = {collection.collection_id: name for name, collection in collector.collections.items()}

    @property
    def ready(self) -> bool:
        """Whether reports are taken, by the latest probe of the store."""
        return not self._known_problems()

    async def not_ready(self) -> dict[str, str]:
        """Probe the store. Returns why reports are not taken, by the part that is not ready; empty if they are."""
        if not self.draining:
            await self._probe.look()
        return self._known_problems()

    def _known_problems(self) -> dict[str, str]:
        if self.draining:
            return {"collector": "it is stopping"}
        problems: dict[str, str] = {}
        if self._loop is None:
            problems["collector"] = "it has not begun"
        if self.writer.failure is not None:
            problems["collector"] = "it has failed; the log says why"
        if not self.writer.warm.is_set():
            problems["kernels"] = "they are not compiled yet"
        if self.collector.watchdog.silent:
            problems["writer"] = "it has taken no reports for some seconds; the log says why"
        if self._probe.problem is not None:
            problems["store"] = self._probe.problem
        clock = None if self.collector.trusted is None else self.collector.trusted.status()
        if clock is not None and not clock.known:
            problems["clock"] = f"wall time is held in doubt after a reboot, for {clock.seconds_left:.0f} more seconds"
        return problems

    async def warm(self) -> None:
        """Wait until the kernels are compiled, or the writer has failed."""
        while not self.writer.warm.is_set() and self.writer.failure is None:
            await asyncio.sleep(0.01)

    async def start(self) -> None:
        """Start the writer, the webhooks, the updates to listeners and the check of the store."""
        self._loop = asyncio.get_running_loop()
        self._beat = self._loop.create_task(self._tell_counts())
        self.collector.listeners.append(self._committed)
        self.writer.start(self._loop)
        self.scrub.start()
        for sender in self.webhooks:
            sender.start()

    def drain(self) -> None:
        """Disconnect listeners, and report that the service is no longer ready."""
        self.draining = True
        self.hub.close()

    async def stop(self) -> None:
        """Count the reports that wait, and close the store."""
        self.drain()
        if self._beat is not None:
            self._beat.cancel()
        await asyncio.gather(*(asyncio.to_thread(sender.stop) for sender in self.webhooks))
        await asyncio.to_thread(self.writer.stop)  # after the webhooks: what they delivered is in its last commit
        self.tables.close()
        await asyncio.to_thread(self.scrub.stop)
        self.collector.store.close()

    def counts(self, name: str) -> dict[str, int]:
        """How many reports of a collection had which outcome so far."""
        own = self.collector.collections[name].collection_id
        counts = self.collector.counts()
        return {outcome: count for (collection, outcome), count in sorted(counts.items()) if collection == own}

    def _committed(self, changes: StoreChanges) -> None:
        """Tell listeners what was committed. Runs in the writer's thread."""
        if not len(self.hub):
            return
        for release in changes.releases:
            self._tell(release.collection, "release", {"question": release.question, "step": release.step})
        for ask in changes.asks:
            self._tell(ask.collection, "ask", {"question": ask.question, "step": ask.step})
        for row in changes.alarm_events:
            self._pass_on(row.collection, "alarm", json.loads(row.event))

    def _tell(self, collection: str, event: str, data: dict[str, Json]) -> None:
        if collection in self._names:
            self._pass_on(self._names[collection], event, data)

    def _pass_on(self, name: str, event: str, data: dict[str, Json]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.hub.tell, name, event, data)

    async def _tell_counts(self) -> None:
        last: dict[str, dict[str, int]] = {}
        while True:
            await asyncio.sleep(BEAT)
            self.writer.send_away()
            for name in self.collector.collections if len(self.hub) else ():
                counts = self.counts(name)
                if last.get(name) != counts:
                    last[name] = counts
                    self.hub.tell(name, "counts", dict(counts))

    def _failed(self, error: BaseException) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._on_failure, error)
