"""A collector with alarms on a clock that is moved by hand, and a crowd that answers whatever it asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hubbub import Random, Reports
from hubbub.authoring.toml import load_alarms, load_collection
from hubbub.collection import Keys, ManualClock
from hubbub.mechanisms.stateful import Stateful
from hubbub.service.alarms import AlarmEvent
from hubbub.service.collector.collector import Collector
from hubbub.service.store import open_store
from hubbub.service.store.sql import Store
from hubbub.wire.batches import BATCH_TYPE, encode_batch

HOUR = 3600
FIRST = 24
HEAD = """
name = "planes"
version = 1
title = "Planes"

[schedule]
step = "1h"
lateness = "10m"

[privacy]
user = 5000.0
minimum_batch = 100

[fields.status]
kind = "categorical"
names = ["early", "fine", "late"]

[fields.delay]
kind = "numeric"
low = 0
high = 100
cells = 10

[fields.used]
kind = "keyvalue"
keys = ["gate", "lounge"]
low = -1
high = 1
most = 1
"""
SHARES = """
[questions.all]
kind = "histogram"
field = "status"
epsilon = 4.0
"""


def statuses(late: float, people: int = 1000) -> list[str]:
    """A crowd in which a given share is late, a tenth early."""
    count = round(late * people)
    return ["late"] * count + ["early"] * (people // 10) + ["fine"] * (people - people // 10 - count)


class AlarmWorld:
    """One collector after another over one store; each step everyone answers once."""

    def __init__(self, text: str, place: Path | Store, *, first: int = FIRST) -> None:
        self.place, self.notified = place, list[AlarmEvent]()
        self.clock = ManualClock((first + 0.01) * HOUR)
        self.states: Any = None
        self.enrolled: str | None = None
        self.open(text)

    def open(self, text: str) -> None:
        """A collector over what is stored, as after a crash: the one before is not asked to stop."""
        collection = load_collection(text)
        store = open_store(f"sqlite:///{self.place}") if isinstance(self.place, Path) else self.place
        plans = {collection.name: load_alarms(text)}
        self.text = text
        self.collector = Collector([collection], store, clock=self.clock, keys=Keys(b"k" * 32), alarms=plans)
        self.collection = self.collector.collections[collection.name]
        self.collector.alarms.listen(self.notified.append)

    def step(self, step: int, values: list[Any], question: str = "all") -> None:
        """Live through a step: everyone who is asked answers, in every round of it."""
        done = set()
        for part in (0.1, 0.3, 0.6, 0.8):
            self.clock.set((step + part) * HOUR)
            self.collector.tick()
            for open_ask in self.collector.board.open(self.collection.collection_id, self.clock.now()):
                if open_ask.question == question and open_ask.ask.step == step and open_ask.key not in done:
                    done.add(open_ask.key)
                    self.answer(open_ask, values, step)

    def answer(self, window: Any, values: list[Any], step: int) -> None:
        rng = Random(seed=f"{window.question} {step} {window.name}")
        reports = self.reports(window.ask, values, step, rng)
        if not len(reports):
            return
        ids = rng.bytes(16 * len(reports))
        body = encode_batch(self.collection.name, self.collection.version, window.name, ids, reports)
        (receipt,) = self.collector.ingest([self.collector.admit(BATCH_TYPE, body)])
        assert receipt.accepted + receipt.duplicates == len(reports), receipt

    def reports(self, ask: Any, values: list[Any], step: int, rng: Random) -> Reports:
        mechanism = ask.mechanism
        (field,) = self.collection.questions["all"].reads()
        codes = [self.collection.fields[field].code(value) for value in values]
        if not isinstance(mechanism, Stateful):
            people = np.random.default_rng(step).permutation(len(codes))[: round(len(codes) * ask.cohort.share)]
            return mechanism.randomize(ask.view([codes[person] for person in people]), rng)
        if self.enrolled != mechanism.state_key(step):
            self.enrolled, self.states = mechanism.state_key(step), mechanism.enroll(len(codes), rng)
        viewed = ask.view(codes)
        paid = mechanism.price(self.states, step, viewed) > 0
        self.states, *said = mechanism.step(self.states, step, viewed, rng, paid)
        reports, _ = mechanism.with_enrolment(self.states, *said, paid)
        return reports

    def end(self, step: int) -> None:
        """Let a step's lateness pass."""
        self.clock.set((step + 1.2) * HOUR)
        self.collector.tick()

    def events(self) -> list[AlarmEvent]:
        """What is stored."""
        return self.collector.alarms.events("planes", most=1000)
