"""How values are written as strings of bits, which strings can be values, and what a string is called."""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.core.bit_strings import MOST_BITS
from hubbub.core.domain import NONE
from hubbub.core.errors import InvalidValue, check_integer

OTHER = "(too long, or no text)"
"""What devices say whose value cannot be written."""

_WHOLE, _AFTER_E0, _AFTER_ED, _AFTER_F0, _AFTER_F4, _ENDED, _BEGUN, _NEVER = 0, 4, 5, 6, 7, 8, 9, 10
"""The bytes so far are whole characters (0), or lack 1 to 3 bytes of that; after four bytes the next is limited."""
_DUE = np.array([0, 1, 2, 3, 2, 2, 3, 3, 0, 1, MOST_BITS], dtype=np.int16)
"""How many more bytes each needs."""


def _utf8() -> NDArray[np.uint8]:
    """What the bytes so far are with each byte more (RFC 3629, section 4); the zero byte ends a text."""
    after = np.full((len(_DUE), 256), _NEVER, dtype=np.uint8)
    after[_WHOLE, 1:0x80], after[_WHOLE, 0xC2:0xE0] = _WHOLE, 1
    after[_WHOLE, 0xE0:0xF0], after[_WHOLE, 0xF0:0xF5] = 2, 3
    after[_WHOLE, [0xE0, 0xED, 0xF0, 0xF4]] = _AFTER_E0, _AFTER_ED, _AFTER_F0, _AFTER_F4
    after[_BEGUN] = after[_WHOLE]
    after[[_WHOLE, _ENDED], 0] = _ENDED
    for short in (1, 2, 3):
        after[short, 0x80:0xC0] = short - 1
    after[_AFTER_E0, 0xA0:0xC0], after[_AFTER_ED, 0x80:0xA0] = 1, 1
    after[_AFTER_F0, 0x90:0xC0], after[_AFTER_F4, 0x80:0x90] = 2, 2
    return after


_AFTER = _utf8()


class Written(ABC):
    """A way to write values as strings of `bits` bits; a `unit` of them is a character."""

    bits: int
    unit: ClassVar[int] = 1

    @abstractmethod
    def possible(self, words: NDArray[np.uint64], bits: int) -> NDArray[np.bool_]:
        """Which strings of so many bits are prefixes that a value can have."""

    @abstractmethod
    def value(self, string: int) -> str | int | None:
        """The value that a whole string is, or None where it is none."""

    def absent(self) -> dict[str, int]:
        """What devices say that have no value: the strings, by name. No search looks for them."""
        return {}


@dataclass(frozen=True)
class Texts(Written):
    """Texts of at most `longest` bytes in UTF-8, NFC, filled up with zero bytes; the empty one counts as none.

    Example:
        >>> texts = Texts(4)
        >>> texts.bits, texts.value(0x68756200), texts.value(0x00620000), texts.absent()["(none)"]
        (32, 'hub', None, 0)
        >>> texts.possible(np.uint64([[0x68 << 56], [0xC3 << 56], [0x80 << 56], [0]]), 16).tolist()
        [True, False, False, False]
    """

    longest: int
    unit: ClassVar[int] = 8

    def __post_init__(self) -> None:
        check_integer("longest", self.longest, 1, MOST_BITS // 8)

    @property
    def bits(self) -> int:  # type: ignore[override]
        """Eight a byte."""
        return 8 * self.longest

    def absent(self) -> dict[str, int]:
        return {NONE: 0, OTHER: (1 << self.bits) - 1}

    def value(self, string: int) -> str | None:
        written = string.to_bytes(self.longest, "big").rstrip(b"\0")
        try:
            text = written.decode()
        except UnicodeDecodeError:
            return None
        return text if text and "\0" not in text and unicodedata.is_normalized("NFC", text) else None

    def possible(self, words: NDArray[np.uint64], bits: int) -> NDArray[np.bool_]:
        """Those that begin a text of UTF-8 which is not empty and has at most `longest` bytes."""
        state = np.full(len(words), _BEGUN, dtype=np.uint8)
        whole, part = divmod(bits, 8)
        for at in range(whole):
            state = _AFTER[state, _byte(words, at)]
        left = self.longest - whole
        if not part:
            return np.asarray(_DUE[state] <= left)
        least = _DUE[_AFTER].reshape(len(_DUE), 1 << part, -1).min(axis=2)  # of all bytes that begin so
        return np.asarray(least[state, _byte(words, whole) >> np.uint64(8 - part)] < left)


@dataclass(frozen=True)
class Integers(Written):
    """The integers from 0 to size - 1, written in `bits` bits, of which the string after the last stands for none.

    Parameters
    ----------
    bits
        From 1 to 64.
    size
        How many there are; all that so many bits can write unless given, and then none stands for none.

    Example:
        >>> Integers(4, size=9).absent(), Integers(4, size=9).value(12), Integers(4).value(12)
        ({'(none)': 9}, None, 12)
    """

    bits: int
    size: int = 0

    def __post_init__(self) -> None:
        check_integer("bits", self.bits, 1, 64)
        if self.size and not 1 <= self.size < 1 << self.bits:
            raise InvalidValue("size", self.size, f"0, or less than 2^{self.bits}: one string stands for none")

    def absent(self) -> dict[str, int]:
        return {NONE: self.size} if self.size else {}

    def value(self, string: int) -> int | None:
        return None if self.size and string >= self.size else string

    def possible(self, words: NDArray[np.uint64], bits: int) -> NDArray[np.bool_]:
        last = np.uint64(((self.size or 1 << self.bits) - 1) >> (self.bits - bits))
        return np.asarray(words[:, 0] >> np.uint64(64 - bits) <= last)


def _byte(words: NDArray[np.uint64], at: int) -> NDArray[np.uint64]:
    word, byte = divmod(at, 8)
    return np.asarray(words[:, word] >> np.uint64(56 - 8 * byte) & np.uint64(255))
