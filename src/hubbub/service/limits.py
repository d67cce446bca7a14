"""What a collector takes of reports, of senders and of connections; beyond it, it sheds and goes on."""

from __future__ import annotations

from dataclasses import dataclass, field

from hubbub.core.errors import InvalidValue

_SPARE_FILES = 128  # for the store, its files, and the sockets that listen


@dataclass(frozen=True)
class Ceilings:
    """How many reports are taken. Memory, disk and the time of a start are bounded by them, whatever is sent.

    Parameters
    ----------
    ask
        Reports to one ask: of a question, in a step. An id takes 24 bytes on the disk and about 6 in memory.
    kept_ask
        Reports to one ask of a question that keeps them; all of these are in memory once, when they become a file.
    held
        Reports to all asks whose ids are held at a time.
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
    """What one sender may send: reports a second, and at once; the secret by which a proxy's word is known.

    Parameters
    ----------
    rate, burst
        Reports a second in the long run, and at once. Any request counts as one report at least.
    secret
        With it, `X-Hubbub-Sender` is believed where its signature is right. Without it nobody's word is taken, and
        requests from the same machine, where a proxy would be, are not limited by sender.
    most
        How many senders are told apart.
    """

    rate: float = 5_000.0
    burst: int = 20_000
    secret: bytes | None = None
    most: int = 1 << 16


@dataclass(frozen=True)
class ConnectionLimits:
    """What connections may take.

    Parameters
    ----------
    connections
        At a time; fewer, if the process may not open so many files. One more makes the one go that has kept the
        server waiting longest.
    sender_connections
        At a time, from one address that is not a proxy's.
    header_bytes, headers
        Of a request: its first line and header lines, and how many of them.
    pipelined
        Requests of a connection that wait for the one before them.
    header_seconds, body_seconds, idle_seconds
        That a request's header, and then its body, may take to arrive, and that a connection may rest between two.
    write_seconds
        That an answer may wait for its reader.
    unread_bytes
        Of all answers that wait for their readers.
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
        """How many connections there may be, for the files that the process may open."""
        return max(min(self.connections, _most_files() - _SPARE_FILES), 1)


@dataclass(frozen=True)
class Limits:
    """What a collector takes: bytes of a request or a shuffled batch, reports a second and at once of a collection."""

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
