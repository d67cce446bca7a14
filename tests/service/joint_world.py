"""Several processes over one store: as programs that are killed and stopped, and in this process, where a world moves
them."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hubbub import Random, Sketch
from hubbub.collection import open_sealed
from hubbub.collection.names import AnswerName
from hubbub.collection.time import Clock
from hubbub.questions.collection import Collection
from hubbub.service.collector.joint import JointCollector
from hubbub.service.store.base import StoreFailed
from hubbub.service.store.joint import JointStore
from hubbub.service.store.postgres import PostgresStore
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from hubbub.wire.upload import UPLOAD_TYPE, Entry, encode_upload
from tests.served import ServedProcess, requested, wait_for
from tests.service.exact_world import EXACT, SIZE, exact_collection
from tests.service.once_world import Crash, OnceWorld
from tests.shared.in_process import KEYS, run_in

PROGRAM = Path(__file__).parent / "serve_joint.py"
STEP, LATENESS = 3, 1
COLLECTION = exact_collection(step=STEP, lateness=LATENESS)


# -- in this process ---------------------------------------------------------------------------------------------


class CrashingJoint(JointStore):
    """A store whose process can be made to die at a statement of a transaction, or right after it."""

    fuse: int | None = None

    def _write(self, sql: str, *values: object) -> list[Any]:
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                raise Crash
        return super()._write(sql, *values)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with super()._transaction():
            yield
        if self.fuse is not None:  # it outlived the transaction: it dies before anyone is told
            raise Crash


def start_joint(collection: Collection, clock: Clock, url: str, *, shards: int = 4, **options: Any) -> JointCollector:
    """One of several collectors, which gives signs of life when a test lets it."""
    store = CrashingJoint(url, Random(), shards=shards)
    options = {"keys": KEYS, "rng": Random(seed=1), "beats": False, **options}
    return JointCollector([collection], store, url=url, clock=clock, **options)


def gone(collector: JointCollector) -> None:
    """A process is killed: its connections end, and nobody hears from it."""
    collector.store.close()
    connection = collector.lease._connection
    if connection is not None:
        connection.close()


def light(collector: JointCollector, fuse: int | None) -> None:
    """Have a collector die after some statements of its store; or not."""
    assert isinstance(collector.store, CrashingJoint)
    collector.store.fuse = fuse


def lease_over(store: JointStore) -> None:
    """Have the lease of whoever leads run out."""
    run_in(store, "UPDATE leader SET until = clock_timestamp() - INTERVAL '1 second'")


class JointWorld(OnceWorld):
    """A world of two collectors: what arrives, arrives at either; either may die, and the leader may lose its lease."""

    def __init__(self, seed: int, url: str, steps: int = 20) -> None:
        self.url, self.partitions = url, 0
        self.both: list[JointCollector] = []
        super().__init__(seed, steps=steps)

    def run(self) -> OnceWorld:
        operations = (self.send,) * 8 + (self.wait,) * 4 + (self.die, self.part)
        for _ in range(self.steps):
            self.collector = self.draw.choice(self.both)
            self.draw.choice(operations)()
        self.clock.advance(500.0)
        if not any(each.leads for each in self.both):
            lease_over(self.both[0].store)
            self._tick(self.both[0])
        for each in self.both:
            light(each, None)
            self._tick(each)
        self.collector = self.both[0]
        self.store = self.collector.store
        self.reckon()
        for each in self.both:
            gone(each)
        return self

    def send(self) -> None:
        sender = self.collector
        assert isinstance(sender, JointCollector)
        if self.draw.random() < 0.15:
            light(sender, self.draw.randrange(14))
        super().send()
        light(sender, None)

    def wait(self) -> None:
        self.clock.advance(self.draw.choice((1.0, 7.0, 25.0, 60.0)))
        if not any(each.leads for each in self.both) and self.draw.random() < 0.5:
            lease_over(self.both[0].store)
        for each in self.draw.sample(self.both, self.draw.choice((1, 2, 2))):
            if each not in self.both:
                continue
            if self.draw.random() < 0.1:
                light(each, self.draw.randrange(14))
            self._tick(each)
            light(each, None)

    def part(self) -> None:
        """The leader is cut off until another leads; when it comes back it may write nothing."""
        leaders = [each for each in self.both if each.leads]
        if not leaders:
            return
        (leader,) = leaders
        other = next(each for each in self.both if each is not leader)
        lease_over(other.store)
        other.tick()
        assert other.leads
        self.clock.advance(self.draw.choice((1.0, 60.0)))
        if self.draw.random() < 0.5:
            other.tick()
        leader.lease.beat = lambda: None  # type: ignore[method-assign]  # it has not heard
        with contextlib.suppress(StoreFailed):  # it may find nothing to do
            leader.tick()
        self.partitions += 1
        self._replace(leader)

    def _tick(self, each: JointCollector) -> None:
        self.collector = each
        self._alive(each.tick)

    def _start(self) -> None:
        self.crashes += 1
        while len(self.both) < 2:
            self.both.append(start_joint(self.collection, self.clock, self.url, shards=1 + 3 * (self.seed % 2)))
            self.collector = self.both[-1]
        if self.crashes > 1:
            assert isinstance(self.collector, JointCollector)
            self._replace(self.collector)
        self.store = self.collector.store
        self._remember_finals()

    def _replace(self, victim: JointCollector) -> None:
        self.both.remove(victim)
        gone(victim)
        led = victim.leads and victim.store.epoch == self.both[0].store.leadership().epoch
        if led and self.draw.random() < 0.7:
            lease_over(self.both[0].store)  # else nobody leads for a while
        self.both.append(start_joint(self.collection, self.clock, self.url, shards=1 + 3 * (self.seed % 2)))
        self.collector = self.both[-1]
        self.store = self.collector.store


# -- programs ----------------------------------------------------------------------------------------------------


class Crew:
    """Parents with their workers, started one after the other over one store."""

    def __init__(self, url: str, folder: Path, workers: int = 2) -> None:
        self.url, self.folder, self.workers = url, folder, workers
        self.parents: list[ServedProcess] = []
        self.join()

    def join(self) -> ServedProcess:
        """Start another parent."""
        command = [sys.executable, str(PROGRAM), self.url, str(self.folder / "hubbub-keys")]
        command += [str(STEP), str(LATENESS), str(self.workers)]
        self.parents.append(ServedProcess(command, self.folder))
        return self.parents[-1]

    def leave(self, parent: ServedProcess) -> None:
        """Stop a parent in order."""
        self.parents.remove(parent)
        assert parent.stop() == 0, parent.log

    @property
    def ports(self) -> list[int]:
        return [parent.port for parent in self.parents]

    def logged(self, event: str) -> list[dict[str, Any]]:
        return [line for parent in self.parents for line in parent.logged(event)]

    def leader(self) -> tuple[int, int]:
        """The epoch and the process of the latest leader."""
        return max((line["epoch"], line["pid"]) for line in self.logged("leads"))

    def pids(self) -> list[int]:
        """The workers that live, as far as the logs tell."""
        return [line["pid"] for line in self.logged("worker ready") if alive(line["pid"])]

    def wait_for_leader(self, after: int) -> float:
        """Wait for a later epoch. Returns the seconds that it took."""
        began = time.monotonic()
        wait_for(lambda: self.leader()[0] > after)
        return time.monotonic() - began

    def kill(self) -> None:
        for parent in self.parents:
            parent.kill()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class StepFleet:
    """Senders that answer whatever is asked, at any of the processes, and try until they are answered.

    All reports to an ask that were acknowledged must be in its sums, and no others.
    """

    def __init__(self, crew: Crew, senders: int = 3) -> None:
        self.crew, self.stopped = crew, threading.Event()
        self.acknowledged: dict[AnswerName, np.ndarray[Any, Any]] = {}
        self.refused: Counter[str] = Counter()
        self.retries = 0
        self.failure: BaseException | None = None
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(senders)]
        for thread in self._threads:
            thread.start()

    @property
    def total(self) -> int:
        with self._lock:
            return int(sum(counts.sum() for counts in self.acknowledged.values()))

    def wait_for_reports(self, count: int = 300) -> None:
        wanted = self.total + count
        wait_for(lambda: self.total >= wanted or self.failure is not None)
        self.check()

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def stop(self) -> None:
        self.stopped.set()
        for thread in self._threads:
            thread.join()
        self.check()

    def _run(self, number: int) -> None:
        try:
            draw = random.Random(number)
            while not self.stopped.is_set():
                self._send(draw)
        except BaseException as error:
            self.failure = error

    def _port(self, draw: random.Random) -> int:
        return draw.choice(self.crew.ports)

    def _send(self, draw: random.Random) -> None:
        ask = self._ask(draw)
        if ask is None:
            time.sleep(0.02)
            return
        count = draw.choice((1, 1, 1, 40, 300))
        values = [draw.randrange(SIZE) for _ in range(count)]
        ids, reports = [draw.randbytes(16) for _ in range(count)], EXACT.randomize(values, Random(seed=0))
        if count == 1:
            entry = Entry(*ask, ids[0], reports.to_bare())
            kind, frame = UPLOAD_TYPE, encode_upload(COLLECTION.name, 1, [entry], COLLECTION.frame_bytes)
        else:
            kind, frame = BATCH_TYPE, encode_batch(COLLECTION.name, 1, ask, b"".join(ids), reports)
        while (receipt := self._post(draw, kind, frame)) is None:
            with self._lock:
                self.retries += 1
            time.sleep(0.02)
        reasons = {entry["reason"] for entry in receipt["rejected"]}
        with self._lock:
            if reasons:
                assert reasons == {"late"}, receipt
                assert len(receipt["rejected"]) == count, "a part of a batch"
                self.refused["late"] += count
            else:
                assert receipt["accepted"] + receipt["duplicates"] == count
                counts = self.acknowledged.setdefault(ask, np.zeros(SIZE, dtype=np.int64))
                np.add.at(counts, values, 1)

    def _ask(self, draw: random.Random) -> AnswerName | None:
        try:
            status, body = requested(self._port(draw), "/v1/collections/exact/asks", timeout=10)
        except (OSError, http.client.HTTPException):
            return None
        if status != 200:
            return None
        document = json.loads(body)
        asks = open_sealed(document, bytes.fromhex(document["key"]))["asks"]
        if not asks:
            return None
        ask = asks[0]
        return AnswerName(ask["question"], ask["run"], int(ask["ask"]["step"]), ask["round"], ask["part"])

    def _post(self, draw: random.Random, kind: str, frame: bytes) -> dict[str, Any] | None:
        try:
            status, body = requested(self._port(draw), "/v1/reports", frame, {"Content-Type": kind}, timeout=10)
        except (OSError, http.client.HTTPException):
            return None
        if status == 503:
            return None
        assert status == 200, body
        receipt: dict[str, Any] = json.loads(body)
        return receipt


def reckon(url: str, fleet: StepFleet, *, least: int) -> int:
    """Compare what is stored with what was acknowledged. Returns how many steps had reports."""
    store = PostgresStore(url)  # as a collector that is alone, which adds up what each process counted
    try:
        era = store.era(COLLECTION.collection_id, "all")
        assert era is not None
        rows = list(store.asks(era))
        assert len({(row.step, row.round, row.part) for row in rows}) == len(rows)
        total = 0
        for row in rows:
            name = AnswerName("all", 0, row.step, row.round, row.part)
            sketch = Sketch.from_bytes(row.sketch)
            counts = fleet.acknowledged.pop(name, np.zeros(SIZE, dtype=np.int64))
            assert sketch.counts.tolist() == counts.tolist(), f"lost, or counted twice, in step {row.step}"
            total += sketch.n
        assert not fleet.acknowledged, "acknowledged, and no such ask"
        assert total >= least
        assert store.counts()[COLLECTION.collection_id, "accepted"] == total, "counters that are wrong"
        releases = store.releases(COLLECTION.collection_id, "all", 0, 1 << 40, 100_000)
        finals = {row.step: Sketch.from_bytes(row.sketch).n for row in rows if row.final}
        told = {row.step: json.loads(row.payload)["n"] for row in releases}
        assert all(told[step] == finals[step] for step in told), "a release of other reports than those of its step"
        steps = sorted(told)
        assert steps == list(range(steps[0], steps[-1] + 1)), "a step without a release"
        return len(steps)
    finally:
        store.close()
