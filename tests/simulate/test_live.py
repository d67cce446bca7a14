"""The live demonstration: real processes, real HTTP, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from hubbub import Random
from hubbub.core.errors import InvalidValue
from hubbub.core.event import Event
from hubbub.privacy.ledger import Budget, BudgetExceeded, Ledger, StepClock
from hubbub.simulate.live import Live, Stopped, live_collection
from hubbub.simulate.live_devices import People, Purses

pytest.importorskip("uvicorn")

COMMAND = [sys.executable, "-W", "error", "-c", "from hubbub.cli import main; main()", "live"]
HANGS = 90.0  # seconds after which a test gives up, not a measure of anything


def test_a_headless_run() -> None:
    options = ["--headless", "--json", "--devices", "300", "--workers", "2", "--step", "3s", "--seconds", "15"]
    done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, timeout=HANGS, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["steps"] >= 1
    assert found["accepted"] > 300
    # Devices that a busy machine holds up may come late; nothing else can be wrong with what they send.
    assert set(found["outcomes"]) <= {"accepted", "late"}
    popular = found["popular"]
    assert popular["values"] == 38
    # 38 nearly independent intervals of 95%: fewer than 27 hold the truth with probability 2e-7.
    assert popular["covered"] >= 27
    assert popular["covered"] == _covered(popular["estimates"], 1.0)
    # Intervals a fifth as long would hold it 30% of the time, and are seen to.
    assert _covered(popular["estimates"], 0.2) < 27


def _covered(rows: list[dict[str, float]], scale: float) -> int:
    return sum(abs(row["truth"] - row["estimate"]) <= scale * (row["high"] - row["low"]) / 2 for row in rows)


@pytest.fixture
def started() -> Iterator[Callable[[], tuple[subprocess.Popen[str], list[int]]]]:
    """Start the command as a terminal would; the process, and those that it has started."""
    running: list[subprocess.Popen[str]] = []

    def start() -> tuple[subprocess.Popen[str], list[int]]:
        process = subprocess.Popen(
            [*COMMAND, "--devices", "100", "--workers", "2", "--step", "2s"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        running.append(process)
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("Ctrl-C"):
                break
        children = _children(process.pid)
        assert len(children) == 3, children
        return process, children

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _children(parent: int) -> list[int]:
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    return [pid for pid, its_parent in pairs if its_parent == parent and _is_alive(pid)]


def _is_alive(pid: int) -> bool:
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(listed.strip()) and "Z" not in listed  # one that nobody has waited for has ended all the same


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_stops_everything(
    started: Callable[[], tuple[subprocess.Popen[str], list[int]]], number: signal.Signals
) -> None:
    process, children = started()
    os.killpg(process.pid, number)  # to the whole group, as a terminal does
    out, err = process.communicate(timeout=HANGS)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert "reports accepted" in out
    assert not any(map(_is_alive, children))


def test_nothing_outlives_a_run_that_is_killed(
    started: Callable[[], tuple[subprocess.Popen[str], list[int]]],
) -> None:
    process, children = started()
    process.kill()
    process.wait(HANGS)
    end = time.monotonic() + HANGS
    while any(map(_is_alive, children)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(map(_is_alive, children))


def test_a_folder_keeps_what_was_collected_and_the_token_is_needed(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    with Live(devices=100, step_seconds=2, workers=1, folder=folder) as live:
        assert live.look().rejected == 0
        (folder / "keys" / "admin.token").write_text("not the token that it was\n")
        with pytest.raises(Exception, match="status 401"):
            live.look()
    assert (folder / "hubbub.db").stat().st_size > 0


def test_a_collector_that_cannot_start_says_why() -> None:
    from hubbub.service.server import bind

    with bind("127.0.0.1", 0) as taken, pytest.raises(Stopped, match=r"collector ended with 1: .*in use"):
        Live(devices=100, port=taken.getsockname()[1]).__enter__()


def test_a_process_that_ends_is_noticed() -> None:
    with Live(devices=100, step_seconds=2, workers=1) as live:
        os.kill(live.processes[1], signal.SIGKILL)
        while _is_alive(live.processes[1]):
            time.sleep(0.05)
        with pytest.raises(Stopped, match="devices ended with -9"):
            live.check()


@pytest.mark.parametrize("given", [{"devices": 49}, {"devices": 10**7}, {"workers": 0}, {"step_seconds": 0}])
def test_what_is_refused(given: dict[str, int]) -> None:
    with pytest.raises(InvalidValue):
        Live(**given)  # type: ignore[arg-type]


def test_every_step_length_can_be_served() -> None:
    for step in (1, 2, 3, 5, 60):
        collection = live_collection(step)
        half = collection.closes(0, question="trend", phase=1) - collection.opens(0)
        assert collection.lateness_seconds < half


def test_purses_pay_as_ledgers_do() -> None:
    budget = Budget.of(event=1.0, window=(2.0, 3), user=9.0)
    rng, n = Random(seed=1), 4
    clock = StepClock()
    ledgers = [Ledger(":memory:", budget, clock=clock) for _ in range(n)]
    purses = Purses(n, budget)
    step = 0
    for number in range(120):
        step += int(rng.below(3, 1)[0])
        clock.step = step
        units = (int(rng.below(5, 1)[0]) + 1) * 2 * 10**11
        who = rng.below(2, n).astype(bool)
        paid = []
        for ledger, asked in zip(ledgers, who, strict=True):
            try:
                if asked:
                    ledger.answer(f"ask {number}", step, Event("GRR", "0" * 32, units, step), lambda: b"")
                paid.append(bool(asked))
            except BudgetExceeded:
                paid.append(False)
        assert purses.pay(step, units, who).tolist() == paid, number
    for ledger in ledgers:
        assert ledger.status().lifetime > 8 * 10**12
        ledger.close()


def test_people_are_the_same_for_whoever_asks_and_differ_by_step() -> None:
    people = People([3.0, 2.0, 1.0], party=2, n=5000, seed=1, group=0)
    assert np.array_equal(people.values(7), people.values(7))
    assert not np.array_equal(people.values(7), people.values(8))
    assert not np.array_equal(people.values(7), people._replace(group=1).values(7))
    # At the height of the wave the third has (1 + 1.2) / 7.2 of 94%: 29%; at its foot 16%. Deviations are below 0.7%.
    height, foot = (np.mean(people.values(step) == 2) for step in (20, 40))
    assert 0.25 < height < 0.33
    assert 0.12 < foot < 0.20
