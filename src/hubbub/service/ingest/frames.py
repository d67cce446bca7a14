"""Reads the bytes of a request into a `Frame`, and reports from their bytes. Nothing is trusted unchecked.

Reads reports from their bytes, and refuses those that no client of the mechanism can have made.

All reports of a mechanism have the same size, with columns at the same offsets: many are read at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.collection import Collection
from hubbub.core.errors import DecodeError, HubbubError
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import ReportFormat
from hubbub.service.base.limits import Reason
from hubbub.wire.batches import BATCH_TYPE, Batch, decode_batch
from hubbub.wire.upload import JSON_TYPE, UPLOAD_TYPE, Entry, Upload, decode_upload, decode_upload_json, json_size

if TYPE_CHECKING:
    from hubbub.service.ingest.shuffled import OpenedBatch
    from hubbub.service.store.base import AskKey

TYPES = (UPLOAD_TYPE, BATCH_TYPE, JSON_TYPE)
"""What may be posted."""


class RefusedRequest(HubbubError):
    """A whole request is refused. It held `count` reports, as far as is known; a retry after `wait` seconds may
    work.
    """

    def __init__(self, reason: Reason, detail: str, *, collection: str = "", count: int = 1, wait: float = 0.0) -> None:
        self.reason = reason
        self.detail = detail
        self.collection = collection
        self.count = count
        self.wait = wait
        super().__init__(f"{reason}: {detail}")


@dataclass(frozen=True)
class Frame:
    """One request: the id of its collection, and the entries of an upload, or a batch, or a shuffled batch.

    Entries and batches still hold bytes: to read a report, the ask that it answers must be known.
    """

    collection: str
    entries: list[Entry] = field(default_factory=list)
    batch: Batch | None = None
    shuffled: OpenedBatch | None = None
    """A batch from the last shuffler, decrypted."""
    spot_checks: tuple[tuple[AskKey, bytes], ...] = ()
    """The collector's own reports, to be looked for in a shuffled batch."""

    @property
    def count(self) -> int:
        """How many reports the request holds."""
        shuffled = 0 if self.shuffled is None else len(self.shuffled.reports)
        return len(self.entries) + (0 if self.batch is None else self.batch.count) + shuffled


@dataclass(frozen=True)
class Served:
    """The collections that are served, by name, and the ids of their earlier versions."""

    current: Mapping[str, Collection]
    outdated: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """By name and version."""

    def find(self, name: str, version: int, count: int) -> Collection:
        """The collection of a request that names this version and holds `count` reports; else `RefusedRequest`."""
        count = max(count, 1)
        collection = self.current.get(name)
        if collection is None:
            raise RefusedRequest("unknown_collection", "no collection has this name", count=count)
        if version == collection.version:
            return collection
        detail = f"version {collection.version} of {name} is served, not {version}"
        if version > collection.version:
            raise RefusedRequest("unknown_collection", detail, count=count)
        raise RefusedRequest("outdated_version", detail, collection=self.outdated.get((name, version), ""), count=count)


def read_frame(content_type: str, body: bytes, served: Served) -> Frame:
    """Decode a request whose content type is one of `TYPES`."""
    try:
        if content_type == BATCH_TYPE:
            return _batch(decode_batch(body), served)
        if content_type == UPLOAD_TYPE:
            return _upload(decode_upload(body), served, len(body), exact=True)
        if content_type == JSON_TYPE:
            return _upload(decode_upload_json(body), served, len(body), exact=False)
    except DecodeError as error:
        raise RefusedRequest("malformed", str(error)) from None
    raise RefusedRequest("malformed", f"content type {content_type[:80]!r}; allowed: {', '.join(TYPES)}")


def _batch(batch: Batch, served: Served) -> Frame:
    collection = served.find(batch.collection, batch.version, batch.count)
    return Frame(collection.collection_id, batch=batch)


def _upload(upload: Upload, served: Served, size: int, *, exact: bool) -> Frame:
    collection = served.find(upload.collection, upload.version, len(upload.entries))
    wanted = collection.frame_bytes if exact else json_size(collection.frame_bytes)
    # Binary uploads have one size, so that a client's answers cannot be told apart. JSON may also be written by hand.
    if size != wanted if exact else size > wanted:
        reason = f"{size} bytes; allowed: {'exactly' if exact else 'at most'} {wanted}"
        raise RefusedRequest(
            "malformed", reason, collection=collection.collection_id, count=max(len(upload.entries), 1)
        )
    return Frame(collection.collection_id, upload.entries)


class ReportOpener:
    """Reads the reports of one mechanism."""

    def __init__(self, mechanism: ReportFormat) -> None:
        self._mechanism = mechanism
        self._size = mechanism.report_bytes
        self._places = {}
        at = 0
        for column in mechanism.columns:
            size = np.dtype(column.dtype).itemsize * math.prod(column.shape)
            self._places[column.name] = slice(at, at + size)
            at += size

    def open_batch(self, batch: Batch) -> Reports | None:
        """The reports of a batch; None if any of them cannot come from a client of the mechanism."""
        try:
            reports = batch.read(self._mechanism)
        except HubbubError:
            return None
        return reports if self._passes(reports) else None

    def open_each(self, reports: Sequence[bytes]) -> tuple[Reports, NDArray[np.bool_]]:
        """The reports that can come from a client of the mechanism, as one batch, and which of `reports` they are."""
        readable = np.fromiter((len(report) == self._size for report in reports), dtype=bool, count=len(reports))
        joined = b"".join(report for report in reports if len(report) == self._size)
        batch = self._batch(np.frombuffer(joined, dtype=np.uint8).reshape(-1, self._size))
        allowed = self._allowed(batch)
        readable[readable] = allowed
        return batch[allowed], readable

    def _batch(self, rows: NDArray[np.uint8]) -> Reports:
        parts: dict[str, dict[str, NDArray[Any]]] = {"public": {}, "private": {}}
        for column in self._mechanism.columns:
            data = np.ascontiguousarray(rows[:, self._places[column.name]])
            little = np.dtype(column.dtype).newbyteorder("<")
            array = data.view(little).reshape(len(rows), *column.shape)
            parts[column.part][column.name] = array.astype(column.dtype, copy=False)
        return Reports(self._mechanism.spec_id, public=parts["public"], private=parts["private"])

    def _allowed(self, batch: Reports) -> NDArray[np.bool_]:
        if self._passes(batch):
            return np.ones(len(batch), dtype=bool)
        return np.fromiter((self._passes(batch[row : row + 1]) for row in range(len(batch))), dtype=bool)

    def _passes(self, batch: Reports) -> bool:
        try:
            self._mechanism.check(batch)
        except HubbubError:
            return False
        return True
