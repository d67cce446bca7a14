"""Processes that keep single reports and are killed at every point of it: none may be lost, none be there twice.

    python keep_and_die.py FOLDER STRIDE [STORE ...]

In a file of SQLite for every point, or in one of the stores given. A child process is forked for every point: a
statement of a transaction, the bytes of a file, its name, its removal. It kills itself there with SIGKILL; the next
one goes on from what is left. Prints how many points there were.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from hubbub import Random
from hubbub.collection import Collection, Keys, ManualClock
from hubbub.mechanisms import MECHANISMS
from hubbub.service.collector.collector import Collector
from hubbub.service.kept.archive import Archive
from hubbub.service.kept.raw_reports import kept_reports
from hubbub.service.store import open_store
from hubbub.service.store.sql import Store
from tests.service.exact_world import Exact, batch_frame, exact_collection

DAY = 86400
STEPS = 3


def collection() -> Collection:
    return replace(exact_collection(step=3600, lateness=60, keep=True), retention_days=1)


class Fuse:
    """Kills the process at a point."""

    def __init__(self, points: int) -> None:
        self.left = points

    def burn(self, act: Any, *arguments: Any, **keywords: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return act(*arguments, **keywords)

    def arm(self) -> None:
        for owner, name in ((os, "replace"), (os, "fsync"), (pq, "write_table"), (Path, "unlink")):
            setattr(owner, name, self._wrapped(getattr(owner, name)))
        for kind in (Store, *Store.__subclasses__()):
            for name in ("_write", "_changed"):
                if name in vars(kind) and not getattr(vars(kind)[name], "__isabstractmethod__", False):
                    setattr(kind, name, self._wrapped(getattr(kind, name)))

    def _wrapped(self, act: Any) -> Any:
        def wrapped(*arguments: Any, **keywords: Any) -> Any:
            return self.burn(act, *arguments, **keywords)

        return wrapped


def live(url: str, folder: Path, fuse: Fuse | None) -> None:
    """Three steps of ten reports each; then all of it expires. From wherever an earlier life ended."""
    store = open_store(url)
    if fuse is not None:
        fuse.arm()
    begun = collection()
    place = folder / "clock"
    clock = ManualClock(float(place.read_text()) if place.exists() else 100.0 * DAY + 200)
    collector = Collector(
        [begun], store, clock=clock, keys=Keys(b"k" * 32), rng=Random(seed=1), archive=Archive(folder / "r")
    )
    while clock.now() < 100 * DAY + 3600 * STEPS + 200:
        for open_ask in collector.board.open(begun.collection_id, clock.now()):
            values = list(range(10))
            ids = [Random(seed=1000 * open_ask.ask.step + value).bytes(16) for value in values]
            for half in (slice(5), slice(5, 10)):
                collector.ingest([batch_frame(begun, open_ask.ask, ids[half], values[half])])
        clock.advance(3600)
        place.write_text(str(clock.now()))
        collector.tick()
    if not (folder / "checked").exists():
        check(collector)
        (folder / "checked").touch()
    clock.advance(DAY + 3600 * (STEPS + 1))
    collector.tick()
    collector.store.close()


def check(collector: Collector) -> None:
    begun = collection()
    counts: Counter[tuple[int, int]] = Counter()
    where = begun.collection_id, "all"
    for step, reports in kept_reports(collector.store, collector.archive, *where, first=0, last=1 << 40):
        counts.update((step, int(value)) for value in reports.private["value"])
    wanted = {(2400 + step, value) for step in range(STEPS) for value in range(10)}
    assert set(counts) == wanted, "lost"
    assert set(counts.values()) == {1}, "twice"


def main() -> None:
    MECHANISMS["Exact"] = Exact
    folder, stride, urls = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    killed = 0
    for number in range(len(urls) or 10_000):
        point = number * stride
        here = folder / str(point)
        here.mkdir()
        own = urls[number] if urls else f"sqlite:///{here / 'store.db'}"
        child = os.fork()
        if not child:
            try:
                live(own, here, Fuse(point))
                os._exit(0)
            except BaseException as error:
                print(f"point {point}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, point
        killed += os.WIFSIGNALED(status)
        again = os.fork()
        if not again:
            try:
                live(own, here, None)
                store = open_store(own)
                left = sorted(path.name for path in (here / "r").iterdir())
                assert left == sorted(store.archive_names()) == [], left
                os._exit(0)
            except BaseException as error:
                print(f"after {point}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                os._exit(1)
        _, ended = os.waitpid(again, 0)
        assert os.WEXITSTATUS(ended) == 0, point
        if not os.WIFSIGNALED(status):
            break
    print(killed)


if __name__ == "__main__":
    main()
