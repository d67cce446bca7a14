"""Code of a question that does not return: it is seen, the process ends, and the next start goes on without it."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hubbub import GRR
from hubbub.core.plugins import PluginFailed
from hubbub.mechanisms import MECHANISMS
from hubbub.service.collector.collector import example_collector
from hubbub.service.collector.writer import Writer
from hubbub.service.rounds import watchdog as watching
from hubbub.service.rounds.watchdog import Watchdog
from hubbub.service.store.base import StoreChanges, StoreFailed
from hubbub.service.store.sql import Store
from tests.served import ServedCollector, wait_for
from tests.service.study_world import ROUND, START, CommonQuestion, stops, study_collection
from tests.service.test_failing_protocols import LATE, STEP, counted, one_device, two_questions
from tests.shared.in_process import Reopen, World
from tests.shared.small_collections import collection_text

TEXT = collection_text(
    "two",
    "For tests",
    schedule={"step": "2s", "lateness": "1s"},
    privacy={"event": 9.0, "minimum_batch": 20},
    fields={"theme": {"kind": "categorical", "names": ["light", "dark", "high"]}},
    questions={
        "theirs": {"kind": "histogram", "field": "theme", "epsilon": 4.0, "mechanism": "HangingGRR"},
        "ours": {"kind": "histogram", "field": "theme", "epsilon": 4.0, "mechanism": "GRR"},
    },
)
STUCK = [sys.executable, str(Path(__file__).parent / "serve_stuck.py")]


class Stuck(ServedCollector):
    """A collector with a mechanism that can hang."""

    def __init__(self, folder: Path, mode: str, *options: str) -> None:
        text = TEXT.replace('"HangingGRR"', '"OUE"') if mode == "own" else TEXT
        super().__init__(folder, text, *options, program=[*STUCK, mode])

    def not_ready(self) -> dict[str, Any]:
        return json.loads(self.get("/readyz")[1])["not_ready"]

    def released(self, question: str) -> int:
        return len(self.read(f"/v1/collections/two/questions/{question}/releases?from=0&to=9999999999")["releases"])


@pytest.mark.parametrize("mode", ["foreign", "own"])
def test_a_hanging_question_ends_the_process_and_the_next_start_sets_it_aside(tmp_path: Path, mode: str):
    assert Stuck(tmp_path, mode).stop() == 0  # has the kernels compiled, which may take more than 12 seconds
    first = Stuck(tmp_path, mode, "--stuck-after", "12")
    (tmp_path / "hang").touch()
    first.answer("two", "theirs", [0] * 30)
    assert first.ended() == 1
    (line,) = first.logged("stopped")
    assert (line["error"], "theirs of two did not return for 12 seconds" in line["detail"]) == ("Stuck", True)
    assert first.logged("writer stuck")[-1]["doing"] == "the question theirs of two"
    second = Stuck(tmp_path, mode, "--stuck-after", "60")
    (line,) = second.logged("question failed")
    assert (line["question"], line["why"]) == ("theirs", watching.WHY)
    wait_for(lambda: second.not_ready() == {})
    before = second.released("ours")
    second.answer("two", "ours", [0] * 30)
    wait_for(lambda: second.released("ours") > before + 1)
    (tmp_path / "hang").unlink()
    assert second.stop() == 0
    third = Stuck(tmp_path, mode)
    assert third.logged("question failed") == []
    before = third.released("theirs")
    wait_for(lambda: third.released("theirs") > before)
    assert third.stop() == 0


def test_a_process_that_hangs_says_so_and_a_signal_ends_it(tmp_path: Path):
    served = Stuck(tmp_path, "foreign", "--stuck-after", "600")
    (tmp_path / "hang").touch()
    served.answer("two", "theirs", [0] * 30)
    wait_for(lambda: "writer" in served.not_ready())
    line = wait_for(lambda: served.logged("writer stuck"))[-1]
    assert (line["level"], line["doing"]) == ("error", "the question theirs of two")
    served.process.terminate()
    assert served.ended() == 1
    (line,) = served.logged("stopped")
    assert f"did not end within {watching.LAST_SECONDS} seconds of the signal" in line["detail"]


@pytest.mark.slow
def test_code_that_lets_no_other_thread_run_ends_the_process_twice_and_is_set_aside(tmp_path: Path):
    first = Stuck(tmp_path, "alone", "--stuck-after", "5")
    (tmp_path / "hang").touch()
    first.answer("two", "theirs", [0] * 30)
    assert first.ended() == -signal.SIGPROF
    command = [*STUCK, "alone", "serve", "served.toml", "--port", "0", "--stuck-after", "5"]
    assert subprocess.run(command, cwd=tmp_path, timeout=300, capture_output=True).returncode == -signal.SIGPROF
    third = Stuck(tmp_path, "alone")
    assert [line["question"] for line in third.logged("question failed")] == ["theirs"]
    assert third.stop() == 0


@pytest.mark.slow
def test_a_process_that_was_stopped_and_goes_on_has_not_hung(tmp_path: Path):
    served = Stuck(tmp_path, "foreign", "--stuck-after", "5")
    served.process.send_signal(signal.SIGSTOP)
    time.sleep(17)  # longer than either way to end it
    served.process.send_signal(signal.SIGCONT)
    before = served.released("ours")
    wait_for(lambda: served.released("ours") > before + 1)
    assert served.stop() == 0


# -- within one process, in both stores ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class HangingGRR(GRR):
    """GRR, of another package. No other test has the name: mechanisms are cached by it."""


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MECHANISMS, "HangingGRR", HangingGRR)


def two(reopen: Reopen | None = None, **options: Any) -> World:
    return World(two_questions("HangingGRR"), STEP + 1.0, reopen, **options)


def failed(world: World) -> dict[str, str]:
    """The questions that were set aside, and why."""
    return {question: why for (_, question), why in world.collector.failed.items()}


class Hanging:
    """A mechanism whose estimates wait, and a collector whose tick hangs in them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, reopen: Reopen, method: str) -> None:
        self.go_on, self.codes = threading.Event(), list[int]()
        self.marked: list[str | None] = []
        self.watchdog = Watchdog(limit=0.5, end=self._end)
        self.world = two(reopen, watchdog=self.watchdog)
        monkeypatch.setattr(HangingGRR, method, self._wait)

    def _wait(self, *given: Any) -> Any:
        self.marked.append(self.world.store.calling())
        self.go_on.wait(60)
        raise PluginFailed("it was let go")

    def _end(self, code: int) -> None:
        self.codes.append(code)
        self.watchdog._stopping.set()

    def run(self, act: Callable[[], Any]) -> None:
        """Do what hangs in another thread, until the watchdog ends the process."""

        def hang() -> None:
            with suppress(StoreFailed):  # in the end another collector has the store
                act()

        self.thread = threading.Thread(target=hang, daemon=True)
        self.thread.start()
        wait_for(lambda: self.marked)  # what comes before may be slow, too
        with self.watchdog:
            wait_for(lambda: self.codes)


