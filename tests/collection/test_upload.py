"""Uploads and batches: what is encoded is decoded, and anything malformed is refused."""

import base64
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hubbub as hb
from hubbub.collection.names import AnswerName
from hubbub.collection.terms import HEAD_BYTES, entry_bytes, frame_bytes
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.mechanisms import randomizers
from hubbub.questions.collection import Collection
from hubbub.wire.batches import Batch, decode_batch, encode_batch
from hubbub.wire.upload import (
    Entry,
    Upload,
    decode_upload,
    decode_upload_json,
    encode_upload,
    encode_upload_json,
    json_size,
)
from tests.collection.conftest import each
from tests.shared.small_collections import first_ask

COLLECTION, VERSION, NAME = "themes", 3, AnswerName("popular", 0, 1234, 1, 0)
GRR = hb.GRR(epsilon=1.0, domain=4)
REPORT = GRR.randomize([3], hb.Random(seed=1)).to_bare()
ENTRIES = [Entry(*NAME, bytes([k]) * 16, REPORT) for k in range(3)]
BATCH = GRR.randomize([0, 1, 2, 3], hb.Random(seed=1))

slugs = st.from_regex(r"[a-z][a-z0-9_-]{0,63}", fullmatch=True)
small = st.integers(0, (1 << 31) - 1)
names = st.builds(AnswerName, slugs, small, st.integers(0, (1 << 53) - 1), st.integers(1, (1 << 31) - 1), small)
contents = st.tuples(st.binary(min_size=16, max_size=16), st.binary(max_size=300))
entries = st.builds(lambda name, content: Entry(*name, *content), names, contents)
versions = st.integers(1, 1 << 31)


@given(slugs, versions, st.lists(entries, max_size=5), st.integers(0, 70_000))
def test_an_upload_comes_back_at_any_size(collection: str, version: int, sent: list[Entry], spare: int) -> None:
    size = frame_bytes(sum(entry_bytes(entry.question, len(entry.report)) for entry in sent)) + spare
    frame = encode_upload(collection, version, sent, size)
    assert len(frame) == size
    assert decode_upload(frame) == Upload(collection, version, sent)
    readable = encode_upload_json(collection, version, sent, size)
    assert len(readable) == json_size(size)
    assert decode_upload_json(readable) == Upload(collection, version, sent)
    assert json.loads(readable)["collection"] == collection


@pytest.mark.parametrize("length", [1, 2, 3, 4, 64])
@pytest.mark.parametrize("report", [0, 1, 2, 300])
@pytest.mark.parametrize("count", [1, 50])
def test_the_longest_names_fit_in_both_forms(length: int, report: int, count: int) -> None:
    """No block is rounded up to: as many entries as are promised room, each as long as it can be."""
    entry = Entry("q" * length, (1 << 31) - 1, (1 << 53) - 1, (1 << 31) - 1, (1 << 31) - 1, bytes(16), bytes(report))
    size = HEAD_BYTES + count * entry_bytes("q" * length, report)
    assert len(encode_upload("c" * 64, 1 << 31, [entry] * count, size)) == size
    assert len(encode_upload_json("c" * 64, 1 << 31, [entry] * count, size)) == json_size(size)


@given(names, st.lists(st.integers(0, 3), min_size=1, max_size=40), st.data())
def test_a_batch_comes_back(name: AnswerName, values: list[int], data: st.DataObject) -> None:
    reports = GRR.randomize(values, hb.Random(seed=len(values)))
    ids = data.draw(st.binary(min_size=16 * len(values), max_size=16 * len(values)))
    batch = decode_batch(encode_batch(COLLECTION, VERSION, name, ids, reports))
    assert batch == Batch(COLLECTION, VERSION, name, ids, reports.to_bare())
    assert batch.read(GRR) == reports


@given(names)
def test_the_text_of_a_name_is_read_back(name: AnswerName) -> None:
    assert AnswerName.read(str(name)) == name


