"""A store in SQL: what SQLite and PostgreSQL have in common."""

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from hubbub.random.source import Random
from hubbub.service.base.limits import REASONS
from hubbub.service.store.base import AskKey, Expiry, IdPage, PassedOver, StoreChanges, StoreFailed
from hubbub.service.store.checksums import CHECKED, GROWING, check_rows, compared, query_of, row_checksum
from hubbub.service.store.readers import ProtocolReader, ReportReader, StatusReader
from hubbub.service.store.report_ids import ENTRY_BYTES
from hubbub.service.store.schema import FORMAT, META, tables

OWNER = "SELECT value FROM meta WHERE key = 'owner'"
_DAY = 1440


class Inspection(ABC):
    """A look at all that is stored, a few rows at a time."""

    @abstractmethod
    def check_structure(self) -> None:
        """Check pages and indexes, where the database does not do so itself; `StoreDamaged` at the first damage."""

    @abstractmethod
    def extent(self, table: str) -> range:
        """The places of a table's rows, which `check` takes."""

    @abstractmethod
    def rows(self, sql: str, table: str, places: range) -> Iterable[Any]:
        """The rows of a query that stand in some places of a table."""

    def check(self, table: str, places: range) -> int:
        """Compare the rows in these places with their checksums, and return how many there are."""
        return sum(1 for row in self.rows(query_of(table), table, places) if compared(row, table))


