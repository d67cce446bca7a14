"""Hostile bytes by the ten thousand: every frame is decided on, and what is accepted is counted exactly."""

from __future__ import annotations

import random

import numpy as np
import pytest

from hubbub import Random
from hubbub.authoring import load_collection
from hubbub.collection import Collection, ManualClock
from hubbub.service.collector.collector import Collector, Limits
from hubbub.service.ingest.frames import TYPES, Frame, RefusedRequest
from hubbub.service.store.sqlite import SqliteStore
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from hubbub.wire.upload import JSON_TYPE, UPLOAD_TYPE, Entry, encode_upload, encode_upload_json
from tests.service.web import KEYS, THEMES

MORE = """
[questions.cells]
kind = "histogram"
field = "age"
epsilon = 1.0
mechanism = "OUE"

[questions.hashed]
kind = "histogram"
field = "age"
epsilon = 1.0
mechanism = "OLH"
"""
QUICK, ALL = 30_000, 1_000_000


def seeds(collection: Collection, collector: Collector, rng: Random) -> list[tuple[str, bytes]]:
    """Honest frames of every kind."""
    frames = []
    for open_ask in collector.board.asks.values():
        mechanism, values = open_ask.ask.mechanism, open_ask.ask.mechanism.example_values(3)
        reports = mechanism.randomize(values, rng)
        entries = [
            Entry(*open_ask.name, rng.bytes(16), reports[row : row + 1].to_bare()) for row in range(len(values))
        ][:2]
        place = collection.name, collection.version
        frames += [
            (UPLOAD_TYPE, encode_upload(*place, entries, collection.frame_bytes)),
            (JSON_TYPE, encode_upload_json(*place, entries, collection.frame_bytes)),
            (BATCH_TYPE, encode_batch(*place, open_ask.name, rng.bytes(16 * len(values)), reports)),
        ]
    return frames


def spoilt(draw: random.Random, data: bytes, others: list[tuple[str, bytes]]) -> bytes:
    body = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 5))):
        how, at = draw.randrange(8), draw.randrange(len(body) + 1)
        if how < 3 and at < len(body):
            # Most of an upload is padding: spoil what matters.
            body[draw.randrange(min(len(body), 400))] = draw.randrange(256)
        elif how == 3:
            body = body[:at]
        elif how == 4:
            body[at:at] = draw.randbytes(draw.randrange(1, 9))
        elif how == 5:
            del body[at : at + draw.randrange(1, 9)]
        elif how == 6:
            other = draw.choice(others)[1]
            start = draw.randrange(len(other))
            body[at : at + 40] = other[start : start + 40]
        else:
            body[at : at + 9] = draw.choice(
                (b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xdf", b"\xc1", b"\x00")
            )
        if not body:
            break
    return bytes(body)


def fuzz(count: int, seed: int) -> None:
    draw, rng = random.Random(seed), Random(seed=seed)
    collection = load_collection(THEMES.replace("event = 2.0", "event = 4.0") + MORE)
    limits = Limits(most_bytes=1 << 16, rate=1e12, burst=1 << 40)
    store = SqliteStore(":memory:")
    collector = Collector([collection], store, clock=ManualClock(1000.0), keys=KEYS, limits=limits)
    honest = seeds(collection, collector, rng)
    accepted = refused = 0
    waiting: list[Frame] = []
    for number in range(count):
        kind, data = draw.choice(honest)
        if draw.random() < 0.02:
            kind = draw.choice(TYPES)
        try:
            waiting.append(collector.admit(kind, spoilt(draw, data, honest)))
        except RefusedRequest:
            refused += 1
        if len(waiting) == 200 or number == count - 1:
            for receipt in collector.ingest(waiting):
                accepted += receipt.accepted
            waiting = []
    assert refused > count / 4
    assert accepted > count / 1000
    assert sum(open_ask.sketch.n for open_ask in collector.board.asks.values()) == accepted
    for open_ask in collector.board.asks.values():
        assert len(open_ask.ids) == open_ask.sketch.n
        if open_ask.sketch.n:
            assert np.isfinite(open_ask.ask.mechanism.estimate(open_ask.sketch).value).all()
    counts = collector.counts()
    assert counts[collection.collection_id, "accepted"] == accepted
    again = Collector([collection], store, clock=ManualClock(1000.0), keys=KEYS)
    for key, open_ask in collector.board.asks.items():
        assert again.board.asks[key].sketch == open_ask.sketch
        assert len(again.board.asks[key].ids) == len(open_ask.ids)


def test_thirty_thousand_frames():
    fuzz(QUICK, 1)


@pytest.mark.slow
def test_a_million_frames():
    fuzz(ALL, 2)


def test_the_seeds_are_honest():
    collection = load_collection(THEMES.replace("event = 2.0", "event = 4.0") + MORE)
    collector = Collector([collection], SqliteStore(":memory:"), clock=ManualClock(1000.0), keys=KEYS)
    for kind, data in seeds(collection, collector, Random(seed=3)):
        (receipt,) = collector.ingest([collector.admit(kind, data)])
        assert receipt.rejected == []
        assert receipt.accepted + receipt.duplicates > 0
