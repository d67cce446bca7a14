"""A new version goes on with the questions that it leaves as they are, and asks nothing again."""

from __future__ import annotations

import json
import logging
import random
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hubbub import Random, Sketch
from hubbub.authoring import load_collection
from hubbub.collection import Collection, Keys, ManualClock
from hubbub.core.errors import InvalidValue
from hubbub.core.event import units_of
from hubbub.protocols.ask import CIRCLE, Ask
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.protocols.driver import converse
from hubbub.service.collector.collector import Collector
from hubbub.service.ingest.frames import Frame
from hubbub.service.ingest.open_asks import OpenAsk
from hubbub.service.rounds.releases import release_json
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import Batch
from tests.service.stream_methods import STREAM_METHODS
from tests.shared.small_collections import THEME, collection_text

KEYS = Keys(b"k" * 32)
W = 4
STREAM = collection_text(
    "streams",
    "Streams",
    schedule={"step": "100s", "lateness": "10s"},
    privacy={"event": 2.0, "minimum_batch": 20},
    fields={"theme": THEME, "colour": {"kind": "categorical", "names": ["red", "green"]}},
    questions={"trend": {"kind": "stream", "field": "theme", "epsilon": 1.0, "method": "METHOD", "w": 4}},
)
CHANGES = collection_text(
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


def start_collector(collection: Collection, clock: ManualClock, store: SqliteStore) -> Collector:
    return Collector([collection], store, clock=clock, keys=KEYS, rng=Random(seed=1))


def values_of(ask: Ask) -> list[int]:
    """What a crowd holds that changes its mind."""
    size = round(3000 * ask.cohort.share)
    dark = round(size * (0.2 if ask.step % 9 < 5 else 0.7))
    return [1] * dark + [0] * (size - dark)


def crowd(collector: Collector, collection: Collection, open_ask: OpenAsk) -> Sketch:
    """Everyone who is asked answers; the same to the same ask."""
    ask, seed = open_ask.ask, int(open_ask.ask.ask_id[:12], 16)
    reports = ask.mechanism.randomize(values_of(ask), Random(seed=seed))
    ids = Random(seed=seed).bytes(16 * len(reports))
    batch = Batch(collection.name, collection.version, open_ask.name, ids, reports.to_bare())
    (receipt,) = collector.ingest([Frame(collection.collection_id, batch=batch)])
    assert receipt.accepted == len(reports)
    return ask.mechanism.accumulate(reports)


def all_asks(store: SqliteStore) -> list[Ask]:
    """Every ask of every version, by step and round."""
    rows = store._read("SELECT spec FROM asks ORDER BY step, round")
    return [Ask.from_spec(json.loads(spec)) for (spec,) in rows]


def all_releases(store: SqliteStore, question: str = "trend") -> list[dict[str, Any]]:
    """Every release of every version, by step."""
    ids = [row.id for row in store.collections()]
    rows = [row for version_id in ids for row in store.releases(version_id, question, 0, 1 << 40, 10_000)]
    return [release_json(row) for row in sorted(rows, key=lambda row: row.step)]


@pytest.mark.parametrize("method", STREAM_METHODS)
def test_a_stream_says_with_many_versions_what_it_says_with_one(method: str):
    """A new version every third step, put in force at the end of one: asks and releases are those of the protocol."""
    store, clock, steps = SqliteStore(":memory:"), ManualClock(1000.0), 11
    answered: dict[str, Sketch] = {}
    for tick in range(5 * steps + 1):
        clock.set(1000.0 + 20 * tick)
        if tick % 3 == 0:  # of five moments a step, every third is another one in the next step
            version = 1 + tick // 15
            title, least = f"Version {version}", 19 + version
            collection = replace(stream(method), version=version, title=title, minimum_batch=least)
            collector = start_collector(collection, clock, store)
        else:
            collector.tick()
        for open_ask in collector.board.open(collection.collection_id, clock.now()):
            if open_ask.ask.ask_id not in answered:
                answered[open_ask.ask.ask_id] = crowd(collector, collection, open_ask)
    assert len(store.collections()) == 4
    releases = all_releases(store)
    assert [release["step"] for release in releases] == list(range(10, 10 + len(releases)))
    assert len(releases) >= steps - 1

    def answer(ask: Ask) -> Sketch:
        return answered[replace(ask, step=ask.step + 9).ask_id]

    for release, row in zip(converse(collection.protocol("trend"), answer, steps=len(releases)), releases, strict=True):
        assert row["published"] == release.published
        if row["withheld"] is None:
            assert np.allclose(row["value"], release.estimate.value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", ["LBD", "LBA", "LBU", "LPD", "LPA", "LPU"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_no_window_is_asked_for_more_than_was_promised_whenever_versions_come(method: str, seed: int):
    """Versions at any moment of a step: nobody is asked twice in a window, no window sums to more than epsilon."""
    store, clock, draw = SqliteStore(":memory:"), ManualClock(1000.0), random.Random(seed)
    version, answered = 1, set()
    for turn in range(100):
        clock.set(clock.now() + draw.choice((5, 10, 10, 20)))
        newer = draw.random() < 0.15
        version += newer
        if newer or turn % 7 == 0:
            collection = replace(stream(method), version=version)
            collector = start_collector(collection, clock, store)
        else:
            collector.tick()
        for open_ask in collector.board.open(collection.collection_id, clock.now()):
            if open_ask.key not in answered and draw.random() < 0.7:
                answered.add(open_ask.key)
                crowd(collector, collection, open_ask)
    assert version > 8
    asks, places = all_asks(store), np.arange(64) * (CIRCLE // 64) + 12345
    for last in range(10 + W, max(ask.step for ask in asks)):
        within = [ask for ask in asks if last - W < ask.step <= last]
        spent = sum((ask.cohort.holds(places) * ask.mechanism.event().spent for ask in within), np.zeros(64, np.int64))
        assert spent.max() <= units_of(1.0)
    names = Counter((step, phase) for step, phase in store._read("SELECT step, round FROM asks"))
    assert max(names.values()) == 1, "one name was asked for in two versions"


def test_a_population_stream_keeps_its_place_on_the_circle():
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    for step in range(10, 16):
        clock.set(100.0 * step + 20)
        start_collector(replace(stream("LPU"), version=1 + (step > 12)), clock, store)
    arcs = [ask.cohort for ask in all_asks(store)]
    # Version 2 began in the middle of step 13, which version 1 had not asked.
    assert [ask.step for ask in all_asks(store)] == [10, 11, 12, 13, 14, 15]
    assert all((arc.start + arc.length) % CIRCLE == after.start for arc, after in pairwise(arcs))


def test_what_is_open_is_closed_with_what_it_has(caplog: pytest.LogCaptureFixture):
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    first = stream("LBU")
    collector = start_collector(first, clock, store)
    (open_ask,) = collector.board.open(first.collection_id, clock.now())
    crowd(collector, first, open_ask)
    clock.set(1050.0)
    with caplog.at_level(logging.INFO, logger="hubbub"):
        two = start_collector(second := replace(first, version=2), clock, store)
    (said,) = [record for record in caplog.records if record.getMessage() == "version goes on"]
    assert said.fields == {"collection": "streams", "question": "trend", "earlier": 1, "version": 2, "step": 11}
    (release,) = store.releases(first.collection_id, "trend", 0, 99, 9)
    assert (release.step, json.loads(release.payload)["n"]) == (10, 3000)
    assert store.asks_with_ids() == []
    assert two.board.open(second.collection_id, clock.now()) == []  # step 10 was asked: what is left of it is silent
    clock.set(1100.0)
    two.tick()
    assert [open_ask.ask.step for open_ask in two.board.open(second.collection_id, clock.now())] == [11]
    again = start_collector(second, clock, store)  # and a restart goes on from there
    assert [open_ask.ask.step for open_ask in again.board.open(second.collection_id, clock.now())] == [11]
    clock.set(1310.0)
    again.tick()
    assert [row.step for row in store.releases(second.collection_id, "trend", 0, 99, 9)] == [11, 12]


def test_devices_of_a_stream_of_changes_need_not_enrol_again():
    """The second version knows how many there are from the first, of whom it hears changes alone."""
    store, rng = SqliteStore(":memory:"), Random(seed=1)
    collection = load_collection(CHANGES)
    clock = ManualClock(collection.opens(16))
    states, n = None, 4000
    for step in range(16, 24):
        clock.set(collection.opens(step))
        collection = replace(collection, version=1 + (step >= 19), title=f"At {step >= 19}")
        collector = start_collector(collection, clock, store)
        (open_ask,) = collector.board.open(collection.collection_id, clock.now())
        symbols = open_ask.ask.mechanism
        assert isinstance(symbols, ChangeStream)
        new = np.full(n, step == 16)
        states = symbols.enroll(n, rng) if step == 16 else states
        states, *spoke = symbols.step(states, step, np.full(n, int(step >= 20)), rng, new)
        reports, _ = symbols.with_enrolment(states, *spoke, new)
        ids = rng.bytes(16 * len(reports))
        batch = Batch(collection.name, collection.version, open_ask.name, ids, reports.to_bare())
        assert collector.ingest([Frame(collection.collection_id, batch=batch)])[0].accepted == len(reports)
        clock.set(collection.opens(step + 1) - 1.0)
        collector.tick()
    clock.set(collection.opens(24) + 50.0)
    start_collector(collection, clock, store)
    releases = all_releases(store)
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
        ({"field": "colour"}, "another field", True),
    ],
)
def test_a_question_that_is_changed_begins_anew_where_nothing_was_asked(
    change: dict[str, Any], why: str, back: bool, caplog: pytest.LogCaptureFixture
):
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    first = stream("LBU")
    start_collector(first, clock, store)
    clock.set(1120.0)
    changed = replace(first.questions["trend"], **change)
    start_collector(replace(first, version=2, questions={"trend": changed}), clock, store)
    (said,) = [record for record in caplog.records if record.getMessage() == "new era"]
    assert (said.fields["first"], said.fields["why"]) == (11, f"version 1 asked it with {why}")
    if back:
        start_collector(replace(first, version=3), clock, store)  # as it was, but not as it last was: step 11 is asked
        assert [record.fields["first"] for record in caplog.records if record.getMessage() == "new era"] == [11, 12]


def test_another_domain_or_grid_begins_anew(caplog: pytest.LogCaptureFixture):
    from hubbub import Categorical

    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    first = stream("LBU")
    start_collector(first, clock, store)
    fields = {**first.fields, "theme": Categorical(["light", "dark", "grey"])}
    start_collector(second := replace(first, version=2, fields=fields), clock, store)
    # Steps of 105 seconds: it is in step 10 of them; 10 and 11 were asked for already, of another time.
    clock.set(1120.0)
    start_collector(second, clock, store)
    clock.set(1050.0)
    start_collector(replace(second, version=3, step_seconds=105), clock, store)
    logged = [(record.fields["first"], record.fields["why"]) for record in caplog.records]
    assert logged == [
        (11, "version 1 asked it with another domain of the field"),
        (12, "version 2 asked it with another grid of steps"),
    ]


def test_a_version_that_left_a_question_out_does_not_end_it(caplog: pytest.LogCaptureFixture):
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    first = stream("LPU")
    other = {"other": replace(first.questions["trend"], field="colour")}
    start_collector(first, clock, store)
    clock.set(1120.0)
    start_collector(first, clock, store)
    start_collector(replace(first, version=2, questions=other), clock, store)
    clock.set(1350.0)
    with caplog.at_level(logging.INFO, logger="hubbub"):
        start_collector(replace(first, version=3, questions={**first.questions, **other}), clock, store)
    went = {
        record.fields["question"]: record.fields["earlier"] for record in caplog.records if "earlier" in record.fields
    }
    assert went == {"trend": 1, "other": 2}
    arcs = {ask.step: ask.cohort for ask in all_asks(store) if ask.cohort.length}
    assert sorted(row.step for row in store.releases(store.collections()[-1].id, "trend", 0, 99, 9)) == [12]
    assert len(arcs) >= 4


def test_an_older_version_is_not_served_again():
    store, clock = SqliteStore(":memory:"), ManualClock(1000.0)
    start_collector(replace(stream("LBU"), version=2), clock, store)
    with pytest.raises(InvalidValue, match="a change is a new version"):
        start_collector(stream("LBU"), clock, store)
