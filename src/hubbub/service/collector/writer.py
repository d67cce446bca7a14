"""The one thread that changes the collector, and the probe of whether the store takes commits."""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hubbub.core.errors import HubbubError
from hubbub.service.base.limits import Receipt
from hubbub.service.base.logs import log
from hubbub.service.collector.collector import Collector
from hubbub.service.ingest.frames import Frame
from hubbub.service.store.base import StoreFailed
from hubbub.service.store.sql import Store

GATHER = 0.003
"""Seconds that a group waits for more requests: a commit costs about as much for one report as for a thousand."""
LONGEST_GATHER = 0.02
"""The same where several processes take reports: each has a share of them, and groups would else be smaller."""
MOST_GROUP = 50_000
MOST_WAITING = 200_000
DOOR = 2.5
"""New frames are turned away once the oldest waiting frame has waited this many seconds."""
LONGEST_WAIT = 6.0
"""Seconds after which a waiting frame is answered "busy": a client gives up after ten."""
LONGEST_SLEEP = 0.5


class Busy(HubbubError):
    """Too many reports wait to be answered in time or held in memory. The sender may safely try again."""


class Stopped(HubbubError):
    """The writer is stopping, or its store has failed: nothing more is counted."""


@dataclass(frozen=True)
class _Waiting:
    frame: Frame
    future: asyncio.Future[Receipt]
    since: float


