"""Clients that are cut short, run by the tests in a process of their own that forks for each.

    python client_crash.py points FOLDER COUNT    killed at so many points, spread over all there are
    python client_crash.py careless FOLDER COUNT  the same with a planted bug: debits come after the sending
    python client_crash.py race FOLDER COUNT      two processes share a folder, so many times

It prints a JSON object: how many lives there were, and what was wrong afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from local_server import KEYS, LocalServer, survey

import hubbub.client
from hubbub.client import Client, Response
from hubbub.client.outbox import Outbox
from hubbub.collection import ManualClock
from hubbub.collection.names import AnswerName
from hubbub.collection.upload import decode_upload
from hubbub.privacy.book import Book
from hubbub.privacy.ledger_store import Debit

TEXT = """
name = "survey"
version = 1
title = "A survey"

[schedule]
step = "1h"
lateness = "10h"

[privacy]
user = 8.0
minimum_batch = 20

[fields.home]
kind = "ordinal"
size = 6

[questions.popular]
kind = "histogram"
field = "home"
epsilon = 1.0

[questions.page]
kind = "memo"
field = "home"
epsilon = 1.0
permanent = 2.0
"""
COLLECTION = survey(TEXT)
STEPS = (5, 6, 7)
HOMES = (3, 4, 3)
CODE = (str(Path(hubbub.client.__file__).parent), str(Path(sys.modules[Book.__module__].__file__ or "").parent))
CONNECT = sqlite3.connect


class Network:
    """A transport that writes every frame to a log, and loses every third answer."""

    def __init__(self, server: LocalServer, log: Path) -> None:
        self.server, self.sent = server, 0
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        if body is not None:
            for entry in decode_upload(body).entries:
                line = {"id": entry.report_id.hex(), "ask": str(entry.name), "report": entry.report.hex()}
                os.write(self.log, json.dumps(line).encode() + b"\n")
            self.sent += 1
            if self.sent % 3 == 0:
                return Response(500, {}, b"")
        return self.server.request(method, path, headers, body)


def life(folder: Path, log: Path) -> None:
    """Three steps, each recorded, answered and sent."""
    server, clock = LocalServer(COLLECTION), ManualClock()
    network = Network(server, log)
    clock.set(COLLECTION.opens(STEPS[0]) + 1)
    server.begin(STEPS[0])
    with Client(
        folder, network, KEYS.public, collection="survey", clock=clock, monotonic=clock.now, jitter=0
    ) as client:
        for step, home in zip(STEPS, HOMES, strict=True):
            clock.set(COLLECTION.opens(step) + 1)
            server.begin(step)
            client.record("home", home)
            client.tick()
            client.upload()
        clock.advance(100)
        client.upload()


def wrong_after(folder: Path, log: Path) -> str | None:
    """What is wrong after a crash and another whole life, judged by what went over the network."""
    costs = prices()
    crashed = sent_lines(log)
    found = spent_at_least(folder, crashed, costs)
    if found:
        return found
    life(folder, log)
    lines = sent_lines(log)
    bytes_of: dict[str, str] = {}
    id_of: dict[str, str] = {}
    for line in lines:
        if bytes_of.setdefault(line["id"], line["report"]) != line["report"]:
            return f"report {line['id']} was sent with other bytes"
        if id_of.setdefault(line["ask"], line["id"]) != line["id"]:
            return f"ask {line['ask']} was answered twice"
    return spent_at_least(folder, lines, costs) or answered_all(id_of, costs)


@cache
def prices() -> dict[str, tuple[str, int]]:
    """The question and the price of every ask of the three steps; a memo's reports cost nothing themselves."""
    server, found = LocalServer(COLLECTION), {}
    for step in STEPS:
        server.begin(step)
        for name, (_, ask) in server.open.items():
            found[str(AnswerName(name, 0, step, 1, 0))] = (name, 0 if name == "page" else ask.event().spent)
    return found


def spent_at_least(folder: Path, lines: list[dict[str, str]], costs: dict[str, tuple[str, int]]) -> str | None:
    asks = {line["ask"] for line in lines}
    sent = sum(costs[ask][1] for ask in asks)
    memo_sent = any(costs[ask][0] == "page" for ask in asks)
    mechanism = COLLECTION.questions["page"].mechanism_for(COLLECTION.setting("page"))
    sent += mechanism.permanent_event().spent if memo_sent else 0  # type: ignore[attr-defined]
    spent = lifetime(folder / "client.sqlite")
    if spent < sent:
        return f"spent {spent}, sent {sent}"
    return f"spent {spent} of 8" if spent > 8 * 10**12 else None


