"""Processes that are killed in the middle of their work, and what is wrong with the files that they leave behind.

A crash script has functions of a folder and a count, such as `points`; `main` calls the one that its arguments name and
prints a `CrashResult` as JSON. A test calls it by `run_script`, in a process of its own, which forks for each death.
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

# A killed process leaves what it wrote to the system, synced or not: a disk in memory shows as much, and sooner.
SHELF = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
CONNECT = sqlite3.connect

CrashResult: TypeAlias = tuple[int, list[str]]
"""How many processes were killed (or, of races, ran), and a line for everything that was wrong afterwards."""


def run_script(script: Path, kind: str, count: int, *options: str) -> dict[str, Any]:
    """Run a function of a crash script in a folder of its own, and return what it printed."""
    with tempfile.TemporaryDirectory(dir=SHELF) as folder:
        command = [sys.executable, str(script), kind, folder, str(count), *options]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    sys.stderr.write(run.stderr)  # shown of a test that fails
    assert run.returncode == 0
    result: dict[str, Any] = json.loads(run.stdout)
    return result


def main(kinds: Mapping[str, Callable[..., CrashResult]]) -> None:
    """Call the function that the first argument names with a folder, a count and further options; print its result."""
    kind, folder, count, *options = sys.argv[1:]
    lives, wrong = kinds[kind](Path(folder), int(count), *options)
    print(json.dumps({"lives": lives, "wrong": wrong}))


def fork(work: Callable[[], object]) -> int:
    """Do some work in a forked process, which then exits: with 0, or with 1 if the work raised. Its process id."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return pid


def with_ticks(
    tick: Callable[[], None], work: Callable[[], object], folders: tuple[str, ...], instructions: int
) -> None:
    """Do some work, and call `tick` before every line of code in the folders and every few instructions of SQLite."""

    def connect(*values: Any, **options: Any) -> sqlite3.Connection:
        database = CONNECT(*values, **options)
        database.set_progress_handler(lambda: tick() or 0, instructions)
        return database

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(folders):
            return None
        if event == "line":
            tick()
        return trace

    sqlite3.connect = connect  # type: ignore[assignment]
    sys.settrace(trace)
    work()
    sys.settrace(None)
    sqlite3.connect = CONNECT


def kill_at_points(
    folder: Path,
    count: int,
    life: Callable[[Path, Path], object],
    fault_after: Callable[[Path, Path], str | None],
    *,
    folders: tuple[str, ...],
    instructions: int = 1,
) -> CrashResult:
    """Kill processes at `count` points, spread over all ticks of a whole life, and check the files of each.

    Parameters
    ----------
    life
        The work of one process: with its files at the first path, and a log of what it sent at the second.
    fault_after
        What is wrong with these two after the death of the process; None if nothing is.
    folders, instructions
        Where the ticks are: see `with_ticks`.
    """
    ticks = 0

    def count_tick() -> None:
        nonlocal ticks
        ticks += 1

    for run in ("first", "second"):  # the first fills caches, which later lives find full
        ticks = 0
        with_ticks(count_tick, lambda run=run: life(folder / run, folder / f"{run} log"), folders, instructions)  # type: ignore[misc]
    wrong, deaths = [], 0
    for number in range(count):
        point = ticks * 99 // 100 * number // count
        path, log = folder / f"{number}", folder / f"{number} log"

        def killed(point: int = point, path: Path = path, log: Path = log) -> None:
            with_ticks(killed_after(point), lambda: life(path, log), folders, instructions)

        _, status = os.waitpid(fork(killed), 0)
        deaths += os.WIFSIGNALED(status)
        fault = fault_after(path, log)
        if fault:
            wrong.append(f"point {point} of {ticks}: {fault}")
        if path.is_dir():  # a thousand folders would fill a disk in memory
            shutil.rmtree(path)
    return deaths, wrong


def sent_lines(log: Path) -> list[dict[str, Any]]:
    """What a life wrote to its log: the lines of JSON that are whole."""
    return [json.loads(line) for line in log.read_bytes().split(b"\n")[:-1]] if log.exists() else []


def race_two(work: Callable[[], object]) -> list[int]:
    """Do some work in two processes that begin at the same moment. Their exit codes."""
    gate, opener = os.pipe()

    def wait_and_work() -> None:
        os.close(opener)
        os.read(gate, 1)  # until this process closes the other end
        work()

    pids = [fork(wait_and_work), fork(wait_and_work)]
    os.close(gate)
    os.close(opener)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def killed_after(ticks: int) -> Callable[[], None]:
    """A function that kills the process when it is called once more than this number of times."""
    remaining = ticks

    def tick() -> None:
        nonlocal remaining
        remaining -= 1
        if remaining < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return tick
