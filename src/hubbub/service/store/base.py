"""What the collector asks of a store: changes that happen whole or not at all, and are on the disk once made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from hubbub.collection.wire import AnswerName
from hubbub.core.errors import HubbubError

__all__ = [
    "AlarmEventRow",
    "ArchiveRow",
    "AskKey",
    "AskRow",
    "CollectionRow",
    "CountRow",
    "EraRow",
    "Expiry",
    "IdPage",
    "PassedOver",
    "RateRow",
    "ReleaseRow",
    "SnapshotRow",
    "Store",
    "StoreChanges",
    "StoreFailed",
]


class StoreFailed(HubbubError, RuntimeError):
    """A change was not made, or nobody can tell: the collector stops, and begins again from what is stored."""


class CollectionRow(NamedTuple):
    """A version of a collection that was ever served."""

    id: str
    name: str
    version: int
    spec: str


class EraRow(NamedTuple):
    """A question's conversation, the step of the collection that its first step is, and the version of its arithmetic.

    In all tables a run of a study stands where a step does: it is an era of its own, and its number is its one step.

    Arithmetic 0 is not known: the era was begun before it was written down.

    Example:
        >>> EraRow("0" * 32, "popular", 40, 1).key
        ('00000000000000000000000000000000', 'popular', 40)
    """

    collection: str
    question: str
    first: int
    arithmetic: int = 0

    @property
    def key(self) -> tuple[str, str, int]:
        """Which era it is."""
        return self[:3]


class SnapshotRow(NamedTuple):
    """What a conversation remembers at the beginning of a step: it can go on from there."""

    collection: str
    question: str
    first: int
    step: int
    state: str


class Expiry(NamedTuple):
    """What retention deletes of a question: asks with their sketches, and withheld releases, of steps below one.

    `ended`: the conversation needs what is deleted, and is over.
    """

    collection: str
    question: str
    below: int
    ended: bool = False


class PassedOver(NamedTuple):
    """What is removed when time goes back: records of steps from `first` on that were passed over and never asked.

    An ask was open at some time if it opened before its close and the collection's lateness.
    """

    collection: str
    question: str
    first: int
    lateness: float


class AskKey(NamedTuple):
    """An ask of a collection."""

    collection: str
    ask: str


class IdPage(NamedTuple):
    """Ids of reports to an ask; pages are numbered from 0 on.

    `part` is how many ids the page had before: what comes in small numbers is stored as it comes. With 0 the row
    stands for all of the page, and its other parts are deleted.
    """

    collection: str
    ask: str
    page: int
    part: int
    ids: bytes


class ArchiveRow(NamedTuple):
    """A file with the single reports to an ask."""

    collection: str
    ask: str
    name: str
    n: int


class AskRow(NamedTuple):
    """A published ask: of an era, a step, a round of it and a part of that. Its sketch is final once it is closed."""

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
        """Which ask it is."""
        return AskKey(self.collection, self.ask)

    @property
    def era(self) -> tuple[str, str, int]:
        """The key of its era."""
        return self.collection, self.question, self.first


class CountRow(NamedTuple):
    """What a conversation counted among the reports kept of an ask: the `number`-th count of a step, from 0 on.

    Candidates and supports are JSON. It is final, as a sketch is: a replay needs no reports.
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
    """What was released of a step; `withheld` says why nobody may see it.

    The releases of a study's run are numbered from 0 on; a step has only that of number 0.
    """

    collection: str
    question: str
    step: int
    time: float
    payload: str
    withheld: str | None
    number: int = 0


class AlarmEventRow(NamedTuple):
    """An alarm that was raised or cleared: the event as JSON, under a number that counts those of a collection.

    Alarms are known by the name of their collection, whatever its version.
    """

    collection: str
    number: int
    event: str


class RateRow(NamedTuple):
    """How many reports a minute brought."""

    minute: int
    accepted: int
    rejected: int


@dataclass
class StoreChanges:
    """What one transaction does.

    Example:
        >>> changes = StoreChanges()
        >>> bool(changes)
        False
        >>> changes.counts["0" * 32, "late"] += 1
        >>> bool(changes)
        True
    """

    collections: list[CollectionRow] = field(default_factory=list)
    passed_over: list[PassedOver] = field(default_factory=list)
    """Removed before anything else is stored."""
    eras: list[EraRow] = field(default_factory=list)
    runs: list[EraRow] = field(default_factory=list)
    """Runs of studies that begin."""
    ended: list[EraRow] = field(default_factory=list)
    """Runs of studies that are over."""
    recognised: list[EraRow] = field(default_factory=list)
    """Eras whose arithmetic was not known, and is now: all that is stored of them was reproduced with it."""
    snapshots: list[tuple[SnapshotRow, int]] = field(default_factory=list)
    """Each with the step of the oldest one that is still kept beside it."""
    asks: list[AskRow] = field(default_factory=list)
    id_pages: list[IdPage] = field(default_factory=list)
    """Ids of reports, to be held until the ask is forgotten."""
    repacked: list[AskKey] = field(default_factory=list)
    """Asks whose ids were in segments, as stores once held them, and are in pages from now on."""
    trimmed: list[tuple[AskKey, int]] = field(default_factory=list)
    """Asks that will be forgotten: their ids are deleted from a page on, some at a time."""
    reports: list[tuple[AskKey, int, bytes]] = field(default_factory=list)
    """Single reports, where a question keeps them: how many, and the segment."""
    archives: list[ArchiveRow] = field(default_factory=list)
    """Files that now hold what the segments of an ask did."""
    sketches: dict[AskKey, bytes] = field(default_factory=dict)
    """The sketches of open asks, as they are now."""
    finals: list[AskKey] = field(default_factory=list)
    """Asks that close: their sketches never change again."""
    forgotten: list[AskKey] = field(default_factory=list)
    """Asks whose ids are deleted."""
    counted: list[CountRow] = field(default_factory=list)
    releases: list[ReleaseRow] = field(default_factory=list)
    alarm_states: dict[tuple[str, str], str | None] = field(default_factory=dict)
    """What is known of each watched quantity, as JSON, by collection name and watch; None deletes it."""
    alarm_events: list[AlarmEventRow] = field(default_factory=list)
    delivered: dict[tuple[str, str], int] = field(default_factory=dict)
    """The number of the last event that a webhook has taken, by its name and the collection's."""
    expired: list[Expiry] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """What to add to the counters, by collection and outcome."""
    clock: str | None = None
    """What the collector believes of its clock."""
    minute: int = 0
    """The minute of Unix time in which they were counted; at 0 no account is kept of when."""

    def __bool__(self) -> bool:
        return any(value for name, value in vars(self).items() if name != "minute")


