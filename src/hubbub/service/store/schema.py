"""The tables of a store, in SQL that SQLite and PostgreSQL share."""

from hubbub.core.migrations import Format

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
    "CREATE INDEX IF NOT EXISTS running_eras ON eras (collection, first) WHERE running = 1",
    # The step comes before the era in keys: what is read and deleted of a question is a range of steps.
    """CREATE TABLE IF NOT EXISTS asks (
        collection TEXT NOT NULL, ask TEXT NOT NULL, question TEXT NOT NULL, first BIGINT NOT NULL,
        step BIGINT NOT NULL, round INTEGER NOT NULL, part INTEGER NOT NULL, spec TEXT NOT NULL,
        opens {real} NOT NULL, closes {real} NOT NULL, final INTEGER NOT NULL, forgotten INTEGER NOT NULL,
        checksum BIGINT NOT NULL,
        PRIMARY KEY (collection, ask), UNIQUE (collection, question, step, first, round, part)
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
        checksum BIGINT NOT NULL, PRIMARY KEY (collection, question, step, first, number)
    )""",
    """CREATE TABLE IF NOT EXISTS releases (
        collection TEXT NOT NULL, question TEXT NOT NULL, step BIGINT NOT NULL, time {real} NOT NULL,
        payload TEXT NOT NULL, withheld TEXT, number INTEGER NOT NULL DEFAULT 0, checksum BIGINT NOT NULL,
        PRIMARY KEY (collection, question, step, number)
    )""",
    # Published releases stay for good, and retention must not read them to find those that it deletes.
    "CREATE INDEX IF NOT EXISTS withheld_releases ON releases (collection, question, step) WHERE withheld IS NOT NULL",
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
