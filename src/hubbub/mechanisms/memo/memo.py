"""Memos: answers that are randomised once and kept, for values that are asked for again and again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, cast

import msgspec

from hubbub.core.errors import DecodeError, SpecMismatch
from hubbub.core.event import Event
from hubbub.core.random import Random
from hubbub.core.reports import Reports

__all__ = ["Memo", "Memoised"]

_KIND = "memo"


@dataclass(frozen=True)
class Memo:
    """A permanent answer: what a device keeps of a value, and makes every report of it from.

    Parameters
    ----------
    spec_id
        The mechanism it was made by.
    public
        What the device drew when it enrolled, without looking at any value: a hash function; 0 where there is nothing.
    key
        What it stands for: a value's code, or its bucket. It stays on the device.
    answer
        The permanent answer.

    Example:
        >>> memo = Memo("0" * 32, public=7, key=3, answer=b"\\x01")
        >>> Memo.from_bytes(memo.to_bytes()) == memo
        True
    """

    spec_id: str
    public: int
    key: int
    answer: bytes

    def to_bytes(self) -> bytes:
        """The memo as it is stored."""
        return msgspec.msgpack.encode((_KIND, self.spec_id, self.public, self.key, self.answer))

    @staticmethod
    def from_bytes(data: bytes) -> Memo:
        """Read a memo back; anything else is refused.

        Example:
            >>> Memo.from_bytes(b"other")
            Traceback (most recent call last):
                ...
            hubbub.core.errors.DecodeError: memo: got b'other'; allowed: the bytes of a memo
        """
        try:
            kind, *parts = msgspec.msgpack.decode(data, type=tuple[str, str, int, int, bytes])
        except (msgspec.DecodeError, UnicodeDecodeError):
            kind, parts = "", []
        if kind != _KIND:
            raise DecodeError("memo", data[:40], "the bytes of a memo")
        return Memo(*cast(tuple[str, int, int, bytes], tuple(parts)))


class _Named(Protocol):
    spec_id: str


class Memoised(ABC):
    """A mechanism of two layers: a permanent answer, made once a value, and reports that are made from it.

    A report from a fresh memo has the very distribution that `randomize` draws from, so that the server need not know
    which it gets. All reports from one memo together tell at most `permanent_epsilon`, and one alone
    `effective_epsilon`. What they do not hide is *that* a value changed, beyond what the second layer hides of it.
    """

    @property
    @abstractmethod
    def permanent_epsilon(self) -> float:
        """What a permanent answer spends, exactly, rounded up."""

    @property
    @abstractmethod
    def most_memos(self) -> int:
        """How many different memos a device can come to need."""

    @abstractmethod
    def memo_key(self, value: Any, public: int = 0) -> int:
        """Which memo a value needs, beside what the device drew when it enrolled."""

    @abstractmethod
    def _answer(self, key: int, rng: Random) -> bytes:
        """A permanent answer."""

    @abstractmethod
    def _report(self, memo: Memo, rng: Random) -> Reports:
        """A report from a memo of this mechanism."""

    def enroll(self, rng: Random) -> int:
        """What a device draws once, without looking at any value: 0 where there is nothing to draw."""
        return 0

    def remember(self, value: Any, rng: Random, public: int | None = None) -> Memo:
        """Randomise a value for good. A device brings what it enrolled with; without it, it enrols anew."""
        public = self.enroll(rng) if public is None else public
        key = self.memo_key(value, public)
        return Memo(self._own_id(), public, key, self._answer(key, rng))

    def report_from(self, memo: Memo, rng: Random) -> Reports:
        """Randomise a permanent answer once more: one report, to be sent."""
        if memo.spec_id != self._own_id():
            raise SpecMismatch("spec_id", memo.spec_id, f"a memo of {self._own_id()}")
        return self._report(memo, rng)

    def permanent_event(self) -> Event:
        """What a new memo spends, for life."""
        return Event.of(type(self).__name__, self._own_id(), self.permanent_epsilon)

    def _own_id(self) -> str:
        return cast(_Named, self).spec_id
