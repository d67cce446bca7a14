"""Whether the store takes commits, looked at in a thread of its own: a store that does not answer stops nobody."""

from __future__ import annotations

import asyncio
import logging
import threading
import time

from hubbub.service.logs import log
from hubbub.service.store.base import StoreFailed
from hubbub.service.store.sql import Store

KEPT = 1.0
"""Seconds for which an answer stands."""
PATIENCE = 1.0
"""Seconds that the store has to answer."""
_FAILED = "commits are not taken; the log says why"
_SILENT = "there is no answer"


class StoreProbe:
    """Asks a store now and then. One question at a time: as long as it is not answered, that is the answer.

    Example:
        >>> from hubbub.service.store import open_store
        >>> probe = StoreProbe(open_store("sqlite:///:memory:"))
        >>> print(asyncio.run(probe.look()))
        None
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asking: threading.Thread | None = None
        self._answered = -KEPT
        self.problem: str | None = None
        """What was wrong when it was last looked at."""

    async def look(self) -> str | None:
        """What is wrong with the store; None if nothing is."""
        if self._asking is None and time.monotonic() - self._answered >= KEPT:
            self._asking = threading.Thread(target=self._ask, name="hubbub-probe", daemon=True)
            self._asking.start()
        deadline = time.monotonic() + 2 * PATIENCE
        while self._asking is not None:
            if time.monotonic() >= deadline:
                self._found(_SILENT, "")
                break
            await asyncio.sleep(0.005)
        return self.problem

    def _ask(self) -> None:
        try:
            self._store.probe(PATIENCE)
        except StoreFailed as error:
            self._found(_FAILED, str(error))
        except Exception as error:  # it is being closed
            self._found(_FAILED, type(error).__name__)
        else:
            self._found(None, "")
        self._answered, self._asking = time.monotonic(), None

    def _found(self, problem: str | None, detail: str) -> None:
        before, self.problem = self.problem, problem
        if problem is not None and before is None:
            log("store not ready", level=logging.WARNING, detail=detail or problem)
        elif problem is None and before is not None:
            log("store ready")
