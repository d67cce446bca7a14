"""Several processes over one PostgreSQL: every report counts once, whichever process takes it, and one of them leads.

Processes die, the leader in the middle of a step, and a leader is cut off from the others until its lease is over.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hubbub.collection import ManualClock
from hubbub.mechanisms import MECHANISMS
from hubbub.service.backup.backups import make_backup, restore_backup
from hubbub.service.collector import lease
from hubbub.service.collector.collector import Collector
from hubbub.service.collector.joint import JointCollector
from hubbub.service.kept.archive import Archive, kept_reports
from hubbub.service.rounds.releases import same_release
from hubbub.service.store import joint, open_store
from hubbub.service.store.base import StoreFailed
from hubbub.service.store.joint import JointStore
from tests.served import THEMES, wait_for
from tests.service.conftest import PostgresServer
from tests.service.exact_world import Exact, batch_frame, exact_collection
from tests.service.joint_world import Crew, JointWorld, StepFleet, gone, lease_over, reckon, start_joint
from tests.service.once_world import Crash, small_pages
from tests.service.process import HUBBUB
from tests.service.study_world import LATENESS as STUDY_LATENESS
from tests.service.study_world import ROUND, START, WordCrowd, study_collection
from tests.shared.in_process import KEYS, as_row, open_now, rows_in, stored_releases
from tests.shuffler.shuffle_world import HOUR, ShuffleWorld
from tests.shuffler.shuffle_world import KEYS as SHUFFLE_KEYS

COLLECTION = exact_collection(keep=True)
TABLES = ("asks", "sketches", "releases", "id_pages", "snapshots", "eras", "counts", "news", "ask_shards", "leader")


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that does not lead reads asks from the store; no lease in this process runs out by itself."""
    monkeypatch.setitem(MECHANISMS, "Exact", Exact)
    for module in (joint, lease):  # a lease ends when a test says so, however slow the machine is
        monkeypatch.setattr(module, "LEASE", 3600.0)


@pytest.fixture
def url(postgres: Callable[[], str]) -> str:
    return postgres()


def ids_of(count: int, seed: int = 0) -> list[bytes]:
    draw = random.Random(seed)
    return [draw.randbytes(16) for _ in range(count)]


def two(url: str, clock: ManualClock) -> tuple[JointCollector, JointCollector]:
    first, second = start_joint(COLLECTION, clock, url), start_joint(COLLECTION, clock, url)
    assert (first.leads, second.leads) == (True, False)
    return first, second


def table_rows(store: JointStore) -> dict[str, list[str]]:
    return {table: sorted(map(repr, rows_in(store, f"SELECT * FROM {table}"))) for table in TABLES}


def run_worlds(postgres: Callable[[], str], seeds: range) -> None:
    partitions = starts = 0
    for seed in seeds:
        with small_pages():
            world = JointWorld(seed, postgres())
            world.run()
        partitions, starts = partitions + world.partitions, starts + world.crashes
    assert partitions > len(seeds) / 4
    assert starts > 2 * len(seeds)


def test_worlds_of_two_processes(postgres: Callable[[], str]):
    run_worlds(postgres, range(6))


@pytest.mark.slow
def test_many_worlds_of_two_processes(postgres: Callable[[], str]):
    run_worlds(postgres, range(6, 306))


def test_a_report_counts_once_whichever_process_takes_it(url: str):
    clock = ManualClock(1000.0)
    first, second = two(url, clock)
    ask = open_now(first)[0]
    small = batch_frame(COLLECTION, ask.ask, ids_of(50), list(range(50)))
    large = batch_frame(COLLECTION, ask.ask, ids_of(3000, seed=1), [7] * 3000)
    assert first.ingest([small])[0].accepted == 50
    assert second.ingest([small, large])[0].duplicates == 50
    assert first.ingest([large])[0].duplicates == 3000
    other = batch_frame(COLLECTION, ask.ask, ids_of(50), [9] * 50)  # the same ids with other bytes
    assert {reason for _, reason in first.ingest([other])[0].rejected} == {"replay"}
    assert second.taken(open_now(second)) == {ask.key: 3050}
    assert first.counts() == second.counts()
    clock.advance(120)
    first.tick()
    second.tick()
    (row,) = second.releases("exact", "all", first=0, last=1 << 40, most=10)
    assert json.loads(row.payload)["n"] == 3050
    assert second.ingest([large])[0].duplicates == 3000  # a retry is still no news
    for each in (first, second):
        gone(each)


