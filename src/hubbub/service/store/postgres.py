"""A store in PostgreSQL, by its URL: for operators who already run and back up a server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hubbub.core.errors import needs
from hubbub.random.source import Random
from hubbub.service.store.base import StoreFailed
from hubbub.service.store.joined import JOINT, JOINT_LOCK, leave_to_one, owner_of
from hubbub.service.store.sql import OWNER, SET_META, Inspection, Store

if TYPE_CHECKING:
    import psycopg

_CONNECTION = {
    "connect_timeout": 10,  # seconds
    "tcp_user_timeout": 30_000,  # milliseconds without an answer from the network
}
"""Defaults of the connection, which the URL may override."""
_SETTINGS = {
    "synchronous_commit": "on",  # the server's own setting may promise less
    "lock_timeout": "10s",  # one collector waits for another's transaction, and not for ever for anybody's
    "statement_timeout": "60s",
}


class PostgresStore(Store):
    """A store in the database that a URL names, in its default schema.

    Every commit locks the owner's row: a collector that takes over waits for the last commit of the earlier one. From
    several processes (`joint.py`) it takes over what they have counted.
    """

    types = {"real": "DOUBLE PRECISION", "bytes": "BYTEA", "serial": "BIGSERIAL PRIMARY KEY"}  # noqa: RUF012 - as the base declares it

    def __init__(self, url: str, rng: Random | None = None) -> None:
        with needs("server"):
            import psycopg
        self._url = url
        self._error: type[Exception] = psycopg.Error
        try:
            self._writer: psycopg.Connection[Any] = connect(url)
            self._reader: psycopg.Connection[Any] = connect(url)
        except psycopg.Error as error:
            raise StoreFailed(str(error)) from error
        super().__init__(rng)

    def _open(self) -> None:
        with self._transaction():
            self._write("SELECT pg_advisory_xact_lock(?)", JOINT_LOCK)
            self._bring_up_to_date()
            if owner_of(self._write).startswith(JOINT):
                self._write("LOCK TABLE ask_shards IN EXCLUSIVE MODE")  # transactions that count reports are over
                leave_to_one(self._write)
            self._check_current()
            self._write(SET_META, "owner", self._owner)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._writer.transaction():
                yield
        except self._error as error:
            raise StoreFailed(str(error)) from error

    def _write(self, sql: str, *values: object) -> list[Any]:
        cursor = self._writer.execute(marked(sql), values)
        return cursor.fetchall() if cursor.description else []

    def _write_all(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        with self._writer.cursor() as cursor:
            cursor.executemany(marked(sql), rows)

    def _changed(self, sql: str, *values: object) -> int:
        return self._writer.execute(marked(sql), values).rowcount

    def _read(self, sql: str, *values: object) -> list[Any]:
        with self._reading:
            try:
                return self._reader.execute(marked(sql), values).fetchall()
            except self._error as error:
                raise StoreFailed(str(error)) from error

    def _stream(self, sql: str) -> Iterable[Any]:
        with self._writer.cursor(name="stream") as rows:
            yield from rows.execute(marked(sql))

    @contextmanager
    def inspect(self) -> Iterator[Inspection]:
        """A look at all rows, on a connection of its own. PostgreSQL has checksums of its own for pages."""
        try:
            with connect(self._url) as connection:
                yield _PostgresInspection(connection)
        except self._error as error:
            raise StoreFailed(str(error)) from error

    def _probe(self, seconds: float) -> list[Any]:
        with self._transaction():
            for limit in ("lock_timeout", "statement_timeout"):
                self._write(f"SET LOCAL {limit} = {max(round(1000 * seconds), 1)}")
            return self._write(f"{OWNER} FOR UPDATE")  # as every commit locks it

    def close(self) -> None:
        """Close the connections."""
        with self._writing, self._reading:
            self._reader.close()
            self._writer.close()


class _PostgresInspection(Inspection):
    """A look at the rows of a database. The places of rows are the pages of their tables."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def check_structure(self) -> None:
        """Not done here: an index of PostgreSQL is checked by its own extension, amcheck."""

    def extent(self, table: str) -> range:
        pages = "SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::int"
        ((count,),) = self._connection.execute(pages, (table,)).fetchall()
        return range(count)

    def rows(self, sql: str, table: str, places: range) -> Iterable[Any]:
        between = f"{sql} WHERE ctid >= %s::tid AND ctid < %s::tid"
        ends = f"({places.start},0)", f"({places.stop},0)"
        return self._connection.execute(between.encode(), ends).fetchall()


def connect(url: str) -> psycopg.Connection[Any]:
    """A connection with timeouts for everything that it may wait for."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    in_url = conninfo_to_dict(url)
    defaults = {name: value for name, value in _CONNECTION.items() if name not in in_url}
    connection = psycopg.connect(url, autocommit=True, **defaults)  # type: ignore[arg-type]
    for name, value in _SETTINGS.items():
        connection.execute("SELECT set_config(%s, %s, false)", (name, value))
    return connection


def marked(sql: str) -> bytes:
    """A statement with the marks of the database for its values."""
    return sql.replace("?", "%s").encode()
