"""Counts that take long are made in a thread of their own: meanwhile reports are taken, and asks opened and closed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from hubbub.service.store.base import CountRow

AT_ONCE = 1 << 33
"""How many tests of a report against a candidate are made at once: about a second of one core."""
LOOK = 0.25
"""Seconds between one look whether a count is done and the next."""


@dataclass
class _Job:
    made: CountRow | None = None
    failed: Exception | None = None
    over: bool = False


class LongCounts:
    """Counts that are under way, by whatever tells them apart.

    What a collector that ends has not finished is counted again by the next: nothing is stored of it before.

    Example:
        >>> counts = LongCounts()
        >>> row = CountRow("0" * 32, "q", 0, 3, 0, "1" * 32, "[7]", 10, "[4]")
        >>> while (made := counts.take("q", lambda: row)) is None:
        ...     assert counts.waits
        >>> made.support, counts.waits
        ('[4]', False)
    """

    def __init__(self) -> None:
        self._jobs: dict[Hashable, _Job] = {}

    @property
    def waits(self) -> bool:
        """Whether something is under way, or waits to be taken."""
        return bool(self._jobs)

    def take(self, key: Hashable, make: Callable[[], CountRow]) -> CountRow | None:
        """What was made, once; None until then. The first to ask begins it. What it raised, this raises."""
        job = self._jobs.get(key)
        if job is None:
            job = self._jobs[key] = _Job()
            # Nobody waits for it at the end of the process.
            threading.Thread(target=_work, args=(job, make), name="hubbub-count", daemon=True).start()
        if not job.over:
            return None
        del self._jobs[key]
        if job.failed is not None:
            raise job.failed
        return job.made


def _work(job: _Job, make: Callable[[], CountRow]) -> None:
    try:
        job.made = make()
    except Exception as error:  # told to whoever takes it
        job.failed = error
    job.over = True
