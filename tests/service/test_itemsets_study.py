"""A study of itemsets through a collector: the simulation's numbers to the last digit, runs in turns, restarts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hubbub import Random
from hubbub.collection import Collection, ManualClock
from hubbub.core.domain import Sets
from hubbub.dashboard.app import dashboard
from hubbub.protocols.ask import disjoint
from hubbub.protocols.driver import Release, converse
from hubbub.rehearse.itemsets import find_itemsets
from hubbub.service.collector.collector import Collector
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import create_app
from hubbub.service.http.service import Service
from hubbub.service.rounds.releases import release_row, same_release
from hubbub.service.store.base import ReleaseRow
from hubbub.service.store.sql import Store
from hubbub.service.store.sqlite import SqliteStore
from hubbub.simulate.conversation import run_question
from hubbub.simulate.devices import SetStream
from hubbub.simulate.fleet import Fleet
from tests.service.itemsets_world import KEYS, LATENESS, ROUND, START, Shoppers, baskets, itemsets_collection, simulated
from tests.service.web import AUTHORIZED, TOKEN
from tests.shared.loopback import running

STUDY = itemsets_collection()
FEW = Shoppers(4_000)


def start_collector(store: Store, clock: ManualClock, collection: Collection = STUDY) -> Collector:
    return Collector([collection], store, clock=clock, keys=KEYS, rng=Random(seed=1))


def told(collector: Collector, collection: Collection = STUDY) -> list[ReleaseRow]:
    return collector.store.releases(collection.collection_id, "together", 0, 99, 99)


def run_whole(
    make: Callable[[], Collector], clock: ManualClock, people: Shoppers, *, rounds: int = 5, silent: int = 0
) -> None:
    begins = clock.now()
    for number in range(1, rounds + 1):
        make().tick()
        if number != silent:
            assert people.send_all(make()) > 0
        clock.set(begins + ROUND * number + LATENESS)
        make().tick()


def stored(release: Release, run: int = 0, collection: Collection = STUDY) -> ReleaseRow:
    place: dict[str, Any] = {"collection": collection.collection_id, "question": "together"}
    return release_row(replace(release, step=run), **place, time=0.0, minimum_batch=20)


@pytest.mark.parametrize("n", [4_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_collector_and_a_simulation_release_the_same_numbers(n: int) -> None:
    people, clock, store = Shoppers(n), ManualClock(float(START)), SqliteStore(":memory:")
    run_whole(lambda: start_collector(store, clock), clock, people)  # begun again before everything that happens
    (row,) = told(start_collector(store, clock))
    release = simulated(STUDY, people)
    assert same_release(row, stored(release))
    assert json.loads(row.payload)["value"] == release.estimate.value.tolist()
    assert {"5", "5 + 9", "20 + 21"} <= set(release.estimate.labels or ())
    assert row.withheld is None


@pytest.mark.parametrize("silent", [2, 5])
def test_a_round_whose_devices_all_vanished(silent: int) -> None:
    clock = ManualClock(float(START))
    collector = start_collector(SqliteStore(":memory:"), clock)
    run_whole(lambda: collector, clock, FEW, rounds=silent, silent=silent)
    (row,) = told(collector)
    payload = json.loads(row.payload)
    assert payload["stopped"] == f"nobody answered in round {silent}"
    assert bool(payload["value"]) == (silent == 5)  # the items were known by then
    clock.advance(ROUND * 9)
    collector.tick()
    assert len(told(collector)) == 1
    assert not collector.board.open(STUDY.collection_id, clock.now())


def test_runs_take_turns_so_that_nobody_is_asked_twice() -> None:
    collection = itemsets_collection(every=f"{10 * ROUND}s", turns=2)
    clock, asked_steps = ManualClock(float(START)), []
    collector = start_collector(SqliteStore(":memory:"), clock, collection)
    for run in range(3):
        clock.set(START + run * 10.0 * ROUND)
        collector.tick()
        (opened,) = collector.board.open(collection.collection_id, clock.now())
        asked_steps.append(opened.ask.cohort)
        run_whole(lambda: collector, clock, FEW)
    assert disjoint(asked_steps[:2])
    assert asked_steps[2] == asked_steps[0]
    rows = told(collector, collection)
    assert [row.step for row in rows] == [0, 1, 2]
    assert all(
        same_release(row, stored(simulated(collection, FEW, run), run, collection)) for run, row in enumerate(rows)
    )
    (promise,) = collection.terms["together"].promises
    assert (promise.limit, promise.steps, promise.interval) == (4 * 10**12, 2, 10 * ROUND)


def test_a_batch_gives_the_numbers_of_the_study() -> None:
    people, domain = baskets(4_000), STUDY.fields["basket"]
    assert isinstance(domain, Sets)
    itemsets = find_itemsets(people, k=8, epsilon=4.0, rng=Random(seed=3), domain=domain)
    rng = Random(seed=3)
    fleet = Fleet(SetStream(people[rng.permutation(len(people))]), rng)
    protocol = STUDY.questions["together"].protocol(
        STUDY.setting("together")
    )  # not yet turned to its place on the circle
    (release,) = converse(protocol, fleet.answer)
    assert np.array_equal(release.estimate.value, itemsets.estimate.value)
    assert release.estimate.labels == tuple(" + ".join(map(str, items)) for items in itemsets.sets)


def test_everyone_answers_once_and_pays_once() -> None:
    """A fleet whose devices keep their ledgers answers all five rounds: each of them is asked in one."""
    people = baskets(3_000)
    (release,) = run_question(STUDY, "together", SetStream(people), Random(seed=4))
    assert release.n == pytest.approx(3_000, rel=1e-6)
    assert release.stopped is None


@pytest.mark.parametrize("silent", [0, 5])
def test_the_page_shows_what_was_found_the_rules_and_what_could_not_be_found(silent: int) -> None:
    clock = ManualClock(float(START))
    collector = start_collector(SqliteStore(":memory:"), clock)
    run_whole(lambda: collector, clock, FEW, silent=silent)
    service = Service(collector)
    with running(create_app(service, Tokens([TOKEN]), routes=dashboard(None)(service))) as client:
        page = client.get("/results/baskets/together").text
        (release,) = client.get("/v1/collections/baskets/questions/together/releases", headers=AUTHORIZED).json()[
            "releases"
        ]
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
