"""Eras: changed arithmetic begins a new one, at a step that was never asked; any other difference is a stop."""

import json
import logging
import pickle
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hubbub import Categorical, Random, Sketch
from hubbub.authoring import load_collection
from hubbub.core.event import units_of
from hubbub.protocols import window
from hubbub.protocols.ask import CIRCLE, Ask
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.questions import changes
from hubbub.questions.collection import Collection
from hubbub.service.rounds import question_run, rounds
from hubbub.service.rounds.question_run import ReplayMismatch
from tests.service.exact_world import batch_frame, exact_collection
from tests.service.stream_world import STREAM_METHODS, answer_changing, assert_as_simulated, stream_text
from tests.service.web import logged
from tests.shared.in_process import World, released, rows_in, send_reports, tamper
from tests.shared.small_collections import collection_text

LPA = window.METHODS["LPA"].arithmetic


def number(monkeypatch: pytest.MonkeyPatch, arithmetic: int) -> None:
    """Give LPA another number, as whoever changes its arithmetic does."""
    monkeypatch.setitem(window.METHODS, "LPA", window.METHODS["LPA"]._replace(arithmetic=arithmetic))


def asked(world: World) -> list[tuple[int, int]]:
    """Step and era of every ask."""
    return sorted(set(rows_in(world.store, "SELECT step, first FROM asks")))


def eras(world: World) -> list[tuple[int, int]]:
    return [(row[0], row[1]) for row in rows_in(world.store, "SELECT first, arithmetic FROM eras ORDER BY first")]


def adaptive() -> World:
    return World(exact_collection(adaptive=True), 1000.0)


def tick_through(world: World, times: range) -> World:
    for now in times:
        world.at(now)
    return world


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[dict[str, Any]]]:
    caplog.set_level(logging.WARNING, "hubbub.service")
    return lambda: logged(caplog, "new era")


@pytest.mark.parametrize("offset", [0.0, 30.0, 50.0, 65.0, 99.0])
def test_changed_arithmetic_begins_a_new_era_at_a_step_never_asked(
    monkeypatch: pytest.MonkeyPatch, lines: Any, offset: float
) -> None:
    """Whatever moment of a step the collector was stopped at; and what is counted already stays counted."""
    world = tick_through(adaptive(), range(1000, 1301, 10)).at(1300.0 + offset)
    frames = [batch_frame(world.collection, open_ask.ask, [bytes(16)], [5]) for open_ask in world.open]
    for frame in frames:
        assert world.collector.ingest([frame])[0].accepted == 1
    rows = world.rows("all")
    number(monkeypatch, 7)
    world.begin()
    (line,) = lines()
    assert (line["collection"], line["question"], line["first"]) == ("exact", "all", 14)
    assert line["why"] == f"arithmetic 7, and it was begun with {LPA}"
    assert eras(world) == [(10, LPA), (14, 7)]
    assert world.rows("all") == rows
    assert [key for key, _ in world.store.asks_with_ids()] == list(world.collector.board.asks)
    for frame in frames:  # a device that did not hear the answer is told that it is too late, and nothing breaks
        assert world.collector.ingest([frame])[0].rejected[0][1] == "late"
    tick_through(world, range(1400, 1700, 10))
    assert {step for step, first in asked(world) if first == 14} == {14, 15, 16}
    assert max(step for step, first in asked(world) if first == 10) == 13
    assert [row.step for row in world.rows("all") if row.step >= 14] == [14, 15]
    world.begin()
    assert len(lines()) == 1


def test_going_back_to_the_older_code_begins_another_era(monkeypatch: pytest.MonkeyPatch, lines: Any) -> None:
    number(monkeypatch, 1)
    world = adaptive()
    for arithmetic in (2, 1, 2):
        number(monkeypatch, arithmetic)
        world.begin()
    assert eras(world) == [(10, 1), (11, 2)]  # 11 was begun three times, and never asked
    assert len(lines()) == 3