def test_a_leader_that_was_replaced_writes_nothing(url: str):
    """It was stopped past its lease, between its look at the lease and its transaction; the epoch alone stops it."""
    clock = ManualClock(1000.0)
    first, second = two(url, clock)
    frame = batch_frame(COLLECTION, open_now(first)[0].ask, ids_of(9), list(range(9)))
    second.ingest([frame])
    lease_over(second.store)
    second.tick()
    assert second.leads
    clock.advance(120)
    first.lease.beat = lambda: None  # type: ignore[method-assign]
    before = table_rows(second.store)
    with pytest.raises(StoreFailed, match="another process leads"):
        first.tick()
    assert table_rows(second.store) == before
    second.tick()
    assert second.releases("exact", "all", first=0, last=1 << 40, most=10)
    for each in (first, second):
        gone(each)


def test_who_leads_is_replaced_only_when_its_lease_is_over(url: str):
    first, second = two(url, ManualClock(1000.0))
    epoch = second.store.leadership().epoch
    for _ in range(3):
        second.tick()
        assert not second.leads
    first.resign()
    second.tick()
    assert second.leads
    assert second.store.leadership().epoch == epoch + 1
    for each in (first, second):
        gone(each)


def test_a_report_that_meets_the_close_is_in_the_sums_or_refused(url: str, monkeypatch: pytest.MonkeyPatch):
    """A transaction that counts reports is open when the leader closes: the close waits, and has them."""
    clock = ManualClock(1000.0)
    first, second = two(url, clock)
    ask = open_now(first)[0]
    frames = [batch_frame(COLLECTION, ask.ask, ids_of(20, seed), list(range(20))) for seed in range(2)]
    entered, leave = threading.Event(), threading.Event()
    take = second.store.take

    def slow(*arguments: Any) -> None:
        take(*arguments)
        entered.set()
        leave.wait(60)

    monkeypatch.setattr(second.store, "take", slow)
    counting = threading.Thread(target=second.ingest, args=([frames[0]],))
    counting.start()
    entered.wait(60)
    clock.advance(120)
    closing = threading.Thread(target=first.tick)
    closing.start()
    waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    wait_for(lambda: rows_in(first.store, waits))
    leave.set()
    counting.join()
    closing.join()
    assert {row.step for row in first.store.releases(COLLECTION.collection_id, "all", 0, 1 << 40, 9)} == {10}
    monkeypatch.setattr(second.store, "take", take)
    # The clock of this process is behind: for it the ask is open, for the store it is closed.
    second.clock = ManualClock(1050.0)
    second.board.asks[ask.key].final = False
    assert {reason for _, reason in second.ingest([frames[1]])[0].rejected} == {"late"}
    sums = {row.step: row for row in first.store.asks(first.store.era(COLLECTION.collection_id, "all"))}  # type: ignore[arg-type]
    assert first.board.asks[ask.key].sketch.n == 20
    assert sums[10].final
    assert sum(len(segment) > 0 for segment in first.store.kept_segments(ask.key)) == 1
    for each in (first, second):
        gone(each)


def test_a_leader_that_dies_between_a_close_and_the_release_is_followed_by_one_that_releases(url: str):
    """The ask of the next step was published before."""
    clock = ManualClock(1000.0)
    first, second = two(url, clock)
    second.ingest([batch_frame(COLLECTION, open_now(first)[0].ask, ids_of(20), list(range(20)))])
    clock.advance(101)
    first.tick()
    ahead = open_now(first)[0]
    second.ingest([batch_frame(COLLECTION, ahead.ask, ids_of(5, 1), [1] * 5)])
    clock.advance(11)
    closed = first.store.close_asks

    def die(keys: Any) -> None:
        closed(keys)
        raise Crash

    first.store.close_asks = die  # type: ignore[method-assign,assignment]
    with pytest.raises(Crash):
        first.tick()
    gone(first)
    lease_over(second.store)
    second.tick()
    (row,) = second.releases("exact", "all", first=0, last=1 << 40, most=10)
    assert json.loads(row.payload)["n"] == 20
    clock.advance(110)
    second.tick()
    assert [json.loads(row.payload)["n"] for row in second.releases("exact", "all", first=0, last=99, most=9)] == [
        20,
        5,
    ]
    gone(second)


