"""Quotas: a token bucket for each collection, or for each sender."""

from __future__ import annotations

from hubbub.collection import Clock
from hubbub.core.errors import InvalidValue


class Quota:
    """So many reports a second, and so many at once.

    Parameters
    ----------
    rate
        Reports a second, in the long run.
    burst
        Reports at once.
    clock
        The time.
    most
        How many buckets there are at most: the one that was asked longest ago is forgotten, which fills it.

    Example:
        >>> from hubbub.collection import ManualClock
        >>> clock = ManualClock()
        >>> quota = Quota(rate=10.0, burst=20, clock=clock)
        >>> quota.take("a", 20), quota.take("a", 1), quota.take("b", 20)
        (0.0, 0.1, 0.0)
        >>> clock.advance(0.1)
        >>> quota.take("a", 1)
        0.0
    """

    def __init__(self, *, rate: float, burst: int, clock: Clock, most: int = 1 << 16) -> None:
        if not rate > 0:
            raise InvalidValue("rate", rate, "a number above 0")
        if not burst >= 1:
            raise InvalidValue("burst", burst, "at least 1")
        self.rate = rate
        self.burst = burst
        self._clock = clock
        self._most = most
        self._left: dict[str, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._left)

    def take(self, name: str, count: int) -> float:
        """Take so many, if they are there: 0. Otherwise nothing is taken: the seconds until they will be.

        More than the burst never fit: they are let through when the bucket is full, and leave it in debt.
        """
        now = self._clock.now()
        left, wanted = self._there(name, now), min(count, self.burst)
        if left < wanted:
            self._put(name, left, now)
            return (wanted - left) / self.rate
        self._put(name, left - count, now)
        return 0.0

    def owe(self, name: str, count: int) -> None:
        """Take so many, whether they are there or not, or give some back: the bucket may be in debt for a while."""
        now = self._clock.now()
        self._put(name, self._there(name, now) - count, now)

    def left(self, name: str) -> float:
        """How many are there; below 0 if it is in debt."""
        left, then = self._left.get(name, (float(self.burst), 0.0))
        return min(self.burst, left + max(self._clock.now() - then, 0.0) * self.rate)

    def clear(self) -> None:
        """Forget everyone."""
        self._left.clear()

    def _there(self, name: str, now: float) -> float:
        left, then = self._left.pop(name, (float(self.burst), now))
        return min(self.burst, left + max(now - then, 0.0) * self.rate)

    def _put(self, name: str, left: float, now: float) -> None:
        if len(self._left) >= self._most:
            del self._left[next(iter(self._left))]
        self._left[name] = (left, now)
