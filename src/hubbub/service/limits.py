"""The limits of a collector on reports, senders and connections. What exceeds them is refused."""

from __future__ import annotations

from dataclasses import dataclass, field

from hubbub.core.errors import InvalidValue

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
        Reports a second in the long run, and at once. Any request counts as one report at least.
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
        Connections at a time; fewer, if the process may not open so many files. For one more, the connection that has
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
