"""Messages between the parties of a shuffle. Each has a sender and a topic; any failure ends the run."""

from __future__ import annotations

import queue
from collections.abc import Sequence
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
