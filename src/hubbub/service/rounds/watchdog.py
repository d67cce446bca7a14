"""Watches the calls of questions' code: one that does not return is logged, and ends the process after a time.

Python cannot stop a call from outside, and the next start would call the same code again. So a question is marked in
the store: before code of another package runs, and before the watchdog ends the process. A start sets a question aside
if the watchdog marked it, or if the process ended within its code twice (once may be a power failure).
"""

import json
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Self, TypeAlias

from hubbub.core.plugins import is_foreign
from hubbub.mechanisms import MECHANISMS
from hubbub.questions.collection import Collection
from hubbub.service.base.logs import log
from hubbub.service.store.base import StoreChanges
from hubbub.service.store.sql import Store

SILENT = 5.0
"""Seconds without a turn of the writer after which no reports are taken, as `/readyz` and the log then say."""
LIMIT = 120.0
"""Seconds that one call of a question's code may take. The slowest of our own takes a few."""
LAST_SECONDS = 25
"""Seconds after a signal to stop in which the process ends, even if code hangs."""
_LOOK = 0.25
_MARKING = 5.0  # seconds that the store has to write a mark
_MARGIN = 10.0  # seconds more, of the processor, where even this thread cannot run

Place: TypeAlias = tuple[str, str]
"""The id of a collection, and the name of one of its questions."""

_Call: TypeAlias = tuple[Callable[[], Place | None], str]

WHY = "its code did not return, or the collector ended twice while it was running"
"""Why a start sets a question aside."""
_SURE = 2


def runs_foreign_code(collection: Collection, question: str) -> bool:
    """Whether the kind of a question, a mechanism that it names, or a domain that it reads is of another package."""
    asked = collection.questions[question]
    if is_foreign(type(asked)) or any(is_foreign(type(domain)) for domain in asked.setting.domains.values()):
        return True
    names = [name for name in asked.spec().values() if isinstance(name, str) and name in MECHANISMS]
    return any(is_foreign(MECHANISMS[name]) for name in names)


class Watchdog:
    """What the collector is doing, and for how long. A thread looks at it within `with watchdog:`.

    `limit`: seconds that a call may take before the process ends.
    """

    def __init__(self, limit: float = LIMIT, end: Callable[[int], None] = os._exit) -> None:
        self._limit, self._end = limit, end
        self._store: Store | None = None
        self._names: Mapping[str, str] = {}
        self._ended: dict[Place, int] = {}  # how often the process ended in a question's code, which never returned
        self._marked: Place | None = None
        self._closing = False
        self._turn: float | None = None
        self._call: _Call | None = None
        self._deadline = math.inf
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    # -- what the collector tells -----------------------------------------------------------------------------

    def attach(self, store: Store, names: Mapping[str, str]) -> list[Place]:
        """Take the store for the marks, and the names of collections by id. Returns the questions to set aside."""
        self._store, self._names = store, names
        self._ended = {(place[0], place[1]): times for *place, times in json.loads(store.calling() or "[]")}
        for (collection, question), times in self._ended.items():
            if times < _SURE:
                log("tried again", level=logging.WARNING, collection=names.get(collection), question=question)
        return [place for place, times in self._ended.items() if times >= _SURE]

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
            self._store.commit(StoreChanges(calling=self._marks(place)))
        self._marked, self._closing = place, closing

    def unmark(self, changes: StoreChanges) -> None:
        """Remove the mark with a commit that is made anyway: the code has returned."""
        if self._marked is not None:
            self._returned()
            changes.calling = self._marks()

    def _returned(self) -> None:
        if self._marked is not None and self._closing:
            self._ended.pop(self._marked, None)
        self._marked = None

    def stopped_in_order(self) -> None:
        """The collector stops, and nothing hangs: the next start tries the questions again that were set aside."""
        self._turn = None
        if self._ended and self._store is not None:
            self._ended = {}
            self._store.commit(StoreChanges(calling=self._marks()))

    def end_soon(self) -> None:
        """A signal to stop has come: end the process in `LAST_SECONDS` if it has not ended by then."""
        self._deadline = min(self._deadline, time.monotonic() + LAST_SECONDS)

    def _marks(self, place: Place | None = None) -> str:
        """Collections, questions, and how often the process has ended there if it ends now, within `place`."""
        marks = self._ended if place is None else {**self._ended, place: self._ended.get(place, 0) + 1}
        return json.dumps([[*where, times] for where, times in sorted(marks.items())])

    # -- the thread -------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self._thread is None:
            self._stopping.clear()
            self._arm(self._limit + _MARGIN)
            self._thread = threading.Thread(target=self._run, name="hubbub-watchdog", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._arm(0.0)
        self._thread, self._deadline = None, math.inf

    def _run(self) -> None:
        lasted, quiet, reported = 0.0, 0.0, False
        call, turn, now = self._call, self._turn, time.monotonic()
        while not self._stopping.wait(_LOOK):
            self._arm(self._limit + _MARGIN)
            before, now = now, time.monotonic()
            passed = min(now - before, 4 * _LOOK)  # a process that was stopped and goes on has not hung meanwhile
            last_call, call, last_turn, turn = call, self._call, turn, self._turn
            lasted = lasted + passed if call is not None and call is last_call else 0.0
            quiet = quiet + passed if turn is not None and turn == last_turn else 0.0
            if reported != (quiet > SILENT):
                reported = not reported
                if reported:
                    log("writer stuck", level=logging.ERROR, doing=self._doing(call), limit=self._limit)
                else:
                    log("writer goes on", level=logging.WARNING)
            if call is not None and lasted > self._limit:
                did = self._mark_for_sure(call[0]())
                self._give_up(f"{self._doing(call)} did not return for {self._limit:g} seconds; {did}")
            if now > self._deadline:
                self._give_up(f"{self._doing(call)} did not end within {LAST_SECONDS} seconds of the signal to stop")

    def _arm(self, seconds: float) -> None:
        """Have the system end the process (SIGPROF) after these seconds of processor time, unless this is called again.

        A call may let no other thread run, this one included. A process that is stopped spends no such time.
        """
        signal.setitimer(signal.ITIMER_PROF, seconds)

    def _give_up(self, detail: str) -> None:
        log("stopped", level=logging.ERROR, error="Stuck", detail=detail)
        self._end(1)

    def _mark_for_sure(self, place: Place | None) -> str:
        """Have the next start set a question aside. Returns whether it will, in words."""
        if place is None or self._store is None:
            return "no question is known"
        self._ended[place] = _SURE
        try:  # in a thread: the store may hang as well
            ThreadPoolExecutor(1).submit(self._store.commit, StoreChanges(calling=self._marks())).result(_MARKING)
        except Exception as error:  # the process ends all the same
            return f"the store has no mark of it ({type(error).__name__})"
        return "the next start sets the question aside"

    def _doing(self, call: _Call | None) -> str:
        if call is None:
            return "the collector"
        place, doing = call[0](), call[1]
        return doing if place is None else f"{doing} {place[1]} of {self._names.get(place[0], place[0])}"
