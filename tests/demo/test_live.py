"""The live demonstration: real processes, real HTTP, and nothing left behind."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub import Random
from hubbub.collection import Keys, ManualClock
from hubbub.core.errors import InvalidValue
from hubbub.demo.alarm_receiver import AlarmReceiver
from hubbub.demo.live import Live
from hubbub.demo.people import Owners, People
from hubbub.demo.programs import ProgramStopped
from hubbub.demo.scenes import AWAY, HOURS, PUNCTUAL, aircraft_scene, flights_scene, scenes
from hubbub.service.alarms import AlarmEvent
from hubbub.service.collector.collector import Collector
from hubbub.service.http.server import bind
from hubbub.service.store.sqlite import SqliteStore
from hubbub.service.webhooks.config import Webhook, read_secrets
from hubbub.service.webhooks.sender import NotDelivered, deliver
from hubbub.simulate.fleet import Fleet
from hubbub.simulate.ledgers import Ledgers
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from tests.cli.commands import ENTRY, HANGS, PROGRAM, Hubbub
from tests.served import wait_for

pytest.importorskip("uvicorn")

COMMAND = [*PROGRAM, ENTRY, "demo"]
SMALL = ["--devices", "1000", "--workers", "1", "--step", "3s"]
OUTCOMES = {"accepted", "late", "duplicate"}
"""Devices that a busy machine holds up may come late, or send again what was counted; nothing else can be wrong."""


def headless(*options: object) -> Any:
    """What a run without a terminal answers."""
    done = Hubbub(Path()).process("demo", "--headless", "--json", *options)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_a_headless_run() -> None:
    found = headless(*SMALL, "--seconds", 9)
    assert found["processes"] == 6
    assert found["accepted"] > 1000
    assert set(found["outcomes"]) <= OUTCOMES
    emoji, flights, aircraft = found["emoji"], found["flights"], found["aircraft"]
    assert emoji["steps"] >= 1
    assert len(emoji["estimates"]) == 15
    # 15 nearly independent intervals of 95%: fewer than 8 hold the truth with probability 2e-7.
    assert emoji["covered"] >= 8
    assert emoji["covered"] == _covered(emoji["estimates"], 1.0)
    # Intervals a tenth as long would hold it 16% of the time: eight or more of them in one run of 1,000, and not here.
    assert _covered(emoji["estimates"], 0.1) < 8
    assert "73.2% sure" in emoji["promise"]
    assert flights["steps"] >= 1
    assert "February 2013" in flights["when"]  # a busy machine gets further into the days before a result
    assert [row["value"] for row in flights["estimates"]] == [*PUNCTUAL, "(none)"]
    assert "At most one report in any 18 seconds" in flights["promise"]
    assert aircraft["steps"] >= 1
    assert "February 2013" in aircraft["when"]
    assert [row["value"] for row in aircraft["estimates"]] == list(AWAY)
    # Of four intervals of 95%, one at least holds the truth but for once in 160,000 times.
    assert aircraft["covered"] >= 1
    assert "periods of 48 seconds. The device is on one of 5 levels" in aircraft["promise"]
    fares = found["fares"]
    assert fares["steps"] >= 1
    # Of 24 intervals of 95%, some of them near common fares, fewer than half hold the truth only if they are wrong.
    assert fares["covered"] >= 12
    common = found["words"]
    assert common["steps"] >= 1
    assert "It covers the first bits of the value" in common["promise"]
    # "the" has a share of 5%, some 4 standard errors of 500 reports; of six intervals two hold but for once in 10^5.
    assert len(common["estimates"]) <= 6
    assert common["covered"] >= 2


@pytest.mark.slow  # as `make demo` runs without a terminal
def test_the_blizzard_raises_an_alarm_which_the_webhook_takes() -> None:
    alarm = headless("--devices", 2000, "--workers", 1)["alarms"][0]
    assert (alarm["alarm"], alarm["state"], alarm["direction"]) == ("blizzard", "raised", "above")
    assert alarm["when"].startswith(("8 February 2013, 1", "9 February 2013, "))


def test_the_blizzard_raises_its_alarm_and_the_morning_does_not() -> None:
    scene = flights_scene(4)
    collection, clock = scene.collection, ManualClock(0.0)
    store = SqliteStore(":memory:")
    collector = Collector([collection], store, clock=clock, keys=Keys.new(), alarms={"flights": scene.alarms})
    people, draw = scene.people(3000, 1, 0), Random(seed=1)
    fleet = Fleet(people, draw, first=1)
    answered = set()
    while clock.now() < 32 * 4:
        until = collector.tick()
        for window in collector.board.open(collection.collection_id, clock.now()):
            for who in fleet.on_arc(window.ask.cohort) if window.key not in answered else ():
                for reports in fleet.reports(window.ask, who):
                    ids = draw.bytes(16 * len(reports))
                    body = encode_batch("flights", 1, window.name, ids, reports)
                    collector.ingest([collector.admit(BATCH_TYPE, body)])
            answered.add(window.key)
        clock.set(until)
    raised, cleared = collector.alarms.events("flights")
    # 47% are cancelled in step 8, 78% in step 9, all until step 18; 26% and less from step 25 on.
    assert (raised.state, cleared.state) == ("raised", "cleared")
    assert 8 <= raised.step <= 11
    assert 24 <= cleared.step <= 31


def test_the_receiver_takes_what_is_signed_and_each_event_once() -> None:
    names: Any = {"collection": "flights", "alarm": "a", "category": "", "question": "q", "title": "t"}
    values: Any = {"at": 36.0, "since": 8, "value": 0.5, "low": 0.4, "high": 0.6, "threshold": 0.3, "baseline": None}
    event = AlarmEvent(number=1, step=9, state="raised", direction="above", **names, **values)
    with AlarmReceiver() as receiver:
        for secrets in (read_secrets("secret", receiver.secret), read_secrets("secret", receiver.secret)):
            deliver(Webhook("demo", receiver.url, secrets), event, time.time())
        with pytest.raises(NotDelivered, match="401"):
            deliver(Webhook("demo", receiver.url, (b"k" * 32,)), event, time.time())
        with pytest.raises(NotDelivered, match="401"):
            deliver(Webhook("demo", receiver.url, secrets), event, time.time() - 1000)
    assert [alarm.id for alarm in receiver.alarms] == ["flights:1:9"]


@pytest.mark.slow  # the headless run above, told to end before there is a result
def test_a_result_is_waited_for() -> None:
    found = headless(*SMALL, "--seconds", 1)
    assert min(found[name]["steps"] for name in ("emoji", "flights", "aircraft")) >= 1


@pytest.mark.slow  # the headless run above, as text
def test_without_a_terminal_it_ends_by_itself() -> None:
    done = Hubbub(Path()).process("demo", *SMALL, "--seconds", 10)
    assert done.returncode == 0, done.stderr
    assert "the page: http://127.0.0.1:" in done.stderr
    questions = ("Which emoji is used most?", "Does your flight leave on time?", "How far did your aircraft fly")
    for words in ("reports accepted", *questions, "promised"):
        assert words in done.stdout
    assert "\x1b" not in done.stdout


def _covered(rows: list[dict[str, float]], scale: float) -> int:
    return sum(abs(row["truth"] - row["estimate"]) <= scale * (row["high"] - row["low"]) / 2 for row in rows)


class Terminal:
    """The command in a terminal of its own, which a key can be pressed in."""

    def __init__(self, workers: int) -> None:
        self._master, slave = pty.openpty()
        # The leader of a new session that opens a terminal has it as its own: Ctrl-C then is a signal to its group.
        takes = "import os, sys; os.close(os.open(sys.argv[1], os.O_RDWR)); os.execv(sys.argv[2], sys.argv[2:])"
        options = ["--devices", "100", "--step", "2s", "--workers", str(workers)]
        wanted = [sys.executable, "-c", takes, os.ttyname(slave), *COMMAND, *options]
        self.process = subprocess.Popen(wanted, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        self.shown = ""

    def read_until(self, text: str) -> None:
        end = time.monotonic() + HANGS
        while text not in self.shown:
            assert time.monotonic() < end, self.shown
            assert self._read(), self.shown

    def press(self, key: bytes) -> None:
        os.write(self._master, key)

    def wait(self) -> int:
        while self._read():
            pass
        return self.process.wait(HANGS)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)

    def _read(self) -> bool:
        try:
            found = os.read(self._master, 4096)
        except OSError:  # nobody has the other end any more
            return False
        self.shown += found.decode(errors="replace")
        return bool(found)


@pytest.fixture
def terminal(workers: int) -> Iterator[Terminal]:
    opened = Terminal(workers)
    opened.read_until("Ctrl-C stops everything")
    yield opened
    opened.close()


def _children(parent: int) -> list[int]:
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    return [pid for pid, its_parent in pairs if its_parent == parent and _is_alive(pid)]


def _is_alive(pid: int) -> bool:
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(listed.strip()) and "Z" not in listed  # one that nobody has waited for has ended all the same


@pytest.mark.parametrize(
    ("moment", "workers"), [("reports accepted", 1), pytest.param("Ctrl-C", 2, marks=pytest.mark.slow)]
)
def test_ctrl_c_stops_everything_and_leaves_the_result(terminal: Terminal, moment: str, workers: int) -> None:
    terminal.read_until(moment)
    children = _children(terminal.process.pid)
    assert len(children) == 1 + 5 * workers, children
    terminal.press(b"\x03")
    assert terminal.wait() == 0, terminal.shown
    assert "Traceback" not in terminal.shown
    assert "Which emoji is used most?" in terminal.shown
    assert not any(map(_is_alive, children))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130)])
@pytest.mark.slow
def test_a_headless_run_that_is_stopped(number: signal.Signals, code: int) -> None:
    process = subprocess.Popen([*COMMAND, *SMALL], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("for "):
                break
        children = _children(process.pid)
        process.send_signal(number)
        _, err = process.communicate(timeout=HANGS)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == code, err
    assert "Traceback" not in err
    assert len(children) == 6
    assert not any(map(_is_alive, children))


@pytest.mark.parametrize("workers", [1])
def test_nothing_outlives_a_run_that_is_killed(terminal: Terminal) -> None:
    children = _children(terminal.process.pid)
    terminal.process.kill()
    terminal.process.wait(HANGS)
    wait_for(lambda: not any(map(_is_alive, children)))


def test_a_folder_keeps_what_was_collected_the_token_is_needed_and_a_process_that_ends_is_noticed(tmp_path) -> None:
    folder = tmp_path / "kept"
    with Live(devices=100, step_seconds=2, workers=1, folder=folder) as live:
        assert set(live.results().outcomes) <= OUTCOMES
        (folder / "keys" / "admin.token").write_text("not the token that it was\n")
        with pytest.raises(Exception, match="status 401"):
            live.results()
        os.kill(live.processes[1], signal.SIGKILL)
        with pytest.raises(ProgramStopped, match="the devices ended with -9"):
            wait_for(live.check, HANGS)  # a process can be waited for only once all its threads have ended
    assert (folder / "hubbub.db").stat().st_size > 0


def test_a_port_that_is_taken_is_named() -> None:
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        done = Hubbub(Path()).process("demo", "--port", port)
    assert done.returncode == 2
    reason = f"port {port} cannot be used (Address already in use); 0 takes a free one"
    assert done.stderr.splitlines()[-1] == f"hubbub: the collector ended with 1: {reason}"


@pytest.mark.parametrize("options", [{"devices": 49}, {"devices": 10**7}, {"workers": 0}, {"step_seconds": 0}])
def test_what_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        Live(**options)


def test_every_step_length_can_be_served() -> None:
    for step in (1, 2, 3, 5, 60):
        for scene in scenes(step):
            collection = scene.collection
            half = collection.closes(0, question=scene.question, phase=1) - collection.opens(0)
            assert collection.lateness_seconds < half


def test_the_blizzard_is_in_the_data() -> None:
    weights = np.array(flights_scene(4).weights)
    assert weights.shape == (112, 5)
    day, cancelled = weights[:16], weights[:16, -1]
    assert day[:3, 0].sum() > cancelled[:3].sum()  # in the morning of the 8th they leave
    assert np.array_equal(cancelled[11:], day[11:].sum(axis=1))  # from five in the afternoon on, none does


def test_aircraft_hold_what_they_were_last_and_begin_anew_every_day() -> None:
    table = np.array(aircraft_scene(4).histories)
    assert set(np.unique(table)) == {-1, 0, 1, 2, 3}
    for day in range(7):
        hours = table[day * len(HOURS) : (day + 1) * len(HOURS)]
        assert ((hours[1:] >= 0) | (hours[:-1] < 0)).all()  # once it left, it has a last flight
    last = table[: len(HOURS)][11:]
    assert (last == last[0]).all()  # from five in the afternoon of the blizzard on, none leaves


def test_owners_keep_their_histories_and_streams_are_paid_once_a_horizon() -> None:
    scene = aircraft_scene(4)
    owners = scene.people(500, 1, 0)
    assert isinstance(owners, Owners)
    assert owners.symbols == 5
    asks = next(scene.collection.protocol("went"))
    assert isinstance(asks, list)
    fleet = Fleet(owners, Random(seed=1), ledgers=Ledgers.of_window(500, epsilon=5.0, w=0), first=1)
    enrolled = []
    for step in range(3 * len(HOURS)):
        made = [
            reports
            for ask in asks
            for who in fleet.on_arc(ask.cohort)
            for half in (slice(who.start, (who.start + who.stop) // 2), slice((who.start + who.stop) // 2, who.stop))
            for reports in fleet.reports(replace(ask, step=step), half)  # they answer in parts, as their time comes
        ]
        enrolled.append(sum(int(reports.public["new"].sum()) for reports in made))
    # Epsilon 4 for the first day; of the 5 for life the second cannot be paid, and all fall silent.
    assert enrolled == [500] + [0] * (3 * len(HOURS) - 1)


def test_without_the_data_the_scenes_are_invented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUBBUB_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    for scene in scenes(4):
        assert scene.source.startswith("invented")
        assert np.min(scene.weights if scene.weights else scene.histories) >= (0 if scene.weights else -1)
        assert scene.when(500) or scene.pooled


def test_people_are_the_same_for_whoever_asks_and_differ_by_step() -> None:
    weights = [[3.0, 2.0, 1.0], [0.0, 0.0, 5.0], [0.0, 0.0, 0.0]]
    people = People(weights=weights, silent=0.06, n=5000, seed=1, group=0)
    assert np.array_equal(people.codes(3), people.codes(3))
    assert not np.array_equal(people.codes(0), people.codes(3))
    assert not np.array_equal(people.codes(0), replace(people, group=1).codes(0))
    # 47%, 31%, 16% and 6% of 5,000, with standard errors below 0.71%: six of them are exceeded in one run of 10^8.
    shares = np.bincount(people.codes(0), minlength=4) / people.n
    assert np.abs(shares - [0.47, 0.3133, 0.1567, 0.06]).max() < 0.0425
    assert set(people.codes(1).tolist()) == {2, 3}
    assert set(people.codes(2).tolist()) == {3}
