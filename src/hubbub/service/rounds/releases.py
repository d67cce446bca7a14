"""Releases and counts as the store keeps them, so that a replay can be compared; and releases as they are told.

Counts of candidates among kept reports are made where the reports are, stored, and replayed without the reports.
"""

import json
import math
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from msgspec import UnsetType
from numpy.typing import NDArray

from hubbub.core.estimate import Estimate
from hubbub.core.noise import Noise, check_level
from hubbub.core.reports import Sketch
from hubbub.core.spec import Json, canonical
from hubbub.planning.predict import FORGED
from hubbub.protocols.driver import MAIN, Count, CountResult, EndedNodes, OutOfOrder, Release
from hubbub.protocols.marginals.field_marginals import FieldMarginals
from hubbub.questions.base import Question
from hubbub.service.base.api import EstimateBody, ReleaseBody
from hubbub.service.kept.archive import Archive, ReportsMissing, reports_to
from hubbub.service.store.base import AskRow, CountRow, EraRow, ReleaseRow
from hubbub.service.store.sql import Store
from hubbub.statistics.ratios import Ratios
from hubbub.statistics.selection import Selected

TOLERANCE = 1e-9
"""How closely a replay must reproduce numbers: another version of numpy may add them up in another order."""

_MOST_MARGINALS = 16
"""How many releases of marginals are kept: to make them agree takes longer than to answer."""
_ONLY_SOME_ESTIMATES = ("centre", "cut", "ratio", "noise")
"""Keys that only some kinds of estimates have. They reveal the values, and are withheld with them."""
_ESTIMATE_KEYS = (
    *("n", "bias", "kind", "labels", "value", "variance", *_ONLY_SOME_ESTIMATES),
    *("low", "high", "interval", "withheld", "consistent", "forged"),
)


def release_row(
    release: Release, *, collection: str, question: str, time: float, minimum_batch: int, number: int = 0
) -> ReleaseRow:
    """The row to store for a release.

    The main estimate is stored whole, with the reason for withholding it if it rests on fewer than `minimum_batch`
    reports. Other estimates that rest on fewer reports are stored without their numbers.
    """

    def too_few(estimate: Estimate) -> str | None:
        reason = f"{estimate.n:,} reports; at least {minimum_batch:,} are needed"
        return reason if estimate.n < minimum_batch else None

    main, *others = release.estimates or (MAIN,)
    payload: dict[str, Json] = {
        "published": release.published,
        "spent": _finite(release.spent),
        "population": _finite(release.n),
        **_estimate_payload(release.estimate),
    }
    if release.lost is not None:
        biases: list[Json] = [_finite(bias) for bias in release.lost.bias]
        payload["lost"] = {**release.lost._asdict(), "bias": biases}
    if release.ended is not None:
        payload["ended"] = _ended_payload(release.ended, minimum_batch)
    if release.stopped is not None:
        payload["stopped"] = release.stopped
    if main != MAIN or others:
        estimates: dict[str, Json] = {main: {}}  # the main estimate is at the top of the payload
        for name in others:
            estimate = release.estimates[name]
            entry, withheld = _estimate_payload(estimate), too_few(estimate)
            if withheld is not None:
                entry = {**entry, "value": None, "variance": None, "withheld": withheld}
                for key in _ONLY_SOME_ESTIMATES:
                    entry.pop(key, None)
            estimates[name] = entry
        payload["estimates"] = estimates
    withheld = None if release.stopped is not None and not release.estimates else too_few(release.estimate)
    text = json.dumps(payload, allow_nan=False)
    return ReleaseRow(collection, question, release.step, time, text, withheld, number)


