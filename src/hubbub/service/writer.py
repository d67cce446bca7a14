"""The one thread that changes anything: it gathers what is waiting, commits it together, and answers all of it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hubbub.core.errors import HubbubError
from hubbub.service.collector import Collector
from hubbub.service.frames import Frame
from hubbub.service.receipt import Receipt

__all__ = ["Busy", "Stopped", "Writer"]

GATHER = 0.003
"""Seconds that a group waits for company: a commit costs about as much for one report as for a thousand."""
MOST_GROUP = 50_000
MOST_WAITING = 200_000
LONGEST_SLEEP = 0.5


class Busy(HubbubError):
    """More is waiting than is wise to hold in memory: the sender tries again."""


class Stopped(HubbubError):
    """The writer is stopping, or its store has failed: nothing more is counted."""


@dataclass(frozen=True)
class _Waiting:
    frame: Frame
    future: asyncio.Future[Receipt]


class Writer:
    """Group commit. `submit` waits until a frame is on the disk; `on_failure` hears of an error that ends everything.

    Parameters
    ----------
    collector
        What is written to.
    on_failure
        Called once, from the thread, if the collector can go no further.

    Example:
        >>> from hubbub.service.example import example_collector
        >>> async def example():
        ...     collector = example_collector()
        ...     writer = Writer(collector, on_failure=print)
        ...     writer.start(asyncio.get_running_loop())
        ...     receipt = await writer.submit(Frame(collector.collections["themes"].collection_id))
        ...     writer.stop()
        ...     return receipt
        >>> asyncio.run(example())
        Receipt(accepted=0, duplicates=0, rejected=[])
    """

    def __init__(self, collector: Collector, on_failure: Callable[[BaseException], None]) -> None:
        self._collector = collector
        self._on_failure = on_failure
        self._waiting: deque[_Waiting] = deque()
        self._reports = 0
        self._change = threading.Condition()
        self._stopping = False
        self.failure: BaseException | None = None
        self.commits = 0
        self.commit_seconds = 0.0
        self._thread = threading.Thread(target=self._run, name="hubbub-writer", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin; whoever submits does so in this loop."""
        self._loop = loop
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many reports wait."""
        return self._reports

    async def submit(self, frame: Frame) -> Receipt:
        """Have a frame counted; what became of it, once it is durable."""
        waiting = _Waiting(frame, asyncio.get_running_loop().create_future())
        with self._change:
            if self._stopping or self.failure is not None:
                raise Stopped("the collector is stopping")
            if self._reports >= MOST_WAITING:
                raise Busy(f"{self._reports:,} reports are waiting")
            self._waiting.append(waiting)
            self._reports += frame.count
            self._change.notify()
        return await waiting.future

    def stop(self) -> None:
        """Count what is waiting, take nothing more, and end."""
        with self._change:
            self._stopping = True
            self._change.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        group: list[_Waiting] = []
        try:
            due = self._tick()
            while True:
                group = self._gather(due)
                if group:
                    self._ingest(group)
                    group = []
                elif self._stopping:
                    self._tick()
                    return
                if self._collector.clock.now() >= due:
                    due = self._tick()
        except BaseException as error:
            self._fail(error, group)

    def _tick(self) -> float:
        """Let time pass; when to do so again, at the latest soon: refusals are stored then."""
        return min(self._collector.tick(), self._collector.clock.now() + LONGEST_SLEEP)

    def _gather(self, due: float) -> list[_Waiting]:
        with self._change:
            if not self._waiting and not self._stopping:
                self._change.wait(max(due - self._collector.clock.now(), 0.001))
            if not self._waiting:
                return []
        if not self._stopping and self._reports < MOST_GROUP:
            time.sleep(GATHER)
        group: list[_Waiting] = []
        with self._change:
            count = 0
            while self._waiting and count < MOST_GROUP:
                group.append(self._waiting.popleft())
                count += group[-1].frame.count
            self._reports -= count
        return group

    def _ingest(self, group: list[_Waiting]) -> None:
        before = time.perf_counter()
        receipts = self._collector.ingest([waiting.frame for waiting in group])
        self.commits += 1
        self.commit_seconds += time.perf_counter() - before
        self._wake(group, receipts)

    def _wake(self, group: list[_Waiting], answers: Sequence[Receipt | Stopped]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_answer, group, answers)

    def _fail(self, error: BaseException, group: list[_Waiting]) -> None:
        with self._change:
            self.failure = error
            group += self._waiting
            self._waiting.clear()
            self._reports = 0
        self._wake(group, [Stopped(f"the collector has failed: {type(error).__name__}")] * len(group))
        self._on_failure(error)


def _answer(group: list[_Waiting], answers: Sequence[Receipt | Stopped]) -> None:
    """Wake all who wait; runs in their event loop."""
    for waiting, answer in zip(group, answers, strict=True):
        if waiting.future.done():  # the sender has gone
            continue
        if isinstance(answer, Stopped):
            waiting.future.set_exception(answer)
        else:
            waiting.future.set_result(answer)
