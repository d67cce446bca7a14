"""The view of a prefix: the first bits of a text or of a number, as a code that an open domain takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.bit_strings import MOST_BITS, integer_words, prefix_codes, text_words
from hubbub.core.errors import check_integer
from hubbub.protocols.view import View

_WORD = 64


@dataclass(frozen=True)
class Prefix(View):
    """The code of the first `bits` bits of a value that has `of` bits, as `core/bit_strings.py` writes them.

    The value is a text of at most of/8 bytes, or an integer below 2^of where `of` is at most 64. Any other value counts
    as the string of ones.
    """

    bits: int
    of: int

    def __post_init__(self) -> None:
        check_integer("of", self.of, 1, MOST_BITS)
        check_integer("bits", self.bits, 1, self.of)

    def __call__(self, values: Any) -> NDArray[np.uint64]:
        return prefix_codes(self.words(values), self.bits)

    def words(self, values: Any) -> NDArray[np.uint64]:
        """The values as strings of all their bits."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "iu" and self.of <= _WORD:
            return integer_words(values, self.of)
        batch = list(values)
        if batch and self.of <= _WORD and all(isinstance(value, int | np.integer) for value in batch):
            ones = (1 << self.of) - 1
            fitting = [value if 0 <= value <= ones else ones for value in batch]
            return integer_words(np.array(fitting, dtype=np.uint64), self.of)
        return text_words(batch, self.of)
