"""Many forged ids to one ask, through everything but the network; then a restart, in a process of its own.

    python flood_of_ids.py flood|start FOLDER [COUNT]

Prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from hubbub import Random
from hubbub.collection import Keys, ManualClock
from hubbub.service.base.limits import Limits
from hubbub.service.collector.collector import Collector
from hubbub.service.ingest.frames import RefusedRequest
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from tests.service.exact_world import EXACT, exact_collection

BATCH = 50_000
COLLECTION = exact_collection(step=86400, lateness=3600)


def opened(folder: Path) -> Collector:
    limits = Limits(rate=1e12, burst=1 << 50)  # only the ceilings are in the way, and they are the usual ones
    store = SqliteStore(folder / "store.db")
    return Collector([COLLECTION], store, clock=ManualClock(1000.0), keys=Keys(b"k" * 32), limits=limits)


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
    return {"held": len(ask.ids), "shed": shed, "longest": longest, "grown": grown, **told(collector, began)}


def start(folder: Path) -> dict[str, Any]:
    began = time.monotonic()
    collector = opened(folder)
    (ask,) = collector.board.asks.values()
    made = told(collector, began)
    page = next(iter(collector.store.id_pages(ask.key)))
    from hubbub.service.base.ids import Ids

    known = ask.ids.look(Ids.from_bytes(page))
    return {"held": len(ask.ids), "n": ask.sketch.n, "known": int((known == 1).sum()), **made}


def peak_memory() -> int:
    """The most memory this process has held. Linux's getrusage would count its parent's from before the exec."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def told(collector: Collector, began: float) -> dict[str, Any]:
    seconds, peak = time.monotonic() - began, peak_memory()
    disk = sum(path.stat().st_size for path in Path(collector.store._path).parent.glob("store.db*"))  # type: ignore[attr-defined]
    return {"seconds": seconds, "cpu": time.process_time(), "memory": peak, "disk": disk}


if __name__ == "__main__":
    what, where, *more = sys.argv[1:]
    print(json.dumps(flood(Path(where), int(float(more[0]))) if what == "flood" else start(Path(where))))
