"""The domain of the integers 0 to size-1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.core.domain.base import MOST_LABELS, NONE, Domain, as_array, check_size
from hubbub.core.errors import InvalidValue


@dataclass(frozen=True)
class Ordinal(Domain):
    """The integers 0 to size-1.

    Example:
        >>> Ordinal(4).encode([0, 3]).tolist()
        [0, 3]
    """

    kind: ClassVar[str] = "ordinal"
    size: int

    def __post_init__(self) -> None:
        check_size(self.size)

    def describe(self) -> str:
        return f"0 to {self.size - 1:,}"

    def check_field(self) -> None:
        self.symbols()

    def symbol_labels(self) -> tuple[str, ...] | None:
        return (*map(str, range(self.size)), NONE) if self.size <= MOST_LABELS else None

    def encode(self, values: Any) -> NDArray[np.int64]:
        codes = as_array(values)
        if codes.size == 0:
            return np.empty(0, dtype=np.int64)
        if codes.ndim != 1 or codes.dtype.kind not in "iu":
            raise InvalidValue("values", values, "a one-dimensional batch of integers")
        outside = (codes < 0) | (codes >= self.size)
        if outside.any():
            raise InvalidValue("values", codes[outside][0].item(), f"integers from 0 to {self.size - 1}")
        return codes.astype(np.int64, copy=False)
