"""A run of all reproductions within a budget: who gets how much time, what is begun next, and what was not finished."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from hubbub import __version__
from hubbub_papers.catalogue import REPRODUCTIONS
from hubbub_papers.harness import Reproduction
from hubbub_papers.records import Cost, Record, costs, duration, read
from hubbub_papers.result import FEWEST_RUNS

LEAST_SCALE = 0.002
UNKNOWN = Cost(60.0, 60.0, False)
"""What a reproduction is taken to cost that was never run."""
_PATIENCE = 4.0  # a run may take so many times the computing time that it was expected to take
_LEAST_SECONDS = 120
_ENOUGH_MORE = 1.5  # a record is replaced by one of so many times the runs and people
_TOLD = 60.0  # after so many seconds of runs, the next is expected to get the share of a core that they got


def share(wanted: Sequence[float], total: float) -> float:
    """The most that each may have, so that all together have the total: those who want less get what they want."""
    left = total
    for place, want in enumerate(sorted(wanted)):
        equal = left / (len(wanted) - place)
        if want > equal:
            return max(equal, 0.0)
        left -= want
    return max(wanted, default=0.0)


def setting(reproduction: Reproduction, seconds: float) -> tuple[int, float]:
    """The runs and the scale that fit into a time: fewer runs first, then, from three runs on, fewer people."""
    cost, repeats = costs().get(reproduction.name, UNKNOWN), reproduction.repeats
    if cost.seconds(repeats) <= seconds:
        return repeats, 1.0
    affordable = max(seconds - cost.fixed, 0.0) / cost.each
    runs = min(repeats, max(FEWEST_RUNS, int(affordable)))
    return runs, float(f"{min(1.0, max(affordable / runs, LEAST_SCALE)):.2g}")


_TOO_LONG = "stopped: it took longer than its part of the budget"


@dataclass
class _Running:
    """A reproduction that runs in a process of its own, whose errors go to a file until it has ended."""

    record: Record
    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    begun: float
    ends: float

    def outcome(self, now: float) -> str | None:
        """None while it runs; then why it came to nothing, or an empty text."""
        code = self.process.poll()
        if code is None and now < self.ends:
            return None
        if code is None:
            self.stop()
            return _TOO_LONG
        if code == -getattr(signal, "SIGXCPU", math.inf):
            return _TOO_LONG
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return "" if code == 0 else (lines[-1] if lines else f"ended with code {code}")

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()


def run_all(
    names: Sequence[str],
    folder: Path,
    *,
    hours: float | None,
    workers: int,
    seed: int = 1,
    afresh: bool = False,
    keep: Path | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, Record]:
    """Run reproductions, several at once and the quick ones first, and return the records of the folder.

    With `hours`, each runs at a size at which all are expected to be done in time; what is not is ended. Without, each
    runs in full. The next call goes on: with what was not run, then with what has time for more runs or more people
    than in the record that the folder has of it; all is run again if `afresh`.
    On a busy machine, runs are chosen by the part of a core that those before them got.
    Records of runs in full are copied to the folder `keep`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    there = {} if afresh else read(folder)
    wants = {name: _wanted(REPRODUCTIONS[name]) for name in names if name not in there or not there[name].whole}
    waiting = sorted(wants, key=lambda name: (name in there and not there[name].failure, wants[name]))
    begun, running, done = time.monotonic(), list[_Running](), 0
    waited, before = 0.0, _computed()  # seconds of the clock that runs took until now, and of computing before them
    last = begun + hours * 3600 if hours is not None else math.inf
    try:
        while waiting or running:
            now = time.monotonic()
            while waiting and len(running) < workers and now < last:
                got = min((_computed() - before) / waited, 1.0) if waited > _TOLD else 1.0
                cap = _cap(waiting, running, wants, (last - now) * workers * got)
                name = waiting.pop(0)
                repeats, scale = _next_setting(REPRODUCTIONS[name], there.get(name), cap)
                if repeats:
                    limit = _PATIENCE * cap if hours is not None else 0.0
                    record = _record(name, repeats, scale, seed)
                    running.append(_start(record, folder, limit, now, last, workers))
                else:
                    done += 1
            for one in tuple(running):
                failure = one.outcome(now)
                if failure is not None:
                    running.remove(one)
                    one.errors.close()
                    if failure and (one.record.name not in there or there[one.record.name].failure):
                        replace(one.record, failure=failure).save(folder)  # one that did not fail has saved its record
                    if not failure and keep is not None and one.record.whole:
                        read(folder)[one.record.name].save(keep)
                    waited, done = waited + now - one.begun, done + 1
            if now >= last and not running:
                break
            if progress is not None:
                label = ", ".join(one.record.name for one in running) or "done"
                left = "" if hours is None else f" ({duration(max(last - now, 0))} left)"
                progress(done, len(wants), label + left)
            time.sleep(0.05)
    finally:
        for one in running:  # after an interrupt; what was ended is begun again by the next call
            one.stop()
            one.errors.close()
    return read(folder)


def _computed() -> float:
    """The computing time of all processes that were started here and have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _wanted(reproduction: Reproduction) -> float:
    """The time that a reproduction would take in full."""
    return costs().get(reproduction.name, UNKNOWN).seconds(reproduction.repeats)


def _cap(waiting: Sequence[str], running: Sequence[_Running], wants: Mapping[str, float], total: float) -> float:
    """The most that the next may take, of what is left of all workers' time."""
    return share([wants[name] for name in waiting] + [wants[one.record.name] for one in running], total)


def _next_setting(reproduction: Reproduction, before: Record | None, seconds: float) -> tuple[int, float]:
    """The runs and the scale that fit into a time: less than what took too long before, or no runs if no more fit."""
    repeats, scale = setting(reproduction, seconds)
    if before is None:
        return repeats, scale
    if before.failure == _TOO_LONG:
        return min(repeats, before.repeats, FEWEST_RUNS), min(scale, max(before.scale / _PATIENCE, LEAST_SCALE))
    more = before.failure or repeats * scale > _ENOUGH_MORE * before.repeats * before.scale
    return (repeats, scale) if more else (0, scale)


def _record(name: str, repeats: int, scale: float, seed: int) -> Record:
    today = datetime.now(UTC).date().isoformat()
    return Record(name, REPRODUCTIONS[name].title, today, __version__, repeats, scale, seed)


def _start(record: Record, folder: Path, limit: float, now: float, last: float, workers: int) -> _Running:
    """Begin a run that may take `limit` seconds of computing; as many as it needs, if that is 0."""
    threads = str(max(1, (os.cpu_count() or 1) // workers))
    environment = {**os.environ, "NUMBA_NUM_THREADS": threads, "OMP_NUM_THREADS": threads, "MPLBACKEND": "agg"}
    errors = tempfile.TemporaryFile()  # noqa: SIM115
    seconds = math.ceil(max(_LEAST_SECONDS, limit)) if limit else 0
    asked = (record.name, folder, record.repeats, record.scale, record.seed, seconds)
    command = [sys.executable, "-m", "hubbub_papers.records", *map(str, asked)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
    return _Running(record, process, errors, now, last)
