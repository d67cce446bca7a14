"""Protocols that raise, wherever they are: a study ends and says why, a stream waits for its repair, others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

import pytest

from hubbub import OLH, Estimate
from hubbub.collection import ManualClock
from hubbub.core.errors import InvalidValue
from hubbub.core.plugins import guard
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Count, Protocol, Release
from hubbub.service.collector.collector import Collector
from hubbub.service.store.base import ReleaseRow
from hubbub.service.store.sqlite import SqliteStore
from tests.service import study_world
from tests.service.study_world import LATENESS, ROUND, START, CommonQuestion, Crowd, study_collection
from tests.service.test_studies import start_collector, stops, told

CROWD = Crowd(600)
STEP = 3600


def failing(protocol: Protocol, messages: int, error: Exception) -> Protocol:
    """The same protocol, which raises after a number of messages."""
    heard = None
    for _ in range(messages):
        heard = yield protocol.send(heard)
    raise error


BOOM = ValueError("boom")


def fail_after(monkeypatch: pytest.MonkeyPatch, kind: type[Any], messages: int, error: Exception = BOOM) -> None:
    whole = kind.protocol
    monkeypatch.setattr(kind, "protocol", lambda *given, **options: failing(whole(*given, **options), messages, error))
    guard(kind)  # its new method too


@pytest.mark.parametrize("messages", range(6))  # two parts, a count, two asks, a release, and after that
@pytest.mark.parametrize("foreign", [True, False], ids=["another package's", "hubbub's own"])
def test_a_study_that_raises_ends_once_and_says_why(
    monkeypatch: pytest.MonkeyPatch, messages: int, foreign: bool
) -> None:
    collection = study_collection()
    if foreign:
        fail_after(monkeypatch, CommonQuestion, messages)
    else:
        whole = CommonQuestion.protocol
        own = lambda *given, **options: failing(whole(*given, **options), messages, BOOM)  # noqa: E731
        monkeypatch.setattr(CommonQuestion, "protocol", own)
    clock, store = ManualClock(float(START)), SqliteStore(":memory:")
    collector = start_collector(store, clock, collection)
    for number in (1, 2, 3):
        CROWD.send_all(collector)
        clock.set(START + ROUND * number + LATENESS)
        collector.tick()
    *releases, (run, why) = stops(told(collector, collection))
    assert run == 0
    assert why is not None
    assert "raised ValueError: boom" in why
    assert ("CommonQuestion.protocol" in why) == foreign
    assert releases == [(0, None)] * (messages == 5), "what it released before is kept"
    assert store.running_studies(collection.collection_id) == []
    monkeypatch.undo()
    collector = start_collector(store, clock, collection)
    assert not collector.board.open(collection.collection_id, clock.now()), "it never begins anew"


ONE_NUMBER = {"estimate": Estimate([0.5], [0.1], 10)}
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
    whole, collection = CommonQuestion.protocol, study_collection()

    def protocol(*given: Any, **options: Any) -> Any:
        for message in messages(next(whole(*given, **options))):  # type: ignore[arg-type]  # noqa: UP028 - no answers
            yield message

    monkeypatch.setattr(CommonQuestion, "protocol", protocol)
    clock, store = ManualClock(float(START)), SqliteStore(":memory:")
    collector = start_collector(store, clock, collection)
    CROWD.send_all(collector)
    clock.set(START + ROUND + LATENESS)
    collector.tick()
    (run, stopped) = stops(store.releases(collection.collection_id, "common", 0, 0, 2000))[-1]
    assert run == 0
    assert stopped is not None
    assert why in stopped
    assert not collector.board.open(collection.collection_id, clock.now())


def stream_collector(store: SqliteStore, clock: ManualClock) -> Collector:
    return start_collector(store, clock, study_collection(stream=True, start=50 * STEP))


def stream(server: Collector, clock: ManualClock, steps: range) -> list[ReleaseRow]:
    """Let the crowd answer both rounds of some steps; all that was released."""
    for step in steps:
        for half in (0, 1):
            clock.set(step * STEP + half * STEP / 2 + LATENESS + 1.0)
            server.tick()
            CROWD.send_all(server)
    clock.set((steps[-1] + 1) * STEP + LATENESS + 1.0)
    server.tick()
    (collection,) = server.collections.values()
    return server.store.releases(collection.collection_id, "tested", 0, 99, 99)


@pytest.mark.parametrize("error", [BOOM, InvalidValue("epsilon", 0, "more")], ids=["a program's error", "a refusal"])
@pytest.mark.parametrize("messages", range(1, 9))  # two parts, a count, an ask and a release; and those of step 2
def test_a_stream_that_raises_waits_for_its_repair_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, messages: int, error: Exception
) -> None:
    """Begun again, it fails at the same place; once it is repaired, it releases what it would have released."""
    clock = ManualClock(STEP + 1.0)
    expected = stream(stream_collector(SqliteStore(":memory:"), clock), clock, range(1, 3))
    assert [row.step for row in expected] == [1, 2]
    store, clock = SqliteStore(":memory:"), ManualClock(STEP + 1.0)
    fail_after(monkeypatch, study_world.TestedQuestion, messages, error)
    broken = stream_collector(store, clock)
    before = stream(broken, clock, range(1, 3))
    (why,) = broken.failed.values()
    assert f"TestedQuestion.protocol raised {type(error).__name__}: {error}" in why
    assert stream_collector(store, clock).failed == broken.failed
    assert [(row.step, row.payload) for row in before] == [(row.step, row.payload) for row in expected[: len(before)]]
    monkeypatch.undo()
    repaired = stream_collector(store, clock)
    assert repaired.failed == {}
    after = stream(repaired, clock, range(3, 4))
    assert [row.step for row in after] == [1, 2, 3]
    whole_rounds = messages // 4 + (messages % 4 == 3)  # the steps of which both rounds were asked before it failed
    replayed = [(row.step, row.payload) for row in after[:whole_rounds]]
    assert replayed == [(row.step, row.payload) for row in expected[:whole_rounds]]


def rows_of(store: SqliteStore, table: str) -> int:
    ((count,),) = store._read(f"SELECT COUNT(*) FROM {table}")
    return int(count)


@pytest.mark.parametrize("restart", [False, True], ids=["goes on", "started again"])
@pytest.mark.parametrize("messages", [1, 2, 5])  # it fails when its asks are closed, at its count, and in step 2
def test_the_retention_is_kept_for_a_stream_that_waits_for_its_repair(
    monkeypatch: pytest.MonkeyPatch, messages: int, restart: bool
) -> None:
    store, clock = SqliteStore(":memory:"), ManualClock(STEP + 1.0)
    fail_after(monkeypatch, study_world.TestedQuestion, messages)
    server = stream_collector(store, clock)
    stream(server, clock, range(1, 3))
    server = stream_collector(store, clock) if restart else server
    assert len(server.failed) == 1
    assert rows_of(store, "sketches")
    assert rows_of(store, "reports")
    clock.advance(22 * STEP)
    server.tick()
    assert rows_of(store, "sketches"), "deleted before its time"
    for _ in range(4):
        clock.advance(2 * STEP)
        server.tick()
    for table in ("asks", "sketches", "id_pages", "reports", "snapshots", "candidate_counts"):
        assert not rows_of(store, table), table
    assert not [ask for ask in server.board.asks.values() if ask.question == "tested"]
    monkeypatch.undo()
    repaired = stream_collector(store, clock)
    after = stream(repaired, clock, range(34, 36))
    assert repaired.failed == {}
    assert [row.step for row in after][-2:] == [34, 35]


def test_an_open_ask_of_a_stream_that_fails_at_a_restart_still_counts_after_its_repair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, clock = SqliteStore(":memory:"), ManualClock(STEP + 1.0)
    open_asks = set(stream_collector(store, clock).board.asks)
    fail_after(monkeypatch, study_world.TestedQuestion, 0)
    assert len(stream_collector(store, clock).failed) == 1
    monkeypatch.undo()
    repaired = stream_collector(store, clock)
    assert set(repaired.board.asks) == open_asks, "closed too early"
    assert CROWD.send_all(repaired) == 600


def test_a_stream_that_fails_when_a_new_version_takes_it_over_is_taken_over_after_its_repair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def second_version() -> Collector:
        return start_collector(store, clock, study_collection(stream=True, start=50 * STEP, version=2))

    store, clock = SqliteStore(":memory:"), ManualClock(STEP + 1.0)
    stream(stream_collector(store, clock), clock, range(1, 2))
    fail_after(monkeypatch, study_world.TestedQuestion, 0)
    assert len(second_version().failed) == 1
    monkeypatch.undo()
    repaired = second_version()
    assert repaired.failed == {}
    (collection,) = repaired.collections.values()
    era = store.era(collection.collection_id, "tested")
    assert era is not None
    assert era.first == 1, "the era of the first version"


def test_a_stream_that_fails_when_the_clock_goes_back_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock(9 * STEP + 1.0)
    server = stream_collector(SqliteStore(":memory:"), clock)
    fail_after(monkeypatch, study_world.TestedQuestion, 0)
    clock.set(STEP + 1.0)
    server.tick()
    assert len(server.failed) == 1


def test_a_stream_of_another_package_that_sends_what_it_may_not_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    def protocol(*given: Any, **options: Any) -> Any:
        yield "hello"

    monkeypatch.setattr(study_world.TestedQuestion, "protocol", protocol)
    store, clock = SqliteStore(":memory:"), ManualClock(STEP + 1.0)
    for server in (stream_collector(store, clock), stream_collector(store, clock)):
        server.tick()
        (why,) = server.failed.values()
        assert "TestedQuestion.protocol raised OutOfOrder: the protocol sent a str" in why
