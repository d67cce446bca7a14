"""Queries of a store: about protocols (eras, asks, counts, releases), reports, alarms, counters and the clock."""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from typing import Any

from hubbub.collection.names import AnswerName
from hubbub.service.store.base import (
    AlarmEventRow,
    ArchiveRow,
    AskKey,
    AskRow,
    AskToArchive,
    ClosedAsk,
    CollectionRow,
    CountRow,
    EraRow,
    RateRow,
    ReleaseRow,
    ShuffledRow,
    SnapshotRow,
    StoreDamaged,
)
from hubbub.service.store.checksums import compared, query_of

CHUNK = 256
"""How many rows a query that may have many returns at once."""


class SqlReader(ABC):
    """A database that answers queries on a connection for reading.

    Rows that have checksums are compared with them whenever they are read. Queries that only ask which rows there are,
    or for the last step, read keys alone.
    """

    damage: StoreDamaged | None = None
    """The first damage that was found since the store was opened: nothing is committed any more."""

    @abstractmethod
    def _read(self, sql: str, *values: object) -> list[Any]:
        """Run one statement on the reading connection."""

    def _rows(self, tables: str, condition: str, *values: object, also: str = "") -> list[list[Any]]:
        """The rows of a table, or of two that are joined by their asks, without their checksums, which match."""
        rows = self._read(f"{query_of(*tables.split(), also=also)} {condition}", *values)
        try:
            return [compared(row, *tables.split()) for row in rows]
        except StoreDamaged as error:
            self.damage = error
            raise

    def collections(self) -> list[CollectionRow]:
        """Every version of every collection that was ever served."""
        return [CollectionRow(*row) for row in self._rows("collections", "ORDER BY name, version")]


FLAGS = "asks.final asks.forgotten"
_OF_ASK = "WHERE collection = ? AND ask = ?"


def ask_row(columns: Sequence[Any]) -> AskRow:
    """The row of the columns of asks and sketches, and whether it is final and forgotten."""
    *ask, _, _, sketch, final, forgotten = columns
    return AskRow(*(*ask, bool(final), bool(forgotten), bytes(sketch)))


