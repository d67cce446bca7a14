"""The reports of a group of requests, put together by the ask that they answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.collection.wire import Batch, Entry
from hubbub.core.errors import HubbubError
from hubbub.core.reports import Reports
from hubbub.service.frames import Frame
from hubbub.service.ids import Ids, digests_of
from hubbub.service.reasons import Reason
from hubbub.service.receipt import Receipt
from hubbub.service.store.base import AskKey
from hubbub.service.window import Board, Window

__all__ = ["Answers", "gather"]


class Answers(NamedTuple):
    """Well-formed reports to one ask; `owner` is the number of the request that each came with."""

    reports: Reports
    ids: Ids
    owner: NDArray[np.int64]


def gather(
    frames: Sequence[Frame], receipts: Sequence[Receipt], board: Board, knows: Callable[[AskKey], bool]
) -> dict[AskKey, Answers]:
    """All reports that answer an ask of the board, and are such as its devices make; the others are rejected.

    Example:
        >>> receipt = Receipt()
        >>> entry = Entry("1" * 32, bytes(16), b"...")
        >>> gather([Frame("0" * 32, [entry])], [receipt], Board(), lambda key: False), receipt.rejected
        ({}, [('00000000000000000000000000000000', 'unknown_ask')])
    """
    singles: dict[AskKey, list[tuple[Entry, int]]] = defaultdict(list)
    found: dict[AskKey, list[Answers]] = defaultdict(list)
    for number, frame in enumerate(frames):
        for entry in frame.entries:
            singles[AskKey(frame.collection, entry.ask_id)].append((entry, number))
        if frame.batch is not None:
            key = AskKey(frame.collection, frame.batch.ask_id)
            window = board.windows.get(key)
            reason = _missing(key, board, knows) if window is None else _fault(window, frame.batch.reports)
            if reason is None:
                found[key].append(_answers(frame.batch.reports, frame.batch.ids, number))
            else:
                receipts[number].rejected += [(report, reason) for report in _hex(frame.batch)]
    for key, several in singles.items():
        window = board.windows.get(key)
        good = np.zeros(len(several), dtype=bool)
        reason = "malformed" if window is not None else _missing(key, board, knows)
        if window is not None:
            reports, good = window.template.read([entry.report for entry, _ in several])
            kept = [several[row] for row in np.flatnonzero(good)]
            ids = b"".join(entry.report_id for entry, _ in kept)
            if kept:
                found[key].append(_answers(reports, ids, [number for _, number in kept]))
        for row in np.flatnonzero(~good):
            entry, number = several[row]
            receipts[number].rejected.append((entry.report_id.hex(), reason))
    return {key: _joined(answers) for key, answers in found.items()}


def _missing(key: AskKey, board: Board, knows: Callable[[AskKey], bool]) -> Reason:
    """Why an ask is not on the board."""
    if key in board.expected:
        return "too_early"
    return "late" if knows(key) else "unknown_ask"


def _fault(window: Window, reports: Reports) -> Reason | None:
    try:
        window.ask.mechanism.check(reports)
    except HubbubError:
        return "malformed"
    return None


def _answers(reports: Reports, ids: bytes, owner: Any) -> Answers:
    owners = np.broadcast_to(np.asarray(owner, dtype=np.int64), len(reports))
    return Answers(reports, Ids.of(ids, digests_of(reports)), owners)


def _joined(several: list[Answers]) -> Answers:
    if len(several) == 1:
        return several[0]
    return Answers(
        Reports.concat(answers.reports for answers in several),
        Ids.concat(answers.ids for answers in several),
        np.concatenate([answers.owner for answers in several]),
    )


def _hex(batch: Batch) -> list[str]:
    return [batch.ids[at : at + 16].hex() for at in range(0, len(batch.ids), 16)]
