"""Collectors in this process, on a clock that a test moves; crowds that answer them, and clients without a network."""

import pytest

pytest.importorskip("hubbub.service.collector.collector")  # a device has no server

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from hubbub import Random, Reports, Sketch
from hubbub.backends import LOCAL
from hubbub.client import Client, Response
from hubbub.collection import Keys, ManualClock
from hubbub.collection.time import Clock
from hubbub.mechanisms.base import Mechanism
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Count, CountResult, Release, converse
from hubbub.questions.collection import Collection
from hubbub.service.base.limits import Receipt
from hubbub.service.collector.collector import Collector
from hubbub.service.ingest.frames import Frame
from hubbub.service.ingest.open_asks import OpenAsk
from hubbub.service.rounds.releases import release_row
from hubbub.service.store import open_store
from hubbub.service.store.base import ReleaseRow
from hubbub.service.store.checksums import CHECKED, row_checksum
from hubbub.service.store.sql import Store
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import Batch
from tests.shared.releases import release_json

KEYS = Keys(b"k" * 32)
Reopen = Callable[[], Store]
"""Opens a store, again and again."""


def start_collector(collection: Collection, clock: Clock, store: Store | None = None, **options: Any) -> Collector:
    """A collector of one collection, over an empty store unless one is given."""
    return Collector(
        [collection], store or SqliteStore(":memory:"), clock=clock, **{"keys": KEYS, "rng": Random(seed=1), **options}
    )


def collection_of(collector: Collector) -> Collection:
    """The only collection of a collector."""
    (collection,) = collector.collections.values()
    return collection


def at(collector: Collector, now: float) -> Collector:
    """Move the clock, and let the collector notice."""
    assert isinstance(collector.clock, ManualClock)
    collector.clock.set(now)
    collector.tick()
    return collector


def open_now(collector: Collector) -> list[OpenAsk]:
    return collector.board.open(collection_of(collector).collection_id, collector.clock.now())


def randomized(ask: Ask, values: Any, rng: Random) -> Reports:
    """One report for each value that the view of an ask made."""
    assert isinstance(ask.mechanism, Mechanism)
    return ask.mechanism.randomize(values, rng)


def send_reports(collector: Collector, open_ask: OpenAsk, reports: Reports, ids: bytes | Random) -> Receipt:
    """Have reports counted, with the ids that are given, or new ones."""
    collection = next(each for each in collector.collections.values() if each.collection_id == open_ask.key.collection)
    ids = ids.bytes(16 * len(reports)) if isinstance(ids, Random) else ids
    batch = Batch(collection.name, collection.version, open_ask.name, ids, reports.to_bare())
    return collector.ingest([Frame(collection.collection_id, batch=batch)])[0]


def send_values(collector: Collector, open_ask: OpenAsk, values: Any, rng: Random) -> Receipt:
    """Randomise values, one a device, and have them counted."""
    return send_reports(collector, open_ask, randomized(open_ask.ask, values, rng), rng)


def stored_releases(store: Store, collection: Collection, question: str) -> list[ReleaseRow]:
    return store.releases(collection.collection_id, question, 0, 1 << 40, 10_000)


def released(collector: Collector, question: str = "all", most: int = 10_000) -> list[dict[str, Any]]:
    """What the API shows of the last releases of a question, of earlier versions too."""
    (name,) = collector.collections
    rows = collector.releases(name, question, first=0, last=1 << 40, most=most)
    return [release_json(row) for row in rows]


class World:
    """A collection that one collector after another serves, over one store, on a clock that a test moves."""

    def __init__(
        self,
        collection: Collection,
        clock: ManualClock | float,
        store: Store | Reopen | None = None,
        **options: Any,
    ) -> None:
        store = store or SqliteStore(":memory:")
        self._reopen = (lambda: store) if isinstance(store, Store) else store
        self.clock = clock if isinstance(clock, ManualClock) else ManualClock(clock)
        self.collection = collection
        self.options = {"clock": self.clock, "keys": KEYS, **options}
        self.begin()

    def begin(self, collection: Collection | None = None) -> Self:
        """Another collector goes on, as after a crash; it may serve another version."""
        self.collection = collection or self.collection
        self.store: Store = self._reopen()
        self.collector = start_collector(self.collection, store=self.store, **self.options)
        return self

    def at(self, now: float) -> Self:
        """Move the clock, and let the collector notice."""
        at(self.collector, now)
        return self

    def wait(self, seconds: float) -> Self:
        return self.at(self.clock.now() + seconds)

    @property
    def open(self) -> list[OpenAsk]:
        """The asks that are open now."""
        return open_now(self.collector)

    def rows(self, question: str) -> list[ReleaseRow]:
        """All releases of this version of the collection, as they are stored."""
        return stored_releases(self.store, self.collection, question)