def lifetime(path: Path) -> int:
    if not path.exists():  # killed before there was one: it is there whole, or not at all
        return 0
    database = CONNECT(path)  # after a crash, this rolls the journal back
    try:
        return sum(int(spent) for (spent,) in database.execute("SELECT spent FROM totals"))
    finally:
        database.close()


def answered_all(id_of: dict[str, str], costs: dict[str, tuple[str, int]]) -> str | None:
    missing = [name for ask, (name, _) in costs.items() if ask not in id_of]
    # Steps that the crashed life had gone past are not answered by the next, which starts again at the first.
    return "nothing was answered" if len(missing) == len(costs) else None


def sent_lines(log: Path) -> list[dict[str, str]]:
    lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
    return [json.loads(line) for line in lines]


def with_points(tick: Callable[[], None], live: Callable[[], None]) -> None:
    """Live, with a tick before every line of the client's and the ledger's code, and in SQLite's machine."""

    def connect(*values: Any, **options: Any) -> sqlite3.Connection:
        database = CONNECT(*values, **options)
        database.set_progress_handler(lambda: tick() or 0, 5)
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
    sqlite3.connect = CONNECT  # type: ignore[assignment]


def child(live: Callable[[], None]) -> int:
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


def points(folder: Path, count: int) -> tuple[int, list[str]]:
    ticks = 0

    def counting() -> None:
        nonlocal ticks
        ticks += 1

    for run in ("first", "dry"):  # the first fills caches, which later lives find full
        ticks = 0
        with_points(counting, lambda run=run: life(folder / run, folder / f"{run} log"))  # type: ignore[misc]
    wrong, deaths = [], 0
    for number in range(count):
        point = ticks * 99 // 100 * number // count
        place, log = folder / f"{number}", folder / f"{number} log"
        pid = child(lambda p=point, a=place, b=log: with_points(killed_at(p), lambda: life(a, b)))  # type: ignore[misc]
        _, ended = os.waitpid(pid, 0)
        deaths += os.WIFSIGNALED(ended)
        found = wrong_after(place, log)
        if found:
            wrong.append(f"point {point} of {ticks}: {found}")
        shutil.rmtree(place)
    return deaths, wrong


def careless(folder: Path, count: int) -> tuple[int, list[str]]:
    """The planted bug: what the histogram costs is debited when its report was acknowledged, not before it is sent."""
    spend, done, books = Book.spend, Outbox.done, []
    owed: list[Debit] = []

    def late_spend(self: Book, step: int, account: str, question: str, units: int, *, until: int | None = None) -> None:
        if question != "popular":
            return spend(self, step, account, question, units, until=until)
        books.append(self)
        owed.append(Debit(account, question, units, step, step))
        return None

    def late_done(self: Outbox, answer_id: bytes) -> bool:
        while owed:
            books[-1].rows.add_debit(owed.pop())
        return done(self, answer_id)

    Book.spend = late_spend  # type: ignore[method-assign]
    Outbox.done = late_done  # type: ignore[method-assign]
    return points(folder, count)


def race(folder: Path, count: int) -> tuple[int, list[str]]:
    wrong = []
    for number in range(count):
        place, log = folder / f"{number}", folder / f"{number} log"
        place.mkdir()
        gate, opener = os.pipe()

        def run(place: Path = place, log: Path = log, gate: int = gate, opener: int = opener) -> None:
            os.close(opener)
            os.read(gate, 1)  # until the parent lets both go at once
            life(place, log)

        pids = [child(run), child(run)]
        os.close(gate)
        os.close(opener)
        ends = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        found = f"exits {ends}" if ends != [0, 0] else wrong_after(place, log)
        if found:
            wrong.append(f"race {number}: {found}")
        shutil.rmtree(place)
    return count, wrong


if __name__ == "__main__":
    kinds = {"points": points, "careless": careless, "race": race}
    lives, faults = kinds[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps({"lives": lives, "wrong": faults}))
