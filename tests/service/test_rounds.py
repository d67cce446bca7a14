"""Rounds by the clock: what is asked when, what is final when, and that a restart changes nothing."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hubbub import Random, Sketch
from hubbub.authoring import check, load_collection
from hubbub.authoring.toml import read_collection
from hubbub.collection import open_sealed
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.dashboard.answers import LEVEL, values_of
from hubbub.protocols.driver import MAIN, OWN, Release
from hubbub.protocols.window import METHODS
from hubbub.service.base.limits import Receipt
from hubbub.service.collector.collector import Collector
from hubbub.service.ingest.open_asks import OpenAsk
from hubbub.service.rounds import question_run
from hubbub.service.rounds.question_run import ReplayMismatch
from hubbub.service.rounds.releases import release_row, told_release
from hubbub.service.rounds.rounds import LONGEST_GAP, MARGIN
from hubbub.service.store.base import EraRow, StoreChanges
from hubbub.service.store.sqlite import SqliteStore
from tests.service.exact_world import SIZE, batch_frame, exact_collection
from tests.service.stream_world import STREAM_METHODS, answer_changing, assert_as_simulated, stream_text
from tests.shared.in_process import KEYS, World, released, tamper
from tests.shared.releases import release_json


def exact(now: float = 1000.0, **options: Any) -> World:
    return World(exact_collection(**options), now)


def document(collector: Collector, name: str = "exact") -> dict[str, Any]:
    return dict(open_sealed(json.loads(collector.asks[name].body), KEYS.public))


def send(world: World, open_ask: OpenAsk, values: list[int], seed: int = 0) -> Receipt:
    ids = [Random(seed=1000 * seed + value).bytes(16) for value in values]
    return world.collector.ingest([batch_frame(world.collection, open_ask.ask, ids, values)])[0]


def reason(receipt: Receipt) -> str:
    return receipt.rejected[0][1]


def asks_and_reports(world: World) -> list[tuple[int, int]]:
    """How many reports each release rests on, by step."""
    return [(release["step"], release["n"]) for release in released(world.collector)]


def steps(world: World) -> list[int]:
    """The steps that are asked now."""
    return [open_ask.ask.step for open_ask in world.open]


def test_a_steady_question_is_open_for_the_whole_step_and_late_reports_count():
    world = exact()
    (first,) = world.open
    assert (first.ask.step, first.closes, first.until) == (10, 1100, 1110)
    assert send(world, first, [1, 2]).accepted == 2
    (second,) = world.at(1100.0).open  # the next one opens at once, while the late are waited for
    assert second.ask.step == 11
    assert send(world, first, [3]).accepted == 1
    assert send(world, second, [4]).accepted == 1
    assert asks_and_reports(world) == []
    world.at(1109.9)
    assert send(world, first, [5]).accepted == 1
    world.clock.set(1110.0)  # even before anything noticed
    assert reason(send(world, first, [6])) == "late"
    world.collector.tick()
    (release,) = released(world.collector)
    assert (release["step"], release["n"], release["withheld"]) == (10, 4, None)
    assert [value for value in range(SIZE) if release["value"][value]] == [1, 2, 3, 5]
    assert reason(send(world, first, [7])) == "late"
    assert send(world, first, [5]).duplicates == 1


def test_a_report_to_an_ask_that_is_not_open_yet_is_too_early():
    world = exact()
    (first,) = world.open
    for step, why in ((11, "too_early"), (12, "unknown_ask")):
        guessed = OpenAsk(**{**vars(first), "ask": replace(first.ask, step=step)})
        assert reason(send(world, guessed, [1])) == why
    assert world.collector.board.asks[first.key].sketch.n == 0


def test_the_time_of_a_report_is_judged_by_the_clock_whenever_the_collector_ticks():
    world = exact()
    (first,) = world.open
    for now, why in ((first.opens - 1, "too_early"), (first.until, "late")):
        world.clock.set(now)
        assert reason(send(world, first, [1])) == why
    world.clock.set(first.until - 0.5)
    assert send(world, first, [1]).accepted == 1


def test_an_adaptive_step_has_two_phases():
    world = exact(adaptive=True)
    (first,) = world.open
    assert (first.closes, first.until) == (1050, 1060)
    send(world, first, [1])
    assert world.at(1050.0).open == []
    assert world.collector.asks["exact"].until == 1060
    (second,) = world.at(1060.0).open
    assert (second.ask.step, second.closes, second.until) == (10, 1100, 1110)
    assert second.ask.cohort.length == 1 << 31
    send(world, second, [2])
    (third,) = world.at(1100.0).open  # the first of the next step is a standing ask
    assert third.ask.step == 11
    send(world, second, [3])
    send(world, third, [4])
    assert asks_and_reports(world.at(1110.0)) == [(10, 3)]
    assert asks_and_reports(world.at(1160.0)) == [
        (10, 3),
        (11, 1),
    ]  # that step has one ask only: its release need not wait
    assert steps(world) == []
    assert steps(world.at(1200.0)) == [12]


def test_ids_are_held_for_the_margin_and_then_deleted():
    world = exact()
    (first,) = world.open
    send(world, first, [1, 2])
    world.at(1110.0 + MARGIN - 1)
    assert send(world, first, [1]).duplicates == 1
    assert len(list(world.store.id_pages(first.key))) == 1
    world.at(1110.0 + MARGIN)
    assert list(world.store.id_pages(first.key)) == []
    assert reason(send(world, first, [1])) == "late"
    assert first.key not in world.collector.board.asks


def test_a_small_release_is_withheld_but_stored():
    world = World(replace(exact_collection(), minimum_batch=30), 1000.0)
    send(world, world.open[0], list(range(29)))
    send(world, world.at(1100.0).open[0], list(range(30)), seed=1)
    few, enough = released(world.at(1210.0).collector)
    assert few["withheld"] == "29 reports; at least 30 are needed"
    assert (few["value"], few["variance"], few["low"], few["high"]) == (None, None, None, None)
    assert enough["withheld"] is None
    assert len(enough["value"]) == SIZE


def test_a_restart_finds_the_windows_as_they_were():
    world = exact(adaptive=True)
    (first,) = world.open
    send(world, first, [1, 2])
    (again,) = world.begin().open
    assert again.ask == first.ask
    assert again.sketch == first.sketch
    assert send(world, again, [1, 2, 3]).duplicates == 2
    (second,) = world.at(1060.0).open
    send(world, second, [4])
    world.at(1100.0).begin()  # with one ask that waits and one ahead
    assert {open_ask.ask.step for open_ask in world.collector.board.asks.values() if not open_ask.final} == {10, 11}
    assert asks_and_reports(world.at(1110.0)) == [(10, 4)]


def test_steps_that_were_missed_are_told_as_such():
    world = exact()
    send(world, world.open[0], [1])
    world.clock.set(1455.0)
    assert steps(world.begin()) == [14]
    assert asks_and_reports(world) == [(10, 1), (11, 0), (12, 0), (13, 0)]


def test_devices_that_answered_a_standing_ask_meanwhile_are_heard_if_not_too_late():
    world = exact()
    ask = replace(world.open[0].ask, step=11)
    world.clock.set(1205.0)  # step 11 went by, and is not over for those who are late
    world.begin()
    open_ask = next(open_ask for open_ask in world.collector.board.asks.values() if open_ask.ask == ask)
    assert send(world, open_ask, [5]).accepted == 1


def test_after_a_long_absence_a_conversation_begins_anew():
    world, later = exact(), 10 + LONGEST_GAP + 50
    send(world, world.open[0], [1])
    world.clock.set(100.0 * later)
    world.begin()
    assert asks_and_reports(world) == [(10, 1)]
    assert steps(world) == [later]
    era = world.store.era(world.collection.collection_id, "all")
    assert era is not None
    assert era.first == later
    assert len(asks_and_reports(world.wait(110))) == 2
    assert steps(world.begin()) == [later + 1]


def test_a_clock_set_back_reopens_nothing():
    world = exact()
    (first,) = world.open
    send(world, first, [1])
    world.at(1110.0).at(1050.0)
    assert reason(send(world, first, [2])) == "late"
    assert asks_and_reports(world) == [(10, 1)]


def test_before_its_origin_a_collection_waits():
    world = World(replace(exact_collection(), origin=2000), 1000.0)
    assert steps(world) == []
    assert world.collector.asks["exact"].until == 2000
    assert steps(world.at(2000.0)) == [0]


def test_a_sketch_that_was_tampered_with_stops_everything():
    world = exact()
    send(world, world.open[0], [1])
    world.at(1110.0)
    (row, *_) = world.store.asks(EraRow(world.collection.collection_id, "all", 10))
    counts = np.zeros(SIZE, dtype=np.int64)
    counts[2] = 1
    other = Sketch(Sketch.from_bytes(row.sketch).spec_id, 1, counts)
    tamper(world.store, "UPDATE sketches SET data = ? WHERE ask = ?", other.to_bytes(), row.ask)
    with pytest.raises(ReplayMismatch, match="the release of step 10 is not reproduced"):
        world.begin()


def test_a_changed_collection_needs_a_new_version_which_ends_the_old_one():
    world = exact()
    (first,) = world.open
    send(world, first, [1])
    with pytest.raises(InvalidValue, match="a change is a new version"):
        world.begin(exact_collection(lateness=5))
    world.begin(exact_collection(lateness=5, version=2))
    assert world.collector.served.outdated == {("exact", 1): exact_collection().collection_id}
    assert first.key not in world.collector.board.asks
    assert list(world.store.id_pages(first.key)) == []
    with pytest.raises(InvalidValue, match="a change is a new version"):
        world.begin(exact_collection())


STREAM = stream_text(window={"epsilon": 1.0, "steps": 4})


@pytest.mark.parametrize("lateness", ["49s", "50s", "99s", "100s", "7d"])
@pytest.mark.parametrize(("method", "length"), [("LPU", 100), ("LPA", 50)], ids=["one round", "two rounds"])
def test_check_finds_what_a_start_refuses_and_a_refused_start_stores_nothing(method: str, length: int, lateness: str):
    text = STREAM.replace("METHOD", method)
    collection, store = read_collection(text.replace('"10s"', f'"{lateness}"')), SqliteStore(":memory:")
    errors = [finding.where for finding in check(collection) if finding.level == "error"]
    assert errors == (["schedule.lateness"] if collection.lateness_seconds >= length else [])
    if errors:
        with pytest.raises(InvalidValue, match=r"schedule\.lateness"):
            World(collection, 1000.0, store)
        assert store.collections() == []
        collection = read_collection(text)  # what was refused is not served: it is version 1 still
    assert World(collection, 1000.0, store).collector.collections["streams"].version == 1


def test_a_version_that_promises_less_is_not_served():
    text = STREAM.replace("METHOD", "LPU")
    first = load_collection(text)
    world = World(first, 1000.0)
    second = text.replace("version = 1", "version = 2")
    wider = second.replace("epsilon = 1.0, steps = 4", "epsilon = 2.0, steps = 4")
    shorter = second.replace("epsilon = 1.0, steps = 4", "epsilon = 1.0, steps = 3").replace("w = 4", "w = 3")
    newer = load_collection(second)
    for weaker in (
        load_collection(wider),
        load_collection(shorter),
        replace(newer, retention_days=3650),
        replace(newer, minimum_batch=first.minimum_batch - 1),
        replace(newer, minimum_arc=1),
    ):
        with pytest.raises(InvalidValue, match="no weaker promise"):
            world.begin(weaker)
    world.begin(load_collection(second.replace("Streams", "Every stream")))
    assert world.collector.collections["streams"].version == 2


# Of ten moments a step, every third is another one in the next step.
@pytest.mark.parametrize(
    ("snapshots", "restarts"), [(3, 3), *(pytest.param(every, 1, marks=pytest.mark.slow) for every in (3, 64))]
)
@pytest.mark.parametrize("method", STREAM_METHODS)
def test_every_stream_says_in_real_time_what_it_says_in_a_simulation(
    method: str, snapshots: int, restarts: int, monkeypatch: pytest.MonkeyPatch
):
    """With restarts at moments of all sorts, or at all of them, from snapshots or the beginning: the releases are those
    of the protocol driven by hand."""
    monkeypatch.setattr(question_run, "SNAPSHOT_STEPS", snapshots)
    world = World(load_collection(STREAM.replace("METHOD", method)), 1000.0)
    answered: dict[str, Sketch] = {}
    for tick in range(110):
        world.clock.set(1000.0 + 10 * tick)
        if tick % restarts == 0:
            world.begin()
        else:
            world.collector.tick()
        for open_ask in world.open:
            if open_ask.ask.ask_id not in answered:
                answered[open_ask.ask.ask_id] = answer_changing(world.collector, open_ask)
    assert_as_simulated(world, answered, at_least=9)


def both(store: SqliteStore, *collections: Any) -> Collector:
    return Collector(collections, store, clock=exact().clock, keys=KEYS)


def test_two_collections_share_a_store():
    store, first = SqliteStore(":memory:"), exact_collection()
    for _ in range(2):
        collector = both(store, first, replace(exact_collection(step=70), name="other"))
        assert {name: len(document(collector, name)["asks"]) for name in ("exact", "other")} == {"exact": 1, "other": 1}
    with pytest.raises(InvalidValue, match="with different names"):
        both(store, first, first)


def test_a_collection_that_is_not_served_for_a_while_goes_on_later():
    store, first, second = SqliteStore(":memory:"), exact_collection(), replace(exact_collection(), name="other")
    collector = both(store, first, second)
    (open_ask,) = collector.board.of(second.collection_id, "all")
    frame = batch_frame(second, open_ask.ask, [bytes(16)], [5])
    assert collector.ingest([frame])[0].accepted == 1
    both(store, first)
    again = both(store, first, second)
    assert again.ingest([frame])[0].duplicates == 1
    assert again.board.asks[open_ask.key].sketch.n == 1


def test_a_listener_that_fails_costs_nothing():
    world = exact()
    world.collector.listeners.append(lambda changes: 1 / 0)  # type: ignore[arg-type]
    assert send(world, world.open[0], [1]).accepted == 1


def test_the_documents_say_what_is_open():
    world = exact(1030.0)
    spec, asks = document(world.collector), world.collector.asks
    assert set(spec) == {"format", "collection", "version", "step", "asks", "closes"}
    assert (spec["collection"], spec["version"], spec["step"], spec["closes"]) == ("exact", 1, 10, 1100)
    (entry,) = spec["asks"]
    assert entry.pop("ask")["step"] == 10
    assert entry == {"question": "all", "run": 0, "step": 10, "round": 1, "part": 0, "closes": 1100}
    first = asks["exact"]
    world.at(1040.0)
    assert asks["exact"] is first
    world.at(1100.0)
    assert asks["exact"].etag != first.etag
    assert open_sealed(json.loads(world.collector.specs["exact"].body), KEYS.public)["name"] == "exact"


def test_nothing_is_written_while_nothing_happens():
    world, made = exact(), list[StoreChanges]()
    world.collector.listeners.append(made.append)
    for second in range(50):
        world.at(1000.0 + second)
    assert made == []


@pytest.mark.parametrize("method", [name for name in METHODS if not name.endswith(("FAST", "RescueDP", "SP"))])
def test_what_does_not_depend_on_late_answers_is_asked_on_time(method: str):
    """Every step begins with an open ask, even while a publication of the step before waits for the late."""
    world = World(load_collection(STREAM.replace("METHOD", method)), 1000.0)
    waited = 0
    for now in range(1000, 3400, 10):
        opened = world.at(now).open
        if now % 100 == 0:
            assert steps(world) == [now // 100]
            asks = world.collector.board.asks.values()
            waited += any(not open_ask.final and open_ask.closes == now for open_ask in asks)
        for open_ask in opened:
            if not open_ask.sketch.n:
                answer_changing(world.collector, open_ask)
    assert waited > 1, "no step waited for the late: nothing was tried"


def test_the_board_may_be_read_while_it_changes():
    world = exact()
    (open_ask,) = world.open
    board = world.collector.board

    def other(ask: str, part: int) -> OpenAsk:
        return replace(open_ask, key=open_ask.key._replace(ask=ask * 32), name=open_ask.name._replace(part=part))

    second, third = other("f", 1), other("e", 2)

    class Restless:
        """A window that opens another while it is looked at."""

        final, closes = False, 2000.0
        name, key, place = second.name, second.key, second.place
        question, ids = second.question, second.ids

        @property
        def opens(self) -> float:
            board.add(third)
            return 0.0

    board.add(Restless())  # type: ignore[arg-type]
    assert len(world.open) == 2
    assert len(world.open) == 3


# -- values smoothed over time: their intervals are around the step's own, and never leak ----------------------


def estimated(value: list[float], variance: list[float], n: int = 40, **more: Any) -> Estimate:
    return Estimate(np.array(value), np.array(variance), n, **more)


OF_STEP = estimated([0.25, 0.75], [0.0025, 0.01])
SMOOTH = estimated([0.5, 0.5], [0.0025, 0.01], bias="heuristic", centre=OF_STEP.value)
PLACE: dict[str, Any] = {"collection": "0" * 32, "question": "words", "time": 0.0}
SMOOTHED = Release(step=7, estimates={MAIN: SMOOTH, OWN: OF_STEP}, published=True, spent=0.125, n=40.0)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_interval_is_the_estimates(level: float) -> None:
    shown = release_json(release_row(SMOOTHED, **PLACE, minimum_batch=1), level=level)
    low, high = SMOOTH.interval(level)
    assert (shown["low"], shown["high"]) == (pytest.approx(low.tolist()), pytest.approx(high.tolist()))
    assert shown["estimates"]["own"]["low"] == pytest.approx(OF_STEP.interval(level)[0].tolist())


def test_the_page_shows_the_same_interval() -> None:
    row = release_row(SMOOTHED, **PLACE, minimum_batch=1)
    values = values_of(told_release(row, level=LEVEL))
    low, high = SMOOTH.interval(0.95)
    assert [value.low for value in values] == pytest.approx(low.tolist())
    assert [value.high for value in values] == pytest.approx(high.tolist())


def test_what_is_withheld_shows_no_number_at_all() -> None:
    row = release_row(SMOOTHED, **PLACE, minimum_batch=50)
    text = json.dumps(release_json(row))
    assert row.withheld is not None
    for number in np.concatenate([SMOOTH.value, OF_STEP.value, OF_STEP.variance]):
        assert f"{number}," not in text.replace("]", ",")


def test_an_interval_that_is_not_known_is_null() -> None:
    silent = estimated([0.5, 0.5], [np.inf, np.inf], bias="heuristic")
    release = Release(step=8, estimates={MAIN: silent}, published=False, spent=0.0, n=40.0)
    shown = release_json(release_row(release, **PLACE, minimum_batch=1))
    assert (shown["value"], shown["low"], shown["high"]) == ([0.5, 0.5], [None, None], [None, None])


def test_what_is_withheld_names_nothing_that_was_found() -> None:
    ranking = estimated([0.5, 0.2], [0.01, 0.01], 10, labels=("hub", "bub"))
    rules = estimated([0.4], [0.01], 10, labels=("hub -> bub",))
    release = Release(step=0, estimates={"top": ranking, "Confidence": rules}, published=True, spent=1.0, n=10.0)
    row = release_row(release, **PLACE, minimum_batch=20)
    assert "bub" not in json.dumps(release_json(row))
    many = replace(release, estimates={"top": replace(ranking, n=40), "Confidence": rules})
    alone = release_row(many, **PLACE, minimum_batch=20)
    assert "hub -> bub" not in json.dumps(release_json(alone))
