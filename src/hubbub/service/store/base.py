"""The rows of a store, and the changes that happen whole or not at all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from hubbub.core.errors import HubbubError


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


class ShuffledRow(NamedTuple):
    """A batch that shufflers handed on to an ask.

    Of `n` reports `fakes` are the shufflers'; others could not be opened or read, or came twice. `checks` are reports
    of the collector's own, of which some were lost.
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
    shuffled: list[ShuffledRow] = field(default_factory=list)
    """Batches that shufflers handed on."""
    spot_checks: list[tuple[AskKey, bytes]] = field(default_factory=list)
    """Reports of the collector's own, to be looked for in a shuffled batch."""
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
