"""Quotas: a token bucket for each collection."""

from __future__ import annotations

from hubbub.collection import Clock
from hubbub.core.errors import InvalidValue

__all__ = ["Quota"]


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

    def __init__(self, *, rate: float, burst: int, clock: Clock) -> None:
        if not rate > 0:
            raise InvalidValue("rate", rate, "a number above 0")
        if not burst >= 1:
            raise InvalidValue("burst", burst, "at least 1")
        self.rate = rate
        self.burst = burst
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, collection: str, count: int) -> float:
        """Take so many, if they are there: 0. Otherwise nothing is taken: the seconds until they will be.

        More than the burst never fit: they are let through when the bucket is full, and leave it in debt.
        """
        now = self._clock.now()
        left, then = self._left.get(collection, (float(self.burst), now))
        left = min(self.burst, left + max(now - then, 0.0) * self.rate)
        wanted = min(count, self.burst)
        if left < wanted:
            self._left[collection] = (left, now)
            return (wanted - left) / self.rate
        self._left[collection] = (left - count, now)
        return 0.0