class ReportReader(SqlReader):
    """What a store holds of reports."""

    # -- ids --------------------------------------------------------------------------------------------------

    def asks_with_ids(self, *, without: Container[tuple[str, str]] = ()) -> list[tuple[AskKey, bool]]:
        """The asks whose ids are held, and whether each is final; without those of some questions of collections."""
        rows = self._rows("asks", "WHERE forgotten = 0", also="final")
        return [
            (AskKey(collection, ask), bool(final))
            for collection, ask, question, *_, final in rows
            if (collection, question) not in without
        ]

    def id_pages(self, key: AskKey) -> Iterator[bytes]:
        """The ids held for an ask, in order: the full pages, then the parts of the last page."""
        start = 0
        while pages := self.some_id_pages(key, range(start, start + CHUNK)):
            yield from pages
            start += CHUNK

    def some_id_pages(self, key: AskKey, numbers: Sequence[int]) -> list[bytes]:
        """The pages with these numbers, which must ascend."""
        pages: list[bytes] = []
        for start in range(0, len(numbers), CHUNK):
            chunk = numbers[start : start + CHUNK]
            if chunk[-1] - chunk[0] == len(chunk) - 1:
                between = f"{_OF_ASK} AND page BETWEEN ? AND ? ORDER BY page, part"
                rows = self._rows("id_pages", between, *key, chunk[0], chunk[-1])
            else:
                marks = ", ".join("?" * len(chunk))
                some = f"{_OF_ASK} AND page IN ({marks}) ORDER BY page, part"
                rows = self._rows("id_pages", some, *key, *chunk)
            pages += [bytes(ids) for *_, ids in rows]
        return pages

    def count_id_pages(self, key: AskKey) -> int:
        """How many pages of ids an ask has."""
        ((last,),) = self._read("SELECT MAX(page) FROM id_pages WHERE collection = ? AND ask = ?", *key)
        return 0 if last is None else int(last) + 1

    # -- single reports ---------------------------------------------------------------------------------------

    def kept_segments(self, key: AskKey) -> list[bytes]:
        """The single reports to an ask, in one snapshot; none once they are in a file."""
        return [bytes(data) for *_, data in self._rows("reports", f"{_OF_ASK} ORDER BY number", *key)]

    def archive_of(self, key: AskKey) -> ArchiveRow | None:
        """The file with the single reports to an ask."""
        rows = self._rows("archives", _OF_ASK, *key)
        return ArchiveRow(*rows[0]) if rows else None

    def archive_names(self) -> list[str]:
        """The names of all files of single reports."""
        return [ArchiveRow(*row).name for row in self._rows("archives", "")]

    def asks_to_archive(self) -> list[AskToArchive]:
        """The closed asks whose single reports are not in a file yet, in the order of their steps."""
        # Not one query: a database may begin with the asks, of which there are many more than have reports here.
        keys = [AskKey(*row) for row in self._read("SELECT DISTINCT collection, ask FROM reports")]
        closed = f"{_OF_ASK} AND final = 1"
        rows = [
            (key, question, step, round, part, spec)
            for key in keys
            for _, _, question, _, step, round, part, spec, *_ in self._rows("asks", closed, *key)
        ]
        served = {row.id: row for row in self.collections()} if rows else {}
        terms = {key: json.loads(served[key].spec)["terms"] for key in {row[0].collection for row in rows}}
        asks = []
        for key, question, number, round, part, spec in sorted(rows, key=lambda row: row[2]):
            run, step = (0, number) if terms[key.collection][question]["study"] is None else (number, 0)
            name, version = served[key.collection].name, served[key.collection].version
            place = AnswerName(question, run, step, round, part)
            asks.append(AskToArchive(key, name, version, place, number, spec))
        return asks

    # -- batches of shufflers ---------------------------------------------------------------------------------

    def shuffled_batch(self, key: AskKey) -> ShuffledRow | None:
        """The batch that shufflers delivered for an ask."""
        rows = self._rows("shuffled_batches", _OF_ASK, *key)
        return _shuffled_row(rows[0]) if rows else None

    def shuffled_batches(self, collection: str, question: str, most: int) -> list[tuple[AskRow, ShuffledRow]]:
        """The latest batches that shufflers delivered for the asks of a question, latest first."""
        latest = "WHERE collection = ? AND question = ? ORDER BY step DESC, round DESC, part DESC LIMIT ?"
        rows = self._rows("asks sketches shuffled_batches", latest, collection, question, most, also=FLAGS)
        width = len(ShuffledRow._fields)
        return [(ask_row(row[: -width - 2] + row[-2:]), _shuffled_row(row[-width - 2 : -2])) for row in rows]

    def spot_checks(self, key: AskKey) -> list[bytes]:
        """The collector's own reports that it looks for in the shuffled batch of an ask."""
        return [bytes(onion) for *_, onion in self._rows("spot_checks", _OF_ASK, *key)]


def _shuffled_row(columns: Sequence[object]) -> ShuffledRow:
    row = ShuffledRow(*columns)  # type: ignore[arg-type]
    return row._replace(digest=bytes(row.digest))


class StatusReader(SqlReader):
    """What a store holds of alarms, webhooks, counters and the clock."""

    def alarm_states(self, collection: str) -> dict[str, str]:
        """The states of a collection's watched quantities, as JSON, by key."""
        rows = self._rows("alarm_states", "WHERE collection = ?", collection)
        return {watch: state for _, watch, state in rows}

    def alarm_events(self, collection: str, after: int, most: int) -> list[AlarmEventRow]:
        """The events of a collection's alarms with a number above `after`, oldest first; at most `most`."""
        condition = "WHERE collection = ? AND number > ? ORDER BY number LIMIT ?"
        return [AlarmEventRow(*row) for row in self._rows("alarm_events", condition, collection, after, most)]

    def last_alarm_event(self, collection: str) -> int:
        """The number of the last event of a collection's alarms; 0 if there was none."""
        ((last,),) = self._read("SELECT MAX(number) FROM alarm_events WHERE collection = ?", collection)
        return int(last or 0)

    def delivered(self) -> dict[tuple[str, str], int]:
        """The number of the last event that each webhook took, by the names of webhook and collection."""
        rows = self._read("SELECT name, collection, delivered FROM webhooks")
        return {(name, collection): int(number) for name, collection, number in rows}

    def counts(self) -> Counter[tuple[str, str]]:
        """How many reports had which outcome, by collection and outcome."""
        rows = self._read("SELECT collection, outcome, count FROM counts")
        return Counter({(collection, outcome): int(count) for collection, outcome, count in rows})

    def rates(self, collection: str, first: int) -> list[RateRow]:
        """The reports of each minute from `first` on; minutes without reports are left out."""
        rows = self._read(
            "SELECT minute, accepted, rejected FROM rates WHERE collection = ? AND minute >= ? ORDER BY minute",
            collection,
            first,
        )
        return [RateRow(*row) for row in rows]

    def clock(self) -> str | None:
        """The last stored record of the collector's clock."""
        return self._meta("clock")

    def calling(self) -> str | None:
        """The questions whose code was running when the store was last changed, or did not return, as JSON."""
        return self._meta("calling")

    def _meta(self, key: str) -> str | None:
        rows = self._read("SELECT value FROM meta WHERE key = ?", key)
        return str(rows[0][0]) if rows else None


