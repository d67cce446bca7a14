"""One question's conversation in real time: its steps are the collection's, its sketches are the store's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby

from hubbub.collection import Collection
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.plugin_guard import PluginFailed
from hubbub.core.sketch import Sketch
from hubbub.core.spec import Json, canonical, spec_id
from hubbub.protocols.ask import Ask
from hubbub.protocols.count import Count, CountResult
from hubbub.protocols.driver import Conversation
from hubbub.protocols.memory import Memory
from hubbub.protocols.release import Release
from hubbub.service.counts import read_count, same_count
from hubbub.service.open_asks import AnswerPlace
from hubbub.service.releases import alike, row_of, same
from hubbub.service.retention import snapshot_steps
from hubbub.service.schedule import Schedule
from hubbub.service.store.base import AskKey, AskRow, EraRow, ReleaseRow, SnapshotRow, StoreFailed
from hubbub.service.store.sql import Store


class ReplayMismatch(HubbubError, RuntimeError):
    """What is stored is not what the protocol says: nothing goes on until a person has looked."""

    def __init__(self, question: str, what: str) -> None:
        self.question, self.what = question, what
        super().__init__(
            f"{question}: {what}: the store is damaged, or this is not the hubbub that wrote it. Nothing was changed: "
            "restore a backup, run the hubbub that wrote it, or serve the collection with a higher version, which "
            "begins anew"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.question, self.what)


class ProtocolFailed(HubbubError, RuntimeError):
    """A protocol raised an error: it cannot go on."""


class QuestionRun:
    """A protocol, whose step k is the collection's step first + k - 1; or run `first` of a study, which ends.

    `said` is where it is: asks to be answered with their final sketches, a count to be made, a release to be told, or
    None at its end. With snapshots it begins at the oldest of them, instead of at its first step; it makes one `every`
    so many steps, of which the collection says how many if nobody else does.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> run = QuestionRun(load_collection(EXAMPLE), EraRow("0" * 32, "popular", 40))
        >>> (ask,) = run.said
        >>> ask.step, run.number, run.round
        (40, 40, 1)
        >>> run.answer([ask.mechanism.empty()])
        >>> run.release(time=0.0).withheld
        '0 reports; at least 100 are needed'
        >>> run.number
        41
    """

    def __init__(
        self, collection: Collection, era: EraRow, snapshots: Sequence[SnapshotRow] = (), *, every: int | None = None
    ) -> None:
        self.collection, self.era = collection, era
        self.schedule = Schedule(collection, era.question)
        self.schedule.check()
        self.kept = [row.step for row in snapshots] or [era.first]
        """The steps of the snapshots: the last two, the older of which the newer is checked against."""
        self.number = self.kept[0]
        """The step that it is in, or the run that it is."""
        self.next_asks: tuple[Ask, ...] = ()
        """The first asks of the next step, where they are known already."""
        self.counted = 0
        """How many counts were made in this step or run."""
        self.snapshot: SnapshotRow | None = None
        """To be stored together with the release that it is at."""
        self.remembered = (self.kept[0], snapshots[0].state if snapshots else "null")
        """The step and the state of the latest snapshot that was read or made."""
        self.remembered_before = self.remembered
        """Those of the one before it: where it is at a release, the step of that release begins from there."""
        self.said: tuple[Ask, ...] | Count | Release | None = None
        self._released = 0
        self._every = every or snapshot_steps(collection)
        self._stored = {row.step: row for row in snapshots}
        self._memory = Memory(json.loads(snapshots[0].state) if snapshots else None)
        terms = self.schedule.terms
        try:
            with self._protocol_moves():
                protocol = collection.protocol(era.question, self._memory, first=era.first)
                self._conversation = Conversation(protocol, rounds=terms.rounds, parts=terms.parts)
        except (InvalidValue, ProtocolFailed) as error:
            if not snapshots:
                raise
            raise ReplayMismatch(era.question, f"the snapshot of step {self.kept[0]} is of another kind") from error
        self._look()

    @property
    def is_study(self) -> bool:
        """Whether it ends."""
        return self.schedule.is_study

    @property
    def round(self) -> int:
        """The round that is asked, or the last that was; 0 before the first of a step."""
        return self._conversation.round

    @property
    def is_untold(self) -> bool:
        """Whether nothing was answered in this step or run: it can still be left out."""
        return self.round - isinstance(self.said, tuple) == 0 and not self.counted

    def key(self, ask: Ask, round: int, part: int) -> AskKey:
        """The name of an ask in the store."""
        place: dict[str, Json] = {"question": self.era.question, "first": self.era.first, "round": round, "part": part}
        return AskKey(self.collection.collection_id, spec_id({"ask": ask.ask_id, **place}))

    def places(self, asks: Sequence[Ask]) -> list[AnswerPlace]:
        """What the answers to this step's asks, or to those of the next, are called."""
        ahead = bool(asks) and asks is self.next_asks
        number, round = (self.number + 1, 1) if ahead else (self.number, self.round)
        names = (self.schedule.name(number, round, part) for part in range(len(asks)))
        return [AnswerPlace(self.collection.collection_id, name) for name in names]

    def answer(self, sketches: Sequence[Sketch]) -> None:
        """Answer the asks that it is at."""
        with self._protocol_moves():
            self._conversation.reply_all(sketches)
        self._look()

    def tell(self, counted: CountResult) -> None:
        """Answer the count that it is at."""
        with self._protocol_moves():
            self._conversation.reply_count(counted)
        self.counted += 1
        self._look()

    def release(self, *, time: float) -> ReleaseRow:
        """Tell the release that it is at, and move on to the next step; a snapshot counts as stored."""
        row = self.tell_release(time=time)
        self.move_on()
        return row

    def tell_release(self, *, time: float) -> ReleaseRow:
        """The release that it is at, to be stored; a snapshot counts as stored."""
        if self.snapshot is not None and self.snapshot.step not in self.kept:
            self.kept = [self.kept[-1], self.snapshot.step]
        assert isinstance(self.said, Release)
        return self._row(self.said, time)

    def move_on(self) -> None:
        """Go on after a release, to the next step."""
        expected, self.next_asks = self.next_asks, ()
        if self.is_study:
            self._released += 1
        else:
            self.number, self.counted = self.number + 1, 0
        with self._protocol_moves():
            self._conversation.listen()
        self._look()
        if expected and self._asked() != expected:
            what = f"the ask that was known ahead has changed in step {self.number}"
            raise ReplayMismatch(self.era.question, what)

    def stop(self, why: str, *, time: float) -> ReleaseRow:
        """End a study that cannot go on, with a release that says so."""
        self.said = None
        release = Release(step=self.number, estimates={}, published=False, spent=0.0, n=0.0, stopped=why)
        return self._row(release, time)

    @contextmanager
    def _protocol_moves(self) -> Iterator[None]:
        """Where the protocol runs: whatever it raises is an error of its own, and not of the collector."""
        try:
            yield
        except HubbubError:
            raise
        except Exception as error:
            raise ProtocolFailed(f"the protocol raised {type(error).__name__}: {error}") from error

    def _asked(self) -> tuple[Ask, ...]:
        return self.said if isinstance(self.said, tuple) else ()

    def _row(self, release: Release, time: float) -> ReleaseRow:
        return row_of(
            release,
            collection=self.collection.collection_id,
            question=self.era.question,
            time=time,
            minimum_batch=self.collection.minimum_batch,
            number=self._released,
        )

    def replay(self, store: Store) -> list[tuple[AskRow, Ask]]:
        """Go through all that is stored since the older snapshot; the asks whose ids are still held.

        The protocol must ask, count, release and remember what is stored, or `ReplayMismatch` is raised.
        """
        try:
            return self._replay(store)
        except (ReplayMismatch, StoreFailed, PluginFailed):
            raise
        except Exception as error:  # whatever the protocol cannot make of what is stored
            raise ReplayMismatch(self.era.question, f"what is stored cannot be replayed ({error})") from error

    def _replay(self, store: Store) -> list[tuple[AskRow, Ask]]:
        still_known: list[tuple[AskRow, Ask]] = []
        waits = False
        for (step, _), group in groupby(store.asks(self.era, self.kept[0]), lambda row: (row.step, row.round)):
            rows = list(group)
            if not waits:
                self._replay_told(store)
            # Beyond an open ask there may be one more, published ahead.
            asks = self.next_asks if waits else self._asked()
            if [row.spec for row in rows] != [canonical(ask.spec()) for ask in asks]:
                raise ReplayMismatch(self.era.question, f"the ask of step {step} is not reproduced")
            still_known += [(row, ask) for row, ask in zip(rows, asks, strict=True) if not row.forgotten]
            if all(row.final for row in rows):
                self.answer([Sketch.from_bytes(row.sketch) for row in rows])
            else:
                waits = True
        if not waits:
            self._replay_told(store)
        return still_known

    def _replay_told(self, store: Store) -> None:
        """The counts and releases that are stored, as far as they go."""
        while True:
            message = self.said
            if isinstance(message, Count):
                rows = store.counted(self.era, self.number)
                if len(rows) <= self.counted:
                    return
                row = rows[self.counted]
                if not same_count(row, message):
                    raise ReplayMismatch(self.era.question, f"count {self.counted} of step {self.number} is another")
                self.tell(read_count(row))
                continue
            if not isinstance(message, Release):
                return
            stored = store.release(self.collection.collection_id, self.era.question, message.step, self._released)
            if stored is None:
                return
            if not same(stored, self.release(time=stored.time)):
                raise ReplayMismatch(self.era.question, f"the release of step {message.step} is not reproduced")

    def forget(self, below: int) -> int:
        """Let go of the snapshots before a step, as far as it goes; all before the step returned may be deleted."""
        self.kept = [step for step in self.kept if step >= below] or self.kept[-1:]
        return min(below, self.kept[0])

    def _remember(self) -> SnapshotRow | None:
        """The snapshot of the step after a release, if it is time for one."""
        step = self.number + 1
        if step % self._every or self.is_study:
            return None
        made = SnapshotRow(*self.era.key, step, json.dumps(self._memory.state()))
        self.remembered_before, self.remembered = self.remembered, (step, made.state)
        stored = self._stored.get(step)
        if stored is not None and not alike(json.loads(stored.state), json.loads(made.state)):
            raise ReplayMismatch(self.era.question, f"the snapshot of step {step} is not reproduced")
        return made

    def _look(self) -> None:
        """See what the protocol says now, in the collection's steps."""
        message, asks = self._conversation.message, self._conversation.asks
        self.said = self.snapshot = None
        if isinstance(message, Release):
            self.said = replace(message, step=self.number)
            self.snapshot = self._remember()
        elif isinstance(message, Count):
            self.said = replace(message, ask=self._placed(message.ask))
        elif asks:
            self.said = tuple(map(self._placed, asks))
            ahead = [ask.following or (ask if ask.standing and self.round == 1 else None) for ask in asks]
            if not self.is_study and all(ahead):
                self.next_asks = tuple(replace(ask, step=self.number + 1) for ask in ahead if ask is not None)

    def _placed(self, ask: Ask) -> Ask:
        """An ask with the collection's step; all of a study is step 0."""
        return ask if self.is_study else replace(ask, step=self.era.first + ask.step - 1)
