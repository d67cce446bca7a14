"""The checksums of rows, and what compares stored rows with them.

By checksums, damage inside a stored value is found. SQLite finds damage to its own structure only. Rows that are
counted up in place, such as numbers of reports, have none.
"""

import zlib
from collections.abc import Callable, Iterable
from typing import Any

from hubbub.service.store.base import StoreDamaged

Stream = Callable[[str], Iterable[Any]]
"""Runs a query and returns an iterable of its rows."""

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

GROWING = (
    "asks",
    "sketches",
    "reports",
    "archives",
    "candidate_counts",
    "releases",
    "shuffled_batches",
    "alarm_events",
)
"""The tables that grow with history. Their rows are compared when they are read, and in the background."""


def row_checksum(*values: object) -> int:
    """The CRC-32 of the values of a row. Numbers count as floats: a database may return a whole number as either."""
    parts: list[bytes] = []
    for value in values:
        if isinstance(value, bytes | memoryview):
            part = bytes(value)
        else:
            part = repr(float(value) if isinstance(value, int | float) else value).encode()
        parts += [b"%d:" % len(part), part]
    return zlib.crc32(b"".join(parts))


def query_of(*tables: str, also: str = "") -> str:
    """A query for all columns that have checksums, each table's followed by its checksum, then `also`.

    The second table is joined to the first by collection and ask.
    """
    first, *others = tables
    columns = [f"{table}.{column}" for table in tables for column in (*CHECKED[table], "checksum")]
    joined = "".join(f" JOIN {other} USING (collection, ask)" for other in others)
    return f"SELECT {', '.join([*columns, *also.split()])} FROM {first}{joined}"  # noqa: S608 - own names


def compared(row: Iterable[Any], *tables: str) -> list[Any]:
    """A row of `query_of` without the checksums; `StoreDamaged` if one does not match."""
    values, result = list(row), list[Any]()
    for table in tables:
        size = len(CHECKED[table])
        if row_checksum(*values[:size]) != values[size]:
            raise changed(table)
        result += values[:size]
        del values[: size + 1]
    return result + values


def changed(table: str) -> StoreDamaged:
    """The error of a row that does not match its checksum."""
    return damaged(f"a row of the table {table} has changed")


def damaged(finding: str) -> StoreDamaged:
    """The error of a store that is damaged."""
    return StoreDamaged(f"the store is damaged: {finding}; restore a backup")


def check_rows(stream: Stream, tables: Iterable[str] = CHECKED) -> None:
    """Compare all rows of tables with their checksums; `StoreDamaged` at the first that does not match."""
    for table in tables:
        for row in stream(query_of(table)):
            compared(row, table)


def check_sqlite(stream: Stream) -> None:
    """Check the pages, tables and indexes of a SQLite file, and all rows; `StoreDamaged` at the first damage."""
    check_structure(stream)
    check_rows(stream)


def check_structure(stream: Stream, table: str = "1") -> None:
    """Check the pages and indexes of a SQLite file, or of one table of it."""
    (finding,), *_ = stream(f"PRAGMA integrity_check({table})")
    if finding != "ok":
        raise damaged(str(finding))
