"""Processes that raise and clear an alarm and are killed at every point of it: each event is there once.

    python alarm_and_die.py FOLDER STRIDE

A child process is forked for every statement of a transaction, and kills itself there with SIGKILL; the next one goes
on from what is left. Prints how many points there were.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import hubbub.service.store.sqlite  # noqa: F401 - before its methods are armed
from tests.service.alarm_world import FIRST, HEAD, HOUR, SHARES, AlarmWorld, statuses
from tests.service.keep_and_die import Fuse

TEXT = HEAD + SHARES + '[alarms.late]\nquestion = "all"\nweights = { late = 1 }\nabove = 0.3\n'
LATE = (0.1, 0.7, 0.7, 0.1)
EVENTS = [(1, "raised", FIRST + 1), (2, "cleared", FIRST + 3)]


def live(folder: Path, fuse: Fuse | None) -> None:
    """All steps, from wherever an earlier life ended."""
    if fuse is not None:
        fuse.arm()
    place = folder / "moment"
    done = int(place.read_text()) if place.exists() else 0
    world = AlarmWorld(TEXT, folder / "store.db", first=FIRST + done)
    for number, late in enumerate(LATE):
        if number >= done:
            world.step(FIRST + number, statuses(late, 500))
            place.write_text(str(number))
    world.end(FIRST + len(LATE) - 1)
    world.clock.set((FIRST + len(LATE) + 1.5) * HOUR)
    world.collector.tick()
    summary = [(event.number, event.state, event.step) for event in world.events()]
    assert summary == EVENTS, summary
    (status,) = world.collector.alarms.status("planes")
    assert (status.state, status.step) == ("quiet", FIRST + len(LATE) - 1), status


def forked(folder: Path, fuse: Fuse | None) -> int:
    child = os.fork()
    if not child:
        try:
            live(folder, fuse)
            os._exit(0)
        except BaseException as error:
            print(f"{folder.name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
    return os.waitpid(child, 0)[1]


def main() -> None:
    folder, stride = Path(sys.argv[1]), int(sys.argv[2])
    killed = 0
    for number in range(10_000):
        here = folder / str(number)
        here.mkdir()
        status = forked(here, Fuse(number * stride))
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, here
        assert forked(here, None) == 0, here
        if not os.WIFSIGNALED(status):
            break
        killed += 1
    print(killed)


if __name__ == "__main__":
    main()
