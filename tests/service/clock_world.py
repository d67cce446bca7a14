"""A machine whose clock can be moved, a collector on it, and devices whose clocks are right."""

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from hubbub import Random
from hubbub.collection import open_sealed
from hubbub.questions.collection import Collection
from hubbub.service.base.trusted_clock import ClockReading, TrustedClock, hold_for
from hubbub.service.store.base import StoreChanges
from hubbub.service.store.sql import Store
from hubbub.service.store.sqlite import SqliteStore
from tests.service.exact_world import batch_frame, exact_collection
from tests.shared.in_process import KEYS, open_now, released, start_collector

DAY = 86400.0


@dataclass
class Machine:
    """True time, how far the wall clock is off, and which boot it is."""

    true: float = 20_000 * DAY + 30
    off: float = 0.0
    since_boot: float = 1000.0
    boots: int = 1

    def read(self) -> ClockReading:
        return ClockReading(self.true + self.off, self.since_boot, f"boot {self.boots}")

    def wait(self, seconds: float) -> None:
        self.true += seconds
        self.since_boot += seconds

    def reboot(self, seconds: float) -> None:
        self.true += seconds
        self.boots += 1
        self.since_boot = 3.0


@dataclass
class ClockWorld:
    """Runs a collector; in every step a device that knows the true time answers its ask, if there is one."""

    collection: Collection = field(default_factory=exact_collection)
    store: Store = field(default_factory=lambda: SqliteStore(":memory:"))
    machine: Machine = field(default_factory=Machine)
    heard: dict[int, int] = field(default_factory=dict)
    """How many reports of the true step were counted."""
    released: dict[int, dict[str, Any]] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.restart()

    @property
    def step(self) -> int:
        return self.collection.step_at(self.machine.true)

    def restart(self) -> None:
        self.clock = TrustedClock(self.store.clock(), hold=hold_for([self.collection]), read=self.machine.read)
        self.collector = start_collector(self.collection, self.clock, self.store)
        self._news = True
        self.collector.listeners.append(self._heard)
        self.look()

    def _heard(self, changes: StoreChanges) -> None:
        self._news = self._news or bool(changes.releases)

    def run(self, seconds: float) -> None:
        tick = self.collection.step_seconds / 20
        for _ in range(round(seconds / tick)):
            self.machine.wait(tick)
            self.look()

    def look(self) -> None:
        self.collector.tick()
        published = _steps(self.collector.asks["exact"].body)
        for open_ask in open_now(self.collector):
            ask = open_ask.ask
            if ask.step == self.step and ask.step in published and ask.ask_id not in self.asked:
                report = Random(seed=len(self.asked)).bytes(16)
                (receipt,) = self.collector.ingest([batch_frame(self.collection, ask, [report], [self.step % 100])])
                self.heard[self.step] = self.heard.get(self.step, 0) + receipt.accepted
                self.asked |= {ask.ask_id} if receipt.accepted else set()
        self.check()

    def check(self) -> None:
        """What was released of steps that were asked never changes."""
        if not self._news:
            return
        self._news = False
        for release in released(self.collector, most=5):
            if release["n"]:
                assert self.released.setdefault(release["step"], release) == release

    def goes_on(self, within: float) -> None:
        """From now on the clock is right: every step that begins later than that is heard, once it is over."""
        begun = self.machine.true
        self.run(within + 3 * self.collection.step_seconds)
        first = self.collection.step_at(begun + within) + 1
        last = self.step - 1
        assert last > first
        assert [step for step in range(first, last + 1) if not self.heard.get(step)] == []
        for step in range(first, last):
            assert self.released[step]["n"] == self.heard[step]


@lru_cache
def _steps(body: bytes) -> frozenset[int]:
    """The steps whose asks a document holds."""
    document = open_sealed(json.loads(body), KEYS.public)
    return frozenset(item["ask"]["step"] for item in document["asks"])
