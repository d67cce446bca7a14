"""What came from the other parties of a run, by topic: nothing that is not due is taken, and one failure ends it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from hubbub.shuffle.channel import ShuffleAborted


class Mailbox:
    """Messages between the threads that read connections and the one that follows the protocol.

    Parameters
    ----------
    seconds
        How long to wait for a message.

    Example:
        >>> box = Mailbox(seconds=1.0)
        >>> box.expect(2, "hello", 5)
        >>> box.allowed(2, "hello")
        5
        >>> box.put(2, "hello", b"there")
        >>> box.receive(2, "hello")
        b'there'
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._changed = threading.Condition()
        self._due: dict[tuple[int, str], int] = {}
        self._not_due: dict[int, str] = {}
        self._heard: set[tuple[int, str]] = set()
        self._came: dict[tuple[int, str], bytes] = {}
        self._failed: dict[int, ShuffleAborted] = {}
        self._left: set[int] = set()
        self._closed = False

    # -- of the protocol --------------------------------------------------------------------------------------

    def expect(self, sender: int, topic: str, most_bytes: int) -> None:
        """Say that a message is due, and how long it may be."""
        with self._changed:
            self._due[sender, topic] = most_bytes
            self._changed.notify_all()

    def receive(self, sender: int, topic: str) -> bytes:
        """Wait for a message, or fail with the reason."""
        self.wait(lambda: (sender, topic) in self._came or self.failure(sender) is not None, self._seconds)
        with self._changed:
            if (sender, topic) in self._came:
                return self._came.pop((sender, topic))
            failure, other = self.failure(sender), self._not_due.get(sender)
        instead = f"; it sends {other!r}" if other is not None else ""
        raise failure or ShuffleAborted("party", sender, f"an answer to {topic} within {self._seconds:g} s{instead}")

    def failure(self, awaited: int) -> ShuffleAborted | None:
        """Why nothing more is to be expected: who is awaited has gone, or anybody has called the run off."""
        called_off = (failure for sender, failure in self._failed.items() if sender not in self._left)
        return self._failed.get(awaited) or next(called_off, None)

    def any_failure(self) -> ShuffleAborted | None:
        """The first reason of anybody, were it only that somebody has gone."""
        return next(iter(self._failed.values()), None)

    def wait(self, until: Callable[[], bool], seconds: float) -> bool:
        """Wait until something is so; whether it is."""
        with self._changed:
            return self._changed.wait_for(until, seconds)

    def close(self) -> None:
        """Nothing more is taken from anybody."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # -- of those who read ------------------------------------------------------------------------------------

    def allowed(self, sender: int, topic: str) -> int:
        """How long a message may be, once it is due: until then its reader waits, and takes nothing more."""
        with self._changed:
            if (sender, topic) in self._heard:
                raise ShuffleAborted("party", sender, f"one message about {topic}; it sent two")
            self._not_due[sender] = topic
            self._changed.wait_for(lambda: (sender, topic) in self._due or self._closed)
            if self._closed:
                raise ConnectionResetError
            del self._not_due[sender]
            self._heard.add((sender, topic))
            return self._due.pop((sender, topic))

    def put(self, sender: int, topic: str, body: bytes) -> None:
        """A message has come."""
        with self._changed:
            self._came[sender, topic] = body
            self._changed.notify_all()

    def fail(self, sender: int, error: ShuffleAborted, *, left: bool) -> None:
        """Nothing more will come from somebody: it has left, or called the run off, or does what is not allowed."""
        with self._changed:
            self._failed[sender] = error
            if left:
                self._left.add(sender)
            self._changed.notify_all()

    def stir(self) -> None:
        """Let those who wait look again."""
        with self._changed:
            self._changed.notify_all()

    def __len__(self) -> int:
        """How many messages wait."""
        return len(self._came)