class Writer:
    """Group commit: `submit` returns the receipt of a frame once the frame is on the disk.

    `on_failure`: called once, from the writer's thread, with an error that stops the collector.
    """

    def __init__(self, collector: Collector, on_failure: Callable[[BaseException], None]) -> None:
        self._collector = collector
        self._on_failure = on_failure
        self._waiting: deque[_Waiting] = deque()
        self._group: list[_Waiting] = []
        self._reports = 0
        self.shed = 0
        """Requests that were answered "busy" because they waited too long."""
        self._change = threading.Condition()
        self.stopping = False
        self.failure: BaseException | None = None
        self.warm = threading.Event()
        """Set once the kernels that reports need are compiled, in this thread."""
        self.commits = 0
        self.commit_seconds = 0.0
        self._thread = threading.Thread(target=self._run, name="hubbub-writer", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the thread. `submit` must be called in this event loop."""
        self._loop = loop
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many reports are waiting."""
        return self._reports

    async def submit(self, frame: Frame) -> Receipt:
        """Have a frame counted. Returns its receipt once the commit is durable."""
        now = time.monotonic()
        waiting = _Waiting(frame, asyncio.get_running_loop().create_future(), now)
        with self._change:
            if self.stopping or self.failure is not None:
                raise Stopped("the collector is stopping")
            if self._reports >= MOST_WAITING:
                raise Busy(f"{self._reports:,} reports are waiting")
            if self._waiting and now - self._waiting[0].since > DOOR:
                raise Busy(f"reports have been waiting for {now - self._waiting[0].since:.3g} seconds")
            self._waiting.append(waiting)
            self._reports += frame.count
            self._change.notify()
        return await waiting.future

    def send_away(self) -> None:
        """Answer "busy" to all frames that have waited too long. Called in the event loop.

        Frames that no commit includes yet are dropped; those of the commit under way may still be counted.
        """
        latest = time.monotonic() - LONGEST_WAIT
        with self._change:
            overdue = []
            while self._waiting and self._waiting[0].since < latest:
                overdue.append(self._waiting.popleft())
                self._reports -= overdue[-1].frame.count
            overdue += [waiting for waiting in self._group if waiting.since < latest and not waiting.future.done()]
        self.shed += len(overdue)
        _answer(overdue, [Busy(f"not counted within {LONGEST_WAIT:g} seconds, as far as is known")] * len(overdue))

    def stop(self) -> None:
        """Take no more frames, count those that wait, and end the thread."""
        with self._change:
            self.stopping = True
            self._change.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            self._collector.warm_up()
            self._collector.watchdog.turn()
            self.warm.set()
            due = self._tick()
            while True:
                self._collector.watchdog.turn()
                self._gather(due)
                if self._group:
                    self._ingest(self._group)
                    self._group = []
                elif self.stopping:
                    self._tick()
                    self._collector.watchdog.stopped_in_order()
                    self._collector.resign()
                    return
                if time.monotonic() >= due:
                    due = self._tick()
        except BaseException as error:
            self._fail(error)

    def _tick(self) -> float:
        """Do what is due. Returns when to do so again, in seconds of the monotonic clock.

        That is soon even if nothing is due for long: the collector's clock may be set, and the monotonic clock is not.
        """
        wait = self._collector.tick() - self._collector.clock.now()
        return time.monotonic() + min(max(wait, 0.0), LONGEST_SLEEP)

    def _gather(self, due: float) -> None:
        """Wait for frames, and make those that wait the next group."""
        with self._change:
            if not self._waiting and not self.stopping:
                self._change.wait(max(due - time.monotonic(), 0.001))
            if not self._waiting:
                return
        if not self.stopping and self._reports < MOST_GROUP:
            time.sleep(GATHER if self._collector.processes == 1 else LONGEST_GATHER)
        group: list[_Waiting] = []
        with self._change:
            count = 0
            while self._waiting and count < MOST_GROUP:
                group.append(self._waiting.popleft())
                count += group[-1].frame.count
            self._reports -= count
            self._group = group

    def _ingest(self, group: list[_Waiting]) -> None:
        before = time.perf_counter()
        receipts = self._collector.ingest([waiting.frame for waiting in group])
        self.commits += 1
        self.commit_seconds += time.perf_counter() - before
        self._wake(group, receipts)

    def _wake(self, group: Sequence[_Waiting], answers: Sequence[Receipt | HubbubError]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_answer, group, answers)

    def _fail(self, error: BaseException) -> None:
        with self._change:
            self.failure = error
            group = [*self._group, *self._waiting]
            self._group = []
            self._waiting.clear()
            self._reports = 0
        self._wake(group, [Stopped(f"the collector has failed: {type(error).__name__}")] * len(group))
        self._on_failure(error)
        self._collector.resign()


def _answer(group: Sequence[_Waiting], answers: Sequence[Receipt | HubbubError]) -> None:
    """Resolve the futures of a group; runs in their event loop."""
    for waiting, answer in zip(group, answers, strict=True):
        if waiting.future.done():  # the sender is gone, or was answered "busy"
            continue
        if isinstance(answer, Receipt):
            waiting.future.set_result(answer)
        else:
            waiting.future.set_exception(answer)


FRESH_SECONDS = 1.0
"""Seconds for which the result of a probe is reused."""
PATIENCE = 1.0
"""Seconds that the store has to answer."""
_FAILED = "commits are not taken; the log says why"
_SILENT = "there is no answer"


class StoreProbe:
    """Probes a store, with one probe at a time. While a probe gets no answer, the store counts as not ready."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._probing: threading.Thread | None = None
        self._answered = -FRESH_SECONDS
        self.problem: str | None = None
        """What was wrong at the latest probe."""

    async def look(self) -> str | None:
        """What is wrong with the store; None if nothing is."""
        if self._probing is None and time.monotonic() - self._answered >= FRESH_SECONDS:
            self._probing = threading.Thread(target=self._probe, name="hubbub-probe", daemon=True)
            self._probing.start()
        deadline = time.monotonic() + 2 * PATIENCE
        while self._probing is not None:
            if time.monotonic() >= deadline:
                self._set_problem(_SILENT, "")
                break
            await asyncio.sleep(0.005)
        return self.problem

    def _probe(self) -> None:
        try:
            self._store.probe(PATIENCE)
        except StoreFailed as error:
            self._set_problem(_FAILED, str(error))
        except Exception as error:  # the store is being closed
            self._set_problem(_FAILED, type(error).__name__)
        else:
            self._set_problem(None, "")
        self._answered, self._probing = time.monotonic(), None

    def _set_problem(self, problem: str | None, detail: str) -> None:
        before, self.problem = self.problem, problem
        if problem is not None and before is None:
            log("store not ready", level=logging.WARNING, detail=detail or problem)
        elif problem is None and before is not None:
            log("store ready")
