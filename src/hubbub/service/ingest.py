"""Reports into sketches, each exactly once. Pure logic over the board: what comes out is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hubbub.backends import LOCAL
from hubbub.collection.names import AnswerName
from hubbub.core.sketch import Sketch
from hubbub.service.frames import Frame
from hubbub.service.gather import ReportGroup, gather
from hubbub.service.ids import Ids
from hubbub.service.open_asks import AnswerPlace, Board, OpenAsk
from hubbub.service.raw_reports import pack
from hubbub.service.reasons import Reason
from hubbub.service.receipt import Receipt
from hubbub.service.report_ids import DUPLICATE, FRESH, REPLAY
from hubbub.service.shuffled import OpenedBatch
from hubbub.service.store.base import AskKey, IdPage, StoreChanges

_LATE, _EARLY, _MALFORMED, _BEYOND = 3, 4, 5, 6
_REASONS: dict[int, Reason] = {
    REPLAY: "replay",
    _LATE: "late",
    _EARLY: "too_early",
    _MALFORMED: "malformed",
    _BEYOND: "over_ceiling",
}

Status = NDArray[np.int8]


@dataclass(frozen=True)
class Draft:
    """A transaction that is not made yet, what to answer once it is, and what memory will then hold.

    Example:
        >>> bool(Draft(StoreChanges(), [], []).changes)
        False
    """

    changes: StoreChanges
    receipts: list[Receipt]
    follow: list[tuple[OpenAsk, Sketch, Ids]]
    shuffled: dict[AskKey, tuple[OpenAsk, Sketch, bytes]] = field(default_factory=dict)

    def apply(self) -> None:
        """Let memory follow the store."""
        for opened, sketch, ids in self.follow:
            opened.sketch = sketch
            opened.ids.add(ids)
        for opened, sketch, digest in self.shuffled.values():
            opened.sketch, opened.shuffled = sketch, digest


def draft(frames: Sequence[Frame], board: Board, now: float, knows: Callable[[str, AnswerName], bool]) -> Draft:
    """Decide on a group of requests together. Nothing is changed.

    Parameters
    ----------
    frames
        What came in, in order.
    board
        The asks.
    now
        The time at which all of them count as having come.
    knows
        Whether an ask that is not on the board was ever published, by collection and name.

    Example:
        >>> draft([Frame("0" * 32)], Board(), 0.0, lambda collection, name: False).receipts
        [Receipt(accepted=0, duplicates=0, rejected=[])]
    """
    made = Draft(StoreChanges(), [Receipt() for _ in frames], [])
    for key, answers in gather(frames, made.receipts, board, knows).items():
        opened = board.asks[key]
        status = _status(opened, answers, now)
        _cut(status, answers.ids, board.room(opened) - sum(len(ids) for _, _, ids in made.follow))
        if (status == FRESH).any():
            sketch = _fold(opened, answers, status)
            counted = np.flatnonzero(status == FRESH)
            ids = answers.ids.take(counted)
            made.changes.id_pages += [IdPage(*key, page, part, data) for page, part, data in opened.ids.written(ids)]
            if opened.keeps:
                made.changes.reports.append((key, len(counted), pack(answers.reports[counted])))
            made.changes.sketches[key] = sketch.to_bytes()
            made.follow.append((opened, sketch, ids))
        _tell(made.receipts, answers, status)
    for frame, receipt in zip(frames, made.receipts, strict=True):
        made.changes.spot_checks += frame.spot_checks
        if frame.shuffled is not None:
            _take_shuffled(frame.shuffled, frame.collection, board, now, made, receipt)
    for frame, receipt in zip(frames, made.receipts, strict=True):
        for outcome, count in receipt.outcomes().items():
            if count:
                made.changes.counts[frame.collection, outcome] += count
        if not frame.count and not frame.spot_checks:
            # Of a device that is asked and does not answer: see Collection.cover.
            made.changes.counts[frame.collection, "cover"] += 1
    return made


def refusal(frame: Frame) -> Draft:
    """What to do with a request that cannot be decided on: all of its reports are malformed.

    Example:
        >>> from hubbub.collection.upload import Entry
        >>> made = refusal(Frame("0" * 32, [Entry("popular", 0, 7, 1, 0, bytes(16), b"...")]))
        >>> made.receipts[0].rejected, dict(made.changes.counts)
        ([('00000000000000000000000000000000', 'malformed')], {('00000000000000000000000000000000', 'malformed'): 1})
    """
    ids = b"".join(entry.report_id for entry in frame.entries) + (frame.batch.ids if frame.batch is not None else b"")
    receipt = Receipt(rejected=[(ids[at : at + 16].hex(), "malformed") for at in range(0, len(ids), 16)])
    made = Draft(StoreChanges(), [receipt], [])
    made.changes.counts[frame.collection, "malformed"] += len(receipt.rejected)
    return made


def _take_shuffled(
    batch: OpenedBatch, collection: str, board: Board, now: float, made: Draft, receipt: Receipt
) -> None:
    """Count a batch of shuffled reports as a whole, once: the same again was counted before, another is refused."""
    opened, name = board.find(AnswerPlace(collection, batch.answer)), str(batch.answer)
    if opened is None:
        receipt.rejected.append((name, "unknown_ask"))
        return
    taken = made.shuffled[opened.key][2] if opened.key in made.shuffled else opened.shuffled
    if taken is not None:
        if taken == batch.digest:
            receipt.duplicates += len(batch.reports)
        else:
            receipt.rejected.append((name, "replay"))
    elif not opened.takes(now):
        receipt.rejected.append((name, "too_early" if now < opened.opens else "late"))
    elif len(batch.reports) > board.room(opened):
        receipt.rejected.append((name, "over_ceiling"))
    else:
        sketch = batch.sketch(opened)
        made.changes.shuffled.append(batch.row(opened.key))
        made.changes.sketches[opened.key] = sketch.to_bytes()
        if opened.keeps:
            made.changes.reports.append((opened.key, len(batch.reports), pack(batch.reports)))
        made.shuffled[opened.key] = (opened, sketch, batch.digest)
        receipt.accepted += len(batch.reports)


def _status(opened: OpenAsk, answers: ReportGroup, now: float) -> Status:
    """Which reports are fresh, and what the others are."""
    ids = answers.ids
    status = opened.ids.look(ids)
    if not opened.takes(now):
        status[status == FRESH] = _EARLY if now < opened.opens and not opened.final else _LATE
        return status
    first = ids.first_of_each()
    again = (status == FRESH) & (first != np.arange(len(ids)))  # twice in one group
    status[again] = np.where(ids.digest[again] == ids.digest[first[again]], DUPLICATE, REPLAY)
    return status


def _cut(status: Status, ids: Ids, room: int) -> None:
    """Of the fresh reports, only as many are taken as there is room for."""
    fresh = np.flatnonzero(status == FRESH)
    if len(fresh) <= room:
        return
    status[fresh[max(room, 0) :]] = _BEYOND
    status[status[ids.first_of_each()] == _BEYOND] = _BEYOND  # what repeats them was not counted either


def _fold(opened: OpenAsk, answers: ReportGroup, status: Status) -> Sketch:
    """The sketch with all fresh reports."""
    mechanism, reports, fresh = opened.ask.mechanism, answers.reports, status == FRESH
    try:
        return opened.sketch + LOCAL.fold([reports if fresh.all() else reports[fresh]], mechanism)
    except Exception:  # a report that passed every check and still cannot be counted must not cost its neighbours
        sketch = opened.sketch
    for row in np.flatnonzero(fresh):
        try:
            sketch = sketch + mechanism.accumulate(reports[row : row + 1])
        except Exception:
            status[row] = _MALFORMED
    status[status[answers.ids.first_of_each()] == _MALFORMED] = _MALFORMED  # its repeats were not counted either
    return sketch


def _tell(receipts: list[Receipt], answers: ReportGroup, status: Status) -> None:
    for number, count in enumerate(np.bincount(answers.owner[status == FRESH]).tolist()):
        receipts[number].accepted += count
    for number, count in enumerate(np.bincount(answers.owner[status == DUPLICATE]).tolist()):
        receipts[number].duplicates += count
    for row in np.flatnonzero(status >= REPLAY).tolist():
        receipts[answers.owner[row]].rejected.append((answers.ids.hex(row), _REASONS[int(status[row])]))
