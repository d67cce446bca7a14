"""The writer: groups, backpressure, and what becomes of those who wait when the store fails."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from hubbub import Random
from hubbub.collection import ManualClock
from hubbub.service.collector import writer
from hubbub.service.collector.writer import Busy, Stopped
from hubbub.service.http.service import Service
from hubbub.service.ingest.frames import Frame
from hubbub.service.store.base import StoreChanges, StoreFailed
from hubbub.service.store.sqlite import SqliteStore
from tests.service.exact_world import batch_frame, exact_collection, upload_frame
from tests.shared.in_process import open_now, start_collector

COLLECTION = exact_collection()


class Slow(SqliteStore):
    """A store whose commits wait until they are let through, or fail."""

    def __init__(self) -> None:
        super().__init__(":memory:", Random(seed=1))
        self.gate = threading.Event()
        self.gate.set()
        self.broken = False
        self.made: list[StoreChanges] = []

    def commit(self, changes: StoreChanges) -> Counter[tuple[str, str]]:
        self.gate.wait(300)
        if self.broken:
            raise StoreFailed("the disk is full")
        deleted = super().commit(changes)
        self.made.append(changes)
        return deleted


class Working:
    """A service that is running."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store, self.patch = Slow(), partial(monkeypatch.setattr, writer)
        self.failures: list[BaseException] = []
        self.clock = ManualClock(1000.0)
        self.collector = start_collector(COLLECTION, self.clock, self.store)
        self.service = Service(self.collector, self.failures.append)
        self.ask = open_now(self.collector)[0].ask

    def frame(self, number: int, *, size: int = 1) -> Frame:
        ids = [(1000 * number + row).to_bytes(16, "big") for row in range(size)]
        make = upload_frame if size == 1 else batch_frame
        return make(COLLECTION, self.ask, ids, [number % 100] * size)

    def submit(self, number: int, *, size: int = 1) -> asyncio.Future[Any]:
        return asyncio.ensure_future(self.service.writer.submit(self.frame(number, size=size)))

    async def begin(self, number: int) -> asyncio.Future[Any]:
        """Submit a report, and wait until the writer has taken it, so that its commit waits at the gate."""
        self.store.gate.clear()
        begun = self.submit(number)
        await asyncio.sleep(0)  # `submit` runs
        while self.service.writer.waiting:
            await asyncio.sleep(0.01)
        return begun


def scenario(act: Callable[[Working], Coroutine[Any, Any, None]]) -> Callable[[pytest.MonkeyPatch], None]:
    """A test whose service is started, and stopped after it."""

    def test(monkeypatch: pytest.MonkeyPatch) -> None:
        async def run() -> None:
            working = Working(monkeypatch)
            await working.service.start()
            try:
                await act(working)
            finally:
                working.store.gate.set()
                await working.service.stop()

        asyncio.run(run())

    return test


@scenario
async def test_what_waits_is_committed_together(working: Working) -> None:
    first = await working.begin(0)
    others = [working.submit(number) for number in range(1, 40)]
    await asyncio.sleep(0)
    working.store.gate.set()
    receipts = await asyncio.gather(first, *others)
    assert [receipt.accepted for receipt in receipts] == [1] * 40
    groups = [changes for changes in working.store.made if changes.id_pages]
    assert len(groups) <= 3
    assert working.service.writer.commits == len(groups)
    assert working.service.writer.waiting == 0


@scenario
async def test_nobody_is_answered_before_the_commit(working: Working) -> None:
    waiting = await working.begin(1)
    await asyncio.sleep(0.1)  # an answer before the commit would be here by then
    assert not waiting.done()
    working.store.gate.set()
    assert (await waiting).accepted == 1


@scenario
async def test_those_who_gave_up_are_counted_all_the_same(working: Working) -> None:
    waiting = await working.begin(1)
    waiting.cancel()
    working.store.gate.set()
    assert (await working.submit(1)).duplicates == 1


@scenario
async def test_too_many_are_sent_away(working: Working) -> None:
    working.patch("MOST_WAITING", 100)
    first = await working.begin(0)
    others = [working.submit(number, size=60) for number in range(1, 3)]
    await asyncio.sleep(0)
    with pytest.raises(Busy, match="120 reports are waiting"):
        await working.submit(9)
    working.store.gate.set()
    assert [receipt.accepted for receipt in await asyncio.gather(first, *others)] == [1, 60, 60]
    assert (await working.submit(9)).accepted == 1