def test_a_new_ask_is_known_before_it_is_heard_of(url: str):
    """A device heard of the next step from the leader, and its report comes to a process that has not."""
    clock = ManualClock(1000.0)
    first, second = two(url, clock)
    second.tick()
    clock.advance(100)
    first.tick()
    ask = open_now(first)[0]
    assert ask.key not in second.board.asks
    assert second.ingest([batch_frame(COLLECTION, ask.ask, ids_of(5), [1] * 5)])[0].accepted == 5
    for each in (first, second):
        gone(each)


def test_a_collector_that_is_alone_takes_over_and_gives_back(url: str):
    clock = ManualClock(1000.0)
    first, second = two(url, clock)
    ask = open_now(first)[0].ask
    frames = [batch_frame(COLLECTION, ask, ids_of(700, seed), [seed] * 700) for seed in range(3)]
    first.ingest([frames[0]])
    second.ingest([frames[1]])
    store = open_store(url)
    alone = Collector([COLLECTION], store, clock=clock, keys=KEYS)
    for each in (first, second):
        with pytest.raises(StoreFailed, match="taken over"):
            each.ingest([frames[2]])
    gone(second)
    assert [receipt.duplicates for receipt in alone.ingest(frames[:2])] == [700, 700]
    assert alone.ingest([frames[2]])[0].accepted == 700
    assert open_now(alone)[0].sketch.n == 2100
    third, fourth = two(url, clock)
    assert [receipt.duplicates for receipt in fourth.ingest(frames)] == [700] * 3
    with pytest.raises(StoreFailed, match="taken over"):
        alone.ingest([frames[0]])
    with pytest.raises(StoreFailed, match="taken over"):  # one of before, which was stopped, knows other pages of ids
        first.ingest([frames[2]])
    gone(first)
    store.close()
    clock.advance(120)
    third.tick()
    assert third.releases("exact", "all", first=0, last=1 << 40, most=10)
    assert third.counts()[COLLECTION.collection_id, "accepted"] == 2100
    for each in (third, fourth):
        gone(each)


def test_a_study_that_keeps_reports_goes_on_from_any_process(url: str, tmp_path: Path):
    """Devices report to either process, and another leads in every round: the numbers are those of a simulation."""
    clock, crowd, study = ManualClock(START), WordCrowd(300), study_collection()
    archive = Archive(tmp_path / "reports")
    both = [start_joint(study, clock, url, archive=archive) for _ in range(2)]
    while clock.now() < START + 3 * ROUND + STUDY_LATENESS:
        for each in both:
            each.tick()
        leader = next(each for each in both if each.leads)
        other = next(each for each in both if each is not leader)
        assert crowd.send_all(other) + crowd.send_all(leader) > 0 or clock.now() > START + 3 * ROUND
        clock.advance(ROUND + (STUDY_LATENESS if clock.now() == START else 0))
        lease_over(other.store)
        gone(leader)
        other.tick()
        both = [other, start_joint(study, clock, url, archive=archive)]
    for each in both:
        (row,), (release,) = stored_releases(each.store, study, "common"), crowd.simulated(study, "common")
        assert same_release(row, as_row(study, "common", release))
        gone(each)


