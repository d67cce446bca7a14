"""kill -9 of a real collector under load: no acknowledged report is lost, none is counted twice.

Before each kill a third party touches the file, or another collector takes the store over: whoever opens and closes a
database that someone else has open must not be able to take anything away.
"""

import http.client
import json
import random
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from hubbub import Random, Reports
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from hubbub.wire.upload import UPLOAD_TYPE, Entry, encode_upload
from tests.served import ServedProcess, requested
from tests.service.exact_world import EXACT, SIZE
from tests.service.process import COLLECTION, HUBBUB, ask_at, exact_process, stored
from tests.third_parties import TOUCHES

SENDERS, LARGEST = 4, 500


class Fleet:
    """Senders that try until they are answered. Reports have unique ids; a value is a cell that many share, so that
    all acknowledged reports of a cell must add up."""

    def __init__(self, port: int) -> None:
        self.port, self.ask = port, ask_at(port)
        self.stopped, self.given_up = threading.Event(), threading.Event()
        self.acknowledged = np.zeros(SIZE, dtype=np.int64)
        self.retries = 0
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(SENDERS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self.stopped.set()
        for thread in self._threads:
            thread.join()

    def wait_for_reports(self, process: ServedProcess, count: int = 500, seconds: float = 60.0) -> None:
        """Wait until `count` more reports are acknowledged, the process ends, or the time is over."""
        wanted, end = self.acknowledged.sum() + count, time.monotonic() + seconds
        while self.acknowledged.sum() < wanted and process.process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)

    def _send(self, number: int) -> None:
        draw = random.Random(number)
        while not self.stopped.is_set():
            count = draw.choice((1, 1, 1, 50, LARGEST))
            values = [draw.randrange(SIZE) for _ in range(count)]
            ids = [draw.randbytes(16) for _ in range(count)]
            kind, frame = self._frame(ids, values)
            while not self._post(kind, frame, count):  # the same bytes until they are acknowledged
                if self.given_up.is_set():
                    return
                with self._lock:
                    self.retries += 1
                time.sleep(0.01)
            with self._lock:
                np.add.at(self.acknowledged, values, 1)

    def _frame(self, ids: list[bytes], values: list[int]) -> tuple[str, bytes]:
        reports: Reports = EXACT.randomize(values, Random(seed=0))
        if len(values) == 1:
            entry = Entry(*self.ask, ids[0], reports.to_bare())
            return UPLOAD_TYPE, encode_upload(COLLECTION.name, 1, [entry], COLLECTION.frame_bytes)
        return BATCH_TYPE, encode_batch(COLLECTION.name, 1, self.ask, b"".join(ids), reports)

    def _post(self, kind: str, frame: bytes, count: int) -> bool:
        try:
            status, body = requested(self.port, "/v1/reports", frame, {"Content-Type": kind}, timeout=10)
        except (OSError, http.client.HTTPException):
            return False
        if status == 503:
            return False
        assert status == 200, body
        document = json.loads(body)
        assert document["rejected"] == []
        assert document["accepted"] + document["duplicates"] == count
        return True


TAKEOVER = "takeover"
BACKUP = "hubbub backup"
PARTIES = [*TOUCHES, BACKUP, TAKEOVER]


def kill_often(
    store: str, folder: Path, times: int, parties: Sequence[str] = (), plant: tuple[str, ...] = (), *, at_once: int = 1
) -> None:
    """Kill it, again and again; before each, one of the parties in turn touches the store, or several in a row."""
    draw = random.Random(times)
    process = exact_process(store, folder, *plant)
    fleet = Fleet(process.port)
    try:
        for number in range(times):
            time.sleep(draw.uniform(0.02, 0.4))
            for place in range(number * at_once, (number + 1) * at_once if parties else 0):
                process = touched(parties[place % len(parties)], process, fleet, store, folder, plant)
                fleet.wait_for_reports(process)  # what is acknowledged after it is what was lost
                time.sleep(draw.uniform(0.1, 0.4))
            assert process.process.poll() is None, process.log
            process.kill()
            process = exact_process(store, folder, *plant)
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


def touched(
    party: str, process: ServedProcess, fleet: Fleet, store: str, folder: Path, plant: Sequence[str]
) -> ServedProcess:
    """Let a third party at the store; the process that serves it then."""
    if party == BACKUP:
        shutil.rmtree(folder / "backup", ignore_errors=True)
        command = [*HUBBUB, "backup", str(folder / "backup"), "--store", store]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        return process
    if party != TAKEOVER:
        TOUCHES[party](Path(store.removeprefix("sqlite:///")), folder)
        return process
    newer = exact_process(store, folder, *plant)
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
        kill_often(sqlite_in(tmp_path), tmp_path, 2, ["read"], plant=("close",))


@pytest.mark.slow
# A copy tool takes no locks, and a collector that takes over does not close the file while the older lives.
@pytest.mark.parametrize("party", [party for party in PARTIES if party not in ("copy", TAKEOVER)])
def test_a_planted_close_is_found_in_under_five_kills(tmp_path: Path, party: str):
    with pytest.raises(AssertionError, match=r"lost, or counted twice|malformed"):
        kill_often(sqlite_in(tmp_path), tmp_path, 4, [party], plant=("close",))


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
