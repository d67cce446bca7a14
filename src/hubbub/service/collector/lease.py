"""A process's signs of life in a store that several processes use, and its share in who leads."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from hubbub.service.base.logs import log, log_error
from hubbub.service.store.base import StoreFailed
from hubbub.service.store.joint import LEASE, JointStore
from hubbub.service.store.postgres import connect

BEAT = 0.5
"""Seconds between two signs of life."""


class Lease:
    """Tells the store that the process lives, and leads if nobody else does. Whoever stops giving signs is replaced.

    The clock is the database's. A lease that ran out does not keep its holder from writing: the epoch does, which every
    transaction of a leader checks (`JointStore`).

    Parameters
    ----------
    store, url
        The store, and its URL for a connection of its own: a long transaction must not look like a process that died.
    may_lead
        Whether the process may lead.
    """

    def __init__(self, store: JointStore, url: str, *, may_lead: bool) -> None:
        self._store, self._url, self._may_lead = store, url, may_lead
        self._connection: Any = None
        self._using = threading.Lock()
        self.elected: int | None = None
        """The epoch in which this process is to lead."""
        self.failure: str | None = None
        """Why this process may not go on."""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Give signs from a thread."""
        self._thread = threading.Thread(target=self._run, name="hubbub-lease", daemon=True)
        self._thread.start()

    def beat(self) -> None:
        """Give one sign: keep the lease, or take it if nobody has it."""
        with self._using:
            if self._connection is None:
                self._connection = connect(self._url)
            with self._connection.transaction():
                self._connection.execute(_SEEN, (self._store.worker,))
                if self.elected is not None:
                    held = self._connection.execute(_KEEP, (LEASE, self.elected, self._store.worker)).rowcount
                    if not held:
                        self.failure = "another process leads"
                elif self._may_lead and self._connection.execute(_FREE).fetchall():
                    ((epoch,),) = self._connection.execute(_TAKE, (self._store.worker, LEASE)).fetchall()
                    self.elected = int(epoch)

    @property
    def beats(self) -> bool:
        """Whether a thread gives the signs."""
        return self._thread is not None

    def resign(self) -> None:
        """End the lease, so that another process leads at once, and give no more signs."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        with self._using, suppress(Exception):  # if the database is gone, the lease runs out
            if self._connection is not None:
                with self._connection.transaction():
                    self._connection.execute("DELETE FROM workers WHERE worker = %s", (self._store.worker,))
                    self._connection.execute(_RESIGN, (self._store.worker,))
                self._connection.close()
        self._connection = None

    def _run(self) -> None:
        while not self._stopping.wait(BEAT):
            try:
                self.beat()
            except Exception as error:  # the connection is gone: the process ends, and another takes its place
                self.failure = f"no sign could be given: {type(error).__name__}"
                log_error("lease failed", error)
            if self.failure is not None:
                return

    def check(self) -> None:
        """Fail if this process may not go on."""
        if self.failure is not None:
            log("lease lost", detail=self.failure)
            raise StoreFailed(self.failure)


_SEEN = """INSERT INTO workers VALUES (%s, clock_timestamp())
    ON CONFLICT (worker) DO UPDATE SET seen = excluded.seen"""
_KEEP = """UPDATE leader SET until = clock_timestamp() + %s * INTERVAL '1 second'
    WHERE epoch = %s AND worker = %s"""
# A row that a transaction holds belongs to a leader that lives, or to one whose transaction the database ends soon.
_FREE = "SELECT 1 FROM leader WHERE until < clock_timestamp() FOR UPDATE SKIP LOCKED"
_TAKE = """UPDATE leader SET epoch = epoch + 1, worker = %s, until = clock_timestamp() + %s * INTERVAL '1 second'
    RETURNING epoch"""
_RESIGN = "UPDATE leader SET until = clock_timestamp() - INTERVAL '1 second' WHERE worker = %s"
