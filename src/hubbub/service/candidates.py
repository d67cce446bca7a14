"""Estimates the shares of any candidates from kept reports, over any steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hubbub.collection import Collection
from hubbub.core.errors import InvalidValue
from hubbub.core.spec import Json
from hubbub.protocols.release import MAIN, Release
from hubbub.service.archive import Archive
from hubbub.service.raw_reports import estimate_candidates, kept_reports
from hubbub.service.releases import release_json, release_row
from hubbub.service.store.sql import Store

MOST_CANDIDATES = 1000
_SHOWN = ("n", "bias", "labels", "value", "variance", "low", "high", "level", "withheld")


def ask_kept(
    store: Store,
    archive: Archive | None,
    collection: Collection,
    question: str,
    candidates: Sequence[str],
    *,
    first: int,
    last: int,
    level: float = 0.95,
) -> dict[str, Json]:
    """The shares of some candidates among the reports to closed asks, with intervals; withheld if too few reports.

    Parameters
    ----------
    store, archive
        The collector's store and folder of reports.
    collection, question
        A question that keeps its reports.
    candidates
        Texts of an open field, names of a categorical one, codes of any other.
    first, last
        The first and the last step.
    level
        The confidence level of the intervals.
    """
    setting = collection.setting(question)
    if not 1 <= len(candidates) <= MOST_CANDIDATES:
        raise InvalidValue("candidate", len(candidates), f"from 1 to {MOST_CANDIDATES} of them")
    codes = [setting.domain.candidate(text) for text in candidates]
    mechanism = collection.questions[question].mechanism_for(setting)
    batches = kept_reports(store, archive, collection.collection_id, question, first=first, last=last)
    estimate = estimate_candidates(mechanism, (reports for _, reports in batches), codes)
    head: dict[str, Json] = {"question": question, "first": first, "last": last}
    if estimate is None:
        withheld = f"0 reports; at least {collection.minimum_batch:,} are needed"
        empty: dict[str, Json] = {"labels": list(candidates), "n": 0, "bias": "none", "level": level}
        return {**head, **dict.fromkeys(("value", "variance", "low", "high")), **empty, "withheld": withheld}
    estimate = replace(estimate, labels=tuple(candidates))
    release = Release(step=0, estimates={MAIN: estimate}, published=True, spent=0.0, n=float(estimate.n))
    row = release_row(
        release,
        collection=collection.collection_id,
        question=question,
        time=0.0,
        minimum_batch=collection.minimum_batch,
    )
    shown = release_json(row, level=level)
    return {**head, **{name: shown[name] for name in _SHOWN}}
