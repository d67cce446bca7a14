"""The rows of a store, and the changes that one transaction makes."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from hubbub.collection.names import AnswerName
from hubbub.core.errors import HubbubError
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.ask import Ask


class StoreFailed(HubbubError, RuntimeError):
    """A change was not stored, or it is not known whether it was. The collector must stop and start again."""


class StoreDamaged(StoreFailed):
    """What is stored is not what was written: nothing is told or changed any more, and a backup must be restored."""


class CollectionRow(NamedTuple):
    """A version of a collection that is or was served."""

    id: str
    name: str
    version: int
    spec: str


class EraRow(NamedTuple):
    """An era: one unbroken run of a question's protocol, from step `first` of the collection on.

    `arithmetic` is the version of the protocol's arithmetic. Each run of a
    study is an era of its own: in all tables, the number of the run stands in the columns `first` and `step`.
    """

    collection: str
    question: str
    first: int
    arithmetic: int = 1

    @property
    def key(self) -> tuple[str, str, int]:
        """The primary key."""
        return self[:3]


class SnapshotRow(NamedTuple):
    """The state of a protocol at the beginning of a step, from which it can go on."""

    collection: str
    question: str
    first: int
    step: int
    state: str


class Expiry(NamedTuple):
    """What retention deletes of a question: asks, sketches and withheld releases of steps below `below`.

    `ended` if a replay of the era would need what is deleted: the era is deleted too. The steps that were asked are
    remembered: those with an ask that opened before its close plus `lateness`.
    """

    collection: str
    question: str
    below: int
    ended: bool = False
    lateness: float = 0.0


class PassedOver(NamedTuple):
    """What is removed when the clock goes back: records of steps from `first` on that were passed over, never asked.

    A step was asked if one of its asks opened before its close plus `lateness`.
    """

    collection: str
    question: str
    first: int
    lateness: float


class AskKey(NamedTuple):
    """The key of an ask: the ids of its collection and of the ask."""

    collection: str
    ask: str


class ClosedAsk(NamedTuple):
    """A closed ask, with its step and its part."""

    key: AskKey
    step: int
    part: int


class AskToArchive(NamedTuple):
    """A closed ask whose single reports are still in the store: its collection, its answers' name, and its spec.

    `number` is its step, or the run of a study.
    """

    key: AskKey
    collection: str
    version: int
    name: AnswerName
    number: int
    spec: str

    @property
    def mechanism(self) -> ReportFormat:
        return Ask.from_spec(json.loads(self.spec)).mechanism


class IdPage(NamedTuple):
    """A page, or a part of a page, of the ids of reports to an ask. Pages are numbered from 0 on.

    `part` is how many ids the page had before: a few new ids are stored as another part. With `part` 0 the row holds
    the whole page so far, and its other parts are deleted.
    """

    collection: str
    ask: str
    page: int
    part: int
    ids: bytes


class ArchiveRow(NamedTuple):
    """A file with the `n` single reports to an ask. `sha256` is its checksum when it was written, in hexadecimal."""

    collection: str
    ask: str
    name: str
    n: int
    sha256: str


class AskRow(NamedTuple):
    """A published ask: its era, step, round and part, and its sketch, which is final once the ask is closed.

    `forgotten` once the ids of its reports are deleted.
    """

    collection: str
    ask: str
    question: str
    first: int
    step: int
    round: int
    part: int
    spec: str
    opens: float
    closes: float
    final: bool
    forgotten: bool
    sketch: bytes

    @property
    def key(self) -> AskKey:
        """The primary key."""
        return AskKey(self.collection, self.ask)

    @property
    def era(self) -> tuple[str, str, int]:
        """The key of the era."""
        return self.collection, self.question, self.first


class CountRow(NamedTuple):
    """A count among the reports kept of an ask: the `number`-th count of a step, from 0 on.

    Candidates and supports are JSON. A count is final, like a sketch: a replay needs no reports.
    """

    collection: str
    question: str
    first: int
    step: int
    number: int
    ask: str
    candidates: str
    n: int
    support: str


class ReleaseRow(NamedTuple):
    """A release of a step. `withheld` gives the reason if it must not be shown.

    The releases of a study's run are numbered from 0 on. A step has one release, of number 0.
    """

    collection: str
    question: str
    step: int
    time: float
    payload: str
    withheld: str | None
    number: int = 0


class ShuffledRow(NamedTuple):
    """A batch that shufflers delivered for an ask.

    Of its `n` reports, `fakes` were added by shufflers. Others were `unreadable` or `repeated`, and are not in `n`. Of
    `checks` reports of the collector's own, some were `lost`.
    """

    collection: str
    ask: str
    digest: bytes
    n: int
    fakes: int
    unreadable: int
    repeated: int
    checks: int = 0
    lost: int = 0


class AlarmEventRow(NamedTuple):
    """An alarm that was raised or cleared: the event as JSON, numbered within its collection.

    `collection` is the name of the collection: its versions share their alarms.
    """

    collection: str
    number: int
    event: str


class RateRow(NamedTuple):
    """How many reports were accepted and rejected in a minute."""

    minute: int
    accepted: int
    rejected: int


@dataclass
class StoreChanges:
    """What one transaction stores and deletes."""

    collections: list[CollectionRow] = field(default_factory=list)
    passed_over: list[PassedOver] = field(default_factory=list)
    """Records to remove before anything else is stored."""
    eras: list[EraRow] = field(default_factory=list)
    begun_runs: list[EraRow] = field(default_factory=list)
    """Runs of studies that begin."""
    ended_runs: list[EraRow] = field(default_factory=list)
    """Runs of studies that end."""
    snapshots: list[tuple[SnapshotRow, int]] = field(default_factory=list)
    """Snapshots, each with the step of the oldest snapshot of its era that stays."""
    asks: list[AskRow] = field(default_factory=list)
    id_pages: list[IdPage] = field(default_factory=list)
    """Ids of new reports."""
    trimmed: list[tuple[AskKey, int]] = field(default_factory=list)
    """Asks whose ids are deleted from a page on; the earlier pages are deleted later."""
    reports: list[tuple[AskKey, int, bytes]] = field(default_factory=list)
    """Segments of single reports to keep, each with its ask and its number of reports."""
    archives: list[ArchiveRow] = field(default_factory=list)
    """Files that now hold the single reports to an ask; the segments are deleted."""
    shuffled: list[ShuffledRow] = field(default_factory=list)
    """Batches that shufflers delivered."""
    spot_checks: list[tuple[AskKey, bytes]] = field(default_factory=list)
    """The collector's own reports, to be looked for in a shuffled batch."""
    sketches: dict[AskKey, bytes] = field(default_factory=dict)
    """The new sketches of open asks."""
    finals: list[AskKey] = field(default_factory=list)
    """Asks that close: their sketches never change again."""
    forgotten: list[AskKey] = field(default_factory=list)
    """Asks whose ids are all deleted now."""
    counted: list[CountRow] = field(default_factory=list)
    releases: list[ReleaseRow] = field(default_factory=list)
    alarm_states: dict[tuple[str, str], str | None] = field(default_factory=dict)
    """The states of watched quantities, as JSON, by collection name and key; None deletes a state."""
    alarm_events: list[AlarmEventRow] = field(default_factory=list)
    delivered: dict[tuple[str, str], int] = field(default_factory=dict)
    """The number of the last event that a webhook took, by the names of webhook and collection."""
    expired: list[Expiry] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """What to add to the numbers of reports, by collection and outcome."""
    clock: str | None = None
    """The record of the collector's clock."""
    calling: str | None = None
    """The questions whose code is running or did not return, as JSON."""
    minute: int = 0
    """The minute of Unix time of `counts`; with 0, they are not added to the numbers by minute."""

    def __bool__(self) -> bool:
        return any(value for name, value in vars(self).items() if name != "minute")