@pytest.mark.parametrize(
    "text", ["", "q", "q:0:1:1", "q:0:1:1:0:0", "Q:0:1:1:0", "q:0:-1:1:0", "q:0:1:0:0", "q:0:x:1:0"]
)
def test_a_text_that_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(DecodeError):
        AnswerName.read(text)


@pytest.mark.parametrize("name", randomizers())
def test_every_mechanism_travels_and_its_size_is_known(name: str) -> None:
    for mechanism in randomizers()[name].examples():
        values = mechanism.example_values(4)
        for value in values:
            report = mechanism.randomize([value], hb.Random(seed=1))
            assert len(report.to_bare()) == mechanism.report_bytes
            assert report.spec_id.encode() not in report.to_bare()
            sent = Entry(*NAME, b"i" * 16, report.to_bare())
            size = frame_bytes(entry_bytes(NAME.question, mechanism.report_bytes))
            for encode, decode in ((encode_upload, decode_upload), (encode_upload_json, decode_upload_json)):
                (entry,) = decode(encode(COLLECTION, VERSION, [sent], size)).entries
                assert entry.reports(mechanism) == report
        reports = mechanism.randomize(values, hb.Random(seed=2))
        frame = encode_batch(COLLECTION, VERSION, NAME, bytes(16 * len(values)), reports)
        assert decode_batch(frame).read(mechanism) == reports


def test_all_answers_of_a_step_fit_the_frame(everything: Collection) -> None:
    """Two of an adaptive stream, at the epsilons that its first steps ask with."""
    sent = []
    for name, question in everything.questions.items():
        ask, mechanism = first_ask(everything, name)
        (field,) = question.reads()
        report = mechanism.randomize(ask.view([everything.missing(field)]), hb.Random(seed=1))
        sent += [Entry(name, 0, ask.step, 1, 0, b"i" * 16, report.to_bare())] * everything.terms[name].rounds
    assert everything.frame_bytes % 1024 == 0
    size = everything.frame_bytes
    assert len(encode_upload(everything.name, everything.version, sent, size)) == size
    assert len(encode_upload_json(everything.name, everything.version, sent, size)) == 2 * size


@pytest.mark.parametrize("encode", [encode_upload, encode_upload_json])
def test_what_does_not_fit_is_not_sent(encode: Callable[[str, int, Sequence[Entry], int], bytes]) -> None:
    with pytest.raises(InvalidValue, match="size"):
        encode(COLLECTION, VERSION, ENTRIES * 20, 1024)


# -- hostile bytes -----------------------------------------------------------------------------------------------------

FRAME = encode_upload(COLLECTION, VERSION, ENTRIES, 1024)
JSON_FRAME = encode_upload_json(COLLECTION, VERSION, ENTRIES, 1024)
BATCH_FRAME = encode_batch(COLLECTION, VERSION, NAME, bytes(64), BATCH)
pack = msgspec.msgpack.encode
ENTRY = (*NAME, b"i" * 16, REPORT)


def changed(**change: Any) -> tuple[Any, ...]:
    fields = (*AnswerName._fields, "report_id", "report")
    return tuple({**dict(zip(fields, ENTRY, strict=True)), **change}.values())


HOSTILE_FIELDS: dict[str, list[Any]] = {
    "question": ["Popular", "", "q" * 65, "q\n", 7],
    "run": [-1, 1 << 31, True, None],
    "step": [-1, 1 << 53, 7.0, "7"],
    "round": [0, 1 << 31],
    "part": [-1, 1 << 31],
    "report_id": [b"i" * 15, "i" * 16],
    "report": ["report"],
}
HOSTILE_ENTRIES: list[Any] = [
    ENTRY[:6],
    (*ENTRY, 1),
    ("0" * 32, b"i" * 16, REPORT),  # as it was: the hash of an ask
    {"0": ENTRY},
    *(changed(**{field: value}) for field, value in each(HOSTILE_FIELDS)),
]


