"""A mechanism of another package, in one of our own kinds, that raises on the server: only its own question waits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from hubbub import GRR, Categorical, Random
from hubbub.collection import Collection, Keys, ManualClock
from hubbub.core.errors import InvalidValue
from hubbub.ledger.promise import Budget
from hubbub.mechanisms import MECHANISMS
from hubbub.questions import Question
from hubbub.service.base.limits import Receipt
from hubbub.service.collector.collector import Collector
from hubbub.service.ingest.frames import Frame
from hubbub.service.ingest.open_asks import OpenAsk
from hubbub.service.ingest.shuffled import OpenedBatch
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import Batch
from hubbub.wire.upload import Entry

STEP, LATENESS, KEYS = 3600, 60, Keys(b"k" * 32)


@dataclass(frozen=True, kw_only=True)
class TheirGRR(GRR):
    """GRR, one method of which may raise."""

    broken: ClassVar[str] = ""

    def _fold(self, reports: Any) -> Any:
        if self.broken == "_fold":
            raise ValueError("boom")
        if self.broken == "one value" and (reports.private["value"] == 2).any():
            raise ValueError("a value that it does not know")
        return super()._fold(reports)

    def _estimate(self, sketch: Any, candidates: Any = None) -> Any:
        if self.broken == "_estimate":
            raise ValueError("boom")
        if self.broken == "refusal":
            raise InvalidValue("sketch", 0, "another")
        return super()._estimate(sketch, candidates)

    @property
    def sketch_shape(self) -> tuple[int, ...]:
        if self.broken == "sketch_shape":
            raise ValueError("boom")
        return super().sketch_shape


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    MECHANISMS["TheirGRR"] = TheirGRR
    yield
    del MECHANISMS["TheirGRR"]


def two_questions(mechanism: str = "TheirGRR") -> Collection:
    asked = {"field": "theme", "epsilon": 1.0, "kind": "histogram"}
    return Collection(
        name="two",
        version=1,
        title="For tests",
        fields={"theme": Categorical(["light", "dark", "high"])},
        questions={"theirs": Question.make(mechanism=mechanism, **asked), "ours": Question.make(**asked)},
        budget=Budget.of(event=2.0),
        step_seconds=STEP,
        lateness_seconds=LATENESS,
        minimum_batch=1,
    )


def start(store: SqliteStore, clock: ManualClock) -> Collector:
    return Collector([two_questions()], store, clock=clock, keys=KEYS, rng=Random(seed=1))


def one_device(collector: Collector, seed: int) -> Receipt:
    """One upload with an answer to every open ask."""
    (collection,) = collector.collections.values()
    asks = collector.board.open(collection.collection_id, collector.clock.now())
    return collector.ingest([Frame(collection.collection_id, [entry(ask, seed) for ask in asks])])[0]


def entry(ask: OpenAsk, seed: int) -> Entry:
    rng = Random(seed=seed)
    return Entry(*ask.name, rng.bytes(16), ask.ask.mechanism.randomize([seed % 2], rng).to_bare())


def released(collector: Collector, question: str) -> list[tuple[int, float]]:
    rows = collector.releases("two", question, first=0, last=99, most=99)
    return [(row.step, json.loads(row.payload)["n"]) for row in rows]


@pytest.mark.parametrize("method", ["_estimate", "_fold", "sketch_shape", "refusal"])
def test_its_question_waits_and_continues_after_the_repair(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    store, clock = SqliteStore(":memory:"), ManualClock(STEP + 1.0)
    collector = start(store, clock)
    for seed in range(10):
        assert one_device(collector, seed).accepted == 2
    monkeypatch.setattr(TheirGRR, "broken", method)
    receipts = [one_device(collector, seed) for seed in range(10, 20)]
    counted = 10 if method == "_fold" else 20
    if method == "_fold":
        assert {(receipt.accepted, *(reason for _, reason in receipt.rejected)) for receipt in receipts} == {
            (1, "over_quota")
        }, "a device keeps a report that is refused for this reason"
    clock.set(2 * STEP + LATENESS + 1.0)
    collector.tick()
    (why,) = collector.failed.values()
    raised = "TheirGRR raised InvalidValue" if method == "refusal" else f"TheirGRR.{method} raised ValueError: boom"
    assert raised in why
    assert released(collector, "ours") == [(1, 20.0)]
    assert released(collector, "theirs") == []
    assert set(start(store, clock).failed.values()) == {why} or method == "_fold"  # nothing is folded at a start
    monkeypatch.undo()
    repaired = start(store, clock)
    assert repaired.failed == {}
    assert released(repaired, "theirs") == [(1, float(counted))]
    assert one_device(repaired, 30).accepted == 2


def test_a_report_that_it_cannot_count_is_malformed_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone may send any report that the format allows: it must not stop the question."""
    clock = ManualClock(STEP + 1.0)
    collector = start(SqliteStore(":memory:"), clock)
    monkeypatch.setattr(TheirGRR, "broken", "one value")
    (collection,) = collector.collections.values()
    (ask,) = collector.board.of(collection.collection_id, "theirs")
    frame = Frame(
        collection.collection_id,
        batch=Batch("two", 1, ask.name, bytes(range(48)), bytes([0, 2, 1])),
    )
    (receipt,) = collector.ingest([frame])
    assert receipt.accepted == 2
    assert [reason for _, reason in receipt.rejected] == ["malformed"]
    clock.set(2 * STEP + LATENESS + 1.0)
    collector.tick()
    assert collector.failed == {}
    assert released(collector, "theirs") == [(1, 2.0)]


@pytest.mark.parametrize(("broken", "reason"), [("_fold", "over_quota"), ("one value", "malformed")])
def test_a_shuffled_batch_that_it_cannot_count_is_not_accepted(
    monkeypatch: pytest.MonkeyPatch, broken: str, reason: str
) -> None:
    """After "over_quota" the shuffler sends it again; a batch that was neither counted nor refused would be lost."""
    collector = start(SqliteStore(":memory:"), ManualClock(STEP + 1.0))
    monkeypatch.setattr(TheirGRR, "broken", broken)
    (collection,) = collector.collections.values()
    (ask,) = collector.board.of(collection.collection_id, "theirs")
    reports, readable = ask.opener.open_each([bytes([value]) for value in (0, 2, 1)])
    assert readable.all()
    batch = OpenedBatch(ask.name, b"d" * 32, reports, fakes=0, unreadable=0, repeated=0, checks=0, lost=0)
    (receipt,) = collector.ingest([Frame(collection.collection_id, shuffled=batch)])
    assert (receipt.accepted, receipt.rejected) == (0, [(str(ask.name), reason)])
    assert (ask.failure is not None) == (reason == "over_quota")