_LAST_STEP = (1 << 63) - 1
_NAMED = "SELECT 1 FROM asks WHERE collection = ? AND question = ? AND step = ? AND round = ? AND part = ?"
_LATEST_ERA = """SELECT collection, question, first, arithmetic FROM eras WHERE collection = ? AND question = ?
    AND first = (SELECT MAX(first) FROM {} WHERE collection = ? AND question = ?)"""
_RUNNING = (
    "SELECT collection, question, first, arithmetic FROM eras WHERE collection = ? AND running = 1 ORDER BY first"
)
# A run of a study is an era of its own.
_HAS_BEGUN = """SELECT 1 FROM eras WHERE collection = ? AND question = ? AND first = ?
    UNION ALL SELECT 1 FROM asks WHERE collection = ? AND question = ? AND step = ?
    UNION ALL SELECT 1 FROM releases WHERE collection = ? AND question = ? AND step = ?
    UNION ALL SELECT 1 FROM expired_asks WHERE collection = ? AND question = ? AND first = ? LIMIT 1"""
# In an order of an index: PostgreSQL would look for the first row anywhere in the table.
_HOLDS_ANY = tuple(
    f"SELECT 1 FROM {table} WHERE collection = ?{condition} ORDER BY {order} LIMIT 1"  # noqa: S608 - constants
    for table, condition, order in (
        ("asks", "", "question"),
        ("releases", " AND withheld IS NOT NULL", "question"),
        ("candidate_counts", "", "question"),
        ("snapshots", "", "question"),
        ("eras", " AND running = 1", "first"),
    )
)
_OPENED_FROM = """SELECT DISTINCT step FROM asks WHERE collection = ? AND question = ? AND step >= ?
    AND opens < closes + ? ORDER BY step LIMIT ?"""
_WAS_ASKED = """SELECT 1 FROM asks WHERE collection = ? AND question = ? AND step = ?
    UNION ALL SELECT 1 FROM releases WHERE collection = ? AND question = ? AND step = ?
    UNION ALL SELECT 1 FROM expired_asks WHERE collection = ? AND question = ? AND first <= ? AND last >= ? LIMIT 1"""


