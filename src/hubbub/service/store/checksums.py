"""Checksums of rows, by which damage inside a stored value is found. SQLite finds damage to its own structure only.

Rows that are counted up in place, such as numbers of reports, have none.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from typing import Any

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
        sql = f"SELECT {', '.join(columns)}, checksum FROM {table} WHERE checksum IS NOT NULL"  # noqa: S608 - own names
        for *values, checksum in stream(sql):
            if row_checksum(*values) != checksum:
                return f"a row of the table {table} has changed"
    return None


def sqlite_damage(stream: Callable[[str], Iterable[Any]]) -> str | None:
    """The first damage to the pages, tables and indexes of a SQLite file, or to its rows; None if it is whole."""
    ((finding,),) = stream("PRAGMA integrity_check(1)")
    return damaged_row(stream) if finding == "ok" else str(finding)
