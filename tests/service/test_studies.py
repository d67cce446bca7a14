"""Studies through a collector: the numbers of a simulation, whatever stops and starts; each run at most once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hubbub import Random
from hubbub.collection import Collection, ManualClock, open_sealed
from hubbub.dashboard.app import dashboard
from hubbub.protocols.views.basic import Among
from hubbub.service.collector.collector import Collector
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import create_app
from hubbub.service.http.service import Service
from hubbub.service.kept.archive import Archive
from hubbub.service.rounds.question_run import ReplayMismatch
from hubbub.service.rounds.releases import release_json, same_release
from hubbub.service.store.base import ReleaseRow
from hubbub.service.store.sql import Store
from hubbub.service.store.sqlite import SqliteStore
from tests.service.process import HERE
from tests.service.study_world import (
    KEYS,
    LATENESS,
    ROUND,
    START,
    CommonQuestion,
    Crowd,
    simulated,
    stored_as,
    study_collection,
)
from tests.service.web import AUTHORIZED, TOKEN
from tests.shared.loopback import running

CROWD = Crowd()
STUDY = study_collection()
BROKEN = "Error -5 while decompressing data: incomplete or truncated stream"


def start_collector(store: Store, clock: ManualClock, collection: Collection = STUDY, **options: Any) -> Collector:
    return Collector([collection], store, clock=clock, keys=KEYS, rng=Random(seed=1), **options)


def told(collector: Collector, collection: Collection = STUDY) -> list[ReleaseRow]:
    return collector.store.releases(collection.collection_id, "common", 0, 99, 99)


def stops(rows: list[ReleaseRow]) -> list[tuple[int, str | None]]:
    return [(row.step, json.loads(row.payload).get("stopped")) for row in rows]


def run_whole(make: Callable[[], Collector], clock: ManualClock) -> None:
    """All three rounds, answered; `make` gives the collector to go on with, before everything that happens."""
    for number in (1, 2, 3):
        make().tick()
        assert CROWD.send_all(make()) > 0
        clock.set(START + ROUND * number)
        make().tick()  # closed, and waits for the late
        clock.set(START + ROUND * number + LATENESS)
        make().tick()


def test_a_simulation_and_a_collector_release_the_same_numbers(tmp_path: Path):
    (release,) = simulated(STUDY, CROWD)
    assert release.estimate.labels is not None
    assert {"5", "9"} < set(release.estimate.labels)
    for archive in (None, Archive(tmp_path / "reports")):
        clock = ManualClock(START - 50.0)
        collector = start_collector(SqliteStore(":memory:"), clock, archive=archive)
        assert not collector.board.asks
        clock.advance(50)
        run_whole(lambda collector=collector: collector, clock)
        (row,) = told(collector)
        assert same_release(row, stored_as(STUDY, release))
        page = release_json(row)
        assert list(page["estimates"]) == ["shares", "tested", "candidates"]
        assert page["value"] == page["estimates"]["shares"]["value"]
        assert collector.store.running_studies(STUDY.collection_id) == []
        clock.advance(ROUND * 9)
        collector.tick()
        assert len(told(collector)) == 1, "a study begins once"
        assert not collector.board.open(STUDY.collection_id, clock.now())


def test_what_is_published_says_run_round_and_part():
    clock = ManualClock(float(START))
    collector = start_collector(SqliteStore(":memory:"), clock)
    document = open_sealed(json.loads(collector.asks["study"].body), KEYS.public)
    assert document["format"] == 1
    assert [ask.pop("ask").get("kept") for ask in document["asks"]] == [None, True]
    name = {"question": "common", "run": 0, "step": 0, "round": 1, "closes": START + ROUND}
    assert document["asks"] == [{**name, "part": 0}, {**name, "part": 1}]
    CROWD.send_all(collector)
    clock.advance(ROUND + LATENESS)
    collector.tick()
    (opened,) = collector.board.open(STUDY.collection_id, clock.now())
    assert isinstance(opened.ask.view, Among)
    assert str(opened.name) == "common:0:0:2:0"


@pytest.mark.parametrize("archived", [False, True], ids=["in the store", "in files"])
def test_begun_again_before_everything_that_happens(archived: bool, reopen: Callable[[], Store], tmp_path: Path):
    (release,) = simulated(STUDY, CROWD)
    clock = ManualClock(float(START))
    archive = Archive(tmp_path / "reports") if archived else None
    run_whole(lambda: start_collector(reopen(), clock, archive=archive), clock)
    (row,) = told(collector := start_collector(reopen(), clock, archive=archive))
    assert same_release(row, stored_as(STUDY, release))
    assert collector.store.running_studies(STUDY.collection_id) == []


def test_counts_are_replayed_without_the_reports():
    (release,) = simulated(STUDY, CROWD)
    clock, store = ManualClock(float(START)), SqliteStore(":memory:")
    collector = start_collector(store, clock)
    CROWD.send_all(collector)
    clock.advance(ROUND + LATENESS)
    collector.tick()
    ((n, candidates),) = store._read("SELECT n, candidates FROM candidate_counts")
    assert n > 100
    assert len(json.loads(candidates)) == 12
    store._write("DELETE FROM reports")
    collector = start_collector(store, clock)
    for _ in range(2):
        CROWD.send_all(collector)
        clock.advance(ROUND)
        collector.tick()
    assert same_release(told(collector)[0], stored_as(STUDY, release))


def test_a_count_that_is_not_reproduced_stops_everything():
    clock, store = ManualClock(float(START)), SqliteStore(":memory:")
    collector = start_collector(store, clock)
    CROWD.send_all(collector)
    clock.advance(ROUND + LATENESS)
    collector.tick()
    store._write("UPDATE candidate_counts SET candidates = '[1, 2]'")
    with pytest.raises(ReplayMismatch, match="count 0"):
        start_collector(store, clock)


@pytest.mark.parametrize("damage", ["DELETE FROM reports", "UPDATE reports SET data = x'00'"])
def test_reports_that_are_gone_before_they_are_counted_stop_the_study(damage: str):
    clock, store = ManualClock(float(START)), SqliteStore(":memory:")
    collector = start_collector(store, clock)
    CROWD.send_all(collector)
    store._write(damage)
    clock.advance(ROUND + LATENESS)
    collector.tick()
    ((run, why),) = stops(told(collector))
    assert run == 0
    assert why in ("common counts 284 reports, of which 0 are there", "reports in the store cannot be read: " + BROKEN)
    assert store.running_studies(STUDY.collection_id) == []
    clock.advance(1)
    assert not start_collector(store, clock).board.open(STUDY.collection_id, clock.now())


def test_more_rounds_than_signed_are_refused():
    short = study_collection(rounds=2)
    clock = ManualClock(float(START))
    collector = start_collector(SqliteStore(":memory:"), clock, short)
    for number in (1, 2):
        assert CROWD.send_all(collector) > 0
        clock.set(START + ROUND * number + LATENESS)
        collector.tick()
    raised = "OutOfOrder: the protocol asks round 3, and 2 are signed"
    reason = f"tests.service.study_world.CommonQuestion.protocol raised {raised}"
    assert stops(told(collector, short)) == [(0, reason)]
    assert collector.store.running_studies(short.collection_id) == []
    assert not collector.board.open(short.collection_id, clock.now())


@pytest.mark.parametrize("down", [1, 2, 3])
def test_a_collector_that_was_down_over_a_round(down: int):
    clock, store = ManualClock(float(START)), SqliteStore(":memory:")
    if down > 1:
        collector = start_collector(store, clock)
        CROWD.send_all(collector)
        for number in range(1, down - 1):
            clock.set(START + ROUND * number + LATENESS)
            collector.tick()
            CROWD.send_all(collector)
    clock.set(START + ROUND * down + LATENESS + 1)
    collector = start_collector(store, clock)
    why = "nobody was asked: the collector was not there in the first round"
    expected = why if down == 1 else f"nobody answered in round {down}"
    assert stops(told(collector)) == [(0, expected)]
    for _ in range(3):
        clock.advance(ROUND)
        collector = start_collector(store, clock)
        collector.tick()
    assert stops(told(collector)) == [(0, expected)], "it never begins anew"
    page = release_json(told(collector)[0])
    assert (page["stopped"], page["withheld"], page["value"]) == (expected, None, [])


def test_runs_by_a_schedule_that_leaves_no_pause():
    often = study_collection(every=3 * ROUND)
    clock, store = ManualClock(float(START)), SqliteStore(":memory:")
    collector = start_collector(store, clock, often)
    for number in range(9):
        if number % 3 == 0 and number:  # while the run before waits for the late
            assert {era.first for era in store.running_studies(often.collection_id)} == {number // 3 - 1, number // 3}
            collector = start_collector(store, clock, often)
        assert {opened.name.run for opened in collector.board.open(often.collection_id, clock.now())} == {number // 3}
        assert CROWD.send_all(collector) > 0
        late = LATENESS if number % 3 < 2 else 0
        clock.set(START + ROUND * (number + 1) + late)
        collector.tick()
    clock.advance(LATENESS)
    collector.tick()
    (release,) = simulated(often, CROWD)
    rows = told(collector, often)
    assert [row.step for row in rows] == [0, 1, 2]
    assert all(same_release(row, stored_as(often, release, run=row.step)) for row in rows)


def test_a_newer_version_stops_a_run_and_never_asks_it_again():
    often, store, clock = study_collection(every=4 * ROUND), SqliteStore(":memory:"), ManualClock(float(START))
    collector = start_collector(store, clock, often)
    CROWD.send_all(collector)
    clock.advance(ROUND + LATENESS)
    collector.tick()
    newer = replace(often, version=2)
    collector = start_collector(store, clock, newer)
    assert stops(told(collector, often)) == [(0, "a newer version of the collection is served")]
    assert told(collector, newer) == []
    assert not collector.board.open(newer.collection_id, clock.now())
    assert collector.tick() == START + 4 * ROUND
    clock.advance(3 * ROUND)
    collector.tick()
    assert {opened.name.run for opened in collector.board.open(newer.collection_id, clock.now())} == {1}


def test_other_arithmetic_stops_a_run(monkeypatch: pytest.MonkeyPatch):
    clock, store = ManualClock(float(START)), SqliteStore(":memory:")
    CROWD.send_all(start_collector(store, clock))
    monkeypatch.setattr(CommonQuestion, "arithmetic", 2)
    collector = start_collector(store, clock)
    assert stops(told(collector)) == [(0, "arithmetic 2, and it was begun with 1")]
    assert not collector.board.open(STUDY.collection_id, clock.now())


def test_time_that_goes_back_stops_a_run_that_has_not_come():
    often = study_collection(every=4 * ROUND)
    clock, store = ManualClock(START + 40.0 * ROUND), SqliteStore(":memory:")
    collector = start_collector(store, clock, often)
    assert {opened.name.run for opened in collector.board.asks.values()} == {10}
    clock.set(float(START))
    collector.tick()
    assert stops(told(collector, often)) == [(10, "time went back")]
    assert {opened.name.run for opened in collector.board.open(often.collection_id, clock.now())} == {0}
    assert collector.releases("study", "common", first=0, last=99, most=9) == [], "none of a run yet to come"
    clock.advance(40 * ROUND)
    collector.tick()
    assert not collector.board.open(often.collection_id, clock.now()), "what was asked is not asked again"


def test_what_is_kept_of_a_run_is_deleted_in_time(tmp_path: Path):
    clock, store, archive = ManualClock(float(START)), SqliteStore(":memory:"), Archive(tmp_path / "reports")
    collector = start_collector(store, clock, archive=archive)
    run_whole(lambda: collector, clock)
    assert len(list(archive.folder.iterdir())) == 1
    clock.advance(86400 + 3600)
    collector.tick()
    clock.advance(3700)
    collector = start_collector(store, clock, archive=archive)
    assert list(archive.folder.iterdir()) == []
    for table in ("asks", "sketches", "candidate_counts", "reports", "id_pages"):
        assert store._read(f"SELECT COUNT(*) FROM {table}") == [(0,)], table
    assert len(told(collector)) == 1, "what was published stays"
    assert not collector.board.open(STUDY.collection_id, clock.now())


def test_few_reports_are_withheld_estimate_by_estimate():
    crowd = Crowd(90)
    clock = ManualClock(float(START))
    collector = start_collector(SqliteStore(":memory:"), clock, replace(STUDY, minimum_batch=22))
    for number in (1, 2, 3):
        crowd.send_all(collector)
        clock.set(START + ROUND * number + LATENESS)
        collector.tick()
    (row,) = collector.store.releases(next(iter(collector.collections.values())).collection_id, "common", 0, 0, 9)
    page = release_json(row)
    sizes = {name: (estimate["n"], estimate["withheld"] is None) for name, estimate in page["estimates"].items()}
    assert all(shown == (n >= 22) for n, shown in sizes.values())
    assert len({shown for _, shown in sizes.values()}) == 2


def test_pages_and_the_api_show_studies_and_why_they_stopped():
    both = study_collection(every=4 * ROUND, stream=True, step=4 * ROUND)
    clock = ManualClock(float(START))
    collector = start_collector(SqliteStore(":memory:"), clock, both)
    for number in (1, 2, 3):
        CROWD.send_all(collector)
        clock.set(START + ROUND * number + LATENESS)
        collector.tick()
    clock.set(START + 6.5 * ROUND)  # the next run's first round was missed
    collector.tick()
    service = Service(collector)
    with running(create_app(service, Tokens([TOKEN]), routes=dashboard(None)(service))) as client:
        releases = client.get("/v1/collections/study/questions/common/releases", headers=AUTHORIZED).json()["releases"]
        assert [(page["step"], page["number"], bool(page["stopped"])) for page in releases] == [
            (0, 0, False),
            (1, 0, True),
        ]
        assert "stopped: nobody was asked" in client.get("/results/study/common").text
        for path in ("/results/study", "/results/study/tested", "/privacy/study", "/collections/study"):
            assert client.get(path).status_code == 200, path


def die(folder: Path, stride: int, *urls: str) -> int:
    command = [sys.executable, str(HERE / "study_and_die.py"), str(folder), str(stride), *urls]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_killed_at_points_of_a_study(tmp_path: Path):
    assert die(tmp_path, 19) >= 5


@pytest.mark.slow
def test_killed_at_every_point_of_a_study(tmp_path: Path):
    assert die(tmp_path, 1) >= 100


def test_killed_at_points_of_a_study_in_postgresql(tmp_path: Path, postgres: Callable[[], str]):
    assert die(tmp_path, 25, *(postgres() for _ in range(3))) == 3
