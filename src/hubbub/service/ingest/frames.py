"""Requests: read and checked as a whole, then their reports are grouped by the ask that they answer.

The bytes of a request become a `Frame`. Nothing is trusted unchecked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hubbub.collection import Clock, SignedCollection
from hubbub.collection.names import AnswerName
from hubbub.core.errors import DecodeError
from hubbub.core.reports import Ints, Reports
from hubbub.service.base.limits import Limits, Quota, Reason, Receipt, RefusedRequest
from hubbub.service.ingest.open_asks import AnswerPlace, Board
from hubbub.service.ingest.shared import open_shared
from hubbub.service.ingest.shuffled import OpenedBatch, open_shuffled
from hubbub.service.store.base import AskKey
from hubbub.service.store.report_ids import Ids, digests_of
from hubbub.service.store.sql import Store
from hubbub.shuffle.onion import OnionKey
from hubbub.wire.batches import BATCH_TYPE, Batch, ShuffledBatch, decode_batch, decode_shuffled
from hubbub.wire.shares import decode_shared, is_shared
from hubbub.wire.upload import JSON_TYPE, UPLOAD_TYPE, Entry, Upload, decode_upload, decode_upload_json, json_size

if TYPE_CHECKING:
    from hubbub.shuffle.dgk import DGKPrivate

TYPES = (UPLOAD_TYPE, BATCH_TYPE, JSON_TYPE)
"""What may be posted."""


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

    current: Mapping[str, SignedCollection]
    outdated: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """By name and version."""

    def find(self, name: str, version: int, count: int) -> SignedCollection:
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


class Admission:
    """Turns the body of a request into a `Frame`, or raises `RefusedRequest`.

    Parameters
    ----------
    limits, clock
        The largest body, and how many reports per second are taken.
    onion_key, homomorphic_key
        As of `Collector`.

    Example:
        >>> from hubbub.service.collector.collector import example_collector
        >>> collector = example_collector()
        >>> admission = Admission(collector.served, collector.store, collector.board, clock=collector.clock)
        >>> admission.read("text/plain", b"hostile")
        Traceback (most recent call last):
            ...
        hubbub.service.base.limits.RefusedRequest: malformed: content type 'text/plain'; allowed: ...
    """

    def __init__(
        self,
        served: Served,
        store: Store,
        board: Board,
        *,
        clock: Clock,
        limits: Limits | None = None,
        onion_key: OnionKey | None = None,
        homomorphic_key: DGKPrivate | None = None,
    ) -> None:
        self._served = served
        self._shuffled = {collection.collection_id for collection in served.current.values() if collection.shuffle}
        self._store, self._board, self._onion_key, self._key = store, board, onion_key, homomorphic_key
        self._limits = limits or Limits()
        self._quota = Quota(rate=self._limits.rate, burst=self._limits.burst, clock=clock)

    def share(self, processes: int) -> None:
        """Take only the share of the quota of one of some processes."""
        self._quota.rate, self._quota.burst = self._limits.rate / processes, max(self._limits.burst // processes, 1)

    def read(self, content_type: str, body: bytes) -> Frame:
        """Read an upload or a batch that devices send directly."""
        _check_size(body, self._limits.most_bytes)
        frame = read_frame(content_type, body, self._served)
        count = max(frame.count, 1)
        if frame.collection in self._shuffled:
            detail = "send to the first shuffler, whose address is in the signed collection"
            raise RefusedRequest("not_shuffled", detail, collection=frame.collection, count=count)
        self._check_ceiling(frame)
        wait = self._quota.take(frame.collection, count)
        if wait:
            detail = f"more than {self._quota.rate:g} reports per second; try again in {wait:.3g} seconds"
            raise RefusedRequest("over_quota", detail, collection=frame.collection, count=count, wait=wait)
        return frame

    def read_shuffled(self, body: bytes) -> Frame:
        """Read a batch from shufflers, and decrypt its reports."""
        _check_size(body, self._limits.shuffled_bytes)
        try:
            batch = decode_shared(body) if is_shared(body) else decode_shuffled(body)
            count = max(len(batch.onions) if isinstance(batch, ShuffledBatch) else batch.rows, 1)
            collection = self._served.find(batch.collection, batch.version, count)
            if collection.shuffle is None or self._onion_key is None:
                raise RefusedRequest("malformed", f"reports of {collection.name} are not shuffled")
            ask = self._board.find(AnswerPlace(collection.collection_id, batch.answer))
            if ask is None:
                known = self._store.knows(collection.collection_id, batch.answer)
                raise RefusedRequest("late" if known else "unknown_ask", batch.name, count=count)
            spot_checks = self._store.spot_checks(ask.key)
            if isinstance(batch, ShuffledBatch):
                opened = open_shuffled(batch, body, collection, ask, self._onion_key, spot_checks)
            else:
                assert self._key is not None  # checked at the start
                opened = open_shared(batch, body, collection, ask, (self._onion_key, self._key), spot_checks)
        except DecodeError as error:
            raise RefusedRequest("malformed", str(error)) from None
        return Frame(collection.collection_id, shuffled=opened)

    def _check_ceiling(self, frame: Frame) -> None:
        """Refuse a batch to an ask that takes no more reports, before its reports are read one by one."""
        if frame.batch is None:
            return
        ask = self._board.find(AnswerPlace(frame.collection, frame.batch.name))
        if ask is not None and not self._board.room(ask):
            detail = f"{len(ask.ids):,} reports to this ask are all that is taken"
            count = max(frame.count, 1)
            raise RefusedRequest("over_ceiling", detail, collection=frame.collection, count=count, wait=60.0)


def _check_size(body: bytes, most: int) -> None:
    if len(body) > most:
        raise RefusedRequest("too_large", f"{len(body):,} bytes; at most {most:,}")


class ReportGroup(NamedTuple):
    """Well-formed reports to one ask; `owner` is the index of the request that each came with."""

    reports: Reports
    ids: Ids
    owner: Ints


def gather(
    frames: Sequence[Frame], receipts: Sequence[Receipt], board: Board, knows: Callable[[str, AnswerName], bool]
) -> dict[AskKey, ReportGroup]:
    """Read all reports that answer an ask on the board and are well-formed; reject the others in their receipts.

    `knows` says whether an ask that is not on the board was ever published.
    """
    singles: dict[AnswerPlace, list[tuple[Entry, int]]] = defaultdict(list)
    groups: dict[AskKey, list[tuple[Reports, bytes, Any]]] = defaultdict(list)
    for owner, frame in enumerate(frames):
        for entry in frame.entries:
            singles[AnswerPlace(frame.collection, entry.name)].append((entry, owner))
        if frame.batch is not None:
            place = AnswerPlace(frame.collection, frame.batch.name)
            ask = board.find(place)
            board.counting = place.collection, place.name.question
            reports = None if ask is None else ask.opener.open_batch(frame.batch)
            if ask is not None and reports is not None:
                groups[ask.key].append((reports, frame.batch.ids, owner))
            else:
                reason = "malformed" if ask is not None else _why_not_on_board(place, board, knows)
                receipts[owner].rejected += [(report_id, reason) for report_id in _hex_ids(frame.batch)]
    for place, entries in singles.items():
        ask = board.find(place)
        board.counting = place.collection, place.name.question
        readable = np.zeros(len(entries), dtype=bool)
        reason = "malformed" if ask is not None else _why_not_on_board(place, board, knows)
        if ask is not None:
            reports, readable = ask.opener.open_each([entry.report for entry, _ in entries])
            read = [entries[row] for row in np.flatnonzero(readable)]
            ids = b"".join(entry.report_id for entry, _ in read)
            if read:
                groups[ask.key].append((reports, ids, [owner for _, owner in read]))
        for row in np.flatnonzero(~readable):
            entry, owner = entries[row]
            receipts[owner].rejected.append((entry.report_id.hex(), reason))
    return {key: _group(parts) for key, parts in groups.items()}


def _why_not_on_board(place: AnswerPlace, board: Board, knows: Callable[[str, AnswerName], bool]) -> Reason:
    if place in board.expected:
        return "too_early"
    return "late" if knows(*place) else "unknown_ask"


def _group(parts: Sequence[tuple[Reports, bytes, Any]]) -> ReportGroup:
    """All reports to one ask, from some with their ids and the index of the request of all or of each."""
    reports = Reports.concat([part for part, _, _ in parts]) if len(parts) > 1 else parts[0][0]
    ids = Ids.of(b"".join(ids for _, ids, _ in parts), digests_of(reports))
    owners = [np.broadcast_to(np.asarray(owner, dtype=np.int64), len(part)) for part, _, owner in parts]
    return ReportGroup(reports, ids, np.concatenate(owners))


def _hex_ids(batch: Batch) -> list[str]:
    return [batch.ids[at : at + 16].hex() for at in range(0, len(batch.ids), 16)]
