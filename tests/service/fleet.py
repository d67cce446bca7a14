"""Senders under load for a collector in a process of its own, and what its store says afterwards."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time

import numpy as np

from hubbub import Random, Reports, Sketch
from hubbub.collection import open_sealed
from hubbub.collection.names import AnswerName
from hubbub.service.store import open_store
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from hubbub.wire.upload import UPLOAD_TYPE, Entry, encode_upload
from tests.service.exact_world import EXACT, SIZE, exact_collection
from tests.service.process import Process

COLLECTION = exact_collection(step=86400, lateness=3600)
SENDERS = 4


class Fleet:
    """Senders that try until they are answered. Reports have unique ids; a value is a cell that many share, so that
    all acknowledged reports of a cell must add up."""

    def __init__(self) -> None:
        self.port = 0
        self.ask = AnswerName("all", 0, 0, 1, 0)
        self.stopped, self.given_up = threading.Event(), threading.Event()
        self.acknowledged = np.zeros(SIZE, dtype=np.int64)
        self.retries = 0
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(SENDERS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self.stopped.set()
        for thread in self._threads:
            thread.join()

    def wait_for_reports(self, process: Process, count: int = 500, seconds: float = 60.0) -> None:
        """Wait until `count` more reports are acknowledged, the process ends, or the time is over."""
        wanted, end = self.acknowledged.sum() + count, time.monotonic() + seconds
        while self.acknowledged.sum() < wanted and process.process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)

    def _send(self, number: int) -> None:
        draw = random.Random(number)
        while not self.stopped.is_set():
            count = draw.choice((1, 1, 1, 50, 500))
            values = [draw.randrange(SIZE) for _ in range(count)]
            ids = [draw.randbytes(16) for _ in range(count)]
            kind, frame = self._frame(ids, values)
            while not self._post(kind, frame, count):  # the same bytes until they are acknowledged
                if self.given_up.is_set():
                    return
                with self._lock:
                    self.retries += 1
                time.sleep(0.01)
            with self._lock:
                np.add.at(self.acknowledged, values, 1)

    def _frame(self, ids: list[bytes], values: list[int]) -> tuple[str, bytes]:
        reports: Reports = EXACT.randomize(values, Random(seed=0))
        if len(values) == 1:
            entry = Entry(*self.ask, ids[0], reports.to_bare())
            return UPLOAD_TYPE, encode_upload(COLLECTION.name, 1, [entry], COLLECTION.frame_bytes)
        return BATCH_TYPE, encode_batch(COLLECTION.name, 1, self.ask, b"".join(ids), reports)

    def _post(self, kind: str, frame: bytes, count: int) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("POST", "/v1/reports", frame, {"Content-Type": kind})
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        if answer.status == 503:
            return False
        assert answer.status == 200, body
        document = json.loads(body)
        assert document["rejected"] == []
        assert document["accepted"] + document["duplicates"] == count
        return True


def ask_of(process: Process) -> AnswerName:
    document = process.get("/v1/collections/exact/asks")
    (ask,) = open_sealed(document, bytes.fromhex(document["key"]))["asks"]
    return AnswerName(ask["question"], ask["run"], int(ask["ask"]["step"]), ask["round"], ask["part"])


def stored(url: str) -> Sketch:
    store = open_store(url)
    try:
        era = store.era(COLLECTION.collection_id, "all")
        assert era is not None
        (row,) = store.asks(era)
        assert store.counts()[COLLECTION.collection_id, "accepted"] == Sketch.from_bytes(row.sketch).n
        return Sketch.from_bytes(row.sketch)
    finally:
        store.close()