class Store(ProtocolReader, ReportReader, StatusReader):
    """The store of a collector's state, with one connection for writing and one for reading.

    A store has one collector at a time. Opening takes the store over: it writes a new token, and every later commit of
    an earlier collector finds that its own token is gone and fails, before it has changed anything.

    What a collector goes on from is compared with its checksums when the store is opened. The rows of tables that grow
    with history are compared whenever they are read, and all of them by a `Scrub`, in the background.
    """

    types: ClassVar[dict[str, str]]
    """The database's names of the types in the schema."""

    def __init__(self, rng: Random | None = None) -> None:
        self._owner = (rng or Random()).bytes(16).hex()
        self._writing = threading.RLock()
        self._reading = threading.RLock()
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """Make the store ready, and take it over."""
        with self._transaction():
            self._bring_up_to_date()
            self._check_current()
            self._write(SET_META, "owner", self._owner)

    def _bring_up_to_date(self) -> None:
        """Create the tables, or migrate those of an older version, in the transaction that takes the store over."""
        self._write(META)
        # Lock the row before reading it: of two collectors that start at once, one migrates and the other waits.
        self._write("UPDATE meta SET value = value WHERE key = 'version'")
        stored = self._write("SELECT value FROM meta WHERE key = 'version'")
        if stored:
            ((text,),) = stored
            FORMAT.migrate(int(text) if text.isdecimal() else text, lambda sql: self._write(sql.format(**self.types)))
        else:
            for statement in tables(**self.types):
                self._write(statement)
        self._write(SET_META, "version", str(FORMAT.version))

    # -- what a database answers ------------------------------------------------------------------------------

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """A transaction: all that is written inside is on the disk when it ends, or none of it is stored."""

    @abstractmethod
    def _write(self, sql: str, *values: object) -> list[Any]:
        """Run one statement on the writing connection. Returns its rows."""

    @abstractmethod
    def _write_all(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run one statement on the writing connection for each of some rows of values."""

    @abstractmethod
    def _changed(self, sql: str, *values: object) -> int:
        """Run one statement on the writing connection. Returns how many rows it changed."""

    @abstractmethod
    def _stream(self, sql: str) -> Iterable[Any]:
        """Run one query on the writing connection. Its rows are read as they are needed: there may be many."""

    def _check_current(self) -> None:
        """Check what does not grow with history; `StoreDamaged` at the first damage."""
        check_rows(self._stream, [table for table in CHECKED if table not in GROWING])

    @abstractmethod
    def inspect(self) -> AbstractContextManager[Inspection]:
        """A look at all that is stored, on a connection of its own."""

    @abstractmethod
    def _probe(self, seconds: float) -> list[Any]:
        """The rows of `OWNER`, read on the writing connection with the lock of a commit; waits at most `seconds`."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""

    # -- what the collector calls -----------------------------------------------------------------------------

    def refuse_damaged(self) -> None:
        """Raise the first damage that was found since the store was opened, if there was any."""
        if self.damage is not None:
            raise self.damage

    def commit(self, changes: StoreChanges) -> Counter[tuple[str, str]]:
        """Store all of the changes durably, or none of them (`StoreFailed`).

        Returns how much was deleted for good, by collection and kind: "ids", "sketches", "releases", "reports".
        """
        deleted: Counter[tuple[str, str]] = Counter()
        self.refuse_damaged()
        with self._writing, self._transaction():
            self._check_right(changes)
            self._store_asks(changes)
            deleted += self._store_reports(changes)
            self._store_answers(changes)
            for expiry in changes.expired:
                deleted += self._expire(expiry)
        return deleted

    def _check_right(self, changes: StoreChanges) -> None:
        """Check, in the transaction that stores the changes, that this collector may store them; else `StoreFailed`."""
        if not self._changed("UPDATE meta SET value = value WHERE key = 'owner' AND value = ?", self._owner):
            raise StoreFailed("another collector has taken over the store")

    def _store_asks(self, changes: StoreChanges) -> None:
        """Store what begins: versions, eras and asks."""
        for collection in changes.collections:
            self._insert("collections", *collection)
        for passed_over in changes.passed_over:
            self._remove(passed_over)
        for era in changes.eras:
            self._write(_ERA, *era)
        for era in changes.begun_runs:
            self._write("INSERT INTO eras VALUES (?, ?, ?, ?, 1)", *era)
        for era in changes.ended_runs:
            self._change_one(_ENDED, *era.key)
        for snapshot, oldest in changes.snapshots:
            self._insert("snapshots", *snapshot, replacing="collection, question, first, step")
            self._write(_OLD_SNAPSHOTS, *snapshot[:3], oldest)
        for ask in changes.asks:
            *row, final, forgotten, sketch = ask
            self._insert("asks", *row, final=int(final), forgotten=int(forgotten))
            self._insert("sketches", *ask.key, sketch)

    def _store_reports(self, changes: StoreChanges) -> Counter[tuple[str, str]]:
        """Store reports, their ids and their sums; returns how many ids were deleted."""
        deleted: Counter[tuple[str, str]] = Counter()
        for key, first, last in _whole_pages(changes.id_pages):
            self._write(_ID_PARTS, *key, first, last)
        self._insert_all("id_pages", changes.id_pages)
        for key, n, data in changes.reports:
            self._insert("reports", *key, n, data)
        for archive in changes.archives:
            self._insert("archives", *archive)
            self._write("DELETE FROM reports WHERE collection = ? AND ask = ?", *archive[:2])
        for batch in changes.shuffled:
            self._insert("shuffled_batches", *batch)
            self._write("DELETE FROM spot_checks WHERE collection = ? AND ask = ?", *batch[:2])
        for key, onion in changes.spot_checks:
            self._insert("spot_checks", *key, onion)
        for key, sketch in changes.sketches.items():
            self._change_one(_SKETCH, sketch, row_checksum(*key, sketch), *key)
        for key in changes.finals:
            self._change_one("UPDATE asks SET final = 1 WHERE collection = ? AND ask = ? AND final = 0", *key)
        for key, page in changes.trimmed:
            deleted[key.collection, "ids"] += self._trim(key, page)
        for key in changes.forgotten:
            self._change_one("UPDATE asks SET forgotten = 1 WHERE collection = ? AND ask = ? AND final = 1", *key)
            deleted[key.collection, "ids"] += self._trim(key, 0)
        return deleted

    def _store_answers(self, changes: StoreChanges) -> None:
        """Store what follows from sums: counts, releases, alarms; and how much came, by the clock."""
        for counted in changes.counted:
            self._insert("candidate_counts", *counted)
        for release in changes.releases:
            self._insert("releases", *release)
        for watch, state in changes.alarm_states.items():
            if state is None:
                self._write("DELETE FROM alarm_states WHERE collection = ? AND watch = ?", *watch)
            else:
                self._insert("alarm_states", *watch, state, replacing="collection, watch")
        for event in changes.alarm_events:
            self._insert("alarm_events", *event)
        for webhook, number in changes.delivered.items():
            self._write(_DELIVERED, *webhook, number)
        for place, count in changes.counts.items():
            self._write(_COUNT, *place, count)
        if changes.clock is not None:
            self._write(SET_META, "clock", changes.clock)
        if changes.calling is not None:
            self._write(SET_META, "calling", changes.calling)
        if changes.minute:
            self._rate(changes)

    def _trim(self, key: AskKey, page: int) -> int:
        """Delete the ids of an ask from page `page` on. Returns how many ids were deleted."""
        place = "FROM id_pages WHERE collection = ? AND ask = ? AND page >= ?"
        ((size,),) = self._write(f"SELECT SUM(LENGTH(ids)) {place}", *key, page)
        self._write(f"DELETE {place}", *key, page)
        return int(size or 0) // ENTRY_BYTES

    def _remove(self, steps: PassedOver) -> None:
        """Remove the records of steps that were passed over: nobody was asked, and nothing was counted."""
        place = (*steps[:3], *steps, *steps[:2])
        passed_over = _PASSED_OVER.format("SELECT ask", "asks")
        self._write(f"DELETE FROM sketches WHERE collection = ? AND ask IN ({passed_over})", steps.collection, *place)  # noqa: S608
        for table in ("releases", "candidate_counts", "asks"):  # the asks last: they say which steps
            self._write(_PASSED_OVER.format("DELETE", table), *place)

    def probe(self, seconds: float) -> None:
        """Check that a commit could be made now; else `StoreFailed`. Any thread may call this, one at a time."""
        self.refuse_damaged()
        if not self._writing.acquire(timeout=seconds):
            raise StoreFailed(f"a commit has not ended for {seconds:g} seconds")
        try:
            rows = self._probe(seconds)
        finally:
            self._writing.release()
        if [tuple(row) for row in rows] != [(self._owner,)]:
            raise StoreFailed("another collector has taken over the store")

    def _rate(self, changes: StoreChanges) -> None:
        """Add to the numbers of reports by minute, which are kept for a day."""
        for collection in {collection for collection, _ in changes.counts}:
            accepted = changes.counts[collection, "accepted"]
            rejected = sum(changes.counts[collection, reason] for reason in REASONS)
            self._write(_RATE, collection, changes.minute, accepted, rejected)
            self._write("DELETE FROM rates WHERE collection = ? AND minute < ?", collection, changes.minute - _DAY)

    def _expire(self, expiry: Expiry) -> Counter[tuple[str, str]]:
        collection, *place = expiry[:3]
        if not expiry.ended and not self._write(_EXPIRES, *expiry[:3] * 4):
            return Counter()
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
        for table in ("id_pages", "reports", "archives", "shuffled_batches", "spot_checks"):
            self._write(_EXPIRED.format(table), collection, collection, *place)
        self._write(_EXPIRED_STEPS, collection, *place, expiry.lateness)
        for table in ("asks", "candidate_counts", "snapshots"):
            self._write(f"DELETE FROM {table} WHERE collection = ? AND question = ? AND step < ?", collection, *place)  # noqa: S608
        if expiry.ended:
            for table in ("eras", "snapshots"):
                self._write(f"DELETE FROM {table} WHERE collection = ? AND question = ?", *expiry[:2])  # noqa: S608
        return Counter({(collection, kind): number for kind, number in deleted.items() if number})

    def _insert(self, table: str, *values: object, replacing: str = "", **unchecked: object) -> None:
        """Insert a row with its checksum; with `replacing`, the state of a row with the same key is replaced."""
        row = dict(zip(CHECKED[table], values, strict=True), checksum=row_checksum(*values), **unchecked)
        sql = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"  # noqa: S608 - own names
        if replacing:
            sql += f" ON CONFLICT ({replacing}) DO UPDATE SET state = excluded.state, checksum = excluded.checksum"
        self._write(sql, *row.values())

    def _insert_all(self, table: str, rows: Sequence[Sequence[object]]) -> None:
        """Insert rows with their checksums."""
        columns = [*CHECKED[table], "checksum"]
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608
        if rows:
            self._write_all(sql, [(*row, row_checksum(*row)) for row in rows])

    def _change_one(self, sql: str, *values: object) -> None:
        if self._changed(sql, *values) != 1:
            raise StoreFailed(f"the store does not hold what it should: {sql}")


def _whole_pages(pages: Iterable[IdPage]) -> list[tuple[AskKey, int, int]]:
    """The asks whose pages are stored whole, each with the first and the last number of a run of such pages."""
    runs: list[tuple[AskKey, int, int]] = []
    for key, number in sorted((AskKey(page.collection, page.ask), page.page) for page in pages if not page.part):
        if runs and runs[-1][0] == key and runs[-1][2] == number - 1:
            runs[-1] = (key, runs[-1][1], number)
        else:
            runs.append((key, number, number))
    return runs


_ID_PARTS = "DELETE FROM id_pages WHERE collection = ? AND ask = ? AND page BETWEEN ? AND ?"
# The sketch of a closed ask never changes again.
_SKETCH = """UPDATE sketches SET data = ?, checksum = ? WHERE collection = ? AND ask = ?
    AND (SELECT final FROM asks WHERE asks.collection = sketches.collection AND asks.ask = sketches.ask) = 0"""
_ENDED = "UPDATE eras SET running = 0 WHERE collection = ? AND question = ? AND first = ? AND running = 1"
_ERA = """INSERT INTO eras (collection, question, first, arithmetic) VALUES (?, ?, ?, ?)
    ON CONFLICT (collection, question, first) DO UPDATE SET arithmetic = excluded.arithmetic"""
SET_META = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
# A step was passed over if none of its asks was ever open, deleted asks included.
_PASSED_OVER = """{} FROM {} WHERE collection = ? AND question = ? AND step >= ?
    AND step NOT IN (SELECT step FROM asks WHERE collection = ? AND question = ? AND step >= ? AND opens < closes + ?)
    AND NOT EXISTS (SELECT 1 FROM expired_asks
        WHERE collection = ? AND question = ? AND first <= step AND last >= step)"""
_EXPIRED_STEPS = """INSERT INTO expired_asks SELECT collection, question, first, MAX(step) FROM asks
    WHERE collection = ? AND question = ? AND step < ? AND opens < closes + ? GROUP BY collection, question, first
    ON CONFLICT (collection, question, first) DO UPDATE SET last = excluded.last"""
_EXPIRES = """SELECT 1 FROM asks WHERE collection = ? AND question = ? AND step < ?
    UNION ALL SELECT 1 FROM releases WHERE collection = ? AND question = ? AND step < ? AND withheld IS NOT NULL
    UNION ALL SELECT 1 FROM candidate_counts WHERE collection = ? AND question = ? AND step < ?
    UNION ALL SELECT 1 FROM snapshots WHERE collection = ? AND question = ? AND step < ? LIMIT 1"""
_OLD_SNAPSHOTS = "DELETE FROM snapshots WHERE collection = ? AND question = ? AND (first <> ? OR step < ?)"
_EXPIRED = """DELETE FROM {} WHERE collection = ? AND ask IN
    (SELECT ask FROM asks WHERE collection = ? AND question = ? AND step < ?)"""
_EXPIRED_REPORTS = """SELECT SUM(n) FROM {} WHERE collection = ? AND ask IN
    (SELECT ask FROM asks WHERE collection = ? AND question = ? AND step < ?)"""
_RATE = """INSERT INTO rates VALUES (?, ?, ?, ?) ON CONFLICT (collection, minute)
    DO UPDATE SET accepted = rates.accepted + excluded.accepted, rejected = rates.rejected + excluded.rejected"""
_DELIVERED = """INSERT INTO webhooks VALUES (?, ?, ?)
    ON CONFLICT (name, collection) DO UPDATE SET delivered = excluded.delivered"""
_COUNT = """INSERT INTO counts VALUES (?, ?, ?)
    ON CONFLICT (collection, outcome) DO UPDATE SET count = counts.count + excluded.count"""