@pytest.mark.parametrize("entry", HOSTILE_ENTRIES, ids=repr)
def test_entries_that_are_refused(entry: Any) -> None:
    assert decode_upload(pack((1, COLLECTION, VERSION, [ENTRY], b""))).entries[0].name == NAME
    with pytest.raises(DecodeError):
        decode_upload(pack((1, COLLECTION, VERSION, [ENTRY, entry], b"")))


def packed(**change: Any) -> bytes:
    """An upload, some of whose parts are given by name."""
    parts = {"format": 1, "name": COLLECTION, "version": VERSION, "entries": [ENTRY], "pad": b"", **change}
    return pack(tuple(parts.values()))


HOSTILE_HEADS: dict[str, list[Any]] = {
    "format": [2, 3, 1.0, True],
    "name": [COLLECTION.upper(), "c" * 65, "", COLLECTION.encode()],
    "version": [0, (1 << 31) + 1, True, "3"],
    "entries": [[ENTRY] * 5000, {"0": ENTRY}],
}


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
        *(packed(**{part: value}) for part, value in each(HOSTILE_HEADS)),
        pack((1, COLLECTION, VERSION, [ENTRY])),
        pack((1, COLLECTION, VERSION, [ENTRY], b"", b"")),
        # An array that claims 2^32 entries: refused before memory is asked for.
        b"\x95\x01\xa6themes\x01\xdd\xff\xff\xff\xff" + b"\x97" * 500,
        b"\x95\x01\xa6" + b"\xff" * 6 + b"\x01\x90\xc4\x00",
        b"\x91" * 100_000,
    ],
)
def test_uploads_that_are_refused(data: Any) -> None:
    with pytest.raises(DecodeError):
        decode_upload(data)


def spelt(**change: Any) -> bytes:
    name = dict(zip(AnswerName._fields, NAME, strict=True))
    entry = {**name, "id": "69" * 16, "report": base64.b64encode(REPORT).decode(), **change.pop("entry", {})}
    head = {"collection": COLLECTION, "version": VERSION, "entries": [entry], "pad": "00"}
    return json.dumps({**head, **change}).encode()


def test_a_readable_upload_may_be_written_by_hand() -> None:
    (entry,) = decode_upload_json(spelt()).entries
    assert (entry.name, entry.report_id, entry.report) == (NAME, b"i" * 16, REPORT)


SPELT_HEADS: dict[str, list[Any]] = {
    "pad": ["01", 3],
    "more": [1],
    "collection": ["0" * 32, None],
    "version": [0, "3", 3.5],
    "entries": [{}, [[]]],
}
SPELT_ENTRIES: dict[str, list[Any]] = {
    "more": [1],
    "id": ["69" * 15, "6 " * 16, "AB" * 16],
    "report": ["not base64!", 3],
    "ask": ["0" * 32],
    "question": ["\ud800"],
    "step": [-1, 1.5],
    "round": [0],
    "run": [None],
}


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
        *(spelt(**{key: value}) for key, value in each(SPELT_HEADS)),
        *(spelt(entry={key: value}) for key, value in each(SPELT_ENTRIES)),
        b'{"collection":"' + b"\xff" * 6 + b'","version":1,"entries":[]}',
        b'{"collection":"themes","entries":[]}',
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
        pack((1, COLLECTION, VERSION, *NAME, bytes(64), BATCH.to_bare())),
        pack((2, COLLECTION, VERSION, *NAME, bytes(63), BATCH.to_bare())),
        pack((2, COLLECTION, VERSION, *NAME, bytes(80), BATCH.to_bare())),
        pack((2, COLLECTION, VERSION, *NAME, b"", b"")),
        pack((2, COLLECTION, VERSION, *NAME, bytes(64), b"")),
        pack((2, COLLECTION, VERSION, *NAME[:4], bytes(64), BATCH.to_bare())),
        pack((2, COLLECTION, VERSION, "Popular", *NAME[1:], bytes(64), BATCH.to_bare())),
        pack((2, COLLECTION, VERSION, *NAME._replace(round=0), bytes(64), BATCH.to_bare())),
        pack((2, COLLECTION, 0, *NAME, bytes(64), BATCH.to_bare())),
        pack((2, "C", VERSION, *NAME, bytes(64), BATCH.to_bare())),
        pack((2, COLLECTION, VERSION, *NAME, bytes(64), BATCH.to_bare()[:-1])),
        pack((2, COLLECTION, VERSION, *NAME, bytes(64), BATCH.to_bare(), b"")),
    ],
)
def test_batches_that_are_refused(data: Any) -> None:
    with pytest.raises(DecodeError):
        decode_batch(data)


