"""What is asked of reports and releases that are there: any candidates, a difference of groups, a range of steps."""

import math
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.protocols.changes.protocol import Horizon
from hubbub.protocols.driver import MAIN, Release
from hubbub.questions.collection import Collection
from hubbub.questions.group_numbers import breakdown_name
from hubbub.questions.shape import Shape
from hubbub.questions.statistic import StatisticQuestion
from hubbub.service.base.api import ApiBody, CandidatesBody, DifferenceBody, EstimateBody, Natural, Numbers, Positive
from hubbub.service.collector.collector import Collector
from hubbub.service.kept.archive import Archive, ReportsMissing, estimate_candidates, kept_reports
from hubbub.service.rounds.releases import read_ended, release_row, told_ratios, told_release
from hubbub.service.store.base import ReleaseRow
from hubbub.service.store.sql import Store

MOST_CANDIDATES = 1000
_LAST_STEP = 1 << 62


class RangeBody(ApiBody):
    """A range of steps of one horizon: the mean share of a step, and the sum of the shares, each with its own interval.

    `as_of` is the last step whose reports are used: reports of later steps than `last` make the answer more precise.
    `due` and `came` count the reports of the horizon so far, and `lost` is the bias of the means by those that are
    missing.
    """

    question: str
    first: Natural
    last: Natural
    steps: Positive
    as_of: Natural
    level: float
    population: float
    mean: EstimateBody
    sum: EstimateBody
    due: Natural
    came: Natural
    lost: Numbers


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
) -> CandidatesBody:
    """The shares of some candidates among the reports to closed asks, with intervals; withheld if too few reports.

    `candidates`: texts of an open field, names of a categorical one, codes of any other.
    """
    if not 1 <= len(candidates) <= MOST_CANDIDATES:
        raise InvalidValue("candidate", len(candidates), f"from 1 to {MOST_CANDIDATES} of them")
    asked = collection.questions[question]
    codes = [asked.setting.domain.candidate(text) for text in candidates]
    if not isinstance(asked, StatisticQuestion):
        raise InvalidValue("question", question, "one that asks one mechanism of one field")
    mechanism = asked.mechanism_for()
    batches = kept_reports(store, archive, collection.collection_id, question, first=first, last=last)
    estimate = estimate_candidates(mechanism, (reports for _, reports in batches), codes)
    if estimate is not None:  # the same group answers every step
        steps = len(store.closed_asks(collection.collection_id, question, first, last))
        estimate = estimate.of_groups(asked.setting.groups, estimate.n / steps)
    if estimate is None:
        return CandidatesBody(
            question=question,
            first=first,
            last=last,
            n=0,
            bias="none",
            labels=list(candidates),
            value=None,
            variance=None,
            low=None,
            high=None,
            level=level,
            withheld=f"0 reports; at least {collection.minimum_batch:,} are needed",
        )
    estimate = replace(estimate, labels=tuple(candidates))
    release = Release(step=0, estimates={MAIN: estimate}, published=True, spent=0.0, n=float(estimate.n))
    row = release_row(
        release,
        collection=collection.collection_id,
        question=question,
        time=0.0,
        minimum_batch=collection.minimum_batch,
    )
    body = told_release(row, level=level)
    return CandidatesBody(
        question=question,
        first=first,
        last=last,
        n=body.n,
        bias=body.bias,
        labels=body.labels,
        value=body.value,
        variance=body.variance,
        low=body.low,
        high=body.high,
        level=level,
        withheld=body.withheld,
    )


