"""Uploads: what devices and relays send. Decoding believes nothing it has not checked.

A report names the collection, its version, and the answer that it is (`AnswerName`): all of them from the signed
collection and the clock. No hash of an ask or of a mechanism is on the wire, which a server could vary from device to
device.

An upload is a msgpack array [3, collection, version, entries, padding], padded to the collection's frame size; an entry
is [question, run, step, round, part, report id, report]. A batch, which relays send, is [4, collection, version,
question, run, step, round, part, ids, reports]. Reports are bare (`Reports.to_bare`): whoever knows the ask knows what
the columns are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from hubbub.collection.slug import is_slug
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.core.reports import Reports

if TYPE_CHECKING:
    from hubbub.mechanisms.base import ReportFormat

UPLOAD_TYPE = "application/vnd.hubbub.upload+msgpack"
BATCH_TYPE = "application/vnd.hubbub.batch+msgpack"
JSON_TYPE = "application/json"

ID_BYTES = 16
MOST_ENTRIES = 1 << 12
_RANGES = {
    "version": (1, 1 << 31),
    "run": (0, (1 << 31) - 1),
    "step": (0, (1 << 53) - 1),
    "round": (1, (1 << 31) - 1),
    "part": (0, (1 << 31) - 1),
}
_PAD_HEAD = 5  # always the long form, so that every size can be reached
_DIGITS = "0123456789abcdef"


class AnswerName(NamedTuple):
    """Which answer a report is: to which question, in which step, and in which round of it, counted from 1.

    `run` and `part` are 0: a question has one run, and an answer one part.

    Example:
        >>> str(AnswerName("popular", run=0, step=7, round=1, part=0))
        'popular:0:7:1:0'
        >>> AnswerName.read("popular:0:7:1:0").step
        7
    """

    question: str
    run: int
    step: int
    round: int
    part: int

    def __str__(self) -> str:
        return ":".join(map(str, self))

    @staticmethod
    def read(text: str) -> AnswerName:
        """Read a name back from its text.

        Example:
            >>> AnswerName.read("popular:0:7")
            Traceback (most recent call last):
                ...
            hubbub.core.errors.DecodeError: name: got 'popular:0:7'; allowed: question:run:step:round:part
        """
        question, *numbers = text.split(":")
        if len(numbers) != 4 or not all(number.isascii() and number.isdigit() for number in numbers):
            raise DecodeError("name", text, "question:run:step:round:part")
        run, step, number, part = map(int, numbers)
        name = AnswerName(question, run, step, number, part)
        _check_name(name)
        return name


class Entry(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """One report: the name of the answer, the report's own random id, and the bytes of `Reports.to_bare`.

    Example:
        >>> Entry(*AnswerName("popular", 0, 7, 1, 0), b"i" * 16, b"...").name.step
        7
    """

    question: str
    run: int
    step: int
    round: int
    part: int
    report_id: bytes
    report: bytes

    @property
    def name(self) -> AnswerName:
        """Which answer it is."""
        return AnswerName(self.question, self.run, self.step, self.round, self.part)

    def reports(self, mechanism: ReportFormat) -> Reports:
        """The report that the bytes are to a mechanism, as a batch of one; any other number is refused.

        Example:
            >>> from hubbub import GRR, Random
            >>> grr = GRR(epsilon=1.0, domain=2)
            >>> report = grr.randomize([1], Random(seed=1))
            >>> Entry("popular", 0, 7, 1, 0, b"i" * 16, report.to_bare()).reports(grr) == report
            True
        """
        if len(self.report) != mechanism.report_bytes:
            raise DecodeError("report", f"{len(self.report)} bytes", f"one report, of {mechanism.report_bytes} bytes")
        return mechanism.read_bare(self.report)


class Upload(msgspec.Struct, frozen=True):
    """What a device sends at once."""

    collection: str
    version: int
    entries: list[Entry]


class Batch(msgspec.Struct, frozen=True):
    """What a relay sends at once: reports that are one answer, and their ids, 16 bytes each.

    Example:
        >>> Batch("themes", 1, AnswerName("popular", 0, 7, 1, 0), bytes(32), b"..").count
        2
    """

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
        """The reports that the bytes are to a mechanism: one for each id.

        Example:
            >>> from hubbub import GRR, Random
            >>> grr = GRR(epsilon=1.0, domain=2)
            >>> reports = grr.randomize([1, 0], Random(seed=1))
            >>> Batch("themes", 1, AnswerName("popular", 0, 7, 1, 0), bytes(32), reports.to_bare()).read(grr) == reports
            True
        """
        if len(self.reports) != self.count * mechanism.report_bytes:
            wanted = f"{mechanism.report_bytes} bytes for each of {self.count} reports"
            raise DecodeError("reports", f"{len(self.reports)} bytes", wanted)
        return mechanism.read_bare(self.reports)


class _Upload(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    kind: Literal[3]
    collection: str
    version: int
    entries: list[Entry]
    pad: bytes


class _Batch(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    kind: Literal[4]
    collection: str
    version: int
    question: str
    run: int
    step: int
    round: int
    part: int
    ids: bytes
    reports: bytes


class _JsonEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    question: str
    run: int
    step: int
    round: int
    part: int
    id: str
    report: bytes


class _JsonUpload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    collection: str
    version: int
    entries: list[_JsonEntry]
    pad: str = ""


_encoder = msgspec.msgpack.Encoder()
_json_encoder = msgspec.json.Encoder()
_uploads = msgspec.msgpack.Decoder(_Upload)
_batches = msgspec.msgpack.Decoder(_Batch)
_json_uploads = msgspec.json.Decoder(_JsonUpload)
_REFUSED = (msgspec.DecodeError, UnicodeDecodeError, TypeError, RecursionError)


def encode_upload(collection: str, version: int, entries: Sequence[Entry], size: int) -> bytes:
    """The frame of some entries, of exactly `size` bytes.

    Example:
        >>> frame = encode_upload("themes", 1, [Entry("popular", 0, 7, 1, 0, b"i" * 16, b"...")], 1024)
        >>> len(frame), decode_upload(frame).entries[0].report
        (1024, b'...')
    """
    upload = Upload(collection, version, list(entries))
    _check(upload)
    head = _encoder.encode(_Upload(3, collection, version, upload.entries, b""))[:-2]
    room = size - len(head) - _PAD_HEAD
    if room < 0:
        raise InvalidValue("size", size, f"at least {len(head) + _PAD_HEAD} bytes, for {len(entries)} entries")
    return head + b"\xc6" + room.to_bytes(4, "big") + bytes(room)


def decode_upload(data: bytes) -> Upload:
    """The entries of a frame. Reports are not looked at: that takes the ask's mechanism.

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
    upload = Upload(frame.collection, frame.version, frame.entries)
    _check(upload)
    return upload


