"""Out of reach, and clocks that jump: standing asks are answered, nothing is spent twice or sent too late."""

from pathlib import Path

import pytest

from hubbub.client import Client
from hubbub.core.event import UNITS_PER_EPSILON
from tests.client.device import HOUR, World
from tests.client.real_collector import OpenCollector, RealCollector
from tests.client.test_client_silence import TURNS
from tests.shared.small_collections import THEME, collection_text

TEXT = collection_text(
    schedule={"step": "1h", "lateness": "50m", "retention": "2d"},
    privacy={"event": 2.0, "user": 9.0, "minimum_batch": 20},
    fields={"theme": THEME, "home": {"kind": "ordinal", "size": 4}},
    questions={
        "popular": {"kind": "histogram", "field": "theme", "epsilon": 0.5},
        "place": {"kind": "memo", "field": "home", "epsilon": 0.5, "permanent": 1.0},
    },
)


def answered(here: RealCollector, name: object = "device") -> Client:
    """A device that has answered in the first step."""
    client = here.device(name)
    client.record("theme", "dark")
    client.tick()
    client.upload()
    return client


def test_what_stands_is_answered_queued_and_debited_and_counts_once_it_arrives(collect: OpenCollector) -> None:
    here = collect(TEXT)
    client = answered(here)
    assert client.status().counts == {"sent": 2}
    spent = client.status().spent
    here.wire.cut = True
    for step in (8, 9):
        here.go(step)
        client.record("theme", "light")
        assert client.tick() == 2
        assert client.tick() == 0  # each once
        assert client.upload() == 0
        assert client.status().queued == 2 * (step - 7)
        assert client.status().spent > spent  # the histogram is paid for; the memo costs nothing again
        spent = client.status().spent
    client.close()
    client = here.device()  # what waits survives a restart
    assert client.status().queued == 4
    assert client.tick() == 0
    here.wire.cut = False
    here.clock.advance(600.0)
    here.server.collector.tick()
    sent = [client.upload()]
    here.clock.advance(600.0)
    client.tick()
    sent.append(client.upload())
    assert sum(sent) == 4
    assert client.status().spent == spent
    here.go(10, here.collection.lateness_seconds + 1.0)
    assert here.counts() == {"accepted": 6}
    for name in here.collection.questions:
        withheld = [told["withheld"] for told in here.released(name) if told["step"] in (7, 8, 9)]
        assert withheld == ["1 reports; at least 20 are needed"] * 3


def test_what_comes_too_late_is_dropped_and_stays_paid_for(collect: OpenCollector) -> None:
    here = collect(TEXT)
    client = answered(here)
    here.wire.cut = True
    here.clock.set(here.collection.opens(8) + 600.0)
    assert client.tick() == 2
    spent = client.status().spent
    here.wire.cut = False
    here.go(9, here.collection.lateness_seconds + 1.0)
    assert client.upload() == 0
    assert client.status().counts == {"sent": 2, "late": 2}
    assert client.status().spent == spent


def test_only_within_the_budget_and_for_so_long(collect: OpenCollector) -> None:
    here = collect(TEXT)
    client = answered(here)
    here.wire.cut = True
    reports = {"popular": 0, "place": 0}
    for step in range(8, 7 + 60):
        here.clock.set(here.collection.opens(step) + 600.0)
        before = client.status().spent
        new = client.tick()
        paid = client.status().spent > before
        reports["popular"] += paid
        reports["place"] += new - paid
    # Half of the nine units of a life are for the histogram, at half a unit each; one was answered before.
    assert reports["popular"] == 8
    # A memo costs nothing: it goes on until the ask was heard of two days ago, for which reports are kept.
    assert reports["place"] == 48
    assert client.status().counts["refused: budget"] >= 1


def test_what_does_not_stand_is_not_guessed(collect: OpenCollector) -> None:
    """Whose turn it is in a step that was not heard of, a device cannot know.

    Only a device whose turn it was last time could guess that it is again. Of 60 devices one has its turn, but for once
    in 10^7 times.
    """
    here = collect(TURNS)
    client = answered(here)
    for number in range(60):
        if client.status().counts.get("sent"):
            break
        client = answered(here, number)
    assert client.status().counts["sent"] == 1
    here.wire.cut = True
    for step in range(8, 16):  # two windows: there is budget again
        here.clock.set(here.collection.opens(step) + 600.0)
        assert client.tick() == 0
    assert client.status().queued == 0


def test_a_server_that_is_reached_and_not_believed_is_not_out_of_reach(collect: OpenCollector) -> None:
    here = collect(TEXT)
    client = answered(here)
    here.clock.set(here.collection.opens(8) + 600.0)
    here.server.collector.asks["survey"] = here.server.collector.specs["survey"]  # signed, and no asks
    assert client.tick() == 0
    assert client.status().counts["refused: document"] == 1


YEARS = 10 * 365 * 24  # steps
WINDOW = collection_text(
    privacy={"event": 1.0, "window": {"epsilon": 4.0, "steps": 8}, "minimum_batch": 20},
    fields={"theme": THEME},
    questions={"popular": {"kind": "histogram", "field": "theme", "epsilon": 0.5}},
)


class Device(World):
    """A device with two clocks over one true time: a wall clock that can be set, and one since boot."""

    def __init__(self, folder: Path, **changes: str) -> None:
        super().__init__(folder, WINDOW, **changes)
        self.clock.set(self.collection.opens(YEARS * 2))
        self.boot = 0.0
        self.client = self.device(monotonic=lambda: self.boot)

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.boot += seconds

    def set_back_or_on(self, steps: int) -> None:
        self.clock.set(self.clock.now() + steps * HOUR)

    def tick(self) -> int:
        """Tick, as the server sees the device's own time; how many reports were made."""
        self.server.begin(self.collection.step_at(self.clock.now()))
        return self.client.tick()

    def day(self) -> int:
        reports = self.tick()
        self.client.upload()
        return reports


@pytest.mark.parametrize("jumps", [(YEARS, -YEARS), (-YEARS, YEARS), (YEARS, YEARS), (1, -1), (8, -8)], ids=str)
def test_ten_years_forth_and_back_buy_no_second_window(folder: Path, jumps: tuple[int, int]) -> None:
    device = Device(folder)
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
    device = Device(folder, event="1.0\nuser = 400.0")
    assert device.day() == 1
    device.server.faults = ["unreachable"] * 40
    for _ in range(60):
        device.day()
        device.pass_time(30)
    device.server.faults = []
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
    device = Device(folder)
    assert device.tick() == 1
    device.set_back_or_on(YEARS)
    assert device.client.upload() == 0
    status = device.client.status()
    assert (status.queued, status.counts) == (0, {"late": 1})
    assert status.spent == UNITS_PER_EPSILON // 2
    device.client.close()


def test_before_the_origin_nothing_is_answered(folder: Path) -> None:
    here = World(folder, WINDOW, lateness='"10m"\norigin = 1000000')
    here.server.begin(0)
    here.clock.set(500.0)
    with here.device() as client:
        assert client.tick() == 0
        client.record("theme", "dark")
        assert client.upload() == 0
        here.clock.set(here.collection.opens(0) + 5)
        assert client.tick() == 1
