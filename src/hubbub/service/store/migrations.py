"""Migrations of stores of older versions, one for each version, for both databases.

A change of the tables in `schema`, or of their meaning, needs a new version and a migration here. A migration never
changes once its version was in use, so it spells out the tables it creates: those of `schema` are the current ones.
"""

from __future__ import annotations

from hubbub.core.migrations import Format, Migration

VERSION = 6

_TO_2 = (
    # Stores of version 1 got these tables when a newer hubbub first opened them.
    """CREATE TABLE IF NOT EXISTS snapshots (
        collection TEXT NOT NULL, question TEXT NOT NULL, first BIGINT NOT NULL, step BIGINT NOT NULL,
        state TEXT NOT NULL, PRIMARY KEY (collection, question, first, step)
    )""",
    """CREATE TABLE IF NOT EXISTS reports (
        number {serial}, collection TEXT NOT NULL, ask TEXT NOT NULL, n BIGINT NOT NULL, data {bytes} NOT NULL
    )""",
    "CREATE INDEX IF NOT EXISTS reports_of_asks ON reports (collection, ask, number)",
    """CREATE TABLE IF NOT EXISTS archives (
        collection TEXT NOT NULL, ask TEXT NOT NULL, name TEXT NOT NULL, n BIGINT NOT NULL,
        PRIMARY KEY (collection, ask)
    )""",
    """CREATE TABLE IF NOT EXISTS rates (
        collection TEXT NOT NULL, minute BIGINT NOT NULL, accepted BIGINT NOT NULL, rejected BIGINT NOT NULL,
        PRIMARY KEY (collection, minute)
    )""",
    # 0: it is not known with which arithmetic an era of version 1 was begun.
    "ALTER TABLE eras ADD COLUMN arithmetic INTEGER NOT NULL DEFAULT 0",
    # The ids that version 1 kept in segments are packed into pages when their asks are next restored.
    """CREATE TABLE IF NOT EXISTS id_pages (
        collection TEXT NOT NULL, ask TEXT NOT NULL, page BIGINT NOT NULL, part INTEGER NOT NULL, ids {bytes} NOT NULL,
        PRIMARY KEY (collection, ask, page, part)
    )""",
    """CREATE TABLE IF NOT EXISTS expired_asks (
        collection TEXT NOT NULL, question TEXT NOT NULL, first BIGINT NOT NULL, last BIGINT NOT NULL,
        PRIMARY KEY (collection, question, first)
    )""",
)
_TO_3 = (
    # Rounds of any number and parts of a round. Neither database can change the key of a table: it is created anew.
    """CREATE TABLE asks_3 (
        collection TEXT NOT NULL, ask TEXT NOT NULL, question TEXT NOT NULL, first BIGINT NOT NULL,
        step BIGINT NOT NULL, round INTEGER NOT NULL, part INTEGER NOT NULL, spec TEXT NOT NULL,
        opens {real} NOT NULL, closes {real} NOT NULL, final INTEGER NOT NULL, forgotten INTEGER NOT NULL,
        PRIMARY KEY (collection, ask), UNIQUE (collection, question, first, step, round, part)
    )""",
    """INSERT INTO asks_3 SELECT collection, ask, question, first, step, phase, 0, spec, opens, closes, final, forgotten
        FROM asks""",
    "DROP TABLE asks",
    "ALTER TABLE asks_3 RENAME TO asks",
    "CREATE INDEX held_asks ON asks (collection) WHERE forgotten = 0",
    # Several releases of a study's run.
    """CREATE TABLE releases_3 (
        collection TEXT NOT NULL, question TEXT NOT NULL, step BIGINT NOT NULL, time {real} NOT NULL,
        payload TEXT NOT NULL, withheld TEXT, number INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (collection, question, step, number)
    )""",
    "INSERT INTO releases_3 SELECT collection, question, step, time, payload, withheld, 0 FROM releases",
    "DROP TABLE releases",
    "ALTER TABLE releases_3 RENAME TO releases",
    "ALTER TABLE eras ADD COLUMN running INTEGER NOT NULL DEFAULT 0",
    """CREATE TABLE candidate_counts (
        collection TEXT NOT NULL, question TEXT NOT NULL, first BIGINT NOT NULL, step BIGINT NOT NULL,
        number INTEGER NOT NULL, ask TEXT NOT NULL, candidates TEXT NOT NULL, n BIGINT NOT NULL, support TEXT NOT NULL,
        PRIMARY KEY (collection, question, first, step, number)
    )""",
)
_TO_4 = (
    # Alarms are a collection's by its name: its versions share them.
    """CREATE TABLE alarm_states (
        collection TEXT NOT NULL, watch TEXT NOT NULL, state TEXT NOT NULL, PRIMARY KEY (collection, watch)
    )""",
    """CREATE TABLE alarm_events (
        collection TEXT NOT NULL, number BIGINT NOT NULL, event TEXT NOT NULL, PRIMARY KEY (collection, number)
    )""",
    # What each receiver of alarms has taken.
    """CREATE TABLE webhooks (
        name TEXT NOT NULL, collection TEXT NOT NULL, delivered BIGINT NOT NULL, PRIMARY KEY (name, collection)
    )""",
)
_TO_5 = (
    # Batches that came from shufflers, and the collector's own reports that it looks for in them.
    """CREATE TABLE shuffled_batches (
        collection TEXT NOT NULL, ask TEXT NOT NULL, digest {bytes} NOT NULL, n BIGINT NOT NULL, fakes BIGINT NOT NULL,
        unreadable BIGINT NOT NULL, repeated BIGINT NOT NULL, checks BIGINT NOT NULL, lost BIGINT NOT NULL,
        PRIMARY KEY (collection, ask)
    )""",
    "CREATE TABLE spot_checks (collection TEXT NOT NULL, ask TEXT NOT NULL, onion {bytes} NOT NULL)",
    "CREATE INDEX spot_checks_of_asks ON spot_checks (collection, ask)",
)
_TO_6 = (
    # Rows and files of before have no checksum.
    "ALTER TABLE archives ADD COLUMN sha256 TEXT",
    *(
        f"ALTER TABLE {table} ADD COLUMN checksum BIGINT"
        for table in (
            *("collections", "asks", "snapshots", "sketches", "id_pages", "reports", "archives", "candidate_counts"),
            *("releases", "shuffled_batches", "spot_checks", "alarm_states", "alarm_events"),
        )
    ),
)
_MIGRATIONS = {1: _TO_2, 2: _TO_3, 3: _TO_4, 4: _TO_5, 5: _TO_6}


def store_format(*, real: str, bytes: str, serial: str) -> Format:
    """The versions of a store and their migrations, with the database's names of types."""
    migrations: dict[int, Migration] = {}
    for number, statements in _MIGRATIONS.items():
        migrations[number] = tuple(statement.format(real=real, bytes=bytes, serial=serial) for statement in statements)
    return Format("store", VERSION, migrations)
