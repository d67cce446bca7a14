"""A collector behind its routes, without a network, on a clock that stands still."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hubbub import Random
from hubbub.authoring import load_collection
from hubbub.collection import Collection, Keys, ManualClock
from hubbub.collection.names import AnswerName
from hubbub.protocols.ask import Ask
from hubbub.service.collector.collector import Collector, Limits
from hubbub.service.http.problems import Tokens
from hubbub.service.http.server import create_app
from hubbub.service.http.service import Service
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.upload import Entry, encode_upload
from tests.served import wait_for
from tests.shared.loopback import Loopback, running
from tests.shared.small_collections import THEME, collection_text

KEYS = Keys(b"k" * 32)
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
        now = self.clock.now()
        for open_ask in self.collector.board.open(self.collection.collection_id, now):
            if open_ask.question == question:
                return open_ask.ask
        raise AssertionError(question)

    def entry(self, value: int = 1, ask: Ask | None = None) -> Entry:
        ask = ask or self.ask()
        report = ask.mechanism.randomize([value], self.draw).to_bare()
        return Entry(*self.name(ask), self.draw.bytes(16), report)

    def name(self, ask: Ask | None = None) -> AnswerName:
        """What the answers to an ask are called: both questions have one round a step."""
        ask = ask or self.ask()
        question = "popular" if ask.mechanism == self.ask().mechanism else "old"
        return AnswerName(question, 0, ask.step, 1, 0)

    def frame(self, *entries: Entry) -> bytes:
        return encode_upload(self.collection.name, self.collection.version, list(entries), self.collection.frame_bytes)

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
def website(limits: Limits | None = None) -> Iterator[Web]:
    clock, store = ManualClock(900.0), SqliteStore(":memory:")
    Collector([load_collection(THEMES.replace("version = 2", "version = 1"))], store, clock=clock, keys=KEYS)
    clock.set(1000.0)  # step 9 was the earlier version's
    collector = Collector([themes()], store, clock=clock, keys=KEYS, limits=limits)
    service = Service(collector)
    with running(create_app(service, Tokens([TOKEN]))) as client:
        yield Web(client, collector, service, clock)


def problem(response: Any) -> str:
    """The slug of a problem document."""
    assert response.headers["content-type"] == "application/problem+json"
    document = json.loads(response.content)
    assert document["status"] == response.status_code
    assert set(document) >= {"type", "title", "status"}
    return str(document["type"]).removeprefix("urn:hubbub:problem:")
