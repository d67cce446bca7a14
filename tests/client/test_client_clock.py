"""Clocks that jump: nothing is spent twice, nothing is sent too late, and nothing waits for ten years."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.collection import ManualClock
from hubbub.core.event import UNITS_PER_EPSILON
from tests.client.device import HOUR, begin, device
from tests.client.local_server import LocalServer, survey
from tests.shared.small_collections import THEME, collection_text

YEARS = 10 * 365 * 24  # steps
WINDOW = collection_text(
    privacy={"event": 1.0, "window": {"epsilon": 4.0, "steps": 8}, "minimum_batch": 20},
    fields={"theme": THEME},
    questions={"popular": {"kind": "histogram", "field": "theme", "epsilon": 0.5}},
)


class Device:
    """Two clocks over one true time: a wall clock that can be set, and one since boot."""

    def __init__(self, folder: Path, server: LocalServer) -> None:
        self.wall = ManualClock(server.collection.opens(YEARS * 2))
        self.boot = 0.0
        self.server = server
        self.client = device(folder, server, self.wall, monotonic=lambda: self.boot)

    def pass_time(self, seconds: float) -> None:
        self.wall.advance(seconds)
        self.boot += seconds

    def set_back_or_on(self, steps: int) -> None:
        self.wall.set(self.wall.now() + steps * HOUR)

    def day(self) -> int:
        """Tick, as the server sees the device's own time; how many reports were made."""
        self.server.begin(self.server.collection.step_at(self.wall.now()))
        reports = self.client.tick()
        self.client.upload()
        return reports


@pytest.mark.parametrize("jumps", [(YEARS, -YEARS), (-YEARS, YEARS), (YEARS, YEARS), (1, -1), (8, -8)], ids=str)
def test_ten_years_forth_and_back_buy_no_second_window(folder: Path, jumps: tuple[int, int]) -> None:
    server = LocalServer(survey(WINDOW))
    device = Device(folder, server)
    for _ in range(8):
        device.day()
        device.pass_time(HOUR)
    for jump in (*jumps, *jumps):
        device.set_back_or_on(jump)
        for _ in range(4):
            device.day()
            device.set_back_or_on(1)  # steps go by on the wall clock, and hardly any true time
            device.pass_time(1)
    # A window of true time, eight hours, and what was already spent: no more than two windows' worth in all.
    status = device.client.status()
    assert status.spent <= 8 * UNITS_PER_EPSILON
    assert status.window is not None
    assert status.window.spent <= 4 * UNITS_PER_EPSILON
    device.client.close()


@pytest.mark.parametrize("jump", [YEARS, -YEARS], ids=["forth", "back"])
def test_after_a_jump_the_client_goes_on(folder: Path, jump: int) -> None:
    server = LocalServer(survey(WINDOW.replace("event = 1.0\n", "event = 1.0\nuser = 400.0\n")))
    device = Device(folder, server)
    assert device.day() == 1
    server.faults = ["unreachable"] * 40
    for _ in range(60):
        device.day()
        device.pass_time(30)
    server.faults = []
    device.set_back_or_on(jump)
    for _ in range(12):  # no delay of before the jump is waited for
        device.pass_time(HOUR)
        device.day()
    sent = device.client.status().counts.get("sent", 0)
    if jump > 0:
        assert sent >= 8
    else:
        assert sent == 1  # the steps before the latest that was answered are not answered again
        assert device.client.status().counts["refused: step"] >= 8
    device.client.close()


def test_what_waits_is_dropped_when_the_clock_leaves_its_time(folder: Path) -> None:
    server = LocalServer(survey(WINDOW))
    device = Device(folder, server)
    server.begin(server.collection.step_at(device.wall.now()))
    assert device.client.tick() == 1
    device.set_back_or_on(YEARS)
    assert device.client.upload() == 0
    status = device.client.status()
    assert (status.queued, status.counts) == (0, {"late": 1})
    assert status.spent == UNITS_PER_EPSILON // 2
    device.client.close()


def test_before_the_origin_nothing_is_answered(folder: Path) -> None:
    server = LocalServer(survey(WINDOW.replace('lateness = "10m"', 'lateness = "10m"\norigin = 1000000')))
    clock = ManualClock(500.0)
    begin(server, ManualClock(), 0)
    with device(folder, server, clock) as client:
        assert client.tick() == 0
        client.record("theme", "dark")
        assert client.upload() == 0
        clock.set(server.collection.opens(0) + 5)
        assert client.tick() == 1
