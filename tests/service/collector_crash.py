"""Collectors that are killed at every point of their work: a statement of a transaction, or the name of a file.

    python collector_crash.py alarm|keep|study FOLDER STRIDE [STORE ...]

In a file of SQLite for every STRIDE-th point, or for one point in each of the stores given. A child process is forked
for every point and kills itself there with SIGKILL; the next one goes on from what is left, and says what is wrong.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from hubbub import Random
from hubbub.collection import ManualClock
from hubbub.mechanisms import MECHANISMS
from hubbub.service.kept.archive import Archive, kept_reports
from hubbub.service.rounds.releases import same_release
from hubbub.service.store import open_store
from hubbub.service.store.sql import Store
from tests.service.alarm_world import FIRST, HEAD, SHARES, AlarmWorld, statuses
from tests.service.exact_world import Exact, batch_frame, exact_collection
from tests.service.study_world import LATENESS, ROUND, START, WordCrowd, study_collection
from tests.shared.in_process import as_row, open_now, start_collector, stored_releases
from tests.shared.killed_processes import CrashResult, fork, main

DAY = 86400
STEPS = 3
KEEPING = replace(exact_collection(step=3600, lateness=60, keep=True), retention_days=1)
ALARM = HEAD + SHARES + '[alarms.late]\nquestion = "all"\nweights = { late = 1 }\nabove = 0.3\n'
LATE = (0.1, 0.7, 0.7, 0.1)
STUDY = study_collection()
Life = Callable[[Store, Path], None]


class Fuse:
    """Kills the process at a point."""

    def __init__(self, points: int) -> None:
        self.left = points

    def arm(self) -> None:
        for owner, name in ((os, "replace"), (os, "fsync"), (pq, "write_table"), (Path, "unlink")):
            setattr(owner, name, self._wrapped(getattr(owner, name)))
        for kind in (Store, *Store.__subclasses__()):
            for name in ("_write", "_changed"):
                if name in vars(kind) and not getattr(vars(kind)[name], "__isabstractmethod__", False):
                    setattr(kind, name, self._wrapped(getattr(kind, name)))

    def _wrapped(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **keywords: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return act(*arguments, **keywords)

        return wrapped


class Noted:
    """A number that outlives its process."""

    def __init__(self, folder: Path, first: float) -> None:
        self.path = folder / "noted"
        self.number = float(self.path.read_text()) if self.path.exists() else first

    def set(self, number: float) -> None:
        self.path.write_text(str(number))


def keep(store: Store, folder: Path) -> None:
    """Three steps of ten reports each, of which single reports are kept; then all of it expires."""
    noted, archive = Noted(folder, 100.0 * DAY + 200), Archive(folder / "r")
    clock = ManualClock(noted.number)
    collector = start_collector(KEEPING, clock, store, archive=archive)
    while clock.now() < 100 * DAY + 3600 * STEPS + 200:
        for open_ask in open_now(collector):
            values = list(range(10))
            ids = [Random(seed=1000 * open_ask.ask.step + value).bytes(16) for value in values]
            for half in (slice(5), slice(5, 10)):
                collector.ingest([batch_frame(KEEPING, open_ask.ask, ids[half], values[half])])
        clock.advance(3600)
        noted.set(clock.now())
        collector.tick()
    if not (folder / "checked").exists():
        counts: Counter[tuple[int, int]] = Counter()
        for step, reports in kept_reports(store, archive, KEEPING.collection_id, "all", first=0, last=1 << 40):
            counts.update((step, int(value)) for value in reports.private["value"])
        assert set(counts) == {(2400 + step, value) for step in range(STEPS) for value in range(10)}, "lost"
        assert set(counts.values()) == {1}, "twice"
        (folder / "checked").touch()
    clock.advance(DAY + 3600 * (STEPS + 1))
    collector.tick()
    left = sorted(path.name for path in archive.folder.iterdir())
    assert left == sorted(store.archive_names()) == [], left


def study(store: Store, folder: Path) -> None:
    """All rounds of a study, which ends with the numbers of a simulation."""
    noted, crowd = Noted(folder, START), WordCrowd(300)
    clock = ManualClock(noted.number)
    collector = start_collector(STUDY, clock, store, archive=Archive(folder / "r"))
    while clock.now() < START + 3 * ROUND + LATENESS:
        crowd.send_all(collector)
        clock.advance(ROUND + (LATENESS if clock.now() == START else 0))
        noted.set(clock.now())
        collector.tick()
    (row,), (release,) = stored_releases(store, STUDY, "common"), crowd.simulated(STUDY, "common")
    assert same_release(row, as_row(STUDY, "common", release)), "other numbers"
    assert store.running_studies(STUDY.collection_id) == []


def alarm(store: Store, folder: Path) -> None:
    """Steps in which an alarm is raised and cleared: each event is there once."""
    noted = Noted(folder, 0)
    done = int(noted.number)
    world = AlarmWorld(ALARM, store, first=FIRST + done)
    for number, late in enumerate(LATE):
        if number >= done:
            world.step(FIRST + number, statuses(late, 500))
            noted.set(number)
    world.end(FIRST + len(LATE) - 1)
    world.end(FIRST + len(LATE))
    summary = [(event.number, event.state, event.step) for event in world.events()]
    assert summary == [(1, "raised", FIRST + 1), (2, "cleared", FIRST + 3)], summary
    (status,) = world.collector.alarms.status("planes")
    assert (status.state, status.step) == ("quiet", FIRST + len(LATE) - 1), status


def exit_code(life: Life, url: str, folder: Path, fuse: Fuse | None) -> int:
    """Live in a child process, from wherever an earlier life ended; how it ended."""

    def live() -> None:
        store = open_store(url)
        if fuse is not None:
            fuse.arm()
        life(store, folder)
        store.close()

    return os.waitstatus_to_exitcode(os.waitpid(fork(live), 0)[1])


def kill_at_points(life: Life, folder: Path, stride: int, *urls: str) -> CrashResult:
    """Kill a life at one point after the other, until one of them is lived to its end."""
    deaths, wrong = 0, []
    for number in range(len(urls) or 10_000):
        here = folder / str(number)
        here.mkdir()
        url = urls[number] if urls else f"sqlite:///{here / 'store.db'}"
        first, second = exit_code(life, url, here, Fuse(number * stride)), exit_code(life, url, here, None)
        if first not in (0, -signal.SIGKILL) or second != 0:
            wrong.append(f"point {number * stride}: {first}, {second}")
        if first != -signal.SIGKILL:
            break
        deaths += 1
    return deaths, wrong


if __name__ == "__main__":
    MECHANISMS["Exact"] = Exact
    main({life.__name__: partial(kill_at_points, life) for life in (alarm, keep, study)})