def _estimate_payload(estimate: Estimate) -> dict[str, Json]:
    return {
        "n": estimate.n,
        "bias": estimate.bias,
        "kind": estimate.kind,
        "labels": None if estimate.labels is None else list(estimate.labels),
        "value": _list(estimate.value),
        "variance": _list(estimate.variance),
        **({} if estimate.centre is None else {"centre": _list(estimate.centre)}),
        **({"cut": _finite(estimate.cut)} if isinstance(estimate, Selected) else {}),
        **({"ratio": estimate.parts()} if isinstance(estimate, Ratios) else {}),
        **({"noise": estimate.noise.moments()} if estimate.noise and estimate.kind == "share" else {}),
    }


def _ended_payload(ended: EndedNodes, minimum_batch: int) -> dict[str, Json]:
    """The nodes that ended with a step; without the sums of reports that are fewer than `minimum_batch`, but not 0."""
    nodes: list[Json] = []
    for node in ended.nodes:
        few = 0 < node.came < minimum_batch
        nodes.append([*node[:3], *([None, None] if few else [list(node.plus or ()), list(node.minus or ())])])
    return {"enrolled": list(ended.enrolled), "earlier": ended.earlier, "nodes": nodes}


def read_ended(row: ReleaseRow) -> EndedNodes | None:
    """The nodes that a stored release has; None where it has none."""
    stored = json.loads(row.payload).get("ended")
    return (
        None
        if stored is None
        else msgspec.convert([stored["enrolled"], stored["earlier"], stored["nodes"]], EndedNodes)
    )


def same_release(a: ReleaseRow, b: ReleaseRow) -> bool:
    """Whether two rows are the same release up to rounding, whenever each was released."""
    return (a[:3], a.withheld) == (b[:3], b.withheld) and alike(json.loads(a.payload), json.loads(b.payload))


def told_release(
    row: ReleaseRow, *, version: int = 1, level: float = 0.95, question: Question | None = None
) -> ReleaseBody:
    """A release as the API and the pages tell it: with confidence intervals, or with the reason why it is withheld.

    If `question` tells consistent shares too (its key `consistency`), they are computed from what is stored.

    The main estimate is at the top level; `estimates` has all estimates by name. Unknown numbers are null. If a value
    has no interval because its step got no reports, `interval` is "unknown" and `low` and `high` are null. `version` is
    that of the collection.
    """
    check_level(level)
    payload: dict[str, Any] = msgspec.json.decode(row.payload)
    payload.pop("ended", None)  # it is told as ranges of steps
    head = {"question": row.question, "step": row.step, "time": row.time, "number": row.number, "version": version}
    name, *others = entries = payload.pop("estimates", {MAIN: {}})
    main = _with_intervals({**payload, "withheld": row.withheld}, level, name, question)
    estimates = {name: {key: main[key] for key in _ESTIMATE_KEYS if key in main}}
    for other in others:
        estimates[other] = _with_intervals({"withheld": None, **entries[other]}, level, other, question)
    release = {"stopped": None, **head, **main, "level": level, "estimates": estimates}
    return msgspec.convert(release, ReleaseBody)


def _with_intervals(entry: dict[str, Any], level: float, name: str, question: Question | None) -> dict[str, Json]:
    """The JSON of a stored estimate with labels, the ends of its intervals, and the consistent shares.

    A withheld estimate gets no labels either: those of a ranking are the values that were found.
    """
    if entry["withheld"] is not None:
        public = {key: value for key, value in entry.items() if key not in _ONLY_SOME_ESTIMATES}
        nulls = dict.fromkeys(("value", "variance", "low", "high"))
        return {**public, "labels": [], **nulls, "interval": "unknown"}
    labels = entry.get("labels") or [str(code) for code in range(len(entry["value"] or ()))]
    value, variance = (np.array(entry[name], dtype=np.float64) for name in ("value", "variance"))  # null becomes NaN
    estimate = _stored_estimate(entry, value, np.maximum(variance, 0.0))
    low, high = estimate.interval(level)
    unknown = bool((np.isfinite(value) & ~(np.isfinite(low) & np.isfinite(high))).any())
    interval = "unknown" if unknown else "known"
    told = {**entry, "labels": labels, "low": _list(low), "high": _list(high), "interval": interval}
    if question is None:
        return told
    honest = question.honest(name, estimate, FORGED, level)
    if honest is not None:
        ends = {"low": _list(honest[0]), "high": _list(honest[1])}
        told["forged"] = {"devices": FORGED, "reports": question.forged_part(FORGED), **ends}
    consistent = question.consistent(name, estimate)
    return told if consistent is None else {**told, "consistent": _consistent_body(*consistent, level)}