@pytest.mark.parametrize("method", ["_estimate", "_fold"])
def test_either_store_has_the_mark_and_nothing_else_is_lost(
    monkeypatch: pytest.MonkeyPatch, reopen: Reopen, method: str
):
    with monkeypatch.context() as patched:
        hanging = Hanging(patched, reopen, method)
        world, after = hanging.world, 2 * STEP + LATE + 1.0
        if method == "_fold":
            hanging.run(lambda: one_device(world.collector, 1))
            assert hanging.marked == ["[]"], "no report has a transaction of its own for the mark"
        else:
            one_device(world.collector, 1)
            world.clock.set(after)
            hanging.run(world.collector.tick)
            mark = [world.collection.collection_id, "theirs", 1]
            assert json.loads(hanging.marked[0] or "") == [mark], "the mark is stored before the code is called"
        assert hanging.codes == [1]
        world = two(reopen)
        assert failed(world) == {"theirs": watching.WHY}
        assert [step for step, _ in counted(world.at(after), "ours")] == [1]
        world.collector.warm_up()  # without the question that hangs
        hanging.go_on.set()
        hanging.thread.join(60)
    assert set(failed(world.begin())) == {"theirs"}, "only an end in order has it tried again"
    world.collector.watchdog.stopped_in_order()
    assert failed(world.begin()) == {}
    assert [step for step, _ in counted(world, "theirs")] == [1]


