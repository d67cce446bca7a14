"""Watches the calls of questions' code: one that does not return is logged, and ends the process after a time.

Python cannot stop a call from outside, and the next start would call the same code again. So a question is marked in
the store: before code of another package runs, and before the watchdog ends the process. A start sets a question aside
if the watchdog marked it, or if the process ended within its code twice (once may be a power failure).
"""

from __future__ import annotations

import faulthandler
import json
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from hubbub.service.logs import log
from hubbub.service.store.base import StoreChanges
from hubbub.service.store.sql import Store

SILENT = 5.0
"""Seconds without a turn of the writer after which no reports are taken, as `/readyz` and the log then say."""
LIMIT = 120.0
"""Seconds that one call of a question's code may take. The slowest of our own takes a few."""
LAST_SECONDS = 25
"""Seconds after a signal to stop in which the process ends, whatever it is doing."""
_LOOK = 0.25
_MARKING = 5.0  # seconds that the store has to write a mark
_MARGIN = 10.0  # seconds more where even this thread cannot run

Place: TypeAlias = tuple[str, str]
"""The id of a collection, and the name of one of its questions."""

WHY = "its code did not return, or the collector ended twice while it was running"
"""Why a start sets a question aside."""
_ONCE, _SURE = 1, 2


class Watchdog:
    """What the collector is doing, for how long, and the thread that looks at it once it is started.

    Parameters
    ----------
    limit
        Seconds that a call may take before the process ends.
    end
        Ends the process with an exit code, at once.
    """

    def __init__(self, limit: float = LIMIT, end: Callable[[int], None] = os._exit) -> None:
        self._limit, self._end = limit, end
        self._store: Store | None = None
        self._names: Mapping[str, str] = {}
        self._aside: list[Place] = []  # set aside at the start: marked until the collector stops in order
        self._suspects: set[Place] = set()  # the process ended once within their code, which has not returned since
        self._marked: Place | None = None
        self._closing = False
        self._turn: float | None = None
        self._call: tuple[Callable[[], Place | None], str] | None = None
        self._deadline = math.inf
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    # -- what the collector tells -----------------------------------------------------------------------------

    def attach(self, store: Store, names: Mapping[str, str]) -> list[Place]:
        """Take the store for the marks, and the names of collections by id. Returns the questions to set aside."""
        self._store, self._names = store, names
        marks = json.loads(store.calling() or "[]")
        self._aside = [(collection, question) for collection, question, times in marks if times >= _SURE]
        self._suspects = {(collection, question) for collection, question, times in marks if times < _SURE}
        for collection, question in self._suspects:
            log("tried again", level=logging.WARNING, collection=names.get(collection), question=question)
        return list(self._aside)

    def turn(self) -> None:
        """The writer has come round: it can take reports."""
        self._turn = time.monotonic()

    @property
    def silent(self) -> bool:
        """Whether the writer has not come round for too long."""
        return self._turn is not None and time.monotonic() - self._turn > SILENT

    @contextmanager
    def call(self, place: Callable[[], Place | None], doing: str) -> Iterator[None]:
        """Code of a question runs inside; `place` says of which, when it is asked for."""
        before, self._call = self._call, (place, doing)
        try:
            yield
        finally:
            self._call = before

    def mark(self, place: Place | None, *, closing: bool = False) -> None:
        """Have the mark of this question, and of no other, in the store: code of another package is called next.

        `closing` if the code closes a step. Once that returns, the question is suspected no more.
        """
        if place != self._marked and self._store is not None:
            self._returned()
            self._store.commit(StoreChanges(calling=self._text(place)))
        self._marked, self._closing = place, closing

    def unmark(self, changes: StoreChanges) -> None:
        """Remove the mark with a commit that is made anyway: the code has returned."""
        if self._marked is not None:
            self._returned()
            changes.calling = self._text(None)

    def _returned(self) -> None:
        if self._marked is not None and self._closing:
            self._suspects.discard(self._marked)
        self._marked = None

    def stopped_in_order(self) -> None:
        """The collector stops, and nothing hangs: the next start tries the questions again that were set aside."""
        self._turn = None
        if self._aside and self._store is not None:
            self._aside = []
            self._store.commit(StoreChanges(calling="[]"))

    def end_soon(self) -> None:
        """A signal to stop has come: end the process in `LAST_SECONDS` if it has not ended by then."""
        self._deadline = min(self._deadline, time.monotonic() + LAST_SECONDS)

    # -- the thread -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start to look, unless that was done."""
        if self._thread is None:
            self._stopping.clear()
            self._arm()
            self._thread = threading.Thread(target=self._run, name="hubbub-watchdog", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._thread, self._deadline = None, math.inf

    def _run(self) -> None:
        # Seconds are added up look by look: a process that was stopped and goes on has not hung meanwhile.
        lasted, quiet, told = 0.0, 0.0, False
        seen = self._call, self._turn
        now = armed = time.monotonic()
        while not self._stopping.wait(_LOOK):
            before, now = now, time.monotonic()
            if now - armed > _MARGIN / 2:
                armed = now
                self._arm()
            current = self._call, self._turn
            passed = min(now - before, 4 * _LOOK)
            lasted = lasted + passed if current[0] is not None and current[0] is seen[0] else 0.0
            quiet = quiet + passed if current[1] is not None and current[1] == seen[1] else 0.0
            seen = current
            if told != (quiet > SILENT):
                told = not told
                self._tell(told, quiet)
            if lasted > self._limit:
                self._give_up(f"{self._doing()} did not return for {self._limit:g} seconds", marked=True)
            if now > self._deadline:
                self._give_up(f"{self._doing()} did not end within {LAST_SECONDS} seconds of the signal to stop")
        faulthandler.cancel_dump_traceback_later()

    def _arm(self) -> None:
        """Have the process ended from outside of Python, where a call lets no other thread run, this one included."""
        if self._end is os._exit and sys.__stderr__ is not None:
            faulthandler.dump_traceback_later(self._limit + _MARGIN, exit=True, file=sys.__stderr__)

    def _tell(self, stuck: bool, seconds: float) -> None:
        if stuck:
            log("writer stuck", level=logging.ERROR, doing=self._doing(), seconds=round(seconds, 1), limit=self._limit)
        else:
            log("writer goes on", level=logging.WARNING)

    def _give_up(self, detail: str, *, marked: bool = False) -> None:
        """End the process. A question whose call is over the limit is marked first."""
        place = self._place()
        if marked and place is not None:
            marking = threading.Thread(target=self._mark_for_sure, args=(place,), daemon=True)
            marking.start()
            marking.join(_MARKING)
            detail += "; the next start sets the question aside"
        log("stopped", level=logging.ERROR, error="Stuck", detail=detail)
        for handler in logging.getLogger("hubbub.service").handlers:
            handler.flush()
        self._end(1)

    def _mark_for_sure(self, place: Place) -> None:
        self._aside.append(place)
        if self._store is not None:
            self._store.commit(StoreChanges(calling=self._text(None)))

    def _place(self) -> Place | None:
        call = self._call
        return None if call is None else call[0]()

    def _doing(self) -> str:
        call, place = self._call, self._place()
        if call is None:
            return "the collector"
        of = "" if place is None else f" {place[1]} of {self._names.get(place[0], place[0])}"
        return call[1] + of

    def _text(self, place: Place | None) -> str:
        """The marks as JSON: collection, question, and how often the process ended there if it ends now."""
        marks = dict.fromkeys(self._suspects, _ONCE)
        if place is not None:
            marks[place] = _SURE if place in self._suspects else _ONCE
        marks |= dict.fromkeys(self._aside, _SURE)
        return json.dumps([[*where, times] for where, times in sorted(marks.items())])
