"""Eras: changed arithmetic begins a new one, at a step that was never asked; any other difference is a stop."""

from __future__ import annotations

import logging
import pickle
import random
from typing import Any

import pytest

from hubbub import Random
from hubbub.authoring import load_collection
from hubbub.collection import Collection, Keys, ManualClock
from hubbub.protocols import window
from hubbub.service.collector.collector import Collector
from hubbub.service.rounds import retention, rounds
from hubbub.service.rounds.question_run import ReplayMismatch
from hubbub.service.store.sqlite import SqliteStore
from tests.service.exact_world import batch_frame, exact_collection
from tests.shared.small_collections import collection_text

KEYS = Keys(b"k" * 32)
CHANGES = collection_text(
    "exact",
    "Where people are",
    schedule={"step": "100s", "lateness": "10s"},
    privacy={"user": 4.0},
    fields={"place": {"kind": "categorical", "names": ["home", "away"]}},
    questions={"all": {"kind": "changes", "field": "place", "epsilon": 1.0, "steps": 8, "changes": 3}},
)


def start_collector(collection: Collection, clock: ManualClock, store: SqliteStore) -> Collector:
    return Collector([collection], store, clock=clock, keys=KEYS, rng=Random(seed=1))


LPA = window.METHODS["LPA"].arithmetic


def number(monkeypatch: pytest.MonkeyPatch, arithmetic: int) -> None:
    """Give LPA another number, as whoever changes its arithmetic does."""
    monkeypatch.setitem(window.METHODS, "LPA", window.METHODS["LPA"]._replace(arithmetic=arithmetic))


def asked(store: SqliteStore) -> list[tuple[int, int]]:
    """Step and era of every ask."""
    return sorted(set(store._read("SELECT step, first FROM asks")))


def eras(store: SqliteStore) -> list[tuple[int, int]]:
    return [(row[0], row[1]) for row in store._read("SELECT first, arithmetic FROM eras ORDER BY first")]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.WARNING, "hubbub.service")

    def found() -> list[dict[str, Any]]:
        return [record.fields for record in caplog.records if record.getMessage() == "new era"]  # type: ignore[attr-defined]

    return found


@pytest.mark.parametrize("offset", [0.0, 30.0, 50.0, 65.0, 99.0])
def test_changed_arithmetic_begins_a_new_era_at_a_step_never_asked(
    monkeypatch: pytest.MonkeyPatch, lines: Any, offset: float
) -> None:
    """Whatever moment of a step the collector was stopped at; and what is counted already stays counted."""
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    collection = exact_collection(adaptive=True, step=100, lateness=10)
    collector = start_collector(collection, clock, store)
    for now in range(1000, 1301, 10):
        clock.set(float(now))
        collector.tick()
    clock.set(1300.0 + offset)
    collector.tick()
    opened = collector.board.open(collection.collection_id, clock.now())
    frames = [batch_frame(collection, open_ask.ask, [bytes(16)], [5]) for open_ask in opened]
    for frame in frames:
        assert collector.ingest([frame])[0].accepted == 1
    rows = store.releases(collection.collection_id, "all", 0, 99, 99)
    number(monkeypatch, 7)
    again = start_collector(collection, clock, store)
    (line,) = lines()
    assert (line["collection"], line["question"], line["first"]) == ("exact", "all", 14)
    assert line["why"] == f"arithmetic 7, and it was begun with {LPA}"
    assert eras(store) == [(10, LPA), (14, 7)]
    assert store.releases(collection.collection_id, "all", 0, 99, 99) == rows
    assert [key for key, _ in store.asks_with_ids()] == list(again.board.asks)
    for frame in frames:  # a device that did not hear the answer is told that it is too late, and nothing breaks
        assert again.ingest([frame])[0].rejected[0][1] == "late"
    for now in range(1400, 1700, 10):
        clock.set(float(now))
        again.tick()
    assert {step for step, first in asked(store) if first == 14} == {14, 15, 16}
    assert max(step for step, first in asked(store) if first == 10) == 13
    assert [row.step for row in store.releases(collection.collection_id, "all", 14, 99, 99)] == [14, 15]
    start_collector(collection, clock, store)
    assert len(lines()) == 1


