"""Counts of candidates among kept reports: made where the reports are, stored, and replayed without the reports."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.core.reports import Sketch
from hubbub.core.spec import Json, canonical
from hubbub.protocols.driver import Count, CountResult, OutOfOrder
from hubbub.service.kept.archive import Archive, ReportsMissing
from hubbub.service.kept.raw_reports import reports_to
from hubbub.service.store.base import AskRow, CountRow, EraRow
from hubbub.service.store.sql import Store


def make_count(
    store: Store,
    archive: Archive | None,
    count: Count,
    era: EraRow,
    *,
    step: int,
    number: int,
    missed: Sequence[AskRow] = (),
) -> CountRow:
    """Count the supports of the candidates among the reports to an ask, in chunks. Returns the row to store.

    `ReportsMissing` if any of the reports is gone. `missed` are asks that were published after their time was over, and
    may not be in the store yet.
    """
    ask = counted_ask(store, count, era, step=step, missed=missed)
    key = ask.key
    counted = count.among(lambda: reports_to(store, archive, key))
    n = Sketch.from_bytes(ask.sketch).n
    if counted.n != n:
        raise ReportsMissing(f"{era.question} counts {n:,} reports, of which {counted.n:,} are there")
    support: Json = counted.support.tolist()
    if counted.tested:
        support = {"support": support, "places": list(counted.places), "tested": counted.tested}
    return CountRow(*era.key, step, number, ask.ask, json.dumps(count.candidates_json()), n, json.dumps(support))


def counted_ask(store: Store, count: Count, era: EraRow, *, step: int, missed: Sequence[AskRow] = ()) -> AskRow:
    """The ask among whose reports the count is made; parameters as of `make_count`."""
    asked_step, spec = count.ask.step or step, canonical(count.ask.spec())
    unstored = [ask for ask in missed if (*ask.era, ask.step, ask.spec) == (*era.key, asked_step, spec)]
    ask = unstored[-1] if unstored else store.find_ask(era, asked_step, spec)
    if ask is None:
        raise OutOfOrder(f"{era.question} counts reports of an ask that was never asked, or is deleted")
    return ask


def read_count(row: CountRow) -> CountResult:
    """The result of a stored count."""
    stored = json.loads(row.support)
    fields = stored if isinstance(stored, dict) else {"support": stored}
    support = np.array(fields["support"], dtype=np.int64)
    return CountResult(row.n, support, tuple(fields.get("places", ())), fields.get("tested", 0))


def same_count(row: CountRow, count: Count) -> bool:
    """Whether a stored count is of the same candidates."""
    return bool(json.loads(row.candidates) == count.candidates_json())


AT_ONCE = 1 << 33
"""The most tests of a report against a candidate that are made within a tick: about a second of one core."""
LOOK = 0.25
"""Seconds between two looks whether a count is done."""


@dataclass
class _Job:
    row: CountRow | None = None
    error: Exception | None = None
    done: bool = False


class LongCounts:
    """The counts under way, each under a key of the caller's.

    Nothing is stored of an unfinished count: after a restart it is made again from the beginning.
    """

    def __init__(self) -> None:
        self._jobs: dict[Hashable, _Job] = {}

    @property
    def waits(self) -> bool:
        """Whether a count is under way, or done and not yet taken."""
        return bool(self._jobs)

    def take(self, key: Hashable, make: Callable[[], CountRow]) -> CountRow | None:
        """The row of a count; None while it is under way. The first call starts it. Raises what the count raised."""
        job = self._jobs.get(key)
        if job is None:
            job = self._jobs[key] = _Job()
            # A daemon: the process may end without waiting for it.
            threading.Thread(target=_work, args=(job, make), name="hubbub-count", daemon=True).start()
        if not job.done:
            return None
        del self._jobs[key]
        if job.error is not None:
            raise job.error
        return job.row


def _work(job: _Job, make: Callable[[], CountRow]) -> None:
    try:
        job.row = make()
    except Exception as error:  # raised by `take`
        job.error = error
    job.done = True
