"""The most common words through a collector: the simulation's answer to the last digit, from real clients too."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub import Ordinal, Random, Strings
from hubbub.client import Client
from hubbub.collection import Collection, ManualClock
from hubbub.core.event import units_of
from hubbub.dashboard.app import dashboard
from hubbub.protocols.ask import CIRCLE
from hubbub.protocols.driver import Release, converse
from hubbub.protocols.heavy_hitters.search import PrefixSearch
from hubbub.service.collector.collector import Collector
from hubbub.service.http.openapi import openapi
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import create_app
from hubbub.service.http.service import Service
from hubbub.service.ingest.warm_up import warm_up
from hubbub.service.kept.archive import Archive, ReportsMissing
from hubbub.service.rounds import rounds
from hubbub.service.rounds.counts import LOOK
from hubbub.service.rounds.releases import release_json, release_row, same_release
from hubbub.service.store.base import ReleaseRow
from hubbub.service.store.sqlite import SqliteStore
from tests.questions.top_world import START, top_collection
from tests.service.study_world import KEYS, Crowd
from tests.service.web import AUTHORIZED, TOKEN
from tests.shared.in_process import InProcess
from tests.shared.loopback import running

ROUND, LATENESS, DEVICES = 3600, 10, 24
HANGS = 90.0  # seconds after which a test gives up, not a measure of anything
WORDS = ("hub", "bub", "caf\u00e9", "and", "of", "")


class Speakers(Crowd):
    """People with a word each, the first words more often than the others."""

    def __init__(self, n: int) -> None:
        rng = np.random.default_rng(7)
        self.places = rng.integers(0, 1 << 32, n, dtype=np.uint64)
        self.values = rng.choice(np.array(WORDS, dtype=object), n, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
        self.kept = {}


def simulated(collection: Collection, crowd: Crowd) -> Release:
    terms = collection.terms["words"]
    talk = converse(
        collection.protocol("words"),
        crowd.answer,
        count=lambda count: count.among(lambda: [crowd.kept[count.ask.ask_id]]),
        rounds=1,
        parts=terms.parts,
    )
    (release,) = talk
    return release


def stored(collection: Collection, release: Release) -> ReleaseRow:
    return release_row(release, collection=collection.collection_id, question="words", time=0.0, minimum_batch=20)


def collected(collection: Collection, crowd: Crowd, archive: Archive | None = None) -> Collector:
    """A collector, after the round; it is begun anew from its store before the search."""
    clock, store = ManualClock(float(START)), SqliteStore(":memory:")
    collector = Collector([collection], store, clock=clock, keys=KEYS, rng=Random(seed=1), archive=archive)
    collector.tick()
    assert crowd.send_all(collector) == len(crowd.values)
    clock.set(float(START + ROUND))
    collector.tick()
    collector = Collector([collection], store, clock=clock, keys=KEYS, rng=Random(seed=1), archive=archive)
    clock.set(float(START + ROUND + LATENESS))
    end = time.monotonic() + HANGS
    while not collector.store.releases(collection.collection_id, "words", 0, 99, 99) and time.monotonic() < end:
        collector.tick()  # a long search runs in another thread
        time.sleep(0.001)
    return collector


def told(made: Collector, collection: Collection) -> ReleaseRow:
    (row,) = made.store.releases(collection.collection_id, "words", 0, 99, 99)
    return row


@pytest.mark.parametrize("n", [3000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_stored_reports_give_the_answer_of_a_simulation_to_the_last_digit(n: int, tmp_path: Path):
    limit = 1 << 20 if n > 10_000 else 1 << 13
    collection, crowd = top_collection(epsilon=3.0, k=4, query_limit=limit), Speakers(n)
    release = simulated(collection, crowd)
    assert {"hub", "bub"} <= set(release.estimate.labels or ())
    for archive in (None, Archive(tmp_path / "reports")):
        made = collected(collection, crowd, archive)
        row = told(made, collection)
        assert row.payload == stored(collection, release).payload
        assert same_release(row, stored(collection, release))
        again = Collector([collection], made.store, clock=made.clock, keys=KEYS, rng=Random(seed=1), archive=archive)
        assert again.store.running_studies(collection.collection_id) == []
        page = release_json(row)
        low, high = release.estimate.interval()
        assert page["low"] == low.tolist()
        assert page["high"] == high.tolist()


def test_a_long_search_holds_up_nobody_and_gives_the_same(monkeypatch: pytest.MonkeyPatch):
    collection, crowd = top_collection(epsilon=3.0, k=4), Speakers(3000)
    release = simulated(collection, crowd)
    ready, began, real = threading.Event(), threading.Event(), PrefixSearch.among

    def slowly(self: PrefixSearch, batches: Any) -> Any:
        began.set()
        assert ready.wait(HANGS)
        return real(self, batches)

    monkeypatch.setattr(rounds, "AT_ONCE", 1)
    clock, store = ManualClock(float(START)), SqliteStore(":memory:")
    collector = Collector([collection], store, clock=clock, keys=KEYS, rng=Random(seed=1))
    assert crowd.send_all(collector) == len(crowd.values)
    monkeypatch.setattr(PrefixSearch, "among", slowly)
    clock.set(float(START + ROUND + LATENESS))
    now = clock.now()
    assert collector.tick() == now + LOOK
    assert began.wait(HANGS)
    assert collector.tick() == now + LOOK, "it is under way, and nothing else waits for it"
    assert not store.releases(collection.collection_id, "words", 0, 99, 99)
    ready.set()
    end = time.monotonic() + HANGS
    while not (rows := store.releases(collection.collection_id, "words", 0, 99, 99)) and time.monotonic() < end:
        collector.tick()
        time.sleep(0.001)
    assert rows[0].payload == stored(collection, release).payload


def test_what_is_wrong_with_a_long_search_stops_the_run(monkeypatch: pytest.MonkeyPatch):
    def broken(self: PrefixSearch, batches: Any) -> Any:
        raise ReportsMissing("reports are gone")

    monkeypatch.setattr(rounds, "AT_ONCE", 1)
    monkeypatch.setattr(PrefixSearch, "among", broken)
    collection = top_collection()
    assert json.loads(told(collected(collection, Speakers(300)), collection).payload)["stopped"] == "reports are gone"


def test_nobody_and_a_group_without_anyone_are_said():
    collection = top_collection()
    nobody = Speakers(0)
    row = told(collected(collection, nobody), collection)
    assert json.loads(row.payload)["stopped"].startswith("nobody answered in the group that reports prefixes of")
    few = Speakers(300)
    asks = next(collection.protocol("words"))
    assert isinstance(asks, list)
    few.places[:] = (asks[0].cohort.start + few.places // 1000) % CIRCLE  # all of them are in the first group
    row = told(collected(collection, few), collection)
    second = collection.terms["words"].views[1]["bits"]
    why = f"nobody answered in the group that reports prefixes of {second} bits"
    assert json.loads(row.payload)["stopped"] == why


def test_the_page_shows_what_was_found_and_what_could_not_have_been():
    collection = top_collection(epsilon=3.0, k=3)
    service = Service(collected(collection, Speakers(3000)))
    with running(create_app(service, Tokens([TOKEN]), routes=dashboard(None)(service))) as web:
        for path in ("/results/words", "/results/words/words"):
            page = web.get(path).text
            for words in ("hub", "smallest share found reliably", "expected false positives", "(none)"):
                assert words in page
            assert "step by step" not in page
        (release,) = web.get("/v1/collections/words/questions/words/releases", headers=AUTHORIZED).json()["releases"]
        assert release["low"][0] < release["value"][0] < release["high"][0]
        assert set(release) <= set(openapi()["components"]["schemas"]["ReleaseBody"]["properties"])


def test_real_clients_answer_once_in_a_run_whatever_they_record(tmp_path: Path):
    collection = top_collection(epsilon=8.0, k=1, every="2h", fields={"word": Strings(longest=2)}, longest=1)
    clock = ManualClock(START + 1.0)
    server = InProcess(collection, clock, tmp_path / "store.db", keys=KEYS, rng=Random(seed=1))
    answered = 0
    for number in range(DEVICES):
        options = {"clock": clock, "monotonic": clock.now, "jitter": 0.0, "collection": "words"}
        device = Client(tmp_path / str(number), server, KEYS.public, **options)  # type: ignore[arg-type]
        device.record("word", "h" if number % 10 else "\u00e9")
        answered += device.tick()
        device.record("word", "no")
        device.tick()
        device.upload()
        device.close()
    assert answered == DEVICES
    clock.set(float(START + ROUND + LATENESS))
    server.collector.tick()
    (row,) = server.store.releases(collection.collection_id, "words", 0, 99, 99)
    payload = json.loads(row.payload)
    # About 10 of 24 reports support it, and any other letter at most 1: otherwise with a probability below 1e-5.
    assert payload["labels"] == ["h"]
    assert payload["population"] == DEVICES


def test_in_runs_that_take_turns_every_device_answers_one_and_pays_once(tmp_path: Path):
    collection = top_collection(epsilon=3.0, every="2h", turns=3)
    clock = ManualClock(START + 1.0)
    server = InProcess(collection, clock, tmp_path / "store.db", keys=KEYS, rng=Random(seed=1))
    answered = np.zeros(8, dtype=int)
    for run in range(3):
        clock.set(START + 7200 * run + 1.0)
        server.collector.tick()
        for number in range(len(answered)):
            options = {"clock": clock, "monotonic": clock.now, "jitter": 0.0, "collection": "words"}
            device = Client(tmp_path / str(number), server, KEYS.public, **options)  # type: ignore[arg-type]
            device.record("word", "hub")
            answered[number] += device.tick()
            device.upload()
            assert device.status().spent <= units_of(3.0)
            device.close()
    assert answered.tolist() == [1] * len(answered)
    assert server.collector.counts()[collection.collection_id, "accepted"] == len(answered)


def test_a_search_is_warmed_up_with_its_own_candidates(caplog: pytest.LogCaptureFixture):
    """Its candidates are prefixes, and no values of the mechanism."""
    warm_up([top_collection(), top_collection(fields={"word": Ordinal(100_000)})])
    assert [record.__dict__["fields"] for record in caplog.records] == []
