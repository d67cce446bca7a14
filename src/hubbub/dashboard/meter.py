"""How many reports came in lately."""

import math
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hubbub.collection import Clock


@dataclass(frozen=True)
class Interval:
    """How many reports were accepted and rejected in an interval of time."""

    start: float
    seconds: float
    accepted: int
    rejected: int


_MINUTE = 60.0
_ACCEPTED, _ASIDE = "accepted", ("duplicate", "cover")


class Meter:
    """Counts of the last while by collection. What came before the collector began is looked up.

    `earlier`: what was counted before this one began, by collection: minutes of Unix time, accepted and rejected.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        seconds: float = 10.0,
        keep: int = 360,
        earlier: Mapping[str, Sequence[tuple[int, int, int]]] | None = None,
    ) -> None:
        self._clock = clock
        self._seconds = seconds
        self._keep = keep
        self._began = clock.now()
        self._earlier = {name: self._before(rows) for name, rows in (earlier or {}).items()}
        self._lock = threading.Lock()
        self._counts: defaultdict[str, dict[int, list[int]]] = defaultdict(dict)

    def add(self, added: Mapping[tuple[str, str], int]) -> None:
        """Take in what was counted just now, by collection id and outcome; duplicates and cover are left aside."""
        now = self._place()
        with self._lock:
            for (collection, outcome), number in added.items():
                if outcome in _ASIDE:
                    continue
                counts = self._counts[collection]
                counts.setdefault(now, [0, 0])[outcome != _ACCEPTED] += number
                if len(counts) > 2 * self._keep:
                    self._counts[collection] = {
                        place: pair for place, pair in counts.items() if place > now - self._keep
                    }

    def intervals(self, collection: str) -> list[Interval]:
        """The last while, oldest first, without gaps; the last one ends now."""
        now, last = self._clock.now(), self._place()
        first = max(last - self._keep + 1, 0)
        with self._lock:
            counts = dict(self._counts.get(collection, {}))
        since = now - self._keep * self._seconds
        known = [interval for interval in self._earlier.get(collection, ()) if interval.start >= since]
        for place in range(first, last + 1):
            start = self._began + place * self._seconds
            accepted, rejected = counts.get(place, (0, 0))
            known.append(Interval(start, min(self._seconds, max(now - start, 1e-3)), accepted, rejected))
        return known

    def _before(self, rows: Sequence[tuple[int, int, int]]) -> list[Interval]:
        """The minutes from the first in which something came until the beginning, without gaps."""
        known = {minute: counts for minute, *counts in rows}
        minutes = []
        for minute in range(min(known, default=1 << 62), math.ceil(self._began / _MINUTE)):
            accepted, rejected = known.get(minute, (0, 0))
            start = minute * _MINUTE
            minutes.append(Interval(start, min(_MINUTE, self._began - start), accepted, rejected))
        return minutes

    def _place(self) -> int:
        # A clock that was set back counts into the first interval, rather than none.
        return max(math.floor((self._clock.now() - self._began) / self._seconds), 0)
