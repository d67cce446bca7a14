"""A store in PostgreSQL that several collector processes use at once: they all take reports, and one of them leads.

Every transaction begins with a lock and looks whether the store is still theirs: a collector that wants the store for
itself waits for such locks and keeps others from them. What must be decided once is decided by rows:

- `ask_shards`: a transaction that counts reports locks the rows of the shards that their ids fall into. Then it reads
  what others added to these shards, decides, and raises their versions. Whoever closes an ask locks all of its shards
  and marks them closed: reports are in the sums before that, or are refused.
- `shard_sketches`, `worker_counts`, `worker_rates`: sums by process. No process writes another's rows.
- `leader`: who leads, until when by the clock of the database, and its epoch, one more for each new leader. Every
  transaction of a leader changes this row if it still has the leader's epoch, and fails otherwise.
- `news`: what the leader did, for the others.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple

from hubbub.core.errors import check_integer
from hubbub.core.reports import Sketch
from hubbub.random.source import Random
from hubbub.service.base.limits import REASONS
from hubbub.service.store import report_ids
from hubbub.service.store.base import AskKey, AskRow, Expiry, RateRow, StoreChanges, StoreFailed
from hubbub.service.store.checksums import changed, row_checksum
from hubbub.service.store.joined import JOINT, JOINT_LOCK, JOINT_TABLES, add_up, fold_counts, owner_of
from hubbub.service.store.postgres import PostgresStore, marked
from hubbub.service.store.readers import FLAGS, ask_row
from hubbub.service.store.sharded_ids import MOST_SHARDS, PagePart
from hubbub.service.store.sql import OWNER, SET_META

LEASE = 4.0
"""Seconds after which a leader that gave no sign is no leader any more."""
STOPPED = 5.0
"""Seconds after which the database ends a transaction of a process that was stopped in it."""
ALIVE = 10.0
"""Seconds after which a process that gave no sign is not counted among the processes."""
NEWS_KEPT = 1000
_TAKEN_OVER = "another collector has taken over the store"


class Leadership(NamedTuple):
    """Who leads: its epoch, its process, the number of its last news, and the asks that it knows ahead, as JSON.

    `lag` is how many seconds ago its lease ran out; negative while it lasts.
    """

    epoch: int
    worker: str
    news: int
    lag: float
    expected: str


class HeldAsk(NamedTuple):
    """An ask whose ids are held, and its number of shards."""

    key: AskKey
    final: bool
    shards: int


class JointStore(PostgresStore):
    """One process's connection to the store.

    Parameters
    ----------
    url, rng
        As of `PostgresStore`.
    shards
        The rows that lock the ids of an ask which this process publishes as the leader. A transaction locks those that
        its ids fall into: with one, transactions for an ask follow each other; with more, those of few reports overlap,
        and each costs more.
    """

    def __init__(self, url: str, rng: Random | None = None, *, shards: int = 1) -> None:
        check_integer("shards", shards, 1, MOST_SHARDS)
        self.shards = shards
        self.worker = (rng or Random()).bytes(8).hex()
        """The name of this process, which no other has or had."""
        self.epoch: int | None = None
        """The epoch in which this process leads; None while it does not."""
        self.expected = "[]"
        """The asks that a leader knows ahead, as JSON: what its next commit tells the others."""
        super().__init__(url, rng)

    def _open(self) -> None:
        self._writer.execute(f"SET idle_in_transaction_session_timeout = '{round(1000 * STOPPED)}ms'".encode())
        with self._transaction():
            self._write("SELECT pg_advisory_xact_lock(?)", JOINT_LOCK)
            self._bring_up_to_date()
            for statement in JOINT_TABLES:
                self._write(statement)
            owner = owner_of(self._write)
            if owner.startswith(JOINT):
                self._owner = owner
            else:  # another name each time: processes from before have other ids in memory
                self._owner = JOINT + self._owner
                self._write(SET_META, "owner", self._owner)
                self._write(_ADOPT)
                self._write(_NOBODY_LEADS)
        with self._transaction():
            self._check_current()

    # -- who leads --------------------------------------------------------------------------------------------

    def leadership(self) -> Leadership:
        """Who leads."""
        ((epoch, worker, news, lag, expected),) = self._read(_LEADERSHIP)
        return Leadership(int(epoch), str(worker), int(news), float(lag), str(expected))

    def processes(self) -> int:
        """How many processes gave a sign in the last seconds."""
        ((count,),) = self._read(_PROCESSES, ALIVE)
        return max(int(count), 1)

    # -- transactions of the leader ---------------------------------------------------------------------------

    def _enter(self) -> None:
        """Begin any transaction: nobody has taken the store for itself."""
        self._write("SELECT pg_advisory_xact_lock_shared(?)", JOINT_LOCK)
        if owner_of(self._write) != self._owner:
            raise StoreFailed(_TAKEN_OVER)

    def _check_right(self, changes: StoreChanges) -> None:
        self._enter()
        told = _news(changes)
        number = self._hold_lease(int(told is not None))
        if told is not None:
            self._write("INSERT INTO news VALUES (?, ?)", number, told)
            self._write("DELETE FROM news WHERE number <= ?", number - NEWS_KEPT)

    def _hold_lease(self, news: int = 0) -> int:
        """Check that this process leads, and keep others from it until the transaction ends. Returns the last news."""
        rows = self._write(_LEAD, LEASE, self.expected, news, self.epoch, self.worker)
        if not rows:
            raise StoreFailed("another process leads")
        return int(rows[0][0])

    def _store_asks(self, changes: StoreChanges) -> None:
        super()._store_asks(changes)
        for ask in changes.asks:
            if not ask.final:
                for shard in range(self.shards):
                    self._write("INSERT INTO ask_shards VALUES (?, ?, ?, ?)", *ask.key, shard, self.shards)

    def _store_reports(self, changes: StoreChanges) -> Counter[tuple[str, str]]:
        keys = sorted({*changes.finals, *changes.forgotten})
        if keys:
            self._close(keys)
        deleted = super()._store_reports(changes)
        for key in sorted(changes.forgotten):
            for table in ("ask_shards", "shard_sketches"):
                self._write(f"DELETE FROM {table} WHERE collection = ? AND ask = ?", *key)  # noqa: S608 - own names
        return deleted

    def _expire(self, expiry: Expiry) -> Counter[tuple[str, str]]:
        deleted = super()._expire(expiry)
        for table in ("ask_shards", "shard_sketches"):
            self._write(_WITHOUT_ASK.format(table), expiry.collection)
        return deleted

    def close_asks(self, keys: Sequence[AskKey]) -> dict[AskKey, Sketch]:
        """Make asks final, in a transaction of the leader. Returns their sketches, of the reports of all processes."""
        with self._writing, self._transaction():
            self._enter()
            self._hold_lease(1)
            self._close(sorted(keys))
            for key in keys:
                self._change_one("UPDATE asks SET final = 1 WHERE collection = ? AND ask = ? AND final = 0", *key)
            return {key: self._sketch(key) for key in keys}

    def open_asks_of(self, collection: str) -> list[AskKey]:
        """The asks of a version of a collection that are not final."""
        rows = self._read("SELECT collection, ask FROM asks WHERE collection = ? AND final = 0", collection)
        return [AskKey(*row) for row in rows]

    def tell(self) -> None:
        """Tell the other processes of `expected`, in a transaction of the leader."""
        with self._writing, self._transaction():
            self._enter()
            self._hold_lease(1)

    def fold_counts(self) -> None:
        """Add the numbers of reports of all processes to those of the store, in a transaction of the leader."""
        with self._writing, self._transaction():
            self._enter()
            self._hold_lease()
            # Nothing may be added between the sums and the deletion.
            self._write("LOCK TABLE worker_counts, worker_rates IN EXCLUSIVE MODE")
            fold_counts(self._write)
            self._write("DELETE FROM workers WHERE seen < clock_timestamp() - INTERVAL '1 hour'")

    def _close(self, keys: Sequence[AskKey]) -> None:
        """Have no more reports counted to these asks, and add up what all processes have."""
        self._write(_LOCK_ALL, *_columns(keys))
        self._write(_CLOSE, *_columns(keys))
        add_up(self._write, keys)

    def _sketch(self, key: AskKey) -> Sketch:
        ((data, checksum),) = self._write("SELECT data, checksum FROM sketches WHERE collection = ? AND ask = ?", *key)
        if row_checksum(*key, data) != checksum:
            raise changed("sketches")
        return Sketch.from_bytes(bytes(data))

    # -- transactions that take reports -----------------------------------------------------------------------

    @contextmanager
    def taking(self, wanted: Mapping[AskKey, Iterable[int]]) -> Iterator[dict[AskKey, dict[int, tuple[bool, int]]]]:
        """A transaction that holds the locks of some shards of some asks: whether each is closed, and its version.

        An ask whose ids are deleted has no shards. What is written inside is stored when the block ends.
        """
        places = [(*key, shard) for key, shards in wanted.items() for shard in shards]
        held: dict[AskKey, dict[int, tuple[bool, int]]] = {key: {} for key in wanted}
        with self._writing, self._transaction():
            rows = self._write(_LOCK, *_columns(places)) if places else []
            if not rows:
                self._enter()
            for collection, ask, shard, closed, version, owner in rows:
                if owner != self._owner:
                    raise StoreFailed(_TAKEN_OVER)
                held[AskKey(collection, ask)][shard] = bool(closed), int(version)
            yield held

    def take(self, changes: StoreChanges, raised: Sequence[tuple[AskKey, int]]) -> None:
        """Store what a group of requests adds, within `taking`. `raised` are the shards that have new ids."""
        whole = [page[:3] for page in changes.id_pages if not page.part]
        if whole:
            self._write(_DELETE_PARTS, *_columns(whole))
        counts, rates = self._counted(changes)
        if changes.id_pages and len(changes.sketches) == 1:  # the common case, in one statement
            ((key, sketch),) = changes.sketches.items()
            row = (*key, self.worker, sketch)
            pages = [(*page, row_checksum(*page)) for page in changes.id_pages]
            shards = [(*key, shard) for key, shard in raised]
            self._write(_TAKE, *_columns(pages), *_columns(shards), *row, row_checksum(*row), *counts, *rates)
        else:
            self._take_parts(changes, raised)
            self._write(_COUNTED, *counts, *rates)
        if changes.reports or changes.shuffled or changes.spot_checks:
            PostgresStore._store_reports(self, replace(changes, id_pages=[], sketches={}))

    def _take_parts(self, changes: StoreChanges, raised: Sequence[tuple[AskKey, int]]) -> None:
        if changes.id_pages:
            self._write(_PAGES, *_columns((*page, row_checksum(*page)) for page in changes.id_pages))
        if raised:
            self._write(_RAISE, *_columns((*key, shard) for key, shard in raised))
        for key, sketch in changes.sketches.items():
            row = (*key, self.worker, sketch)
            self._write(_SHARD_SKETCH, *row, row_checksum(*row))

    def add_counts(self, changes: StoreChanges) -> None:
        """Store the outcomes of requests that were refused, of a process that does not lead."""
        with self._writing, self._transaction():
            self._enter()
            counts, rates = self._counted(changes)
            self._write(_COUNTED, *counts, *rates)

    def _counted(self, changes: StoreChanges) -> tuple[list[list[object]], list[list[object]]]:
        """The rows of outcomes, and of reports by minute, in columns."""
        counts = [(self.worker, *place, count) for place, count in sorted(changes.counts.items())]
        rates = []
        for collection in sorted({collection for collection, _ in changes.counts}):
            accepted = changes.counts[collection, "accepted"]
            rejected = sum(changes.counts[collection, reason] for reason in REASONS)
            rates.append((self.worker, collection, changes.minute, accepted, rejected))
        return _columns(counts) or [[]] * 4, _columns(rates) or [[]] * 5

    def new_ids(self, key: AskKey, places: Sequence[tuple[int, int, int]], *, until: int) -> list[PagePart]:
        """The ids of an ask that a process has not read, up to page `until`.

        `places` are, for each shard, its number of shards, its first page that is not full, and how many ids of it
        were read.
        """
        with self._reading:
            try:
                cursor = self._reader.cursor(binary=True)
                rows = cursor.execute(
                    marked(_NEW_IDS), (*_columns(places), *key, until, report_ids.PAGE * report_ids.ENTRY_BYTES)
                ).fetchall()
            except self._error as error:
                raise StoreFailed(str(error)) from error
        if any(row_checksum(*key, page, part, ids) != checksum for page, part, ids, checksum in rows):
            raise changed("id_pages")
        return [PagePart(page, part, bytes(ids)) for page, part, ids, _ in rows]

    def versions_of(self, keys: Sequence[AskKey]) -> dict[AskKey, dict[int, int]]:
        """The versions of the shards of some asks."""
        versions: dict[AskKey, dict[int, int]] = {}
        for collection, ask, shard, version in self._read(_VERSIONS, *_columns(keys)) if keys else ():
            versions.setdefault(AskKey(collection, ask), {})[int(shard)] = int(version)
        return versions

    # -- for all processes ------------------------------------------------------------------------------------

    def held_asks(self) -> list[HeldAsk]:
        """The asks whose ids are held."""
        return [HeldAsk(AskKey(*row[:2]), bool(row[2]), int(row[3])) for row in self._read(_HELD)]

    def ask_rows(self, keys: Sequence[AskKey]) -> list[AskRow]:
        """The rows of some asks."""
        return [ask_row(row) for row in self._rows("asks sketches", _OF_KEYS, *_columns(keys), also=FLAGS)]

    def taken_of(self, keys: Sequence[AskKey]) -> dict[AskKey, int]:
        """How many reports all processes have counted to some asks that are not final."""
        rows = self._read(_SKETCHES_OF, *_columns(keys) * 2) if keys else []
        taken: Counter[AskKey] = Counter()
        for collection, ask, data in rows:
            taken[AskKey(collection, ask)] += Sketch.from_bytes(bytes(data)).n
        return dict(taken)

    def news(self, after: int) -> list[tuple[int, str]]:
        """What leaders told after their news of that number."""
        return [(int(number), str(text)) for number, text in self._read(_NEWS, after)]

    def counts(self) -> Counter[tuple[str, str]]:
        """How many reports had which outcome, by collection and outcome, of all processes."""
        return Counter({(collection, outcome): int(count) for collection, outcome, count in self._read(_COUNTS)})

    def rates(self, collection: str, first: int) -> list[RateRow]:
        """The reports of each minute from `first` on, of all processes; minutes without reports are left out."""
        rows = self._read(_RATES, *(collection, first) * 2)
        return [RateRow(*map(int, row)) for row in rows]

    def _probe(self, seconds: float) -> list[Any]:
        with self._transaction():
            for limit in ("lock_timeout", "statement_timeout"):
                self._write(f"SET LOCAL {limit} = {max(round(1000 * seconds), 1)}")
            self._write("SELECT pg_advisory_xact_lock_shared(?)", JOINT_LOCK)
            self._write("SELECT 1 FROM workers WHERE worker = ? FOR UPDATE", self.worker)
            return self._write(OWNER)

    def close(self) -> None:
        """Close the connections."""
        with suppress(Exception):
            super().close()


def _news(changes: StoreChanges) -> str | None:
    """What the other processes must hear of a commit, as JSON; None if nothing."""
    told = {
        "collections": [row.id for row in changes.collections],
        "releases": [(row.collection, row.question, row.step) for row in changes.releases],
        "asks": [(row.collection, row.question, row.step) for row in changes.asks],
        "alarm_events": [list(row) for row in changes.alarm_events],
        "expired": [list(row) for row in changes.expired],
    }
    others = changes.finals or changes.forgotten or changes.alarm_states or changes.passed_over
    return json.dumps(told) if others or any(told.values()) else None


def _columns(rows: Iterable[Sequence[object]]) -> list[list[object]]:
    """Rows as the columns that `unnest` makes rows of."""
    return [list(column) for column in zip(*rows, strict=True)]


_ADOPT = """INSERT INTO ask_shards SELECT collection, ask, 0, 1, final FROM asks WHERE forgotten = 0
    ON CONFLICT (collection, ask, shard) DO NOTHING"""
_NOBODY_LEADS = "UPDATE leader SET epoch = epoch + 1, worker = '', until = clock_timestamp(), expected = '[]'"
_LEAD = """UPDATE leader SET until = clock_timestamp() + ? * INTERVAL '1 second', expected = ?, news = news + ?
    WHERE epoch = ? AND worker = ? RETURNING news"""
_LEADERSHIP = """SELECT epoch, worker, news, EXTRACT(EPOCH FROM clock_timestamp() - until), expected FROM leader"""
_PROCESSES = "SELECT COUNT(*) FROM workers WHERE seen > clock_timestamp() - ? * INTERVAL '1 second'"
_LOCK = """SELECT s.collection, s.ask, s.shard, s.closed, s.version,
    (SELECT value FROM meta WHERE key = 'owner') FROM ask_shards s
    JOIN unnest(?::text[], ?::text[], ?::int[]) AS w (collection, ask, shard)
    ON s.collection = w.collection AND s.ask = w.ask AND s.shard = w.shard
    ORDER BY s.collection, s.ask, s.shard FOR UPDATE OF s"""
_LOCK_ALL = """SELECT 1 FROM ask_shards s JOIN unnest(?::text[], ?::text[]) AS w (collection, ask)
    ON s.collection = w.collection AND s.ask = w.ask ORDER BY s.collection, s.ask, s.shard FOR UPDATE OF s"""
_CLOSE = """UPDATE ask_shards s SET closed = 1 FROM unnest(?::text[], ?::text[]) AS w (collection, ask)
    WHERE s.collection = w.collection AND s.ask = w.ask"""
_RAISE = """UPDATE ask_shards s SET version = version + 1
    FROM unnest(?::text[], ?::text[], ?::int[]) AS w (collection, ask, shard)
    WHERE s.collection = w.collection AND s.ask = w.ask AND s.shard = w.shard"""
_VERSIONS = """SELECT s.collection, s.ask, s.shard, s.version FROM ask_shards s
    JOIN unnest(?::text[], ?::text[]) AS w (collection, ask) ON s.collection = w.collection AND s.ask = w.ask"""
_DELETE_PARTS = """DELETE FROM id_pages p USING unnest(?::text[], ?::text[], ?::bigint[]) AS w (collection, ask, page)
    WHERE p.collection = w.collection AND p.ask = w.ask AND p.page = w.page"""
_PAGES = """INSERT INTO id_pages (collection, ask, page, part, ids, checksum)
    SELECT * FROM unnest(?::text[], ?::text[], ?::bigint[], ?::int[], ?::bytea[], ?::bigint[])"""
_NEW_IDS = """SELECT p.page, p.part, p.ids, p.checksum
    FROM unnest(?::bigint[], ?::bigint[], ?::int[]) AS w (shards, page, tail), id_pages p
    WHERE p.collection = ? AND p.ask = ? AND p.page >= w.page AND p.page < ?
    AND MOD(p.page, w.shards) = MOD(w.page, w.shards)
    AND (p.page > w.page OR p.part >= w.tail OR octet_length(p.ids) >= ?) ORDER BY p.page, p.part"""
_SHARD_SKETCH = """INSERT INTO shard_sketches VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (collection, ask, worker) DO UPDATE SET data = excluded.data, checksum = excluded.checksum"""
_COUNTED = """WITH counted AS (
    INSERT INTO worker_counts SELECT * FROM unnest(?::text[], ?::text[], ?::text[], ?::bigint[])
    ON CONFLICT (worker, collection, outcome) DO UPDATE SET count = worker_counts.count + excluded.count)
    INSERT INTO worker_rates SELECT * FROM unnest(?::text[], ?::text[], ?::bigint[], ?::bigint[], ?::bigint[])
    ON CONFLICT (worker, collection, minute) DO UPDATE SET accepted = worker_rates.accepted + excluded.accepted,
    rejected = worker_rates.rejected + excluded.rejected"""
_TAKE = f"WITH pages AS ({_PAGES}), raised AS ({_RAISE}), sketched AS ({_SHARD_SKETCH}), {_COUNTED[5:]}"
_HELD = """SELECT a.collection, a.ask, a.final, COUNT(s.shard) FROM asks a
    JOIN ask_shards s ON s.collection = a.collection AND s.ask = a.ask WHERE a.forgotten = 0
    GROUP BY a.collection, a.ask, a.final"""
_OF_KEYS = "JOIN unnest(?::text[], ?::text[]) AS w (collection, ask) USING (collection, ask)"
_SKETCHES_OF = """SELECT collection, ask, data FROM sketches
    JOIN unnest(?::text[], ?::text[]) AS w (collection, ask) USING (collection, ask)
    UNION ALL SELECT collection, ask, data FROM shard_sketches
    JOIN unnest(?::text[], ?::text[]) AS w (collection, ask) USING (collection, ask)"""
_WITHOUT_ASK = """DELETE FROM {0} WHERE collection = ? AND NOT EXISTS
    (SELECT 1 FROM asks WHERE asks.collection = {0}.collection AND asks.ask = {0}.ask)"""
_NEWS = "SELECT number, told FROM news WHERE number > ? ORDER BY number"
_COUNTS = """SELECT collection, outcome, SUM(count) FROM
    (SELECT collection, outcome, count FROM counts UNION ALL SELECT collection, outcome, count FROM worker_counts) c
    GROUP BY collection, outcome"""
_RATES = """SELECT minute, SUM(accepted), SUM(rejected) FROM
    (SELECT minute, accepted, rejected FROM rates WHERE collection = ? AND minute >= ?
    UNION ALL SELECT minute, accepted, rejected FROM worker_rates WHERE collection = ? AND minute >= ?) r
    GROUP BY minute ORDER BY minute"""
