"""Lives that are cut short, run by the tests in a process of their own that forks for each.

    python ledger_crash.py points FOLDER COUNT    killed at so many points, spread over all there are
    python ledger_crash.py careless FOLDER COUNT  the same with a planted bug: the debit in a transaction of its own
    python ledger_crash.py moments FOLDER COUNT   killed from outside, after random times
    python ledger_crash.py race FOLDER COUNT      two processes ask for the last of a budget, so many times

It prints a JSON object: how many lives there were, and what was wrong afterwards.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from budget_ledger import Ledger, StepClock

from hubbub.core.event import Event
from hubbub.privacy.budget import Budget, BudgetExceeded
from hubbub.privacy.ledger_store import LedgerStore

ASKS = 4
COST = 7
EVENT = Event("GRR", "0" * 32, COST)
BUDGET = Budget(user=ASKS * COST)
CODE = tuple(str(Path(sys.modules[part.__module__].__file__ or "").parent) for part in (Ledger, LedgerStore))
CONNECT = sqlite3.connect


def opened(path: Path, budget: Budget = BUDGET) -> Ledger:
    return Ledger(path, budget, clock=StepClock(1))


def life(path: Path, log: Path, asks: int = ASKS, budget: Budget = BUDGET) -> None:
    """Answer, send (append to the log, which is the network), and have every second one acknowledged."""
    network = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with opened(path, budget) as ledger:
        for number in range(asks):
            entry = ledger.answer(f"ask {number}", 1, EVENT, lambda: os.urandom(8))
            assert entry.report is not None
            line = {"number": number, "id": entry.id.hex(), "report": entry.report.hex()}
            os.write(network, json.dumps(line).encode() + b"\n")
            if number % 2:
                ledger.sent(entry.id)


def with_points(tick: Callable[[], None], live: Callable[[], None]) -> None:
    """Live, with a tick before every line of the ledger's code and every instruction of SQLite's machine."""

    def connect(*values: Any, **options: Any) -> sqlite3.Connection:
        database = CONNECT(*values, **options)
        database.set_progress_handler(lambda: tick() or 0, 1)
        return database

    def trace(frame: FrameType, what: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(CODE):
            return None
        if what == "line":
            tick()
        return trace

    sqlite3.connect = connect  # type: ignore[assignment]
    sys.settrace(trace)
    live()
    sys.settrace(None)


def child(live: Callable[[], None]) -> int:
    """Fork, live, and exit: 0, or 1 if it raised."""
    pid = os.fork()
    if pid == 0:
        try:
            live()
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return pid


def killed_at(point: int) -> Callable[[], None]:
    left = point

    def tick() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return tick


def careless_total(self: LedgerStore, *given: Any, add: Any = LedgerStore.add_total) -> None:
    self._file.run("COMMIT")  # the debit, before the total for life and the answer are written
    self._file.run("BEGIN IMMEDIATE")
    add(self, *given)


def wrong_after(path: Path, log: Path, asks: int = ASKS, budget: Budget = BUDGET) -> str | None:
    """What is wrong with a ledger after a crash, judged by what was sent."""
    lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
    sent = {line["number"]: line for line in map(json.loads, lines)}
    with opened(path, budget) as ledger:
        spent = ledger.status().lifetime
        ((entries,),) = ledger._file.run("SELECT COUNT(*) FROM entries")
        ((debits,),) = ledger._file.run("SELECT TOTAL(spent) FROM debits")
        if spent < COST * len(sent):
            return f"spent {spent}, sent {len(sent)} reports"
        if not entries * COST == debits == spent:
            return f"{entries} entries, {debits} in debits, {spent} spent"
        for number in range(asks):
            entry = ledger.answer(f"ask {number}", 1, EVENT, lambda: os.urandom(8))
            if number in sent:
                if entry.id.hex() != sent[number]["id"]:
                    return f"ask {number} has another id"
                if entry.report is None and number % 2 == 0:
                    return f"ask {number} lost its bytes"
                if entry.report is not None and entry.report.hex() != sent[number]["report"]:
                    return f"ask {number} has other bytes"
        if ledger.status().lifetime != COST * max(asks, entries):
            return "a retry was charged"
    return None


def points(folder: Path, count: int) -> tuple[int, list[str]]:
    ticks = 0

    def counting() -> None:
        nonlocal ticks
        ticks += 1

    with_points(counting, lambda: life(folder / "dry", folder / "dry log"))
    sqlite3.connect = CONNECT  # type: ignore[assignment]
    wrong, deaths = [], 0
    for number in range(count):
        point = ticks * number // count
        path, log = folder / f"{number}", folder / f"{number} log"
        pid = child(lambda p=point, a=path, b=log: with_points(killed_at(p), lambda: life(a, b)))  # type: ignore[misc]
        _, ended = os.waitpid(pid, 0)
        deaths += os.WIFSIGNALED(ended)
        found = wrong_after(path, log)
        if found:
            wrong.append(f"point {point} of {ticks}: {found}")
    return deaths, wrong


def careless(folder: Path, count: int) -> tuple[int, list[str]]:
    LedgerStore.add_total = careless_total  # type: ignore[method-assign]
    return points(folder, count)


def moments(folder: Path, count: int) -> tuple[int, list[str]]:
    """Killed from outside: most of the time is spent in the system's calls, where no hook of ours runs."""
    rng = random.Random(1)
    wrong, deaths, asks, budget = [], 0, 10_000, Budget(user=10_001 * COST)
    for number in range(count):
        path, log = folder / f"{number}", folder / f"{number} log"
        pid = child(lambda a=path, b=log: life(a, b, asks, budget))  # type: ignore[misc]
        time.sleep(rng.uniform(0.0, 0.05))
        os.kill(pid, signal.SIGKILL)
        _, ended = os.waitpid(pid, 0)
        deaths += os.WIFSIGNALED(ended)
        sent = log.read_bytes().count(b"\n") if log.exists() else 0
        found = wrong_after(path, log, sent + 1, budget)
        if found:
            wrong.append(f"moment {number}: {found}")
    return deaths, wrong


def race(folder: Path, count: int) -> tuple[int, list[str]]:
    wrong = []
    for number in range(count):
        path = folder / f"{number}"
        gate, opener = os.pipe()

        def ask(path: Path = path, gate: int = gate, opener: int = opener) -> None:
            os.close(opener)
            os.read(gate, 1)  # until the parent lets both go at once
            try:
                with opened(path, Budget(user=COST)) as ledger:
                    ledger.answer(f"ask of {os.getpid()}", 1, EVENT, lambda: time.sleep(0.002) or b"")
            except BudgetExceeded:
                os._exit(3)

        pids = [child(ask), child(ask)]
        os.close(gate)
        os.close(opener)
        ends = sorted(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids)
        with opened(path, Budget(user=COST)) as ledger:
            if ends != [0, 3] or ledger.status().lifetime != COST or len(ledger.pending()) != 1:
                wrong.append(f"race {number}: exits {ends}, spent {ledger.status().lifetime}")
    return count, wrong


if __name__ == "__main__":
    kinds = {"points": points, "careless": careless, "moments": moments, "race": race}
    lives, faults = kinds[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps({"lives": lives, "wrong": faults}))
