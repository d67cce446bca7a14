"""Batches of reports that all answer one ask: what relays send, and what a shuffler hands on.

Batches: what relays send, many reports that all answer one ask.

A batch is a msgpack array [2, collection, version, question, run, step, round, part, ids, reports]. Reports are bare
(`Reports.to_bare`): the ask tells the reader what the columns are.

What a shuffler hands on: the reports of one batch, in their remaining layers of encryption, and signed statements.

Each shuffler states how many reports it received, how many it left out and why, how many fakes it added, and the hash
of what it handed on. Each receiver checks all statements so far: that each shuffler signed its own, that the numbers
add up, and that each shuffler received what the one before handed on. A shuffler that lies about its numbers is found
out by the next party.

On the wire a batch is a msgpack array [5, collection, version, question, run, step, round, part, statements, size of a
report, reports], where a statement is [received, unreadable, repeated, fakes, handed, digest, signature].
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import msgspec

from hubbub.collection.names import AnswerName, check_answer_name, check_collection
from hubbub.collection.sealing import sign, verify
from hubbub.collection.shuffle_route import LAYER_BYTES, MOST_SHUFFLERS, ShuffleRoute, batch_name
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.reports import Reports
from hubbub.core.spec import canonical
from hubbub.wire.upload import ID_BYTES, Upload, decode_frame

if TYPE_CHECKING:
    import pyarrow as pa

    from hubbub.mechanisms.base import ReportFormat

BATCH_TYPE = "application/vnd.hubbub.batch+msgpack"


class Batch(msgspec.Struct, frozen=True):
    """What a relay sends in one frame: reports that all answer one ask, and their ids of 16 bytes each."""

    collection: str
    version: int
    name: AnswerName
    ids: bytes
    reports: bytes

    @property
    def count(self) -> int:
        """How many reports there are."""
        return len(self.ids) // ID_BYTES

    def read(self, mechanism: ReportFormat) -> Reports:
        """Read the bytes as reports of a mechanism, one for each id."""
        if len(self.reports) != self.count * mechanism.report_bytes:
            allowed = f"{mechanism.report_bytes} bytes for each of {self.count} reports"
            raise DecodeError("reports", f"{len(self.reports)} bytes", allowed)
        return mechanism.read_bare(self.reports)


class BatchHead(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """How every frame of many reports begins: its kind, and the answer that its reports are."""

    kind: int
    collection: str
    version: int
    question: str
    run: int
    step: int
    round: int
    part: int

    @property
    def answer(self) -> AnswerName:
        """The name of the answer that the reports are."""
        return AnswerName(self.question, self.run, self.step, self.round, self.part)


class _Batch(BatchHead, frozen=True):
    kind: Literal[2]
    ids: bytes
    reports: bytes


_encoder = msgspec.msgpack.Encoder()
_batch_decoder = msgspec.msgpack.Decoder(_Batch)


def encode_batch(collection: str, version: int, name: AnswerName, ids: bytes, reports: Reports) -> bytes:
    """Encode many reports that all answer one ask."""
    batch = Batch(collection, version, name, ids, reports.to_bare())
    _check_batch(batch)
    if batch.count != len(reports):
        raise DecodeError("ids", f"{len(ids)} bytes", f"{ID_BYTES} bytes for each of {len(reports)} reports")
    return _encoder.encode(_Batch(2, collection, version, *name, ids, batch.reports))


def decode_batch(data: bytes) -> Batch:
    """Decode a batch. Reports are not looked at: that takes the ask's mechanism."""
    frame = decode_frame(_batch_decoder.decode, data, "batch", "batch")
    batch = Batch(frame.collection, frame.version, frame.answer, frame.ids, frame.reports)
    _check_batch(batch)
    return batch


def _check_batch(batch: Batch) -> None:
    check_collection(batch.collection, batch.version)
    check_answer_name(batch.name)
    if not batch.ids or len(batch.ids) % ID_BYTES:
        raise DecodeError("ids", f"{len(batch.ids)} bytes", f"{ID_BYTES} bytes for each report, of at least one")
    if not batch.reports or len(batch.reports) % batch.count:
        raise DecodeError("reports", f"{len(batch.reports)} bytes", f"as many bytes for each of {batch.count} reports")