def test_candidates_are_asked_of_any_process(url: str, tmp_path: Path):
    clock, archive = ManualClock(1000.0), Archive(tmp_path / "reports")
    first, second = (start_joint(COLLECTION, clock, url, archive=archive) for _ in range(2))
    ask = open_now(first)[0].ask
    for number, each in enumerate((first, second)):
        each.ingest([batch_frame(COLLECTION, ask, ids_of(40, number), [number] * 40)])
    clock.advance(120)
    first.tick()
    assert list(archive.folder.iterdir())
    for each in (first, second):
        batches = kept_reports(each.store, archive, COLLECTION.collection_id, "all", first=0, last=1 << 40)
        values = [int(value) for _, reports in batches for value in reports.private["value"]]
        assert sorted(values) == [0] * 40 + [1] * 40
        gone(each)


def test_a_shuffled_batch_counts_once_whichever_process_it_is_sent_to(url: str):
    world = ShuffleWorld()
    world.step()
    body = world.handed()
    world.clock.set(7 * HOUR + 60)
    keys: dict[str, Any] = {"keys": SHUFFLE_KEYS, "onion_key": world.onion_key}
    first, second = (start_joint(world.collection, world.clock, url, **keys) for _ in range(2))
    (ask,) = first.board.open(world.collection.collection_id, world.clock.now())
    world.clock.set(ask.until - 1)
    frames = [each.admit_shuffled(body) for each in (first, second)]
    receipts = [each.ingest([frame])[0] for each, frame in zip((first, second), frames, strict=True)]
    assert receipts[0].accepted == receipts[1].duplicates > 0
    assert second.taken([ask]) == {ask.key: receipts[0].accepted}
    world.clock.set(ask.until + 1)
    first.tick()
    assert first.board.asks[ask.key].sketch.n == receipts[0].accepted
    for each in (first, second):
        gone(each)


def test_retention_deletes_what_all_processes_stored(url: str):
    clock = ManualClock(1000.0)
    first, second = two(url, clock)
    ask = open_now(first)[0].ask
    for number, each in enumerate((first, second)):
        each.ingest([batch_frame(COLLECTION, ask, ids_of(40, number), [number] * 40)])
    for wait in (120, 200, COLLECTION.retention_days * 86400 + 7200):
        clock.advance(wait)
        first.tick()
    for table in ("shard_sketches", "reports", "id_pages"):
        assert rows_in(first.store, f"SELECT COUNT(*) FROM {table}") == [(0,)]
    held = {key.ask for key, *_ in first.store.held_asks()}
    assert {ask for (ask,) in rows_in(first.store, "SELECT DISTINCT ask FROM ask_shards")} == held
    for each in (first, second):
        gone(each)


@pytest.mark.parametrize("target", ["sqlite", "postgresql"])
def test_a_backup_is_of_a_store_of_one_process(url: str, target: str, tmp_path: Path, postgres: PostgresServer):
    clock = ManualClock(1000.0)
    first, second = two(url, clock)
    ask = open_now(first)[0].ask
    frames = [batch_frame(COLLECTION, ask, ids_of(700, seed), [seed] * 700) for seed in range(2)]
    for each, frame in zip((first, second), frames, strict=True):
        each.ingest([frame])
    make_backup(url, tmp_path / "reports", tmp_path / "backup")
    for each in (first, second):
        gone(each)
    again = postgres() if target == "postgresql" else f"sqlite:///{tmp_path / 'again.db'}"
    restore_backup(tmp_path / "backup", again, tmp_path / "again")
    if target == "postgresql":
        restored: Collector = start_joint(COLLECTION, clock, again)
    else:
        restored = Collector([COLLECTION], open_store(again), clock=clock, keys=KEYS)
    assert [receipt.duplicates for receipt in restored.ingest(frames)] == [700, 700]
    assert restored.counts()[COLLECTION.collection_id, "accepted"] == 1400
    clock.advance(120)
    restored.tick()
    (row,) = restored.releases("exact", "all", first=0, last=1 << 40, most=10)
    assert json.loads(row.payload)["n"] == 1400
    if isinstance(restored, JointCollector):
        gone(restored)
    else:
        restored.store.close()


def test_a_quota_is_shared(url: str):
    first, second = two(url, ManualClock(1000.0))
    first._shared = second._shared = float("-inf")
    first.tick()
    second.tick()
    assert first._admission._quota.rate == second._admission._quota.rate == first.limits.rate / 2
    for each in (first, second):
        gone(each)


