"""A world of devices, networks and crashes, in which every report has a cell of its own.

A cell above 1 is a report counted twice; a 0 for an acknowledged report is one that was lost.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np

from hubbub import Random, Sketch
from hubbub.collection import ManualClock
from hubbub.core.spec import canonical
from hubbub.protocols.ask import Ask
from hubbub.questions.collection import Collection
from hubbub.service.base.limits import Receipt
from hubbub.service.ingest.frames import Frame
from hubbub.service.kept.archive import unpack
from hubbub.service.rounds import retention
from hubbub.service.store import report_ids
from hubbub.service.store.base import AskKey, StoreChanges
from hubbub.service.store.sql import Store
from hubbub.service.store.sqlite import SqliteStore
from tests.service.exact_world import SIZE, batch_frame, exact_collection, upload_frame
from tests.shared.in_process import open_now, start_collector

COLLECTIONS = {adaptive: exact_collection(adaptive=adaptive, keep=not adaptive) for adaptive in (False, True)}


class Crash(BaseException):
    """The process is gone."""


class Crashing(SqliteStore):
    """A store whose process can be made to die at a statement of its next transaction, or right after it."""

    def __init__(self) -> None:
        self.fuse: int | None = None
        super().__init__(":memory:", Random(seed=1))

    def _burn(self) -> None:
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                self.fuse = None
                raise Crash

    def _write(self, sql: str, *values: object) -> list[Any]:
        self._burn()
        return super()._write(sql, *values)

    def _changed(self, sql: str, *values: object) -> int:
        self._burn()
        return super()._changed(sql, *values)

    def commit(self, changes: StoreChanges) -> Counter[tuple[str, str]]:
        deleted = super().commit(changes)
        if self.fuse is not None:  # it outlived the transaction: it dies before anyone is told
            self.fuse = None
            raise Crash
        return deleted


@dataclass
class Report:
    """A report on its device."""

    ask: Ask
    id: bytes
    value: int
    delivered: bool = False
    outcomes: set[str] = field(default_factory=set)


@dataclass
class OnceWorld:
    """One run: `steps` operations drawn from a seed, then the reckoning."""

    seed: int
    store: Store = field(default_factory=Crashing)
    restart: Callable[[OnceWorld], Store] = lambda world: world.store
    steps: int = 20

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        self.collection: Collection = COLLECTIONS[self.draw.random() < 0.4]
        self.clock = ManualClock(1000.0 + self.draw.randrange(45))
        self.reports: list[Report] = []
        self.cells: dict[str, int] = {}
        self.finals: dict[AskKey, bytes] = {}
        self.crashes = 0
        self._start()

    def run(self) -> OnceWorld:
        operations = (self.send, self.send, self.send, self.send, self.wait, self.wait, self.die)
        for _ in range(self.steps):
            self.draw.choice(operations)()
        self.clock.advance(500.0)
        self._alive(self.collector.tick)
        self.reckon()
        return self

    # -- operations -------------------------------------------------------------------------------------------

    def send(self) -> None:
        """Some requests in one group; each may be lost on the way there, or its answer on the way back."""
        requests = [self._request() for _ in range(self.draw.choice((1, 1, 2, 4)))]
        arrived = [(frame, reports) for frame, reports in requests if self.draw.random() > 0.15]
        if isinstance(self.store, Crashing) and self.draw.random() < 0.15:
            self.store.fuse = self.draw.randrange(12)
        for _, reports in arrived:
            for report in reports:
                report.delivered = True
        receipts = self._alive(lambda: self.collector.ingest([frame for frame, _ in arrived]))
        for (_, reports), receipt in zip(arrived, receipts or [], strict=bool(receipts)):
            if self.draw.random() > 0.15:
                self._hear(reports, receipt)

    def wait(self) -> None:
        self.clock.advance(self.draw.choice((1.0, 7.0, 25.0, 60.0)))
        if isinstance(self.store, Crashing) and self.draw.random() < 0.1:
            self.store.fuse = self.draw.randrange(12)
        self._alive(self.collector.tick)

    def die(self) -> None:
        self._start()

    # -- parts ------------------------------------------------------------------------------------------------

    def _request(self) -> tuple[Frame, list[Report]]:
        """Fresh reports, retries of old ones, and old ids with other values; to one ask."""
        ask = self._some_ask()
        own_reports = [report for report in self.reports if report.ask == ask]
        chosen = self.draw.sample(own_reports, min(len(own_reports), self.draw.randrange(4)))
        for report in self.draw.sample(own_reports, min(len(own_reports), self.draw.choice((0, 0, 0, 1)))):
            chosen.append(self._report(ask, report.id))  # a twin: at most one of the two may count
        chosen += [self._report(ask, self.draw.randbytes(16)) for _ in range(self.draw.randrange(4))]
        if chosen and self.draw.random() < 0.1:
            chosen.append(chosen[0])  # twice in one request
        self.draw.shuffle(chosen)
        make = upload_frame if self.draw.random() < 0.5 or not chosen else batch_frame
        return make(self.collection, ask, [report.id for report in chosen], [report.value for report in chosen]), chosen

    def _some_ask(self) -> Ask:
        asks = [open_ask.ask for open_ask in open_now(self.collector)]
        asks += [report.ask for report in self.draw.sample(self.reports, min(len(self.reports), 2))]
        return self.draw.choice(asks or [open_ask.ask for open_ask in self.collector.board.asks.values()])

    def _report(self, ask: Ask, report_id: bytes) -> Report:
        value = self.cells.get(ask.ask_id, 0)
        assert value < SIZE, "too few cells for this world"
        self.cells[ask.ask_id] = value + 1
        self.reports.append(Report(ask, report_id, value))
        return self.reports[-1]

    def _hear(self, reports: list[Report], receipt: Receipt) -> None:
        assert receipt.accepted + receipt.duplicates + len(receipt.rejected) == len(reports)
        rejected = {report_id for report_id, _ in receipt.rejected}
        for report in reports:
            report.outcomes.add("rejected" if report.id.hex() in rejected else "counted")
        if len({report.id for report in reports}) < len(reports):  # of twins nobody can say which was meant
            for report in reports:
                report.outcomes.discard("counted")

    def _alive(self, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except Crash:
            self._start()
            return None

    def _start(self) -> None:
        self.crashes += 1
        if isinstance(self.store, Crashing):
            self.store.fuse = None
        self.store = self.restart(self)
        self.collector = start_collector(self.collection, self.clock, self.store)
        self._remember_finals()

    # -- the reckoning ----------------------------------------------------------------------------------------

    def _stored(self) -> dict[str, tuple[AskKey, bool, Sketch]]:
        era = self.store.era(self.collection.collection_id, "all")
        assert era is not None
        rows = list(self.store.asks(era))
        return {row.spec: (row.key, row.final, Sketch.from_bytes(row.sketch)) for row in rows}

    def _remember_finals(self) -> None:
        for key, final, sketch in self._stored().values():
            if final:
                assert self.finals.setdefault(key, sketch.to_bytes()) == sketch.to_bytes(), "a window changed"

    def reckon(self) -> None:
        self._remember_finals()
        stored = self._stored()
        counted: set[tuple[str, bytes]] = set()
        for _, _, sketch in stored.values():
            assert sketch.counts.max() <= 1, "counted twice"
            assert sketch.n == sketch.counts.sum(), "counts that do not add up"
        if self.collection.questions["all"].keeps:
            self._reckon_kept({key: sketch for key, final, sketch in stored.values() if final})
        for report in self.reports:
            _, _, sketch = stored[canonical(report.ask.spec())]
            cell = int(sketch.counts[report.value])
            if "counted" in report.outcomes:
                assert cell == 1, "acknowledged, and lost"
            if not report.delivered:
                assert cell == 0, "counted, and never sent"
            if cell:
                assert (report.ask.ask_id, report.id) not in counted, "one id counted twice"
                counted.add((report.ask.ask_id, report.id))
        total = sum(sketch.n for _, _, sketch in stored.values())
        assert total == len(counted), "counted, and nobody's"
        assert self.store.counts()[self.collection.collection_id, "accepted"] == total, "counters that are wrong"

    def _reckon_kept(self, closed: dict[AskKey, Sketch]) -> None:
        """The single reports that are kept add up to the sketches."""
        for key, sketch in closed.items():
            segments = self.store.kept_segments(key)
            stored_values = [value for segment in segments for value in unpack(segment).private["value"].tolist()]
            assert np.bincount(stored_values, minlength=SIZE).tolist() == sketch.counts.tolist(), (
                "kept otherwise than counted"
            )


@contextmanager
def small_pages() -> Iterator[None]:
    """Pages of three ids, of which two are deleted at a time, and small tables: a world has few reports."""
    with (
        patch.object(report_ids, "PAGE", 3),
        patch.object(report_ids, "SMALLEST_BITS", 1),
        patch.object(retention, "PAGES_AT_ONCE", 2),
    ):
        yield


def run_worlds(seeds: range) -> tuple[int, int, int]:
    """Run a world for each seed: how many reports there were, how many were acknowledged, how many starts."""
    reports = counted = starts = 0
    for seed in seeds:
        with small_pages():
            world = OnceWorld(seed).run()
        reports += len(world.reports)
        counted += sum("counted" in report.outcomes for report in world.reports)
        starts += world.crashes
    return reports, counted, starts
