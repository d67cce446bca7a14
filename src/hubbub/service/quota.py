"""Quotas: a token bucket for each collection, or for each sender."""

from __future__ import annotations

from hubbub.collection import Clock
from hubbub.core.errors import InvalidValue


class Quota:
    """Token buckets, one for each name: `rate` reports a second, and `burst` at once.

    Parameters
    ----------
    rate
        Reports a second, in the long run.
    burst
        Reports at once.
    clock
        The time.
    most
        The most buckets. Beyond it, the bucket that was used longest ago is forgotten, which fills it.
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
        """Take `count` tokens and return 0; or, if too few are left, take none and return the seconds to wait.

        A count above the burst is let through when the bucket is full, and leaves it in debt.
        """
        now = self._clock.now()
        left, wanted = self._pop(name, now), min(count, self.burst)
        if left < wanted:
            self._put(name, left, now)
            return (wanted - left) / self.rate
        self._put(name, left - count, now)
        return 0.0

    def owe(self, name: str, count: int) -> None:
        """Take `count` tokens even if the bucket goes into debt; a negative count gives tokens back."""
        now = self._clock.now()
        self._put(name, self._pop(name, now) - count, now)

    def left(self, name: str) -> float:
        """How many tokens are left; negative if the bucket is in debt."""
        left, then = self._left.get(name, (float(self.burst), 0.0))
        return min(self.burst, left + max(self._clock.now() - then, 0.0) * self.rate)

    def clear(self) -> None:
        """Forget all buckets."""
        self._left.clear()

    def _pop(self, name: str, now: float) -> float:
        """Remove a bucket; how many tokens it has now."""
        left, then = self._left.pop(name, (float(self.burst), now))
        return min(self.burst, left + max(now - then, 0.0) * self.rate)

    def _put(self, name: str, left: float, now: float) -> None:
        if len(self._left) >= self._most:
            del self._left[next(iter(self._left))]
        self._left[name] = (left, now)
