"""Releases in a collection: every ask is one that devices admit, a collector goes on from anywhere, all is promised."""

import json
from typing import Any

import numpy as np
import pytest

from hubbub import Random
from hubbub.alarms.plan import AlarmPlan
from hubbub.authoring import forecast, load_collection, promise
from hubbub.collection import ManualClock
from hubbub.collection.admits import admits, admits_parts
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Conversation, Release
from hubbub.protocols.topl.stream import ABOVE, LOST
from hubbub.protocols.views.basic import Clipped
from hubbub.service.collector.collector import Collector
from hubbub.service.ingest.frames import Frame
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import Batch
from tests.shared.in_process import KEYS
from tests.shared.small_collections import collection_text
from tests.shared.whole_way import answered

TEXT = collection_text(
    "survey",
    "Taxi rides",
    privacy={"event": 1.0},
    fields={"fare": {"kind": "numeric", "low": 0.0, "high": 500.0, "cells": 50}},
    questions={"fares": {"kind": "release", "field": "fare", "epsilon": 1.0, "r": 24, "every": 2}},
)


def test_devices_admit_all_that_is_asked() -> None:
    collection = load_collection(TEXT)
    terms = collection.terms["fares"]
    talk = Conversation(collection.protocol("fares"), rounds=terms.rounds, parts=terms.parts)
    released, asked = 0, set()
    while released < 5:
        if isinstance(talk.listen(), Release):
            released += 1
            continue
        assert admits_parts(terms, talk.asks, minimum_arc=collection.minimum_arc) is None
        for part, ask in enumerate(talk.asks):
            assert admits(terms, ask, part=part, minimum_arc=collection.minimum_arc) is None
            asked |= {ask.view.high} if isinstance(ask.view, Clipped) else set()
        answers = []
        for ask in talk.asks:
            mechanism: Any = ask.mechanism
            fares = ask.view([5.0, 8.0, 12.0, 60.0] * 2_000)
            answers.append(mechanism.accumulate(mechanism.randomize(fares, Random(seed=ask.step))))
        talk.reply_all(answers)
    assert len(asked) > 1
    assert min(asked) < 200


def answers(ask: Ask, step: int) -> tuple[Reports, Random]:
    """Of 3,000 devices, those in the cohort. From step 2 on fares are larger."""
    places = np.random.default_rng(1).integers(0, 1 << 32, 3000, dtype=np.uint64)
    fares = np.random.default_rng(step).exponential(9.0 if step < 2 else 60.0, 3000)
    rng = Random(seed=ask.ask_id)
    mechanism: Any = ask.mechanism
    return mechanism.randomize(ask.view(fares[ask.cohort.holds(places)]), rng), rng


def test_a_collector_that_begins_again_every_step_tells_what_the_protocol_says() -> None:
    """Five steps, in which the threshold is found twice; the collector is another one in each."""
    collection, store, clock = load_collection(TEXT), SqliteStore(":memory:"), ManualClock(0.0)
    every, names, counts = collection.step_seconds, [], []

    def collector() -> Collector:
        return Collector([collection], store, clock=clock, keys=KEYS, rng=Random(seed=1))

    for step in range(5):
        clock.set(step * every + collection.lateness_seconds + 1.0)
        served = collector()
        opened = served.board.open(collection.collection_id, clock.now())
        names.append([(found.name.part, type(found.ask.mechanism).__name__) for found in opened])
        for found in opened:
            made, rng = answers(found.ask, step)
            batch = Batch(collection.name, 1, found.name, rng.bytes(16 * len(made)), made.to_bare())
            (receipt,) = served.ingest([Frame(collection.collection_id, batch=batch)])
            assert receipt.accepted == len(made)
            counts.append(found.ask.mechanism.accumulate(made))
    clock.advance(every)
    rows = collector().releases("survey", "fares", first=0, last=99, most=99)
    assert names == [[(0, "SquareWave")]] + [[(0, "SquareWave"), (1, "Hybrid")]] * 4
    assert len(rows) == 5
    talk = Conversation(collection.protocol("fares"), parts=2)
    thetas = set()
    for row in rows:
        thetas.add(talk.asks[-1].view.range)
        talk.reply_all([counts.pop(0) for _ in talk.asks])
        message, told = talk.listen(), json.loads(row.payload)
        assert isinstance(message, Release)
        assert told["n"] == message.n == 3000
        for name in ("Sums", "Means"):
            assert told["estimates"][name]["value"] == message.estimates[name].value.tolist()
            assert told["estimates"][name]["variance"] == message.estimates[name].variance.tolist()
        assert told["value"] == message.estimate.value.tolist()
    assert len(thetas) == 3  # all that may be, and two that were found


def test_it_is_planned_and_promised() -> None:
    collection = load_collection(TEXT)
    assert [(row.kind, row.mechanism) for row in forecast(collection)] == [("release, 24 steps", "Hybrid")]
    assert "Of fare: what are its mean and its sum? One report every hour." in promise(collection)


def test_an_alarm_about_it_is_refused() -> None:
    """Clipped means are not unbiased: the collector would judge none of its steps, and the alarm never be raised."""
    plan = AlarmPlan.from_spec({"dear": {"question": "fares", "above": 20.0}})
    with pytest.raises(InvalidValue, match=r"alarms\.dear\.question.*unbiased"):
        plan.watches(load_collection(TEXT))


def test_the_api_and_the_page_say_what_clipping_hides() -> None:
    text = TEXT.replace("event = 1.0", "event = 8.0\nminimum_batch = 20").replace("epsilon = 1.0", "epsilon = 8.0")
    collection = load_collection(text.replace("every = 2\n", "").replace('"10m"', '"1m"'))
    with answered(collection, "fares", "fare", lambda number: 400.0 if number == 5 else 8.0, range(7, 10)) as (_, get):
        estimates = get("/v1/collections/survey/questions/fares/releases").json()["releases"][-1]["estimates"]
        above, lost = estimates[ABOVE], estimates[LOST]
        assert above["labels"][0].startswith("above ")
        for estimate in (above, lost):
            assert (estimate["n"], estimate["bias"], estimate["interval"]) == (24, "heuristic", "known")
            assert estimate["low"][0] <= estimate["value"][0] <= estimate["high"][0]
        page = get("/results/survey/fares").text
        assert f"<caption>{ABOVE}</caption>" in page
        assert f"<caption>{LOST}</caption>" in page
