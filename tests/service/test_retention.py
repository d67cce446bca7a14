"""What retention promises is deleted, what it does not is kept, and the conversations go on; in both stores."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from hubbub import Random
from hubbub.collection import Collection, Keys, ManualClock
from hubbub.ledger.promise import Budget
from hubbub.questions import Question
from hubbub.service.collector.collector import Collector
from hubbub.service.http.metrics import metrics_text
from hubbub.service.http.service import Service
from hubbub.service.rounds import retention
from hubbub.service.rounds.deletion import SWEEP
from hubbub.service.rounds.question_run import ReplayMismatch
from hubbub.service.rounds.releases import release_json
from hubbub.service.rounds.rounds import MARGIN
from hubbub.service.store.sql import Store
from hubbub.service.store.sqlite import SqliteStore
from tests.service.exact_world import batch_frame, exact_collection
from tests.service.once_world import Crash, Crashing

KEYS = Keys(b"k" * 32)
DAY, HOUR = 86400, 3600.0
Reopen = Callable[[], Store]


def hourly(*, minimum_batch: int = 3, **changes: int) -> Collection:
    return replace(exact_collection(step=3600, lateness=60), retention_days=1, minimum_batch=minimum_batch, **changes)


def start_collector(collection: Collection, clock: ManualClock, store: Store) -> Collector:
    return Collector([collection], store, clock=clock, keys=KEYS, rng=Random(seed=1))


def run(collector: Collector, clock: ManualClock, steps: int, reports: Callable[[int], int]) -> None:
    """Let a number of steps pass; each open ask is answered by a number of reports."""
    (collection,) = collector.collections.values()
    for _ in range(steps):
        for open_ask in collector.board.open(collection.collection_id, clock.now()):
            values = list(range(reports(open_ask.ask.step)))
            ids = [Random(seed=1000 * open_ask.ask.step + value).bytes(16) for value in values]
            assert collector.ingest([batch_frame(collection, open_ask.ask, ids, values)])[0].accepted == len(values)
        clock.advance(collection.step_seconds)
        collector.tick()


def steps_of(store: Store, collection: Collection) -> list[int]:
    era = store.era(collection.collection_id, "all")
    return [] if era is None else [row.step for row in store.asks(era)]


def released(store: Store, collection: Collection) -> dict[int, bool]:
    rows = store.releases(collection.collection_id, "all", 0, 1 << 40, 10_000)
    return {row.step: row.withheld is not None for row in rows}


def test_reports_sums_and_withheld_releases_go_and_published_ones_stay(reopen: Reopen):
    collection, clock = hourly(), ManualClock(100 * DAY + 200.0)
    store = reopen()
    collector = start_collector(collection, clock, store)
    first = 2400
    run(collector, clock, 60, lambda step: 5 if step % 2 else 2)
    now_at = first + 60
    assert steps_of(store, collection) == list(range(now_at - 24, now_at + 1))
    releases = released(store, collection)
    assert all(step % 2 for step in releases if step < now_at - 24), "withheld, and kept"
    assert [step for step in releases if step % 2] == list(range(first + 1, now_at, 2)), "published, and gone"
    assert sum(releases.values()) == 12
    era = store.era(collection.collection_id, "all")
    assert era is not None
    assert len(store.snapshots(era)) == 2
    assert min(row.step for row in store.snapshots(era)) >= now_at - 24
    # What is told of it
    assert collector.deleted == {
        (collection.collection_id, "ids"): sum(5 if step % 2 else 2 for step in range(first, now_at)),
        (collection.collection_id, "sketches"): 36,
        (collection.collection_id, "releases"): 18,
    }
    text = metrics_text(Service(collector))
    assert 'hubbub_deleted_total{collection="exact",what="sketches"} 36' in text
    # And it goes on, from the same store and from one that is opened anew
    for _ in range(3):
        collector = start_collector(collection, clock, reopen())
        run(collector, clock, 7, lambda step: 4)
    assert sorted(released(collector.store, collection))[-1] == now_at + 21 - 1


def test_nothing_is_deleted_before_its_time(reopen: Reopen):
    collection, clock = hourly(), ManualClock(100 * DAY + 200.0)
    store = reopen()
    collector = start_collector(collection, clock, store)
    run(collector, clock, 24, lambda step: 2)
    clock.set(101 * DAY + HOUR - 1)  # step 2400 ended a day ago, less a second
    collector._rounds._swept = None
    collector.tick()
    assert steps_of(store, collection)[0] == 2400
    assert collector.deleted[collection.collection_id, "sketches"] == 0
    clock.set(101 * DAY + HOUR)
    collector._rounds._swept = None
    collector.tick()
    assert steps_of(store, collection)[0] == 2401
    assert 2400 not in released(store, collection)


def test_sweeps_are_an_hour_apart():
    collection, clock = hourly(), ManualClock(100 * DAY + 200.0)
    collector = start_collector(collection, clock, SqliteStore(":memory:"))
    sweeps = []
    collector.listeners.append(lambda changes: sweeps.append(clock.now()) if changes.expired else None)
    for _ in range(6 * 60):
        clock.advance(60.0)
        collector.tick()
    assert len(sweeps) == 6 * HOUR / SWEEP


def test_an_id_is_forgotten_only_when_a_replay_is_refused_anyway(reopen: Reopen):
    """Duplicate, then late, then unknown: at no time is it counted again."""
    collection, clock = hourly(minimum_batch=1), ManualClock(100 * DAY + 200.0)
    store = reopen()
    collector = start_collector(collection, clock, store)
    (open_ask,) = collector.board.open(collection.collection_id, clock.now())
    frame = batch_frame(collection, open_ask.ask, [bytes(16)], [7])
    assert collector.ingest([frame])[0].accepted == 1
    answers, closes = [], open_ask.closes
    for at in (closes + 59, closes + 60, closes + 60 + MARGIN, closes + DAY - 1, closes + DAY + 2 * SWEEP):
        clock.set(at)
        collector.tick()
        collector = start_collector(collection, clock, reopen())
        (receipt,) = collector.ingest([frame])
        assert receipt.accepted == 0
        answers.append("duplicate" if receipt.duplicates else receipt.rejected[0][1])
    assert answers == ["duplicate", "duplicate", "late", "late", "unknown_ask"]


def test_steps_longer_than_the_retention(reopen: Reopen):
    collection = replace(exact_collection(step=10 * DAY, lateness=2 * DAY), retention_days=1, minimum_batch=1)
    clock, store = ManualClock(100 * DAY + 1.0), reopen()
    collector = start_collector(collection, clock, store)
    run(collector, clock, 3, lambda step: 2)
    clock.set(132 * DAY)
    collector.tick()
    clock.set(132 * DAY + MARGIN)
    collector.tick()
    clock.set(132 * DAY + MARGIN + SWEEP)
    collector.tick()
    assert steps_of(store, collection) == [13]
    assert sorted(released(store, collection)) == [10, 11, 12]
    assert start_collector(collection, clock, reopen()).board.asks.keys() == collector.board.asks.keys()


def test_earlier_versions_and_collections_that_nobody_serves_are_deleted_too(reopen: Reopen):
    collection, other, clock = hourly(), replace(hourly(), name="other"), ManualClock(100 * DAY + 200.0)
    store = reopen()
    collector = start_collector(collection, clock, store)
    run(collector, clock, 3, lambda step: 2)
    clock.advance(2 * DAY)
    for newer in (replace(collection, version=2), other):
        served = start_collector(newer, clock, reopen())
        assert steps_of(served.store, collection) == []
        assert released(served.store, collection) == {}
        assert not [key for key, _ in served.store.asks_with_ids() if key.collection == collection.collection_id]
    assert served.store.era(collection.collection_id, "all") is None
    # An hour after the retention of the one that was served before the last
    clock.advance(DAY + 3 * HOUR)
    served.tick()
    assert not [key for key, _ in served.store.asks_with_ids() if key.collection != other.collection_id]


def test_a_collection_that_is_served_again_goes_on_or_begins_anew(reopen: Reopen):
    collection, other, clock = hourly(), replace(hourly(), name="other"), ManualClock(100 * DAY + 200.0)
    run(start_collector(collection, clock, reopen()), clock, 30, lambda step: 4)
    clock.advance(6 * HOUR)
    start_collector(other, clock, reopen())  # deletes, but nothing that is needed
    again = start_collector(collection, clock, reopen())
    era = again.store.era(collection.collection_id, "all")
    assert era is not None
    assert era.first == 2400
    assert sorted(released(again.store, collection))[-1] == 2400 + 36 - 1
    clock.advance(3 * DAY)
    start_collector(other, clock, reopen())
    again = start_collector(collection, clock, reopen())
    era = again.store.era(collection.collection_id, "all")
    assert era is not None
    assert era.first == 2400 + 36 + 72
    run(again, clock, 2, lambda step: 4)
    assert sorted(released(again.store, collection))[-1] == era.first + 1


def test_a_stream_that_seldom_asks_begins_anew_once_its_snapshot_is_deleted() -> None:
    """LSP asks in one step of 40: the oldest ask that is kept may be younger than the snapshot that it follows."""
    budget = Budget.of(window=(1.0, 40))
    question = Question.make(kind="stream", field="theme", epsilon=1.0, method="LSP", w=40)
    collection = replace(hourly(), questions={"all": question}, budget=budget)
    collection = Collection(**{field.name: getattr(collection, field.name) for field in fields(Collection)})
    store, clock = SqliteStore(":memory:"), ManualClock(100 * DAY + 200.0)
    run(start_collector(collection, clock, store), clock, 40, lambda step: 0)
    clock.advance(24 * HOUR)
    start_collector(replace(collection, name="other"), clock, store)
    start_collector(collection, clock, store)
    era = store.era(collection.collection_id, "all")
    assert era is not None
    assert era.first == 2400 + 64


@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_a_crash_while_deleting_deletes_all_or_nothing(stride: int):
    collection, sizes = hourly(), set()
    for fuse in range(0, 1000, stride):
        store, clock = Crashing(), ManualClock(100 * DAY + 200.0)
        collector = start_collector(collection, clock, store)
        run(collector, clock, 4, lambda step: 2)
        clock.advance(DAY)
        store.fuse = fuse
        with pytest.raises(Crash):  # at a statement of the transaction, or right after it
            collector.tick()
        oldest = min(steps_of(store, collection)), min(released(store, collection)), len(store.asks_with_ids())
        assert oldest in ((2400, 2400, 1), (2404, 2404, 1))
        sizes.add(oldest)
        collector = start_collector(collection, clock, store)
        assert min(steps_of(store, collection)) == min(released(store, collection)) == 2404
        assert len(collector.board.asks) == 1
        if len(sizes) == 2:
            break
    assert fuse > 20


# -- snapshots ------------------------------------------------------------------------------------------------


def test_a_restart_reads_no_more_than_the_steps_since_the_older_snapshot(reopen: Reopen):
    collection, clock = exact_collection(step=100, lateness=10), ManualClock(1000.0)
    store = reopen()
    run(start_collector(collection, clock, store), clock, 200, lambda step: 1)  # more than are read at most
    store = reopen()
    read = 0
    asks = store.asks

    def counted(era, start=0):
        nonlocal read
        for row in asks(era, start):
            read += 1
            yield row

    store.asks = counted  # type: ignore[method-assign]
    start_collector(collection, clock, store)
    assert 64 <= read <= 130


def test_a_snapshot_that_was_tampered_with_stops_everything(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(retention, "_SNAPSHOT_STEPS", 2)
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    collection = exact_collection(step=100, lateness=10)
    run(start_collector(collection, clock, store), clock, 9, lambda step: 1)
    era = store.era(collection.collection_id, "all")
    assert era is not None
    older, newer = store.snapshots(era)
    assert (older.step, newer.step) == (16, 18)
    state = json.loads(newer.state)
    state["place"]["step"] += 1
    store._write("UPDATE snapshots SET state = ? WHERE step = ?", json.dumps(state), newer.step)
    with pytest.raises(ReplayMismatch, match=f"the snapshot of step {newer.step} is not reproduced"):
        start_collector(collection, clock, store)
    store._write("UPDATE snapshots SET state = ? WHERE step = ?", newer.state, newer.step)
    store._write("UPDATE snapshots SET state = ? WHERE step = ?", json.dumps(state), older.step)
    with pytest.raises(ReplayMismatch):
        start_collector(collection, clock, store)


def test_a_snapshot_of_another_kind_stops_everything(monkeypatch: pytest.MonkeyPatch):
    """Such as one of an earlier program that remembered other things."""
    monkeypatch.setattr(retention, "_SNAPSHOT_STEPS", 2)
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    collection = exact_collection(step=100, lateness=10)
    run(start_collector(collection, clock, store), clock, 9, lambda step: 1)
    store._write("UPDATE snapshots SET state = ?", json.dumps({"place": {"other": 1}}))
    with pytest.raises(ReplayMismatch, match="the snapshot of step 16 is of another kind"):
        start_collector(collection, clock, store)


def test_releases_look_alike_whatever_is_restarted(monkeypatch: pytest.MonkeyPatch):
    """With a snapshot at every step, or none at all."""
    reasons = []
    for every in (1, 1000):
        monkeypatch.setattr(retention, "_SNAPSHOT_STEPS", every)
        store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
        collection = exact_collection(step=100, lateness=10, adaptive=True)
        for _ in range(20):
            run(start_collector(collection, clock, store), clock, 1, lambda step: step % 5 + 1)
        rows = store.releases(collection.collection_id, "all", 0, 1 << 40, 100)
        reasons.append([release_json(row) for row in rows])
    assert reasons[0] == reasons[1]
