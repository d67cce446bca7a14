"""Counts each report once: decides, without changing anything, which transaction a group of requests becomes."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from hubbub.collection.names import AnswerName
from hubbub.core.plugins import PluginFailed
from hubbub.core.reports import Sketch
from hubbub.service.base.limits import Reason, Receipt
from hubbub.service.ingest.frames import Frame, ReportGroup, gather
from hubbub.service.ingest.open_asks import AnswerPlace, Board, OpenAsk
from hubbub.service.ingest.shuffled import OpenedBatch
from hubbub.service.ingest.warm_up import count_two_reports
from hubbub.service.kept.archive import pack
from hubbub.service.store.base import AskKey, IdPage, StoreChanges
from hubbub.service.store.report_ids import DUPLICATE, FRESH, REPLAY, Ids

_LATE, _EARLY, _MALFORMED, _OVER_CEILING, _AGAIN = 3, 4, 5, 6, 7
_REASONS: dict[int, Reason] = {
    REPLAY: "replay",
    _LATE: "late",
    _EARLY: "too_early",
    _MALFORMED: "malformed",
    _OVER_CEILING: "over_ceiling",
    _AGAIN: "over_quota",  # devices of every version send such a report again
}

Status = NDArray[np.int8]


@dataclass(frozen=True)
class Draft:
    """A transaction that is not committed yet, the receipts to send once it is, and the changes of memory after it."""

    changes: StoreChanges
    receipts: list[Receipt]
    counted: list[tuple[OpenAsk, Sketch, Ids]]
    """For each ask with new reports, its next sketch and the ids to add."""
    shuffled: dict[AskKey, tuple[OpenAsk, Sketch, bytes]] = field(default_factory=dict)
    """For each ask with a shuffled batch, its next sketch and the hash of the batch."""
    failed: list[tuple[OpenAsk, PluginFailed]] = field(default_factory=list)
    """The asks whose mechanism, of another package, can count no reports."""

    def apply(self, board: Board) -> None:
        """Change memory as the store was changed. Called after the commit."""
        for ask, sketch, ids in self.counted:
            ask.sketch = sketch
            board.add_ids(ask, ids)
        for ask, sketch, digest in self.shuffled.values():
            ask.sketch, ask.shuffled = sketch, digest
        for ask, error in self.failed:
            ask.failure = error


def draft(frames: Sequence[Frame], board: Board, now: float, knows: Callable[[str, AnswerName], bool]) -> Draft:
    """Decide what to do with a group of requests. Nothing is changed.

    Parameters
    ----------
    knows
        Whether an ask that is not on the board was ever published, by collection and name.
    """
    receipts = [Receipt() for _ in frames]
    return decide(frames, gather(frames, receipts, board, knows), receipts, board, now)


def fold_groups(groups: Mapping[AskKey, ReportGroup], board: Board) -> dict[AskKey, Sketch]:
    """The sketches of all reports to each ask: what `decide` needs most of its time for, unless some count already."""
    folded = {}
    for key, group in groups.items():
        ask = board.asks[key]
        board.counting = key.collection, ask.question
        with suppress(Exception):  # `decide` finds the report that cannot be counted
            folded[key] = ask.fold(group.reports)
    return folded


def decide(
    frames: Sequence[Frame],
    groups: Mapping[AskKey, ReportGroup],
    receipts: list[Receipt],
    board: Board,
    now: float,
    folded: Mapping[AskKey, Sketch] = MappingProxyType({}),
) -> Draft:
    """Decide what to do with the reports of a group of requests, which were read. Nothing is changed but `receipts`.

    `folded` are the sketches of `fold_groups`, if they were made before.
    """
    drafted, taken = Draft(StoreChanges(), receipts, []), 0
    for key, group in groups.items():
        ask = board.asks[key]
        board.counting = key.collection, ask.question
        status = _status(ask, group, now)
        _limit(status, group.ids, board.room(ask) - taken)
        if (status == FRESH).any():
            sketch = _fold(ask, group, status, drafted, folded.get(key))
            fresh = np.flatnonzero(status == FRESH)
            ids = group.ids.take(fresh)
            drafted.changes.id_pages += [IdPage(*key, page, part, data) for page, part, data in ask.ids.written(ids)]
            if ask.keeps:
                drafted.changes.reports.append((key, len(fresh), pack(group.reports[fresh])))
            drafted.changes.sketches[key] = sketch.to_bytes()
            drafted.counted.append((ask, sketch, ids))
            taken += len(ids)
        _fill_receipts(drafted.receipts, group, status)
    for frame, receipt in zip(frames, drafted.receipts, strict=True):
        drafted.changes.spot_checks += frame.spot_checks
        if frame.shuffled is not None:
            _take_shuffled(frame.shuffled, frame.collection, board, now, drafted, receipt)
    for frame, receipt in zip(frames, drafted.receipts, strict=True):
        for outcome, count in receipt.outcomes().items():
            if count:
                drafted.changes.counts[frame.collection, outcome] += count
        if not frame.count and not frame.spot_checks:
            # An empty upload, from a device that does not answer: see Collection.cover.
            drafted.changes.counts[frame.collection, "cover"] += 1
    return drafted


def refusal(frame: Frame) -> Draft:
    """The draft for a request on which `draft` fails: all of its reports are rejected as malformed."""
    ids = b"".join(entry.report_id for entry in frame.entries) + (frame.batch.ids if frame.batch is not None else b"")
    receipt = Receipt(rejected=[(ids[at : at + 16].hex(), "malformed") for at in range(0, len(ids), 16)])
    if frame.shuffled is not None:
        receipt.rejected.append((str(frame.shuffled.answer), "malformed"))
    drafted = Draft(StoreChanges(), [receipt], [])
    drafted.changes.counts[frame.collection, "malformed"] += len(receipt.rejected)
    return drafted


def _take_shuffled(
    batch: OpenedBatch, collection: str, board: Board, now: float, drafted: Draft, receipt: Receipt
) -> None:
    """Count a shuffled batch as a whole. An ask takes one batch: the same again is a duplicate, another is refused."""
    ask, name = board.find(AnswerPlace(collection, batch.answer)), str(batch.answer)
    if ask is None:
        receipt.rejected.append((name, "unknown_ask"))
        return
    board.counting = collection, ask.question
    taken = drafted.shuffled[ask.key][2] if ask.key in drafted.shuffled else ask.shuffled
    if taken is not None:
        if taken == batch.digest:
            receipt.duplicates += len(batch.reports)
        else:
            receipt.rejected.append((name, "replay"))
    elif not ask.takes(now):
        receipt.rejected.append((name, "too_early" if now < ask.opens else "late"))
    elif len(batch.reports) > board.room(ask):
        receipt.rejected.append((name, "over_ceiling"))
    else:
        try:
            sketch = batch.sketch(ask)
        except PluginFailed:
            if not _has_failed(ask, drafted):
                raise
            receipt.rejected.append((name, _REASONS[_AGAIN]))
            return
        drafted.changes.shuffled.append(batch.row(ask.key))
        drafted.changes.sketches[ask.key] = sketch.to_bytes()
        if ask.keeps:
            drafted.changes.reports.append((ask.key, len(batch.reports), pack(batch.reports)))
        drafted.shuffled[ask.key] = (ask, sketch, batch.digest)
        receipt.accepted += len(batch.reports)


def _status(ask: OpenAsk, group: ReportGroup, now: float) -> Status:
    """The status of each report: fresh, duplicate, replay, too early or late."""
    ids = group.ids
    status = ask.ids.look(ids)
    if not ask.takes(now):
        status[status == FRESH] = _EARLY if now < ask.opens and not ask.final else _LATE
        return status
    first = ids.first_of_each()
    repeated = (status == FRESH) & (first != np.arange(len(ids)))  # the same id twice in one group
    status[repeated] = np.where(ids.digest[repeated] == ids.digest[first[repeated]], DUPLICATE, REPLAY)
    return status


def _limit(status: Status, ids: Ids, room: int) -> None:
    """Take only as many fresh reports as there is room for."""
    fresh = np.flatnonzero(status == FRESH)
    if len(fresh) <= room:
        return
    status[fresh[max(room, 0) :]] = _OVER_CEILING
    status[status[ids.first_of_each()] == _OVER_CEILING] = _OVER_CEILING  # their repetitions were not counted either


def _fold(ask: OpenAsk, group: ReportGroup, status: Status, drafted: Draft, whole: Sketch | None) -> Sketch:
    """The ask's sketch with all fresh reports added; reports that cannot be added become malformed.

    If the mechanism, of another package, cannot count any report, the sender keeps its report and sends it again.
    """
    reports, fresh = group.reports, status == FRESH
    if whole is not None and fresh.all():
        return ask.sketch + whole
    try:
        return ask.sketch + ask.fold(reports if fresh.all() else reports[fresh])
    except Exception:  # one bad report must not cost the others: they are added one by one
        sketch, plugin_raised = ask.sketch, False
    for row in np.flatnonzero(fresh):
        try:
            sketch = sketch + ask.fold(reports[row : row + 1])
        except Exception as error:
            status[row] = _MALFORMED
            plugin_raised |= isinstance(error, PluginFailed)
    if plugin_raised and _has_failed(ask, drafted):
        status[status == _MALFORMED] = _AGAIN
    first = status[group.ids.first_of_each()]  # repetitions of what was not counted were not counted either
    uncounted = (first == _MALFORMED) | (first == _AGAIN)
    status[uncounted] = first[uncounted]
    return sketch


def _has_failed(ask: OpenAsk, drafted: Draft) -> bool:
    """Whether the mechanism of an ask fails on invented reports too: the fault is then not in what was sent."""
    try:
        count_two_reports(ask.ask)
    except PluginFailed as error:
        drafted.failed.append((ask, error))
        return True
    return False


def _fill_receipts(receipts: list[Receipt], group: ReportGroup, status: Status) -> None:
    for owner, count in enumerate(np.bincount(group.owner[status == FRESH]).tolist()):
        receipts[owner].accepted += count
    for owner, count in enumerate(np.bincount(group.owner[status == DUPLICATE]).tolist()):
        receipts[owner].duplicates += count
    for row in np.flatnonzero(status >= REPLAY).tolist():
        receipts[group.owner[row]].rejected.append((group.ids.hex(row), _REASONS[int(status[row])]))
