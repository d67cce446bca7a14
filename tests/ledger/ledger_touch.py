"""Ledgers whose file a third party touches, run by the tests in a process of their own that forks for each.

    python ledger_touch.py last FOLDER COUNT PLANT     one process is about to spend the last of a budget, a third party
                                                       touches the file, another process asks for the same
    python ledger_touch.py moments FOLDER COUNT PLANT  killed from outside while third parties touch the file

PLANT is "none", or a bug: "close", a process that closes its own ledger's file. It prints a JSON object: how many lives
there were, and what was wrong afterwards.
"""

import os
import random
import select
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import count as numbers
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from hubbub.ledger.promise import Budget, BudgetExceeded
from tests.ledger.ledger_crash import COST, EVENT, life, opened, wrong_after
from tests.served import wait_for
from tests.shared.killed_processes import CONNECT, CrashResult, fork, main, sent_lines
from tests.third_parties import TOUCHES

THREAD = "thread"
"""Another thread of the same process opens the ledger and closes it."""
PROCESS = "process"
"""Another process does."""
PARTIES = [THREAD, PROCESS, *TOUCHES]
LAST = Budget(user=COST)


PATIENCE = 0.5
"""Seconds in which the others have their chance."""
ENDLESS = 10**9
"""Asks of a life that only a kill ends, however long a third party waits for its turn."""


def careless(path: str, **options: Any) -> sqlite3.Connection:
    os.close(os.open(unquote(urlsplit(path).path), os.O_RDWR | os.O_CREAT, 0o600))  # the ledger says it as a URI
    return CONNECT(path, **options)


def look(path: Path, budget: Budget) -> None:
    with opened(path, budget) as ledger:
        ledger.status()


def outside(party: str, path: Path, budget: Budget) -> Callable[[], None]:
    """What a party does from a process of its own."""
    if party == PROCESS:
        return lambda: None if os.waitpid(fork(lambda: look(path, budget)), 0)[1] == 0 else os._exit(1)
    return lambda: TOUCHES[party](path, path.parent)


def last(folder: Path, count: int) -> CrashResult:
    planted = sqlite3.connect is not CONNECT
    wrong = []
    for number in range(count):
        party = THREAD if planted else PARTIES[number % len(PARTIES)]
        path = folder / f"{number}"
        inside, entered = os.pipe()
        over, ended = os.pipe()

        def first(path: Path = path, entered: int = entered, over: int = over, party: str = party) -> None:
            looking = threading.Thread(target=look_in_turn, args=(path, connected := threading.Event()))

            def make() -> bytes:
                if party == THREAD:
                    looking.start()  # waits for this transaction, as it should
                    connected.wait()
                os.write(entered, b".")
                select.select([over], [], [], PATIENCE)  # the others have their chance meanwhile
                return b""

            spend(path, make)
            if party == THREAD:
                looking.join()

        def second(path: Path = path, ended: int = ended) -> None:
            spend(path, lambda: b"")
            os.write(ended, b".")

        pids = [fork(first)]
        os.read(inside, 1)
        others = [] if party == THREAD else [threading.Thread(target=outside(party, path, LAST))]
        for thread in others:
            thread.start()
        time.sleep(0.1 if others else 0.0)
        pids.append(fork(second))
        exits = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        for thread in others:
            thread.join()
        for descriptor in (inside, entered, over, ended):
            os.close(descriptor)
        with opened(path, LAST) as ledger:
            if exits != [0, 3] or ledger.status().lifetime != COST or len(ledger.pending()) != 1:
                wrong.append(f"{party}: exits {exits}, spent {ledger.status().lifetime}")
    return count, wrong


def look_in_turn(path: Path, connected: threading.Event) -> None:
    """Look, and say when the file was opened: the transaction of the other thread is still going on."""
    connect = sqlite3.connect

    def connecting(*values: Any, **options: Any) -> sqlite3.Connection:
        try:
            return connect(*values, **options)
        finally:
            connected.set()

    sqlite3.connect = connecting  # type: ignore[assignment]
    look(path, LAST)


def spend(path: Path, make: Callable[[], bytes]) -> None:
    """Ask for all of the budget; exit code 3 if it is refused."""
    try:
        with opened(path, LAST) as ledger:
            ledger.answer(f"ask of {os.getpid()}", 1, EVENT, make)
    except BudgetExceeded:
        os._exit(3)


def moments(folder: Path, count: int) -> CrashResult:
    """Killed at random times. Meanwhile another thread opens and closes the ledger, and a third party touches it."""
    draw = random.Random(count)
    wrong, deaths, budget = [], 0, Budget(user=(ENDLESS + 1) * COST)
    for number in range(count):
        party = PARTIES[number % len(PARTIES)]
        path, log = folder / f"{number}", folder / f"{number} log"

        def live(path: Path = path, log: Path = log) -> None:
            def others() -> None:
                for _ in numbers():
                    look(path, budget)

            threading.Thread(target=others, daemon=True).start()
            life(path, log, ENDLESS, budget)

        pid = fork(live)
        wait_for(partial(sent_lines, log))
        if party == THREAD:  # one more, in the life itself, and somebody who reads
            party = "read"
        outside(party, path, budget)()
        time.sleep(draw.uniform(0.0, 0.05))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        deaths += os.WIFSIGNALED(status)
        fault = wrong_after(path, log, len(sent_lines(log)) + 1, budget)
        if fault:
            wrong.append(f"moment {number}, {party}: {fault}")
    return deaths, wrong


if __name__ == "__main__":
    if sys.argv.pop() == "close":
        sqlite3.connect = careless  # type: ignore[assignment]
    main({"last": last, "moments": moments})
