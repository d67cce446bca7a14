"""kill -9 of a real collector under load: no acknowledged report is lost, none is counted twice.

Before each kill a third party touches the file, or another collector takes the store over: whoever opens and closes a
database that someone else has open must not be able to take anything away.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.service.fleet import Fleet, ask_of, stored
from tests.service.process import Process, exact_process
from tests.third_parties import TOUCHES

TAKEOVER = "takeover"
BACKUP = "hubbub backup"
PARTIES = [*TOUCHES, BACKUP, TAKEOVER]


def kill_often(
    store: str, folder: Path, times: int, parties: Sequence[str] = (), plant: str = "", *, at_once: int = 1
) -> None:
    """Kill it, again and again; before each, one of the parties in turn touches the store, or several in a row."""
    draw = random.Random(times)
    fleet = Fleet()
    process = exact_process(store, folder, plant)
    fleet.port, fleet.ask = process.port, ask_of(process)
    fleet.start()
    try:
        for number in range(times):
            time.sleep(draw.uniform(0.02, 0.4))
            for place in range(number * at_once, (number + 1) * at_once if parties else 0):
                process = touched(parties[place % len(parties)], process, fleet, store, folder, plant)
                fleet.wait_for_reports(process)  # what is acknowledged after it is what was lost
                time.sleep(draw.uniform(0.1, 0.4))
            assert process.process.poll() is None, process.log
            process.kill()
            process = exact_process(store, folder, plant)
            fleet.port = process.port
        time.sleep(0.5)
    except BaseException:
        fleet.given_up.set()
        process.kill()
        raise
    finally:
        fleet.stop()
    assert process.stop() == 0
    sketch = stored(store)
    assert fleet.retries > times / 4, "the kills hit nobody"
    assert fleet.acknowledged.sum() > 50 * times
    assert sketch.counts.tolist() == fleet.acknowledged.tolist(), "lost, or counted twice"
    assert sketch.n == fleet.acknowledged.sum()


def touched(party: str, process: Process, fleet: Fleet, store: str, folder: Path, plant: str) -> Process:
    """Let a third party at the store; the process that serves it then."""
    if party == BACKUP:
        shutil.rmtree(folder / "backup", ignore_errors=True)
        command = [sys.executable, "-c", "from hubbub.cli import main; main()", "backup", str(folder / "backup")]
        subprocess.run([*command, "--store", store], check=True, capture_output=True, timeout=120)
        return process
    if party != TAKEOVER:
        TOUCHES[party](Path(store.removeprefix("sqlite:///")), folder)
        return process
    newer = exact_process(store, folder, plant)
    time.sleep(0.05)  # the older is still sent to, and may count nothing more
    fleet.port = newer.port
    process.kill()
    return newer


def sqlite_in(folder: Path) -> str:
    return f"sqlite:///{folder / 'store.db'}"


def test_third_parties_touch_the_file_before_kills(tmp_path: Path):
    """Four parties before either of two kills; in `make test-slow`, each before kills of its own."""
    assert len(PARTIES) == 8
    kill_often(sqlite_in(tmp_path), tmp_path, 2, PARTIES, at_once=4)


def test_two_takeovers_and_kills_with_postgresql(tmp_path: Path, postgres: Callable[[], str]):
    kill_often(postgres(), tmp_path, 2, [TAKEOVER])


def test_a_planted_close_is_found_in_two_kills(tmp_path: Path):
    """A process that opens and closes its own database's file loses all its locks on it."""
    with pytest.raises(AssertionError, match=r"lost, or counted twice|malformed"):
        kill_often(sqlite_in(tmp_path), tmp_path, 2, ["read"], plant="close")


@pytest.mark.slow
# A copy tool takes no locks, and a collector that takes over does not close the file while the older lives.
@pytest.mark.parametrize("party", [party for party in PARTIES if party not in ("copy", TAKEOVER)])
def test_a_planted_close_is_found_in_under_five_kills(tmp_path: Path, party: str):
    with pytest.raises(AssertionError, match=r"lost, or counted twice|malformed"):
        kill_often(sqlite_in(tmp_path), tmp_path, 4, [party], plant="close")


@pytest.mark.slow
def test_two_hundred_kills_with_sqlite(tmp_path: Path):
    kill_often(sqlite_in(tmp_path), tmp_path, 200)


@pytest.mark.slow
def test_two_hundred_kills_with_postgresql(tmp_path: Path, postgres: Callable[[], str]):
    kill_often(postgres(), tmp_path, 200)


@pytest.mark.slow
def test_third_parties_touch_the_file_before_two_hundred_kills(tmp_path: Path):
    kill_often(sqlite_in(tmp_path), tmp_path, 200, PARTIES)


@pytest.mark.slow
def test_two_hundred_takeovers_with_postgresql(tmp_path: Path, postgres: Callable[[], str]):
    kill_often(postgres(), tmp_path, 200, [TAKEOVER])


@pytest.mark.slow
def test_two_hundred_takeovers_with_sqlite(tmp_path: Path):
    kill_often(sqlite_in(tmp_path), tmp_path, 200, [TAKEOVER])