class Store(Protocol):
    """Where the collector's state is. One collector at a time: a newer one takes over, and the older's commits fail."""

    def commit(self, changes: StoreChanges) -> Counter[tuple[str, str]]:
        """Make all of the changes, durably, or none of them (`StoreFailed`).

        Returns what was deleted for good, by collection and kind: "ids", "sketches", "releases", "reports".
        """
        ...

    def collections(self) -> list[CollectionRow]:
        """Every version ever served."""
        ...

    def era(self, collection: str, question: str) -> EraRow | None:
        """The latest conversation of a question."""
        ...

    def running(self, collection: str) -> list[EraRow]:
        """The runs of a collection's studies that are not over."""
        ...

    def has_begun(self, collection: str, question: str, run: int) -> bool:
        """Whether a run of a study was ever begun."""
        ...

    def last_step(self, collection: str, question: str, before: int | None = None) -> int | None:
        """The last step that was ever begun, asked or released, in any era of a question, or the last before one."""
        ...

    def was_asked(self, collection: str, question: str, step: int) -> bool:
        """Whether a step has an ask or a release, or had one that was deleted."""
        ...

    def first_unasked(self, collection: str, question: str, step: int, *, lateness: float) -> int:
        """The first step from one on for which no ask was ever open: those that were passed over count as unasked."""
        ...

    def clock(self) -> str | None:
        """What was last believed of the clock."""
        ...

    def probe(self, seconds: float) -> None:
        """See whether a commit could be made now; `StoreFailed` says why not. Any thread may ask, one at a time."""
        ...

    def snapshots(self, era: EraRow) -> list[SnapshotRow]:
        """The snapshots of an era, oldest first."""
        ...

    def asks(self, era: EraRow, start: int = 0) -> Iterator[AskRow]:
        """The asks of an era from a step on, in order."""
        ...

    def find_ask(self, era: EraRow, step: int, spec: str) -> AskRow | None:
        """The latest ask of a step that says this."""
        ...

    def counted(self, era: EraRow, step: int) -> list[CountRow]:
        """What was counted in a step, in order."""
        ...

    def knows(self, collection: str, name: AnswerName) -> bool:
        """Whether an ask whose answers are called so was ever published."""
        ...

    def held(self) -> list[tuple[AskKey, bool]]:
        """The asks whose ids are held, and whether they are final."""
        ...

    def id_pages(self, key: AskKey) -> Iterator[bytes]:
        """The ids held for an ask, in order: whole pages, and the parts of the last one."""
        ...

    def some_id_pages(self, key: AskKey, numbers: Sequence[int]) -> list[bytes]:
        """The whole pages with these numbers, which ascend."""
        ...

    def count_id_pages(self, key: AskKey) -> int:
        """How many pages of ids an ask has."""
        ...

    def segments(self, key: AskKey) -> Iterator[bytes]:
        """The ids of an ask that an earlier version of the store has, in segments of any size."""
        ...

    def kept_segments(self, key: AskKey) -> list[bytes]:
        """The single reports to an ask, all at one moment; none once they are in a file."""
        ...

    def archived(self, key: AskKey) -> ArchiveRow | None:
        """The file with the single reports to an ask."""
        ...

    def archive_names(self) -> list[str]:
        """All files that count."""
        ...

    def to_archive(self) -> list[tuple[AskKey, str, int]]:
        """The closed asks whose single reports are not in a file yet, with question and step."""
        ...

    def closed_asks(self, collection: str, question: str, first: int, last: int) -> list[tuple[str, int]]:
        """The closed asks of a question from one step to another, with their steps."""
        ...

    def release(self, collection: str, question: str, step: int, number: int = 0) -> ReleaseRow | None:
        """One release."""
        ...

    def releases(self, collection: str, question: str, first: int, last: int, most: int) -> list[ReleaseRow]:
        """The latest releases from one step to another, oldest first, at most so many."""
        ...

    def alarm_states(self, collection: str) -> dict[str, str]:
        """What is known of each watched quantity of a collection, by watch."""
        ...

    def alarm_events(self, collection: str, after: int, most: int) -> list[AlarmEventRow]:
        """The events of a collection's alarms with a number above one, oldest first, at most so many."""
        ...

    def last_alarm_event(self, collection: str) -> int:
        """The number of the last event of a collection's alarms; 0 if there was none."""
        ...

    def delivered(self) -> dict[tuple[str, str], int]:
        """The number of the last event that each webhook has taken, by its name and the collection's."""
        ...

    def counts(self) -> Counter[tuple[str, str]]:
        """The counters, by collection and outcome."""
        ...

    def rates(self, collection: str, first: int) -> list[RateRow]:
        """What was counted minute by minute from one on; a minute without anything is left out."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...
