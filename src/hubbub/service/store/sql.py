"""A store in SQL: what SQLite and PostgreSQL do alike."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from hubbub.collection.wire import AnswerName
from hubbub.core.random import Random
from hubbub.service.ids import ENTRY_BYTES
from hubbub.service.reasons import REASONS
from hubbub.service.store.base import (
    AlarmEventRow,
    ArchiveRow,
    AskKey,
    AskRow,
    CollectionRow,
    CountRow,
    EraRow,
    Expiry,
    PassedOver,
    RateRow,
    ReleaseRow,
    SnapshotRow,
    StoreChanges,
    StoreFailed,
)
from hubbub.service.store.migrations import store_format
from hubbub.service.store.schema import META, tables

__all__ = ["OWNER", "SqlStore"]

OWNER = "SELECT value FROM meta WHERE key = 'owner'"
_ASK = "asks.collection, asks.ask, question, first, step, round, part, spec, opens, closes, final, forgotten, data"
_RELEASE = "collection, question, step, time, payload, withheld, number"
_DAY = 1440
_CHUNK = 256
"""How many rows are read at once."""


class SqlStore(ABC):
    """One connection that writes, one that reads.

    Opening takes the store over: a token of the newest collector is in it, and every commit of an older one finds
    another's there and fails, before it has changed anything.
    """

    types: ClassVar[dict[str, str]]
    """The names of the database's types."""

    def __init__(self, rng: Random | None = None) -> None:
        self._owner = (rng or Random()).bytes(16).hex()
        self._writing = threading.RLock()
        self._reading = threading.RLock()
        with self._transaction():
            self._bring_up_to_date()
            self._write(_META, "owner", self._owner)

    def _bring_up_to_date(self) -> None:
        """Make the tables, or migrate those of an older version, in the transaction that takes the store over."""
        self._write(META)
        # Locked before it is read: of two collectors that begin at once, one migrates, and the other finds it done.
        self._write("UPDATE meta SET value = value WHERE key = 'version'")
        stored = self._write("SELECT value FROM meta WHERE key = 'version'")
        format = store_format(**self.types)
        if stored:
            ((text,),) = stored
            format.migrate(int(text) if text.isdecimal() else text, self._write)
        else:
            for statement in tables(**self.types):
                self._write(statement)
        self._write(_META, "version", str(format.version))

    # -- what a database answers ------------------------------------------------------------------------------

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """All of what is written inside, or nothing; on the disk when it ends."""

    @abstractmethod
    def _write(self, sql: str, *values: object) -> list[Any]:
        """Run one statement on the writing connection; its rows, if it returns any."""

    @abstractmethod
    def _changed(self, sql: str, *values: object) -> int:
        """Run one statement on the writing connection; how many rows it changed."""

    @abstractmethod
    def _read(self, sql: str, *values: object) -> list[Any]:
        """Run one statement on the reading connection."""

    @abstractmethod
    def _probe(self, seconds: float) -> list[Any]:
        """The rows of `OWNER`, on the writing connection and with the lock that a commit takes, within a time."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the connections."""

    # -- what the collector calls -----------------------------------------------------------------------------

    def commit(self, changes: StoreChanges) -> Counter[tuple[str, str]]:
        """Make all of the changes, or none; what was deleted."""
        deleted: Counter[tuple[str, str]] = Counter()
        with self._writing, self._transaction():
            if not self._changed("UPDATE meta SET value = value WHERE key = 'owner' AND value = ?", self._owner):
                raise StoreFailed("another collector has taken over the store")
            for collection in changes.collections:
                self._write("INSERT INTO collections VALUES (?, ?, ?, ?)", *collection)
            for passed in changes.passed_over:
                self._remove(passed)
            for era in changes.eras:
                self._write(_ERA, *era)
            for era in changes.runs:
                self._write("INSERT INTO eras VALUES (?, ?, ?, ?, 1)", *era)
            for era in changes.ended:
                self._one(_ENDED, *era.key)
            for era in changes.recognised:
                self._one(_RECOGNISED, era.arithmetic, *era.key)
            for snapshot, oldest in changes.snapshots:
                self._write(_SNAPSHOT, *snapshot)
                self._write(_OLD_SNAPSHOTS, *snapshot[:3], oldest)
            for ask in changes.asks:
                *row, sketch = ask
                self._write("INSERT INTO asks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *map(_plain, row))
                self._write("INSERT INTO sketches VALUES (?, ?, ?)", *ask.key, sketch)
            for key in changes.repacked:
                self._write("DELETE FROM segments WHERE collection = ? AND ask = ?", *key)
            for id_page in changes.id_pages:
                if not id_page.part:
                    self._write(_ID_PARTS, *id_page[:3])
                self._write(_ID_PAGE, *id_page)
            for key, n, data in changes.reports:
                self._write("INSERT INTO reports (collection, ask, n, data) VALUES (?, ?, ?, ?)", *key, n, data)
            for archive in changes.archives:
                self._write("INSERT INTO archives VALUES (?, ?, ?, ?)", *archive)
                self._write("DELETE FROM reports WHERE collection = ? AND ask = ?", *archive[:2])
            for key, sketch in changes.sketches.items():
                self._one(_SKETCH, sketch, *key)
            for key in changes.finals:
                self._one("UPDATE asks SET final = 1 WHERE collection = ? AND ask = ? AND final = 0", *key)
            for key, page in changes.trimmed:
                deleted[key.collection, "ids"] += self._trim(key, page)
            for key in changes.forgotten:
                self._one("UPDATE asks SET forgotten = 1 WHERE collection = ? AND ask = ? AND final = 1", *key)
                deleted[key.collection, "ids"] += self._trim(key, 0)
                self._write("DELETE FROM segments WHERE collection = ? AND ask = ?", *key)
            for counted in changes.counted:
                self._write("INSERT INTO candidate_counts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", *counted)
            for release in changes.releases:
                self._write("INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?, ?)", *release)
            for watch, state in changes.alarm_states.items():
                if state is None:
                    self._write("DELETE FROM alarm_states WHERE collection = ? AND watch = ?", *watch)
                else:
                    self._write(_ALARM_STATE, *watch, state)
            for event in changes.alarm_events:
                self._write("INSERT INTO alarm_events VALUES (?, ?, ?)", *event)
            for webhook, number in changes.delivered.items():
                self._write(_DELIVERED, *webhook, number)
            for expiry in changes.expired:
                deleted += self._expire(expiry)
            for place, count in changes.counts.items():
                self._write(_COUNT, *place, count)
            if changes.clock is not None:
                self._write(_META, "clock", changes.clock)
            if changes.minute:
                self._rate(changes)
        return deleted

    def _trim(self, key: AskKey, page: int) -> int:
        """Delete the ids of an ask from a page on; how many there were."""
        place = "FROM id_pages WHERE collection = ? AND ask = ? AND page >= ?"
        ((size,),) = self._write(f"SELECT SUM(LENGTH(ids)) {place}", *key, page)
        self._write(f"DELETE {place}", *key, page)
        return int(size or 0) // ENTRY_BYTES

    def _remove(self, passed: PassedOver) -> None:
        """What was recorded of steps that were passed over: nobody was asked, and nothing was counted."""
        for table in ("releases", "candidate_counts", "asks"):  # the asks tell which
            self._write(_PASSED_OVER.format(table), *passed[:3], *passed[:2], passed.lateness, *passed[:2])
        self._write(_WITHOUT_ASK, passed.collection)

    def probe(self, seconds: float) -> None:
        """See whether a commit could be made now; `StoreFailed` says why not."""
        if not self._writing.acquire(timeout=seconds):
            raise StoreFailed(f"a commit has not ended for {seconds:g} seconds")
        try:
            rows = self._probe(seconds)
        finally:
            self._writing.release()
        if [tuple(row) for row in rows] != [(self._owner,)]:
            raise StoreFailed("another collector has taken over the store")

    def _rate(self, changes: StoreChanges) -> None:
        """When reports came, to the minute, for a day."""
        for collection in {collection for collection, _ in changes.counts}:
            accepted = changes.counts[collection, "accepted"]
            rejected = sum(changes.counts[collection, reason] for reason in REASONS)
            self._write(_RATE, collection, changes.minute, accepted, rejected)
            self._write("DELETE FROM rates WHERE collection = ? AND minute < ?", collection, changes.minute - _DAY)

    def _expire(self, expiry: Expiry) -> Counter[tuple[str, str]]:
        collection, *place = expiry[:3]
        deleted = {
            "reports": sum(
                int(self._write(_EXPIRED_REPORTS.format(table), collection, collection, *place)[0][0] or 0)
                for table in ("reports", "archives")
            ),
            "sketches": self._changed(_EXPIRED.format("sketches"), collection, collection, *place),
            "releases": self._changed(
                "DELETE FROM releases WHERE collection = ? AND question = ? AND step < ? AND withheld IS NOT NULL",
                collection,
                *place,
            ),
        }
        for table in ("id_pages", "segments", "reports", "archives"):
            self._write(_EXPIRED.format(table), collection, collection, *place)
        self._write(_EXPIRED_STEPS, collection, *place)
        for table in ("asks", "candidate_counts", "snapshots"):
            self._write(f"DELETE FROM {table} WHERE collection = ? AND question = ? AND step < ?", collection, *place)  # noqa: S608
        if expiry.ended:
            for table in ("eras", "snapshots"):
                self._write(f"DELETE FROM {table} WHERE collection = ? AND question = ?", *expiry[:2])  # noqa: S608
        return Counter({(collection, kind): number for kind, number in deleted.items() if number})

    def _one(self, sql: str, *values: object) -> None:
        if self._changed(sql, *values) != 1:
            raise StoreFailed(f"the store does not hold what it should: {sql}")

    def collections(self) -> list[CollectionRow]:
        """Every version ever served."""
        rows = self._read("SELECT id, name, version, spec FROM collections ORDER BY name, version")
        return [CollectionRow(*row) for row in rows]

    def era(self, collection: str, question: str) -> EraRow | None:
        """The latest conversation of a question."""
        # Only the latest has snapshots; where time went back, it is not the one with the highest step.
        for table in ("snapshots", "eras"):
            rows = self._read(
                _LATEST_ERA.format(table),
                *(collection, question) * 2,
            )
            if rows:
                return EraRow(*rows[0])
        return None

    def running(self, collection: str) -> list[EraRow]:
        """The runs of a collection's studies that are not over."""
        rows = self._read(_RUNNING, collection)
        return [EraRow(*row) for row in rows]

    def has_begun(self, collection: str, question: str, run: int) -> bool:
        """Whether a run of a study was ever begun."""
        place = collection, question, run
        return bool(self._read(_ERA_AT, *place)) or self.was_asked(*place)

    def last_step(self, collection: str, question: str, before: int | None = None) -> int | None:
        """The last step that was ever begun, asked or released, in any era of a question, or the last before one."""
        limit = _LAST_STEP if before is None else before - 1
        found = [
            self._read(
                f"SELECT MAX({step}) FROM {table} WHERE collection = ? AND question = ? AND {step} <= ?",  # noqa: S608
                collection,
                question,
                limit,
            )
            for table, step in (("eras", "first"), ("asks", "step"), ("releases", "step"))
        ]
        return max((rows[0][0] for rows in found if rows[0][0] is not None), default=None)

    def was_asked(self, collection: str, question: str, step: int) -> bool:
        """Whether a step has an ask or a release, or had one that was deleted."""
        place = collection, question, step
        return bool(self._read(_WAS_ASKED, *place, *place, *place, step))

    def first_unasked(self, collection: str, question: str, step: int, *, lateness: float) -> int:
        """The first step from one on for which no ask was ever open."""
        expired = self._read(
            "SELECT first, last FROM expired_asks WHERE collection = ? AND question = ? ORDER BY first",
            collection,
            question,
        )
        while True:
            before = step
            for first, last in expired:
                step = last + 1 if first <= step <= last else step
            rows = self._read(_OPENED_FROM, collection, question, step, lateness, _CHUNK)
            for (asked,) in rows:
                step += asked == step
            if step == before:
                return step

    def clock(self) -> str | None:
        """What was last believed of the clock."""
        rows = self._read("SELECT value FROM meta WHERE key = 'clock'")
        return str(rows[0][0]) if rows else None

    def snapshots(self, era: EraRow) -> list[SnapshotRow]:
        """The snapshots of an era, oldest first."""
        rows = self._read(
            "SELECT collection, question, first, step, state FROM snapshots "
            "WHERE collection = ? AND question = ? AND first = ? ORDER BY step",
            *era.key,
        )
        return [SnapshotRow(*row) for row in rows]

    def asks(self, era: EraRow, start: int = 0) -> Iterator[AskRow]:
        """The asks of an era from a step on, in order."""
        after = (start, 0, 0)
        while True:
            rows = self._read(
                f"SELECT {_ASK} FROM asks JOIN sketches USING (collection, ask) "  # noqa: S608 - constants
                "WHERE collection = ? AND question = ? AND first = ? AND (step, round, part) > (?, ?, ?) "
                "ORDER BY step, round, part LIMIT ?",
                *era.key,
                *after,
                _CHUNK,
            )
            if not rows:
                return
            for row in rows:
                yield _ask_row(row)
            after = rows[-1][4:7]

    def find_ask(self, era: EraRow, step: int, spec: str) -> AskRow | None:
        """The latest ask of a step that says this."""
        rows = self._read(
            f"SELECT {_ASK} FROM asks JOIN sketches USING (collection, ask) "  # noqa: S608 - constants
            "WHERE collection = ? AND question = ? AND first = ? AND step = ? AND spec = ? ORDER BY round DESC LIMIT 1",
            *era.key,
            step,
            spec,
        )
        return _ask_row(rows[0]) if rows else None

    def counted(self, era: EraRow, step: int) -> list[CountRow]:
        """What was counted in a step, in order."""
        rows = self._read(
            "SELECT collection, question, first, step, number, ask, candidates, n, support FROM candidate_counts "
            "WHERE collection = ? AND question = ? AND first = ? AND step = ? ORDER BY number",
            *era.key,
            step,
        )
        return [CountRow(*row) for row in rows]

    def knows(self, collection: str, name: AnswerName) -> bool:
        """Whether an ask whose answers are called so was ever published."""
        place = (collection, name.question)
        return bool(self._read(_NAMED, *place, *place, name.run or name.step, name.round, name.part))

    def held(self) -> list[tuple[AskKey, bool]]:
        """The asks whose ids are held, and whether they are final."""
        rows = self._read("SELECT collection, ask, final FROM asks WHERE forgotten = 0")
        return [(AskKey(collection, ask), bool(final)) for collection, ask, final in rows]

    def id_pages(self, key: AskKey) -> Iterator[bytes]:
        """The ids held for an ask, in order: whole pages, and the parts of the last one."""
        start = 0
        while pages := self.some_id_pages(key, range(start, start + _CHUNK)):
            yield from pages
            start += _CHUNK

    def some_id_pages(self, key: AskKey, numbers: Sequence[int]) -> list[bytes]:
        """The whole pages with these numbers, which ascend."""
        found: list[bytes] = []
        for start in range(0, len(numbers), _CHUNK):
            some = numbers[start : start + _CHUNK]
            if some[-1] - some[0] == len(some) - 1:
                rows = self._read(f"{_SOME_ID_PAGES} page BETWEEN ? AND ? ORDER BY page, part", *key, some[0], some[-1])
            else:
                marks = ", ".join("?" * len(some))
                rows = self._read(f"{_SOME_ID_PAGES} page IN ({marks}) ORDER BY page, part", *key, *some)
            found += [bytes(ids) for (ids,) in rows]
        return found

    def count_id_pages(self, key: AskKey) -> int:
        """How many pages of ids an ask has."""
        ((last,),) = self._read("SELECT MAX(page) FROM id_pages WHERE collection = ? AND ask = ?", *key)
        return 0 if last is None else int(last) + 1

    def segments(self, key: AskKey) -> Iterator[bytes]:
        """The ids of an ask that an earlier version of the store has, in segments of any size."""
        number = -1
        while True:
            rows = self._read(
                "SELECT number, ids FROM segments WHERE collection = ? AND ask = ? AND number > ? "
                "ORDER BY number LIMIT ?",
                *key,
                number,
                _CHUNK,
            )
            if not rows:
                return
            for _, ids in rows:
                yield bytes(ids)
            number = rows[-1][0]

    def kept_segments(self, key: AskKey) -> list[bytes]:
        """The single reports to an ask, all at one moment; none once they are in a file."""
        rows = self._read("SELECT data FROM reports WHERE collection = ? AND ask = ? ORDER BY number", *key)
        return [bytes(data) for (data,) in rows]

    def archived(self, key: AskKey) -> ArchiveRow | None:
        """The file with the single reports to an ask."""
        rows = self._read("SELECT collection, ask, name, n FROM archives WHERE collection = ? AND ask = ?", *key)
        return ArchiveRow(*rows[0]) if rows else None

    def archive_names(self) -> list[str]:
        """All files that count."""
        return [name for (name,) in self._read("SELECT name FROM archives")]

    def to_archive(self) -> list[tuple[AskKey, str, int]]:
        """The closed asks whose single reports are not in a file yet, with question and step."""
        rows = self._read(
            "SELECT DISTINCT collection, ask, question, step FROM reports JOIN asks USING (collection, ask) "
            "WHERE final = 1 ORDER BY step"
        )
        return [(AskKey(collection, ask), question, step) for collection, ask, question, step in rows]

    def closed_asks(self, collection: str, question: str, first: int, last: int) -> list[tuple[str, int]]:
        """The closed asks of a question from one step to another, with their steps."""
        rows = self._read(
            "SELECT ask, step FROM asks WHERE collection = ? AND question = ? AND step >= ? AND step <= ? "
            "AND final = 1 ORDER BY step, round, part",
            collection,
            question,
            first,
            last,
        )
        return [(ask, step) for ask, step in rows]

    def release(self, collection: str, question: str, step: int, number: int = 0) -> ReleaseRow | None:
        """One release."""
        rows = self._read(
            f"SELECT {_RELEASE} FROM releases WHERE collection = ? AND question = ? AND step = ? AND number = ?",  # noqa: S608 - constants
            collection,
            question,
            step,
            number,
        )
        return ReleaseRow(*rows[0]) if rows else None

    def releases(self, collection: str, question: str, first: int, last: int, most: int) -> list[ReleaseRow]:
        """The latest releases from one step to another, oldest first, at most so many."""
        rows = self._read(
            f"SELECT {_RELEASE} FROM releases WHERE collection = ? AND question = ? AND step >= ? AND step <= ? "  # noqa: S608 - constants
            "ORDER BY step DESC, number DESC LIMIT ?",
            collection,
            question,
            first,
            last,
            most,
        )
        return [ReleaseRow(*row) for row in reversed(rows)]

    def alarm_states(self, collection: str) -> dict[str, str]:
        """What is known of each watched quantity of a collection, by watch."""
        return dict(self._read("SELECT watch, state FROM alarm_states WHERE collection = ?", collection))

    def alarm_events(self, collection: str, after: int, most: int) -> list[AlarmEventRow]:
        """The events of a collection's alarms with a number above one, oldest first."""
        rows = self._read(
            "SELECT collection, number, event FROM alarm_events WHERE collection = ? AND number > ? "
            "ORDER BY number LIMIT ?",
            collection,
            after,
            most,
        )
        return [AlarmEventRow(*row) for row in rows]

    def last_alarm_event(self, collection: str) -> int:
        """The number of the last event of a collection's alarms; 0 if there was none."""
        ((last,),) = self._read("SELECT MAX(number) FROM alarm_events WHERE collection = ?", collection)
        return int(last or 0)

    def delivered(self) -> dict[tuple[str, str], int]:
        """The number of the last event that each webhook has taken, by its name and the collection's."""
        rows = self._read("SELECT name, collection, delivered FROM webhooks")
        return {(name, collection): int(number) for name, collection, number in rows}

    def counts(self) -> Counter[tuple[str, str]]:
        """The counters, by collection and outcome."""
        rows = self._read("SELECT collection, outcome, count FROM counts")
        return Counter({(collection, outcome): int(count) for collection, outcome, count in rows})

    def rates(self, collection: str, first: int) -> list[RateRow]:
        """What was counted minute by minute from one on."""
        rows = self._read(
            "SELECT minute, accepted, rejected FROM rates WHERE collection = ? AND minute >= ? ORDER BY minute",
            collection,
            first,
        )
        return [RateRow(*row) for row in rows]


_ID_PAGE = "INSERT INTO id_pages VALUES (?, ?, ?, ?, ?)"
_ID_PARTS = "DELETE FROM id_pages WHERE collection = ? AND ask = ? AND page = ?"
_SOME_ID_PAGES = "SELECT ids FROM id_pages WHERE collection = ? AND ask = ? AND"
# A closed ask's sketch never changes again, whoever asks for it.
_SKETCH = """UPDATE sketches SET data = ? WHERE collection = ? AND ask = ?
    AND (SELECT final FROM asks WHERE asks.collection = sketches.collection AND asks.ask = sketches.ask) = 0"""
# By way of the eras: asks are found by their era first.
_NAMED = """SELECT 1 FROM asks WHERE collection = ? AND question = ?
    AND first IN (SELECT first FROM eras WHERE collection = ? AND question = ?)
    AND step = ? AND round = ? AND part = ?"""
_LATEST_ERA = """SELECT collection, question, first, arithmetic FROM eras WHERE collection = ? AND question = ?
    AND first = (SELECT MAX(first) FROM {} WHERE collection = ? AND question = ?)"""
_RUNNING = (
    "SELECT collection, question, first, arithmetic FROM eras WHERE collection = ? AND running = 1 ORDER BY first"
)
_ERA_AT = "SELECT 1 FROM eras WHERE collection = ? AND question = ? AND first = ?"
_ENDED = "UPDATE eras SET running = 0 WHERE collection = ? AND question = ? AND first = ? AND running = 1"
_LAST_STEP = (1 << 63) - 1
_ERA = """INSERT INTO eras (collection, question, first, arithmetic) VALUES (?, ?, ?, ?)
    ON CONFLICT (collection, question, first) DO UPDATE SET arithmetic = excluded.arithmetic"""
_SNAPSHOT = """INSERT INTO snapshots VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (collection, question, first, step) DO UPDATE SET state = excluded.state"""
_RECOGNISED = "UPDATE eras SET arithmetic = ? WHERE collection = ? AND question = ? AND first = ? AND arithmetic = 0"
_META = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
# Of a step that was passed over no ask was open at any time, nor of one that is deleted.
_PASSED_OVER = """DELETE FROM {} WHERE collection = ? AND question = ? AND step >= ?
    AND step NOT IN (SELECT step FROM asks WHERE collection = ? AND question = ? AND opens < closes + ?)
    AND NOT EXISTS (SELECT 1 FROM expired_asks
        WHERE collection = ? AND question = ? AND first <= step AND last >= step)"""
_WITHOUT_ASK = """DELETE FROM sketches WHERE collection = ? AND NOT EXISTS
    (SELECT 1 FROM asks WHERE asks.collection = sketches.collection AND asks.ask = sketches.ask)"""
_OPENED_FROM = """SELECT DISTINCT step FROM asks WHERE collection = ? AND question = ? AND step >= ?
    AND opens < closes + ? ORDER BY step LIMIT ?"""
_WAS_ASKED = """SELECT 1 FROM asks WHERE collection = ? AND question = ? AND step = ?
    UNION ALL SELECT 1 FROM releases WHERE collection = ? AND question = ? AND step = ?
    UNION ALL SELECT 1 FROM expired_asks WHERE collection = ? AND question = ? AND first <= ? AND last >= ? LIMIT 1"""
_EXPIRED_STEPS = """INSERT INTO expired_asks SELECT collection, question, first, MAX(step) FROM asks
    WHERE collection = ? AND question = ? AND step < ? AND opens < closes GROUP BY collection, question, first
    ON CONFLICT (collection, question, first) DO UPDATE SET last = excluded.last"""
_OLD_SNAPSHOTS = "DELETE FROM snapshots WHERE collection = ? AND question = ? AND (first <> ? OR step < ?)"
_EXPIRED = """DELETE FROM {} WHERE collection = ? AND ask IN
    (SELECT ask FROM asks WHERE collection = ? AND question = ? AND step < ?)"""
_EXPIRED_REPORTS = """SELECT SUM(n) FROM {} WHERE collection = ? AND ask IN
    (SELECT ask FROM asks WHERE collection = ? AND question = ? AND step < ?)"""
_RATE = """INSERT INTO rates VALUES (?, ?, ?, ?) ON CONFLICT (collection, minute)
    DO UPDATE SET accepted = rates.accepted + excluded.accepted, rejected = rates.rejected + excluded.rejected"""
_ALARM_STATE = """INSERT INTO alarm_states VALUES (?, ?, ?)
    ON CONFLICT (collection, watch) DO UPDATE SET state = excluded.state"""
_DELIVERED = """INSERT INTO webhooks VALUES (?, ?, ?)
    ON CONFLICT (name, collection) DO UPDATE SET delivered = excluded.delivered"""
_COUNT = """INSERT INTO counts VALUES (?, ?, ?)
    ON CONFLICT (collection, outcome) DO UPDATE SET count = counts.count + excluded.count"""


def _ask_row(row: Sequence[Any]) -> AskRow:
    ask = AskRow(*row)
    return ask._replace(final=bool(ask.final), forgotten=bool(ask.forgotten), sketch=bytes(ask.sketch))


def _plain(value: object) -> object:
    return int(value) if isinstance(value, bool) else value