def test_going_back_to_the_older_code_begins_another_era(monkeypatch: pytest.MonkeyPatch, lines: Any) -> None:
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    collection = exact_collection(adaptive=True)
    for arithmetic in (1, 2, 1, 2):
        number(monkeypatch, arithmetic)
        start_collector(collection, clock, store)
    assert eras(store) == [(10, 1), (11, 2)]  # 11 was begun three times, and never asked
    assert len(lines()) == 3


def test_no_step_is_asked_in_two_eras(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over 300 moments: restarts, changed arithmetic, absences that are too long, a clock that is set back."""
    monkeypatch.setattr(rounds, "LONGEST_GAP", 3)
    monkeypatch.setattr(retention, "_SNAPSHOT_STEPS", 2)
    chance = random.Random(5)
    store, now = SqliteStore(":memory:"), 1000.0
    clock, collection, arithmetic = ManualClock(now), exact_collection(adaptive=True), 1
    collector = start_collector(collection, clock, store)
    for _ in range(300):
        now = max(1000.0, now + chance.choice([5, 15, 30, 30, 60, 120, 700, -80]))
        clock.set(now)
        what = chance.random()
        if what < 0.15:
            arithmetic += 1
            number(monkeypatch, arithmetic)
        if what < 0.4:
            collector = start_collector(collection, clock, store)
        collector.tick()
    steps = [step for step, _ in asked(store)]
    assert len(steps) == len(set(steps)) > 60
    assert len(eras(store)) > 30


def test_a_stream_of_changes_begins_with_a_horizon(monkeypatch: pytest.MonkeyPatch, lines: Any) -> None:
    """Devices say once a horizon that they are there: in the middle of one, nobody would be counted."""
    from hubbub.questions import changes

    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    collection = load_collection(CHANGES)
    start_collector(collection, clock, store)
    before = changes.ARITHMETIC
    monkeypatch.setattr(changes, "ARITHMETIC", before + 1)
    collector = start_collector(collection, clock, store)
    assert [line["first"] for line in lines()] == [16]
    assert eras(store) == [(10, before), (16, before + 1)]
    clock.set(1550.0)
    collector.tick()
    start_collector(collection, clock, store)  # to wait is no fault of time, and no new era
    assert len(lines()) == 1
    collector = start_collector(collection, clock, store)
    assert collector.board.open(collection.collection_id, clock.now()) == []
    clock.set(1600.0)
    collector.tick()
    assert [open_ask.ask.step for open_ask in collector.board.open(collection.collection_id, clock.now())] == [16]


def run(store: SqliteStore, clock: ManualClock, collection: Collection) -> None:
    collector = start_collector(collection, clock, store)
    for now in range(1000, 1901, 50):
        clock.set(float(now))
        collector.tick()


SPOILT = {
    "an ask": ("UPDATE asks SET spec = '{}'",),
    "a release": ("UPDATE releases SET payload = replace(payload, '\"n\": 0', '\"n\": 3')",),
    "a snapshot": ('UPDATE snapshots SET state = \'{"place": {"step": 3}}\' WHERE step > 14',),
    "a snapshot of another kind": ("UPDATE snapshots SET state = '{\"other\": 1}'",),
    "a sketch": ("UPDATE sketches SET data = x'00'",),
}


@pytest.mark.parametrize("what", SPOILT)
def test_with_the_same_arithmetic_a_mismatch_is_a_stop_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, lines: Any, what: str
) -> None:
    monkeypatch.setattr(retention, "_SNAPSHOT_STEPS", 2)
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    collection = exact_collection(adaptive=True)
    run(store, clock, collection)
    for statement in SPOILT[what]:
        store._write(statement)
    with pytest.raises(ReplayMismatch, match=r"restore a backup, .* or serve the collection with a higher version"):
        start_collector(collection, clock, store)
    assert lines() == []
    assert len(eras(store)) == 1
    start_collector(exact_collection(adaptive=True, version=2), clock, store)  # as it says


def test_the_stop_can_be_told_to_another_process() -> None:
    stop = pickle.loads(pickle.dumps(ReplayMismatch("all", "the release of step 7 is not reproduced")))
    assert str(stop).startswith("all: the release of step 7 is not reproduced: the store is damaged")
