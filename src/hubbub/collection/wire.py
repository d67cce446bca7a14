"""Uploads: what devices and relays send. Decoding believes nothing it has not checked.

An upload is a msgpack array [1, collection id, entries, padding], padded to the collection's frame size; an entry is
[ask id, report id, report]. A batch, which relays send, is [2, collection id, ask id, ids, reports].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.reports import Reports

__all__ = [
    "BATCH_TYPE",
    "JSON_TYPE",
    "UPLOAD_TYPE",
    "Batch",
    "Entry",
    "Upload",
    "decode_batch",
    "decode_upload",
    "decode_upload_json",
    "encode_batch",
    "encode_upload",
    "encode_upload_json",
    "json_size",
]

UPLOAD_TYPE = "application/vnd.hubbub.upload+msgpack"
BATCH_TYPE = "application/vnd.hubbub.batch+msgpack"
JSON_TYPE = "application/json"

ID_BYTES = 16
MOST_ENTRIES = 1 << 12
_PAD_HEAD = 5  # always the long form, so that every size can be reached
_DIGITS = "0123456789abcdef"


class Entry(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """One report: the ask that it answers, its own random id, and the bytes of `Reports.to_bytes`.

    Example:
        >>> Entry("0" * 32, b"i" * 16, b"...").report_id.hex()
        '69696969696969696969696969696969'
    """

    ask_id: str
    report_id: bytes
    report: bytes

    def reports(self) -> Reports:
        """The report, as a batch of one; anything else is refused."""
        batch = _reports(self.report)
        if len(batch) != 1:
            raise DecodeError("report", f"{len(batch)} reports", "one report")
        return batch


class Upload(msgspec.Struct, frozen=True):
    """What a device sends at once."""

    collection_id: str
    entries: list[Entry]


class Batch(msgspec.Struct, frozen=True):
    """What a relay sends at once: reports that answer one ask, and their ids, 16 bytes each."""

    collection_id: str
    ask_id: str
    ids: bytes
    reports: Reports


class _Upload(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    version: Literal[1]
    collection_id: str
    entries: list[Entry]
    pad: bytes


class _Batch(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    version: Literal[2]
    collection_id: str
    ask_id: str
    ids: bytes
    reports: bytes


class _JsonEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    ask: str
    id: str
    report: bytes


class _JsonUpload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    collection: str
    entries: list[_JsonEntry]
    pad: str = ""


_encoder = msgspec.msgpack.Encoder()
_json_encoder = msgspec.json.Encoder()
_uploads = msgspec.msgpack.Decoder(_Upload)
_batches = msgspec.msgpack.Decoder(_Batch)
_json_uploads = msgspec.json.Decoder(_JsonUpload)
_REFUSED = (msgspec.DecodeError, UnicodeDecodeError, TypeError, RecursionError)


def encode_upload(collection_id: str, entries: Sequence[Entry], size: int) -> bytes:
    """The frame of some entries, of exactly `size` bytes.

    Example:
        >>> frame = encode_upload("0" * 32, [Entry("1" * 32, b"i" * 16, b"...")], 1024)
        >>> len(frame), decode_upload(frame).entries[0].report
        (1024, b'...')
    """
    upload = Upload(collection_id, list(entries))
    _check(upload)
    head = _encoder.encode(_Upload(1, collection_id, upload.entries, b""))[:-2]
    room = size - len(head) - _PAD_HEAD
    if room < 0:
        raise InvalidValue("size", size, f"at least {len(head) + _PAD_HEAD} bytes, for {len(entries)} entries")
    return head + b"\xc6" + room.to_bytes(4, "big") + bytes(room)


def decode_upload(data: bytes) -> Upload:
    """The entries of a frame. Reports are looked at one by one, by `Entry.reports`.

    Example:
        >>> decode_upload(b"hostile")
        Traceback (most recent call last):
            ...
        hubbub.core.errors.DecodeError: upload: got b'hostile'; allowed: ...
    """
    try:
        frame = _uploads.decode(data)
    except _REFUSED as error:
        raise DecodeError("upload", _start(data), f"a well-formed upload ({error})") from None
    if frame.pad.count(0) != len(frame.pad):
        raise DecodeError("pad", frame.pad[:40], "zeros alone")
    upload = Upload(frame.collection_id, frame.entries)
    _check(upload)
    return upload


def json_size(size: int) -> int:
    """The size of a JSON upload whose binary form has `size` bytes: the spelling is never twice as long.

    Example:
        >>> json_size(1024)
        2048
    """
    return 2 * size


def encode_upload_json(collection_id: str, entries: Sequence[Entry], size: int) -> bytes:
    """The readable frame of some entries, padded to `json_size(size)` bytes.

    Example:
        >>> frame = encode_upload_json("0" * 32, [Entry("1" * 32, b"i" * 16, b"...")], 1024)
        >>> len(frame), decode_upload_json(frame).entries[0].report
        (2048, b'...')
    """
    upload = Upload(collection_id, list(entries))
    _check(upload)
    spelt = [_JsonEntry(entry.ask_id, entry.report_id.hex(), entry.report) for entry in entries]
    head = _json_encoder.encode(_JsonUpload(collection_id, spelt))[:-2]
    room = json_size(size) - len(head) - 2
    if room < 0:
        raise InvalidValue("size", size, f"at least {-(-(len(head) + 2) // 2)} bytes, for {len(entries)} entries")
    return head + b"0" * room + b'"}'


def decode_upload_json(data: bytes) -> Upload:
    """The entries of a readable frame.

    Example:
        >>> decode_upload_json(b"{}")
        Traceback (most recent call last):
            ...
        hubbub.core.errors.DecodeError: upload: got b'{}'; allowed: ...
    """
    try:
        frame = _json_uploads.decode(data)
    except _REFUSED as error:
        raise DecodeError("upload", _start(data), f"a well-formed upload ({error})") from None
    if frame.pad.strip("0"):
        raise DecodeError("pad", frame.pad[:40], "zeros alone")
    entries = []
    for entry in frame.entries:
        _check_hex("id", entry.id)
        entries.append(Entry(entry.ask, bytes.fromhex(entry.id), entry.report))
    upload = Upload(frame.collection, entries)
    _check(upload)
    return upload


def encode_batch(collection_id: str, ask_id: str, ids: bytes, reports: Reports) -> bytes:
    """The frame of many reports that answer one ask.

    Example:
        >>> from hubbub import GRR, Random
        >>> reports = GRR(epsilon=1.0, domain=2).randomize([0, 1], Random(seed=1))
        >>> decode_batch(encode_batch("0" * 32, "1" * 32, bytes(32), reports)).reports == reports
        True
    """
    _check_batch(collection_id, ask_id, ids, reports)
    return _encoder.encode(_Batch(2, collection_id, ask_id, ids, reports.to_bytes()))


def decode_batch(data: bytes) -> Batch:
    """The reports of a batch, and their ids.

    Example:
        >>> decode_batch(b"hostile")
        Traceback (most recent call last):
            ...
        hubbub.core.errors.DecodeError: batch: got b'hostile'; allowed: ...
    """
    try:
        frame = _batches.decode(data)
    except _REFUSED as error:
        raise DecodeError("batch", _start(data), f"a well-formed batch ({error})") from None
    reports = _reports(frame.reports)
    _check_batch(frame.collection_id, frame.ask_id, frame.ids, reports)
    return Batch(frame.collection_id, frame.ask_id, frame.ids, reports)


def _start(data: object) -> object:
    return data[:40] if isinstance(data, bytes) else data  # not all of it: it may be large


def _reports(data: bytes) -> Reports:
    try:
        return Reports.from_bytes(data)
    except DecodeError:
        raise
    except InvalidValue as error:
        raise DecodeError(error.field, error.value, error.allowed) from None


def _check(upload: Upload) -> None:
    _check_hex("collection_id", upload.collection_id)
    if len(upload.entries) > MOST_ENTRIES:  # none at all is a frame of cover
        raise DecodeError("entries", len(upload.entries), f"at most {MOST_ENTRIES} entries")
    for entry in upload.entries:
        _check_hex("ask_id", entry.ask_id)
        if len(entry.report_id) != ID_BYTES:
            raise DecodeError("report_id", entry.report_id, f"{ID_BYTES} bytes")


def _check_batch(collection_id: str, ask_id: str, ids: bytes, reports: Reports) -> None:
    _check_hex("collection_id", collection_id)
    _check_hex("ask_id", ask_id)
    if len(reports) == 0 or len(ids) != ID_BYTES * len(reports):
        raise DecodeError("ids", f"{len(ids)} bytes", f"{ID_BYTES} bytes for each of {len(reports)} reports")


def _check_hex(field: str, value: str) -> None:
    if len(value) != 32 or value.strip(_DIGITS):
        raise DecodeError(field, value, "32 hexadecimal digits")
