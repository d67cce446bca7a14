"""Clients that are killed, run by the tests in a process of their own that forks for each.

    python client_crash.py points FOLDER COUNT    killed at COUNT points, spread over a whole life
    python client_crash.py careless FOLDER COUNT  the same with a planted bug: debits come after the sending
    python client_crash.py race FOLDER COUNT      two processes share a folder, COUNT times

It prints a JSON object: how many lives there were, and what was wrong afterwards.
"""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import hubbub.client
from hubbub.client import Response
from hubbub.client.store import Outbox
from hubbub.collection.names import AnswerName
from hubbub.ledger.book import Book, Debit
from hubbub.wire.upload import decode_upload
from tests.client.device import World, device
from tests.client.local_server import LocalServer, survey
from tests.shared.killed_processes import CONNECT, CrashResult, kill_at_points, main, race_two, sent_lines
from tests.shared.small_collections import collection_text

TEXT = collection_text(
    schedule={"step": "1h", "lateness": "10h"},
    privacy={"user": 8.0, "minimum_batch": 20},
    fields={"home": {"kind": "ordinal", "size": 6}},
    questions={
        "popular": {"kind": "histogram", "field": "home", "epsilon": 1.0},
        "page": {"kind": "memo", "field": "home", "epsilon": 1.0, "permanent": 2.0},
    },
)
COLLECTION = survey(TEXT)
STEPS = (5, 6, 7)
HOMES = (3, 4, 3)
CODE = (str(Path(hubbub.client.__file__).parent), str(Path(sys.modules[Book.__module__].__file__ or "").parent))


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
    here = World(folder, COLLECTION)
    here.begin(STEPS[0])
    with device(folder, Network(here.server, log), here.clock) as client:
        for step, home in zip(STEPS, HOMES, strict=True):
            here.begin(step)
            client.record("home", home)
            client.tick()
            client.upload()
        here.clock.advance(100)
        client.upload()


def wrong_after(folder: Path, log: Path) -> str | None:
    """What is wrong after a crash and another whole life, judged by what went over the network."""
    costs = prices()
    fault = spent_too_little(folder, sent_lines(log), costs)
    if fault:
        return fault
    life(folder, log)
    lines = sent_lines(log)
    bytes_of: dict[str, str] = {}
    id_of: dict[str, str] = {}
    for line in lines:
        if bytes_of.setdefault(line["id"], line["report"]) != line["report"]:
            return f"report {line['id']} was sent with other bytes"
        if id_of.setdefault(line["ask"], line["id"]) != line["id"]:
            return f"ask {line['ask']} was answered twice"
    return spent_too_little(folder, lines, costs) or answered_nothing(id_of, costs)


@cache
def prices() -> dict[str, tuple[str, int]]:
    """The question and the price of every ask of the three steps; a memo's reports cost nothing themselves."""
    server, costs = LocalServer(COLLECTION), {}
    for step in STEPS:
        server.begin(step)
        for name, (_, ask) in server.open.items():
            costs[str(AnswerName(name, 0, step, 1, 0))] = (name, 0 if name == "page" else ask.event().spent)
    return costs


def spent_too_little(folder: Path, lines: list[dict[str, str]], costs: dict[str, tuple[str, int]]) -> str | None:
    asks = {line["ask"] for line in lines}
    sent = sum(costs[ask][1] for ask in asks)
    memo_sent = any(costs[ask][0] == "page" for ask in asks)
    sent += COLLECTION.terms["page"].limit if memo_sent else 0  # a permanent answer
    spent = lifetime(folder / "client.sqlite")
    if spent < sent:
        return f"spent {spent}, sent {sent}"
    return f"spent {spent} of 8" if spent > 8 * 10**12 else None


def lifetime(path: Path) -> int:
    if not path.exists():  # killed before the file had its name
        return 0
    database = CONNECT(path)  # after a crash, this rolls the journal back
    try:
        return sum(int(spent) for (spent,) in database.execute("SELECT spent FROM totals"))
    finally:
        database.close()


def answered_nothing(id_of: dict[str, str], costs: dict[str, tuple[str, int]]) -> str | None:
    missing = [name for ask, (name, _) in costs.items() if ask not in id_of]
    # The second life begins at the first step again: it does not answer steps before the last of the crashed life.
    return "nothing was answered" if len(missing) == len(costs) else None


def points(folder: Path, count: int) -> CrashResult:
    return kill_at_points(folder, count, life, wrong_after, folders=CODE, instructions=5)


def careless(folder: Path, count: int) -> CrashResult:
    """The planted bug: the histogram is debited when its report was acknowledged, not before it is sent."""
    spend, finish, books = Book.spend, Outbox.finish, []
    owed: list[Debit] = []

    def late_spend(self: Book, step: int, account: str, question: str, units: int, *, until: int | None = None) -> None:
        if question != "popular":
            return spend(self, step, account, question, units, until=until)
        books.append(self)
        owed.append(Debit(account, question, units, step, step))
        return None

    def late_finish(self: Outbox, answer_id: bytes) -> bool:
        while owed:
            books[-1].rows.add_debit(owed.pop())
        return finish(self, answer_id)

    Book.spend = late_spend  # type: ignore[method-assign]
    Outbox.finish = late_finish  # type: ignore[method-assign]
    return points(folder, count)


def race(folder: Path, count: int) -> CrashResult:
    wrong = []
    for number in range(count):
        place, log = folder / f"{number}", folder / f"{number} log"
        place.mkdir()
        exits = race_two(lambda place=place, log=log: life(place, log))  # type: ignore[misc]
        fault = f"exits {exits}" if exits != [0, 0] else wrong_after(place, log)
        if fault:
            wrong.append(f"race {number}: {fault}")
        shutil.rmtree(place)
    return count, wrong


if __name__ == "__main__":
    main({"points": points, "careless": careless, "race": race})
