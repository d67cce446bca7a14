"""Rounds: every question's conversation, driven by the clock. What happens is decided here, and stored whole.

A step's first ask closes with the step, or at its half where a second may follow. One that does not depend on the
answers before it is known ahead and opens with its step; any other as soon as what it depends on is final. Reports
count for the collection's lateness after the close; then the sketch is final, the protocol hears it, and the next ask
or release follows.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from hubbub.collection import Collection
from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.core.sketch import Sketch
from hubbub.core.spec import canonical
from hubbub.protocols.ask import Ask, Release
from hubbub.service.ids import Ids
from hubbub.service.limits import Ceilings
from hubbub.service.logs import log
from hubbub.service.retention import expired_of_others, expired_step
from hubbub.service.seen import Seen
from hubbub.service.store.base import AskKey, AskRow, Changes, EraRow, Expiry, IdPage, SnapshotRow, Store
from hubbub.service.takeover import TakenOver, first_unasked, last_asked, take_over
from hubbub.service.talk import ReplayMismatch, Talk
from hubbub.service.turn_back import turn_back
from hubbub.service.window import Board, Window

__all__ = ["FORGET_PAGES", "LONGEST_GAP", "MARGIN", "SWEEP", "Rounds"]

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
        [('popular', 2, 10800)]
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
    ) -> None:
        self.board = Board(ceilings)
        self._store = store
        self._rng = rng
        self._talks: list[Talk] = []
        self._unbegun: list[tuple[Collection, str, str | None]] = []
        self._recognised: list[EraRow] = []
        self._repacked = Changes()
        self._forgetting: dict[AskKey, int] = {}
        """The asks whose ids are being deleted, and how many pages of them are left."""
        for collection in collections:
            for question in collection.questions:
                era = store.era(collection.collection_id, question)
                if era is None:
                    self._unbegun.append((collection, question, None))
                elif (why := self._resume(collection, era)) is not None:
                    self._unbegun.append((collection, question, why))
        self._served = frozenset(collection.collection_id for collection in collections)
        self._swept: float | None = None
        # What an earlier version, or an earlier era, left open is over; what is not served now may be again.
        over = outdated | self._served
        self._left_over = [
            (key, final) for key, final in store.held() if key.collection in over and key not in self.board.windows
        ]

    def turn_back(self, now: float) -> Changes:
        """If time went back: end what is in steps that have not come, and begin anew in the present."""
        steps, changes = turn_back(self._talks, self.board, self._store, now)
        for place, step in steps.items():
            talk = self._talks[place]
            self._talks[place] = self._begin_at(talk.collection, talk.era.question, step, "time went back", changes)
        return changes

    def tick(self, now: float, settled: float | None = None) -> Changes:
        """All that is due by now. Memory has moved on when this returns: the changes must be made, or all is over.

        What retention deletes goes by `settled`, the earliest that the time can be.
        """
        changes, self._repacked = self._repacked, Changes()
        changes.finals += [key for key, final in self._left_over if not final]
        self._forgetting |= {key: self._store.count_id_pages(key) for key, _ in self._left_over}
        self._left_over = []
        changes.recognised, self._recognised = self._recognised, []
        self._talks += [self._take_over(*place, now, changes) for place in self._unbegun]
        self._unbegun = []
        self.board.expected.clear()
        self._talks = [self._advance(talk, now, changes) for talk in self._talks]
        for key, window in list(self.board.windows.items()):
            if window.final and now >= window.until + MARGIN:
                self.board.drop(key)
                self._forgetting[key] = window.seen.pages
        self._forget(changes)
        sure = now if settled is None else settled
        if not self._forgetting and (self._swept is None or not 0 <= sure - self._swept < SWEEP):
            self._swept = sure
            changes.expired += self._expired(sure)
        return changes

    def _forget(self, changes: Changes) -> None:
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
        found = []
        for talk in self._talks:
            one, question = talk.collection, talk.era.question
            kept = expired_step(
                now=now, origin=one.origin, step_seconds=one.step_seconds, retention_days=one.retention_days
            )
            held = [
                window.ask.step
                for key, window in self.board.windows.items()
                if key.collection == one.collection_id and window.question == question
            ]
            found.append(Expiry(one.collection_id, question, min([talk.forget(kept), *held])))
        others = [row for row in self._store.collections() if row.id not in self._served]
        return [*found, *expired_of_others(self._store, others, now)]

    def next_event(self, now: float) -> float:
        """When something will next be due."""
        times = list(self.board.expected.values())
        for window in self.board.windows.values():
            times += [window.until + MARGIN] if window.final else [window.closes, window.until]
        for talk in self._talks:
            times.append(talk.collection.opens(talk.said.step))
        return min((time for time in times if time > now), default=now + 1.0)

    def _resume(self, collection: Collection, era: EraRow) -> str | None:
        """Go on with an era from what is stored; or why it is over, if this code would not have said the same.

        An era whose arithmetic was never written down is gone on with if all that is stored of it is reproduced.
        """
        own = collection.questions[era.question].arithmetic
        if era.arithmetic not in (0, own):
            return f"arithmetic {own}, and it was begun with {era.arithmetic}"
        try:
            talk = Talk(collection, era, self._store.snapshots(era))
            restored = talk.replay(self._store)
        except ReplayMismatch as error:
            if era.arithmetic:
                raise
            return f"arithmetic {own}, and it was begun with an older one: {error.what}"
        if not era.arithmetic:
            self._recognised.append(era._replace(arithmetic=own))
        for row, ask in restored:
            self._restore(talk, row, ask)
        self._talks.append(talk)
        return None

    def _take_over(self, collection: Collection, question: str, why: str | None, now: float, changes: Changes) -> Talk:
        """Go on with what an earlier version of the collection asked; where that cannot be, a new era."""
        taken = take_over(self._store, collection, question, now) if why is None else None
        if not isinstance(taken, TakenOver):
            return self._begin(collection, question, taken or why, now, changes)
        place: dict[str, Any] = {"collection": collection.name, "question": question}
        log("version goes on", **place, earlier=taken.version, version=collection.version, step=taken.snapshot.step)
        changes.releases += taken.releases
        changes.eras.append(taken.era)
        changes.snapshots.append((taken.snapshot, taken.snapshot.step))
        return Talk(collection, taken.era, [taken.snapshot])

    def _begin(self, collection: Collection, question: str, why: str | None, now: float, changes: Changes) -> Talk:
        """A new era, in the first step whose first ask is not over yet, and that no era of any version asked.

        `why` is what ended the one before, if there was any.
        """
        step = max(collection.step_at(now), 0)
        step += now >= collection.closes(step, question=question, phase=1)
        step = first_unasked(self._store, collection, question, step)
        return self._begin_at(collection, question, step, why, changes)

    def _begin_at(self, collection: Collection, question: str, step: int, why: str | None, changes: Changes) -> Talk:
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
        return Talk(collection, era)

    def _advance(self, talk: Talk, now: float, changes: Changes) -> Talk:
        while True:
            said = talk.said
            window = self._window(talk, said) if isinstance(said, Ask) else None
            if window is None and _is_lost(talk, now):
                why = f"the last step was {talk.said.step}, too long ago to catch up"
                talk = self._begin(talk.collection, talk.era.question, why, now, changes)
                continue
            if window is None and now < talk.collection.opens(said.step):
                if isinstance(said, Ask):
                    self.board.expected[talk.place(said)] = talk.collection.opens(said.step)
                break
            if isinstance(said, Release):
                snapshot = talk.snapshot
                changes.releases.append(talk.release(time=now))
                if snapshot is not None:
                    changes.snapshots.append((snapshot, talk.kept[0]))
                continue
            if window is None and talk.phase == 1 and self._was_asked(talk, said):
                why = f"step {said.step} was asked while the clock was wrong"
                talk = self._begin(talk.collection, talk.era.question, why, now, changes)
                continue
            window = window or self._publish(talk, said, talk.phase, now, changes)
            if now < window.until:
                break
            if not window.final:
                window.final = True
                changes.finals.append(window.key)
            talk.answer(window.sketch)
        self._look_ahead(talk, now, changes)
        return talk

    def _look_ahead(self, talk: Talk, now: float, changes: Changes) -> None:
        """An ask that is known ahead opens with its step, while the one before it still waits for the late."""
        ask = talk.next_ask
        if ask is None or self._window(talk, ask) is not None:
            return
        opens = talk.collection.opens(ask.step)
        if now < opens:
            self.board.expected[talk.place(ask)] = opens
        elif not self._was_asked(talk, ask):
            self._publish(talk, ask, 1, now, changes)

    def _was_asked(self, talk: Talk, ask: Ask) -> bool:
        """Whether another era asked this step, while the clock was wrong."""
        return self._store.was_asked(talk.collection.collection_id, talk.era.question, ask.step)

    def _window(self, talk: Talk, ask: Ask) -> Window | None:
        window = self.board.windows.get(talk.key(ask))
        if window is not None and window.question != talk.era.question:
            said = f"questions that ask different things: {window.question} and {talk.era.question} publish one ask"
            raise InvalidValue("questions", talk.era.question, said)
        return window

    def _publish(self, talk: Talk, ask: Ask, phase: int, now: float, changes: Changes) -> Window:
        """Open an ask; one whose time is over already is only recorded, as one that nobody answered."""
        collection = talk.collection
        closes = collection.closes(ask.step, question=talk.era.question, phase=phase)
        missed = now >= closes + collection.lateness_seconds
        empty = ask.mechanism.empty()
        row = AskRow(
            *talk.key(ask),
            question=talk.era.question,
            first=talk.era.first,
            step=ask.step,
            phase=phase,
            spec=canonical(ask.spec()),
            opens=now,
            closes=closes,
            final=missed,
            forgotten=missed,
            sketch=empty.to_bytes(),
        )
        changes.asks.append(row)
        window = _window_of(talk, row, ask, self._seen(row.key))
        if not missed:
            self.board.add(window)
        return window

    def _restore(self, talk: Talk, row: AskRow, ask: Ask) -> None:
        seen = self._seen(row.key)
        seen.restore(self._store.id_pages(row.key))
        segments = Ids.concat(Ids.from_bytes(segment) for segment in self._store.segments(row.key))
        if len(segments):
            self._repacked.repacked.append(row.key)
            self._repacked.id_pages += [IdPage(*row.key, page, part, ids) for page, part, ids in seen.written(segments)]
            seen.add(segments)
        self.board.add(_window_of(talk, row, ask, seen))

    def _seen(self, key: AskKey) -> Seen:
        return Seen(self._rng, partial(self._store.some_id_pages, key))


def _window_of(talk: Talk, row: AskRow, ask: Ask, seen: Seen) -> Window:
    return Window(
        key=row.key,
        question=row.question,
        ask=ask,
        opens=row.opens,
        closes=row.closes,
        until=row.closes + talk.collection.lateness_seconds,
        sketch=Sketch.from_bytes(row.sketch),
        seen=seen,
        final=row.final,
        keeps=talk.collection.questions[row.question].keeps,
        round=row.phase,
    )


def _is_lost(talk: Talk, now: float) -> bool:
    question = talk.collection.questions[talk.era.question]
    longest = max(LONGEST_GAP, question.lasts)
    return talk.phase == 1 and talk.collection.step_at(now) - talk.said.step > longest
