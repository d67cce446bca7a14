"""Rounds by the clock: what is asked when, what is final when, and that a restart changes nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from hubbub import Random, Sketch
from hubbub.authoring import check, load_collection
from hubbub.authoring.toml import read_collection
from hubbub.collection import Collection, Keys, ManualClock, open_sealed
from hubbub.core.errors import InvalidValue
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import converse
from hubbub.protocols.window import METHODS
from hubbub.service.base.limits import Receipt
from hubbub.service.collector.collector import Collector
from hubbub.service.ingest.frames import Frame
from hubbub.service.ingest.open_asks import OpenAsk
from hubbub.service.rounds import retention
from hubbub.service.rounds.question_run import ReplayMismatch
from hubbub.service.rounds.releases import release_json
from hubbub.service.rounds.rounds import LONGEST_GAP, MARGIN
from hubbub.service.store import open_store
from hubbub.service.store.base import EraRow, StoreChanges
from hubbub.service.store.sql import Store
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import Batch
from tests.service.exact_world import SIZE, batch_frame, exact_collection
from tests.service.stream_methods import STREAM_METHODS
from tests.shared.small_collections import THEME, collection_text

KEYS = Keys(b"k" * 32)


def start_collector(collection: Collection, clock: ManualClock, store: Store | None = None) -> Collector:
    return Collector([collection], store or SqliteStore(":memory:"), clock=clock, keys=KEYS, rng=Random(seed=1))


def published(collector: Collector, name: str = "exact") -> list[tuple[str, int]]:
    document = open_sealed(json.loads(collector.asks[name].body), KEYS.public)
    return [(item["question"], item["ask"]["step"]) for item in document["asks"]]


def open_now(collector: Collector) -> list[OpenAsk]:
    return collector.board.open(next(iter(collector.collections.values())).collection_id, collector.clock.now())


def send(collector: Collector, open_ask: OpenAsk, values: list[int], seed: int = 0) -> Receipt:
    collection = next(iter(collector.collections.values()))
    ids = [Random(seed=1000 * seed + value).bytes(16) for value in values]
    return collector.ingest([batch_frame(collection, open_ask.ask, ids, values)])[0]


def released(collector: Collector, question: str = "all") -> list[dict]:
    name = next(iter(collector.collections))
    return [release_json(row) for row in collector.releases(name, question, first=0, last=1 << 40, most=10_000)]


def at(collector: Collector, now: float) -> Collector:
    assert isinstance(collector.clock, ManualClock)
    collector.clock.set(now)
    collector.tick()
    return collector


def test_a_steady_question_is_open_for_the_whole_step_and_late_reports_count():
    collector = start_collector(exact_collection(step=100, lateness=10), ManualClock(1000.0))
    (first,) = open_now(collector)
    assert (first.ask.step, first.closes, first.until) == (10, 1100, 1110)
    assert send(collector, first, [1, 2]).accepted == 2
    at(collector, 1100.0)  # the next one opens at once, while the late are waited for
    (second,) = open_now(collector)
    assert second.ask.step == 11
    assert send(collector, first, [3]).accepted == 1
    assert send(collector, second, [4]).accepted == 1
    assert released(collector) == []
    at(collector, 1109.9)
    assert send(collector, first, [5]).accepted == 1
    collector.clock.set(1110.0)  # even before anything noticed
    assert send(collector, first, [6]).rejected[0][1] == "late"
    collector.tick()
    (release,) = released(collector)
    assert (release["step"], release["n"], release["withheld"]) == (10, 4, None)
    assert [value for value in range(SIZE) if release["value"][value]] == [1, 2, 3, 5]
    assert send(collector, first, [7]).rejected[0][1] == "late"
    assert send(collector, first, [5]).duplicates == 1


def test_a_report_to_an_ask_that_is_not_open_yet_is_too_early():
    collector = start_collector(exact_collection(), ManualClock(1000.0))
    (first,) = open_now(collector)
    guessed = OpenAsk(**{**vars(first), "ask": replace(first.ask, step=11)})
    assert send(collector, guessed, [1]).rejected[0][1] == "too_early"
    beyond = OpenAsk(**{**vars(first), "ask": replace(first.ask, step=12)})
    assert send(collector, beyond, [1]).rejected[0][1] == "unknown_ask"
    assert collector.board.asks[first.key].sketch.n == 0


def test_the_time_of_a_report_is_judged_by_the_clock_whenever_the_collector_ticks():
    collector = start_collector(exact_collection(), ManualClock(1000.0))
    (first,) = open_now(collector)
    for now, rejected in ((first.opens - 1, "too_early"), (first.until, "late")):
        collector.clock.set(now)
        assert send(collector, first, [1]).rejected[0][1] == rejected
    collector.clock.set(first.until - 0.5)
    assert send(collector, first, [1]).accepted == 1


def test_an_adaptive_step_has_two_phases():
    collector = start_collector(exact_collection(adaptive=True, step=100, lateness=10), ManualClock(1000.0))
    (first,) = open_now(collector)
    assert (first.closes, first.until) == (1050, 1060)
    send(collector, first, [1])
    assert open_now(at(collector, 1050.0)) == []
    assert collector.asks["exact"].until == 1060
    (second,) = open_now(at(collector, 1060.0))
    assert (second.ask.step, second.closes, second.until) == (10, 1100, 1110)
    assert second.ask.cohort.length == 1 << 31
    send(collector, second, [2])
    (third,) = open_now(at(collector, 1100.0))  # the first of the next step is a standing ask
    assert third.ask.step == 11
    send(collector, second, [3])
    send(collector, third, [4])
    at(collector, 1110.0)
    assert [(release["step"], release["n"]) for release in released(collector)] == [(10, 3)]
    at(collector, 1160.0)  # the next step has one ask only: its release need not wait
    assert [(release["step"], release["n"]) for release in released(collector)] == [(10, 3), (11, 1)]
    assert open_now(collector) == []
    assert [open_ask.ask.step for open_ask in open_now(at(collector, 1200.0))] == [12]


def test_ids_are_held_for_the_margin_and_then_deleted():
    store = SqliteStore(":memory:")
    collector = start_collector(exact_collection(), ManualClock(1000.0), store)
    (first,) = open_now(collector)
    send(collector, first, [1, 2])
    at(collector, 1110.0 + MARGIN - 1)
    assert send(collector, first, [1]).duplicates == 1
    assert len(list(store.id_pages(first.key))) == 1
    at(collector, 1110.0 + MARGIN)
    assert list(store.id_pages(first.key)) == []
    assert send(collector, first, [1]).rejected[0][1] == "late"
    assert first.key not in collector.board.asks


def test_a_small_release_is_withheld_but_stored():
    collection = replace(exact_collection(), minimum_batch=30)
    collector = start_collector(collection, ManualClock(1000.0))
    (first,) = open_now(collector)
    send(collector, first, list(range(29)))
    (second,) = open_now(at(collector, 1100.0))
    send(collector, second, list(range(30)), seed=1)
    at(collector, 1210.0)
    few, enough = released(collector)
    assert few["withheld"] == "29 reports; at least 30 are needed"
    assert (few["value"], few["variance"], few["low"], few["high"]) == (None, None, None, None)
    assert enough["withheld"] is None
    assert len(enough["value"]) == SIZE


def test_a_restart_finds_the_windows_as_they_were():
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    collector = start_collector(exact_collection(adaptive=True), clock, store)
    (first,) = open_now(collector)
    send(collector, first, [1, 2])
    collector = start_collector(exact_collection(adaptive=True), clock, store)
    (again,) = open_now(collector)
    assert again.ask == first.ask
    assert again.sketch == first.sketch
    assert send(collector, again, [1, 2, 3]).duplicates == 2
    (second,) = open_now(at(collector, 1060.0))
    send(collector, second, [4])
    at(collector, 1100.0)
    collector = start_collector(exact_collection(adaptive=True), clock, store)  # with one ask that waits and one ahead
    assert {open_ask.ask.step for open_ask in collector.board.asks.values() if not open_ask.final} == {10, 11}
    at(collector, 1110.0)
    assert [(release["step"], release["n"]) for release in released(collector)] == [(10, 4)]


def test_steps_that_were_missed_are_told_as_such():
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    send(collector := start_collector(exact_collection(), clock, store), open_now(collector)[0], [1])
    clock.set(1455.0)
    collector = start_collector(exact_collection(), clock, store)
    assert [open_ask.ask.step for open_ask in open_now(collector)] == [14]
    assert [(release["step"], release["n"]) for release in released(collector)] == [(10, 1), (11, 0), (12, 0), (13, 0)]


def test_devices_that_answered_a_standing_ask_meanwhile_are_heard_if_not_too_late():
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    collector = start_collector(exact_collection(), clock, store)
    ask = replace(open_now(collector)[0].ask, step=11)
    clock.set(1205.0)  # step 11 went by, and is not over for those who are late
    collector = start_collector(exact_collection(), clock, store)
    open_ask = next(open_ask for open_ask in collector.board.asks.values() if open_ask.ask == ask)
    assert send(collector, open_ask, [5]).accepted == 1


def test_after_a_long_absence_a_conversation_begins_anew():
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    collector = start_collector(exact_collection(), clock, store)
    send(collector, open_now(collector)[0], [1])
    clock.set(1000.0 + 100 * (LONGEST_GAP + 50))
    collector = start_collector(exact_collection(), clock, store)
    assert [release["step"] for release in released(collector)] == [10]
    assert [open_ask.ask.step for open_ask in open_now(collector)] == [10 + LONGEST_GAP + 50]
    assert store.era(collector.collections["exact"].collection_id, "all").first == 10 + LONGEST_GAP + 50
    at(collector, clock.now() + 110)
    assert len(released(collector)) == 2
    assert [open_ask.ask.step for open_ask in open_now(start_collector(exact_collection(), clock, store))]


def test_a_clock_set_back_reopens_nothing():
    collector = start_collector(exact_collection(), ManualClock(1000.0))
    (first,) = open_now(collector)
    send(collector, first, [1])
    at(collector, 1110.0)
    at(collector, 1050.0)
    assert send(collector, first, [2]).rejected[0][1] == "late"
    assert [release["n"] for release in released(collector)] == [1]


def test_before_its_origin_a_collection_waits():
    collection = replace(exact_collection(), origin=2000)
    collector = start_collector(collection, ManualClock(1000.0))
    assert open_now(collector) == []
    assert collector.asks["exact"].until == 2000
    assert [open_ask.ask.step for open_ask in open_now(at(collector, 2000.0))] == [0]


@pytest.mark.parametrize(("adaptive", "lateness", "allowed"), [(False, 99, True), (False, 100, False)])
def test_a_lateness_that_leaves_no_time_is_refused(adaptive: bool, lateness: int, allowed: bool):
    collection = exact_collection(adaptive=adaptive, step=100, lateness=lateness)
    if allowed:
        start_collector(collection, ManualClock(1000.0))
    else:
        with pytest.raises(InvalidValue, match=r"schedule\.lateness"):
            start_collector(collection, ManualClock(1000.0))


def test_a_sketch_that_was_tampered_with_stops_everything():
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    collector = start_collector(exact_collection(), clock, store)
    send(collector, open_now(collector)[0], [1])
    at(collector, 1110.0)
    (row, *_) = store.asks(EraRow(collector.collections["exact"].collection_id, "all", 10))
    counts = np.zeros(SIZE, dtype=np.int64)
    counts[2] = 1
    other = Sketch(Sketch.from_bytes(row.sketch).spec_id, 1, counts)
    store._write("UPDATE sketches SET data = ? WHERE ask = ?", other.to_bytes(), row.ask)
    with pytest.raises(ReplayMismatch, match="the release of step 10 is not reproduced"):
        start_collector(exact_collection(), clock, store)


def test_an_ask_that_is_not_reproduced_stops_everything():
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    collector = start_collector(exact_collection(), clock, store)
    store._write("UPDATE asks SET spec = '{}'")
    with pytest.raises(ReplayMismatch, match="the ask of step 10 is not reproduced"):
        start_collector(exact_collection(), clock, store)
    assert collector.collections


def test_a_changed_collection_needs_a_new_version_which_ends_the_old_one():
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    collector = start_collector(exact_collection(), clock, store)
    (first,) = open_now(collector)
    send(collector, first, [1])
    with pytest.raises(InvalidValue, match="a change is a new version"):
        start_collector(exact_collection(lateness=5), clock, store)
    newer = start_collector(exact_collection(lateness=5, version=2), clock, store)
    assert newer.served.outdated == {("exact", 1): collector.collections["exact"].collection_id}
    assert first.key not in newer.board.asks
    assert list(store.id_pages(first.key)) == []
    with pytest.raises(InvalidValue, match="a change is a new version"):
        start_collector(exact_collection(), clock, store)


@pytest.mark.parametrize("lateness", ["49s", "50s", "99s", "100s", "7d"])
@pytest.mark.parametrize(("method", "length"), [("LPU", 100), ("LPA", 50)], ids=["one round", "two rounds"])
def test_check_finds_what_a_start_refuses_and_a_refused_start_stores_nothing(method: str, length: int, lateness: str):
    text = STREAM.replace("METHOD", method)
    collection, store = read_collection(text.replace('"10s"', f'"{lateness}"')), SqliteStore(":memory:")
    errors = [finding.where for finding in check(collection) if finding.level == "error"]
    assert errors == (["schedule.lateness"] if collection.lateness_seconds >= length else [])
    if errors:
        with pytest.raises(InvalidValue, match=r"schedule\.lateness"):
            start_collector(collection, ManualClock(1000.0), store)
        assert store.collections() == []
        collection = read_collection(text)  # what was refused is not served: it is version 1 still
    assert start_collector(collection, ManualClock(1000.0), store).collections["streams"].version == 1


def test_a_version_that_promises_less_is_not_served():
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    text = STREAM.replace("METHOD", "LPU")
    first = load_collection(text)
    collector = Collector([first], store, clock=clock, keys=KEYS)
    second = text.replace("version = 1", "version = 2")
    wider = second.replace("epsilon = 1.0, steps = 4", "epsilon = 2.0, steps = 4")
    for tried in (
        wider,
        wider.replace("epsilon = 2.0, steps = 4", "epsilon = 1.0, steps = 3").replace("w = 4", "w = 3"),
    ):
        with pytest.raises(InvalidValue, match="no weaker promise"):
            Collector([load_collection(tried)], store, clock=clock, keys=KEYS)
    newer = load_collection(second)
    for change in ({"retention_days": 3650}, {"minimum_batch": first.minimum_batch - 1}, {"minimum_arc": 1}):
        with pytest.raises(InvalidValue, match="no weaker promise"):
            Collector([replace(newer, **change)], store, clock=clock, keys=KEYS)
    same = load_collection(second.replace("Every method", "Each method"))
    assert Collector([same], store, clock=clock, keys=KEYS).collections["streams"].version == 2
    assert collector.collections["streams"].version == 1


SLOW = pytest.mark.slow
STREAM = collection_text(
    "streams",
    "Every method",
    schedule={"step": "100s", "lateness": "10s"},
    privacy={"minimum_batch": 20, "window": {"epsilon": 1.0, "steps": 4}},
    fields={"theme": THEME},
    questions={"trend": {"kind": "stream", "field": "theme", "epsilon": 1.0, "method": "METHOD", "w": 4}},
)


def crowd(ask: Ask) -> Sketch:
    """What a crowd answers that changes its mind; the same to the same ask."""
    seed = int(ask.ask_id[:12], 16)
    size = round(3000 * ask.cohort.share)
    dark = round(size * (0.2 if ask.step % 9 < 5 else 0.7))
    return ask.mechanism.accumulate(ask.mechanism.randomize([1] * dark + [0] * (size - dark), Random(seed=seed)))


# Of ten moments a step, every third is another one in the next step.
@pytest.mark.parametrize(
    ("snapshots", "restarts"), [(3, 3), pytest.param(3, 1, marks=SLOW), pytest.param(64, 1, marks=SLOW)]
)
@pytest.mark.parametrize("method", STREAM_METHODS)
def test_every_stream_says_in_real_time_what_it_says_in_a_simulation(
    method: str, snapshots: int, restarts: int, monkeypatch: pytest.MonkeyPatch
):
    """With restarts at moments of all sorts, or at all of them, from snapshots or the beginning: the releases are those
    of the protocol driven by hand."""
    monkeypatch.setattr(retention, "_SNAPSHOT_STEPS", snapshots)
    collection = load_collection(STREAM.replace("METHOD", method))
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    answered: dict[str, Sketch] = {}
    steps = 11
    for tick in range(10 * steps):
        clock.set(1000.0 + 10 * tick)
        if tick % restarts == 0:
            collector = start_collector(collection, clock, store)
        else:
            collector.tick()
        for open_ask in open_now(collector):
            if open_ask.ask.ask_id in answered:
                continue
            ask = open_ask.ask
            answered[ask.ask_id] = crowd(ask)
            size = round(3000 * ask.cohort.share)
            dark = round(size * (0.2 if ask.step % 9 < 5 else 0.7))
            seed = int(ask.ask_id[:12], 16)
            reports = ask.mechanism.randomize([1] * dark + [0] * (size - dark), Random(seed=seed))
            ids = Random(seed=seed).bytes(16 * size)
            batch = Batch(collection.name, 1, open_ask.name, ids, reports.to_bare())
            (receipt,) = collector.ingest([Frame(collection.collection_id, batch=batch)])
            assert receipt.accepted == size
    got = released(collector, "trend")
    assert len(got) >= steps - 2

    def answer(ask: Ask) -> Sketch:
        return answered[replace(ask, step=ask.step + 9).ask_id]

    for release, shown in zip(converse(collection.protocol("trend"), answer, steps=len(got)), got, strict=True):
        assert shown["step"] == release.step + 9
        assert shown["published"] == release.published
        if shown["withheld"] is None:
            assert np.allclose(shown["value"], release.estimate.value, rtol=0, atol=1e-12)
        else:
            assert release.estimate.n < 20


def test_two_collections_share_a_store():
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    collections = [exact_collection(), replace(exact_collection(step=70), name="other")]
    for _ in range(2):
        both = Collector(collections, store, clock=clock, keys=KEYS)
        assert {name: len(published(both, name)) for name in ("exact", "other")} == {"exact": 1, "other": 1}
    with pytest.raises(InvalidValue, match="with different names"):
        Collector([collections[0], collections[0]], store, clock=clock, keys=KEYS)


def test_a_collection_that_is_not_served_for_a_while_goes_on_later():
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    first, second = exact_collection(), replace(exact_collection(), name="other")
    collector = Collector([first, second], store, clock=clock, keys=KEYS)
    open_ask = next(
        open_ask for key, open_ask in collector.board.asks.items() if key.collection == second.collection_id
    )
    frame = batch_frame(second, open_ask.ask, [bytes(16)], [5])
    assert collector.ingest([frame])[0].accepted == 1
    Collector([first], store, clock=clock, keys=KEYS)
    again = Collector([first, second], store, clock=clock, keys=KEYS)
    assert again.ingest([frame])[0].duplicates == 1
    assert again.board.asks[open_ask.key].sketch.n == 1


def test_a_listener_that_fails_costs_nothing():
    collector = start_collector(exact_collection(), ManualClock(1000.0))
    collector.listeners.append(lambda changes: 1 / 0)  # type: ignore[arg-type,return-value]
    assert send(collector, open_now(collector)[0], [1]).accepted == 1


def test_the_documents_say_what_is_open():
    collector = start_collector(exact_collection(), ManualClock(1030.0))
    assert published(collector) == [("all", 10)]
    document = open_sealed(json.loads(collector.asks["exact"].body), KEYS.public)
    assert set(document) == {"format", "collection", "version", "step", "asks", "closes"}
    assert (document["collection"], document["version"]) == ("exact", 1)
    assert (document["step"], document["closes"]) == (10, 1100)
    (entry,) = document["asks"]
    assert entry.pop("ask")["step"] == 10
    assert entry == {"question": "all", "run": 0, "step": 10, "round": 1, "part": 0, "closes": 1100}
    first = collector.asks["exact"]
    at(collector, 1040.0)
    assert collector.asks["exact"] is first
    at(collector, 1100.0)
    assert collector.asks["exact"].etag != first.etag
    spec = open_sealed(json.loads(collector.specs["exact"].body), KEYS.public)
    assert spec["name"] == "exact"


def test_nothing_is_written_while_nothing_happens():
    store = open_store("sqlite:///:memory:")
    collector = start_collector(exact_collection(), ManualClock(1000.0), store)
    made: list[StoreChanges] = []
    collector.listeners.append(made.append)
    for second in range(50):
        at(collector, 1000.0 + second)
    assert made == []


@pytest.mark.parametrize("method", [name for name in METHODS if not name.endswith(("FAST", "RescueDP", "SP"))])
def test_what_does_not_depend_on_late_answers_is_asked_on_time(method: str):
    """Every step begins with an open ask, even while a publication of the step before waits for the late."""
    collection = load_collection(STREAM.replace("METHOD", method))
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    collector = start_collector(collection, clock, store)
    waited = 0
    for tick in range(10, 250):
        clock.set(100.0 * 10 + 10 * (tick - 10))
        collector.tick()
        opened = open_now(collector)
        if clock.now() % 100 == 0:
            assert [open_ask.ask.step for open_ask in opened] == [clock.now() // 100]
            waited += any(
                not open_ask.final and open_ask.closes == clock.now() for open_ask in collector.board.asks.values()
            )
        for open_ask in opened:
            if not open_ask.sketch.n:
                ask, seed = open_ask.ask, int(open_ask.ask.ask_id[:12], 16)
                size = round(3000 * ask.cohort.share)
                dark = round(size * (0.2 if ask.step % 9 < 5 else 0.7))
                reports = ask.mechanism.randomize([1] * dark + [0] * (size - dark), Random(seed=seed))
                ids = Random(seed=seed).bytes(16 * size)
                batch = Batch(collection.name, 1, open_ask.name, ids, reports.to_bare())
                collector.ingest([Frame(collection.collection_id, batch=batch)])
    assert waited > 1, "no step waited for the late: nothing was tried"


def test_the_board_may_be_read_while_it_changes():
    collector = start_collector(exact_collection(), ManualClock(1000.0))
    (open_ask,) = open_now(collector)

    class Restless:
        """A window that opens another while it is looked at."""

        name, final, closes = open_ask.name, False, 2000.0

        @property
        def opens(self) -> float:
            collector.board.asks[open_ask.key._replace(ask="e" * 32)] = open_ask
            return 0.0

    collector.board.asks[open_ask.key._replace(ask="f" * 32)] = Restless()  # type: ignore[assignment]
    assert len(open_now(collector)) == 2
