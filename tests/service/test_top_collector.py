"""The most common words and itemsets through a collector: the simulation's answer to the last digit."""

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub import Ordinal, Random, Strings
from hubbub.core.domain import Sets
from hubbub.core.event import units_of
from hubbub.protocols.ask import CIRCLE, disjoint
from hubbub.protocols.driver import Count, CountResult, converse
from hubbub.protocols.heavy_hitters.search import PrefixSearch
from hubbub.questions.collection import Collection
from hubbub.rehearse.itemsets import find_itemsets
from hubbub.service.http.openapi import openapi
from hubbub.service.http.service import Service
from hubbub.service.ingest.warm_up import warm_up
from hubbub.service.kept.archive import Archive, ReportsMissing
from hubbub.service.rounds import rounds
from hubbub.service.rounds.releases import LOOK, same_release
from hubbub.service.store.base import ReleaseRow
from hubbub.simulate.devices import SetStream
from hubbub.simulate.fleet import Fleet
from tests.questions.top_world import START, top_collection
from tests.served import wait_for
from tests.service import itemsets_world
from tests.service.itemsets_world import Shoppers, baskets, itemsets_collection
from tests.service.study_world import run_rounds, stops
from tests.service.web import AUTHORIZED, logged, site
from tests.shared.in_process import Crowd, InProcess, World, as_row, places_of, released

ROUND, LATENESS, DEVICES = 3600, 10, 24
HANGS = 90.0  # seconds after which a test gives up, not a measure of anything
WORDS = ("hub", "bub", "caf\u00e9", "and", "of", "")


class Speakers(Crowd):
    """People with a word each, the first words more often than the others."""

    def __init__(self, n: int) -> None:
        rng = np.random.default_rng(7)
        places = places_of(n, rng)
        super().__init__(places, rng.choice(np.array(WORDS, dtype=object), n, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1]))

    def count(self, count: Count) -> CountResult:
        return count.among(lambda: [self.kept[count.ask.ask_id]])


def collected(collection: Collection, crowd: Crowd, archive: Archive | None = None) -> World:
    """A collector, after the round; it is begun anew from its store before the search."""
    world = World(collection, START, archive=archive)
    assert crowd.send_all(world.collector) == len(crowd.values)
    world.at(START + ROUND).begin().clock.set(START + ROUND + LATENESS)
    return searched(world)


def searched(world: World) -> World:
    """Wait for the end of a search, which runs in another thread if it is long."""
    wait_for(lambda: world.collector.tick() and world.rows("words"))
    return world


