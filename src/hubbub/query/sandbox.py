"""DuckDB connections that no query can make read a file or reach a network, and a limit on the time of a query.

Stops queries that take too long.

A query runs inside `with time_limit(seconds)`. Every loop over reports, boxes, cells or groups calls `check_time`,
which raises `QueryTimeout` once the time is over. While DuckDB works no such loop runs:
`interrupting` interrupts it instead.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from hubbub.core.errors import HubbubError, needs

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = 512
"""The megabytes that DuckDB may take, tables in memory aside, however large a store or an intermediate result is."""


def open_database(path: str = ":memory:", *, read_only: bool = False) -> DuckDBPyConnection:
    """Open a connection. It must be locked (`lock`) before text of a query reaches it."""
    with needs("sql"):
        import duckdb
        import pyarrow  # noqa: F401  # whoever opens a database hands Arrow tables to it
    return duckdb.connect(path, read_only=read_only)


def lock(connection: DuckDBPyConnection, folders: Sequence[str] = (), *, table_bytes: int = 0) -> DuckDBPyConnection:
    """Limit a connection, for good, to its own database and an amount of memory.

    `folders`: whose files may still be read. `table_bytes`: the size of the tables that the database holds in memory.
    """
    if folders:
        listed = ", ".join("'" + folder.replace("'", "''") + "'" for folder in folders)
        connection.execute(f"SET allowed_directories=[{listed}]")
    for setting in (
        f"memory_limit='{MEMORY + 2 * table_bytes // 1_000_000}MB'",
        "temp_directory=''",  # a result that does not fit into memory is refused, and not written to a disk
        "python_enable_replacements=false",  # no query can name a variable of this program
        "autoinstall_known_extensions=false",
        "autoload_known_extensions=false",
        "enable_external_access=false",
        "lock_configuration=true",
    ):
        connection.execute(f"SET {setting}")
    return connection


def quote_name(name: str) -> str:
    """A name as SQL."""
    return '"' + name.replace('"', '""') + '"'


INTERRUPT_EVERY = 0.05
"""Seconds between interrupts of DuckDB after the deadline: one just before a statement begins has no effect."""
_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)
"""The `time.monotonic()` at which the query of this thread is stopped; None if it may take any time."""


class QueryTimeout(HubbubError, TimeoutError):
    """A query was stopped because it took longer than its time limit."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Let the queries that this thread runs inside the block take at most this number of seconds in all."""
    before = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(before)


def check_time() -> None:
    """Raise `QueryTimeout` if the query of this thread has reached its deadline."""
    deadline = _deadline.get()
    if deadline is not None and time.monotonic() >= deadline:
        raise QueryTimeout("the query was stopped: its time is over")


@contextmanager
def interrupting(connection: DuckDBPyConnection) -> Iterator[None]:
    """Interrupt what DuckDB does inside the block once the deadline is reached; it then ends as `QueryTimeout`."""
    deadline = _deadline.get()
    if deadline is None:
        yield
        return
    ended = threading.Event()

    def interrupt() -> None:
        wait = max(deadline - time.monotonic(), 0.0)
        while not ended.wait(wait):
            connection.interrupt()
            wait = INTERRUPT_EVERY

    watchdog = threading.Thread(target=interrupt, name="query-deadline", daemon=True)
    watchdog.start()
    try:
        yield
    except Exception:
        check_time()  # whatever an interrupted statement raised is the timeout, too
        raise
    finally:
        ended.set()
        watchdog.join()
