"""Makes a golden file of a collector's store, in the format of the code that it is run with.

    python -m tests.golden.make_store FOLDER

The collector serves a collection for nine steps on a clock that is moved by hand. It stops in the second half of the
last, with reports that wait for the step to end.
"""

import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import asdict

from hubbub.authoring import load_collection
from hubbub.collection import Keys, ManualClock
from hubbub.core.reports import Reports
from hubbub.protocols.ask import CIRCLE
from hubbub.questions.collection import Collection
from hubbub.random.source import Random
from hubbub.service.collector.collector import Collector
from hubbub.service.store import open_store
from hubbub.service.store.base import StoreChanges
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from tests.shared.small_collections import collection_text

KEYS = Keys(b"k" * 32)
HOUR = 3600
FIRST, STEPS, HALF = 24, 9, 4
PEOPLE = 80
_TURN = 2654435769  # deals people to places of the circle
DARK = {"question": "kept", "weights": {"dark": 1}, "above": 0.3, "false_alarms": "1 in 10h"}
WHOLE = collection_text(
    schedule={"step": "1h", "lateness": "10m", "retention": "1d"},
    privacy={"user": 500.0, "minimum_batch": 20},
    fields={"theme": {"kind": "categorical", "names": ["light", "dark", "blue"]}},
    questions={
        "flow": {"kind": "stream", "method": "LPA", "field": "theme", "epsilon": 2.0, "w": 4},
        "trend": {"kind": "stream", "method": "LBD", "field": "theme", "epsilon": 2.0, "w": 4},
        "popular": {"kind": "histogram", "field": "theme", "epsilon": 0.5},
        "page": {"kind": "memo", "field": "theme", "epsilon": 1.0, "permanent": 2.0},
        "kept": {"kind": "histogram", "field": "theme", "epsilon": 1.0, "mechanism": "OLH", "keep_reports": True},
        "places": {"kind": "changes", "field": "theme", "epsilon": 2.0, "steps": 8, "changes": 3},
    },
    alarms={"dark": DARK, "moved": {"question": "popular", "each": True, "change": "either", "baseline": 24}},
)


class World:
    """A collector over a store, and the people who answer it."""

    def __init__(self, text: str, path: Path, now: float) -> None:
        self.collection: Collection = load_collection(text)
        self.clock = ManualClock(now)
        self.store = self.open(path)
        given: dict[str, Any] = {}
        if "keep_reports" in text:
            from hubbub.service.kept.archive import Archive

            given["archive"] = Archive(path.parent / "reports")
        if "[alarms" in text:
            from hubbub.authoring.toml import load_alarms

            given["alarms"] = {self.collection.name: load_alarms(text)}
        self.collector = Collector(
            [self.collection], self.store, clock=self.clock, keys=KEYS, rng=Random(seed=1), **given
        )
        self.states: dict[tuple[str, int], Any] = {}
        self.answered: set[Any] = set()

    def open(self, path: Path) -> Any:
        """The store."""
        return open_store(f"sqlite:///{path}")

    def step(self, step: int) -> None:
        """Live through a step: everyone who is asked answers, in both halves."""
        for part in (0.1, 0.7):
            self.clock.set((step + part) * HOUR)
            self.collector.tick()
            self.answer(step)

    def answer(self, step: int) -> None:
        """Answer every open ask that was not."""
        for window in self.collector.board.open(self.collection.collection_id, self.clock.now()):
            if window.key in self.answered:
                continue
            self.answered.add(window.key)
            rng = Random(seed=f"{window.question} {step} {len(self.answered)}")
            reports = self.reports(window.question, window.ask, step, rng)
            if not len(reports):
                continue
            body = encode_batch(
                self.collection.name, self.collection.version, window.name, rng.bytes(16 * len(reports)), reports
            )
            (receipt,) = self.collector.ingest([self.collector.admit(BATCH_TYPE, body)])
            assert receipt.accepted == len(reports), receipt

    def reports(self, question: str, ask: Any, step: int, rng: Random) -> Reports:
        """What the people of an ask's cohort say: themes that move half way."""
        dark = 3 if step < FIRST + HALF else 7
        values = [int(person % 10 < dark) for person in range(PEOPLE)]
        if question == "places":
            bodies = []
            asked = np.flatnonzero(ask.cohort.holds(np.arange(60) * _TURN % CIRCLE)).tolist()
            for person in asked if step % 4 != 3 else [person for person in asked if person < 50]:  # some are away
                key = ask.mechanism.spec_id, person
                new = np.array([key not in self.states or step % 8 == 0])
                states = ask.mechanism.enroll(1, rng) if new[0] else self.states[key]
                states, *spoke = ask.mechanism.step(states, step, [values[person]], rng, new)
                self.states[key] = states
                told, sends = ask.mechanism.with_enrolment(states, *spoke, new)
                if sends[0]:
                    bodies.append(told)
            empty = np.zeros((0, ask.mechanism.dimension), np.uint8)
            return Reports.concat([ask.mechanism.make_reports(empty[:, 0], False, empty), *bodies])
        share = ask.cohort.length / 2**32
        return ask.mechanism.randomize(ask.view(values[: round(PEOPLE * share)]), rng)

    def stored(self) -> dict[str, Any]:
        """What must be read back, whatever becomes of the format: releases and counters."""
        name, releases = self.collection.name, {}
        for question in self.collection.questions:
            rows = self.collector.releases(name, question, first=0, last=1 << 40, most=1 << 20)
            releases[question] = [[row.step, row.withheld, json.loads(row.payload)] for row in rows]
        counts = {outcome: count for (_, outcome), count in sorted(self.collector.counts().items()) if count}
        told: dict[str, Any] = {"now": self.clock.now(), "releases": releases, "counts": counts}
        alarms = self.collector.alarms
        told["alarm_events"] = [event.to_json() for event in alarms.events(name)]
        told["alarms"] = [asdict(status) for status in alarms.status(name)]
        return told


def make(folder: Path) -> None:
    """All steps but the end of the last."""
    folder.mkdir(parents=True)
    world = World(WHOLE, folder / "store.sqlite", (FIRST + 0.05) * HOUR)
    for step in range(FIRST, FIRST + STEPS):
        world.step(step)
    world.store.commit(StoreChanges(delivered={("pager", world.collection.name): 1}))
    (folder / "collection.toml").write_text(WHOLE)
    (folder / "expected.json").write_text(json.dumps(world.stored(), separators=(",", ":"), sort_keys=True) + "\n")
    world.store.close()
    database = sqlite3.connect(folder / "store.sqlite")
    for pragma in ("journal_mode = DELETE", "page_size = 1024"):  # small: the next collector has its own settings
        database.execute(f"PRAGMA {pragma}")
    database.execute("VACUUM")
    database.close()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
