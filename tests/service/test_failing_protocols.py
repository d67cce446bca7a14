"""Protocols and mechanisms that raise: a study ends and says why, a stream waits for its repair, others go on."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, ClassVar

import numpy as np
import pytest

from hubbub import GRR, OLH, Categorical, Estimate, Random
from hubbub.core.errors import InvalidValue
from hubbub.core.plugins import guard
from hubbub.ledger.promise import Budget
from hubbub.mechanisms import MECHANISMS
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Count, Protocol, Release
from hubbub.questions import Question
from hubbub.questions.collection import Collection
from hubbub.service.base.limits import Receipt
from hubbub.service.collector.collector import Collector
from hubbub.service.ingest.frames import Frame
from hubbub.service.ingest.open_asks import OpenAsk
from hubbub.service.ingest.shuffled import OpenedBatch
from hubbub.wire.batches import Batch
from hubbub.wire.upload import Entry
from tests.service import study_world
from tests.service.study_world import LATENESS, ROUND, START, CommonQuestion, WordCrowd, stops, study_collection
from tests.shared.in_process import World, collection_of, open_now, randomized, rows_in

CROWD = WordCrowd(600)
STEP = 3600


def failing(protocol: Protocol, messages: int, error: Exception) -> Protocol:
    """The same protocol, which raises after a number of messages."""
    reply = None
    for _ in range(messages):
        reply = yield protocol.send(reply)
    raise error


BOOM = ValueError("boom")


def fail_after(
    monkeypatch: pytest.MonkeyPatch, kind: type[Any], messages: int, error: Exception = BOOM, *, foreign: bool = True
) -> None:
    whole = kind.protocol
    monkeypatch.setattr(kind, "protocol", lambda *given, **options: failing(whole(*given, **options), messages, error))
    if foreign:
        guard(kind)  # its new method too


@pytest.mark.parametrize("messages", range(6))  # two parts, a count, two asks, a release, and after that
@pytest.mark.parametrize("foreign", [True, False], ids=["another package's", "hubbub's own"])
def test_a_study_that_raises_ends_once_and_says_why(
    monkeypatch: pytest.MonkeyPatch, messages: int, foreign: bool
) -> None:
    fail_after(monkeypatch, CommonQuestion, messages, foreign=foreign)
    world = World(study_collection(), START)
    for number in (1, 2, 3):
        CROWD.send_all(world.collector)
        world.at(START + ROUND * number + LATENESS)
    *releases, (run, why) = stops(world.rows("common"))
    assert run == 0
    assert why is not None
    assert "raised ValueError: boom" in why
    assert ("CommonQuestion.protocol" in why) == foreign
    assert releases == [(0, None)] * (messages == 5), "what it released before is kept"
    assert world.store.running_studies(world.collection.collection_id) == []
    monkeypatch.undo()
    assert not world.begin().open, "it never begins anew"


ONE_NUMBER = {"estimate": Estimate(np.array([0.5]), np.array([0.1]), 10)}
NEVER_ASKED = Ask(mechanism=OLH(epsilon=3.0, domain=41), step=0, kept=True)
REFUSED: dict[str, tuple[str, Callable[[list[Ask]], Iterable[Any]]]] = {
    "nothing": ("the protocol sent a NoneType", lambda asks: [None]),
    "a text": ("the protocol sent a str", lambda asks: ["hello"]),
    "a tuple": ("the protocol sent a tuple", lambda asks: [tuple(asks)]),
    "no ask": ("the protocol asks 0 parts", lambda asks: [[]]),
    "the same part twice": ("parts whose arcs meet", lambda asks: [[asks[0], asks[0]]]),
    "a count of what was never asked": ("an ask that was never asked", lambda asks: [asks, Count(NEVER_ASKED, (1,))]),
    "another step": ("the protocol said step 3", lambda asks: [asks, release(3)]),
    "releases without end": ("at most 1024 releases", lambda asks: (release(0) for _ in count())),
}


def release(step: int) -> Release:
    return Release(step=step, estimates=ONE_NUMBER, published=True, spent=1.0, n=1.0)


@pytest.mark.parametrize(("why", "messages"), REFUSED.values(), ids=REFUSED)
def test_a_study_that_sends_what_it_may_not_ends_and_says_why(
    monkeypatch: pytest.MonkeyPatch, why: str, messages: Callable[[list[Ask]], Iterable[Any]]
) -> None:
    whole = CommonQuestion.protocol

    def protocol(*given: Any, **options: Any) -> Any:
        for message in messages(next(whole(*given, **options))):  # type: ignore[arg-type]  # noqa: UP028 - no answers
            yield message

    monkeypatch.setattr(CommonQuestion, "protocol", protocol)
    world = World(study_collection(), START)
    CROWD.send_all(world.collector)
    (run, stopped) = stops(world.at(START + ROUND + LATENESS).rows("common"))[-1]
    assert run == 0
    assert stopped is not None
    assert why in stopped
    assert not world.open


STREAM = study_collection(stream=True, start=50 * STEP)


def stream_world() -> World:
    return World(STREAM, STEP + 1.0)


def stream(world: World, steps: range) -> list[tuple[int, str]]:
    """Let the crowd answer both rounds of some steps; all that was released."""
    for step in steps:
        for half in (0, 1):
            world.at(step * STEP + half * STEP / 2 + LATENESS + 1.0)
            CROWD.send_all(world.collector)
    world.at((steps[-1] + 1) * STEP + LATENESS + 1.0)
    return [(row.step, row.payload) for row in world.rows("tested")]


@pytest.mark.parametrize("error", [BOOM, InvalidValue("epsilon", 0, "more")], ids=["a program's error", "a refusal"])
@pytest.mark.parametrize("messages", range(1, 9))  # two parts, a count, an ask and a release; and those of step 2
def test_a_stream_that_raises_waits_for_its_repair_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, messages: int, error: Exception
) -> None:
    """Begun again, it fails at the same place; once it is repaired, it releases what it would have released."""
    expected = stream(stream_world(), range(1, 3))
    assert [step for step, _ in expected] == [1, 2]
    fail_after(monkeypatch, study_world.TestedQuestion, messages, error)
    world = stream_world()
    before = stream(world, range(1, 3))
    failed = dict(world.collector.failed)
    (why,) = failed.values()
    assert f"TestedQuestion.protocol raised {type(error).__name__}: {error}" in why
    assert world.begin().collector.failed == failed
    assert before == expected[: len(before)]
    monkeypatch.undo()
    assert world.begin().collector.failed == {}
    after = stream(world, range(3, 4))
    assert [step for step, _ in after] == [1, 2, 3]
    whole_rounds = messages // 4 + (messages % 4 == 3)  # the steps of which both rounds were asked before it failed
    assert after[:whole_rounds] == expected[:whole_rounds]


def count_rows(world: World, table: str) -> int:
    ((count,),) = rows_in(world.store, f"SELECT COUNT(*) FROM {table}")
    return int(count)


@pytest.mark.parametrize("restart", [False, True], ids=["goes on", "started again"])
@pytest.mark.parametrize("messages", [1, 2, 5])  # it fails when its asks are closed, at its count, and in step 2
def test_the_retention_is_kept_for_a_stream_that_waits_for_its_repair(
    monkeypatch: pytest.MonkeyPatch, messages: int, restart: bool
) -> None:
    fail_after(monkeypatch, study_world.TestedQuestion, messages)
    world = stream_world()
    stream(world, range(1, 3))
    if restart:
        world.begin()
    assert len(world.collector.failed) == 1
    assert count_rows(world, "sketches")
    assert count_rows(world, "reports")
    world.wait(22 * STEP)
    assert count_rows(world, "sketches"), "deleted before its time"
    for _ in range(4):
        world.wait(2 * STEP)
    for table in ("asks", "sketches", "id_pages", "reports", "snapshots", "candidate_counts"):
        assert not count_rows(world, table), table
    assert not [ask for ask in world.collector.board.asks.values() if ask.question == "tested"]
    monkeypatch.undo()
    after = stream(world.begin(), range(34, 36))
    assert world.collector.failed == {}
    assert [step for step, _ in after][-2:] == [34, 35]


def test_an_open_ask_of_a_stream_that_fails_at_a_restart_still_counts_after_its_repair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = stream_world()
    open_asks = set(world.collector.board.asks)
    fail_after(monkeypatch, study_world.TestedQuestion, 0)
    assert len(world.begin().collector.failed) == 1
    monkeypatch.undo()
    assert set(world.begin().collector.board.asks) == open_asks, "closed too early"
    assert CROWD.send_all(world.collector) == 600


def test_a_stream_that_fails_when_a_new_version_takes_it_over_is_taken_over_after_its_repair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = stream_world()
    stream(world, range(1, 2))
    fail_after(monkeypatch, study_world.TestedQuestion, 0)
    assert len(world.begin(replace(STREAM, version=2)).collector.failed) == 1
    monkeypatch.undo()
    assert world.begin().collector.failed == {}
    era = world.store.era(world.collection.collection_id, "tested")
    assert era is not None
    assert era.first == 1, "the era of the first version"


def test_a_stream_that_fails_when_the_clock_goes_back_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(STREAM, 9 * STEP + 1.0)
    fail_after(monkeypatch, study_world.TestedQuestion, 0)
    assert len(world.at(STEP + 1.0).collector.failed) == 1


def test_a_stream_of_another_package_that_sends_what_it_may_not_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    def protocol(*given: Any, **options: Any) -> Any:
        yield "hello"

    monkeypatch.setattr(study_world.TestedQuestion, "protocol", protocol)
    world = stream_world()
    for _ in range(2):
        world.collector.tick()
        (why,) = world.collector.failed.values()
        assert "TestedQuestion.protocol raised OutOfOrder: the protocol sent a str" in why
        world.begin()


# -- a mechanism of another package, in one of our own kinds: only its own question waits ----------------------

LATE = 60


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
    asked: dict[str, Any] = {"field": "theme", "epsilon": 1.0, "kind": "histogram"}
    return Collection(
        name="two",
        version=1,
        title="For tests",
        fields={"theme": Categorical(["light", "dark", "high"])},
        questions={"theirs": Question.make(mechanism=mechanism, **asked), "ours": Question.make(**asked)},
        budget=Budget.of(event=2.0),
        step_seconds=STEP,
        lateness_seconds=LATE,
        minimum_batch=1,
    )


def one_device(collector: Collector, seed: int) -> Receipt:
    """One upload with an answer to every open ask."""
    entries = [entry(ask, seed) for ask in open_now(collector)]
    return collector.ingest([Frame(collection_of(collector).collection_id, entries)])[0]


def entry(ask: OpenAsk, seed: int) -> Entry:
    rng = Random(seed=seed)
    return Entry(*ask.name, rng.bytes(16), randomized(ask.ask, [seed % 2], rng).to_bare())


def counted(world: World, question: str) -> list[tuple[int, float]]:
    """How many reports each release rests on, by step."""
    return [(row.step, json.loads(row.payload)["n"]) for row in world.rows(question)]


def theirs_of(world: World) -> OpenAsk:
    return next(ask for ask in world.open if ask.question == "theirs")


@pytest.mark.parametrize("method", ["_estimate", "_fold", "sketch_shape", "refusal"])
def test_its_question_waits_and_continues_after_the_repair(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    world = World(two_questions(), STEP + 1.0)
    for seed in range(10):
        assert one_device(world.collector, seed).accepted == 2
    monkeypatch.setattr(TheirGRR, "broken", method)
    receipts = [one_device(world.collector, seed) for seed in range(10, 20)]
    reports = 10 if method == "_fold" else 20
    if method == "_fold":
        assert {(receipt.accepted, *(reason for _, reason in receipt.rejected)) for receipt in receipts} == {
            (1, "over_quota")
        }, "a device keeps a report that is refused for this reason"
    (why,) = world.at(2 * STEP + LATE + 1.0).collector.failed.values()
    raised = "TheirGRR raised InvalidValue" if method == "refusal" else f"TheirGRR.{method} raised ValueError: boom"
    assert raised in why
    assert counted(world, "ours") == [(1, 20.0)]
    assert counted(world, "theirs") == []
    assert set(world.begin().collector.failed.values()) == {why} or method == "_fold"  # nothing is folded at a start
    monkeypatch.undo()
    assert world.begin().collector.failed == {}
    assert counted(world, "theirs") == [(1, float(reports))]
    assert one_device(world.collector, 30).accepted == 2


def test_a_report_that_it_cannot_count_is_malformed_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone may send any report that the format allows: it must not stop the question."""
    world = World(two_questions(), STEP + 1.0)
    monkeypatch.setattr(TheirGRR, "broken", "one value")
    batch = Batch("two", 1, theirs_of(world).name, bytes(range(48)), bytes([0, 2, 1]))
    (receipt,) = world.collector.ingest([Frame(world.collection.collection_id, batch=batch)])
    assert receipt.accepted == 2
    assert [reason for _, reason in receipt.rejected] == ["malformed"]
    assert world.at(2 * STEP + LATE + 1.0).collector.failed == {}
    assert counted(world, "theirs") == [(1, 2.0)]


@pytest.mark.parametrize(("broken", "reason"), [("_fold", "over_quota"), ("one value", "malformed")])
def test_a_shuffled_batch_that_it_cannot_count_is_not_accepted(
    monkeypatch: pytest.MonkeyPatch, broken: str, reason: str
) -> None:
    """After "over_quota" the shuffler sends it again; a batch that was neither counted nor refused would be lost."""
    world = World(two_questions(), STEP + 1.0)
    monkeypatch.setattr(TheirGRR, "broken", broken)
    ask = theirs_of(world)
    reports, readable = ask.opener.open_each([bytes([value]) for value in (0, 2, 1)])
    assert readable.all()
    batch = OpenedBatch(ask.name, b"d" * 32, reports, fakes=0, unreadable=0, repeated=0, checks=0, lost=0)
    (receipt,) = world.collector.ingest([Frame(world.collection.collection_id, shuffled=batch)])
    assert (receipt.accepted, receipt.rejected) == (0, [(str(ask.name), reason)])
    assert (ask.failure is not None) == (reason == "over_quota")
