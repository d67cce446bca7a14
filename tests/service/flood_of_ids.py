"""Many forged ids to one ask, through everything but the network; then a restart, in a process of its own.

    python flood_of_ids.py FOLDER [COUNT]

Sends COUNT ids, or starts again over what is stored. Prints one line of JSON.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from hubbub import Random
from hubbub.collection import ManualClock
from hubbub.service.base.limits import Limits, RefusedRequest
from hubbub.service.collector.collector import Collector
from hubbub.service.store.report_ids import Ids
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from tests.service.exact_world import EXACT
from tests.service.process import COLLECTION, peak_memory
from tests.shared.in_process import start_collector

BATCH = 50_000


def opened(folder: Path) -> Collector:
    limits = Limits(rate=1e12, burst=1 << 50)  # only the ceilings are in the way, and they are the usual ones
    return start_collector(COLLECTION, ManualClock(1000.0), SqliteStore(folder / "store.db"), limits=limits)


def flood(folder: Path, count: int) -> dict[str, Any]:
    collector, rng = opened(folder), Random(seed=1)
    (ask,) = collector.board.asks.values()
    hole = b"\xaa" * (16 * BATCH)
    reports = EXACT.randomize([3] * BATCH, Random(seed=0))
    frame = encode_batch(COLLECTION.name, COLLECTION.version, ask.name, hole, reports)
    before, after = frame.split(hole)
    began, shed, longest, first = time.monotonic(), 0, 0.0, 0
    for _ in range(count // BATCH):
        body, then = before + rng.bytes(16 * BATCH) + after, time.monotonic()
        try:
            collector.ingest([collector.admit(BATCH_TYPE, body)])
        except RefusedRequest:
            shed += BATCH
        longest = max(longest, time.monotonic() - then)
        first = first or peak_memory()  # with everything loaded that one batch needs
    collector.tick()
    grown = peak_memory() - first
    return {"held": len(ask.ids), "shed": shed, "longest": longest, "grown": grown, **told(folder, began)}


def start(folder: Path) -> dict[str, Any]:
    began = time.monotonic()
    collector = opened(folder)
    (ask,) = collector.board.asks.values()
    made = told(folder, began)
    page = next(iter(collector.store.id_pages(ask.key)))
    known = ask.ids.look(Ids.from_bytes(page))
    return {"held": len(ask.ids), "n": ask.sketch.n, "known": int((known == 1).sum()), **made}


def told(folder: Path, began: float) -> dict[str, Any]:
    seconds, peak = time.monotonic() - began, peak_memory()
    disk = sum(path.stat().st_size for path in folder.glob("store.db*"))
    return {"seconds": seconds, "cpu": time.process_time(), "memory": peak, "disk": disk}


if __name__ == "__main__":
    where, *count = sys.argv[1:]
    print(json.dumps(flood(Path(where), int(float(count[0]))) if count else start(Path(where))))
