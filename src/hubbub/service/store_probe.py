"""Probes, in a thread of its own, whether the store takes commits. A store that does not answer blocks nobody."""

from __future__ import annotations

import asyncio
import logging
import threading
import time

from hubbub.service.logs import log
from hubbub.service.store.base import StoreFailed
from hubbub.service.store.sql import Store

FRESH_SECONDS = 1.0
"""Seconds for which the result of a probe is reused."""
PATIENCE = 1.0
"""Seconds that the store has to answer."""
_FAILED = "commits are not taken; the log says why"
_SILENT = "there is no answer"


class StoreProbe:
    """Probes a store, with one probe at a time. While a probe gets no answer, the store counts as not ready."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._probing: threading.Thread | None = None
        self._answered = -FRESH_SECONDS
        self.problem: str | None = None
        """What was wrong at the latest probe."""

    async def look(self) -> str | None:
        """What is wrong with the store; None if nothing is."""
        if self._probing is None and time.monotonic() - self._answered >= FRESH_SECONDS:
            self._probing = threading.Thread(target=self._probe, name="hubbub-probe", daemon=True)
            self._probing.start()
        deadline = time.monotonic() + 2 * PATIENCE
        while self._probing is not None:
            if time.monotonic() >= deadline:
                self._set_problem(_SILENT, "")
                break
            await asyncio.sleep(0.005)
        return self.problem

    def _probe(self) -> None:
        try:
            self._store.probe(PATIENCE)
        except StoreFailed as error:
            self._set_problem(_FAILED, str(error))
        except Exception as error:  # the store is being closed
            self._set_problem(_FAILED, type(error).__name__)
        else:
            self._set_problem(None, "")
        self._answered, self._probing = time.monotonic(), None

    def _set_problem(self, problem: str | None, detail: str) -> None:
        before, self.problem = self.problem, problem
        if problem is not None and before is None:
            log("store not ready", level=logging.WARNING, detail=detail or problem)
        elif problem is None and before is not None:
            log("store ready")
