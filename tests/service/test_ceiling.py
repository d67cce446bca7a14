"""Ceilings of reports: memory, disk and the time of a start are bounded, and exactly once goes on to hold."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hubbub.collection import ManualClock
from hubbub.collection.names import AnswerName
from hubbub.core.errors import InvalidValue
from hubbub.service.base.limits import Ceilings
from hubbub.service.collector.collector import Collector, Limits
from hubbub.service.http.metrics import metrics_text
from hubbub.service.http.service import Service
from hubbub.service.ingest.frames import Frame
from hubbub.service.ingest.open_asks import OpenAsk
from hubbub.service.rounds import rounds
from hubbub.service.store.sql import Store
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from hubbub.wire.upload import UPLOAD_TYPE
from tests.service.exact_world import batch_frame, exact_collection, upload_frame
from tests.service.once_world import KEYS, small_pages
from tests.service.web import Web, problem, website

COLLECTION = exact_collection()


def opened(store: Store, now: float = 1000.0, **ceilings: int) -> Collector:
    limits = Limits(ceilings=Ceilings(**ceilings))
    return Collector([COLLECTION], store, clock=ManualClock(now), keys=KEYS, limits=limits)


def only(collector: Collector) -> OpenAsk:
    return next(iter(collector.board.asks.values()))


def numbered(collector: Collector, numbers: range, *, alone: bool = False) -> Frame:
    make = upload_frame if alone else batch_frame
    ids = [number.to_bytes(16, "big") for number in numbers]
    return make(COLLECTION, only(collector).ask, ids, [number % 100 for number in numbers])


@pytest.mark.parametrize("alone", [True, False])
def test_beyond_the_ceiling_nothing_is_counted_and_everyone_is_told(alone: bool):
    collector = opened(SqliteStore(":memory:"), ask=1000)
    first, second, third = (numbered(collector, range(at, at + 400), alone=alone) for at in (0, 400, 800))
    receipts = collector.ingest([first, second, third, first])
    assert [receipt.accepted for receipt in receipts] == [400, 400, 200, 0]
    assert receipts[3].duplicates == 400
    assert Counter(reason for _, reason in receipts[2].rejected) == {"over_ceiling": 200}
    assert only(collector).sketch.n == len(only(collector).ids) == 1000
    assert [receipt.duplicates for receipt in collector.ingest([second, third])] == [400, 200]
    assert collector.counts()[COLLECTION.collection_id, "over_ceiling"] == 400
    assert 'outcome="over_ceiling"} 400' in metrics_text(Service(collector))
    again = opened(collector.store, ask=1000)
    assert again.ingest([numbered(again, range(5000, 5001))])[0].rejected[0][1] == "over_ceiling"


def test_what_repeats_a_report_beyond_the_ceiling_is_beyond_it_too():
    collector = opened(SqliteStore(":memory:"), ask=1)
    frame = numbered(collector, range(2))
    receipts = collector.ingest([frame, frame])
    assert [(receipt.accepted, receipt.duplicates) for receipt in receipts] == [(1, 0), (0, 1)]
    assert [reason for receipt in receipts for _, reason in receipt.rejected] == ["over_ceiling"] * 2


def test_all_asks_together_have_a_ceiling():
    collector = opened(SqliteStore(":memory:"), ask=100, held=150)
    collector.ingest([numbered(collector, range(100))])
    assert isinstance(collector.clock, ManualClock)
    collector.clock.set(1100.0)
    collector.tick()
    first, second = collector.board.asks.values()
    frame = batch_frame(COLLECTION, second.ask, [bytes(15) + bytes([row]) for row in range(60)], [1] * 60)
    assert collector.ingest([frame])[0].accepted == 50
    collector.clock.set(1110.0 + rounds.MARGIN)
    collector.tick()  # the ids of the first are gone
    assert first.key not in collector.board.asks
    receipt = collector.ingest([frame])[0]
    assert (receipt.accepted, receipt.duplicates) == (10, 50)
    assert collector.board.room(second) == 40


def test_a_question_that_keeps_its_reports_has_a_lower_one():
    keeping = exact_collection(keep=True)
    limits = Limits(ceilings=Ceilings(kept_ask=3))
    collector = Collector([keeping], SqliteStore(":memory:"), clock=ManualClock(1000.0), keys=KEYS, limits=limits)
    ids = [bytes(15) + bytes([row]) for row in range(5)]
    assert collector.ingest([batch_frame(keeping, only(collector).ask, ids, [1] * 5)])[0].accepted == 3
    assert len(collector.store.kept_segments(only(collector).key)) == 1


def test_a_batch_to_a_full_ask_is_refused_as_a_whole_and_a_device_is_told_of_its_report():
    with website(Limits(ceilings=Ceilings(ask=3))) as web:
        assert web.post(UPLOAD_TYPE, web.frame(*(web.entry(1) for _ in range(3)))).json()["accepted"] == 3
        document = web.post(UPLOAD_TYPE, web.frame(web.entry(1))).json()
        assert [rejection["reason"] for rejection in document["rejected"]] == ["over_ceiling"]
        before = web.state()
        answer = web.post(BATCH_TYPE, batch(web, 7))
        assert (answer.status_code, problem(answer), answer.headers["retry-after"]) == (429, "over_ceiling", "60")
        assert web.state() == before
        assert web.counts()["over_ceiling"] == 8
        assert web.post(UPLOAD_TYPE, web.frame(web.entry(50, web.ask("old")))).json()["accepted"] == 1


def batch(web: Web, n: int) -> bytes:
    ask = web.ask()
    reports = ask.mechanism.randomize([1] * n, web.draw)
    return encode_batch(web.collection.name, web.collection.version, web.name(), web.draw.bytes(16 * n), reports)


def test_a_ceiling_is_at_least_one():
    with pytest.raises(InvalidValue, match=r"ceiling of reports \(ask\): got 0; allowed: at least 1"):
        Ceilings(ask=0)


# -- the ids themselves ----------------------------------------------------------------------------------------


def test_single_reports_fill_pages_one_after_another(reopen: Callable[[], Store]):
    """However many commits there were, a start reads few rows."""
    store = reopen()
    with small_pages():
        collector = opened(store)
        for number in range(10):
            collector.ingest([numbered(collector, range(number, number + 1), alone=True)])
        assert [len(page) // 24 for page in store.id_pages(only(collector).key)] == [3, 3, 3, 1]
        collector.ingest([numbered(collector, range(10, 11), alone=True)])
        assert [len(page) // 24 for page in store.id_pages(only(collector).key)] == [3, 3, 3, 1, 1]
        again = opened(reopen())
        assert again.ingest([numbered(again, range(12))])[0].duplicates == 11


def test_ids_are_deleted_some_at_a_time_and_the_ask_is_forgotten_with_the_last(reopen: Callable[[], Store]):
    store = reopen()
    with small_pages():
        collector = opened(store)
        key = only(collector).key
        collector.ingest([numbered(collector, range(20))])  # seven pages, of which two are deleted at a time
        left = []
        now = 1110.0 + rounds.MARGIN
        for _ in range(2):
            collector.clock.set(now)  # type: ignore[attr-defined]
            collector.tick()
            left.append(store.count_id_pages(key))
        store = reopen()
        collector = opened(store, now)
        while (key, True) in store.asks_with_ids():
            left.append(store.count_id_pages(key))
            collector.tick()
        assert left == [5, 3, 1]
        assert store.count_id_pages(key) == 0
        assert store.knows(key.collection, AnswerName("all", 0, 10, 1, 0))


def test_what_an_earlier_version_left_open_is_deleted_some_at_a_time_too():
    store = SqliteStore(":memory:")
    with small_pages():
        collector = opened(store)
        key = only(collector).key
        collector.ingest([numbered(collector, range(20))])
        newer = Collector([exact_collection(version=2)], store, clock=ManualClock(1000.0 + 86400 * 365), keys=KEYS)
        left = [store.count_id_pages(key)]
        while left[-1]:
            newer.tick()
            left.append(store.count_id_pages(key))
        assert left == [5, 3, 1, 0]
        newer.tick()  # retention waits until they are gone
        assert not store.knows(key.collection, AnswerName("all", 0, 10, 1, 0))


# -- a flood, with the ceilings as they are unless someone changes them ----------------------------------------


def flooded(folder: Path, what: str, *more: int) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).with_name("flood_of_ids.py")), what, str(folder), *map(str, more)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=3600)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_million_ids_take_little_memory_and_are_known_after_a_restart(tmp_path: Path):
    sent = flooded(tmp_path, "flood", 1_000_000)
    assert (sent["held"], sent["shed"]) == (1_000_000, 0)
    again = flooded(tmp_path, "start")
    assert again["held"] == again["n"] == 1_000_000
    assert again["known"] == 512
    assert sent["grown"] < 48 << 20  # a table of all ids would take 48 to 96 bytes each
    assert max(sent["memory"], again["memory"]) < 400 << 20
    assert sent["disk"] < 60 << 20


@pytest.mark.slow
def test_a_hundred_million_ids_in_one_step(tmp_path: Path):
    sent = flooded(tmp_path, "flood", 100_000_000)
    assert (sent["held"], sent["held"] + sent["shed"]) == (Ceilings().ask, 100_000_000)
    again = flooded(tmp_path, "start")
    assert again["held"] == again["n"] == Ceilings().ask
    print(sent, again)
    assert max(sent["memory"], again["memory"]) < 1 << 30
    assert sent["disk"] < 1 << 30
    assert again["seconds"] < 20
