"""An adversarial server: any signed documents, any asks, any order, any versions, any clocks, and a recount of it all.

The recount is made from the signed documents as people read them (epsilon of each question, limits of the budget), and
from what was heard, not from the device's ledger. What a memo or the beginning of a stream of changes costs cannot be
heard: it is counted when the device's file has one more of them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hubbub.client import Client, NotReady, Response
from hubbub.collection import Collection, ManualClock
from hubbub.core.domain import Ordinal
from hubbub.core.errors import InvalidValue
from hubbub.core.event import UNITS_PER_EPSILON
from hubbub.ledger.promise import Budget
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.memoised import memos_in
from hubbub.protocols.ask import CIRCLE, Arc, Ask
from hubbub.questions import Question, read_collection
from hubbub.wire.upload import decode_upload
from tests.client.local_server import KEYS, LocalServer

QUESTIONS = {
    "a": (
        Question.make(kind="histogram", field="x", epsilon=1.0),
        Question.make(kind="histogram", field="x", epsilon=4.0),
        Question.make(kind="stream", field="x", epsilon=2.0, method="LPU", w=5),
        Question.make(kind="stream", field="x", epsilon=2.0, method="LBD", w=3),
    ),
    "b": (
        Question.make(kind="memo", field="x", epsilon=0.5, permanent=1.0),
        Question.make(kind="memo", field="x", epsilon=0.5, permanent=1.0, mechanism="Loloha"),
    ),
    "c": (
        Question.make(kind="changes", field="y", epsilon=1.0, steps=4, changes=2),
        Question.make(kind="changes", field="y", epsilon=2.0, steps=2, changes=1),
    ),
}
BUDGETS = (
    Budget.of(event=8.0, user=60.0),
    Budget.of(window=(12.0, 4), user=60.0),
    Budget.of(event=6.0, window=(30.0, 10), user=40.0),
    Budget.of(user=15.0),
)
GRIDS = ((3600, 0), (1, 0), (60, 30), (7200, 1800))
TEMPLATES = 24


@cache
def collection(template: int, version: int) -> Collection:
    """One of the versions that the server may serve; the same numbers give the same one."""
    draw = random.Random(template)
    several = {name: draw.choice(kinds) for name, kinds in QUESTIONS.items() if draw.random() < 0.8}
    step, origin = draw.choice(GRIDS)
    made: dict[str, Any] = {
        "name": "survey",
        "title": "Anything",
        "fields": {"x": Ordinal(draw.choice((3, 3, 5))), "y": Ordinal(2)},
        "questions": several or {"a": QUESTIONS["a"][0]},
        "budget": draw.choice(BUDGETS),
        "step_seconds": step,
        "origin": origin,
        "lateness_seconds": 366 * 86400,
        "version": version,
    }
    return Collection(**made)


class HeardReport(NamedTuple):
    """Something that was spent, by what was heard: when, on which clock, on which question, in which step."""

    true: float
    wall: float
    question: str
    spent: int


@dataclass
class Limit:
    """What a signed document promises: an amount in some steps of a grid, or in a life; of a question, or of all."""

    since: int
    limit: int
    steps: int
    interval: float
    origin: float
    question: str | None

    def broken(self, reports: list[HeardReport]) -> bool:
        """Whether some stretch of steps, or of true time, has cost more since the promise was made."""
        own = [report for report in reports[self.since :] if self.question in (None, report.question)]
        if self.steps == 0:
            return sum(report.spent for report in own) > self.limit
        steps = [(report.wall - self.origin) // self.interval for report in own]
        for first in steps:
            if (
                sum(e.spent for e, step in zip(own, steps, strict=True) if first <= step < first + self.steps)
                > self.limit
            ):
                return True
        span = (self.steps - 1) * self.interval
        return any(
            sum(e.spent for e in own if report.true <= e.true < report.true + span) > self.limit for report in own
        )


@cache
def with_kinds(collection: Collection) -> Collection:
    """The same collection, as its author reads it."""
    return read_collection(collection.spec())


def limits_of(collection: Collection, since: int) -> list[Limit]:
    """What people read in a collection."""
    collection = with_kinds(collection)
    unit, grid = UNITS_PER_EPSILON, (float(collection.step_seconds), float(collection.origin))
    budget = collection.budget
    limits = [] if budget.event is None else [Limit(since, budget.event, 1, *grid, None)]
    limits += [] if budget.window is None else [Limit(since, *budget.window, *grid, None)]
    limits += [] if budget.user is None else [Limit(since, budget.user, 0, 0, 0, None)]
    for name, question in collection.questions.items():
        epsilon = round(question.epsilon * unit)
        if question.kind == "changes":
            limits.append(Limit(since, epsilon, 1, (question.steps or 0) * grid[0], grid[1], name))
        elif question.kind == "stream":
            limits.append(Limit(since, epsilon, question.w or 0, *grid, name))
        elif question.kind == "histogram":
            limits.append(Limit(since, epsilon, 1, *grid, name))
        else:
            size = 8  # at most as many values as there are, and none
            limits.append(Limit(since, round((question.permanent or 0) * unit) * size, 0, 0, 0, name))
    return limits


class Adversary:
    """One history, drawn from a seed."""

    def __init__(self, folder: Path, seed: int | str) -> None:
        self.draw = random.Random(seed)
        self.folder = folder
        self.true, self.boot, self.error = 50_000.0, 0.0, 0.0
        self.clock = ManualClock(self.true)
        self.version, self.template = 1, self.draw.randrange(TEMPLATES)
        self.server = LocalServer(collection(self.template, 1))
        self.published: dict[tuple[int, str], Mechanism] = {}
        self.fetched: dict[tuple[int, str], Mechanism] = {}
        """By version and name of an ask. A device answers the asks that it fetched last, not those published since."""
        self.reports: list[HeardReport] = []
        self.limits: list[Limit] = []
        self.names: set[tuple[int, str]] = set()
        self.latest = 0.0
        self.adopted = 0
        self.wrong: list[str] = []
        self.memos = self.streams = 0
        self.client = self.opened()

    def opened(self) -> Client:
        options: dict[str, Any] = {"jitter": 0.0, "collection": "survey"}
        return Client(
            self.folder, self, KEYS.public, clock=self.clock, monotonic=lambda: self.true - self.boot, **options
        )

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        if body is not None:
            upload = decode_upload(body)
            for entry in upload.entries:
                key = (upload.version, str(entry.name))
                if key in self.names:
                    self.wrong.append(f"{key} was answered twice")
                self.names.add(key)
                mechanism = self.fetched[key]
                if type(mechanism).__name__ not in ("BasicRappor", "Loloha", "ChangeStream"):
                    self.spend(entry.question, mechanism.event().spent)
            return Response(200, {}, b'{"rejected": []}')
        response = self.server.request(method, path, headers, None)
        if path.endswith("/asks") and response.status == 200:
            self.fetched |= self.published
        return response

    def spend(self, question: str, units: int) -> None:
        self.latest = max(self.latest, self.clock.now())  # a clock set back within its step stands still
        self.reports.append(HeardReport(self.true, self.latest, question, units))

    def live(self, moves: int) -> list[str]:
        try:
            for _ in range(moves):
                move = self.draw.choice((self.ask, self.ask, self.ask, self.wait, self.wait, self.jump, self.serve))
                move()
                if self.wrong:
                    break
            return self.wrong
        finally:
            self.client.close()

    def wait(self) -> None:
        step = self.server.collection.step_seconds
        self.pass_by(self.draw.choice((0.2, 1.0, 1.0, 3.0)) * step + self.draw.choice((0, 0, 1, 3600)))

    def pass_by(self, seconds: float) -> None:
        self.true += seconds
        self.clock.set(self.true + self.error)

    def jump(self) -> None:
        """Set the wall clock, reboot, or restart the program."""
        kind = self.draw.randrange(4)
        if kind == 0:
            self.error += self.draw.choice((-5, 5, 3600, -3600, 10 * 86400, -10 * 86400))
        elif kind == 1:
            self.error = 0.0
        elif kind == 2:
            self.boot = self.true
        self.pass_by(0.0)
        if kind >= 2:
            self.client.close()
            self.client = self.opened()

    def serve(self) -> None:
        """Another version; sometimes an older one, or another document under the same number."""
        self.version = max(1, self.version + self.draw.choice((1, 1, 1, 0, -1)))
        self.template = self.draw.randrange(TEMPLATES)
        self.server = LocalServer(collection(self.template, self.version))

    def ask(self) -> None:
        """Publish some asks, most of them as the protocol would, and see what the device does."""
        collection = self.server.collection
        step = collection.step_at(self.clock.now())
        if step < 0:
            return
        asks, listed = {}, []
        for name in collection.questions:
            for round in range(1, self.draw.choice((1, 2, 2, 3)) + 1):
                ask = self.some_ask(collection, name, step)
                place = {"question": name, "run": 0, "step": ask.step, "round": round, "part": 0}
                spec = {**place, "closes": 0.0, "ask": ask.spec()}
                asks[collection.version, f"{name}:0:{ask.step}:{round}:0"] = ask.mechanism
                listed.append(spec)
        self.server.publish_asks([], step, self.clock.now() + 1, {"asks": listed})
        self.published = asks
        for _ in range(2):
            self.client.tick()
            self.adopt()
            self.states()
            self.client.upload()
            self.check()
            self.pass_by(collection.step_seconds / 5)

    def some_ask(self, collection: Collection, name: str, step: int) -> Ask:
        question = collection.questions[name]
        statistic = question.statistic(collection.setting(name))
        mechanism: Any = question.mechanism_for(collection.setting(name))
        if self.draw.random() < 0.4 and question.kind in ("histogram", "stream"):
            units = self.draw.choice((10**10, 10**11, 10**12 // 3, 10**12, 2 * 10**12, 4 * 10**12 + 1))
            with suppress(InvalidValue):
                mechanism = statistic.mechanism(units)
        length = CIRCLE if self.draw.random() < 0.9 else self.draw.choice((1, CIRCLE // 2))
        when = step if self.draw.random() < 0.9 else max(0, step + self.draw.choice((-1, 1)))
        return Ask(mechanism=mechanism, step=when, view=statistic.view, cohort=Arc(self.draw.randrange(CIRCLE), length))

    def adopt(self) -> None:
        try:
            version = self.client.status().version
        except NotReady:
            return
        if version != self.adopted:
            if version < self.adopted:
                self.wrong.append(f"version {version} after {self.adopted}")
            self.adopted = version
            collection = self.client._current.collection
            assert collection is not None
            self.limits += limits_of(read_collection(collection.spec()), len(self.reports))
        for field, values in (("x", 3), ("y", 2)):
            if self.draw.random() < 0.5:
                self.client.record(field, self.draw.randrange(values))

    def states(self) -> None:
        """What memos and streams of changes have cost, by how many the device has."""
        device = self.client._current.collection
        if device is None:
            return
        collection = read_collection(device.spec())
        with self.client._store.transaction():
            memos = self.client._store._run("SELECT state FROM states WHERE key LIKE 'memo:%'")
            streams = self.client._store._run("SELECT key, stream FROM states WHERE key LIKE 'question:%'")
        rows = sum(memos_in(state) for (state,) in memos)
        streams = [(key.removeprefix("question:"), stream) for key, stream in streams]
        self.memos = self.count("b", rows - self.memos, 10**12 - 10**6) + self.memos
        known = getattr(self, "known", set())
        for question, stream in streams:
            if (question, stream) not in known:
                self.spend(
                    question, round(with_kinds(collection).questions[question].epsilon * UNITS_PER_EPSILON) - 10**6
                )
        self.known = known | set(streams)

    def count(self, question: str, more: int, cost: int) -> int:
        for _ in range(more):
            self.spend(question, cost)  # a little less than it is, where it is rounded down
        return more

    def check(self) -> None:
        for limit in self.limits:
            if limit.broken(self.reports):
                self.wrong.append(f"{limit} after {self.reports}")


def history(folder: Path, seed: int | str, moves: int = 25) -> tuple[list[str], int]:
    """What went wrong in a history, and how much was heard in it."""
    adversary = Adversary(folder, seed)
    return adversary.live(moves), len(adversary.reports)
