"""Batches: what relays send, many reports that all answer one ask.

A batch is a msgpack array [4, collection, version, question, run, step, round, part, ids, reports]. Reports are bare
(`Reports.to_bare`): the ask tells the reader what the columns are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from hubbub.collection.names import AnswerName, check_answer_name, check_collection
from hubbub.collection.upload import ID_BYTES, decode_frame
from hubbub.core.errors import DecodeError
from hubbub.core.reports import Reports

if TYPE_CHECKING:
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
    kind: Literal[4]
    ids: bytes
    reports: bytes


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Batch)


def encode_batch(collection: str, version: int, name: AnswerName, ids: bytes, reports: Reports) -> bytes:
    """Encode many reports that all answer one ask."""
    batch = Batch(collection, version, name, ids, reports.to_bare())
    _check_batch(batch)
    if batch.count != len(reports):
        raise DecodeError("ids", f"{len(ids)} bytes", f"{ID_BYTES} bytes for each of {len(reports)} reports")
    return _encoder.encode(_Batch(4, collection, version, *name, ids, batch.reports))


def decode_batch(data: bytes) -> Batch:
    """Decode a batch. Reports are not looked at: that takes the ask's mechanism."""
    frame = decode_frame(_decoder.decode, data, "batch", "batch")
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
