"""One question's conversation in real time: its steps are the collection's, its sketches are the store's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from hubbub.collection import Collection
from hubbub.collection.wire import AnswerName
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.sketch import Sketch
from hubbub.protocols.ask import Ask, Release
from hubbub.protocols.driver import Conversation
from hubbub.protocols.memory import Memory
from hubbub.service.releases import alike, row_of, same
from hubbub.service.retention import snapshot_steps
from hubbub.service.store.base import AskKey, AskRow, EraRow, ReleaseRow, SnapshotRow, Store, StoreFailed
from hubbub.service.window import AnswerPlace

__all__ = ["ReplayMismatch", "Talk"]


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


class Talk:
    """A protocol, whose step k is the collection's step first + k - 1.

    `said` is where it is: an ask to be answered with its final sketch, or a release to be told. An ask has a `phase`
    within its step, 1 or 2. With snapshots it begins at the oldest of them, instead of at its first step; it makes
    one `every` so many steps, of which the collection says how many if nobody else does.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> talk = Talk(load_collection(EXAMPLE), EraRow("0" * 32, "popular", 40))
        >>> ask = talk.said
        >>> ask.step, talk.phase
        (40, 1)
        >>> talk.answer(ask.mechanism.empty())
        >>> talk.release(time=0.0).withheld
        '0 reports; at least 100 are needed'
        >>> talk.said.step
        41
    """

    def __init__(
        self, collection: Collection, era: EraRow, snapshots: Sequence[SnapshotRow] = (), *, every: int | None = None
    ) -> None:
        check_schedule(collection, era.question)
        self.collection = collection
        self.era = era
        self.phase = 1
        self.next_ask: Ask | None = None
        """The first ask of the next step, where it is known already."""
        self.kept = [row.step for row in snapshots] or [era.first]
        """The steps of the snapshots: the last two, the older of which the newer is checked against."""
        self.snapshot: SnapshotRow | None = None
        """To be stored together with the release that it is at."""
        self.remembered = (self.kept[0], snapshots[0].state if snapshots else "null")
        """The step and the state of the latest snapshot that was read or made."""
        self.remembered_before = self.remembered
        """Those of the one before it: where it is at a release, the step of that release begins from there."""
        self._every = every or snapshot_steps(collection)
        self._stored = {row.step: row for row in snapshots}
        self._memory = Memory(json.loads(snapshots[0].state) if snapshots else None)
        try:
            self._conversation = Conversation(collection.protocol(era.question, self._memory, first=era.first))
        except (InvalidValue, TypeError, KeyError) as error:
            if not snapshots:
                raise
            raise ReplayMismatch(era.question, f"the snapshot of step {self.kept[0]} is of another kind") from error
        self._listen()

    def key(self, ask: Ask) -> AskKey:
        """The name of an ask in the store."""
        return AskKey(self.collection.collection_id, ask.ask_id)

    def place(self, ask: Ask) -> AnswerPlace:
        """What the answers to a step's first ask are called."""
        name = AnswerName(self.era.question, run=0, step=ask.step, round=1, part=0)
        return AnswerPlace(self.collection.collection_id, name)

    def answer(self, sketch: Sketch) -> None:
        """Answer the ask that it is at."""
        self._conversation.reply(self._heard.ask_id if isinstance(self._heard, Ask) else "", sketch)
        self.phase += 1
        self._listen()

    def release(self, *, time: float) -> ReleaseRow:
        """Tell the release that it is at, and move on to the next step; a snapshot counts as stored."""
        if self.snapshot is not None and self.snapshot.step not in self.kept:
            self.kept = [self.kept[-1], self.snapshot.step]
        told = self.said
        assert isinstance(told, Release)
        row = row_of(
            told,
            collection=self.collection.collection_id,
            question=self.era.question,
            time=time,
            minimum_batch=self.collection.minimum_batch,
        )
        expected, self.next_ask, self.phase = self.next_ask, None, 1
        self._listen()
        if expected is not None and self.said != expected:
            what = f"the ask that was known ahead has changed in step {expected.step}"
            raise ReplayMismatch(self.era.question, what)
        return row

    def replay(self, store: Store) -> list[tuple[AskRow, Ask]]:
        """Go through all that is stored since the older snapshot; the asks whose ids are still held.

        The protocol must ask, release and remember what is stored, or `ReplayMismatch` is raised.
        """
        try:
            return self._replay(store)
        except (ReplayMismatch, StoreFailed):
            raise
        except Exception as error:  # whatever the protocol cannot make of what is stored
            raise ReplayMismatch(self.era.question, f"what is stored cannot be replayed ({error})") from error

    def _replay(self, store: Store) -> list[tuple[AskRow, Ask]]:
        held: list[tuple[AskRow, Ask]] = []
        waits = False
        for row in store.asks(self.era, self.kept[0]):
            if not waits:
                self._replay_releases(store)
            # Beyond an open ask there may be one more, published ahead.
            said = self.next_ask if waits else self.said
            if not isinstance(said, Ask) or row.ask != said.ask_id:
                raise ReplayMismatch(self.era.question, f"the ask of step {row.step} is not reproduced")
            if not row.forgotten:
                held.append((row, said))
            if row.final:
                self.answer(Sketch.from_bytes(row.sketch))
            else:
                waits = True
        self._replay_releases(store)
        return held

    def _replay_releases(self, store: Store) -> None:
        while isinstance(said := self.said, Release):
            stored = store.releases(self.collection.collection_id, self.era.question, said.step, said.step, 1)
            if not stored:
                return
            if not same(stored[0], self.release(time=stored[0].time)):
                raise ReplayMismatch(self.era.question, f"the release of step {said.step} is not reproduced")

    def forget(self, below: int) -> int:
        """Let go of the snapshots before a step, as far as it goes; all before the step returned may be deleted."""
        self.kept = [step for step in self.kept if step >= below] or self.kept[-1:]
        return min(below, self.kept[0])

    def _remember(self, release: Release) -> SnapshotRow | None:
        """The snapshot of the step after a release, if it is time for one."""
        step = self.era.first + release.step
        if step % self._every:
            return None
        made = SnapshotRow(*self.era.key, step, json.dumps(self._memory.state()))
        self.remembered_before, self.remembered = self.remembered, (step, made.state)
        stored = self._stored.get(step)
        if stored is not None and not alike(json.loads(stored.state), json.loads(made.state)):
            raise ReplayMismatch(self.era.question, f"the snapshot of step {step} is not reproduced")
        return made

    def _listen(self) -> None:
        said = self._conversation.said
        self.snapshot = self._remember(said) if isinstance(said, Release) else None
        heard = self._conversation.listen()
        assert isinstance(heard, Ask | Release)
        self._heard = heard
        self.said: Ask | Release = replace(self._heard, step=self.era.first + self._heard.step - 1)
        if isinstance(self.said, Ask):
            if self.said.following is not None:
                self.next_ask = replace(self.said.following, step=self.said.step + 1)
            elif self.said.standing and self.phase == 1:
                self.next_ask = replace(self.said, step=self.said.step + 1)


def check_schedule(collection: Collection, question: str) -> None:
    """Refuse a lateness that leaves no time to ask: the next phase can only be decided when late reports are in.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> check_schedule(load_collection(EXAMPLE.replace("10m", "2h")), "popular")
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: lateness_seconds: got 7200; allowed: less than 3600, as popular is asked
    """
    room = collection.closes(0, question=question, phase=1) - collection.opens(0)
    if not collection.lateness_seconds < room:
        allowed = f"less than {room:g}, as {question} is asked"
        raise InvalidValue("lateness_seconds", collection.lateness_seconds, allowed)
