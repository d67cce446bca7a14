"""Cutting values into segments, and shortening them for a hash function."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PRIME = (1 << 61) - 1


def cuts_of(bits: int, segments: int) -> list[tuple[int, int]]:
    """The start and the end of each of `segments` segments of nearly equal length.

    Example:
        >>> cuts_of(10, 3)
        [(0, 4), (4, 7), (7, 10)]
    """
    ends = [-(-bits * segment // segments) for segment in range(segments + 1)]
    return list(pairwise(ends))


def short_codes(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Values of any length as codes of 61 bits for a hash function: their remainders modulo a prime.

    Example:
        >>> short_codes(np.array([1 << 70, 3], dtype=object)).tolist()
        [512, 3]
    """
    return np.asarray(values % (_PRIME if values.dtype == object else np.uint64(_PRIME)), dtype=np.uint64)
