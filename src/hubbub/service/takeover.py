"""A new version of a collection continues the streams of the questions that it does not change.

The open asks of the earlier version are closed with the reports they have, and the step is released. The new version
starts the next step, which was never asked, from the state that the protocol then has: a window stream keeps its place
on the circle and its account, and devices that enrolled in a stream of changes need not enrol again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from hubbub.collection import Collection, formats
from hubbub.core.errors import HubbubError
from hubbub.core.plugin_guard import PluginFailed
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

_MAY_CHANGE = ("title", "keep_reports")
"""Keys of a question that neither devices nor the protocol read: with another value it is still the same question."""


class TakenOver(NamedTuple):
    """A stream of an earlier version, ready to continue: its last releases, its era, and the state to start from."""

    version: int
    releases: list[Release]
    rows: list[ReleaseRow]
    era: EraRow
    snapshot: SnapshotRow


def take_over(
    store: Store, archive: Archive | None, collection: Collection, question: str, now: float
) -> TakenOver | str | None:
    """End the stream of a question in the latest earlier version that asked it, so that `collection` can continue it.

    Returns why the stream cannot continue, if it cannot, or None if no earlier version asked the question. Raises
    `PluginFailed` if another package fails: once it is repaired, the stream can continue. Nothing is stored: the caller
    stores the rows, the era and the snapshot in one transaction.
    """
    for row in _earlier(store, collection):
        if store.last_step(row.id, question) is None:
            continue
        try:
            earlier = read_collection(json.loads(row.spec))
            changed = difference(earlier, collection, question)
            if changed is not None:
                return f"version {row.version} asked it with another {changed}"
            era = store.era(row.id, question)
            if era is None or era.arithmetic not in (0, collection.questions[question].arithmetic):
                return f"the era of version {row.version} cannot be continued"
            return _end(store, archive, earlier, era, collection, now)
        except PluginFailed:
            raise
        except HubbubError as error:  # this code cannot read or reproduce what is stored
            return f"the era of version {row.version} is not reproduced: {error}"
    return None


def first_unasked(store: Store, collection: Collection, question: str, step: int) -> int:
    """The first step, at `step` or later, that no version of the collection asked or released.

    A device answers a question once in a step, whatever the version: no step is asked twice.
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
    """The last step before `before` that any version of the collection with the same grid of steps asked; else None."""
    grid = collection.step_seconds, collection.origin
    versions = [row for row in store.collections() if row.name == collection.name and _grid(row) == grid]
    steps = [store.last_step(row.id, question, before) for row in versions]
    return max((step for step in steps if step is not None), default=None)


def _earlier(store: Store, collection: Collection) -> Iterator[CollectionRow]:
    """The earlier versions, newest first."""
    rows = [row for row in store.collections() if row.name == collection.name and row.version < collection.version]
    yield from sorted(rows, key=lambda row: -row.version)


def difference(earlier: Collection, collection: Collection, question: str) -> str | None:
    """What differs between two versions of a question, if devices or the protocol read it; None if nothing does."""
    if (earlier.step_seconds, earlier.origin) != (collection.step_seconds, collection.origin):
        return "grid of steps"
    before: dict[str, Json] = earlier.questions[question].spec()
    after: dict[str, Json] = collection.questions[question].spec()
    for key in sorted(before.keys() | after.keys()):
        if key not in _MAY_CHANGE and before.get(key) != after.get(key):
            return key
    same = earlier.setting(question) == collection.setting(question)
    return None if same else "domain of the field"


def _grid(row: CollectionRow) -> tuple[int, int]:
    spec = formats.COLLECTION.upgrade(json.loads(row.spec))
    return integer("step_seconds", spec["step_seconds"]), integer("origin", spec["origin"])


def _end(
    store: Store, archive: Archive | None, earlier: Collection, era: EraRow, collection: Collection, now: float
) -> TakenOver:
    """Close what the earlier version has open with what came in, and release it."""
    run = QuestionRun(earlier, era, store.snapshots(era), snapshot_every=1)
    waiting = {(row.step, row.round, row.part): row for row, _ in run.replay(store) if not row.final}
    releases, rows = [], []
    snapshot = None
    while (message := run.message) is not None:
        if isinstance(message, Release):
            if run.is_unanswered and now < run.schedule.opens(run.number):  # a release without asks, of a later step
                snapshot = run.previous_snapshot
                break
            releases.append(message)
            rows.append(run.release(time=now))
        elif isinstance(message, Count):
            counted = make_count(store, archive, message, era, step=run.number, number=run.counts_made)
            run.answer_count(read_count(counted))
        elif (run.number, run.round, 0) in waiting:
            places = [(run.number, run.round, part) for part in range(len(message))]
            run.answer([Sketch.from_bytes(waiting[place].sketch) for place in places])
        elif not run.is_unanswered:  # a later round of a step that was asked: it is never published
            run.answer([ask.mechanism.empty() for ask in message])
        else:
            break
    step, state = snapshot or run.latest_snapshot
    arithmetic = collection.questions[era.question].arithmetic
    continued = EraRow(collection.collection_id, era.question, era.first, arithmetic)
    return TakenOver(earlier.version, releases, rows, continued, SnapshotRow(*continued.key, step, state))
