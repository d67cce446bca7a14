"""Ids and their set against a plain dictionary; digests that do not depend on the company a report came in."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub import Random
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.base import Mechanism
from hubbub.service.base.ids import Ids, digests_of
from hubbub.service.ingest import report_ids
from hubbub.service.ingest import report_ids as id_filter
from hubbub.service.ingest.report_ids import DUPLICATE, FRESH, REPLAY, ReportIds
from hubbub.service.store.base import StoreFailed
from tests.service.every_mechanism import all_mechanisms


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
        Ids.of(bytes(16), np.uint64([1, 2]))


def test_digests_are_never_zero():
    assert (Ids.of(bytes(32), np.uint64([0, 2])).digest != 0).all()


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
    monkeypatch.setattr(id_filter, "_SMALLEST", [1, 4, 12][seed % 3])
    rng = Random(seed=seed)
    pages, digest_of = Pages(rng), {}
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
    monkeypatch.setattr(known_ids._index, "_keys", np.zeros((5, 2, 1), np.uint64))
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
    rows, _ = known_ids._index.find(ids.take(slice(1, 20_000, 2)))
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


@all_mechanisms
def test_a_digest_is_that_of_the_report_alone(mechanism: Mechanism):
    values = (mechanism.example_values(4) * 25)[:50]
    reports = mechanism.randomize(values, Random(seed=5))
    digests = digests_of(reports)
    assert digests.tolist() == [int(digests_of(reports[row : row + 1])[0]) for row in range(50)]
    # Different reports have different digests: 50 of them collide with probability below 2^-52.
    spelt = [reports[row : row + 1].to_bytes() for row in range(50)]
    assert len(set(digests.tolist())) == len(set(spelt))