class Landed(NamedTuple):
    """Rows of a landing file, and the reports that were refused: the id of each, and why."""

    rows: pa.RecordBatch
    refused: list[tuple[str, Literal["unknown_ask", "malformed"]]]


def land(
    frames: Iterable[Upload | Batch], mechanism_of: Callable[[str, int, AnswerName], ReportFormat | None]
) -> Landed:
    """Turn decoded uploads and batches into rows of a landing file (`docs/report-files.md`).

    Nothing is counted, and no id is looked up: a report that a device sends again is another row, which `hubbub fold`
    leaves out.

    `frames`: what `decode_upload`, `decode_upload_json` and `decode_batch` return. `mechanism_of`: the mechanism of the
    ask of this collection, version and name; None if no such ask is open.

    Example:
        >>> import hubbub as hb
        >>> from hubbub.wire.upload import Entry, encode_upload, decode_upload
        >>> oracle = hb.OLH(epsilon=1.0, domain=5)
        >>> report = oracle.randomize([3], hb.Random(seed=1)).to_bare()
        >>> data = encode_upload("survey", 1, [Entry("theme", 0, 7, 1, 0, bytes(16), report)], 1024)
        >>> landed = land([decode_upload(data)], lambda collection, version, name: oracle)
        >>> landed.rows.num_rows, landed.refused
        (1, [])
    """
    from hubbub.backends.report_files import SketchKey, landing_batch, row_bytes

    rows, mechanisms = [], {}
    refused: list[tuple[str, Literal["unknown_ask", "malformed"]]] = []
    for frame in frames:
        reports = frame.entries if isinstance(frame, Upload) else [frame]
        for entry in reports:
            ids = entry.ids if isinstance(entry, Batch) else entry.report_id
            each = [ids[start : start + ID_BYTES] for start in range(0, len(ids), ID_BYTES)]
            mechanism = mechanism_of(frame.collection, frame.version, entry.name)
            if mechanism is None:
                refused += [(identity.hex(), "unknown_ask") for identity in each]
                continue
            try:
                decoded = entry.read(mechanism) if isinstance(entry, Batch) else entry.reports(mechanism)
                mechanism.check(decoded)
            except InvalidValue:
                refused += [(identity.hex(), "malformed") for identity in each]
                continue
            mechanisms[mechanism.spec_id] = mechanism
            key = SketchKey(frame.collection, frame.version, *entry.name, mechanism.spec_id)
            rows += [(key, *row) for row in zip(each, row_bytes(mechanism, decoded), strict=True)]
    return Landed(landing_batch(rows, [mechanisms[identity] for identity in sorted(mechanisms)]), refused)


SHUFFLED_TYPE = "application/vnd.hubbub.shuffled+msgpack"


