"""Ceilings of reports: memory, disk and the time of a start are bounded, and exactly once goes on to hold."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub import Random
from hubbub.collection import ManualClock
from hubbub.collection.names import AnswerName
from hubbub.core.errors import InvalidValue
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import Mechanism
from hubbub.service.base.limits import Ceilings
from hubbub.service.collector.collector import Collector, Limits
from hubbub.service.http.metrics import metrics_text
from hubbub.service.http.service import Service
from hubbub.service.ingest.frames import Frame
from hubbub.service.ingest.open_asks import OpenAsk
from hubbub.service.rounds import rounds
from hubbub.service.store import report_ids
from hubbub.service.store.base import StoreFailed
from hubbub.service.store.report_ids import DUPLICATE, FRESH, REPLAY, Ids, ReportIds, digests_of
from hubbub.service.store.sql import Store
from hubbub.wire.batches import BATCH_TYPE
from hubbub.wire.upload import UPLOAD_TYPE
from tests.service.exact_world import batch_frame, exact_collection, upload_frame
from tests.service.once_world import small_pages
from tests.service.web import problem, website
from tests.shared.in_process import Reopen, at, start_collector

COLLECTION = exact_collection()


def opened(store: Store | None = None, now: float = 1000.0, **ceilings: int) -> Collector:
    return start_collector(COLLECTION, ManualClock(now), store, limits=Limits(ceilings=Ceilings(**ceilings)))


def only(collector: Collector) -> OpenAsk:
    return next(iter(collector.board.asks.values()))


def numbered(collector: Collector, numbers: range, *, alone: bool = False) -> Frame:
    make = upload_frame if alone else batch_frame
    ids = [number.to_bytes(16, "big") for number in numbers]
    return make(COLLECTION, only(collector).ask, ids, [number % 100 for number in numbers])


@pytest.mark.parametrize("alone", [True, False])
def test_beyond_the_ceiling_nothing_is_counted_and_everyone_is_told(alone: bool):
    collector = opened(ask=1000)
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
    collector = opened(ask=1)
    frame = numbered(collector, range(2))
    receipts = collector.ingest([frame, frame])
    assert [(receipt.accepted, receipt.duplicates) for receipt in receipts] == [(1, 0), (0, 1)]
    assert [reason for receipt in receipts for _, reason in receipt.rejected] == ["over_ceiling"] * 2


def test_all_asks_together_have_a_ceiling():
    collector = opened(ask=100, held=150)
    collector.ingest([numbered(collector, range(100))])
    at(collector, 1100.0)
    first, second = collector.board.asks.values()
    frame = batch_frame(COLLECTION, second.ask, [bytes(15) + bytes([row]) for row in range(60)], [1] * 60)
    assert collector.ingest([frame])[0].accepted == 50
    at(collector, 1110.0 + rounds.MARGIN)  # the ids of the first are gone
    assert first.key not in collector.board.asks
    receipt = collector.ingest([frame])[0]
    assert (receipt.accepted, receipt.duplicates) == (10, 50)
    assert collector.board.room(second) == 40


def test_a_question_that_keeps_its_reports_has_a_lower_one():
    keeping = exact_collection(keep=True)
    limits = Limits(ceilings=Ceilings(kept_ask=3))
    collector = start_collector(keeping, ManualClock(1000.0), limits=limits)
    ids = [bytes(15) + bytes([row]) for row in range(5)]
    assert collector.ingest([batch_frame(keeping, only(collector).ask, ids, [1] * 5)])[0].accepted == 3
    assert len(collector.store.kept_segments(only(collector).key)) == 1


def test_a_batch_to_a_full_ask_is_refused_as_a_whole_and_a_device_is_told_of_its_report():
    with website(Limits(ceilings=Ceilings(ask=3))) as web:
        assert web.post(UPLOAD_TYPE, web.frame(*(web.entry(1) for _ in range(3)))).json()["accepted"] == 3
        document = web.post(UPLOAD_TYPE, web.frame(web.entry(1))).json()
        assert [rejection["reason"] for rejection in document["rejected"]] == ["over_ceiling"]
        before = web.state()
        answer = web.post(BATCH_TYPE, web.batch([1] * 7))
        assert (answer.status_code, problem(answer), answer.headers["retry-after"]) == (429, "over_ceiling", "60")
        assert web.state() == before
        assert web.counts()["over_ceiling"] == 8
        assert web.post(UPLOAD_TYPE, web.frame(web.entry(50, web.ask("old")))).json()["accepted"] == 1


def test_a_ceiling_is_at_least_one():
    with pytest.raises(InvalidValue, match=r"ceiling of reports \(ask\): got 0; allowed: at least 1"):
        Ceilings(ask=0)


# -- the ids themselves ----------------------------------------------------------------------------------------


def test_single_reports_fill_pages_one_after_another(reopen: Reopen):
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


def test_ids_are_deleted_some_at_a_time_and_the_ask_is_forgotten_with_the_last(reopen: Reopen):
    store = reopen()
    with small_pages():
        collector = opened(store)
        key = only(collector).key
        collector.ingest([numbered(collector, range(20))])  # seven pages, of which two are deleted at a time
        left = []
        now = 1110.0 + rounds.MARGIN
        for _ in range(2):
            at(collector, now)
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
    with small_pages():
        collector = opened()
        key, store = only(collector).key, collector.store
        collector.ingest([numbered(collector, range(20))])
        newer = start_collector(exact_collection(version=2), ManualClock(1000.0 + 86400 * 365), store)
        left = [store.count_id_pages(key)]
        while left[-1]:
            newer.tick()
            left.append(store.count_id_pages(key))
        assert left == [5, 3, 1, 0]
        newer.tick()  # retention waits until they are gone
        assert not store.knows(key.collection, AnswerName("all", 0, 10, 1, 0))


# -- a flood, with the ceilings as they are unless someone changes them ----------------------------------------


def flooded(folder: Path, *what: str) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).with_name("flood_of_ids.py")), str(folder), *what]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=3600)
    return dict(json.loads(done.stdout))


def test_a_million_ids_take_little_memory_and_are_known_after_a_restart(tmp_path: Path):
    sent = flooded(tmp_path, "1e6")
    assert (sent["held"], sent["shed"]) == (1_000_000, 0)
    again = flooded(tmp_path)
    assert again["held"] == again["n"] == 1_000_000
    assert again["known"] == 512
    assert sent["grown"] < 48 << 20  # a table of all ids would take 48 to 96 bytes each
    assert max(sent["memory"], again["memory"]) < 400 << 20
    assert sent["disk"] < 60 << 20


@pytest.mark.slow
def test_a_hundred_million_ids_in_one_step(tmp_path: Path):
    sent = flooded(tmp_path, "1e8")
    assert (sent["held"], sent["held"] + sent["shed"]) == (Ceilings().ask, 100_000_000)
    again = flooded(tmp_path)
    assert again["held"] == again["n"] == Ceilings().ask
    print(sent, again)
    assert max(sent["memory"], again["memory"]) < 1 << 30
    assert sent["disk"] < 1 << 30
    assert again["seconds"] < 20


# -- the set of ids against a plain dictionary; digests that do not depend on the company ----------------------


def some_ids(rng: Random, count: int) -> Ids:
    return Ids.of(rng.bytes(16 * count), rng.uint64(count))


def test_ids_survive_their_bytes():
    ids = some_ids(Random(seed=1), 100)
    again = Ids.from_bytes(ids.to_bytes())
    assert all((column == other).all() for column, other in zip(ids.columns, again.columns, strict=True))
    assert len(ids.to_bytes()) == 24 * 100
    assert len(Ids.concat([])) == 0
    with pytest.raises(InvalidValue, match="a multiple of 24"):
        Ids.from_bytes(bytes(23))
    with pytest.raises(InvalidValue, match="16 bytes for each of 2"):
        Ids.of(bytes(16), np.array([1, 2], dtype=np.uint64))


def test_digests_are_never_zero():
    assert (Ids.of(bytes(32), np.array([0, 2], dtype=np.uint64)).digest != 0).all()


class Pages:
    """What the store does for `ReportIds`."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.pages: dict[tuple[int, int], bytes] = {}
        self.parts: dict[int, set[int]] = {}
        self.reads = 0

    def read(self, numbers: list[int]) -> list[bytes]:
        self.reads += len(numbers)
        return [self.pages[number, 0] for number in numbers]

    def open(self) -> ReportIds:
        known_ids = ReportIds(self.rng, self.read)
        known_ids.restore(self.pages[number] for number in sorted(self.pages))
        return known_ids

    def add(self, known_ids: ReportIds, ids: Ids) -> None:
        for page, part, data in known_ids.written(ids):
            if not part:  # the page is written anew
                for old in self.parts.pop(page, ()):
                    del self.pages[page, old]
            self.parts.setdefault(page, set()).add(part)
            self.pages[page, part] = data
        known_ids.add(ids)


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 20))])
def test_the_set_agrees_with_a_dictionary(seed: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(report_ids, "PAGE", [1, 7, 512][seed % 3])
    monkeypatch.setattr(report_ids, "SMALLEST_BITS", [1, 4, 12][seed % 3])
    rng = Random(seed=seed)
    pages, digest_of = Pages(rng), dict[str, int]()
    known_ids = pages.open()
    known = some_ids(rng, 1)
    for _ in range(60):
        count = int(rng.uint64(1)[0] % 400)
        fresh = some_ids(rng, count)
        rows = (rng.uint64(30) % np.uint64(len(known))).astype(np.int64)
        batch = Ids.concat([fresh, known.take(rows)])
        changed = Ids(batch.a, batch.b, batch.digest ^ (rng.uint64(len(batch)) % np.uint64(2) << np.uint64(1)))
        status = known_ids.look(changed)
        for row in range(len(changed)):
            stored = digest_of.get(changed.hex(row))
            wanted = FRESH if stored is None else DUPLICATE if stored == changed.digest[row] else REPLAY
            assert status[row] == wanted
        pages.add(known_ids, fresh)
        if rng.uint64(1)[0] % 4 == 0:  # a restart
            known_ids = pages.open()
        digest_of |= {fresh.hex(row): fresh.digest[row] for row in range(count)}
        known = fresh if count else known
        assert len(known_ids) == len(digest_of)
        assert known_ids.pages == len({page for page, _ in pages.pages}) == -(-len(digest_of) // report_ids.PAGE)
        assert all(
            len(data) == 24 * report_ids.PAGE for (page, _), data in pages.pages.items() if page < known_ids.pages - 1
        )
    everything = Ids.concat(map(Ids.from_bytes, pages.pages.values()))
    assert len(everything) == len(digest_of)
    assert (known_ids.look(everything) == DUPLICATE).all()


def test_ids_that_fall_together_are_told_apart(monkeypatch: pytest.MonkeyPatch):
    # Whoever knew the keys could send ids that all fall into one bucket with one mark. Without keys all of them do.
    rng = Random(seed=3)
    pages = Pages(rng)
    known_ids = pages.open()
    monkeypatch.setattr(known_ids.index, "_keys", np.zeros((5, 2, 1), np.uint64))
    ids = some_ids(rng, 200)
    for start in range(0, 150, 30):
        pages.add(known_ids, ids.take(slice(start, start + 30)))
    assert known_ids.look(ids).tolist() == [DUPLICATE] * 150 + [FRESH] * 50


@pytest.mark.parametrize("shift", [0, 20, 32, 44, 54])
def test_nobody_can_choose_ids_that_fall_together(shift: int):
    """Ids of two words that differ in few bits, wherever these are. A multiplication alone keeps such a pattern: half
    of all pairs with shift 54 would then have one hash. Expected of 10,000 new ids: 10 to 15 look like a held one.
    """
    rng = Random(seed=shift)
    pages = Pages(rng)
    known_ids = pages.open()
    numbers = np.arange(1 << 18, dtype=np.uint64)
    a, b = ((numbers >> np.uint64(9)) << np.uint64(shift)), ((numbers & np.uint64(511)) << np.uint64(shift))
    ids = Ids(a, b, numbers * np.uint64(2) + np.uint64(1))
    stored_ids = ids.take(slice(0, None, 2))
    pages.add(known_ids, stored_ids)
    rows, _ = known_ids.index.find(ids.take(slice(1, 20_000, 2)))
    assert len(rows) < 100
    assert (known_ids.look(ids.take(slice(0, 1000))) == np.tile([DUPLICATE, FRESH], 500)).all()


def test_memory_is_a_few_bytes_an_id_and_new_ids_seldom_look_at_the_store():
    rng = Random(seed=6)
    pages = Pages(rng)
    known_ids = pages.open()
    for _ in range(20):
        pages.add(known_ids, some_ids(rng, 100_000))
    assert known_ids.memory < 20 * len(known_ids)  # of which the last two tables are nearly empty
    assert not pages.reads
    assert (known_ids.look(some_ids(rng, 100_000)) == FRESH).all()
    assert pages.reads < 300  # expected: 12 * 2^-16 of them in each of 6 tables, 110
    again = pages.open()
    assert (again.look(Ids.from_bytes(pages.pages[77, 0])) == DUPLICATE).all()


def test_a_store_that_lost_ids_is_not_believed():
    rng = Random(seed=7)
    pages = Pages(rng)
    known_ids = pages.open()
    ids = some_ids(rng, 2000)
    pages.add(known_ids, ids)
    pages.pages[1, 0] = pages.pages[1, 0][:-24]
    with pytest.raises(StoreFailed, match="does not hold the ids"):
        known_ids.look(ids)
    with pytest.raises(StoreFailed, match="a page is not whole"):
        pages.open()


def test_the_first_of_each_id_is_found():
    rng = Random(seed=4)
    pool = some_ids(rng, 50)
    rows = (rng.uint64(400) % np.uint64(50)).astype(np.int64)
    first = pool.take(rows).first_of_each()
    assert first.tolist() == [rows.tolist().index(row) for row in rows.tolist()]


def test_a_digest_is_that_of_the_report_alone(mechanism: Mechanism):
    values = (mechanism.example_values(4) * 25)[:50]
    reports = mechanism.randomize(values, Random(seed=5))
    digests = digests_of(reports)
    assert digests.tolist() == [int(digests_of(reports[row : row + 1])[0]) for row in range(50)]
    # Different reports have different digests: 50 of them collide with probability below 2^-52.
    spelt = [reports[row : row + 1].to_bytes() for row in range(50)]
    assert len(set(digests.tolist())) == len(set(spelt))


def test_reports_of_small_numbers_have_different_digests():
    first, second, third = np.unravel_index(np.arange(64 * 64 * 2), (64, 64, 2))
    reports = Reports("spec", public={"first": first, "second": second}, private={"third": third})
    assert len(np.unique(digests_of(reports))) == len(reports)
