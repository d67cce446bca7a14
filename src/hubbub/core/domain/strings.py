"""The open domain of all texts up to a length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import Domain, as_list
from hubbub.core.errors import InvalidValue, check_integer
from hubbub.core.hashing import fingerprint

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

    def code(self, value: Any) -> str:
        self.encode([value])
        return str(value)

    def missing(self) -> str:
        return ""

    def candidate(self, text: str) -> str:
        return text

    def examples(self, most: int) -> list[str]:
        return list(dict.fromkeys(f"{k}word"[: self.longest] for k in range(min(most, WORDS))))

    def encode(self, values: Any) -> NDArray[np.uint64]:
        batch = [values] if isinstance(values, str) else as_list(values)
        for value in batch:
            if not isinstance(value, str) or any("\ud800" <= letter <= "\udfff" for letter in value):
                raise InvalidValue("values", value, "strings of whole characters")
            if len(value.encode()) > self.longest:
                raise InvalidValue("values", value, f"strings of at most {self.longest} bytes")
        return np.fromiter((fingerprint(value) for value in batch), dtype=np.uint64, count=len(batch))
