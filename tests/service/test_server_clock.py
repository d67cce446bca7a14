"""A real collector whose clock is moved while it runs, restarts, or is killed: devices that know the time are heard."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hubbub import Random
from hubbub.collection.names import AnswerName
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from tests.served import wait_for
from tests.service.exact_world import EXACT, exact_collection
from tests.service.process import HERE, Process

COLLECTION = exact_collection(step=2, lateness=1)
DAY = 86400.0
SURE = {"ready": True, "not_ready": {}, "clock": {"state": "sure"}}
LATER = [(2, False), (-2, True), (3 * 365, False), (3 * 365, True)]


class Clocked:
    """The process, its clock, and a device whose own clock is right."""

    def __init__(self, folder: Path, hold: float) -> None:
        self.folder, self.hold = folder, hold
        self.offset = folder / "offset"
        self.move(0.0)
        self.start()

    def move(self, seconds: float) -> None:
        made = self.offset.with_suffix(".new")
        made.write_text(str(seconds))
        os.replace(made, self.offset)

    def start(self) -> None:
        store = f"sqlite:///{self.folder / 'store.db'}"
        command = [str(HERE / "serve_clock.py"), store, str(self.folder / "keys"), str(self.offset), str(self.hold)]
        self.process = Process(command, self.folder)

    def get(self, path: str) -> str:
        connection = self.process.connect()
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def ready(self) -> Any:
        return json.loads(self.get("/readyz"))

    def page(self) -> str:
        return self.get("/privacy/exact")

    def hear(self) -> bool:
        """Whether a report to the ask of the true step is counted. A busy collector asks for it again later."""
        answer = self.get("/v1/collections/exact/asks")
        document = json.loads(json.loads(answer)["payload"])
        step = COLLECTION.step_at(time.time())
        asked = next((item["ask"] for item in document["asks"] if item["ask"]["step"] == step), None)
        if asked is None:
            return False
        name = AnswerName("all", 0, step, 1, 0)
        frame = encode_batch(COLLECTION.name, 1, name, Random().bytes(16), EXACT.randomize([7], Random()))
        connection = self.process.connect()
        try:
            connection.request("POST", "/v1/reports", frame, {"Content-Type": BATCH_TYPE})
            return bool(json.loads(connection.getresponse().read()).get("accepted") == 1)
        finally:
            connection.close()

    def events(self) -> list[str]:
        return [json.loads(line)["event"] for line in list(self.process.log)]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[[float], Clocked]]:
    running: list[Clocked] = []

    def make(hold: float) -> Clocked:
        running.append(Clocked(tmp_path, hold))
        return running[-1]

    yield make
    for clocked in running:
        if clocked.process.process.poll() is None:
            assert clocked.process.stop() == 0


@pytest.mark.parametrize("days", [40, -40])
def test_a_jump_in_doubt_is_said_everywhere_and_collection_goes_on(made: Callable[[float], Clocked], days: int):
    clocked = made(300.0)
    wait_for(clocked.hear)
    wait_for(lambda: clocked.ready() == SURE)
    clocked.move(days * DAY)
    clock = wait_for(lambda: (told := clocked.ready()["clock"])["state"] == "in doubt" and told)
    assert clock["ahead_seconds"] == pytest.approx(days * DAY, abs=60)
    assert 0 < clock["seconds_left"] <= 300
    for _ in range(2):
        wait_for(clocked.hear)
    assert "The clock is in doubt" in clocked.page()
    assert clocked.process.kill() != 0
    clocked.start()  # in doubt still: the boot is the same
    assert clocked.ready()["clock"]["state"] == "in doubt"
    wait_for(clocked.hear)
    clocked.move(0.0)
    wait_for(lambda: clocked.ready()["clock"]["state"] == "sure")
    wait_for(clocked.hear)
    wait_for(lambda: {"clock in doubt", "clock sure"} <= set(clocked.events()))
    assert "The clock is in doubt" not in clocked.page()


@pytest.mark.parametrize(
    ("days", "killed"),
    [(2, True), (-2, False), *(pytest.param(*given, marks=pytest.mark.slow) for given in LATER)],
)
def test_a_jump_that_was_accepted_is_undone(made: Callable[[float], Clocked], days: int, killed: bool):
    clocked = made(1.5)
    wait_for(clocked.hear)
    clocked.move(days * DAY)
    wait_for(lambda: clocked.ready()["clock"]["state"] == "moved")
    assert "The clock has moved" in clocked.page()
    accepted = wait_for(
        lambda: next((json.loads(line) for line in list(clocked.process.log) if "clock accepted" in line), None)
    )
    assert accepted["going_by"] != accepted["instead_of"]
    time.sleep(1.0)  # some rounds in the wrong time
    if killed:
        clocked.process.kill()
    clocked.move(0.0)
    if killed:
        clocked.start()
    wait_for(clocked.hear)
    wait_for(lambda: clocked.ready() == SURE)
    wait_for(lambda: "clock returned" in clocked.events())
