"""The open domain of all texts up to a length, and values as strings of bits.

Values as strings of bits, the prefixes of them, and the 64-bit codes of prefixes that mechanisms hash.

A batch of values of m bits is an array of 64-bit words, one row per value: bit 0 is the highest of the first word, what
is beyond m is 0. A text is its NFC form in UTF-8, padded with zero bytes to its longest length: the zero byte is the
end symbol. A value that has no such form (a text that is too long or holds a zero byte, or no text) is a string of
ones, which is not UTF-8.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hubbub.core.domain.base import Domain, Values, as_list
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.hashing import fingerprint
from hubbub.core.reports import Words

WORDS = 24
"""How many example texts `Strings.examples` gives at most: an open domain cannot be listed."""


@dataclass(frozen=True)
class Strings(Domain):
    """Any text of at most `longest` UTF-8 bytes: an open domain. The code of a text is its 64-bit fingerprint.

    Example:
        >>> Strings(longest=16).encode(["hello"]).tolist() == [fingerprint("hello")]
        True
    """

    kind: ClassVar[str] = "strings"
    longest: int
    size = None
    in_order = False

    def __post_init__(self) -> None:
        check_integer("longest", self.longest, 1, 1 << 20)

    def describe(self) -> str:
        return f"texts of at most {self.longest} bytes"

    def code(self, value: object) -> str:
        self.encode([value])
        return str(value)

    def missing(self) -> str:
        return ""

    def candidate(self, text: str) -> str:
        return text

    def examples(self, most: int) -> list[str]:
        return list(dict.fromkeys(f"{k}word"[: self.longest] for k in range(min(most, WORDS))))

    def encode(self, values: Values) -> Words:
        batch = [values] if isinstance(values, str) else as_list(values)
        for value in batch:
            if not isinstance(value, str) or any("\ud800" <= letter <= "\udfff" for letter in value):
                raise InvalidValue("values", value, "strings of whole characters")
            if len(value.encode()) > self.longest:
                raise InvalidValue("values", value, f"strings of at most {self.longest} bytes")
        return np.fromiter((fingerprint(value) for value in batch), dtype=np.uint64, count=len(batch))


MOST_BITS = 1 << 12
_WORD = 64
_ALL = np.uint64((1 << 64) - 1)
_MULTIPLY = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD35A2D9721F0AAAD))
_SHIFT = (np.uint64(32), np.uint64(29))


@dataclass(frozen=True)
class BitStrings(Domain):
    """The codes of strings of bits, below 2^bits: an open domain, whose values are never listed."""

    kind: ClassVar[str] = "bitstrings"
    bits: int
    size = None
    in_order = False

    def __post_init__(self) -> None:
        check_integer("bits", self.bits, 1, _WORD)

    def describe(self) -> str:
        return f"strings of bits, in {self.bits} bits"

    def check_field(self) -> None:
        raise InvalidValue("kind", "bitstrings", "a kind of field: people record texts or numbers")

    def examples(self, most: int) -> list[int]:
        last = (1 << self.bits) - 1
        return [round(k * last / max(most - 1, 1)) if k < most - 1 else last for k in range(min(most, last + 1))]

    def encode(self, values: Values) -> Words:
        try:
            codes = np.atleast_1d(np.asarray(values))
            if codes.dtype.kind not in "iu" and codes.size:
                codes = np.array([_code(value) for value in values], dtype=np.uint64)
        except (TypeError, ValueError, OverflowError):
            raise InvalidValue("values", values, f"integers from 0 to 2^{self.bits}-1") from None
        if codes.ndim != 1 or (codes.dtype.kind == "i" and codes.min(initial=0) < 0):
            raise InvalidValue("values", values, f"a one-dimensional batch of integers from 0 to 2^{self.bits}-1")
        wide = codes.astype(np.uint64)
        if self.bits < _WORD and wide.size and int(wide.max()) >> self.bits:
            raise InvalidValue("values", int(wide.max()), f"integers from 0 to 2^{self.bits}-1")
        return wide


def text_words(texts: Iterable[object], bits: int) -> Words:
    """Texts, or bytes in UTF-8, as strings of `bits` bits, a multiple of 8; anything else is a string of ones."""
    width = -(-bits // _WORD) * 8
    impossible = (b"\xff" * (bits // 8)).ljust(width, b"\0")
    row_of: dict[object, bytes] = {}
    rows = []
    for text in texts:
        row = row_of.get(text) if isinstance(text, str | bytes) else impossible
        if row is None:
            utf_8 = text_bytes(text, bits // 8)
            row = row_of[text] = impossible if utf_8 is None else utf_8.ljust(width, b"\0")
        rows.append(row)
    return np.frombuffer(b"".join(rows), dtype=">u8").reshape(-1, width // 8).astype(np.uint64)


def text_bytes(text: object, longest: int) -> bytes | None:
    """The UTF-8 bytes of a text's NFC form; None if too long, with a zero byte, or no text."""
    try:
        decoded = text.decode() if isinstance(text, bytes) else str(text)
        utf_8 = unicodedata.normalize("NFC", decoded).encode()
    except UnicodeError:
        return None
    return utf_8 if len(utf_8) <= longest and 0 not in utf_8 else None


def integer_words(codes: object, bits: int) -> Words:
    """Integers as strings of `bits` bits, at most 64; an integer that does not fit is a string of ones."""
    integers = np.atleast_1d(np.asarray(codes))
    most = (1 << bits) - 1
    negative = integers < 0 if integers.dtype.kind == "i" else np.zeros(integers.shape, dtype=bool)
    wide = integers.astype(np.uint64)
    return (np.where(negative | (wide > np.uint64(most)), np.uint64(most), wide) << np.uint64(_WORD - bits))[:, None]


def prefix_codes(words: Words, bits: int) -> Words:
    """The codes of prefixes of `bits` bits: up to 64 bits the prefix as an integer, beyond that a 64-bit fingerprint.

    A fingerprint is computed word by word, by h = mix(h) + word, where the bits beyond the prefix are 0. Prefixes of
    one length that differ in their last word only have different codes; others collide with probability about 2^-64.
    """
    if bits <= _WORD:
        return np.asarray(words[:, 0] >> np.uint64(_WORD - bits))
    last, rest = divmod(bits - 1, _WORD)
    code = words[:, 0]
    with np.errstate(over="ignore"):
        for at in range(1, last):
            code = _mix(code) + words[:, at]
        return np.asarray(_mix(code) + (words[:, last] & ~(_ALL >> np.uint64(rest) >> np.uint64(1))))


def _mix(code: Words) -> Words:
    """A permutation of 64-bit words."""
    for multiply, shift in zip(_MULTIPLY, _SHIFT, strict=True):
        code = (code ^ (code >> shift)) * multiply
    return code ^ (code >> _SHIFT[0])


def _code(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError
    return int(value)
