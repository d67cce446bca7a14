"""Uploads: what devices send, and the size of all of them. Decoding trusts nothing that it has not checked.

A report names the collection, its version, and the ask that it answers (`AnswerName`). All of these come from the
signed collection and the clock. No hash of an ask or of a mechanism is sent: a server could vary it from device to
device.

An upload is a msgpack array [1, collection, version, entries, padding], padded to the collection's frame size; an entry
is [question, run, step, round, part, report id, report]. The readable form is JSON with the same fields. Reports are
bare (`Reports.to_bare`): the ask tells the reader what the columns are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from hubbub.collection.names import AnswerFields, check_answer_name, check_collection, described
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.reports import Reports

if TYPE_CHECKING:
    from hubbub.mechanisms.base import ReportFormat

UPLOAD_TYPE = "application/vnd.hubbub.upload+msgpack"
JSON_TYPE = "application/json"

ID_BYTES = 16
MOST_ENTRIES = 1 << 12
_PAD_HEAD = 5  # always the long form, so that every size can be reached
_DIGITS = "0123456789abcdef"
_BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, TypeError, RecursionError)

Decoded = TypeVar("Decoded")


def decode_frame(decode: Callable[[bytes], Decoded], data: bytes, field: str, noun: str) -> Decoded:
    """Decode bytes, or say in an error that names the field that they are not a well-formed `noun`."""
    try:
        return decode(data)
    except _MALFORMED as error:
        start = data[:40] if isinstance(data, bytes) else data  # not all of it: it may be large
        raise DecodeError(field, start, f"a well-formed {noun} ({error})") from None


class Entry(AnswerFields, frozen=True):
    """One report of an upload: the name of the answer, its own random id, and the bytes of `to_bare`."""

    report_id: bytes
    report: bytes

    def reports(self, mechanism: ReportFormat) -> Reports:
        """Read the bytes as one report of a mechanism: a batch of one. Bytes of any other length are refused."""
        if len(self.report) != mechanism.report_bytes:
            raise DecodeError("report", f"{len(self.report)} bytes", f"one report, of {mechanism.report_bytes} bytes")
        return mechanism.read_bare(self.report)


class Upload(msgspec.Struct, frozen=True):
    """The entries that a device sends in one frame; none at all is a frame of cover."""

    collection: str
    version: int
    entries: list[Entry]


class _Upload(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    kind: Literal[1]
    collection: str
    version: int
    entries: list[Entry]
    pad: bytes


class JsonEntry(AnswerFields, array_like=False, frozen=True):
    """One report of a readable upload."""

    id: Annotated[str, Meta(extra_json_schema={"pattern": "^[0-9a-f]{32}$"})]
    report: Annotated[bytes, Meta(extra_json_schema={"pattern": _BASE64})]


class JsonUpload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A readable upload."""

    collection: Annotated[str, described("collection")]
    version: Annotated[int, described("version")]
    entries: list[JsonEntry]
    pad: Annotated[str, Meta(extra_json_schema={"pattern": "^0*$"})] = ""


_encoder = msgspec.msgpack.Encoder()
_json_encoder = msgspec.json.Encoder()
_uploads = msgspec.msgpack.Decoder(_Upload)
_json_uploads = msgspec.json.Decoder(JsonUpload)


def encode_upload(collection: str, version: int, entries: Sequence[Entry], size: int) -> bytes:
    """Encode entries in a frame of exactly `size` bytes."""
    upload = Upload(collection, version, list(entries))
    _check(upload)
    head = _encoder.encode(_Upload(1, collection, version, upload.entries, b""))[:-2]
    room = size - len(head) - _PAD_HEAD
    if room < 0:
        raise InvalidValue("size", size, f"at least {len(head) + _PAD_HEAD} bytes, for {len(entries)} entries")
    return head + b"\xc6" + room.to_bytes(4, "big") + bytes(room)


def decode_upload(data: bytes) -> Upload:
    """Decode a frame. Reports are not looked at: that takes the ask's mechanism."""
    frame = decode_frame(_uploads.decode, data, "upload", "upload")
    if frame.pad.count(0) != len(frame.pad):
        raise DecodeError("pad", frame.pad[:40], "zeros alone")
    upload = Upload(frame.collection, frame.version, frame.entries)
    _check(upload)
    return upload


def json_size(size: int) -> int:
    """The size of a JSON upload whose binary form has `size` bytes: the spelling is never twice as long."""
    return 2 * size


def encode_upload_json(collection: str, version: int, entries: Sequence[Entry], size: int) -> bytes:
    """Encode entries in a readable frame, padded to `json_size(size)` bytes."""
    upload = Upload(collection, version, list(entries))
    _check(upload)
    json_entries = [JsonEntry(*entry.name, entry.report_id.hex(), entry.report) for entry in entries]
    head = _json_encoder.encode(JsonUpload(collection, version, json_entries))[:-2]
    room = json_size(size) - len(head) - 2
    if room < 0:
        raise InvalidValue("size", size, f"at least {-(-(len(head) + 2) // 2)} bytes, for {len(entries)} entries")
    return head + b"0" * room + b'"}'


def decode_upload_json(data: bytes) -> Upload:
    """Decode a readable frame."""
    frame = decode_frame(_json_uploads.decode, data, "upload", "upload")
    if frame.pad.strip("0"):
        raise DecodeError("pad", frame.pad[:40], "zeros alone")
    entries = []
    for entry in frame.entries:
        if len(entry.id) != 2 * ID_BYTES or entry.id.strip(_DIGITS):
            raise DecodeError("id", entry.id, f"{2 * ID_BYTES} hexadecimal digits")
        entries.append(Entry(*entry.name, bytes.fromhex(entry.id), entry.report))
    upload = Upload(frame.collection, frame.version, entries)
    _check(upload)
    return upload


def _check(upload: Upload) -> None:
    check_collection(upload.collection, upload.version)
    if len(upload.entries) > MOST_ENTRIES:
        raise DecodeError("entries", len(upload.entries), f"at most {MOST_ENTRIES} entries")
    for entry in upload.entries:
        check_answer_name(entry)
        if len(entry.report_id) != ID_BYTES:
            raise DecodeError("report_id", entry.report_id, f"{ID_BYTES} bytes")
