"""Messages between the parties of a shuffle. Each has a sender and a topic; any failure ends the run."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hubbub.core.errors import InvalidValue


class ShuffleAborted(InvalidValue):
    """The run has ended without a result; nothing was released."""

    lost = False
    """Whether a party went away, so that another attempt may go better."""


class Channel(Protocol):
    """The connections of one party. A message goes to a party by its number, under a topic that is used once."""

    def send(self, to: int, topic: str, body: bytes) -> None:
        """Send a message; it arrives, or the run is aborted."""
        ...

    def expect(self, sender: int, topic: str, most_bytes: int) -> None:
        """Announce a message that is due, and its greatest length. Messages that are not announced are not read."""
        ...

    def receive(self, sender: int, topic: str) -> bytes:
        """Wait for the message of a party under a topic."""
        ...


@dataclass
class LocalNetwork:
    """Parties in one process, for tests and simulations, with a transcript of all messages."""

    parties: int
    seconds: float = 60.0
    transcript: list[tuple[int, int, str, bytes]] = field(default_factory=list)
    _waiting: dict[tuple[int, int, str], queue.Queue[bytes]] = field(default_factory=dict)

    def channel(self, me: int) -> Channel:
        """The channel of a party."""
        return _LocalChannel(self, me)

    def place(self, sender: int, to: int, topic: str) -> queue.Queue[bytes]:
        """The queue of a message that was not received yet."""
        return self._waiting.setdefault((sender, to, topic), queue.Queue())


@dataclass
class _LocalChannel:
    network: LocalNetwork
    me: int
    _due: dict[tuple[int, str], int] = field(default_factory=dict)

    def send(self, to: int, topic: str, body: bytes) -> None:
        self.network.transcript.append((self.me, to, topic, body))
        self.network.place(self.me, to, topic).put(body)

    def expect(self, sender: int, topic: str, most_bytes: int) -> None:
        self._due[sender, topic] = most_bytes

    def receive(self, sender: int, topic: str) -> bytes:
        most = self._due.pop((sender, topic))
        try:
            body = self.network.place(sender, self.me, topic).get(timeout=self.network.seconds)
            if len(body) > most:
                raise ShuffleAborted("party", sender, f"at most {most:,} bytes about {topic}; it sent {len(body):,}")
            return body
        except queue.Empty:
            raise ShuffleAborted("party", sender, f"an answer to {topic} within {self.network.seconds:g} s") from None


def everyone_but(me: int, parties: Sequence[int]) -> list[int]:
    """The parties other than this one."""
    return [party for party in parties if party != me]


class Mailbox:
    """Passes messages from the threads that read connections to the thread that runs the protocol.

    Parameters
    ----------
    seconds
        How long to wait for a message.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._changed = threading.Condition()
        self._due: dict[tuple[int, str], int] = {}
        self._not_due: dict[int, str] = {}
        self._taken: set[tuple[int, str]] = set()
        self._messages: dict[tuple[int, str], bytes] = {}
        self._failed: dict[int, ShuffleAborted] = {}
        self._left: set[int] = set()
        self._closed = False

    # -- for the protocol --------------------------------------------------------------------------------------

    def expect(self, sender: int, topic: str, most_bytes: int) -> None:
        """Announce a message that is due, and its greatest length."""
        with self._changed:
            self._due[sender, topic] = most_bytes
            self._changed.notify_all()

    def receive(self, sender: int, topic: str) -> bytes:
        """Wait for a message, or fail with the reason."""
        self.wait(lambda: (sender, topic) in self._messages or self.failure(sender) is not None, self._seconds)
        with self._changed:
            if (sender, topic) in self._messages:
                return self._messages.pop((sender, topic))
            failure, other = self.failure(sender), self._not_due.get(sender)
        instead = f"; it sends {other!r}" if other is not None else ""
        raise failure or ShuffleAborted("party", sender, f"an answer to {topic} within {self._seconds:g} s{instead}")

    def failure(self, awaited: int) -> ShuffleAborted | None:
        """Why waiting for a party is in vain: it has left, or some party has aborted the run. None if it is not."""
        called_off = (failure for sender, failure in self._failed.items() if sender not in self._left)
        return self._failed.get(awaited) or next(called_off, None)

    def any_failure(self) -> ShuffleAborted | None:
        """The first failure of any party, including that a party has left."""
        return next(iter(self._failed.values()), None)

    def wait(self, until: Callable[[], bool], seconds: float) -> bool:
        """Wait until a condition holds; returns whether it does."""
        with self._changed:
            return self._changed.wait_for(until, seconds)

    def close(self) -> None:
        """Take no more messages."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # -- for the readers ------------------------------------------------------------------------------------

    def allowed(self, sender: int, topic: str) -> int:
        """Wait until a message is due; returns its greatest length. Until then its connection is not read."""
        with self._changed:
            if (sender, topic) in self._taken:
                raise ShuffleAborted("party", sender, f"one message about {topic}; it sent two")
            self._not_due[sender] = topic
            self._changed.wait_for(lambda: (sender, topic) in self._due or self._closed)
            if self._closed:
                raise ConnectionResetError
            del self._not_due[sender]
            self._taken.add((sender, topic))
            return self._due.pop((sender, topic))

    def put(self, sender: int, topic: str, body: bytes) -> None:
        """Add a message that was read."""
        with self._changed:
            self._messages[sender, topic] = body
            self._changed.notify_all()

    def fail(self, sender: int, error: ShuffleAborted, *, left: bool) -> None:
        """Note that a party sends no more: it has left, has aborted the run, or broke the rules."""
        with self._changed:
            self._failed[sender] = error
            if left:
                self._left.add(sender)
            self._changed.notify_all()

    def stir(self) -> None:
        """Wake all waiting threads, so that they check their conditions again."""
        with self._changed:
            self._changed.notify_all()

    def __len__(self) -> int:
        """The number of messages that were not received yet."""
        return len(self._messages)
