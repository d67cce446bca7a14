"""A run of all reproductions within a budget: who gets how much time, what is begun next, and what was not finished."""

from __future__ import annotations

import math
import os
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
_PATIENCE = 4.0  # a run may take so many times of what it was expected to take
_LEAST_WAIT = 120.0


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


@dataclass
class _Running:
    """A reproduction that runs in a process of its own, whose errors go to a file until it has ended."""

    record: Record
    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    ends: float

    def outcome(self, now: float) -> str | None:
        """None while it runs; then why it came to nothing, or an empty text."""
        code = self.process.poll()
        if code is None and now < self.ends:
            return None
        if code is None:
            self.stop()
            return "stopped: it took longer than its part of the budget"
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

    What has a record in the folder is not run again, unless `afresh`. With `hours`, each runs at a size at which all
    are expected to be done in time; what is not is ended, and begun again by the next call. Without, each runs in full.
    Records of runs in full are copied to the folder `keep`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    there = {} if afresh else {name: record for name, record in read(folder).items() if not record.failure}
    wants = {name: _wanted(REPRODUCTIONS[name]) for name in names if name not in there}
    waiting = sorted(wants, key=wants.__getitem__)
    begun, running, done = time.monotonic(), list[_Running](), 0
    last = begun + hours * 3600 if hours is not None else math.inf
    try:
        while waiting or running:
            now = time.monotonic()
            while waiting and len(running) < workers and now < last:
                cap = _cap(waiting, running, wants, (last - now) * workers)
                running.append(_start(waiting.pop(0), folder, cap, now, last, seed, workers))
            for one in tuple(running):
                failure = one.outcome(now)
                if failure is not None:
                    running.remove(one)
                    one.errors.close()
                    if failure:  # a run that did not fail has saved its record
                        replace(one.record, failure=failure).save(folder)
                    elif keep is not None and one.record.whole:
                        read(folder)[one.record.name].save(keep)
                    done += 1
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


def _wanted(reproduction: Reproduction) -> float:
    """The time that a reproduction would take in full."""
    return costs().get(reproduction.name, UNKNOWN).seconds(reproduction.repeats)


def _cap(waiting: Sequence[str], running: Sequence[_Running], wants: Mapping[str, float], total: float) -> float:
    """The most that the next may take, of what is left of all workers' time."""
    return share([wants[name] for name in waiting] + [wants[one.record.name] for one in running], total)


def _start(name: str, folder: Path, cap: float, now: float, last: float, seed: int, workers: int) -> _Running:
    reproduction = REPRODUCTIONS[name]
    repeats, scale = setting(reproduction, cap)
    limit = now + max(_LEAST_WAIT, _PATIENCE * cap) if last < math.inf else math.inf
    threads = str(max(1, (os.cpu_count() or 1) // workers))
    environment = {**os.environ, "NUMBA_NUM_THREADS": threads, "OMP_NUM_THREADS": threads, "MPLBACKEND": "agg"}
    errors = tempfile.TemporaryFile()  # noqa: SIM115
    command = [sys.executable, "-m", "hubbub_papers.records", name, str(folder), str(repeats), str(scale), str(seed)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
    today = datetime.now(UTC).date().isoformat()
    record = Record(name, reproduction.title, today, __version__, repeats, scale, seed)
    return _Running(record, process, errors, min(limit, last))