def test_sqlite_is_refused(tmp_path: Path):
    (tmp_path / "themes.toml").write_text(THEMES)
    for options in (["--workers", "2"], ["--role", "all"]):
        command = [*HUBBUB, "serve", str(tmp_path / "themes.toml"), *options]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert result.returncode == 2
        assert "PostgreSQL for several processes" in result.stderr
    assert not list(tmp_path.glob("*.db"))


# -- programs ----------------------------------------------------------------------------------------------------


def kill_worker(crew: Crew, pid: int) -> None:
    epoch, leader = crew.leader()
    os.kill(pid, signal.SIGKILL)
    if pid == leader:
        crew.wait_for_leader(epoch)


def part_leader(crew: Crew, fleet: StepFleet) -> float:
    """Stop the leader past its lease, and let it go on when another leads. Returns the seconds without a leader."""
    epoch, pid = crew.leader()
    os.kill(pid, signal.SIGSTOP)
    try:
        seconds = crew.wait_for_leader(epoch)
        fleet.check()
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: pid not in crew.pids())  # it has noticed, and ended
    return seconds


def test_processes_die_and_are_cut_off_and_the_database_restarts(tmp_path: Path, postgres: PostgresServer):
    url = postgres()
    crew = Crew(url, tmp_path)
    fleet = StepFleet(crew)
    try:
        fleet.wait_for_reports()
        kill_worker(crew, crew.leader()[1])
        fleet.wait_for_reports()
        part_leader(crew, fleet)
        fleet.wait_for_reports()
        ready = len(crew.logged("worker ready"))
        postgres.restart()
        wait_for(lambda: len(crew.logged("worker ready")) >= ready + 2)
        fleet.wait_for_reports()
        older = crew.parents[0]
        crew.join()
        crew.leave(older)  # a rolling upgrade: the new ones serve before the old ones end
        fleet.wait_for_reports()
        fleet.stop()
        for parent in list(crew.parents):
            crew.leave(parent)
    except BaseException:
        fleet.stopped.set()
        crew.kill()
        raise
    assert reckon(url, fleet, least=1000) >= 3


def between(crew: Crew, fleet: StepFleet, draw: random.Random) -> None:
    """Let some reports come, for a while that differs."""
    fleet.wait_for_reports(draw.choice((1, 20, 200)))


@pytest.mark.slow
def test_two_hundred_kills_and_twenty_partitions(tmp_path: Path, postgres: PostgresServer):
    kill_often(postgres(), tmp_path, 200)


def kill_often(url: str, folder: Path, kills: int) -> None:
    """Kill processes, every third time the leader, and cut the leader off after every tenth kill."""
    draw = random.Random(1)
    crew = Crew(url, folder)
    fleet = StepFleet(crew)
    leaderless: list[float] = []
    try:
        for number in range(kills):
            between(crew, fleet, draw)
            epoch, leader = crew.leader()
            victim = leader if number % 3 == 0 else draw.choice(crew.pids())
            with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                os.kill(victim, signal.SIGKILL)
            if victim == leader:
                leaderless.append(crew.wait_for_leader(epoch))
            if number % 10 == 9:
                leaderless.append(part_leader(crew, fleet))
            print(number, victim == leader, fleet.total, [round(seconds, 1) for seconds in leaderless[-2:]], flush=True)
            wait_for(lambda: len(crew.pids()) >= 1)
        between(crew, fleet, draw)
        fleet.stop()
        for parent in list(crew.parents):
            crew.leave(parent)
    except BaseException:
        fleet.stopped.set()
        print(*(line for parent in crew.parents for line in parent.log[-60:]), sep="")
        crew.kill()
        raise
    assert reckon(url, fleet, least=25 * kills) >= kills / 4
    assert fleet.retries > kills / 4, "the kills hit nobody"
    leaderless.sort()
    print(f"without a leader: median {leaderless[len(leaderless) // 2]:.2f} s, most {leaderless[-1]:.2f} s")
    assert leaderless[len(leaderless) // 2] < 10
