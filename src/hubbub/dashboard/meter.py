"""How fast reports come in: what was counted lately, interval by interval, in memory."""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Mapping

from hubbub.collection import Clock
from hubbub.dashboard.reader import Interval

__all__ = ["Meter"]

_ACCEPTED, _DUPLICATE = "accepted", "duplicate"


class Meter:
    """Counts of the last while by collection. It begins empty whenever the collector does.

    Parameters
    ----------
    clock
        The time.
    seconds
        How long an interval is.
    keep
        How many of them are kept.

    Example:
        >>> from hubbub.collection import ManualClock
        >>> clock = ManualClock(100.0)
        >>> meter = Meter(clock, seconds=10.0)
        >>> meter.add({("id", "accepted"): 5, ("id", "late"): 1})
        >>> clock.advance(25)
        >>> [(one.start, one.seconds, one.accepted, one.rejected) for one in meter.intervals("id")]
        [(100.0, 10.0, 5, 1), (110.0, 10.0, 0, 0), (120.0, 5.0, 0, 0)]
    """

    def __init__(self, clock: Clock, *, seconds: float = 10.0, keep: int = 360) -> None:
        self._clock = clock
        self._seconds = seconds
        self._keep = keep
        self._began = clock.now()
        self._lock = threading.Lock()
        self._counts: defaultdict[str, dict[int, list[int]]] = defaultdict(dict)

    def add(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Take in what was counted just now, by collection id and outcome; a duplicate is neither here nor there."""
        now = self._place()
        with self._lock:
            for (collection, outcome), number in counts.items():
                if outcome == _DUPLICATE:
                    continue
                kept = self._counts[collection]
                kept.setdefault(now, [0, 0])[outcome != _ACCEPTED] += number
                if len(kept) > 2 * self._keep:
                    self._counts[collection] = {place: pair for place, pair in kept.items() if place > now - self._keep}

    def intervals(self, collection: str) -> list[Interval]:
        """The last while, oldest first, without gaps; the last one ends now."""
        now, last = self._clock.now(), self._place()
        first = max(last - self._keep + 1, 0)
        with self._lock:
            kept = dict(self._counts.get(collection, {}))
        found = []
        for place in range(first, last + 1):
            start = self._began + place * self._seconds
            accepted, rejected = kept.get(place, (0, 0))
            found.append(Interval(start, min(self._seconds, max(now - start, 1e-3)), accepted, rejected))
        return found

    def _place(self) -> int:
        # A clock that was set back counts into the first interval, rather than none.
        return max(math.floor((self._clock.now() - self._began) / self._seconds), 0)