def as_row(collection: Collection, question: str, release: Release, number: int = 0) -> ReleaseRow:
    """The row that a collector stores of a protocol's release."""
    place = collection.collection_id
    return release_row(release, collection=place, question=question, time=0.0, minimum_batch=20, number=number)


def rows_in(store: Store, query: str) -> list[Any]:
    """What is in the tables, which no method of a store says."""
    return store._read(query)


def run_in(store: Store, statement: str, *values: object) -> list[Any]:
    """Run a statement on the connection that a store writes with."""
    return store._write(statement, *values)


def tamper(store: Store, sql: str, *values: object) -> None:
    """Change rows of a table together with their checksums, as an installation that computes other numbers would."""
    assert isinstance(store, SqliteStore)
    run_in(store, sql, *values)
    table = next(word for word in sql.split() if word in CHECKED)
    store._writer.create_function("row_checksum", -1, row_checksum)
    run_in(store, f"UPDATE {table} SET checksum = row_checksum({', '.join(CHECKED[table])})")


class Crowd:
    """People with places on the circle and a value each: the same reports to the same ask, whoever asks."""

    def __init__(self, places: Any, values: Any) -> None:
        self.places, self.values = places, values
        self.kept: dict[str, Reports] = {}

    def reports(self, ask: Ask) -> tuple[Reports, Random]:
        rng = Random(seed=int(ask.ask_id[:12], 16))
        return randomized(ask, ask.view(self.values[ask.cohort.holds(self.places)]), rng), rng

    def answer(self, ask: Ask) -> Sketch:
        """Answer an ask of a simulation."""
        self.kept[ask.ask_id], _ = self.reports(ask)
        return LOCAL.fold([self.kept[ask.ask_id]], ask.mechanism)

    def count(self, count: Count) -> CountResult:
        sketch = LOCAL.support([self.kept[count.ask.ask_id]], count.oracle, count.candidates)
        return CountResult(sketch.n, sketch.counts)

    def send_all(self, collector: Collector) -> int:
        """Answer all asks that a collector has open; how many reports were counted."""
        return sum(
            send_reports(collector, opened, *self.reports(opened.ask)).accepted for opened in open_now(collector)
        )

    def simulated(self, collection: Collection, question: str, run: int = 0) -> list[Release]:
        """What a simulation of the same people releases."""
        terms = collection.terms[question]
        protocol = collection.protocol(question, first=run)
        return list(converse(protocol, self.answer, count=self.count, rounds=terms.rounds, parts=terms.parts))


def places_of(n: int, rng: np.random.Generator | None = None) -> Any:
    """Places on the circle, the same for the same number of people."""
    return (rng or np.random.default_rng(7)).integers(0, 1 << 32, n, dtype=np.uint64)


def respond(collector: Collector, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
    """What a collector answers."""
    if body is not None:
        (receipt,) = collector.ingest([collector.admit(headers["Content-Type"], body)])
        rejected = [{"id": report, "reason": reason} for report, reason in receipt.rejected]
        counted = {"accepted": receipt.accepted, "duplicates": receipt.duplicates, "rejected": rejected}
        return Response(200, {}, json.dumps(counted).encode())
    if "/models/" in path:
        content = collector.model(path.split("/")[3], path.split("/")[5])
        return Response(404 if content is None else 200, {}, content or b"")
    document = (collector.asks if path.endswith("/asks") else collector.specs)[path.split("/")[3]]
    if headers.get("If-None-Match") == document.etag:
        return Response(304, {"etag": document.etag}, b"")
    return Response(200, {"etag": document.etag}, document.body)


class InProcess(World):
    """A transport to a collector of one collection. It can begin again, from its store."""

    def __init__(self, collection: Collection, clock: ManualClock | float, path: Any, **options: Any) -> None:
        super().__init__(collection, clock, lambda: open_store(f"sqlite:///{path}"), **options)

    def restart(self) -> None:
        self.store.close()
        self.begin()

    def device(self, folder: Path, **options: Any) -> Client:
        """A device of this server, from its folder; its clocks are the server's."""
        more = {"clock": self.clock, "monotonic": self.clock.now, "collection": self.collection.name, **options}
        return Client(folder, self, self.options["keys"].public, jitter=0.0, **more)

    def request(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Response:
        return respond(self.collector, path, headers, body)