class HopStatement(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What one shuffler states, and signs, about its turn with a batch."""

    received: int
    unreadable: int
    repeated: int
    fakes: int
    handed: int
    digest: bytes
    """SHA-256 of the reports that the shuffler handed on, in their order."""
    signature: bytes

    def signed(self, batch: str, place: int) -> bytes:
        """The bytes that are signed: the statement, the name of its batch, and the position of the shuffler."""
        numbers = [self.received, self.unreadable, self.repeated, self.fakes, self.handed]
        return canonical(["hubbub shuffled 1", batch, place, *numbers, self.digest.hex()]).encode()


class ShuffledBatch(msgspec.Struct, frozen=True):
    """The reports of a batch as a shuffler handed them on, with the statements of all shufflers so far."""

    collection: str
    version: int
    answer: AnswerName
    statements: list[HopStatement]
    onions: list[bytes]

    @property
    def name(self) -> str:
        return batch_name(self.collection, self.version, self.answer)

    @property
    def digest(self) -> bytes:
        """The hash of the reports in their order."""
        return digest_of(self.onions)

    @property
    def fakes(self) -> int:
        """How many reports shufflers added, by their statements."""
        return sum(statement.fakes for statement in self.statements)

    def stated(
        self, onions: Sequence[bytes], private: bytes, *, unreadable: int, repeated: int, fakes: int
    ) -> ShuffledBatch:
        """The batch that the next shuffler hands on: its reports, with its statement added."""
        unsigned = HopStatement(len(self.onions), unreadable, repeated, fakes, len(onions), digest_of(onions), b"")
        signature = sign(unsigned.signed(self.name, len(self.statements)), private)
        statements = [*self.statements, msgspec.structs.replace(unsigned, signature=signature)]
        return ShuffledBatch(self.collection, self.version, self.answer, statements, list(onions))


def digest_of(onions: Sequence[bytes]) -> bytes:
    """SHA-256 of reports of one size, in their order."""
    return hashlib.sha256(b"".join(onions)).digest()


def check_batch(batch: ShuffledBatch, route: ShuffleRoute, hops: int, report_bytes: int | None = None) -> None:
    """Refuse a batch whose statements do not show that `hops` shufflers handed it on by the rules.

    `hops`: how many shufflers the batch has passed. `report_bytes`: the size of a report without any layer, where it is
    known.
    """
    if len(batch.statements) != hops:
        raise DecodeError("statements", len(batch.statements), f"{hops}, one of each shuffler so far")
    previous: HopStatement | None = None
    for place, statement in enumerate(batch.statements):
        key = bytes.fromhex(route.shufflers[place].signing_key)
        if not verify(statement.signed(batch.name, place), statement.signature, key):
            raise DecodeError("signature", f"of shuffler {place}", "its signature of this statement")
        received, unreadable, repeated, fakes, handed = msgspec.structs.astuple(statement)[:5]
        if min(received, unreadable, repeated, fakes, handed) < 0:
            raise DecodeError("statement", f"of shuffler {place}", "counts of at least 0")
        if received - unreadable - repeated + fakes != handed:
            raise DecodeError("statement", f"of shuffler {place}", "numbers that add up")
        if previous is not None and received != previous.handed:
            raise DecodeError("received", received, f"{previous.handed}, which shuffler {place - 1} handed on")
        if fakes != route.fakes:
            raise DecodeError("fakes", fakes, f"{route.fakes}, as is signed")
        previous = statement
    if previous is not None and (previous.handed != len(batch.onions) or previous.digest != batch.digest):
        raise DecodeError("reports", f"{len(batch.onions)} reports", "the very reports that were handed on")
    size = LAYER_BYTES * (len(route.shufflers) + 1 - hops) + (report_bytes or 0)
    if report_bytes is not None and any(len(onion) != size for onion in batch.onions):
        raise DecodeError("reports", "reports of another size", f"{size} bytes each")


def encode_shuffled(batch: ShuffledBatch) -> bytes:
    """Encode a batch."""
    size = len(batch.onions[0]) if batch.onions else LAYER_BYTES
    head = (batch.collection, batch.version, *batch.answer)
    return _encoder.encode(_Shuffled(3, *head, batch.statements, size, b"".join(batch.onions)))


def decode_shuffled(data: bytes) -> ShuffledBatch:
    """Decode a batch; its signatures are checked by `check_batch`."""
    frame = decode_frame(_shuffled_decoder.decode, data, "batch", "shuffled batch")
    check_collection(frame.collection, frame.version)
    check_answer_name(frame.answer)
    # The sender is not verified yet: millions of tiny reports would take far more memory than their bytes.
    if frame.size < LAYER_BYTES or len(frame.onions) % frame.size:
        received = f"{len(frame.onions)} bytes of reports of {frame.size}"
        raise DecodeError("reports", received, f"whole ones, of at least {LAYER_BYTES} bytes each")
    onions = [frame.onions[at : at + frame.size] for at in range(0, len(frame.onions), frame.size)]
    return ShuffledBatch(frame.collection, frame.version, frame.answer, frame.statements, onions)


class _Shuffled(BatchHead, frozen=True):
    kind: Literal[3]
    statements: Annotated[list[HopStatement], msgspec.Meta(max_length=MOST_SHUFFLERS)]
    size: int
    onions: bytes


_shuffled_decoder = msgspec.msgpack.Decoder(_Shuffled)
