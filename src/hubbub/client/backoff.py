"""Random delays before the next try, on a clock that may jump."""

from __future__ import annotations

from hubbub.core.random import Random


def uniform(rng: Random) -> float:
    """A random number from 0 to below 1, for delays: privacy does not depend on it."""
    return float(rng.uint32(1)[0]) / (1 << 32)


class Delay:
    """A wait of some seconds from now. It is over at once if the clock is set back before its beginning."""

    def __init__(self, now: float, seconds: float) -> None:
        self.since, self.until = now, now + seconds

    def over(self, now: float) -> bool:
        """Whether the wait is over."""
        return not self.since <= now < self.until


class Backoff:
    """Exponential backoff with full jitter: after k failures in a row, anything up to base 2^k seconds, at most `cap`.

    Parameters
    ----------
    rng
        Where the delays come from.
    base, cap
        Seconds.
    """

    def __init__(self, rng: Random, *, base: float = 1.0, cap: float = 3600.0) -> None:
        self._rng, self._base, self._cap = rng, base, cap
        self._failures = 0
        self._delay: Delay | None = None

    def ready(self, now: float) -> bool:
        """Whether it is time to try."""
        return self._delay is None or self._delay.over(now)

    def failed(self, now: float, at_least: float = 0.0) -> None:
        """Wait after a failure, for at least as long as the server asked for."""
        self._failures += 1
        most = min(self._cap, self._base * 2.0 ** min(self._failures, 30))
        self._delay = Delay(now, max(uniform(self._rng) * most, min(at_least, self._cap)))

    def succeeded(self) -> None:
        """Reset after a success: the next failure counts as the first."""
        self._failures, self._delay = 0, None
