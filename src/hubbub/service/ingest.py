"""Reports into sketches, each exactly once. Pure logic over the board: what comes out is one transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.errors import HubbubError
from hubbub.core.reports import Reports
from hubbub.core.sketch import Sketch
from hubbub.service.frames import Frame, Part
from hubbub.service.ids import Ids, digests_of
from hubbub.service.reasons import Reason
from hubbub.service.seen import DUPLICATE, FRESH, REPLAY
from hubbub.service.store.base import AskKey, Changes
from hubbub.service.window import Board, Window

__all__ = ["Draft", "Receipt", "draft"]

_LATE, _EARLY, _MALFORMED = 3, 4, 5
_REASONS: dict[int, Reason] = {REPLAY: "replay", _LATE: "late", _EARLY: "too_early", _MALFORMED: "malformed"}


@dataclass
class Receipt:
    """What became of a frame's reports: how many were counted, or had been before, and why the others were not.

    Example:
        >>> Receipt(accepted=2, rejected=[("0" * 32, "late")]).outcomes()
        {'accepted': 2, 'duplicate': 0, 'late': 1}
    """

    accepted: int = 0
    duplicates: int = 0
    rejected: list[tuple[str, Reason]] = field(default_factory=list)

    def outcomes(self) -> dict[str, int]:
        """The counters that it adds to."""
        counts: dict[str, int] = {"accepted": self.accepted, "duplicate": self.duplicates}
        for _, reason in self.rejected:
            counts[reason] = counts.get(reason, 0) + 1
        return counts


@dataclass(frozen=True)
class Draft:
    """A transaction that is not made yet, what to answer once it is, and what memory will then hold."""

    changes: Changes
    receipts: list[Receipt]
    follow: list[tuple[Window, Sketch, Ids]]

    def apply(self) -> None:
        """Let memory follow the store."""
        for window, sketch, ids in self.follow:
            window.sketch = sketch
            window.seen.add(ids)


class _Candidate(NamedTuple):
    reports: Reports
    ids: Ids
    receipt: Receipt


def draft(frames: Sequence[Frame], board: Board, now: float, knows: Callable[[AskKey], bool]) -> Draft:
    """Decide on a group of frames together. Nothing is changed.

    Parameters
    ----------
    frames
        What came in, in order.
    board
        The windows.
    now
        The time at which all of them count as having come.
    knows
        Whether an ask that is not on the board was ever published.

    Example:
        >>> made = draft([Frame("0" * 32, [], malformed=["1" * 32])], Board(), 0.0, lambda key: False)
        >>> made.receipts[0].rejected, dict(made.changes.counts)
        ([('11111111111111111111111111111111', 'malformed')], {('00000000000000000000000000000000', 'malformed'): 1})
    """
    made = Draft(Changes(), [], [])
    waiting: dict[AskKey, list[_Candidate]] = defaultdict(list)
    for frame in frames:
        receipt = Receipt(rejected=[(report, "malformed") for report in frame.malformed])
        made.receipts.append(receipt)
        for part in frame.parts:
            key = AskKey(frame.collection, part.ask)
            reason = _fault(part, key, board, knows)
            if reason is not None:
                receipt.rejected += [(part.ids[at : at + 16].hex(), reason) for at in range(0, len(part.ids), 16)]
            else:
                ids = Ids.of(part.ids, digests_of(part.reports))
                waiting[key].append(_Candidate(part.reports, ids, receipt))
    for key, candidates in waiting.items():
        _decide(made, board.windows[key], candidates, now)
    for frame, receipt in zip(frames, made.receipts, strict=True):
        for outcome, count in receipt.outcomes().items():
            if count:
                made.changes.counts[frame.collection, outcome] += count
    return made


def _fault(part: Part, key: AskKey, board: Board, knows: Callable[[AskKey], bool]) -> Reason | None:
    """What is wrong with a part as such, before its ids are looked at."""
    window = board.windows.get(key)
    if window is None:
        if key in board.expected:
            return "too_early"
        return "late" if knows(key) else "unknown_ask"
    try:
        window.ask.mechanism.check(part.reports)
    except HubbubError:
        return "malformed"
    return None


def _decide(made: Draft, window: Window, candidates: list[_Candidate], now: float) -> None:
    """All reports to one ask: which are fresh, and what the sketch becomes with them."""
    ids = Ids.concat(candidate.ids for candidate in candidates)
    status = window.seen.look(ids)
    first = ids.first_of_each()
    again = (status == FRESH) & (first != np.arange(len(ids)))  # twice in one group
    status[again] = np.where(ids.digest[again] == ids.digest[first[again]], DUPLICATE, REPLAY)
    if not window.takes(now):
        status[status == FRESH] = _EARLY if now < window.opens and not window.final else _LATE
    elif (status == FRESH).any():
        sketch = _fold(window, candidates, status)
        fresh = np.flatnonzero(status == FRESH)
        if fresh.size:
            made.changes.segments.append((window.key, ids.take(fresh).to_bytes()))
            made.changes.sketches[window.key] = sketch.to_bytes()
            made.follow.append((window, sketch, ids.take(fresh)))
    for candidate, part in zip(candidates, _parts(status, candidates), strict=True):
        receipt = candidate.receipt
        receipt.accepted += int(np.count_nonzero(part == FRESH))
        receipt.duplicates += int(np.count_nonzero(part == DUPLICATE))
        receipt.rejected += [
            (candidate.ids.hex(row), _REASONS[int(part[row])]) for row in np.flatnonzero(part >= REPLAY).tolist()
        ]


def _fold(window: Window, candidates: list[_Candidate], status: NDArray[np.int8]) -> Sketch:
    """The sketch with all fresh reports."""
    mechanism, fresh = window.ask.mechanism, status == FRESH
    reports = Reports.concat(candidate.reports for candidate in candidates)
    try:
        return window.sketch + mechanism.accumulate(reports if fresh.all() else reports[fresh])
    except Exception:  # a report that passed every check and still cannot be counted must not cost its neighbours
        sketch = window.sketch
    for candidate, part in zip(candidates, _parts(status, candidates), strict=True):
        try:
            sketch = sketch + mechanism.accumulate(candidate.reports[part == FRESH])
        except Exception:
            part[part == FRESH] = _MALFORMED
    return sketch


def _parts(status: NDArray[np.int8], candidates: list[_Candidate]) -> list[NDArray[Any]]:
    """The rows of each candidate, as views."""
    return np.split(status, np.cumsum([len(candidate.ids) for candidate in candidates[:-1]]))
