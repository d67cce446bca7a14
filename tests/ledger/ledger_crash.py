"""Processes with a ledger that are killed, run by the tests in a process of their own that forks for each.

    python ledger_crash.py points FOLDER COUNT    killed at COUNT points, spread over a whole life
    python ledger_crash.py careless FOLDER COUNT  the same with a planted bug: the debit in a transaction of its own
    python ledger_crash.py moments FOLDER COUNT   killed from outside, after random times
    python ledger_crash.py race FOLDER COUNT      two processes ask for the last of a budget, COUNT times

It prints a JSON object: how many lives there were, and what was wrong afterwards.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from hubbub.core.event import Event
from hubbub.ledger.book import LedgerStore
from hubbub.ledger.promise import Budget, BudgetExceeded
from tests.ledger.budget_ledger import Ledger, StepClock
from tests.shared.killed_processes import CrashResult, fork, kill_at_points, main, race_two, sent_lines

ASKS = 4
COST = 7
EVENT = Event("GRR", "0" * 32, COST)
BUDGET = Budget(user=ASKS * COST)
CODE = tuple(str(Path(sys.modules[part.__module__].__file__ or "").parent) for part in (Ledger, LedgerStore))


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


def wrong_after(path: Path, log: Path, asks: int = ASKS, budget: Budget = BUDGET) -> str | None:
    """What is wrong with a ledger after a crash, judged by what was sent."""
    sent = {line["number"]: line for line in sent_lines(log)}
    with opened(path, budget) as ledger:
        spent = ledger.status().lifetime
        ((entries,),) = ledger.file.run("SELECT COUNT(*) FROM entries")
        ((debits,),) = ledger.file.run("SELECT TOTAL(spent) FROM debits")
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


def points(folder: Path, count: int) -> CrashResult:
    return kill_at_points(folder, count, life, wrong_after, folders=CODE)


def careless(folder: Path, count: int) -> CrashResult:
    """The planted bug: the debit is committed before the total for life and the answer are written."""
    add = LedgerStore.add_total

    def careless_total(self: LedgerStore, account: str, question: str, spent: int) -> None:
        self._file.run("COMMIT")
        self._file.run("BEGIN IMMEDIATE")
        add(self, account, question, spent)

    LedgerStore.add_total = careless_total  # type: ignore[method-assign]
    return points(folder, count)


def moments(folder: Path, count: int) -> CrashResult:
    """Killed from outside: most of the time is spent in the system's calls, where no hook of ours runs."""
    rng = random.Random(1)
    wrong, deaths, asks, budget = [], 0, 10_000, Budget(user=10_001 * COST)
    for number in range(count):
        path, log = folder / f"{number}", folder / f"{number} log"
        pid = fork(lambda path=path, log=log: life(path, log, asks, budget))  # type: ignore[misc]
        time.sleep(rng.uniform(0.0, 0.05))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        deaths += os.WIFSIGNALED(status)
        fault = wrong_after(path, log, len(sent_lines(log)) + 1, budget)
        if fault:
            wrong.append(f"moment {number}: {fault}")
    return deaths, wrong


def race(folder: Path, count: int) -> CrashResult:
    wrong = []
    for number in range(count):
        path = folder / f"{number}"

        def ask(path: Path = path) -> None:
            try:
                with opened(path, Budget(user=COST)) as ledger:
                    ledger.answer(f"ask of {os.getpid()}", 1, EVENT, lambda: time.sleep(0.002) or b"")
            except BudgetExceeded:
                os._exit(3)

        exits = sorted(race_two(ask))
        with opened(path, Budget(user=COST)) as ledger:
            if exits != [0, 3] or ledger.status().lifetime != COST or len(ledger.pending()) != 1:
                wrong.append(f"race {number}: exits {exits}, spent {ledger.status().lifetime}")
    return count, wrong


if __name__ == "__main__":
    main({"points": points, "careless": careless, "moments": moments, "race": race})
