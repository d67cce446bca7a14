"""Rounds: every question's conversation, driven by the clock. What happens is decided here, and stored whole.

A step has as many rounds as its terms say, of equal length; an ask closes with its round. One that does not depend on
the answers before it is known ahead and opens with its step; any other as soon as what it depends on is final. Reports
count for the collection's lateness after the close; then the sketch is final, the protocol hears it, and the next ask,
count or release follows. Studies (`studies.py`) have rounds of their own, and end.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hubbub.collection import Collection
from hubbub.core.errors import HubbubError
from hubbub.core.plugin_guard import PluginFailed
from hubbub.core.random import Random
from hubbub.core.sketch import Sketch
from hubbub.core.spec import canonical
from hubbub.protocols.ask import Ask
from hubbub.protocols.count import Count
from hubbub.protocols.release import Release
from hubbub.service.archive import Archive
from hubbub.service.counts import counted_ask, make_count, read_count
from hubbub.service.ids import Ids
from hubbub.service.limits import Ceilings
from hubbub.service.logs import log
from hubbub.service.long_counts import AT_ONCE, LOOK, LongCounts
from hubbub.service.open_asks import Board, OpenAsk
from hubbub.service.question_run import QuestionRun, ReplayMismatch
from hubbub.service.report_ids import ReportIds
from hubbub.service.retention import expired_of_others, expired_of_run
from hubbub.service.schedule import Schedule
from hubbub.service.store.base import (
    AskKey,
    AskRow,
    CountRow,
    EraRow,
    Expiry,
    IdPage,
    SnapshotRow,
    StoreChanges,
    StoreFailed,
)
from hubbub.service.store.sql import Store
from hubbub.service.studies import Studies
from hubbub.service.takeover import TakenOver, first_unasked, last_asked, take_over
from hubbub.service.turn_back import turn_back

LONGEST_GAP = 1000
"""After so many missed steps (or w, if that is more) a conversation begins anew instead of catching up."""

MARGIN = 60.0
"""Seconds that ids are held after an ask is final: a retry hears "duplicate", not "late"."""

FORGET_PAGES = 1024
"""Pages of ids that are deleted at once: half a million ids, about 13 MB."""

SWEEP = 3600.0
"""Seconds between one look for what retention deletes and the next."""


class Rounds:
    """The conversations of some collections, over one board.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> from hubbub.service.store import open_store
        >>> rounds = Rounds([load_collection(EXAMPLE)], open_store("sqlite:///:memory:"), Random(seed=1))
        >>> [(ask.question, ask.step, ask.closes) for ask in rounds.tick(7200.0).asks]
        [('popular', 2, 10800.0)]
        >>> [release.withheld for release in rounds.tick(11400.0).releases]
        ['0 reports; at least 100 are needed']
    """

    def __init__(
        self,
        collections: Sequence[Collection],
        store: Store,
        rng: Random,
        *,
        outdated: frozenset[str] = frozenset(),
        ceilings: Ceilings | None = None,
        archive: Archive | None = None,
        hear: Callable[[Collection, str, Release, StoreChanges], None] = lambda *heard: None,
    ) -> None:
        self.board = Board(ceilings)
        self._hear = hear
        """Called with every release that is made, once: what follows from it is part of the same changes."""
        self._store, self._rng, self._archive = store, rng, archive
        self._runs: list[QuestionRun] = []
        self._unbegun: list[tuple[Collection, str, str | None]] = []
        self.failed: dict[tuple[str, str], str] = {}
        """Questions of other packages' kinds that failed, by collection and name, and how. All that is stored of them
        stays as it is, and is gone on with at the next start."""
        self._recognised: list[EraRow] = []
        self._repacked = StoreChanges()
        self._forgetting: dict[AskKey, int] = {}
        """The asks whose ids are being deleted, and how many pages of them are left."""
        self._long_counts = LongCounts()
        self._studies = Studies(collections, store, outdated)
        for collection in collections:
            for question in collection.questions:
                if Schedule(collection, question).is_study:
                    continue
                era = store.era(collection.collection_id, question)
                try:
                    why = None if era is None else self._resume(collection, era)
                except PluginFailed as error:
                    self._set_aside(collection, question, error)
                    continue
                if era is None or why is not None:
                    self._unbegun.append((collection, question, why))
            for era in store.running(collection.collection_id):
                try:
                    why = self._resume(collection, era)
                except PluginFailed as error:
                    why = str(error)
                if why is not None:
                    self._studies.lost.append((era, why))
        self._served = frozenset(collection.collection_id for collection in collections)
        self._swept: float | None = None
        # What an earlier version, or an earlier era, left open is over; what is not served now may be again.
        over = outdated | self._served
        self._left_over = [
            (key, final) for key, final in store.held() if key.collection in over and key not in self.board.asks
        ]

    def turn_back(self, now: float) -> StoreChanges:
        """If time went back: end what is in steps that have not come, and begin anew in the present."""
        steps, changes = turn_back(self._runs, self.board, self._store, now)
        for place, step in steps.items():
            run = self._runs[place]
            self._runs[place] = self._begin_at(run.collection, run.era.question, step, "time went back", changes)
        self._end(changes)
        return changes

    def tick(self, now: float, settled: float | None = None) -> StoreChanges:
        """All that is due by now. Memory has moved on when this returns: the changes must be made, or all is over.

        What retention deletes goes by `settled`, the earliest that the time can be.
        """
        changes, self._repacked = self._repacked, StoreChanges()
        changes.finals += [key for key, final in self._left_over if not final]
        self._forgetting |= {key: self._store.count_id_pages(key) for key, _ in self._left_over}
        self._left_over = []
        changes.recognised, self._recognised = self._recognised, []
        for collection, question, why in self._unbegun:
            try:
                self._runs.append(self._take_over(collection, question, why, now, changes))
            except PluginFailed as error:
                self._set_aside(collection, question, error)
        self._unbegun = []
        self._runs += self._studies.begin(now, changes)
        self.board.expected.clear()
        moved = [self._advance(run, now, changes) for run in self._runs]
        self._runs = [run for run in moved if run is not None]
        self._end(changes)
        for key, opened in list(self.board.asks.items()):
            if opened.final and now >= opened.until + MARGIN:
                self.board.drop(key)
                self._forgetting[key] = opened.ids.pages
        self._forget(changes)
        sure = now if settled is None else settled
        if not self._forgetting and (self._swept is None or not 0 <= sure - self._swept < SWEEP):
            self._swept = sure
            changes.expired += self._expired(sure)
        return changes

    def _end(self, changes: StoreChanges) -> None:
        """Let go of the runs of studies that are over."""
        changes.ended += [run.era for run in self._runs if run.said is None]
        self._runs = [run for run in self._runs if run.said is not None]

    def _forget(self, changes: StoreChanges) -> None:
        """Delete ids, some pages at a time: nobody waits for millions of them to go."""
        left = FORGET_PAGES
        for key, pages in list(self._forgetting.items()):
            if pages > left:
                self._forgetting[key] = pages - left
                changes.trimmed.append((key, pages - left))
                return
            del self._forgetting[key]
            changes.forgotten.append(key)
            left -= pages

    def _expired(self, now: float) -> list[Expiry]:
        """What retention deletes: of what is served, only what the conversations do not need any more."""
        needed: dict[tuple[str, str], int] = {}
        for place, schedule in self._studies.schedules.items():
            needed[place] = expired_of_run(schedule, now)
        for run in self._runs:
            place = run.era.key[:2]
            needed[place] = run.forget(needed.get(place, expired_of_run(run.schedule, now)))
        for key, opened in self.board.asks.items():
            place = (key.collection, opened.question)
            if place in needed:
                needed[place] = min(needed[place], opened.number)
        others = [row for row in self._store.collections() if row.id not in self._served]
        own = (Expiry(*place, below) for place, below in needed.items())
        return [*own, *expired_of_others(self._store, others, now)]

    def next_event(self, now: float) -> float:
        """When something will next be due."""
        times = [*self.board.expected.values(), self._studies.next_event(now)]
        times += [now + LOOK] if self._long_counts.waits else []
        for opened in self.board.asks.values():
            times += [opened.until + MARGIN] if opened.final else [opened.closes, opened.until]
        for run in self._runs:
            times.append(run.schedule.opens(run.number))
        return min((time for time in times if now < time < math.inf), default=now + SWEEP)

    def _resume(self, collection: Collection, era: EraRow) -> str | None:
        """Go on with an era from what is stored; or why it is over, if this code would not have said the same.

        An era whose arithmetic was never written down is gone on with if all that is stored of it is reproduced.
        """
        own = collection.questions[era.question].arithmetic
        if era.arithmetic not in (0, own):
            return f"arithmetic {own}, and it was begun with {era.arithmetic}"
        try:
            run = QuestionRun(collection, era, self._store.snapshots(era))
            restored = run.replay(self._store)
        except ReplayMismatch as error:
            if era.arithmetic:
                raise
            return f"arithmetic {own}, and it was begun with an older one: {error.what}"
        if not era.arithmetic:
            self._recognised.append(era._replace(arithmetic=own))
        for row, ask in restored:
            self._restore(run, row, ask)
        self._runs.append(run)
        return None

    def _take_over(
        self, collection: Collection, question: str, why: str | None, now: float, changes: StoreChanges
    ) -> QuestionRun:
        """Go on with what an earlier version of the collection asked; where that cannot be, a new era."""
        taken = take_over(self._store, self._archive, collection, question, now) if why is None else None
        if not isinstance(taken, TakenOver):
            return self._begin(collection, question, taken or why, now, changes)
        place: dict[str, Any] = {"collection": collection.name, "question": question}
        log("version goes on", **place, earlier=taken.version, version=collection.version, step=taken.snapshot.step)
        changes.releases += taken.releases
        for release in taken.heard:
            self._hear(collection, question, release, changes)
        changes.eras.append(taken.era)
        changes.snapshots.append((taken.snapshot, taken.snapshot.step))
        return QuestionRun(collection, taken.era, [taken.snapshot])

    def _begin(
        self, collection: Collection, question: str, why: str | None, now: float, changes: StoreChanges
    ) -> QuestionRun:
        """A new era, in the first step whose first ask is not over yet, and that no era of any version asked.

        `why` is what ended the one before, if there was any.
        """
        schedule = Schedule(collection, question)
        step = max(schedule.at(now), 0)
        step += now >= schedule.times(step, 1)[1]
        step = first_unasked(self._store, collection, question, step)
        return self._begin_at(collection, question, step, why, changes)

    def _begin_at(
        self, collection: Collection, question: str, step: int, why: str | None, changes: StoreChanges
    ) -> QuestionRun:
        spec = collection.questions[question]
        last = last_asked(self._store, collection, question, step)
        if last is not None and spec.horizon and last // spec.horizon == step // spec.horizon:
            # Devices say once a horizon that they are there, and did.
            step = (step // spec.horizon + 1) * spec.horizon
        if why is not None:
            log("new era", level=logging.WARNING, collection=collection.name, question=question, first=step, why=why)
        era = EraRow(collection.collection_id, question, step, spec.arithmetic)
        changes.eras.append(era)
        changes.snapshots.append((SnapshotRow(*era.key, step, "null"), step))
        return QuestionRun(collection, era)

    def _advance(self, run: QuestionRun, now: float, changes: StoreChanges) -> QuestionRun | None:
        """Go as far as time allows. A study that cannot go on is stopped; None where another package's kind failed."""
        try:
            while (more := self._move(run, now, changes)) is not None:
                run = more
            if run.said is not None:
                self._look_ahead(run, now, changes)
        except (ReplayMismatch, StoreFailed):
            raise
        except HubbubError as error:
            if run.is_study:
                self._stop(run, str(error), now, changes)
            elif isinstance(error, PluginFailed):
                self._set_aside(run.collection, run.era.question, error)
                return None
            else:
                raise
        return run

    def _set_aside(self, collection: Collection, question: str, error: PluginFailed) -> None:
        """Go on without a question whose kind failed: the others must not suffer from another package's error."""
        log("question failed", level=logging.ERROR, collection=collection.name, question=question, why=str(error))
        self.failed[collection.collection_id, question] = str(error)

    def _move(self, run: QuestionRun, now: float, changes: StoreChanges) -> QuestionRun | None:
        """One thing that is due: the conversation to go on with, or None if nothing is."""
        message = run.said
        if message is None:
            return None
        opened = self._opened(run, message) if isinstance(message, tuple) else []
        if not opened:
            if self._is_lost(run, now):
                why = f"the last step was {run.number}, too long ago to catch up"
                return self._begin(run.collection, run.era.question, why, now, changes)
            if now < run.schedule.opens(run.number):
                for place in run.places(message) if isinstance(message, tuple) else ():
                    self.board.expected[place] = run.schedule.opens(run.number)
                return None
        if isinstance(message, Release):
            snapshot = run.snapshot
            self._hear(run.collection, run.era.question, message, changes)
            changes.releases.append(run.tell_release(time=now))
            if snapshot is not None:
                changes.snapshots.append((snapshot, run.kept[0]))
            run.move_on()  # last: a protocol that raises here has released all the same
            return run
        if isinstance(message, Count):
            return run if self._count(run, message, changes) else None
        if not opened and run.is_untold and not run.is_study and self._was_asked(run, run.number):
            why = f"step {run.number} was asked while the clock was wrong"
            return self._begin(run.collection, run.era.question, why, now, changes)
        opened = opened or self._publish(run, message, now, changes)
        if any(now < ask.until for ask in opened):
            return None
        for ask in opened:
            if not ask.final:
                ask.final = True
                changes.finals.append(ask.key)
        run.answer([ask.sketch for ask in opened])
        return run

    def _stop(self, run: QuestionRun, why: str, now: float, changes: StoreChanges) -> None:
        """End a study that cannot go on."""
        log("study stopped", level=logging.WARNING, question=run.era.question, run=run.number, why=why)
        for opened in self.board.of(run.collection.collection_id, run.era.question):
            if opened.number == run.number and not opened.final:
                opened.final = True
                changes.finals.append(opened.key)
        changes.releases.append(run.stop(why, time=now))

    def _count(self, run: QuestionRun, count: Count, changes: StoreChanges) -> bool:
        """Count among the reports to an ask of this conversation; whether that is done, as some counts take long."""
        place: dict[str, Any] = {"step": run.number, "missed": tuple(changes.asks)}
        n = Sketch.from_bytes(counted_ask(self._store, count, run.era, **place).sketch).n
        make = partial(make_count, self._store, self._archive, count, run.era, number=run.counted, **place)
        if count.work(n) <= AT_ONCE:
            row: CountRow | None = make()
        else:
            row = self._long_counts.take(
                (run.era.key, run.number, run.counted, canonical(count.candidates_json())), make
            )
        if row is None:
            return False
        changes.counted.append(row)
        run.tell(read_count(row))
        return True

    def _look_ahead(self, run: QuestionRun, now: float, changes: StoreChanges) -> None:
        """Asks that are known ahead open with their step, while those before them still wait for the late."""
        asks = run.next_asks
        if not asks or self._opened(run, asks):
            return
        opens = run.schedule.opens(run.number + 1)
        if now < opens:
            self.board.expected |= dict.fromkeys(run.places(asks), opens)
        elif not self._was_asked(run, run.number + 1):
            self._publish(run, asks, now, changes)

    def _was_asked(self, run: QuestionRun, step: int) -> bool:
        """Whether another era asked this step, while the clock was wrong."""
        return self._store.was_asked(run.collection.collection_id, run.era.question, step)

    def _is_lost(self, run: QuestionRun, now: float) -> bool:
        longest = max(LONGEST_GAP, run.collection.questions[run.era.question].lasts)
        return not run.is_study and run.is_untold and run.schedule.at(now) - run.number > longest

    def _opened(self, run: QuestionRun, asks: Sequence[Ask]) -> list[OpenAsk]:
        """What is on the board of some asks: all of them, or none."""
        return [opened for place in run.places(asks) if (opened := self.board.find(place)) is not None]

    def _publish(self, run: QuestionRun, asks: Sequence[Ask], now: float, changes: StoreChanges) -> list[OpenAsk]:
        """Open asks; those whose time is over already are only recorded, as asks that nobody answered."""
        made = []
        for part, (ask, place) in enumerate(zip(asks, run.places(asks), strict=True)):
            number, round = place.name.run or place.name.step, place.name.round
            closes = run.schedule.times(number, round)[1]
            missed = now >= closes + run.collection.lateness_seconds
            row = AskRow(
                *run.key(ask, round, part),
                question=run.era.question,
                first=run.era.first,
                step=number,
                round=round,
                part=part,
                spec=canonical(ask.spec()),
                opens=now,
                closes=closes,
                final=missed,
                forgotten=missed,
                sketch=ask.mechanism.empty().to_bytes(),
            )
            changes.asks.append(row)
            made.append(_open_ask(run, row, ask, self._ids(row.key)))
            if not missed:
                self.board.add(made[-1])
        return made

    def _restore(self, run: QuestionRun, row: AskRow, ask: Ask) -> None:
        ids = self._ids(row.key)
        ids.restore(self._store.id_pages(row.key))
        segments = Ids.concat(Ids.from_bytes(segment) for segment in self._store.segments(row.key))
        if len(segments):
            self._repacked.repacked.append(row.key)
            packed = ids.written(segments)
            self._repacked.id_pages += [IdPage(*row.key, page, part, data) for page, part, data in packed]
            ids.add(segments)
        opened = _open_ask(run, row, ask, ids)
        batch = self._store.shuffled(row.key)
        opened.shuffled = None if batch is None else batch.digest
        self.board.add(opened)

    def _ids(self, key: AskKey) -> ReportIds:
        return ReportIds(self._rng, partial(self._store.some_id_pages, key))


def _open_ask(run: QuestionRun, row: AskRow, ask: Ask, ids: ReportIds) -> OpenAsk:
    return OpenAsk(
        key=row.key,
        name=run.schedule.name(row.step, row.round, row.part),
        ask=ask,
        opens=row.opens,
        closes=row.closes,
        until=row.closes + run.collection.lateness_seconds,
        sketch=Sketch.from_bytes(row.sketch),
        ids=ids,
        final=row.final,
        keeps=ask.kept or run.collection.questions[row.question].keeps,
    )
