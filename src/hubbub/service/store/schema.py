"""The tables of a store, in SQL that SQLite and PostgreSQL share, and the checksums of their rows.

Checksums of rows, by which damage inside a stored value is found. SQLite finds damage to its own structure only.

Rows that are counted up in place, such as numbers of reports, have none.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from typing import Any

from hubbub.core.migrations import Format

_ASK = ("collection", "ask")
_STEP = ("collection", "question", "first", "step")
CHECKED = {
    "collections": ("id", "name", "version", "spec"),
    "asks": (*_ASK, "question", "first", "step", "round", "part", "spec", "opens", "closes"),
    "snapshots": (*_STEP, "state"),
    "sketches": (*_ASK, "data"),
    "id_pages": (*_ASK, "page", "part", "ids"),
    "reports": (*_ASK, "n", "data"),
    "archives": (*_ASK, "name", "n", "sha256"),
    "candidate_counts": (*_STEP, "number", "ask", "candidates", "n", "support"),
    "releases": ("collection", "question", "step", "time", "payload", "withheld", "number"),
    "shuffled_batches": (*_ASK, "digest", "n", "fakes", "unreadable", "repeated", "checks", "lost"),
    "spot_checks": (*_ASK, "onion"),
    "alarm_states": ("collection", "watch", "state"),
    "alarm_events": ("collection", "number", "event"),
}
"""The tables whose rows have checksums, and the columns that these cover."""


def row_checksum(*values: object) -> int:
    """The CRC-32 of the values of a row. Numbers count as floats: a database may return a whole number as either."""
    checksum = 0
    for value in values:
        if isinstance(value, bytes | memoryview):
            part = bytes(value)
        else:
            part = repr(float(value) if isinstance(value, int | float) else value).encode()
        checksum = zlib.crc32(part, zlib.crc32(b"%d:" % len(part), checksum))
    return checksum


def damaged_row(stream: Callable[[str], Iterable[Any]]) -> str | None:
    """The place of the first row whose values do not match its checksum; None if all match.

    `stream` runs a query and returns an iterable of its rows.
    """
    for table, columns in CHECKED.items():
        sql = f"SELECT {', '.join(columns)}, checksum FROM {table}"  # noqa: S608 - own names
        for *values, checksum in stream(sql):
            if row_checksum(*values) != checksum:
                return f"a row of the table {table} has changed"
    return None


def sqlite_damage(stream: Callable[[str], Iterable[Any]]) -> str | None:
    """The first damage to the pages, tables and indexes of a SQLite file, or to its rows; None if it is whole."""
    ((finding,),) = stream("PRAGMA integrity_check(1)")
    return damaged_row(stream) if finding == "ok" else str(finding)


VERSION = 1
FORMAT = Format("store", VERSION)
"""The version of the tables. A migration is made of statements for both databases, with names of types as below."""
META = "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
"""The one table that exists before the version of a store is known."""

_TABLES = (
    """CREATE TABLE IF NOT EXISTS collections (
        id TEXT PRIMARY KEY, name TEXT NOT NULL, version INTEGER NOT NULL, spec TEXT NOT NULL, checksum BIGINT NOT NULL,
        UNIQUE (name, version)
    )""",
    """CREATE TABLE IF NOT EXISTS eras (
        collection TEXT NOT NULL, question TEXT NOT NULL, first BIGINT NOT NULL,
        arithmetic INTEGER NOT NULL, running INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (collection, question, first)
    )""",
    """CREATE TABLE IF NOT EXISTS asks (
        collection TEXT NOT NULL, ask TEXT NOT NULL, question TEXT NOT NULL, first BIGINT NOT NULL,
        step BIGINT NOT NULL, round INTEGER NOT NULL, part INTEGER NOT NULL, spec TEXT NOT NULL,
        opens {real} NOT NULL, closes {real} NOT NULL, final INTEGER NOT NULL, forgotten INTEGER NOT NULL,
        checksum BIGINT NOT NULL,
        PRIMARY KEY (collection, ask), UNIQUE (collection, question, first, step, round, part)
    )""",
    """CREATE TABLE IF NOT EXISTS snapshots (
        collection TEXT NOT NULL, question TEXT NOT NULL, first BIGINT NOT NULL, step BIGINT NOT NULL,
        state TEXT NOT NULL, checksum BIGINT NOT NULL, PRIMARY KEY (collection, question, first, step)
    )""",
    # The steps, by era, whose asks were deleted: they are not asked again.
    """CREATE TABLE IF NOT EXISTS expired_asks (
        collection TEXT NOT NULL, question TEXT NOT NULL, first BIGINT NOT NULL, last BIGINT NOT NULL,
        PRIMARY KEY (collection, question, first)
    )""",
    "CREATE INDEX IF NOT EXISTS held_asks ON asks (collection) WHERE forgotten = 0",
    # Not a column of asks: sketches are written at every commit, and asks are not.
    """CREATE TABLE IF NOT EXISTS sketches (
        collection TEXT NOT NULL, ask TEXT NOT NULL, data {bytes} NOT NULL, checksum BIGINT NOT NULL,
        PRIMARY KEY (collection, ask)
    )""",
    """CREATE TABLE IF NOT EXISTS id_pages (
        collection TEXT NOT NULL, ask TEXT NOT NULL, page BIGINT NOT NULL, part INTEGER NOT NULL, ids {bytes} NOT NULL,
        checksum BIGINT NOT NULL, PRIMARY KEY (collection, ask, page, part)
    )""",
    """CREATE TABLE IF NOT EXISTS reports (
        number {serial}, collection TEXT NOT NULL, ask TEXT NOT NULL, n BIGINT NOT NULL, data {bytes} NOT NULL,
        checksum BIGINT NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS reports_of_asks ON reports (collection, ask, number)",
    # The files of single reports; a file that is not named here does not count.
    """CREATE TABLE IF NOT EXISTS archives (
        collection TEXT NOT NULL, ask TEXT NOT NULL, name TEXT NOT NULL, n BIGINT NOT NULL,
        sha256 TEXT NOT NULL, checksum BIGINT NOT NULL, PRIMARY KEY (collection, ask)
    )""",
    # Counts among kept reports; the reports may have been deleted.
    """CREATE TABLE IF NOT EXISTS candidate_counts (
        collection TEXT NOT NULL, question TEXT NOT NULL, first BIGINT NOT NULL, step BIGINT NOT NULL,
        number INTEGER NOT NULL, ask TEXT NOT NULL, candidates TEXT NOT NULL, n BIGINT NOT NULL, support TEXT NOT NULL,
        checksum BIGINT NOT NULL, PRIMARY KEY (collection, question, first, step, number)
    )""",
    """CREATE TABLE IF NOT EXISTS releases (
        collection TEXT NOT NULL, question TEXT NOT NULL, step BIGINT NOT NULL, time {real} NOT NULL,
        payload TEXT NOT NULL, withheld TEXT, number INTEGER NOT NULL DEFAULT 0, checksum BIGINT NOT NULL,
        PRIMARY KEY (collection, question, step, number)
    )""",
    # Batches of shufflers, one for each ask. The columns describe the batch, never a single report.
    """CREATE TABLE IF NOT EXISTS shuffled_batches (
        collection TEXT NOT NULL, ask TEXT NOT NULL, digest {bytes} NOT NULL, n BIGINT NOT NULL, fakes BIGINT NOT NULL,
        unreadable BIGINT NOT NULL, repeated BIGINT NOT NULL, checks BIGINT NOT NULL, lost BIGINT NOT NULL,
        checksum BIGINT NOT NULL, PRIMARY KEY (collection, ask)
    )""",
    # The collector's own reports that it looks for in a shuffled batch, as the last shuffler will deliver them.
    """CREATE TABLE IF NOT EXISTS spot_checks (
        collection TEXT NOT NULL, ask TEXT NOT NULL, onion {bytes} NOT NULL, checksum BIGINT NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS spot_checks_of_asks ON spot_checks (collection, ask)",
    # Here `collection` is the name of a collection: its versions share their alarms.
    """CREATE TABLE IF NOT EXISTS alarm_states (
        collection TEXT NOT NULL, watch TEXT NOT NULL, state TEXT NOT NULL, checksum BIGINT NOT NULL,
        PRIMARY KEY (collection, watch)
    )""",
    """CREATE TABLE IF NOT EXISTS alarm_events (
        collection TEXT NOT NULL, number BIGINT NOT NULL, event TEXT NOT NULL, checksum BIGINT NOT NULL,
        PRIMARY KEY (collection, number)
    )""",
    # The last event that each webhook took.
    """CREATE TABLE IF NOT EXISTS webhooks (
        name TEXT NOT NULL, collection TEXT NOT NULL, delivered BIGINT NOT NULL, PRIMARY KEY (name, collection)
    )""",
    """CREATE TABLE IF NOT EXISTS rates (
        collection TEXT NOT NULL, minute BIGINT NOT NULL, accepted BIGINT NOT NULL, rejected BIGINT NOT NULL,
        PRIMARY KEY (collection, minute)
    )""",
    """CREATE TABLE IF NOT EXISTS counts (
        collection TEXT NOT NULL, outcome TEXT NOT NULL, count BIGINT NOT NULL, PRIMARY KEY (collection, outcome)
    )""",
)


def tables(*, real: str, bytes: str, serial: str) -> list[str]:
    """The statements that create all other tables, with the database's names of types."""
    return [statement.format(real=real, bytes=bytes, serial=serial) for statement in _TABLES]