class ProtocolReader(SqlReader):
    """What a store knows of the protocols of all questions."""

    # -- eras and steps ---------------------------------------------------------------------------------------

    def era(self, collection: str, question: str) -> EraRow | None:
        """The latest era of a question."""
        # Only the latest era has snapshots. If the clock went back, it is not the one with the highest first step.
        for table in ("snapshots", "eras"):
            rows = self._read(_LATEST_ERA.format(table), *(collection, question) * 2)
            if rows:
                return EraRow(*rows[0])
        return None

    def running_studies(self, collection: str) -> list[EraRow]:
        """The runs of a collection's studies that have not ended."""
        return [EraRow(*row) for row in self._read(_RUNNING, collection)]

    def holds_any(self, collection: str) -> bool:
        """Whether there is anything of a collection that retention deletes."""
        return any(self._read(sql, collection) for sql in _HOLDS_ANY)

    def has_begun(self, collection: str, question: str, run: int) -> bool:
        """Whether a run of a study was ever begun."""
        return bool(self._read(_HAS_BEGUN, *(collection, question, run) * 4))

    def last_step(self, collection: str, question: str, before: int | None = None) -> int | None:
        """The last step of a question that was ever begun, asked or released; if given, the last before `before`."""
        limit = _LAST_STEP if before is None else before - 1
        last_of = [
            self._read(
                f"SELECT MAX({step}) FROM {table} WHERE collection = ? AND question = ? AND {step} <= ?",  # noqa: S608
                collection,
                question,
                limit,
            )
            for table, step in (("eras", "first"), ("asks", "step"), ("releases", "step"))
        ]
        return max((rows[0][0] for rows in last_of if rows[0][0] is not None), default=None)

    def was_asked(self, collection: str, question: str, step: int) -> bool:
        """Whether a step has an ask or a release, or had one that was deleted."""
        place = collection, question, step
        return bool(self._read(_WAS_ASKED, *place, *place, *place, step))

    def first_unasked(self, collection: str, question: str, step: int, *, lateness: float) -> int:
        """The first step, at `step` or later, for which no ask was ever open. Steps passed over count as unasked."""
        expired = self._read(
            "SELECT first, last FROM expired_asks WHERE collection = ? AND question = ? ORDER BY first",
            collection,
            question,
        )
        while True:
            before = step
            for first, last in expired:
                step = last + 1 if first <= step <= last else step
            rows = self._read(_OPENED_FROM, collection, question, step, lateness, CHUNK)
            for (asked,) in rows:
                step += asked == step
            if step == before:
                return step

    def snapshots(self, era: EraRow) -> list[SnapshotRow]:
        """The snapshots of an era, oldest first."""
        condition = "WHERE collection = ? AND question = ? AND first = ? ORDER BY step"
        return [SnapshotRow(*row) for row in self._rows("snapshots", condition, *era.key)]

    # -- asks, counts and releases ----------------------------------------------------------------------------

    def asks(self, era: EraRow, start: int = 0) -> Iterator[AskRow]:
        """The asks of an era from step `start` on, in order."""
        after = (start, 0, 0)
        while True:
            rows = self._rows(
                "asks sketches",
                "WHERE collection = ? AND question = ? AND first = ? AND (step, round, part) > (?, ?, ?) "
                "ORDER BY step, round, part LIMIT ?",
                *era.key,
                *after,
                CHUNK,
                also=FLAGS,
            )
            if not rows:
                return
            yield from map(ask_row, rows)
            _, _, _, _, *place = rows[-1][:7]
            after = tuple(place)

    def find_ask(self, era: EraRow, step: int, spec: str) -> AskRow | None:
        """The latest ask of a step with this spec."""
        condition = (
            "WHERE collection = ? AND question = ? AND first = ? AND step = ? AND spec = ? ORDER BY round DESC LIMIT 1"
        )
        rows = self._rows("asks sketches", condition, *era.key, step, spec, also=FLAGS)
        return ask_row(rows[0]) if rows else None

    def knows(self, collection: str, name: AnswerName) -> bool:
        """Whether an ask whose answers carry this name was ever published."""
        return bool(self._read(_NAMED, collection, name.question, name.run or name.step, name.round, name.part))

    def closed_asks(self, collection: str, question: str, first: int, last: int) -> list[ClosedAsk]:
        """The closed asks of a question from step `first` to `last`, in order."""
        condition = (
            "WHERE collection = ? AND question = ? AND step >= ? AND step <= ? AND final = 1 ORDER BY step, round, part"
        )
        rows = self._rows("asks", condition, collection, question, first, last)
        return [ClosedAsk(AskKey(collection, ask), step, part) for _, ask, _, _, step, _, part, *_ in rows]

    def counted(self, era: EraRow, step: int) -> list[CountRow]:
        """The counts that were made in a step, in order."""
        condition = "WHERE collection = ? AND question = ? AND first = ? AND step = ? ORDER BY number"
        return [CountRow(*row) for row in self._rows("candidate_counts", condition, *era.key, step)]

    def release(self, collection: str, question: str, step: int, number: int = 0) -> ReleaseRow | None:
        condition = "WHERE collection = ? AND question = ? AND step = ? AND number = ?"
        rows = self._rows("releases", condition, collection, question, step, number)
        return ReleaseRow(*rows[0]) if rows else None

    def releases(self, collection: str, question: str, first: int, last: int, most: int) -> list[ReleaseRow]:
        """The latest releases from step `first` to `last`, oldest first; at most `most`."""
        condition = (
            "WHERE collection = ? AND question = ? AND step >= ? AND step <= ? ORDER BY step DESC, number DESC LIMIT ?"
        )
        rows = self._rows("releases", condition, collection, question, first, last, most)
        return [ReleaseRow(*row) for row in reversed(rows)]
