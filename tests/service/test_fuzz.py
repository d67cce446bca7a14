"""Hostile bytes by the ten thousand: every frame is decided on, and what is accepted is counted exactly."""

import random

import numpy as np
import pytest

from hubbub import OLH, Random, Reports
from hubbub.authoring import load_collection
from hubbub.core.errors import HubbubError
from hubbub.mechanisms.base import Mechanism
from hubbub.questions.collection import Collection
from hubbub.service.base.limits import RefusedRequest
from hubbub.service.collector.collector import Collector, Limits
from hubbub.service.ingest.frames import TYPES, Frame
from hubbub.service.ingest.open_asks import ReportOpener
from hubbub.wire.batches import BATCH_TYPE, encode_batch
from hubbub.wire.upload import JSON_TYPE, UPLOAD_TYPE, Entry, encode_upload, encode_upload_json
from tests.service.web import THEMES
from tests.shared.in_process import World, randomized

MORE = "".join(
    f'[questions.{name.lower()}]\nkind = "histogram"\nfield = "age"\nepsilon = 1.0\nmechanism = "{name}"\n'
    for name in ("OUE", "OLH")
)
QUICK, ALL = 30_000, 1_000_000


def seeds(collection: Collection, collector: Collector, rng: Random) -> list[tuple[str, bytes]]:
    """Honest frames of every kind."""
    frames = []
    for open_ask in collector.board.asks.values():
        reports = randomized(open_ask.ask, open_ask.ask.mechanism.example_values(3), rng)
        entries = [Entry(*open_ask.name, rng.bytes(16), reports[row : row + 1].to_bare()) for row in (0, 1)]
        place = collection.name, collection.version
        frames += [
            (UPLOAD_TYPE, encode_upload(*place, entries, collection.frame_bytes)),
            (JSON_TYPE, encode_upload_json(*place, entries, collection.frame_bytes)),
            (BATCH_TYPE, encode_batch(*place, open_ask.name, rng.bytes(16 * len(reports)), reports)),
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
            body[at : at + 9] = draw.choice((b"\xdd" + b"\xff" * 4, b"\xc6" + b"\xff" * 4, b"\xdf", b"\xc1", b"\x00"))
        if not body:
            break
    return bytes(body)


def four_questions() -> World:
    collection = load_collection(THEMES.replace("event = 2.0", "event = 4.0") + MORE)
    return World(collection, 1000.0, limits=Limits(most_bytes=1 << 16, rate=1e12, burst=1 << 40))


def fuzz(count: int, seed: int) -> None:
    draw, rng, world = random.Random(seed), Random(seed=seed), four_questions()
    collection, collector = world.collection, world.collector
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
            assert isinstance(open_ask.ask.mechanism, Mechanism)
            assert np.isfinite(open_ask.ask.mechanism.estimate(open_ask.sketch).value).all()
    counts = collector.counts()
    assert counts[collection.collection_id, "accepted"] == accepted
    again = world.begin().collector.board.asks
    for key, open_ask in collector.board.asks.items():
        assert again[key].sketch == open_ask.sketch
        assert len(again[key].ids) == len(open_ask.ids)


def test_thirty_thousand_frames():
    fuzz(QUICK, 1)


@pytest.mark.slow
def test_a_million_frames():
    fuzz(ALL, 2)


# -- the fast reader of single reports accepts what the slow one accepts, and nothing else ---------------------


def slow(mechanism: Mechanism, data: bytes) -> Reports | None:
    try:
        reports = Entry("popular", 0, 7, 1, 0, bytes(16), data).reports(mechanism)
        mechanism.check(reports)
    except HubbubError:
        return None
    return reports


def test_what_clients_send_is_read_as_they_meant_it(mechanism: Mechanism):
    reports = mechanism.randomize((mechanism.example_values(4) * 10)[:20], Random(seed=1))
    read, good = ReportOpener(mechanism).open_each([reports[row : row + 1].to_bare() for row in range(20)])
    assert good.all()
    assert read == reports


def test_nothing_at_all_is_read():
    read, good = ReportOpener(OLH(epsilon=1.0, domain=8)).open_each([])
    assert (len(read), len(good)) == (0, 0)


def test_spoilt_reports_are_refused_by_both_readers(mechanism: Mechanism):
    draw = random.Random(7)
    clean = mechanism.randomize(mechanism.example_values(2), Random(seed=2))[:1].to_bare()
    tried = []
    for _ in range(400):
        data = bytearray(clean)
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        if draw.randrange(4) == 0:
            del data[draw.randrange(len(data)) :]
        elif draw.randrange(4) == 0:
            data += draw.randbytes(draw.randrange(1, 9))
        tried.append(bytes(data))
    read, good = ReportOpener(mechanism).open_each(tried)
    expected = [slow(mechanism, data) for data in tried]
    for report, accepted in zip(expected, good, strict=True):
        assert (report is not None) or not accepted  # it accepts nothing that the slow reader refuses
    accepted_reports = [report for report, accepted in zip(expected, good, strict=True) if accepted and report]
    assert all(read[row : row + 1] == report for row, report in enumerate(accepted_reports))
    for report, spelt, accepted in zip(expected, tried, good, strict=True):
        if report is not None and report.to_bare() == spelt:
            assert accepted  # nor does it refuse what is spelt as clients spell it
    for report in accepted_reports:
        mechanism.accumulate(report)  # and all of it can be counted
