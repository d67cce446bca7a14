"""Where a stream of reports is added up: sketches in SQLite or PostgreSQL, each micro-batch exactly once.

Spark calls `foreachBatch` at least once for each batch, and its numbers begin at 0 again with a new checkpoint. So the
id of the query and the number of the batch are stored in the transaction that adds the batch's sketches: a batch that
comes again changes nothing, and a query that reads everything anew is refused.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from hubbub.backends.folding import Folded
from hubbub.backends.report_files import SketchKey
from hubbub.core.errors import HubbubError, InvalidValue, check_integer, needs
from hubbub.core.migrations import Versions
from hubbub.core.private_file import make_private_file
from hubbub.questions.collection import Collection
from hubbub.spark.batch import DataFrameFold

SINK: Versions[None] = Versions("sketch sink", 1)
LATE = "late"
"""The reports that came after the release of their step."""
_KEY = ", ".join(SketchKey._fields)
_TABLES = (
    "CREATE TABLE IF NOT EXISTS hubbub_sink (format BIGINT PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS hubbub_batches (source TEXT PRIMARY KEY, query TEXT NOT NULL, batch BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS hubbub_counts (source TEXT, reason TEXT, rows BIGINT NOT NULL, "
    "PRIMARY KEY (source, reason))",
    "CREATE TABLE IF NOT EXISTS hubbub_closed (collection TEXT, version BIGINT, question TEXT, step BIGINT NOT NULL, "
    "PRIMARY KEY (collection, version, question))",
    "CREATE TABLE IF NOT EXISTS hubbub_sketches (source TEXT, collection TEXT, version BIGINT, question TEXT, "
    "run BIGINT, step BIGINT, round BIGINT, part BIGINT, spec_id TEXT, sketches {bytes} NOT NULL, "
    f"PRIMARY KEY (source, {_KEY}))",
)
Run = Callable[..., list[tuple[Any, ...]]]


class SinkRefused(HubbubError):
    """A batch is not the next of its source: nothing was changed."""


class SketchSink:
    """Sketches of streams, in one SQLite file or in a database of PostgreSQL.

    Parameters
    ----------
    place
        The path of a file, or a URL (`postgresql://...`).

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sink = SketchSink(f"{folder}/sketches.db")
        ...     nothing = DataFrameFold(Folded({}, False), 0, 0)
        ...     sink.commit("landing", "query", 0, nothing), sink.commit("landing", "query", 0, nothing)
        (True, False)
    """

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self.place = os.fspath(place)
        with self._transaction() as run:
            for statement in _TABLES:
                run(statement.format(bytes="BYTEA" if self._is_postgres else "BLOB"))
            formats = run("SELECT format FROM hubbub_sink")
            if not formats:
                run("INSERT INTO hubbub_sink VALUES (?)", SINK.version)
        for (version,) in formats:
            SINK.check(version)

    @property
    def _is_postgres(self) -> bool:
        return self.place.startswith(("postgresql://", "postgres://"))

    @contextmanager
    def _transaction(self) -> Iterator[Run]:
        """A transaction of its own connection, which no other transaction of a sink meets; threads share none."""
        if self._is_postgres:
            with needs("server"):
                import psycopg
            with psycopg.connect(self.place) as connection:  # commits at the end, or rolls back
                connection.execute("SELECT pg_advisory_xact_lock(hashtext('hubbub_sink'))")
                yield lambda text, *values: _rows(connection.execute(text.replace("?", "%s"), values))
            return
        make_private_file(self.place)
        with closing(sqlite3.connect(self.place, timeout=60, isolation_level=None)) as database:
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON"):
                database.execute(f"PRAGMA {pragma}")
            database.execute("BEGIN IMMEDIATE")
            try:
                yield lambda text, *values: database.execute(text, values).fetchall()
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise

    def has(self, source: str, query: str, batch: int) -> bool:
        """Whether a batch was added up before. Refuses one that is not the next of its source."""
        with self._transaction() as run:
            return _was_added(run, source, query, batch)

    def commit(self, source: str, query: str, batch: int, fold: DataFrameFold) -> bool:
        """Add the sketches of a batch, once: False, and no change, if it was added before.

        Reports to steps that are closed are counted as late.

        Parameters
        ----------
        source
            The name of what is read. Each source is read by one query.
        query, batch
            The id of the query, which its checkpoint holds, and the number of the batch.
        fold
            What the batch was folded into.
        """
        with self._transaction() as run:
            if _was_added(run, source, query, batch):
                return False
            closed = {tuple(row[:3]): row[3] for row in run("SELECT * FROM hubbub_closed")}
            counts = {**fold.folded.left_out, "rows": fold.rows, "repeated": fold.repeated}
            for key, sketch in fold.folded.sketches.items():
                if key.step <= closed.get((key.collection, key.version, key.question), -1):
                    counts[LATE] = counts.get(LATE, 0) + sketch.n
                    continue
                total = Folded(fold.folded.candidates, fold.folded.weighted)
                total.add(key, fold.folded.mechanisms[key.spec_id], sketch)
                where = " AND ".join(f"{name} = ?" for name in ("source", *SketchKey._fields))
                for (stored,) in run(f"SELECT sketches FROM hubbub_sketches WHERE {where}", source, *key):  # noqa: S608
                    total.merge(Folded.from_bytes(bytes(stored)))
                    run(f"DELETE FROM hubbub_sketches WHERE {where}", source, *key)  # noqa: S608
                run(f"INSERT INTO hubbub_sketches VALUES ({', '.join('?' * 10)})", source, *key, total.to_bytes())  # noqa: S608
            for reason, rows in counts.items():
                _count(run, source, reason, rows)
            run("DELETE FROM hubbub_batches WHERE source = ?", source)
            run("INSERT INTO hubbub_batches VALUES (?, ?, ?)", source, query, batch)
            return True

    def begin_again(self, source: str) -> None:
        """Forget what was added up from a source, except of closed steps: a new checkpoint reads it anew."""
        with self._transaction() as run:
            run(
                "DELETE FROM hubbub_sketches WHERE source = ? AND NOT EXISTS (SELECT 1 FROM hubbub_closed c WHERE "
                "c.collection = hubbub_sketches.collection AND c.version = hubbub_sketches.version AND "
                "c.question = hubbub_sketches.question AND hubbub_sketches.step <= c.step)",
                source,
            )
            run("DELETE FROM hubbub_counts WHERE source = ?", source)
            run("DELETE FROM hubbub_batches WHERE source = ?", source)

    def close(self, collection: Collection, question: str, step: int) -> None:
        """Close the steps of a stream up to this one: their sketches change no more, and can be released."""
        if question not in collection.questions or collection.terms[question].study is not None:
            raise InvalidValue("question", question, "one of the collection that is asked in steps")
        check_integer("step", step, 0)
        place = (collection.name, collection.version, question)
        with self._transaction() as run:
            where = "collection = ? AND version = ? AND question = ?"
            before = run(f"SELECT step FROM hubbub_closed WHERE {where}", *place)  # noqa: S608
            if not before or before[0][0] < step:
                run(f"DELETE FROM hubbub_closed WHERE {where}", *place)  # noqa: S608
                run("INSERT INTO hubbub_closed VALUES (?, ?, ?, ?)", *place, step)

    def folded(self, question: str | None = None) -> Folded:
        """The sketches of all sources together, of one question or of all."""
        with self._transaction() as run:
            chosen = "" if question is None else " WHERE question = ?"
            values = () if question is None else (question,)
            rows = run(f"SELECT sketches FROM hubbub_sketches{chosen}", *values)  # noqa: S608
        total: Folded | None = None
        for (stored,) in rows:
            part = Folded.from_bytes(bytes(stored))
            if total is None:
                total = part
            else:
                total.merge(part)
        return Folded({}, False) if total is None else total

    def counts(self, source: str) -> dict[str, int]:
        """How many rows were read from a source, how many were left out by reason, repeated an id, or came too late."""
        with self._transaction() as run:
            return dict(run("SELECT reason, rows FROM hubbub_counts WHERE source = ? ORDER BY reason", source))


def _rows(cursor: Any) -> list[tuple[Any, ...]]:
    return [] if cursor.description is None else list(cursor.fetchall())


def _was_added(run: Run, source: str, query: str, batch: int) -> bool:
    rows: Sequence[tuple[Any, ...]] = run("SELECT query, batch FROM hubbub_batches WHERE source = ?", source)
    ((known, last),) = rows or [(query, -1)]
    if known != query:
        raise SinkRefused(
            f"{source} was added up by the query {known}, and this is {query}: with a new checkpoint it reads "
            f"everything again. Give it the old checkpoint, or call begin_again({source!r}) first"
        )
    if batch > last + 1:
        raise SinkRefused(
            f"{source}: batch {batch} comes after batch {last}: the sink is older than the query's checkpoint, and "
            f"what was between is lost. Restore both from one time, or begin_again({source!r}) with a new checkpoint"
        )
    return bool(batch <= last)


def _count(run: Run, source: str, reason: str, rows: int) -> None:
    for (before,) in run("SELECT rows FROM hubbub_counts WHERE source = ? AND reason = ?", source, reason):
        rows += before
    run("DELETE FROM hubbub_counts WHERE source = ? AND reason = ?", source, reason)
    run("INSERT INTO hubbub_counts VALUES (?, ?, ?)", source, reason, rows)
