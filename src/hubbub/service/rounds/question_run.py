"""One question's protocol, run in real time: steps are numbered as in the collection, sketches come from the store."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby

from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.core.plugins import PluginFailed, is_foreign
from hubbub.core.reports import Sketch
from hubbub.core.spec import Json, canonical, spec_id
from hubbub.protocols.ask import Ask
from hubbub.protocols.driver import Conversation, Count, CountResult, Release
from hubbub.protocols.memory import Memory
from hubbub.questions.collection import Collection, Schedule
from hubbub.service.ingest.open_asks import AnswerPlace
from hubbub.service.rounds.releases import alike, read_count, release_row, same_count, same_release
from hubbub.service.store.base import AskKey, AskRow, EraRow, ReleaseRow, SnapshotRow, StoreFailed
from hubbub.service.store.sql import Store

SNAPSHOT_STEPS = 64
MOST_RELEASES = 1 << 10
"""The releases of a run of a study: one that never asked again would never let the others go on."""


def snapshot_interval(collection: Collection) -> int:
    """How many steps apart snapshots are: few enough that a replay never needs what retention deletes."""
    kept = collection.retention_days * 86400 // collection.step_seconds
    return min(max(kept // 4, 1), SNAPSHOT_STEPS)


class ReplayMismatch(HubbubError, RuntimeError):
    """The protocol does not reproduce what is stored; the collector stops until an operator has looked."""

    def __init__(self, question: str, difference: str) -> None:
        self.question, self.difference = question, difference
        super().__init__(
            f"{question}: {difference}: the store is damaged, or this is not the hubbub that wrote it. Nothing was "
            "changed: restore a backup, run the hubbub that wrote it, or serve the collection with a higher version, "
            "which begins anew"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.question, self.difference)


class ProtocolFailed(HubbubError, RuntimeError):
    """A protocol raised an error: it cannot go on."""


class QuestionRun:
    """A running protocol: a stream, whose step k is the collection's step `era.first + k - 1`, or one run of a study.

    `message` is what the protocol waits for now: asks (answered with their final sketches), a count (answered with its
    result), or a release (taken with `release`). It is None when the protocol has ended.

    Parameters
    ----------
    collection, era
        The collection that is served, and the era of the question.
    snapshots
        The stored snapshots, oldest first. The protocol starts from the oldest, or at the first step without any.
    snapshot_every
        How many steps apart new snapshots are; by default as `snapshot_interval` says for the collection.
    """

    def __init__(
        self,
        collection: Collection,
        era: EraRow,
        snapshots: Sequence[SnapshotRow] = (),
        *,
        snapshot_every: int | None = None,
    ) -> None:
        self.collection, self.era = collection, era
        self.schedule = Schedule(collection, era.question)
        self.schedule.check()
        self.snapshot_steps = [row.step for row in snapshots] or [era.first]
        """The steps of the last two snapshots. A replay from the older one must reproduce the newer one."""
        self.number = self.snapshot_steps[0]
        """The current step of a stream; the number of a study's run."""
        self.next_asks: tuple[Ask, ...] = ()
        """The first asks of the next step, if they do not depend on the answers to this step."""
        self.counts_made = 0
        """How many counts were made in this step or run."""
        self.new_snapshot: SnapshotRow | None = None
        """The snapshot that must be stored together with the current release."""
        self.latest_snapshot = (self.number, snapshots[0].state if snapshots else "null")
        """The step and the state of the latest snapshot that was read or made."""
        self.previous_snapshot = self.latest_snapshot
        """The step and the state of the snapshot before the latest one."""
        self.message: tuple[Ask, ...] | Count | Release | None = None
        self._releases_made = 0
        self._snapshot_every = snapshot_every or snapshot_interval(collection)
        self._stored_snapshots = {row.step: row for row in snapshots}
        self._memory = Memory(json.loads(snapshots[0].state) if snapshots else None)
        terms = self.schedule.terms
        try:
            with self._protocol_errors():
                protocol = collection.protocol(era.question, self._memory, first=era.first)
                self._conversation = Conversation(protocol, rounds=terms.rounds, parts=terms.parts)
        except (InvalidValue, ProtocolFailed) as error:
            if not snapshots:
                raise
            raise ReplayMismatch(era.question, f"the snapshot of step {self.number} is of another kind") from error
        self._read_message()

    @property
    def is_study(self) -> bool:
        """Whether the protocol is a study, which ends."""
        return self.schedule.is_study

    @property
    def round(self) -> int:
        """The latest round that was asked in this step or run; 0 if none was."""
        return self._conversation.round

    @property
    def is_unanswered(self) -> bool:
        """Whether the protocol got no sketch and no count in this step or run: the step can still be skipped."""
        return self.round - isinstance(self.message, tuple) == 0 and not self.counts_made

    def key(self, ask: Ask, round: int, part: int) -> AskKey:
        """The key of an ask in the store."""
        place: dict[str, Json] = {"question": self.era.question, "first": self.era.first, "round": round, "part": part}
        return AskKey(self.collection.collection_id, spec_id({"ask": ask.ask_id, **place}))

    def places(self, asks: Sequence[Ask]) -> list[AnswerPlace]:
        """The names that reports to these asks carry; `asks` are the current ones, or `next_asks`."""
        ahead = bool(asks) and asks is self.next_asks
        number, round = (self.number + 1, 1) if ahead else (self.number, self.round)
        names = (self.schedule.name(number, round, part) for part in range(len(asks)))
        return [AnswerPlace(self.collection.collection_id, name) for name in names]

    def ask_rows(self, asks: Sequence[Ask], now: float) -> list[AskRow]:
        """The rows of the asks of a round, published now: final where their time is already over."""
        rows = []
        for part, (ask, place) in enumerate(zip(asks, self.places(asks), strict=True)):
            number, round = place.name.run or place.name.step, place.name.round
            closes = self.schedule.times(number, round)[1]
            missed = now >= closes + self.collection.lateness_seconds
            row = AskRow(
                *self.key(ask, round, part),
                question=self.era.question,
                first=self.era.first,
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
            rows.append(row)
        return rows

    def answer(self, sketches: Sequence[Sketch]) -> None:
        """Give the protocol the sketches of its current asks, in order."""
        with self._protocol_errors():
            self._conversation.reply_all(sketches)
        self._read_message()

    def answer_count(self, counted: CountResult) -> None:
        """Give the protocol the result of its current count."""
        with self._protocol_errors():
            self._conversation.reply_count(counted)
        self.counts_made += 1
        self._read_message()

    def release(self, *, time: float) -> ReleaseRow:
        """Take the current release and move on: a stream to its next step. Returns the row to store.

        The caller stores `new_snapshot`, read before this call, in the same transaction.
        """
        row = self.take_release(time=time)
        self.move_on()
        return row

    def take_release(self, *, time: float) -> ReleaseRow:
        """Take the current release, without moving on. Returns the row to store."""
        if self.new_snapshot is not None and self.new_snapshot.step not in self.snapshot_steps:
            self.snapshot_steps = [self.snapshot_steps[-1], self.new_snapshot.step]
        assert isinstance(self.message, Release)
        return self._row(self.message, time)

    def move_on(self) -> None:
        """Move on after a release: a stream to its next step."""
        expected, self.next_asks = self.next_asks, ()
        if self.is_study:
            self._releases_made += 1
        else:
            self.number, self.counts_made = self.number + 1, 0
        if self._releases_made > MOST_RELEASES:
            raise ProtocolFailed(f"a run of a study has at most {MOST_RELEASES} releases")
        with self._protocol_errors():
            self._conversation.listen()
        self._read_message()
        if expected and self._asks() != expected:
            difference = f"the ask that was known ahead has changed in step {self.number}"
            raise ReplayMismatch(self.era.question, difference)

    def stop(self, why: str, *, time: float) -> ReleaseRow:
        """End a study that cannot go on. Returns its last release, which gives the reason."""
        self.message = None
        release = Release(step=self.number, estimates={}, published=False, spent=0.0, n=0.0, stopped=why)
        return self._row(release, time)

    @contextmanager
    def _protocol_errors(self) -> Iterator[None]:
        """Where the protocol runs: whatever it raises is its own error, and not the collector's."""
        try:
            yield
        except PluginFailed:
            raise
        except HubbubError as error:  # raised in the protocol, or about a message that it may not send
            kind = type(self.collection.questions[self.era.question])
            for cls, method in [(kind, ".protocol"), *((type(ask.mechanism), "") for ask in self._asks())]:
                if is_foreign(cls):
                    name = f"{cls.__module__}.{cls.__qualname__}{method}"
                    raise PluginFailed(f"{name} raised {type(error).__name__}: {error}") from error
            raise
        except Exception as error:
            raise ProtocolFailed(f"the protocol raised {type(error).__name__}: {error}") from error

    def _asks(self) -> tuple[Ask, ...]:
        return self.message if isinstance(self.message, tuple) else ()

    def _row(self, release: Release, time: float) -> ReleaseRow:
        return release_row(
            release,
            collection=self.collection.collection_id,
            question=self.era.question,
            time=time,
            minimum_batch=self.collection.minimum_batch,
            number=self._releases_made,
        )

    def replay(self, store: Store) -> list[tuple[AskRow, Ask]]:
        """Run the protocol over everything stored since the older snapshot. Returns the asks whose ids are still held.

        The protocol must produce the stored asks, counts, releases and snapshots again; else `ReplayMismatch`.
        """
        try:
            return self._replay(store)
        except (ReplayMismatch, StoreFailed, PluginFailed):
            raise
        except Exception as error:  # the protocol fails on what is stored
            raise ReplayMismatch(self.era.question, f"what is stored cannot be replayed ({error})") from error

    def _replay(self, store: Store) -> list[tuple[AskRow, Ask]]:
        asks_with_ids: list[tuple[AskRow, Ask]] = []
        open_ask_reached = False
        stored_asks = store.asks(self.era, self.snapshot_steps[0])
        for (step, _), group in groupby(stored_asks, lambda row: (row.step, row.round)):
            rows = list(group)
            if not open_ask_reached:
                self._replay_counts_and_releases(store)
            # After an open round, and while its release is not stored, only the first round of the next step can be
            # stored: it was published ahead.
            open_ask_reached |= not isinstance(self.message, tuple)
            asks = self.next_asks if open_ask_reached else self._asks()
            if [row.spec for row in rows] != [canonical(ask.spec()) for ask in asks]:
                raise ReplayMismatch(self.era.question, f"the ask of step {step} is not reproduced")
            asks_with_ids += [(row, ask) for row, ask in zip(rows, asks, strict=True) if not row.forgotten]
            if all(row.final for row in rows) and not open_ask_reached:
                self.answer([Sketch.from_bytes(row.sketch) for row in rows])
            else:
                open_ask_reached = True
        if not open_ask_reached:
            self._replay_counts_and_releases(store)
        return asks_with_ids

    def _replay_counts_and_releases(self, store: Store) -> None:
        """Replay the stored counts and releases up to the next ask, or as far as they are stored."""
        while True:
            message = self.message
            if isinstance(message, Count):
                rows = store.counted(self.era, self.number)
                if len(rows) <= self.counts_made:
                    return
                row = rows[self.counts_made]
                if not same_count(row, message):
                    difference = f"count {self.counts_made} of step {self.number} is another"
                    raise ReplayMismatch(self.era.question, difference)
                self.answer_count(read_count(row))
                continue
            if not isinstance(message, Release):
                return
            place = self.collection.collection_id, self.era.question, message.step, self._releases_made
            stored = store.release(*place)
            if stored is None:
                return
            if not same_release(stored, self.release(time=stored.time)):
                raise ReplayMismatch(self.era.question, f"the release of step {message.step} is not reproduced")

    def drop_snapshots(self, before: int) -> int:
        """Drop the snapshots of steps before `before`, but never the last one.

        Returns the first step that a replay still needs: everything stored of earlier steps may be deleted.
        """
        self.snapshot_steps = [step for step in self.snapshot_steps if step >= before] or self.snapshot_steps[-1:]
        return min(before, self.snapshot_steps[0])

    def _make_snapshot(self) -> SnapshotRow | None:
        """The protocol's state at the beginning of the next step, if that step is due for a snapshot."""
        step = self.number + 1
        if step % self._snapshot_every or self.is_study:
            return None
        snapshot = SnapshotRow(*self.era.key, step, json.dumps(self._memory.state()))
        self.previous_snapshot, self.latest_snapshot = self.latest_snapshot, (step, snapshot.state)
        stored = self._stored_snapshots.get(step)
        if stored is not None and not alike(json.loads(stored.state), json.loads(snapshot.state)):
            raise ReplayMismatch(self.era.question, f"the snapshot of step {step} is not reproduced")
        return snapshot

    def _read_message(self) -> None:
        """Read the protocol's current message, with the collection's numbers of steps."""
        message, asks = self._conversation.message, self._conversation.asks
        self.message = self.new_snapshot = None
        if isinstance(message, Release):
            self.message = replace(message, step=self.number)
            self.new_snapshot = self._make_snapshot()
        elif isinstance(message, Count):
            self.message = replace(message, ask=self._with_collection_step(message.ask))
        elif asks:
            self.message = tuple(map(self._with_collection_step, asks))
            ahead = [ask.following or (ask if ask.standing and self.round == 1 else None) for ask in asks]
            if not self.is_study and all(ahead):
                self.next_asks = tuple(replace(ask, step=self.number + 1) for ask in ahead if ask is not None)

    def _with_collection_step(self, ask: Ask) -> Ask:
        """The ask with the collection's number of its step; asks of a study stay at step 0."""
        return ask if self.is_study else replace(ask, step=self.era.first + ask.step - 1)
