"""Asking single reports that were kept: the shares of any candidates, over any steps."""

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
    """The shares of some candidates among the reports of closed asks, with intervals; withheld if they are too few.

    Parameters
    ----------
    store, archive
        Where the reports are.
    collection, question
        What they answer: a question that keeps them.
    candidates
        Texts of an open field, names of a categorical one, codes of any other.
    first, last
        The steps.
    level
        Of the intervals.

    Example:
        >>> from hubbub.service.example import example_collector
        >>> one = example_collector()
        >>> ask_kept(one.store, None, one.collections["themes"], "popular", ["dark"], first=0, last=9)["withheld"]
        '0 reports; at least 100 are needed'
    """
    setting = collection.setting(question)
    if not 1 <= len(candidates) <= MOST_CANDIDATES:
        raise InvalidValue("candidate", len(candidates), f"from 1 to {MOST_CANDIDATES} of them")
    wanted = [setting.domain.candidate(text) for text in candidates]
    mechanism = collection.questions[question].mechanism_for(setting)
    batches = kept_reports(store, archive, collection.collection_id, question, first=first, last=last)
    estimate = estimate_candidates(mechanism, (reports for _, reports in batches), wanted)
    head: dict[str, Json] = {"question": question, "first": first, "last": last}
    if estimate is None:
        few = f"0 reports; at least {collection.minimum_batch:,} are needed"
        nothing: dict[str, Json] = {"labels": list(candidates), "n": 0, "bias": "none", "level": level, "withheld": few}
        return {**head, **dict.fromkeys(("value", "variance", "low", "high")), **nothing}
    estimate = replace(estimate, labels=tuple(candidates))
    release = Release(step=0, estimates={MAIN: estimate}, published=True, spent=0.0, n=float(estimate.n))
    row = release_row(
        release,
        collection=collection.collection_id,
        question=question,
        time=0.0,
        minimum_batch=collection.minimum_batch,
    )
    told = release_json(row, level=level)
    return {**head, **{name: told[name] for name in _SHOWN}}
