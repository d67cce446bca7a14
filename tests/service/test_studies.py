"""Studies through a collector: the numbers of a simulation, whatever stops and starts; each run at most once."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hubbub.collection import open_sealed
from hubbub.core.event import units_of
from hubbub.protocols.views.basic import Among
from hubbub.questions.collection import Collection
from hubbub.service.kept.archive import Archive
from hubbub.service.rounds.question_run import ReplayMismatch
from hubbub.service.rounds.releases import same_release
from hubbub.service.store.base import ReleaseRow
from tests.service.process import deaths
from tests.service.study_world import (
    LATENESS,
    ROUND,
    START,
    CommonQuestion,
    WordCrowd,
    retold,
    run_rounds,
    stops,
    study_collection,
)
from tests.service.web import AUTHORIZED, site
from tests.shared.in_process import KEYS, InProcess, Reopen, World, as_row, released, rows_in, run_in, tamper

CROWD = WordCrowd()
STUDY = study_collection()
OFTEN = study_collection(every=4 * ROUND)
BROKEN = "Error -5 while decompressing data: incomplete or truncated stream"


def whole(collection: Collection = STUDY, run: int = 0) -> ReleaseRow:
    """The release of a simulation, as a collector stores it."""
    (release,) = CROWD.simulated(collection, "common")
    return as_row(collection, "common", replace(release, step=run))


def answered_rounds(world: World, rounds: int = 1) -> World:
    """Live through some rounds that everyone answers."""
    for number in range(1, rounds + 1):
        assert CROWD.send_all(world.collector) > 0
        world.at(START + ROUND * number + LATENESS)
    return world


def runs(world: World) -> set[int]:
    """The runs of which asks are open."""
    return {opened.name.run for opened in world.open}


def test_a_simulation_and_a_collector_release_the_same_numbers(tmp_path: Path):
    (release,) = CROWD.simulated(STUDY, "common")
    assert {"5", "9"} < set(release.estimate.labels or ())
    for archive in (None, Archive(tmp_path / "reports")):
        world = World(STUDY, START - 50, archive=archive)
        assert not world.collector.board.asks
        world.clock.advance(50)
        run_rounds(world, CROWD)
        (row,) = world.rows("common")
        assert same_release(row, whole())
        (page,) = released(world.collector, "common")
        assert list(page["estimates"]) == ["shares", "tested", "candidates"]
        assert page["value"] == page["estimates"]["shares"]["value"]
        assert world.store.running_studies(STUDY.collection_id) == []
        world.wait(ROUND * 9)
        assert len(world.rows("common")) == 1, "a study begins once"
        assert not world.open


def test_what_is_published_says_run_round_and_part():
    world = World(STUDY, START)
    document = open_sealed(json.loads(world.collector.asks["study"].body), KEYS.public)
    assert document["format"] == 1
    assert [ask.pop("ask").get("kept") for ask in document["asks"]] == [None, True]
    name = {"question": "common", "run": 0, "step": 0, "round": 1, "closes": START + ROUND}
    assert document["asks"] == [{**name, "part": 0}, {**name, "part": 1}]
    (opened,) = answered_rounds(world).open
    assert isinstance(opened.ask.view, Among)
    assert str(opened.name) == "common:0:0:2:0"


@pytest.mark.parametrize("archived", [False, True], ids=["in the store", "in files"])
def test_begun_again_before_everything_that_happens(archived: bool, reopen: Reopen, tmp_path: Path):
    world = World(STUDY, START, reopen, archive=Archive(tmp_path / "reports") if archived else None)
    run_rounds(world, CROWD, restarts=True)
    (row,) = world.begin().rows("common")
    assert same_release(row, whole())
    assert world.store.running_studies(STUDY.collection_id) == []


def test_counts_are_replayed_without_the_reports():
    world = answered_rounds(World(STUDY, START))
    ((n, candidates),) = rows_in(world.store, "SELECT n, candidates FROM candidate_counts")
    assert n > 100
    assert len(json.loads(candidates)) == 12
    run_in(world.store, "DELETE FROM reports")
    world.begin()
    for _ in range(2):
        CROWD.send_all(world.collector)
        world.wait(ROUND)
    (row,) = world.rows("common")
    assert same_release(row, whole())


def test_a_count_that_is_not_reproduced_stops_everything():
    world = answered_rounds(World(STUDY, START))
    tamper(world.store, "UPDATE candidate_counts SET candidates = '[1, 2]'")
    with pytest.raises(ReplayMismatch, match="count 0"):
        world.begin()


@pytest.mark.parametrize("damage", ["DELETE FROM reports", "UPDATE reports SET data = x'00'"])
def test_reports_that_are_gone_before_they_are_counted_stop_the_study(damage: str):
    world = World(STUDY, START)
    CROWD.send_all(world.collector)
    tamper(world.store, damage)
    world.wait(ROUND + LATENESS)
    ((run, why),) = stops(world.rows("common"))
    assert run == 0
    assert why in ("common counts 284 reports, of which 0 are there", "reports in the store cannot be read: " + BROKEN)
    assert world.store.running_studies(STUDY.collection_id) == []
    world.clock.advance(1)
    assert not world.begin().open


def test_more_rounds_than_signed_are_refused():
    world = answered_rounds(World(study_collection(rounds=2), START), 2)
    raised = "OutOfOrder: the protocol asks round 3, and 2 are signed"
    reason = f"tests.service.study_world.CommonQuestion.protocol raised {raised}"
    assert stops(world.rows("common")) == [(0, reason)]
    assert world.store.running_studies(world.collection.collection_id) == []
    assert not world.open


@pytest.mark.parametrize("down", [1, 2, 3])
def test_a_collector_that_was_down_over_a_round(down: int):
    world = World(STUDY, START - 1.0)
    if down > 1:
        answered_rounds(world.at(START), down - 2)
        CROWD.send_all(world.collector)
    world.clock.set(START + ROUND * down + LATENESS + 1)
    why = "nobody was asked: the collector was not there in the first round"
    expected = why if down == 1 else f"nobody answered in round {down}"
    assert stops(world.begin().rows("common")) == [(0, expected)]
    for _ in range(3):
        world.clock.advance(ROUND)
        world.begin().collector.tick()
    assert stops(world.rows("common")) == [(0, expected)], "it never begins anew"
    (page,) = released(world.collector, "common")
    assert (page["stopped"], page["withheld"], page["value"]) == (expected, None, [])


def test_runs_by_a_schedule_that_leaves_no_pause():
    often = study_collection(every=3 * ROUND)
    world = World(often, START)
    for number in range(9):
        run = number // 3
        if number % 3 == 0 and number:  # while the run before waits for the late
            assert {era.first for era in world.store.running_studies(often.collection_id)} == {run - 1, run}
            world.begin()
        assert runs(world) == {run}
        assert CROWD.send_all(world.collector) > 0
        world.at(START + ROUND * (number + 1) + (LATENESS if number % 3 < 2 else 0))
    rows = world.wait(LATENESS).rows("common")
    assert [row.step for row in rows] == [0, 1, 2]
    assert all(same_release(row, whole(often, row.step)) for row in rows)


def test_a_newer_version_stops_a_run_and_never_asks_it_again():
    world = answered_rounds(World(OFTEN, START))
    world.begin(replace(OFTEN, version=2))
    earlier = world.store.releases(OFTEN.collection_id, "common", 0, 99, 99)
    assert stops(earlier) == [(0, "a newer version of the collection is served")]
    assert world.rows("common") == []
    assert not world.open
    assert world.collector.tick() == START + 4 * ROUND
    assert runs(world.wait(3 * ROUND)) == {1}


def test_other_arithmetic_stops_a_run(monkeypatch: pytest.MonkeyPatch):
    world = World(STUDY, START)
    CROWD.send_all(world.collector)
    monkeypatch.setattr(CommonQuestion, "arithmetic", 2)
    assert stops(world.begin().rows("common")) == [(0, "arithmetic 2, and it was begun with 1")]
    assert not world.open


def test_time_that_goes_back_stops_a_run_that_has_not_come():
    world = World(OFTEN, START + 40.0 * ROUND)
    assert {opened.name.run for opened in world.collector.board.asks.values()} == {10}
    world.at(START)
    assert stops(world.rows("common")) == [(10, "time went back")]
    assert runs(world) == {0}
    assert world.collector.releases("study", "common", first=0, last=99, most=9) == [], "none of a run yet to come"
    assert not world.wait(40 * ROUND).open, "what was asked is not asked again"


def test_what_is_kept_of_a_run_is_deleted_in_time(tmp_path: Path):
    archive = Archive(tmp_path / "reports")
    world = World(STUDY, START, archive=archive)
    run_rounds(world, CROWD)
    assert len(list(archive.folder.iterdir())) == 1
    world.wait(86400 + 3600)
    world.clock.advance(3700)
    world.begin()
    assert list(archive.folder.iterdir()) == []
    for table in ("asks", "sketches", "candidate_counts", "reports", "id_pages"):
        assert rows_in(world.store, f"SELECT COUNT(*) FROM {table}") == [(0,)], table
    assert len(world.rows("common")) == 1, "what was published stays"
    assert not world.open


def test_few_reports_are_withheld_estimate_by_estimate():
    world = World(replace(STUDY, minimum_batch=22), START)
    run_rounds(world, WordCrowd(90))
    (page,) = released(world.collector, "common")
    sizes = {name: (estimate["n"], estimate["withheld"] is None) for name, estimate in page["estimates"].items()}
    assert all(shown == (n >= 22) for n, shown in sizes.values())
    assert len({shown for _, shown in sizes.values()}) == 2


def test_pages_and_the_api_show_studies_and_why_they_stopped():
    world = World(study_collection(every=4 * ROUND, stream=True, step=4 * ROUND), START)
    answered_rounds(world, 3).at(START + 6.5 * ROUND)  # the next run's first round was missed
    with site(world.collector, pages=True) as client:
        releases = client.get("/v1/collections/study/questions/common/releases", headers=AUTHORIZED).json()["releases"]
        shown = [(page["step"], page["number"], bool(page["stopped"])) for page in releases]
        assert shown == [(0, 0, False), (1, 0, True)]
        assert "stopped: nobody was asked" in client.get("/results/study/common").text
        for path in ("/results/study", "/results/study/tested", "/privacy/study", "/collections/study"):
            assert client.get(path).status_code == 200, path


def test_killed_at_points_of_a_study():
    assert deaths("study", 19) >= 5


@pytest.mark.slow
def test_killed_at_every_point_of_a_study():
    assert deaths("study", 1) >= 100


def test_killed_at_points_of_a_study_in_postgresql(postgres: Callable[[], str]):
    assert deaths("study", 25, *(postgres() for _ in range(3))) == 3


def test_real_clients_answer_once_and_what_is_released_is_what_the_protocol_says_of_it(tmp_path: Path):
    """Clients and the collector begin again between rounds."""
    study, devices = study_collection(most=2), 48
    server = InProcess(study, START + 1.0, tmp_path / "store.db")
    answered = [0] * devices
    for round in (1, 2, 3):
        for number in range(devices):
            with server.device(tmp_path / str(number)) as device:  # which begins again from its folder
                device.record("word", 5 if number % 3 else (number + round) % 40)  # frozen at the first answer
                answered[number] += device.tick()
                device.upload()
                assert device.status().queued == 0
        server.at(START + ROUND * round + LATENESS + 1.0)
        server.restart()
    assert answered == [1] * devices, "everyone is on one arc"
    assert server.collector.counts()[study.collection_id, "accepted"] == devices
    (row,) = server.rows("common")
    release, stored = retold(study, server.store), json.loads(row.payload)
    assert stored.get("stopped") is None
    assert release.estimate.value.tolist() == stored["value"]
    assert list(release.estimate.labels or ()) == stored["labels"]
    assert release.n == devices
    assert study.terms["common"].limit == units_of(3.0)