def test_an_entry_is_one_report() -> None:
    for report in (b"", BATCH.to_bare()):
        with pytest.raises(DecodeError, match="one report"):
            Entry(*NAME, b"i" * 16, report).reports(GRR)


def test_a_batch_has_a_report_for_each_id() -> None:
    with pytest.raises(DecodeError, match="for each of 2 reports"):
        Batch(COLLECTION, VERSION, NAME, bytes(32), BATCH.to_bare()).read(GRR)
    wide = hb.OUE(epsilon=1.0, domain=24)
    with pytest.raises(DecodeError):
        wide.read_bare(bytes(wide.report_bytes + 1))


def test_a_hostile_entry_is_not_encoded() -> None:
    for entry in (Entry("Popular", 0, 7, 1, 0, b"i" * 16, b""), Entry(*NAME, b"i", b"")):
        for encode in (encode_upload, encode_upload_json):
            with pytest.raises(DecodeError):
                encode(COLLECTION, VERSION, [entry], 1024)
    for ids in (b"", bytes(48), bytes(128)):
        with pytest.raises(DecodeError):
            encode_batch(COLLECTION, VERSION, NAME, ids, BATCH)


# -- fuzzing -----------------------------------------------------------------------------------------------------------

DECODERS: dict[str, tuple[bytes, Callable[[bytes], Any]]] = {
    "upload": (encode_upload(COLLECTION, VERSION, ENTRIES, 200), decode_upload),
    "json": (encode_upload_json(COLLECTION, VERSION, ENTRIES, 250), decode_upload_json),
    "batch": (BATCH_FRAME, decode_batch),
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
@settings(max_examples=8 * settings().max_examples, deadline=None)
def test_any_bytes_are_taken_or_refused(kind: str, data: bytes) -> None:
    survive(DECODERS[kind][1], data)


tree = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats()
    | st.text()
    | st.binary()
    | st.sampled_from([1, 3, 4, COLLECTION, NAME, list(ENTRY), REPORT, b"i" * 16, BATCH.to_bare()]),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=20,
)


@pytest.mark.parametrize("kind", ["upload", "batch"])
@given(value=tree)
@settings(max_examples=4 * settings().max_examples, deadline=None)
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
                headers = b"\xdd\xff\xff\xff\xff", b"\xc6\x7f\xff\xff\xff", b"\xcf", b"\xc0", b"{"
                harmed[at : at + 1] = rng.choice(headers)
    return bytes(harmed)


@pytest.mark.parametrize("frames", [5_000, pytest.param(250_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", DECODERS)
def test_harmed_frames_are_taken_or_refused(kind: str, frames: int) -> None:
    rng = random.Random(f"{kind} {frames}")
    frame, decode = DECODERS[kind]
    accepted = sum(survive(decode, mutate(rng, frame)) for _ in range(frames))
    # Most harms are seen; what is taken differs in bytes that may be anything, such as an id.
    assert 0 < accepted < frames / 5


@given(st.integers(0, len(FRAME) - 1), st.integers(1, 255))
@settings(max_examples=8 * settings().max_examples, deadline=None)
def test_a_changed_byte_is_seen_or_is_in_what_it_says(place: int, flip: int) -> None:
    """No byte of a frame is ignored: it is refused, or it decodes to something else."""
    harmed = bytearray(FRAME)
    harmed[place] ^= flip
    if survive(decode_upload, bytes(harmed)):
        assert decode_upload(bytes(harmed)) != decode_upload(FRAME)
