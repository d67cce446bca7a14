"""How values are written as strings of bits, which strings can be values, and what a string is called."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.core.bit_strings import MOST_BITS
from hubbub.core.domain import NONE
from hubbub.core.errors import InvalidValue, check_integer

OTHER = "(too long, or no text)"
"""What devices say whose value cannot be written."""

_ASCII, _GOES_ON, _END, _NEVER = 0, -1, -2, -3
_KINDS = np.full(256, _NEVER, dtype=np.int8)
_KINDS[0], _KINDS[1:0x80], _KINDS[0x80:0xC0] = _END, _ASCII, _GOES_ON
_KINDS[0xC2:0xE0], _KINDS[0xE0:0xF0], _KINDS[0xF0:0xF5] = 1, 2, 3


class Written:
    """A way to write values as strings of `bits` bits; a `unit` of them is a character."""

    bits: int
    unit: ClassVar[int] = 1

    def possible(self, words: NDArray[np.uint64], bits: int) -> NDArray[np.bool_]:
        """Which strings of so many bits are prefixes that a value can have."""
        raise NotImplementedError

    def value(self, string: int) -> str | int | None:
        """The value that a whole string is, or None where it is none."""
        raise NotImplementedError

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
        """Those whose bytes, as far as they are whole, begin a text of UTF-8 that is not empty."""
        fits = np.ones(len(words), dtype=bool)
        due = np.zeros(len(words), dtype=np.int8)
        ended = np.zeros(len(words), dtype=bool)
        whole, part = divmod(bits, 8)
        for at in range(whole):
            kind = _KINDS[_byte(words, at)]
            goes_on = due > 0
            fits &= np.where(goes_on, kind == _GOES_ON, kind >= 0) | (~goes_on & (kind == _END) & (at > 0))
            fits &= ~ended | (kind == _END)
            ended |= kind == _END
            due = np.where(goes_on, due - 1, np.maximum(kind, 0)).astype(np.int8)
        if part:
            byte = _byte(words, whole)
            fits &= ~ended | (byte == 0)
            fits &= (due == 0) | (byte >= 0x80)
        return fits & (due <= self.longest - whole)


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
