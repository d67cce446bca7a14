"""Estimates of any candidates from kept reports, and the difference of two groups of a release."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from hubbub.collection import Collection
from hubbub.core.errors import InvalidValue
from hubbub.core.spec import Json
from hubbub.protocols.driver import MAIN, Release
from hubbub.questions.base import Shape
from hubbub.questions.group_numbers import breakdown_name
from hubbub.service.base.api import DifferenceBody
from hubbub.service.kept.archive import Archive
from hubbub.service.kept.raw_reports import estimate_candidates, kept_reports
from hubbub.service.rounds.releases import release_json, release_row, stored_estimate
from hubbub.service.store.base import ReleaseRow
from hubbub.service.store.sql import Store
from hubbub.statistics.ratios import Ratios

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


def group_difference(
    row: ReleaseRow, shape: Shape, *, by: str | None, of: str, minus: str, level: float = 0.95
) -> DifferenceBody:
    """Group `of` minus group `minus`, for every number of a group, with intervals; withheld if the release is.

    Parameters
    ----------
    row, shape
        The release, and the shape of the question's answers.
    by
        The field that makes the groups; by default the first one.
    of, minus
        The names of the two groups.
    level
        The confidence level of the intervals.
    """
    if not shape.groups:
        raise InvalidValue("question", row.question, "a question whose answers are by group")
    field = by if by is not None else next(iter(shape.groups))
    if field not in shape.groups:
        raise InvalidValue("by", field, f"one of {', '.join(shape.groups)}")
    groups = shape.groups[field]
    for name, group in (("of", of), ("minus", minus)):
        if group not in groups:
            raise InvalidValue(name, group, f"one of {', '.join(groups[:20])}")
    if of == minus:
        raise InvalidValue("minus", minus, f"another group than {of}")
    payload = json.loads(row.payload)
    estimate, withheld = payload, row.withheld
    if field != next(iter(shape.groups)):
        estimate = payload.get("estimates", {}).get(breakdown_name(field, main=False), {"n": 0})
        withheld = estimate.get("withheld", withheld)
    answer = DifferenceBody(
        question=row.question,
        step=row.step,
        by=field,
        of=of,
        minus=minus,
        n=estimate["n"],
        level=level,
        withheld="nobody answered" if withheld is None and "ratio" not in estimate else withheld,
        labels=list(shape.values),
        value=None,
        low=None,
        high=None,
    )
    if answer.withheld is not None:
        return answer
    numbers = (np.array(estimate[name], dtype=np.float64) for name in ("value", "variance"))  # null becomes NaN
    ratios, size = stored_estimate(estimate, *numbers), len(shape.values)
    assert isinstance(ratios, Ratios)
    first, second = groups.index(of) * size, groups.index(minus) * size
    differences = [ratios.difference(first + index, second + index, level) for index in range(size)]
    value = [None if math.isnan(difference.value) else difference.value for difference in differences]
    low, high = ([getattr(difference, end) for difference in differences] for end in ("low", "high"))
    return msgspec.structs.replace(answer, value=value, low=low, high=high)
