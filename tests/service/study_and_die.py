"""Processes that run a study and are killed at every point of it: it ends with the numbers of a simulation.

    python study_and_die.py FOLDER STRIDE [STORE ...]

A child process is forked for every point, a statement of a transaction or a file of reports, and kills itself there
with SIGKILL; the next one goes on from what is left. Prints how many points there were.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hubbub import Random
from hubbub.collection import ManualClock
from hubbub.service.collector.collector import Collector
from hubbub.service.kept.archive import Archive
from hubbub.service.rounds.releases import same_release
from hubbub.service.store import open_store
from tests.service.keep_and_die import Fuse
from tests.service.study_world import KEYS, LATENESS, ROUND, START, Crowd, simulated, stored_as, study_collection

STUDY, CROWD = study_collection(), Crowd(300)
(RELEASE,) = simulated(STUDY, CROWD)


def live(url: str, folder: Path, fuse: Fuse | None) -> None:
    """All rounds of the study, from wherever an earlier life ended."""
    store = open_store(url)
    if fuse is not None:
        fuse.arm()
    place = folder / "clock"
    clock = ManualClock(float(place.read_text()) if place.exists() else float(START))
    collector = Collector([STUDY], store, clock=clock, keys=KEYS, rng=Random(seed=1), archive=Archive(folder / "r"))
    while clock.now() < START + 3 * ROUND + LATENESS:
        CROWD.send_all(collector)
        clock.advance(ROUND + (LATENESS if clock.now() == START else 0))
        place.write_text(str(clock.now()))
        collector.tick()
    (row,) = store.releases(STUDY.collection_id, "common", 0, 99, 99)
    assert same_release(row, stored_as(STUDY, RELEASE)), "other numbers"
    assert store.running_studies(STUDY.collection_id) == []
    store.close()


def forked(url: str, folder: Path, fuse: Fuse | None) -> int:
    child = os.fork()
    if not child:
        try:
            live(url, folder, fuse)
            os._exit(0)
        except BaseException as error:
            print(f"{folder.name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    return os.waitpid(child, 0)[1]


def main() -> None:
    folder, stride, urls = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    killed = 0
    for number in range(len(urls) or 10_000):
        here = folder / str(number * stride)
        here.mkdir()
        own = urls[number] if urls else f"sqlite:///{here / 'store.db'}"
        status = forked(own, here, Fuse(number * stride))
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, here
        assert forked(own, here, None) == 0, here
        if not os.WIFSIGNALED(status):
            break
        killed += 1
    print(killed)


if __name__ == "__main__":
    main()