def test_a_writer_that_hangs_before_its_first_turn_is_seen(monkeypatch: pytest.MonkeyPatch):
    collector, go_on = example_collector(), threading.Event()
    monkeypatch.setattr(collector, "tick", lambda: float(go_on.wait(60)))
    monkeypatch.setattr(watching, "SILENT", 0.1)
    writer = Writer(collector, on_failure=print)
    writer._thread.start()
    wait_for(lambda: collector.watchdog.silent)
    go_on.set()
    writer.stop()
    assert not collector.watchdog.silent


def test_a_mark_costs_one_transaction_for_a_closing_step_and_none_for_our_own(monkeypatch: pytest.MonkeyPatch):
    world = two()
    made: list[StoreChanges] = []
    commit = world.store.commit
    monkeypatch.setattr(world.store, "commit", lambda changes: made.append(changes) or commit(changes))
    for seed in range(5):
        one_device(world.collector, seed)
        world.collector.tick()
    assert [changes.calling for changes in made] == [None] * 5
    made.clear()
    world.at(2 * STEP + LATE + 1.0)
    # Before the code of theirs; and after it, with all else that the tick stores.
    assert [changes.calling is not None for changes in made] == [True, True]
    assert json.loads(world.store.calling() or "") == []


def test_code_in_which_a_process_ended_once_is_tried_again_and_then_set_aside(reopen: Reopen):
    """A kill or a power failure may come at any time; code that crashes the process does so again."""
    world = two(reopen)
    theirs = world.collection.collection_id, "theirs"
    world.collector.watchdog.mark(theirs)  # and here the process ends
    assert failed(world.begin()) == {}
    world.at(2 * STEP + LATE + 1.0)  # a step is closed: the code returns
    world.collector.watchdog.mark(theirs)
    assert failed(world.begin()) == {}
    world.collector.watchdog.mark(theirs)  # what starts a question has returned; what closes a step has not
    assert set(failed(world.begin())) == {"theirs"}


def test_questions_that_hang_one_after_the_other_are_all_set_aside(reopen: Reopen):
    world = two(reopen)
    for question in ("theirs", "ours"):
        ended_in(reopen(), (world.collection.collection_id, question))
    assert set(failed(world.begin())) == {"theirs", "ours"}


def ended_in(store: Store, question: tuple[str, str]) -> None:
    """Leave the mark of a process that the watchdog ended while the code of a question ran."""
    watchdog = Watchdog()
    watchdog.attach(store, {})
    watchdog._mark_for_sure(question)


def test_a_study_that_hangs_is_set_aside_until_the_collector_stops_in_order(
    monkeypatch: pytest.MonkeyPatch, reopen: Reopen
):
    world = World(study_collection(every=4 * ROUND), START, reopen)
    (era,) = world.store.running_studies(world.collection.collection_id)
    ended_in(world.store, era.key[:2])
    called: list[Any] = []
    with monkeypatch.context() as patched:
        patched.setattr(CommonQuestion, "protocol", lambda *given, **options: called.append(given))
        world.begin().collector.warm_up()
        for _ in range(2):
            world.wait(4 * ROUND)
        assert called == []
    assert stops(world.rows("common")) == [(0, watching.WHY)]
    assert failed(world) == {"common": watching.WHY}
    world.collector.watchdog.stopped_in_order()
    world.clock.advance(4 * ROUND)
    assert [run.first for run in world.begin().store.running_studies(world.collection.collection_id)] == [3]


def test_the_first_call_of_a_studys_code_is_watched(monkeypatch: pytest.MonkeyPatch):
    watchdog, seen = Watchdog(), list[str]()
    protocol = CommonQuestion.protocol

    def watched(*given: Any, **options: Any) -> Any:
        seen.append(watchdog._doing(watchdog._call))
        return protocol(*given, **options)

    monkeypatch.setattr(CommonQuestion, "protocol", watched)
    World(study_collection(), START, watchdog=watchdog)
    assert set(seen) == {"the question common of study"}
