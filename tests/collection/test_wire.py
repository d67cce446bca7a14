"""Uploads and batches: what is sent comes back, and nothing else is believed."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hubbub as hb
from hubbub.collection import Collection
from hubbub.collection.frame import entry_bytes, frame_bytes, report_size
from hubbub.collection.wire import (
    Batch,
    Entry,
    Upload,
    decode_batch,
    decode_upload,
    decode_upload_json,
    encode_batch,
    encode_upload,
    encode_upload_json,
    json_size,
)
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.reports import Reports
from hubbub.mechanisms import MECHANISMS
from hubbub.protocols.ask import Ask

COLLECTION, ASK = "0123456789abcdef" * 2, "fedcba9876543210" * 2
GRR = hb.GRR(epsilon=1.0, domain=4)
REPORT = GRR.randomize([3], hb.Random(seed=1)).to_bytes()
ENTRIES = [Entry(ASK, bytes([k]) * 16, REPORT) for k in range(3)]
BATCH = GRR.randomize([0, 1, 2, 3], hb.Random(seed=1))

identifiers = st.text("0123456789abcdef", min_size=32, max_size=32)
entries = st.builds(Entry, identifiers, st.binary(min_size=16, max_size=16), st.binary(max_size=300))


@given(identifiers, st.lists(entries, max_size=5), st.integers(0, 70_000))
@settings(max_examples=300, deadline=None)
def test_an_upload_comes_back_at_any_size(collection: str, sent: list[Entry], spare: int) -> None:
    size = frame_bytes(sum(entry_bytes(len(entry.report)) for entry in sent)) + spare
    frame = encode_upload(collection, sent, size)
    assert len(frame) == size
    assert decode_upload(frame) == Upload(collection, sent)
    readable = encode_upload_json(collection, sent, size)
    assert len(readable) == json_size(size)
    assert decode_upload_json(readable) == Upload(collection, sent)
    assert json.loads(readable)["collection"] == collection


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.data())
@settings(max_examples=100, deadline=None)
def test_a_batch_comes_back(values: list[int], data: st.DataObject) -> None:
    reports = GRR.randomize(values, hb.Random(seed=len(values)))
    ids = data.draw(st.binary(min_size=16 * len(values), max_size=16 * len(values)))
    assert decode_batch(encode_batch(COLLECTION, ASK, ids, reports)) == Batch(COLLECTION, ASK, ids, reports)


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_travels_and_its_size_is_known(name: str) -> None:
    for mechanism in MECHANISMS[name].examples():
        values = mechanism.example_values(4)
        for value in values:
            report = mechanism.randomize([value], hb.Random(seed=1))
            assert len(report.to_bytes()) == report_size(mechanism)
            sent = Entry(ASK, b"i" * 16, report.to_bytes())
            size = frame_bytes(entry_bytes(report_size(mechanism)))
            assert decode_upload(encode_upload(COLLECTION, [sent], size)).entries[0].reports() == report
            assert decode_upload_json(encode_upload_json(COLLECTION, [sent], size)).entries[0].reports() == report


def test_all_answers_of_a_step_fit_the_frame(everything: Collection) -> None:
    """Two of an adaptive stream, at the epsilons that its first steps ask with."""
    sent = []
    for name, question in everything.questions.items():
        ask = next(everything.protocol(name))
        assert isinstance(ask, Ask)
        report = ask.mechanism.randomize(ask.view([everything.missing(question.field)]), hb.Random(seed=1))
        sent += [Entry(ask.ask_id, b"i" * 16, report.to_bytes())] * (2 if question.adaptive else 1)
    assert everything.frame_bytes % 1024 == 0
    assert len(encode_upload(everything.collection_id, sent, everything.frame_bytes)) == everything.frame_bytes
    assert len(encode_upload_json(everything.collection_id, sent, everything.frame_bytes)) == 2 * everything.frame_bytes


def test_cover_is_a_frame_like_any_other() -> None:
    assert decode_upload(encode_upload(COLLECTION, [], 1024)) == Upload(COLLECTION, [])


@pytest.mark.parametrize("encode", [encode_upload, encode_upload_json])
def test_what_does_not_fit_is_not_sent(encode: Callable[[str, Sequence[Entry], int], bytes]) -> None:
    with pytest.raises(InvalidValue, match="size"):
        encode(COLLECTION, ENTRIES * 10, 1024)


# -- hostile bytes -----------------------------------------------------------------------------------------------------

FRAME = encode_upload(COLLECTION, ENTRIES, 1024)
JSON_FRAME = encode_upload_json(COLLECTION, ENTRIES, 1024)
BATCH_FRAME = encode_batch(COLLECTION, ASK, bytes(64), BATCH)
pack = msgspec.msgpack.encode
ENTRY = (ASK, b"i" * 16, REPORT)


@pytest.mark.parametrize(
    "data",
    [
        None,
        "text",
        b"",
        FRAME[:-1],
        FRAME + b"\0",
        FRAME[:-1] + b"\1",
        BATCH_FRAME,
        JSON_FRAME,
        pack((2, COLLECTION, [ENTRY], b"")),
        pack((1.0, COLLECTION, [ENTRY], b"")),
        pack((True, COLLECTION, [ENTRY], b"")),
        pack((1, COLLECTION, [ENTRY])),
        pack((1, COLLECTION, [ENTRY], b"", b"")),
        pack((1, COLLECTION.upper(), [ENTRY], b"")),
        pack((1, COLLECTION[1:], [ENTRY], b"")),
        pack((1, COLLECTION.encode(), [ENTRY], b"")),
        pack((1, COLLECTION, [ENTRY[:2]], b"")),
        pack((1, COLLECTION, [(*ENTRY, 1)], b"")),
        pack((1, COLLECTION, [(ASK + "0", b"i" * 16, REPORT)], b"")),
        pack((1, COLLECTION, [(ASK, b"i" * 15, REPORT)], b"")),
        pack((1, COLLECTION, [(ASK, "i" * 16, REPORT)], b"")),
        pack((1, COLLECTION, [(ASK, b"i" * 16, "report")], b"")),
        pack((1, COLLECTION, [ENTRY] * 5000, b"")),
        pack((1, COLLECTION, {"0": ENTRY}, b"")),
        # An array that claims 2^32 entries: refused before memory is asked for.
        b"\x94\x01\xd9\x20" + b"0" * 32 + b"\xdd\xff\xff\xff\xff" + b"\x93" * 500,
        b"\x94\x01\xd9\x20" + b"\xff" * 32 + b"\x90\xc4\x00",
        b"\x91" * 100_000,
    ],
)
def test_uploads_that_are_refused(data: Any) -> None:
    with pytest.raises(DecodeError):
        decode_upload(data)


def spelt(**change: Any) -> bytes:
    entry = {"ask": ASK, "id": "69" * 16, "report": base64.b64encode(REPORT).decode(), **change.pop("entry", {})}
    return json.dumps({"collection": COLLECTION, "entries": [entry], "pad": "00", **change}).encode()


def test_a_readable_upload_may_be_written_by_hand() -> None:
    (entry,) = decode_upload_json(spelt()).entries
    assert (entry.ask_id, entry.report_id, entry.report) == (ASK, b"i" * 16, REPORT)


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"null",
        b"[]",
        JSON_FRAME[:-1],
        JSON_FRAME + b"x",
        FRAME,
        spelt(pad="01"),
        spelt(pad=3),
        spelt(more=1),
        spelt(collection=COLLECTION[1:]),
        spelt(collection=None),
        spelt(entries={}),
        spelt(entries=[[]]),
        spelt(entry={"more": 1}),
        spelt(entry={"id": "69" * 15}),
        spelt(entry={"id": "6 " * 16}),
        spelt(entry={"id": "AB" * 16}),
        spelt(entry={"report": "not base64!"}),
        spelt(entry={"report": 3}),
        spelt(entry={"ask": "\ud800" * 32}),
        b'{"collection":"' + b"\xff" * 32 + b'","entries":[]}',
        b"[" * 100_000,
        b'{"collection":' * 100_000,
    ],
)
def test_readable_uploads_that_are_refused(data: Any) -> None:
    with pytest.raises(DecodeError):
        decode_upload_json(data)


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        BATCH_FRAME[:-1],
        BATCH_FRAME + b"\0",
        FRAME,
        pack((1, COLLECTION, ASK, bytes(64), BATCH.to_bytes())),
        pack((2, COLLECTION, ASK, bytes(63), BATCH.to_bytes())),
        pack((2, COLLECTION, ASK, bytes(80), BATCH.to_bytes())),
        pack((2, COLLECTION, ASK, b"", BATCH[:0].to_bytes())),
        pack((2, COLLECTION, "ask", bytes(64), BATCH.to_bytes())),
        pack((2, "c", ASK, bytes(64), BATCH.to_bytes())),
        pack((2, COLLECTION, ASK, bytes(64), BATCH.to_bytes()[:-1])),
        pack((2, COLLECTION, ASK, bytes(64), GRR.accumulate(BATCH).to_bytes())),
        pack((2, COLLECTION, ASK, bytes(64), BATCH.to_bytes(), b"")),
    ],
)
def test_batches_that_are_refused(data: Any) -> None:
    with pytest.raises(DecodeError):
        decode_batch(data)


def test_an_entry_is_one_report() -> None:
    with pytest.raises(DecodeError, match="one report"):
        Entry(ASK, b"i" * 16, BATCH.to_bytes()).reports()
    with pytest.raises(DecodeError):
        Entry(ASK, b"i" * 16, REPORT[:-1]).reports()
    public = Reports("0" * 32, public={"seed": np.uint8([1])}, private={"y": np.uint8([1])}).to_bytes()
    with pytest.raises(DecodeError):  # no private column: well formed, and no report
        Entry(ASK, b"i" * 16, public.replace(b"\xa7private", b"\xa6public")).reports()


def test_a_hostile_entry_is_not_encoded() -> None:
    for entry in (Entry("ask", b"i" * 16, b""), Entry(ASK, b"i", b"")):
        with pytest.raises(DecodeError):
            encode_upload(COLLECTION, [entry], 1024)
        with pytest.raises(DecodeError):
            encode_upload_json(COLLECTION, [entry], 1024)
    with pytest.raises(DecodeError):
        encode_batch(COLLECTION, ASK, b"", BATCH)


# -- fuzzing -----------------------------------------------------------------------------------------------------------

DECODERS: dict[str, tuple[bytes, Callable[[bytes], Any]]] = {
    "upload": (encode_upload(COLLECTION, ENTRIES, 450), decode_upload),
    "json": (encode_upload_json(COLLECTION, ENTRIES, 450), decode_upload_json),
    "batch": (BATCH_FRAME, decode_batch),
    "report": (REPORT, lambda data: Entry(ASK, b"i" * 16, data).reports()),
}


def survive(decode: Callable[[bytes], Any], data: bytes) -> bool:
    """Whether bytes were taken; refusing them in any other way than by DecodeError fails the test."""
    try:
        decode(data)
    except DecodeError:
        return False
    return True


@pytest.mark.parametrize("kind", DECODERS)
@given(data=st.binary(max_size=600))
@settings(max_examples=1000, deadline=None)
def test_any_bytes_are_taken_or_refused(kind: str, data: bytes) -> None:
    survive(DECODERS[kind][1], data)


tree = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats()
    | st.text()
    | st.binary()
    | st.sampled_from([1, 2, COLLECTION, ASK, REPORT, b"i" * 16, BATCH.to_bytes(), "reports", "private", "u1"]),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=20,
)


@pytest.mark.parametrize("kind", ["upload", "batch", "report"])
@given(value=tree)
@settings(max_examples=300, deadline=None)
def test_any_msgpack_is_taken_or_refused(kind: str, value: Any) -> None:
    survive(DECODERS[kind][1], pack(value))


def mutate(rng: random.Random, data: bytes) -> bytes:
    """A frame with one to four small harms: a byte changed, bytes cut out, doubled, or put in."""
    harmed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(harmed) + 1)
        match rng.randrange(5):
            case 0:
                harmed[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del harmed[at : at + rng.randint(1, 8)]
            case 2:
                harmed[at:at] = harmed[at : at + rng.randint(1, 40)]
            case 3:
                harmed[at:at] = rng.randbytes(rng.randint(1, 4))
            case _:
                harmed[at : at + 1] = rng.choice(
                    (b"\xdd\xff\xff\xff\xff", b"\xc6\x7f\xff\xff\xff", b"\xcf", b"\xc0", b"{")
                )
    return bytes(harmed)


def fuzz(kind: str, frames: int) -> int:
    rng = random.Random(f"{kind} {frames}")
    frame, decode = DECODERS[kind]
    return sum(survive(decode, mutate(rng, frame)) for _ in range(frames))


@pytest.mark.parametrize("kind", DECODERS)
def test_harmed_frames_are_taken_or_refused(kind: str) -> None:
    taken = fuzz(kind, 5_000)
    assert 0 < taken < 1_000  # most harms are seen; what is taken differs in bytes that may be anything, such as an id


@pytest.mark.slow
@pytest.mark.parametrize("kind", DECODERS)
def test_a_million_harmed_frames(kind: str) -> None:
    fuzz(kind, 250_000)


@given(st.integers(0, len(FRAME) - 1), st.integers(1, 255))
@settings(max_examples=500, deadline=None)
def test_a_changed_byte_is_seen_or_is_in_what_it_says(place: int, flip: int) -> None:
    """No byte of a frame is ignored: it is refused, or it decodes to something else."""
    harmed = bytearray(FRAME)
    harmed[place] ^= flip
    if survive(decode_upload, bytes(harmed)):
        assert decode_upload(bytes(harmed)) != decode_upload(FRAME)