@scenario
async def test_groups_are_bounded(working: Working) -> None:
    working.patch("MOST_GROUP", 100)
    working.store.gate.clear()
    waiting = [working.submit(number, size=60) for number in range(9)]
    await asyncio.sleep(0)
    working.store.gate.set()
    await asyncio.gather(*waiting)
    assert all(changes.counts[COLLECTION.collection_id, "accepted"] <= 120 for changes in working.store.made)


@scenario
async def test_a_store_that_fails_ends_everything_and_acknowledges_nothing(working: Working) -> None:
    assert (await working.submit(1)).accepted == 1
    working.store.gate.clear()
    working.store.broken = True
    waiting = [working.submit(number) for number in range(2, 5)]
    await asyncio.sleep(0)
    working.store.gate.set()
    for receipt in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(receipt, Stopped)
    with pytest.raises(Stopped):
        await working.submit(9)
    while not working.failures:
        await asyncio.sleep(0.01)
    assert [type(error) for error in working.failures] == [StoreFailed]
    assert not working.service.ready
    (ask,) = working.collector.board.asks.values()
    assert ask.sketch.n == 1


@scenario
async def test_stopping_counts_what_waits_and_takes_no_more(working: Working) -> None:
    working.store.gate.clear()
    waiting = [working.submit(number) for number in range(20)]
    await asyncio.sleep(0)
    stopping = asyncio.ensure_future(asyncio.to_thread(working.service.writer.stop))
    while not working.service.writer.stopping:
        await asyncio.sleep(0.01)
    with pytest.raises(Stopped):
        await working.submit(99)
    working.store.gate.set()
    await stopping
    assert [receipt.accepted for receipt in await asyncio.gather(*waiting)] == [1] * 20


@scenario
async def test_listeners_hear_of_asks_and_counts(working: Working) -> None:
    listening = working.service.hub.listen("exact")
    events = [await anext(listening)]
    await working.submit(1)
    events.append(await asyncio.wait_for(anext(listening), 60))
    assert events[1] == b'event: counts\ndata: {"accepted":1}\n\n'
    working.clock.set(1110.0)
    messages = {await asyncio.wait_for(anext(listening), 60) for _ in range(2)}
    assert messages == {
        b'event: ask\ndata: {"question":"all","step":11}\n\n',
        b'event: release\ndata: {"question":"all","step":10}\n\n',
    }
    working.service.drain()
    assert [message async for message in listening] == []


@scenario
async def test_a_listener_that_does_not_keep_up_is_let_go(working: Working) -> None:
    hub = working.service.hub
    listening = hub.listen("exact")
    await anext(listening)
    for number in range(300):
        hub.tell("exact", "ask", {"step": number})
        hub.tell("other", "ask", {"step": number})
    assert len(hub) == 0
    assert len([message async for message in listening]) == 255


@scenario
async def test_who_waits_too_long_is_sent_away_and_not_counted(working: Working) -> None:
    begun = await working.begin(0)
    waiting = working.submit(1)
    await asyncio.sleep(0.01)
    working.patch("LONGEST_WAIT", 0.0)
    # The first may be counted already; nobody knows. The second is not, and will not be.
    for each in (begun, waiting):
        with pytest.raises(Busy, match="not counted within 0 seconds, as far as is known"):
            await asyncio.wait_for(each, 60)
    assert working.service.writer.waiting == 0
    assert working.service.writer.shed == 2
    working.patch("LONGEST_WAIT", 60.0)
    working.store.gate.set()
    assert (await working.submit(1)).accepted == 1
    again = await working.submit(0)
    assert again.accepted + again.duplicates == 1
    assert (await working.submit(0)).duplicates == 1


@scenario
async def test_nobody_is_let_in_behind_those_who_wait_too_long(working: Working) -> None:
    working.patch("DOOR", 0.0)
    begun = await working.begin(0)
    waiting = working.submit(1)
    await asyncio.sleep(0.01)
    with pytest.raises(Busy, match="reports have been waiting for"):
        await working.submit(2)
    working.store.gate.set()
    assert [receipt.accepted for receipt in await asyncio.gather(begun, waiting)] == [1, 1]
