"""Groups the reports of several requests by the ask that they answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.collection.names import AnswerName
from hubbub.collection.relay_batch import Batch
from hubbub.collection.upload import Entry
from hubbub.core.reports import Reports
from hubbub.service.frames import Frame
from hubbub.service.ids import Ids, digests_of
from hubbub.service.open_asks import AnswerPlace, Board
from hubbub.service.reasons import Reason
from hubbub.service.receipt import Receipt
from hubbub.service.store.base import AskKey


class ReportGroup(NamedTuple):
    """Well-formed reports to one ask; `owner` is the index of the request that each came with."""

    reports: Reports
    ids: Ids
    owner: NDArray[np.int64]


def gather(
    frames: Sequence[Frame], receipts: Sequence[Receipt], board: Board, knows: Callable[[str, AnswerName], bool]
) -> dict[AskKey, ReportGroup]:
    """Read all reports that answer an ask on the board and are well-formed; reject the others in their receipts.

    `knows` says whether an ask that is not on the board was ever published.
    """
    singles: dict[AnswerPlace, list[tuple[Entry, int]]] = defaultdict(list)
    groups: dict[AskKey, list[ReportGroup]] = defaultdict(list)
    for owner, frame in enumerate(frames):
        for entry in frame.entries:
            singles[AnswerPlace(frame.collection, entry.name)].append((entry, owner))
        if frame.batch is not None:
            place = AnswerPlace(frame.collection, frame.batch.name)
            ask = board.find(place)
            board.counting = place.collection, place.name.question
            reports = None if ask is None else ask.opener.open_batch(frame.batch)
            if ask is not None and reports is not None:
                groups[ask.key].append(_group(reports, frame.batch.ids, owner))
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
                groups[ask.key].append(_group(reports, ids, [owner for _, owner in read]))
        for row in np.flatnonzero(~readable):
            entry, owner = entries[row]
            receipts[owner].rejected.append((entry.report_id.hex(), reason))
    return {key: _concat(parts) for key, parts in groups.items()}


def _why_not_on_board(place: AnswerPlace, board: Board, knows: Callable[[str, AnswerName], bool]) -> Reason:
    if place in board.expected:
        return "too_early"
    return "late" if knows(*place) else "unknown_ask"


def _group(reports: Reports, ids: bytes, owner: Any) -> ReportGroup:
    owners = np.broadcast_to(np.asarray(owner, dtype=np.int64), len(reports))
    return ReportGroup(reports, Ids.of(ids, digests_of(reports)), owners)


def _concat(groups: list[ReportGroup]) -> ReportGroup:
    if len(groups) == 1:
        return groups[0]
    return ReportGroup(
        Reports.concat(group.reports for group in groups),
        Ids.concat(group.ids for group in groups),
        np.concatenate([group.owner for group in groups]),
    )


def _hex_ids(batch: Batch) -> list[str]:
    return [batch.ids[at : at + 16].hex() for at in range(0, len(batch.ids), 16)]
