"""A new version of a collection takes over the conversations of the questions that it leaves as they are.

The earlier version's conversation is brought to an end: what is open is closed with what it has, and released. The new
version goes on from what it remembered then, at the next step, which was never asked: a window stream keeps its place
on the circle and its account, and devices that enrolled in a stream of changes need not enrol again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from hubbub.collection import Collection, formats
from hubbub.core.errors import HubbubError
from hubbub.core.sketch import Sketch
from hubbub.core.spec import Json, integer
from hubbub.protocols.count import Count
from hubbub.protocols.release import Release
from hubbub.questions import read_collection
from hubbub.service.archive import Archive
from hubbub.service.counts import make_count, read_count
from hubbub.service.question_run import QuestionRun
from hubbub.service.store.base import CollectionRow, EraRow, ReleaseRow, SnapshotRow
from hubbub.service.store.sql import Store

_SILENT = ("title", "keep_reports")
"""What may change of a question that is still the same one: neither devices nor the protocol look at it."""


class TakenOver(NamedTuple):
    """A conversation of an earlier version, to be gone on with: its last releases, the era and where that begins."""

    version: int
    releases: list[ReleaseRow]
    heard: list[Release]
    era: EraRow
    snapshot: SnapshotRow


def take_over(
    store: Store, archive: Archive | None, collection: Collection, question: str, now: float
) -> TakenOver | str | None:
    """What a question goes on from; why it cannot go on; or None if no earlier version asked it.

    Nothing is changed: whoever takes it over stores the releases, the era and the snapshot in one transaction.

    Example:
        >>> from dataclasses import replace
        >>> from hubbub.service.example import example_collector
        >>> old = example_collector()
        >>> newer = replace(old.collections["themes"], version=2)
        >>> taken = take_over(old.store, None, newer, "popular", now=7300.0)
        >>> taken.version, [release.step for release in taken.releases], taken.snapshot.step
        (1, [2], 3)
    """
    for row in _earlier(store, collection):
        if store.last_step(row.id, question) is None:
            continue
        try:
            earlier = read_collection(json.loads(row.spec))
            changed = _difference(earlier, collection, question)
            if changed is not None:
                return f"version {row.version} asked it with another {changed}"
            era = store.era(row.id, question)
            if era is None or era.arithmetic not in (0, collection.questions[question].arithmetic):
                return f"the conversation of version {row.version} cannot be gone on with"
            return _ended(store, archive, earlier, era, collection, now)
        except HubbubError as error:  # what is stored is not what this code reads, or says
            return f"the conversation of version {row.version} is not reproduced: {error}"
    return None


def first_unasked(store: Store, collection: Collection, question: str, step: int) -> int:
    """The first step from one on that no version of a collection asked or released.

    A device gives one answer to a question in a step, whatever the version: what was asked is not asked again.

    Example:
        >>> from dataclasses import replace
        >>> from hubbub.service.example import example_collector
        >>> old = example_collector()
        >>> first_unasked(old.store, replace(old.collections["themes"], version=2), "popular", 2)
        3
    """
    versions = [row.id for row in store.collections() if row.name == collection.name]
    lateness, before = float(collection.lateness_seconds), -1
    while step != before:
        before = step
        for version in versions:
            step = store.first_unasked(version, question, step, lateness=lateness)
            step += store.was_asked(version, question, step)
    return step


def last_asked(store: Store, collection: Collection, question: str, before: int) -> int | None:
    """The last step before one that a version of a collection asked, on the same grid; None if there is none.

    Example:
        >>> from hubbub.service.example import example_collector
        >>> example = example_collector()
        >>> last_asked(example.store, example.collections["themes"], "popular", 3)
        2
    """
    grid = collection.step_seconds, collection.origin
    versions = [row for row in store.collections() if row.name == collection.name and _grid(row) == grid]
    steps = [store.last_step(row.id, question, before) for row in versions]
    return max((step for step in steps if step is not None), default=None)


def _earlier(store: Store, collection: Collection) -> Iterator[CollectionRow]:
    """The earlier versions, newest first."""
    rows = [row for row in store.collections() if row.name == collection.name and row.version < collection.version]
    yield from sorted(rows, key=lambda row: -row.version)


def _difference(earlier: Collection, collection: Collection, question: str) -> str | None:
    """What is another in the earlier version, if anything is that the conversation or the devices go by."""
    if (earlier.step_seconds, earlier.origin) != (collection.step_seconds, collection.origin):
        return "grid of steps"
    before: dict[str, Json] = earlier.questions[question].spec()
    after: dict[str, Json] = collection.questions[question].spec()
    for key in sorted(before.keys() | after.keys()):
        if key not in _SILENT and before.get(key) != after.get(key):
            return key
    same = earlier.setting(question) == collection.setting(question)
    return None if same else "domain of the field"


def _grid(row: CollectionRow) -> tuple[int, int]:
    spec = formats.COLLECTION.upgrade(json.loads(row.spec))
    return integer("step_seconds", spec["step_seconds"]), integer("origin", spec["origin"])


def _ended(
    store: Store, archive: Archive | None, earlier: Collection, era: EraRow, collection: Collection, now: float
) -> TakenOver:
    run = QuestionRun(earlier, era, store.snapshots(era), every=1)
    waiting = {(row.step, row.round, row.part): row for row, _ in run.replay(store) if not row.final}
    releases, heard = [], []
    remembered = None
    while True:
        said = run.said
        if isinstance(said, Release):
            if run.is_untold and now < run.schedule.opens(run.number):  # nobody was asked, its time has not come
                remembered = run.remembered_before
                break
            heard.append(said)
            releases.append(run.release(time=now))
        elif isinstance(said, Count):
            run.tell(read_count(make_count(store, archive, said, era, step=run.number, number=run.counted)))
        elif said is None:
            break
        elif (run.number, run.round, 0) in waiting:
            places = [(run.number, run.round, part) for part in range(len(said))]
            run.answer([Sketch.from_bytes(waiting[place].sketch) for place in places])
        elif not run.is_untold:  # a later round, which now nobody will be asked
            run.answer([ask.mechanism.empty() for ask in said])
        else:
            break
    step, state = remembered or run.remembered
    own = collection.questions[era.question].arithmetic
    taken = EraRow(collection.collection_id, era.question, era.first, own)
    return TakenOver(earlier.version, releases, heard, taken, SnapshotRow(*taken.key, step, state))
