"""Counts among kept reports: made where the reports are, stored, and read back in place of them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from hubbub.core.sketch import Sketch
from hubbub.core.spec import Json, canonical
from hubbub.protocols.count import Count, CountResult
from hubbub.protocols.driver import OutOfOrder
from hubbub.service.archive import Archive, ReportsMissing
from hubbub.service.raw_reports import reports_to
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
    """Count the supports of the candidates among the reports to an ask, some reports at a time.

    Nothing is counted if any of the reports is gone (`ReportsMissing`). `missed` are asks that nobody was asked, and
    which may not be in the store yet.
    """
    ask = counted_ask(store, count, era, step=step, missed=missed)
    key = ask.key
    counted = count.among(lambda: reports_to(store, archive, key))
    n = Sketch.from_bytes(ask.sketch).n
    if counted.n != n:
        raise ReportsMissing(f"{era.question} counts {n:,} reports, of which {counted.n:,} are there")
    told: Json = counted.support.tolist()
    if counted.tested:
        told = {"support": told, "places": list(counted.places), "tested": counted.tested}
    return CountRow(*era.key, step, number, ask.ask, json.dumps(count.candidates_json()), n, json.dumps(told))


def counted_ask(store: Store, count: Count, era: EraRow, *, step: int, missed: Sequence[AskRow] = ()) -> AskRow:
    """The ask among whose reports is counted, as of `make_count`."""
    asked, spec = count.ask.step or step, canonical(count.ask.spec())
    fresh = [ask for ask in missed if (*ask.era, ask.step, ask.spec) == (*era.key, asked, spec)]
    ask = fresh[-1] if fresh else store.find_ask(era, asked, spec)
    if ask is None:
        raise OutOfOrder(f"{era.question} counts reports of an ask that was never asked, or is deleted")
    return ask


def read_count(row: CountRow) -> CountResult:
    """What a stored count says.

    Example:
        >>> read_count(CountRow("0" * 32, "q", 0, 3, 0, "1" * 32, "[7, 8]", 10, "[4, 6]")).support.tolist()
        [4, 6]
    """
    told = json.loads(row.support)
    best = told if isinstance(told, dict) else {"support": told}
    support = np.array(best["support"], dtype=np.int64)
    return CountResult(row.n, support, tuple(best.get("places", ())), best.get("tested", 0))


def same_count(row: CountRow, count: Count) -> bool:
    """Whether a stored count is of these candidates."""
    return bool(json.loads(row.candidates) == count.candidates_json())
