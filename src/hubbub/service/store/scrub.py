"""Compares all that is stored with its checksums in the background, a little at a time, again and again."""

import logging
import threading
import time
from collections.abc import Callable

from hubbub.service.base.logs import log
from hubbub.service.store.base import StoreDamaged, StoreFailed
from hubbub.service.store.checksums import CHECKED
from hubbub.service.store.sql import Store

PAUSE = 86_400.0
"""Seconds between the end of a pass and the next."""
SHARE = 0.1
"""The share of a processor that a pass takes."""
_PLACES = 64
"""Places of rows that are read at a time."""

_LONGEST_END = 2.0


class Scrub:
    """Looks at all that is stored: the pages and indexes of SQLite, and every row that has a checksum.

    The first damage is noted in the store, which refuses every later commit, so that its collector stops.

    Parameters
    ----------
    store
        The store, which stays open as long as this runs.
    pause, share
        Seconds between two passes, and the share of a processor that a pass takes.
    """

    def __init__(self, store: Store, *, pause: float = PAUSE, share: float = SHARE) -> None:
        self._store, self._pause, self._share = store, pause, share
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hubbub-scrub", daemon=True)
        self.progress = 0.0
        """The share of the pass under way that is done."""
        self.rows = 0
        """Rows compared so far, in all passes."""
        self.passes = 0
        """Complete passes so far."""
        self.last = 0.0
        """The Unix time of the end of the last complete pass; 0 if there was none."""

    def start(self) -> None:
        """Begin the first pass, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread. If it is in the middle of a large file's structure, it ends with the process."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(_LONGEST_END)

    def check(self, pause: Callable[[float], object] = lambda spent: None) -> None:
        """Make one pass, and raise `StoreDamaged` at the first damage.

        `pause` is called after each few rows with the seconds of work that they took.
        """
        try:
            self._check(pause)
        except StoreDamaged as error:
            self._store.damage = error
            raise

    def _check(self, pause: Callable[[float], object]) -> None:
        began = time.perf_counter()
        self.progress = 0.0
        with self._store.inspect() as inspection:
            inspection.check_structure()
            extents = {table: inspection.extent(table) for table in CHECKED}
            places, done = sum(map(len, extents.values())), 0
            for table, extent in extents.items():
                for start in range(extent.start, extent.stop, _PLACES):
                    self.rows += inspection.check(table, range(start, min(start + _PLACES, extent.stop)))
                    done += _PLACES
                    self.progress = min(done / places, 1.0)
                    pause(time.perf_counter() - began)
                    began = time.perf_counter()
                    if self._ending.is_set():
                        return
        self.progress, self.passes, self.last = 1.0, self.passes + 1, time.time()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self.check(lambda spent: self._ending.wait(spent * (1 / self._share - 1)))
            except StoreDamaged as error:
                log("store damaged", level=logging.ERROR, detail=str(error))
                return
            except StoreFailed as error:  # the database is away: commits fail too, if it stays so
                log("store not checked", level=logging.WARNING, detail=str(error))
            self._ending.wait(self._pause)