def json_size(size: int) -> int:
    """The size of a JSON upload whose binary form has `size` bytes: the spelling is never twice as long.

    Example:
        >>> json_size(1024)
        2048
    """
    return 2 * size


def encode_upload_json(collection: str, version: int, entries: Sequence[Entry], size: int) -> bytes:
    """The readable frame of some entries, padded to `json_size(size)` bytes.

    Example:
        >>> frame = encode_upload_json("themes", 1, [Entry("popular", 0, 7, 1, 0, b"i" * 16, b"...")], 1024)
        >>> len(frame), decode_upload_json(frame).entries[0].report
        (2048, b'...')
    """
    upload = Upload(collection, version, list(entries))
    _check(upload)
    spelt = [_JsonEntry(*entry.name, entry.report_id.hex(), entry.report) for entry in entries]
    head = _json_encoder.encode(_JsonUpload(collection, version, spelt))[:-2]
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
        if len(entry.id) != 2 * ID_BYTES or entry.id.strip(_DIGITS):
            raise DecodeError("id", entry.id, f"{2 * ID_BYTES} hexadecimal digits")
        name = (entry.question, entry.run, entry.step, entry.round, entry.part)
        entries.append(Entry(*name, bytes.fromhex(entry.id), entry.report))
    upload = Upload(frame.collection, frame.version, entries)
    _check(upload)
    return upload


def encode_batch(collection: str, version: int, name: AnswerName, ids: bytes, reports: Reports) -> bytes:
    """The frame of many reports that are one answer.

    Example:
        >>> from hubbub import GRR, Random
        >>> grr = GRR(epsilon=1.0, domain=2)
        >>> reports = grr.randomize([0, 1], Random(seed=1))
        >>> frame = encode_batch("themes", 1, AnswerName("popular", 0, 7, 1, 0), bytes(32), reports)
        >>> decode_batch(frame).read(grr) == reports
        True
    """
    batch = Batch(collection, version, name, ids, reports.to_bare())
    _check_batch(batch)
    if batch.count != len(reports):
        raise DecodeError("ids", f"{len(ids)} bytes", f"{ID_BYTES} bytes for each of {len(reports)} reports")
    return _encoder.encode(_Batch(4, collection, version, *name, ids, batch.reports))


def decode_batch(data: bytes) -> Batch:
    """The reports of a batch, and their ids. Reports are not looked at: that takes the ask's mechanism.

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
    name = AnswerName(frame.question, frame.run, frame.step, frame.round, frame.part)
    batch = Batch(frame.collection, frame.version, name, frame.ids, frame.reports)
    _check_batch(batch)
    return batch


def _start(data: object) -> object:
    return data[:40] if isinstance(data, bytes) else data  # not all of it: it may be large


def _check(upload: Upload) -> None:
    _check_collection(upload.collection, upload.version)
    if len(upload.entries) > MOST_ENTRIES:  # none at all is a frame of cover
        raise DecodeError("entries", len(upload.entries), f"at most {MOST_ENTRIES} entries")
    for entry in upload.entries:
        _check_name(entry)
        if len(entry.report_id) != ID_BYTES:
            raise DecodeError("report_id", entry.report_id, f"{ID_BYTES} bytes")


def _check_batch(batch: Batch) -> None:
    _check_collection(batch.collection, batch.version)
    _check_name(batch.name)
    if not batch.ids or len(batch.ids) % ID_BYTES:
        raise DecodeError("ids", f"{len(batch.ids)} bytes", f"{ID_BYTES} bytes for each report, of at least one")
    if not batch.reports or len(batch.reports) % batch.count:
        raise DecodeError("reports", f"{len(batch.reports)} bytes", f"as many bytes for each of {batch.count} reports")


def check_answer(collection: str, version: int, name: AnswerName) -> None:
    """Refuse names and numbers that no collection, version or answer has.

    Example:
        >>> check_answer("themes", 1, AnswerName("popular", 0, 7, 1, 0))
    """
    _check_collection(collection, version)
    _check_name(name)


def _check_collection(name: str, version: int) -> None:
    _check_slug("collection", name)
    _check_range("version", version)


def _check_name(name: AnswerName | Entry) -> None:
    _check_slug("question", name.question)
    _check_range("run", name.run)
    _check_range("step", name.step)
    _check_range("round", name.round)
    _check_range("part", name.part)


def _check_slug(field: str, value: str) -> None:
    if not is_slug(value):
        raise DecodeError(field, value[:80], "a name: at most 64 letters a-z, digits, - and _, a letter first")


def _check_range(field: str, value: int) -> None:
    low, high = _RANGES[field]
    if not low <= value <= high:
        raise DecodeError(field, value, f"an integer from {low} to {high}")
