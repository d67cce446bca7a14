"""The limits of a collector on reports, senders and connections, quotas, and why a report is not counted."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from hubbub.collection import Clock
from hubbub.core.errors import HubbubError, InvalidValue

_SPARE_FILES = 128  # for the store, its files, and the sockets that listen


@dataclass(frozen=True)
class Ceilings:
    """The most reports that are taken. They bound memory, disk and the time of a start, whatever is sent.

    Parameters
    ----------
    ask
        Reports to one ask. Each id takes 24 bytes on the disk and about 6 in memory.
    kept_ask
        Reports to one ask of a question that keeps single reports. All of them are in memory when they become a file.
    held
        Reports to all asks together whose ids are held.
    """

    ask: int = 30_000_000
    kept_ask: int = 5_000_000
    held: int = 60_000_000

    def __post_init__(self) -> None:
        for name, most in vars(self).items():
            if not most >= 1:
                raise InvalidValue(f"ceiling of reports ({name})", most, "at least 1")


@dataclass(frozen=True)
class SenderLimits:
    """How much one sender may send, and how a proxy proves who the sender is.

    Parameters
    ----------
    rate, burst
        Reports per second in the long run, and at once. Any request counts as one report at least.
    secret
        The key of the proxy's signature in `X-Hubbub-Sender`. Without it the header is ignored, and requests from the
        same machine, which may come from a proxy, are not limited by sender.
    most
        The most senders that are counted separately.
    """

    rate: float = 5_000.0
    burst: int = 20_000
    secret: bytes | None = None
    most: int = 1 << 16


@dataclass(frozen=True)
class ConnectionLimits:
    """The limits on connections.

    Parameters
    ----------
    connections
        Connections at a time; fewer, if the process may not open as many files. For one more, the connection that has
        kept the server waiting longest is closed.
    sender_connections
        Connections at a time from one address that is not a proxy's.
    header_bytes, headers
        Bytes of a request's first line and header lines, and the number of header lines.
    pipelined
        Requests of a connection that wait for an earlier one to be answered.
    header_seconds, body_seconds, idle_seconds
        Seconds for a request's header to arrive, then for its body, and between two requests of a connection.
    write_seconds
        Seconds that an answer may wait for its client to read.
    unread_bytes
        Bytes of all answers that wait for their clients to read.
    """

    connections: int = 4096
    sender_connections: int = 256
    header_bytes: int = 16 << 10
    headers: int = 64
    pipelined: int = 16
    header_seconds: float = 10.0
    body_seconds: float = 35.0
    idle_seconds: float = 75.0
    write_seconds: float = 20.0
    unread_bytes: int = 128 << 20

    @property
    def most(self) -> int:
        """The most connections, given how many files the process may open."""
        return max(min(self.connections, _most_files() - _SPARE_FILES), 1)


@dataclass(frozen=True)
class Limits:
    """All limits: bytes of a request and of a shuffled batch, reports of a collection a second and at once."""

    most_bytes: int = 4 << 20
    shuffled_bytes: int = 64 << 20
    rate: float = 500_000.0
    burst: int = 1_000_000
    ceilings: Ceilings = field(default_factory=Ceilings)
    senders: SenderLimits = field(default_factory=SenderLimits)
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)


def _most_files() -> int:
    try:
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
    except ImportError:  # Windows
        return 1 << 30
    soft, _ = getrlimit(RLIMIT_NOFILE)
    return 1 << 30 if soft == RLIM_INFINITY else soft


class Quota:
    """Token buckets, one for each name: `rate` reports per second, and `burst` at once.

    `rate`: reports per second, in the long run. `burst`: reports at once. `most`: the most buckets. Beyond it, the
    bucket that was used longest ago is forgotten, which fills it.
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


Reason = Literal[
    "unknown_collection",
    "unknown_ask",
    "outdated_version",
    "replay",
    "too_early",
    "late",
    "malformed",
    "too_large",
    "over_quota",
    "over_sender_quota",
    "over_ceiling",
    "not_shuffled",
    "under_minimum",
]
"""A duplicate (the same id with the same bytes) is not refused: it was counted before."""

REASONS: tuple[Reason, ...] = get_args(Reason)


class RefusedRequest(HubbubError):
    """A whole request is refused. It held `count` reports, as far as is known; a retry after `wait` seconds may
    work.
    """

    def __init__(self, reason: Reason, detail: str, *, collection: str = "", count: int = 1, wait: float = 0.0) -> None:
        self.reason = reason
        self.detail = detail
        self.collection = collection
        self.count = count
        self.wait = wait
        super().__init__(f"{reason}: {detail}")


@dataclass
class Receipt:
    """How many reports were counted now or before, and the id and reason of each report that was rejected."""

    accepted: int = 0
    duplicates: int = 0
    rejected: list[tuple[str, Reason]] = field(default_factory=list)

    def outcomes(self) -> dict[str, int]:
        """How many reports had which outcome: what is added to the counters."""
        counts: dict[str, int] = {"accepted": self.accepted, "duplicate": self.duplicates}
        for _, reason in self.rejected:
            counts[reason] = counts.get(reason, 0) + 1
        return counts