@pytest.mark.parametrize("n", [3000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_stored_reports_give_the_answer_of_a_simulation_to_the_last_digit(n: int, tmp_path: Path):
    limit = 1 << 20 if n > 10_000 else 1 << 13
    collection, crowd = top_collection(epsilon=3.0, k=4, query_limit=limit), Speakers(n)
    (release,) = crowd.simulated(collection, "words")
    assert {"hub", "bub"} <= set(release.estimate.labels or ())
    for archive in (None, Archive(tmp_path / "reports")):
        world = collected(collection, crowd, archive)
        (row,) = world.rows("words")
        assert row.payload == as_row(collection, "words", release).payload
        assert same_release(row, as_row(collection, "words", release))
        assert world.begin().store.running_studies(collection.collection_id) == []
        (page,) = released(world.collector, "words")
        low, high = release.estimate.interval()
        assert page["low"] == low.tolist()
        assert page["high"] == high.tolist()


def test_a_long_search_holds_up_nobody_and_gives_the_same(monkeypatch: pytest.MonkeyPatch):
    collection, crowd = top_collection(epsilon=3.0, k=4), Speakers(3000)
    (release,) = crowd.simulated(collection, "words")
    ready, began, real = threading.Event(), threading.Event(), PrefixSearch.among

    def slowly(self: PrefixSearch, batches: Any) -> Any:
        began.set()
        assert ready.wait(HANGS)
        return real(self, batches)

    monkeypatch.setattr(rounds, "AT_ONCE", 1)
    world = World(collection, START)
    assert crowd.send_all(world.collector) == len(crowd.values)
    monkeypatch.setattr(PrefixSearch, "among", slowly)
    now = START + ROUND + LATENESS
    world.clock.set(now)
    assert world.collector.tick() == now + LOOK
    assert began.wait(HANGS)
    assert world.collector.tick() == now + LOOK, "it is under way, and nothing else waits for it"
    assert not world.rows("words")
    ready.set()
    (row,) = searched(world).rows("words")
    assert row.payload == as_row(collection, "words", release).payload


def test_what_is_wrong_with_a_long_search_stops_the_run(monkeypatch: pytest.MonkeyPatch):
    def broken(self: PrefixSearch, batches: Any) -> Any:
        raise ReportsMissing("reports are gone")

    monkeypatch.setattr(rounds, "AT_ONCE", 1)
    monkeypatch.setattr(PrefixSearch, "among", broken)
    collection = top_collection()
    assert stops(collected(collection, Speakers(300)).rows("words")) == [(0, "reports are gone")]


def test_nobody_and_a_group_without_anyone_are_said():
    collection = top_collection()
    ((_, why),) = stops(collected(collection, Speakers(0)).rows("words"))
    assert why is not None
    assert why.startswith("nobody answered in the group that reports prefixes of")
    few = Speakers(300)
    asks = next(collection.protocol("words"))
    assert isinstance(asks, list)
    few.places[:] = (asks[0].cohort.start + few.places // 1000) % CIRCLE  # all of them are in the first group
    second = collection.terms["words"].views[1]["bits"]
    why = f"nobody answered in the group that reports prefixes of {second} bits"
    assert stops(collected(collection, few).rows("words")) == [(0, why)]


def test_the_page_shows_what_was_found_and_what_could_not_have_been():
    collection = top_collection(epsilon=3.0, k=3)
    with site(Service(collected(collection, Speakers(3000)).collector), pages=True) as web:
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
    server = InProcess(collection, START + 1.0, tmp_path / "store.db")
    answered = 0
    for number in range(DEVICES):
        with server.device(tmp_path / str(number)) as device:
            device.record("word", "h" if number % 10 else "\u00e9")
            answered += device.tick()
            device.record("word", "no")
            device.tick()
            device.upload()
    assert answered == DEVICES
    (row,) = server.at(START + ROUND + LATENESS).rows("words")
    payload = json.loads(row.payload)
    # About 10 of 24 reports support it, and any other letter at most 1: otherwise with a probability below 1e-5.
    assert payload["labels"] == ["h"]
    assert payload["population"] == DEVICES


def test_in_runs_that_take_turns_every_device_answers_one_and_pays_once(tmp_path: Path):
    collection = top_collection(epsilon=3.0, every="2h", turns=3)
    server = InProcess(collection, START + 1.0, tmp_path / "store.db")
    answered = [0] * 8
    for run in range(3):
        server.at(START + 7200 * run + 1.0)
        for number in range(len(answered)):
            with server.device(tmp_path / str(number)) as device:
                device.record("word", "hub")
                answered[number] += device.tick()
                device.upload()
                assert device.status().spent <= units_of(3.0)
    assert answered == [1] * len(answered)
    assert server.collector.counts()[collection.collection_id, "accepted"] == len(answered)


def test_a_search_is_warmed_up_with_its_own_candidates(caplog: pytest.LogCaptureFixture):
    """Its candidates are prefixes, and no values of the mechanism."""
    warm_up([top_collection(), top_collection(fields={"word": Ordinal(100_000)})])
    assert logged(caplog) == []


# -- itemsets that nobody listed: the same, and runs in turns --------------------------------------------------

ITEMSETS = itemsets_collection()
SHOPPERS = Shoppers(4_000)


def whole_itemsets(people: Shoppers, collection: Collection = ITEMSETS, run: int = 0) -> ReleaseRow:
    """The release of a simulation, as a collector stores it."""
    (release,) = people.simulated(collection, "together", run)
    return as_row(collection, "together", replace(release, step=run))


@pytest.mark.parametrize("n", [4_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_collector_and_a_simulation_find_the_same_itemsets(n: int) -> None:
    people, world = Shoppers(n), World(ITEMSETS, itemsets_world.START)
    run_rounds(world, people, rounds=5, restarts=True)
    (row,) = world.begin().rows("together")
    (release,) = people.simulated(ITEMSETS, "together")
    assert same_release(row, whole_itemsets(people))
    assert json.loads(row.payload)["value"] == release.estimate.value.tolist()
    assert {"5", "5 + 9", "20 + 21"} <= set(release.estimate.labels or ())
    assert row.withheld is None


@pytest.mark.parametrize("silent", [2, 5])
def test_a_round_whose_devices_all_vanished(silent: int) -> None:
    world = World(ITEMSETS, itemsets_world.START)
    run_rounds(world, SHOPPERS, rounds=silent, silent=silent)
    rows = world.rows("together")
    assert stops(rows) == [(0, f"nobody answered in round {silent}")]
    assert bool(json.loads(rows[0].payload)["value"]) == (silent == 5)  # the items were known by then
    assert len(world.wait(itemsets_world.ROUND * 9).rows("together")) == 1
    assert not world.open


def test_runs_take_turns_so_that_nobody_is_asked_twice() -> None:
    collection = itemsets_collection(every=f"{10 * itemsets_world.ROUND}s", turns=2)
    world, cohorts = World(collection, itemsets_world.START), []
    for run in range(3):
        (opened,) = world.at(itemsets_world.START + run * 10.0 * itemsets_world.ROUND).open
        cohorts.append(opened.ask.cohort)
        run_rounds(world, SHOPPERS, rounds=5)
    assert disjoint(cohorts[:2])
    assert cohorts[2] == cohorts[0]
    rows = world.rows("together")
    assert [row.step for row in rows] == [0, 1, 2]
    assert all(same_release(row, whole_itemsets(SHOPPERS, collection, run)) for run, row in enumerate(rows))
    (promise,) = collection.terms["together"].promises
    assert (promise.limit, promise.steps, promise.interval) == (4 * 10**12, 2, 10 * itemsets_world.ROUND)


def test_a_batch_gives_the_numbers_of_the_study() -> None:
    people, domain, rng = baskets(4_000), ITEMSETS.fields["basket"], Random(seed=3)
    assert isinstance(domain, Sets)
    itemsets = find_itemsets(people, k=8, epsilon=4.0, rng=Random(seed=3), domain=domain)
    fleet = Fleet(SetStream(people[rng.permutation(len(people))]), rng)
    not_turned = ITEMSETS.questions["together"].protocol()  # to its place on the circle
    (release,) = converse(not_turned, fleet.answer)
    assert np.array_equal(release.estimate.value, itemsets.estimate.value)
    assert release.estimate.labels == tuple(" + ".join(map(str, items)) for items in itemsets.sets)


@pytest.mark.parametrize("silent", [0, 5])
def test_the_page_shows_the_itemsets_the_rules_and_what_could_not_be_found(silent: int) -> None:
    world = World(ITEMSETS, itemsets_world.START)
    run_rounds(world, SHOPPERS, rounds=5, silent=silent)
    address = "/v1/collections/baskets/questions/together/releases"
    with site(world.collector, pages=True) as client:
        page = client.get("/results/baskets/together").text
        (release,) = client.get(address, headers=AUTHORIZED).json()["releases"]
    for text in ("expected false positives", "smallest share found reliably", "95% interval"):
        assert text in page
    rules = silent == 0
    assert (">20 + 21<" in page) == rules
    assert ("20 -&gt; 21" in page) == rules
    assert ("Confidence" in release["estimates"]) == rules
    assert (release["stopped"] is None) == rules
    assert ("nobody answered in round 5" in page) != rules
    low, high, value = (np.array(release[name]) for name in ("low", "high", "value"))
    assert ((low <= value) & (value <= high)).all()
