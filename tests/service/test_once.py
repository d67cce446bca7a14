"""Exactly once: no acknowledged report is lost, none is counted twice, whatever is dropped, repeated or killed."""

import os
import random
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.service.base.limits import Receipt
from hubbub.service.collector.collector import Collector
from hubbub.service.ingest import ingest
from hubbub.service.ingest.frames import Frame, ReportGroup
from hubbub.service.ingest.ingest import draft
from hubbub.service.ingest.open_asks import OpenAsk
from hubbub.service.store import open_store
from hubbub.service.store.base import StoreFailed
from hubbub.service.store.report_ids import DUPLICATE, FRESH, Ids, ReportIds
from hubbub.service.store.sql import Store
from hubbub.service.store.sqlite import SqliteStore
from tests.service.exact_world import batch_frame, exact_collection
from tests.service.once_world import OnceWorld, run_worlds, small_pages
from tests.shared.in_process import Reopen, World

QUICK = 40
ALL = 10_000


def run(seeds: range) -> None:
    workers = (os.cpu_count() or 1) if len(seeds) >= ALL else 1
    shares = [seeds[number::workers] for number in range(workers)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        run_them = map if workers == 1 else pool.map  # no process is started before it has something to do
        reports, counted, starts = (sum(column) for column in zip(*run_them(run_worlds, shares), strict=True))
    # The worlds are not empty ones.
    assert reports > 12 * len(seeds)
    assert counted > 4 * len(seeds)
    assert starts > 3 * len(seeds)


def test_many_worlds():
    run(range(QUICK))


@pytest.mark.slow
def test_ten_thousand_worlds():
    run(range(QUICK, QUICK + ALL))


def run_over(seed: int, reopen: Reopen) -> None:
    """Run a world whose store is opened again with every start."""
    opened = [reopen()]

    def restart(world: OnceWorld) -> Store:
        opened.append(reopen())
        return opened[-1]

    with small_pages():
        OnceWorld(seed, opened[0], restart).run()
    for store in opened:
        store.close()


def test_worlds_with_real_files(tmp_path: Path):
    for seed in range(10):
        run_over(seed, partial(SqliteStore, tmp_path / f"{seed}.db"))


def test_worlds_in_postgresql(postgres: Callable[[], str]):
    for seed in range(4):
        run_over(seed, partial(open_store, postgres()))


def test_no_id_escapes_after_a_restart(reopen: Reopen):
    """Fifty thousand ids in batches of every size, again and again: every one of them is known after each restart."""
    world, draw = World(exact_collection(), 1000.0, reopen), random.Random(4)
    ask = world.open[0].ask
    sent: list[Frame] = []
    while sum(frame.count for frame in sent) < 50_000:
        count = draw.choice((1, 7, 300, 1000))
        sent.append(batch_frame(world.collection, ask, [draw.randbytes(16) for _ in range(count)], [3] * count))
    for start in range(0, len(sent), 40):
        fresh = sent[start : start + 40]
        assert [receipt.accepted for receipt in world.collector.ingest(fresh)] == [frame.count for frame in fresh]
        world.begin()
        known = sent[: start + 40]
        draw.shuffle(known)
        for frame, receipt in zip(known, world.collector.ingest(known), strict=True):
            assert (receipt.accepted, receipt.duplicates) == (0, frame.count)
    (open_ask,) = world.open
    assert open_ask.sketch.n == len(open_ask.ids) == sum(frame.count for frame in sent)


# -- the simulation can fail: each planted fault is found ------------------------------------------------------


def found(worlds: int = 60) -> str:
    for seed in range(worlds):
        try:
            with small_pages():
                OnceWorld(seed).run()
        except AssertionError as error:
            return str(error).partition("\n")[0]
    return "nothing"


def test_it_finds_ids_that_are_not_looked_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ReportIds, "look", lambda self, ids: np.full(len(ids), FRESH, dtype=np.int8))
    assert found() in ("counted twice", "one id counted twice")


def test_it_finds_ids_that_a_restart_forgets(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ReportIds, "restore", lambda self, pages: None)
    assert "counted twice" in found()


def test_it_finds_an_acknowledgement_before_the_commit(monkeypatch: pytest.MonkeyPatch):
    def hasty(self: Collector, frames: list[Frame]) -> list[Receipt]:
        drafted = draft(frames, self.board, self.clock.now(), self.store.knows)
        drafted.apply(self.board)
        if len(frames) > 1:
            self._commit(drafted.changes)  # what came alone is never written
        return drafted.receipts

    monkeypatch.setattr(Collector, "ingest", hasty)
    try:
        fault = found()
    except StoreFailed as error:  # ids that are known, and not in the store
        fault = str(error)
    assert fault in (
        "the store does not hold the ids that it should",
        "acknowledged, and lost",
        "a window changed",
        "counters that are wrong",
        "kept otherwise than counted",
    )


def test_it_finds_repeats_of_late_reports_that_are_called_duplicates(monkeypatch: pytest.MonkeyPatch):
    def confused(ask: OpenAsk, answers: ReportGroup, now: float) -> NDArray[np.int8]:
        status = ask.ids.look(answers.ids)
        again = (status == FRESH) & (answers.ids.first_of_each() != np.arange(len(status)))
        status[again] = DUPLICATE
        status[(status == FRESH) & (not ask.takes(now))] = 3
        return status

    monkeypatch.setattr(ingest, "_status", confused)
    assert found(300) == "acknowledged, and lost"


def test_it_finds_repeats_within_a_group(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Ids, "first_of_each", lambda self: np.arange(len(self)))
    assert "counted twice" in found()


def test_it_finds_windows_that_take_reports_after_they_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(OpenAsk, "takes", lambda self, now: True)
    with pytest.raises(StoreFailed):  # the store itself refuses to change a closed sketch
        found()
