"""Several processes of one collector on one machine: forked from a parent, which starts those again that end."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hubbub.core.errors import InvalidValue
from hubbub.service.base.logs import log

_LOOK = 0.1
_FIRST_WAIT, _LONGEST_WAIT = 0.25, 5.0
_STEADY = 10.0  # seconds after which a process counts as one that works


@dataclass
class Worker:
    """A process, as it knows itself."""

    number: int
    _ready: int
    _parent: int

    def ready(self) -> None:
        """Tell the parent that requests are answered, and end in order when the parent ends."""
        os.write(self._ready, b".")
        threading.Thread(target=self._watch, name="hubbub-parent", daemon=True).start()

    def _watch(self) -> None:
        os.read(self._parent, 1)  # returns when the parent is gone
        os.kill(os.getpid(), signal.SIGTERM)


@dataclass
class _Child:
    number: int
    pid: int = 0
    began: float = 0.0
    wait: float = 0.0
    heard: int = -1
    ready: bool = False


@dataclass
class _Parent:
    """The process that starts the others. It takes no reports."""

    children: list[_Child]
    on_ready: Callable[[], None]
    stopping: bool = False
    code: int = 0
    ever_ready: bool = False
    _told: bool = False
    _pipe: tuple[int, int] = field(default_factory=os.pipe)

    def run(self) -> Worker | None:
        """Start the processes. Returns in each of them; in the parent, None when all have ended."""
        handlers = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        while True:
            for child in self.children:
                if not child.pid and not self.stopping and time.monotonic() >= child.began + child.wait:
                    worker = self._start(child)
                    if worker is not None:
                        for number, handler in handlers.items():
                            signal.signal(number, handler)
                        return worker
            if self.stopping and not any(child.pid for child in self.children):
                return None
            self._look()

    def _start(self, child: _Child) -> Worker | None:
        heard, ready = os.pipe()
        child.pid = os.fork()
        if child.pid:
            os.close(ready)
            child.heard, child.began, child.ready = heard, time.monotonic(), False
            return None
        os.close(heard)
        os.close(self._pipe[1])  # else no process would notice that the parent ends
        for other in self.children:
            if other.heard >= 0:
                os.close(other.heard)
        return Worker(child.number, ready, self._pipe[0])

    def _look(self) -> None:
        waiting = {child.heard: child for child in self.children if child.pid and not child.ready and child.heard >= 0}
        for heard in select.select(list(waiting), [], [], _LOOK)[0]:
            if os.read(heard, 1):
                waiting[heard].ready = self.ever_ready = True
            else:  # it ends
                time.sleep(_LOOK)
        if not self._told and all(child.ready for child in self.children):
            self._told = True
            self.on_ready()
        for child in self.children:
            if child.pid and (ended := os.waitpid(child.pid, os.WNOHANG))[0]:
                self._ended(child, os.waitstatus_to_exitcode(ended[1]))

    def _ended(self, child: _Child, code: int) -> None:
        lasted = time.monotonic() - child.began
        os.close(child.heard)
        child.pid, child.heard = 0, -1
        if self.stopping:
            self.code = self.code or int(code != 0)
            return
        log("worker ended", worker=child.number, code=code)
        if not self.ever_ready:  # it does not start at all: neither would the others
            self.code = code if code > 0 else 1
            self._stop()
            return
        child.wait = 0.0 if lasted > _STEADY else min(max(2 * child.wait, _FIRST_WAIT), _LONGEST_WAIT)
        child.began = time.monotonic()

    def _stop(self, *_signal: object) -> None:
        self.stopping = True
        for child in self.children:
            if child.pid:
                os.kill(child.pid, signal.SIGTERM)


def fork_workers(count: int, on_ready: Callable[[], None]) -> Worker | int:
    """Fork processes, and start each again that ends before a signal to stop.

    Returns in each of the processes, which go on as if they were alone; and in the parent the exit code, when all have
    ended.

    Parameters
    ----------
    count
        How many processes.
    on_ready
        Called once, in the parent, when all of them answer requests.
    """
    if not hasattr(os, "fork"):
        raise InvalidValue("workers", count, "1 on this system: start several processes behind a proxy instead")
    parent = _Parent([_Child(number) for number in range(count)], on_ready)
    worker = parent.run()
    return parent.code if worker is None else worker