def test_no_step_is_asked_in_two_eras(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over 300 moments: restarts, changed arithmetic, absences that are too long, a clock that is set back."""
    monkeypatch.setattr(rounds, "LONGEST_GAP", 3)
    monkeypatch.setattr(question_run, "SNAPSHOT_STEPS", 2)
    chance, arithmetic, world = random.Random(5), 1, adaptive()
    for _ in range(300):
        world.clock.set(max(1000.0, world.clock.now() + chance.choice([5, 15, 30, 30, 60, 120, 700, -80])))
        what = chance.random()
        if what < 0.15:
            arithmetic += 1
            number(monkeypatch, arithmetic)
        if what < 0.4:
            world.begin()
        world.collector.tick()
    steps = [step for step, _ in asked(world)]
    assert len(steps) == len(set(steps)) > 60
    assert len(eras(world)) > 30


def test_a_stream_of_changes_begins_with_a_horizon(monkeypatch: pytest.MonkeyPatch, lines: Any) -> None:
    """Devices say once a horizon that they are there: in the middle of one, nobody would be counted."""
    world = World(load_collection(PLACES), 1000.0)
    ((_, before),) = eras(world)
    monkeypatch.setattr(changes, "ARITHMETIC", before + 1)
    world.begin()
    assert [line["first"] for line in lines()] == [16]
    assert eras(world) == [(10, before), (16, before + 1)]
    world.at(1550.0).begin()  # to wait is no fault of time, and no new era
    assert len(lines()) == 1
    assert world.begin().open == []
    assert {open_ask.ask.step for open_ask in world.at(1600.0).open} == {16}  # in each part


SPOILT = {
    "an ask": ("the ask of step 16 is not reproduced", "UPDATE asks SET spec = '{}'"),
    "a release": (
        "the release of step 16 is not reproduced",
        "UPDATE releases SET payload = replace(payload, '\"n\": 0', '\"n\": 3')",
    ),
    "a snapshot": (
        "the snapshot of step 18 is not reproduced",
        'UPDATE snapshots SET state = \'{"place": {"step": 3}}\' WHERE step = 18',
    ),
    "the older snapshot": (
        "the ask of step 16 is not reproduced",
        'UPDATE snapshots SET state = \'{"place": {"step": 3}}\' WHERE step = 16',
    ),
    "a snapshot of another kind": (
        "the snapshot of step 16 is of another kind",
        'UPDATE snapshots SET state = \'{"place": {"other": 1}}\'',
    ),
    "a sketch": ("what is stored cannot be replayed", "UPDATE sketches SET data = x'00'"),
}


@pytest.mark.parametrize(("words", "damage"), SPOILT.values(), ids=SPOILT)
def test_with_the_same_arithmetic_a_mismatch_is_a_stop_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, lines: Any, words: str, damage: str
) -> None:
    monkeypatch.setattr(question_run, "SNAPSHOT_STEPS", 2)
    world = tick_through(adaptive(), range(1000, 1901, 50))
    tamper(world.store, damage)
    what_to_do = r"restore a backup, .* or serve the collection with a higher version"
    with pytest.raises(ReplayMismatch, match=f"{words}.*{what_to_do}"):
        world.begin()
    assert lines() == []
    assert len(eras(world)) == 1
    world.begin(exact_collection(adaptive=True, version=2))  # as it says


def test_the_stop_can_be_told_to_another_process() -> None:
    stop = pickle.loads(pickle.dumps(ReplayMismatch("all", "the release of step 7 is not reproduced")))
    assert str(stop).startswith("all: the release of step 7 is not reproduced: the store is damaged")


# -- a new version goes on with the questions that it leaves as they are, and asks nothing again ---------------

W = 4
FIELD: dict[str, Any] = {"field": "colour"}
STREAM = stream_text(event=2.0)
PLACES = collection_text(
    "streams",
    "Where people are",
    schedule={"step": "100s", "lateness": "10s"},
    privacy={"user": 4.0, "minimum_batch": 20},
    fields={"place": {"kind": "categorical", "names": ["home", "away"]}},
    questions={"trend": {"kind": "changes", "field": "place", "epsilon": 1.0, "steps": 8, "changes": 3}},
)


@cache
def stream(method: str) -> Collection:
    return load_collection(STREAM.replace("METHOD", method))


def all_asks(world: World) -> list[Ask]:
    """Every ask of every version, by step and round."""
    rows = rows_in(world.store, "SELECT spec FROM asks ORDER BY step, round")
    return [Ask.from_spec(json.loads(spec)) for (spec,) in rows]


def version(world: World, number: int, **changes: Any) -> World:
    """Serve another version of the collection."""
    return world.begin(replace(world.collection, version=number, **changes))


def steps(world: World) -> list[int]:
    """The steps that are asked now."""
    return [open_ask.ask.step for open_ask in world.open]


@pytest.mark.parametrize("method", STREAM_METHODS)
def test_a_stream_says_with_many_versions_what_it_says_with_one(method: str):
    """A new version every third step, put in force at the end of one: asks and releases are those of the protocol."""
    world, answered = World(replace(stream(method), title="Version 1"), 1000.0), dict[str, Sketch]()
    for tick in range(56):
        world.clock.set(1000.0 + 20 * tick)
        if tick % 3 == 0:  # of five moments a step, every third is another one in the next step
            number = 1 + tick // 15
            version(world, number, title=f"Version {number}", minimum_batch=19 + number)
        else:
            world.collector.tick()
        for open_ask in world.open:
            if open_ask.ask.ask_id not in answered:
                answered[open_ask.ask.ask_id] = answer_changing(world.collector, open_ask)
    assert len(world.store.collections()) == 4
    assert_as_simulated(world, answered, at_least=10, batch=23)


@pytest.mark.parametrize("method", ["LBD", "LBA", "LBU", "LPD", "LPA", "LPU"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_no_window_is_asked_for_more_than_was_promised_whenever_versions_come(method: str, seed: int):
    """Versions at any moment of a step: nobody is asked twice in a window, no window sums to more than epsilon."""
    world, draw, newest, answered = World(stream(method), 1000.0), random.Random(seed), 1, set()
    for turn in range(100):
        world.clock.advance(draw.choice((5, 10, 10, 20)))
        newer = draw.random() < 0.15
        newest += newer
        if newer or turn % 7 == 0:
            version(world, newest)
        else:
            world.collector.tick()
        for open_ask in world.open:
            if open_ask.key not in answered and draw.random() < 0.7:
                answered.add(open_ask.key)
                answer_changing(world.collector, open_ask)
    assert newest > 8
    asks, places = all_asks(world), np.arange(64) * (CIRCLE // 64) + 12345
    for last in range(10 + W, max(ask.step for ask in asks)):
        within = [ask for ask in asks if last - W < ask.step <= last]
        spent = sum((ask.cohort.holds(places) * ask.mechanism.event().spent for ask in within), np.zeros(64, np.int64))
        assert spent.max() <= units_of(1.0)
    names = Counter((step, phase) for step, phase in rows_in(world.store, "SELECT step, round FROM asks"))
    assert max(names.values()) == 1, "one name was asked for in two versions"


def test_a_population_stream_keeps_its_place_on_the_circle():
    world = World(stream("LPU"), 1020.0)
    for step in range(11, 16):
        world.clock.set(100.0 * step + 20)
        version(world, 1 + (step > 12))
    arcs = [ask.cohort for ask in all_asks(world)]
    # Version 2 began in the middle of step 13, which version 1 had not asked.
    assert [ask.step for ask in all_asks(world)] == [10, 11, 12, 13, 14, 15]
    assert all((arc.start + arc.length) % CIRCLE == after.start for arc, after in pairwise(arcs))


def test_what_is_open_is_closed_with_what_it_has(caplog: pytest.LogCaptureFixture):
    first = stream("LBU")
    world = World(first, 1000.0)
    answer_changing(world.collector, world.open[0])
    world.clock.set(1050.0)
    with caplog.at_level(logging.INFO, logger="hubbub"):
        version(world, 2)
    (line,) = logged(caplog, "version goes on")
    assert line == {"collection": "streams", "question": "trend", "earlier": 1, "version": 2, "step": 11}
    (release,) = world.store.releases(first.collection_id, "trend", 0, 99, 9)
    assert (release.step, json.loads(release.payload)["n"]) == (10, 3000)
    assert world.store.asks_with_ids() == []
    assert steps(world) == []  # step 10 was asked: what is left of it is silent
    assert steps(world.at(1100.0)) == [11]
    assert steps(world.begin()) == [11]  # and a restart goes on from there
    assert [row.step for row in world.at(1310.0).rows("trend")] == [11, 12]


def test_devices_of_a_stream_of_changes_need_not_enrol_again():
    """The second version knows how many there are from the first, of whom it hears changes alone."""
    rng, n = Random(seed=1), 4000
    first = replace(load_collection(PLACES), title="At False")
    world = World(first, first.opens(16))
    ask = world.open[0].ask.mechanism
    assert isinstance(ask, ChangeStream)
    states = ask.enroll(n, rng)
    for step in range(16, 24):
        world.clock.set(first.opens(step))
        version(world, 1 + (step >= 19), title=f"At {step >= 19}")
        new = np.full(n, step == 16)
        states, reports, speaks = ask.step(states, step, np.full(n, int(step >= 20)), rng, new)
        reports, _ = ask.with_enrolment(states, reports, speaks, new)
        assert send_reports(world.collector, world.open[0], reports, rng).accepted == len(reports)
        world.at(first.opens(step + 1) - 1.0)
    world.clock.set(first.opens(24) + 50.0)
    releases = released(world.begin().collector, "trend")
    assert [row["step"] for row in releases] == list(range(16, 24))
    assert {round(row["population"]) for row in releases} == {round(releases[0]["population"])}
    assert releases[0]["population"] > 0.9 * n
    assert all(row["lost"]["came"] == row["lost"]["due"] for row in releases)


@pytest.mark.parametrize(
    ("change", "why", "back"),
    [
        ({"epsilon": 0.5}, "another epsilon", False),  # the way back would promise less
        ({"method": "LPA"}, "another method", True),
        ({"w": 5}, "another w", False),
        (FIELD, "another field", True),
    ],
)
def test_a_question_that_is_changed_begins_anew_where_nothing_was_asked(
    change: dict[str, Any], why: str, back: bool, caplog: pytest.LogCaptureFixture
):
    world = World(stream("LBU"), 1000.0)
    was = world.collection.questions
    world.clock.set(1120.0)
    changed: Any = replace(was["trend"], **change)
    version(world, 2, questions={"trend": changed})
    (line,) = logged(caplog, "new era")
    assert (line["first"], line["why"]) == (11, f"version 1 asked it with {why}")
    if back:
        version(world, 3, questions=was)  # as it was, but not as it last was: step 11 is asked
        assert [fields["first"] for fields in logged(caplog, "new era")] == [11, 12]


def test_another_domain_or_grid_begins_anew(caplog: pytest.LogCaptureFixture):
    world = World(stream("LBU"), 1000.0)
    version(world, 2, fields={**world.collection.fields, "theme": Categorical(["light", "dark", "grey"])})
    # Steps of 105 seconds: it is in step 10 of them; 10 and 11 were asked for already, of another time.
    world.clock.set(1120.0)
    world.begin().clock.set(1050.0)
    version(world, 3, step_seconds=105)
    assert [(fields["first"], fields["why"]) for fields in logged(caplog)] == [
        (11, "version 1 asked it with another domain of the field"),
        (12, "version 2 asked it with another grid of steps"),
    ]


def test_a_version_that_left_a_question_out_does_not_end_it(caplog: pytest.LogCaptureFixture):
    world = World(stream("LPU"), 1000.0)
    was = world.collection.questions
    other: dict[str, Any] = {"other": replace(was["trend"], **FIELD)}
    world.clock.set(1120.0)
    version(world.begin(), 2, questions=other)
    world.clock.set(1350.0)
    with caplog.at_level(logging.INFO, logger="hubbub"):
        version(world, 3, questions={**was, **other})
    went = {fields["question"]: fields["earlier"] for fields in logged(caplog) if "earlier" in fields}
    assert went == {"trend": 1, "other": 2}
    arcs = {ask.step: ask.cohort for ask in all_asks(world) if ask.cohort.length}
    assert [row.step for row in world.rows("trend")] == [12]
    assert len(arcs) >= 4
