"""A collector behind its routes, without a network, on a clock that stands still."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hubbub import Random
from hubbub.authoring import load_collection
from hubbub.collection import ManualClock
from hubbub.collection.names import AnswerName
from hubbub.dashboard.pages import dashboard
from hubbub.protocols.ask import Ask
from hubbub.questions.collection import Collection
from hubbub.service.base.limits import Limits
from hubbub.service.collector.collector import Collector
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import create_app
from hubbub.service.http.service import Service
from hubbub.service.store.sql import Store
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from hubbub.wire.upload import Entry, encode_upload
from tests.served import wait_for
from tests.shared.in_process import open_now, randomized, start_collector
from tests.shared.loopback import Loopback, running
from tests.shared.small_collections import THEME, collection_text

TOKEN = "a token for the tests"
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}"}

THEMES = collection_text(
    "themes",
    "Light or dark?",
    version=2,
    schedule={"step": "100s", "lateness": "10s"},
    privacy={"event": 2.0, "minimum_batch": 20},
    fields={"theme": THEME, "age": {"kind": "numeric", "low": 0, "high": 100, "cells": 10}},
    questions={
        "popular": {"kind": "histogram", "field": "theme", "epsilon": 1.0},
        "old": {"kind": "mean", "field": "age", "epsilon": 1.0},
    },
)


class Web:
    """The site, and what a device of it would send."""

    def __init__(self, client: Loopback, collector: Collector, service: Service, clock: ManualClock) -> None:
        self.client, self.collector, self.service, self.clock = client, collector, service, clock
        self.collection = collector.collections["themes"]
        self.draw = Random(seed=5)

    def ask(self, question: str = "popular") -> Ask:
        return next(open_ask.ask for open_ask in open_now(self.collector) if open_ask.question == question)

    def entry(self, value: int = 1, ask: Ask | None = None) -> Entry:
        ask = ask or self.ask()
        report = randomized(ask, [value], self.draw).to_bare()
        return Entry(*self.name(ask), self.draw.bytes(16), report)

    def name(self, ask: Ask | None = None) -> AnswerName:
        """What the answers to an ask are called: both questions have one round a step."""
        ask = ask or self.ask()
        question = "popular" if ask.mechanism == self.ask().mechanism else "old"
        return AnswerName(question, 0, ask.step, 1, 0)

    def frame(self, *entries: Entry) -> bytes:
        return encode_upload(self.collection.name, self.collection.version, list(entries), self.collection.frame_bytes)

    def batch(self, values: list[int]) -> bytes:
        """Answers to the question `popular`."""
        reports = randomized(self.ask(), values, self.draw)
        ids = self.draw.bytes(16 * len(values))
        return encode_batch(self.collection.name, self.collection.version, self.name(), ids, reports)

    def fill(self, count: int = 40) -> None:
        """A step of the question `popular`, released; nobody answers `old`."""
        assert self.post(BATCH_TYPE, self.batch([0, 1] * (count // 2))).json()["accepted"] == count
        self.wait_until(1110.0)

    def post(self, kind: str, body: Any, **headers: str) -> Any:
        all_headers = {"Content-Type": kind, **headers} if kind else headers
        return self.client.post("/v1/reports", content=body, headers=all_headers)

    def wait_until(self, now: float) -> None:
        """Move the clock, and wait for the writer to have noticed."""
        self.clock.set(now)
        wait_for(lambda: (self.collector.asks["themes"].until or 0) > now)

    def counts(self) -> dict[str, int]:
        """By outcome; those of no collection begin with a question mark."""
        known = self.collection.collection_id
        return {
            ("" if collection == known else "?") + outcome: count
            for (collection, outcome), count in self.collector.counts().items()
        }

    def state(self) -> Any:
        """All that a bad client must not change."""
        store = self.collector.store
        open_asks = self.collector.board.asks
        return (
            {key: (ask.sketch.to_bytes(), len(ask.ids), ask.final) for key, ask in open_asks.items()},
            {key: list(store.id_pages(key)) for key in open_asks},
            sorted(store.asks_with_ids()),
        )


def themes() -> Collection:
    return load_collection(THEMES)


@contextmanager
def site(served: Collector | Service, *, pages: bool = False, private: bool = False) -> Iterator[Loopback]:
    """Requests to a collector, without a network; the pages may need the token."""
    service, tokens = served if isinstance(served, Service) else Service(served), Tokens([TOKEN])
    routes = dashboard(tokens if private else None)(service) if pages else ()
    with running(create_app(service, tokens, routes=routes)) as client:
        yield client


@contextmanager
def website(limits: Limits | None = None) -> Iterator[Web]:
    clock, store = ManualClock(900.0), SqliteStore(":memory:")
    start_collector(load_collection(THEMES.replace("version = 2", "version = 1")), clock, store)
    clock.set(1000.0)  # step 9 was the earlier version's
    with web_of(clock, store, limits=limits) as web:
        yield web


@contextmanager
def web_of(clock: Any, store: Store, **options: Any) -> Iterator[Web]:
    collector = start_collector(themes(), clock, store, **options)
    with site(service := Service(collector)) as client:
        yield Web(client, collector, service, clock)


def problem(response: Any) -> str:
    """The slug of a problem document."""
    assert response.headers["content-type"] == "application/problem+json"
    document = json.loads(response.content)
    assert document["status"] == response.status_code
    assert set(document) >= {"type", "title", "status"}
    return str(document["type"]).removeprefix("urn:hubbub:problem:")


def logged(caplog: pytest.LogCaptureFixture, message: str = "") -> list[dict[str, Any]]:
    """What is said in the lines of the log with a message, or in all lines."""
    return [record.__dict__["fields"] for record in caplog.records if message in ("", record.getMessage())]
