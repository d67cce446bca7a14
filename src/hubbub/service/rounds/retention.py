"""Retention: which steps and runs are old enough for their reports to be deleted.

Single reports, ids and sketches (a sketch of one report is that report) are deleted once their step has been over for
the collection's retention. So are withheld releases, which rest on few reports. Published releases stay. An ask is
deleted with its sketch: a report to it is then refused as unknown instead of late, and is not counted either way.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator

from hubbub.collection import Collection, formats
from hubbub.core.spec import integer
from hubbub.service.base.schedule import Schedule
from hubbub.service.store.base import CollectionRow, EraRow, Expiry
from hubbub.service.store.sql import Store

_DAY = 86400
_SNAPSHOT_STEPS = 64


def first_kept_step(*, now: float, origin: int, step_seconds: int, retention_days: int) -> int:
    """The first step that is kept: all earlier steps have been over for the retention or longer."""
    return math.floor((now - retention_days * _DAY - origin) / step_seconds)


def first_kept_of_question(schedule: Schedule, now: float) -> int:
    """The first step, or run of a study, that is kept."""
    collection, study = schedule.collection, schedule.terms.study
    days = collection.retention_days
    if study is None:
        times = {"origin": collection.origin, "step_seconds": collection.step_seconds}
        return first_kept_step(now=now, retention_days=days, **times)
    return _first_kept_run(now, days, study.start + schedule.terms.rounds * study.round_seconds, study.every)


def _first_kept_run(now: float, retention_days: int, ends: int, every: int) -> int:
    """The first run that is kept. Run 0 ends at `ends`, and the others `every` seconds apart (0: there are none)."""
    over = now - retention_days * _DAY - ends
    if over < 0:
        return 0
    return math.floor(over / every) + 1 if every else 1


def snapshot_interval(collection: Collection) -> int:
    """How many steps apart snapshots are: few enough that a replay never needs what retention deletes."""
    kept = collection.retention_days * _DAY // collection.step_seconds
    return min(max(kept // 4, 1), _SNAPSHOT_STEPS)


def expiries_of_unserved(store: Store, rows: Iterable[CollectionRow], now: float) -> Iterator[Expiry]:
    """What retention deletes of collections that are not served now, earlier versions included.

    Such a collection may be served again. An era that a deletion leaves without what a replay needs is marked as ended.
    """
    for row in rows:
        spec = formats.COLLECTION.upgrade(json.loads(row.spec))
        times = {name: integer(name, spec[name]) for name in ("origin", "step_seconds", "retention_days")}
        below, lateness = first_kept_step(now=now, **times), integer("lateness_seconds", spec["lateness_seconds"])
        running = store.running_studies(row.id)
        for question in spec["questions"]:
            terms = spec["terms"][question] if "terms" in spec else {}
            if study := terms.get("study"):
                start, length, every = (integer(name, study[name]) for name in ("start", "round_seconds", "every"))
                ends = start + integer("rounds", terms["rounds"]) * length
                first = _first_kept_run(now, times["retention_days"], ends, every)
                ended = any(era.question == question and era.first < first for era in running)
                yield Expiry(row.id, question, first, ended, lateness)
                continue
            ended = is_needed(store, store.era(row.id, question), below)
            yield Expiry(row.id, question, below, ended, lateness)


def is_needed(store: Store, era: EraRow | None, below: int) -> bool:
    """Whether a replay of the era needs anything of the steps below `below`."""
    if era is None:
        return False
    snapshots = store.snapshots(era)
    return (snapshots[-1].step if snapshots else era.first) < below
