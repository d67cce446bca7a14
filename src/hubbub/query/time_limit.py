"""Stops queries that take too long.

A query runs inside `with time_limit(seconds)`. Every loop over reports, boxes, cells or groups calls `check_time`,
which raises `QueryTimeout` once the time is over. While DuckDB works no such loop runs:
`interrupting` interrupts it instead.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from hubbub.core.errors import HubbubError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

INTERRUPT_EVERY = 0.05
"""Seconds between interrupts of DuckDB after the deadline: one just before a statement begins has no effect."""
_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)
"""The `time.monotonic()` at which the query of this thread is stopped; None if it may take any time."""


class QueryTimeout(HubbubError, TimeoutError):
    """A query was stopped because it took longer than its time limit."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Let the queries that this thread runs inside the block take at most so many seconds in all."""
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
