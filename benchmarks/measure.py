"""What every part of the benchmark shares: CPU seconds, results and their targets."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BUILD = HERE.parent / "build"


class Failure(Exception):
    """The benchmark cannot be run; the message says why in one sentence."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """One line of the table. What is judged is the ratio or, without one, our own measurement."""

    what: str
    unit: str
    ours: float
    versus: str = ""
    theirs: float | None = None
    ratio: float | None = None
    least: float | None = None
    most: float | None = None

    @property
    def judged(self) -> float:
        return self.ours if self.ratio is None else self.ratio

    @property
    def passed(self) -> bool | None:
        """None where no target is stated."""
        if self.least is None and self.most is None:
            return None
        return (self.least is None or self.judged >= self.least) and (self.most is None or self.judged <= self.most)

    @staticmethod
    def faster(what: str, ours: float, versus: str, theirs: float, least: float | None = None) -> Result:
        """CPU seconds of ours against another's: a ratio of 2 is twice as fast."""
        return Result(what=what, unit="s", ours=ours, versus=versus, theirs=theirs, ratio=theirs / ours, least=least)


def cpu_seconds(turns: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The best CPU time, over all threads, of each function; they take turns, so that a slow spell hits them alike."""
    best = dict.fromkeys(turns, float("inf"))
    for turn in turns.values():
        turn()  # compiles, loads, warms the caches
    for _ in range(repeats):
        for name, turn in turns.items():
            start = time.process_time()
            turn()
            best[name] = min(best[name], time.process_time() - start)
    return best


def short(n: int) -> str:
    """A size as in 1e5."""
    return f"{n:.0e}".replace("e+0", "e")


def in_process(script: str, *arguments: object, python: str | Path = sys.executable) -> Any:
    """Run a script of this folder in a process of its own and read the JSON it prints."""
    done = subprocess.run(
        [str(python), str(HERE / script), *map(str, arguments)], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise Failure(f"{script} failed with exit code {done.returncode}.")
    return json.loads(done.stdout)