def range_of_steps(
    collector: Collector,
    collection: Collection,
    question: str,
    *,
    first: int | None = None,
    last: int | None = None,
    level: float = 0.95,
) -> RangeBody | None:
    """A range of steps of one horizon, from all reports of the horizon so far; None where nothing is released.

    It is withheld if it rests on too few reports, also of a single level. `ReportsMissing` if the releases that it is
    made of are not all there.

    `first`, `last`: the first and the last step; by default the beginning of the horizon, and its last released step.
    """
    asked, place = collection.questions[question], (collection.name, question)
    horizon = asked.released_horizon()
    if horizon is None:
        raise InvalidValue("question", question, "one that follows values over a horizon of steps")
    begins = 0 if last is None else last // asked.horizon * asked.horizon
    until = _LAST_STEP if last is None else begins + asked.horizon - 1
    latest = collector.releases(*place, first=begins, last=until, most=1, version=collection.version)
    if not latest:
        return None
    as_of = latest[0].step
    begins = as_of // asked.horizon * asked.horizon
    last = as_of if last is None else last
    first = begins if first is None else first
    if not begins <= first <= last:
        raise InvalidValue("from", first, f"a step from {begins} to {last}: a range is of one horizon")
    if last > as_of:
        raise InvalidValue("to", last, f"a step from {first} to {as_of}, the last that is released")
    rows = collector.releases(*place, first=begins, last=as_of, most=asked.horizon, version=collection.version)
    for row in rows:
        ended = read_ended(row)
        try:
            if ended is None:
                raise InvalidValue("step", row.step, "a release with the sums of its reports")
            horizon.add(ended, row.step - begins + 1)
        except InvalidValue as error:
            raise ReportsMissing(f"{question} cannot be asked for steps {first} to {last}: {error}") from error
    return range_body(
        horizon,
        first=first,
        last=last,
        begins=begins,
        labels=asked.labels(),
        question=question,
        minimum_batch=collection.minimum_batch,
        level=level,
    )


def range_body(
    horizon: Horizon,
    *,
    first: int,
    last: int,
    begins: int,
    labels: tuple[str, ...] | None,
    question: str,
    minimum_batch: int,
    level: float = 0.95,
) -> RangeBody:
    """A range of steps from what a horizon has gathered."""
    steps, at = last - first + 1, (first - begins + 1, last - begins + 1)
    total, bias = replace(horizon.range(*at), labels=labels), horizon.bias(*at) / steps
    mean = Estimate(total.value / steps, total.variance / steps**2, total.n, bias=total.bias, labels=labels)
    population, as_of = horizon.answers.population, begins + horizon.answers.now - 1
    release = Release(step=as_of, estimates={"mean": mean, "sum": total}, published=True, spent=0.0, n=population)
    row = release_row(release, collection="", question=question, time=0.0, minimum_batch=minimum_batch)
    if row.withheld is None and not np.isfinite(total.variance).all():
        few = f"on a level that is needed, fewer than {minimum_batch:,} reports came at the end of an interval"
        row = row._replace(withheld=few)
    body = told_release(row, level=level)
    return RangeBody(
        question=question,
        first=first,
        last=last,
        steps=steps,
        as_of=as_of,
        level=level,
        population=population,
        mean=body.estimates["mean"],
        sum=body.estimates["mean" if row.withheld else "sum"],
        due=int(horizon.due.sum()),
        came=int(horizon.came.sum()),
        lost=None if row.withheld else [off if math.isfinite(off) else None for off in bias.tolist()],
    )


def group_difference(
    row: ReleaseRow, shape: Shape, *, by: str | None, of: str, minus: str, level: float = 0.95
) -> DifferenceBody:
    """Group `of` minus group `minus`, for every number of a group, with intervals; withheld if the release is.

    `row`, `shape`: the release, and the shape of the question's answers. `by`: the field that makes the groups; by
    default the first one.
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
    body = told_release(row, level=level)
    estimate: EstimateBody | None = body
    if field != next(iter(shape.groups)):
        estimate = body.estimates.get(breakdown_name(field, main=False))
    withheld = row.withheld if estimate is None or estimate.withheld is None else estimate.withheld
    ratios = None if estimate is None else told_ratios(estimate)
    answer = DifferenceBody(
        question=row.question,
        step=row.step,
        by=field,
        of=of,
        minus=minus,
        n=0 if estimate is None else estimate.n,
        level=level,
        withheld="nobody answered" if withheld is None and ratios is None else withheld,
        labels=list(shape.values),
        value=None,
        low=None,
        high=None,
    )
    if answer.withheld is not None or ratios is None:
        return answer
    size = len(shape.values)
    first, second = groups.index(of) * size, groups.index(minus) * size
    differences = [ratios.difference(first + index, second + index, level) for index in range(size)]
    value = [None if math.isnan(difference.value) else difference.value for difference in differences]
    low, high = ([getattr(difference, end) for difference in differences] for end in ("low", "high"))
    return msgspec.structs.replace(answer, value=value, low=low, high=high)
