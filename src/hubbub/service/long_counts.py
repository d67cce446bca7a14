"""Counts that take long run in a thread of their own, so that the collector goes on taking reports meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from hubbub.service.store.base import CountRow

AT_ONCE = 1 << 33
"""The most tests of a report against a candidate that are made within a tick: about a second of one core."""
LOOK = 0.25
"""Seconds between two looks whether a count is done."""


@dataclass
class _Job:
    row: CountRow | None = None
    error: Exception | None = None
    done: bool = False


class LongCounts:
    """The counts under way, each under a key of the caller's.

    Nothing is stored of an unfinished count: after a restart it is made again from the beginning.
    """

    def __init__(self) -> None:
        self._jobs: dict[Hashable, _Job] = {}

    @property
    def waits(self) -> bool:
        """Whether a count is under way, or done and not yet taken."""
        return bool(self._jobs)

    def take(self, key: Hashable, make: Callable[[], CountRow]) -> CountRow | None:
        """The row of a count; None while it is under way. The first call starts it. Raises what the count raised."""
        job = self._jobs.get(key)
        if job is None:
            job = self._jobs[key] = _Job()
            # A daemon: the process may end without waiting for it.
            threading.Thread(target=_work, args=(job, make), name="hubbub-count", daemon=True).start()
        if not job.done:
            return None
        del self._jobs[key]
        if job.error is not None:
            raise job.error
        return job.row


def _work(job: _Job, make: Callable[[], CountRow]) -> None:
    try:
        job.row = make()
    except Exception as error:  # raised by `take`
        job.error = error
    job.done = True
