"""The reports of a group of requests, put together by what they answer; the board says which ask that is."""

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
    """Well-formed reports to one ask; `owner` is the number of the request that each came with."""

    reports: Reports
    ids: Ids
    owner: NDArray[np.int64]


def gather(
    frames: Sequence[Frame], receipts: Sequence[Receipt], board: Board, knows: Callable[[str, AnswerName], bool]
) -> dict[AskKey, ReportGroup]:
    """All reports that answer an ask of the board, and are such as its devices make; the others are rejected.

    Example:
        >>> receipt = Receipt()
        >>> entry = Entry("popular", 0, 7, 1, 0, bytes(16), b"...")
        >>> gather([Frame("0" * 32, [entry])], [receipt], Board(), lambda collection, name: False), receipt.rejected
        ({}, [('00000000000000000000000000000000', 'unknown_ask')])
    """
    singles: dict[AnswerPlace, list[tuple[Entry, int]]] = defaultdict(list)
    groups: dict[AskKey, list[ReportGroup]] = defaultdict(list)
    for number, frame in enumerate(frames):
        for entry in frame.entries:
            singles[AnswerPlace(frame.collection, entry.name)].append((entry, number))
        if frame.batch is not None:
            place = AnswerPlace(frame.collection, frame.batch.name)
            opened = board.find(place)
            reports = None if opened is None else opened.opener.open_batch(frame.batch)
            if opened is not None and reports is not None:
                groups[opened.key].append(_answers(reports, frame.batch.ids, number))
            else:
                reason = "malformed" if opened is not None else _missing(place, board, knows)
                receipts[number].rejected += [(report, reason) for report in _hex(frame.batch)]
    for place, several in singles.items():
        opened = board.find(place)
        good = np.zeros(len(several), dtype=bool)
        reason = "malformed" if opened is not None else _missing(place, board, knows)
        if opened is not None:
            reports, good = opened.opener.open_each([entry.report for entry, _ in several])
            kept = [several[row] for row in np.flatnonzero(good)]
            ids = b"".join(entry.report_id for entry, _ in kept)
            if kept:
                groups[opened.key].append(_answers(reports, ids, [number for _, number in kept]))
        for row in np.flatnonzero(~good):
            entry, number = several[row]
            receipts[number].rejected.append((entry.report_id.hex(), reason))
    return {key: _joined(answers) for key, answers in groups.items()}


def _missing(place: AnswerPlace, board: Board, knows: Callable[[str, AnswerName], bool]) -> Reason:
    """Why nothing on the board is called so."""
    if place in board.expected:
        return "too_early"
    return "late" if knows(*place) else "unknown_ask"


def _answers(reports: Reports, ids: bytes, owner: Any) -> ReportGroup:
    owners = np.broadcast_to(np.asarray(owner, dtype=np.int64), len(reports))
    return ReportGroup(reports, Ids.of(ids, digests_of(reports)), owners)


def _joined(several: list[ReportGroup]) -> ReportGroup:
    if len(several) == 1:
        return several[0]
    return ReportGroup(
        Reports.concat(answers.reports for answers in several),
        Ids.concat(answers.ids for answers in several),
        np.concatenate([answers.owner for answers in several]),
    )


def _hex(batch: Batch) -> list[str]:
    return [batch.ids[at : at + 16].hex() for at in range(0, len(batch.ids), 16)]
