"""What retention promises is deleted, what it does not is kept, and the conversations go on; in both stores."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace

import pytest

from hubbub import Random
from hubbub.ledger.promise import Budget
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from hubbub.service.http.metrics import metrics_text
from hubbub.service.http.service import Service
from hubbub.service.rounds import question_run
from hubbub.service.rounds.retention import SWEEP
from hubbub.service.rounds.rounds import MARGIN
from hubbub.service.store.base import AskRow, EraRow
from hubbub.service.store.sql import Store
from tests.service.exact_world import batch_frame, exact_collection
from tests.service.once_world import Crash, Crashing
from tests.shared.in_process import Reopen, World, released

DAY, HOUR = 86400, 3600.0
FIRST = 2400


def hourly(minimum_batch: int = 3) -> Collection:
    return replace(exact_collection(step=3600, lateness=60), retention_days=1, minimum_batch=minimum_batch)


def hundred_days(collection: Collection, store: Reopen | Store | None = None) -> World:
    """A world that begins in step 2400 of an hour."""
    return World(collection, 100 * DAY + 200.0, store)


def run(world: World, steps: int, reports: Callable[[int], int]) -> World:
    """Let a number of steps pass; each open ask is answered by a number of reports."""
    for _ in range(steps):
        for open_ask in world.open:
            values = list(range(reports(open_ask.ask.step)))
            ids = [Random(seed=1000 * open_ask.ask.step + value).bytes(16) for value in values]
            (receipt,) = world.collector.ingest([batch_frame(world.collection, open_ask.ask, ids, values)])
            assert receipt.accepted == len(values)
        world.wait(world.collection.step_seconds)
    return world


def era_of(world: World) -> EraRow:
    era = world.store.era(world.collection.collection_id, "all")
    assert era is not None
    return era


def steps_of(world: World) -> list[int]:
    """The steps of which asks are stored."""
    return [row.step for row in world.store.asks(era_of(world))]


def withheld(world: World) -> dict[int, bool]:
    """Whether each release is withheld, by step."""
    return {row.step: row.withheld is not None for row in world.rows("all")}


def test_reports_sums_and_withheld_releases_go_and_published_ones_stay(reopen: Reopen):
    world = run(hundred_days(hourly(), reopen), 60, lambda step: 5 if step % 2 else 2)
    collection_id, now_at = world.collection.collection_id, FIRST + 60
    assert steps_of(world) == list(range(now_at - 24, now_at + 1))
    releases = withheld(world)
    assert all(step % 2 for step in releases if step < now_at - 24), "withheld, and kept"
    assert [step for step in releases if step % 2] == list(range(FIRST + 1, now_at, 2)), "published, and gone"
    assert sum(releases.values()) == 12
    snapshots = world.store.snapshots(era_of(world))
    assert len(snapshots) == 2
    assert min(row.step for row in snapshots) >= now_at - 24
    # What is told of it
    assert world.collector.deleted == {
        (collection_id, "ids"): sum(5 if step % 2 else 2 for step in range(FIRST, now_at)),
        (collection_id, "sketches"): 36,
        (collection_id, "releases"): 18,
    }
    assert 'hubbub_deleted_total{collection="exact",what="sketches"} 36' in metrics_text(Service(world.collector))
    # And it goes on, from the same store and from one that is opened anew
    for _ in range(3):
        run(world.begin(), 7, lambda step: 4)
    assert max(withheld(world)) == now_at + 21 - 1


def test_nothing_is_deleted_before_its_time(reopen: Reopen):
    world = run(hundred_days(hourly(), reopen), 24, lambda step: 2)
    world.clock.set(101 * DAY + HOUR - 1)  # step 2400 ended a day ago, less a second
    assert steps_of(world.begin())[0] == FIRST
    assert world.collector.deleted[world.collection.collection_id, "sketches"] == 0
    world.clock.set(101 * DAY + HOUR)
    assert steps_of(world.begin())[0] == FIRST + 1
    assert FIRST not in withheld(world)


def test_sweeps_are_an_hour_apart():
    world, sweeps = hundred_days(hourly()), list[float]()
    world.collector.listeners.append(lambda changes: sweeps.extend([world.clock.now()] if changes.expired else []))
    for _ in range(6 * 60):
        world.wait(60.0)
    assert len(sweeps) == 6 * HOUR / SWEEP


def test_an_id_is_forgotten_only_when_a_replay_is_refused_anyway(reopen: Reopen):
    """Duplicate, then late, then unknown: at no time is it counted again."""
    world = hundred_days(hourly(minimum_batch=1), reopen)
    (open_ask,) = world.open
    frame = batch_frame(world.collection, open_ask.ask, [bytes(16)], [7])
    assert world.collector.ingest([frame])[0].accepted == 1
    answers, closes = [], open_ask.closes
    for now in (closes + 59, closes + 60, closes + 60 + MARGIN, closes + DAY - 1, closes + DAY + 2 * SWEEP):
        (receipt,) = world.at(now).begin().collector.ingest([frame])
        assert receipt.accepted == 0
        answers.append("duplicate" if receipt.duplicates else receipt.rejected[0][1])
    assert answers == ["duplicate", "duplicate", "late", "late", "unknown_ask"]


def test_steps_longer_than_the_retention(reopen: Reopen):
    collection = replace(exact_collection(step=10 * DAY, lateness=2 * DAY), retention_days=1, minimum_batch=1)
    world = run(World(collection, 100 * DAY + 1.0, reopen), 3, lambda step: 2)
    world.at(132 * DAY).wait(MARGIN).wait(SWEEP)
    assert steps_of(world) == [13]
    assert sorted(withheld(world)) == [10, 11, 12]
    asks = world.collector.board.asks.keys()
    assert world.begin().collector.board.asks.keys() == asks


def test_earlier_versions_and_collections_that_nobody_serves_are_deleted_too(reopen: Reopen):
    collection, other = hourly(), replace(hourly(), name="other")
    world = run(hundred_days(collection, reopen), 3, lambda step: 2)
    world.clock.advance(2 * DAY)
    for newer in (replace(collection, version=2), other):
        store = world.begin(newer).store
        assert store.era(collection.collection_id, "all") is None
        assert store.releases(collection.collection_id, "all", 0, 1 << 40, 99) == []
        assert not [key for key, _ in store.asks_with_ids() if key.collection == collection.collection_id]
    # An hour after the retention of the one that was served before the last
    world.wait(DAY + 3 * HOUR)
    assert not [key for key, _ in store.asks_with_ids() if key.collection != other.collection_id]


def test_a_collection_that_is_served_again_goes_on_or_begins_anew(reopen: Reopen):
    collection, other = hourly(), replace(hourly(), name="other")
    world = run(hundred_days(collection, reopen), 30, lambda step: 4)
    world.clock.advance(6 * HOUR)
    world.begin(other).begin(collection)  # the other deletes, but nothing that is needed
    assert era_of(world).first == FIRST
    assert max(withheld(world)) == FIRST + 36 - 1
    world.clock.advance(3 * DAY)
    world.begin(other).begin(collection)
    assert era_of(world).first == FIRST + 36 + 72
    assert max(withheld(run(world, 2, lambda step: 4))) == FIRST + 36 + 72 + 1


def test_a_stream_that_seldom_asks_begins_anew_once_its_snapshot_is_deleted() -> None:
    """LSP asks in one step of 40: the oldest ask that is kept may be younger than the snapshot that it follows."""
    question = Question.make(kind="stream", field="theme", epsilon=1.0, method="LSP", w=40)
    made = replace(hourly(), questions={"all": question}, budget=Budget.of(window=(1.0, 40)))
    collection = Collection(**{field.name: getattr(made, field.name) for field in fields(Collection) if field.init})
    world = run(hundred_days(collection), 40, lambda step: 0)
    world.clock.advance(24 * HOUR)
    world.begin(replace(collection, name="other")).begin(collection)
    assert era_of(world).first == FIRST + 64


@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_a_crash_while_deleting_deletes_all_or_nothing(stride: int):
    sizes = set()
    for fuse in range(0, 1000, stride):
        store = Crashing()
        world = run(hundred_days(hourly(), store), 4, lambda step: 2)
        world.clock.advance(DAY)
        store.fuse = fuse
        with pytest.raises(Crash):  # at a statement of the transaction, or right after it
            world.collector.tick()
        oldest = min(steps_of(world)), min(withheld(world)), len(store.asks_with_ids())
        assert oldest in ((FIRST, FIRST, 1), (FIRST + 4, FIRST + 4, 1))
        sizes.add(oldest)
        assert min(steps_of(world.begin())) == min(withheld(world)) == FIRST + 4
        assert len(world.collector.board.asks) == 1
        if len(sizes) == 2:
            break
    assert fuse > 20


# -- snapshots ------------------------------------------------------------------------------------------------


def test_a_restart_reads_no_more_than_the_steps_since_the_older_snapshot(
    reopen: Reopen, monkeypatch: pytest.MonkeyPatch
):
    world = run(World(exact_collection(), 1000.0, reopen), 200, lambda step: 1)  # more than are read at most
    read, asks = list[AskRow](), Store.asks

    def counted(store: Store, era: EraRow, start: int = 0) -> Iterator[AskRow]:
        for row in asks(store, era, start):
            read.append(row)
            yield row

    monkeypatch.setattr(Store, "asks", counted)
    world.begin()
    assert 64 <= len(read) <= 130


def test_releases_look_alike_whatever_is_restarted(monkeypatch: pytest.MonkeyPatch):
    """With a snapshot at every step, or none at all."""
    shown = []
    for every in (1, 1000):
        monkeypatch.setattr(question_run, "SNAPSHOT_STEPS", every)
        world = World(exact_collection(adaptive=True), 1000.0)
        for _ in range(20):
            run(world.begin(), 1, lambda step: step % 5 + 1)
        shown.append(released(world.collector))
    assert shown[0] == shown[1]