def _consistent_body(method: str, estimate: Estimate, level: float) -> dict[str, Json]:
    value, (low, high) = estimate.value, estimate.interval(level)
    low, high = (np.where(np.isfinite(end), np.clip(end, 0.0, 1.0), np.nan) for end in (low, high))
    numbers = {"value": _list(value), "low": _list(np.minimum(low, value)), "high": _list(np.maximum(high, value))}
    return {"method": method, "bias": estimate.bias, **numbers}


def released_marginals(question: Question, release: ReleaseBody) -> FieldMarginals | None:
    """Any marginal of the fields of a question, from the estimates of a release that are not withheld.

    None if there are none, and where the answers to the question are not joint. It is kept for whoever asks next.
    """
    known = {name: told for name, told in release.estimates.items() if told.value is not None}
    joint = {name: told for name, told in known.items() if not isinstance(told.noise, UnsetType)}
    return _marginals_of(question, msgspec.json.encode(joint)) if joint else None


@lru_cache(maxsize=_MOST_MARGINALS)
def _marginals_of(question: Question, told: bytes) -> FieldMarginals | None:
    estimates = {}
    for name, body in msgspec.json.decode(told, type=dict[str, EstimateBody]).items():
        value, variance = (np.array(numbers, dtype=np.float64) for numbers in (body.value, body.variance))
        assert not isinstance(body.noise, UnsetType)
        estimates[name] = Estimate(value, variance, body.n, noise=Noise(**msgspec.structs.asdict(body.noise)))
    return question.released_marginals(estimates)


def told_ratios(estimate: EstimateBody) -> Ratios | None:
    """The ratios that told numbers by group are; None of any other estimate."""
    if isinstance(estimate.ratio, UnsetType):
        return None
    value, variance = (np.array(numbers, dtype=np.float64) for numbers in (estimate.value, estimate.variance))
    return Ratios.from_parts(msgspec.structs.asdict(estimate.ratio), value, variance)


def _stored_estimate(entry: Mapping[str, Any], value: NDArray[np.float64], variance: NDArray[np.float64]) -> Estimate:
    """The estimate of a stored payload, with all that its intervals depend on."""
    if "ratio" in entry:
        ratios = Ratios.from_parts(entry["ratio"], value, variance)
        return replace(ratios, n=entry["n"], kind=entry["kind"])
    known: dict[str, Any] = {name: entry[name] for name in ("bias", "kind")} | {"centre": entry.get("centre")}
    if "cut" not in entry:
        noise = Noise(**entry["noise"]) if "noise" in entry else None
        return Estimate(value, variance, entry["n"], noise=noise, **known)
    cut = -math.inf if entry["cut"] is None else entry["cut"]
    return Selected(value, variance, entry["n"], cut=cut, **known)


def _list(numbers: NDArray[np.float64]) -> list[Json]:
    plain: list[Json] = numbers.tolist()
    return plain if np.isfinite(numbers).all() else [_finite(number) for number in numbers.tolist()]


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def alike(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal up to rounding of their numbers."""
    if a == b:
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    try:
        first, second = np.array(a, dtype=np.float64), np.array(b, dtype=np.float64)  # null becomes NaN
    except (TypeError, ValueError):
        both = isinstance(a, list) and isinstance(b, list) and len(a) == len(b)
        return both and all(map(alike, a, b))
    return first.shape == second.shape and np.allclose(first, second, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)


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
