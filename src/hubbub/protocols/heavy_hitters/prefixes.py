"""Values as strings of bits, and the plan of a search by their prefixes."""

import math
import unicodedata
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain import NONE
from hubbub.core.domain.texts import MOST_BITS, BitStrings
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.event import epsilon_of, units_of
from hubbub.mechanisms.frequency.local_hashing import OLH

OTHER = "(too long, or no text)"
"""The label of devices whose value cannot be encoded."""

_WHOLE, _AFTER_E0, _AFTER_ED, _AFTER_F0, _AFTER_F4, _ENDED, _BEGUN, _NEVER = 0, 4, 5, 6, 7, 8, 9, 10
"""The states of a UTF-8 parser. In states 0 to 3 that number of bytes of a character is missing; after the bytes
E0, ED, F0 and F4 the next byte is limited; the text has ended, has just begun, or is not UTF-8."""
_MISSING = np.array([0, 1, 2, 3, 2, 2, 3, 3, 0, 1, MOST_BITS], dtype=np.int16)
"""How many more bytes each state needs at least."""


def _utf8() -> NDArray[np.uint8]:
    """The next state of the parser, by state and byte (RFC 3629, section 4); the zero byte ends a text."""
    after = np.full((len(_MISSING), 256), _NEVER, dtype=np.uint8)
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


class BitEncoding(ABC):
    """An encoding of values as strings of `bits` bits; a character has `unit` bits."""

    bits: int
    unit: ClassVar[int] = 1

    @abstractmethod
    def possible(self, words: NDArray[np.uint64], bits: int) -> NDArray[np.bool_]:
        """Whether each of some strings of a given number of bits can be the prefix of a value."""

    @abstractmethod
    def value(self, string: int) -> str | int | None:
        """The value that a whole string encodes, or None if it encodes none."""

    def absent(self) -> dict[str, int]:
        """The strings that devices without a value report, by label. Searches do not look for them."""
        return {}


@dataclass(frozen=True)
class Texts(BitEncoding):
    """Texts of at most `longest` bytes in UTF-8 and NFC, padded with zero bytes; the empty text counts as no value."""

    longest: int
    unit: ClassVar[int] = 8

    def __post_init__(self) -> None:
        check_integer("longest", self.longest, 1, MOST_BITS // 8)

    @property
    def bits(self) -> int:  # type: ignore[override]
        """Eight for each byte."""
        return 8 * self.longest

    def absent(self) -> dict[str, int]:
        return {NONE: 0, OTHER: (1 << self.bits) - 1}

    def value(self, string: int) -> str | None:
        encoded = string.to_bytes(self.longest, "big").rstrip(b"\0")
        try:
            text = encoded.decode()
        except UnicodeDecodeError:
            return None
        return text if text and "\0" not in text and unicodedata.is_normalized("NFC", text) else None

    def possible(self, words: NDArray[np.uint64], bits: int) -> NDArray[np.bool_]:
        """Whether each string begins a non-empty UTF-8 text of at most `longest` bytes."""
        state = np.full(len(words), _BEGUN, dtype=np.uint8)
        whole, part = divmod(bits, 8)
        for at in range(whole):
            state = _AFTER[state, _byte(words, at)]
        left = self.longest - whole
        if not part:
            return np.asarray(_MISSING[state] <= left)
        least = _MISSING[_AFTER].reshape(len(_MISSING), 1 << part, -1).min(axis=2)  # over all bytes with these bits
        return np.asarray(least[state, _byte(words, whole) >> np.uint64(8 - part)] < left)


@dataclass(frozen=True)
class Integers(BitEncoding):
    """The integers from 0 to size - 1 in `bits` bits; the string of `size` means no value.

    `bits`: from 1 to 64. `size`: how many integers there are. If 0, all integers of this length are values, and no
    string means no value.
    """

    bits: int
    size: int = 0

    def __post_init__(self) -> None:
        check_integer("bits", self.bits, 1, 64)
        if self.size and not 1 <= self.size < 1 << self.bits:
            raise InvalidValue("size", self.size, f"0, or less than 2^{self.bits}: one string means no value")

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


QUERY_LIMIT = 1 << 20
"""The default for how many candidates are tested in all: the chapter's bound (section 4.4.1)."""
MOST_FOUND = 1 << 12
_MOST_QUERIES = 1 << 30


@dataclass(frozen=True, kw_only=True)
class PrefixPlan:
    """The groups of a search for the k most common values, and the length of the prefix that each group reports.

    Parameters
    ----------
    query_limit
        How many candidates may be tested in all groups together.
    branching
        Whether prefixes have any number of bits, or whole characters.
    groups
        How many groups; unless given, as few as the limit allows (section 4.3.3).
    threshold
        If given, only prefixes with an estimated share of at least this are extended.
    """

    encoding: BitEncoding
    k: int
    epsilon: float
    query_limit: int = QUERY_LIMIT
    branching: Literal["bits", "characters"] = "bits"
    groups: int = 0
    threshold: float | None = None
    lengths: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        check_integer("k", self.k, 1, MOST_FOUND)
        check_integer("query_limit", self.query_limit, 2, _MOST_QUERIES)
        check_integer("groups", self.groups, 0, self.encoding.bits)
        if self.branching not in ("bits", "characters"):
            raise InvalidValue("branching", self.branching, "bits or characters")
        if self.threshold is not None and not 0 < self.threshold < 1:
            raise InvalidValue("threshold", self.threshold, "a share between 0 and 1")
        unit = self.encoding.unit if self.branching == "characters" else 1
        fewest = self.groups or 1
        for groups in range(fewest, (self.groups or self.encoding.bits) + 1):
            lengths = prefix_lengths(self.encoding.bits, self.k, groups, unit)
            if queries(lengths, self.k) <= self.query_limit:
                object.__setattr__(self, "lengths", lengths)
                return
        need = queries(prefix_lengths(self.encoding.bits, self.k, self.groups or self.encoding.bits, unit), self.k)
        raise InvalidValue("query_limit", self.query_limit, f"at least {need}, which these values and groups need")

    @cached_property
    def oracle(self) -> OLH:
        """The mechanism of every report."""
        return OLH(epsilon=epsilon_of(units_of(self.epsilon)), domain=BitStrings(64))

    @property
    def queries(self) -> int:
        """How many candidates are tested at most, in all groups together."""
        return queries(self.lengths, self.k)


def prefix_lengths(bits: int, k: int, groups: int, unit: int = 1) -> tuple[int, ...]:
    """The prefix length of each group (Algorithm 1, line 5), in whole units; groups of equal length are merged."""
    first = min(math.ceil(math.log2(k)), bits)
    exact = (first + -(-i * (bits - first) // groups) for i in range(1, groups + 1))
    return tuple(dict.fromkeys(min(-(-length // unit) * unit, bits) for length in exact))


def queries(lengths: tuple[int, ...], k: int) -> int:
    """How many candidates are tested at most, over all groups (Eq 4.3, without the reports)."""
    total, known, prefixes = 0, 0, 1
    for length in lengths:
        candidates = prefixes << (length - known)
        total, known, prefixes = total + candidates, length, min(k, candidates)
    return total
